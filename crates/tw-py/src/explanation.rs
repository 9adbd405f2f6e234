//! What a computation will cost.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::explain::{Level, read_machine};
use tilewright::ir::Error;
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
        let file = self.machine.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        let machine = read_machine(file, number(self.nodes, "nodes")?, number(self.workers, "workers")?)?;
        let scheduler = self.scheduler.as_deref().filter(|&name| name != "auto");
        let explanation = explanation.placed_on(session, &machine, scheduler, None)?;
        Ok(if self.pictures { explanation.with_pictures() } else { explanation })
    }
}

fn number(n: Option<i64>, what: &str) -> Result<Option<u32>> {
    let number = n.map(u32::try_from).transpose();
    number.map_err(|_| Error::plan(format!("{} is not a number of {what}", n.unwrap_or_default())))
}
