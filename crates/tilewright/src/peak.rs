//! The worst moment of a schedule and what holds memory then.

use std::collections::HashSet;

use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Change, Event, Memory, Schedule};
use tw_ir::workflow::{BlockId, BlockSet, BlockSetId, ScratchSizes, SourceDecl, StmtId, Workflow};
use tw_ir::{BoxRegion, EntityRef};
use tw_plan::IoMemory;

/// The moment of serial replay with most bytes alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes alive then.
    pub bytes: u64,
    /// The statement whose task runs then.
    pub during: Option<StmtId>,
    /// The live tensors, largest first.
    pub holders: Vec<Holder>,
    /// Scratch space of that task: bytes that it takes besides its blocks.
    pub scratch: u64,
}

/// Blocks of one tensor that are alive at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The tensor.
    pub name: String,
    /// The statement that makes it.
    pub statement: StmtId,
    /// How many of its blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What loads and stores of a segment take of main memory. `is_resident` names boxes of inputs that are in memory before the segment runs; `scratch` says what
/// reading a box of an input takes besides its block.
pub(crate) fn io_memory(
    workflow: &Workflow,
    is_resident: &dyn Fn(&str, &BoxRegion) -> bool,
    scratch: &dyn Fn(&str, &BoxRegion) -> u64,
) -> IoMemory {
    let mut resident = vec![false; workflow.n_blocks()];
    let mut loads = vec![0; workflow.sets.len()];
    for (id, source) in workflow.loaded_sets() {
        let set = &workflow.sets[id];
        for position in 0..set.n_blocks() {
            resident[(set.first as u64 + position) as usize] = match &workflow.sources[source] {
                SourceDecl::Input { name, .. } => {
                    let bbox = set.block_box(position);
                    let is_resident = is_resident(name, &bbox);
                    if !is_resident {
                        loads[id.index()] = scratch(name, &bbox).max(loads[id.index()]);
                    }
                    is_resident
                }
                // Blocks of a constant are views of it.
                SourceDecl::Constant(_) => true,
            };
        }
    }
    let mut largest_stored = vec![0; workflow.sinks.len()];
    if !workflow.sinks.is_empty() {
        for task in workflow.tasks() {
            if let Kernel::Store { sink } = workflow.kernels[workflow.kernel(task)].kernel {
                let stored = workflow.present_operands(task).map(|operand| workflow.block_bytes(operand.block));
                let largest: &mut u64 = &mut largest_stored[sink.index()];
                *largest = stored.fold(*largest, u64::max);
            }
        }
    }
    let stores = workflow.sinks.values().zip(largest_stored);
    let stores = stores.map(|(sink, bytes)| tw_files::scratch_of_store(&sink.path, bytes)).collect();
    IoMemory::new(resident, loads, stores)
}

/// Replays the order serially. All ranks of a schedule share one memory.
pub(crate) fn replay(schedule: &Schedule, io: &IoMemory) -> Peak {
    replay_on(schedule, io, None)
}

/// Replays the order serially, in the memory of one rank if one is given.
pub(crate) fn replay_on(schedule: &Schedule, io: &IoMemory, rank: Option<u32>) -> Peak {
    let workflow = schedule.workflow();
    let is_here = |step: usize| rank.is_none_or(|rank| schedule.replay().rank_of(step) == rank as usize);
    let mut now = Alive::new(schedule, io, rank);
    let (mut worst, sizes) = ((0u64, 0usize), ScratchSizes::of(workflow));
    schedule.replay().walk(|event| match event {
        Event::Change(change) => now.apply(&change),
        Event::Runs(step) => {
            let scratch = if is_here(step) { io.of_step(schedule, &sizes, step) } else { now.packing_bytes(step) };
            let bytes = now.bytes.saturating_add(scratch);
            if bytes > worst.0 {
                worst = (bytes, step);
            }
        }
    });
    let mut then = Alive::new(schedule, io, rank);
    let mut is_over = false;
    schedule.replay().walk(|event| match event {
        Event::Runs(step) => is_over |= step == worst.1,
        Event::Change(change) if !is_over => then.apply(&change),
        Event::Change(_) => {}
    });
    let scratch = worst.0.saturating_sub(then.bytes);
    let holder = |(id, set): (BlockSetId, &BlockSet)| {
        let (blocks, bytes) = then.held[id.index()];
        Holder { name: set.name.clone(), statement: set.statement, blocks, bytes }
    };
    let mut holders: Vec<Holder> = workflow.sets.iter().map(holder).filter(|holder| holder.bytes > 0).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    let during = schedule.steps()[worst.1.min(schedule.n_steps())..].iter().find_map(|step| step.as_task());
    Peak { bytes: worst.0, during: during.map(|task| workflow.statement(task)), holders, scratch }
}

/// A bound on the bytes alive when threads run ahead of each other, whose blocks of one moment are at most `peak` in serial replay.
pub(crate) fn on_threads(schedule: &Schedule, peak: u64, io: &IoMemory, threads: usize) -> u64 {
    let workflow = schedule.workflow();
    let blocks = (0..workflow.n_blocks()).map(BlockId::new).filter(|&block| !io.is_resident(block));
    let blocks = blocks.fold(0u64, |sum, block| sum.saturating_add(workflow.block_bytes(block)));
    let sizes = ScratchSizes::of(workflow);
    let scratch = workflow.tasks().map(|task| io.of_task(workflow, &sizes, task)).max().unwrap_or(0);
    let all = blocks.saturating_add(scratch.saturating_mul(threads as u64));
    peak.saturating_add(tw_run::run_ahead_of(schedule, all, peak, threads)).min(all.max(peak))
}

/// The most bytes that are in the spill file at once, in serial replay. Whole blocks that were loaded are not written to it.
pub(crate) fn bytes_on_disk(schedule: &Schedule) -> u64 {
    let workflow = schedule.workflow();
    let loaded: HashSet<BlockSetId> = workflow.loaded_sets().map(|(set, _)| set).collect();
    let (mut now, mut most) = (0u64, 0u64);
    schedule.replay().walk(|event| {
        let Event::Change(change) = event else { return };
        let is_read_again =
            loaded.contains(&workflow.set_of(change.block)) && schedule.part_of(change.instance).is_none();
        if matches!(change.memory, Memory::Disk(_)) && !is_read_again {
            now = if change.appears { now.saturating_add(change.bytes) } else { now.saturating_sub(change.bytes) };
            most = most.max(now);
        }
    });
    most
}

/// The live blocks of one machine, where all instances of a block are one, or of one rank of several.
struct Alive<'a> {
    schedule: &'a Schedule,
    io: &'a IoMemory,
    rank: Option<u32>,
    instances: Vec<u32>,
    bytes: u64,
    /// Per set, blocks and their bytes.
    held: Vec<(u64, u64)>,
}

impl<'a> Alive<'a> {
    fn new(schedule: &'a Schedule, io: &'a IoMemory, rank: Option<u32>) -> Alive<'a> {
        let workflow = schedule.workflow();
        let (instances, held) = (vec![0; workflow.n_blocks()], vec![(0, 0); workflow.sets.len()]);
        Alive { schedule, io, rank, instances, bytes: 0, held }
    }

    /// What a step of another rank takes here: a part of a block that is sent may have to be put together.
    fn packing_bytes(&self, step: usize) -> u64 {
        match self.schedule.reads(step).flatten().next() {
            Some(from) if Some(self.schedule.memory_of(from).rank()) == self.rank => {
                let is_view = self.io.is_resident(self.schedule.block_of(from));
                self.schedule.replay().packing_bytes(step, is_view)
            }
            _ => 0,
        }
    }

    fn apply(&mut self, change: &Change) {
        let workflow = self.schedule.workflow();
        let set = workflow.set_of(change.block).index();
        // A rank that receives a block has a copy of it, also where the sender has it from an array in memory.
        let is_received = self.rank.is_some() && change.instance.index() >= workflow.n_blocks();
        let is_resident = self.io.is_resident(change.block) && !is_received;
        let is_elsewhere = self.rank.is_some_and(|rank| change.memory.rank() != rank);
        if is_resident || is_elsewhere || matches!(change.memory, Memory::Disk(_)) {
            return;
        }
        let alive = &mut self.instances[change.block.index()];
        // Ranks of one machine share one block. On one rank instances are parts of a block.
        let is_one_rank =
            self.rank.is_some() || self.schedule.placement().is_none_or(|placement| placement.n_ranks() == 1);
        let (blocks, sum) = &mut self.held[set];
        if is_one_rank {
            if change.appears {
                (*blocks, *sum, self.bytes) =
                    (*blocks + 1, *sum + change.bytes, self.bytes.saturating_add(change.bytes));
            } else {
                (*blocks, *sum, self.bytes) =
                    (*blocks - 1, *sum - change.bytes, self.bytes.saturating_sub(change.bytes));
            }
            return;
        }
        let bytes = workflow.block_bytes(change.block);
        if change.appears {
            *alive += 1;
            if *alive == 1 {
                (*blocks, *sum, self.bytes) = (*blocks + 1, *sum + bytes, self.bytes.saturating_add(bytes));
            }
        } else {
            *alive -= 1;
            if *alive == 0 {
                (*blocks, *sum, self.bytes) = (*blocks - 1, *sum - bytes, self.bytes.saturating_sub(bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tw_ir::program::TensorType;
    use tw_ir::{DType, Program, Span};

    use super::*;
    use crate::Session;

    #[test]
    fn the_peak_agrees_with_the_schedule_and_is_held_by_somebody() {
        let session = Session::builder().threads(1).tile(10).build();
        let a = session.random_normal(&[60, 40], 1).unwrap();
        let b = session.random_normal(&[40, 50], 2).unwrap();
        let c = a.matmul(&b).unwrap();
        let (program, _) = c.sub(&c.mean(Some(&[0])).unwrap()).unwrap().program().unwrap();
        let planned = session.plan(&program).unwrap();
        let peak = replay(&planned.schedule, &IoMemory::default());
        assert_eq!(peak.bytes, planned.schedule.peak_bytes());
        assert_eq!(peak.bytes, peak.holders.iter().map(|holder| holder.bytes).sum::<u64>());
        assert!(peak.during.is_some());
    }

    #[test]
    fn nothing_is_held_by_nothing() {
        let mut program = Program::new();
        let ty = TensorType::known(DType::F64, &[0]);
        let op = tw_ir::program::Op::Source(tw_ir::program::SourceOp::Input { name: "x".into(), ty });
        let x = program.push1(op, &[], &Span::None).unwrap();
        program.output("x", x);
        let planned = Session::builder().threads(1).build().plan(&program).unwrap();
        assert_eq!(replay(&planned.schedule, &IoMemory::default()).bytes, 0);
    }
}
