//! Functions of singles where those of doubles would do more than is needed.
//!
//! Except for [`exp`] and [`log`], which are written for singles throughout, they compute with doubles: with twice the digits, reductions need no
//! second part, short polynomials are enough, and results are rounded once, to half a unit and very little more.

use std::f64::consts::{FRAC_1_PI, FRAC_2_PI, LN_2, LOG2_E, LOG10_E, PI};

use super::angle::FRAC_PI_2;
use super::exponential::power_of_two;
use super::logarithm::split_normal;
use super::pair::polynomial;
use super::{SHIFT, at_least, at_most, circular, power};

/// As [`SHIFT`], for singles.
const SHIFT_SINGLE: f32 = (3u32 << 22) as f32;

/// Exponential.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = if x > 90.0 { 90.0 } else { x };
    let x = if x < -110.0 { -110.0 } else { x };
    // Two to the exponent in two steps, as for doubles.
    let negative = x < 0.0;
    let bias = if negative { SHIFT_SINGLE + 191.0 } else { SHIFT_SINGLE + 63.0 };
    let last = if negative { f32::from_bits(63 << 23) } else { f32::from_bits(191 << 23) };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, bias);
    let n = shifted - bias;
    let r = n.mul_add(1.9046542e-9, n.mul_add(-std::f32::consts::LN_2, x));
    let rest = polynomial(r, [0.5, 0.16666518, 0.041666202, 0.008368954, 0.0013950649]);
    let p = (r * r).mul_add(rest, r);
    (1.0 + p) * f32::from_bits(shifted.to_bits() << 23) * last
}

/// Natural logarithm.
#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    const HALF_ROOT: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    const ONE: u32 = 1f32.to_bits();
    let tiny = x < f32::MIN_POSITIVE;
    let bits = (if tiny { x * (1u32 << 25) as f32 } else { x }).to_bits();
    let exponent = bits.wrapping_add(ONE - HALF_ROOT) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(exponent << 23).wrapping_add(ONE)) - 1.0;
    let n = exponent as i32 as f32 - if tiny { 152.0 } else { 127.0 };
    let series = polynomial(
        f,
        [
            0.3333331,
            -0.24999987,
            0.20002227,
            -0.16669253,
            0.14218666,
            -0.123843305,
            0.11872912,
            -0.11789888,
            0.06915592,
        ],
    );
    let square = 0.5 * f * f;
    // The first part of ln 2 has 16 bits, so that its products are exact.
    let whole = n * 0.69314575;
    let hi = whole + f;
    let lost = (whole - hi) + f;
    let result = hi + (lost + (n.mul_add(1.4286068e-6, f * f * f * series) - square));
    let result = if x == 0.0 { f32::NEG_INFINITY } else { result };
    let positive = x >= 0.0;
    let result = if positive { result } else { f32::NAN };
    if x == f32::INFINITY { x } else { result }
}

/// Power of two, of a number that is small enough for doubles.
#[inline(always)]
fn exp2_short(x: f64) -> f64 {
    let x = at_least(at_most(x, 200.0), -200.0);
    let shifted = x + (SHIFT + 1023.0);
    let f = x - (shifted - (SHIFT + 1023.0));
    let p = polynomial(
        f,
        [
            0.6931472062522503,
            0.2402265134680908,
            0.05550327786422916,
            0.009618003717355461,
            0.0013400271130728837,
            0.00015476354968785706,
        ],
    );
    f.mul_add(p, 1.0) * power_of_two(shifted)
}

/// Power of two.
#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    exp2_short(x.into()) as f32
}

/// `exp(x) - 1` for `x` between -200 and 200.
#[inline(always)]
fn expm1_short(x: f64) -> f64 {
    let shifted = x.mul_add(LOG2_E, SHIFT + 1023.0);
    let n = shifted - (SHIFT + 1023.0);
    let r = n.mul_add(-LN_2, x);
    let rest = polynomial(
        r,
        [
            0.5000000046669397,
            0.1666666681807473,
            0.04166635352821695,
            0.008333272742095386,
            0.0013941102968394164,
            0.00019914363976715114,
        ],
    );
    let scale = power_of_two(shifted);
    scale.mul_add((r * r).mul_add(rest, r), scale - 1.0)
}

/// `exp(x) - 1` without cancellation.
#[inline(always)]
pub(super) fn expm1(x: f32) -> f32 {
    let near = at_least(at_most(x.into(), 100.0), -100.0);
    (expm1_short(near) as f32).copysign(x)
}

/// Hyperbolic sine.
#[inline(always)]
pub(super) fn sinh(x: f32) -> f32 {
    let grown = expm1_short(at_most(x.abs().into(), 100.0));
    ((0.5 * (grown + grown / (grown + 1.0))) as f32).copysign(x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub(super) fn cosh(x: f32) -> f32 {
    let grown = 1.0 + expm1_short(at_most(x.abs().into(), 100.0));
    (0.5 * (grown + 1.0 / grown)) as f32
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let grown = expm1_short(at_most(2.0 * f64::from(x.abs()), 40.0));
    ((grown / (grown + 2.0)) as f32).copysign(x)
}

/// Natural logarithm of a positive normal double, to 35 bits.
#[inline(always)]
fn log_short(x: f64) -> f64 {
    let (n, f) = split_normal(x);
    n.mul_add(LN_2, log1p_reduced(f))
}

/// `log(1 + f)` for a reduced number.
#[inline(always)]
fn log1p_reduced(f: f64) -> f64 {
    let series = polynomial(
        f,
        [
            -0.5,
            0.33333333979384416,
            -0.249999978930808,
            0.1999990276421137,
            -0.1666678422420415,
            0.14290409116084477,
            -0.12500381003859617,
            0.1101311938346535,
            -0.09898787544148341,
            0.099753568293173,
            -0.09976097715071998,
            0.05533453179645296,
        ],
    );
    (f * f).mul_add(series, f)
}

/// `log(1 + x)` for `x` between -1 and 2^1000.
#[inline(always)]
fn log1p_short(x: f64) -> f64 {
    let u = 1.0 + x;
    // What the sum lost matters only next to 1, where the slope is 1. For large numbers this difference is not what was lost.
    let lost = if x < 1.0 { x - (u - 1.0) } else { 0.0 };
    log_short(u) + lost
}

/// The logarithm of `x`, given what it is if `x` is positive and finite.
#[inline(always)]
fn log_special(x: f32, ordinary: f64) -> f32 {
    let result = if x == 0.0 { f32::NEG_INFINITY } else { ordinary as f32 };
    let positive = x >= 0.0;
    let result = if positive { result } else { f32::NAN };
    if x == f32::INFINITY { x } else { result }
}

/// Base-2 logarithm.
#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    let (n, f) = split_normal(x.into());
    log_special(x, log1p_reduced(f).mul_add(LOG2_E, n))
}

/// Base-10 logarithm.
#[inline(always)]
pub(super) fn log10(x: f32) -> f32 {
    log_special(x, log_short(x.into()) * LOG10_E)
}

/// `log(1 + x)` without cancellation.
#[inline(always)]
pub(super) fn log1p(x: f32) -> f32 {
    let result = log_special(1.0 + x, log1p_short(at_least(x.into(), -1.0)));
    if x == 0.0 { x } else { result }
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub(super) fn asinh(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let square = a * a;
    let result = log1p_short(at_most(a + square / (1.0 + (1.0 + square).sqrt()), 1e300)) as f32;
    let same = x.is_nan() | x.is_infinite();
    if same { x } else { result.copysign(x) }
}

/// Inverse hyperbolic cosine.
#[inline(always)]
pub(super) fn acosh(x: f32) -> f32 {
    let t = f64::from(x) - 1.0;
    let result = log1p_short(t + (t * (t + 2.0)).sqrt()) as f32;
    let inside = x >= 1.0;
    let result = if inside { result } else { f32::NAN };
    if x == f32::INFINITY { x } else { result }
}

/// Inverse hyperbolic tangent.
#[inline(always)]
pub(super) fn atanh(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let result = ((0.5 * log1p_short(2.0 * a / (1.0 - a))) as f32).copysign(x);
    let result = if x.abs() == 1.0 { f32::INFINITY.copysign(x) } else { result };
    let inside = x.abs() <= 1.0;
    if inside { result } else { f32::NAN }
}

/// Sine of a number between -pi / 2 and pi / 2.
#[inline(always)]
fn sine(r: f64) -> f64 {
    let z = r * r;
    let series = polynomial(
        z,
        [
            -0.16666666625949558,
            0.008333331099782503,
            -0.00019840867016890948,
            2.7525321415301206e-06,
            -2.3887770515857267e-08,
        ],
    );
    // A product, which keeps the sign of zero.
    r * z.mul_add(series, 1.0)
}

/// `x - n pi`.
#[inline(always)]
fn less_half_turns(x: f64, n: f64) -> f64 {
    n.mul_add(-2.0 * FRAC_PI_2[1], n.mul_add(-PI, x))
}

/// Sine of an angle that is near.
#[inline(always)]
pub(super) fn sin_near(x: f32) -> f32 {
    let x = f64::from(x);
    let shifted = x.mul_add(FRAC_1_PI, SHIFT);
    let size = sine(less_half_turns(x, shifted - SHIFT));
    f64::from_bits(size.to_bits() ^ shifted.to_bits() << 63) as f32
}

/// Cosine of an angle that is near.
#[inline(always)]
pub(super) fn cos_near(x: f32) -> f32 {
    let x = f64::from(x);
    // Half turns and a quarter.
    let shifted = x.mul_add(FRAC_1_PI, -0.5) + SHIFT;
    let size = sine(less_half_turns(x, (shifted - SHIFT) + 0.5));
    f64::from_bits(size.to_bits() ^ (!shifted.to_bits()) << 63) as f32
}

/// Tangent of an angle that is near.
#[inline(always)]
pub(super) fn tan_near(x: f32) -> f32 {
    let x = f64::from(x);
    let shifted = x.mul_add(FRAC_2_PI, SHIFT);
    let n = shifted - SHIFT;
    let r = n.mul_add(-FRAC_PI_2[1], n.mul_add(-FRAC_PI_2[0], x));
    let z = r * r;
    let series = polynomial(
        z,
        [
            -0.49999999999540645,
            0.04166666656125645,
            -0.0013888881032685968,
            2.47990310347508e-05,
            -2.717936082330917e-07,
        ],
    );
    let (sine, cosine) = (sine(r), z.mul_add(series, 1.0));
    let odd = shifted.to_bits() & 1 == 1;
    ((if odd { -cosine } else { sine }) / (if odd { sine } else { cosine })) as f32
}

macro_rules! whole_functions {
    ($($(#[$doc:meta])* $name:ident = $near:ident;)*) => {
        $($(#[$doc])*
        #[inline]
        pub(super) fn $name(x: f32) -> f32 {
            if circular::is_near(x.into()) { $near(x) } else { circular::$name(x.into()) as f32 }
        })*
    };
}
whole_functions! {
    /// Sine.
    sin = sin_near;
    /// Cosine.
    cos = cos_near;
    /// Tangent.
    tan = tan_near;
}

/// Power.
#[inline(always)]
pub(super) fn pow(x: f32, y: f32) -> f32 {
    let (x, y) = (f64::from(x), f64::from(y));
    let (n, f) = split_normal(x.abs());
    let log = super::logarithm::log1p_reduced(f).mul_add(LOG2_E, n);
    power::pow_special(x, y, exp2_short(log * y)) as f32
}
