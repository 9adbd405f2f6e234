//! Placements as drawings.

use std::fmt::Write;

use tw_place::{Machine, Placed};

use super::super::html::escape;
use super::super::svg::{Drawing, MARGIN};
use super::super::units::{bytes, counted, seconds};
use super::matrix::Matrix;
use super::owners::{Cell, OwnerMap};
use super::timeline::{Lane, Timeline};
use super::{Explanation, OnMachine, Piece};

/// Limits of drawings: cells of a map, workers of a matrix and of a timeline, and distinguishable columns.
const MAP: usize = 96;
pub(super) const MATRIX: usize = 64;
pub(super) const LANES: usize = 64;
pub(super) const RESOLUTION: usize = 480;

/// As many maps as a page bears; programs that factor matrices have thousands of values.
const MOST_MAPS: usize = 24;

/// Sizes in pixels.
const PICTURE: usize = 480;
const MAP_PICTURE: usize = 320;
const LABELS: usize = 120;
const TITLE: usize = 26;
const LINE: usize = 16;
const LANE: usize = 14;

impl Explanation {
    /// All pictures of the chosen plans.
    pub(crate) fn pictures(&self, on: &OnMachine) -> Vec<Drawing> {
        let mut drawings = Vec::new();
        for Piece { rivals, .. } in &on.pieces {
            let Some(placed) = rivals.placed.first() else { continue };
            let maps = self.owner_maps(placed);
            drawings.extend(maps.iter().take(MOST_MAPS).map(|map| draw_owners(map, &on.machine)));
            if maps.len() > MOST_MAPS {
                drawings.push(words(&format!("and {} more values", maps.len() - MOST_MAPS)));
            }
            drawings.push(draw_matrix(&Matrix::of(&placed.simulation, &on.machine, MATRIX)));
            drawings.push(self.draw_timeline(placed));
        }
        drawings
    }

    fn draw_timeline(&self, placed: &Placed) -> Drawing {
        let timeline = Timeline::of(placed, LANES, RESOLUTION);
        let title = format!("who does what when, in {}", seconds(timeline.makespan));
        let mut body = heading(&title);
        let width = 2 * PICTURE;
        let scale = width as f64 / timeline.makespan.max(f64::MIN_POSITIVE);
        for (k, lane) in timeline.lanes.iter().enumerate() {
            self.draw_lane(placed, &timeline, lane, TITLE + k * LANE, scale, &mut body);
        }
        let mut y = TITLE + timeline.lanes.len() * LANE + LINE;
        for part in 0..=4 {
            let (x, at) = (LABELS + part * width / 4, seconds(timeline.makespan * part as f64 / 4.0));
            let _ = writeln!(body, "<text class=\"small\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{at}</text>");
        }
        for (number, &statement) in timeline.statements.iter().enumerate() {
            y += LINE;
            let (place, text) = self.placed_statement(&placed.workflow, statement);
            let fill = statement_colour(number);
            let text = escape(&format!("{place}: {}", super::super::text::shorten(&text)));
            let _ = writeln!(
                body,
                "{}<text x=\"{}\" y=\"{y}\">{text}</text>",
                cell(LABELS, y - 10, 12, 11, &fill, ""),
                LABELS + 18
            );
        }
        if let Some(note) = timeline.note() {
            y += LINE;
            let _ = writeln!(body, "<text class=\"small\" x=\"{LABELS}\" y=\"{y}\">{}</text>", escape(&note));
        }
        Drawing::new(LABELS + width + 3 * MARGIN, y + LINE, body)
    }

    fn draw_lane(&self, placed: &Placed, timeline: &Timeline, lane: &Lane, y: usize, scale: f64, out: &mut String) {
        let waits = 100.0 * timeline.waiting(lane);
        let _ = writeln!(
            out,
            "<g><title>worker {0} waits {waits:.0}% of the time</title><text class=\"small\" x=\"{1}\" y=\"{2}\" text-anchor=\"end\">worker {0}</text>",
            lane.worker,
            LABELS - 8,
            y + LANE - 3
        );
        let _ = writeln!(out, "{}</g>", cell(LABELS, y, 2 * PICTURE, LANE - 2, "#f4f4f4", ""));
        for run in &lane.runs {
            let (place, _) = self.placed_statement(&placed.workflow, run.statement);
            let (tasks, start, end) = (counted(run.tasks, "task"), seconds(run.start), seconds(run.end));
            let fill = statement_colour(timeline.number(run.statement));
            // A run that waits in between is paler.
            let opacity = (run.busy / (run.end - run.start).max(f64::MIN_POSITIVE)).clamp(0.15, 1.0);
            let _ = writeln!(
                out,
                "<g><title>{}</title><rect x=\"{:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" style=\"fill:{fill};fill-opacity:{opacity:.2};stroke:none\"/></g>",
                escape(&format!("{tasks} of {place}, {start} to {end}")),
                LABELS as f64 + run.start * scale,
                ((run.end - run.start) * scale).max(0.2),
                LANE - 2,
            );
        }
    }
}

fn draw_owners(map: &OwnerMap, machine: &Machine) -> Drawing {
    let shown = map.merged(MAP, MAP);
    let mut body = heading(&map.title());
    let side = |n: usize| (MAP_PICTURE / n.max(1)).clamp(4, 32);
    let (width, height) = (side(shown.columns.len()), side(shown.rows.len()));
    let has_labels = height >= 10;
    for (r, (row, cells)) in shown.rows.iter().zip(&shown.cells).enumerate() {
        let y = TITLE + LINE + r * height;
        if has_labels {
            let (x, y) = (LABELS - 8, y + height / 2 + 4);
            let _ =
                writeln!(body, "<text class=\"small\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>", escape(row));
        }
        for (c, block) in cells.iter().enumerate() {
            let x = LABELS + c * width;
            let tip = block_tip(block, row, &shown.columns[c], machine);
            let colour = block.owner.map_or(Colour { hue: 0.0, light: 100.0 }, |owner| worker_colour(owner, machine));
            body.push_str(&cell(x, y, width, height, &colour.fill(), &tip));
            let text = block.owner_text();
            if width >= 8 * text.len() + 4 && has_labels {
                let (x, y) = (x + width / 2, y + height / 2 + 4);
                let ink = colour.ink();
                let _ = writeln!(
                    body,
                    "<text class=\"small\" x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" style=\"fill:{ink}\">{text}</text>"
                );
            }
        }
    }
    let ends = [(0, shown.columns.first()), (shown.columns.len().saturating_sub(1), shown.columns.last())];
    // Labels of the first and last column only, and one where they would overlap.
    let n_ends = if shown.columns.len() * width > 160 { 2 } else { 1 };
    for (c, label) in ends.into_iter().take(n_ends) {
        let (x, y) = (LABELS + c * width, TITLE + LINE - 4);
        let _ = writeln!(
            body,
            "<text class=\"small\" x=\"{x}\" y=\"{y}\">{}</text>",
            escape(label.map_or("", |label| label))
        );
    }
    let mut y = TITLE + LINE + shown.rows.len() * height + LINE;
    let shared = map.is_made_elsewhere().then(|| "some blocks are sums of what several workers made".to_string());
    for note in shown.note().into_iter().chain(shared) {
        let _ = writeln!(body, "<text class=\"small\" x=\"{LABELS}\" y=\"{y}\">{}</text>", escape(&note));
        y += LINE;
    }
    let width = (LABELS + shown.columns.len() * width).max(8 * map.title().chars().count());
    Drawing { width: width + 2 * MARGIN, height: y, body, is_map: true }
}

fn block_tip(block: &Cell, row: &str, column: &str, machine: &Machine) -> String {
    let at = [row, column].into_iter().filter(|label| !label.is_empty()).collect::<Vec<_>>().join(", ");
    let Some(owner) = block.owner else { return format!("{at}: nobody makes it") };
    let makers = if block.makers == [owner] { String::new() } else { format!(", made by {}", block.makers_text()) };
    format!("[{at}] belongs to worker {owner} on node {}{makers}", machine.node_of(owner))
}

fn draw_matrix(matrix: &Matrix) -> Drawing {
    let mut body = heading(&matrix.title());
    if matrix.is_empty() {
        let _ = writeln!(body, "<text class=\"small\" x=\"{MARGIN}\" y=\"{}\">nothing is sent</text>", TITLE + LINE);
        return Drawing::new(PICTURE, TITLE + 2 * LINE, body);
    }
    let n = matrix.labels.len();
    let side = (PICTURE / n).clamp(8, 40);
    let most = matrix.cells.iter().flatten().copied().max().unwrap_or(1).max(1);
    let top = TITLE + LINE;
    for (r, row) in matrix.cells.iter().enumerate() {
        let (from, y) = (&matrix.labels[r], top + r * side);
        if side >= 10 {
            let _ = writeln!(
                body,
                "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{from}</text>",
                LABELS - 8,
                y + side / 2 + 4
            );
        }
        for (c, &sent) in row.iter().enumerate() {
            let tip = format!("{from} sends {} to {}", bytes(sent), matrix.labels[c]);
            let shade = if sent == 0 { 0.0 } else { 0.1 + 0.9 * sent as f64 / most as f64 };
            let fill = format!("rgba(76,120,168,{shade:.3})");
            body.push_str(&cell(LABELS + c * side, y, side, side, &fill, &tip));
        }
    }
    if side >= 20 {
        for (c, label) in matrix.labels.iter().enumerate() {
            let x = LABELS + c * side + side / 2;
            let _ = writeln!(
                body,
                "<text class=\"small\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                top - 4
            );
        }
    }
    let (left, right, bottom) = (LABELS, LABELS + n * side, top + n * side);
    for k in (0..n).filter(|&k| matrix.begins_node(k)) {
        let (x, y) = (LABELS + k * side, top + k * side);
        let _ = writeln!(body, "<path d=\"M{left} {y}H{right}M{x} {top}V{bottom}\" style=\"stroke:#222\"/>");
    }
    let (busiest, received) =
        (0..n).map(|c| (c, matrix.received(c))).max_by_key(|&(c, n)| (n, std::cmp::Reverse(c))).unwrap_or_default();
    let note = format!(
        "from row to column; the darkest is {}; {} receives most, {}",
        bytes(most),
        matrix.labels[busiest],
        bytes(received)
    );
    let _ = writeln!(body, "<text class=\"small\" x=\"{LABELS}\" y=\"{}\">{}</text>", bottom + LINE, escape(&note));
    Drawing::new(right.max(LABELS + 8 * note.len()) + MARGIN, bottom + 2 * LINE, body)
}

fn words(text: &str) -> Drawing {
    let body = format!("<text x=\"{MARGIN}\" y=\"14\">{}</text>\n", escape(text));
    Drawing { width: PICTURE, height: TITLE, body, is_map: true }
}

fn heading(title: &str) -> String {
    format!("<text class=\"title\" x=\"{MARGIN}\" y=\"14\">{}</text>\n", escape(title))
}

/// A coloured box with a tooltip.
fn cell(x: usize, y: usize, width: usize, height: usize, fill: &str, tip: &str) -> String {
    let rect = format!(
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" style=\"fill:{fill};stroke:#fff;stroke-width:.5\"/>"
    );
    if tip.is_empty() { rect } else { format!("<g><title>{}</title>{rect}</g>\n", escape(tip)) }
}

/// A hue for every node, lighter from worker to worker.
fn worker_colour(worker: u32, machine: &Machine) -> Colour {
    let hue = 360.0 * f64::from(machine.node_of(worker)) / f64::from(machine.nodes);
    let light = 55.0 + 30.0 * f64::from(worker % machine.workers) / f64::from(machine.workers);
    // Without nodes to tell apart, workers are.
    let (hue, light) = match machine.nodes {
        1 => (360.0 * f64::from(worker) / f64::from(machine.workers), 65.0),
        _ => (hue, light),
    };
    Colour { hue, light }
}

/// A colour of [`SATURATION`].
#[derive(Clone, Copy, Debug)]
struct Colour {
    /// In degrees.
    hue: f64,
    /// In percent.
    light: f64,
}

/// How far colours of workers are from grey.
const SATURATION: f64 = 0.6;

impl Colour {
    fn fill(self) -> String {
        format!("hsl({:.0},{:.0}%,{:.0}%)", self.hue, 100.0 * SATURATION, self.light)
    }

    /// The text colour with the larger contrast: black or white.
    fn ink(self) -> &'static str {
        // White on it has a contrast of 1.05 / (y + 0.05), black one of (y + 0.05) / 0.05.
        if self.luminance() + 0.05 > (1.05f64 * 0.05).sqrt() { "#000" } else { "#fff" }
    }

    /// Relative luminance, as the guidelines for contrast on the web define it.
    fn luminance(self) -> f64 {
        let light = self.light / 100.0;
        let spread = SATURATION * light.min(1.0 - light);
        let channel = |n: f64| {
            let k = (n + self.hue / 30.0) % 12.0;
            let value = light - spread * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(0.0) + 0.7152 * channel(8.0) + 0.0722 * channel(4.0)
    }
}

/// Neighbours differ by the golden angle.
fn statement_colour(number: usize) -> String {
    format!("hsl({:.0},55%,55%)", (210.0 + 137.508 * number as f64) % 360.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read_on_every_colour() {
        for (nodes, workers) in [(1, 12), (16, 32), (7, 3)] {
            let machine = Machine::of(nodes, workers).unwrap();
            for worker in 0..nodes * workers {
                let colour = worker_colour(worker, &machine);
                let ink = if colour.ink() == "#fff" { 1.0 } else { 0.0 };
                let (a, b) = (colour.luminance() + 0.05, ink + 0.05);
                // The guidelines' level for small text.
                assert!(a.max(b) / a.min(b) >= 4.5, "{colour:?}");
            }
        }
        let white = Colour { hue: 0.0, light: 100.0 };
        assert!((white.luminance() - 1.0).abs() < 1e-9);
    }
}
