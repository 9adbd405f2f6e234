//! The implementation algebra of the tensor relational algebra (Yuan et al., PVLDB 2021): tuples of key, array and site, under broadcast, shuffle and local
//! operators.
//!
//! A [`RelationTerm`] says how a relation is computed and where its tuples are while that happens. [`RelationTerm::types`] tells
//! frontiers, bounds and how tuples are spread, so that costs are exact; [`rules`] rewrite a term into others that hold
//! the same keys and arrays; [`search`] looks for the cheapest. Terms are small: sets of keys are enumerated where a
//! key function is involved.
//!
//! This module reproduces the plans and tables of the paper; its tests derive them. The schedulers of this crate do not use it.

mod cost;
mod evaluate;
mod kernel;
mod of_plan;
pub mod rules;
mod search;
mod term;
#[cfg(test)]
mod tests;
mod types;

pub use cost::{cost, wire};
pub use evaluate::{SiteSet, Tuples, evaluate};
pub use kernel::{KernelFunction, KeyMap, Predicate};
pub use of_plan::StatementTerm;
pub use search::{Found, Stop, search};
pub use term::RelationTerm;
pub use types::{Spread, Type};
