//! Linear algebra and Fourier transforms by name.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::algorithms::{self, Compression, Routine, Transform};

use crate::apply::make;
use crate::tensor::Tensor;

/// Applies a routine to tensors.
#[pyfunction(name = "linalg")]
pub(crate) fn routine(py: Python<'_>, name: &str, tensors: Vec<PyRef<'_, Tensor>>) -> PyResult<Vec<Tensor>> {
    let routine = Routine::named(name).ok_or_else(|| PyValueError::new_err(format!("there is no routine {name}")))?;
    let tensors: Vec<&tilewright::Tensor> = tensors.iter().map(|tensor| &tensor.0).collect();
    let results = make(py, &tensors, || algorithms::apply(routine, &tensors))?;
    Ok(results.into_iter().map(Tensor).collect())
}

/// The largest singular values with their vectors, approximately.
#[pyfunction]
pub(crate) fn svd_compressed(
    py: Python<'_>,
    x: &Tensor,
    rank: u64,
    oversampling: u64,
    iterations: u32,
    seed: u64,
) -> PyResult<Vec<Tensor>> {
    let how = Compression { rank, oversampling, iterations, seed };
    let results = make(py, &[&x.0], || algorithms::svd_compressed(&x.0, how))?;
    Ok(results.into_iter().map(Tensor).collect())
}

/// A Fourier transform along an axis, of fibres of `n` elements.
#[pyfunction]
pub(crate) fn fourier(py: Python<'_>, kind: &str, x: &Tensor, axis: usize, n: u64) -> PyResult<Tensor> {
    let unknown = || PyValueError::new_err(format!("there is no transform {kind}"));
    let kind = Transform::named(kind).ok_or_else(unknown)?;
    make(py, &[&x.0], || algorithms::fourier(&x.0, kind, axis, n)).map(Tensor)
}

/// The elements at some ranks along an axis.
#[pyfunction]
pub(crate) fn select(py: Python<'_>, x: &Tensor, ranks: &Tensor, axis: usize) -> PyResult<Tensor> {
    make(py, &[&x.0, &ranks.0], || algorithms::select(&x.0, &ranks.0, axis)).map(Tensor)
}
