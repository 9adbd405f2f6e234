//! Who decides where tasks run.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{TaskId, TaskKind, Workflow};

use super::held::Before;
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
    /// [`Algebraic`], with grids as a distribution of the user says.
    Written,
    /// The scheduler whose plan has the shortest makespan in the simulator.
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
