//! One corpus, every engine.
//!
//! A case is a program file that carries its own inputs and expected results as comments; `corpus/README.md` describes the format. Every case
//! runs on the oracle and on threads under many configurations. Expected values were computed without Tilewright, so the oracle is tested too.

mod case;
mod compare;
mod literal;
mod run;

pub use case::{Case, Expectation, ExpectedError};
pub use compare::{Tolerance, difference};
pub use run::{Loaded, check, check_on_ranks, configurations};

/// The files of the corpus, sorted.
pub fn files() -> std::io::Result<Vec<std::path::PathBuf>> {
    crate::repository::files_below(&crate::repository::root().join("corpus"), "tw")
}
