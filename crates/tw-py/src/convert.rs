//! Conversion of memory between NumPy and Rust.

use std::sync::{Arc, Mutex, PoisonError};

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use tilewright::block::{Block, Meter};
use tilewright::ir::{BoxRegion, with_buffer};
use tilewright::{Array, Buffer, DType, at_span};

use crate::dtypes::{dtype, numpy_name};
use crate::errors::OrRaise;
use crate::interrupt;
use crate::line::{at_callers_line, callers_line};
use crate::session::current;
use crate::tensor::{Tensor, arrays, tensors_of};

/// A tensor with a copy of the elements of a contiguous NumPy array in the machine's order of bytes.
#[pyfunction]
pub(crate) fn from_numpy(py: Python<'_>, source: &Bound<'_, PyAny>, dtype_name: &str) -> PyResult<Tensor> {
    let array = array_of(source, dtype_name)?;
    at_callers_line(py, || Ok(current().array(array))).map(Tensor)
}

/// A tensor whose elements only one rank has. The others give nothing.
#[pyfunction]
#[pyo3(signature = (rank, source=None, dtype_name=None))]
pub(crate) fn from_rank(
    py: Python<'_>,
    rank: u32,
    source: Option<&Bound<'_, PyAny>>,
    dtype_name: Option<&str>,
) -> PyResult<Tensor> {
    let array = match (source, dtype_name) {
        (Some(source), Some(name)) => Some(array_of(source, name)?),
        _ => None,
    };
    let (session, span) = (current(), callers_line(py));
    let token = session.clone();
    interrupt::run(py, &token, true, None, move || at_span(span, || session.array_of_rank(rank, array))).map(Tensor)
}

/// A copy of the elements of a NumPy array.
pub(crate) fn array_of(source: &Bound<'_, PyAny>, dtype_name: &str) -> PyResult<Array> {
    let dtype = dtype(dtype_name)?;
    let shape: Vec<u64> = source.getattr("shape")?.extract()?;
    let block = Block::for_output(dtype.storage(), BoxRegion::whole(&shape), None);
    let mut array = block.and_then(Block::into_array).or_raise()?;
    copy_from_numpy(source, &mut array)?;
    array.with_dtype(dtype).or_raise()
}

/// Computes tensors in one plan and gives the elements of each as a NumPy array of its own.
#[pyfunction]
#[pyo3(signature = (tensors, report=None, rank=None))]
pub(crate) fn to_numpy<'py>(
    py: Python<'py>,
    tensors: &Bound<'py, PyList>,
    report: Option<&Bound<'py, PyAny>>,
    rank: Option<u32>,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let tensors = tensors_of(tensors)?;
    let Some(session) = tensors.first().map(|tensor| tensor.session().clone()) else { return Ok(Vec::new()) };
    let given = |array: Array| {
        let dtype = array.dtype();
        if array.len() as u64 * dtype.size() < WORTH_RECLAIMING {
            return given_to_numpy(py, array, dtype);
        }
        lent_to_numpy(py, array, session.meter().clone())
    };
    arrays(py, tensors, report, rank)?.into_iter().map(|array| array.map(given).transpose()).collect()
}

/// Bytes of an array from which on its storage is worth having again: new memory is zeroed, by the allocator or page by page, which takes as long as many kernels.
const WORTH_RECLAIMING: u64 = 512 << 10;

/// The elements that a NumPy array shows. They go back to the engine when it dies, for the next result.
#[pyclass(frozen, module = "tilewright._core")]
struct Elements {
    /// Not read here: NumPy reads and writes them.
    array: Mutex<Option<Array>>,
    meter: Arc<Meter>,
    #[pyo3(get, name = "__array_interface__")]
    interface: Py<PyDict>,
}

impl Drop for Elements {
    fn drop(&mut self) {
        if let Some(array) = self.array.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            self.meter.reclaim(array);
        }
    }
}

/// A NumPy array that takes over the elements of an array without other owners.
fn lent_to_numpy(py: Python<'_>, mut array: Array, meter: Arc<Meter>) -> PyResult<Bound<'_, PyAny>> {
    let dtype = array.dtype();
    if dtype == DType::BF16 {
        return Err(PyTypeError::new_err("NumPy has no bfloat16"));
    }
    let numpy = py.import("numpy")?;
    let interface = PyDict::new(py);
    let address = with_buffer!(array.data_mut(), values => values.as_mut_ptr().expose_provenance());
    interface.set_item("shape", PyTuple::new(py, array.shape())?)?;
    interface.set_item("typestr", numpy.getattr("dtype")?.call1((numpy_name(dtype),))?.getattr("str")?)?;
    interface.set_item("data", (address, false))?;
    interface.set_item("version", 3)?;
    let elements = Elements { array: Mutex::new(Some(array)), meter, interface: interface.unbind() };
    numpy.call_method1("asarray", (Bound::new(py, elements)?,))
}

/// A NumPy array that owns the elements of an array; nothing is copied. `dtype` may be a time that the engine took for integers.
pub(crate) fn given_to_numpy(py: Python<'_>, array: Array, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    if dtype == DType::BF16 {
        return Err(PyTypeError::new_err("NumPy has no bfloat16"));
    }
    let shape = PyTuple::new(py, array.shape())?;
    let flat = with_buffer!(array.into_data(), values => PyArray1::from_vec(py, values).into_any());
    let flat = if dtype.is_time() { flat.call_method1("view", (numpy_name(dtype),))? } else { flat };
    flat.call_method1("reshape", (shape,))
}

/// Copies a contiguous NumPy array of the right type and shape, without Python's lock.
pub(crate) fn copy_from_numpy(source: &Bound<'_, PyAny>, target: &mut Array) -> PyResult<()> {
    let py = source.py();
    let mut flat = source.call_method1("reshape", (-1,))?;
    let expected = target.len();
    if flat.len()? != expected {
        return Err(PyValueError::new_err(format!("{} elements for {expected}", flat.len()?)));
    }
    match source.getattr("dtype")?.getattr("kind")?.extract()? {
        'M' | 'm' => flat = flat.call_method1("view", ("int64",))?,
        'b' => flat = flat.call_method1("view", ("uint8",))?,
        _ => {}
    }
    match target.data_mut() {
        // NumPy takes any byte but 0 for true; to Rust only 1 is.
        Buffer::Bool(values) => {
            let flat = flat.cast::<PyArray1<u8>>()?.try_readonly()?;
            let bytes = flat.as_slice()?;
            py.detach(|| values.iter_mut().zip(bytes).for_each(|(value, &byte)| *value = byte != 0));
        }
        data => with_buffer!(data, values => {
            let flat = flat.cast::<PyArray1<_>>()?.try_readonly()?;
            let elements = flat.as_slice()?;
            py.detach(|| values.copy_from_slice(elements));
        }),
    }
    Ok(())
}
