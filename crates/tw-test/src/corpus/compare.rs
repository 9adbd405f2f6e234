//! How close is close enough.

use tw_ir::{Array, DType, Scalar, shape};

/// Largest relative difference per float type; integers and bools must be equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// For f64.
    pub double: f64,
    /// For f32.
    pub single: f64,
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { double: 1e-12, single: 1e-6 }
    }
}

impl Tolerance {
    /// Tells whether a value is close to the expected one. NaN is close to NaN; infinities and the signs of zeros must be the same.
    fn accepts(self, expected: Scalar, got: Scalar) -> bool {
        let dtype = expected.dtype();
        if dtype.is_complex() {
            let (x, y) = (expected.as_c128(), got.as_c128());
            // The parts share one scale: either may be a small difference of large numbers.
            let limit = if dtype == DType::C128 { self.double } else { self.single } * x.re.hypot(x.im);
            let close = |x: f64, y: f64| self.accepts(Scalar::F64(x), Scalar::F64(y)) || (x - y).abs() <= limit;
            return close(x.re, y.re) && close(x.im, y.im);
        }
        let limit = match dtype {
            DType::F64 => self.double,
            DType::F32 => self.single,
            // One step: what is rounded to few bits may fall on the other side.
            DType::F16 => 1e-3,
            DType::BF16 => 8e-3,
            _ => 0.0,
        };
        let (x, y) = (expected.as_f64(), got.as_f64());
        match expected {
            _ if !dtype.is_float() => expected == got,
            _ if x.is_nan() => y.is_nan(),
            _ if x.is_infinite() => x == y,
            _ if x == 0.0 => y == 0.0 && x.is_sign_negative() == y.is_sign_negative(),
            _ => (x - y).abs() <= limit * x.abs(),
        }
    }
}

/// Says how an array differs from the expected one, or nothing if it does not.
pub fn difference(expected: &Array, got: &Array, tolerance: Tolerance) -> Option<String> {
    let header = |array: &Array| format!("{}{}", array.dtype(), shape::display(array.shape()));
    if expected.dtype() != got.dtype() || expected.shape() != got.shape() {
        return Some(format!("expected {}, got {}", header(expected), header(got)));
    }
    let wrong = (0..expected.len()).find(|&k| !tolerance.accepts(expected.at(k), got.at(k)))?;
    let all = |array: &Array| -> String {
        let shown: Vec<String> = array.iter().take(200).map(|value| value.to_string()).collect();
        shown.join(" ")
    };
    Some(format!(
        "element {wrong} (row-major): expected {}, got {}\n    expected {}\n    got      {}",
        expected.at(wrong),
        got.at(wrong),
        all(expected),
        all(got)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_nans_and_infinities_are_told_apart() {
        let same = |a: f64, b: f64| Tolerance::default().accepts(Scalar::F64(a), Scalar::F64(b));
        assert!(same(1.0, 1.0 + 1e-13) && !same(1.0, 1.0 + 1e-11));
        assert!(same(f64::NAN, f64::NAN) && !same(f64::NAN, 0.0) && !same(0.0, f64::NAN));
        assert!(same(f64::INFINITY, f64::INFINITY) && !same(f64::INFINITY, f64::MAX) && !same(1.0, f64::INFINITY));
        assert!(same(-0.0, -0.0) && !same(0.0, -0.0) && !same(0.0, 1e-300));
    }

    #[test]
    fn differences_name_the_element() {
        let (a, b) = (Array::from_i64(&[1, 2, 3]), Array::from_i64(&[1, 5, 3]));
        assert!(
            difference(&a, &b, Tolerance::default()).unwrap().starts_with("element 1 (row-major): expected 2, got 5")
        );
        assert_eq!(difference(&a, &a, Tolerance::default()), None);
        let floats = Array::from_f64(&[1.0, 2.0, 3.0]);
        assert_eq!(difference(&a, &floats, Tolerance::default()).unwrap(), "expected i64[3], got f64[3]");
    }
}
