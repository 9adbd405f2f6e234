//! Dead values: nodes without readers are dropped.

use std::collections::HashSet;

use tw_ir::error::Result;
use tw_ir::program::{Op, Program, ValueId};

use super::rebuild::Rebuild;

pub(super) fn run(program: &Program) -> Result<Program> {
    let mut live: HashSet<ValueId> = program.body.results.iter().copied().collect();
    let mut keep = vec![false; program.body.nodes.len()];
    for (k, node) in program.body.nodes.iter().enumerate().rev() {
        if matches!(node.op, Op::Store { .. }) || node.results.iter().any(|value| live.contains(value)) {
            keep[k] = true;
            live.extend(&node.args);
        }
    }
    let mut rebuild = Rebuild::new(program);
    for (node, _) in program.body.nodes.iter().zip(&keep).filter(|(_, keep)| **keep) {
        rebuild.copy(node)?;
    }
    rebuild.finish()
}
