//! Conversion of element types and numbers.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt};
use tilewright::build::Literal;
use tilewright::ir::dtype::C128;
use tilewright::{DType, Scalar};

/// The type of a name, NumPy's or ours.
pub(crate) fn dtype(name: &str) -> PyResult<DType> {
    name.parse().map_err(|()| PyTypeError::new_err(format!("tilewright has no element type {name}")))
}

/// NumPy's name of a type.
pub(crate) fn numpy_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::C64 => "complex64",
        DType::C128 => "complex128",
        DType::DateTime(_) | DType::TimeDelta(_) => dtype.name(),
    }
}

/// A number of Python.
pub(crate) fn literal(value: &Bound<'_, PyAny>) -> PyResult<Literal> {
    match value.cast::<PyInt>() {
        Ok(whole) if whole.extract::<i64>().is_err() && whole.extract::<u64>().is_err() => {
            // An integer may be too large even for a double.
            let beyond = if whole.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY };
            Ok(Literal::Huge(whole.extract::<f64>().unwrap_or(beyond)))
        }
        _ => scalar(value).map(Literal::Number),
    }
}

/// A number of Python that an element type holds.
pub(crate) fn scalar(value: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    // A bool is an int to Python, so it is asked first.
    if value.is_instance_of::<PyBool>() {
        return Ok(Scalar::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        let too_large = |_| PyOverflowError::new_err(format!("the integer {value} does not fit into 64 bits"));
        return match value.extract::<i64>() {
            Ok(value) => Ok(Scalar::I64(value)),
            Err(_) => value.extract::<u64>().map(Scalar::U64).map_err(too_large),
        };
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Scalar::F64(value.extract()?));
    }
    if let Ok(value) = value.cast::<PyComplex>() {
        return Ok(Scalar::C128(C128::new(value.getattr("real")?.extract()?, value.getattr("imag")?.extract()?)));
    }
    Err(PyTypeError::new_err(format!("a tensor or a number is expected, not {}", value.get_type().name()?)))
}

/// A number as a Python object.
pub(crate) fn to_python(py: Python<'_>, value: Scalar) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        Scalar::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Scalar::C64(value) => PyComplex::from_doubles(py, value.re as f64, value.im as f64).into_any(),
        Scalar::C128(value) => PyComplex::from_doubles(py, value.re, value.im).into_any(),
        Scalar::U64(value) => value.into_pyobject(py)?.into_any(),
        value if value.dtype().is_integer() || value.dtype().is_time() => value.as_i64().into_pyobject(py)?.into_any(),
        value => PyFloat::new(py, value.as_f64()).into_any(),
    })
}
