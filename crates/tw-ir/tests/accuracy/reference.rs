//! Elementary functions in arbitrary precision, and distances from them in units in the last place.

use astro_float_num::{BigFloat, Consts, RoundingMode, Sign};
use tw_ir::random;
use tw_ir::scalar::elementary::Elementary;

/// Bits of the references: twice those of a double, and some.
const BITS: usize = 128;
const NEAREST: RoundingMode = RoundingMode::ToEven;

/// The widths of a float type that distances depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precision {
    /// Bits after the leading one.
    pub(crate) fraction: i32,
    /// Smallest exponent of a normal number.
    pub(crate) smallest: i32,
    /// One more than the largest exponent.
    pub(crate) overflow: i32,
}

pub(crate) const DOUBLE: Precision = Precision { fraction: 52, smallest: -1022, overflow: 1024 };
pub(crate) const SINGLE: Precision = Precision { fraction: 23, smallest: -126, overflow: 128 };

/// Distance of a result from the true value, in units in the last place of the true value. An infinity counts as the first number that is too large.
pub(crate) fn distance(exact: &BigFloat, got: f64, precision: Precision) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() == exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if exact.is_zero() {
        return if got == 0.0 { 0.0 } else { f64::INFINITY };
    }
    let exponent = exact.exponent().unwrap_or(0) - 1;
    if got.is_infinite() && exponent >= precision.overflow && exact.is_negative() == (got < 0.0) {
        return 0.0;
    }
    let got = if got.is_infinite() { limit(precision.overflow, got < 0.0) } else { big(got) };
    let difference = exact.sub(&got, BITS, NEAREST);
    match difference.as_raw_parts() {
        Some((words, _, _, difference_exponent, _)) if !difference.is_zero() => {
            let leading = words.last().map_or(0.0, |&word| word as f64) / 2f64.powi(64);
            let unit = exponent.max(precision.smallest) - precision.fraction;
            leading * 2f64.powi((difference_exponent - unit).clamp(-1000, 1000))
        }
        _ => 0.0,
    }
}

/// Two to a power, of either sign.
fn limit(exponent: i32, negative: bool) -> BigFloat {
    let mut value = big(if negative { -1.0 } else { 1.0 });
    value.set_exponent(exponent + 1);
    value
}

fn big(x: f64) -> BigFloat {
    // Subnormal numbers come out wrong, so numbers are brought in after a shift.
    let shift = if x.abs() < 1.0 { 200 } else { 0 };
    let mut value = BigFloat::from_f64(x * 2f64.powi(shift), BITS);
    if let Some(exponent) = value.exponent().filter(|_| !value.is_zero()) {
        value.set_exponent(exponent - shift);
    }
    value
}

/// The true value of a function, for the arguments of a result.
pub(crate) type Reference = fn(f64, f64, &mut Consts) -> BigFloat;

/// A function, in both precisions and exactly. Functions of one argument ignore the second.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) double: fn(f64, f64) -> f64,
    pub(crate) single: fn(f32, f32) -> f32,
    pub(crate) exact: Reference,
    /// The range of first arguments where something happens, for doubles.
    pub(crate) range: (f64, f64),
    pub(crate) two_arguments: bool,
}

macro_rules! functions {
    ($($name:ident $low:expr, $high:expr, $exact:expr;)*) => {
        [$(Function {
            name: stringify!($name),
            double: |x, _| Elementary::$name(x),
            single: |x, _| Elementary::$name(x),
            exact: |x, _, consts| {
                let exact: fn(BigFloat, &mut Consts) -> BigFloat = $exact;
                exact(big(x), consts)
            },
            range: ($low, $high),
            two_arguments: false,
        },)*]
    };
    (two: $($name:ident $low:expr, $high:expr, $exact:expr;)*) => {
        [$(Function {
            name: stringify!($name),
            double: Elementary::$name,
            single: Elementary::$name,
            exact: |x, y, consts| {
                let exact: fn(BigFloat, BigFloat, &mut Consts) -> BigFloat = $exact;
                exact(big(x), big(y), consts)
            },
            range: ($low, $high),
            two_arguments: true,
        },)*]
    };
}

/// Every elementary function.
pub(crate) fn all() -> Vec<Function> {
    let mut all = Vec::from(functions! {
        exp -746.0, 710.0, |x, c| x.exp(BITS, NEAREST, c);
        exp2 -1076.0, 1024.5, |x, c| pow(big(2.0), x, c);
        expm1 -50.0, 710.0, expm1;
        log 0.0, f64::MAX, |x, c| x.ln(BITS, NEAREST, c);
        log1p -1.0, f64::MAX, log1p;
        log2 0.0, f64::MAX, |x, c| x.log2(BITS, NEAREST, c);
        log10 0.0, f64::MAX, |x, c| x.log10(BITS, NEAREST, c);
        sin f64::MIN, f64::MAX, |x, c| x.sin(BITS, NEAREST, c);
        cos f64::MIN, f64::MAX, |x, c| x.cos(BITS, NEAREST, c);
        tan f64::MIN, f64::MAX, |x, c| x.tan(BITS, NEAREST, c);
        asin -1.0, 1.0, |x, c| x.asin(BITS, NEAREST, c);
        acos -1.0, 1.0, |x, c| x.acos(BITS, NEAREST, c);
        atan f64::MIN, f64::MAX, |x, c| x.atan(BITS, NEAREST, c);
        sinh -711.0, 711.0, |x, c| x.sinh(BITS, NEAREST, c);
        cosh -711.0, 711.0, |x, c| x.cosh(BITS, NEAREST, c);
        tanh -25.0, 25.0, |x, c| x.tanh(BITS, NEAREST, c);
        asinh f64::MIN, f64::MAX, |x, c| x.asinh(BITS, NEAREST, c);
        acosh 1.0, f64::MAX, |x, c| x.acosh(BITS, NEAREST, c);
        atanh -1.0, 1.0, |x, c| x.atanh(BITS, NEAREST, c);
        cbrt f64::MIN, f64::MAX, |x, _| x.cbrt(BITS, NEAREST);
    });
    all.extend(functions! { two:
        pow 0.0, f64::MAX, pow;
        atan2 f64::MIN, f64::MAX, atan2;
        hypot f64::MIN, f64::MAX, |x, y, _| {
            x.mul_full_prec(&x).add_full_prec(&y.mul_full_prec(&y)).sqrt(BITS, NEAREST)
        };
    });
    all
}

/// True where a series of three terms has [`BITS`] bits.
fn is_tiny(x: &BigFloat) -> bool {
    x.exponent().is_some_and(|exponent| exponent < -45)
}

/// `x + x^2 / a + x^3 / b`.
fn series(x: &BigFloat, a: f64, b: f64) -> BigFloat {
    let square = x.mul_full_prec(x);
    let cube = square.mul_full_prec(x);
    let term = |power: &BigFloat, by: f64| power.div(&big(by), BITS, NEAREST);
    x.add(&term(&square, a).add(&term(&cube, b), BITS, NEAREST), BITS, NEAREST)
}

fn expm1(x: BigFloat, consts: &mut Consts) -> BigFloat {
    if is_tiny(&x) { series(&x, 2.0, 6.0) } else { x.exp(2 * BITS, NEAREST, consts).sub(&big(1.0), BITS, NEAREST) }
}

fn log1p(x: BigFloat, consts: &mut Consts) -> BigFloat {
    if is_tiny(&x) { series(&x, -2.0, 3.0) } else { x.add_full_prec(&big(1.0)).ln(BITS, NEAREST, consts) }
}

fn pow(x: BigFloat, y: BigFloat, consts: &mut Consts) -> BigFloat {
    let exponent = x.ln(2 * BITS, NEAREST, consts).mul(&y, 2 * BITS, NEAREST);
    // Far outside, where the exponential would take for ever.
    let exponent = exponent.clamp(&big(-1e4), &big(1e4));
    exponent.exp(BITS, NEAREST, consts)
}

fn atan2(y: BigFloat, x: BigFloat, consts: &mut Consts) -> BigFloat {
    let angle = y.div(&x, 2 * BITS, NEAREST).atan(2 * BITS, NEAREST, consts);
    if x.is_positive() {
        return angle;
    }
    let mut half_turn = consts.pi(2 * BITS, NEAREST);
    half_turn.set_sign(y.sign().unwrap_or(Sign::Pos));
    angle.add(&half_turn, BITS, NEAREST)
}

/// An argument of a function: spread over its range and over all exponents, around 0 and 1, and next to multiples of pi / 2.
pub(crate) fn argument(function: &Function, seed: u64, k: i64) -> (f64, f64) {
    let draw = |stream: u64| random::uniform(seed.wrapping_add(stream << 32), k);
    let (low, high) = function.range;
    let sign = if draw(1) < 0.5 { -1.0 } else { 1.0 };
    let x = match k % 6 {
        0 => f64::from_bits((draw(2) * 2f64.powi(53)) as u64 * 2047),
        1 => low.max(-1e3) + (high.min(1e3) - low.max(-1e3)) * draw(2),
        2 => 2f64.powf(60.0 * draw(2) - 50.0),
        3 => 1.0 + sign * 2f64.powf(-52.0 * draw(2)),
        4 => {
            let near = (2f64.powf(60.0 * draw(2))).round() * std::f64::consts::FRAC_PI_2;
            f64::from_bits(near.to_bits().wrapping_add((5.0 * draw(3)) as u64).wrapping_sub(2))
        }
        _ => low.max(-4.0) + (high.min(4.0) - low.max(-4.0)) * draw(2),
    };
    let signed = if sign * x >= low && sign * x <= high { sign * x } else { x };
    let x = signed.clamp(low, high);
    // Zeros are special values.
    let x = if x == 0.0 { 0.5 } else { x };
    (x, if function.two_arguments { second(function.name, x, draw(4), draw(5)) } else { 0.0 })
}

/// A second argument for which the result is neither trivial nor out of range.
fn second(name: &str, x: f64, a: f64, b: f64) -> f64 {
    match name {
        "pow" if a < 0.2 => ((b - 0.5) * 40.0).round(),
        "pow" => (2.0 * b - 1.0) * 745.0 / Elementary::log(x).abs().max(1e-20),
        _ if a < 0.2 => (2.0 * b - 1.0) * 2f64.powf(2000.0 * a - 200.0),
        _ => (x * (2.0 * b - 1.0) * 2f64.powf(8.0 * a - 4.0)).clamp(f64::MIN, f64::MAX),
    }
}
