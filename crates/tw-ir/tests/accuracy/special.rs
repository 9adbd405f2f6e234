//! Special values, as IEEE 754 and C99 say.

use tw_ir::scalar::elementary::Elementary;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;
const PI: f64 = std::f64::consts::PI;

fn assert_same(name: &str, arguments: &[f64], got: f64, expected: f64) {
    let same = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
    assert!(same, "{name}{arguments:?} is {got:?}, not {expected:?}");
}

macro_rules! unary {
    ($($name:ident: $($x:expr => $result:expr),*;)*) => {
        $($({
            let (x, result): (f64, f64) = ($x, $result);
            assert_same(stringify!($name), &[x], Elementary::$name(x), result);
            let single: f32 = Elementary::$name(x as f32);
            assert_same(concat!(stringify!($name), " of singles"), &[x], single.into(), (result as f32).into());
        })*)*
    };
}

macro_rules! binary {
    ($($name:ident: $($x:expr, $y:expr => $result:expr),*;)*) => {
        $($({
            let (x, y, result): (f64, f64, f64) = ($x, $y, $result);
            assert_same(stringify!($name), &[x, y], Elementary::$name(x, y), result);
            let single: f32 = Elementary::$name(x as f32, y as f32);
            assert_same(concat!(stringify!($name), " of singles"), &[x, y], single.into(), (result as f32).into());
        })*)*
    };
}

#[test]
fn of_one_argument() {
    unary! {
        exp: 0.0 => 1.0, -0.0 => 1.0, INF => INF, -INF => 0.0, NAN => NAN, 1e30 => INF, -1e30 => 0.0;
        exp2: 0.0 => 1.0, -0.0 => 1.0, INF => INF, -INF => 0.0, NAN => NAN, 10.0 => 1024.0, -3.0 => 0.125, 5000.0 => INF, -5000.0 => 0.0;
        expm1: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -1.0, NAN => NAN, 1e30 => INF, -1e30 => -1.0;
        log: 1.0 => 0.0, 0.0 => -INF, -0.0 => -INF, INF => INF, -1.0 => NAN, -INF => NAN, NAN => NAN;
        log1p: 0.0 => 0.0, -0.0 => -0.0, -1.0 => -INF, INF => INF, -2.0 => NAN, -INF => NAN, NAN => NAN;
        log2: 1.0 => 0.0, 0.0 => -INF, -0.0 => -INF, INF => INF, -1.0 => NAN, NAN => NAN, 1024.0 => 10.0, 0.125 => -3.0;
        log10: 1.0 => 0.0, 0.0 => -INF, -0.0 => -INF, INF => INF, -1.0 => NAN, NAN => NAN, 1000.0 => 3.0, 1e10 => 10.0;
        sin: 0.0 => 0.0, -0.0 => -0.0, INF => NAN, -INF => NAN, NAN => NAN;
        cos: 0.0 => 1.0, -0.0 => 1.0, INF => NAN, -INF => NAN, NAN => NAN;
        tan: 0.0 => 0.0, -0.0 => -0.0, INF => NAN, -INF => NAN, NAN => NAN;
        asin: 0.0 => 0.0, -0.0 => -0.0, 1.0 => PI / 2.0, -1.0 => -PI / 2.0, 2.0 => NAN, -2.0 => NAN, INF => NAN, NAN => NAN;
        acos: 1.0 => 0.0, -1.0 => PI, 0.0 => PI / 2.0, 2.0 => NAN, -2.0 => NAN, INF => NAN, NAN => NAN;
        atan: 0.0 => 0.0, -0.0 => -0.0, INF => PI / 2.0, -INF => -PI / 2.0, 1.0 => PI / 4.0, NAN => NAN;
        sinh: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -INF, NAN => NAN, 1e30 => INF;
        cosh: 0.0 => 1.0, -0.0 => 1.0, INF => INF, -INF => INF, NAN => NAN, -1e30 => INF;
        tanh: 0.0 => 0.0, -0.0 => -0.0, INF => 1.0, -INF => -1.0, NAN => NAN, 50.0 => 1.0;
        asinh: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -INF, NAN => NAN;
        acosh: 1.0 => 0.0, INF => INF, 0.5 => NAN, -INF => NAN, NAN => NAN;
        atanh: 0.0 => 0.0, -0.0 => -0.0, 1.0 => INF, -1.0 => -INF, 2.0 => NAN, -INF => NAN, NAN => NAN;
        cbrt: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -INF, NAN => NAN, 27.0 => 3.0, -8.0 => -2.0;
    }
}

#[test]
fn powers() {
    binary! {
        pow: 0.0, 0.0 => 1.0, NAN, 0.0 => 1.0, INF, -0.0 => 1.0, 1.0, NAN => 1.0, 1.0, INF => 1.0, -1.0, INF => 1.0, -1.0, -INF => 1.0,
            0.0, 3.0 => 0.0, -0.0, 3.0 => -0.0, -0.0, 2.0 => 0.0, -0.0, 0.5 => 0.0,
            0.0, -3.0 => INF, -0.0, -3.0 => -INF, -0.0, -2.0 => INF, -0.0, -0.5 => INF, 0.0, -INF => INF, -0.0, INF => 0.0,
            2.0, INF => INF, 2.0, -INF => 0.0, 0.5, INF => 0.0, 0.5, -INF => INF, -2.0, INF => INF, -0.5, -INF => INF,
            INF, 2.0 => INF, INF, -2.0 => 0.0, -INF, 3.0 => -INF, -INF, 2.0 => INF, -INF, 0.5 => INF,
            -INF, -3.0 => -0.0, -INF, -2.0 => 0.0, -INF, -0.5 => 0.0,
            -8.0, 1.0 / 3.0 => NAN, NAN, 1.0 => NAN, 2.0, NAN => NAN, -2.0, 3.0 => -8.0, -2.0, -2.0 => 0.25,
            10.0, 1e9 => INF, 10.0, -1e9 => 0.0, -10.0, 1e9 + 64.0 => INF, 3.0, 4.0 => 81.0, 7.0, 1.0 => 7.0;
    }
    assert_same("pow", &[], Elementary::pow(-10.0, 1e9 + 1.0), -INF);
}

#[test]
fn angles_and_lengths() {
    binary! {
        atan2: 0.0, 0.0 => 0.0, -0.0, 0.0 => -0.0, 0.0, -0.0 => PI, -0.0, -0.0 => -PI, 0.0, 1.0 => 0.0, -0.0, 1.0 => -0.0,
            0.0, -1.0 => PI, -0.0, -1.0 => -PI, 1.0, 0.0 => PI / 2.0, -1.0, 0.0 => -PI / 2.0, 1.0, -0.0 => PI / 2.0,
            INF, INF => PI / 4.0, -INF, INF => -PI / 4.0, INF, -INF => 3.0 * PI / 4.0, -INF, -INF => -3.0 * PI / 4.0,
            INF, 1.0 => PI / 2.0, -INF, -1.0 => -PI / 2.0, 1.0, INF => 0.0, -1.0, INF => -0.0, 1.0, -INF => PI, -1.0, -INF => -PI,
            NAN, 1.0 => NAN, 1.0, NAN => NAN, NAN, INF => NAN;
        hypot: 3.0, 4.0 => 5.0, -3.0, 4.0 => 5.0, 0.0, -0.0 => 0.0, -2.0, 0.0 => 2.0, INF, NAN => INF, NAN, -INF => INF,
            NAN, 1.0 => NAN, 1.0, NAN => NAN, INF, 1.0 => INF;
        nextafter: 0.0, 0.0 => 0.0, 0.0, -0.0 => -0.0, NAN, 1.0 => NAN, 1.0, NAN => NAN, INF, INF => INF;
    }
    assert_same("nextafter", &[], Elementary::nextafter(0.0f64, -1.0), -5e-324);
    assert_same("nextafter", &[], Elementary::nextafter(1.0f64, 2.0), 1.0 + f64::EPSILON);
    assert_same("nextafter", &[], Elementary::nextafter(INF, 0.0), f64::MAX);
    assert_eq!(Elementary::nextafter(1.0f32, -INF as f32), 1.0 - f32::EPSILON / 2.0);
}

/// Results that are exactly representable are exact.
#[test]
fn exact_results() {
    for k in 0..=22 {
        assert_eq!(Elementary::log10(10f64.powi(k)), f64::from(k));
    }
    for k in -1074..=1023 {
        let power = 2f64.powi(k / 2) * 2f64.powi(k - k / 2);
        assert_eq!((Elementary::log2(power), Elementary::exp2(f64::from(k))), (f64::from(k), power));
    }
    for k in 1..1000 {
        let k = f64::from(k);
        assert_eq!((Elementary::cbrt(k * k * k), Elementary::pow(k, 2.0)), (k, k * k));
    }
}
