//! Random accumulators, with bodies that make their results independent of the order of contributions.

use tw_ir::{Accum, BinaryOp, DType, OnEmpty, ScalarCode, Slot, UnaryOp};

use super::body::{Body, Fact};
use super::data;
use super::data::DTYPES;

/// An accumulator, the bodies that feed it, and what is known about its results.
pub(super) struct Aggregate {
    pub(super) accum: Accum,
    pub(super) bodies: Vec<Slot>,
    pub(super) facts: Vec<Fact>,
}

/// What surrounds an aggregate.
pub(super) struct Setting {
    /// A number that no two points share.
    pub(super) position: Slot,
    /// How many contributions one group may get at most.
    pub(super) n_points: f64,
    /// True if a group may get none.
    pub(super) may_be_empty: bool,
    pub(super) inexact: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Sum,
    Product,
    Min,
    Max,
    Any,
    All,
    ArgMin,
    ArgMax,
    Last,
    Mean,
    Variance,
    Norm,
    BitOr,
    BitXor,
}

const KINDS: [Kind; 16] = [
    Kind::Sum,
    Kind::Sum,
    Kind::Sum,
    Kind::Product,
    Kind::Min,
    Kind::Max,
    Kind::Any,
    Kind::All,
    Kind::ArgMin,
    Kind::ArgMax,
    Kind::Last,
    Kind::Mean,
    Kind::Variance,
    Kind::Norm,
    Kind::BitOr,
    Kind::BitXor,
];

/// A random aggregate, sometimes several in one pass.
pub(super) fn aggregate(body: &mut Body<'_>, setting: &Setting, dtype: DType) -> Option<Aggregate> {
    let n_parts = if body.rng.chance(20) { body.rng.range(2, 3) } else { 1 };
    let mut parts = Vec::new();
    for _ in 0..n_parts {
        let dtype = if parts.is_empty() { dtype } else { body.rng.pick(&DTYPES) };
        let kind = body.rng.pick(&KINDS);
        parts.push(single(body, setting, kind, dtype));
    }
    let mut whole = if parts.len() == 1 {
        parts.pop()?
    } else {
        let accums: Vec<Accum> = parts.iter().map(|part| part.accum.clone()).collect();
        Aggregate {
            accum: Accum::several(&accums).ok()?,
            bodies: parts.iter().flat_map(|part| part.bodies.clone()).collect(),
            facts: parts.iter().flat_map(|part| part.facts.clone()).collect(),
        }
    };
    let must_change = whole.accum.on_empty == OnEmpty::Error && setting.may_be_empty;
    if must_change || body.rng.chance(10) {
        whole.accum.on_empty = if body.rng.chance(30) {
            OnEmpty::Identity
        } else {
            let types = whole.accum.result_types();
            OnEmpty::Value(types.into_iter().map(|dtype| data::scalar(body.rng, dtype, false)).collect())
        };
    }
    // What an empty group gives: small values, infinities, or the extreme integers.
    for (fact, dtype) in whole.facts.iter_mut().zip(whole.accum.result_types()) {
        let extreme = dtype.is_integer() && whole.accum.on_empty == OnEmpty::Identity && setting.may_be_empty;
        fact.bound = fact.bound.max(if extreme { dtype.highest().as_f64() } else { data::MAGNITUDE as f64 });
    }
    Some(whole)
}

fn single(body: &mut Body<'_>, setting: &Setting, kind: Kind, dtype: DType) -> Aggregate {
    // What halves and complex numbers cannot do, singles and doubles can.
    let dtype = match kind {
        Kind::Last => dtype,
        _ if dtype.is_half() => DType::F32,
        Kind::Min | Kind::Max | Kind::ArgMin | Kind::ArgMax if dtype.is_complex() => DType::F64,
        _ => dtype,
    };
    let float = if dtype.has_float_arithmetic() { dtype } else { DType::F64 };
    let simple = |accum: Accum, slot: Slot, fact: Fact| Aggregate { accum, bodies: vec![slot], facts: vec![fact] };
    match kind {
        Kind::Sum => {
            let (slot, fact) = summand(body, setting, dtype);
            simple(Accum::sum(dtype), slot, fact)
        }
        Kind::Product => {
            let slot = factor(body, dtype);
            let fact = body.fact(slot);
            let bound = if dtype.is_integer() { dtype.highest().as_f64() } else { 1.0 };
            simple(Accum::product(dtype), slot, Fact { exact: fact.exact && fact.integral, bound, ..fact })
        }
        Kind::Min | Kind::Max => {
            let slot = body.expression(dtype, 2);
            let accum = if kind == Kind::Min { Accum::min(dtype) } else { Accum::max(dtype) };
            simple(accum, slot, body.fact(slot))
        }
        Kind::Any | Kind::All => {
            let slot = body.expression(DType::Bool, 2);
            let accum = if kind == Kind::Any { Accum::any() } else { Accum::all() };
            simple(accum, slot, Fact::integers(1.0))
        }
        Kind::ArgMin | Kind::ArgMax => {
            let slot = exact(body, dtype);
            let accum = if kind == Kind::ArgMin { Accum::argmin(dtype) } else { Accum::argmax(dtype) };
            let fact = body.fact(setting.position);
            Aggregate { accum, bodies: vec![slot, setting.position], facts: vec![fact] }
        }
        Kind::Last => {
            let slot = body.expression(dtype, 2);
            let accum = Accum::last(dtype, data::scalar(body.rng, dtype, false));
            let fact = body.fact(slot);
            Aggregate { accum, bodies: vec![slot, setting.position], facts: vec![fact] }
        }
        Kind::Variance if setting.inexact => {
            let slot = body.expression(float, 2);
            let slot = body.tame(slot);
            let accum = Accum::variance(float, 0.0);
            simple(accum, slot, Fact { exact: false, integral: false, bound: 256.0 })
        }
        Kind::Mean | Kind::Variance => {
            let (slot, _) = summand(body, setting, float);
            let fact = body.fact(slot);
            simple(Accum::mean(float), slot, Fact { exact: fact.exact && fact.integral, integral: false, ..fact })
        }
        Kind::Norm => {
            let slot = body.expression(DType::F64, 2);
            let slot = body.tame(slot);
            let fact = body.fact(slot);
            let bound = fact.bound * setting.n_points;
            simple(norm(DType::F64), slot, Fact { exact: fact.exact && fact.integral, integral: false, bound })
        }
        Kind::BitOr | Kind::BitXor => {
            let dtype = if dtype.is_integer() { dtype } else { DType::I64 };
            let slot = body.expression(dtype, 2);
            let op = if kind == Kind::BitOr { BinaryOp::Or } else { BinaryOp::Xor };
            let accum = Accum::simple(op, dtype, dtype.zero(), OnEmpty::Identity);
            simple(accum, slot, Fact::integers(dtype.highest().as_f64()))
        }
    }
}

/// The root of the sum of squares: an accumulator that none of the constructors makes.
fn norm(dtype: DType) -> Accum {
    let mut accum = Accum::sum(dtype);
    let mut lift = ScalarCode::new(vec![dtype]);
    let x = lift.param(0);
    let square = lift.binary(BinaryOp::Mul, x, x).expect("floats are multiplied");
    lift.set_results(vec![square]);
    let mut finish = ScalarCode::new(vec![dtype]);
    let sum = finish.param(0);
    let root = finish.unary(UnaryOp::Sqrt, sum).expect("floats have roots");
    finish.set_results(vec![root]);
    (accum.lift, accum.finish) = (lift, finish);
    accum
}

/// The largest sum of integers that is exact whatever the order.
fn exact_limit(dtype: DType) -> f64 {
    if matches!(dtype, DType::F32 | DType::C64) { (1u64 << 22) as f64 } else { (1u64 << 50) as f64 }
}

/// A body whose sum does not depend on the order (unless the program is inexact), and what is known about the sum.
fn summand(body: &mut Body<'_>, setting: &Setting, dtype: DType) -> (Slot, Fact) {
    let slot = body.expression(dtype, 2);
    summable(body, setting, slot)
}

/// Changes a body so that its sum does not depend on the order.
pub(super) fn summable(body: &mut Body<'_>, setting: &Setting, slot: Slot) -> (Slot, Fact) {
    let dtype = body.dtype(slot);
    let fact = body.fact(slot);
    let fits = fact.bound * setting.n_points <= exact_limit(dtype);
    let rounds = dtype.is_float() || dtype.is_complex();
    let slot = if rounds && (!fits || (fact.exact && !fact.integral)) { body.tame(slot) } else { slot };
    let fact = body.fact(slot);
    let bound = match dtype {
        DType::Bool => 1.0,
        _ if dtype.is_integer() && dtype != DType::I64 => dtype.highest().as_f64() + 1.0,
        _ => fact.bound * setting.n_points,
    };
    (slot, Fact { exact: fact.exact && fact.integral, bound, ..fact })
}

/// A body whose product does not depend on the order: -1, 0 or 1 for floats, anything for integers.
fn factor(body: &mut Body<'_>, dtype: DType) -> Slot {
    if let Some(part) = dtype.part() {
        let real = factor(body, part);
        return body.cast(dtype, real);
    }
    let slot = body.expression(dtype, 2);
    match dtype.is_float() {
        true if body.fact(slot).exact => body.unary(UnaryOp::Sign, slot),
        true => body.clamp(slot, 1.0),
        false => slot,
    }
}

/// An exact body: what is best depends on the last bit.
fn exact(body: &mut Body<'_>, dtype: DType) -> Slot {
    let slot = body.expression(dtype, 2);
    if body.fact(slot).exact { slot } else { body.number(1, dtype) }
}
