//! The extension module `tilewright._core`: tensors, sessions and operations as the Python package in `python/tilewright` needs them.
//!
//! Values cross the border here and nothing else happens: meaning, shapes and types are decided by the crates below, manners (signatures,
//! defaults, protocols) by the Python files above.
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
mod function;
mod interrupt;
mod line;
mod ops;
mod program;
mod relation;
mod session;
mod tensor;

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
    use super::convert::{from_numpy, open_npy, to_numpy};
    #[pymodule_export]
    use super::explanation::{Difference, Explanation, Profile};
    #[pymodule_export]
    use super::function::{block_function, settle};
    #[pymodule_export]
    use super::ops::{
        binary, broadcast_shapes, broadcast_to, cast, compact, concat, coordinate, coordinate_of, diagonal, einsum,
        einsum_path, expand, expand_dims, eye, flip, full, gather, gather_known, linspace, logical, logical_not,
        matmul, overlap, permute, positions, progression, random, rechunk, reduce, repeat, replace, reshape,
        result_type, roll, scan, scatter, seen_as, slice, sort, squeeze, stack, tensordot, tril, triu, unary, where_,
    };
    #[pymodule_export]
    use super::program::program;
    #[pymodule_export]
    use super::relation::{Relation, relation_of};
    #[pymodule_export]
    use super::session::{Session, look_for_libraries, matrix_provider};
    #[pymodule_export]
    use super::tensor::{Tensor, automatic_chunks, compute_list};
}
