//! Placements as text.

use std::fmt::Write;

use tw_place::{Machine, Placed, Rivals};

use super::super::table::{Align, Table};
use super::super::units::{bytes, count, counted, seconds};
use super::matrix::Matrix;
use super::owners::{Cell, Merged, OwnerMap};
use super::timeline::Timeline;
use super::{Explanation, LEAST_TO_COMPARE, OnMachine, Piece, against};

/// Limits of a terminal: rows and columns of a map, workers of a matrix, workers and columns of a timeline.
const MAP: (usize, usize) = (24, 16);
const MATRIX: usize = 10;
const TIMELINE: (usize, usize) = (16, 72);

/// Words for the columns of the table of schedulers, in text and on pages.
pub(super) const SCHEDULER_COLUMNS: [(&str, Align); 9] = [
    ("scheduler", Align::Left),
    ("tasks", Align::Right),
    ("sent", Align::Right),
    ("busiest", Align::Right),
    ("x least", Align::Right),
    ("work", Align::Right),
    ("peak", Align::Right),
    ("time", Align::Right),
    ("path", Align::Right),
];

impl Explanation {
    /// One line; then per segment a table of schedulers, the reasons for their order, and the traffic of each statement.
    pub(crate) fn machine_text(&self, on: &OnMachine) -> String {
        let mut text = format!("{}\n", on.line());
        if on.pieces.len() > 1 {
            text.push_str(
                "  - in every piece, all schedulers begin where the plans in front have left what it needs\n",
            );
        }
        for Piece { title, rivals, .. } in &on.pieces {
            if on.pieces.len() > 1 {
                let _ = writeln!(text, "\n{title}");
            }
            let _ = write!(text, "\n{}", scheduler_table(rivals).to_text(2));
            for sentence in self.why_lost(rivals, &on.machine) {
                let _ = writeln!(text, "  - {sentence}");
            }
            let _ = writeln!(text, "  - {}", search_words(rivals));
            for words in idle_words(rivals) {
                let _ = writeln!(text, "  - {words}");
            }
            for (name, error) in &rivals.failed {
                let _ = writeln!(text, "  - {name} has no plan: {}", error.message());
            }
            for table in [self.statement_table(rivals), self.term_table(rivals)].into_iter().flatten() {
                let _ = write!(text, "\n{}", table.to_text(2));
            }
            if let (true, Some(placed)) = (on.with_pictures, rivals.placed.first()) {
                text.push_str(&self.grids_text(rivals, placed));
                text.push_str(&self.picture_text(placed, &on.machine));
            }
        }
        if on.later > 0 {
            let _ =
                writeln!(text, "  - {} on data and cannot be placed yet", counted(on.later as u64, "piece depends"));
        }
        text
    }

    fn picture_text(&self, placed: &Placed, machine: &Machine) -> String {
        let mut text = String::from("\nwho owns which block\n");
        for map in self.owner_maps(placed) {
            text.push_str(&owners_text(&map));
        }
        let matrix = Matrix::of(&placed.simulation, machine, MATRIX);
        text.push_str(&matrix_text(&matrix));
        text.push_str(&self.timeline_text(placed));
        text
    }

    fn timeline_text(&self, placed: &Placed) -> String {
        let (most, columns) = TIMELINE;
        let timeline = Timeline::of(placed, most, columns);
        let mut text = format!("\nwho does what when, in {}\n", seconds(timeline.makespan));
        let mut table = Table::new(&[("worker", Align::Right), ("", Align::Left), ("waits", Align::Right)]);
        for lane in &timeline.lanes {
            let waits = 100.0 * timeline.waiting(lane);
            table.row(vec![lane.worker.to_string(), timeline.characters(lane, columns), format!("{waits:.0}%")]);
        }
        text.push_str(&table.to_text(2));
        for (number, &statement) in timeline.statements.iter().enumerate() {
            let (place, words) = self.placed_statement(&placed.workflow, statement);
            let _ = writeln!(text, "  {} = {place}: {}", Timeline::letter(number), super::super::text::shorten(&words));
        }
        if let Some(note) = timeline.note() {
            let _ = writeln!(text, "  {note}");
        }
        text
    }
}

impl OnMachine {
    /// The chosen plans in one line.
    pub(crate) fn line(&self) -> String {
        let words = self.machine_words();
        let Some(by) = self.placed_by() else { return format!("on {words}: nothing can be planned without data") };
        let sum = |of: fn(&Placed) -> u64| self.chosen().map(of).sum::<u64>();
        let (wire, busiest) = (sum(|p| p.simulation.wire_bytes()), sum(|p| p.simulation.wire_bytes_max()));
        let bound = self.bound_bytes();
        let peak = self.peak_bytes();
        let time: f64 = self.chosen().map(|placed| placed.simulation.makespan).sum();
        let is_bounded =
            self.counted().all(|rivals| rivals.placed.first().is_some_and(|placed| rivals.is_bounded(placed)));
        let least = match is_bounded && bound >= LEAST_TO_COMPARE {
            true => format!(" ({} of the least possible)", against(busiest as f64, bound, is_bounded)),
            false => String::new(),
        };
        format!(
            "on {words}: {} sent, {} to the busiest worker{least}, peak {}, about {}, placed by {by}",
            bytes(wire),
            bytes(busiest),
            bytes(peak),
            seconds(time)
        )
    }
}

/// The statistics of the search for meshes.
pub(super) fn search_words(rivals: &Rivals) -> String {
    let report = rivals.report();
    let stop = if report.stopped { "the limit was reached" } else { "nothing better was in reach" };
    format!(
        "grids: {} for {}, {} compared, {} found; {stop}",
        counted(report.candidates as u64, "candidate"),
        counted(report.statements as u64, "statement"),
        counted(report.compared as u64, "choice"),
        counted(report.improved as u64, "improvement"),
    )
}

/// Why some workers have nothing to do, for every plan where there are any.
pub(super) fn idle_words(rivals: &Rivals) -> Vec<String> {
    rivals.placed.iter().filter_map(why_idle).collect()
}

fn why_idle(placed: &Placed) -> Option<String> {
    let workers = &placed.simulation.workers;
    let idle = workers.iter().filter(|worker| worker.tasks == 0).count() as u64;
    let all = workers.len() as u64;
    let most = placed.workflow.sets.values().map(|set| set.n_blocks()).max().unwrap_or(0);
    let by_grids = placed.grids.is_some();
    let largest = placed.grids.as_ref().map_or(0, |grids| grids.largest());
    let reason = if idle == 0 {
        return None;
    } else if by_grids && placed.scheduler == "timed" {
        "with fewer workers for some statements less has to be sent, and all take less time".to_string()
    } else if by_grids && (1..all).contains(&largest) {
        format!("no grid of more than {largest} is as even, or sends as little")
    } else if most < all {
        format!("no value has more than {}; smaller tiles would give them some", counted(most, "block"))
    } else if by_grids {
        "they own nothing that has to be computed".to_string()
    } else {
        format!("{} runs every task where something that it reads or makes already is", placed.scheduler)
    };
    let have = if idle == 1 { "has" } else { "have" };
    Some(format!("{}: {} of {all} {have} nothing to do: {reason}", placed.scheduler, counted(idle, "worker")))
}

/// Every scheduler with its figures.
pub(super) fn scheduler_table(rivals: &Rivals) -> Table {
    let mut table = Table::new(&SCHEDULER_COLUMNS);
    for placed in rivals.placed.iter().chain(&rivals.refused) {
        let simulation = &placed.simulation;
        table.row(vec![
            placed.scheduler.to_string(),
            count(placed.order.len() as u64),
            bytes(simulation.wire_bytes()),
            bytes(simulation.wire_bytes_max()),
            against(simulation.wire_bytes_max() as f64, rivals.bound_bytes, rivals.is_bounded(placed)),
            format!("{:.2}", simulation.flops_max().1),
            bytes(simulation.peak_bytes_max()),
            seconds(simulation.makespan),
            seconds(simulation.critical_path),
        ]);
    }
    table
}

fn owners_text(map: &OwnerMap) -> String {
    let (rows, columns) = MAP;
    let shown = map.merged(rows, columns);
    let mut text = format!("  {}\n", map.title());
    text.push_str(&cells_text(&shown, Cell::owner_text));
    if map.is_made_elsewhere() {
        text.push_str("    made by\n");
        text.push_str(&cells_text(&shown, Cell::makers_text));
    }
    if let Some(note) = shown.note() {
        let _ = writeln!(text, "    {note}");
    }
    text
}

fn cells_text(shown: &Merged, cell: fn(&Cell) -> String) -> String {
    let labels = std::iter::once("").chain(shown.columns.iter().map(String::as_str));
    let header: Vec<(&str, Align)> = labels.map(|label| (label, Align::Right)).collect();
    let mut table = Table::new(&header);
    for (label, cells) in shown.rows.iter().zip(&shown.cells) {
        table.row(std::iter::once(label.clone()).chain(cells.iter().map(cell)).collect());
    }
    table.to_text(4)
}

/// Senders downwards, receivers to the right; a bar where another node begins.
fn matrix_text(matrix: &Matrix) -> String {
    let mut text = format!("\n{}\n", matrix.title());
    if matrix.is_empty() {
        text.push_str("  nothing is sent\n");
        return text;
    }
    let n = matrix.labels.len();
    let with_bars = |cells: Vec<String>| -> Vec<String> {
        let bar = |k: usize| matrix.begins_node(k).then(|| "|".to_string());
        cells.into_iter().enumerate().flat_map(|(k, cell)| bar(k).into_iter().chain([cell])).collect()
    };
    let line = |first: &str, cells: Vec<String>, last: String| -> Vec<String> {
        std::iter::once(first.to_string()).chain(with_bars(cells)).chain([last]).collect()
    };
    let size = |n: u64| if n == 0 { ".".to_string() } else { bytes(n) };
    let header = line("from \\ to", matrix.labels.clone(), "sends".to_string());
    let mut table = Table::new(&header.iter().map(|label| (label.as_str(), Align::Right)).collect::<Vec<_>>());
    for (label, row) in matrix.labels.iter().zip(&matrix.cells) {
        table.row(line(label, row.iter().map(|&n| size(n)).collect(), size(row.iter().sum())));
    }
    let received = (0..n).map(|column| size(matrix.received(column))).collect();
    table.row(line("receives", received, size(matrix.total())));
    text.push_str(&table.to_text(2));
    text
}
