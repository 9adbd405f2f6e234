//! What is to be done and who is idle: everything the one lock of a pool guards.
//!
//! See [`crate::pool`] for the protocol.

use std::sync::{Arc, Condvar};

use tw_ir::Error;
use tw_ir::workflow::TaskKind;

use crate::budget::Ledger;
use crate::chaos::Chaos;
use crate::execute::Tally;
use crate::job::{Job, Report};
use crate::queue::ReadyQueue;

/// Names a job on the board.
pub(crate) type JobId = u64;

/// What the thread that called `run` is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// Running tasks.
    Busy,
    /// Out of work, awake, and about to look at the board again.
    Searching,
    /// Asleep until somebody wakes it.
    Asleep,
    /// Woken, and about to look at the board again.
    Woken,
}

/// One run on the board.
pub(crate) struct JobState {
    id: JobId,
    job: Arc<Job>,
    ready: ReadyQueue,
    ledger: Option<Ledger>,
    /// Participants that are running tasks.
    active: usize,
    tally: Tally,
    failure: Option<(u32, Error)>,
    caller: Caller,
    /// Wakes the caller.
    pub(crate) bell: Arc<Condvar>,
}

/// The jobs of a pool, oldest first, and its idle workers.
#[derive(Default)]
pub(crate) struct Board {
    jobs: Vec<JobState>,
    next_id: JobId,
    /// Workers that are awake, without work, and about to look here again.
    pub(crate) searching: usize,
    /// Workers that are asleep, including those for whom there is a token.
    pub(crate) sleeping: usize,
    /// Permits to wake up, never more than `sleeping`.
    pub(crate) tokens: usize,
    pub(crate) shutdown: bool,
}

impl JobState {
    /// Ready tasks that could begin now. At most this; with a budget only the first is looked at.
    fn available(&self) -> usize {
        match (&self.ledger, self.ready.peek()) {
            (Some(ledger), Some(rank)) if !ledger.admits(rank, new_bytes(&self.job, rank)) => 0,
            _ => self.ready.len(),
        }
    }

    /// Nothing runs and nothing is ready: no task will ever become ready again.
    fn is_over(&self) -> bool {
        self.active == 0 && self.ready.len() == 0
    }

    fn begin(&mut self) -> Option<u32> {
        if self.failure.is_some() || self.job.options().cancel.is_cancelled() {
            self.ready.clear();
            return None;
        }
        let (job, ledger) = (&self.job, &mut self.ledger);
        let rank = self.ready.pop_if(|rank| match ledger {
            Some(ledger) => ledger.admit(rank, new_bytes(job, rank)),
            None => true,
        })?;
        self.active += 1;
        Some(rank)
    }

    fn push(&mut self, ready: &mut Vec<u32>) {
        ready.drain(..).for_each(|rank| self.ready.push(rank));
    }

    fn settle(&mut self, report: Report, ready: &mut Vec<u32>) {
        self.active -= 1;
        self.tally.tasks += report.tally.tasks;
        self.tally.loaded_bytes += report.tally.loaded_bytes;
        self.tally.stored_bytes += report.tally.stored_bytes;
        if let Some(ledger) = &mut self.ledger {
            ledger.finish(report.last);
        }
        self.push(ready);
        if let Some((rank, error)) = report.failure
            && self.failure.as_ref().is_none_or(|(lowest, _)| rank < *lowest)
        {
            self.failure = Some((rank, error));
        }
        if self.failure.is_some() {
            self.ready.clear();
        }
    }
}

/// Bytes of the blocks a task makes; a fold that continues makes none.
fn new_bytes(job: &Job, rank: u32) -> u64 {
    let schedule = &job.plan().schedule;
    let workflow = schedule.workflow();
    let task = schedule.order()[rank as usize];
    if workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0 {
        return 0;
    }
    workflow.outputs(task).iter().map(|&block| workflow.block_bytes(block)).sum()
}

impl Board {
    /// Puts a run on the board. With a budget, `surplus` is what is left of it for running ahead.
    pub(crate) fn add(&mut self, job: &Arc<Job>, surplus: Option<u64>) -> JobId {
        let (plan, options) = (job.plan(), job.options());
        let id = self.next_id;
        self.next_id += 1;
        self.jobs.push(JobState {
            id,
            job: Arc::clone(job),
            ready: ReadyQueue::new(Arc::clone(&plan.initial), options.chaos.map(|seed| Chaos::new(seed, u32::MAX))),
            ledger: surplus.map(|surplus| Ledger::new(surplus, plan.schedule.order().len())),
            active: 0,
            tally: Tally::default(),
            failure: None,
            caller: Caller::Busy,
            bell: Arc::default(),
        });
        id
    }

    /// Takes a run that is over off the board: what was done, and why it stopped early if it did.
    pub(crate) fn remove(&mut self, id: JobId) -> (Tally, Option<Error>) {
        match self.jobs.iter().position(|state| state.id == id) {
            Some(position) => {
                let state = self.jobs.remove(position);
                (state.tally, state.failure.map(|(_, error)| error))
            }
            None => (Tally::default(), None),
        }
    }

    fn job(&mut self, id: JobId) -> Option<&mut JobState> {
        self.jobs.iter_mut().find(|state| state.id == id)
    }

    /// The oldest job with a task that could begin.
    pub(crate) fn job_with_work(&self) -> Option<(JobId, Arc<Job>)> {
        self.jobs.iter().find(|state| state.available() > 0).map(|state| (state.id, Arc::clone(&state.job)))
    }

    /// True if some job has a task that could begin.
    pub(crate) fn has_work(&self) -> bool {
        self.jobs.iter().any(|state| state.available() > 0)
    }

    /// True if this job has a task that could begin.
    pub(crate) fn job_has_work(&self, id: JobId) -> bool {
        self.jobs.iter().any(|state| state.id == id && state.available() > 0)
    }

    /// Makes the calling thread a participant of a job by giving it a task.
    pub(crate) fn begin(&mut self, id: JobId) -> Option<u32> {
        self.job(id).and_then(JobState::begin)
    }

    /// Adds tasks that have become ready.
    pub(crate) fn push(&mut self, id: JobId, ready: &mut Vec<u32>) {
        if let Some(state) = self.job(id) {
            state.push(ready);
        }
    }

    /// Ends the participation of the calling thread.
    pub(crate) fn settle(&mut self, id: JobId, report: Report, ready: &mut Vec<u32>) {
        if let Some(state) = self.job(id) {
            state.settle(report, ready);
        }
    }

    /// True if nothing will happen to a job any more.
    pub(crate) fn is_over(&self, id: JobId) -> bool {
        self.jobs.iter().find(|state| state.id == id).is_none_or(JobState::is_over)
    }

    /// What the caller of a job is doing.
    pub(crate) fn caller(&mut self, id: JobId) -> Caller {
        self.job(id).map_or(Caller::Busy, |state| state.caller)
    }

    /// Says what the caller of a job is doing.
    pub(crate) fn set_caller(&mut self, id: JobId, caller: Caller) {
        if let Some(state) = self.job(id) {
            state.caller = caller;
        }
    }

    /// The bell of a job's caller.
    pub(crate) fn bell(&mut self, id: JobId) -> Arc<Condvar> {
        self.job(id).map(|state| Arc::clone(&state.bell)).unwrap_or_default()
    }

    /// Restores the invariant before the lock is given up: for every task that could begin there is somebody awake to take it, or nobody asleep.
    /// Rings for callers; returns how many workers to wake, and how many tasks could begin.
    pub(crate) fn balance(&mut self) -> (usize, usize) {
        let (mut total, mut wanted) = (0, 0);
        for state in &mut self.jobs {
            let available = state.available();
            total += available;
            if state.caller == Caller::Asleep && (available > 0 || state.is_over()) {
                state.caller = Caller::Woken;
                state.bell.notify_one();
            }
            let served_by_caller = matches!(state.caller, Caller::Searching | Caller::Woken);
            wanted += available.saturating_sub(served_by_caller as usize);
        }
        let wake = wanted.saturating_sub(self.searching + self.tokens).min(self.sleeping - self.tokens);
        self.tokens += wake;
        (wake, total)
    }
}
