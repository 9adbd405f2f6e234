//! Complex functions beyond sum, difference and product, as real scalar code over the parts.
//!
//! Formulas avoid overflow and cancellation. Special values are those of C99, Annex G. Single precision is computed in double precision and rounded once at the end, which costs less than
//! careful single-precision formulas.

mod algebra;
mod exponential;
mod inverse;
mod logarithm;
mod real;

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, Slot, UnaryOp};

use super::power;
use super::promote::{CodeSink, refused};
use logarithm::Base;
use real::{Pair, Tape};

/// Appends a unary operation on a complex number.
pub(super) fn unary(code: &mut impl CodeSink, op: UnaryOp, a: Slot) -> Result<Slot> {
    use UnaryOp::*;
    let function: fn(Pair<'_>) -> Pair<'_> = match op {
        Neg | Conj | Real | Imag => return code.unary(op, a),
        Abs => {
            let (re, im) = (code.unary(Real, a)?, code.unary(Imag, a)?);
            return code.binary(BinaryOp::Hypot, re, im);
        }
        IsNan | IsInf | IsFinite => {
            let (re, im) = (code.unary(Real, a)?, code.unary(Imag, a)?);
            let (re, im) = (code.unary(op, re)?, code.unary(op, im)?);
            return code.binary(if op == IsFinite { BinaryOp::And } else { BinaryOp::Or }, re, im);
        }
        Sign => algebra::sign,
        Sqrt => algebra::sqrt,
        Exp => exponential::exp,
        Expm1 => exponential::expm1,
        Sinh => exponential::sinh,
        Cosh => exponential::cosh,
        Tanh => exponential::tanh,
        Sin => |z| exponential::sinh(z.turned()).turned_back(),
        Cos => |z| exponential::cosh(z.turned()),
        Tan => |z| exponential::tanh(z.turned()).turned_back(),
        Log => |z| logarithm::log(z, Base::E),
        Log2 => |z| logarithm::log(z, Base::Two),
        Log10 => |z| logarithm::log(z, Base::Ten),
        Log1p => logarithm::log1p,
        Asin => inverse::asin,
        Acos => inverse::acos,
        Acosh => inverse::acosh,
        Atanh => inverse::atanh,
        Asinh => |z| inverse::asin(z.turned()).turned_back(),
        Atan => |z| inverse::atanh(z.turned()).turned_back(),
        _ => return Err(refused(op.written(), code.dtype(a))),
    };
    let z = split(code, a)?;
    let dtype = code.dtype(a);
    let tape = Tape::new(code);
    let found = function(tape.pair(z)).slots();
    let found = tape.finish(found)?;
    join(code, found, dtype)
}

/// Appends a binary operation on two complex numbers of one type.
pub(super) fn binary(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    use BinaryOp::*;
    let dtype = code.dtype(a);
    match op {
        Add | Sub | Mul | Eq | Ne => return code.binary(op, a, b),
        Div | Pow => {}
        Lt | Le | Gt | Ge => return compare(code, op, a, b),
        Min | Max => {
            let second = beats(code, op, b, a)?;
            return code.select(second, b, a);
        }
        _ => return Err(refused(op.written(), dtype)),
    }
    // Small whole powers are products, exact where products are.
    let exponent = code.converted_constant_at(b).filter(|_| op == Pow).map(Scalar::as_c128);
    if exponent.is_some_and(|n| n.im == 0.0 && n.re == 0.5) {
        return unary(code, UnaryOp::Sqrt, a);
    }
    if let Some(n) = exponent.filter(|n| n.im == 0.0 && n.re.fract() == 0.0 && (1.0..=64.0).contains(&n.re.abs())) {
        let base = if n.re > 0.0 {
            a
        } else {
            let one = code.constant(Scalar::F64(1.0).cast(dtype))?;
            binary(code, Div, one, a)?
        };
        return power::repeated(code, base, n.re.abs() as u32);
    }
    let (x, y) = (split(code, a)?, split(code, b)?);
    let tape = Tape::new(code);
    let (x, y) = (tape.pair(x), tape.pair(y));
    let found = match op {
        Pow => algebra::power(x, y),
        _ if dtype == DType::C64 => algebra::quotient_of_singles(x, y),
        _ => algebra::quotient(x, y),
    };
    let found = found.slots();
    let found = tape.finish(found)?;
    join(code, found, dtype)
}

/// A comparison in NumPy's order: by real parts, where those are equal by imaginary ones. Nothing with a NaN is less or greater than anything.
fn compare(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    let strict = if matches!(op, BinaryOp::Lt | BinaryOp::Le) { BinaryOp::Lt } else { BinaryOp::Gt };
    let found = before(code, strict, op, a, b)?;
    let (nan_a, nan_b) = (unary(code, UnaryOp::IsNan, a)?, unary(code, UnaryOp::IsNan, b)?);
    let unordered = code.binary(BinaryOp::Or, nan_a, nan_b)?;
    let ordered = code.unary(UnaryOp::Not, unordered)?;
    code.binary(BinaryOp::And, ordered, found)
}

/// True where `a` takes the place of `b` in a minimum or maximum: it is smaller (larger), or the first that has a NaN.
pub(super) fn beats(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    let strict = if op == BinaryOp::Min { BinaryOp::Lt } else { BinaryOp::Gt };
    let better = before(code, strict, strict, a, b)?;
    let (nan_a, nan_b) = (unary(code, UnaryOp::IsNan, a)?, unary(code, UnaryOp::IsNan, b)?);
    let better = code.binary(BinaryOp::Or, nan_a, better)?;
    let known_b = code.unary(UnaryOp::Not, nan_b)?;
    code.binary(BinaryOp::And, known_b, better)
}

/// The parts compared one after the other: the real ones by `first`, equal ones by `then` of the imaginary ones.
fn before(code: &mut impl CodeSink, first: BinaryOp, then: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    let (re_a, re_b) = (code.unary(UnaryOp::Real, a)?, code.unary(UnaryOp::Real, b)?);
    let (im_a, im_b) = (code.unary(UnaryOp::Imag, a)?, code.unary(UnaryOp::Imag, b)?);
    let apart = code.binary(first, re_a, re_b)?;
    let level = code.binary(BinaryOp::Eq, re_a, re_b)?;
    let within = code.binary(then, im_a, im_b)?;
    let within = code.binary(BinaryOp::And, level, within)?;
    code.binary(BinaryOp::Or, apart, within)
}

/// The parts of a number, as doubles.
fn split(code: &mut impl CodeSink, a: Slot) -> Result<(Slot, Slot)> {
    let (re, im) = (code.unary(UnaryOp::Real, a)?, code.unary(UnaryOp::Imag, a)?);
    Ok((code.convert(DType::F64, re)?, code.convert(DType::F64, im)?))
}

/// The number of a type with these parts.
fn join(code: &mut impl CodeSink, (re, im): (Slot, Slot), dtype: DType) -> Result<Slot> {
    let part = dtype.part().ok_or_else(|| Error::internal(format!("{dtype} has no parts")))?;
    let (re, im) = (code.convert(part, re)?, code.convert(part, im)?);
    code.binary(BinaryOp::Complex, re, im)
}
