//! Half-precision operations that single precision cannot provide.

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, Slot, UnaryOp};

use super::promote::CodeSink;

/// The next half after `x`, towards `y`.
///
/// In doubles, a little more than half the distance to the neighbour is added; rounding to the half does the rest. That distance is a power of
/// two next to `x 2^-bits`, so 0.6 times the latter is between 0.6 and 1.2 times the distance: never nearer to another number than the neighbour.
pub(super) fn nextafter(code: &mut impl CodeSink, x: Slot, y: Slot) -> Result<Slot> {
    let dtype = code.dtype(x);
    let (bits, smallest, beyond) = match dtype {
        DType::F16 => (10, -24, 16),
        DType::BF16 => (7, -133, 128),
        _ => return Err(Error::internal(format!("{dtype} is no half"))),
    };
    let number = |code: &mut _, value: f64| CodeSink::constant(code, Scalar::F64(value));
    let two = 2.0f64;
    let (from, to) = (code.convert(DType::F64, x)?, code.convert(DType::F64, y)?);
    // Beyond the largest half, but not infinitely: the way back is a step as any other.
    let (low, high) = (number(code, -two.powi(beyond))?, number(code, two.powi(beyond))?);
    let finite = code.binary(BinaryOp::Max, from, low)?;
    let finite = code.binary(BinaryOp::Min, finite, high)?;
    let size = code.unary(UnaryOp::Abs, finite)?;
    let (share, least) = (number(code, 0.6 * two.powi(-bits))?, number(code, 0.6 * two.powi(smallest))?);
    let step = code.binary(BinaryOp::Mul, size, share)?;
    let step = code.binary(BinaryOp::Max, step, least)?;
    let (above, below) = (code.binary(BinaryOp::Add, finite, step)?, code.binary(BinaryOp::Sub, finite, step)?);
    let upwards = code.binary(BinaryOp::Gt, to, from)?;
    let next = code.select(upwards, above, below)?;
    let stays = code.binary(BinaryOp::Eq, from, to)?;
    let next = code.select(stays, from, next)?;
    let lost = code.unary(UnaryOp::IsNan, to)?;
    let next = code.select(lost, to, next)?;
    code.convert(dtype, next)
}
