//! Routines of linear algebra.
//!
//! A routine means its expansion for operands that are not cut. Factorisations then see whole matrices, up to sizes far beyond what the oracle can evaluate,
//! so the meaning involves none of the blocked algorithms that engines run: no panels, no joined triangles. What a routine leaves open, such as the
//! signs of singular vectors, may differ between the oracle and an engine; programs that are compared must not depend on it.

use std::collections::BTreeMap;

use super::evaluate_with_limit;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::program::RoutineSpec;

/// Expands and evaluates a routine within a number of steps.
pub(super) fn run(spec: &RoutineSpec, operands: &[&Array], max_steps: u64) -> Result<Vec<Array>> {
    let program = spec.expand_uncut()?;
    let inputs: BTreeMap<String, Array> =
        operands.iter().enumerate().map(|(k, &array)| (k.to_string(), array.clone())).collect();
    let mut outputs = evaluate_with_limit(&program, &inputs, max_steps)?.outputs;
    let missing = || Error::internal(format!("the expansion of `{}` lacks a result", spec.routine().name()));
    program.outputs.iter().map(|name| outputs.remove(name).ok_or_else(missing)).collect()
}
