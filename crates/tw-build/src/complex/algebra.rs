//! Roots, units, quotients and powers.

use super::exponential::exp;
use super::logarithm::{Base, log};
use super::real::{Pair, Real};

/// Magnitudes of parts above this may overflow, and below [`TINY`] have too few digits: they are scaled first, which is exact.
pub(super) const VAST: f64 = power_of_two(1000);
pub(super) const TINY: f64 = power_of_two(-500);
pub(super) const UP: f64 = power_of_two(512);
pub(super) const DOWN: f64 = power_of_two(-512);

/// Two to the power of a normal exponent.
pub(super) const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// One part is the root of half the sum of magnitude and size of the real part, the other follows by division: nothing cancels.
pub(super) fn sqrt(z: Pair<'_>) -> Pair<'_> {
    let extent = z.extent();
    let (vast, tiny) = (extent.exceeds(VAST), extent.is_below(TINY));
    // Just out of reach of overflow: scaled down further, a small part would underflow.
    let w = z.times(vast.pick(power_of_two(-8), tiny.pick(UP, 1.0)));
    let root = ((w.magnitude() + w.re.abs()) * 0.5).sqrt();
    let other = w.im / (root + root);
    let left = Pair { re: other.abs(), im: root.signed(w.im) };
    let found = w.re.is_at_least(0.0).choose(Pair { re: root, im: other }, left);
    let found = found.times(vast.pick(16.0, tiny.pick(power_of_two(-256), 1.0)));
    let found = extent.is_zero().choose(Pair { re: z.re.number(0.0), im: z.im }, found);
    let infinite = Pair { re: z.re.number(f64::INFINITY), im: z.im };
    z.im.is_infinite().choose(infinite, found)
}

/// The number of magnitude 1 in the same direction; NaN if that is not known.
pub(super) fn sign(z: Pair<'_>) -> Pair<'_> {
    let extent = z.extent();
    let w = z.times(extent.exceeds(VAST).pick(DOWN, extent.is_below(TINY).pick(UP, 1.0)));
    let magnitude = w.magnitude();
    let unit = Pair { re: w.re / magnitude, im: w.im / magnitude };
    let found = extent.is_zero().choose(z, unit);
    let one_infinite = z.is_infinite() & !(z.re.is_infinite() & z.im.is_infinite());
    one_infinite.choose(z.direction(), found)
}

/// Smith's rule: the larger part of the divisor divides the smaller one first. Both numbers are scaled before, so that no product on the way is out of
/// range unless the quotient is.
pub(super) fn quotient<'t>(a: Pair<'t>, b: Pair<'t>) -> Pair<'t> {
    // As C99 has it, infinite over finite is infinite and finite over infinite is zero, whatever the other parts are.
    let (grows, vanishes) = (a.is_infinite() & b.is_finite(), b.is_infinite() & a.is_finite());
    let (x, y) = (grows.choose(a.direction(), a), vanishes.choose(b.direction(), b));
    let (x_root, y_root) = (scale_root(x), scale_root(y));
    let (x, y) = (x.times(x_root * x_root), y.times(y_root * y_root));
    let real_larger = y.re.abs().is_at_least(y.im.abs());
    let (large, small) = (real_larger.pick(y.re, y.im), real_larger.pick(y.im, y.re));
    let ratio = small / large;
    let total = large + small * ratio;
    // Where the imaginary part is larger both numbers were turned, and the second component changes its sign.
    let (p, q) = (real_larger.pick(x.re, x.im), real_larger.pick(x.im, x.re));
    let (q_ratio, p_ratio) = (q * ratio, p * ratio);
    let (first, second) = (p + q_ratio, real_larger.pick(q - p_ratio, p_ratio - q));
    let back = y_root / x_root;
    let size = grows.pick(f64::INFINITY, vanishes.pick(0.0, 1.0));
    let usual = Pair { re: first / total, im: second / total }.times(back).times(back).times(size);
    // By zero.
    b.extent().is_zero().choose(Pair { re: a.re / b.re, im: a.im / b.re }, usual)
}

/// The quotient of singles: as doubles their products are exact and in range.
pub(super) fn quotient_of_singles<'t>(a: Pair<'t>, b: Pair<'t>) -> Pair<'t> {
    let (grows, vanishes) = (a.is_infinite() & b.is_finite(), b.is_infinite() & a.is_finite());
    let (x, y) = (grows.choose(a.direction(), a), vanishes.choose(b.direction(), b));
    let below = y.re * y.re + y.im * y.im;
    let size = grows.pick(f64::INFINITY, vanishes.pick(0.0, 1.0));
    let (re, im) = (x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im);
    let usual = Pair { re: re / below, im: im / below }.times(size);
    b.extent().is_zero().choose(Pair { re: a.re / b.re, im: a.im / b.re }, usual)
}

/// The square root of the factor that takes a number away from the ends of the range.
fn scale_root(z: Pair<'_>) -> Real<'_> {
    let extent = z.extent();
    let up = extent.is_below(power_of_two(-510)).pick(power_of_two(256), 1.0);
    extent.exceeds(power_of_two(510)).pick(power_of_two(-256), up)
}

/// `exp(b log a)`; anything to the power 0 is 1, and 0 to a positive power 0.
pub(super) fn power<'t>(a: Pair<'t>, b: Pair<'t>) -> Pair<'t> {
    let log = log(a, Base::E);
    // A real exponent takes no part in the products with its imaginary part, though the logarithm be infinite.
    let real = b.im.is_zero();
    let (turning, spiralling) = (real.pick(0.0, b.im * log.im), real.pick(0.0, b.im * log.re));
    let general = exp(Pair { re: b.re * log.re - turning, im: b.re * log.im + spiralling });
    let (zero, one, nan) = (a.re.number(0.0), a.re.number(1.0), a.re.number(f64::NAN));
    let at_origin = b.re.exceeds(0.0).choose(Pair { re: zero, im: zero }, Pair { re: nan, im: nan });
    let found = a.extent().is_zero().choose(at_origin, general);
    b.extent().is_zero().choose(Pair { re: one, im: zero }, found)
}
