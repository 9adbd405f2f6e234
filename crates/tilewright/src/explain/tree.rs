//! The tree form: each result above its operands.

use std::collections::HashMap;
use std::fmt::Write;

use tw_ir::EntityRef;
use tw_ir::plan::{PlanStep, RelId};

use super::source::Place;
use super::units;
use super::{Explanation, SegmentPlan};

impl Explanation {
    pub(crate) fn tree(&self) -> String {
        let mut out = format!("{}\n", self.line());
        for (number, section) in (1..).zip(&self.sections) {
            let _ = writeln!(out, "\n{}", self.title(&section.at, number));
            match section.plan() {
                Some(plan) => Branches::new(self, plan).print(&mut out),
                None => {
                    let _ = writeln!(out, "  {}", self.why_later(section).unwrap_or_default());
                }
            }
        }
        out
    }
}

/// Prints the steps of one plan as trees. A step that several others read is printed once and named afterwards.
struct Branches<'a> {
    explanation: &'a Explanation,
    plan: &'a SegmentPlan,
    makers: HashMap<RelId, usize>,
    printed: Vec<bool>,
}

impl<'a> Branches<'a> {
    fn new(explanation: &'a Explanation, plan: &'a SegmentPlan) -> Branches<'a> {
        let steps = &plan.planned.plan.steps;
        let makers = steps.iter().enumerate().flat_map(|(k, step)| step.outputs.iter().map(move |&r| (r, k))).collect();
        Branches { explanation, plan, makers, printed: vec![false; steps.len()] }
    }

    fn print(&mut self, out: &mut String) {
        let plan = &self.plan.planned.plan;
        let outputs = plan.outputs.iter().filter_map(|(_, relation)| self.makers.get(relation).copied());
        let stores = (0..plan.steps.len()).filter(|&k| plan.steps[k].outputs.is_empty());
        let roots: Vec<usize> = outputs.chain(stores).collect();
        for root in roots {
            // With a stack: chains of statements may be long.
            let mut stack = vec![(root, 1usize)];
            while let Some((k, depth)) = stack.pop() {
                let step = &plan.steps[k];
                let repeated = std::mem::replace(&mut self.printed[k], true);
                let again = if repeated && !step.inputs.is_empty() { " (above)" } else { "" };
                let _ = writeln!(out, "{}{}{again}", "  ".repeat(depth), self.describe(step));
                if !repeated {
                    let mut inputs: Vec<usize> =
                        step.inputs.iter().filter_map(|r| self.makers.get(r).copied()).collect();
                    inputs.dedup();
                    stack.extend(inputs.into_iter().rev().map(|input| (input, depth + 1)));
                }
            }
        }
    }

    fn describe(&self, step: &PlanStep) -> String {
        let plan = &self.plan.planned.plan;
        let cost = &self.plan.costs[step.statement.index()];
        let place = match self.explanation.place(&plan.statements[step.statement].span) {
            Place::Planner => String::new(),
            place => format!(", {place}"),
        };
        let made: Vec<String> = step
            .outputs
            .iter()
            .map(|&output| {
                let relation = &plan.relations[output];
                let size = units::bytes(relation.n_bytes());
                let shape = tw_ir::shape::display(&relation.shape);
                format!(
                    "{} {}{shape} {size} in {}",
                    relation.name,
                    relation.dtype,
                    units::counted(relation.n_blocks(), "block")
                )
            })
            .collect();
        let made = if made.is_empty() { "file".to_string() } else { made.join("; ") };
        format!("{made}: {}{place}, {}", step.op.name(), units::counted(cost.tasks, "task"))
    }
}
