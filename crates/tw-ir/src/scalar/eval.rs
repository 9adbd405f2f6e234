//! The meaning of scalar operations, on single values.

use super::elementary::Elementary;
use super::math::{self, Integer};
use super::{BinaryOp, RandomDistribution, UnaryOp};
use crate::dtype::{C64, C128, Scalar};
use crate::random;

/// Applies a unary operation; the type must be one it takes.
pub fn eval_unary(op: UnaryOp, a: Scalar) -> Scalar {
    use UnaryOp::*;
    macro_rules! float {
        ($x:expr, $wrap:path, $sign:path) => {{
            let x = $x;
            $wrap(match op {
                Neg => -x,
                Abs => x.abs(),
                Sign => $sign(x),
                Sqrt => x.sqrt(),
                Exp => Elementary::exp(x),
                Exp2 => Elementary::exp2(x),
                Expm1 => Elementary::expm1(x),
                Log => Elementary::log(x),
                Log1p => Elementary::log1p(x),
                Log2 => Elementary::log2(x),
                Log10 => Elementary::log10(x),
                Sin => Elementary::sin(x),
                Cos => Elementary::cos(x),
                Tan => Elementary::tan(x),
                Asin => Elementary::asin(x),
                Acos => Elementary::acos(x),
                Atan => Elementary::atan(x),
                Sinh => Elementary::sinh(x),
                Cosh => Elementary::cosh(x),
                Tanh => Elementary::tanh(x),
                Asinh => Elementary::asinh(x),
                Acosh => Elementary::acosh(x),
                Atanh => Elementary::atanh(x),
                Cbrt => Elementary::cbrt(x),
                Floor => x.floor(),
                Ceil => x.ceil(),
                Round => x.round_ties_even(),
                Trunc => x.trunc(),
                IsNan => return Scalar::Bool(x.is_nan()),
                IsInf => return Scalar::Bool(x.is_infinite()),
                IsFinite => return Scalar::Bool(x.is_finite()),
                Signbit => return Scalar::Bool(x.is_sign_negative()),
                Not | Real | Imag | Conj => unreachable!("`{op}` of a float"),
            })
        }};
    }
    match a {
        Scalar::F32(x) => float!(x, Scalar::F32, math::sign_f32),
        Scalar::F64(x) => float!(x, Scalar::F64, math::sign_f64),
        Scalar::I8(x) => Scalar::I8(integer_unary(op, x)),
        Scalar::I16(x) => Scalar::I16(integer_unary(op, x)),
        Scalar::I32(x) => Scalar::I32(integer_unary(op, x)),
        Scalar::I64(x) => Scalar::I64(integer_unary(op, x)),
        Scalar::U8(x) => Scalar::U8(integer_unary(op, x)),
        Scalar::U16(x) => Scalar::U16(integer_unary(op, x)),
        Scalar::U32(x) => Scalar::U32(integer_unary(op, x)),
        Scalar::U64(x) => Scalar::U64(integer_unary(op, x)),
        Scalar::C64(x) => match op {
            Real => Scalar::F32(x.re),
            Imag => Scalar::F32(x.im),
            Conj => Scalar::C64(x.conj()),
            Neg => Scalar::C64(-x),
            _ => unreachable!("`{op}` of a complex number"),
        },
        Scalar::C128(x) => match op {
            Real => Scalar::F64(x.re),
            Imag => Scalar::F64(x.im),
            Conj => Scalar::C128(x.conj()),
            Neg => Scalar::C128(-x),
            _ => unreachable!("`{op}` of a complex number"),
        },
        Scalar::Bool(x) => match op {
            Not => Scalar::Bool(!x),
            _ => unreachable!("`{op}` of a bool"),
        },
        Scalar::F16(_) | Scalar::BF16(_) | Scalar::DateTime(..) | Scalar::TimeDelta(..) => {
            unreachable!("`{op}` of {}", a.dtype())
        }
    }
}

fn integer_unary<T: Integer>(op: UnaryOp, x: T) -> T {
    match op {
        UnaryOp::Neg => x.neg(),
        UnaryOp::Abs => x.abs(),
        UnaryOp::Sign => x.sign(),
        UnaryOp::Not => x.not(),
        _ => unreachable!("`{op}` of an integer"),
    }
}

fn integer_binary<T: Integer>(op: BinaryOp, x: T, y: T) -> T {
    use BinaryOp::*;
    match op {
        Add => x.add(y),
        Sub => x.sub(y),
        Mul => x.mul(y),
        FloorDiv => x.floor_div(y),
        Mod => x.modulo(y),
        Pow => x.pow(y),
        Min => x.min(y),
        Max => x.max(y),
        And => x.and(y),
        Or => x.or(y),
        Xor => x.xor(y),
        Shl => x.shl(y),
        Shr => x.shr(y),
        _ => unreachable!("`{op}` of integers"),
    }
}

/// Applies a binary operation; the types must agree and be ones it takes.
pub fn eval_binary(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    use BinaryOp::*;
    macro_rules! compare {
        ($x:expr, $y:expr) => {
            Scalar::Bool(match op {
                Lt => $x < $y,
                Le => $x <= $y,
                Gt => $x > $y,
                Ge => $x >= $y,
                Eq => $x == $y,
                _ => $x != $y,
            })
        };
    }
    macro_rules! float {
        ($x:expr, $y:expr, $wrap:path, $floor_div:path, $modulo:path, $min:path, $max:path) => {{
            let (x, y) = ($x, $y);
            if op.is_comparison() {
                return compare!(x, y);
            }
            $wrap(match op {
                Add => x + y,
                Sub => x - y,
                Mul => x * y,
                Div => x / y,
                FloorDiv => $floor_div(x, y),
                Mod => $modulo(x, y),
                Pow => Elementary::pow(x, y),
                Min => $min(x, y),
                Max => $max(x, y),
                Atan2 => Elementary::atan2(x, y),
                Hypot => Elementary::hypot(x, y),
                Copysign => x.copysign(y),
                Nextafter => Elementary::nextafter(x, y),
                _ => unreachable!("`{op}` of floats"),
            })
        }};
    }
    macro_rules! integer {
        ($x:expr, $y:expr) => {
            if op.is_comparison() { compare!($x, $y) } else { integer_binary(op, $x, $y).into() }
        };
    }
    macro_rules! complex {
        ($x:expr, $y:expr) => {
            match op {
                Add => ($x + $y).into(),
                Sub => ($x - $y).into(),
                Mul => ($x * $y).into(),
                Eq => Scalar::Bool($x == $y),
                Ne => Scalar::Bool($x != $y),
                _ => unreachable!("`{op}` of complex numbers"),
            }
        };
    }
    match (a, b) {
        (Scalar::F32(x), Scalar::F32(y)) if op == Complex => Scalar::C64(C64::new(x, y)),
        (Scalar::F64(x), Scalar::F64(y)) if op == Complex => Scalar::C128(C128::new(x, y)),
        (Scalar::F32(x), Scalar::F32(y)) => {
            float!(x, y, Scalar::F32, math::floor_div_f32, math::mod_f32, math::min_f32, math::max_f32)
        }
        (Scalar::F64(x), Scalar::F64(y)) => {
            float!(x, y, Scalar::F64, math::floor_div_f64, math::mod_f64, math::min_f64, math::max_f64)
        }
        (Scalar::I8(x), Scalar::I8(y)) => integer!(x, y),
        (Scalar::I16(x), Scalar::I16(y)) => integer!(x, y),
        (Scalar::I32(x), Scalar::I32(y)) => integer!(x, y),
        (Scalar::I64(x), Scalar::I64(y)) => integer!(x, y),
        (Scalar::U8(x), Scalar::U8(y)) => integer!(x, y),
        (Scalar::U16(x), Scalar::U16(y)) => integer!(x, y),
        (Scalar::U32(x), Scalar::U32(y)) => integer!(x, y),
        (Scalar::U64(x), Scalar::U64(y)) => integer!(x, y),
        (Scalar::C64(x), Scalar::C64(y)) => complex!(x, y),
        (Scalar::C128(x), Scalar::C128(y)) => complex!(x, y),
        (Scalar::Bool(x), Scalar::Bool(y)) => {
            if op.is_comparison() {
                return compare!(x, y);
            }
            Scalar::Bool(match op {
                Add | Or | Max => x | y,
                Mul | And | Min => x & y,
                Xor => x ^ y,
                _ => unreachable!("`{op}` of bools"),
            })
        }
        _ => unreachable!("`{op}` of {} and {}", a.dtype(), b.dtype()),
    }
}

/// Draws the random number at a position.
pub fn eval_random(distribution: RandomDistribution, seed: u64, counter: i64) -> Scalar {
    match distribution {
        RandomDistribution::Uniform => Scalar::F64(random::uniform(seed, counter)),
        RandomDistribution::Normal => Scalar::F64(random::normal(seed, counter)),
        RandomDistribution::Integer { low, high } => Scalar::I64(random::integer(seed, counter, low, high)),
    }
}
