//! Placement schedulers: which worker runs each task.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
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

/// Chooses the worker of each task of a workflow. Reductions are not expanded yet: each contribution is a task of its own and may run on any worker.
pub trait Scheduler {
    /// The name in reports.
    fn name(&self) -> &'static str;
    /// Places every task. A load of a block that a worker already holds must run on that worker. Tasks are in topological order. The result must depend on the
    /// arguments alone, so that all machines compute the same placement.
    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment>;
}

/// The placement schedulers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedulerName {
    /// [`RoundRobin`].
    RoundRobin,
    /// [`Pattern`].
    Pattern,
    /// [`Lshs`].
    Lshs,
    /// [`Algebraic`], with meshes and cuts that minimise the bytes through the busiest worker.
    Algebraic,
    /// [`Algebraic`], with meshes that minimise the makespan; they may leave workers idle.
    Timed,
    /// [`Algebraic`], with grids as a distribution of the user says.
    Written,
    /// The scheduler whose plan sends least, of those with about the shortest makespan in the simulator.
    Auto,
}

impl SchedulerName {
    /// All that place tasks themselves.
    pub const ALL: [SchedulerName; 6] = [
        SchedulerName::Algebraic,
        SchedulerName::Timed,
        SchedulerName::Pattern,
        SchedulerName::Lshs,
        SchedulerName::RoundRobin,
        SchedulerName::Written,
    ];

    /// The word for it; nothing for [`SchedulerName::Auto`].
    pub fn word(self) -> Option<&'static str> {
        match self {
            SchedulerName::Algebraic => Some("algebraic"),
            SchedulerName::Timed => Some("timed"),
            SchedulerName::Pattern => Some("pattern"),
            SchedulerName::Lshs => Some("lshs"),
            SchedulerName::RoundRobin => Some("roundrobin"),
            SchedulerName::Written => Some("tdn"),
            SchedulerName::Auto => None,
        }
    }

    /// The scheduler that a word names; none is [`SchedulerName::Auto`].
    pub fn named(word: Option<&str>) -> Result<SchedulerName> {
        let Some(word) = word else { return Ok(SchedulerName::Auto) };
        let found = SchedulerName::ALL.into_iter().find(|name| name.word() == Some(word));
        found.ok_or_else(|| {
            let known: Vec<&str> = SchedulerName::ALL.into_iter().filter_map(SchedulerName::word).collect();
            Error::plan(format!("there is no scheduler `{word}`")).help(format!("there are {}", known.join(", ")))
        })
    }
}

/// Of a block that more workers hold, only so many of them are options for those who read it.
const MOST_OPTIONS: usize = 64;

/// Places each load on the worker that already holds the block, or else on its worker in the default layout. Loads have no operands to follow.
fn place_loads(workflow: &Workflow, layouts: &Layouts<'_>, before: &Before, assignment: &mut Assignment) {
    for task in workflow.tasks().filter(|&task| workflow.kind(task) == TaskKind::Load) {
        if let Some(&block) = workflow.outputs(task).first() {
            let worker = before.home(workflow, task).unwrap_or_else(|| layouts.worker(block));
            assignment.tasks[task.index()] = worker;
            assignment.homes[block.index()] = worker;
        }
    }
}

/// The worker that holds the largest operand of a task; there the task receives least.
fn home_of_largest(workflow: &Workflow, task: TaskId, assignment: &Assignment) -> Option<u32> {
    let largest = workflow.present_operands(task).max_by_key(|operand| workflow.operand_size(*operand).estimate());
    largest.map(|operand| assignment.homes[operand.block.index()])
}

/// True for tasks that only assemble a block from regions.
pub(super) fn is_copy(workflow: &Workflow, task: TaskId) -> bool {
    matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Place { .. })
}
