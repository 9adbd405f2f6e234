//! What is to be done and who is idle: everything the one lock of a pool guards.
//!
//! See [`crate::pool`] for the protocol.

use std::sync::Arc;

use tw_ir::{Blame, Error};

use crate::budget::Ledger;
use crate::chaos::Chaos;
use crate::execute::Tally;
use crate::job::{Job, Report};
use crate::queue::ReadyQueue;
use crate::sync::Condvar;

#[cfg(test)]
#[cfg(not(feature = "model-check"))]
mod model;
#[cfg(test)]
#[cfg(not(feature = "model-check"))]
mod simulation;

/// Names a job on the board.
pub(crate) type JobId = u64;

/// The state of the thread that called `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Running tasks.
    Busy,
    /// Out of work, awake, and about to look at the board again.
    Searching,
    /// Asleep until another thread wakes it.
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
    /// Transfers between ranks that have begun and not ended.
    pending: usize,
    tally: Tally,
    failure: Option<(u32, Error)>,
    caller: Caller,
    /// Wakes the caller.
    bell: Arc<Condvar>,
}

/// The jobs of a pool, oldest first, and its idle workers.
#[derive(Default)]
pub(crate) struct Board {
    jobs: Vec<JobState>,
    next_id: JobId,
    /// Workers that are awake, without work, and about to look here again.
    searching: usize,
    /// Workers that are asleep, including those for whom there is a token.
    sleeping: usize,
    /// Permits to wake up, never more than `sleeping`.
    tokens: usize,
    shutdown: bool,
}

impl JobState {
    /// Ready tasks that could begin now. At most this; with a ledger only the first is looked at.
    fn available(&self) -> usize {
        match (&self.ledger, self.ready.peek()) {
            (Some(ledger), Some(rank)) if !ledger.admits(rank, self.job.new_bytes(rank)) => 0,
            _ => self.ready.len(),
        }
    }

    /// Nothing runs, nothing is under way between ranks and nothing is ready: no task will ever become ready again.
    fn is_over(&self) -> bool {
        self.active == 0 && self.pending == 0 && self.ready.len() == 0
    }

    fn begin(&mut self) -> Option<u32> {
        if self.failure.is_some() || self.job.options().cancel.is_cancelled() {
            self.ready.clear();
            return None;
        }
        let (job, ledger) = (&self.job, &mut self.ledger);
        let rank = self.ready.pop_if(|rank| match ledger {
            Some(ledger) => ledger.admit(rank, job.new_bytes(rank)),
            None => true,
        })?;
        self.active += 1;
        // The transfer may end before the participant that begins it is back.
        self.pending += self.job.plan().is_transfer(rank) as usize;
        Some(rank)
    }

    fn push(&mut self, ready: &mut Vec<u32>) {
        ready.drain(..).for_each(|rank| self.ready.push(rank));
    }

    fn settle(&mut self, report: Report, ready: &mut Vec<u32>) {
        self.active -= 1;
        match (self.job.plan().is_transfer(report.last), &report.failure) {
            (true, None) => self.tally.add(&report.tally),
            (is_transfer, _) => self.end(report.last, &report.tally, is_transfer),
        }
        self.push(ready);
        self.fail(report.failure);
    }

    /// A step has ended.
    fn end(&mut self, step: u32, tally: &Tally, is_transfer: bool) {
        // Transfers of a run that was abandoned do not count any more.
        self.pending = self.pending.saturating_sub(is_transfer as usize);
        self.tally.add(tally);
        if let Some(ledger) = &mut self.ledger {
            ledger.finish(step);
        }
    }

    /// Keeps the failure of the lowest step.
    fn fail(&mut self, failure: Option<(u32, Error)>) {
        if let Some((rank, error)) = failure
            && self.failure.as_ref().is_none_or(|(lowest, known)| {
                // What another rank has cancelled says less than why it has.
                let (is_less, was_less) = (error.blame() == Blame::Cancelled, known.blame() == Blame::Cancelled);
                if is_less == was_less { rank < *lowest } else { was_less }
            })
        {
            self.failure = Some((rank, error));
        }
        if self.failure.is_some() {
            self.ready.clear();
        }
    }
}

impl Board {
    /// A name for a new run.
    pub(crate) fn next_id(&mut self) -> JobId {
        self.next_id += 1;
        self.next_id
    }

    /// Puts a run on the board.
    pub(crate) fn add(&mut self, id: JobId, job: &Arc<Job>) {
        let (plan, options) = (job.plan(), job.options());
        self.jobs.push(JobState {
            id,
            job: Arc::clone(job),
            ready: ReadyQueue::new(Arc::clone(&plan.initial), options.chaos.map(|seed| Chaos::new(seed, u32::MAX))),
            ledger: job.surplus().map(|surplus| Ledger::for_plan(surplus, plan)),
            active: 0,
            pending: 0,
            tally: Tally::default(),
            failure: None,
            caller: Caller::Busy,
            bell: Arc::default(),
        });
        self.abandon(id);
    }

    /// Removes a finished run from the board. Returns its tally, and the reason if it stopped early.
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

    /// A transfer has ended, in the hands of no participant.
    pub(crate) fn end_transfer(&mut self, id: JobId, report: Report, ready: &mut Vec<u32>) {
        if let Some(state) = self.job(id) {
            state.end(report.last, &report.tally, true);
            state.push(ready);
            state.fail(report.failure);
        }
    }

    /// No transfer of a job will end any more if it has failed: here, or with an error of another rank.
    pub(crate) fn abandon(&mut self, id: JobId) {
        if let Some(state) = self.job(id)
            && state.job.should_stop()
        {
            state.pending = 0;
            state.ready.clear();
            // An error here says more than one that came of it elsewhere.
            let error = state.job.take_error().map(|error| (u32::MAX, error));
            state.fail(error);
        }
    }

    /// Why a job has failed.
    pub(crate) fn failure(&self, id: JobId) -> Option<Error> {
        let state = self.jobs.iter().find(|state| state.id == id)?;
        state.failure.as_ref().map(|(_, error)| error.clone())
    }

    /// True if nothing will happen to a job any more.
    pub(crate) fn is_over(&self, id: JobId) -> bool {
        self.jobs.iter().find(|state| state.id == id).is_none_or(JobState::is_over)
    }

    /// A worker has found nothing to do and stays awake for a moment.
    pub(crate) fn worker_searches(&mut self) {
        self.searching += 1;
    }

    /// A searching worker looks again. False if there is still nothing: then it counts as asleep, and has to wait.
    pub(crate) fn worker_stays(&mut self) -> bool {
        self.searching -= 1;
        let stays = self.shutdown || self.jobs.iter().any(|state| state.available() > 0);
        self.sleeping += !stays as usize;
        stays
    }

    /// A sleeping worker asks whether it is woken.
    pub(crate) fn worker_wakes(&mut self) -> bool {
        let woken = self.tokens > 0 || self.shutdown;
        if woken {
            self.tokens = self.tokens.saturating_sub(1);
            self.sleeping -= 1;
        }
        woken
    }

    /// The caller of a job has found nothing to do in it and stays awake for a moment.
    pub(crate) fn caller_searches(&mut self, id: JobId) {
        if let Some(state) = self.job(id) {
            state.caller = Caller::Searching;
        }
    }

    /// A searching caller looks again. The bell to wait at, if there is still nothing.
    pub(crate) fn caller_stays(&mut self, id: JobId) -> Option<Arc<Condvar>> {
        let state = self.job(id)?;
        let stays = state.available() > 0 || state.is_over();
        state.caller = if stays { Caller::Busy } else { Caller::Asleep };
        (!stays).then(|| Arc::clone(&state.bell))
    }

    /// A sleeping caller asks whether it is woken.
    pub(crate) fn caller_wakes(&mut self, id: JobId) -> bool {
        self.job(id).is_none_or(|state| {
            let woken = state.caller == Caller::Woken;
            if woken {
                state.caller = Caller::Busy;
            }
            woken
        })
    }

    /// Tells the workers to go.
    pub(crate) fn shut_down(&mut self) {
        self.shutdown = true;
    }

    /// True if workers are to go.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.shutdown
    }

    /// Restores the invariant before the lock is released: each available task has an awake thread that will take it, or no thread is asleep.
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
