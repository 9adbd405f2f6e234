//! The fourth level: a frozen order. Engines see nothing else.
//!
//! A schedule is complete: the workflow, the order of its steps over all ranks, the rank of each task and the moves between memories
//! ([`Placement`]), the kernel provider, and the budget it was planned for. Everything else ([`links`](Schedule::successors), peaks, hashes) is derived
//! from these.
//!
//! * A [`Step`] is a task or a move. The order of steps is total and one topological order for all ranks; a rank has a subsequence of it. Running steps
//!   one by one is always possible and needs [`Schedule::peak_bytes`]. Engines run ahead of the order where dependencies allow, and prefer earlier
//!   steps. Bits do not depend on that: contributions to one block are ordered by their position in the chain, never by time.
//! * An *instance* is one copy of a block, or of a part of it, in one memory. Without a placement there is one rank, and the only instance of
//!   a block has the block's number; such a schedule has no arrays for instances.
//! * Two hashes tell schedules apart ([`Schedule::bits`], [`Schedule::hash`]); both are taken over the canonical encoding ([`Schedule::encode`]).

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::tiling::BoxRegion;
use crate::workflow::{BlockId, TaskId, Workflow};
use cranelift_entity::EntityRef;

mod bytes;
mod decode;
mod digest;
mod encode;
mod links;
mod placement;
mod plan_file;
mod replay;
mod step;

pub use bytes::{ByteReader, ByteWriter};
pub use digest::Digest;
pub use encode::VERSION;
pub use placement::{Instance, Memory, Move, Placement};
pub use plan_file::{PlanFile, encode_plan};
pub use replay::{Change, Event, Replay};
pub use step::{InstanceId, MoveId, Step, StepKind};

use links::Links;

/// A workflow with a total order of steps and everything an engine needs to run it.
#[derive(Clone, Debug)]
pub struct Schedule {
    workflow: Arc<Workflow>,
    steps: Vec<Step>,
    placement: Option<Placement>,
    budget: Option<u64>,
    provider: String,
    links: Links,
    /// The most bytes alive at once in each rank's memory, in serial replay.
    peaks: Vec<u64>,
    /// The same if all ranks share one memory.
    shared_peak: u64,
    digests: OnceLock<digest::Digests>,
}

impl Schedule {
    /// Freezes a workflow for one rank, in the given order. Tasks that are not in the order do not run.
    ///
    /// `provider` names the kernel provider whose bits the schedule promises.
    pub fn freeze(workflow: Workflow, order: Vec<TaskId>, provider: &str) -> Result<Schedule> {
        let mut seen = vec![false; workflow.n_tasks()];
        for &task in &order {
            match seen.get_mut(task.index()).map(|seen| std::mem::replace(seen, true)) {
                Some(false) => {}
                _ => return Err(Error::internal(format!("{task} occurs twice in the order, or does not exist"))),
            }
        }
        Schedule::of_steps(Arc::new(workflow), order.into_iter().map(Step::task).collect(), None, None, provider)
    }

    /// Freezes a workflow whose tasks are placed on several ranks.
    pub fn freeze_placed(
        workflow: Workflow,
        steps: Vec<Step>,
        placement: Placement,
        budget: Option<u64>,
        provider: &str,
    ) -> Result<Schedule> {
        placement.verify(&workflow, &steps)?;
        Schedule::of_steps(Arc::new(workflow), steps, Some(placement), budget, provider)
    }

    fn of_steps(
        workflow: Arc<Workflow>,
        steps: Vec<Step>,
        placement: Option<Placement>,
        budget: Option<u64>,
        provider: &str,
    ) -> Result<Schedule> {
        let links = Links::of(&workflow, &steps, placement.as_ref())?;
        let peaks = Replay::new(&workflow, &steps, placement.as_ref()).peaks()?;
        let shared_peak = match &placement {
            None => peaks.iter().copied().max().unwrap_or(0),
            Some(placement) => Replay::new(&workflow, &steps, Some(placement)).shared_peak(),
        };
        let provider = provider.to_string();
        Ok(Schedule {
            workflow,
            steps,
            placement,
            budget,
            provider,
            links,
            peaks,
            shared_peak,
            digests: OnceLock::new(),
        })
    }

    /// The same workflow in another order, with moves, for a budget of every rank.
    pub fn with_moves(&self, steps: Vec<Step>, placement: Placement, budget: Option<u64>) -> Result<Schedule> {
        placement.verify(&self.workflow, &steps)?;
        Schedule::of_steps(Arc::clone(&self.workflow), steps, Some(placement), budget, &self.provider)
    }

    /// The same schedule, made for a budget of every rank.
    pub fn with_budget(self, budget: Option<u64>) -> Schedule {
        Schedule { budget, digests: OnceLock::new(), ..self }
    }

    /// The workflow.
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }
    /// The total order, over all ranks.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.steps.len()
    }
    /// The tasks in their order, without moves.
    pub fn order(&self) -> impl DoubleEndedIterator<Item = TaskId> + Clone + use<'_> {
        self.steps.iter().filter_map(|step| step.as_task())
    }
    /// Number of tasks that run.
    pub fn n_tasks(&self) -> usize {
        self.steps.len() - self.n_moves()
    }
    /// Number of moves between memories.
    pub fn n_moves(&self) -> usize {
        self.placement.as_ref().map_or(0, Placement::n_moves)
    }
    /// The placement; `None` for one rank without moves.
    pub fn placement(&self) -> Option<&Placement> {
        self.placement.as_ref()
    }
    /// Number of instances of blocks.
    pub fn n_instances(&self) -> usize {
        self.placement.as_ref().map_or(self.workflow.n_blocks(), Placement::n_instances)
    }
    /// The block that an instance is a copy of.
    pub fn block_of(&self, instance: InstanceId) -> BlockId {
        match &self.placement {
            None => BlockId::new(instance.index()),
            Some(placement) => placement.instance(instance).block,
        }
    }
    /// The part of its block that an instance is; `None` if it is the whole block.
    pub fn part_of(&self, instance: InstanceId) -> Option<&BoxRegion> {
        self.placement.as_ref()?.region(&self.workflow, instance)
    }
    /// The memory of an instance.
    pub fn memory_of(&self, instance: InstanceId) -> Memory {
        self.placement.as_ref().map_or(Memory::Host(0), |placement| placement.instance(instance).memory)
    }
    /// The bytes that a step brings from disk to main memory.
    pub fn fetched_bytes(&self, step: usize) -> u64 {
        let (Some(placement), StepKind::Move(id)) = (&self.placement, self.steps[step].kind()) else { return 0 };
        let Move { from, to } = placement.moved(id);
        let is_fetch = matches!((self.memory_of(from), self.memory_of(to)), (Memory::Disk(_), Memory::Host(_)));
        if is_fetch { placement.instance_bytes(&self.workflow, to) } else { 0 }
    }
    /// The bytes of blocks that a rank sends to others.
    pub fn sent_bytes(&self, rank: u32) -> u64 {
        let Some(placement) = &self.placement else { return 0 };
        let is_sent = |moved: &&Move| {
            let (from, to) = (self.memory_of(moved.from), self.memory_of(moved.to));
            from.rank() == rank && to.rank() != rank
        };
        let sent = placement.moves().iter().filter(is_sent);
        sent.fold(0, |sum: u64, moved| sum.saturating_add(placement.instance_bytes(&self.workflow, moved.to)))
    }
    /// The instances that a step reads, one per operand of a task; `None` for operands without a block.
    pub fn reads(&self, step: usize) -> impl Iterator<Item = Option<InstanceId>> {
        step::reads(&self.workflow, self.placement.as_ref(), step, self.steps[step])
    }
    /// The instances that a step makes or contributes to.
    pub fn writes(&self, step: usize) -> impl Iterator<Item = InstanceId> {
        step::writes(&self.workflow, self.placement.as_ref(), step, self.steps[step])
    }
    /// The instances that are results, output by output, in the order of their blocks.
    pub fn results(&self) -> impl Iterator<Item = InstanceId> {
        step::results(&self.workflow, self.placement.as_ref())
    }
    /// The number of predecessors of a step.
    pub fn n_dependencies(&self, step: usize) -> u32 {
        self.links.n_dependencies[step]
    }
    /// The steps that wait for this one, in order.
    pub fn successors(&self, step: usize) -> &[u32] {
        self.links.successors.row(step)
    }
    /// The steps that read an instance, in order; a step that reads it twice is there twice. So the next use of an instance after a step is known.
    pub fn readers(&self, instance: InstanceId) -> &[u32] {
        self.links.readers.row(instance.index())
    }
    /// True if an instance is a result.
    pub fn is_result(&self, instance: InstanceId) -> bool {
        self.links.n_outputs[instance.index()] > 0
    }
    /// The reads of an instance, plus one per output that contains it. At zero it is deleted.
    pub fn uses(&self, instance: InstanceId) -> u32 {
        self.readers(instance).len() as u32 + self.links.n_outputs[instance.index()]
    }
    /// The most bytes alive at once in serial replay on one machine, where all ranks share one memory and moves between them copy nothing.
    pub fn peak_bytes(&self) -> u64 {
        self.shared_peak
    }
    /// The most bytes alive at once on each rank, in serial replay.
    pub fn peaks(&self) -> &[u64] {
        &self.peaks
    }
    /// Serial replay: which instances appear and go at every step.
    pub fn replay(&self) -> Replay<'_> {
        Replay::new(&self.workflow, &self.steps, self.placement.as_ref())
    }
    /// The budget of every rank that the schedule was made for, if it was made for one.
    pub fn budget(&self) -> Option<u64> {
        self.budget
    }
    /// The kernel provider whose bits are promised.
    pub fn provider(&self) -> &str {
        &self.provider
    }
    /// Bytes of all arrays that grow with the number of tasks.
    pub fn heap_bytes(&self) -> usize {
        let placed = self.placement.as_ref().map_or(0, Placement::heap_bytes);
        self.workflow.heap_bytes() + 4 * self.steps.capacity() + self.links.heap_bytes() + placed
    }
}
