//! Complex functions against arbitrary precision, for arguments of all magnitudes, and their special values.
//!
//! `TW_FULL=1` draws many more arguments.
#![allow(clippy::unwrap_used)]

#[path = "complex/arguments.rs"]
mod arguments;
#[path = "complex/reference.rs"]
mod reference;
#[path = "complex/special.rs"]
mod special;

use arguments::{argument, as_single};
use reference::{DOUBLE, Field, SINGLE, all};

fn check(name: &str) {
    let function = all().into_iter().find(|function| function.name == name).unwrap();
    let mut field = Field::new();
    for k in 0..if std::env::var_os("TW_FULL").is_some() { 20_000 } else { 300 } {
        let (a, b) = argument(&function, 7, k);
        let got = function.double(a, b);
        let found = function.distances(a, b, got, DOUBLE, &mut field);
        assert!(
            found[0] <= function.part_limit && found[1] <= function.limit(a, b),
            "{name}({a:?}, {b:?}) = {got:?} is off by {found:?}"
        );
        let (Some(a), Some(b)) = (as_single(a), as_single(b).or((!function.two_arguments).then_some(b))) else {
            continue;
        };
        let got = function.single(a, b);
        let found = function.distances(a, b, got, SINGLE, &mut field);
        // Computed as doubles, so one rounding is all that shows.
        let limit = if function.part_limit.is_finite() { 0.51 } else { f64::INFINITY };
        assert!(found[0] <= limit && found[1] <= 0.51, "{name}({a:?}, {b:?}) = {got:?} as c64 is off by {found:?}");
    }
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_function_is_tested() {
            assert!(all().iter().map(|function| function.name).eq([$(stringify!($name)),*]));
        }
    };
}
tests! {
    exp expm1 log log1p log2 log10 sqrt sinh cosh tanh sin cos tan asin acos atan asinh acosh atanh sign div pow
}
