//! Exponentials: a size that depends on the real part, times sine and cosine of the imaginary part.

use tw_ir::UnaryOp;

use super::real::{Pair, Real, Truth};

/// How far an exponent is moved down before its exponential is taken: a number with an exponential that is almost a double.
const STEP: f64 = 544.0;
/// `e^544`.
const STEP_EXP: f64 = 1.803840590747136e236;

/// An exponential in three factors. A sine may be small enough for a finite product where the exponential alone overflows.
struct Growth<'t> {
    first: Real<'t>,
    second: Real<'t>,
    rest: Real<'t>,
}

impl<'t> Growth<'t> {
    fn of(x: Real<'t>) -> Growth<'t> {
        let (once, twice) = (x.exceeds(STEP), x.exceeds(2.0 * STEP));
        // Both differences are exact as long as the result may be finite.
        let rest = x - once.pick(STEP, 0.0) - twice.pick(STEP, 0.0);
        let step = |is_taken: Truth<'t>| is_taken.pick(STEP_EXP, 1.0);
        Growth { first: step(once), second: step(twice), rest: rest.of(UnaryOp::Exp) }
    }
    /// Large factors come first, so that nothing underflows on the way, and none of them exceeds the result.
    fn times(&self, factor: Real<'t>) -> Real<'t> {
        factor * self.first * self.second * self.rest
    }
}

pub(super) fn exp(z: Pair<'_>) -> Pair<'_> {
    let (cos, sin) = (z.im.of(UnaryOp::Cos), z.im.of(UnaryOp::Sin));
    // Infinite size in no direction: infinity and NaN. No size in no direction: zero.
    let lost = z.re.is_infinite() & !z.im.is_finite();
    let cos = lost.pick(1.0, cos);
    let sin = (lost & z.re.is_below(0.0)).pick(z.re.number(0.0).signed(z.im), sin);
    let growth = Growth::of(z.re);
    // A real number stays real, however large its exponential.
    Pair { re: growth.times(cos), im: z.im.is_zero().pick(z.im, growth.times(sin)) }
}

/// `(expm1 x cos y - 2 sin^2 (y / 2), e^x sin y)`.
pub(super) fn expm1(z: Pair<'_>) -> Pair<'_> {
    let exp = exp(z);
    let half = (z.im * 0.5).of(UnaryOp::Sin);
    let near = z.re.of(UnaryOp::Expm1) * z.im.of(UnaryOp::Cos) - half * half * 2.0;
    Pair { re: z.re.abs().exceeds(1.0).pick(exp.re - 1.0, near), im: exp.im }
}

/// Hyperbolic sine and cosine over one common factor, which keeps them finite.
struct Hyperbolic<'t> {
    sinh: Real<'t>,
    cosh: Real<'t>,
    growth: Growth<'t>,
}

impl<'t> Hyperbolic<'t> {
    fn of(x: Real<'t>) -> Hyperbolic<'t> {
        let size = x.abs();
        let (far, mut growth) = (size.exceeds(STEP), Growth::of(size));
        growth.first = far.pick(0.5 * STEP_EXP, 1.0);
        Hyperbolic {
            sinh: far.pick(growth.rest.signed(x), x.of(UnaryOp::Sinh)),
            cosh: far.pick(growth.rest, x.of(UnaryOp::Cosh)),
            growth,
        }
    }
    fn product(&self, function: Real<'t>, factor: Real<'t>) -> Real<'t> {
        factor * self.growth.first * self.growth.second * function
    }
}

/// `(sinh x cos y, cosh x sin y)`.
pub(super) fn sinh(z: Pair<'_>) -> Pair<'_> {
    let (cos, sin) = (z.im.of(UnaryOp::Cos), z.im.of(UnaryOp::Sin));
    let hyperbolic = Hyperbolic::of(z.re);
    // Zeros and infinities need no angle.
    let cos = ((z.re.is_zero() | z.re.is_infinite()) & !z.im.is_finite()).pick(1.0, cos);
    let im = hyperbolic.product(hyperbolic.cosh, sin);
    Pair { re: hyperbolic.product(hyperbolic.sinh, cos), im: z.im.is_zero().pick(z.im, im) }
}

/// `(cosh x cos y, sinh x sin y)`.
pub(super) fn cosh(z: Pair<'_>) -> Pair<'_> {
    let (cos, sin) = (z.im.of(UnaryOp::Cos), z.im.of(UnaryOp::Sin));
    let hyperbolic = Hyperbolic::of(z.re);
    let cos = (z.re.is_infinite() & !z.im.is_finite()).pick(1.0, cos);
    let sin = (z.re.is_zero() & !z.im.is_finite()).pick(1.0, sin);
    let im = hyperbolic.product(hyperbolic.sinh, sin);
    let unit = z.re.number(1.0).signed(z.re);
    Pair { re: hyperbolic.product(hyperbolic.cosh, cos), im: z.im.is_zero().pick(z.im * unit, im) }
}

/// `(sinh x cosh x, sin y cos y) / (sinh^2 x + cos^2 y)`: sums of positive numbers alone, so both parts are accurate next to poles too.
pub(super) fn tanh(z: Pair<'_>) -> Pair<'_> {
    let (sinh, cosh) = (z.re.of(UnaryOp::Sinh), z.re.of(UnaryOp::Cosh));
    let (cos, sin) = (z.im.of(UnaryOp::Cos), z.im.of(UnaryOp::Sin));
    let (wave, below) = (sin * cos, sinh * sinh + cos * cos);
    let near = Pair { re: sinh * cosh / below, im: wave / below };
    // Far out the tangent is 1 up to rounding, and squares would overflow.
    let size = z.re.abs();
    let decay = (size * -2.0).of(UnaryOp::Exp) * 4.0;
    let lost = z.re.is_infinite() & !z.im.is_finite();
    let one = z.re.number(1.0).signed(z.re);
    // An imaginary part without a value leaves neither part one, unless the real part is infinite.
    let re = z.re.is_infinite().pick(one, one + wave * 0.0);
    let limit = Pair { re, im: lost.pick(z.re.number(0.0).signed(z.im), wave * decay) };
    let found = size.exceeds(20.0).choose(limit, near);
    Pair { re: z.re.is_zero().pick(z.re, found.re), im: z.im.is_zero().pick(z.im, found.im) }
}
