//! What is known of operations: annihilators and neutral values, and the expressions that become simpler when an operand is absent.
//!
//! An operand that is absent has the fill value. Where the fill is an annihilator, the result does not depend on the other operands: **an
//! absent 0 times infinity or NaN is 0**, as in every sparse library; a *stored* 0 times NaN is NaN.

use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{BinaryOp, Scalar};

use crate::expr::{Combiner, IndexExpr, Monoid, SparseFunction};

/// Equal as numbers, or both NaN: values that a fill need not tell apart.
pub fn same_value(a: Scalar, b: Scalar) -> bool {
    a.dtype() == b.dtype() && (a == b || same_number(a, b))
}

fn same_number(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::F32(x), Scalar::F32(y)) => x == y || x.is_nan() && y.is_nan(),
        (Scalar::F64(x), Scalar::F64(y)) => x == y || x.is_nan() && y.is_nan(),
        (Scalar::C64(x), Scalar::C64(y)) => x == y,
        (Scalar::C128(x), Scalar::C128(y)) => x == y,
        _ => false,
    }
}

/// The value that an operation has if its first (or second) operand is this constant, whatever the other is; `other` is the other's value
/// where that is known.
pub fn annihilated(op: BinaryOp, value: Scalar, first: bool, other: Option<Scalar>) -> Option<Scalar> {
    let dtype = value.dtype();
    let zero = same_value(value, dtype.zero());
    let holds = match op {
        BinaryOp::Mul | BinaryOp::And => zero,
        // 0 / x is 0 but for x = 0, which is told apart only where x is absent as well.
        BinaryOp::Div => zero && first && other.is_none(),
        BinaryOp::FloorDiv | BinaryOp::Mod => zero && first && dtype.is_integer(),
        BinaryOp::Or => same_value(value, Scalar::Bool(true)),
        BinaryOp::Min => same_value(value, dtype.lowest()),
        BinaryOp::Max => same_value(value, dtype.highest()),
        _ => false,
    };
    holds.then_some(value)
}

/// True if the value is neutral as the first (or second) operand.
fn is_neutral(op: BinaryOp, value: Scalar, first: bool) -> bool {
    let dtype = value.dtype();
    match op {
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => same_value(value, dtype.zero()),
        BinaryOp::Sub => !first && same_value(value, dtype.zero()),
        BinaryOp::Mul => same_value(value, dtype.one()),
        BinaryOp::Div => !first && same_value(value, dtype.one()),
        BinaryOp::Min => same_value(value, dtype.highest()),
        BinaryOp::Max => same_value(value, dtype.lowest()),
        _ => false,
    }
}

/// The result of a function with some arguments known: all of them, or one that annihilates.
pub fn known_call(function: &SparseFunction, args: &[Option<Scalar>]) -> Option<Scalar> {
    if let Some(all) = args.iter().copied().collect::<Option<Vec<Scalar>>>() {
        return function.code.eval(&all).first().copied();
    }
    args.iter().zip(&function.annihilators).find_map(|(arg, annihilator)| match (arg, annihilator) {
        (Some(arg), Some((value, result))) if same_value(*arg, *value) => Some(*result),
        _ => None,
    })
}

/// The result of a reduction over values that are all the same constant, where it does not depend on how many there are.
pub fn known_reduction(how: &Monoid, body: Scalar) -> Option<Scalar> {
    same_value(how.identity, body).then_some(how.identity)
}

/// Combines two values.
pub fn combine(how: &Monoid, a: IndexExpr, b: IndexExpr) -> IndexExpr {
    match &how.combine {
        Combiner::Op(op) => IndexExpr::binary(*op, a, b),
        Combiner::Function(function) => IndexExpr::Call(function.clone(), vec![a, b]),
    }
}

/// The constant that an expression is.
pub fn as_constant(expr: &IndexExpr) -> Option<Scalar> {
    match expr {
        IndexExpr::Constant(value) => Some(*value),
        _ => None,
    }
}

/// Folds constants, annihilators and neutral values.
pub fn simplify(expr: IndexExpr) -> IndexExpr {
    let expr = expr.map_parts(&mut simplify);
    let constant = match &expr {
        IndexExpr::Unary(op, a) => as_constant(a).map(|a| eval_unary(*op, a)),
        IndexExpr::Cast(dtype, a) => as_constant(a).map(|a| a.cast(*dtype)),
        IndexExpr::Binary(op, a, b) => match (as_constant(a), as_constant(b)) {
            (Some(a), Some(b)) => Some(eval_binary(*op, a, b)),
            (Some(a), None) => annihilated(*op, a, true, None).filter(|_| !op.is_comparison()),
            (None, Some(b)) => annihilated(*op, b, false, None).filter(|_| !op.is_comparison()),
            _ => None,
        },
        IndexExpr::Call(function, args) => {
            let args: Vec<Option<Scalar>> = args.iter().map(as_constant).collect();
            known_call(function, &args)
        }
        IndexExpr::Reduce(how, _, body) => as_constant(body).and_then(|body| known_reduction(how, body)),
        _ => None,
    };
    if let Some(value) = constant {
        return IndexExpr::Constant(value);
    }
    match expr {
        IndexExpr::Binary(op, a, b) if as_constant(&a).is_some_and(|a| is_neutral(op, a, true)) => *b,
        IndexExpr::Binary(op, a, b) if as_constant(&b).is_some_and(|b| is_neutral(op, b, false)) => *a,
        // One reduction over all variables has a choice of loop orders; sums of sums would fix it.
        IndexExpr::Reduce(how, mut vars, body) => match *body {
            IndexExpr::Reduce(inner, more, body) if inner == how => {
                vars.extend(more);
                IndexExpr::Reduce(how, vars, body)
            }
            body => IndexExpr::Reduce(how, vars, Box::new(body)),
        },
        IndexExpr::Select(c, a, b) => match as_constant(&c) {
            Some(c) if c.is_true() => *a,
            Some(_) => *b,
            None => IndexExpr::Select(c, a, b),
        },
        other => other,
    }
}
