//! Prints the table of `docs/accuracy.md`: `cargo run --release -p tw-ir --example accuracy -- 20000`
#![allow(clippy::unwrap_used)]

#[path = "../tests/accuracy/reference.rs"]
mod reference;

use astro_float_num::Consts;
use reference::{DOUBLE, SINGLE, all, argument, distance};

fn main() {
    let n: i64 = std::env::args().nth(1).map_or(2_000, |text| text.parse().unwrap());
    let mut consts = Consts::new().unwrap();
    println!("| function | f64 | at | f32 | at |\n|---|---|---|---|---|");
    for function in all() {
        let (mut double, mut single) = ((0.0, String::new()), (0.0, String::new()));
        for k in 0..n {
            let (x, y) = argument(&function, 1, k);
            let shown =
                |x: f64, y: f64| if function.two_arguments { format!("{x:e}, {y:e}") } else { format!("{x:e}") };
            let found = distance(&(function.exact)(x, y, &mut consts), (function.double)(x, y), DOUBLE);
            if found > double.0 {
                double = (found, shown(x, y));
            }
            let (x, y) = (x as f32, y as f32);
            if !x.is_normal() || function.two_arguments && !y.is_normal() {
                continue;
            }
            let exact = (function.exact)(x.into(), y.into(), &mut consts);
            let found = distance(&exact, (function.single)(x, y).into(), SINGLE);
            if found > single.0 {
                single = (found, shown(x.into(), y.into()));
            }
        }
        println!("| `{}` | {:.3} | {} | {:.3} | {} |", function.name, double.0, double.1, single.0, single.1);
    }
}
