//! Arithmetic on literals and parameters, done while the program is read.
//!
//! Unlike tensor arithmetic it does not wrap: a number that does not fit is an error at the place where it is written.

use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{BinaryOp, DType, Error, Result, Scalar, ScalarCode, Slot, UnaryOp};

use tw_build::{Typed, common, emit_binary, emit_unary};

/// A binary operation on two literals. True division gives a float.
pub(super) fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Result<Scalar> {
    use BinaryOp::*;
    if matches!(op, Div | FloorDiv | Mod) && !b.is_true() {
        return Err(Error::source("division by zero"));
    }
    let dtype = common([a.dtype(), b.dtype()])?;
    if dtype.is_complex() || op == Complex {
        return by_code(|code| {
            let (a, b) = (code.constant(a), code.constant(b));
            emit_binary(code, op, Typed::literal(a), Typed::literal(b))
        });
    }
    match op {
        Add | Sub | Mul | FloorDiv | Mod | Pow if !dtype.is_float() => integers(op, a.as_i64(), b.as_i64()),
        Div | Atan2 | Hypot | Copysign | Nextafter | Add | Sub | Mul | FloorDiv | Mod | Pow => {
            floats(op, a.as_f64(), b.as_f64())
        }
        _ if op.result(dtype).is_none() => Err(Error::source(format!("`{}` does not take {dtype}", op.written()))),
        _ => Ok(eval_binary(op, a.cast(dtype), b.cast(dtype))),
    }
}

/// What code without parameters gives: literals that are more than one number mean what tensors of them mean.
fn by_code(body: impl FnOnce(&mut ScalarCode) -> Result<Slot>) -> Result<Scalar> {
    let mut code = ScalarCode::new(Vec::new());
    let result = body(&mut code)?;
    code.set_results(vec![result]);
    Ok(code.eval(&[])[0])
}

fn integers(op: BinaryOp, a: i64, b: i64) -> Result<Scalar> {
    use BinaryOp::*;
    let value = match op {
        Add => a.checked_add(b),
        Sub => a.checked_sub(b),
        Mul => a.checked_mul(b),
        // A negative exponent leaves the whole numbers, as in Python.
        Pow if b < 0 => return floats(op, a as f64, b as f64),
        Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)).or(if matches!(a, 0 | 1) { Some(a) } else { None }),
        _ if a == i64::MIN && b == -1 => None,
        _ => match eval_binary(op, Scalar::I64(a), Scalar::I64(b)) {
            Scalar::I64(value) => Some(value),
            _ => None,
        },
    };
    value.map(Scalar::I64).ok_or_else(too_large)
}

fn floats(op: BinaryOp, a: f64, b: f64) -> Result<Scalar> {
    let value = eval_binary(op, Scalar::F64(a), Scalar::F64(b));
    if value.as_f64().is_infinite() && a.is_finite() && b.is_finite() { Err(too_large()) } else { Ok(value) }
}

fn too_large() -> Error {
    Error::source("the result is too large a number")
}

/// `and`, `or` of truth values.
pub(super) fn logical(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    eval_binary(op, a.cast(DType::Bool), b.cast(DType::Bool))
}

/// A unary operation on a literal.
pub(super) fn unary(op: UnaryOp, a: Scalar) -> Result<Scalar> {
    use UnaryOp::*;
    if a.dtype().is_complex() || matches!(op, Real | Imag | Conj) {
        return by_code(|code| {
            let a = code.constant(a);
            emit_unary(code, op, a)
        });
    }
    match (op, a) {
        (Neg | Abs | Sign, Scalar::I64(i64::MIN)) => Err(too_large()),
        (Not, Scalar::F64(_) | Scalar::F32(_)) => Err(Error::source("`not` does not take a float")),
        (Neg | Sign, Scalar::Bool(_)) => unary(op, Scalar::I64(a.as_i64())),
        (Abs | Floor | Ceil | Round | Trunc, Scalar::Bool(_) | Scalar::I64(_)) if op != Abs => Ok(a),
        (Abs, Scalar::Bool(_)) => Ok(a),
        (Neg | Abs | Sign | Not, _) => Ok(eval_unary(op, a)),
        _ => Ok(eval_unary(op, Scalar::F64(a.as_f64()))),
    }
}

/// The whole number a literal stands for.
pub(super) fn whole(value: Scalar) -> Option<i64> {
    match value {
        Scalar::I64(v) => Some(v),
        Scalar::F64(v) if v.fract() == 0.0 && v.abs() < i64::MAX as f64 => Some(v as i64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: BinaryOp, a: i64, b: i64) -> Result<Scalar> {
        binary(op, Scalar::I64(a), Scalar::I64(b))
    }

    #[test]
    fn integers_do_not_wrap() {
        assert_eq!(int(BinaryOp::FloorDiv, -7, 2), Ok(Scalar::I64(-4)));
        assert_eq!(int(BinaryOp::Pow, 2, 10), Ok(Scalar::I64(1024)));
        assert_eq!(int(BinaryOp::Pow, 2, -1), Ok(Scalar::F64(0.5)));
        for (op, a, b) in [
            (BinaryOp::Add, i64::MAX, 1),
            (BinaryOp::Pow, 10, 19),
            (BinaryOp::FloorDiv, i64::MIN, -1),
            (BinaryOp::Mod, 1, 0),
            (BinaryOp::Pow, 2, i64::MAX),
        ] {
            assert!(int(op, a, b).is_err(), "{a} {op} {b}");
        }
    }

    #[test]
    fn every_operation_takes_every_literal_or_says_no() {
        let literals = [
            Scalar::Bool(true),
            Scalar::I64(-3),
            Scalar::I64(i64::MIN),
            Scalar::F64(0.5),
            Scalar::F64(f64::NAN),
            Scalar::C128(tw_ir::dtype::C128::new(0.0, 2.0)),
        ];
        for a in literals {
            UnaryOp::ALL.iter().for_each(|&op| drop(unary(op, a)));
            for b in literals {
                BinaryOp::ALL.iter().for_each(|&op| drop(binary(op, a, b)));
            }
        }
    }
}
