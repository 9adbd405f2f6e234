//! Exponentials and hyperbolic functions of doubles.

use std::f64::consts::{LN_2, LOG2_E};

use super::pair::{Pair, polynomial};
use super::{SHIFT, SMALL, TINY, at_least, at_most};

/// What [`LN_2`] leaves of the logarithm of two.
const LN_2_REST: f64 = 2.3190468138462996e-17;

/// `(e^r - 1 - r) / r^2` for half the logarithm of two on both sides of zero.
#[inline(always)]
pub(super) fn exp_rest(r: f64) -> f64 {
    polynomial(
        r,
        [
            0.5,
            0.16666666666666685,
            0.04166666666666673,
            0.00833333333331662,
            0.0013888888888858287,
            0.0001984126989735992,
            2.480158737401126e-05,
            2.7557233931232947e-06,
            2.7557233151104744e-07,
            2.5112347919589596e-08,
            2.0927002289566424e-09,
        ],
    )
}

/// `2^k` from `SHIFT + 1023 + k`, which has `1023 + k` in its last bits.
#[inline(always)]
pub(super) fn power_of_two(shifted: f64) -> f64 {
    f64::from_bits(shifted.to_bits() << 52)
}

/// Multiplication by `2^n` in two steps, so that results at both ends of the range are rounded once.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    bias: f64,
    last: f64,
}

impl Scale {
    /// For exponents of one sign.
    #[inline(always)]
    pub(super) fn towards(negative: bool) -> Scale {
        Scale {
            bias: if negative { SHIFT + 1279.0 } else { SHIFT + 767.0 },
            last: if negative { f64::from_bits(767 << 52) } else { f64::from_bits(1279 << 52) },
        }
    }

    /// Rounds `x * factor` to a whole number; gives it, and the number to hand to [`Scale::apply`].
    #[inline(always)]
    pub(super) fn round(self, x: f64, factor: f64) -> (f64, f64) {
        let shifted = x.mul_add(factor, self.bias);
        (shifted - self.bias, shifted)
    }

    /// Multiplies by two to the rounded number.
    #[inline(always)]
    pub(super) fn apply(self, y: f64, shifted: f64) -> f64 {
        y * power_of_two(shifted) * self.last
    }
}

/// Exponential.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // Far enough for infinity and zero, near enough for the exponents; NaN passes.
    let x = at_least(at_most(x, 760.0), -760.0);
    let scale = Scale::towards(x < 0.0);
    let (n, shifted) = scale.round(x, LOG2_E);
    // The first product and difference are exact: both numbers are multiples of 2^-53, and the result is below 1/2.
    let r = n.mul_add(-LN_2_REST, n.mul_add(-LN_2, x));
    let p = (r * r).mul_add(exp_rest(r), r);
    scale.apply(1.0 + p, shifted)
}

/// The exponential of a sum, whose first part is between -1200 and 1200.
#[inline(always)]
pub(super) fn exp_of_pair(x: Pair) -> f64 {
    let hi = at_least(at_most(x.hi, 760.0), -760.0);
    let scale = Scale::towards(hi < 0.0);
    let (n, shifted) = scale.round(hi, LOG2_E);
    let r = Pair::sum_ordered(n.mul_add(-LN_2, hi), n.mul_add(-LN_2_REST, x.lo));
    let y = Pair::sum_ordered(1.0, r.hi);
    scale.apply(y.plus_small((r.hi * r.hi).mul_add(exp_rest(r.hi), r.lo)).value(), shifted)
}

/// Power of two.
#[inline(always)]
pub(super) fn exp2(x: f64) -> f64 {
    let x = at_least(at_most(x, 1100.0), -1100.0);
    let scale = Scale::towards(x < 0.0);
    let (n, shifted) = scale.round(x, 1.0);
    let f = x - n;
    // (2^f - 1 - f ln 2) / f^2.
    let rest = polynomial(
        f,
        [
            0.24022650695910072,
            0.0555041086648217,
            0.009618129107628494,
            0.0013333558146390475,
            0.00015403530393341436,
            1.5252733856198915e-05,
            1.3215486832825967e-06,
            1.0178051226758278e-07,
            7.0548883241908235e-09,
            4.4566708264021415e-10,
            2.5741720441744918e-11,
        ],
    );
    scale.apply(1.0 + f.mul_add(LN_2, f * f * rest), shifted)
}

/// `x = n ln 2 + r`: `n`, the sum of `n` and the bias, and `r`.
#[inline(always)]
fn reduce(x: f64, bias: f64) -> (f64, f64, Pair) {
    let shifted = x.mul_add(LOG2_E, bias);
    let n = shifted - bias;
    let first = n.mul_add(-LN_2, x);
    (n, shifted, Pair::sum_ordered(first, -(n * LN_2_REST)))
}

/// `(e^x - 1) / 2` between -60 and 710. Half of it, so that nothing overflows on the way.
#[inline(always)]
fn half_expm1(x: f64) -> Pair {
    let (_, shifted, r) = reduce(x, SHIFT + 1022.0);
    let scale = power_of_two(shifted);
    let rest = (r.hi * r.hi).mul_add(exp_rest(r.hi), r.lo);
    // scale * (1 + r + rest) - 1/2, leading terms first.
    Pair::sum_ordered(scale - 0.5, scale * r.hi).plus_small(scale * rest)
}

/// `exp(x) - 1` without cancellation.
#[inline(always)]
pub(super) fn expm1(x: f64) -> f64 {
    let half = half_expm1(at_least(at_most(x, 710.0), -60.0));
    if x.abs() < TINY { x } else { half.value() * 2.0 }
}

/// Hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    // h / (1 + h) for h = (e^(2 |x|) - 1) / 2.
    let half = half_expm1(at_most(x.abs(), 22.0) * 2.0).normal();
    let result = half.over(Pair::sum(1.0, half.hi).plus_small(half.lo)).value();
    if x.abs() < SMALL { x } else { result.copysign(x) }
}

/// The parts of hyperbolic sine and cosine of `x = n ln 2 + r`, between 0 and 711.
struct Hyperbolic {
    /// `(2^n - 2^-n) / 8`.
    difference: Pair,
    /// `(2^n + 2^-n) / 8`.
    sum: Pair,
    r: f64,
    /// `sinh(r) - r`.
    sinh_rest: f64,
    /// `cosh(r) - 1`.
    cosh_rest: f64,
}

#[inline(always)]
fn hyperbolic(x: f64) -> Hyperbolic {
    let (n, shifted, r) = reduce(x, SHIFT + 1020.0);
    let growing = power_of_two(shifted);
    // Where the limit acts, this part has long been too small to count.
    let vanishing = power_of_two(SHIFT + 1020.0 - at_most(n, 1000.0));
    let z = r.hi * r.hi;
    let sinh = polynomial(
        z,
        [
            0.16666666666666666,
            0.008333333333333337,
            0.00019841269841253088,
            2.7557319265412694e-06,
            2.5052056603443503e-08,
            1.6090877678644004e-10,
        ],
    );
    let cosh = polynomial(
        z,
        [
            0.5,
            0.04166666666666671,
            0.0013888888888863751,
            2.4801587363739408e-05,
            2.755724153784831e-07,
            2.0924513779234463e-09,
        ],
    );
    Hyperbolic {
        difference: Pair::sum_ordered(growing, -vanishing),
        sum: Pair::sum_ordered(growing, vanishing),
        r: r.hi,
        sinh_rest: (r.hi * z).mul_add(sinh, r.lo),
        cosh_rest: z.mul_add(cosh, r.hi * r.lo),
    }
}

/// Hyperbolic sine.
#[inline(always)]
pub(super) fn sinh(x: f64) -> f64 {
    let h = hyperbolic(at_most(x.abs(), 711.0));
    let hi = h.sum.hi.mul_add(h.r, h.difference.hi);
    let lo = h.sum.hi.mul_add(h.r, h.difference.hi - hi) + h.difference.lo;
    let rest = h.sum.hi.mul_add(h.sinh_rest, h.difference.hi.mul_add(h.cosh_rest, lo));
    if x.abs() < SMALL { x } else { ((hi + rest) * 4.0).copysign(x) }
}

/// Hyperbolic cosine.
#[inline(always)]
pub(super) fn cosh(x: f64) -> f64 {
    let h = hyperbolic(at_most(x.abs(), 711.0));
    let hi = h.difference.hi.mul_add(h.r, h.sum.hi);
    let lo = h.difference.hi.mul_add(h.r, h.sum.hi - hi) + h.sum.lo;
    let rest = h.difference.hi.mul_add(h.sinh_rest, h.sum.hi.mul_add(h.cosh_rest, lo));
    (hi + rest) * 4.0
}
