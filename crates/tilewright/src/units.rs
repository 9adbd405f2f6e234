//! Formatting and parsing of quantities with units.

use std::time::Duration;

/// `1.5 GiB`; exact below one KiB.
pub(crate) fn bytes(n: u64) -> String {
    scaled(n as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// `2.5 Gflop`: scalar operations.
pub(crate) fn flops(n: u64) -> String {
    scaled(n as f64, 1000.0, &["flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop", "Eflop"])
}

/// `1_000_000` as `1,000,000`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 task`, `2 tasks`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `1.5 s`, `20 ms`, `3.1 us`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{} s", three_digits(s)),
        s if s >= 1e-3 => format!("{} ms", three_digits(s * 1e3)),
        s => format!("{} us", three_digits(s * 1e6)),
    }
}

/// The same for a duration.
pub(crate) fn duration(time: Duration) -> String {
    seconds(time.as_secs_f64())
}

/// Reads `2GiB`, `512MB`, `1.5G` or a plain number of bytes.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write for example 2GiB, 512MB or 1000000");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number: f64 = text[..split].replace('_', "").parse().map_err(|_| wrong())?;
    let unit: u64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let bytes = number * unit as f64;
    if bytes < 1.0 || bytes > i64::MAX as f64 {
        return Err(format!("a size of {text} is not between 1 byte and what can be counted"));
    }
    Ok(bytes as u64)
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // Two decimals are shown, so what would round up to the next unit belongs to it.
    while value >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} {}", units[0]) } else { format!("{} {}", three_digits(value), units[unit]) }
}

fn three_digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
        assert_eq!(bytes((1 << 20) - 1), "1.00 MiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(flops(2_000_000_000), "2.00 Gflop");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(counted(1, "task"), "1 task");
        assert_eq!(counted(20, "task"), "20 tasks");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(seconds(12.34), "12.3 s");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(2.5e-6), "2.50 us");
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
        assert_eq!(parse_bytes("1.5k"), Ok(1536));
        assert_eq!(parse_bytes("10 MB"), Ok(10_000_000));
        assert_eq!(parse_bytes("1_000"), Ok(1000));
        for wrong in ["", "GiB", "-1", "2XiB", "1e3", "0", "99999999999TiB", "."] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
