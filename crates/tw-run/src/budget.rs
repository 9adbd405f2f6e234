//! Keeping a run within a number of bytes.
//!
//! The head is the lowest rank that has not finished. Serial replay of the schedule holds at most its `peak_bytes`, and the head may always
//! run: when it does, the blocks made by tasks before it that are still alive, together with its own, are blocks that serial replay holds at
//! that step too. (A reader before the head has finished, so whatever serial replay has deleted is deleted here.) Everything else alive
//! was made by tasks that ran ahead of the head, and those had to reserve the bytes of the blocks they make, and of their scratch space, from the surplus: the budget
//! minus `peak_bytes`, or [`run_ahead`] where there is no budget. A reservation is given back when the head reaches the task that made it, for from then on serial replay
//! accounts for those blocks. So blocks hold at most `peak_bytes` plus the surplus.
//!
//! A run whose blocks fit into that all at once has no ledger and pays nothing for it. Who gives a run its surplus has made sure that
//! `peak_bytes` fit; nothing is refused here.
//!
//! Nothing waits forever: all that the head depends on has a lower rank, hence has finished, so the head is running or ready; if it is ready it is the
//! lowest of the ready ones, which is the one that is looked at.

use std::collections::BTreeMap;

use tw_ir::schedule::Schedule;
use tw_ir::workflow::{ScratchSizes, TaskId, TaskKind, Workflow};

use crate::part::Role;
use crate::prepared::PreparedSchedule;

/// The bytes a run may still hand out to tasks ahead of the head.
#[derive(Debug)]
pub(crate) struct Ledger {
    surplus: u64,
    head: u32,
    /// Finished tasks after the head, by rank.
    finished: Vec<u64>,
    reserved: BTreeMap<u32, u64>,
}

/// Bytes that each further thread may run ahead by, however small blocks are.
const LEAST_AHEAD: u64 = 8 << 20;

/// Bytes for each further thread that a schedule may take beyond its peak without a ledger.
const WITHOUT_LEDGER: u64 = 64 << 20;

/// Bytes of blocks that steps ahead of the head may make in a run without a budget. Two steps for each further thread keep it busy while the head runs. A schedule of few bytes may
/// make all its blocks at once, which saves the ledger. `io_scratch` is what a source or a sink takes at most.
pub fn run_ahead(schedule: &Schedule, io_scratch: u64, threads: usize) -> u64 {
    let sizes = StepSizes::of(schedule);
    let scratch = sizes.scratch.max(io_scratch).saturating_mul(threads as u64);
    let sizes = StepSizes { largest: sizes.largest.saturating_add(io_scratch), ..sizes };
    sizes.run_ahead(sizes.total.saturating_add(scratch), schedule.peak_bytes(), threads)
}

/// As [`run_ahead`], where blocks and scratch space are known to take `everything` together, and `peak` in serial replay.
pub fn run_ahead_of(schedule: &Schedule, everything: u64, peak: u64, threads: usize) -> u64 {
    StepSizes::of(schedule).run_ahead(everything, peak, threads)
}

/// Bytes of a schedule, in one pass over its sets and kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepSizes {
    /// Bytes of all blocks together.
    pub(crate) total: u64,
    /// The most scratch space of a task, without what sources and sinks take.
    pub(crate) scratch: u64,
    /// A bound on the bytes of the blocks that a step makes, with its scratch space: those of the largest block, for each of the most blocks that a task makes, and the most scratch space. What
    /// sources and sinks take is not known here.
    pub(crate) largest: u64,
}

impl StepSizes {
    pub(crate) fn of(schedule: &Schedule) -> StepSizes {
        let workflow = schedule.workflow();
        let scratch = ScratchSizes::of(workflow);
        let sets = workflow.sets.values().map(|set| set.total_and_largest_bytes());
        let (total, largest) =
            sets.fold((0u64, 0u64), |(sum, most), (total, largest)| (sum.saturating_add(total), most.max(largest)));
        let most_outputs = workflow.tasks().map(|task| workflow.outputs(task).len()).max().unwrap_or(0);
        let scratch = workflow.tasks().map(|task| scratch.task(workflow, task)).max().unwrap_or(0);
        let largest = largest.saturating_mul(most_outputs as u64).saturating_add(scratch);
        StepSizes { total, scratch, largest }
    }

    /// As [`run_ahead`], of a schedule whose blocks and scratch space take so many bytes together, and `peak` in serial replay.
    pub(crate) fn run_ahead(&self, everything: u64, peak: u64, threads: usize) -> u64 {
        let others = threads.saturating_sub(1) as u64;
        let beyond = everything.saturating_sub(peak);
        match beyond <= others.saturating_mul(WITHOUT_LEDGER) {
            true => beyond,
            false => others.saturating_mul(self.largest.saturating_mul(2).max(LEAST_AHEAD)),
        }
    }
}

/// Bytes of the blocks a task makes; a fold that continues makes none.
pub(crate) fn new_bytes(workflow: &Workflow, task: TaskId) -> u64 {
    if workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0 {
        return 0;
    }
    workflow.outputs(task).iter().map(|&block| workflow.block_bytes(block)).sum()
}

impl Ledger {
    /// For a schedule with this many tasks.
    pub(crate) fn new(surplus: u64, n_tasks: usize) -> Ledger {
        Ledger { surplus, head: 0, finished: vec![0; n_tasks.div_ceil(64)], reserved: BTreeMap::new() }
    }

    /// For the steps of a schedule that this process runs: those of other ranks are passed over.
    pub(crate) fn for_plan(surplus: u64, plan: &PreparedSchedule) -> Ledger {
        let n_steps = plan.schedule.n_steps();
        let mut ledger = Ledger::new(surplus, n_steps);
        if plan.part.is_some() {
            (0..n_steps as u32).filter(|&step| plan.role(step) == Role::Absent).for_each(|step| ledger.finish(step));
        }
        ledger
    }

    /// True if a task that makes blocks of this many bytes could begin now.
    pub(crate) fn admits(&self, rank: u32, bytes: u64) -> bool {
        rank == self.head || bytes <= self.surplus
    }

    /// Lets a task begin if it fits.
    pub(crate) fn admit(&mut self, rank: u32, bytes: u64) -> bool {
        let fits = self.admits(rank, bytes);
        if fits && rank != self.head && bytes > 0 {
            self.surplus -= bytes;
            self.reserved.insert(rank, bytes);
        }
        fits
    }

    /// A task has ended and let go of its operands.
    pub(crate) fn finish(&mut self, rank: u32) {
        self.finished[rank as usize / 64] |= 1 << (rank % 64);
        while self.finished.get(self.head as usize / 64).is_some_and(|word| word >> (self.head % 64) & 1 == 1) {
            self.head += 1;
        }
        while let Some(entry) = self.reserved.first_entry()
            && *entry.key() <= self.head
        {
            self.surplus += entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_always_runs_and_others_only_from_the_surplus() {
        let mut ledger = Ledger::new(30, 5);
        assert!(ledger.admit(0, 1000));
        assert!(ledger.admit(1, 20));
        assert!(!ledger.admit(2, 20));
        assert!(ledger.admit(2, 10));
        assert!(!ledger.admits(3, 1) && ledger.admits(3, 0));
        ledger.finish(2);
        assert!(!ledger.admits(3, 1), "what ran ahead stays reserved until the head has passed it");
        ledger.finish(0);
        assert!(ledger.admits(3, 20), "task 1 is the head now and needs no reservation");
        assert!(!ledger.admits(3, 21));
        ledger.finish(1);
        assert!(ledger.admits(4, 30) && !ledger.admits(4, 31));
    }

    #[test]
    fn blocks_of_unknown_size_reserve_the_most_they_can_take_and_need_another_engine() {
        let text = r#"schedule "rust-1" { workflow {
            statement s0 "make"
            kernel k0 s0 = fill (f64 0.0)
            blocks set0 s0 "A" f64[8, 8] grid(4, 8) format(0:dense, 1:compressed) sizes(10..100, 80) from b0
            t0 apply k0 at 0 turn 0 () -> (b0)
            t1 apply k0 at 1 turn 0 () -> (b1)
        } order (t0 t1) }"#;
        let schedule = tw_ir::text::parse_schedule(text, &tw_ir::program::FunctionTable::default()).unwrap();
        assert_eq!(new_bytes(schedule.workflow(), TaskId::from_u32(0)), 100);
        let sizes = StepSizes { total: 180, scratch: 0, largest: 100 };
        assert_eq!((StepSizes::of(&schedule), schedule.peak_bytes()), (sizes, 100));
        let error = crate::Prepared::new(std::sync::Arc::new(schedule)).err().unwrap();
        assert!(error.message().contains("`A` are stored as format(0:dense, 1:compressed)"), "{error:?}");
    }
}
