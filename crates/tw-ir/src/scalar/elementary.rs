//! Elementary functions: exponentials, logarithms, circular and hyperbolic functions, powers and roots.
//!
//! Everything that computes one calls it here, so that the oracle and all kernels agree.

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

macro_rules! elementary {
    ($float:ident { $($name:ident = $function:path;)* }) => {
        impl Elementary for $float {
            $(#[inline(always)]
            fn $name(self) -> $float {
                $function(self)
            })*
            #[inline(always)]
            fn is_near(self) -> bool {
                true
            }
            #[inline(always)]
            fn atan2(self, x: $float) -> $float {
                $float::atan2(self, x)
            }
            #[inline(always)]
            fn pow(self, exponent: $float) -> $float {
                $float::powf(self, exponent)
            }
            #[inline(always)]
            fn hypot(self, other: $float) -> $float {
                $float::hypot(self, other)
            }
            #[inline(always)]
            fn nextafter(self, towards: $float) -> $float {
                if self.is_nan() || towards.is_nan() {
                    self + towards
                } else if self == towards {
                    towards
                } else if self < towards {
                    self.next_up()
                } else {
                    self.next_down()
                }
            }
        }
    };
    ($($float:ident)*) => {
        $(elementary! { $float {
            exp = $float::exp;
            exp2 = $float::exp2;
            expm1 = $float::exp_m1;
            log = $float::ln;
            log1p = $float::ln_1p;
            log2 = $float::log2;
            log10 = $float::log10;
            sin_near = $float::sin;
            cos_near = $float::cos;
            tan_near = $float::tan;
            sin = $float::sin;
            cos = $float::cos;
            tan = $float::tan;
            asin = $float::asin;
            acos = $float::acos;
            atan = $float::atan;
            sinh = $float::sinh;
            cosh = $float::cosh;
            tanh = $float::tanh;
            asinh = $float::asinh;
            acosh = $float::acosh;
            atanh = $float::atanh;
            cbrt = $float::cbrt;
        } })*
    };
}
elementary! { f64 f32 }
