//! File formats: tensors that are read from files and written to them, block by block.
//!
//! [`open`] gives a [`tw_block::Source`], [`create`] a [`tw_block::Sink`]; the path decides the format. Nothing outside this crate knows any format.
//!
//! - Files are read at given positions, never mapped: a file that shrinks while it is open is an error with a name, not a signal.
//! - Metadata is believed only as far as the file supports it. No allocation follows what a header claims.
//! - A result gets its name when all of it is written.
//!
//! The crate is separate from the kernels because formats bring heavy dependencies.

#![forbid(unsafe_code)]

#[cfg(any(feature = "zarr", feature = "parquet"))]
mod bounded;
mod coordinates;
mod csv;
mod descr;
mod formats;
pub mod npy;
#[cfg(feature = "parquet")]
mod parquet;
mod several;
mod spool;
mod version;
#[cfg(feature = "zarr")]
mod zarr;

pub use coordinates::{Coordinates, read_coordinates};
pub use csv::{TableOptions, open as open_table};
pub use formats::{
    FileOptions, FileSummary, FileTarget, KeptSink, blocks_for, create, create_kept, describe, is_known, join,
    one_writer, open, read_array, scratch_of_store, write_array,
};
#[cfg(feature = "parquet")]
pub use parquet::{TableColumn, create_columns, open_column_table, open_columns};
pub use several::{expand, open_all};
