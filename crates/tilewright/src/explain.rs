//! What a program will cost, told in the user's statements, before anything runs.
//!
//! [`Session::explain`] plans every segment that can be planned without data: the same plans a run would use. Loops are entered once, with the types they
//! carry; what depends on data is named and left for later.
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

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use tw_ir::error::{Error, Result};
use tw_ir::program::{self, Program};
use tw_ir::span::Span;

use crate::report::Totals;
use crate::session::Session;

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
pub(crate) mod peak;
mod profile;
mod recorded;
mod rows;
mod segment;
mod source;
mod speeds;
mod svg;
pub(crate) mod table;
mod text;
mod tree;
pub(crate) mod units;
mod walk;
mod why;

pub use cluster::{OnMachine, read_distribution, read_machine};
pub use cost::Cost;
pub use diff::Difference;
pub use fusion::{Fate, Kept, fates, why_kept};
pub use inputs::InputUse;
pub use peak::{Holder, Peak};
pub(crate) use profile::profile_of_run;
pub use profile::{Measured, Profile, TaskRun, profiled};
pub use segment::SegmentPlan;
pub(crate) use segment::n_bytes;
pub use source::{Place, SourceText};
pub use speeds::Speeds;
use walk::ValueName;

/// How much to tell, and in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Level {
    /// One line.
    Line,
    /// One line, a table per source line, and why.
    #[default]
    Table,
    /// Results with what they are made of below them.
    Tree,
    /// The levels of the planner as text.
    Verbose,
    /// What the tasks of each statement compute.
    Kernel,
    /// A graph of statements for Graphviz.
    Dot,
    /// The same graph as a drawing.
    Svg,
    /// A page for a browser.
    Html,
    /// For other programs.
    #[cfg(feature = "json")]
    Json,
}

/// Where in the control flow a section stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Outside loops and branches.
    Straight,
    /// The condition of a loop.
    Condition,
    /// The body of a loop.
    Body,
    /// Taken if the condition holds.
    Then,
    /// Taken otherwise.
    Otherwise,
}

/// Whether a section could be planned.
#[derive(Clone, Debug)]
pub enum SectionOutcome {
    /// Every extent is known.
    Planned(Box<SegmentPlan>),
    /// Something depends on data.
    Later {
        /// The operations of the section.
        spans: Vec<Span>,
        /// The first one that cannot be planned yet.
        unknown: Span,
    },
}

/// A straight-line piece of the program.
#[derive(Clone, Debug)]
pub struct Section {
    /// Where in the control flow it stands.
    pub role: Role,
    /// The loop or branch it belongs to.
    pub span: Span,
    /// How many loops and branches are around it.
    pub depth: usize,
    /// The branches it is in, outermost first: the number of the `if`, and whether it is the other branch.
    pub branches: Vec<(u32, bool)>,
    /// True if extents depend on data and the plan assumes that masks select everything.
    pub selects_all: bool,
    /// Whether it could be planned.
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

/// What is known about a program before it runs, and after it has been measured.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The pieces, in the order they run.
    pub sections: Vec<Section>,
    source: Option<SourceText>,
    threads: usize,
    speeds: Speeds,
    measured: Option<(Measured, Totals)>,
    on: Option<OnMachine>,
    /// What each place of a loop has after the first round.
    repeats: HashMap<u32, ValueName>,
    /// Lines of the host language by file and number.
    host_lines: HashMap<(String, u32), String>,
}

/// An explanation in a few numbers. Loop bodies count once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// All planned sections.
    pub cost: Cost,
    /// The largest number of bytes alive at once, one task at a time.
    pub peak_bytes: u64,
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
    /// Plans what can be planned without data.
    pub fn explain(&self, program: &Program) -> Result<Explanation> {
        program::verify(program)?;
        let dissolved = tw_plan::dissolve_selections(program, self.plan_options())?;
        let program = dissolved.as_ref().unwrap_or(program);
        let mut walk = walk::Walk::new(self, program);
        walk.run()?;
        Ok(Explanation {
            sections: walk.sections,
            source: None,
            threads: self.threads(),
            speeds: Speeds::default(),
            measured: None,
            on: None,
            repeats: walk.repeats,
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
                    && let Entry::Vacant(place) = lines.entry((file.to_string(), *number))
                    && let Some(text) = line(file, *number)
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
            (Place::Host { file, line, .. }, _) => self.host_lines.get(&(file.clone(), *line)).map(String::as_str),
            _ => None,
        }
    }

    /// Estimates times by these speeds.
    pub fn with_speeds(mut self, speeds: Speeds) -> Explanation {
        self.speeds = speeds;
        self
    }

    /// Shows measured times beside what was planned.
    pub fn with_measured(mut self, measured: Measured, totals: Totals) -> Explanation {
        self.measured = Some((measured, totals));
        self
    }

    /// The whole in a few numbers.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { has_loops: self.sections.iter().any(|s| s.depth > 0), ..Summary::default() };
        for section in &self.sections {
            let Some(plan) = section.plan() else {
                summary.has_later = true;
                continue;
            };
            summary.cost += plan.cost();
            summary.selects_all |= section.selects_all;
            summary.peak_bytes = summary.peak_bytes.max(plan.peak_bytes());
            summary.planning += plan.planning();
        }
        let inputs = self.inputs();
        summary.distinct_input_bytes = inputs.iter().fold(0, |sum, input| sum.saturating_add(input.bytes));
        if summary.distinct_input_bytes > 0 {
            summary.input_passes = summary.cost.input_bytes as f64 / summary.distinct_input_bytes as f64;
        }
        summary.seconds = self.speeds.seconds(&summary.cost, self.threads);
        summary
    }

    /// An error that names the smallest budget that works, if a section certainly needs more memory than this. Sections whose extents
    /// depend on data are judged when they run; where there are some, the error names the least that is needed.
    pub fn check_budget(&self, budget: u64) -> Result<()> {
        let certain = self.plans().filter(|(section, _)| !section.selects_all);
        let Some((_, plan)) = certain.max_by_key(|(_, plan)| plan.peak_bytes()) else { return Ok(()) };
        let needed = plan.peak_bytes();
        if needed <= budget {
            return Ok(());
        }
        let message = format!("the program needs {}, but the budget is {}", units::bytes(needed), units::bytes(budget));
        let statement = plan.peak.during.map(|statement| &plan.planned.plan.statements[statement].span);
        let is_all_known = self.sections.iter().all(|section| section.plan().is_some() && !section.selects_all);
        let help = match is_all_known {
            true => format!("the smallest budget that works is {needed} bytes; smaller tiles may need less"),
            false => format!("at least {needed} bytes are needed, and what depends on data may need more"),
        };
        let error = Error::resource(message).note(self.why_peak(plan)).help(help);
        Err(error.at(statement.unwrap_or(&Span::None)))
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
