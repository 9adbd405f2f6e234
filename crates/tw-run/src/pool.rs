//! The threads of a runtime and how they share work.
//!
//! # Roles
//!
//! A *run* is put on the *board* by the thread that calls [`Engine::run`]. That caller and the *workers* of the pool *participate* in
//! it. A participant takes a ready task (lowest rank first) off the board, runs it, counts its successors down, keeps the lowest of those that
//! became ready and goes on with it; the others it puts on the board. When no successor is ready it returns to the board, reports what it
//! has done, and takes another task. (With a ledger it returns after every task, because the ledger has to admit the next one.)
//! Callers participate only in their own run; workers in the oldest run that has something to do.
//!
//! One lock guards the board: the ready tasks of every run, the number of participants of each, reports, and who is idle. It is taken when
//! a participant returns and when a task makes more than one other ready; a chain of tasks runs without it. Counters of tasks are atomics
//! and slots of blocks have locks of their own ([`crate::slots`]); neither is held or waited on together with the board.
//!
//! # Termination
//!
//! `active` is the number of participants that have taken a task and not yet reported. Tasks become ready only in the hands of an active
//! participant, which puts every one of them on the board or runs it before it reports. So when `active` is zero and no task of the run is on the
//! board, no task will ever become ready again: the run is over. Participants check nothing else; there is no counter of tasks left. Of
//! a run that is over without an error all tasks have run, for the schedule is acyclic (the caller checks that number nevertheless).
//!
//! A worker gives back its reference to the run in the same critical section in which it reports for the last time. Hence when the caller
//! sees that the run is over, it owns the run alone: whatever is left of it is freed before [`Engine::run`] returns.
//!
//! # Sleeping and waking
//!
//! An idle worker first spins, watching a hint (a relaxed counter of available tasks), because waking a thread costs more than a small task: as long as it has worked
//! before, within limits ([`crate::sync`]). The caller of a run also watches a counter of runs that are over. It yields each time: on a busy machine the thread it waits for
//! may need this very core. It counts itself as `searching` meanwhile. Then it takes the lock, looks at the board, and only if there is still nothing
//! available counts itself as `sleeping` and waits on the condition variable until there is a *token*, which it takes. Looking and going to
//! sleep happen under one lock, so nothing can become available in between.
//!
//! A thread that releases the lock calls [`Board::balance`] first. It establishes: if a task is available then either it is covered by a thread that
//! is awake and will look at the board again before sleeping (a searching worker, a worker with a token, the searching or woken caller of its run), each
//! of whom is counted once, or no worker is asleep without a token. A woken worker that takes a task stops covering, and the balance at the end of that
//! same critical section wakes another one if tasks are left. So no wake-up is lost: at no moment outside the lock is there an available
//! task, a worker asleep without a token, and no thread on the way to the board. Tokens are counted, so spurious wake-ups find none and
//! go back to sleep. The caller of a run sleeps on a bell of its own, because it cannot take tasks of other runs: a wake-up meant for a run
//! must not be swallowed by the caller of another. It is rung when its run has a task available or is over.
//!
//! # No deadlock
//!
//! No thread waits for another one except asleep as above or for a lock held for a few instructions. Suppose all participants of an unfinished run
//! were asleep. None is active, so the run is not over only if a task is on the board. If it is available, the last balance woke a thread. If it is not,
//! the budget holds it back; but with nothing active the lowest ready task is the head ([`crate::budget`]), which is always admitted.
//!
//! Moves change nothing in this. A spill and a fetch are steps like others: they wait for the steps that make what they move, never for a file of another run, and a fetch
//! reserves the bytes that it brings. Several runs that share a budget wait for their shares while they hold nothing, before they come to the board.
//!
//! # No lane for loads and moves
//!
//! Loads, stores and moves run on the threads that compute. Threads take them ahead of the order as far as the ledger has bytes to spare, so that one thread reads
//! while another computes; and a thread that waits for a disk leaves its core to nobody. A thread of its own for such steps, beside one for each core, was considered. What it
//! could gain was measured with one thread more than there are cores, which is more than such a lane does: on two cores, over a `.npy` file of 1.6 GB under a budget of 300 MiB
//! (column means and deviations, a Gram matrix, standardising into another file; two runs each, seconds with two threads and with three). From the disk (0.7 GB/s): 0.44 and 0.50
//! to 0.43 and 1.01, 0.48 and 1.24 to 0.94 and 0.83, 1.29 and 2.65 to 1.14 and 3.03. From the page cache: 0.17 and 0.26 to 0.17 and 0.29, 0.36 and 0.34 to 0.64 and 0.39, 1.92 and 1.73
//! to 2.67 and 2.27. So it gains nothing that shows, and where the page cache serves reads they are copies that need a core, and one thread too many costs time. On a disk or
//! network that is far slower than that, a session with more threads than cores does the same as a lane would.
//!
//! # Errors and cancellation
//!
//! A failing participant sets the flag `stop`; every participant checks it, and the cancel token, before each task. It reports the failure with the
//! task's rank; the lowest rank wins. From then on the board takes no more tasks of that run and forgets those it has, and the run is over when
//! the last active participant has reported. Cancellation is noticed the same way, at the latest when a task ends: if no participant is active and the
//! run is not over, a thread is on the way to the board.
//!
//! # How it is checked
//!
//! `board/model.rs` walks through the critical sections in random orders and checks the invariant of [`Board::balance`] after each. `board/simulation.rs` does so with
//! random schedules with moves, whose runs share a budget. `pool/checked.rs` runs
//! this very code, threads and all, under random schedules of the model checker `shuttle` ([`crate::sync`]); that model is sequentially
//! consistent, so it says nothing about the orderings of atomics, which are argued where they are used.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use tw_ir::{Error, Result};
use tw_wire::Message;

use crate::bindings::Bindings;
use crate::board::{Board, JobId};
use crate::delivery::Outputs;
use crate::engine::{Engine, report};
use crate::execute::Tally;
use crate::job::{Job, run_inline};
use crate::options::{Outcome, RunOptions};
use crate::prepared::Prepared;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Stint, thread};

#[cfg(test)]
#[cfg(feature = "model-check")]
mod checked;

/// Pauses between two looks of an idle thread at the hint.
const PAUSES_PER_ROUND: usize = 8;

/// A pool of threads that runs schedules. Threads sleep while there is nothing to do, and end when the runtime is dropped.
pub struct Runtime {
    pub(crate) shared: Arc<Shared>,
    workers: Vec<thread::JoinHandle<()>>,
}

/// What the threads of a pool share.
#[derive(Default)]
pub(crate) struct Shared {
    board: Mutex<Board>,
    /// Rung when a token has been added, or at the end.
    wake: Condvar,
    /// About how many tasks are available.
    hint: AtomicUsize,
    /// How many runs are over.
    ended: AtomicUsize,
}

impl Runtime {
    /// A runtime that computes on this many threads, counting the one that calls [`Engine::run`]. If the system refuses to start some
    /// of them there are fewer.
    pub fn new(threads: usize) -> Runtime {
        let shared = Arc::new(Shared::default());
        let start = |worker: u32| {
            let shared = Arc::clone(&shared);
            let name = format!("tilewright-{worker}");
            thread::Builder::new().name(name).spawn(move || shared.serve(worker)).ok()
        };
        let workers = (1..threads as u32).map_while(start).collect();
        Runtime { shared, workers }
    }
}

impl Engine for Runtime {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs of several callers share the pool, the oldest first.
    fn run(&self, prepared: &Prepared, bindings: &Bindings, options: &RunOptions) -> Result<Outcome> {
        let plan = prepared.plan();
        let alone = self.workers.is_empty() || !plan.worth_sharing;
        report(plan, bindings, options, self.threads(), |surplus| {
            if alone && options.chaos.is_none() {
                return Ok((1, run_inline(plan, bindings, options)?));
            }
            let job = Job::new(plan, bindings, options, surplus, None)?;
            Ok((if alone { 1 } else { self.threads() }, self.shared.run(job, |_, _| Ok(()))?))
        })
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.shared.lock().shut_down();
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker cannot panic: tasks run under `catch_unwind`. If it did, no thread is left to report to.
            let _ = worker.join();
        }
    }
}

type Guard<'a> = MutexGuard<'a, Board>;

impl Shared {
    fn lock(&self) -> Guard<'_> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up the lock, with the invariant restored.
    fn release(&self, mut board: Guard<'_>) {
        let (wake, available) = board.balance();
        self.hint.store(available, Ordering::Relaxed);
        drop(board);
        (0..wake).for_each(|_| self.wake.notify_one());
    }

    /// The life of a worker.
    fn serve(&self, worker: u32) {
        let mut ready = Vec::new();
        let mut board = self.lock();
        let mut stint = Stint::begin();
        while !board.is_shut_down() {
            match board.job_with_work() {
                Some((id, job)) => {
                    board = self.participate(board, id, &job, worker, &mut ready);
                    // Still in the critical section of the last report, as the caller relies on.
                    drop(job);
                }
                None => {
                    board = self.rest(board, stint);
                    stint = Stint::begin();
                }
            }
        }
    }

    /// Announces a run, puts it on the board and takes part in it until it is over.
    pub(crate) fn run(
        &self,
        job: Job,
        announce: impl FnOnce(JobId, &Arc<Job>) -> Result<()>,
    ) -> Result<(Outputs, Tally)> {
        let job = Arc::new(job);
        let mut ready = Vec::new();
        let id = self.lock().next_id();
        announce(id, &job)?;
        let mut board = self.lock();
        board.add(id, &job);
        loop {
            let stint = Stint::begin();
            board = self.participate(board, id, &job, 0, &mut ready);
            if board.is_over(id) {
                break;
            }
            board = self.rest_as_caller(board, id, stint);
        }
        let (tally, failure) = board.remove(id);
        self.release(board);
        let failure = failure.or_else(|| (job.is_cancelled() && !job.is_done(&tally)).then(Error::cancelled));
        let failure = job.detach(failure);
        match failure {
            Some(error) => Err(error),
            None => Ok((job.outputs(&tally)?, tally)),
        }
    }

    /// Ends a transfer of a run, in the hands of the lane.
    pub(crate) fn end_transfer(&self, id: JobId, job: Arc<Job>, move_id: u32, outcome: Result<Option<Message>>) {
        let mut ready = Vec::new();
        let report = job.end_transfer(move_id, outcome, &mut ready);
        let mut board = self.lock();
        board.end_transfer(id, report, &mut ready);
        // In the critical section of the report, as the caller of the run relies on.
        drop(job);
        self.release(board);
    }

    /// Gives up the transfers of a run that has failed, here or with this error of another rank.
    pub(crate) fn abandon(&self, id: JobId, job: Arc<Job>, error: Option<Error>) {
        // A run that is not on the board yet finds the error when it gets there.
        job.fail(error);
        let mut board = self.lock();
        board.abandon(id);
        drop(job);
        self.release(board);
    }

    /// Why a run has failed.
    pub(crate) fn failure(&self, id: JobId) -> Option<Error> {
        self.lock().failure(id)
    }

    /// Runs tasks of a job as long as the board gives any. `ready` is scratch space, empty before and after.
    fn participate<'a>(
        &'a self,
        mut board: Guard<'a>,
        id: JobId,
        job: &Job,
        worker: u32,
        ready: &mut Vec<u32>,
    ) -> Guard<'a> {
        while let Some(rank) = board.begin(id) {
            self.release(board);
            let report = job.run_from(rank, worker, ready, |others| {
                let mut board = self.lock();
                board.push(id, others);
                self.release(board);
            });
            board = self.lock();
            board.settle(id, report, ready);
        }
        if board.is_over(id) {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        board
    }

    /// Waits until there may be something to do for a worker.
    fn rest<'a>(&'a self, mut board: Guard<'a>, stint: Stint) -> Guard<'a> {
        board.worker_searches();
        self.release(board);
        self.search(stint, || false);
        board = self.lock();
        if !board.worker_stays() {
            while !board.worker_wakes() {
                board = self.wake.wait(board).unwrap_or_else(PoisonError::into_inner);
            }
        }
        board
    }

    /// Waits until there may be something to do in a run for its caller, or the run is over.
    fn rest_as_caller<'a>(&'a self, mut board: Guard<'a>, id: JobId, stint: Stint) -> Guard<'a> {
        board.caller_searches(id);
        let ended = self.ended.load(Ordering::Relaxed);
        self.release(board);
        self.search(stint, || self.ended.load(Ordering::Relaxed) != ended);
        board = self.lock();
        if let Some(bell) = board.caller_stays(id) {
            while !board.caller_wakes(id) {
                board = bell.wait(board).unwrap_or_else(PoisonError::into_inner);
            }
        }
        board
    }

    /// Spins for a while, or until a task seems to be available or there is something else to look at.
    fn search(&self, stint: Stint, is_enough: impl Fn() -> bool) {
        for () in stint.looks() {
            if self.hint.load(Ordering::Relaxed) > 0 || is_enough() {
                return;
            }
            (0..PAUSES_PER_ROUND).for_each(|_| std::hint::spin_loop());
            thread::yield_now();
        }
    }
}
