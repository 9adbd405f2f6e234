//! The one place that turns errors into exceptions.

use pyo3::exceptions::{
    PyIndexError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;
use tilewright::diagnose::render;
use tilewright::ir::Span;
use tilewright::ir::error::{About, Blame};
use tilewright::ir::span::FileId;
use tilewright::{DType, Error};

use crate::dtypes::numpy_name;
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
    if let Some(help) = help(&error) {
        text.push_str("\n  help: ");
        text.push_str(&help);
    }
    if matches!(error.about(), About::Types | About::Overflow) {
        text = in_numpys_words(&text);
    }
    if matches!(error.span(), Span::Host { .. }) {
        text.push_str(&format!("\n  at {}", error.span()));
    }
    class(&error)(text)
}

/// A message with element types under NumPy's names. What stands between backticks is code, and stays.
fn in_numpys_words(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    for (k, part) in text.split('`').enumerate() {
        if k > 0 {
            translated.push('`');
        }
        for word in part.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let known = bare.parse().ok().filter(|dtype: &DType| k % 2 == 0 && dtype.name() == bare);
            translated.push_str(known.map_or(bare, |dtype| numpy_name(dtype)));
            translated.push_str(&word[bare.len()..]);
        }
    }
    translated
}

/// What to do about an error, as one writes it in Python.
fn help(error: &Error) -> Option<String> {
    match (error.blame(), error.about(), error.help_text()) {
        (_, About::Overflow, _) => Some("convert the array first: x.astype(..)".to_string()),
        (Blame::Resource, _, Some(help)) => {
            Some(format!("{help}; see tw.Session(memory=..), x.rechunk(..) and x.to_npy(..)"))
        }
        (_, _, help) => help.map(str::to_string),
    }
}

/// The exception for errors of program text, drawn with the lines they are about. What is wrong with the text itself is a `ValueError`.
pub(crate) fn exception_in_text(errors: Vec<Error>, source: &str, file: FileId) -> PyErr {
    let drawn: Vec<String> = errors.iter().map(|error| render(error, source, file.name())).collect();
    let text = drawn.join("\n\n");
    match errors.first() {
        Some(error) if !matches!(error.blame(), Blame::Source | Blame::Plan) => class(error)(text),
        _ => PyValueError::new_err(text),
    }
}

/// The class of exceptions for an error.
fn class(error: &Error) -> fn(String) -> PyErr {
    match (error.blame(), error.about()) {
        (Blame::Source | Blame::Plan | Blame::Data, About::Types) => PyTypeError::new_err,
        (Blame::Source | Blame::Plan | Blame::Data, About::Indices) => PyIndexError::new_err,
        (Blame::Source | Blame::Plan | Blame::Data, About::Overflow) => PyOverflowError::new_err,
        (Blame::Source | Blame::Plan | Blame::Data, About::State) => PyRuntimeError::new_err,
        (Blame::Source | Blame::Plan | Blame::Data, About::Matrices) => matrix_exception,
        (Blame::Source | Blame::Plan | Blame::Data, About::Anything) => PyValueError::new_err,
        (Blame::Resource, _) => PyMemoryError::new_err,
        (Blame::Io, _) => PyOSError::new_err,
        (Blame::Cancelled, _) => PyKeyboardInterrupt::new_err,
        (Blame::Internal, _) => PyRuntimeError::new_err,
    }
}

/// NumPy's own exception for matrices, which is a ValueError.
fn matrix_exception(text: String) -> PyErr {
    Python::attach(|py| match py.import("numpy.linalg").and_then(|module| module.getattr("LinAlgError")) {
        Ok(class) => class.call1((text,)).map_or_else(|error| error, PyErr::from_value),
        Err(error) => error,
    })
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
