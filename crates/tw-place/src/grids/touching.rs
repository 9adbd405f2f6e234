//! The statements of a program in the form that lower bounds need.

use std::collections::BTreeMap;

use tw_ir::EntityRef;
use tw_ir::index::Var;
use tw_ir::program::{Node, NodeId, Op, Program, ValueId};

use super::Aim;
use super::access::Accesses;
use super::form::Form;
use crate::bounds::{Touching, Volume};
use crate::homes::Before;
use crate::mesh::Variable;

/// The statements with arrays whose axes all run along variables, each with its node number. A value is two arrays, with numbers of their own: its parts as they are summed, and the value as it is
/// read. For an element with `k` parts and `m` readers, `k - 1` messages precede the first worker that has the sum, and the other readers need `m - 1` more.
pub(crate) fn touching(program: &Program) -> Vec<(NodeId, Touching)> {
    let n_values = program.values.len();
    let touching = |(id, node): (NodeId, &Node)| {
        let Op::Index(stmt) = &node.op else { return None };
        // No worker must touch points that a guard excludes.
        let form = Form::of(program, node, Aim::Bytes).filter(|_| !stmt.has_guard)?;
        let mut arrays: Vec<(usize, Vec<usize>, u64)> = Vec::new();
        for (access, read) in stmt.reads.iter().zip(&form.reads) {
            let vars = read.part.idx.iter().zip(&read.shape).map(|(idx, &n)| {
                let var = idx.as_var()?.0 as usize;
                (form.variables[var] == Variable::alone(n)).then_some(var)
            });
            let value = node.args[access.operand as usize].index();
            // Nothing is known of other reads, but that nobody receives less than nothing.
            let Some(mut vars) = vars.collect::<Option<Vec<usize>>>() else { continue };
            // Of a diagonal only its elements are touched.
            vars.sort_unstable();
            vars.dedup();
            arrays.push((value, vars, read.bytes));
        }
        // Every element of the result is written, along whole variables or axes of one element.
        let mut out: Vec<usize> = Vec::new();
        for (idx, &n) in stmt.out.idx.iter().zip(&program.ty(*node.results.first()?).known_shape()?) {
            match idx.as_var() {
                Some(Var(var))
                    if form.variables[var as usize] == Variable::alone(n) && !out.contains(&(var as usize)) =>
                {
                    out.push(var as usize)
                }
                None if n == 1 && idx.terms().is_empty() => {}
                _ => return None,
            }
        }
        arrays.push((n_values + node.results.first()?.index(), out, form.state_bytes));
        let vars: Vec<&[usize]> = arrays.iter().map(|(_, vars, _)| &vars[..]).collect();
        let extents: Vec<u64> = form.variables.iter().map(|var| var.extent).collect();
        let volume = Volume::new(&extents, &vars).ok()?;
        let arrays = arrays.iter().map(|(value, _, bytes)| (*value, *bytes as f64)).collect();
        Some((id, Touching { volume, arrays }))
    };
    program.nodes().filter_map(touching).collect()
}

/// Bytes that some worker has to receive for one call of a block function: an operand less what it has of it. It has no more than an even share of what all workers make or load, or the results of as many
/// calls as all have.
pub(crate) fn least_for_a_call(program: &Program, before: &Before, n_workers: u64) -> f64 {
    let mut makers: BTreeMap<ValueId, &Node> = BTreeMap::new();
    program.nodes().for_each(|(_, node)| node.results.iter().for_each(|&value| _ = makers.insert(value, node)));
    let n_calls = |node: &Node| {
        let variables = Accesses::of(program, node)?.variables;
        Some(variables.iter().fold(1u64, |calls, (n, _)| calls.saturating_mul(*n)))
    };
    // The part of a value that a worker has at most.
    let share = |mut value: ValueId| loop {
        let node = *makers.get(&value)?;
        match &node.op {
            Op::Retile { .. } => value = *node.args.first()?,
            Op::Source(_) if before.source(&node.op).is_none() => return Some(1.0 / n_workers as f64),
            Op::Index(_) if n_calls(node)? >= n_workers => return Some(EVEN / n_workers as f64),
            Op::BlockFn(_) => {
                let calls = n_calls(node)?;
                return Some(calls.div_ceil(n_workers) as f64 / calls.max(1) as f64);
            }
            _ => return None,
        }
    };
    let mut most = 0.0f64;
    for (_, node) in program.nodes().filter(|(_, node)| n_workers > 1 && matches!(node.op, Op::BlockFn(_))) {
        for (argument, part) in Accesses::of(program, node).into_iter().flat_map(|accesses| accesses.reads) {
            let (value, Some(tiles)) = (node.args[argument], &part.tiles) else { continue };
            let Some(share) = share(value) else { continue };
            let all = tiles.iter().fold(1.0, |n, axis| n * axis.extent() as f64);
            let call = tiles.iter().fold(1.0, |n, axis| n * axis.longest() as f64);
            most = most.max((call - all * share) * program.ty(value).dtype.size() as f64);
        }
    }
    most
}

/// Work within this factor of an even share counts as even.
const EVEN: f64 = 1.05;
