//! Memory across the border.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::block::{array_from_bytes, bytes_of_array};
use tilewright::{Array, DType};

use crate::dtypes::dtype;
use crate::errors::OrRaise;
use crate::line::at_callers_line;
use crate::session::current;
use crate::tensor::Tensor;

/// A tensor with a copy of the bytes of a contiguous array.
#[pyfunction]
pub(crate) fn from_bytes(bytes: PyBuffer<u8>, dtype_name: &str, shape: Vec<u64>, py: Python<'_>) -> PyResult<Tensor> {
    let array = copy_in(py, &bytes, dtype(dtype_name)?, &shape)?;
    at_callers_line(py, || Ok(current().array(array))).map(Tensor)
}

/// An array with a copy of the bytes of a contiguous one.
pub(crate) fn copy_in(py: Python<'_>, bytes: &PyBuffer<u8>, dtype: DType, shape: &[u64]) -> PyResult<Array> {
    let expected = tilewright::ir::shape::n_bytes(shape, dtype.size()).or_raise()?;
    if bytes.len_bytes() as u64 != expected {
        return Err(PyValueError::new_err(format!("{} bytes for an array of {expected}", bytes.len_bytes())));
    }
    let mut copied = Ok(());
    let array = if dtype == DType::Bool {
        // The bytes of truth values come in pieces, which Python copies only as a whole.
        let mut all = vec![0; bytes.len_bytes()];
        copied = bytes.copy_to_slice(py, &mut all);
        let mut rest = &all[..];
        array_from_bytes(shape, dtype, |piece| {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
        })
    } else {
        array_from_bytes(shape, dtype, |all| copied = bytes.copy_to_slice(py, all))
    };
    copied?;
    array.or_raise()
}

/// Computes a tensor and writes its elements into the bytes of a contiguous array.
#[pyfunction]
pub(crate) fn into_bytes(py: Python<'_>, tensor: &Tensor, bytes: PyBuffer<u8>) -> PyResult<()> {
    let array = tensor.computed(py, |stored| stored.to_array())?;
    copy_out(py, &array, &bytes)
}

/// Writes the elements of an array into the bytes of a contiguous one.
pub(crate) fn copy_out(py: Python<'_>, array: &Array, bytes: &PyBuffer<u8>) -> PyResult<()> {
    let mut written = Ok(());
    if array.dtype() == DType::Bool {
        let mut all = Vec::with_capacity(array.len());
        bytes_of_array(array, |piece| all.extend_from_slice(piece));
        written = bytes.copy_from_slice(py, &all);
    } else {
        bytes_of_array(array, |all| written = bytes.copy_from_slice(py, all));
    }
    written
}

/// A tensor over an `.npy` file, of which only the header is read now.
#[pyfunction]
pub(crate) fn open_npy(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Tensor> {
    at_callers_line(py, || current().open_npy(path)).map(Tensor)
}
