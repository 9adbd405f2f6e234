//! Logarithms and inverse hyperbolic functions of doubles.

use std::f64::consts::LOG2_E;

use super::exponential::power_of_two;
use super::pair::{Pair, polynomial};
use super::{SHIFT, SMALL, TINY, at_least, at_most};

/// The logarithm of two: 40 bits, whose products with exponents are exact, and the rest.
pub(super) const LN_2: [f64; 2] = [0.6931471805592082, 7.371002565167799e-13];

/// `log10(2)`, likewise.
const LOG10_2: [f64; 2] = [0.30102999566361177, 3.694239077158931e-13];

/// Above this, `asinh(x)` and `acosh(x)` are `log(2 x)`.
const LARGE: f64 = (1u64 << 30) as f64;

/// A positive finite number as `2^n * (1 + f)`, with `1 + f` between the roots of 1/2 and 2: `n` and `f`. Both are exact.
#[inline(always)]
pub(super) fn split(x: f64) -> (f64, f64) {
    // Factor and exponent are chosen, not the result: it would be computed twice.
    let tiny = x < f64::MIN_POSITIVE;
    let factor = if tiny { (1u64 << 54) as f64 } else { 1.0 };
    split_scaled(x * factor, if tiny { WHOLE + 1077.0 } else { WHOLE + 1023.0 })
}

/// [`split`] of a number that is not subnormal.
#[inline(always)]
pub(super) fn split_normal(x: f64) -> (f64, f64) {
    split_scaled(x, WHOLE + 1023.0)
}

/// In its last bits a small whole number can be put to make it a double.
const WHOLE: f64 = (1u64 << 52) as f64;

#[inline(always)]
fn split_scaled(x: f64, bias: f64) -> (f64, f64) {
    const HALF_ROOT: u64 = std::f64::consts::FRAC_1_SQRT_2.to_bits();
    const ONE: u64 = 1f64.to_bits();
    let exponent = x.to_bits().wrapping_add(ONE - HALF_ROOT) >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub(exponent << 52).wrapping_add(ONE));
    (f64::from_bits(WHOLE.to_bits() | exponent) - bias, m - 1.0)
}

/// The parts of `log(1 + f) = f - square + rest`, and `s = f / (2 + f)`, of which the rest is a series.
struct LogParts {
    square: f64,
    rest: f64,
    s: f64,
}

#[inline(always)]
fn log_parts(f: f64) -> LogParts {
    let s = f / (2.0 + f);
    let z = s * s;
    let series = polynomial(
        z,
        [
            0.6666666666666666,
            0.4000000000000633,
            0.285714285690587,
            0.22222222650917597,
            0.18181775333865297,
            0.15387105334657047,
            0.13249787830042925,
            0.13254346634881808,
        ],
    );
    let square = 0.5 * f * f;
    LogParts { square, rest: s * z.mul_add(series, square), s }
}

/// `log(1 + f)` of a reduced number, to a unit or so.
#[inline(always)]
pub(super) fn log1p_reduced(f: f64) -> f64 {
    let parts = log_parts(f);
    f - (parts.square - parts.rest)
}

/// The logarithm of `x`, given what it is if `x` is positive and finite.
#[inline(always)]
pub(super) fn log_special(x: f64, ordinary: f64) -> f64 {
    let result = if x == 0.0 { f64::NEG_INFINITY } else { ordinary };
    // False for NaN.
    let positive = x >= 0.0;
    let result = if positive { result } else { f64::NAN };
    if x == f64::INFINITY { x } else { result }
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn log(x: f64) -> f64 {
    let (n, f) = split(x);
    let parts = log_parts(f);
    let sum = Pair::sum_ordered(n * LN_2[0], f);
    log_special(x, sum.plus_small(n.mul_add(LN_2[1], parts.rest) - parts.square).value())
}

/// `log(1 + f)` times a factor, as a pair.
#[inline(always)]
fn log_times(f: f64, factor: [f64; 2]) -> Pair {
    let parts = log_parts(f);
    let lost = (0.5 * f).mul_add(f, -parts.square);
    let log = Pair::sum_ordered(f, -parts.square).plus_small(parts.rest - lost);
    Pair::product(log.hi, factor[0]).plus_small(log.lo.mul_add(factor[0], log.hi * factor[1]))
}

/// Base-2 logarithm.
#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    let (n, f) = split(x);
    let log = log_times(f, [LOG2_E, 2.0355273740931033e-17]);
    log_special(x, Pair::sum_ordered(n, log.hi).plus_small(log.lo).value())
}

/// Base-10 logarithm.
#[inline(always)]
pub(super) fn log10(x: f64) -> f64 {
    let (n, f) = split(x);
    let log = log_times(f, [std::f64::consts::LOG10_E, 1.098319650216765e-17]);
    let sum = Pair::sum_ordered(n * LOG10_2[0], log.hi);
    log_special(x, sum.plus_small(n.mul_add(LOG10_2[1], log.lo)).value())
}

/// `log(2^more * u)` for a normal `u.hi` between 2^-60 and 2^1023.
#[inline(always)]
fn log_of_pair(u: Pair, more: f64) -> f64 {
    let (n, f) = split_normal(u.hi);
    // Where the limit acts, nothing that low counts.
    let low = u.lo * power_of_two(SHIFT + 1023.0 - at_most(n, 1000.0));
    let parts = log_parts(f);
    // 1 / (1 + f) = (1 - s) / (1 + s) to a dozen bits.
    let slope = polynomial(parts.s, [1.0, -2.0, 2.0, -2.0, 2.0]);
    let n = n + more;
    let sum = Pair::sum_ordered(n * LN_2[0], f);
    sum.plus_small(low.mul_add(slope, n.mul_add(LN_2[1], parts.rest) - parts.square)).value()
}

/// `log(1 + x)` without cancellation.
#[inline(always)]
pub(super) fn log1p(x: f64) -> f64 {
    let near = at_least(at_most(x, f64::MAX), -1.0);
    let u = Pair::sum(1.0, near);
    let result = log_special(1.0 + x, log_of_pair(u, 0.0));
    if x.abs() < TINY { x } else { result }
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub(super) fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let large = size > LARGE;
    let a = at_most(size, LARGE);
    // x + sqrt(1 + x^2) = 1 + a + a^2 / (1 + sqrt(1 + a^2)), without cancellation.
    let square = Pair::product(a, a);
    let root = Pair::sum(1.0, square.hi).plus_small(square.lo).sqrt();
    let bend = square.over(Pair::sum_ordered(root.hi, 1.0).plus_small(root.lo));
    let step = Pair::sum_ordered(a, bend.hi).plus_small(bend.lo);
    let u = Pair::sum(1.0, step.hi).plus_small(step.lo);
    let u = if large { Pair { hi: at_most(size, f64::MAX), lo: 0.0 } } else { u };
    let result = log_of_pair(u, if large { 1.0 } else { 0.0 });
    let result = if size == f64::INFINITY { size } else { result };
    // NaN would be lost in the bits of exponents.
    let same = size < SMALL || x.is_nan();
    if same { x } else { result.copysign(x) }
}

/// Inverse hyperbolic cosine.
#[inline(always)]
pub(super) fn acosh(x: f64) -> f64 {
    let large = x > LARGE;
    let a = at_most(x, LARGE);
    // 1 + t + sqrt(x^2 - 1), with t = x - 1.
    let square = Pair::product(a, a);
    let root = Pair::sum(square.hi, -1.0).plus_small(square.lo).sqrt();
    let t = Pair::sum_ordered(a, -1.0);
    let step = Pair::sum_ordered(root.hi, t.hi).plus_small(root.lo + t.lo);
    let u = Pair::sum(1.0, step.hi).plus_small(step.lo);
    let u = if large { Pair { hi: at_most(x, f64::MAX), lo: 0.0 } } else { u };
    let result = log_of_pair(u, if large { 1.0 } else { 0.0 });
    let inside = x >= 1.0;
    let result = if inside { result } else { f64::NAN };
    if x == f64::INFINITY { x } else { result }
}

/// Inverse hyperbolic tangent.
#[inline(always)]
pub(super) fn atanh(x: f64) -> f64 {
    let size = x.abs();
    // (1 + x) / (1 - x) = 1 + 2 x / (1 - x).
    let step = Pair { hi: 2.0 * size, lo: 0.0 }.over(Pair::sum_ordered(1.0, -size));
    let u = Pair::sum(1.0, step.hi).plus_small(step.lo);
    let result = (0.5 * log_of_pair(u, 0.0)).copysign(x);
    let result = if size == 1.0 { f64::INFINITY.copysign(x) } else { result };
    let inside = size <= 1.0;
    let result = if inside { result } else { f64::NAN };
    if size < SMALL { x } else { result }
}
