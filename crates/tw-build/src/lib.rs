//! Array operations as nodes of a program.
//!
//! Pure functions from operand types to an [`Op`](tw_ir::Op). The language and the lazy tensors of Rust and Python all use them. The arguments of the node are the tensor
//! operands in the given order; literals are folded into the scalar code. An operation that needs several nodes returns a [`Joined`].
//!
//! Semantics follow NumPy 2: broadcasting, promotion, weak literals, dtypes of reductions. Data-dependent extents pass through unless the result needs their value.

#![forbid(unsafe_code)]

mod accums;
pub mod algorithms;
mod axes;
mod complex;
mod contract;
pub mod contraction_order;
mod create;
mod einsum;
mod elementwise;
mod half;
mod layout;
mod movement;
mod overlap;
mod power;
mod promote;
mod reduce;
mod replace;
mod slice;
mod statement;
mod time;

pub use axes::{broadcast_shapes, display_shape, normalize_axes, normalize_axis};
pub use contract::{matmul, tensordot};
pub use create::{
    arange, coordinate, eye, full, linspace, progression, random_integers, random_normal, random_uniform,
};
pub use einsum::{einsum, einsum_path, is_subscript};
pub use elementwise::{TypedOperand, binary, broadcast_to, cast, logical, logical_not, select, unary};
pub use layout::{diagonal, expand_dims, flip, pad, permute, repeat, roll, squeeze, transpose, tril, triu};
pub use movement::{
    Joined, ScanKind, Sorted, concat, gather, reshape, scan, scatter, scatter_last, sort, stack, take, topk,
};
pub use overlap::{Overlap, overlap};
pub use promote::{
    CodeSink, ElementType, Literal, Typed, common, emit_binary, emit_cast, emit_logical, emit_logical_not, emit_select,
    emit_unary, meet,
};
pub use reduce::{Reduction, reduce};
pub use replace::replace;
pub use replace::{PlacedAxis, placed};
pub use slice::{SliceItem, slice};

#[cfg(test)]
mod tests;
