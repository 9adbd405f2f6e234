//! The nearest double to a whole number times a power of ten (D. Lemire, Number parsing at a gigabyte per second, 2021; the algorithm is Eisel's).
//!
//! The whole number is multiplied by the leading 128 bits of the power of five. For the powers in the table that is always enough to round correctly; numbers with other powers are
//! left to the standard library.

/// The powers of five of the table. Those from zero on fit into 128 bits; those below are rounded up, and for whole numbers of 64 bits the error never reaches the last bit of a double.
const FIRST: i32 = -27;
const LAST: i32 = 55;

/// The leading 128 bits of each power of five, the highest of which is set.
const FIVES: [u128; (LAST - FIRST + 1) as usize] = {
    let mut fives = [0; (LAST - FIRST + 1) as usize];
    let mut k = 0;
    while k < fives.len() {
        let power = k as i32 + FIRST;
        let whole = 5u128.pow(power.unsigned_abs());
        fives[k] = if power < 0 { reciprocal(whole) } else { whole << whole.leading_zeros() };
        k += 1;
    }
    fives
};

/// The leading 128 bits of `1 / divisor`, rounded up, by long division.
const fn reciprocal(divisor: u128) -> u128 {
    let (mut bits, mut rest) = (0u128, 1u128);
    while bits >> 127 == 0 {
        rest <<= 1;
        bits <<= 1;
        if rest >= divisor {
            rest -= divisor;
            bits |= 1;
        }
    }
    bits + 1
}

/// The exponent of two that goes with a power of ten: the logarithm, rounded down.
const fn exponent_of_two(power: i32) -> i32 {
    (power * 217_706) >> 16
}

/// Bits of a double after the leading one.
const FRACTION_BITS: u32 = 52;

/// The double that is nearest to `whole * 10^power`; `None` if the power is not in the table.
pub(super) fn nearest(whole: u64, power: i32) -> Option<f64> {
    if whole == 0 {
        return Some(0.0);
    }
    let five = *FIVES.get(usize::try_from(power - FIRST).ok()?)?;
    let shift = whole.leading_zeros();
    let whole = whole << shift;
    let product = |half: u64| u128::from(whole) * u128::from(half);
    let mut leading = product((five >> 64) as u64);
    // The lower half matters only if it can change the bits that are kept.
    if (leading >> 64) as u64 & 0x1ff == 0x1ff {
        leading += product(five as u64) >> 64;
    }
    let (high, low) = ((leading >> 64) as u64, leading as u64);
    let upper = (high >> 63) as u32;
    // One bit more than a double has, to round by.
    let dropped = upper + 63 - FRACTION_BITS - 2;
    let mut mantissa = high >> dropped;
    // Half between two doubles: to the even one. Only powers that divide, or fit, a whole number of 64 bits come to lie there.
    if low <= 1 && (-4..=23).contains(&power) && mantissa & 3 == 1 && mantissa << dropped == high {
        mantissa &= !1;
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    let mut exponent = exponent_of_two(power) + 63 + upper as i32 - shift as i32;
    if mantissa >> (FRACTION_BITS + 1) != 0 {
        mantissa >>= 1;
        exponent += 1;
    }
    let biased = (exponent + 1023) as u64;
    Some(f64::from_bits(biased << FRACTION_BITS | mantissa & !(1 << FRACTION_BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_nearest_doubles() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state ^ state >> 29
        };
        for power in FIRST..=LAST {
            for round in 0..3000 {
                // Of every length, and around powers of two, where the neighbours lie at different distances.
                let whole = match round % 3 {
                    0 => random() >> (round % 64),
                    1 => (1u64 << (round % 64)).wrapping_add(random() % 5).wrapping_sub(2),
                    _ => (random() >> 10 | 1) << (round % 11),
                };
                let expected: f64 = format!("{whole}e{power}").parse().unwrap_or(f64::NAN);
                assert_eq!(nearest(whole, power).map(f64::to_bits), Some(expected.to_bits()), "{whole}e{power}");
            }
        }
        assert_eq!((nearest(1, FIRST - 1), nearest(1, LAST + 1), nearest(1, i32::MAX - 30)), (None, None, None));
    }

    #[test]
    fn halves_between_doubles_go_to_the_even_one() {
        // Doubles from 2^53 on are two apart, so an odd number lies between two of them; scaled by tens that divide it, too.
        for (k, tens) in (0..64u64).flat_map(|k| [(k, 1u64), (k, 10), (k, 100), (k, 1000)]) {
            let half = (1u64 << 53) + 2 * k + 1;
            assert_eq!(nearest(half, 0), Some(half as f64));
            let power = -(tens.ilog10() as i32);
            let expected: f64 = format!("{}e{power}", half * tens).parse().unwrap_or(f64::NAN);
            assert_eq!(nearest(half * tens, power), Some(expected));
        }
    }
}
