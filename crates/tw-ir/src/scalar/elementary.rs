//! Elementary functions: exponentials, logarithms, circular and hyperbolic functions, powers and roots.
//!
//! They are our own for two reasons. Those of the system differ between machines in the last bits, and results must not. And they are calls, one
//! element at a time; these are straight lines of arithmetic without branches or tables, which the compiler turns into vector instructions wherever
//! a loop applies them. The oracle and all kernels call them, so they agree in every bit.
//!
//! Results are within 1.5 units in the last place for all arguments, most within 1; `docs/accuracy.md` lists what was measured. Special values are
//! those of IEEE 754 and C99. Products and sums are fused where `mul_add` says so and nowhere else, so that bits do not depend on the machine: without
//! the instruction it is computed by the library, exactly but slowly.
//!
//! Polynomials are minimax approximations on the reduced range, found with Remez' exchange in 200 bits; their error is below 0.05 units. Where more
//! than the rounding of the last operation would show, numbers are pairs (`pair.rs`).

mod angle;
mod circular;
mod exponential;
mod inverse;
mod logarithm;
mod pair;
mod power;
mod single;

/// Adding it to a number below 2^51 rounds that to a whole one, which is then in the last bits of the sum.
const SHIFT: f64 = (3u64 << 51) as f64;

/// Below this, functions that begin with `x + O(x^2)` are the identity; saying so keeps the sign of zero.
const TINY: f64 = 1.0 / (1u64 << 60) as f64;

/// Below this, functions that begin with `x + O(x^3)` are the identity.
const SMALL: f64 = 1.0 / (1u64 << 30) as f64;

/// The smaller one; a NaN stays.
#[inline(always)]
fn at_most(x: f64, limit: f64) -> f64 {
    if x > limit { limit } else { x }
}

/// The larger one; a NaN stays.
#[inline(always)]
fn at_least(x: f64, limit: f64) -> f64 {
    if x < limit { limit } else { x }
}

/// The next number after the first towards the second, in bits: one up or down, and from zero to the smallest of either sign.
macro_rules! nextafter {
    ($x:expr, $towards:expr) => {{
        let (x, towards) = ($x, $towards);
        let next = if x < towards { x.next_up() } else { x.next_down() };
        let next = if x == towards { towards } else { next };
        if x.is_nan() | towards.is_nan() { x + towards } else { next }
    }};
}

/// The elementary functions of a float type.
///
/// Call them by path, `Elementary::exp(x)`: a method call would find the function of the standard library first.
pub trait Elementary: Copy {
    /// Exponential.
    fn exp(self) -> Self;
    /// Power of two.
    fn exp2(self) -> Self;
    /// `exp(x) - 1` without cancellation.
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// `log(1 + x)` without cancellation.
    fn log1p(self) -> Self;
    /// Base-2 logarithm.
    fn log2(self) -> Self;
    /// Base-10 logarithm.
    fn log10(self) -> Self;
    /// True if [`Elementary::sin_near`] and its like may be used.
    fn is_near(self) -> bool;
    /// Sine of an angle that is not too large.
    fn sin_near(self) -> Self;
    /// Cosine of an angle that is not too large.
    fn cos_near(self) -> Self;
    /// Tangent of an angle that is not too large.
    fn tan_near(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Tangent.
    fn tan(self) -> Self;
    /// Arc sine.
    fn asin(self) -> Self;
    /// Arc cosine.
    fn acos(self) -> Self;
    /// Arc tangent.
    fn atan(self) -> Self;
    /// Angle of the point `(x, self)`.
    fn atan2(self, x: Self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// Power.
    fn pow(self, exponent: Self) -> Self;
    /// Cube root.
    fn cbrt(self) -> Self;
    /// `sqrt(x^2 + y^2)` without overflow on the way.
    fn hypot(self, other: Self) -> Self;
    /// The next number towards another.
    fn nextafter(self, towards: Self) -> Self;
}

macro_rules! delegate {
    ($float:ident, $($module:ident::{$($name:ident),*};)*) => {
        $($(#[inline(always)]
        fn $name(self) -> $float {
            $module::$name(self)
        })*)*
    };
}

impl Elementary for f64 {
    delegate! { f64,
        exponential::{exp, exp2, expm1, sinh, cosh, tanh};
        logarithm::{log, log1p, log2, log10, asinh, acosh, atanh};
        circular::{sin_near, cos_near, tan_near, sin, cos, tan};
        inverse::{asin, acos, atan};
        power::{cbrt};
    }
    #[inline(always)]
    fn is_near(self) -> bool {
        circular::is_near(self)
    }
    #[inline(always)]
    fn atan2(self, x: f64) -> f64 {
        inverse::atan2(self, x)
    }
    #[inline(always)]
    fn pow(self, exponent: f64) -> f64 {
        power::pow(self, exponent)
    }
    #[inline(always)]
    fn hypot(self, other: f64) -> f64 {
        power::hypot(self, other)
    }
    #[inline(always)]
    fn nextafter(self, towards: f64) -> f64 {
        nextafter!(self, towards)
    }
}

macro_rules! through_double {
    ($($name:ident)*) => {
        $(#[inline(always)]
        fn $name(self) -> f32 {
            Elementary::$name(f64::from(self)) as f32
        })*
    };
}

impl Elementary for f32 {
    delegate! { f32,
        single::{exp, exp2, expm1, sinh, cosh, tanh, log, log1p, log2, log10, asinh, acosh, atanh};
        single::{sin_near, cos_near, tan_near, sin, cos, tan};
    }
    through_double! { asin acos atan cbrt }
    #[inline(always)]
    fn is_near(self) -> bool {
        circular::is_near(f64::from(self))
    }
    #[inline(always)]
    fn atan2(self, x: f32) -> f32 {
        inverse::atan2(f64::from(self), f64::from(x)) as f32
    }
    #[inline(always)]
    fn pow(self, exponent: f32) -> f32 {
        single::pow(self, exponent)
    }
    #[inline(always)]
    fn hypot(self, other: f32) -> f32 {
        // Squares of singles are exact and do not overflow as doubles.
        let (x, y) = (f64::from(self), f64::from(other));
        let result = x.mul_add(x, y * y).sqrt() as f32;
        let infinite = self.is_infinite() | other.is_infinite();
        if infinite { f32::INFINITY } else { result }
    }
    #[inline(always)]
    fn nextafter(self, towards: f32) -> f32 {
        nextafter!(self, towards)
    }
}
