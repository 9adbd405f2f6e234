//! The order of tasks: depth first from the results.
//!
//! Each task runs as late as possible before its first reader, so few blocks are alive at once, and what no result needs does not run at all.

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

const NONE: u32 = u32::MAX;

/// All tasks that results and stores need, each after what it depends on.
pub(crate) fn depth_first(workflow: &Workflow) -> Vec<TaskId> {
    let n_tasks = workflow.n_tasks();
    // The task before a fold in its chain, and the last writer of every block. Tasks of one chain are created in order of position.
    let mut last_writer = vec![NONE; workflow.n_blocks()];
    let mut previous = vec![NONE; n_tasks];
    for task in workflow.tasks() {
        for &block in workflow.outputs(task) {
            if workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0 {
                previous[task.index()] = last_writer[block.index()];
            }
            last_writer[block.index()] = task.as_u32();
        }
    }
    let mut visit =
        Visit { workflow, previous, last_writer, seen: vec![false; n_tasks], order: Vec::with_capacity(n_tasks) };
    for output in &workflow.outputs {
        let set = &workflow.sets[output.set];
        for position in 0..set.n_blocks() {
            visit.block(workflow.block(output.set, position));
        }
    }
    for task in workflow.tasks() {
        if matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Store { .. }) {
            visit.task(task);
        }
    }
    visit.order
}

struct Visit<'a> {
    workflow: &'a Workflow,
    previous: Vec<u32>,
    last_writer: Vec<u32>,
    seen: Vec<bool>,
    order: Vec<TaskId>,
}

impl Visit<'_> {
    fn block(&mut self, block: BlockId) {
        let writer = self.last_writer[block.index()];
        if writer != NONE {
            self.task(TaskId::from_u32(writer));
        }
    }

    /// Post-order over dependencies with an explicit stack: chains may be a million tasks long.
    fn task(&mut self, root: TaskId) {
        let mut stack: Vec<(TaskId, u32)> = Vec::new();
        if !std::mem::replace(&mut self.seen[root.index()], true) {
            stack.push((root, 0));
        }
        while let Some((task, next)) = stack.last_mut() {
            let dependency = match *next {
                0 => self.previous[task.index()],
                k => match self.workflow.operands(*task).get(k as usize - 1) {
                    None => {
                        self.order.push(*task);
                        stack.pop();
                        continue;
                    }
                    Some(operand) if operand.block.is_some() => self.last_writer[operand.block.index()],
                    Some(_) => NONE,
                },
            };
            *next += 1;
            if dependency != NONE && !std::mem::replace(&mut self.seen[dependency as usize], true) {
                stack.push((TaskId::from_u32(dependency), 0));
            }
        }
    }
}
