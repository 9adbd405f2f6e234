//! Reductions along axes, scans, and programs made of reductions.

use super::super::declare::Rival::{Copy, Dask, Jax, Numpy};
use super::super::declare::{BENCH, Bench, Ours, Values, Versus, at_least, beside};

/// The beginning of every program here.
macro_rules! of_matrix {
    ($statements:literal) => {
        Ours::Text(concat!("param n = 8000\ninput A: f64[n, n]\n", $statements, "\noutput R\n"))
    };
}

const fn on_matrix(
    name: &'static str,
    about: &'static str,
    ours: Ours,
    rival_program: &'static str,
    versus: &'static [Versus],
) -> Bench {
    let data = &[("A", Values::Between(-2.0, 2.0))];
    Bench { name, about, ours, rival_program, versus, quick: &[("n", 1000)], data, ..BENCH }
}

const REQUIRED: &[Versus] = &[at_least(2.0, Numpy), beside(Dask), at_least(1.0, Jax), beside(Copy)];
const BESIDE: &[Versus] = &[beside(Numpy), beside(Dask), beside(Jax), beside(Copy)];

pub(super) static BENCHES: &[Bench] = &[
    on_matrix(
        "softmax",
        "softmax along rows",
        of_matrix!("e = exp(A - max(A, axis=1, keepdims=true))\nR = e / sum(e, axis=1, keepdims=true)"),
        "softmax",
        REQUIRED,
    ),
    on_matrix(
        "layer-norm",
        "(A - mean) / sqrt(var + 1e-5) along rows",
        of_matrix!(
            "m = mean(A, axis=1, keepdims=true)\nv = var(A, axis=1, keepdims=true)\nR = (A - m) / sqrt(v + 1e-5)"
        ),
        "layer_norm",
        REQUIRED,
    ),
    on_matrix("mean-rows", "mean of every row", of_matrix!("R = mean(A, axis=1)"), "mean_rows", REQUIRED),
    on_matrix("mean-columns", "mean of every column", of_matrix!("R = mean(A, axis=0)"), "mean_columns", REQUIRED),
    on_matrix("var-rows", "variance of every row", of_matrix!("R = var(A, axis=1)"), "var_rows", REQUIRED),
    on_matrix("var-columns", "variance of every column", of_matrix!("R = var(A, axis=0)"), "var_columns", REQUIRED),
    on_matrix(
        "argmax-rows",
        "where the largest of every row is",
        of_matrix!("R = argmax(A, axis=1)"),
        "argmax_rows",
        BESIDE,
    ),
    on_matrix(
        "argmax-columns",
        "where the largest of every column is",
        of_matrix!("R = argmax(A, axis=0)"),
        "argmax_columns",
        BESIDE,
    ),
    on_matrix("cumsum-rows", "running sum along rows", of_matrix!("R = cumsum(A, axis=1)"), "cumsum_rows", BESIDE),
    on_matrix(
        "cumsum-columns",
        "running sum along columns",
        of_matrix!("R = cumsum(A, axis=0)"),
        "cumsum_columns",
        BESIDE,
    ),
];
