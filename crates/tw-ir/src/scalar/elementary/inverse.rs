//! Inverse circular functions of doubles.

use super::angle::FRAC_PI_2;
use super::pair::{Pair, polynomial};
use super::{SMALL, at_most};

/// `turn` eighths of a turn plus or minus a small angle, whose leading part is given first.
#[inline(always)]
fn from_eighths(turn: f64, angle: Pair) -> f64 {
    let offset = Pair::product(turn, 0.5 * FRAC_PI_2[0]);
    let sum = Pair::sum_ordered(offset.hi, angle.hi);
    sum.plus_small(turn.mul_add(0.5 * FRAC_PI_2[1], offset.lo) + angle.lo).value()
}

/// The angle of a point with `0 <= y` and `0 <= x`, not both zero and not extreme, in the first quadrant; or, if `left`, mirrored to the second.
#[inline(always)]
fn angle(y: f64, x: f64, left: bool) -> f64 {
    let steep = y > x;
    let (small, large) = if steep { (x, y) } else { (y, x) };
    // Near the diagonal, the angle from there: tan(a - pi/4) = (y - x) / (y + x).
    let diagonal = small > large * 0.4142135623730951;
    let over = Pair::sum_ordered(large, small);
    let under = Pair::sum_ordered(-large, small);
    let numerator = if diagonal { under } else { Pair { hi: small, lo: 0.0 } };
    let denominator = if diagonal { over } else { Pair { hi: large, lo: 0.0 } };
    let t = numerator.over(denominator);
    let z = t.hi * t.hi;
    let series = polynomial(
        z,
        [
            -0.3333333333333333,
            0.19999999999999885,
            -0.1428571428569537,
            0.11111111109560448,
            -0.09090909015817385,
            0.07692305350594177,
            -0.06666617183110499,
            0.058816230591609266,
            -0.05255533731646653,
            0.04705417033530905,
            -0.04054384157547617,
            0.029595488081987135,
            -0.0129645297945782,
        ],
    );
    // The slope at t is 1 / (1 + z).
    let rest = (t.hi * z).mul_add(series, t.lo.mul_add(-z, t.lo));
    let turn = if diagonal { 1.0 } else { 0.0 };
    // Each mirror keeps the angle's size and turns its direction.
    let turn = if steep { 2.0 - turn } else { turn };
    let turn = if left { 4.0 - turn } else { turn };
    let sign = if steep != left { -1.0 } else { 1.0 };
    from_eighths(turn, Pair { hi: sign * t.hi, lo: sign * rest })
}

/// Arc tangent.
#[inline(always)]
pub(super) fn atan(x: f64) -> f64 {
    // Far enough for pi / 2, near enough for the reciprocal.
    let result = angle(at_most(x.abs(), 1e300), 1.0, false).copysign(x);
    let same = x.abs() < SMALL;
    if same { x } else { result }
}

/// Angle of the point (x, y).
#[inline(always)]
pub(super) fn atan2(y: f64, x: f64) -> f64 {
    let (height, width) = (y.abs(), x.abs());
    let large = if height > width { height } else { width };
    // Infinities and zeros as points of the same direction.
    let infinite = large == f64::INFINITY;
    let height = if infinite { if height == large { 1.0 } else { 0.0 } } else { height };
    let width = if infinite { if width == large { 1.0 } else { 0.0 } } else { width };
    let width = if large == 0.0 { 1.0 } else { width };
    // Away from the ends of the range, so that sums do not overflow and rests do not vanish.
    let scale = if large > 1e300 { f64::from_bits((1023 - 60) << 52) } else { 1.0 };
    let scale = if large < 1e-270 { f64::from_bits((1023 + 200) << 52) } else { scale };
    let result = angle(height * scale, width * scale, x.is_sign_negative());
    let ratio = height / width;
    let flat = x.is_sign_positive() && ratio < SMALL;
    let result = if flat { ratio } else { result };
    let unknown = x.is_nan() || y.is_nan();
    if unknown { f64::NAN } else { result.copysign(y) }
}

/// The parts of an arc sine: of the size itself, or above 1/2 of the root that belongs to the distance from a quarter turn.
struct ArcParts {
    steep: bool,
    /// The size or the root, `s`.
    hi: f64,
    /// `asin(s) - s`, and what the root lost.
    lo: f64,
}

#[inline(always)]
fn arc_parts(size: f64) -> ArcParts {
    let steep = size > 0.5;
    let z = if steep { (1.0 - size) * 0.5 } else { size * size };
    let root = Pair { hi: z, lo: 0.0 }.sqrt();
    let s = if steep { root } else { Pair { hi: size, lo: 0.0 } };
    let series = polynomial(
        z,
        [
            0.16666666666666763,
            0.07499999999970089,
            0.04464285717529326,
            0.030381942674984185,
            0.02237221591313743,
            0.017351595386141516,
            0.013981019741881534,
            0.011397284270190025,
            0.010789365271062902,
            0.0036720343086412946,
            0.021790982041282374,
            -0.021117155713830695,
            0.032702415407953246,
        ],
    );
    ArcParts { steep, hi: s.hi, lo: (s.hi * z).mul_add(series, s.lo) }
}

/// Arc sine.
#[inline(always)]
pub(super) fn asin(x: f64) -> f64 {
    let parts = arc_parts(x.abs());
    let from_quarter = from_eighths(2.0, Pair { hi: -2.0 * parts.hi, lo: -2.0 * parts.lo });
    let size = if parts.steep { from_quarter } else { parts.hi + parts.lo };
    size.copysign(x)
}

/// Arc cosine.
#[inline(always)]
pub(super) fn acos(x: f64) -> f64 {
    let parts = arc_parts(x.abs());
    let negative = x < 0.0;
    // 2 asin(s), pi - 2 asin(s), or pi / 2 - asin(x).
    let turn = if parts.steep { if negative { 4.0 } else { 0.0 } } else { 2.0 };
    let factor = if parts.steep { 2.0 } else { 1.0 };
    let factor = if parts.steep == negative { -factor } else { factor };
    from_eighths(turn, Pair { hi: factor * parts.hi, lo: factor * parts.lo })
}
