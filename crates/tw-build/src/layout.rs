//! Operations that move elements: permutations, shifts, borders and bands.

use tw_ir::program::Output;
use tw_ir::{BinaryOp, Edge, Error, Extent, Idx, Op, Result, Scalar, TensorType, Var, shape};

use super::axes::{check_axes, display_shape, normalize_axis};
use super::slice::{SliceItem, slice};
use super::statement::{StatementBuilder, moved};

/// Axes in reverse order.
pub fn transpose(x: &TensorType) -> Op {
    let rank = x.rank() as u32;
    let shape: Vec<Extent> = x.shape.iter().rev().copied().collect();
    moved(x, (0..rank).map(|axis| Idx::var(Var(rank - 1 - axis))).collect(), Edge::Error, &shape)
}

/// Axis k of the result is axis `order[k]` of the operand.
pub fn permute(x: &TensorType, order: &[usize]) -> Result<Op> {
    check_axes(order, x.rank())?;
    if order.len() != x.rank() {
        return Err(Error::source(format!("an order of {} axes for a tensor of rank {}", order.len(), x.rank())));
    }
    let mut idx = vec![Idx::constant(0); x.rank()];
    for (to, &from) in order.iter().enumerate() {
        idx[from] = Idx::var(Var(to as u32));
    }
    let shape: Vec<Extent> = order.iter().map(|&axis| x.shape[axis]).collect();
    Ok(moved(x, idx, Edge::Error, &shape))
}

/// A new axis of extent 1 before the given position (the rank for one at the end).
pub fn expand_dims(x: &TensorType, position: usize) -> Result<Op> {
    if position > x.rank() {
        return Err(Error::source(format!("a new axis at {position} of a tensor of rank {}", x.rank())));
    }
    let mut items = vec![SliceItem::FULL; x.rank()];
    items.insert(position, SliceItem::NewAxis);
    slice(x, &items)
}

/// Drops axes of extent 1.
pub fn squeeze(x: &TensorType, axes: &[usize]) -> Result<Op> {
    check_axes(axes, x.rank())?;
    for &axis in axes {
        shape::require_equal(&[x.shape[axis]], &[Extent::Known(1)], || {
            Error::source(format!("axis {axis} of shape {} is not of extent 1", display_shape(&x.shape)))
        })?;
    }
    let items: Vec<SliceItem> =
        (0..x.rank()).map(|axis| if axes.contains(&axis) { SliceItem::Index(0) } else { SliceItem::FULL }).collect();
    slice(x, &items)
}

/// Reverses the order along the given axes.
pub fn flip(x: &TensorType, axes: &[usize]) -> Result<Op> {
    check_axes(axes, x.rank())?;
    let reversed = SliceItem::Slice { start: None, stop: None, step: -1 };
    let items: Vec<SliceItem> =
        (0..x.rank()).map(|axis| if axes.contains(&axis) { reversed } else { SliceItem::FULL }).collect();
    slice(x, &items)
}

/// Moves elements by `shift` towards the end of an axis; what leaves there enters at the start.
pub fn roll(x: &TensorType, shift: i64, axis: usize) -> Result<Op> {
    check_axes(&[axis], x.rank())?;
    let shift = match x.shape[axis] {
        Extent::Known(n) if n > 0 => shift.rem_euclid(n as i64),
        Extent::Known(_) => 0,
        Extent::Deferred(_) => shift,
    };
    let idx = (0..x.rank()).map(|k| {
        let var = Idx::var(Var(k as u32));
        if k == axis { var.plus_constant(shift.saturating_neg()) } else { var }
    });
    Ok(moved(x, idx.collect(), Edge::Wrap, &x.shape))
}

/// Every element `times` times along an axis, next to each other.
pub fn repeat(x: &TensorType, times: u64, axis: usize) -> Result<Op> {
    check_axes(&[axis], x.rank())?;
    let n = x.shape[axis].require(|| Error::plan("repeats along an axis whose length depends on data"))?;
    let mut shape = x.shape.clone();
    let too_many = || Error::source(format!("{n} elements repeated {times} times"));
    let divisor = i64::try_from(times.max(1)).map_err(|_| too_many())?;
    shape[axis] = Extent::Known(n.checked_mul(times).ok_or_else(too_many)?);
    let idx = (0..x.rank()).map(|k| {
        let var = Idx::var(Var(k as u32));
        if k == axis { var.div(divisor) } else { var }
    });
    Ok(moved(x, idx.collect(), Edge::Error, &shape))
}

/// The diagonal `offset` above the main one of two axes, as a new last axis.
pub fn diagonal(x: &TensorType, offset: i64, axes: (i64, i64)) -> Result<Op> {
    let (a, b) = (normalize_axis(axes.0, x.rank())?, normalize_axis(axes.1, x.rank())?);
    if a == b {
        return Err(Error::source("a diagonal needs two different axes"));
    }
    let lacking = || Error::plan("the diagonal of axes whose extents depend on data");
    let extents = shape::require_all(&[x.shape[a], x.shape[b]], lacking)?;
    let (n, m) = (extents[0], extents[1]);
    let (down, right) = (offset.saturating_neg().max(0), offset.max(0));
    let length = n.saturating_sub(down as u64).min(m.saturating_sub(right as u64));
    let others = (0..x.rank()).filter(|&axis| axis != a && axis != b);
    let along = Idx::var(Var(x.rank() as u32 - 2));
    let mut idx = vec![Idx::constant(0); x.rank()];
    let mut shape = Vec::new();
    for axis in others {
        idx[axis] = Idx::var(Var(shape.len() as u32));
        shape.push(x.shape[axis]);
    }
    if length > 0 {
        idx[a] = along.plus_constant(down);
        idx[b] = along.plus_constant(right);
    }
    shape.push(Extent::Known(length));
    Ok(moved(x, idx, Edge::Error, &shape))
}

/// Borders of the given widths before and after each axis. With [`Edge::Fill`] they hold `value`, otherwise the edge rule says what.
pub fn pad(x: &TensorType, widths: &[(u64, u64)], edge: Edge, value: Scalar) -> Result<Op> {
    if widths.len() != x.rank() {
        return Err(Error::source(format!("{} pairs of widths for a tensor of rank {}", widths.len(), x.rank())));
    }
    let mut shape = Vec::new();
    for (&extent, &(before, after)) in x.shape.iter().zip(widths) {
        shape.push(match extent {
            _ if before == 0 && after == 0 => extent,
            Extent::Known(0) if matches!(edge, Edge::Clamp | Edge::Wrap) => {
                return Err(Error::source(format!("an empty axis has no elements to {} to", edge.name())));
            }
            extent => {
                let n = extent.require(|| Error::plan("a border around an axis whose extent depends on data"))?;
                let padded = n.checked_add(before).and_then(|n| n.checked_add(after));
                let padded = padded.filter(|&n| n <= i64::MAX as u64);
                Extent::Known(padded.ok_or_else(|| Error::source("a padded axis is longer than can be counted"))?)
            }
        });
    }
    let moved_by = |sign: i64| {
        let shifted = |(k, (before, _)): (usize, &(u64, u64))| {
            Idx::var(Var(k as u32)).plus_constant(sign.saturating_mul(*before as i64))
        };
        widths.iter().enumerate().map(shifted).collect::<Vec<Idx>>()
    };
    match edge {
        Edge::Error => Err(Error::source("a border needs a rule: fill, clamp or wrap")),
        Edge::Clamp | Edge::Wrap => Ok(moved(x, moved_by(-1), edge, &shape)),
        // Writing the inside and leaving the rest to the fill value reads no element twice and touches no border block.
        Edge::Fill => {
            let mut statement = StatementBuilder::of(x);
            let body = statement.read(0);
            statement.code.set_results(vec![body]);
            let out = Output { idx: moved_by(1), edge: Edge::Error, shape, fill: vec![value.cast(x.dtype)] };
            Ok(statement.finish(None, out))
        }
    }
}

/// Elements on and below the k-th diagonal of the last two axes; zeros above.
pub fn tril(x: &TensorType, k: i64) -> Result<Op> {
    band(x, BinaryOp::Le, k)
}

/// Elements on and above the k-th diagonal of the last two axes; zeros below.
pub fn triu(x: &TensorType, k: i64) -> Result<Op> {
    band(x, BinaryOp::Ge, k)
}

fn band(x: &TensorType, keeps: BinaryOp, k: i64) -> Result<Op> {
    let rank = x.rank();
    if rank < 2 {
        return Err(Error::source(format!("the triangle of a tensor of rank {rank}; it needs at least 2 axes")));
    }
    let mut statement = StatementBuilder::of(x);
    let (row, column, value) = (statement.var(rank - 2), statement.var(rank - 1), statement.read(0));
    let code = &mut statement.code;
    let distance = code.binary(BinaryOp::Sub, column, row)?;
    let k = code.constant(Scalar::I64(k));
    let keep = code.binary(keeps, distance, k)?;
    let zero = code.constant(x.dtype.zero());
    let body = code.select(keep, value, zero)?;
    Ok(statement.elementwise(body))
}
