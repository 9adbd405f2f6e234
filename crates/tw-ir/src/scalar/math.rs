//! Arithmetic on which languages differ, in one place, so that the oracle and every kernel agree bit for bit.

/// The arithmetic of the eight integer types. Everything wraps.
pub trait Integer: Copy + Ord {
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Negation.
    fn neg(self) -> Self;
    /// Magnitude; the smallest signed number stays itself.
    fn abs(self) -> Self;
    /// -1, 0 or 1.
    fn sign(self) -> Self;
    /// Bitwise complement.
    fn not(self) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// Division rounded down; by zero gives 0, `MIN / -1` wraps.
    fn floor_div(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor; by zero gives 0.
    fn modulo(self, other: Self) -> Self;
    /// Power; a negative exponent gives the integer part of the reciprocal.
    fn pow(self, exponent: Self) -> Self;
    /// Bits moved up; by a negative number or by all bits and more, 0, as in NumPy.
    fn shl(self, by: Self) -> Self;
    /// Bits moved down with the sign kept; by a negative number or by all bits and more, nothing but the sign is left.
    fn shr(self, by: Self) -> Self;
}

macro_rules! integers {
    ($($type:ident abs $abs:expr, sign $sign:expr, negative $negative:expr;)*) => {
        $(impl Integer for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $abs(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                $sign(self)
            }
            #[inline(always)]
            fn not(self) -> Self {
                !self
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                if inexact && $negative(self) != $negative(other) { quotient - 1 } else { quotient }
            }
            #[inline(always)]
            fn modulo(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let remainder = self.wrapping_rem(other);
                if remainder != 0 && $negative(remainder) != $negative(other) { remainder + other } else { remainder }
            }
            #[inline]
            fn pow(self, exponent: Self) -> Self {
                if $negative(exponent) {
                    // Only 1 and -1 have reciprocals.
                    return match (self == 1, $abs(self) == 1) {
                        (true, _) => 1,
                        (_, true) if exponent % 2 == 0 => 1,
                        (_, true) => self,
                        _ => 0,
                    };
                }
                let (mut result, mut square, mut rest) = (1 as $type, self, exponent);
                while rest > 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(square);
                    }
                    square = square.wrapping_mul(square);
                    rest >>= 1;
                }
                result
            }
            #[inline(always)]
            fn shl(self, by: Self) -> Self {
                let within = (0..$type::BITS as $type).contains(&by);
                if within { self.wrapping_shl(by as u32) } else { 0 }
            }
            #[inline(always)]
            fn shr(self, by: Self) -> Self {
                let within = (0..$type::BITS as $type).contains(&by);
                self >> if within { by as u32 } else { $type::BITS - 1 } >> !within as u32
            }
        })*
    };
}
integers! {
    i8 abs i8::wrapping_abs, sign i8::signum, negative i8::is_negative;
    i16 abs i16::wrapping_abs, sign i16::signum, negative i16::is_negative;
    i32 abs i32::wrapping_abs, sign i32::signum, negative i32::is_negative;
    i64 abs i64::wrapping_abs, sign i64::signum, negative i64::is_negative;
    u8 abs |x| x, sign |x: u8| x.min(1), negative |_| false;
    u16 abs |x| x, sign |x: u16| x.min(1), negative |_| false;
    u32 abs |x| x, sign |x: u32| x.min(1), negative |_| false;
    u64 abs |x| x, sign |x: u64| x.min(1), negative |_| false;
}

macro_rules! float_math {
    ($float:ident, $floor_div:ident, $modulo:ident, $min:ident, $max:ident, $sign:ident) => {
        /// Floor division as Python defines it.
        #[inline]
        pub fn $floor_div(a: $float, b: $float) -> $float {
            if b == 0.0 {
                return a / b;
            }
            let remainder = a % b;
            let other_sign = remainder != 0.0 && (remainder < 0.0) != (b < 0.0);
            // What is divided is a multiple of the divisor, so the quotient is whole but for rounding.
            let quotient = ((a - remainder) / b - other_sign as u8 as $float).round_ties_even();
            if quotient == 0.0 { (0.0 as $float).copysign(a / b) } else { quotient }
        }
        /// Remainder with the sign of the divisor, as Python defines it.
        #[inline]
        pub fn $modulo(a: $float, b: $float) -> $float {
            let remainder = a % b;
            if remainder == 0.0 {
                (0.0 as $float).copysign(b)
            } else if (remainder < 0.0) != (b < 0.0) {
                remainder + b
            } else {
                remainder
            }
        }
        /// Smaller value; NaN wins.
        #[inline]
        pub fn $min(a: $float, b: $float) -> $float {
            if a < b || a.is_nan() { a } else { b }
        }
        /// Larger value; NaN wins.
        #[inline]
        pub fn $max(a: $float, b: $float) -> $float {
            if a > b || a.is_nan() { a } else { b }
        }
        /// -1, 0 or 1; NaN stays NaN, and a zero of either sign gives 0.
        #[inline]
        pub fn $sign(a: $float) -> $float {
            if a > 0.0 {
                1.0
            } else if a < 0.0 {
                -1.0
            } else {
                a + 0.0
            }
        }
    };
}
float_math!(f32, floor_div_f32, mod_f32, min_f32, max_f32, sign_f32);
float_math!(f64, floor_div_f64, mod_f64, min_f64, max_f64, sign_f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_division() {
        for (a, b, quotient, remainder) in
            [(7i64, 3, 2, 1), (-7, 3, -3, 2), (7, -3, -3, -2), (-7, -3, 2, -1), (5, 0, 0, 0)]
        {
            assert_eq!((a.floor_div(b), a.modulo(b)), (quotient, remainder));
        }
        assert_eq!(i64::MIN.floor_div(-1), i64::MIN);
        assert_eq!((floor_div_f64(-7.0, 3.0), mod_f64(-7.0, 3.0)), (-3.0, 2.0));
        let inf = f64::INFINITY;
        // As CPython and NumPy have them, down to the signs of zeros.
        for (a, b, quotient, remainder) in [
            (-5.0f64, inf, -1.0f64, inf),
            (5.0, -inf, -1.0, -inf),
            (5.0, inf, 0.0, 5.0),
            (-5.0, -inf, 0.0, -5.0),
            (-0.5, -1.0, 0.0, -0.5),
            (0.0, -3.0, -0.0, -0.0),
            (-0.0, 3.0, -0.0, 0.0),
            (6.0, -3.0, -2.0, -0.0),
            (-1e-300, 1e300, -1.0, 1e300),
            (1.0, 0.1, 9.0, 0.09999999999999995),
        ] {
            let found = (floor_div_f64(a, b), mod_f64(a, b));
            assert_eq!((found.0.to_bits(), found.1.to_bits()), (quotient.to_bits(), remainder.to_bits()), "{a} {b}");
            let single = floor_div_f32(a as f32, b as f32);
            assert!(single == quotient as f32 || a.abs() < 1e-200 || b == 0.1, "{a} {b}: {single}");
        }
        assert!(floor_div_f64(inf, 2.0).is_nan() && floor_div_f64(1.0, f64::NAN).is_nan());
        assert_eq!(floor_div_f64(-1.0, 0.0), -inf);
        assert_eq!(Integer::pow(3i64, 4), 81);
        assert_eq!(Integer::pow(-1i8, -3), -1);
        assert!(min_f64(f64::NAN, 1.0).is_nan() && min_f64(1.0, f64::NAN).is_nan());
    }

    #[test]
    fn every_byte_agrees_with_wide_arithmetic() {
        for (a, b) in (-128..128i64).flat_map(|a| (-128..128i64).map(move |b| (a, b))) {
            let (x, y) = (a as i8, b as i8);
            assert_eq!(x.add(y), (a + b) as i8);
            assert_eq!(Integer::mul(x, y), (a * b) as i8);
            assert_eq!(x.floor_div(y), if b == 0 { 0 } else { (a as f64 / b as f64).floor() as i64 as i8 });
            let shift = |wide: i64| if (0..8).contains(&b) { wide as i8 } else { 0 };
            assert_eq!(Integer::shl(x, y), shift(a << b.clamp(0, 8)), "{a} << {b}");
            let by = if (0..8).contains(&b) { b } else { 63 };
            assert_eq!(Integer::shr(x, y), (a >> by) as i8, "{a} >> {b}");
            let (x, y) = (a as u8, b as u8);
            assert_eq!(x.sub(y), (a - b) as u8);
            assert_eq!((x.floor_div(y), x.modulo(y)), (x.checked_div(y).unwrap_or(0), x.checked_rem(y).unwrap_or(0)));
            assert_eq!(Integer::shr(x, y), if y < 8 { x >> y } else { 0 }, "{x} >> {y}");
            assert_eq!(Integer::pow(x, y), x.wrapping_pow(y as u32));
        }
    }
}
