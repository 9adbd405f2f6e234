//! The line of the user's code that called us.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tilewright::Result;
use tilewright::ir::Span;

use crate::errors::OrRaise;

/// Frames of this package are skipped.
const PACKAGE: &str = "tilewright";

/// More frames of our own than any call has.
const DEEPEST: usize = 16;

/// Runs code with tensors made on the line that called the package; nodes and errors name it.
pub(crate) fn at_callers_line<T>(py: Python<'_>, f: impl FnOnce() -> Result<T>) -> PyResult<T> {
    let span = callers_line(py);
    tilewright::at_span(span.clone(), f).map_err(|error| error.at(&span)).or_raise()
}

/// The line that called the package.
pub(crate) fn callers_line(py: Python<'_>) -> Span {
    // Without a frame (an embedded interpreter, say) nodes have no line, which is no reason to fail.
    line_of_frame(py).unwrap_or(Span::None)
}

fn line_of_frame(py: Python<'_>) -> PyResult<Span> {
    static GETFRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let getframe = GETFRAME.get_or_try_init(py, || py.import("sys")?.getattr("_getframe").map(Bound::unbind))?;
    let mut frame = getframe.bind(py).call0()?;
    for _ in 0..DEEPEST {
        let name = frame.getattr("f_globals")?.get_item("__name__")?;
        let name: &str = name.extract()?;
        let ours = name.strip_prefix(PACKAGE).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !ours {
            break;
        }
        frame = frame.getattr("f_back")?;
    }
    let file: String = frame.getattr("f_code")?.getattr("co_filename")?.extract()?;
    Ok(Span::Host { file: file.into(), line: frame.getattr("f_lineno")?.extract()? })
}
