//! The lane of a rank: the thread that moves messages while others compute.
//!
//! One thread polls the wire. It hands every message to the run that it belongs to, and ends the transfer there, as a participant ends a task: the
//! block goes into its slot, successors are counted down, and what became ready is put on the board. The lane computes nothing and waits for no lock longer than
//! a few instructions, so messages move whatever the other threads do.
//!
//! # Failures
//!
//! The first failure ends the group: a rank that fails, in a run or before one, tells the others by a control message, and from then on every run on every rank ends with that
//! error, those under way and those to come. So ranks need not agree on which of them have noticed it where. A rank that is lost ends the group in the same way. A rank that
//! ends its session says from which run on it takes no part; only these runs fail.
//!
//! # No deadlock
//!
//! Suppose that no rank could go on, though a run is not over. Take the lowest step of the schedule that has not ended, on whatever ranks it belongs to. All steps
//! before it have ended everywhere, so on these ranks it is the head: its dependencies have ended, and the [ledger](crate::budget) admits it. If it is a task, a thread runs it. If it is
//! a transfer, its sender has the block and has sent it, without waiting for the receiver, and its receiver has the memory and has posted the receive. The wire delivers a
//! message that was sent and is expected, and the lane of the receiver ends the step. So the lowest step ends: a contradiction.
//!
//! Ranks that keep to budgets have steps of their own between those of the schedule (`tw_plan::fit_rank`): spills, fetches and loads that run again. The order above is then that of all ranks' steps
//! together: the steps of the schedule, whose order nobody changes, and after each of them what every rank does before its next one. The argument is the same, since a step that only one rank has waits
//! for nothing but earlier steps of that rank.
//!
//! Between schedules ranks exchange blocks and agree about what comes; [`crate::exchange`] argues about the former. In an agreement every rank waits for rank 0, which waits for all others
//! and for nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use tw_ir::error::Blame;
use tw_ir::{Error, FileId, Result, Span};
use tw_wire::{Completion, Control, ControlKind, MAX_CONTROL, Message, Tag, Wire};

use crate::board::JobId;
use crate::cancel::CancelToken;
use crate::exchange::{Exchange, Side};
use crate::job::Job;
use crate::pool::Shared;

/// The longest time between two looks at the runs that have been cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// The longest time that a rank which ends takes to send what it has said.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The thread of a rank that moves messages.
pub(crate) struct Lane {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Inner {
    wire: Arc<dyn Wire>,
    pool: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attached: FxHashMap<u64, Attached>,
    /// Why no run from this one on can go on any more.
    ended: Option<(u64, Error)>,
    is_over: bool,
}

/// Who takes the messages of a run.
#[derive(Clone)]
enum Attached {
    Job { id: JobId, job: Arc<Job> },
    Exchange(Arc<Exchange>),
}

impl State {
    /// Why a run cannot go on.
    fn error_of(&self, run: u64) -> Option<Error> {
        self.ended.as_ref().filter(|(first, _)| *first <= run).map(|(_, error)| error.clone())
    }

    /// No run from this one on goes on. The first error counts.
    fn end_from(&mut self, first: u64, error: &Error) {
        if self.ended.as_ref().is_none_or(|(known, _)| first < *known) {
            self.ended = Some((first, error.clone()));
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of the lane.
    fn serve(&self) {
        let mut completions = Vec::new();
        while !self.lock().is_over {
            self.wire.poll(&mut completions);
            let is_idle = completions.is_empty();
            completions.drain(..).for_each(|completion| self.complete(completion));
            self.end_failed();
            if is_idle {
                self.wire.wait(LOOK);
            }
        }
        // What was said last is still to be sent.
        let end = Instant::now() + LAST_WORDS;
        loop {
            self.wire.poll(&mut completions);
            completions.clear();
            if self.wire.memory().entries == 0 || Instant::now() > end {
                break;
            }
            self.wire.wait(LOOK);
        }
    }

    fn complete(&self, completion: Completion) {
        match completion {
            Completion::Sent { tag, .. } => self.end(tag, Ok(None)),
            Completion::Received { tag, message, .. } => self.end(tag, Ok(Some(message))),
            Completion::Failed { tag, error, .. } => self.end(tag, Err(error)),
            Completion::Control { from, control } => {
                let error = decode(from, &control.content);
                match control.kind {
                    ControlKind::Error => self.end_from(0, &error),
                    // A rank takes part in no run from this one on.
                    ControlKind::Notice => self.end_from(control.run, &error),
                    ControlKind::Heartbeat => {}
                }
            }
            Completion::Lost { error, .. } => self.end_from(0, &error),
            Completion::Offered { .. } => {}
        }
    }

    /// Ends a transfer.
    fn end(&self, tag: Tag, outcome: Result<Option<Message>>) {
        // A run that has been cancelled is not there any more.
        let Some(attached) = self.lock().attached.get(&tag.run).cloned() else { return };
        match attached {
            Attached::Job { id, job } => self.pool.end_transfer(id, job, tag.id, outcome),
            Attached::Exchange(exchange) => exchange.end(tag.id, outcome),
        }
    }

    /// No run from this one on goes on, because of another rank.
    fn end_from(&self, first: u64, error: &Error) {
        let ended: Vec<(u64, Attached)> = {
            let mut state = self.lock();
            state.end_from(first, error);
            let runs: Vec<u64> = state.attached.keys().copied().filter(|&run| run >= first).collect();
            runs.into_iter().filter_map(|run| Some((run, state.attached.remove(&run)?))).collect()
        };
        for (run, attached) in ended {
            self.wire.cancel(run);
            match attached {
                Attached::Job { id, job } => self.pool.abandon(id, job, Some(error.clone())),
                Attached::Exchange(exchange) => exchange.fail(error.clone()),
            }
        }
    }

    /// Ends the group because of an error on this rank, and tells the others, unless it has ended already.
    fn fail(&self, error: &Error) {
        let is_news = {
            let mut state = self.lock();
            let is_news =
                state.error_of(u64::MAX).is_none() || state.ended.as_ref().is_some_and(|(first, _)| *first > 0);
            state.end_from(0, error);
            is_news
        };
        if is_news {
            self.tell(0, ControlKind::Error, error);
        }
    }

    /// Ends runs that have failed or were cancelled here while transfers are under way, and tells the other ranks.
    fn end_failed(&self) {
        let stopped: Vec<(u64, JobId, Arc<Job>)> = {
            let state = self.lock();
            let jobs = state.attached.iter().filter_map(|(&run, attached)| match attached {
                Attached::Job { id, job } if job.should_stop() => Some((run, *id, Arc::clone(job))),
                _ => None,
            });
            jobs.collect()
        };
        // A participant stops the run first, and reports why a moment later.
        let failed = stopped.into_iter().filter_map(|(run, id, job)| {
            let cancelled = || job.is_cancelled().then(Error::cancelled);
            let error = self.pool.failure(id).or_else(cancelled)?;
            self.lock().attached.remove(&run)?;
            Some((run, id, job, error))
        });
        let failed: Vec<(u64, JobId, Arc<Job>, Error)> = failed.collect();
        for (run, id, job, error) in failed {
            self.fail(&error);
            self.wire.cancel(run);
            self.pool.abandon(id, job, None);
        }
    }

    /// The error behind one. What another rank has cancelled fails here as cancelled, and that rank says why a moment later.
    fn cause(&self, error: Error) -> Error {
        const PATIENCE: usize = 50;
        if error.blame() != Blame::Cancelled {
            return error;
        }
        for _ in 0..PATIENCE {
            if let Some(cause) = self.lock().error_of(u64::MAX) {
                return cause;
            }
            std::thread::sleep(LOOK);
        }
        error
    }

    /// Tells the other ranks that a run has failed here, or that this rank takes part in no further one.
    fn tell(&self, run: u64, kind: ControlKind, error: &Error) {
        let content = encode(error);
        for to in (0..self.wire.size()).filter(|&to| to != self.wire.rank()) {
            let control = Control { run, kind, content: content.clone() };
            // A rank that cannot be told is lost, which the wire reports itself.
            let _ = self.wire.control(to, control);
        }
    }
}

impl Lane {
    /// Starts the thread of a rank.
    pub(crate) fn start(wire: Arc<dyn Wire>, pool: Arc<Shared>) -> Result<Lane> {
        let inner = Arc::new(Inner { wire, pool, state: Mutex::default() });
        let serving = Arc::clone(&inner);
        let thread = std::thread::Builder::new().name("tilewright-lane".to_string()).spawn(move || serving.serve());
        let thread = thread.map_err(|error| Error::resource(format!("no thread for messages: {error}")))?;
        Ok(Lane { inner, thread: Mutex::new(Some(thread)) })
    }

    /// Takes part in a run: messages of it go to its job from now on. An error if the group has ended.
    pub(crate) fn attach(&self, run: u64, id: JobId, job: &Arc<Job>) -> Result<()> {
        let mut state = self.inner.lock();
        if let Some(error) = state.error_of(run) {
            drop(state);
            self.inner.wire.cancel(run);
            return Err(error);
        }
        state.attached.insert(run, Attached::Job { id, job: Arc::clone(job) });
        Ok(())
    }

    /// Ends the group because of an error on this rank.
    pub(crate) fn fail(&self, error: &Error) {
        self.inner.fail(error);
    }

    /// What the threads of a run need of the lane.
    pub(crate) fn handle(&self) -> LaneHandle {
        LaneHandle(Arc::clone(&self.inner))
    }

    /// Tells the other ranks that this one takes part in no run from this one on, and ends the thread when it has.
    pub(crate) fn leave(&self, run: u64, error: &Error) {
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // Who hears that this rank leaves before hearing why takes that for the reason.
        let why = self.inner.lock().ended.clone().filter(|(first, _)| *first == 0);
        self.inner.end_from(run, error);
        match why {
            Some((_, error)) => self.inner.tell(0, ControlKind::Error, &error),
            None => self.inner.tell(run, ControlKind::Notice, error),
        }
        self.inner.lock().is_over = true;
        self.inner.wire.wake();
        // The lane runs no code of the user. If it has panicked all the same, its runs have ended.
        let _ = thread.join();
    }

    /// The connection to the other ranks.
    pub(crate) fn wire(&self) -> &dyn Wire {
        self.inner.wire.as_ref()
    }

    /// Exchanges messages with other ranks, as `work` says. Returns when all that this rank has sent has left. A failure ends the group.
    pub(crate) fn exchange<T>(
        &self,
        run: u64,
        cancel: &CancelToken,
        work: impl FnOnce(&Side<'_>) -> Result<T>,
    ) -> Result<T> {
        let shared = Arc::new(Exchange::default());
        {
            let mut state = self.inner.lock();
            if let Some(error) = state.error_of(run) {
                drop(state);
                self.inner.wire.cancel(run);
                return Err(error);
            }
            state.attached.insert(run, Attached::Exchange(Arc::clone(&shared)));
        }
        let side = Side { lane: self, run, shared: &shared, cancel };
        let done = work(&side).and_then(|value| side.settle(0).map(|()| value));
        let (value, failure) = match done {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        if let Some(error) = failure.as_ref().filter(|_| cancel.is_cancelled()) {
            self.fail(error);
        }
        let missing = || Error::internal("an exchange without a value");
        self.handle().detach(run, failure).map_or_else(|| value.ok_or_else(missing), Err)
    }
}

/// A lane, for a run: it may outlive the thread.
#[derive(Clone)]
pub(crate) struct LaneHandle(Arc<Inner>);

impl LaneHandle {
    /// Looks at the runs again: one of them has failed.
    pub(crate) fn wake(&self) {
        self.0.wire.wake();
    }

    /// Lets go of a run that is over: nothing of it stays on the wire. Gives the error that it ends with. If it has failed here, the other ranks are told.
    pub(crate) fn detach(&self, run: u64, failure: Option<Error>) -> Option<Error> {
        let lane = &self.0;
        let was_attached = lane.lock().attached.remove(&run).is_some();
        let failure = failure.map(|error| lane.cause(error));
        if let Some(error) = &failure {
            lane.fail(error);
        }
        lane.wire.cancel(run);
        // The lane has let go of a run that was over here, too: another rank has failed in it.
        failure.or_else(|| if was_attached { None } else { lane.lock().error_of(run) })
    }
}

/// An error as the content of a control message: who must act, where in the user's code, and what it says.
fn encode(error: &Error) -> Vec<u8> {
    let (kind, file, numbers) = match *error.span() {
        Span::None => (0, None, (0, 0)),
        Span::Text { file, start, end } => (1, Some(file), (start, end)),
        Span::Host { file, line, .. } => (2, Some(file), (line, 0)),
    };
    let file = file.map_or("", FileId::name);
    let mut content = vec![error.blame() as u8, kind];
    [numbers.0, numbers.1, file.len() as u32].iter().for_each(|number| content.extend(number.to_le_bytes()));
    content.extend_from_slice(file.as_bytes());
    // What it says, what helps, and its notes, as far as there is room.
    let parts = [error.message(), error.help_text().unwrap_or_default()];
    let parts: Vec<&str> = parts.into_iter().chain(error.notes().iter().map(String::as_str)).collect();
    let text = parts.join(&SEPARATOR.to_string());
    let room = MAX_CONTROL.saturating_sub(content.len());
    let end = (0..=text.len().min(room)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    content.extend_from_slice(&text.as_bytes()[..end]);
    content.truncate(MAX_CONTROL);
    content
}

/// How the note of an error begins that another rank has met.
const COMES_FROM: &str = "the error comes from rank";

/// Between the parts of an error.
const SEPARATOR: char = '\u{1f}';

fn decode(from: u32, content: &[u8]) -> Error {
    let number = |at: usize| {
        content.get(at..at + 4).map_or(0, |bytes| bytes.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b)))
    };
    let (first, second, length) = (number(2), number(6), number(10) as usize);
    let (file, text) = content.get(14..).and_then(|rest| rest.split_at_checked(length)).unwrap_or_default();
    let (file, text) = (String::from_utf8_lossy(file), String::from_utf8_lossy(text));
    let span = match content.get(1) {
        Some(1) => Span::Text { file: FileId::named(&file), start: first, end: second },
        Some(2) => Span::host(&file, first),
        _ => Span::None,
    };
    let blames = [Blame::Source, Blame::Plan, Blame::Data, Blame::Resource, Blame::Io, Blame::Cancelled];
    let blame = blames.into_iter().find(|&blame| Some(&(blame as u8)) == content.first());
    let mut parts = text.split(SEPARATOR);
    let mut error = Error::new(blame.unwrap_or(Blame::Internal), parts.next().unwrap_or_default()).at(&span);
    if let Some(help) = parts.next().filter(|help| !help.is_empty()) {
        error = error.help(help);
    }
    error = parts.fold(error, |error, note| error.note(note));
    // It may come by way of another rank.
    match error.notes().iter().any(|note| note.starts_with(COMES_FROM)) {
        true => error,
        false => error.note(format!("{COMES_FROM} {from}")),
    }
}
