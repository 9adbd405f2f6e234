//! Numbers in text.

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Larger whole numbers are not all doubles.
const EXACT: u64 = 1 << 53;

/// The number that a field holds; `None` if it holds something else. Spaces around it do not count.
pub(super) fn parse(field: &[u8]) -> Option<f64> {
    // No byte of a number is a line end.
    match leading(field, b'\n') {
        Some((value, n)) if n == field.len() => Some(value),
        _ => slowly(field),
    }
}

/// The number of digits with a point that a text begins with, if a delimiter or the end follows, and how many bytes it has. One pass finds the end of the field and its value.
pub(super) fn leading(text: &[u8], delimiter: u8) -> Option<(f64, usize)> {
    let (negative, start) = match text.first() {
        Some(b'-') if delimiter != b'-' => (true, 1),
        Some(b'+') if delimiter != b'+' => (false, 1),
        _ => (false, 0),
    };
    let (mut mantissa, mut decimals, mut n_digits, mut after_point) = (0u64, 0usize, 0usize, false);
    let mut end = text.len();
    for (k, &byte) in text.iter().enumerate().skip(start) {
        match byte {
            _ if byte == delimiter => {
                end = k;
                break;
            }
            b'0'..=b'9' if n_digits < 19 => {
                mantissa = mantissa * 10 + (byte - b'0') as u64;
                n_digits += 1;
                decimals += after_point as usize;
            }
            b'.' if !after_point => after_point = true,
            _ => return None,
        }
    }
    if n_digits == 0 {
        return None;
    }
    if mantissa > EXACT || decimals >= POWERS.len() {
        return Some((std::str::from_utf8(&text[..end]).ok()?.parse().ok()?, end));
    }
    // One exact division away from the nearest double (Clinger, 1990).
    let value = mantissa as f64 / POWERS[decimals];
    Some((if negative { -value } else { value }, end))
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
        ] {
            assert_eq!(parse(text.as_bytes()).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits), "{text}");
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
        for text in ["x", "1x", "1.2.3", "--1", "1d5", "0x10", "1 2", "-", ".", "e5", "\u{661}"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
