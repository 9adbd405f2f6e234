//! The extension module `tilewright._core`: tensors, sessions and operations for the Python package in `python/tilewright`.
//!
//! ```text
//! tw.sum(x, axis=0)        python/tilewright     signatures of the array API standard, defaults, docstrings
//!         v
//! _core.reduce("sum", ..)  this crate            converts names, numbers and memory; the caller's line becomes the span
//!         v
//! build::reduce -> Tensor  crates/tilewright     decides types and shapes; adds a node to the graph
//! ```
//!
//! This crate converts values and does nothing else. The crates below decide meaning, shapes and types. The Python files above decide signatures, defaults and
//! protocols. An operation is a name and a few numbers, so a few dozen functions here serve some two hundred functions of the namespace.
//!
//! # Python files
//!
//! - The module is the namespace of the array API standard. `Array` wraps one lazy `Tensor`.
//! - `_numpy.py` maps NumPy's functions to ours by one table: it binds a call by NumPy's own signature. NumPy functions beyond the standard are composed lazily in
//!   Python. Errors that depend on elements then surface at compute time as out-of-range indices. `nanargmax` and `nanargmin` are the exception: they call a Python
//!   function per result block, because NumPy raises a `ValueError` for slices that are all NaN.
//! - `_views.py` implements shared elements. Tensors are immutable values; arrays that share elements refer to one memory object, which has the tensor of the whole array
//!   and a version. A write inverts the steps from the whole to the view; the other arrays derive their part again at their next use. A writer replaces the whole only if the
//!   version has not changed, and retries otherwise, so concurrent writes to disjoint parts are not lost. No lock is held while tensors are made. `_out.py` handles `out=` in the same
//!   way. Rejected: a strong reference from a view to its base, which keeps large arrays alive; and copies, which would silently drop writes.
//! - `_turns.py` is one lock for libraries that allow a single thread, such as HDF5. Readers and writers hold it per slice. A holder that computes another array
//!   releases it until that array is computed, because other threads read those blocks, perhaps under the same lock.
//!
//! # Rules
//!
//! - **The GIL is released in one place** (`interrupt`). A long run gets its own thread; the calling thread waits, checks signals every 50 ms and reports
//!   progress. Ctrl-C cancels the run and returns at once. What is guessed to end within about 50 ms (`Tensor::work`) runs on the calling thread, since a handover would
//!   cost more than a small run.
//! - **Errors become exceptions in one place** (`errors`). The blame of an error, and whether it concerns types or indices, select the class.
//! - **Memory is copied in once and handed out without a copy** (`convert`). A NumPy result owns the vector that it shows; a large result is assembled in that vector
//!   during the run. Storage of dead NumPy arrays is reused. Large read-only arrays, and any array with `copy=False`, are sources that are sliced block by block.
//! - **Python functions are block functions** (`function`). They take the GIL for their call, on the thread that has the block. The engine knows no block keys at run
//!   time, so a function learns its position from operands with one element per block; extents of result blocks come from unread operands if no operand is tiled that way. An
//!   exception travels inside the error unchanged. Plans that call a Python function are not cached, because no later plan could match them; so the function is freed with the
//!   last array that needs it. `cfunction` calls compiled code by address; it is the one place that must trust the user.
//! - **Each run has its own cancel token.** Ctrl-C and `Pending.cancel()` stop one run; `Session.cancel()` stops all runs of a session. A background run
//!   (`background`) is a thread and the result that it announces; arrays remember what it computed.
//! - **Types.** Element types are NumPy's `dtype` objects, indices are int64, and the device is `"cpu"`.
//! - **Fork.** A session refuses to run in a forked child, because its threads do not exist there.
// Not `forbid`: `cfunction` is allowed one block, and the code that pyo3's macros make is allowed by them.
#![deny(unsafe_code)]

mod algorithms;
mod apply;
mod background;
mod cfunction;
mod convert;
mod dtypes;
mod errors;
mod explanation;
mod files;
mod function;
mod interrupt;
mod line;
mod ops;
mod program;
mod relation;
mod session;
mod tensor;

#[global_allocator]
static ALLOCATOR: tilewright::block::ReturnedAtOnce = tilewright::block::ReturnedAtOnce;

/// Tensors, sessions and operations.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use super::algorithms::{fourier, routine, select, svd_compressed};
    #[pymodule_export]
    use super::background::{Run, start};
    #[pymodule_export]
    use super::cfunction::compiled_function;
    #[pymodule_export]
    use super::convert::{from_numpy, from_rank, to_numpy};
    #[pymodule_export]
    use super::explanation::{Difference, Explanation, Profile};
    #[pymodule_export]
    use super::files::{
        open_column_table, open_columns, open_file, open_files, open_table, store_columns, store_files,
    };
    #[pymodule_export]
    use super::function::{block_function, settle};
    #[pymodule_export]
    use super::ops::{
        binary, broadcast_shapes, broadcast_to, cast, compact, concat, coordinate, coordinate_of, diagonal, einsum,
        einsum_path, expand, expand_dims, eye, flip, full, gather, gather_known, linspace, logical, logical_not,
        matmul, overlap, permute, positions, progression, random, rechunk, reduce, repeat, replace, reshape,
        result_type, roll, scan, scatter, scatter_last, seen_as, slice, sort, squeeze, stack, tensordot, tril, triu,
        unary, where_,
    };
    #[pymodule_export]
    use super::program::program;
    #[pymodule_export]
    use super::relation::{Relation, relation_of};
    #[pymodule_export]
    use super::session::{Session, abandon_ranks, current_rank, finish_ranks, look_for_libraries, matrix_provider};
    #[pymodule_export]
    use super::tensor::{Tensor, automatic_chunks, compute_list};
}
