//! Sine, cosine and tangent of doubles.
//!
//! Angles up to [`NEAR`] are straight lines of arithmetic, which loops turn into vector instructions. Larger ones, which are rare, go through
//! [`super::angle::reduce_far`] one by one. From there on both take the same way.

use std::f64::consts::FRAC_2_PI;

use super::SHIFT;
use super::angle::{FRAC_PI_2, reduce_far};
use super::pair::{Pair, polynomial};

/// Angles up to this are reduced by three parts of pi / 2; the error of the quotient would otherwise begin to show.
pub(super) const NEAR: f64 = (1u64 << 30) as f64;

/// The distance of an angle from the nearest multiple of pi / 2, and that multiple in the last two bits.
#[derive(Clone, Copy)]
pub(super) struct Reduced {
    pub(super) r: Pair,
    pub(super) quarter: u64,
}

#[inline(always)]
fn reduce_near(x: f64) -> Reduced {
    let shifted = x.mul_add(FRAC_2_PI, SHIFT);
    let n = shifted - SHIFT;
    // Exact: a multiple of 2^-53 below 1.
    let first = n.mul_add(-FRAC_PI_2[0], x);
    let second = Pair::product(n, FRAC_PI_2[1]);
    // Exact even if the second is larger: then the first is a multiple of 2^-53 and all three have bits in common.
    let r = Pair::sum_ordered(first, -second.hi);
    Reduced { r: r.plus_small(n.mul_add(-FRAC_PI_2[2], -second.lo)), quarter: shifted.to_bits() }
}

impl Reduced {
    /// Sine of the distance.
    #[inline(always)]
    fn sine(self) -> Pair {
        let y = self.r.hi;
        let z = y * y;
        let series = polynomial(
            z,
            [
                -0.16666666666666632,
                0.008333333333322316,
                -0.0001984126982972546,
                2.755731366210677e-06,
                -2.505075326937094e-08,
                1.5896505150489048e-10,
            ],
        );
        // The low part should be multiplied by the cosine; that would change the result by a seventh of a unit at most.
        Pair { hi: y, lo: (y * z).mul_add(series, self.r.lo) }
    }

    /// Cosine of the distance.
    #[inline(always)]
    fn cosine(self) -> Pair {
        let y = self.r.hi;
        let z = y * y;
        let series = polynomial(
            z,
            [
                0.04166666666666665,
                -0.0013888888888882785,
                2.480158729457783e-05,
                -2.7557315719792157e-07,
                2.0875894650411363e-09,
                -1.1367797640996666e-11,
            ],
        );
        let hi = (-0.5f64).mul_add(z, 1.0);
        let lost = (-0.5f64).mul_add(z, 1.0 - hi);
        Pair { hi, lo: (z * z).mul_add(series, y.mul_add(-self.r.lo, lost)) }
    }

    /// Sine of the angle that is `quarters` quarter turns further.
    #[inline(always)]
    fn sine_after(self, quarters: u64) -> f64 {
        let quarter = self.quarter.wrapping_add(quarters);
        let (sine, cosine) = (self.sine().value(), self.cosine().value());
        let size = if quarter & 1 == 0 { sine } else { cosine };
        f64::from_bits(size.to_bits() ^ (quarter & 2) << 62)
    }

    #[inline(always)]
    fn tangent(self) -> f64 {
        let (sine, cosine) = (self.sine().normal(), self.cosine().normal());
        let odd = self.quarter & 1 == 1;
        let quotient = (if odd { cosine } else { sine }).over(if odd { sine } else { cosine }).value();
        f64::from_bits(quotient.to_bits() ^ (self.quarter & 1) << 63)
    }
}

/// True for angles that need no special care, and for NaN.
#[inline(always)]
pub(super) fn is_near(x: f64) -> bool {
    !is_far(x)
}

#[inline(always)]
fn is_far(x: f64) -> bool {
    x.abs() > NEAR
}

/// Sine of an angle that is near.
#[inline(always)]
pub(super) fn sin_near(x: f64) -> f64 {
    let result = reduce_near(x).sine_after(0);
    if x == 0.0 { x } else { result }
}

/// Cosine of an angle that is near.
#[inline(always)]
pub(super) fn cos_near(x: f64) -> f64 {
    reduce_near(x).sine_after(1)
}

/// Tangent of an angle that is near.
#[inline(always)]
pub(super) fn tan_near(x: f64) -> f64 {
    let result = reduce_near(x).tangent();
    if x == 0.0 { x } else { result }
}

macro_rules! whole_functions {
    ($($(#[$doc:meta])* $name:ident = $near:ident, $far:ident, $of:expr;)*) => {
        $($(#[$doc])*
        #[inline]
        pub(super) fn $name(x: f64) -> f64 {
            if is_far(x) { $far(x) } else { $near(x) }
        }

        #[cold]
        fn $far(x: f64) -> f64 {
            let of: fn(Reduced) -> f64 = $of;
            reduce_far(x).map_or(f64::NAN, of)
        })*
    };
}
whole_functions! {
    /// Sine.
    sin = sin_near, sin_far, |reduced| reduced.sine_after(0);
    /// Cosine.
    cos = cos_near, cos_far, |reduced| reduced.sine_after(1);
    /// Tangent.
    tan = tan_near, tan_far, Reduced::tangent;
}
