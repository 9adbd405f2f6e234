//! Tensors, and computing them.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tilewright::ir::Grid;
use tilewright::{Result, TensorHandle};

use crate::apply::compute_extents;
use crate::dtypes::{numpy_name, to_python};
use crate::errors::OrRaise;
use crate::explanation::{Explanation, Profile, Target, with_lines};
use crate::interrupt;

/// More work than this may take longer than [`PATIENCE`](crate::interrupt::PATIENCE): long enough for a Ctrl-C.
const MUCH_WORK: u64 = 1 << 24;

/// A lazy tensor.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Tensor(pub(crate) tilewright::Tensor);

#[pymethods]
impl Tensor {
    /// Extents of the axes. Those that depend on data are computed, and nothing else.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        compute_extents(py, &[&self.0])?;
        PyTuple::new(py, self.0.ty().require_shape().or_raise()?)
    }

    /// Extents of the axes; None for deferred extents.
    #[getter]
    fn extents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.ty().shape.iter().map(|extent| extent.known()))
    }

    /// Number of axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.ty().rank()
    }

    /// True if an extent is deferred.
    #[getter]
    fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// True if both have the same shape for certain, known or not.
    fn fits(&self, other: &Tensor) -> bool {
        self.0.ty().shape == other.0.ty().shape
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        numpy_name(self.0.dtype())
    }

    /// Lengths of the blocks along each axis, where the engine must keep to them.
    #[getter]
    fn tiling<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let grid = self.0.ty().tiling.as_ref().and_then(|tiling| tiling.grid());
        grid.map(|axes| lengths(py, axes)).transpose()
    }

    /// Lengths of the blocks along each axis, as users see them. Extents that depend on data are computed first.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        compute_extents(py, &[&self.0])?;
        let axes = self.0.chunks().ok_or_else(|| tilewright::Error::internal("a tensor of known shape has no blocks"));
        lengths(py, &axes.or_raise()?)
    }

    /// True if the blocks are in memory.
    #[getter]
    fn is_computed(&self) -> bool {
        self.0.is_computed()
    }

    /// Computes the tensor and keeps its blocks.
    #[pyo3(signature = (report=None))]
    fn persist(&self, py: Python<'_>, report: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        compute(py, vec![self.0.clone()], report)
    }

    /// The only element.
    pub(crate) fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = self.computed(py, |handle| handle.item())?;
        to_python(py, value)
    }

    /// How many elements it takes as a mask. The mask is kept, for what selects by it.
    fn n_selected(&self, py: Python<'_>) -> PyResult<u64> {
        self.computed(py, |handle| Ok(handle.mask_counts(Grid::whole(&handle.shape()))?.total()))
    }

    /// What computing will cost; on several workers, too, if some are described.
    #[pyo3(signature = (target=None))]
    fn explain(&self, py: Python<'_>, target: Option<Target>) -> PyResult<Explanation> {
        let tensor = self.0.clone();
        let explain = move || {
            let (program, inputs) = tensor.program()?;
            let explanation = tensor.session().explain(&program)?;
            match target {
                None => explanation.placed_here(tensor.session(), &inputs),
                Some(target) => target.plan(tensor.session(), explanation),
            }
        };
        interrupt::run(py, self.0.session(), takes_long(&[&self.0]), None, explain)
            .map(|explanation| Explanation(with_lines(py, explanation)))
    }

    /// Computes the tensor and tells what that took beside what was planned. What it computes is not kept.
    fn profile(&self, py: Python<'_>) -> PyResult<Profile> {
        let tensor = self.0.clone();
        let profile = interrupt::run(py, self.0.session(), takes_long(&[&self.0]), None, move || Profile::of(&tensor));
        profile.map(|profile| profile.with_lines(py))
    }
}

impl Tensor {
    /// Computes the tensor if that has not happened yet, and gives what `read` makes of it.
    pub(crate) fn computed<T: Send + 'static>(
        &self,
        py: Python<'_>,
        read: impl FnOnce(&TensorHandle) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let tensor = self.0.clone();
        interrupt::run(py, self.0.session(), takes_long(&[&self.0]), None, move || read(&*tensor.fetch()?))
    }
}

/// Lengths of the blocks along each axis. An empty axis has one block without elements, as users of dask know it.
fn lengths<'py>(py: Python<'py>, axes: &[tilewright::Axis]) -> PyResult<Bound<'py, PyTuple>> {
    let lengths = |axis: &tilewright::Axis| {
        let lengths: Vec<u64> =
            (0..axis.n_tiles()).map(|k| axis.range(k)).map(|range| range.end - range.start).collect();
        PyTuple::new(py, if lengths.is_empty() { vec![0] } else { lengths })
    };
    PyTuple::new(py, axes.iter().map(lengths).collect::<PyResult<Vec<_>>>()?)
}

/// Lengths of blocks of at most so many bytes.
#[pyfunction]
pub(crate) fn automatic_chunks<'py>(
    py: Python<'py>,
    shape: Vec<u64>,
    element_size: u64,
    limit: u64,
) -> PyResult<Bound<'py, PyTuple>> {
    lengths(py, &tilewright::automatic_chunks(&shape, element_size, limit))
}

/// Computes several tensors in one plan.
#[pyfunction(name = "compute")]
#[pyo3(signature = (tensors, report=None))]
pub(crate) fn compute_list(
    py: Python<'_>,
    tensors: &Bound<'_, PyList>,
    report: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    compute(py, tensors_of(tensors)?, report)
}

/// The tensors of a list.
pub(crate) fn tensors_of(tensors: &Bound<'_, PyList>) -> PyResult<Vec<tilewright::Tensor>> {
    tensors.iter().map(|tensor| Ok(tensor.cast::<Tensor>()?.get().0.clone())).collect()
}

fn compute(py: Python<'_>, tensors: Vec<tilewright::Tensor>, report: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let Some(first) = tensors.first() else { return Ok(()) };
    let session = first.session().clone();
    let long = takes_long(&tensors.iter().collect::<Vec<_>>());
    interrupt::run(py, &session, long, report, move || {
        tilewright::compute_all(&tensors.iter().collect::<Vec<_>>()).map(drop)
    })
}

/// Computes several tensors in one plan, each into one array, on one of several ranks or on all.
pub(crate) fn arrays(
    py: Python<'_>,
    tensors: Vec<tilewright::Tensor>,
    report: Option<&Bound<'_, PyAny>>,
    rank: Option<u32>,
) -> PyResult<Vec<Option<tilewright::Array>>> {
    let Some(first) = tensors.first() else { return Ok(Vec::new()) };
    let session = first.session().clone();
    let long = takes_long(&tensors.iter().collect::<Vec<_>>());
    interrupt::run(py, &session, long, report, move || {
        tilewright::compute_arrays_on(&tensors.iter().collect::<Vec<_>>(), rank)
    })
}

/// Guesses whether the user may want to interrupt the computation.
pub(crate) fn takes_long(tensors: &[&tilewright::Tensor]) -> bool {
    tensors.iter().any(|tensor| !tensor.is_computed() && tensor.work() > MUCH_WORK)
}
