//! The one place that releases the GIL: computes while watching for Ctrl-C.

use std::sync::mpsc::{self, RecvTimeoutError, SendError, Sender};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tilewright::{CancelToken, Result, Session, Watch, until_cancelled};

use crate::errors::OrRaise;

/// How long a signal may wait.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);

/// Runs shorter than this show no progress.
const SILENCE: Duration = Duration::from_secs(1);

type Work = Box<dyn FnOnce() + Send>;

/// Threads that wait for work. A new thread costs more than a small computation does: its stack, its allocator and its scratch memory are all new.
struct Idle {
    /// The process they belong to: a fork takes the list along, but not the threads.
    process: u32,
    threads: Vec<Sender<Work>>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, threads: Vec::new() });

/// More threads than this end when their work does.
const MOST_IDLE: usize = 2;

/// The list of idle threads; `None` if another thread holds it, or held it when this process was forked.
fn idle() -> Option<MutexGuard<'static, Idle>> {
    let mut idle = IDLE.try_lock().ok()?;
    let process = std::process::id();
    if idle.process != process {
        *idle = Idle { process, threads: Vec::new() };
    }
    Some(idle)
}

/// Runs work on a thread that is idle, or on a new one. That the system refuses one is an error like any other.
pub(crate) fn start_thread(work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    let mut work: Work = Box::new(work);
    while let Some(thread) = idle().and_then(|mut idle| idle.threads.pop()) {
        match thread.send(work) {
            Ok(()) => return Ok(()),
            // It has died of a panic.
            Err(SendError(back)) => work = back,
        }
    }
    let (sender, receiver) = mpsc::channel::<Work>();
    let serve = move || {
        work();
        loop {
            match idle() {
                Some(mut idle) if idle.threads.len() < MOST_IDLE => idle.threads.push(sender.clone()),
                _ => return,
            }
            match receiver.recv() {
                Ok(work) => work(),
                Err(_) => return,
            }
        }
    };
    let started = std::thread::Builder::new().name("tilewright".to_string()).spawn(serve);
    started.map(drop).map_err(|error| PyRuntimeError::new_err(format!("the system refuses to start a thread: {error}")))
}

/// Computes without Python's lock.
///
/// What takes long runs on a thread of its own, while this one waits, asks for signals and reports progress. An interrupt cancels this run and
/// returns at once; tasks that are under way end by themselves. What surely ends before a signal would be heard runs on this thread: handing it over and
/// waking up again takes longer than many small runs do.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    session: &Session,
    takes_long: bool,
    report: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> PyResult<T> {
    // Ranks may wait for each other for long.
    if !takes_long && session.n_ranks() == 1 {
        return py.detach(work).or_raise();
    }
    let (sender, mut receiver) = mpsc::channel();
    let token = CancelToken::new();
    let own = token.clone();
    // Before the run begins: what is counted from now on is its own.
    let (started, mut watch) = (Instant::now(), Watch::new(session));
    start_thread(move || {
        // After an interrupt there is no receiver.
        let _ = sender.send(until_cancelled(&own, work));
    })?;
    loop {
        let (answer, back) = py.detach(move || (receiver.recv_timeout(PATIENCE), receiver));
        receiver = back;
        match answer {
            Ok(result) => return result.or_raise(),
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the engine has failed")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let heard = py.check_signals().and_then(|()| match report {
            Some(report) if started.elapsed() >= SILENCE => {
                let look = watch.look(session);
                report.call1((look.done, look.total, look.line())).map(drop)
            }
            _ => Ok(()),
        });
        if let Err(interrupt) = heard {
            token.cancel();
            return Err(interrupt);
        }
    }
}
