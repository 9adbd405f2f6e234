//! The line of the user's code that called the package.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tilewright::Result;
use tilewright::ir::span::{FileId, HostCall, Name, Span};

use crate::errors::OrRaise;

/// Frames of this package are skipped.
const PACKAGE: &str = "tilewright";

/// Where calls of NumPy's functions become calls of ours.
const NUMPY_TABLE: &str = "tilewright._numpy";

/// More frames of our own than any call has.
const DEEPEST: usize = 16;

/// Runs code with tensors made on the line that called the package; nodes and errors name it.
pub(crate) fn at_callers_line<T>(py: Python<'_>, f: impl FnOnce() -> Result<T>) -> PyResult<T> {
    let span = callers_line(py);
    tilewright::at_span(span, f).map_err(|error| error.at(&span)).or_raise()
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
    let mut called = None;
    for _ in 0..DEEPEST {
        let module = frame.getattr("f_globals")?.get_item("__name__")?;
        let module: &str = module.extract()?;
        let ours = module.strip_prefix(PACKAGE).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !ours {
            break;
        }
        // NumPy's functions come through its protocols, whose names would tell nothing.
        let code = frame.getattr("f_code")?;
        let name = code.getattr("co_name")?;
        if module != NUMPY_TABLE && !name.extract::<&str>()?.starts_with("__array_") {
            called = Some(name);
        }
        frame = frame.getattr("f_back")?;
    }
    let file = frame.getattr("f_code")?.getattr("co_filename")?;
    let file = FileId::named(file.extract()?);
    let call = match called {
        Some(name) => {
            let operation = operation(name.extract()?);
            // The instruction that calls: it tells the calls of a line apart, in their order, and is the same in every round of a loop.
            Some(HostCall { position: frame.getattr("f_lasti")?.extract()?, operation: Name::new(operation) })
        }
        None => None,
    };
    Ok(Span::Host { file, line: frame.getattr("f_lineno")?.extract()?, call })
}

/// What the user wrote to call a function of this name.
fn operation(function: &str) -> &str {
    let Some(name) = function.strip_prefix("__").and_then(|name| name.strip_suffix("__")) else { return function };
    // `x + y`, `y + x` with a number in front and `x += y` are the same operation.
    let known = |name: &str| OPERATORS.iter().find(|(method, _)| *method == name).map(|(_, operator)| *operator);
    let inner = || name.strip_prefix('r').or(name.strip_prefix('i')).and_then(known);
    known(name).or_else(inner).unwrap_or(function)
}

/// Methods behind the operators of Python.
const OPERATORS: [(&str, &str); 24] = [
    ("add", "+"),
    ("sub", "-"),
    ("mul", "*"),
    ("truediv", "/"),
    ("floordiv", "//"),
    ("mod", "%"),
    ("pow", "**"),
    ("matmul", "@"),
    ("and", "&"),
    ("or", "|"),
    ("xor", "^"),
    ("lshift", "<<"),
    ("rshift", ">>"),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("eq", "=="),
    ("ne", "!="),
    ("neg", "-"),
    ("invert", "~"),
    ("abs", "abs"),
    ("getitem", "[]"),
    ("setitem", "[] ="),
];
