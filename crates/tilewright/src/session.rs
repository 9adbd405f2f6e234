//! A session: threads, options and the cache of planned segments.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;
use tw_block::{Meter, Sink, SpillFile, SpilledBlock};
use tw_ir::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::{self, FunctionTable, Node, Op, Program, Region, ValueId};
use tw_ir::schedule::{Digest, PlanFile, Schedule, encode_plan};
use tw_ir::text::print_program;
use tw_place::Cluster;
use tw_plan::{PlanOptions, Planned, dissolve_selections, plan_segment_until};
use tw_run::{CancelToken, Engine, Group, Prepared, Progress, RunOptions, TensorHandle, run_ahead};

use crate::available::{available_bytes, default_budget};
use crate::bindings::{Bound, Inputs, Targets, bind, bind_together, may_read_ahead};
use crate::budget::refused_array;
use crate::cancel::token_of_run;
use crate::checkpoint::{Checkpoint, Remembered};
use crate::control::Place;
use crate::control::data::Data;
use crate::control::placed::{Held, PlacedSegment, held_inputs, place_program};
use crate::control::segment::SegmentKey;
use crate::control::types::{declared_inputs, foresee_segments};
use crate::grant::{Asking, FittedCache, Room, Spillable, planned_peak, runs_foreign_code};
use crate::pool::Pool;
use crate::pool::processes::{Board, Locked};
use crate::profile::{Profile, profile_of_run};
use crate::report::Totals;
use crate::reproducible::{self, REPRODUCIBLE};
use crate::results::{Computed, Want, forms};
use crate::tensor::allowance::Allowance;
use crate::units;

mod builder;

pub use builder::SessionBuilder;

/// Planned segments kept. A program has few; a host loop that never repeats itself would otherwise grow without limit.
const CACHE_LIMIT: usize = 4096;

/// Less memory than this is there: the system is not asked.
const SURELY_AVAILABLE: u64 = 256 << 20;

/// Bytes of a tensor from which on it is spilled to keep to the budget that nobody has set.
const WORTH_SPILLING: u64 = 1 << 20;

/// Threads, options and the cache of planned segments. Cloning is cheap and shares everything.
///
/// ```
/// use tilewright::Session;
/// let session = Session::new();
/// let x = session.arange(0.0, 10.0, 1.0)?;
/// let y = x.add_scalar(1.0)?.sum(None)?;
/// assert_eq!(y.item()?.as_f64(), 55.0);
/// # Ok::<(), tilewright::Error>(())
/// ```
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    engine: Box<dyn Engine>,
    plan: PlanOptions,
    /// Workers that programs are planned for instead of one.
    cluster: Option<Cluster>,
    run: RunOptions,
    /// True if bits must not depend on the number of ranks.
    reproducible: bool,
    /// Bytes that blocks may take, if that is limited.
    budget: Option<u64>,
    /// Ranks that share the memory of this host.
    ranks_on_host: u64,
    /// A setting of the environment that cannot be understood: told by every run.
    wrong_setting: Option<Error>,
    /// The token of the runs that are under way.
    cancel: Mutex<CancelToken>,
    /// The process that started the threads: they do not survive a fork.
    process: u32,
    progress: Arc<Progress>,
    cache: Mutex<FxHashMap<SegmentKey, Arc<CachedSegment>>>,
    totals: Mutex<Totals>,
    profile: Option<Arc<Profile>>,
    functions: FunctionTable,
    /// What is kept though nobody has asked for it.
    allowance: Allowance,
    spill: Arc<SpillFile>,
    /// Where runs leave what later ones can go on with.
    checkpoint: Option<PathBuf>,
    spillable: Spillable,
    /// Shared with all sessions of the process that have no budget of their own.
    pool: Arc<Pool>,
    fitted: FittedCache,
}

/// The part of the memory that is left which sources may hold beside the blocks they were asked for.
const SHARE_OF_READ_AHEAD: u64 = 8;

struct CachedSegment {
    prepared: Prepared,
    flops: u64,
}

/// A segment that is to run.
pub(crate) struct SegmentRun<'a> {
    pub(crate) key: SegmentKey,
    /// On a cluster, its plan.
    pub(crate) placed: Option<PlacedSegment>,
    pub(crate) place: Place,
    pub(crate) inputs: Inputs,
    /// How its files are written.
    pub(crate) targets: &'a Targets,
    /// How its outputs are wanted, other than as blocks.
    pub(crate) wants: &'a [Want],
    /// What a checkpoint knows of it.
    pub(crate) remembered: Option<&'a Remembered>,
}

/// Other processes are told what this one was promised, as long as its segments run.
struct Announced {
    board: Board,
    pool: Arc<Pool>,
}

impl Drop for Announced {
    fn drop(&mut self) {
        let told = |promised: u64| if promised == 0 { 0 } else { self.pool.held().saturating_add(promised) };
        self.pool.promises.tell(|promised| self.board.write(told(promised)));
    }
}

/// What one segment gave.
pub(crate) struct SegmentOutcome {
    pub(crate) results: Vec<Computed>,
    /// What the checkpoint has of each result.
    pub(crate) kept: Vec<Vec<Option<Arc<SpilledBlock>>>>,
    /// What it has written, not committed yet.
    pub(crate) sinks: Vec<Arc<dyn Sink>>,
}

impl Default for Session {
    fn default() -> Session {
        Session::new()
    }
}

impl Session {
    /// As many threads as the machine has, everything else by default.
    pub fn new() -> Session {
        Session::builder().build()
    }

    /// Choose threads, tiles and more.
    pub fn builder() -> SessionBuilder {
        SessionBuilder::new()
    }

    /// Runs a program. Results come by output name.
    pub fn run(&self, program: &Program, inputs: &Inputs) -> Result<BTreeMap<String, Arc<TensorHandle>>> {
        Ok(self.run_with_report(program, inputs)?.0)
    }

    /// Runs a program and tells what it cost.
    pub fn run_with_report(
        &self,
        program: &Program,
        inputs: &Inputs,
    ) -> Result<(BTreeMap<String, Arc<TensorHandle>>, Totals)> {
        program::verify(program)?;
        let mut totals = Totals::default();
        let results = self.interpret(program, inputs, &[], &mut totals)?;
        let results = results.into_iter().map(Computed::into_stored).collect::<Result<Vec<_>>>()?;
        Ok((program.outputs.iter().cloned().zip(results).collect(), totals))
    }

    /// Runs a program that is known to be well formed; results in the order of its outputs, as blocks unless `wants` says otherwise. What was done is added to `totals`, also before an error.
    pub(crate) fn interpret(
        &self,
        program: &Program,
        inputs: &Inputs,
        wants: &[Want],
        totals: &mut Totals,
    ) -> Result<Vec<Computed>> {
        self.interpret_into(program, inputs, &Targets::new(), wants, totals)
    }

    /// As [`Session::interpret`], with files that are written in other ways than the usual one.
    pub(crate) fn interpret_into(
        &self,
        program: &Program,
        inputs: &Inputs,
        targets: &Targets,
        wants: &[Want],
        totals: &mut Totals,
    ) -> Result<Vec<Computed>> {
        let results = self.interpret_alone(program, inputs, targets, wants, totals);
        // Other ranks wait for this one in runs that it does not begin any more.
        if let (Err(error), Some(group)) = (&results, self.group()) {
            group.fail(error);
        }
        results
    }

    fn interpret_alone(
        &self,
        program: &Program,
        inputs: &Inputs,
        targets: &Targets,
        wants: &[Want],
        totals: &mut Totals,
    ) -> Result<Vec<Computed>> {
        if self.0.process != std::process::id() {
            return Err(Error::state(
                "the threads of this session exist only in the process that made it, not in its fork",
            )
            .help("start processes afresh (\"spawn\"), or make the session after the fork"));
        }
        if let Some(error) = &self.0.wrong_setting {
            return Err(error.clone());
        }
        let cancel = self.token();
        let dissolved = dissolve_selections(program, &self.0.plan)?;
        let program = dissolved.as_ref().unwrap_or(program);
        let held = held_inputs(inputs, self.rank());
        let placer = match &self.0.cluster {
            Some(_) if self.0.reproducible => None,
            Some(cluster) => {
                let types = inputs.iter().map(|(name, input)| (name.clone(), input.ty())).collect();
                Some(place_program(self, cluster, program, (&types, &held), false)?.0)
            }
            None => None,
        };
        let checkpoint = match &self.0.checkpoint {
            Some(_) if self.0.cluster.is_some() => {
                return Err(Error::plan("a session with a cluster keeps no checkpoints"));
            }
            Some(directory) => Some(Checkpoint::open(directory, program, (inputs, targets), &self.0.plan)?),
            None => None,
        };
        let mut data = Data::new(self, program, (inputs, targets), wants, cancel, (placer, checkpoint));
        let results = data.run();
        totals.add(&data.totals);
        if results.is_ok() {
            lock(&self.0.totals).add(&data.totals);
        }
        results
    }

    /// Elements of a mask that one task looks at: with doubles under it, as many as a streamed block has, unless the user wants other blocks.
    pub(crate) fn piece_elements(&self) -> u64 {
        const ELEMENTS: u64 = 1 << 18;
        let options = &self.0.plan;
        let of_bytes = |bytes: u64| (bytes / DType::F64.size()).max(1);
        options.tile.or_else(|| options.block_bytes.map(of_bytes)).unwrap_or(ELEMENTS)
    }

    /// Plans a straight-line program without running it.
    pub fn plan(&self, program: &Program) -> Result<Planned> {
        let Some(cluster) = &self.0.cluster else { return plan_segment_until(&|| false, program, &self.0.plan) };
        let (_, placed) = place_program(self, cluster, program, (&declared_inputs(program), &Held::new()), false)?;
        match placed.segments.as_slice() {
            [segment] => segment.placed().freeze(&|| false, program, &self.0.plan),
            _ => Err(Error::plan("this program is not a single segment")),
        }
    }

    /// The workers that programs are planned for, if there are several.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.0.cluster.as_ref()
    }

    /// True if bits must not depend on the number of ranks.
    pub(crate) fn is_reproducible(&self) -> bool {
        self.0.reproducible
    }

    /// The ranks that run programs together, if there are several.
    pub(crate) fn group(&self) -> Option<&dyn Group> {
        self.0.engine.group()
    }

    /// Cancelled with the runs of this thread that begin now.
    pub(crate) fn token(&self) -> CancelToken {
        token_of_run(&lock(&self.0.cancel))
    }

    /// Spills held tensors until so many bytes are free, if there is a budget. An error if they are not free then.
    pub(crate) fn make_room(&self, bytes: u64) -> Result<()> {
        let Some(budget) = self.0.budget else { return Ok(()) };
        let missing = || bytes.saturating_sub(budget.saturating_sub(self.0.pool.held()));
        if missing() > 0 {
            self.0.spillable.spill(&self.0.spill, missing(), &Inputs::new())?;
        }
        match missing() {
            0 => Ok(()),
            missing => Err(refused_array(budget, bytes, budget.saturating_add(missing), None)),
        }
    }

    pub(crate) fn run_segment(
        &self,
        segment: SegmentRun<'_>,
        cancel: &CancelToken,
        totals: &mut Totals,
    ) -> Result<SegmentOutcome> {
        let started = Instant::now();
        let SegmentRun { key, placed, place, inputs, targets, wants, remembered } = segment;
        let mut key = placed.as_ref().map_or(key, PlacedSegment::key);
        let held = if self.0.reproducible { held_inputs(&inputs, self.rank()) } else { Held::new() };
        if self.0.reproducible {
            key.placement = Some((REPRODUCIBLE, reproducible::before(&held)));
        }
        let (cached, hit) = self.ready(&key, (placed.as_ref(), &held), wants, cancel)?;
        let planned = Instant::now();
        let _running = self.0.run.meter.begin_run();
        let workflow = cached.prepared.schedule().workflow();
        let mut options = RunOptions { cancel: cancel.clone(), ..self.0.run.clone() };
        let mut prepared = cached.prepared.clone();
        // Ranks make blocks, which are brought together when the program has ended.
        let forms_within = |room: u64| match self.group().is_none() && wants.iter().any(|want| *want != Want::Blocks) {
            true => forms(workflow, wants, self.threads(), room),
            false => (Vec::new(), 0),
        };
        // Dropped after the promise, which it reads.
        let mut announced = None;
        let (mut promise, mut granted_peak, spilled_for_room) = (None, None, Cell::new(0));
        let mut pins = Vec::new();
        // Ranks wait for each other, so they must not wait for memory that another one holds.
        let may_wait = self.group().is_none() || self.0.budget.is_some();
        if may_wait && self.is_limited(prepared.schedule()) {
            let asking = Asking { key: &key, prepared: &cached.prepared, inputs: &inputs, wants, place };
            let is_foreign = runs_foreign_code(workflow, &inputs);
            let pool = &self.0.pool;
            let board = if self.0.budget.is_none() { Board::of_user() } else { None };
            announced = board.map(|board| Announced { board, pool: pool.clone() });
            let board = announced.as_ref().map(|announced| &announced.board);
            let (promised, grant) = pool.promises.promise(is_foreign, cancel, |promised| {
                // Other processes neither look nor write until this one has written what it takes.
                let locked = board.and_then(Board::lock);
                let budget = self.budget_beside(locked.as_ref().map_or(0, Locked::outstanding_of_others));
                let held = || pool.held().saturating_add(promised);
                let grant = self.room(budget, &held, &spilled_for_room).grant(&asking)?;
                // Arrays of a schedule with moves are put together when it has ended.
                let (forms, needed) = if grant.is_fitted { (Vec::new(), 0) } else { forms_within(grant.ahead) };
                let usual = run_ahead(grant.ready.prepared.schedule(), 0, self.threads());
                let ahead = (grant.ahead - needed).min(usual);
                options.forms = forms;
                options.ahead = Some(ahead);
                let own = grant.ready.peak.saturating_add(needed).saturating_add(ahead);
                if let Some(board) = board {
                    board.write(held().saturating_add(own));
                }
                // Before anybody else is promised memory.
                pins = self.0.spillable.pin(&inputs);
                Ok((own, grant))
            })?;
            promise = Some(promised);
            granted_peak = Some(grant.ready.peak);
            prepared = grant.ready.prepared;
            options.spill = Some(self.0.spill.clone());
            options.names_sources = place == Place::Before;
        } else {
            options.forms = forms_within(u64::MAX).0;
        }
        let read_ahead = match options.ahead {
            _ if !inputs.values().any(|source| may_read_ahead(source.as_ref())) => 0,
            Some(left) => left / 2,
            None => available_bytes().unwrap_or(SURELY_AVAILABLE) / SHARE_OF_READ_AHEAD / self.0.ranks_on_host,
        };
        options.ahead = options.ahead.map(|left| left - read_ahead);
        self.agree_about(&key.program, cached.prepared.schedule().hash(), &inputs, cancel)?;
        let loaded_bytes = cached.prepared.loaded_bytes();
        let bound = Bound {
            inputs: &inputs,
            targets,
            loaded_bytes,
            ahead_bytes: read_ahead,
            // Blocks of a fitted schedule are read again from where they come.
            names_sources: options.names_sources || (self.group().is_none() && prepared.schedule().n_moves() > 0),
            joints: None,
            kept_name: remembered.map(Remembered::name),
        };
        let (bindings, kept_sinks) = match self.group().filter(|_| !workflow.sinks.is_empty()) {
            Some(group) => (bind_together(workflow, bound, group, cancel)?, Vec::new()),
            None => bind(workflow, &bound)?,
        };
        let rank = self.group().map(Group::rank);
        let planned_peak_bytes = granted_peak.unwrap_or_else(|| planned_peak(prepared.schedule(), &inputs, rank));
        drop(inputs);
        if let Some(profile) = profile_of_run(self.0.profile.as_ref()) {
            options.observer = Some(profile.watch(prepared.schedule(), options.observer));
        }
        if let Some(remembered) = remembered {
            let (rest, keep) = remembered.rest_of(prepared, &kept_sinks);
            (prepared, options.keep) = (rest, Some(keep));
        }
        let outcome = self.0.engine.run(&prepared, &bindings, &options)?;
        drop(pins);
        drop(promise);
        drop(announced);
        let results = outcome.outputs.into_iter().zip(outcome.arrays);
        let results =
            results.map(|(handle, array)| Computed { stored: handle.map(Arc::new), array, ..Computed::default() });
        let results: Vec<Computed> = results.collect();
        let stored = results.iter().filter_map(|computed| computed.stored.as_ref());
        // Where nobody has set a budget, spilling small tensors would free nothing that counts.
        let is_worth_it = |stored: &&Arc<TensorHandle>| self.0.budget.is_some() || stored.n_bytes() >= WORTH_SPILLING;
        stored.filter(is_worth_it).for_each(|stored| self.0.spillable.add(stored));
        totals.add(&Totals {
            segments: 1,
            cached_segments: hit as u64,
            planning: planned - started,
            running: planned.elapsed(),
            tasks: outcome.stats.tasks,
            resumed_steps: outcome.stats.skipped,
            read_bytes: outcome.stats.loaded_bytes,
            written_bytes: outcome.stats.stored_bytes,
            peak_bytes: outcome.stats.peak_bytes,
            planned_peak_bytes,
            spilled_bytes: outcome.stats.spilled_bytes + spilled_for_room.get(),
            fetched_bytes: outcome.stats.fetched_bytes,
            sent_bytes: outcome.stats.sent_bytes,
            received_bytes: outcome.stats.received_bytes,
            planned_sent_bytes: self.group().map_or(0, |group| prepared.schedule().sent_bytes(group.rank())),
            flops: cached.flops,
        });
        Ok(SegmentOutcome { results, kept: outcome.kept, sinks: bindings.sinks })
    }

    /// Refuses results that the machine cannot hold, before anything is planned: planning them would take long, too. Arrays have to fit into memory, blocks
    /// may also be spilled.
    fn check_results(&self, program: &Program, wants: &[Want]) -> Result<()> {
        // What is only handed on is there already.
        let sources = program.body.nodes.iter().filter(|node| matches!(node.op, Op::Source(_)));
        let there: HashSet<ValueId> = sources.flat_map(|node| node.results.iter().copied()).collect();
        let wants = wants.iter().chain(std::iter::repeat(&Want::Blocks));
        let (mut arrays, mut all) = (0u64, 0u64);
        let mut largest: Option<(u64, ValueId)> = None;
        for (&value, want) in program.body.results.iter().zip(wants).filter(|(value, _)| !there.contains(value)) {
            let bytes = program.ty(value).known_bytes().unwrap_or(0);
            all = all.saturating_add(bytes);
            arrays = arrays.saturating_add(if *want == Want::Blocks { 0 } else { bytes });
            largest = largest.max(Some((bytes, value)));
        }
        // Ranks of a host share its memory: each holds a part of the results, and arrays of its own.
        let (n_ranks, on_host) = (u64::from(self.n_ranks()), self.0.ranks_on_host);
        (arrays, all) = (arrays.saturating_mul(on_host), (all / n_ranks).saturating_mul(on_host));
        let fits = match all <= SURELY_AVAILABLE {
            true => Ok(()),
            false => self.check_available(arrays, all),
        };
        let maker = |node: &&Node| node.results.iter().any(|&value| largest.is_some_and(|(_, most)| most == value));
        fits.map_err(|error| match program.body.nodes.iter().find(maker) {
            Some(node) => error.at(&node.span),
            None => error,
        })
    }

    /// Refuses arrays that do not fit into memory, and blocks that do not fit into memory and spill directory together.
    fn check_available(&self, arrays: u64, all: u64) -> Result<()> {
        let Some(mut available) = available_bytes() else { return Ok(()) };
        if arrays > available {
            // Storage kept for later is not in use.
            self.0.run.meter.release_kept();
            available = available_bytes().unwrap_or(available);
        }
        let spill = self.0.spill.capacity().unwrap_or(u64::MAX);
        let help = "compute less at once, or write large results to a file block by block";
        if arrays > available {
            let text = format!("the results need {arrays} bytes, but only {available} bytes of memory are available");
            return Err(Error::resource(text).help(help));
        }
        if all > available.saturating_add(spill) {
            let text = format!("the results need {all} bytes, more than memory and spill directory can hold");
            return Err(Error::resource(text).help(help));
        }
        Ok(())
    }

    /// True if a schedule has to keep to a budget. A small one need not where nobody has set one.
    fn is_limited(&self, schedule: &Schedule) -> bool {
        self.0.budget.is_some() || schedule.peak_bytes() > SURELY_AVAILABLE && available_bytes().is_some()
    }

    /// The budget, where other processes may still take so many bytes.
    fn budget_beside(&self, others: u64) -> u64 {
        if let Some(budget) = self.0.budget {
            return budget;
        }
        // Storage kept for later is not in use.
        self.0.pool.release_kept();
        let available = available_bytes().unwrap_or(u64::MAX).saturating_sub(others);
        let share = (available / 10).saturating_mul(9);
        default_budget().unwrap_or(u64::MAX).min(self.0.pool.held().saturating_add(share))
    }

    /// What decides about memory, with a budget and the bytes that are held now.
    fn room<'a>(&'a self, budget: u64, held: &'a dyn Fn() -> u64, spilled: &'a Cell<u64>) -> Room<'a> {
        Room {
            spilled,
            budget,
            rank: self.group().map(Group::rank),
            held,
            threads: self.threads(),
            spill: &self.0.spill,
            spillable: &self.0.spillable,
            cache: &self.0.fitted,
        }
    }

    /// Where blocks are spilled.
    pub(crate) fn spill_file(&self) -> &Arc<SpillFile> {
        &self.0.spill
    }

    /// Plans a segment and keeps it ready for a run.
    pub(crate) fn plan_ahead(&self, key: SegmentKey) -> Result<Planned> {
        let cancel = self.token();
        let planned = plan_segment_until(&|| cancel.is_cancelled(), &key.program, &self.0.plan)?;
        self.keep_ready(key, planned.schedule.clone())?;
        Ok(planned)
    }

    /// The schedule of a segment, from the cache if it is there.
    pub(crate) fn schedule_of(&self, key: &SegmentKey) -> Result<Arc<Schedule>> {
        let cancel = self.token();
        Ok(self.ready(key, (None, &Held::new()), &[], &cancel)?.0.prepared.schedule().clone())
    }

    /// A segment that is ready to run, and whether it was in the cache. `placed` is its plan on a cluster.
    fn ready(
        &self,
        key: &SegmentKey,
        (placed, held): (Option<&PlacedSegment>, &Held),
        wants: &[Want],
        cancel: &CancelToken,
    ) -> Result<(Arc<CachedSegment>, bool)> {
        if let Some(cached) = lock(&self.0.cache).get(key) {
            return Ok((cached.clone(), true));
        }
        self.check_results(&key.program, wants)?;
        let stop = || cancel.is_cancelled();
        let planned = match placed {
            Some(placed) => placed.placed().freeze(&stop, &key.program, &self.0.plan)?,
            None => plan_segment_until(&stop, &key.program, &self.0.plan)?,
        };
        let schedule = match &self.0.cluster {
            Some(cluster) if placed.is_none() && self.0.reproducible => {
                reproducible::place(&planned.schedule, &cluster.machine, held)?
            }
            _ => planned.schedule,
        };
        Ok((self.keep_ready(key.clone(), schedule)?, false))
    }

    /// Plans a program and gives its plan as bytes, for [`Session::load_plan`] of another process. Segments that depend on data are left out.
    pub fn plan_bytes(&self, program: &Program) -> Result<Vec<u8>> {
        let dissolved = dissolve_selections(program, &self.0.plan)?;
        let program = dissolved.as_ref().unwrap_or(program);
        refuse_nameless_functions(&program.body)?;
        lock(&self.0.cache).clear();
        match &self.0.cluster {
            Some(cluster) => {
                let (_, placed) =
                    place_program(self, cluster, program, (&declared_inputs(program), &Held::new()), false)?;
                for segment in &placed.segments {
                    let planned = segment.placed().freeze(&|| false, &segment.key.program, &self.0.plan)?;
                    self.keep_ready(segment.key(), planned.schedule)?;
                }
            }
            None => foresee_segments(self, program)?,
        }
        let cache = lock(&self.0.cache);
        let segments = cache.iter().map(|(key, cached)| (&key.program, cached.prepared.schedule().as_ref()));
        Ok(encode_plan(program, segments))
    }

    /// Takes the schedules of a plan that [`Session::plan_bytes`] made, so that running the program plans nothing that is there. Refuses a plan of another
    /// program. Gives a hash over all schedules, the same in every process.
    pub fn load_plan(&self, program: &Program, bytes: &[u8]) -> Result<Digest> {
        let file = PlanFile::decode(bytes, &self.0.functions)?;
        let dissolved = dissolve_selections(program, &self.0.plan)?;
        if print_program(dissolved.as_ref().unwrap_or(program)) != print_program(&file.program) {
            let error = Error::source("this plan is of another program, or of other parameters and inputs");
            return Err(error.help("plan again with `tw plan`, or run the program that was planned"));
        }
        let mut hashes = Vec::new();
        for (program, schedule) in file.segments {
            hashes.push(schedule.hash());
            self.keep_ready(SegmentKey::of(program), Arc::new(schedule))?;
        }
        Ok(Digest::of_all(&hashes))
    }

    /// Makes a schedule ready to run, whenever the segment is met.
    fn keep_ready(&self, key: SegmentKey, schedule: Arc<Schedule>) -> Result<Arc<CachedSegment>> {
        let workflow = schedule.workflow();
        let flops = tw_plan::flops(workflow);
        let prepared = Prepared::new(schedule.clone())?;
        let prepared = match self.group() {
            // A plan for one machine is shown, and not run.
            Some(group) if schedule.placement().is_some() => prepared.for_rank(group.rank())?,
            _ => prepared,
        };
        let cached = Arc::new(CachedSegment { prepared, flops });
        if key.is_lasting() {
            let mut cache = lock(&self.0.cache);
            if cache.len() >= CACHE_LIMIT {
                cache.clear();
            }
            cache.insert(key, cached.clone());
        }
        Ok(cached)
    }

    /// True if both are handles of one session.
    pub(crate) fn is_same(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Asks the runs of this session that are under way to stop soon. Later runs are not affected.
    pub fn cancel(&self) {
        let stopped = std::mem::replace(&mut *lock(&self.0.cancel), CancelToken::new());
        stopped.cancel();
    }

    /// Tasks done and to do in the segment that runs now.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.0.progress
    }

    /// What all runs of this session have cost so far.
    pub fn totals(&self) -> Totals {
        lock(&self.0.totals).clone()
    }

    /// Bytes of blocks alive now and at most so far.
    pub fn memory(&self) -> (u64, u64) {
        (self.0.run.meter.now(), self.0.run.meter.peak())
    }

    /// Counts the bytes of blocks, and takes back the storage of arrays that were given away.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.0.run.meter
    }

    /// Options of the planner.
    pub fn plan_options(&self) -> &PlanOptions {
        &self.0.plan
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.0.engine.threads()
    }

    /// Bytes that blocks may take, if that is limited.
    pub fn budget(&self) -> Option<u64> {
        self.0.budget
    }

    /// What is kept though nobody has asked for it.
    pub(crate) fn allowance(&self) -> &Allowance {
        &self.0.allowance
    }

    /// Gives memory back to the system: storage kept for later runs, and arrays that were kept though nobody has asked for that, as far as they can be
    /// computed again.
    pub fn release_memory(&self) {
        self.0.allowance.release();
        self.0.run.meter.release_kept();
    }

    /// Block functions known to program text.
    pub fn functions(&self) -> &FunctionTable {
        &self.0.functions
    }
}

/// The budget that the environment variable `TILEWRIGHT_MEMORY` gives.
pub(crate) fn budget_of_environment() -> Result<Option<u64>> {
    let Some(text) = std::env::var_os("TILEWRIGHT_MEMORY").filter(|text| !text.is_empty()) else { return Ok(None) };
    let bytes = text.to_str().ok_or_else(|| "it is not text".to_string()).and_then(units::parse_bytes);
    bytes.map(Some).map_err(|reason| {
        let text = text.to_string_lossy();
        Error::source(format!("TILEWRIGHT_MEMORY={text} is no memory budget: {reason}")).help("write for example 8GiB")
    })
}

/// Functions of the user's process have no name that another process could find.
fn refuse_nameless_functions(region: &Region) -> Result<()> {
    for node in &region.nodes {
        if let Op::BlockFn(call) = &node.op
            && !call.function.0.is_lasting()
        {
            let text = format!(
                "`{}` is a function of this process, which a plan in a file cannot name",
                call.function.0.name()
            );
            let help = "compute what it makes first and store it, or run the program without a plan file";
            return Err(Error::plan(text).help(help).at(&node.span));
        }
        node.op.regions().try_for_each(refuse_nameless_functions)?;
    }
    Ok(())
}

/// The data behind these locks is valid at every step, so a panic elsewhere does not spoil it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
