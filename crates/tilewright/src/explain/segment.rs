//! One planned segment as explain sees it.

use std::collections::HashSet;
use std::time::Duration;

use tw_ir::EntityRef;
use tw_ir::program::{Program, TensorType};
use tw_ir::workflow::Boxes;
use tw_ir::{Result, Tiling};
use tw_plan::Planned;

use super::cost::{self, Cost};
use super::fusion::{self, Fate};
use super::inputs::{self, InputUse};
use super::peak::{self, Peak};
use super::walk::ValueName;
use crate::segment::{Segment, Taken};
use crate::session::Session;

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
    pub(super) flow: Flow,
}

/// What comes into a segment from others and goes out to them.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Its inputs by name: values of other segments, or inputs of the user.
    pub(super) takes: Vec<(String, Option<ValueName>)>,
    /// Values of other segments that are there while it runs.
    pub(super) alive: Vec<ValueName>,
    /// The numbers of its outputs.
    pub(super) makes: Vec<u32>,
}

impl SegmentPlan {
    pub(crate) fn new(session: &Session, segment: Segment, held_bytes: u64, flow: Flow) -> Result<SegmentPlan> {
        let before = segment.key.program.clone();
        let planned = session.plan_ahead(segment.key)?;
        let stored: HashSet<&str> = segment
            .taken
            .iter()
            .filter(|(_, taken)| matches!(taken, Taken::Value(_)))
            .map(|(name, _)| name.as_str())
            .collect();
        let schedule = &planned.schedule;
        Ok(SegmentPlan {
            fates: fusion::fates(&before, &planned.program),
            costs: cost::per_statement(schedule, &|name| stored.contains(name)),
            // Blocks of earlier segments are shared: they count as held, and not again when they are loaded.
            peak: peak::replay(schedule, &|name| stored.contains(name)),
            held_bytes,
            inputs: inputs::of_segment(&before, schedule, &|name| stored.contains(name)),
            before,
            planned,
            flow,
        })
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

    /// How long planning took.
    pub fn planning(&self) -> Duration {
        self.planned.planning_time()
    }

    /// The types of the results with the tilings they will have.
    pub(crate) fn result_types(&self) -> Vec<TensorType> {
        let workflow = self.planned.schedule.workflow();
        let ty = |output: &tw_ir::workflow::OutputDecl| {
            let set = &workflow.sets[output.set];
            let ty = TensorType::known(set.dtype, &set.shape);
            match &set.boxes {
                Boxes::Grid(grid) => ty.with_tiling(Tiling::Grid(grid.clone())),
                Boxes::List(_) => ty,
            }
        };
        workflow.outputs.iter().map(ty).collect()
    }

    /// What the tasks of a statement mostly do, in words.
    pub(crate) fn kind(&self, statement: usize) -> &'static str {
        cost::kind(self.planned.schedule.workflow(), EntityRef::new(statement))
    }
}

/// Bytes of a tensor; 0 while an extent is unknown.
pub(crate) fn n_bytes(ty: &TensorType) -> u64 {
    ty.known_shape().map_or(0, |shape| shape.iter().fold(ty.dtype.size(), |bytes, &n| bytes.saturating_mul(n)))
}
