//! One planned segment as explain sees it.

use std::time::Duration;

use tw_ir::EntityRef;
use tw_ir::program::Program;
use tw_plan::Planned;

use super::cost::{self, Cost};
use super::fusion::{self, Fate};
use super::inputs::{self, InputUse};
use crate::control::types::Foreseen;
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
    /// Bytes of earlier results that are alive while the segment runs.
    pub held_bytes: u64,
    /// What it reads of every input of the user.
    pub inputs: Vec<InputUse>,
}

impl SegmentPlan {
    pub(crate) fn new(planned: Planned, segment: Foreseen<'_>) -> SegmentPlan {
        let before = segment.key.program;
        let schedule = &planned.schedule;
        let is_taken = |name: &str| segment.taken.contains(name);
        SegmentPlan {
            fates: fusion::fates(&before, &planned.program),
            costs: cost::per_statement(schedule, &is_taken),
            // Blocks that are in memory already are shared: they count as held, and not again when they are loaded.
            peak: peak::replay(schedule, &|name| segment.resident.contains(name)),
            held_bytes: segment.held_bytes,
            inputs: inputs::of_segment(&before, schedule, &is_taken),
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

    /// The same on several threads, which run ahead of each other.
    pub fn peak_bytes_on(&self, threads: usize) -> u64 {
        let ahead = tw_run::run_ahead(self.peak.largest_step, threads);
        let blocks = self.peak.bytes.saturating_add(ahead).min(self.peak.total_bytes);
        blocks.saturating_add(self.held_bytes)
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
