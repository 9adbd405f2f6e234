//! Keeping blocks while a schedule runs, so that a later run of it need not make them again.
//!
//! # What is kept
//!
//! Blocks of results are kept when they are complete: the caller would write them at the end anyway. Any other block is kept when making it again would cost more than
//! [`WORTH`] times what writing it costs. The price of a block is the time of its task and its share of the prices of what the task has read, each divided among
//! its readers; what is kept costs nothing any more. So every second of work enters the price of one block at a time, and writing takes at most one part in [`WORTH`] of the time of all
//! tasks, whatever the schedule looks like. A fold raises the price of the block that it adds to: of a long chain, what it has become is kept from time to time, each in place of the one before.
//!
//! # What is let go
//!
//! A step is *secured* when no later run has to repeat it: everything that it has written is kept, or has only readers that are secured. A block that is kept and whose readers are all
//! secured is useless, and gives back its room. Blocks of results stay.
//!
//! # What a crash leaves
//!
//! News are recorded in batches, by time, each time in this order: the blocks are in the file; a record names them, and those that have become useless; only then these are dropped, and the
//! file gives their room to others only after one more record ([`SpillFile::reuse`]). So a later run finds each block that the last record leaves to it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cranelift_entity::EntityRef;
use tw_block::{Block, SpillFile, SpilledBlock};
use tw_ir::Result;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Digest, InstanceId, Schedule};
use tw_ir::workflow::{BlockId, TaskId};

use crate::chaos::Chaos;
use crate::prepared::PreparedSchedule;
use crate::rest::{KeptTask, Todo};

/// A block is kept if making it again costs so many times more than writing it: writing takes at most 3 % of the time of tasks.
const WORTH: f64 = 34.0;

/// Seconds that writing a block takes however small it is.
const PER_BLOCK: f64 = 20e-6;

/// Seconds for each byte, before any was written.
const PER_BYTE: f64 = 1e-9;

/// News wait at most about so long for a record.
const BETWEEN_RECORDS: Duration = Duration::from_millis(100);

/// Remembers what was kept.
pub trait Keeper: Send + Sync {
    /// Tasks of a schedule with these bits that need not run again, and tasks whose blocks nobody needs any more.
    fn record(&self, bits: Digest, kept: &[KeptTask], useless: &[TaskId]) -> Result<()>;
}

/// Where a run keeps blocks.
#[derive(Clone)]
pub struct Keep {
    /// The file, which outlives the process.
    pub file: Arc<SpillFile>,
    /// What remembers.
    pub keeper: Arc<dyn Keeper>,
    /// Per sink, true if a later run finds the blocks that were written to it.
    pub sinks: Vec<bool>,
}

impl fmt::Debug for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keep").field("file", &self.file).field("sinks", &self.sinks).finish_non_exhaustive()
    }
}

/// What a run has kept so far.
pub(crate) struct Keeping {
    keep: Keep,
    schedule: Arc<Schedule>,
    /// Set when the results of the run are known.
    has_ended: AtomicBool,
    chaos: bool,
    /// The last steps that write blocks of results.
    results: HashMap<BlockId, u32>,
    state: Mutex<State>,
}

struct State {
    /// Per instance, the seconds that it would take to make it again.
    price: Vec<f64>,
    /// Per instance, its readers that are not secured, and one more for a result.
    open: Vec<u32>,
    /// Per step.
    is_secured: Vec<bool>,
    /// Per instance, the last step that has written it and was kept.
    kept_at: Vec<Option<u32>>,
    /// What was kept, by step.
    kept: HashMap<u32, KeptTask>,
    writers: Vec<Vec<u32>>,
    news: Vec<KeptTask>,
    useless: Vec<KeptTask>,
    recorded: Instant,
    /// Seconds for each byte, lately.
    per_byte: f64,
    chaos: Option<Chaos>,
}

impl Keeping {
    pub(crate) fn new(plan: &PreparedSchedule, keep: &Keep, chaos: Option<u64>) -> Keeping {
        let schedule = &plan.schedule;
        let n_instances = schedule.n_instances();
        let mut state = State {
            price: vec![0.0; n_instances],
            open: vec![0; n_instances],
            is_secured: vec![false; schedule.n_steps()],
            kept_at: vec![None; n_instances],
            kept: HashMap::new(),
            writers: vec![Vec::new(); n_instances],
            news: Vec::new(),
            useless: Vec::new(),
            recorded: Instant::now(),
            per_byte: PER_BYTE,
            chaos: chaos.map(|seed| Chaos::new(seed, u32::MAX - 1)),
        };
        let mut results = HashMap::new();
        for instance in schedule.results() {
            state.open[instance.index()] = 1;
            results.insert(schedule.block_of(instance), u32::MAX);
        }
        for step in 0..schedule.n_steps() {
            if let Some(task) = schedule.steps()[step].as_task() {
                for block in schedule.workflow().outputs(task) {
                    results.entry(*block).and_modify(|last| *last = step as u32);
                }
            }
            let todo = plan.rest.as_ref().map_or(Todo::Run, |rest| rest.todo(step as u32));
            if todo != Todo::Skip {
                schedule.writes(step).for_each(|instance| state.writers[instance.index()].push(step as u32));
            }
            match todo {
                Todo::Run => {
                    schedule.reads(step).flatten().for_each(|instance| state.open[instance.index()] += 1);
                }
                Todo::Skip => state.is_secured[step] = true,
                Todo::Restore(k) => {
                    state.is_secured[step] = true;
                    schedule.writes(step).for_each(|instance| state.kept_at[instance.index()] = Some(step as u32));
                    if let Some(rest) = &plan.rest {
                        state.kept.insert(step as u32, rest.kept(k).clone());
                    }
                }
            }
        }
        if let Some(rest) = &plan.rest {
            let gone = |task| KeptTask { task, blocks: Vec::new() };
            state.useless.extend(rest.useless().map(gone));
        }
        Keeping {
            keep: keep.clone(),
            schedule: Arc::clone(schedule),
            has_ended: AtomicBool::new(false),
            chaos: chaos.is_some(),
            results,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is in the file is known as a whole or not at all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task has run for a time, and these are its outputs now. They are kept if that is worth it.
    pub(crate) fn after_task(
        &self,
        plan: &PreparedSchedule,
        (step, task): (u32, TaskId),
        took: Duration,
        outputs: &[&Block],
    ) -> Result<()> {
        let schedule = &plan.schedule;
        let workflow = schedule.workflow();
        let mut state = self.lock();
        let mut price = took.as_secs_f64();
        for instance in schedule.reads(step as usize).flatten() {
            price += state.price[instance.index()] / f64::from(schedule.uses(instance).max(1));
        }
        let n_outputs = outputs.len().max(1) as f64;
        let mut total = 0.0;
        for instance in schedule.writes(step as usize) {
            state.price[instance.index()] += price / n_outputs;
            total += state.price[instance.index()];
        }
        // Loads find their blocks where they are.
        if matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Load { .. }) || outputs.is_empty() {
            return Ok(());
        }
        let is_result = |block: &BlockId| self.results.get(block) == Some(&step);
        let bytes: u64 = outputs.iter().map(|block| block.n_bytes()).sum();
        let writing = outputs.len() as f64 * PER_BLOCK + bytes as f64 * state.per_byte;
        let by_luck = state.chaos.as_mut().is_some_and(Chaos::coin);
        if !workflow.outputs(task).iter().any(is_result) && total < WORTH * writing && !by_luck {
            return Ok(());
        }
        drop(state);
        let start = Instant::now();
        let blocks: Vec<Arc<SpilledBlock>> =
            outputs.iter().map(|block| self.keep.file.write(block).map(Arc::new)).collect::<Result<_>>()?;
        let took = start.elapsed().as_secs_f64();
        let mut state = self.lock();
        if bytes > 1 << 16 {
            state.per_byte = (3.0 * state.per_byte + took / bytes as f64) / 4.0;
        }
        let kept = KeptTask { task, blocks };
        state.news.push(kept.clone());
        state.keeps(schedule, step, kept);
        self.record_if_due(schedule, state)
    }

    /// A block was copied to another memory, and may be the only one before long.
    pub(crate) fn after_move(&self, plan: &PreparedSchedule, from: InstanceId, to: InstanceId) {
        let mut state = self.lock();
        let price = state.price[from.index()] / f64::from(plan.schedule.uses(from).max(1));
        state.price[to.index()] += price;
    }

    /// A block was stored. Nothing is to be done if a later run does not find it in the sink.
    pub(crate) fn after_store(&self, plan: &PreparedSchedule, (step, task): (u32, TaskId), sink: u32) -> Result<()> {
        if !self.keep.sinks.get(sink as usize).copied().unwrap_or(false) {
            return Ok(());
        }
        let mut state = self.lock();
        state.news.push(KeptTask { task, blocks: Vec::new() });
        state.secure(&plan.schedule, vec![step]);
        self.record_if_due(&plan.schedule, state)
    }

    fn record_if_due(&self, schedule: &Schedule, mut state: MutexGuard<'_, State>) -> Result<()> {
        let by_luck = state.chaos.as_mut().is_some_and(Chaos::coin);
        let is_due = if self.chaos { by_luck } else { state.recorded.elapsed() >= BETWEEN_RECORDS };
        if is_due { self.record(schedule, &mut state) } else { Ok(()) }
    }

    fn record(&self, schedule: &Schedule, state: &mut State) -> Result<()> {
        if state.news.is_empty() && state.useless.is_empty() {
            return Ok(());
        }
        let useless: Vec<TaskId> = state.useless.iter().map(|kept| kept.task).collect();
        self.keep.keeper.record(schedule.bits(), &state.news, &useless)?;
        state.news.clear();
        state.useless.clear();
        state.recorded = Instant::now();
        Ok(())
    }

    /// The run has ended well. Gives the blocks of results in the file, result by result.
    pub(crate) fn results(&self, plan: &PreparedSchedule) -> Vec<Option<Arc<SpilledBlock>>> {
        self.has_ended.store(true, Ordering::Relaxed);
        let (schedule, state) = (&plan.schedule, self.lock());
        let found = |number: usize, block: BlockId| {
            if let Some(block) = plan.rest.as_ref().and_then(|rest| rest.result(number)) {
                return Some(Arc::clone(block));
            }
            let kept = state.kept.get(self.results.get(&block)?)?;
            let position = schedule.workflow().outputs(kept.task).iter().position(|output| *output == block)?;
            kept.blocks.get(position).cloned()
        };
        schedule.results().enumerate().map(|(number, instance)| found(number, schedule.block_of(instance))).collect()
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        // The owner of a run that has ended records its results. Sinks are not committed for a while.
        if !*self.has_ended.get_mut() || self.keep.sinks.iter().any(|&keeps| keeps) {
            // What cannot be recorded is made again.
            let _ = self.record(&self.schedule, &mut self.lock());
        }
    }
}

impl State {
    /// The outputs of a step are in the file.
    fn keeps(&mut self, schedule: &Schedule, step: u32, kept: KeptTask) {
        let mut secured = vec![step];
        for instance in schedule.writes(step as usize) {
            self.price[instance.index()] = 0.0;
            if let Some(before) = self.kept_at[instance.index()].replace(step)
                && before != step
            {
                self.drop_kept(before);
            }
            // Steps of a chain are secured in their order, so that those before are secured from some step on backwards.
            let earlier = self.writers[instance.index()].iter().rev().filter(|&&writer| writer < step);
            secured.extend(earlier.take_while(|&&writer| !self.is_secured[writer as usize]));
        }
        self.kept.insert(step, kept);
        self.secure(schedule, secured);
    }

    /// Secures steps, as far as they can be, and all that follows from that.
    fn secure(&mut self, schedule: &Schedule, mut steps: Vec<u32>) {
        while let Some(step) = steps.pop() {
            let is_safe = |instance: InstanceId| {
                self.open[instance.index()] == 0 || self.kept_at[instance.index()].is_some_and(|kept| kept >= step)
            };
            if self.is_secured[step as usize] || !schedule.writes(step as usize).all(is_safe) {
                continue;
            }
            self.is_secured[step as usize] = true;
            for instance in schedule.reads(step as usize).flatten() {
                let open = &mut self.open[instance.index()];
                *open = open.saturating_sub(1);
                if *open == 0 {
                    if let Some(kept) = self.kept_at[instance.index()] {
                        self.drop_kept_if_closed(schedule, kept);
                    }
                    steps.extend(&self.writers[instance.index()]);
                }
            }
        }
    }

    /// Drops what a step has kept if none of its outputs is needed.
    fn drop_kept_if_closed(&mut self, schedule: &Schedule, step: u32) {
        if schedule.writes(step as usize).all(|instance| self.open[instance.index()] == 0) {
            self.drop_kept(step);
        }
    }

    fn drop_kept(&mut self, step: u32) {
        let Some(kept) = self.kept.remove(&step) else { return };
        let is_same = |news: &KeptTask| match (news.blocks.first(), kept.blocks.first()) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        match self.news.iter().position(is_same) {
            // Nobody has been told of it.
            Some(position) => drop(self.news.swap_remove(position)),
            None => self.useless.push(kept),
        }
    }
}
