//! One planned segment as explain sees it.

use std::sync::Arc;
use std::time::Duration;

use tw_ir::EntityRef;
use tw_ir::program::Program;
use tw_ir::workflow::StmtId;
use tw_plan::{BudgetTraffic, Planned};

use super::cost::{self, Cost};
use super::fusion::{self, Fate};
use super::inputs::{self, InputUse};
use crate::control::types::Foreseen;
use crate::grant::{foresee, scratch_of_load};
use crate::peak::{self, Peak};

/// A segment that can be planned without data.
#[derive(Clone, Debug)]
pub struct SegmentPlan {
    /// The segment before rewriting.
    pub before: Program,
    /// What the planner made of it.
    pub planned: Planned,
    /// What became of each operation of `before`.
    pub fates: Vec<Fate>,
    /// The cost of each statement of the schedule. Statements are the operations after rewriting, in order.
    pub costs: Vec<Cost>,
    /// The worst moment, without what is held from before.
    pub peak: Peak,
    /// The same on all threads of the session, which run ahead of each other, without what is held from before.
    pub bytes_on_threads: u64,
    /// Bytes of the largest single task: the smallest budget that works. The task's statement is there unless the segment has no task.
    pub least: (u64, Option<StmtId>),
    /// Bytes that the budget makes it move.
    pub traffic: BudgetTraffic,
    /// Bytes of earlier results that are alive while the segment runs.
    pub held_bytes: u64,
    /// What it reads of every input of the user.
    pub inputs: Vec<InputUse>,
}

impl SegmentPlan {
    pub(crate) fn new(mut planned: Planned, segment: Foreseen<'_>, threads: usize, budget: Option<u64>) -> SegmentPlan {
        let before = segment.key.program;
        let is_taken = |name: &str| segment.taken.contains(name);
        // Blocks that are in memory already are shared: they count as held, and not again when they are loaded.
        let io = peak::io_memory(
            planned.schedule.workflow(),
            &|name, _| segment.resident.contains(name),
            &|name, region| scratch_of_load(segment.sources, name, region),
        );
        let mut peak = peak::replay(&planned.schedule, &io);
        let mut held_bytes = segment.held_bytes;
        let mut traffic = BudgetTraffic::default();
        let mut again: Vec<InputUse> = Vec::new();
        if let Some(budget) = budget
            && let Some(fitted) = foresee(&planned.schedule, &io, peak.bytes, (budget, held_bytes), threads)
        {
            planned.schedule = Arc::new(fitted.schedule);
            traffic = fitted.traffic;
            peak = peak::replay(&planned.schedule, &io);
            // Earlier results are spilled to make room.
            held_bytes = held_bytes.min(budget.saturating_sub(peak.bytes));
            // Of inputs that an earlier segment has read, what does not stay in memory is read again.
            let read_again = segment.read_before.iter().map(|(name, bytes)| (name, bytes.saturating_sub(held_bytes)));
            again.extend(read_again.map(|(name, bytes)| InputUse::again(name, bytes)));
        }
        let schedule = &planned.schedule;
        SegmentPlan {
            bytes_on_threads: peak::on_threads(schedule, peak.bytes, &io, threads),
            least: {
                let (bytes, task) = tw_plan::least_bytes(schedule, &io);
                (bytes, task.map(|task| schedule.workflow().statement(task)))
            },
            peak,
            fates: fusion::fates(&before, &planned.program),
            costs: cost::per_statement(schedule, &is_taken),
            held_bytes,
            traffic,
            inputs: inputs::of_segment(&before, schedule, &is_taken).into_iter().chain(again).collect(),
            before,
            planned,
        }
    }

    /// All statements together.
    pub fn cost(&self) -> Cost {
        let mut sum = Cost::default();
        self.costs.iter().for_each(|cost| sum += *cost);
        sum
    }

    /// Bytes alive at the worst moment, earlier results included.
    pub fn peak_bytes(&self) -> u64 {
        self.peak.bytes.saturating_add(self.held_bytes)
    }

    /// The same on all threads of the session.
    pub fn peak_bytes_on_threads(&self) -> u64 {
        self.bytes_on_threads.saturating_add(self.held_bytes)
    }

    /// How long planning took.
    pub fn planning(&self) -> Duration {
        self.planned.planning_time()
    }

    /// What the tasks of a statement mostly do, in words.
    pub(crate) fn kind(&self, statement: usize) -> &'static str {
        cost::kind(self.planned.schedule.workflow(), EntityRef::new(statement))
    }
}
