//! The functions on whole tensors.

use tw_ir::Scalar;

use super::call::{Call, Function};
use super::create::CREATE;
use super::linalg::LINALG;
use super::rearrange::{REARRANGE, SELECT};
use super::{Lowering, Value};
use crate::ast::ExprKind;
use crate::diagnose::{Lowered, Place, error};
use tw_build as build;
use tw_build::{Reduction, ScanKind};

/// Every function that is not elementwise, by group.
pub(super) const FUNCTIONS: [&[Function]; 5] = [CREATE, REDUCE, REARRANGE, SELECT, LINALG];

const fn reduction(name: &'static str) -> Function {
    Function { name, required: &["x"], rest: None, optional: &["axis", "keepdims"], lower: reduce }
}

const fn spread(name: &'static str) -> Function {
    Function { name, required: &["x"], rest: None, optional: &["axis", "keepdims", "ddof"], lower: reduce }
}

const fn running(name: &'static str) -> Function {
    Function { name, required: &["x"], rest: None, optional: &["axis"], lower: scan }
}

const REDUCE: &[Function] = &[
    reduction("sum"),
    reduction("prod"),
    reduction("min"),
    reduction("max"),
    reduction("any"),
    reduction("all"),
    reduction("mean"),
    spread("var"),
    spread("std"),
    reduction("argmin"),
    reduction("argmax"),
    reduction("count"),
    running("cumsum"),
    running("cumprod"),
    running("cummin"),
    running("cummax"),
    Function { name: "einsum", required: &["subscripts"], rest: Some("operands"), optional: &[], lower: einsum },
    Function { name: "len", required: &["x"], rest: None, optional: &[], lower: length },
    Function { name: "size", required: &["x"], rest: None, optional: &[], lower: size },
];

fn reduce<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let x = call.tensor(lowering, "x")?;
    let ty = lowering.ty(x).clone();
    let axes = call.axes(lowering, ty.rank())?;
    let keepdims = call.flag(lowering, "keepdims", false)?;
    let ddof = call.number(lowering, "ddof", 0.0)?;
    let kind = match Reduction::named(call.function.name) {
        Some(Reduction::Var { .. }) => Reduction::Var { ddof },
        Some(Reduction::Std { .. }) => Reduction::Std { ddof },
        Some(kind) => kind,
        None => return Err(tw_ir::Error::internal("a reduction without a meaning").into()),
    };
    let op = build::reduce(&ty, kind, axes.as_deref(), keepdims).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[x], call.range)?))
}

fn scan<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let x = call.tensor(lowering, "x")?;
    let ty = lowering.ty(x).clone();
    let axis = call.axis(lowering, ty.rank(), None)?;
    let kind = match call.function.name {
        "cumsum" => ScanKind::Sum,
        "cumprod" => ScanKind::Prod,
        "cummin" => ScanKind::Min,
        _ => ScanKind::Max,
    };
    let op = build::scan(&ty, kind, axis).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[x], call.range)?))
}

fn einsum<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let subscripts = call.require("subscripts")?;
    let ExprKind::Text(text) = subscripts.kind else {
        return Err(error(subscripts.range, "the subscripts of einsum are text, for example \"ij,jk->ik\"").into());
    };
    let mut operands = Vec::with_capacity(call.rest.len());
    for expr in &call.rest {
        operands.push(lowering.tensor_of(expr)?);
    }
    let types: Vec<_> = operands.iter().map(|&value| lowering.ty(value)).collect();
    let op = build::einsum(text, &types).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &operands, call.range)?))
}

fn length<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let x = call.tensor(lowering, "x")?;
    match lowering.ty(x).shape.first() {
        Some(&extent) => Ok(lowering.extent_value(extent)),
        None => Err(error(call.range, "a scalar has no length").into()),
    }
}

fn size<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let x = call.tensor(lowering, "x")?;
    let ty = lowering.ty(x);
    match (ty.known_shape(), ty.shape.as_slice()) {
        (Some(shape), _) => Ok(Value::Literal(Scalar::I64(tw_ir::shape::n_elements(&shape).at(call.range)? as i64))),
        (None, &[extent]) => Ok(lowering.extent_value(extent)),
        (None, _) => Err(error(call.range, "the size of a tensor with an extent that depends on data").into()),
    }
}
