//! The difference of two plans, line by line and in total.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::workflow::{Boxes, Workflow};
use tw_ir::{Axis, EntityRef, Grid};
use tw_place::{Placed, Rivals};

use super::cluster::is_value;
use super::source::Place;
use super::{Explanation, Section, SegmentPlan, units};

mod align;
#[cfg(feature = "json")]
mod json;
mod text;

/// The difference of two plans: of two programs, or of one program with different options.
#[derive(Clone, Debug)]
pub struct Difference {
    sides: [Side; 2],
    /// Lines that belong together, by their numbers on both sides.
    pairs: Vec<(Option<usize>, Option<usize>)>,
    /// True if bytes count messages; false if they count traffic between memory and kernels.
    is_wire: bool,
}

/// One of two plans.
#[derive(Clone, Debug)]
struct Side {
    name: String,
    figures: Vec<Figure>,
    lines: Vec<Line>,
}

/// A figure of a whole plan.
#[derive(Clone, Debug)]
struct Figure {
    /// For people, and for programs.
    names: (&'static str, &'static str),
    value: f64,
    /// In words.
    text: String,
}

/// The plan of one line.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    place: Place,
    text: String,
    /// Its fate, if it has no tasks of its own.
    fused: String,
    tasks: u64,
    bytes: u64,
    flops: u64,
    /// Grids of workers, or how many take part.
    workers: String,
    values: Vec<Value>,
}

/// A value made at a line.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    name: String,
    axes: Grid,
    /// The worker of each block.
    owners: Vec<Option<u32>>,
}

impl Value {
    /// `[100, 20]`: the lengths of its blocks.
    fn tiles(&self) -> String {
        let length = |axis: &Axis| match axis {
            Axis::Uniform { .. } => axis.longest().to_string(),
            // Lengths one by one would fill the screen.
            Axis::Ragged(_) => format!("up to {}", axis.longest()),
        };
        format!("[{}]", self.axes.iter().map(length).collect::<Vec<_>>().join(", "))
    }
}

impl Explanation {
    /// The difference from this plan to another.
    pub fn diff(&self, other: &Explanation) -> Difference {
        let is_wire = self.on.is_some() || other.on.is_some();
        let sides = [self.side(is_wire), other.side(is_wire)];
        let keys = |side: &Side| side.lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
        let pairs = align::align(&keys(&sides[0]), &keys(&sides[1]));
        Difference { sides, pairs, is_wire }
    }

    fn side(&self, is_wire: bool) -> Side {
        let mut placed = self.on.iter().flat_map(|on| &on.pieces);
        let mut lines = Vec::new();
        for section in &self.sections {
            let Some(plan) = section.plan() else {
                lines.extend(self.line_for_later(section));
                continue;
            };
            let rivals = placed.next().map(|piece| &piece.rivals);
            lines.extend(self.lines_of(plan, rivals, is_wire));
        }
        Side { name: self.side_name(), figures: self.figures(is_wire), lines }
    }

    /// The file, the machine and the scheduler.
    fn side_name(&self) -> String {
        let file = self.source.as_ref().map_or("plan", |source| source.file());
        match self.on.as_ref() {
            None => file.to_string(),
            Some(on) => {
                let by = on.placed_by().map_or_else(String::new, |by| format!(", {by}"));
                format!("{file} on {}{by}", on.machine_words())
            }
        }
    }

    fn figures(&self, is_wire: bool) -> Vec<Figure> {
        let bytes = |names, n: u64| Figure { names, value: n as f64, text: units::bytes(n) };
        let count = |names, n: u64| Figure { names, value: n as f64, text: units::count(n) };
        let time = |names, s: f64| Figure { names, value: s, text: units::seconds(s) };
        let summary = self.summary();
        let Some(on) = &self.on else {
            let moved = match is_wire {
                true => vec![bytes(("sent", "wire_bytes_total"), 0), bytes(("busiest", "wire_bytes_max_rank"), 0)],
                false => vec![bytes(("moved", "moved_bytes"), summary.cost.moved_bytes)],
            };
            let mut figures = vec![count(("tasks", "tasks"), summary.cost.tasks)];
            figures.extend(moved);
            figures.push(bytes(("peak", "peak_bytes"), summary.peak_bytes));
            figures.push(time(("time", "seconds"), summary.seconds));
            return figures;
        };
        let sum = |of: fn(&Placed) -> u64| on.chosen().map(of).sum::<u64>();
        vec![
            count(("tasks", "tasks"), sum(|p| p.order.len() as u64)),
            bytes(("sent", "wire_bytes_total"), sum(|p| p.simulation.wire_bytes())),
            bytes(("busiest", "wire_bytes_max_rank"), sum(|p| p.simulation.wire_bytes_max())),
            bytes(("peak", "peak_bytes"), on.peak_bytes()),
            time(("time", "seconds"), on.chosen().map(|p| p.simulation.makespan).sum()),
        ]
    }

    /// One line for all that is planned while the program runs.
    fn line_for_later(&self, section: &Section) -> Option<Line> {
        let (place, text) = (self.place(&section.at.span), self.why_later(section)?);
        Some(Line {
            place,
            text,
            fused: String::new(),
            tasks: 0,
            bytes: 0,
            flops: 0,
            workers: String::new(),
            values: Vec::new(),
        })
    }

    fn lines_of(&self, plan: &SegmentPlan, rivals: Option<&Rivals>, is_wire: bool) -> Vec<Line> {
        let mut values = match rivals.and_then(|rivals| rivals.placed.first()) {
            Some(placed) => {
                let homes = placed.sites.homes(&placed.workflow);
                self.values_by_place(&placed.workflow, &|block| homes[block])
            }
            None => self.values_by_place(plan.planned.schedule.workflow(), &|_| None),
        };
        let mut flows: BTreeMap<Place, (u64, u64, BTreeSet<String>)> = BTreeMap::new();
        if let Some((rivals, placed)) = rivals.and_then(|rivals| Some((rivals, rivals.placed.first()?))) {
            for (_, flow) in self.statement_flows(rivals, placed) {
                let (tasks, bytes, workers) = flows.entry(flow.place.clone()).or_default();
                *tasks += flow.tasks;
                *bytes += flow.received;
                workers.insert(flow.workers_text());
            }
        }
        let line = |row: super::rows::Row| {
            let (tasks, bytes, workers) = match (rivals, is_wire) {
                (Some(_), _) => flows.remove(&row.place).unwrap_or_default(),
                (None, true) => (row.cost.tasks, 0, BTreeSet::new()),
                (None, false) => (row.cost.tasks, row.cost.moved_bytes, BTreeSet::new()),
            };
            Line {
                fused: if tasks == 0 { row.fusion() } else { String::new() },
                text: match row.place.operation() {
                    Some(operation) => format!("{operation}: {}", row.text),
                    None => row.text,
                },
                tasks,
                bytes,
                flops: row.cost.flops,
                workers: workers.into_iter().collect::<Vec<_>>().join(", "),
                values: values.remove(&row.place).unwrap_or_default(),
                place: row.place,
            }
        };
        self.rows(plan).into_iter().map(line).collect()
    }

    /// Values that are in blocks, by the line that makes them.
    fn values_by_place(&self, workflow: &Workflow, home: &dyn Fn(usize) -> Option<u32>) -> BTreeMap<Place, Vec<Value>> {
        let mut values: BTreeMap<Place, Vec<Value>> = BTreeMap::new();
        for (id, set) in workflow.sets.iter().filter(|(_, set)| is_value(set)) {
            let Boxes::Grid(axes) = &set.boxes else { continue };
            let owners = (0..set.n_blocks()).map(|k| home(workflow.block(id, k).index())).collect();
            // Numbers of values without a name change with the program around them.
            let name = if set.name.starts_with('%') { String::new() } else { set.name.clone() };
            let place = self.place(&workflow.statements[set.statement].span);
            values.entry(place).or_default().push(Value { name, axes: axes.clone(), owners });
        }
        values
    }
}

impl Difference {
    /// Adds labels to both plans, for use when file names do not distinguish them.
    pub fn named(mut self, a: &str, b: &str) -> Difference {
        for (side, name) in self.sides.iter_mut().zip([a, b]) {
            if !name.is_empty() {
                side.name = format!("{}, {name}", side.name);
            }
        }
        self
    }

    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        let [a, b] = &self.sides;
        let same = |(a, b): (&Figure, &Figure)| a.value == b.value;
        self.changed().next().is_none() && a.figures.iter().zip(&b.figures).all(same)
    }

    /// Lines that are not planned alike.
    fn changed(&self) -> impl Iterator<Item = (Option<&Line>, Option<&Line>)> {
        let [a, b] = &self.sides;
        let pairs = self.pairs.iter().map(|(i, j)| (i.map(|i| &a.lines[i]), j.map(|j| &b.lines[j])));
        pairs.filter(|pair| match pair {
            (Some(a), Some(b)) => !a.is_planned_as(b),
            // What neither has tasks for nor ever had is no change of the plan.
            (line, other) => line.or(*other).is_some_and(|line| line.tasks > 0),
        })
    }
}

impl Line {
    /// True if only the place differs.
    fn is_planned_as(&self, other: &Line) -> bool {
        Line { place: self.place.clone(), fused: self.fused.clone(), ..other.clone() } == *self
            && (self.fused.is_empty() == other.fused.is_empty())
    }
}
