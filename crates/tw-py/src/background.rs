//! Runs in the background, for `compute(block=False)`.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tilewright::ir::error::Blame;
use tilewright::{CancelToken, Error, Result, until_cancelled};

use crate::errors::OrRaise;
use crate::interrupt::{PATIENCE, start_thread};
use crate::line::callers_line;
use crate::tensor::tensors_of;

/// A computation that runs on a thread of its own.
#[pyclass(frozen, module = "tilewright._core")]
pub(crate) struct Run {
    token: CancelToken,
    ending: Arc<Ending>,
}

/// How a run ended, once it has.
#[derive(Default)]
struct Ending {
    outcome: Mutex<Option<Result<()>>>,
    ended: Condvar,
}

impl Ending {
    fn outcome(&self) -> MutexGuard<'_, Option<Result<()>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells how a run ended even if its thread panics.
struct Announce(Arc<Ending>);

impl Drop for Announce {
    fn drop(&mut self) {
        self.0.outcome().get_or_insert_with(|| Err(Error::internal("the engine has failed")));
        self.0.ended.notify_all();
    }
}

/// Starts to compute several tensors in one plan and returns at once.
#[pyfunction]
pub(crate) fn start(py: Python<'_>, tensors: &Bound<'_, PyList>) -> PyResult<Run> {
    let tensors = tensors_of(tensors)?;
    if tensors.first().is_some_and(|tensor| tensor.session().n_ranks() > 1) {
        let text = "several ranks compute in the order of their calls, so not with block=False";
        return Err(PyNotImplementedError::new_err(text));
    }
    let span = callers_line(py);
    let run = Run { token: CancelToken::new(), ending: Arc::default() };
    let (token, announce) = (run.token.clone(), Announce(run.ending.clone()));
    start_thread(move || {
        let compute = || tilewright::compute_all(&tensors.iter().collect::<Vec<_>>()).map(drop);
        let outcome = until_cancelled(&token, compute).map_err(|error| error.at(&span));
        // After the announcement that the run has ended, nothing of it is left.
        drop(tensors);
        *announce.0.outcome() = Some(outcome);
    })?;
    Ok(run)
}

#[pymethods]
impl Run {
    /// True if the run has ended: with a result, an error, or because it was cancelled.
    fn done(&self) -> bool {
        self.ending.outcome().is_some()
    }

    /// Asks the run to stop. Tasks that are under way end first; nothing of the run is kept.
    fn cancel(&self) {
        self.token.cancel();
    }

    /// Waits until the run has ended, at most so many seconds. True if it has, False if not, None if it was cancelled; an error of the run is
    /// raised.
    #[pyo3(signature = (seconds=None))]
    fn wait(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<bool>> {
        // A time that no clock can count to is no limit.
        let deadline = seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
            .and_then(|patience| Instant::now().checked_add(patience));
        loop {
            let outcome = py.detach(|| self.wait_a_little(deadline));
            match outcome {
                Some(Err(error)) if error.blame() == Blame::Cancelled => return Ok(None),
                Some(outcome) => return outcome.or_raise().map(|()| Some(true)),
                None => {}
            }
            py.check_signals()?;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Some(false));
            }
        }
    }
}

impl Run {
    fn wait_a_little(&self, deadline: Option<Instant>) -> Option<Result<()>> {
        let left = deadline.map_or(PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
        let running = |outcome: &mut Option<Result<()>>| outcome.is_none();
        let waited = self.ending.ended.wait_timeout_while(self.ending.outcome(), left.min(PATIENCE), running);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}
