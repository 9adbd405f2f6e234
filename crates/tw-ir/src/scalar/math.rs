//! The arithmetic where languages differ, in one place, so that the oracle and every kernel agree bit for bit.

/// Floor division; by zero gives 0, `MIN / -1` wraps.
#[inline]
pub fn floor_div_i64(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}

/// Remainder with the sign of the divisor; by zero gives 0.
#[inline]
pub fn mod_i64(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let remainder = a.wrapping_rem(b);
    if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
}

/// Wrapping power; a negative exponent gives the integer part of the reciprocal.
#[inline]
pub fn pow_i64(base: i64, exponent: i64) -> i64 {
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if exponent % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}

macro_rules! float_math {
    ($float:ident, $floor_div:ident, $modulo:ident, $min:ident, $max:ident, $sign:ident) => {
        /// Floor division as Python defines it.
        #[inline]
        pub fn $floor_div(a: $float, b: $float) -> $float {
            if b == 0.0 { a / b } else { ((a - $modulo(a, b)) / b).round_ties_even() }
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
            [(7, 3, 2, 1), (-7, 3, -3, 2), (7, -3, -3, -2), (-7, -3, 2, -1), (5, 0, 0, 0)]
        {
            assert_eq!((floor_div_i64(a, b), mod_i64(a, b)), (quotient, remainder));
        }
        assert_eq!(floor_div_i64(i64::MIN, -1), i64::MIN);
        assert_eq!((floor_div_f64(-7.0, 3.0), mod_f64(-7.0, 3.0)), (-3.0, 2.0));
        assert_eq!(pow_i64(3, 4), 81);
        assert_eq!(pow_i64(-1, -3), -1);
        assert!(min_f64(f64::NAN, 1.0).is_nan() && min_f64(1.0, f64::NAN).is_nan());
    }
}
