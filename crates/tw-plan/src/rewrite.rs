//! Rewrites of straight-line programs, as an ordered table of named passes.
//!
//! Each pass takes a program and gives one with the same meaning. In debug builds the verifier runs after each and names the guilty one.

use tw_ir::Program;
use tw_ir::error::Result;

mod contraction;
mod counts;
mod cse;
mod dead;
pub(crate) mod erase;
mod expand;
mod fuse;
mod rebuild;

pub(crate) use expand::expand;

/// A named rewrite of whole programs.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Program) -> Result<Program>,
}

/// The passes in the order they run. Fusion comes before contraction order, so that the factors of a product are already in one statement.
pub(crate) const PASSES: &[Pass] = &[
    Pass { name: "common subexpressions", run: cse::run },
    Pass { name: "counts known beforehand", run: counts::run },
    Pass { name: "fuse elementwise chains", run: fuse::run },
    Pass { name: "contraction order", run: contraction::run },
    Pass { name: "common subexpressions again", run: cse::run },
    Pass { name: "dead values", run: dead::run },
];
