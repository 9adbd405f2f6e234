//! Special values of complex functions, as C99 (Annex G, with its corrections) and the array API standard list them.

use crate::reference::{Function, Number, all};

/// Function, argument, result. Only arguments in the upper half plane, and for odd and even functions in the first quadrant: the rest follows from
/// symmetry. `~` stands before values of either sign.
const TABLE: &str = "
exp 0 0 1 0
exp -0 0 1 0
exp 1 inf nan nan
exp 1 nan nan nan
exp -1000 nan nan nan
exp inf 0 inf 0
exp -inf 1 0 0
exp -inf 2 -0 0
exp inf 1 inf inf
exp inf 2 -inf inf
exp inf 4 -inf -inf
exp -inf inf ~0 ~0
exp inf inf ~inf nan
exp -inf nan ~0 ~0
exp inf nan ~inf nan
exp nan 0 nan 0
exp nan 1 nan nan
exp nan inf nan nan
exp nan nan nan nan
exp 1000 0 inf 0

expm1 0 0 0 0
expm1 1 inf nan nan
expm1 1 nan nan nan
expm1 inf 0 inf 0
expm1 -inf 1 -1 0
expm1 -inf 4 -1 -0
expm1 inf 2 -inf inf
expm1 -inf inf -1 ~0
expm1 inf inf ~inf nan
expm1 -inf nan -1 ~0
expm1 inf nan ~inf nan
expm1 nan 0 nan 0
expm1 nan 1 nan nan
expm1 nan nan nan nan

log -0 0 -inf pi
log 0 0 -inf 0
log 1 0 0 0
log -1 0 0 pi
log 1 inf inf pi/2
log 1 nan nan nan
log -inf 1 inf pi
log inf 1 inf 0
log -inf inf inf 3pi/4
log inf inf inf pi/4
log -inf nan inf nan
log inf nan inf nan
log nan 1 nan nan
log nan inf inf nan
log nan nan nan nan

log1p -1 0 -inf 0
log1p 0 0 0 0
log1p -0 0 0 0
log1p 1 inf inf pi/2
log1p 1 nan nan nan
log1p -inf 1 inf pi
log1p inf 1 inf 0
log1p -inf inf inf 3pi/4
log1p inf inf inf pi/4
log1p -inf nan inf nan
log1p inf nan inf nan
log1p nan 1 nan nan
log1p nan inf inf nan
log1p nan nan nan nan

log2 8 0 3 0
log2 0 0 -inf 0
log2 inf nan inf nan
log2 0.25 0 -2 0
log10 1000 0 3 0
log10 0 0 -inf 0
log10 nan inf inf nan

sqrt 0 0 0 0
sqrt -0 0 0 0
sqrt 1 inf inf inf
sqrt nan inf inf inf
sqrt inf inf inf inf
sqrt -inf inf inf inf
sqrt 1 nan nan nan
sqrt -inf 1 0 inf
sqrt inf 1 inf 0
sqrt -inf nan nan ~inf
sqrt inf nan inf nan
sqrt nan 1 nan nan
sqrt nan nan nan nan
sqrt -4 0 0 2
sqrt 4 0 2 0

sinh 0 0 0 0
sinh 0 inf ~0 nan
sinh 0 nan ~0 nan
sinh 1 inf nan nan
sinh 1 nan nan nan
sinh inf 0 inf 0
sinh inf 1 inf inf
sinh inf 2 -inf inf
sinh inf inf ~inf nan
sinh inf nan ~inf nan
sinh nan 0 nan 0
sinh nan 1 nan nan
sinh nan inf nan nan
sinh nan nan nan nan
sinh 1000 0 inf 0

cosh 0 0 1 0
cosh 0 inf nan ~0
cosh 0 nan nan ~0
cosh 1 inf nan nan
cosh 1 nan nan nan
cosh inf 0 inf 0
cosh inf 1 inf inf
cosh inf 2 -inf inf
cosh inf inf ~inf nan
cosh inf nan inf nan
cosh nan 0 nan ~0
cosh nan 1 nan nan
cosh nan inf nan nan
cosh nan nan nan nan
cosh 1000 0 inf 0

tanh 0 0 0 0
tanh 0 inf 0 nan
tanh 0 nan 0 nan
tanh 1 inf nan nan
tanh 1 nan nan nan
tanh inf 1 1 0
tanh inf 2 1 -0
tanh inf inf 1 ~0
tanh inf nan 1 ~0
tanh nan 0 nan 0
tanh nan 1 nan nan
tanh nan nan nan nan

asinh 0 0 0 0
asinh 1 inf inf pi/2
asinh 1 nan nan nan
asinh inf 1 inf 0
asinh inf inf inf pi/4
asinh inf nan inf nan
asinh nan 0 nan 0
asinh nan 1 nan nan
asinh nan inf ~inf nan
asinh nan nan nan nan
asinh 0 1 0 pi/2

acos 0 0 pi/2 -0
acos -0 0 pi/2 -0
acos 0 nan pi/2 nan
acos -0 nan pi/2 nan
acos 1 inf pi/2 -inf
acos 1 nan nan nan
acos -inf 1 pi -inf
acos inf 1 0 -inf
acos -inf inf 3pi/4 -inf
acos inf inf pi/4 -inf
acos -inf nan nan ~inf
acos inf nan nan ~inf
acos nan 1 nan nan
acos nan inf nan -inf
acos nan nan nan nan
acos 1 0 0 -0
acos -1 0 pi -0

acosh 0 0 0 pi/2
acosh -0 0 0 pi/2
acosh 1 0 0 0
acosh -1 0 0 pi
acosh 1 inf inf pi/2
acosh 1 nan nan nan
acosh 0 nan nan ~pi/2
acosh -inf 1 inf pi
acosh inf 1 inf 0
acosh -inf inf inf 3pi/4
acosh inf inf inf pi/4
acosh -inf nan inf nan
acosh inf nan inf nan
acosh nan 1 nan nan
acosh nan inf inf nan
acosh nan nan nan nan

atanh 0 0 0 0
atanh 0 nan 0 nan
atanh 1 0 inf 0
atanh 1 inf 0 pi/2
atanh 1 nan nan nan
atanh inf 1 0 pi/2
atanh inf inf 0 pi/2
atanh inf nan 0 nan
atanh nan 1 nan nan
atanh nan inf ~0 pi/2
atanh nan nan nan nan

sign 0 0 0 0
sign inf 1 1 0
sign 1 inf 0 1
sign inf inf nan nan
sign nan 1 nan nan
sign 1 nan nan nan
sign 1e308 0 1 0
sign 0 5e-324 0 1
";

/// Quotients and powers: two arguments, and the result.
const OF_TWO: &str = "
div 1 0 0 0 inf nan
div 1 -1 0 0 inf -inf
div 0 0 0 0 nan nan
div 1 1 inf 0 0 0
div 1 1 inf inf 0 0
div 1 1 inf nan 0 0
div inf nan 1 1 inf -inf
div inf inf 1 0 inf inf
div inf 0 inf 0 nan nan
div nan 1 1 1 nan nan
div 0 1 0 1 1 0
div 1e300 1e300 1e300 1e300 1 0
div 5e-324 5e-324 5e-324 5e-324 1 0
div 1e308 1e308 2 0 5e307 5e307
pow 0 0 0 0 1 0
pow nan 1 0 0 1 0
pow 0 0 2.5 1 0 0
pow 0 0 -1 0 nan nan
pow inf 0 2.5 0 inf 0
pow 1 0 1e300 0 1 0
pow 4 0 0.5 0 2 0
";

/// A value that is expected, and whether its sign is.
type Expected = (f64, bool);

fn expected(text: &str) -> Expected {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    let (text, is_signed) = text.strip_prefix('~').map_or((text, true), |rest| (rest, false));
    let value = match text {
        "pi" => PI,
        "pi/2" => FRAC_PI_2,
        "pi/4" => FRAC_PI_4,
        "3pi/4" => 3.0 * FRAC_PI_4,
        _ => text.parse().unwrap(),
    };
    (value, is_signed)
}

fn is_expected(got: f64, (value, is_signed): Expected) -> bool {
    // Singles round pi.
    let is_same = got.abs() == value.abs() || got.abs() == f64::from(value.abs() as f32);
    let has_sign = !is_signed || got.is_sign_negative() == value.is_sign_negative();
    if value.is_nan() { got.is_nan() } else { is_same && has_sign }
}

fn check(function: &Function, a: Number, b: Number, result: (Expected, Expected)) {
    for (kind, got) in [("c128", function.double(a, b)), ("c64", function.single(a, b))] {
        // Large and small numbers are other numbers as singles.
        let is_single = [a.0, a.1, b.0, b.1].iter().all(|&x| !x.is_finite() || f64::from(x as f32) == x);
        if kind == "c64" && !is_single {
            continue;
        }
        let is_right = is_expected(got.0, result.0) && is_expected(got.1, result.1);
        assert!(is_right, "{} of {a:?} {b:?} as {kind} is {got:?}, not {result:?}", function.name);
    }
}

fn negative((value, is_signed): Expected) -> Expected {
    (-value, is_signed)
}

/// Checks a row and what follows from it: the function of the conjugate number, and of the opposite one if the function is odd or even.
fn check_symmetric(function: &Function, z: Number, (re, im): (Expected, Expected)) {
    const NONE: Number = (0.0, 0.0);
    check(function, z, NONE, (re, im));
    check(function, (z.0, -z.1), NONE, (re, negative(im)));
    let opposite = (-z.0, -z.1);
    match function.name {
        "sinh" | "tanh" | "asinh" | "atanh" | "sin" | "tan" | "asin" | "atan" | "sign" => {
            check(function, opposite, NONE, (negative(re), negative(im)));
            check(function, (-z.0, z.1), NONE, (negative(re), im));
        }
        "cosh" | "cos" => {
            check(function, opposite, NONE, (re, im));
            check(function, (-z.0, z.1), NONE, (re, negative(im)));
        }
        _ => {}
    }
}

#[test]
fn special_values() {
    let functions = all();
    let find = |name: &str| functions.iter().find(|function| function.name == name).unwrap();
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let z: Number = (words[1].parse().unwrap(), words[2].parse().unwrap());
        let (re, im) = (expected(words[3]), expected(words[4]));
        check_symmetric(find(words[0]), z, (re, im));
        // Circular functions are hyperbolic ones of turned numbers.
        match words[0] {
            name @ ("sinh" | "tanh" | "asinh" | "atanh") => {
                check_symmetric(find(name.trim_end_matches('h')), (z.1, -z.0), (im, negative(re)));
            }
            "cosh" => check_symmetric(find("cos"), (z.1, -z.0), (re, im)),
            _ => {}
        }
    }
}

#[test]
fn special_values_of_two() {
    let functions = all();
    for line in OF_TWO.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [a, b, c, d, re, im] = [1, 2, 3, 4, 5, 6].map(|k| expected(words[k]));
        let function = functions.iter().find(|function| function.name == words[0]).unwrap();
        check(function, (a.0, b.0), (c.0, d.0), (re, im));
    }
}
