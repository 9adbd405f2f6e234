//! A run shared by threads, except for the state under the lock of the board.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use tw_block::SourceAccess;
use tw_ir::{Error, Result};
use tw_wire::Message;

use crate::bindings::Bindings;
use crate::budget;
use crate::chaos::Chaos;
use crate::delivery::{Deliveries, Outputs};
use crate::execute::{Tally, TaskRunner};
use crate::keep::Keeping;
use crate::lane::LaneHandle;
use crate::options::RunOptions;
use crate::part::Role;
use crate::prepared::{PreparedSchedule, TaskCode};
use crate::rest::Todo;
use crate::slots::{LocalSlots, SharedSlots};
use crate::sync::{AtomicBool, AtomicU32, Mutex};
use crate::transfer::Transfers;

/// The state that all participants of a run share.
pub(crate) struct Job {
    plan: Arc<PreparedSchedule>,
    bindings: Bindings,
    options: RunOptions,
    /// Per step, the number of unfinished predecessors.
    waiting: Vec<AtomicU32>,
    slots: SharedSlots,
    deliveries: Deliveries,
    keeping: Option<Keeping>,
    /// Bytes for running ahead, unless all blocks fit at once.
    surplus: Option<u64>,
    /// Per source, true if it is in memory: loading its blocks costs nothing.
    resident: Vec<bool>,
    /// Set when a task has failed: participants stop at the next task.
    stop: AtomicBool,
    /// The transfers between ranks, in a run of several.
    ranks: Option<Ranked>,
    /// An error of another rank, until the board takes it.
    error: Mutex<Option<Error>>,
}

/// What a run of several ranks has besides.
pub(crate) struct Ranked {
    pub(crate) transfers: Transfers,
    pub(crate) lane: LaneHandle,
}

/// The report of a participant that returns to the board.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) tally: Tally,
    /// The last task, for the ledger of the budget.
    pub(crate) last: u32,
    /// A task that failed, by rank.
    pub(crate) failure: Option<(u32, Error)>,
}

impl Job {
    pub(crate) fn new(
        plan: &Arc<PreparedSchedule>,
        bindings: &Bindings,
        options: &RunOptions,
        surplus: Option<u64>,
        ranks: Option<Ranked>,
    ) -> Result<Job> {
        let n_steps = plan.schedule.n_steps();
        let waiting = (0..n_steps).map(|step| AtomicU32::new(plan.n_dependencies(step))).collect();
        Ok(Job {
            plan: Arc::clone(plan),
            bindings: bindings.clone(),
            options: options.clone(),
            waiting,
            slots: SharedSlots::new(&plan.claims),
            deliveries: Deliveries::new(plan, options)?,
            keeping: options.keep.as_ref().map(|keep| Keeping::new(plan, keep, options.chaos)),
            surplus,
            resident: bindings.sources.iter().map(|source| source.access() == SourceAccess::Memory).collect(),
            stop: AtomicBool::new(false),
            ranks,
            error: Mutex::new(None),
        })
    }

    pub(crate) fn plan(&self) -> &PreparedSchedule {
        &self.plan
    }
    pub(crate) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Bytes that a step takes in main memory: those of the blocks that it makes, and its scratch space. A step that continues a fold, spills, or moves a block
    /// between ranks of one machine makes no block.
    pub(crate) fn new_bytes(&self, step: u32) -> u64 {
        let schedule = &self.plan.schedule;
        match self.plan.rest.as_ref().map_or(Todo::Run, |rest| rest.todo(step)) {
            Todo::Run => {}
            Todo::Skip => return 0,
            Todo::Restore(_) => {
                let workflow = schedule.workflow();
                let blocks = schedule.writes(step as usize).map(|instance| schedule.block_of(instance));
                return blocks.map(|block| workflow.block_bytes(block)).fold(0, u64::saturating_add);
            }
        }
        let Some(task) = schedule.steps()[step as usize].as_task() else {
            let source = schedule.writes(step as usize).next().and_then(|to| {
                let set = schedule.workflow().set_of(schedule.block_of(to));
                self.bindings.origin(self.plan.loaded_from[set]?).map(|source| (source, schedule.block_of(to)))
            });
            if self.plan.is_transfer(step) {
                return self.plan.transfer_bytes(step, &self.resident);
            }
            let fetched = schedule.fetched_bytes(step as usize);
            let scratch = source.filter(|_| fetched > 0);
            let scratch = scratch.map_or(0, |(source, block)| source.scratch(&schedule.workflow().block_box(block)));
            return fetched.saturating_add(scratch);
        };
        match self.plan.code[schedule.workflow().kernel(task)] {
            TaskCode::Load(source) if self.resident.get(source as usize) == Some(&true) => 0,
            _ => {
                let streamed = schedule.replay().streaming_bytes(step as usize);
                let scratch = self.plan.scratch_bytes(task, &self.bindings);
                budget::new_bytes(schedule.workflow(), task).saturating_add(streamed).saturating_add(scratch)
            }
        }
    }

    pub(crate) fn surplus(&self) -> Option<u64> {
        self.surplus
    }

    /// Tells participants to stop at the next task.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(ranks) = &self.ranks {
            ranks.lane.wake();
        }
    }

    /// Ends the run, with an error of another rank if it has not failed here.
    pub(crate) fn fail(&self, error: Option<Error>) {
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = kept.take().or(error);
        drop(kept);
        self.stop();
    }

    /// The error of another rank, for the board.
    pub(crate) fn take_error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// True if the caller has asked the run to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.options.cancel.is_cancelled()
    }

    /// True if no further task is to begin.
    pub(crate) fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.options.cancel.is_cancelled()
    }

    /// Runs a task, then as long as one of its successors has become ready the first of those. The others go to `share`. With a ledger,
    /// and at times with chaos, a single task is run. Tasks left in `ready` afterwards are ready and not taken.
    pub(crate) fn run_from(
        &self,
        first: u32,
        worker: u32,
        ready: &mut Vec<u32>,
        mut share: impl FnMut(&mut Vec<u32>),
    ) -> Report {
        let (plan, bindings, options) = (self.plan.as_ref(), &self.bindings, &self.options);
        let (deliveries, keeping) = (&self.deliveries, self.keeping.as_ref());
        let transfers = self.ranks.as_ref().map(|ranks| &ranks.transfers);
        let tally = Tally::default();
        let mut runner = TaskRunner { plan, bindings, options, deliveries, keeping, worker, tally, transfers };
        let mut slots = &self.slots;
        let mut chaos = options.chaos.map(|seed| Chaos::new(seed, first));
        let mut rank = first;
        loop {
            if let Some(chaos) = &mut chaos {
                chaos.stumble();
            }
            if let Err(error) = runner.run(rank, &mut slots) {
                self.stop();
                return Report { tally: runner.tally, last: rank, failure: Some((rank, error)) };
            }
            if plan.is_transfer(rank) {
                return Report { tally: runner.tally, last: rank, failure: None };
            }
            self.release_successors(rank, ready);
            let alone =
                self.surplus.is_some() || self.ranks.is_some() || chaos.as_mut().is_some_and(|chaos| chaos.coin());
            if alone || ready.is_empty() || self.should_stop() {
                return Report { tally: runner.tally, last: rank, failure: None };
            }
            rank = take_next(ready, chaos.as_mut());
            if !ready.is_empty() {
                share(ready);
            }
        }
    }

    /// Ends a transfer: a block that has come goes into its slot.
    pub(crate) fn end_transfer(&self, number: u32, outcome: Result<Option<Message>>, ready: &mut Vec<u32>) -> Report {
        let plan = self.plan.as_ref();
        let Some(step) = plan.part.as_ref().and_then(|part| part.step_of(number)) else {
            let failure = Some((0, Error::internal(format!("a message of transfer {number}, which does not exist"))));
            return Report { failure, ..Report::default() };
        };
        let (bindings, options) = (&self.bindings, &self.options);
        let deliveries = &self.deliveries;
        let transfers = self.ranks.as_ref().map(|ranks| &ranks.transfers);
        let (keeping, tally) = (None, Tally::default());
        let mut runner = TaskRunner { plan, bindings, options, deliveries, keeping, worker: 0, tally, transfers };
        let ended = outcome.and_then(|message| runner.end_transfer(step, message, &mut &self.slots));
        if let Err(error) = ended {
            self.stop();
            return Report { tally: runner.tally, last: step, failure: Some((step, error)) };
        }
        self.release_successors(step, ready);
        Report { tally: runner.tally, last: step, failure: None }
    }

    /// Lets go of the lane, which then holds nothing of the run. Gives the error that the run ends with.
    pub(crate) fn detach(&self, failure: Option<Error>) -> Option<Error> {
        match &self.ranks {
            Some(Ranked { transfers, lane }) => lane.detach(transfers.run, failure),
            None => failure,
        }
    }

    /// Counts a finished step off and collects those that waited for nothing else.
    fn release_successors(&self, step: u32, ready: &mut Vec<u32>) {
        for &successor in self.plan.schedule.successors(step as usize) {
            // What waits for a block that was sent belongs to the rank that has received it.
            if self.plan.role(successor) == Role::Absent {
                continue;
            }
            // A step with one dependency needs no agreement. For the others, the counter orders the writes of the predecessors before
            // the reads of the step, whichever thread counts last.
            if self.plan.n_dependencies(successor as usize) == 1
                || self.waiting[successor as usize].fetch_sub(1, Ordering::AcqRel) == 1
            {
                ready.push(successor);
            }
        }
    }

    /// True if all steps have run.
    pub(crate) fn is_done(&self, tally: &Tally) -> bool {
        tally.steps == self.plan.n_steps()
    }

    /// The outputs, once the run is over and the other participants have released it.
    pub(crate) fn outputs(self: Arc<Job>, tally: &Tally) -> Result<Outputs> {
        if !self.is_done(tally) {
            let n_steps = self.plan.n_steps();
            return Err(Error::internal(format!("only {} of {n_steps} steps could run", tally.steps)));
        }
        let job = Arc::into_inner(self).ok_or_else(|| Error::internal("a run that is over is still taken part in"))?;
        job.deliveries.collect(&job.plan, &job.bindings, &job.options, &mut &job.slots, job.keeping.as_ref())
    }
}

/// Takes the lowest rank, or with chaos any.
fn take_next(ready: &mut Vec<u32>, chaos: Option<&mut Chaos>) -> u32 {
    let position = match chaos {
        Some(chaos) => chaos.below(ready.len()),
        None => (0..ready.len()).min_by_key(|&k| ready[k]).unwrap_or(0),
    };
    ready.swap_remove(position)
}

/// Runs a whole schedule in its own order on this thread, without locks or counters.
pub(crate) fn run_inline(
    plan: &PreparedSchedule,
    bindings: &Bindings,
    options: &RunOptions,
) -> Result<(Outputs, Tally)> {
    let mut slots = LocalSlots::new(&plan.claims);
    let deliveries = Deliveries::new(plan, options)?;
    let keeping = options.keep.as_ref().map(|keep| Keeping::new(plan, keep, options.chaos));
    let mut runner = TaskRunner {
        plan,
        bindings,
        options,
        deliveries: &deliveries,
        keeping: keeping.as_ref(),
        worker: 0,
        tally: Tally::default(),
        transfers: None,
    };
    for step in 0..plan.schedule.n_steps() as u32 {
        if options.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        runner.run(step, &mut slots)?;
    }
    let tally = runner.tally;
    Ok((deliveries.collect(plan, bindings, options, &mut slots, keeping.as_ref())?, tally))
}
