//! The four levels of Tilewright and their meaning.
//!
//! Each level has its own types, text form and verifier:
//!
//! * [`program`]: the user's request. Index statements and a few other operators, in SSA form, with structured control flow.
//! * [`plan`]: relations from block keys to blocks, one per value, each defined by a join, an aggregate or another operator.
//! * [`workflow`]: tasks over block regions, as a struct of arrays.
//! * [`schedule`]: a workflow with a total order, deletions and a predicted peak. An engine sees nothing else.
//!
//! The [`oracle`] is a slow interpreter of programs. It defines the meaning of a program; every engine is compared with it.
//!
//! This crate does no input or output, starts no threads, and contains no `unsafe`.
#![forbid(unsafe_code)]

pub mod accum;
pub mod array;
pub mod contraction;
pub mod dense;
pub mod dtype;
pub mod error;
pub mod format;
pub mod grid;
pub mod index;
pub mod kernel;
pub mod oracle;
pub mod plan;
pub mod program;
pub mod random;
pub mod scalar;
pub mod schedule;
pub mod shape;
pub mod span;
pub mod spec;
pub mod text;
pub mod tiling;
pub mod workflow;

pub use cranelift_entity::{EntityRef, PrimaryMap};

pub use accum::{Accum, OnEmpty};
pub use array::{Array, ArrayView, Buffer, Slice, SliceMut, Writable};
pub use dtype::{DType, Scalar, TimeUnit};
pub use error::{Blame, Error, Result};
pub use grid::Grid;
pub use index::{Access, Edge, Idx, Term, Var};
pub use program::{Node, Op, Program, Region, TensorType, ValueId};
pub use scalar::{BinaryOp, RandomDistribution, ScalarCode, ScalarOp, Slot, UnaryOp};
pub use shape::Extent;
pub use span::{FileId, HostCall, Span};
pub use tiling::{Axis, BoxRegion, Tiling};
