//! Logarithms: that of the magnitude, and the angle.

use std::f64::consts::{LN_2, LOG2_E, LOG10_2, LOG10_E};

use tw_ir::UnaryOp;

use super::algebra::{DOWN, TINY, UP, VAST};
use super::real::{Pair, Real};

/// What a logarithm is taken to.
#[derive(Clone, Copy)]
pub(super) enum Base {
    E,
    Two,
    Ten,
}

impl Base {
    /// The function of real numbers, one over the natural logarithm of the base, and the logarithm of 2.
    fn parts(self) -> (UnaryOp, f64, f64) {
        match self {
            Base::E => (UnaryOp::Log, 1.0, LN_2),
            Base::Two => (UnaryOp::Log2, LOG2_E, 1.0),
            Base::Ten => (UnaryOp::Log10, LOG10_E, LOG10_2),
        }
    }
}

pub(super) fn log(z: Pair<'_>, base: Base) -> Pair<'_> {
    let (re, im) = (z.re.abs(), z.im.abs());
    // The larger part is near 1 where the magnitude is, so the difference is exact.
    with_excess(z, excess(re.max(im) - 1.0, re.min(im)), base)
}

pub(super) fn log1p(z: Pair<'_>) -> Pair<'_> {
    with_excess(Pair { re: z.re + 1.0, im: z.im }, excess(z.re, z.im), Base::E)
}

/// The logarithm of a number, of which `excess` is the squared magnitude minus 1 if that is small.
fn with_excess<'t>(z: Pair<'t>, excess: Real<'t>, base: Base) -> Pair<'t> {
    let (function, per_e, of_two) = base.parts();
    // The magnitude itself may be too large, or too small to have all its digits.
    let extent = z.extent();
    let (vast, tiny) = (extent.exceeds(VAST), extent.is_below(TINY));
    let scaled = z.times(vast.pick(DOWN, tiny.pick(UP, 1.0)));
    let far = scaled.magnitude().of(function) + vast.pick(512.0 * of_two, tiny.pick(-512.0 * of_two, 0.0));
    let near = excess.of(UnaryOp::Log1p) * (0.5 * per_e);
    let is_near = excess.is_at_least(-0.5) & !excess.exceeds(1.0);
    let angle = z.im.atan2(z.re);
    let angle = if per_e == 1.0 { angle } else { angle * per_e };
    Pair { re: is_near.pick(near, far), im: angle }
}

/// `|1 + w + n i|^2 - 1 = 2 w + w^2 + n^2`, where these cancel to twice the usual precision.
fn excess<'t>(w: Real<'t>, n: Real<'t>) -> Real<'t> {
    let ((w_square, w_error), (n_square, n_error)) = (square(w), square(n));
    let (sum, sum_error) = sum(w + w, w_square);
    let (total, total_error) = self::sum(sum, n_square);
    total + (sum_error + total_error + w_error + n_error)
}

/// A square and what rounding took from it. There is no fused product in scalar code, so factors are halved as Veltkamp and Dekker do.
fn square<'t>(x: Real<'t>) -> (Real<'t>, Real<'t>) {
    let wide = x * 134_217_729.0;
    let high = wide - (wide - x);
    let low = x - high;
    let square = x * x;
    (square, high * high - square + high * low * 2.0 + low * low)
}

/// A sum and what rounding took from it, after Knuth.
fn sum<'t>(a: Real<'t>, b: Real<'t>) -> (Real<'t>, Real<'t>) {
    let sum = a + b;
    let b_seen = sum - a;
    (sum, (a - (sum - b_seen)) + (b - b_seen))
}
