//! The plan and the cost of a program, per statement of the user, before anything runs.
//!
//! [`Session::explain`] plans every segment that does not depend on data, with the same plans as a run. It enters a loop body once, with the carried types, and names the
//! segments that it cannot plan yet. To add a form of output, add a variant to [`Level`] and an arm in `explain/text.rs`.
//!
//! ```
//! use tilewright::{Session, explain::Level};
//! let session = Session::new();
//! let a = session.random_normal(&[2000, 300], 1)?;
//! let gram = a.transpose()?.matmul(&a)?;
//! let (program, _) = gram.program()?;
//! let explanation = session.explain(&program)?;
//! println!("{}", explanation.to_text(Level::Line));
//! assert!(explanation.summary().peak_bytes > 0);
//! # Ok::<(), tilewright::Error>(())
//! ```

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tw_ir::error::Result;
use tw_ir::program::{self, Program, TensorType};
use tw_ir::span::{FileId, Span};
use tw_plan::BudgetTraffic;

use crate::bindings::Inputs;
use crate::budget::{Need, Rest};
use crate::control::types::Types;
use crate::control::walk;
use crate::report::Totals;
use crate::session::Session;
pub(crate) use crate::units;

mod avoidable;
mod cluster;
mod cost;
mod diff;
mod dot;
mod fusion;
mod graph;
mod html;
mod inputs;
#[cfg(feature = "json")]
mod json;
mod kernels;
mod recorded;
mod rows;
mod sections;
mod segment;
mod source;
mod speeds;
mod svg;
pub(crate) mod table;
mod text;
mod tree;
mod why;

pub use cluster::{OnMachine, read_distribution, read_machine};
pub use cost::Cost;
pub use diff::Difference;
pub use fusion::{Fate, Kept, fates, why_kept};
pub use inputs::InputUse;
pub use segment::SegmentPlan;
pub use source::{Place, SourceText};
pub use speeds::Speeds;

/// Level of detail and form of an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Level {
    /// One line.
    Line,
    /// One line, a table with a row per source line, and the reasons.
    #[default]
    Table,
    /// A tree: each result above its operands.
    Tree,
    /// The text of every planner level.
    Verbose,
    /// The kernels of each statement.
    Kernel,
    /// A graph of statements, for Graphviz.
    Dot,
    /// A graph of statements, as an SVG drawing.
    Svg,
    /// An HTML page.
    Html,
    /// JSON, for other programs.
    #[cfg(feature = "json")]
    Json,
}

pub use crate::control::Role;
pub use crate::control::collect::{Position, Turn};
pub use crate::peak::{Holder, Peak};
pub use crate::profile::{Activity, Measured, Profile, TaskRun, profiled};

/// The outcome of planning a section.
#[derive(Clone, Debug)]
pub enum SectionOutcome {
    /// Every extent is known.
    Planned(Box<SegmentPlan>),
    /// An extent depends on data.
    Later {
        /// The operations of the section.
        spans: Vec<Span>,
        /// The first operation that cannot be planned yet.
        unknown: Span,
    },
}

/// A straight-line section of the program.
#[derive(Clone, Debug)]
pub struct Section {
    /// Where in the control flow it stands.
    pub at: Position,
    /// True if extents depend on data and the plan assumes that masks select everything.
    pub selects_all: bool,
    /// The outcome of planning it.
    pub outcome: SectionOutcome,
}

impl Section {
    /// The plan, if there is one yet.
    pub fn plan(&self) -> Option<&SegmentPlan> {
        match &self.outcome {
            SectionOutcome::Planned(plan) => Some(plan),
            SectionOutcome::Later { .. } => None,
        }
    }
}

/// The plan of a program, with measurements if it has run.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The sections, in execution order.
    pub sections: Vec<Section>,
    source: Option<SourceText>,
    threads: usize,
    speeds: Speeds,
    measured: Option<(Measured, Totals)>,
    on: Option<OnMachine>,
    /// The most bytes alive at once, in any turn of any loop, one task at a time and on all threads.
    peaks: (u64, u64),
    /// The budget of the session, if somebody has set one.
    budget: Option<u64>,
    program: Program,
    /// The types of the inputs.
    inputs: BTreeMap<String, TensorType>,
    /// Lines of the host language by file and number.
    host_lines: HashMap<(FileId, u32), String>,
}

/// An explanation in a few numbers. Loop bodies count once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// All planned sections.
    pub cost: Cost,
    /// The largest number of bytes alive at once, one task at a time.
    pub peak_bytes: u64,
    /// The largest number of bytes alive at once on all threads of the session, which run ahead of each other.
    pub peak_bytes_on_threads: u64,
    /// Bytes that the budget makes the program move.
    pub traffic: BudgetTraffic,
    /// True if that assumes that masks select everything.
    pub selects_all: bool,
    /// Bytes of the distinct inputs of the user of which something is read.
    pub distinct_input_bytes: u64,
    /// How often the inputs are read, on average by bytes; 0 without inputs.
    pub input_passes: f64,
    /// Time to plan.
    pub planning: Duration,
    /// A guess at the time to run.
    pub seconds: f64,
    /// True if there are loops or branches.
    pub has_loops: bool,
    /// True if some section is planned only when the program runs.
    pub has_later: bool,
}

impl Session {
    /// Plans what can be planned without data. Inputs are taken to be what they are declared as, and to be read from files.
    pub fn explain(&self, program: &Program) -> Result<Explanation> {
        self.explain_types(program, |program| {
            Types::declared(self, program, sections::Sections::on(self.threads(), self.budget()))
        })
    }

    /// The same with the data that a run would be given: arrays that are in memory already are not counted again.
    pub fn explain_bound(&self, program: &Program, inputs: &Inputs) -> Result<Explanation> {
        self.explain_types(program, |_| {
            Types::bound(self, inputs, sections::Sections::on(self.threads(), self.budget()))
        })
    }

    fn explain_types<'a>(
        &'a self,
        program: &Program,
        types: impl FnOnce(&Program) -> Types<'a, sections::Sections>,
    ) -> Result<Explanation> {
        program::verify(program)?;
        let dissolved = tw_plan::dissolve_selections(program, self.plan_options())?;
        let program = dissolved.unwrap_or_else(|| program.clone());
        let mut types = types(&program);
        walk(&program, &mut types)?;
        // Under a budget threads run ahead by no more than it leaves.
        let (peak, on_threads) = types.recorder.peaks;
        let on_threads = self.budget().map_or(on_threads, |budget| on_threads.min(budget.max(peak)));
        Ok(Explanation {
            sections: types.recorder.collected.items,
            source: None,
            threads: self.threads(),
            speeds: Speeds::default(),
            measured: None,
            on: None,
            peaks: (peak, on_threads),
            budget: self.budget(),
            inputs: types.inputs,
            program,
            host_lines: HashMap::new(),
        })
    }
}

impl Explanation {
    /// Shows lines of this text.
    pub fn with_source(mut self, source: SourceText) -> Explanation {
        self.source = Some(source);
        self
    }

    /// Shows lines of the host language as this function tells them, by file and number.
    pub fn with_host_lines(mut self, line: impl Fn(&str, u32) -> Option<String>) -> Explanation {
        let mut lines = HashMap::new();
        for (_, plan) in self.plans() {
            for node in &plan.before.body.nodes {
                if let Span::Host { file, line: number, .. } = &node.span
                    && let Entry::Vacant(place) = lines.entry((*file, *number))
                    && let Some(text) = line(file.name(), *number)
                {
                    place.insert(text.trim().to_string());
                }
            }
        }
        self.host_lines = lines;
        self
    }

    /// The text of a line of the program or of the host language, if it is at hand.
    fn line_text(&self, place: &Place) -> Option<&str> {
        match (place, &self.source) {
            (Place::Line(line), Some(source)) => Some(source.line(*line)),
            (Place::Host { file, line, .. }, _) => self.host_lines.get(&(*file, *line)).map(String::as_str),
            _ => None,
        }
    }

    /// Estimates times by these speeds.
    pub fn with_speeds(mut self, speeds: Speeds) -> Explanation {
        self.speeds = speeds;
        self
    }

    /// Adds measured times to the plan.
    pub fn with_measured(mut self, measured: Measured, totals: Totals) -> Explanation {
        self.measured = Some((measured, totals));
        self
    }

    /// The summary figures.
    pub fn summary(&self) -> Summary {
        let has_loops = self.sections.iter().any(|section| section.at.depth > 0);
        let mut summary =
            Summary { has_loops, peak_bytes: self.peaks.0, peak_bytes_on_threads: self.peaks.1, ..Summary::default() };
        for section in &self.sections {
            let Some(plan) = section.plan() else {
                summary.has_later = true;
                continue;
            };
            // A first iteration that differs does not make a loop body count twice.
            if section.at.turn != Turn::First {
                summary.cost += plan.cost();
                summary.traffic += plan.traffic;
            }
            summary.selects_all |= section.selects_all;
            summary.planning += plan.planning();
        }
        let inputs = self.inputs();
        summary.distinct_input_bytes = inputs.iter().fold(0, |sum, input| sum.saturating_add(input.bytes));
        if summary.distinct_input_bytes > 0 {
            let read = inputs.iter().fold(0u64, |sum, input| sum.saturating_add(input.read_bytes));
            summary.input_passes = read.max(summary.cost.input_bytes) as f64 / summary.distinct_input_bytes as f64;
        }
        summary.seconds = self.speeds.seconds(&summary.cost, self.threads);
        summary
    }

    /// An error that names the smallest budget that works, if a single task certainly needs more memory than this. Sections whose extents
    /// depend on data are judged when they run; where there are some, the error names the least that is needed.
    pub fn check_budget(&self, budget: u64) -> Result<()> {
        // Which branch runs is not known.
        let certain = self.plans().filter(|(section, _)| !section.selects_all && section.at.branches.is_empty());
        let Some((_, plan)) = certain.max_by_key(|(_, plan)| plan.least.0) else { return Ok(()) };
        let (bytes, during) = plan.least;
        let is_known =
            |section: &Section| !section.selects_all && section.plan().is_some_and(|plan| plan.least.0 <= bytes);
        let is_all_known = self.sections.iter().all(is_known);
        let at = during.map(|statement| &plan.planned.plan.statements[statement].span);
        let rest = if is_all_known { Rest::Enough(bytes) } else { Rest::Unknown };
        Need { bytes, held: 0, at, rest }.grant(budget).map(drop)
    }

    /// Sections with a plan.
    fn plans(&self) -> impl Iterator<Item = (&Section, &SegmentPlan)> {
        self.sections.iter().filter_map(|section| section.plan().map(|plan| (section, plan)))
    }

    /// The place of a span in this explanation's text.
    fn place(&self, span: &Span) -> Place {
        Place::of(span, self.source.as_ref())
    }
}
