//! The one place where errors become exceptions.

use pyo3::exceptions::{
    PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use tilewright::Error;
use tilewright::ir::Span;
use tilewright::ir::error::{About, Blame};

use crate::function::Thrown;

/// The exception that Python users expect for an error.
///
/// What a function of the user raised comes back as the same object, with a note of where in the arrays that was.
pub(crate) fn exception(error: Error) -> PyErr {
    if let Some(thrown) = error.cause::<Thrown>() {
        return thrown.raised_at(error.span());
    }
    let mut text = error.message().to_string();
    for note in error.notes() {
        text.push_str("\n  note: ");
        text.push_str(note);
    }
    if let Some(help) = error.help_text() {
        text.push_str("\n  help: ");
        text.push_str(help);
    }
    if matches!(error.span(), Span::Host { .. }) {
        text.push_str(&format!("\n  at {}", error.span()));
    }
    match (error.blame(), error.about()) {
        (Blame::Source | Blame::Plan | Blame::Data, About::Types) => PyTypeError::new_err(text),
        (Blame::Source | Blame::Plan | Blame::Data, About::Indices) => PyIndexError::new_err(text),
        (Blame::Source | Blame::Plan | Blame::Data, About::State) => PyRuntimeError::new_err(text),
        (Blame::Source | Blame::Plan | Blame::Data, About::Anything) => PyValueError::new_err(text),
        (Blame::Resource, _) => PyMemoryError::new_err(text),
        (Blame::Io, _) => PyOSError::new_err(text),
        (Blame::Cancelled, _) => PyKeyboardInterrupt::new_err(text),
        (Blame::Internal, _) => PyRuntimeError::new_err(text),
    }
}

/// Results with errors as exceptions.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for tilewright::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}
