//! TensorPlanner's patterns: what is reduced runs where its result is, everything else where most of its operands are.

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{TaskKind, Workflow};

use super::{Scheduler, home_of_largest, is_copy, place_loads};
use crate::homes::Before;
use crate::layout::Layouts;
use crate::machine::Machine;
use crate::reductions::Assignment;
use tw_plan::task_flops;

/// Contributions to a block all run at its home, which is its place in a grid of workers: no sum is ever sent, and a block goes to one row or column of
/// the grid. Other tasks run where an operand is, at the one with the least work.
///
/// The grid has all workers: where their number is no product of the paper's kind, it has the factors it has.
pub struct Pattern;

impl Scheduler for Pattern {
    fn name(&self) -> &'static str {
        "pattern"
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        // One grid of all workers: nodes do not matter to the patterns.
        let flat = Machine { nodes: machine.n_workers() as u32, workers: 1, ..machine.clone() };
        let layouts = Layouts::new(workflow, &flat);
        let mut assignment = Assignment::together(workflow);
        place_loads(workflow, &layouts, before, &mut assignment);
        let mut work = vec![0u64; machine.n_workers()];
        for task in workflow.tasks().filter(|&task| workflow.kind(task) != TaskKind::Load) {
            let Some(&out) = workflow.outputs(task).first() else {
                let block = workflow.present_operands(task).map(|operand| operand.block).next();
                assignment.tasks[task.index()] = block.map_or(0, |block| assignment.homes[block.index()]);
                continue;
            };
            let site = match workflow.kind(task) {
                TaskKind::Fold => layouts.worker(out),
                _ => {
                    let operands = workflow.present_operands(task);
                    let homes = operands.map(|operand| assignment.homes[operand.block.index()]);
                    let chosen = match is_copy(workflow, task) {
                        true => home_of_largest(workflow, task, &assignment),
                        false => homes.min_by_key(|&home| (work[home as usize], home)),
                    };
                    chosen.unwrap_or_else(|| layouts.worker(out))
                }
            };
            work[site as usize] += task_flops(workflow, task);
            assignment.tasks[task.index()] = site;
            workflow.outputs(task).iter().for_each(|block| assignment.homes[block.index()] = site);
        }
        Ok(assignment)
    }
}
