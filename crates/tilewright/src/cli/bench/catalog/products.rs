//! Matrix products, over numbers and over another semiring.

use super::super::declare::Rival::{Dask, Gemm, Jax, Numpy};
use super::super::declare::{BENCH, Bench, Ours, Products, Versus, at_least, beside};

const F64: &str = "param n = 8000\ninput A: f64[n, n]\ninput B: f64[n, n]\nC = A @ B\noutput C\n";
const F32: &str = "param n = 8000\ninput A: f32[n, n]\ninput B: f32[n, n]\nC = A @ B\noutput C\n";

const WITH_RUST: &[Versus] = &[at_least(0.90, Numpy), at_least(1.0, Dask), beside(Jax)];
const WITH_BLAS: &[Versus] = &[at_least(0.97, Numpy), at_least(1.0, Dask)];

const fn matmul(name: &'static str, text: &'static str, products: Products) -> Bench {
    let with_library = matches!(products, Products::Library);
    Bench {
        name,
        about: if with_library { "A @ B by a CBLAS" } else { "A @ B by our own kernel" },
        ours: Ours::Text(text),
        rival_program: "matmul",
        versus: if with_library { WITH_BLAS } else { WITH_RUST },
        quick: &[("n", 1000)],
        flops: Some(|size| 2.0 * size("n").powi(3)),
        products,
        peak_bar: Some(1.1),
        ..BENCH
    }
}

const fn minplus(name: &'static str, about: &'static str, text: &'static str, versus: &'static [Versus]) -> Bench {
    Bench {
        name,
        about,
        ours: Ours::Text(text),
        rival_program: "minplus",
        versus,
        quick: &[("n", 200)],
        flops: Some(|size| 2.0 * size("n").powi(3)),
        ..BENCH
    }
}

pub(super) static BENCHES: &[Bench] = &[
    matmul("matmul-f64", F64, Products::Own),
    matmul("matmul-f32", F32, Products::Own),
    matmul("matmul-blas-f64", F64, Products::Library),
    matmul("matmul-blas-f32", F32, Products::Library),
    Bench {
        name: "xtx",
        about: "X.T @ X",
        ours: Ours::Text("param n = 2_000_000\nparam d = 50\ninput X: f64[n, d]\nG = X.T @ X\noutput G\n"),
        rival_program: "xtx",
        versus: &[at_least(1.0, Numpy), beside(Dask), beside(Jax)],
        quick: &[("n", 100_000)],
        flops: Some(|size| 2.0 * size("n") * size("d").powi(2)),
        ..BENCH
    },
    minplus(
        "minplus",
        "C[i,j] = min[k](A[i,k] + B[k,j])",
        "param n = 2000\ninput A: f64[n, n]\ninput B: f64[n, n]\nC[i,j] = min[k](A[i,k] + B[k,j])\noutput C\n",
        &[at_least(0.3, Gemm)],
    ),
    minplus(
        "minplus-small",
        "the same, small enough that rivals can broadcast",
        "param n = 300\ninput A: f64[n, n]\ninput B: f64[n, n]\nC[i,j] = min[k](A[i,k] + B[k,j])\noutput C\n",
        &[beside(Numpy), beside(Jax)],
    ),
];
