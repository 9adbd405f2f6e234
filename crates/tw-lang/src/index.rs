//! Index notation: `C[i,j] = sum[k](A[i,k] * B[k,j])`.
//!
//! A statement goes through three steps, led by [`target`]. First every name, access and reduction is resolved ([`resolve`], [`access`]) into
//! bodies ([`body`]), which collects bounds of each index. Then the extents are solved ([`extents`]). Last, each reduction
//! becomes one index statement of the program, innermost first ([`emit`]), and the outermost writes what stands on the left ([`update`],
//! [`accumulate`], [`scatter`]).

use super::ast::{Assign, AssignOp, Binder, Expr, Item, Name};
use super::diagnose::Lowered;
use super::lower::Lowering;
use super::token::Range;
use tw_ir::ValueId;

mod access;
mod accumulate;
mod affine;
mod body;
mod context;
mod emit;
mod extents;
mod resolve;
mod scatter;
mod target;
mod update;

#[cfg(test)]
pub(super) use context::MAX_INDICES;

/// An assignment in index notation, or a reduction inside an expression on whole tensors.
pub(super) struct IndexStatement<'s, 'a> {
    /// The assigned tensor; none for a reduction inside an expression.
    target: Option<Name<'a>>,
    indices: &'s [Item<'a>],
    op: AssignOp,
    value: &'s Expr<'a>,
    guard: Option<&'s Expr<'a>>,
    ranges: &'s [Binder<'a>],
    range: Range,
}

impl<'s, 'a> IndexStatement<'s, 'a> {
    /// An assignment.
    pub(super) fn of(assign: &'s Assign<'a>, range: Range) -> IndexStatement<'s, 'a> {
        IndexStatement {
            target: Some(assign.target),
            indices: assign.indices.as_deref().unwrap_or(&[]),
            op: assign.op,
            value: &assign.value,
            guard: assign.guard.as_ref(),
            ranges: &assign.ranges,
            range,
        }
    }

    /// A reduction to a scalar.
    pub(super) fn of_reduction(expr: &'s Expr<'a>) -> IndexStatement<'s, 'a> {
        let range = expr.range;
        IndexStatement { target: None, indices: &[], op: AssignOp::Set, value: expr, guard: None, ranges: &[], range }
    }
}

/// Appends the nodes of a statement and returns what its target stands for afterwards.
pub(super) fn lower<'a>(lowering: &mut Lowering<'a, '_>, statement: IndexStatement<'_, 'a>) -> Lowered<ValueId> {
    target::lower(lowering, &statement)
}
