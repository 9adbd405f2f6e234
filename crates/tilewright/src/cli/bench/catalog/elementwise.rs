//! Fused expressions and elementary functions.

use super::super::declare::Rival::{Copy, Dask, Jax, Numexpr, Numpy};
use super::super::declare::{BENCH, Bench, Ours, Values, at_least, beside};

/// An elementary function on one type.
macro_rules! function {
    ($name:literal, $program:literal, $dtype:literal, $expression:literal, $data:expr) => {
        Bench {
            name: $name,
            about: $expression,
            ours: Ours::Text(concat!("param n = 8000\ninput A: ", $dtype, "[n, n]\nR = ", $expression, "\noutput R\n")),
            rival_program: $program,
            versus: &[beside(Numpy), beside(Numexpr), beside(Jax), beside(Copy)],
            quick: &[("n", 1000)],
            data: $data,
            ..BENCH
        }
    };
}

pub(super) static BENCHES: &[Bench] = &[
    Bench {
        name: "sum-sin",
        about: "sum(sin(A) + 2B - 0.5)",
        ours: Ours::Text(
            "
param n = 8000
input A: f64[n, n]
input B: f64[n, n]
s = sum(sin(A) + 2 * B - 0.5)
output s
",
        ),
        rival_program: "sum_sin",
        versus: &[at_least(4.0, Numpy), beside(Numexpr), beside(Dask), beside(Jax), beside(Copy)],
        quick: &[("n", 1000)],
        data: &[("A", Values::Between(-4.0, 4.0))],
        ..BENCH
    },
    Bench {
        name: "fused",
        about: "A * B + A - 0.5",
        ours: Ours::Text(
            "
param n = 8000
input A: f64[n, n]
input B: f64[n, n]
R = A * B + A - 0.5
output R
",
        ),
        rival_program: "fused",
        versus: &[beside(Numpy), at_least(1.2, Numexpr), beside(Dask), beside(Jax), at_least(0.8, Copy)],
        quick: &[("n", 1000)],
        data: &[("A", Values::Between(-4.0, 4.0))],
        ..BENCH
    },
    Bench {
        name: "choose",
        about: "2A where A > B and A < 0.75, B elsewhere",
        ours: Ours::Text(
            "
param n = 8000
input A: f64[n, n]
input B: f64[n, n]
R = if A > B and A < 0.75 then 2 * A else B
output R
",
        ),
        rival_program: "choose",
        versus: &[beside(Numpy), beside(Numexpr), beside(Jax), beside(Copy)],
        quick: &[("n", 1000)],
        ..BENCH
    },
    function!("exp-f64", "exp", "f64", "exp(A)", &[("A", Values::Between(-20.0, 20.0))]),
    function!("log-f64", "log", "f64", "log(A)", &[("A", Values::Between(0.0, 1000.0))]),
    function!("tanh-f64", "tanh", "f64", "tanh(A)", &[("A", Values::Between(-4.0, 4.0))]),
    function!("exp-f32", "exp", "f32", "exp(A)", &[("A", Values::Between(-20.0, 20.0))]),
    function!("log-f32", "log", "f32", "log(A)", &[("A", Values::Between(0.0, 1000.0))]),
    function!("tanh-f32", "tanh", "f32", "tanh(A)", &[("A", Values::Between(-4.0, 4.0))]),
    power("power-f64", "A ** B", POWER_F64),
    power("power-f32", "A ** B", POWER_F32),
];

const POWER_F64: &str = "param n = 8000\ninput A: f64[n, n]\ninput B: f64[n, n]\nR = A ** B\noutput R\n";
const POWER_F32: &str = "param n = 8000\ninput A: f32[n, n]\ninput B: f32[n, n]\nR = A ** B\noutput R\n";

const fn power(name: &'static str, about: &'static str, text: &'static str) -> Bench {
    Bench {
        name,
        about,
        ours: Ours::Text(text),
        rival_program: "power",
        versus: const { &[beside(Numpy), beside(Numexpr), beside(Jax)] },
        quick: &[("n", 1000)],
        data: &[("A", Values::Between(0.0, 10.0)), ("B", Values::Between(-3.0, 3.0))],
        ..BENCH
    }
}
