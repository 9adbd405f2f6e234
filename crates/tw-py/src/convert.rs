//! Memory across the border.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::DType;
use tilewright::block::{array_from_bytes, bytes_of_array};

use crate::dtypes::dtype;
use crate::errors::OrRaise;
use crate::line::at_callers_line;
use crate::session::current;
use crate::tensor::Tensor;

/// A tensor with a copy of the bytes of a contiguous array.
#[pyfunction]
pub(crate) fn from_bytes(bytes: PyBuffer<u8>, dtype_name: &str, shape: Vec<u64>, py: Python<'_>) -> PyResult<Tensor> {
    let dtype = dtype(dtype_name)?;
    let expected = tilewright::ir::shape::n_bytes(&shape, dtype.size()).or_raise()?;
    if bytes.len_bytes() as u64 != expected {
        return Err(PyValueError::new_err(format!("{} bytes for an array of {expected}", bytes.len_bytes())));
    }
    let mut copied = Ok(());
    let array = if dtype == DType::Bool {
        // The bytes of truth values come in pieces, which Python copies only as a whole.
        let mut all = vec![0; bytes.len_bytes()];
        copied = bytes.copy_to_slice(py, &mut all);
        let mut rest = &all[..];
        array_from_bytes(&shape, dtype, |piece| {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
        })
    } else {
        array_from_bytes(&shape, dtype, |all| copied = bytes.copy_to_slice(py, all))
    };
    copied?;
    at_callers_line(py, || Ok(current().array(array?))).map(Tensor)
}

/// Computes a tensor and writes its elements into the bytes of a contiguous array.
#[pyfunction]
pub(crate) fn into_bytes(py: Python<'_>, tensor: &Tensor, bytes: PyBuffer<u8>) -> PyResult<()> {
    let array = tensor.computed(py, |stored| stored.to_array())?;
    let mut written = Ok(());
    if array.dtype() == DType::Bool {
        let mut all = Vec::with_capacity(array.len());
        bytes_of_array(&array, |piece| all.extend_from_slice(piece));
        written = bytes.copy_from_slice(py, &all);
    } else {
        bytes_of_array(&array, |all| written = bytes.copy_from_slice(py, all));
    }
    written
}

/// A tensor over an `.npy` file, of which only the header is read now.
#[pyfunction]
pub(crate) fn open_npy(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Tensor> {
    at_callers_line(py, || current().open_npy(path)).map(Tensor)
}
