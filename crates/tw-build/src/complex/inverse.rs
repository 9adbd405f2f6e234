//! Inverse circular and hyperbolic functions, after Kahan ("Branch cuts for complex elementary functions").
//!
//! Both terms of every sum have one sign, so nothing cancels and each part is accurate by itself.

use std::f64::consts::{FRAC_PI_2, LN_2};

use tw_ir::UnaryOp;

use super::algebra::{DOWN, VAST, power_of_two, sqrt};
use super::real::{Pair, Real};

/// What arc sine and arc cosine are made of.
struct Arc<'t> {
    /// The argument, smaller if it was so large that only its direction counts.
    w: Pair<'t>,
    /// `sqrt(1 - w)`.
    minus: Pair<'t>,
    /// `sqrt(1 + w)`.
    plus: Pair<'t>,
    /// The imaginary part of the arc sine.
    height: Real<'t>,
}

impl<'t> Arc<'t> {
    fn of(z: Pair<'t>) -> Arc<'t> {
        let vast = z.extent().exceeds(VAST);
        let w = z.times(vast.pick(power_of_two(-64), 1.0));
        let minus = sqrt(Pair { re: -w.re + 1.0, im: -w.im });
        let plus = sqrt(Pair { re: w.re + 1.0, im: w.im });
        let product = minus.re * plus.im - minus.im * plus.re;
        let height = product.of(UnaryOp::Asinh) + vast.pick(64.0 * LN_2, 0.0).signed(z.im);
        let infinite = z.re.number(f64::INFINITY).signed(z.im);
        Arc { w, minus, plus, height: z.is_infinite().pick(infinite, height) }
    }
}

pub(super) fn asin(z: Pair<'_>) -> Pair<'_> {
    let Arc { w, minus, plus, height } = Arc::of(z);
    let found = w.re.atan2(minus.re * plus.re - minus.im * plus.im);
    let found = z.is_infinite().pick(z.re.atan2(z.im.abs()), found);
    Pair { re: z.re.is_zero().pick(z.re, found), im: height }
}

pub(super) fn acos(z: Pair<'_>) -> Pair<'_> {
    let Arc { minus, plus, height, .. } = Arc::of(z);
    let found = minus.re.atan2(plus.re) * 2.0;
    let found = z.is_infinite().pick(z.im.abs().atan2(z.re), found);
    Pair { re: z.re.is_zero().pick(FRAC_PI_2, found), im: -height }
}

/// The arc cosine, turned to where its real part is positive.
pub(super) fn acosh(z: Pair<'_>) -> Pair<'_> {
    let found = acos(z);
    Pair { re: found.im.abs(), im: found.re.signed(z.im) }
}

/// Half the logarithm of `(1 + z) / (1 - z)`.
pub(super) fn atanh(z: Pair<'_>) -> Pair<'_> {
    // The distance from 1 may be too large for a number.
    let scale = z.extent().exceeds(VAST).pick(DOWN, 1.0);
    let size = z.re.abs();
    let distance = ((-size + 1.0) * scale).hypot(z.im * scale);
    let usual = (size * scale / distance * 4.0 / distance * scale).of(UnaryOp::Log1p) * 0.25;
    // So near to 1 that the square of the distance underflows; the distance to -1 is 2.
    let near = (-distance.of(UnaryOp::Log) + LN_2) * 0.5;
    let found = distance.is_below(power_of_two(-400)).pick(near, usual);
    let found = (z.re.is_zero() | z.is_infinite()).pick(0.0, found);
    let angle = (z.im.atan2(-z.re + 1.0) + z.im.atan2(z.re + 1.0)) * 0.5;
    let upright = z.re.number(FRAC_PI_2).signed(z.im);
    Pair { re: found.signed(z.re), im: z.im.is_infinite().pick(upright, angle) }
}
