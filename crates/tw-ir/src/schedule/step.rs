//! The steps of a schedule, with their reads and writes.

use cranelift_entity::{EntityRef, entity_impl};

use super::placement::Placement;
use crate::workflow::{BlockId, TaskId, Workflow};

/// One copy of a block, or of a part of it, in one memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(u32);
entity_impl!(InstanceId, "i");

/// A move of a block, or of a part of it, between memories.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MoveId(u32);
entity_impl!(MoveId, "m");

/// One step of a schedule, in 32 bits: a task or a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step(u32);

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A task of the workflow.
    Task(TaskId),
    /// A move of the placement.
    Move(MoveId),
}

/// Set for moves. Workflows have fewer tasks than this.
const MOVE: u32 = 1 << 31;

impl Step {
    /// The step that runs a task.
    pub fn task(task: TaskId) -> Step {
        Step(task.as_u32() & !MOVE)
    }

    /// The step that makes a move.
    pub fn moving(id: MoveId) -> Step {
        Step(id.0 | MOVE)
    }

    /// Its kind.
    pub fn kind(self) -> StepKind {
        if self.0 & MOVE == 0 {
            StepKind::Task(TaskId::from_u32(self.0))
        } else {
            StepKind::Move(MoveId(self.0 & !MOVE))
        }
    }

    /// The task, unless it is a move.
    pub fn as_task(self) -> Option<TaskId> {
        match self.kind() {
            StepKind::Task(task) => Some(task),
            StepKind::Move(_) => None,
        }
    }

    /// The step as a number, for encodings.
    pub(super) fn as_u32(self) -> u32 {
        self.0
    }

    pub(super) fn from_u32(number: u32) -> Step {
        Step(number)
    }
}

/// The instance of a block in a schedule of one rank.
fn of_block(block: BlockId) -> InstanceId {
    InstanceId(block.as_u32())
}

/// Either of two iterators. A step of a schedule without a placement looks its instances up in the workflow, without arrays of its own.
pub(super) enum Either<A, B> {
    Task(A),
    Placed(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Either<A, B> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Either::Task(tasks) => tasks.next(),
            Either::Placed(placed) => placed.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Either::Task(tasks) => tasks.size_hint(),
            Either::Placed(placed) => placed.size_hint(),
        }
    }
}

/// The instances that a step reads, one per operand.
pub(super) fn reads<'a>(
    workflow: &'a Workflow,
    placement: Option<&'a Placement>,
    position: usize,
    step: Step,
) -> impl Iterator<Item = Option<InstanceId>> + use<'a> {
    match placement {
        Some(placement) => Either::Placed(placement.reads(position)),
        None => {
            let operands = step.as_task().map_or(&[][..], |task| workflow.operands(task));
            Either::Task(operands.iter().map(|operand| operand.expand().map(|operand| of_block(operand.block))))
        }
    }
}

/// The instances that a step makes or contributes to.
pub(super) fn writes<'a>(
    workflow: &'a Workflow,
    placement: Option<&'a Placement>,
    position: usize,
    step: Step,
) -> impl Iterator<Item = InstanceId> + use<'a> {
    match placement {
        Some(placement) => Either::Placed(placement.writes(position)),
        None => {
            let outputs = step.as_task().map_or(&[][..], |task| workflow.outputs(task));
            Either::Task(outputs.iter().map(|&block| of_block(block)))
        }
    }
}

/// The instances that are results.
pub(super) fn results<'a>(
    workflow: &'a Workflow,
    placement: Option<&'a Placement>,
) -> impl Iterator<Item = InstanceId> + use<'a> {
    match placement {
        Some(placement) => Either::Placed(placement.results()),
        None => Either::Task(workflow.outputs.iter().flat_map(|output| {
            let set = &workflow.sets[output.set];
            (0..set.n_blocks()).map(|k| InstanceId::new((set.first as u64 + k) as usize))
        })),
    }
}
