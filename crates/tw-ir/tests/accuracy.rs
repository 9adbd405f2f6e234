//! Elementary functions against arbitrary precision: at most 1.5 units in the last place, for all arguments.
//!
//! `TW_FULL=1` draws many more arguments, and goes through all singles instead of every few thousandth.
#![allow(clippy::unwrap_used)]

#[path = "accuracy/reference.rs"]
mod reference;
#[path = "accuracy/special.rs"]
mod special;

use astro_float_num::Consts;
use reference::{DOUBLE, Function, SINGLE, all, argument, distance};

const LIMIT: f64 = 1.5;

fn is_full() -> bool {
    std::env::var_os("TW_FULL").is_some()
}

fn function(name: &str) -> Function {
    all().into_iter().find(|function| function.name == name).unwrap()
}

fn check_double(function: &Function, x: f64, y: f64, consts: &mut Consts) {
    let got = (function.double)(x, y);
    let found = distance(&(function.exact)(x, y, consts), got, DOUBLE);
    assert!(found <= LIMIT, "{}({x:e}, {y:e}) = {got:e} is off by {found} units", function.name);
}

/// Random arguments, for doubles and singles, against arbitrary precision.
fn check_random(name: &str) {
    let function = function(name);
    let mut consts = Consts::new().unwrap();
    let n = if is_full() { 100_000 } else { 500 };
    for k in 0..n {
        let (x, y) = argument(&function, 7, k);
        check_double(&function, x, y, &mut consts);
        let (x, y) = (x as f32, y as f32);
        if k % 4 == 0 && x.is_normal() && (y.is_normal() || !function.two_arguments) {
            let (exact, got) = ((function.exact)(x.into(), y.into(), &mut consts), (function.single)(x, y));
            let found = distance(&exact, got.into(), SINGLE);
            assert!(found <= LIMIT, "{name}({x:e}, {y:e}) = {got:e} as f32 is off by {found} units");
        }
    }
}

/// Singles against doubles, whose own errors do not show: every bit pattern, or evenly many of them.
fn check_singles(name: &str) {
    let function = function(name);
    let stride = if is_full() && !function.two_arguments { 1 } else { 9_973 };
    for bits in (0..=u32::MAX).step_by(stride) {
        let y = if function.two_arguments { f32::from_bits(bits.wrapping_mul(0x9E37_79B9)) } else { 0.0 };
        check_single(&function, f32::from_bits(bits), y);
    }
}

fn check_single(function: &Function, x: f32, y: f32) {
    let (got, exact) = ((function.single)(x, y), (function.double)(x.into(), y.into()));
    let right = match exact as f32 {
        nearest if nearest.is_nan() => got.is_nan(),
        nearest if nearest.is_infinite() || nearest == 0.0 => {
            got == nearest && got.is_sign_negative() == nearest.is_sign_negative()
                || got.is_finite() && (got.to_bits().abs_diff(nearest.to_bits()) <= 1)
        }
        nearest => {
            let unit = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
            got.is_infinite() && nearest.abs() == f32::MAX && got.is_sign_negative() == nearest.is_sign_negative()
                || (f64::from(got) - exact).abs() <= LIMIT * unit
        }
    };
    assert!(right, "{}({x:e}, {y:e}) = {got:e}, not {exact:e}", function.name);
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(mod $name {
            #[test]
            fn random_arguments() {
                super::check_random(stringify!($name));
            }
            #[test]
            fn singles() {
                super::check_singles(stringify!($name));
            }
        })*

        #[test]
        fn every_function_is_tested() {
            assert!(all().iter().map(|function| function.name).eq([$(stringify!($name)),*]));
        }
    };
}
tests! {
    exp exp2 expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt pow atan2 hypot
}

/// Singles that even strides miss: powers of two, where the precision of sums on the way changes, and their neighbours.
#[test]
fn singles_around_powers_of_two() {
    for function in all().iter().filter(|function| !function.two_arguments) {
        for exponent in -126..128 {
            let power = 2f32.powi(exponent);
            for x in [power.next_down(), power, power.next_up(), -power] {
                check_single(function, x, 0.0);
            }
        }
    }
}

/// Arguments known to be hard: closest to multiples of pi / 2 among all doubles, ends of ranges, and points where a reduction changes its mind.
#[test]
fn hard_arguments() {
    let mut consts = Consts::new().unwrap();
    let closest = 6_381_956_970_095_103.0 * 2f64.powi(797);
    let angles = [closest, 1e300, f64::MAX, 2f64.powi(30), 2f64.powi(30).next_up(), 5e-324, 1e-310, 16_367_173.0];
    for name in ["sin", "cos", "tan"] {
        angles.iter().for_each(|&x| check_double(&function(name), x, 0.0, &mut consts));
        angles.iter().for_each(|&x| check_double(&function(name), -x, 0.0, &mut consts));
    }
    for (name, points) in [
        ("exp", &[709.78271289338, -745.1332191019411, -708.4, 1e-300, -0.34657359027997264][..]),
        ("exp2", &[1023.999999999999, -1074.0, -1022.5, 0.5, -0.5]),
        ("expm1", &[709.78271289338, 0.34657359027997264, -0.34657359027997264, 37.5, 5e-324]),
        ("log", &[5e-324, 2.2e-308, 1f64.next_up(), 1f64.next_down(), std::f64::consts::SQRT_2, f64::MAX]),
        ("log1p", &[-1f64.next_down(), 5e-324, 1e-17, -1e-17, f64::MAX]),
        ("log2", &[5e-324, 1f64.next_up(), 1f64.next_down(), f64::MAX]),
        ("log10", &[5e-324, 1f64.next_up(), 1f64.next_down(), f64::MAX]),
        ("tanh", &[5e-324, 1e-9, 0.173286795, 0.1733, 22.0, 19.06]),
        ("sinh", &[710.4758600739439, 0.34657359027997264, 5e-324]),
        ("cosh", &[710.4758600739439, 0.34657359027997264, 5e-324]),
        ("asin", &[0.5, 0.5f64.next_up(), 1f64.next_down(), 5e-324]),
        ("acos", &[0.5, 0.5f64.next_up(), 1f64.next_down(), -1f64.next_down(), 1e-300]),
        ("acosh", &[1f64.next_up(), 2f64.powi(30), 2f64.powi(30).next_up(), f64::MAX]),
        ("asinh", &[2f64.powi(30), 2f64.powi(30).next_up(), f64::MAX, 5e-324]),
        ("atanh", &[1f64.next_down(), 5e-324, 2f64.powi(-30)]),
        ("cbrt", &[5e-324, 2.2e-308, f64::MAX, 8f64.next_up()]),
    ] {
        points.iter().for_each(|&x| check_double(&function(name), x, 0.0, &mut consts));
    }
    for (x, y) in [(1f64.next_up(), 1e18), (1f64.next_down(), -3e18), (5e-324, 0.99), (f64::MAX, 0.999), (2.0, -1073.5)]
    {
        check_double(&function("pow"), x, y, &mut consts);
    }
    for (x, y) in [(5e-324, 5e-324), (f64::MAX, 1e-300), (1e-310, 3e-308), (f64::MAX / 2.0, f64::MAX / 3.0), (3.0, 4.0)]
    {
        check_double(&function("hypot"), x, y, &mut consts);
        check_double(&function("atan2"), x, y, &mut consts);
        check_double(&function("atan2"), x, -y, &mut consts);
    }
}
