//! Programs of the language.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};
use tilewright::BoundProgram;
use tilewright::ir::span::{FileId, Span};
use tilewright::lang::ParamValue;

use crate::errors::exception_in_text;
use crate::interrupt;
use crate::line::callers_line;
use crate::session::current;
use crate::tensor::Tensor;

/// Runs a program with tensors as inputs and numbers as parameters; gives its outputs by name.
#[pyfunction]
pub(crate) fn program(
    py: Python<'_>,
    text: &str,
    tensors: Vec<(String, Bound<'_, Tensor>)>,
    numbers: Vec<(String, Bound<'_, PyAny>)>,
) -> PyResult<Vec<(String, Tensor)>> {
    let session = tensors.first().map_or_else(current, |(_, tensor)| tensor.get().0.session().clone());
    let sets = numbers.iter().map(|(name, value)| Ok((name.clone(), parameter(value)?))).collect::<PyResult<_>>()?;
    // A process has many texts: errors name the line that handed this one over.
    let file = match callers_line(py) {
        Span::Host { file, line, .. } => FileId::named(&format!("<program at {file}:{line}>")),
        _ => FileId::named("<program>"),
    };
    let mut program = BoundProgram::read_named(file, text, &sets, session.functions())
        .map_err(|errors| exception_in_text(errors, text, file))?;
    let (names, tensors): (Vec<String>, Vec<tilewright::Tensor>) =
        tensors.into_iter().map(|(name, tensor)| (name, tensor.get().0.clone())).unzip();
    let (inner, source) = (session.clone(), text.to_string());
    let outputs = interrupt::run(py, &session, true, None, move || {
        let handles = tilewright::compute_all(&tensors.iter().collect::<Vec<_>>())?;
        for (name, handle) in names.iter().zip(handles) {
            program.bind(name, handle)?;
        }
        let results = match inner.run(&program.unit.program, &program.inputs) {
            Ok(results) => results,
            Err(error) => return Ok(Err((error, source))),
        };
        let kept = |name: &String| results.get(name).map(|handle| (name.clone(), Tensor(inner.kept(handle.clone()))));
        Ok(Ok(program.unit.program.outputs.iter().filter_map(kept).collect()))
    })?;
    outputs.map_err(|(error, source)| exception_in_text(vec![error], &source, file))
}

fn parameter(value: &Bound<'_, PyAny>) -> PyResult<ParamValue> {
    if value.is_instance_of::<PyBool>() {
        return Ok(ParamValue::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(ParamValue::Int(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(ParamValue::Float(value.extract()?));
    }
    Err(PyValueError::new_err("a parameter is an int, a float or a bool"))
}
