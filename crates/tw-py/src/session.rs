//! Sessions.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::mpi::MpiRanks;

use crate::errors::OrRaise;
use crate::explanation::Target;

/// Threads, options and the cache of plans. Tensors belong to one.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Session(pub(crate) tilewright::Session);

/// The session that new tensors belong to.
static CURRENT: Mutex<Option<tilewright::Session>> = Mutex::new(None);

/// The session that new tensors belong to; made at first use.
pub(crate) fn current() -> tilewright::Session {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(tilewright::Session::new).clone()
}

/// The connections to other ranks, in the order in which they were made.
static CONNECTIONS: Mutex<Vec<MpiRanks>> = Mutex::new(Vec::new());

/// Ends the connections to other ranks, which do the same, after all sessions of ranks have been left.
#[pyfunction]
pub(crate) fn finish_ranks(py: Python<'_>) -> PyResult<()> {
    let connections = std::mem::take(&mut *CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| MpiRanks::finish_all(&connections)).or_raise()
}

/// Ends the process after an error, without waiting long for ranks that may be gone. The launcher ends the others.
#[pyfunction]
pub(crate) fn abandon_ranks(py: Python<'_>, code: i32) {
    let connections = std::mem::take(&mut *CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| MpiRanks::abandon(&connections, code))
}

#[pymethods]
impl Session {
    /// Starts threads: as many as the machine has if not given. `memory` bounds the bytes of blocks alive at once; those that do not fit are spilled to
    /// a directory, at most `spill_limit` bytes. Below `checkpoint` runs leave what a later process can go on with. `ranks` says that a launcher has started several processes: what they are
    /// planned as, where the MPI library may be, and whether bits must not depend on their number.
    #[new]
    #[pyo3(signature = (threads=None, memory=None, spill=None, spill_limit=None, checkpoint=None, ranks=None))]
    fn new(
        py: Python<'_>,
        threads: Option<usize>,
        memory: Option<u64>,
        spill: Option<PathBuf>,
        spill_limit: Option<u64>,
        checkpoint: Option<PathBuf>,
        ranks: Option<(Target, Vec<PathBuf>, bool)>,
    ) -> PyResult<Session> {
        let mut builder = tilewright::Session::builder();
        if let Some((target, prefixes, is_reproducible)) = ranks {
            // All ranks come here; MPI may have to start.
            let ranks = py.detach(|| MpiRanks::connect(false, prefixes)).or_raise()?;
            let cluster = ranks.machine().and_then(|machine| target.cluster(Some(machine))).or_raise()?;
            builder = ranks.builder(builder.threads(ranks.threads()).cluster(cluster));
            if is_reproducible {
                builder = builder.reproducible();
            }
            CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner).push(ranks);
        }
        if threads == Some(0) {
            return Err(PyValueError::new_err("a session needs at least one thread"));
        }
        if let Some(threads) = threads {
            builder = builder.threads(threads);
        }
        if let Some(memory) = memory {
            builder = builder.memory(memory);
        }
        if let Some(directory) = spill {
            builder = builder.spill_directory(&directory);
        }
        if let Some(bytes) = spill_limit {
            builder = builder.spill_limit(bytes);
        }
        if let Some(directory) = checkpoint {
            builder = builder.checkpoint(&directory);
        }
        Ok(Session(builder.build()))
    }

    /// Makes this the session of new tensors; gives the one before.
    fn enter(&self) -> Session {
        let before = current();
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.0.clone());
        Session(before)
    }

    /// The number of this rank among those that run programs together.
    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank()
    }

    /// The number of ranks that run programs together.
    #[getter]
    fn ranks(&self) -> u32 {
        self.0.n_ranks()
    }

    /// Takes part in nothing with other ranks any more.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| self.0.leave_ranks());
    }

    /// Number of threads.
    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    /// Stops what runs now.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Gives memory that is kept for later back to the system.
    fn release_memory(&self, py: Python<'_>) {
        let session = self.0.clone();
        py.detach(move || session.release_memory());
    }

    /// What all runs of the session have cost so far, and the bytes of blocks that live now.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = self.0.totals();
        let report = PyDict::new(py);
        report.set_item("segments", totals.segments)?;
        report.set_item("cached_segments", totals.cached_segments)?;
        report.set_item("tasks", totals.tasks)?;
        report.set_item("planning_seconds", totals.planning.as_secs_f64())?;
        report.set_item("running_seconds", totals.running.as_secs_f64())?;
        report.set_item("read_bytes", totals.read_bytes)?;
        report.set_item("written_bytes", totals.written_bytes)?;
        report.set_item("spilled_bytes", totals.spilled_bytes)?;
        report.set_item("fetched_bytes", totals.fetched_bytes)?;
        report.set_item("peak_bytes", totals.peak_bytes)?;
        report.set_item("planned_peak_bytes", totals.planned_peak_bytes)?;
        report.set_item("sent_bytes", totals.sent_bytes)?;
        report.set_item("received_bytes", totals.received_bytes)?;
        report.set_item("planned_sent_bytes", totals.planned_sent_bytes)?;
        report.set_item("flops", totals.flops)?;
        report.set_item("held_bytes", self.0.memory().0)?;
        Ok(report)
    }
}

/// The number of this rank in the session that new tensors belong to.
#[pyfunction]
pub(crate) fn current_rank() -> u32 {
    current().rank()
}

/// Says in which directories libraries of linear algebra are looked for first. None is loaded before it is needed.
#[pyfunction]
pub(crate) fn look_for_libraries(directories: Vec<std::path::PathBuf>) {
    tilewright::Provider::look_in(directories);
}

/// Who multiplies and factors matrices in this process, and why a library that is there is not used.
#[pyfunction]
pub(crate) fn matrix_provider(py: Python<'_>) -> (String, Option<&'static str>) {
    // The first call loads a library.
    py.detach(|| (tilewright::Provider::chosen().name().to_string(), tilewright::Provider::note()))
}
