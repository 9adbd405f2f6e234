//! Functions that make tensors from nothing.

use tw_ir::{DType, Extent, Scalar};

use super::call::{Call, Function};
use super::{Lowering, Value};
use crate::ast::ExprKind;
use crate::diagnose::{Lowered, Place, error};
use tw_build as build;

pub(super) const CREATE: &[Function] = &[
    Function { name: "zeros", required: &[], rest: Some("extents"), optional: &["dtype"], lower: zeros },
    Function { name: "ones", required: &[], rest: Some("extents"), optional: &["dtype"], lower: ones },
    Function { name: "full", required: &[], rest: Some("extents"), optional: &["value", "dtype"], lower: full },
    Function { name: "zeros_like", required: &["x"], rest: None, optional: &["dtype"], lower: zeros_like },
    Function { name: "ones_like", required: &["x"], rest: None, optional: &["dtype"], lower: ones_like },
    Function { name: "arange", required: &[], rest: Some("bounds"), optional: &["dtype"], lower: arange },
    Function {
        name: "linspace",
        required: &["start", "stop", "n"],
        rest: None,
        optional: &["endpoint", "dtype"],
        lower: linspace,
    },
    Function { name: "eye", required: &["n"], rest: None, optional: &["m", "k", "dtype"], lower: eye },
    Function {
        name: "random.uniform",
        required: &[],
        rest: Some("extents"),
        optional: &["seed", "low", "high"],
        lower: random_uniform,
    },
    Function {
        name: "random.normal",
        required: &[],
        rest: Some("extents"),
        optional: &["seed", "mean", "std"],
        lower: random_normal,
    },
    Function {
        name: "random.integers",
        required: &["low", "high"],
        rest: Some("extents"),
        optional: &["seed"],
        lower: random_integers,
    },
];

fn extents<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Vec<Extent>> {
    if let [_, .., last] = call.rest.as_slice()
        && let Some(tuple) = call.rest.iter().find(|expr| matches!(expr.kind, ExprKind::Tuple(_)))
    {
        let wrong = error(tuple.range.to(last.range), format!("`{}` takes one shape", call.function.name));
        return Err(wrong.help("choose blocks afterwards: `retile(x, tile(64, 64))`").into());
    }
    call.rest_parts().into_iter().map(|expr| lowering.extent(expr)).collect()
}

fn known_extents<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Vec<u64>> {
    let extents = extents(lowering, call)?;
    extents.into_iter().map(Extent::known).collect::<Option<_>>().ok_or_else(|| {
        error(call.range, format!("`{}` with an extent that depends on data", call.function.name)).into()
    })
}

fn filled<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>, value: Scalar) -> Lowered<Value> {
    let extents = extents(lowering, call)?;
    let value = value.cast(call.dtype()?.unwrap_or(value.dtype()));
    Ok(Value::Tensor(lowering.push1(build::full(&extents, value), &[], call.range)?))
}

fn zeros<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    filled(lowering, call, Scalar::F64(0.0))
}

fn ones<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    filled(lowering, call, Scalar::F64(1.0))
}

fn full<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let value = lowering.scalar_argument(call.require("value")?, "the value of `full`")?;
    filled(lowering, call, value)
}

fn like<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>, value: i64) -> Lowered<Value> {
    let x = call.tensor(lowering, "x")?;
    let ty = lowering.ty(x).clone();
    let value = Scalar::from_i64(value, call.dtype()?.unwrap_or(ty.dtype));
    Ok(Value::Tensor(lowering.push1(build::full(&ty.shape, value), &[], call.range)?))
}

fn zeros_like<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    like(lowering, call, 0)
}

fn ones_like<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    like(lowering, call, 1)
}

/// `arange(stop)`, `arange(start, stop)` or `arange(start, stop, step)`.
fn arange<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let mut bounds = Vec::with_capacity(3);
    for expr in &call.rest {
        bounds.push(lowering.scalar_argument(expr, "a bound of `arange`")?);
    }
    let (start, stop, step) = match *bounds.as_slice() {
        [stop] => (Scalar::I64(0), stop, Scalar::I64(1)),
        [start, stop] => (start, stop, Scalar::I64(1)),
        [start, stop, step] => (start, stop, step),
        _ => {
            return Err(
                error(call.range, "`arange` takes a stop, a start and a stop, or a start, a stop and a step").into()
            );
        }
    };
    let default = build::common([start.dtype(), stop.dtype(), step.dtype(), DType::I64]).at(call.range)?;
    let op = build::arange(start, stop, step, call.dtype()?.unwrap_or(default)).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[], call.range)?))
}

fn count<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>, name: &str, default: Option<u64>) -> Lowered<u64> {
    let Some(expr) = call.get(name) else {
        return default.ok_or_else(|| tw_ir::Error::internal("a required argument is missing").into());
    };
    let n = lowering.whole(expr, &format!("`{name}`"))?;
    u64::try_from(n).map_err(|_| error(expr.range, format!("`{name}` is {n}; it must not be negative")).into())
}

fn linspace<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (start, stop) = (call.number(lowering, "start", 0.0)?, call.number(lowering, "stop", 0.0)?);
    let n = count(lowering, call, "n", None)?;
    let endpoint = call.flag(lowering, "endpoint", true)?;
    let op = build::linspace(start, stop, n, endpoint, call.dtype()?.unwrap_or(DType::F64)).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[], call.range)?))
}

fn eye<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let n = count(lowering, call, "n", None)?;
    let m = count(lowering, call, "m", Some(n))?;
    let k = call.whole(lowering, "k", 0)?;
    let op = build::eye(n, m, k, call.dtype()?.unwrap_or(DType::F64)).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[], call.range)?))
}

/// The seed that is given, or the number of this call in the text.
fn seed<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<u64> {
    lowering.n_random += 1;
    let default = lowering.n_random as i64;
    Ok(call.whole(lowering, "seed", default)? as u64)
}

fn random_uniform<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let extents = known_extents(lowering, call)?;
    let (low, high) = (call.number(lowering, "low", 0.0)?, call.number(lowering, "high", 1.0)?);
    let seed = seed(lowering, call)?;
    let op = build::random_uniform(&extents, seed, low, high).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[], call.range)?))
}

fn random_normal<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let extents = known_extents(lowering, call)?;
    let (mean, deviation) = (call.number(lowering, "mean", 0.0)?, call.number(lowering, "std", 1.0)?);
    let seed = seed(lowering, call)?;
    let op = build::random_normal(&extents, seed, mean, deviation).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[], call.range)?))
}

fn random_integers<'a>(lowering: &mut Lowering<'a, '_>, call: &Call<'_, 'a>) -> Lowered<Value> {
    let (low, high) = (call.whole(lowering, "low", 0)?, call.whole(lowering, "high", 0)?);
    let extents = known_extents(lowering, call)?;
    let seed = seed(lowering, call)?;
    let op = build::random_integers(&extents, seed, low, high).at(call.range)?;
    Ok(Value::Tensor(lowering.push1(op, &[], call.range)?))
}
