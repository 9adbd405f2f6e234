//! Making a failing program small, so that a person can read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tw_ir::program::{IndexStmt, Node, SourceOp, verify};
use tw_ir::{Array, Op, Program, Region, ScalarOp, Slot, ValueId, oracle};

mod renumber;

/// Steps of the oracle when it computes what nodes give. A program that takes longer is shrunk without it.
const MAX_STEPS: u64 = 100_000;

/// The smallest program found for which `still_fails` holds: it ends earlier, outputs and stores are dropped, nodes are replaced by the constants they compute, statements lose
/// their guard or their arithmetic, and what nothing needs goes away. `still_fails` must hold for the program itself.
pub fn shrink(
    program: &Program,
    inputs: &BTreeMap<String, Array>,
    mut still_fails: impl FnMut(&Program) -> bool,
) -> Program {
    let mut best = program.clone();
    let mut try_it = |best: &mut Program, candidate: Program| -> bool {
        let candidate = renumber::renumber(&without_dead_nodes(candidate));
        let is_better = size(&candidate) < size(best) && verify(&candidate).is_ok() && still_fails(&candidate);
        if is_better {
            *best = candidate;
        }
        is_better
    };
    loop {
        let mut progress = false;
        for k in 0..best.body.nodes.len() {
            progress |= output_of(&best, k).is_some_and(|candidate| try_it(&mut best, candidate));
        }
        for k in (0..best.outputs.len()).rev() {
            let mut candidate = best.clone();
            candidate.outputs.remove(k);
            candidate.body.results.remove(k);
            progress |= try_it(&mut best, candidate);
        }
        for k in (0..best.body.nodes.len()).rev() {
            let mut candidate = best.clone();
            // Earlier successes may have taken nodes away.
            if k < best.body.nodes.len() && matches!(best.body.nodes[k].op, Op::Store { .. }) {
                candidate.body.nodes.remove(k);
                progress |= try_it(&mut best, candidate);
            }
        }
        let values = values_of(&best, inputs);
        for k in (0..best.body.nodes.len()).rev() {
            if let Some(candidate) = with_constants(&best, k, &values) {
                progress |= try_it(&mut best, candidate);
            }
        }
        for k in (0..best.body.nodes.len()).rev() {
            let Some(Op::Index(stmt)) = best.body.nodes.get(k).map(|node| node.op.clone()) else { continue };
            for simpler in simpler_statements(&stmt) {
                let mut candidate = best.clone();
                if let Some(node) = candidate.body.nodes.get_mut(k) {
                    node.op = Op::Index(simpler);
                    progress |= try_it(&mut best, candidate);
                }
            }
        }
        if !progress {
            return best;
        }
    }
}

/// What every node of the body computes, as far as the oracle can tell.
fn values_of(program: &Program, inputs: &BTreeMap<String, Array>) -> BTreeMap<ValueId, Array> {
    let mut probe = program.clone();
    (probe.outputs, probe.body.results) = (Vec::new(), Vec::new());
    for value in program.body.nodes.iter().flat_map(|node| &node.results) {
        probe.output(value.to_string(), *value);
    }
    let mut outputs = oracle::evaluate_with_limit(&probe, inputs, MAX_STEPS).map(|run| run.outputs).unwrap_or_default();
    let results = probe.body.results.iter();
    results.filter_map(|&value| Some((value, outputs.remove(&value.to_string())?))).collect()
}

/// What is made smaller: nodes that compute, then nodes, outputs and scalar operations. Every step must, so shrinking ends.
fn size(program: &Program) -> [usize; 4] {
    fn add(region: &Region, size: &mut [usize; 4]) {
        for node in &region.nodes {
            size[0] += !matches!(node.op, Op::Source(_)) as usize;
            size[1] += 1;
            match &node.op {
                Op::Index(stmt) => size[3] += stmt.code.ops().len() + stmt.has_guard as usize,
                op => op.regions().for_each(|region| add(region, size)),
            }
        }
    }
    let mut size = [0, 0, program.outputs.len(), 0];
    add(&program.body, &mut size);
    size
}

/// The program up to one node, whose results are the outputs.
fn output_of(program: &Program, k: usize) -> Option<Program> {
    let mut candidate = program.clone();
    candidate.body.nodes.truncate(k + 1);
    (candidate.outputs, candidate.body.results) = (Vec::new(), Vec::new());
    for (position, &value) in program.body.nodes.get(k)?.results.iter().enumerate() {
        candidate.output(format!("out{position}"), value);
    }
    Some(candidate)
}

/// The program with one node replaced by constants.
fn with_constants(program: &Program, k: usize, values: &BTreeMap<ValueId, Array>) -> Option<Program> {
    let node = program.body.nodes.get(k)?;
    if matches!(node.op, Op::Source(_) | Op::Store { .. } | Op::Resolve) {
        return None;
    }
    let constants = node.results.iter().map(|value| {
        let array = Arc::new(values.get(value)?.clone());
        let op = Op::Source(SourceOp::Constant(array));
        Some(Node { op, args: Vec::new(), results: vec![*value], span: node.span })
    });
    let constants: Vec<Node> = constants.collect::<Option<_>>()?;
    let mut candidate = program.clone();
    candidate.body.nodes.splice(k..=k, constants);
    Some(candidate)
}

/// Statements that say less: without the guard, or with one body replaced by something that was read.
fn simpler_statements(stmt: &IndexStmt) -> Vec<IndexStmt> {
    let mut simpler = Vec::new();
    let results = stmt.code.results();
    let with_results = |results: Vec<Slot>, has_guard: bool| {
        let mut stmt = stmt.clone();
        stmt.code.set_results(results);
        stmt.code = stmt.code.without_dead_ops();
        stmt.has_guard = has_guard;
        stmt
    };
    if stmt.has_guard {
        simpler.push(with_results(results[1..].to_vec(), false));
    }
    for k in stmt.has_guard as usize..results.len() {
        let is_param = |op: &ScalarOp| matches!(op, ScalarOp::Param(_));
        if is_param(&stmt.code.ops()[results[k].0 as usize]) {
            continue;
        }
        let params = stmt.code.ops().iter().enumerate().filter(|(_, op)| is_param(op)).map(|(k, _)| Slot(k as u32));
        for param in params.filter(|&slot| stmt.code.dtype(slot) == stmt.code.dtype(results[k])) {
            let mut results = results.to_vec();
            results[k] = param;
            simpler.push(with_results(results, stmt.has_guard));
        }
    }
    simpler
}

/// Removes nodes whose results nothing needs. Their values stay declared.
fn without_dead_nodes(mut program: Program) -> Program {
    let mut body = std::mem::take(&mut program.body);
    let mut needed = BTreeSet::new();
    // What a region reads from around it is needed too, so inner regions are visited while the outer one is scanned backwards.
    scan_backwards(&program, &mut body, &mut needed);
    program.body = body;
    program
}

fn scan_backwards(program: &Program, region: &mut Region, needed: &mut BTreeSet<ValueId>) {
    needed.extend(&region.results);
    for value in region.params.iter().chain(&region.results) {
        need_extents(program, *value, needed);
    }
    let mut kept = Vec::new();
    for mut node in std::mem::take(&mut region.nodes).into_iter().rev() {
        let is_needed = has_effect(&node.op) || node.results.iter().any(|value| needed.contains(value));
        if !is_needed {
            continue;
        }
        if let Op::While { condition: first, body: second } | Op::If { then: first, otherwise: second } = &mut node.op {
            scan_backwards(program, first, needed);
            scan_backwards(program, second, needed);
        }
        needed.extend(&node.args);
        for value in node.args.iter().chain(&node.results) {
            need_extents(program, *value, needed);
        }
        kept.push(node);
    }
    kept.reverse();
    region.nodes = kept;
}

/// A tensor needs the scalars its extents depend on.
fn need_extents(program: &Program, value: ValueId, needed: &mut BTreeSet<ValueId>) {
    needed.extend(program.ty(value).shape.iter().filter_map(|&extent| program.told_by(extent)));
}

fn has_effect(op: &Op) -> bool {
    let is_store = |op: &Op| matches!(op, Op::Store { .. });
    is_store(op) || op.regions().flat_map(Region::all_nodes).any(|node| is_store(&node.op))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Options, random_program};

    fn has_op(program: &Program, name: &str) -> bool {
        program.body.nodes.iter().any(|node| node.op.name() == name)
    }

    #[test]
    fn only_the_culprit_remains() {
        let mut shrunk = 0;
        for seed in 0..60 {
            let (program, inputs) = random_program(seed, &Options::default());
            // Pretend that sorting is broken wherever its result matters.
            let fails = |candidate: &Program| has_op(&without_dead_nodes(candidate.clone()), "sort");
            if !fails(&program) {
                continue;
            }
            let small = shrink(&program, &inputs, fails);
            verify(&small).unwrap();
            assert!(small.body.nodes.len() == 2, "{}", tw_ir::text::print_program(&small));
            shrunk += 1;
        }
        assert!(shrunk > 5, "only {shrunk} programs had something to shrink");
    }

    #[test]
    fn results_survive_the_removal_of_dead_nodes() {
        for seed in 0..60 {
            let (program, inputs) = random_program(seed, &Options::default());
            let small = without_dead_nodes(program.clone());
            verify(&small).unwrap();
            let (before, after) = (oracle::evaluate(&program, &inputs), oracle::evaluate(&small, &inputs));
            let (before, after) = (before.unwrap(), after.unwrap());
            assert!(before.iter().all(|(name, array)| array.same_bits(&after[name])));
        }
    }
}
