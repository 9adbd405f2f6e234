//! Explanations, differences of plans, and profiles.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::explain::{Level, TaskRun, profiled, read_distribution, read_machine};
use tilewright::ir::Error;
use tilewright::place::{Cluster, Machine, SchedulerName};
use tilewright::{Result, Session};

/// The plan of a computation, told at several levels.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Explanation(pub(crate) tilewright::explain::Explanation);

/// Levels by name.
const LEVELS: [(&str, Level); 9] = [
    ("line", Level::Line),
    ("table", Level::Table),
    ("tree", Level::Tree),
    ("verbose", Level::Verbose),
    ("kernel", Level::Kernel),
    ("html", Level::Html),
    ("svg", Level::Svg),
    ("dot", Level::Dot),
    ("json", Level::Json),
];

#[pymethods]
impl Explanation {
    /// One level as text.
    fn text(&self, level: &str) -> PyResult<String> {
        match LEVELS.iter().find(|(name, _)| *name == level) {
            Some(&(_, level)) => Ok(self.0.to_text(level)),
            None => {
                let known = LEVELS.map(|(name, _)| name).join(", ");
                Err(PyValueError::new_err(format!("there is no level {level}, only {known}")))
            }
        }
    }

    /// What changes from this plan to another.
    fn diff(&self, other: &Explanation) -> Difference {
        Difference(self.0.diff(&other.0))
    }
}

/// The lines of Python that an explanation names.
pub(crate) fn with_lines(
    py: Python<'_>,
    explanation: tilewright::explain::Explanation,
) -> tilewright::explain::Explanation {
    // The module that tracebacks use: it knows notebooks and modules in archives, too.
    let getline = py.import("linecache").and_then(|linecache| linecache.getattr("getline"));
    explanation.with_host_lines(|file, line| {
        let text: String = getline.as_ref().ok()?.call1((file, line)).ok()?.extract().ok()?;
        (!text.trim().is_empty()).then_some(text)
    })
}

/// Most tasks of a run that a profile draws and writes down one by one.
const MOST_TASKS: usize = 200_000;

/// A run beside its plan.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Profile {
    explanation: tilewright::explain::Explanation,
    tasks: Vec<TaskRun>,
    others: u64,
}

impl Profile {
    /// Plans a tensor and computes it, watched.
    pub(crate) fn of(tensor: &tilewright::Tensor) -> Result<Profile> {
        let session = tensor.session();
        let (program, inputs) = tensor.program()?;
        let explanation = session.explain(&program)?;
        let profile = Arc::new(tilewright::explain::Profile::with_tasks(MOST_TASKS));
        let (_, totals) = profiled(&profile, || session.run_with_report(&program, &inputs))?;
        let (tasks, others) = profile.tasks();
        Ok(Profile { explanation: explanation.with_measured(profile.measured(), totals), tasks, others })
    }

    /// The same with the lines of Python that it names.
    pub(crate) fn with_lines(self, py: Python<'_>) -> Profile {
        Profile { explanation: with_lines(py, self.explanation), ..self }
    }
}

#[pymethods]
impl Profile {
    /// For people.
    fn text(&self) -> String {
        self.explanation.profile_text()
    }

    /// The timeline as a drawing.
    fn svg(&self) -> String {
        self.explanation.timeline_svg(&self.tasks, self.others)
    }

    /// Plan and measured times for programs.
    fn json(&self) -> String {
        self.explanation.to_json().to_string()
    }

    /// The timeline for Chrome and Perfetto.
    fn trace(&self) -> String {
        self.explanation.chrome_trace(&self.tasks).to_string()
    }
}

/// How two plans differ.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Difference(tilewright::explain::Difference);

#[pymethods]
impl Difference {
    /// For people.
    fn text(&self) -> String {
        self.0.to_text()
    }

    /// As a part of a page.
    fn html(&self) -> String {
        self.0.to_html_part()
    }

    /// For programs.
    fn json(&self) -> String {
        self.0.to_json().to_string()
    }
}

/// Several workers to plan for, as the user describes them.
#[derive(FromPyObject)]
pub(crate) struct Target {
    #[pyo3(item)]
    distribution: Option<String>,
    #[pyo3(item)]
    nodes: Option<i64>,
    #[pyo3(item)]
    workers: Option<i64>,
    /// Name and text of a machine file.
    #[pyo3(item)]
    machine: Option<(String, String)>,
    #[pyo3(item)]
    scheduler: Option<String>,
    #[pyo3(item)]
    pictures: bool,
}

impl Target {
    /// Adds the plan for these workers to an explanation.
    pub(crate) fn plan(
        self,
        session: &Session,
        explanation: tilewright::explain::Explanation,
    ) -> Result<tilewright::explain::Explanation> {
        let pictures = self.pictures;
        let explanation = explanation.placed_on(session, &self.cluster(None)?)?;
        Ok(if pictures { explanation.with_pictures() } else { explanation })
    }

    /// The workers. Those of `usual`, if this says nothing about the machine.
    pub(crate) fn cluster(self, usual: Option<Machine>) -> Result<Cluster> {
        let file = self.machine.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        let says_nothing = self.machine.is_none() && self.nodes.is_none() && self.workers.is_none();
        let machine = match usual.filter(|_| says_nothing) {
            Some(machine) => machine,
            None => read_machine(file, number(self.nodes, "nodes")?, number(self.workers, "workers")?)?,
        };
        let scheduler = SchedulerName::named(self.scheduler.as_deref().filter(|&name| name != "auto"))?;
        let distribution = self.distribution.map(|text| read_distribution("distribution", &text)).transpose()?;
        // A distribution that is given is one to follow.
        let scheduler = match (&distribution, scheduler) {
            (Some(_), SchedulerName::Auto) => SchedulerName::Written,
            (_, scheduler) => scheduler,
        };
        Ok(Cluster { machine, scheduler, distribution: distribution.map(Arc::new) })
    }
}

fn number(n: Option<i64>, what: &str) -> Result<Option<u32>> {
    let number = n.map(u32::try_from).transpose();
    number.map_err(|_| Error::plan(format!("{} is not a number of {what}", n.unwrap_or_default())))
}
