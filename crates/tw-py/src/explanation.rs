//! What a computation will cost.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::explain::Level;

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
}
