//! How a segment gets its memory: its schedule runs unchanged, or is fitted into the free part of the budget.
//!
//! A segment whose peak fits beside everything that is held runs as it was planned. Otherwise room is made and the schedule is changed, never the bits:
//!
//! 1. Tensors that the session holds for later segments or for the user are spilled, the oldest first and operands of this segment last, until half of the
//!    budget is free, or as much as the segment could use.
//! 2. [`tw_plan::fit`] adds moves to the schedule, so that its peak does not exceed the free memory.
//!
//! One of several ranks does the same with its part of the schedule ([`tw_plan::fit_rank`]); the parts of the others stay as they are.
//!
//! Only a budget below the largest single task is refused ([`Need::grant`]), and one below an array that the user wants in memory.
//!
//! Several runs share a budget ([`Promises`]): those of one session, and those of all sessions without a budget of their own ([`crate::pool`]). A segment is promised its peak and what it may run ahead by before it begins, and gives the
//! promise back when it ends. A segment that does not fit beside the promises of others waits until one of them ends. Nothing waits forever: a segment that runs
//! waits for no other, since between its beginning and its end it asks for nothing. The exception is code of the user, which may start a run
//! inside of a segment and wait for it: while such a segment runs, others that do not fit are refused instead. `crates/tw-run/src/board/simulation.rs` simulates runs that share
//! a budget so, down to moves and ledgers.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tw_block::{SourceAccess, SpillFile};
use tw_ir::BoxRegion;
use tw_ir::error::{Blame, Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{KernelEntry, OutputDecl, Workflow};
use tw_plan::{Fitted, IoMemory, fit, fit_rank, least_bytes, least_bytes_of_rank};
use tw_run::{CancelToken, Freed, Pins, Prepared, TensorHandle, run_ahead};

use crate::bindings::Inputs;
use crate::budget::{Need, Rest, refused_array};
use crate::control::Place;
use crate::control::segment::SegmentKey;
use crate::peak::{self, Peak};
use crate::results::Want;
use crate::session::lock;
use crate::units;

/// Fitted schedules kept.
const CACHE_LIMIT: usize = 64;

/// Computed tensors that a session can spill, oldest first. Those that are gone are taken out from time to time.
#[derive(Default)]
pub(crate) struct Spillable(Mutex<Vec<Weak<TensorHandle>>>);

impl Spillable {
    /// Makes a tensor known.
    pub(crate) fn add(&self, handle: &Arc<TensorHandle>) {
        let mut handles = lock(&self.0);
        if handles.len() == handles.capacity() {
            handles.retain(|handle| handle.strong_count() > 0);
        }
        handles.push(Arc::downgrade(handle));
    }

    /// Spills tensors until so many bytes are free, or nothing is left to spill. Operands go last, since the segment is about to read them.
    pub(crate) fn spill(&self, file: &Arc<SpillFile>, wanted: u64, operands: &Inputs) -> Result<Freed> {
        let (later, sooner) = self.operands_and_others(operands);
        let mut freed = Freed::default();
        for handle in sooner.iter().chain(&later) {
            if freed.bytes >= wanted {
                break;
            }
            freed += handle.spill(file, wanted - freed.bytes)?;
        }
        Ok(freed)
    }
}

impl Spillable {
    /// Keeps operands of a segment where they are until the segment ends: it was promised no memory for reading them from disk.
    pub(crate) fn pin(&self, operands: &Inputs) -> Vec<Pins> {
        self.operands_and_others(operands).0.iter().map(|handle| handle.pin()).collect()
    }

    fn operands_and_others(&self, operands: &Inputs) -> (Vec<Arc<TensorHandle>>, Vec<Arc<TensorHandle>>) {
        let handles: Vec<Arc<TensorHandle>> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let operands: HashSet<*const ()> = operands.values().map(|source| Arc::as_ptr(source).cast()).collect();
        handles.into_iter().partition(|handle| operands.contains(&Arc::as_ptr(handle).cast()))
    }
}

/// The memory that the running segments were promised.
#[derive(Default)]
pub(crate) struct Promises {
    now: Mutex<Promised>,
    ended: Condvar,
}

#[derive(Default)]
struct Promised {
    bytes: u64,
    segments: usize,
    /// Segments that run code of the user.
    foreign: usize,
}

/// One segment's promise, as long as it runs.
pub(crate) struct Promise<'a> {
    promises: &'a Promises,
    bytes: u64,
    is_foreign: bool,
}

impl Promises {
    /// Tells the bytes that segments that run now were promised. No promise is made or given back meanwhile.
    pub(crate) fn tell(&self, tell: impl FnOnce(u64)) {
        tell(lock(&self.now).bytes);
    }

    /// Asks with `grant`, which is given the bytes that others were promised and gives the bytes that it takes, until they suffice or nobody is left
    /// to wait for.
    pub(crate) fn promise<T>(
        &self,
        is_foreign: bool,
        cancel: &CancelToken,
        mut grant: impl FnMut(u64) -> Result<(u64, T)>,
    ) -> Result<(Promise<'_>, T)> {
        let mut now = lock(&self.now);
        let (bytes, granted) = loop {
            match grant(now.bytes) {
                Ok(granted) => break granted,
                Err(error) if error.blame() != Blame::Resource || now.segments == 0 || now.foreign > 0 => {
                    return Err(error);
                }
                Err(_) if cancel.is_cancelled() => return Err(Error::cancelled()),
                // A run may be cancelled while it waits.
                Err(_) => {
                    let waited = self.ended.wait_timeout(now, Duration::from_millis(50));
                    now = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        };
        now.bytes = now.bytes.saturating_add(bytes);
        now.segments += 1;
        now.foreign += usize::from(is_foreign);
        Ok((Promise { promises: self, bytes, is_foreign }, granted))
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        let mut now = lock(&self.promises.now);
        now.bytes -= self.bytes;
        now.segments -= 1;
        now.foreign -= usize::from(self.is_foreign);
        drop(now);
        self.promises.ended.notify_all();
    }
}

/// True if tasks run code of the user, which may start runs of its own.
pub(crate) fn runs_foreign_code(workflow: &Workflow, inputs: &Inputs) -> bool {
    let is_foreign = |entry: &KernelEntry| match &entry.kernel {
        Kernel::Call(function) => !function.0.is_lasting() || function.0.reads_input(),
        _ => false,
    };
    workflow.kernels.values().any(is_foreign) || inputs.values().any(|source| source.access() == SourceAccess::Foreign)
}

/// Schedules with moves, by segment, budget and what is in memory.
#[derive(Default)]
pub(crate) struct FittedCache(Mutex<FxHashMap<(SegmentKey, u64, IoMemory), Ready>>);

/// A segment that is ready to run within a budget.
#[derive(Clone)]
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    /// The worst moment of the schedule.
    pub(crate) peak: u64,
}

/// The memory that a segment may use.
pub(crate) struct Grant {
    pub(crate) ready: Ready,
    /// Bytes beyond the peak, for running ahead.
    pub(crate) ahead: u64,
    /// True if the schedule was changed to fit.
    pub(crate) is_fitted: bool,
}

/// What decides about memory, from a session.
pub(crate) struct Room<'a> {
    pub(crate) budget: u64,
    /// The rank whose memory this is, if a schedule is for several.
    pub(crate) rank: Option<u32>,
    /// Bytes that blocks hold now, or that others were promised.
    pub(crate) held: &'a dyn Fn() -> u64,
    pub(crate) threads: usize,
    pub(crate) spill: &'a Arc<SpillFile>,
    pub(crate) spillable: &'a Spillable,
    /// Bytes of tensors between segments that were written to disk to make room, also by attempts that were refused.
    pub(crate) spilled: &'a Cell<u64>,
    pub(crate) cache: &'a FittedCache,
}

/// A segment that asks for memory.
pub(crate) struct Asking<'a> {
    pub(crate) key: &'a SegmentKey,
    pub(crate) prepared: &'a Prepared,
    pub(crate) inputs: &'a Inputs,
    pub(crate) wants: &'a [Want],
    pub(crate) place: Place,
}

impl Room<'_> {
    /// Grants a segment its memory; an error that names a budget that works if there is none.
    pub(crate) fn grant(&self, asking: &Asking<'_>) -> Result<Grant> {
        let schedule = asking.prepared.schedule();
        let mut io = io_of(schedule.workflow(), asking.inputs);
        let peak = peak::replay_on(schedule, &io, self.rank);
        let as_it_is = |ahead: u64| Grant {
            ready: Ready { prepared: asking.prepared.clone(), peak: peak.bytes },
            ahead,
            is_fitted: false,
        };
        // Other threads let go of results meanwhile, so what is held is asked once for each decision.
        let held = (self.held)();
        if let Some(ahead) = self.free(held).checked_sub(peak.bytes) {
            return Ok(as_it_is(ahead));
        }
        // A plan for several workers that this process runs alone has their moves.
        if schedule.placement().is_some() && self.rank.is_none() {
            return Err(self.refusal(schedule, &peak, (held, 0), asking.place));
        }
        let least_bytes = |io: &IoMemory| match self.rank {
            Some(rank) => least_bytes_of_rank(schedule, rank, io),
            None => least_bytes(schedule, io),
        };
        let (mut least, mut task) = least_bytes(&io);
        let arrays = array_bytes(schedule.workflow(), asking.wants, self.rank);
        if arrays > self.budget {
            let workflow = schedule.workflow();
            let largest = workflow.outputs.iter().max_by_key(|output| whole_bytes(workflow, output));
            let at = largest.map(|output| &workflow.statements[workflow.sets[output.set].statement].span);
            return Err(refused_array(self.budget, arrays, arrays.max(least), at));
        }
        let mut held = held;
        // Spilled operands have to come back, so that the largest task may have grown after the first time.
        for is_first in [true, false] {
            let wanted = if is_first { wish(self.budget, peak.bytes, least) } else { least };
            let missing = wanted.saturating_sub(self.free(held));
            if missing == 0 {
                break;
            }
            self.make_room(missing, asking)?;
            io = io_of(schedule.workflow(), asking.inputs);
            (least, task) = least_bytes(&io);
            held = (self.held)();
        }
        let free = self.free(held);
        if free < least {
            let during = task.map(|task| schedule.workflow().statement(task));
            let peak = Peak { bytes: least, during, ..Peak::default() };
            return Err(self.refusal(schedule, &peak, (held, least), asking.place));
        }
        let ready = self.fitted(asking, fitted_bytes(schedule, &io, (free, least), self.threads), io)?;
        Ok(Grant { ahead: free.saturating_sub(ready.peak), ready, is_fitted: true })
    }

    fn make_room(&self, bytes: u64, asking: &Asking<'_>) -> Result<()> {
        let freed = self.spillable.spill(self.spill, bytes, asking.inputs)?;
        self.spilled.set(self.spilled.get() + freed.written);
        Ok(())
    }

    /// What is free where so many bytes are held.
    fn free(&self, held: u64) -> u64 {
        self.budget.saturating_sub(held)
    }

    fn fitted(&self, asking: &Asking<'_>, bytes: u64, io: IoMemory) -> Result<Ready> {
        let schedule = asking.prepared.schedule();
        let key = (asking.key.clone(), bytes, io);
        if let Some(ready) = lock(&self.cache.0).get(&key) {
            return Ok(ready.clone());
        }
        let fitted = match self.rank {
            Some(rank) => fit_rank(schedule, rank, bytes, &key.2)?,
            None => fit(schedule, bytes, &key.2)?,
        };
        let fitted =
            fitted.ok_or_else(|| Error::internal("a segment does not fit into what its largest task needs"))?;
        let peak = peak::replay_on(&fitted.schedule, &key.2, self.rank).bytes;
        let spilled = peak::bytes_on_disk(&fitted.schedule);
        if let Some(capacity) = self.spill.capacity()
            && spilled > capacity
        {
            let (needed, left) = (units::bytes(spilled), units::bytes(capacity));
            let directory = self.spill.directory().display();
            let text = format!("{needed} of blocks would be spilled to {directory}, which has room for {left}");
            return Err(Error::resource(text).help("choose another spill directory, or give a larger memory budget"));
        }
        let prepared = asking.prepared.with_schedule(Arc::new(fitted.schedule))?;
        let ready = Ready { prepared, peak };
        if asking.key.is_lasting() {
            let mut cache = lock(&self.cache.0);
            if cache.len() >= CACHE_LIMIT {
                cache.clear();
            }
            cache.insert(key, ready.clone());
        }
        Ok(ready)
    }

    /// The error for a segment that needs the bytes of a peak beside what is held, and whose arrays need a budget of `arrays`.
    fn refusal(&self, schedule: &Schedule, peak: &Peak, (held, arrays): (u64, u64), place: Place) -> Error {
        let needed = held.saturating_add(peak.bytes);
        let at = peak.during.map(|statement| &schedule.workflow().statements[statement].span);
        let rest = match place {
            Place::Last => Rest::Enough(needed.max(arrays)),
            Place::Before => Rest::Unknown,
        };
        match (Need { bytes: needed, held, at, rest }).grant(self.budget) {
            Err(error) => match self.rank {
                Some(rank) => error.note(format!("rank {rank} needs them for its part of the plan")),
                None => error,
            },
            Ok(_) => Error::internal("a budget was refused that is enough"),
        }
    }
}

/// Bytes of an output.
fn whole_bytes(workflow: &Workflow, output: &OutputDecl) -> u64 {
    workflow.sets[output.set].array_bytes()
}

/// Bytes of the outputs that are wanted as arrays here.
fn array_bytes(workflow: &Workflow, wants: &[Want], rank: Option<u32>) -> u64 {
    let is_here = |on: Option<u32>| rank.is_none() || on.is_none() || on == rank;
    let is_array = |want: &Want| matches!(want, Want::Array { on, .. } if is_here(*on));
    let wanted = workflow.outputs.iter().zip(wants).filter(|(_, want)| is_array(want));
    wanted.fold(0, |sum: u64, (output, _)| sum.saturating_add(whole_bytes(workflow, output)))
}

/// What loads and stores of a segment take of main memory.
fn io_of(workflow: &Workflow, inputs: &Inputs) -> IoMemory {
    let is_resident =
        |name: &str, region: &BoxRegion| inputs.get(name).is_some_and(|source| source.is_resident(region));
    peak::io_memory(workflow, &is_resident, &|name, region| scratch_of_load(inputs, name, region))
}

/// The peak of a schedule, with the scratch space of its loads and stores; on one rank if one is given.
pub(crate) fn planned_peak(schedule: &Schedule, inputs: &Inputs, rank: Option<u32>) -> u64 {
    let workflow = schedule.workflow();
    if rank.is_some() {
        return peak::replay_on(schedule, &io_of(workflow, inputs), rank).bytes;
    }
    if workflow.sinks.is_empty() && inputs.values().all(|source| source.access() == SourceAccess::Memory) {
        return schedule.peak_bytes();
    }
    peak::replay(schedule, &io_of(workflow, inputs)).bytes
}

/// What reading a box of an input takes besides its block.
pub(crate) fn scratch_of_load(inputs: &Inputs, name: &str, region: &BoxRegion) -> u64 {
    let source = inputs.get(name).filter(|source| source.access() != SourceAccess::Memory);
    source.map_or(0, |source| source.scratch(region))
}

/// Bytes that are worth spilling held tensors for: all that a segment can use, but not more than half of a budget unless a task is larger.
fn wish(budget: u64, peak: u64, least: u64) -> u64 {
    peak.min(budget.div_ceil(2).max(least.saturating_mul(2)))
}

/// The bytes that a schedule is fitted into where so many are free. Threads that run ahead need room beyond the peak of the schedule.
fn fitted_bytes(schedule: &Schedule, io: &IoMemory, (free, least): (u64, u64), threads: usize) -> u64 {
    let window = run_ahead(schedule, io.largest_scratch(), threads).min((free - least) / 2);
    coarse(free - window).max(least)
}

/// What a run within a budget would do with a schedule, while `held` bytes of earlier results are alive: nothing if it fits as it is, or not at all.
pub(crate) fn foresee(
    schedule: &Schedule,
    io: &IoMemory,
    peak: u64,
    (budget, held): (u64, u64),
    threads: usize,
) -> Option<Fitted> {
    if peak <= budget.saturating_sub(held) || schedule.placement().is_some() {
        return None;
    }
    let (least, _) = least_bytes(schedule, io);
    let free = budget.saturating_sub(held).max(wish(budget, peak, least)).min(budget);
    if free < least {
        return None;
    }
    fit(schedule, fitted_bytes(schedule, io, (free, least), threads), io).ok().flatten()
}

/// Rounds down to few values, so that schedules are found in the cache although a little more or less is held.
fn coarse(bytes: u64) -> u64 {
    let step = (bytes / 16).checked_ilog2().map_or(1, |log| 1 << log);
    bytes / step * step
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use tw_block::Source;
    use tw_ir::Program;
    use tw_ir::workflow::TaskId;
    use tw_run::Observer;

    use super::*;
    use crate::{BoundProgram, Session};

    fn program(text: &str, session: &Session) -> Program {
        let read = BoundProgram::read(text, &BTreeMap::new(), session.functions());
        read.unwrap_or_else(|errors| panic!("{errors:?}")).unit.program
    }

    /// Another thread lets go of a result after this one has asked what is held for the n-th time.
    #[test]
    fn what_others_let_go_meanwhile_confuses_no_decision() {
        let session = Session::builder().threads(1).tile(10).build();
        let text = "x = reshape(arange(3600), 60, 60)\ny = x @ x\nz = sort(y @ x, axis=0)\noutput z";
        let program = program(text, &session);
        let prepared = Prepared::new(session.plan(&program).unwrap().schedule).unwrap();
        let (least, _) = least_bytes(prepared.schedule(), &IoMemory::default());
        let spill = SpillFile::new(&std::env::temp_dir(), None);
        for budget in [least - 1, least, prepared.schedule().peak_bytes() - 1] {
            for n_asked in 1..8 {
                let asked = Cell::new(0);
                let held = || {
                    asked.set(asked.get() + 1);
                    if asked.get() <= n_asked { budget / 2 } else { 0 }
                };
                let room = Room {
                    budget,
                    rank: None,
                    held: &held,
                    threads: 1,
                    spill: &spill,
                    spillable: &Spillable::default(),
                    spilled: &Cell::new(0),
                    cache: &FittedCache::default(),
                };
                let (key, inputs) = (SegmentKey::of(program.clone()), Inputs::new());
                let place = Place::Last;
                let asking = Asking { key: &key, prepared: &prepared, inputs: &inputs, wants: &[], place };
                if let Err(error) = room.grant(&asking) {
                    assert_eq!(error.blame(), Blame::Resource, "{error}");
                }
            }
        }
    }

    /// Lets another thread run while the first task of a run runs, and waits for it for a while.
    struct Interrupted {
        is_armed: AtomicBool,
        begin: mpsc::SyncSender<()>,
        is_over: AtomicBool,
    }

    impl Observer for Interrupted {
        fn task_started(&self, _: TaskId, _: u32, _: Instant) {
            if self.is_armed.swap(false, Ordering::Relaxed) && self.begin.send(()).is_ok() {
                let begun = Instant::now();
                while !self.is_over.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_millis(500) {
                    thread::yield_now();
                }
            }
        }
    }

    /// A segment that runs was promised no memory for operands that are in memory already. So another one must not spill them to make room for itself.
    #[test]
    fn operands_of_a_segment_that_runs_are_not_spilled() {
        // Room for two matrices of 512 KiB and half of a third one.
        const BUDGET: u64 = 1280 << 10;
        let (begin, begun) = mpsc::sync_channel(1);
        let (is_armed, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let observer = Arc::new(Interrupted { is_armed, begin, is_over });
        let session = Session::builder().threads(1).tile(64).memory(BUDGET).observer(observer.clone()).build();
        let matrix =
            |text: &str| program(&format!("x = reshape(arange(65536), 256, 256) * {text}\noutput x"), &session);
        let held = session.run(&matrix("1.5"), &Inputs::new()).unwrap();
        let x: Arc<dyn Source> = held["x"].clone();
        // One thread multiplies what is held, and has all blocks of it in hand for a while. When it has begun, the other one computes one more matrix.
        let product = program("input x: f64[256, 256]\ny = x @ x\noutput y", &session);
        let other = matrix("0.5");
        observer.is_armed.store(true, Ordering::Relaxed);
        thread::scope(|scope| {
            let (session, other, observer) = (&session, &other, &observer);
            let other = scope.spawn(move || {
                begun.recv().unwrap();
                let result = session.run(other, &Inputs::new()).unwrap();
                observer.is_over.store(true, Ordering::Relaxed);
                result
            });
            let product = session.run(&product, &Inputs::from([("x".to_string(), x)])).unwrap();
            drop((product, other.join().unwrap()));
        });
        let (_, peak) = session.memory();
        assert!(peak <= BUDGET, "{peak} bytes with a budget of {BUDGET}");
    }

    #[test]
    fn coarse_budgets_lose_little() {
        for bytes in [0, 1, 15, 16, 17, 1000, 12345678, u64::MAX / 2] {
            let rounded = coarse(bytes);
            assert!(rounded <= bytes && bytes - rounded <= bytes / 16, "{bytes} {rounded}");
        }
        assert_eq!(coarse(1_000_000), coarse(1_000_100));
    }
}
