//! The order of tasks.
//!
//! [`depth_first`] starts from the results: each task runs as late as possible before its first reader, so few blocks are live at once. Tasks that no
//! result needs do not run. [`eager`] starts from the sources: each task runs as soon as its operands are there, so that all consumers of a block run
//! while it is in memory.

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

const NONE: u32 = u32::MAX;

/// The producers of the operands of tasks.
pub struct Makers {
    /// The task before a fold in its chain.
    previous: Vec<u32>,
    /// The last task that writes a block.
    last_writer: Vec<u32>,
}

impl Makers {
    /// The producers of a workflow.
    pub fn of(workflow: &Workflow) -> Makers {
        let mut last_writer = vec![NONE; workflow.n_blocks()];
        let mut previous = vec![NONE; workflow.n_tasks()];
        // Tasks of one chain are created in order of position.
        for task in workflow.tasks() {
            for &block in workflow.outputs(task) {
                if workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0 {
                    previous[task.index()] = last_writer[block.index()];
                }
                last_writer[block.index()] = task.as_u32();
            }
        }
        Makers { previous, last_writer }
    }

    /// The task that must have run before this one in its chain.
    pub fn previous(&self, task: TaskId) -> Option<TaskId> {
        some(self.previous[task.index()])
    }

    /// The task that finishes a block.
    pub fn of_block(&self, block: BlockId) -> Option<TaskId> {
        some(self.last_writer[block.index()])
    }
}

fn some(task: u32) -> Option<TaskId> {
    (task != NONE).then(|| TaskId::from_u32(task))
}

/// All tasks that results and stores need, in topological order.
pub fn depth_first(workflow: &Workflow) -> Vec<TaskId> {
    let n_tasks = workflow.n_tasks();
    let makers = Makers::of(workflow);
    let mut visit = Visit { workflow, makers, seen: vec![false; n_tasks], order: Vec::with_capacity(n_tasks) };
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

/// The same tasks, each as early as possible: tasks without dependencies come in the given order, and after each of them all tasks that it has made
/// ready, depth-first. So the reductions of one input advance together, block by block.
pub(crate) fn eager(workflow: &Workflow, order: &[TaskId]) -> Vec<TaskId> {
    let makers = Makers::of(workflow);
    // Successors of a task in the given order, as rows of one array.
    let mut waiting = vec![0u32; workflow.n_tasks()];
    let mut edges: Vec<(u32, u32)> = Vec::with_capacity(2 * order.len());
    for (rank, &task) in order.iter().enumerate() {
        let blocks = workflow.present_operands(task).filter_map(|operand| makers.of_block(operand.block));
        let mut dependencies: Vec<TaskId> = blocks.chain(makers.previous(task)).collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        waiting[task.index()] = dependencies.len() as u32;
        edges.extend(dependencies.iter().map(|dependency| (dependency.as_u32(), rank as u32)));
    }
    edges.sort_unstable();
    let successors = |task: TaskId| {
        let start = edges.partition_point(|&(from, _)| from < task.as_u32());
        edges[start..].iter().take_while(move |&&(from, _)| from == task.as_u32()).map(|&(_, rank)| rank)
    };
    let mut result = Vec::with_capacity(order.len());
    let mut ready: Vec<TaskId> = Vec::new();
    let roots: Vec<TaskId> = order.iter().copied().filter(|task| waiting[task.index()] == 0).collect();
    for root in roots {
        ready.push(root);
        while let Some(task) = ready.pop() {
            result.push(task);
            let first = ready.len();
            for rank in successors(task) {
                let successor = order[rank as usize];
                waiting[successor.index()] -= 1;
                if waiting[successor.index()] == 0 {
                    ready.push(successor);
                }
            }
            // The stack gives the last first; the earliest in the given order is to be the first.
            ready[first..].reverse();
        }
    }
    result
}

struct Visit<'a> {
    workflow: &'a Workflow,
    makers: Makers,
    seen: Vec<bool>,
    order: Vec<TaskId>,
}

impl Visit<'_> {
    fn block(&mut self, block: BlockId) {
        if let Some(writer) = self.makers.of_block(block) {
            self.task(writer);
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
                0 => self.makers.previous(*task),
                k => match self.workflow.operands(*task).get(k as usize - 1) {
                    None => {
                        self.order.push(*task);
                        stack.pop();
                        continue;
                    }
                    Some(operand) => operand.expand().and_then(|operand| self.makers.of_block(operand.block)),
                },
            };
            *next += 1;
            if let Some(dependency) = dependency
                && !std::mem::replace(&mut self.seen[dependency.index()], true)
            {
                stack.push((dependency, 0));
            }
        }
    }
}
