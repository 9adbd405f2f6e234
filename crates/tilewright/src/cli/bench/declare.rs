//! The type of a bench: a declaration of about twenty lines.

use std::fmt;

use tw_ir::error::Result;

use super::subject::Subject;

/// A bench. Everything about it but the rivals' programs (`rivals/programs.py`) is here.
pub(super) struct Bench {
    /// The name on the command line.
    pub(super) name: &'static str,
    /// One line about it; sizes are added.
    pub(super) about: &'static str,
    /// Our side.
    pub(super) ours: Ours,
    /// The rivals' function; nothing if there are no rivals.
    pub(super) rival_program: &'static str,
    /// The rivals.
    pub(super) versus: &'static [Versus],
    /// Parameters of the program that are different with `--quick`.
    pub(super) quick: &'static [(&'static str, i64)],
    /// The contents of inputs; an input not named here is uniform in [0, 1).
    pub(super) data: &'static [(&'static str, Values)],
    /// Scalar operations, from the values of parameters. Only where a rate in GFLOP/s means something.
    pub(super) flops: Option<fn(Sizes<'_>) -> f64>,
    /// The provider of our matrix products.
    pub(super) products: Products,
    /// Most memory, as a multiple of inputs and output.
    pub(super) peak_bar: Option<f64>,
}

/// Defaults of most benches.
pub(super) const BENCH: Bench = Bench {
    name: "",
    about: "",
    ours: Ours::Text(""),
    rival_program: "",
    versus: &[],
    quick: &[],
    data: &[],
    flops: None,
    products: Products::Chosen,
    peak_bar: None,
};

/// The value of a parameter by name.
pub(super) type Sizes<'a> = &'a dyn Fn(&str) -> f64;

/// Sets up something that is no program, small with `--quick`.
pub(super) type Start = fn(bool) -> Result<Box<dyn Subject>>;

/// Our side of a bench.
pub(super) enum Ours {
    /// A program with inputs, which are made once, and one output, which stays in blocks.
    Text(&'static str),
    /// Something that is no program; gets `--quick`. The rival is told a size of its own, full and quick.
    Special { start: Start, rival_size: [i64; 2] },
    /// Something that is no program and has no rival; gets `--quick`.
    Alone(Start),
}

/// The provider of our matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Products {
    /// The default provider of a session.
    Chosen,
    /// Our own kernel.
    Own,
    /// A CBLAS; without one there is nothing to measure.
    Library,
}

/// Elements of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Values {
    /// Uniform between two numbers.
    Between(f64, f64),
    /// Integers from 0 up to but not including a parameter.
    Below(&'static str),
}

/// A rival and what is expected beside it.
pub(super) struct Versus {
    pub(super) rival: Rival,
    /// The ratio that is expected at full size.
    pub(super) bar: Option<f64>,
}

/// A rival without expectations.
pub(super) const fn beside(rival: Rival) -> Versus {
    Versus { rival, bar: None }
}

/// A rival whose time must be at least `ratio` times ours.
pub(super) const fn at_least(ratio: f64, rival: Rival) -> Versus {
    Versus { rival, bar: Some(ratio) }
}

/// A rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Rival {
    /// Eager arrays.
    Numpy,
    /// Compiled expressions.
    Numexpr,
    /// Arrays in chunks, at the best of several cuts.
    Dask,
    /// Compiled by XLA for the processor.
    Jax,
    /// Copying as many bytes as inputs and output have, by all threads.
    Copy,
    /// Our own matrix product, for as many operations.
    Gemm,
}

impl Rival {
    /// Its name, which for libraries is that of the Python package.
    pub(super) fn name(self) -> &'static str {
        match self {
            Rival::Numpy => "numpy",
            Rival::Numexpr => "numexpr",
            Rival::Dask => "dask",
            Rival::Jax => "jax",
            Rival::Copy => "copy",
            Rival::Gemm => "gemm",
        }
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
