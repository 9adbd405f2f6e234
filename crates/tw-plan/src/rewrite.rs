//! Rewrites of straight-line programs, as an ordered table of named passes.
//!
//! Each pass maps a program to a program with the same meaning. In debug builds the verifier runs after each pass and names the pass that broke a rule. To add a rewrite, add
//! one file and one row to `BEFORE_ORDERS` or `AFTER_ORDERS`, and cases under `corpus/plans`.

use tw_ir::Program;
use tw_ir::error::Result;

pub(crate) mod contraction;
mod contributions;
mod counts;
mod cse;
mod dead;
pub(crate) mod erase;
mod expand;
mod fuse;
mod nested;
mod rebuild;
pub(crate) mod selections;
mod side_by_side;

pub(crate) use expand::expand;

/// A named rewrite of whole programs.
pub(crate) struct Pass {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Program) -> Result<Program>,
}

/// The rewrite of whole programs, before they are cut into segments.
pub(crate) const SELECTIONS: &str = "selections nobody needs";
/// The rewrites that every plan needs; they run first.
pub(crate) const ERASE: &str = "erase times";
pub(crate) const EXPAND: &str = "expand";
/// The two passes between the tables below.
pub(crate) const ORDERS: &str = "contraction order";
pub(crate) const PAIRS: &str = "products in pairs";

/// The passes before contraction orders are chosen, in order. Fusion is one of them, so that the factors of a product are already in one statement.
pub(crate) const BEFORE_ORDERS: &[Pass] = &[
    Pass { name: "common subexpressions", run: cse::run },
    Pass { name: "counts known beforehand", run: counts::run },
    Pass { name: "fuse elementwise chains", run: fuse::run },
    Pass { name: "aggregates of aggregates", run: nested::run },
    Pass { name: "contributions of scatters", run: contributions::run },
    Pass { name: "folds side by side", run: side_by_side::run },
];

/// The passes after contraction orders are chosen.
pub(crate) const AFTER_ORDERS: &[Pass] =
    &[Pass { name: "common subexpressions again", run: cse::run }, Pass { name: "dead values", run: dead::run }];

/// The names of all rewrites, in order.
pub fn pass_names() -> Vec<&'static str> {
    let names = |passes: &'static [Pass]| passes.iter().map(|pass| pass.name);
    let before = [SELECTIONS, ERASE, EXPAND].into_iter().chain(names(BEFORE_ORDERS));
    before.chain([ORDERS, PAIRS]).chain(names(AFTER_ORDERS)).collect()
}
