//! Serial replay: the liveness of instances at each step. The one implementation; peaks, explain, budgets and the simulator use it.

use cranelift_entity::EntityRef;

use super::placement::{Memory, Placement};
use super::step::{self, InstanceId, Step};
use crate::error::{Error, Result};
use crate::tiling::BoxRegion;
use crate::workflow::{BlockId, BlockSizes, ScratchSizes, Workflow};

/// Steps one by one in their order.
///
/// An instance is live from the first step that writes it to the last step that uses it; results stay live. The outputs of a step become live before its
/// operands die.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    workflow: &'a Workflow,
    steps: &'a [Step],
    placement: Option<&'a Placement>,
}

/// An instance appears or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The step, by its position in the order.
    pub step: usize,
    /// The instance.
    pub instance: InstanceId,
    /// Its block.
    pub block: BlockId,
    /// Its memory.
    pub memory: Memory,
    /// The most bytes that it can take.
    pub bytes: u64,
    /// True if it appears, false if it goes.
    pub appears: bool,
}

/// An event of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An instance appears or goes.
    Change(Change),
    /// A step runs: its operands and outputs are live, and it takes its scratch space.
    Runs(usize),
}

impl<'a> Replay<'a> {
    /// The replay of steps that need not be frozen yet.
    pub fn new(workflow: &'a Workflow, steps: &'a [Step], placement: Option<&'a Placement>) -> Replay<'a> {
        Replay { workflow, steps, placement }
    }

    /// Calls `event` for every instance that appears or goes and for every step, in order.
    pub fn walk(self, mut event: impl FnMut(Event)) {
        const NEVER: u32 = u32::MAX;
        let Replay { workflow, steps, placement } = self;
        let n_instances = placement.map_or(workflow.n_blocks(), Placement::n_instances);
        let mut last_use = vec![0u32; n_instances];
        for (position, &step) in steps.iter().enumerate() {
            for id in step::reads(workflow, placement, position, step).flatten() {
                last_use[id.index()] = position as u32;
            }
            for id in step::writes(workflow, placement, position, step) {
                last_use[id.index()] = position as u32;
            }
        }
        for id in step::results(workflow, placement) {
            last_use[id.index()] = NEVER;
        }
        let mut alive = vec![false; n_instances];
        let sizes = BlockSizes::of(workflow);
        let describe = |step: usize, id: InstanceId, appears: bool| {
            let (block, memory, bytes) = match placement {
                None => {
                    let block = BlockId::new(id.index());
                    (block, Memory::Host(0), sizes.block(block).max())
                }
                Some(placement) => {
                    let instance = placement.instance(id);
                    let bytes = match placement.region(workflow, id) {
                        None => sizes.block(instance.block).max(),
                        Some(_) => placement.instance_bytes(workflow, id),
                    };
                    (instance.block, instance.memory, bytes)
                }
            };
            Change { step, instance: id, block, memory, bytes, appears }
        };
        for (position, &step) in steps.iter().enumerate() {
            for id in step::writes(workflow, placement, position, step) {
                if !std::mem::replace(&mut alive[id.index()], true) {
                    event(Event::Change(describe(position, id, true)));
                }
            }
            event(Event::Runs(position));
            let read = step::reads(workflow, placement, position, step).flatten();
            for id in read.chain(step::writes(workflow, placement, position, step)) {
                if last_use[id.index()] == position as u32 && std::mem::replace(&mut alive[id.index()], false) {
                    event(Event::Change(describe(position, id, false)));
                }
            }
        }
    }

    /// Bytes that a step takes besides its blocks while it runs: scratch space, and pieces of operands that it reads on disk. What sources and sinks take is not
    /// known here. `scratch` is that of the workflow.
    pub fn extra_bytes(self, scratch: &ScratchSizes, step: usize) -> u64 {
        let Some(task) = self.steps[step].as_task() else { return 0 };
        scratch.task(self.workflow, task).saturating_add(self.streaming_bytes(step))
    }

    /// Bytes that a step takes because it reads operands on disk.
    pub fn streaming_bytes(self, step: usize) -> u64 {
        let (Some(placement), Some(task)) = (self.placement, self.steps[step].as_task()) else { return 0 };
        let mut reads = placement.reads(step).flatten();
        let streams = reads.any(|read| matches!(placement.instance(read).memory, Memory::Disk(_)));
        if streams { self.workflow.streaming_bytes(task) } else { 0 }
    }

    /// Bytes that a transfer takes on the rank that sends: elements that do not lie together in their block, or in the whole tensor if the block is a view of it,
    /// are put together first.
    pub fn packing_bytes(self, step: usize, is_view: bool) -> u64 {
        let (Some(placement), None) = (self.placement, self.steps[step].as_task()) else { return 0 };
        let (from, to) = (placement.reads(step).flatten().next(), placement.writes(step).next());
        let (Some(from), Some(to)) = (from, to) else { return 0 };
        let (sender, receiver) = (placement.instance(from).memory, placement.instance(to).memory);
        let (Memory::Host(sender), Memory::Host(receiver)) = (sender, receiver) else { return 0 };
        if sender == receiver {
            return 0;
        }
        let id = placement.instance(from).block;
        let block = self.workflow.block_box(id);
        let tensor = is_view.then(|| BoxRegion::whole(&self.workflow.sets[self.workflow.set_of(id)].shape));
        let whole = tensor.as_ref().or(placement.region(self.workflow, from)).unwrap_or(&block);
        let part = placement.region(self.workflow, to).unwrap_or(&block);
        if part.lies_together_in(whole) { 0 } else { placement.instance_bytes(self.workflow, to) }
    }

    /// The rank in whose main memory a step runs, or puts what it moves.
    pub fn rank_of(self, step: usize) -> usize {
        let Some(placement) = self.placement else { return 0 };
        match self.steps[step].as_task() {
            Some(task) => placement.sites()[task.index()] as usize,
            None => placement.writes(step).next().map_or(0, |to| match placement.instance(to).memory {
                Memory::Host(rank) | Memory::Disk(rank) => rank as usize,
            }),
        }
    }

    /// The rank that sends in a step.
    fn sender_of(self, step: usize) -> Option<usize> {
        let placement = self.placement.filter(|placement| placement.n_ranks() > 1)?;
        if self.steps[step].as_task().is_some() {
            return None;
        }
        placement.reads(step).flatten().next().map(|from| placement.instance(from).memory.rank() as usize)
    }

    /// The most bytes alive at once if all ranks share one main memory: a block then counts once, as long as any instance of it is alive there.
    pub fn shared_peak(self) -> u64 {
        if self.placement.is_none_or(|placement| placement.n_ranks() == 1) {
            return self.peaks().map_or(u64::MAX, |peaks| peaks.into_iter().max().unwrap_or(0));
        }
        let mut instances = vec![0u32; self.workflow.n_blocks()];
        let (mut now, mut peak) = (0u64, 0u64);
        let scratch = ScratchSizes::of(self.workflow);
        self.walk(|event| {
            let change = match event {
                Event::Change(change) => change,
                Event::Runs(step) => return peak = peak.max(now.saturating_add(self.extra_bytes(&scratch, step))),
            };
            let Memory::Host(_) = change.memory else { return };
            let alive = &mut instances[change.block.index()];
            if change.appears {
                *alive += 1;
                if *alive == 1 {
                    now = now.saturating_add(self.workflow.block_bytes(change.block));
                }
            } else {
                *alive -= 1;
                if *alive == 0 {
                    now = now.saturating_sub(self.workflow.block_bytes(change.block));
                }
            }
        });
        peak
    }

    /// The most bytes alive at once in the main memory of every rank.
    pub fn peaks(self) -> Result<Vec<u64>> {
        let n_ranks = self.placement.map_or(1, |placement| placement.n_ranks().max(1)) as usize;
        let (mut now, mut peaks) = (vec![0u64; n_ranks], vec![0u64; n_ranks]);
        let mut overflows = false;
        let scratch = ScratchSizes::of(self.workflow);
        self.walk(|event| {
            let change = match event {
                Event::Change(change) => change,
                Event::Runs(step) => {
                    let rank = self.rank_of(step);
                    peaks[rank] = peaks[rank].max(now[rank].saturating_add(self.extra_bytes(&scratch, step)));
                    if let Some(sender) = self.sender_of(step) {
                        peaks[sender] = peaks[sender].max(now[sender].saturating_add(self.packing_bytes(step, false)));
                    }
                    return;
                }
            };
            let Memory::Host(rank) = change.memory else { return };
            let now = &mut now[rank as usize];
            if change.appears {
                match now.checked_add(change.bytes) {
                    Some(sum) => *now = sum,
                    None => overflows = true,
                }
            } else {
                *now = now.saturating_sub(change.bytes);
            }
        });
        if overflows {
            return Err(Error::plan("the blocks of this program cannot be counted"));
        }
        Ok(peaks)
    }
}
