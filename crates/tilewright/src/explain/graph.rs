//! The graph of statements, for drawings.

use std::collections::HashMap;

use tw_ir::EntityRef;
use tw_ir::plan::RelId;

use super::source::Place;
use super::text::shorten;
use super::{Explanation, Section, SegmentPlan, units};

/// The boxes of one section.
pub(super) struct SectionGraph {
    pub(super) title: String,
    pub(super) boxes: Vec<StatementBox>,
    pub(super) arrows: Vec<Arrow>,
}

/// A statement, or why there are none yet.
pub(super) struct StatementBox {
    /// The user's line, or the name of the operation.
    pub(super) text: String,
    /// The kind and number of its tasks.
    pub(super) tasks: String,
    /// True if it is planned only when the program runs.
    pub(super) is_later: bool,
}

/// A value from one statement to another.
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: String,
}

impl Explanation {
    /// Boxes and arrows of every section, in the order they run. Arrows lead to later boxes.
    pub(super) fn graphs(&self) -> Vec<SectionGraph> {
        (1..).zip(&self.sections).map(|(number, section)| self.graph(section, number)).collect()
    }

    fn graph(&self, section: &Section, number: usize) -> SectionGraph {
        let title = self.title(&section.at, number);
        let Some(plan) = section.plan() else {
            let text = self.why_later(section).unwrap_or_default();
            let later = StatementBox { text, tasks: String::new(), is_later: true };
            return SectionGraph { title, boxes: vec![later], arrows: Vec::new() };
        };
        let (mut boxes, mut arrows) = (Vec::new(), Vec::new());
        let mut makers: HashMap<RelId, usize> = HashMap::new();
        for (k, step) in plan.planned.plan.steps.iter().enumerate() {
            boxes.push(self.statement_box(plan, step.statement.index()));
            for input in &step.inputs {
                if let Some(&from) = makers.get(input) {
                    let relation = &plan.planned.plan.relations[*input];
                    let bytes = units::bytes(relation.n_bytes());
                    // Numbers of values tell nothing to the user.
                    let label =
                        if relation.name.starts_with('%') { bytes } else { format!("{} {bytes}", relation.name) };
                    arrows.push(Arrow { from, to: k, label });
                }
            }
            makers.extend(step.outputs.iter().map(|&output| (output, k)));
        }
        SectionGraph { title, boxes, arrows }
    }

    fn statement_box(&self, plan: &SegmentPlan, statement: usize) -> StatementBox {
        let planned = &plan.planned.plan.statements[tw_ir::workflow::StmtId::new(statement)];
        let place = self.place(&planned.span);
        let tasks = format!("{}, {}", plan.kind(statement), units::counted(plan.costs[statement].tasks, "task"));
        let line = self.line_text(&place).map(shorten);
        // The line of a host program stands with its tasks, where there is room for the name of its file.
        let (text, tasks) = match (&place, place.operation(), line) {
            (Place::Line(n), _, Some(line)) => (format!("{n}: {line}"), tasks),
            (_, Some(operation), Some(line)) => (format!("{operation}: {line}"), format!("{}, {tasks}", place.short())),
            (_, Some(operation), None) => (operation.to_string(), format!("{}, {tasks}", place.short())),
            (_, None, Some(line)) => (line, format!("{}, {tasks}", place.short())),
            _ => (format!("{place}: {}", planned.label), tasks),
        };
        StatementBox { text, tasks, is_later: false }
    }
}
