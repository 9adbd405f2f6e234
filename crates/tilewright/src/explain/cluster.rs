//! The same program on a machine of several workers: what every scheduler would do there, and why one is in front.

use std::time::{Duration, Instant};

use tw_ir::error::{Error, Result};
use tw_ir::program::Program;
use tw_ir::schedule::Digest;
use tw_ir::span::Span;
use tw_ir::workflow::{BlockSet, BlockSetId, StmtId, Workflow};
use tw_place::{Cluster, Machine, Notation, Placed, Rivals};
use tw_plan::PlanOptions;

use super::source::Place;
use super::{Explanation, units};
use crate::bindings::Inputs;
use crate::control::placed::{Held, PlacedSegment, held_inputs, place_program};
use crate::session::Session;

mod draw;
mod html;
#[cfg(feature = "json")]
mod json;
mod lost;
mod matrix;
mod owners;
mod statements;
mod text;
mod timeline;

/// What each scheduler would do with a program on a machine. Nothing has run, and nothing runs there yet.
#[derive(Clone, Debug)]
pub struct OnMachine {
    /// The machine.
    pub machine: Machine,
    /// The pieces of the program that can be planned without data.
    pub pieces: Vec<Piece>,
    /// Pieces that cannot.
    pub later: usize,
    /// How long planning took.
    pub planning: Duration,
    with_pictures: bool,
}

/// A piece of a program on a machine.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What to call it.
    pub title: String,
    /// What each scheduler makes of it.
    pub rivals: Rivals,
    /// The segment before rewriting.
    pub program: Program,
    /// False for the branch of an `if` that ends sooner: figures of the whole are those of the other.
    pub counts: bool,
}

impl Explanation {
    /// Plans the program for a cluster, as a run of a session with that cluster would. What is told afterwards is told of the cluster, too. The plans of
    /// other schedulers are shown beside the one that would run.
    pub fn placed_on(self, session: &Session, cluster: &Cluster) -> Result<Explanation> {
        self.placed(session, cluster, &Held::new())
    }

    /// Adds the plan that a session of several ranks runs with these inputs, some of which ranks may hold already. Nothing is added to that of another session, or of a reproducible
    /// one, which runs the plan of one machine.
    pub fn placed_here(self, session: &Session, inputs: &Inputs) -> Result<Explanation> {
        match session.cluster() {
            Some(cluster) if session.n_ranks() > 1 && !session.is_reproducible() => {
                self.placed(session, cluster, &held_inputs(inputs, session.rank()))
            }
            _ => Ok(self),
        }
    }

    fn placed(mut self, session: &Session, cluster: &Cluster, held: &Held) -> Result<Explanation> {
        let started = Instant::now();
        let (_, placed) = place_program(session, cluster, &self.program, (&self.inputs, held), true)?;
        let rarer = placed.rarer_branches();
        let piece = |(k, segment): (usize, &PlacedSegment)| {
            let mut rivals = segment.rivals.as_ref().clone();
            rivals.placed[..=segment.chosen].rotate_right(1);
            let program = segment.key.program.clone();
            Piece { title: self.title(&segment.at, k + 1), program, rivals, counts: !rarer.contains(&k) }
        };
        let pieces: Vec<Piece> = placed.segments.iter().enumerate().map(piece).collect();
        if let Some(distribution) = &cluster.distribution {
            distribution.check_names(&pieces.iter().map(|piece| &piece.rivals.program).collect::<Vec<_>>())?;
        }
        let (machine, planning, later) = (cluster.machine.clone(), started.elapsed(), placed.n_postponed);
        self.on = Some(OnMachine { machine, pieces, later, planning, with_pictures: false });
        Ok(self)
    }

    /// Shows in texts, too, who owns which block, who sends what to whom, and what everyone does when.
    pub fn with_pictures(mut self) -> Explanation {
        if let Some(on) = &mut self.on {
            on.with_pictures = true;
        }
        self
    }

    /// What was planned for a machine of several workers.
    pub fn on_machine(&self) -> Option<&OnMachine> {
        self.on.as_ref()
    }

    /// Where a statement of a placed plan was written, and its text.
    fn placed_statement(&self, workflow: &Workflow, statement: StmtId) -> (Place, String) {
        let statement = &workflow.statements[statement];
        let place = self.place(&statement.span);
        let text = self.line_text(&place).or(place.operation()).unwrap_or(&statement.label).to_string();
        (place, text)
    }

    /// What the blocks of a set are, in words.
    fn placed_value(&self, workflow: &Workflow, set: BlockSetId) -> String {
        let name = workflow.sets[set].value_name();
        let is_part = workflow.sets[set].name[name.len()..].contains(" (parts");
        // Copies and parts serve the statement that reads them; the value itself is what another made.
        let made = workflow.sets.values().find(|other| other.name == name).unwrap_or(&workflow.sets[set]);
        let value = match name.starts_with('%') {
            true => format!("what {} makes", self.place(&workflow.statements[made.statement].span)),
            false => format!("`{name}`"),
        };
        if is_part { format!("parts of {value}") } else { value }
    }
}

/// The machine that a file describes, or the default one, with other numbers of nodes and workers if they are given. Errors name the line of
/// the file, unless it has no name.
pub fn read_machine(file: Option<(&str, &str)>, nodes: Option<u32>, workers: Option<u32>) -> Result<Machine> {
    let mut machine = match file {
        None => Machine::default(),
        Some((name, text)) => Machine::parse(text).map_err(|error| in_line(error, "machine", name, text))?,
    };
    machine.nodes = nodes.unwrap_or(machine.nodes);
    machine.workers = workers.unwrap_or(machine.workers);
    machine.verify()?;
    Ok(machine)
}

/// The distribution that a text describes. Errors name the line of the file, unless it has no name.
pub fn read_distribution(name: &str, text: &str) -> Result<Notation> {
    Notation::parse(text).map_err(|error| in_line(error, "distribution", name, text))
}

/// An error about a text that is no program: it names the line, and has no place in the program.
fn in_line(error: Error, what: &str, name: &str, text: &str) -> Error {
    let line = match error.span() {
        Span::Text { start, .. } => text[..*start as usize].matches('\n').count() + 1,
        _ => 1,
    };
    let place = match name {
        "" => format!("in line {line} of the {what}"),
        _ => format!("in line {line} of the {what} file `{name}`"),
    };
    let moved = error.notes().iter().fold(Error::new(error.blame(), error.message()), |moved, note| moved.note(note));
    let moved = error.help_text().into_iter().fold(moved, |moved, help| moved.help(help));
    moved.note(place)
}

/// True for the blocks of a value of the program; else they are only on the way to one.
pub(super) fn is_value(set: &BlockSet) -> bool {
    set.value_name() == set.name
}

impl OnMachine {
    /// The schedules that a run on the cluster executes, by their hashes.
    pub fn hashes(&self, options: &PlanOptions) -> Result<Vec<Digest>> {
        let hash = |piece: &Piece| -> Option<Result<Digest>> {
            let placed = piece.rivals.placed.first()?;
            Some(placed.freeze(&|| false, &piece.program, options).map(|planned| planned.schedule.hash()))
        };
        self.pieces.iter().filter_map(hash).collect()
    }

    /// The plans in front, of every piece that counts.
    pub fn chosen(&self) -> impl Iterator<Item = &Placed> {
        self.counted().filter_map(|rivals| rivals.placed.first())
    }

    /// Rivals of every piece that counts: of two branches the one that takes longer.
    fn counted(&self) -> impl Iterator<Item = &Rivals> {
        self.pieces.iter().filter(|piece| piece.counts).map(|piece| &piece.rivals)
    }

    /// The most that any worker holds in any piece.
    pub(super) fn peak_bytes(&self) -> u64 {
        let plans = self.pieces.iter().filter_map(|piece| piece.rivals.placed.first());
        plans.map(|placed| placed.simulation.peak_bytes_max()).max().unwrap_or(0)
    }

    /// The machine in a few words.
    pub(super) fn machine_words(&self) -> String {
        let Machine { nodes, workers, .. } = self.machine;
        format!("{} of {}", units::counted(nodes.into(), "node"), units::counted(workers.into(), "worker"))
    }

    /// Who placed the plans in front: several if pieces were placed by different ones.
    pub(super) fn placed_by(&self) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        for placed in self.chosen() {
            if !names.contains(&placed.scheduler) {
                names.push(placed.scheduler);
            }
        }
        (!names.is_empty()).then(|| names.join(" and "))
    }

    /// The least that the busiest worker can receive, over all pieces.
    fn bound_bytes(&self) -> f64 {
        self.counted().map(|rivals| rivals.bound_bytes).sum()
    }
}

/// The worker with the largest figure; the first of several.
fn busiest<T: PartialOrd + Copy>(figures: impl Iterator<Item = T>) -> Option<(u32, T)> {
    (0u32..).zip(figures).fold(None, |best, next| match best {
        Some((_, most)) if next.1 <= most => best,
        _ => Some(next),
    })
}

/// Bytes of a bound below which nobody wants to know how far away a plan is: a few numbers.
const LEAST_TO_COMPARE: f64 = 128.0;

/// What a figure is of the least it can be: `2.90`, or nothing where there is nothing to compare with, or work is too uneven for it.
fn against(figure: f64, least: f64, is_bounded: bool) -> String {
    if is_bounded && least >= LEAST_TO_COMPARE { format!("{:.2}", figure / least) } else { "-".to_string() }
}
