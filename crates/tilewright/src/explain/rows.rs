//! The table of an explanation: one row per line.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use tw_ir::EntityRef;
use tw_ir::workflow::StmtId;

use super::cost::Cost;
use super::fusion::Fate;
use super::source::Place;
use super::{Explanation, SegmentPlan};

/// The plan of one line in one section.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) place: Place,
    /// The line, or the name of the operation.
    pub(crate) text: String,
    /// The main kind of its tasks; empty if it has none.
    pub(crate) kind: &'static str,
    pub(crate) cost: Cost,
    /// Lines that are computed inside this one.
    pub(crate) contains: BTreeSet<Place>,
    /// The line that computes it, if it has no tasks of its own.
    pub(crate) goes: Goes,
}

/// The fate of a line without tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    /// It has tasks.
    Nowhere,
    Into(BTreeSet<Place>),
    Same(Place),
    NotNeeded,
}

impl Row {
    /// The column that tells about fusion.
    pub(crate) fn fusion(&self) -> String {
        match &self.goes {
            Goes::Nowhere if self.contains.is_empty() => String::new(),
            Goes::Nowhere => format!("with {}", list(&self.contains)),
            Goes::Into(places) => format!("in {}", list(places)),
            Goes::Same(place) => format!("same as {}", place.short()),
            Goes::NotNeeded => "not needed".to_string(),
        }
    }
}

fn list(places: &BTreeSet<Place>) -> String {
    let name = |place: &Place| place.operation().map_or_else(|| place.short(), |_| place.to_string());
    places.iter().map(name).collect::<Vec<_>>().join(", ")
}

impl Explanation {
    /// One row per line of a section, in order of lines.
    pub(crate) fn rows(&self, plan: &SegmentPlan) -> Vec<Row> {
        let mut rows: BTreeMap<Place, Row> = BTreeMap::new();
        let workflow = plan.planned.schedule.workflow();
        for (k, cost) in plan.costs.iter().enumerate() {
            let statement = &workflow.statements[StmtId::new(k)];
            let row = self.row(&mut rows, self.place(&statement.span), &statement.label);
            // A line is what most of it is.
            if row.kind.is_empty() || cost.moved_bytes.max(cost.flops) > row.cost.moved_bytes.max(row.cost.flops) {
                row.kind = plan.kind(k);
            }
            row.cost += *cost;
        }
        let place_of = |k: usize| self.place(&plan.before.body.nodes[k].span);
        for (k, (node, fate)) in plan.before.body.nodes.iter().zip(&plan.fates).enumerate() {
            let place = place_of(k);
            let name = node.results.first().map_or_else(|| node.op.name().into(), |&v| plan.before.display_name(v));
            let here = self.row(&mut rows, place.clone(), &name);
            if here.cost.tasks > 0 {
                here.goes = Goes::Nowhere;
            }
            let runs_here = here.cost.tasks > 0;
            match fate {
                Fate::FusedInto(homes) => {
                    let places: BTreeSet<Place> =
                        homes.iter().map(|&home| place_of(home)).filter(|p| *p != place).collect();
                    if !runs_here && !places.is_empty() {
                        match &mut here.goes {
                            Goes::Into(known) => known.extend(places.iter().cloned()),
                            goes => *goes = Goes::Into(places.clone()),
                        }
                    }
                    for home in places {
                        if let Some(row) = rows.get_mut(&home) {
                            row.contains.insert(place.clone());
                        }
                    }
                }
                Fate::SameAs(twin) if !runs_here && here.goes == Goes::NotNeeded && place_of(*twin) != place => {
                    here.goes = Goes::Same(place_of(*twin));
                }
                _ => {}
            }
        }
        // Operations that the planner added are counted with the lines they serve.
        rows.into_values().filter(|row| row.place != Place::Planner || row.cost.tasks > 0).collect()
    }

    fn row<'r>(&self, rows: &'r mut BTreeMap<Place, Row>, place: Place, label: &str) -> &'r mut Row {
        let text = match (&place, self.line_text(&place)) {
            (_, Some(text)) => text.to_string(),
            (Place::Planner, _) => "(values of earlier segments)".to_string(),
            // The operation has a column of its own.
            _ if place.operation().is_some() => String::new(),
            _ => label.to_string(),
        };
        rows.entry(place.clone()).or_insert_with(|| Row {
            place,
            text,
            kind: "",
            cost: Cost::default(),
            contains: BTreeSet::new(),
            goes: Goes::NotNeeded,
        })
    }
}
