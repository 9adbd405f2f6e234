//! Compiled functions, such as numba's `cfunc`, as block functions. They run without the GIL.
//!
//! This is the one file of the crate that may contain `unsafe` (a test of the repository lists it): it calls code at an address that Python supplies.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::block::ElementwiseFunction;
use tilewright::ir::program::{BlockFn, BlockFunction, BlockResult, FunctionRef, OperandMode, ResultMode};
use tilewright::{Array, ArrayView, DType, Error, Result};

use crate::apply::compute_extents;
use crate::dtypes::dtype;
use crate::errors::OrRaise;
use crate::line::at_callers_line;
use crate::tensor::Tensor;

/// A compiled function and the object that keeps its code in memory.
struct CompiledFunction {
    name: String,
    code: ElementwiseFunction,
    _owner: Py<PyAny>,
}

impl BlockFunction for CompiledFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let [result] = results else { return Err(Error::internal("a compiled function has one result")) };
        self.code.call(operands, result)
    }

    fn overwrites_results(&self) -> bool {
        true
    }

    fn is_lasting(&self) -> bool {
        false
    }
}

/// Applies the compiled function at an address to every element of tensors of one shape that are cut alike.
#[pyfunction]
pub(crate) fn compiled_function(
    py: Python<'_>,
    owner: Py<PyAny>,
    name: String,
    address: usize,
    operands: Vec<Bound<'_, Tensor>>,
    result: &str,
) -> PyResult<Tensor> {
    let tensors: Vec<&tilewright::Tensor> = operands.iter().map(|tensor| &tensor.get().0).collect();
    let Some(rank) = tensors.first().map(|tensor| tensor.ty().rank() as u32) else {
        return Err(PyValueError::new_err("a compiled function needs an operand"));
    };
    let result = dtype(result)?;
    let dtypes = tensors.iter().map(|tensor| tensor.dtype()).collect();
    let function = CompiledFunction { name, code: vouched_for(address, dtypes, result).or_raise()?, _owner: owner };
    let call = BlockFn {
        function: FunctionRef(Arc::new(function)),
        operands: vec![(0..rank).map(OperandMode::Grid).collect(); tensors.len()],
        results: vec![BlockResult { dtype: result, modes: (0..rank).map(ResultMode::Grid).collect() }],
    };
    compute_extents(py, &tensors)?;
    at_callers_line(py, || {
        let made = tilewright::map_blocks(call, &tensors)?.pop();
        made.ok_or_else(|| Error::internal("a compiled function has one result"))
    })
    .map(Tensor)
}

/// The code at an address that came from Python.
///
/// Only the module `_core` calls this, and only with what Python passed. So the promise is the one that every use of `ctypes` makes: whoever calls from
/// Python an address that is no such function breaks the process without any help of ours. Rejected: a constructor that is safe because it takes
/// the Python object instead of the number. The object is asked for its address and signature by names, so any class can lie in both.
#[allow(unsafe_code, reason = "an address of Python becomes code")]
fn vouched_for(address: usize, operands: Vec<DType>, result: DType) -> Result<ElementwiseFunction> {
    // SAFETY: `python/tilewright/_compiled.py` passes the `address` of a function compiled for Python, after comparing its ctypes signature with the
    // element types. A compiler such as numba's keeps the rest of the promise; `CompiledFunction` holds the owner of the code as long as it
    // can be called. No Rust code chooses an address.
    unsafe { ElementwiseFunction::new(address, operands, result) }
}
