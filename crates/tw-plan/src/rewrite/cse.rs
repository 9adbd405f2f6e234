//! Common subexpressions: equal operations on equal operands become one.
//!
//! Precondition: operations are pure. All are, except stores.

use std::collections::HashMap;

use tw_ir::error::Result;
use tw_ir::program::{Op, Program, ValueId};

use super::rebuild::Rebuild;

pub(super) fn run(program: &Program) -> Result<Program> {
    let mut rebuild = Rebuild::new(program);
    let mut seen: HashMap<(&Op, Vec<ValueId>), Vec<ValueId>> = HashMap::new();
    for node in &program.body.nodes {
        if matches!(node.op, Op::Store { .. }) {
            rebuild.copy(node)?;
            continue;
        }
        let key = (&node.op, rebuild.mapped_args(node)?);
        match seen.get(&key) {
            Some(results) => {
                for (&old, &new) in node.results.iter().zip(&results.clone()) {
                    rebuild.bind(old, new);
                }
            }
            None => {
                let results = rebuild.copy(node)?;
                seen.insert(key, results);
            }
        }
    }
    rebuild.finish()
}
