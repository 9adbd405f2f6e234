//! Block functions that ship with Tilewright: factorisations, Fourier transforms, order statistics.
//!
//! A block function sees whole blocks only. The blocked algorithms of [`tw-build`](https://docs.rs/tw-build) are programs that call these functions by name.
//! Factorisations use the LAPACK that the engine passes, or else `faer`; Fourier transforms use `rustfft`. No function uses threads: a call is one task.
//!
//! To add a function, register it in `matrix`, `fourier` or `select`. The crate is separate because it compiles slowly and no other part of the engine
//! depends on it.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

use tw_ir::program::FunctionTable;

mod fourier;
mod matrix;
mod select;

/// Functions along an axis are registered for this many axes, counted from the last; callers move other axes there.
const N_AXES: usize = 8;

static LIBRARY: LazyLock<FunctionTable> = LazyLock::new(|| {
    let mut table = FunctionTable::default();
    matrix::register(&mut table);
    fourier::register(&mut table);
    select::register(&mut table);
    table
});

/// All functions, one instance of each, so that programs built at different times call the same instance.
///
/// ```
/// assert!(tw_functions::library().get("linalg_cholesky").is_ok());
/// ```
pub fn library() -> &'static FunctionTable {
    &LIBRARY
}
