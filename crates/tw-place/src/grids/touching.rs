//! The statements of a program in the form that lower bounds need.

use tw_ir::EntityRef;
use tw_ir::program::{Node, NodeId, Op, Program};

use super::Aim;
use super::form::Form;
use crate::bounds::{Touching, Volume};
use crate::mesh::Variable;

/// The statements whose array axes all run along variables, each with its node number. Arrays have the numbers of their values.
pub(crate) fn touching(program: &Program) -> Vec<(NodeId, Touching)> {
    let touching = |(id, node): (NodeId, &Node)| {
        let Op::Index(stmt) = &node.op else { return None };
        // No worker must touch points that a guard excludes.
        let form = Form::of(program, node, Aim::Bytes).filter(|_| !stmt.has_guard && stmt.out_is_plain())?;
        let mut arrays: Vec<(usize, Vec<usize>, u64)> = Vec::new();
        for (access, read) in stmt.reads.iter().zip(&form.reads) {
            let vars = read.part.idx.iter().zip(&read.shape).map(|(idx, &n)| {
                let var = idx.as_var()?.0 as usize;
                (form.variables[var] == Variable::alone(n)).then_some(var)
            });
            let value = node.args[access.operand as usize].index();
            let mut vars = vars.collect::<Option<Vec<usize>>>()?;
            // Of a diagonal only its elements are touched.
            vars.sort_unstable();
            vars.dedup();
            arrays.push((value, vars, read.bytes));
        }
        let out = form.outs.first()?.vars.iter().copied().collect::<Option<_>>()?;
        arrays.push((node.results.first()?.index(), out, form.state_bytes));
        let vars: Vec<&[usize]> = arrays.iter().map(|(_, vars, _)| &vars[..]).collect();
        let extents: Vec<u64> = form.variables.iter().map(|var| var.extent).collect();
        let volume = Volume::new(&extents, &vars).ok()?;
        let arrays = arrays.iter().map(|(value, _, bytes)| (*value, *bytes as f64)).collect();
        Some((id, Touching { volume, arrays }))
    };
    program.nodes().filter_map(touching).collect()
}
