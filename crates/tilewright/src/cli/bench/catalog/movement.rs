//! Data movement: transposes, concatenations, gathers, sorts.

use super::super::declare::Rival::{Copy, Jax, Numpy};
use super::super::declare::{BENCH, Bench, Ours, Values, at_least, beside};

const fn concat(name: &'static str, about: &'static str, text: &'static str, rival_program: &'static str) -> Bench {
    Bench {
        name,
        about,
        ours: Ours::Text(text),
        rival_program,
        versus: const { &[beside(Numpy), beside(Jax), at_least(0.7, Copy)] },
        quick: &[("n", 1000)],
        ..BENCH
    }
}

pub(super) static BENCHES: &[Bench] = &[
    Bench {
        name: "transpose",
        about: "a transposed copy",
        ours: Ours::Text("param n = 8000\ninput A: f64[n, n]\nR = A.T\noutput R\n"),
        rival_program: "transpose",
        versus: &[beside(Numpy), beside(Jax), at_least(0.7, Copy)],
        quick: &[("n", 1000)],
        ..BENCH
    },
    concat(
        "concat-rows",
        "one matrix below another",
        "param n = 8000\ninput A: f64[n // 2, n]\ninput B: f64[n // 2, n]\nR = concat(A, B, axis=0)\noutput R\n",
        "concat_rows",
    ),
    concat(
        "concat-columns",
        "one matrix beside another",
        "param n = 8000\ninput A: f64[n, n // 2]\ninput B: f64[n, n // 2]\nR = concat(A, B, axis=1)\noutput R\n",
        "concat_columns",
    ),
    Bench {
        name: "take",
        about: "random rows of a matrix",
        ours: Ours::Text(
            "
param rows = 1_000_000
param wanted = 10_000_000
input T: f64[rows, 8]
input index: i64[wanted]
R = take(T, index)
output R
",
        ),
        rival_program: "take",
        versus: &[beside(Numpy), beside(Jax), beside(Copy)],
        quick: &[("rows", 10_000), ("wanted", 100_000)],
        data: &[("index", Values::Below("rows"))],
        ..BENCH
    },
    Bench {
        name: "sort",
        about: "sorted values",
        ours: Ours::Text("param n = 50_000_000\ninput A: f64[n]\nR = sort(A)\noutput R\n"),
        rival_program: "sort",
        versus: &[at_least(0.9, Numpy), beside(Jax)],
        quick: &[("n", 500_000)],
        ..BENCH
    },
    Bench {
        name: "argsort",
        about: "positions in order of values",
        ours: Ours::Text("param n = 10_000_000\ninput A: f64[n]\nR = argsort(A)\noutput R\n"),
        rival_program: "argsort",
        versus: &[beside(Numpy), beside(Jax)],
        quick: &[("n", 200_000)],
        ..BENCH
    },
];
