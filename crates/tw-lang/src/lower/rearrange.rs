//! Functions that move elements, and those that choose them.

use tw_ir::{DType, Edge, Op, Scalar, TensorType, ValueId};

use super::call::{Call, Function};
use super::{Lowering, Value};
use crate::ast::{Expr, ExprKind};
use crate::diagnose::{Lowered, Place, error};
use crate::token::Range;
use tw_build as build;
use tw_build::Joined;

pub(super) const REARRANGE: &[Function] = &[
    Function { name: "transpose", required: &["x"], rest: Some("axes"), optional: &[], lower: transpose },
    Function { name: "reshape", required: &["x"], rest: Some("extents"), optional: &[], lower: reshape },
    Function { name: "ravel", required: &["x"], rest: None, optional: &[], lower: ravel },
    Function { name: "broadcast_to", required: &["x"], rest: Some("extents"), optional: &[], lower: broadcast_to },
    Function { name: "squeeze", required: &["x"], rest: None, optional: &["axis"], lower: squeeze },
    Function { name: "expand_dims", required: &["x", "axis"], rest: None, optional: &[], lower: expand_dims },
    Function { name: "flip", required: &["x"], rest: None, optional: &["axis"], lower: flip },
    Function { name: "roll", required: &["x", "shift"], rest: None, optional: &["axis"], lower: roll },
    Function { name: "repeat", required: &["x", "times"], rest: None, optional: &["axis"], lower: repeat },
    Function { name: "diagonal", required: &["x"], rest: None, optional: &["offset"], lower: diagonal },
    Function { name: "tril", required: &["x"], rest: None, optional: &["k"], lower: tril },
    Function { name: "triu", required: &["x"], rest: None, optional: &["k"], lower: triu },
    Function { name: "pad", required: &["x"], rest: Some("widths"), optional: &["edge", "value"], lower: pad },
    Function { name: "concat", required: &[], rest: Some("tensors"), optional: &["axis"], lower: concat },
    Function { name: "stack", required: &[], rest: Some("tensors"), optional: &["axis"], lower: stack },
    Function { name: "retile", required: &["x"], rest: Some("tile"), optional: &[], lower: retile },
];

pub(super) const SELECT: &[Function] = &[
    Function { name: "sort", required: &["x"], rest: None, optional: &["axis", "descending"], lower: sort },
    Function { name: "argsort", required: &["x"], rest: None, optional: &["axis", "descending"], lower: argsort },
    Function { name: "topk", required: &["x", "k"], rest: None, optional: &["axis", "largest"], lower: topk },
    Function { name: "argtopk", required: &["x", "k"], rest: None, optional: &["axis", "largest"], lower: argtopk },
    Function { name: "take", required: &["x", "index"], rest: None, optional: &["axis"], lower: take },
    Function { name: "nonzero", required: &["x"], rest: None, optional: &["axis"], lower: nonzero },
];

/// The tensor argument `x`, with its type.
fn operand<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<(ValueId, TensorType)> {
    let x = call.tensor(lowering, "x")?;
    Ok((x, lowering.ty(x).clone()))
}

fn emit<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>, op: tw_ir::Result<Op>, x: ValueId) -> Lowered<Value> {
    let op = op.at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[x], call.range)?))
}

fn transpose<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let order = call.whole_rest(lowering, "an axis")?;
    if order.is_empty() {
        return emit(lowering, call, Ok(build::transpose(&ty)), x);
    }
    let order = build::normalize_axes(&order, ty.rank()).at(call.range)?;
    emit(lowering, call, build::permute(&ty, &order), x)
}

fn reshape<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let extents = call.whole_rest(lowering, "an extent")?;
    emit(lowering, call, build::reshape(&ty, &extents), x)
}

fn ravel<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    emit(lowering, call, build::reshape(&ty, &[-1]), x)
}

fn broadcast_to<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let mut shape = Vec::new();
    for expr in call.rest_parts() {
        shape.push(lowering.extent(expr)?);
    }
    emit(lowering, call, build::broadcast_to(&ty, &shape), x)
}

fn squeeze<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let ones = || (0..ty.rank()).filter(|&axis| ty.shape[axis].known() == Some(1)).collect();
    let axes = call.axes(lowering, ty.rank())?.unwrap_or_else(ones);
    emit(lowering, call, build::squeeze(&ty, &axes), x)
}

fn expand_dims<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let axis = call.axis(lowering, ty.rank() + 1, None)?;
    emit(lowering, call, build::expand_dims(&ty, axis), x)
}

fn flip<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let axes = call.axes(lowering, ty.rank())?.unwrap_or_else(|| (0..ty.rank()).collect());
    emit(lowering, call, build::flip(&ty, &axes), x)
}

fn roll<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let shift = call.whole(lowering, "shift", 0)?;
    let axis = call.axis(lowering, ty.rank(), None)?;
    emit(lowering, call, build::roll(&ty, shift, axis), x)
}

fn repeat<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let times = call.whole(lowering, "times", 0)?;
    let axis = call.axis(lowering, ty.rank(), None)?;
    let times = u64::try_from(times).map_err(|_| error(call.range, format!("an element repeated {times} times")))?;
    emit(lowering, call, build::repeat(&ty, times, axis), x)
}

fn diagonal<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let offset = call.whole(lowering, "offset", 0)?;
    emit(lowering, call, build::diagonal(&ty, offset, (0, 1)), x)
}

fn tril<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let k = call.whole(lowering, "k", 0)?;
    emit(lowering, call, build::tril(&ty, k), x)
}

fn triu<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let k = call.whole(lowering, "k", 0)?;
    emit(lowering, call, build::triu(&ty, k), x)
}

/// `pad(x, 1, (0, 2), edge=clamp)`: one width or one pair of widths per axis.
fn pad<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let mut widths = Vec::with_capacity(call.rest.len());
    for expr in &call.rest {
        widths.push(match &expr.kind {
            ExprKind::Tuple(parts) => match parts.as_slice() {
                [before, after] => (width(lowering, before)?, width(lowering, after)?),
                _ => return Err(error(expr.range, "the widths of an axis are a pair: (before, after)").into()),
            },
            _ => {
                let both = width(lowering, expr)?;
                (both, both)
            }
        });
    }
    let edge = match call.get("edge") {
        None => Edge::Fill,
        Some(Expr { kind: ExprKind::Name("fill"), .. }) => Edge::Fill,
        Some(Expr { kind: ExprKind::Name("clamp"), .. }) => Edge::Clamp,
        Some(Expr { kind: ExprKind::Name("wrap"), .. }) => Edge::Wrap,
        Some(expr) => return Err(error(expr.range, "edge rules are fill, clamp and wrap").into()),
    };
    let value = match call.get("value") {
        None => Scalar::I64(0),
        Some(expr) => lowering.scalar_argument(expr, "the value of a border")?,
    };
    emit(lowering, call, build::pad(&ty, &widths, edge, value), x)
}

fn width<'a>(lowering: &mut Lowering<'a, '_>, expr: &Expr<'a>) -> Lowered<u64> {
    let n = lowering.whole(expr, "a width")?;
    u64::try_from(n).map_err(|_| error(expr.range, format!("a width of {n}")).into())
}

fn join<'a>(
    lowering: &mut Lowering<'a, '_>,
    call: &Call<'_, 'a>,
    extra_axes: usize,
    build: fn(&[&TensorType], usize) -> tw_ir::Result<Joined>,
) -> Lowered<Value> {
    let mut operands = Vec::new();
    for expr in call.rest_parts() {
        operands.push(lowering.tensor_of(expr)?);
    }
    let Some(&first) = operands.first() else {
        return Err(error(call.range, format!("`{}` of nothing", call.function.name)).into());
    };
    let rank = lowering.ty(first).rank() + extra_axes;
    let axis = call.axis(lowering, rank, Some(0))?;
    let types: Vec<&TensorType> = operands.iter().map(|&value| lowering.ty(value)).collect();
    let joined = build(&types, axis).at(call.range)?;
    Ok(Value::Tensor(lowering.joined(joined, operands, call.range)?))
}

fn concat<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    join(lowering, call, 0, build::concat)
}

fn stack<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    join(lowering, call, 1, build::stack)
}

fn retile<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let [Expr { kind: ExprKind::Tile(tile), .. }] = call.rest.as_slice() else {
        return Err(error(call.range, "`retile` takes a tensor and a tiling: `retile(x, tile(500, 500))`").into());
    };
    let tiling = lowering.tiling(tile, &ty)?;
    emit(lowering, call, Ok(Op::Retile { tiling }), x)
}

/// Both results of a sort: values and positions.
fn sorted<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Vec<ValueId>> {
    let (x, ty) = operand(lowering, call)?;
    let axis = call.axis(lowering, ty.rank(), Some(-1))?;
    let descending = call.flag(lowering, "descending", false)?;
    let sorted = build::sort(&ty, axis, descending).at(call.range)?;
    emit_sorted(lowering, call, sorted, x)
}

/// A sort with what surrounds it.
fn emit_sorted<'a>(
    lowering: &mut Lowering<'a, '_>,
    call: &Call<'_, 'a>,
    sorted: build::Sorted,
    mut x: ValueId,
) -> Lowered<Vec<ValueId>> {
    if let Some(prepare) = sorted.prepare {
        x = lowering.push1(prepare, &[x], call.range)?;
    }
    let mut results = lowering.emitter.push(sorted.sort, &[x], &call.range.span())?;
    if let Some(restore) = sorted.restore {
        results[0] = lowering.push1(restore, &[results[0]], call.range)?;
    }
    Ok(results)
}

fn sort<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    Ok(Value::Tensor(sorted(lowering, call)?[0]))
}

fn argsort<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    Ok(Value::Tensor(sorted(lowering, call)?[1]))
}

/// Both results of a selection: values and positions.
fn selected<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Vec<ValueId>> {
    let (x, ty) = operand(lowering, call)?;
    let n = width(lowering, call.require("k")?)?;
    let axis = call.axis(lowering, ty.rank(), Some(-1))?;
    let largest = call.flag(lowering, "largest", true)?;
    let sorted = build::topk(&ty, n, axis, largest).at(call.range)?;
    emit_sorted(lowering, call, sorted, x)
}

fn topk<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    Ok(Value::Tensor(selected(lowering, call)?[0]))
}

fn argtopk<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    Ok(Value::Tensor(selected(lowering, call)?[1]))
}

fn take<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let index = call.tensor(lowering, "index")?;
    let axis = call.axis(lowering, ty.rank(), Some(0))?;
    let joined = build::take(&ty, lowering.ty(index), axis).at(call.range)?;
    Ok(Value::Tensor(lowering.joined(joined, vec![x, index], call.range)?))
}

/// Coordinates along one axis of the elements that are not zero.
fn nonzero<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (x, ty) = operand(lowering, call)?;
    let axis = call.axis(lowering, ty.rank(), None)?;
    let mask = lowering.converted(x, &TensorType::scalar(DType::Bool), call.range)?;
    Ok(Value::Tensor(lowering.coordinates(mask, &[axis], call.range)?[0]))
}

impl Lowering<'_, '_> {
    /// Operands through their own nodes, then together through one.
    pub(crate) fn joined(&mut self, joined: Joined, mut operands: Vec<ValueId>, range: Range) -> Lowered<ValueId> {
        for (operand, prepare) in operands.iter_mut().zip(joined.prepare) {
            if let Some(op) = prepare {
                *operand = self.push1(op, &[*operand], range)?;
            }
        }
        self.push1(joined.join, &operands, range)
    }
}
