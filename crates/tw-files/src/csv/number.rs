//! Numbers in text.
//!
//! Eight bytes are looked at together: how many digits they begin with, and their value, without a branch for each digit.

use super::powers;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// The first powers of ten, for up to eight digits; as many as an index of four bits can name.
const SHIFTS: [u64; 16] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 0, 0, 0, 0, 0, 0, 0];

/// Whole numbers of this many digits are doubles.
const EXACT_DIGITS: usize = 15;

/// Numbers of this many digits fit into 64 bits.
const MOST_DIGITS: usize = 19;

/// A byte in each of eight.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The number that a field holds; `None` if it holds something else. Spaces around it do not count.
pub(super) fn parse(field: &[u8]) -> Option<f64> {
    // No byte of a number is a line end.
    match leading(field, 0, b'\n') {
        Some((value, end)) if end == field.len() => Some(value),
        _ => slowly(field),
    }
}

/// The number in decimal or scientific notation that stands at a place of a text, if a delimiter, the end of the line or of the text follows; and where it ends. The delimiter is no part
/// of a number.
// Called for every field in one place, where a call costs a tenth of the time.
#[inline(always)]
pub(super) fn leading(text: &[u8], start: usize, delimiter: u8) -> Option<(f64, usize)> {
    let byte = |at: usize| text.get(at).copied().unwrap_or(b'\n');
    let sign = byte(start);
    let negative = sign == b'-';
    let first = start + (negative | (sign == b'+')) as usize;
    let (mut whole, mut end) = match byte(first).wrapping_sub(b'0') {
        // The most usual beginning, with a place for what follows that is known at once.
        digit @ 0..=9 if byte(first + 1) == b'.' => (u64::from(digit), first + 1),
        _ => digits(text, first, 0),
    };
    let (mut n_digits, mut n_decimals) = (end - first, 0);
    if byte(end) == b'.' {
        let point = end + 1;
        (whole, end) = digits(text, point, whole);
        n_decimals = end - point;
        n_digits += n_decimals;
    }
    if n_digits == 0 {
        return None;
    }
    if n_digits > MOST_DIGITS {
        // Zeros before the first other digit do not count, wherever the point is among them. The point itself is no digit.
        let before = text[first..end].iter().take_while(|&&byte| byte == b'0' || byte == b'.');
        let n_zeros = before.filter(|&&byte| byte == b'0').count();
        if n_digits - n_zeros > MOST_DIGITS {
            return None;
        }
    }
    let mut power = -i32::try_from(n_decimals).ok()?;
    if byte(end) | 0x20 == b'e' && delimiter | 0x20 != b'e' {
        let negative = byte(end + 1) == b'-';
        let first = end + 1 + (negative || byte(end + 1) == b'+') as usize;
        let (exponent, after) = digits(text, first, 0);
        if !(1..=4).contains(&(after - first)) {
            return None;
        }
        power += if negative { -(exponent as i32) } else { exponent as i32 };
        end = after;
    }
    let next = byte(end);
    if next != delimiter && next != b'\n' && !(next == b'\r' && byte(end + 1) == b'\n') {
        return None;
    }
    let value = if power == 0 && n_digits <= EXACT_DIGITS {
        // Conversions of signed numbers are one instruction.
        whole as i64 as f64
    } else if n_digits <= EXACT_DIGITS && power.unsigned_abs() < POWERS.len() as u32 {
        // One exact operation away from the nearest double (Clinger, 1990).
        let scale = POWERS[power.unsigned_abs() as usize];
        let whole = whole as i64 as f64;
        if power < 0 { whole / scale } else { whole * scale }
    } else {
        powers::nearest(whole, power)?
    };
    // Signs follow no pattern, so there is no branch for them.
    Some((f64::from_bits(value.to_bits() | u64::from(negative) << 63), end))
}

/// Appends the digits at a place of a text to a number; and where they end. The number wraps around if it has too many digits.
///
/// Where a number ends decides where the next one begins, so a text is one long chain of such places. The chain is kept short: words are loaded at places that do not depend on how many
/// digits the word before has, and values are computed beside it.
fn digits(text: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    let mut first = Word::at(text, at);
    let mut n_first = first.n_digits();
    while n_first == 8 {
        // Numbers with many digits have more or fewer than sixteen of them, which no processor can predict: so there is no branch between these two.
        let (second, third) = (Word::at(text, at + 8), Word::at(text, at + 16));
        let n_second = second.n_digits();
        let n_third = third.n_digits() * (n_second / 8);
        number = second.append(first.append(number, 8), n_second);
        number = third.append(number, n_third);
        at += 8 + n_second + n_third;
        if n_third < 8 {
            return (number, at);
        }
        first = Word::at(text, at);
        n_first = first.n_digits();
    }
    (first.append(number, n_first), at + n_first)
}

/// Eight bytes of a text. Digits are 0 to 9.
#[derive(Clone, Copy)]
struct Word(u64);

impl Word {
    #[inline(always)]
    fn at(text: &[u8], at: usize) -> Word {
        let bytes = match text.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => *bytes,
            None => {
                let rest = text.get(at..).unwrap_or_default();
                let mut bytes = [0; 8];
                bytes[..rest.len()].copy_from_slice(rest);
                bytes
            }
        };
        Word(u64::from_le_bytes(bytes) ^ each(b'0'))
    }

    /// How many digits it begins with.
    #[inline(always)]
    fn n_digits(self) -> usize {
        // Only digits stay below 0x80 when 0x76 is added.
        let others = ((self.0 & each(0x7f)).wrapping_add(each(0x76)) | self.0) & each(0x80);
        others.trailing_zeros() as usize / 8
    }

    /// Appends the first `n` digits to a number.
    #[inline(always)]
    fn append(self, number: u64, n: usize) -> u64 {
        // The first digit is the lowest byte. Zeros are put before the digits, in place of what follows them.
        let values = self.0.checked_shl(64 - 8 * n as u32).unwrap_or(0);
        // Neighbours become pairs, pairs become fours, fours become one number.
        let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
        let low = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
        let high = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
        number.wrapping_mul(SHIFTS[n & 15]).wrapping_add(low.wrapping_add(high) >> 32)
    }
}

fn slowly(field: &[u8]) -> Option<f64> {
    let field = std::str::from_utf8(field).ok()?.trim();
    let field = field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field).trim();
    match field {
        "" | "NA" | "N/A" | "null" | "NULL" | "None" | "-nan" => Some(f64::NAN),
        // Rust knows inf, infinity and nan in any case, and nothing beside numbers.
        _ => field.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_nearest_doubles() {
        for text in [
            "0",
            "-0",
            "1",
            "+1",
            "-17.25",
            "0.1",
            "123456789.123456789",
            "1e400",
            "1e-400",
            "5e-324",
            "9007199254740993",
            "1.7976931348623157e308",
            "0.30000000000000004",
            ".5",
            "5.",
            "00012",
            "1E5",
            "9999999999999999999999",
            "3.141592653589793238462643",
            "0.00012573022160982716",
            "-0.00000000000000000000012573022160982716",
            "00000000000000000000000001",
            "1.2573022160982716e-5",
            "12345678e300",
            "-1.5E+3",
            "1e00000000000000000003",
            "18446744073709551615",
            "18446744073709551616",
            "1234567890123456789e-40",
        ] {
            assert_eq!(parse(text.as_bytes()).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{text}");
        }
        // As many digits as fit into 64 bits, and more, with the point at every place among them.
        for n in 15..=24 {
            for first in ["18446744073709551616", "99999999999999999999", "54881350392732475151"] {
                let digits: String = first.chars().cycle().take(n).collect();
                for n_zeros in 0..4 {
                    let digits = format!("{}{digits}", "0".repeat(n_zeros));
                    for point in 0..=digits.len() {
                        let text = format!("{}.{}", &digits[..point], &digits[point..]);
                        assert_eq!(parse(text.as_bytes()), text.parse().ok(), "{text}");
                    }
                }
            }
        }
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let text = format!("{}.{}", state >> 40, (state >> 8) & 0xffff_ffff);
            assert_eq!(parse(text.as_bytes()), text.parse().ok(), "{text}");
            let value = f64::from_bits(state);
            if value.is_finite() {
                assert_eq!(parse(format!("{value:e}").as_bytes()), Some(value));
            }
        }
    }

    #[test]
    fn other_fields_are_missing_or_wrong() {
        for text in ["", "  ", "nan", "NaN", "NA", "null", "\"\""] {
            assert!(parse(text.as_bytes()).is_some_and(f64::is_nan), "{text}");
        }
        for text in [" 1 ", "\"1\"", "1\t"] {
            assert_eq!(parse(text.as_bytes()), Some(1.0), "{text}");
        }
        assert_eq!(parse(b"-inf"), Some(f64::NEG_INFINITY));
        for text in
            ["x", "1x", "1.2.3", "--1", "1d5", "0x10", "1 2", "-", ".", "e5", "1e", "1e+", "1e5.5", "1e 5", "\u{661}"]
        {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
