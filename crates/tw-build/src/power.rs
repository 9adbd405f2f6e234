//! Powers with small constant exponents, as products.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::scalar::{BinaryOp, UnaryOp};
use tw_ir::{Scalar, Slot};

use super::promote::CodeSink;

/// Whole powers of floats that products give as exactly as the function for powers: each factor adds half a unit in the last place.
const FLOAT_POWERS: std::ops::RangeInclusive<i64> = 1..=4;

/// Whole powers of integers, which products give exactly.
const INTEGER_POWERS: std::ops::RangeInclusive<i64> = 1..=64;

/// Appends a real number to a constant power, if that takes few operations; the number has the type of the result. Values are NumPy's: the square is
/// `x * x`, the power 1/2 the square root (so that of minus infinity is NaN), the power -1 the reciprocal, and everything to the power 0 is 1.
pub(super) fn by_constant(code: &mut impl CodeSink, x: Slot, exponent: Scalar) -> Result<Option<Slot>> {
    let dtype = code.dtype(x);
    let exponent = exponent.as_f64();
    if dtype.is_float() && exponent == 0.5 {
        return code.unary(UnaryOp::Sqrt, x).map(Some);
    }
    if dtype.is_float() && exponent == -1.0 {
        let one = code.constant(dtype.one())?;
        return code.binary(BinaryOp::Div, one, x).map(Some);
    }
    if exponent == 0.0 && (dtype.is_float() || dtype.is_integer()) {
        return code.constant(dtype.one()).map(Some);
    }
    let n = exponent as i64;
    let is_short = match dtype {
        DType::F32 | DType::F64 => FLOAT_POWERS.contains(&n),
        _ => dtype.is_integer() && INTEGER_POWERS.contains(&n),
    };
    if !is_short || n as f64 != exponent {
        return Ok(None);
    }
    repeated(code, x, n as u32).map(Some)
}

/// A positive power by squaring.
pub(super) fn repeated(code: &mut impl CodeSink, base: Slot, n: u32) -> Result<Slot> {
    let (mut result, mut square, mut rest) = (None, base, n);
    loop {
        if rest & 1 == 1 {
            result = Some(match result {
                None => square,
                Some(before) => code.binary(BinaryOp::Mul, before, square)?,
            });
        }
        rest >>= 1;
        if rest == 0 {
            return result.ok_or_else(|| Error::internal("a power of nothing"));
        }
        square = code.binary(BinaryOp::Mul, square, square)?;
    }
}
