//! The sections of a program, collected while its types are walked.

use std::collections::HashMap;
use std::sync::Arc;

use tw_ir::error::Result;
use tw_ir::program::Node;
use tw_ir::schedule::Schedule;
use tw_ir::span::Span;
use tw_plan::Planned;

use super::segment::SegmentPlan;
use super::{Section, SectionOutcome};
use crate::control::Around;
use crate::control::collect::{Collected, Item, Position};
use crate::control::segment::SegmentKey;
use crate::control::types::{Foreseen, Recorder};
use crate::session::Session;

/// Collects a section for every segment.
#[derive(Default)]
pub(super) struct Sections {
    pub(super) collected: Collected<Section>,
    /// The most bytes alive at once, in any turn of any loop, one task at a time and on all threads.
    pub(super) peaks: (u64, u64),
    pub(super) threads: usize,
    budget: Option<u64>,
    planned: HashMap<SegmentKey, Planned>,
}

impl Sections {
    pub(super) fn on(threads: usize, budget: Option<u64>) -> Sections {
        Sections { threads, budget, ..Sections::default() }
    }
}

impl Recorder for Sections {
    fn plan(&mut self, session: &Session, key: &SegmentKey) -> Result<Arc<Schedule>> {
        if let Some(planned) = self.planned.get(key) {
            return Ok(planned.schedule.clone());
        }
        let planned = session.plan_ahead(key.clone())?;
        let schedule = planned.schedule.clone();
        self.planned.insert(key.clone(), planned);
        Ok(schedule)
    }

    fn record(&mut self, segment: Foreseen<'_>) {
        let Some(planned) = self.planned.get(&segment.key).cloned() else { return };
        let (at, selects_all) = (Position::new(segment.around), segment.selects_all);
        let plan = SegmentPlan::new(planned, segment, self.threads, self.budget);
        self.peaks = (self.peaks.0.max(plan.peak_bytes()), self.peaks.1.max(plan.peak_bytes_on_threads()));
        self.collected.items.push(Section { at, selects_all, outcome: SectionOutcome::Planned(Box::new(plan)) });
    }

    fn postpone(&mut self, nodes: &[&Node], unknown: &Span, around: &[Around<'_>]) {
        let spans = nodes.iter().map(|node| node.span).collect();
        let outcome = SectionOutcome::Later { spans, unknown: *unknown };
        self.collected.items.push(Section { at: Position::new(around), selects_all: true, outcome });
    }

    fn begin_turn(&mut self, turn: usize) {
        self.collected.begin_turn(turn);
    }

    fn end_loop(&mut self) {
        self.collected.end_loop();
    }
}

impl Item for Section {
    fn position(&mut self) -> &mut Position {
        &mut self.at
    }

    fn repeats(&self, other: &Section) -> bool {
        match (self.plan(), other.plan()) {
            (Some(plan), Some(other)) => plan.before == other.before,
            (None, None) => true,
            _ => false,
        }
    }

    /// The same plan with less around it is not worth showing.
    fn stand_for(&mut self, other: &Section) {
        if let (SectionOutcome::Planned(plan), Some(other)) = (&mut self.outcome, other.plan())
            && other.peak_bytes() > plan.peak_bytes()
        {
            (plan.held_bytes, plan.peak) = (other.held_bytes, other.peak.clone());
        }
    }
}
