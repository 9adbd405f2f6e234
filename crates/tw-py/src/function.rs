//! Python functions as block functions.
//!
//! The engine runs without the GIL. A function takes the GIL for its call, but not while blocks are copied. NumPy releases it inside its own loops, so functions made of
//! NumPy calls run in parallel. An exception of a function travels through the engine unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use tilewright::ir::Span;
use tilewright::ir::program::{BlockFn, BlockFunction, BlockResult, FunctionRef, OperandMode, ResultMode};
use tilewright::ir::workflow::BlockShape;
use tilewright::{Array, ArrayView, DType, Error, Result};

use crate::apply::compute_extents;
use crate::convert::{copy_from_numpy, given_to_numpy};
use crate::dtypes::{dtype, numpy_name};
use crate::line::at_callers_line;
use crate::tensor::Tensor;

/// What a function raised, and in which block.
pub(crate) struct Thrown {
    exception: PyErr,
    name: String,
    place: Option<String>,
}

impl Thrown {
    /// The exception itself, with a note about the block and the line that made the call.
    pub(crate) fn raised_at(&self, line: &Span) -> PyErr {
        Python::attach(|py| {
            let exception = self.exception.clone_ref(py);
            let mut note = match &self.place {
                None => format!("in `{}`", self.name),
                Some(place) => format!("in block {place} of `{}`", self.name),
            };
            if matches!(line, Span::Host { .. }) {
                note.push_str(&format!(", called at {line}"));
            }
            // Each request of the result raises the same exception.
            let notes = exception.value(py).getattr("__notes__");
            if !notes.and_then(|notes| notes.contains(&note)).unwrap_or(false) {
                // Without its note the exception is still the right one.
                let _ = exception.add_note(py, note);
            }
            exception
        })
    }
}

/// A Python object that is called with a place in the grid and NumPy arrays, and gives NumPy arrays.
struct PythonFunction {
    name: String,
    call: Py<PyAny>,
    /// Operands that only say how long the blocks of results are. They come first, and the function does not see them.
    n_carriers: usize,
    /// Element types of the operands that the function sees.
    operands: Vec<DType>,
    /// Element types of the results. Times reach the engine as integers, so it cannot tell.
    results: Vec<DType>,
    /// True if it slices something outside, such as a file.
    reads_input: bool,
    /// The grid number of each axis of the first result, where it has one; nothing if blocks have no place.
    axes: Option<Vec<Option<u32>>>,
}

impl BlockFunction for PythonFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let Some(_under_way) = UnderWay::begin() else { return Err(shutting_down()) };
        let (blocks, numbers) = operands[self.n_carriers..].split_at(self.operands.len());
        let key: Vec<i64> = numbers.iter().map(|number| number.at(0).as_i64()).collect();
        // The function may keep what it gets, or write into it.
        let blocks: Vec<Array> = blocks.iter().map(ArrayView::to_array).collect();
        let attached = Python::try_attach(|py| {
            self.call(py, &key, blocks, results).map_err(|exception| {
                let number = |axis: &Option<u32>| axis.map_or(0, |number| key[number as usize]);
                let place = self.axes.as_ref().map(|axes| tuple(&axes.iter().map(number).collect::<Vec<i64>>()));
                let message = format!("`{}` failed: {exception}", self.name);
                Error::thrown(message, Thrown { exception, name: self.name.clone(), place })
            })
        });
        attached.unwrap_or_else(|| Err(shutting_down()))
    }

    fn overwrites_results(&self) -> bool {
        true
    }

    fn reads_input(&self) -> bool {
        self.reads_input
    }

    fn is_lasting(&self) -> bool {
        false
    }

    /// The copies that the function is given, and the arrays that it gives. What else it allocates is not known.
    fn scratch_bytes(&self, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
        let given = operands.iter().skip(self.n_carriers).take(self.operands.len());
        given.chain(results).fold(0, |sum: u64, block| sum.saturating_add(block.n_bytes()))
    }
}

impl PythonFunction {
    fn call(&self, py: Python<'_>, key: &[i64], operands: Vec<Array>, results: &mut [Array]) -> PyResult<()> {
        let numpy = numpy(py)?;
        let blocks = operands.into_iter().zip(&self.operands).map(|(array, &dtype)| given_to_numpy(py, array, dtype));
        let blocks = PyTuple::new(py, blocks.collect::<PyResult<Vec<_>>>()?)?;
        let made = self.call.bind(py).call1((PyTuple::new(py, key)?, blocks))?;
        if self.results.len() == 1 {
            return self.take(numpy, &made, self.results[0], &mut results[0]);
        }
        let made: Vec<Bound<'_, PyAny>> = made.try_iter()?.collect::<PyResult<_>>()?;
        if made.len() != self.results.len() {
            let (name, n) = (&self.name, self.results.len());
            return Err(PyValueError::new_err(format!("`{name}` gave {} results instead of {n}", made.len())));
        }
        for ((made, &dtype), result) in made.iter().zip(&self.results).zip(results) {
            self.take(numpy, made, dtype, result)?;
        }
        Ok(())
    }

    /// Copies what the function gave, if it is what was promised.
    fn take(
        &self,
        numpy: &Bound<'_, PyAny>,
        made: &Bound<'_, PyAny>,
        dtype: DType,
        result: &mut Array,
    ) -> PyResult<()> {
        let made = numpy.call_method1("asarray", (made,))?;
        let (name, wanted) = (&self.name, numpy_name(dtype));
        let found: String = made.getattr("dtype")?.getattr("name")?.extract()?;
        if found != wanted {
            let text =
                format!("`{name}` gave a block of {found} instead of {wanted}; say dtype={found:?} where it is called");
            return Err(PyTypeError::new_err(text));
        }
        let lengths: Vec<u64> = made.getattr("shape")?.extract()?;
        if lengths != result.shape() {
            let text =
                format!("`{name}` gave a block of shape {} instead of {}", tuple(&lengths), tuple(result.shape()));
            return Err(PyValueError::new_err(text));
        }
        // The order of bytes is the machine's, the order of elements C's.
        let made = numpy.call_method1("require", (made, wanted, ("C", "A")))?;
        copy_from_numpy(&made, result)
    }
}

fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static NUMPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    NUMPY.get_or_try_init(py, || Ok(py.import("numpy")?.into_any().unbind())).map(|numpy| numpy.bind(py))
}

/// Numbers as Python writes a tuple of them.
fn tuple(numbers: &[impl ToString]) -> String {
    match numbers {
        [number] => format!("({},)", number.to_string()),
        _ => format!("({})", numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// An axis of a result: its grid number, if it is cut; the length of its blocks, if it is not that of the operands.
type ResultAxis = (Option<u32>, Option<u64>);

/// Applies a Python function to blocks.
///
/// `operands` are tensors with a grid number, or None, per axis: first `n_carriers` tensors the function does not see, last one tensor per
/// grid number whose blocks hold their own number. `results` are names of element types, each with its axes.
#[pyfunction]
pub(crate) fn block_function(
    py: Python<'_>,
    call: Py<PyAny>,
    name: String,
    operands: Vec<(Bound<'_, Tensor>, Vec<Option<u32>>)>,
    n_carriers: usize,
    results: Vec<(String, Vec<ResultAxis>)>,
) -> PyResult<Vec<Tensor>> {
    let tensors: Vec<&tilewright::Tensor> = operands.iter().map(|(tensor, _)| &tensor.get().0).collect();
    let n_numbers =
        operands.iter().flat_map(|(_, modes)| modes).flatten().max().map_or(0, |&number| number as usize + 1);
    let seen = n_carriers..operands.len().saturating_sub(n_numbers);
    let Some(seen) = tensors.get(seen) else {
        return Err(PyValueError::new_err("a block function needs a tensor for each of its grid numbers"));
    };
    let results = results.into_iter().map(|(name, modes)| {
        let modes = modes.into_iter().map(|mode| match mode {
            (Some(number), None) => Ok(ResultMode::Grid(number)),
            (Some(number), Some(length)) => Ok(ResultMode::PerBlock(number, length)),
            (None, Some(length)) => Ok(ResultMode::Whole(length)),
            (None, None) => Err(PyValueError::new_err("an axis of a result without a length")),
        });
        Ok(BlockResult { dtype: dtype(&name)?, modes: modes.collect::<PyResult<_>>()? })
    });
    let results: Vec<BlockResult> = results.collect::<PyResult<_>>()?;
    let number_of = |mode: &ResultMode| match *mode {
        ResultMode::Grid(number) | ResultMode::PerBlock(number, _) => Some(number),
        ResultMode::Whole(_) => None,
    };
    let reads_input = call.bind(py).getattr_opt("reads_input")?.is_some_and(|reads| reads.is_truthy().unwrap_or(false));
    let function = PythonFunction {
        name,
        call,
        n_carriers,
        reads_input,
        operands: seen.iter().map(|tensor| tensor.dtype()).collect(),
        results: results.iter().map(|result| result.dtype).collect(),
        axes: Some(results.first().map(|result| result.modes.iter().map(number_of).collect()).unwrap_or_default()),
    };
    let mode = |number: &Option<u32>| number.map_or(OperandMode::Whole, OperandMode::Grid);
    let operands = operands.iter().map(|(_, modes)| modes.iter().map(mode).collect()).collect();
    let call = BlockFn { function: FunctionRef(Arc::new(function)), operands, results };
    compute_extents(py, &tensors)?;
    let made = at_callers_line(py, || tilewright::map_blocks(call, &tensors))?;
    Ok(made.into_iter().map(Tensor).collect())
}

/// A Python function of blocks, which come one by one and have no place: a kernel of relations.
pub(crate) fn kernel_function(
    call: Py<PyAny>,
    name: String,
    operands: Vec<DType>,
    gives: DType,
) -> Arc<dyn BlockFunction> {
    Arc::new(PythonFunction {
        name,
        call,
        n_carriers: 0,
        operands,
        results: vec![gives],
        reads_input: false,
        axes: None,
    })
}

/// Calls that are under way on threads that Python does not know.
static CALLS: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Counts a call as long as it lives.
struct UnderWay;

impl UnderWay {
    /// None once Python shuts down.
    fn begin() -> Option<UnderWay> {
        CALLS.fetch_add(1, Ordering::SeqCst);
        let counted = UnderWay;
        (!CLOSED.load(Ordering::SeqCst)).then_some(counted)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::SeqCst);
    }
}

fn shutting_down() -> Error {
    Error::state("Python shuts down, so its functions cannot be called any more")
}

/// Lets calls that are under way end and begins no others: Python asks for this before it shuts down, since it ends threads that return
/// to it later. A signal ends the wait.
#[pyfunction]
pub(crate) fn settle(py: Python<'_>) -> PyResult<()> {
    CLOSED.store(true, Ordering::SeqCst);
    while CALLS.load(Ordering::SeqCst) > 0 {
        py.detach(|| std::thread::sleep(Duration::from_millis(5)));
        py.check_signals()?;
    }
    Ok(())
}
