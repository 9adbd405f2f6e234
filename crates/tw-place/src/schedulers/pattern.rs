//! TensorPlanner's patterns: contributions to a reduction run on the home of the output block; other tasks run where their operands are.

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{TaskKind, Workflow};

use super::{Scheduler, home_of_largest, is_copy, place_loads};
use crate::homes::Before;
use crate::layout::Layouts;
use crate::machine::Machine;
use crate::reductions::Assignment;
use tw_plan::task_flops;

/// All contributions to a block run on its home, its coordinate in a mesh of all workers. So no partial sum is sent, and a block goes to one row or column of
/// the mesh. Any other task runs on the holder of an operand with the least work.
///
/// The paper uses a square mesh and leaves workers idle. This mesh uses all workers, with the factors that their number has.
pub struct Pattern;

impl Scheduler for Pattern {
    fn name(&self) -> &'static str {
        "pattern"
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        // One mesh of all workers: the patterns ignore nodes.
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
