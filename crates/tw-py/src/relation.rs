//! Relations: conversion of keys and kernels.

use std::cell::Cell;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tilewright::build::Reduction;
use tilewright::ir::program::FunctionRef;
use tilewright::{DType, Key, RelationKernel};

use crate::apply::compute_extents;
use crate::dtypes::{dtype, numpy_name, scalar};
use crate::errors::OrRaise;
use crate::function::kernel_function;
use crate::line::at_callers_line;
use crate::tensor::Tensor;

/// Blocks of one bound and type under keys.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Relation(tilewright::Relation);

/// The name of a built-in kernel, or a function with its name and the bound and type of what it gives.
#[derive(FromPyObject)]
pub(crate) enum GivenKernel {
    Name(String),
    Function(Py<PyAny>, String, Vec<u64>, String),
}

impl GivenKernel {
    /// The kernel for operands of some types.
    fn of(self, operands: &[DType]) -> PyResult<RelationKernel> {
        match self {
            GivenKernel::Name(name) => Ok(RelationKernel::from(name.as_str())),
            GivenKernel::Function(call, name, bound, gives) => {
                let gives = dtype(&gives)?;
                let function = kernel_function(call, name, operands.to_vec(), gives);
                Ok(RelationKernel::block_function(FunctionRef(function)).giving(&bound, gives))
            }
        }
    }
}

/// The tiles of an array under their coordinates.
#[pyfunction]
pub(crate) fn relation_of(py: Python<'_>, array: &Tensor, tiles: Vec<u64>) -> PyResult<Relation> {
    compute_extents(py, &[&array.0])?;
    at_callers_line(py, || tilewright::Relation::of(&array.0, &tiles)).map(Relation)
}

#[pymethods]
impl Relation {
    #[getter]
    fn frontier<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.frontier())
    }
    #[getter]
    fn bound<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.bound())
    }
    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }
    #[getter]
    fn arity(&self) -> usize {
        self.0.arity()
    }
    #[getter]
    fn is_continuous(&self) -> bool {
        self.0.is_continuous()
    }
    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        numpy_name(self.0.dtype())
    }
    /// The tensor that holds the blocks.
    #[getter]
    fn tensor(&self) -> Tensor {
        Tensor(self.0.tensor().clone())
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let keys = at_callers_line(py, || self.0.keys())?;
        keys.into_iter().map(|key| PyTuple::new(py, key)).collect()
    }

    fn contains(&self, key: Vec<u64>) -> bool {
        self.0.contains(&key)
    }

    fn block(&self, py: Python<'_>, key: Vec<u64>) -> PyResult<Tensor> {
        at_callers_line(py, || self.0.block(&key)).map(Tensor)
    }

    fn join(
        &self,
        py: Python<'_>,
        other: &Relation,
        left: Vec<usize>,
        right: Vec<usize>,
        kernel: GivenKernel,
    ) -> PyResult<Relation> {
        let kernel = kernel.of(&[self.0.dtype(), other.0.dtype()])?;
        at_callers_line(py, || self.0.join(&other.0, &left, &right, kernel)).map(Relation)
    }

    fn aggregate(&self, py: Python<'_>, by: Vec<usize>, kernel: GivenKernel) -> PyResult<Relation> {
        let kernel = kernel.of(&[self.0.dtype(); 2])?;
        at_callers_line(py, || self.0.aggregate(&by, kernel)).map(Relation)
    }

    /// A kernel of one block: along axes if it aggregates, with a number if it takes two operands.
    #[pyo3(signature = (kernel, axes=None, number=None))]
    fn transform(
        &self,
        py: Python<'_>,
        kernel: GivenKernel,
        axes: Option<Vec<usize>>,
        number: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Relation> {
        let kernel = match (&kernel, axes, number) {
            (GivenKernel::Name(name), Some(axes), None) => {
                let kind = Reduction::named(name);
                let kind = kind.ok_or_else(|| PyValueError::new_err(format!("transform by `{name}` has no axis")))?;
                RelationKernel::reduce(kind, &axes)
            }
            (GivenKernel::Name(name), None, Some(number)) => {
                let kernel = RelationKernel::from(name.as_str());
                kernel.with_number(scalar(number)?).or_raise()?
            }
            (_, None, None) => kernel.of(&[self.0.dtype()])?,
            _ => return Err(PyTypeError::new_err("transform by a kernel with an axis and a number")),
        };
        at_callers_line(py, || self.0.transform(kernel)).map(Relation)
    }

    fn cast(&self, py: Python<'_>, to: &str) -> PyResult<Relation> {
        let to = dtype(to)?;
        at_callers_line(py, || self.0.transform(RelationKernel::cast(to))).map(Relation)
    }

    /// New keys, in the order of the old ones.
    fn rekey(&self, py: Python<'_>, keys: Vec<Key>) -> PyResult<Relation> {
        let next = Cell::new(0);
        let new_key = |_: &[u64]| keys.get(next.replace(next.get() + 1)).cloned().unwrap_or_default();
        at_callers_line(py, || self.0.rekey(new_key)).map(Relation)
    }

    /// Which keys are kept, in their order.
    fn filter(&self, py: Python<'_>, keeps: Vec<bool>) -> PyResult<Relation> {
        let next = Cell::new(0);
        let keep = |_: &[u64]| keeps.get(next.replace(next.get() + 1)).copied().unwrap_or(false);
        at_callers_line(py, || self.0.filter(keep)).map(Relation)
    }

    fn tile(&self, py: Python<'_>, axis: usize, tile: u64) -> PyResult<Relation> {
        at_callers_line(py, || self.0.tile(axis, tile)).map(Relation)
    }

    fn concat(&self, py: Python<'_>, component: usize, axis: usize) -> PyResult<Relation> {
        at_callers_line(py, || self.0.concat(component, axis)).map(Relation)
    }

    #[pyo3(signature = (axes=None))]
    fn to_array(&self, py: Python<'_>, axes: Option<Vec<usize>>) -> PyResult<Tensor> {
        at_callers_line(py, || self.0.to_array(axes.as_deref())).map(Tensor)
    }
}
