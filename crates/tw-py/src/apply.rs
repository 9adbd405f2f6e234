//! The common part of all operations: from arguments to a node of the graph.

use pyo3::prelude::*;
use tilewright::build::{Literal, TypedOperand};
use tilewright::ir::TensorType;
use tilewright::ir::program::Op;

use crate::dtypes::literal;
use crate::errors::OrRaise;
use crate::interrupt;
use crate::line::callers_line;
use crate::session::current;
use crate::tensor::{Tensor, takes_long};

/// A tensor or a number.
pub(crate) enum Argument<'py> {
    Tensor(Bound<'py, Tensor>),
    Number(Literal),
}

impl<'py> Argument<'py> {
    pub(crate) fn of(value: &Bound<'py, PyAny>) -> PyResult<Argument<'py>> {
        match value.cast::<Tensor>() {
            Ok(tensor) => Ok(Argument::Tensor(tensor.clone())),
            Err(_) => literal(value).map(Argument::Number),
        }
    }

    pub(crate) fn operand(&self) -> TypedOperand<'_> {
        match self {
            Argument::Tensor(tensor) => TypedOperand::Tensor(tensor.get().0.ty()),
            Argument::Number(value) => TypedOperand::Literal(*value),
        }
    }

    fn tensor(&self) -> Option<&tilewright::Tensor> {
        match self {
            Argument::Tensor(tensor) => Some(&tensor.get().0),
            Argument::Number(_) => None,
        }
    }
}

/// The tensors inside Python's.
pub(crate) fn inner<'a>(tensors: &'a [Bound<'_, Tensor>]) -> Vec<&'a tilewright::Tensor> {
    tensors.iter().map(|tensor| &tensor.get().0).collect()
}

/// Their types.
pub(crate) fn types<'a>(tensors: &[&'a tilewright::Tensor]) -> Vec<&'a TensorType> {
    tensors.iter().map(|tensor| tensor.ty()).collect()
}

/// Applies an operation to those arguments that are tensors.
pub(crate) fn apply_to(
    py: Python<'_>,
    arguments: &[&Argument<'_>],
    op: impl Fn() -> tilewright::Result<Op>,
) -> PyResult<Tensor> {
    let tensors: Vec<&tilewright::Tensor> = arguments.iter().filter_map(|argument| argument.tensor()).collect();
    apply(py, &tensors, op)
}

/// Applies an operation to tensors.
pub(crate) fn apply(
    py: Python<'_>,
    tensors: &[&tilewright::Tensor],
    op: impl Fn() -> tilewright::Result<Op>,
) -> PyResult<Tensor> {
    make(py, tensors, || {
        let session = tensors.first().map_or_else(current, |tensor| tensor.session().clone());
        tilewright::Tensor::apply(&session, op()?, tensors)
    })
    .map(Tensor)
}

/// Makes something out of tensors; nodes and errors name the line that called the package.
///
/// Where that cannot be done without extents that depend on data, those are computed and it is tried again; any other error is raised before
/// anything is computed. `make` must not compute anything itself: it runs under Python's lock.
pub(crate) fn make<T>(
    py: Python<'_>,
    tensors: &[&tilewright::Tensor],
    make: impl Fn() -> tilewright::Result<T>,
) -> PyResult<T> {
    let span = callers_line(py);
    loop {
        let error = match tilewright::at_span(span, &make) {
            Ok(made) => return Ok(made),
            Err(error) => error.at(&span),
        };
        let numbers = tilewright::numbers_needed(&error, tensors);
        let Some(session) = numbers.first().map(|number| number.session().clone()) else {
            return Err(error).or_raise();
        };
        let long = takes_long(&numbers.iter().collect::<Vec<_>>());
        interrupt::run(py, &session, long, None, move || {
            tilewright::compute_all(&numbers.iter().collect::<Vec<_>>()).map(drop)
        })?;
    }
}

/// Computes the extents of tensors that depend on data.
pub(crate) fn compute_extents(py: Python<'_>, tensors: &[&tilewright::Tensor]) -> PyResult<()> {
    let open: Vec<tilewright::Tensor> =
        tensors.iter().filter(|tensor| tensor.is_open()).map(|tensor| (*tensor).clone()).collect();
    let Some(first) = open.first() else { return Ok(()) };
    let session = first.session().clone();
    let long = takes_long(&open.iter().collect::<Vec<_>>());
    interrupt::run(py, &session, long, None, move || tilewright::settle_all(&open.iter().collect::<Vec<_>>()))
}
