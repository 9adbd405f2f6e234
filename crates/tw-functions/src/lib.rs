//! Block functions that ship with Tilewright.
//!
//! A block function sees whole blocks and knows nothing of the rest: the blocked algorithms of [`tw-build`](https://docs.rs/tw-build) are
//! programs that call these by name. Factorisations are those of a LAPACK that the
//! engine hands over, else `faer`'s; Fourier transforms are `rustfft`'s. None of them uses threads: a call is one task.
//!
//! They live in a crate of their own because they take long to compile and nothing else in the engine needs them.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

use tw_ir::program::FunctionTable;

mod fourier;
mod matrix;
mod select;

/// Functions along an axis are registered for this many axes, counted from the last; callers bring other axes there.
const N_AXES: usize = 8;

static LIBRARY: LazyLock<FunctionTable> = LazyLock::new(|| {
    let mut table = FunctionTable::default();
    matrix::register(&mut table);
    fourier::register(&mut table);
    select::register(&mut table);
    table
});

/// All functions, one instance of each: programs made at different times call the same ones.
///
/// ```
/// assert!(tw_functions::library().get("linalg_cholesky").is_ok());
/// ```
pub fn library() -> &'static FunctionTable {
    &LIBRARY
}
