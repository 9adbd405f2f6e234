//! Plan and run tensor programs over blocks.
//!
//! ```
//! use tilewright::Session;
//!
//! let session = Session::builder().threads(2).build();
//! let a = session.random_normal(&[300, 200], 1)?;
//! let b = session.random_normal(&[200, 100], 2)?;
//! let c = a.matmul(&b)?.add_scalar(1.0)?;
//! assert_eq!(c.shape()?, [300, 100]);
//! let mean = c.mean(None)?.item()?;
//! assert!((mean.as_f64() - 1.0).abs() < 1.0);
//! # Ok::<(), tilewright::Error>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "linalg")]
pub mod algorithms;
mod available;
mod bindings;
mod budget;
mod cancel;
mod checkpoint;
#[cfg(feature = "cli")]
pub mod cli;
mod control;
#[cfg(feature = "diagnose")]
pub mod diagnose;
pub mod explain;
mod grant;
pub mod mpi;
mod peak;
mod pool;
mod profile;
mod program_text;
mod progress;
mod ranks;
mod relation;
mod report;
mod reproducible;
mod results;
mod session;
mod tensor;
mod units;

pub use bindings::Inputs;
pub use cancel::until_cancelled;
pub use program_text::BoundProgram;
pub use progress::{Look, Watch};
pub use relation::{Key, Relation, RelationKernel};
pub use report::Totals;
pub use session::{Session, SessionBuilder};
pub use tensor::chunks::automatic as automatic_chunks;
#[cfg(feature = "parquet")]
pub use tensor::ops::store_columns;
pub use tensor::ops::{concat, einsum, joined, map_blocks, store_all};
pub use tensor::{Tensor, at_span, compute_all, compute_arrays, compute_arrays_on, numbers_needed, settle_all};
pub use tw_block as block;
pub use tw_block::{Provider, Source, SourceAccess, in_memory};
pub use tw_build as build;
pub use tw_files as files;
pub use tw_files::{FileOptions, FileTarget, open};
pub use tw_ir as ir;
pub use tw_ir::{Array, ArrayView, Axis, Buffer, DType, Error, Program, Result, Scalar};
pub use tw_lang as lang;
pub use tw_place as place;
pub use tw_plan as plan;
pub use tw_run::{BlockHandle, CancelToken, TensorHandle};
