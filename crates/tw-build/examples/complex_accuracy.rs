//! Prints the table of complex functions of `docs/accuracy.md`: `cargo run --release -p tw-build --example complex_accuracy -- 10000`
#![allow(clippy::unwrap_used)]

#[path = "../tests/complex/arguments.rs"]
mod arguments;
// Limits are for tests.
#[allow(dead_code)]
#[path = "../tests/complex/reference.rs"]
mod reference;

use arguments::{argument, as_single};
use reference::{DOUBLE, Field, Number, SINGLE, all};

fn main() {
    let n: i64 = std::env::args().nth(1).map_or(1_000, |text| text.parse().unwrap());
    let only = std::env::args().nth(2);
    let mut field = Field::new();
    println!("| function | c128, each part | c128 | worst at | c64, each part | c64 |\n|---|---|---|---|---|---|");
    for function in all().into_iter().filter(|function| only.as_deref().is_none_or(|name| name == function.name)) {
        let (mut double, mut single, mut worst) = ([0.0f64; 2], [0.0f64; 2], ((0.0, 0.0), (0.0, 0.0)));
        for k in 0..n {
            let (a, b) = argument(&function, 1, k);
            let found = function.distances(a, b, function.double(a, b), DOUBLE, &mut field);
            // Where parts have no bound, the worst of them is no news.
            let by = usize::from(function.part_limit.is_infinite());
            if found[by] > double[by] {
                worst = (a, b);
            }
            double = [double[0].max(found[0]), double[1].max(found[1])];
            if let (Some(a), Some(b)) = (as_single(a), as_single(b).or((!function.two_arguments).then_some(b))) {
                let found = function.distances(a, b, function.single(a, b), SINGLE, &mut field);
                single = [single[0].max(found[0]), single[1].max(found[1])];
            }
        }
        let shown = |z: Number| format!("{:e} {:+e}i", z.0, z.1);
        let at = if function.two_arguments { shown(worst.0) + ", " + &shown(worst.1) } else { shown(worst.0) };
        let part = |x: f64| if function.part_limit.is_finite() { format!("{x:.2}") } else { "-".into() };
        let name = function.name;
        let (double, single) = ((part(double[0]), double[1]), (part(single[0]), single[1]));
        println!("| `{name}` | {} | {:.2} | {at} | {} | {:.2} |", double.0, double.1, single.0, single.1);
    }
}
