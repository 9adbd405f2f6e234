//! Traffic of each statement, and its lower bound.

use std::collections::BTreeSet;

use tw_ir::EntityRef;
use tw_ir::workflow::{BlockSetId, StmtId, Workflow};
use tw_place::{Placed, Rivals, StatementTerm};

use super::super::source::Place;
use super::super::table::{Align, Table};
use super::super::text::shorten;
use super::super::units::{bytes, count};
use super::{Explanation, against, is_value};

/// As many statements as a table bears.
const MOST_STATEMENTS: usize = 24;

/// One statement of a placed plan.
#[derive(Clone, Debug)]
pub(crate) struct StatementFlow {
    pub(crate) place: Place,
    pub(crate) text: String,
    /// The grid of workers over its variables, if it was placed by one.
    pub(crate) grid: Option<Vec<u64>>,
    /// The best few meshes for it alone, each with the bytes that a worker would receive.
    pub(crate) best_grids: Vec<(Vec<u64>, u64)>,
    /// Workers that run tasks of it.
    pub(crate) workers: u64,
    pub(crate) tasks: u64,
    /// Bytes that all workers receive for it, and the one that receives most.
    pub(crate) received: u64,
    pub(crate) busiest: u64,
    /// The least that the busiest worker can receive, if that is known.
    pub(crate) bound: Option<f64>,
    /// How it is computed, in the implementation algebra; `None` if it only loads or fills.
    pub(crate) term: Option<StatementTerm>,
}

impl StatementFlow {
    /// Its operation and line.
    pub(crate) fn words(&self) -> String {
        match self.place.operation() {
            Some(operation) if operation != self.text => format!("{operation}: {}", self.text),
            _ => self.text.clone(),
        }
    }

    /// `5 x 2 grid`, or how many workers take part.
    pub(crate) fn workers_text(&self) -> String {
        match &self.grid {
            Some(grid) => grid_text(grid),
            None => count(self.workers),
        }
    }
}

fn grid_text(grid: &[u64]) -> String {
    match grid {
        [] => "1".to_string(),
        _ => grid.iter().map(u64::to_string).collect::<Vec<_>>().join(" x "),
    }
}

/// The values of a program with their shapes; cut twice, a value has two sets of blocks.
fn values(workflow: &Workflow) -> BTreeSet<(&str, &[u64])> {
    workflow.sets.values().filter(|set| is_value(set)).map(|set| (&set.name[..], &set.shape[..])).collect()
}

impl Explanation {
    /// Every statement with tasks, by its number.
    pub(crate) fn statement_flows(&self, rivals: &Rivals, placed: &Placed) -> Vec<(StmtId, StatementFlow)> {
        let received = placed.received_by_statement();
        let work = placed.workers_by_statement();
        let grids = placed.grids.as_ref();
        let mut terms = placed.terms(&|set| self.operand_name(&placed.workflow, set));
        // A product of several may be in another order, with other statements.
        let has_bounds = rivals.by_grids().is_some_and(|other| values(&other.workflow) == values(&placed.workflow));
        let flow = |number: usize| {
            let statement = StmtId::new(number);
            let (place, text) = self.placed_statement(&placed.workflow, statement);
            let node = placed.workflow.statements[statement].node;
            let on_grid = grids.zip(node);
            let grid = on_grid.and_then(|(grids, node)| grids.mesh(node)).map(|(mesh, _)| mesh.factors().to_vec());
            let best_grids = on_grid.map_or(Vec::new(), |(grids, node)| grids.best_few(node).to_vec());
            let bound = rivals.bounds.iter().find(|(of, _)| has_bounds && Some(*of) == node).map(|(_, bound)| *bound);
            let (received, busiest) = (received[number].bytes, received[number].busiest_bytes);
            let (workers, tasks) = work[number];
            let term = terms[number].take();
            let flow = StatementFlow { place, text, grid, best_grids, workers, tasks, received, busiest, bound, term };
            (statement, flow)
        };
        let flows = (0..received.len()).map(flow);
        flows.filter(|(_, flow)| flow.tasks > 0).collect()
    }

    /// The best meshes of each statement alone, for the chosen plan.
    pub(super) fn grids_text(&self, rivals: &Rivals, placed: &Placed) -> String {
        let mut text =
            String::from("\nthe best grids of each statement alone, and what a worker receives under them\n");
        let mut is_empty = true;
        for (_, flow) in self.statement_flows(rivals, placed) {
            if flow.best_grids.len() < 2 {
                continue;
            }
            is_empty = false;
            let grids: Vec<String> = flow
                .best_grids
                .iter()
                .map(|(grid, received)| format!("{} {}", grid_text(grid), bytes(*received)))
                .collect();
            text.push_str(&format!("  {}: {}\n", flow.place, grids.join(", ")));
        }
        if is_empty { String::new() } else { text }
    }

    /// The chosen plan in the implementation algebra: a term for each statement that computes, beside the bytes that it
    /// sends by the algebra and by the transfers of the plan.
    pub(super) fn term_table(&self, rivals: &Rivals) -> Option<Table> {
        let flows = self.statement_flows(rivals, rivals.placed.first()?);
        let mut table = Table::new(&[
            ("line", Align::Right),
            ("by term", Align::Right),
            ("by rules", Align::Right),
            ("sent", Align::Right),
            ("in the implementation algebra", Align::Left),
        ]);
        let with_terms: Vec<(&StatementFlow, &StatementTerm)> =
            flows.iter().filter_map(|(_, flow)| flow.term.as_ref().map(|term| (flow, term))).collect();
        for (flow, term) in with_terms.iter().take(MOST_STATEMENTS) {
            let size = |n: Option<u64>| n.map_or_else(|| "-".to_string(), bytes);
            let (by_term, by_rules) = (size(term.bytes), size(term.best.as_ref().map(|best| best.bytes)));
            table.row(vec![flow.place.short(), by_term, by_rules, bytes(flow.received), term.words()]);
        }
        if let Some(more) = with_terms.len().checked_sub(MOST_STATEMENTS).filter(|more| *more > 0) {
            let empty = String::new;
            table.row(vec![empty(), empty(), empty(), empty(), format!("and {more} more")]);
        }
        (!with_terms.is_empty()).then_some(table)
    }

    /// A short name for the blocks of a set: that of their value, or the place of the statement that makes them.
    fn operand_name(&self, workflow: &Workflow, set: BlockSetId) -> String {
        let name = workflow.sets[set].value_name();
        let made = workflow.sets.values().find(|other| other.name == name).unwrap_or(&workflow.sets[set]);
        match name.starts_with('%') {
            true => format!("<{}>", self.place(&workflow.statements[made.statement].span)),
            false => name.to_string(),
        }
    }

    /// Statements with traffic or a positive lower bound, for the chosen plan.
    pub(super) fn statement_table(&self, rivals: &Rivals) -> Option<Table> {
        let flows = self.statement_flows(rivals, rivals.placed.first()?);
        let mut table = Table::new(&[
            ("line", Align::Right),
            ("statement", Align::Left),
            ("workers", Align::Left),
            ("tasks", Align::Right),
            ("sent", Align::Right),
            ("busiest", Align::Right),
            ("least", Align::Right),
            ("x least", Align::Right),
        ]);
        let sends = |flow: &StatementFlow| flow.received > 0 || flow.bound.is_some_and(|bound| bound >= 1.0);
        let sending: Vec<&StatementFlow> = flows.iter().map(|(_, flow)| flow).filter(|flow| sends(flow)).collect();
        // Factorisations have hundreds of statements: those that send most are shown, in their order.
        let mut most: Vec<u64> = sending.iter().map(|flow| flow.received).collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        let least_shown = most.get(MOST_STATEMENTS - 1).copied().unwrap_or(0);
        let mut rest: (usize, u64, u64) = (0, 0, 0);
        let mut shown = 0;
        for flow in &sending {
            if flow.received < least_shown || shown == MOST_STATEMENTS {
                rest = (rest.0 + 1, rest.1 + flow.tasks, rest.2 + flow.received);
                continue;
            }
            shown += 1;
            table.row(vec![
                flow.place.short(),
                shorten(&flow.words()),
                flow.workers_text(),
                count(flow.tasks),
                bytes(flow.received),
                bytes(flow.busiest),
                flow.bound.map_or_else(|| "-".to_string(), |bound| bytes(bound as u64)),
                // Data that an earlier statement received is not sent again.
                flow.bound.map_or_else(
                    || "-".to_string(),
                    |bound| against(flow.busiest as f64, bound, flow.busiest as f64 >= 0.999 * bound),
                ),
            ]);
        }
        if rest.0 > 0 {
            let words = format!("and {} more", rest.0);
            let empty = String::new;
            table.row(vec![empty(), words, empty(), count(rest.1), bytes(rest.2), empty(), empty(), empty()]);
        }
        (shown > 0).then_some(table)
    }
}
