//! The implementation algebra of the tensor relational algebra (Yuan et al., PVLDB 2021, Table 1): tuples of key, array and site, under broadcast, shuffle and local
//! operators.
//!
//! A `RelationTerm` says how a relation is computed and where its tuples are while that happens. `RelationTerm::types` tells
//! frontiers, bounds and how tuples are spread, so that costs are exact; `rules` rewrite a term into others that hold
//! the same keys and arrays; `search` looks for the cheapest. Terms are small: sets of keys are enumerated where a
//! key function is involved.
//!
//! `of_plan` derives the term of every statement of a placed plan, for `explain`: [`Placed::terms`](super::Placed::terms). The schedulers
//! of this crate decide without it. The tests also derive the plans and tables of the paper; only they need the meaning of terms
//! (`evaluate`) and the paper's own cost model.

mod cost;
#[cfg(test)]
mod evaluate;
mod kernel;
mod of_plan;
mod rules;
mod search;
mod term;
#[cfg(test)]
mod tests;
mod types;

pub use of_plan::{BestTerm, StatementTerm};

#[cfg(test)]
use cost::{cost, wire};
#[cfg(test)]
use evaluate::{SiteSet, Tuples, evaluate};
#[cfg(test)]
use kernel::{KernelFunction, KeyMap, Predicate};
#[cfg(test)]
use search::{Stop, search};
#[cfg(test)]
use term::RelationTerm;
#[cfg(test)]
use types::{Spread, Type};
