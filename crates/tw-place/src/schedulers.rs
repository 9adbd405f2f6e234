//! Who decides where tasks run.

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{TaskId, TaskKind, Workflow};

use super::homes::Before;
use super::layout::Layouts;
use super::machine::Machine;
use super::reductions::Assignment;

mod algebraic;
mod holders;
mod lshs;
mod pattern;
mod roundrobin;

pub use algebraic::Algebraic;
pub use lshs::Lshs;
pub use pattern::Pattern;
pub use roundrobin::RoundRobin;

/// Decides where the tasks of a workflow run. Reductions are not expanded yet: each contribution is a task of its own and may run anywhere.
pub trait Scheduler {
    /// A word for reports.
    fn name(&self) -> &'static str;
    /// Places every task; loads of what workers held before where it is. Tasks are listed in an order in which they can run. Equal workflows and machines give equal assignments, everywhere.
    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment>;
}

/// Who places tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedulerName {
    /// [`RoundRobin`].
    RoundRobin,
    /// [`Pattern`].
    Pattern,
    /// [`Lshs`].
    Lshs,
    /// [`Algebraic`], with grids and cuts chosen together.
    Algebraic,
    /// [`Algebraic`], with grids chosen for time rather than bytes, which may leave workers idle.
    Timed,
    /// Whoever's plan ends first in the simulator.
    Auto,
}

/// Of a block that more workers hold, only so many of them are options for those who read it.
const MOST_OPTIONS: usize = 64;

/// Places loads where their blocks are, or else where the layout wants them; they are the only tasks whose place no operand suggests.
fn place_loads(workflow: &Workflow, layouts: &Layouts<'_>, before: &Before, assignment: &mut Assignment) {
    for task in workflow.tasks().filter(|&task| workflow.kind(task) == TaskKind::Load) {
        if let Some(&block) = workflow.outputs(task).first() {
            let worker = before.home(workflow, task).unwrap_or_else(|| layouts.worker(block));
            assignment.tasks[task.index()] = worker;
            assignment.homes[block.index()] = worker;
        }
    }
}

/// Where the largest of what a task reads is: at that place it has the least to receive.
fn home_of_largest(workflow: &Workflow, task: TaskId, assignment: &Assignment) -> Option<u32> {
    let largest = workflow.present_operands(task).max_by_key(|operand| workflow.operand_bytes(operand));
    largest.map(|operand| assignment.homes[operand.block.index()])
}

/// True for tasks that only put pieces of blocks together.
pub(super) fn is_copy(workflow: &Workflow, task: TaskId) -> bool {
    matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Place { .. })
}
