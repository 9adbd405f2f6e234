//! A session: threads, options and the cache of planned segments.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;
use tw_block::{Meter, Provider, Sink, SourceAccess, provider};
use tw_ir::error::{Error, Result};
use tw_ir::program::{self, FunctionTable, Op, Program, Region, ValueId};
use tw_ir::schedule::{Digest, PlanFile, Schedule, encode_plan};
use tw_ir::text::print_program;
use tw_ir::{DType, Span};
use tw_place::Cluster;
use tw_plan::{PlanOptions, Planned, ProviderName, dissolve_selections, plan_segment_until};
use tw_run::{CancelToken, Engine, Observer, Prepared, Progress, RunOptions, Runtime, Serial, TensorHandle};

use crate::available::available_bytes;
use crate::bindings::{Bound, Inputs, Targets, bind, may_read_ahead};
use crate::budget::{Need, Rest};
use crate::cancel::token_of_run;
use crate::control::Place;
use crate::control::data::Data;
use crate::control::placed::{PlacedSegment, place_program};
use crate::control::segment::SegmentKey;
use crate::control::types::{declared_inputs, foresee_segments, n_bytes};
use crate::peak;
use crate::profile::{Profile, profile_of_run};
use crate::program_text::standard_functions;
use crate::report::Totals;
use crate::results::{Computed, Want, forms};
use crate::tensor::allowance::{Allowance, SHARE_OF_BUDGET};

/// Planned segments kept. A program has few; a host loop that never repeats itself would otherwise grow without limit.
const CACHE_LIMIT: usize = 4096;

/// Less memory than this is there: the system is not asked.
const SURELY_AVAILABLE: u64 = 256 << 20;

/// What to build a [`Session`] with.
#[derive(Clone)]
pub struct SessionBuilder {
    threads: usize,
    serial: bool,
    plan: PlanOptions,
    cluster: Option<Cluster>,
    budget: Option<u64>,
    chaos: Option<u64>,
    observer: Option<Arc<dyn Observer>>,
    profile: Option<Arc<Profile>>,
    functions: FunctionTable,
}

impl SessionBuilder {
    /// Number of threads; the caller's is one of them. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> SessionBuilder {
        self.threads = threads.max(1);
        self
    }

    /// Runs steps one by one in the order of the schedule, on the calling thread: the engine `serial`.
    pub fn serial(mut self) -> SessionBuilder {
        self.serial = true;
        self
    }

    /// Tile length of every axis that nobody has cut.
    pub fn tile(mut self, tile: u64) -> SessionBuilder {
        self.plan.tile = Some(tile.max(1));
        self
    }

    /// Bytes of a block where the planner chooses.
    pub fn block_bytes(mut self, bytes: u64) -> SessionBuilder {
        self.plan.block_bytes = Some(bytes.max(1));
        self
    }

    /// Who multiplies and factors matrices; the fastest that this process found if not given. It shows in the last bits.
    pub fn provider(mut self, provider: &Provider) -> SessionBuilder {
        self.plan.provider = ProviderName::Known(provider.name().to_string());
        self
    }

    /// Rewrites on or off; off only to compare.
    pub fn rewrites(mut self, on: bool) -> SessionBuilder {
        self.plan.rewrites = on;
        self
    }

    /// Plans as if for these workers; the threads of this machine then run that plan. Results are the same up to the order of sums.
    pub fn cluster(mut self, cluster: Cluster) -> SessionBuilder {
        self.cluster = Some(cluster);
        self
    }

    /// Makes scheduling decisions at random from a seed. Results do not change; tests use it.
    pub fn chaos(mut self, seed: u64) -> SessionBuilder {
        self.chaos = Some(seed);
        self
    }

    /// Most bytes of blocks alive at once, results that are kept included. A segment that cannot fit is refused before it runs.
    pub fn memory(mut self, bytes: u64) -> SessionBuilder {
        self.budget = Some(bytes);
        self
    }

    /// Watches every task of every run.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> SessionBuilder {
        self.observer = Some(observer);
        self
    }

    /// Measures the time of every statement.
    pub fn profile(mut self, profile: Arc<Profile>) -> SessionBuilder {
        self.profile = Some(profile);
        self
    }

    /// Makes block functions known to program text.
    pub fn functions(mut self, functions: FunctionTable) -> SessionBuilder {
        self.functions = functions;
        self
    }

    /// Starts the threads.
    pub fn build(self) -> Session {
        let mut functions = self.functions;
        functions.include(&standard_functions());
        let progress = Arc::new(Progress::new());
        let run = RunOptions {
            meter: Meter::new(),
            // Every run has its own.
            cancel: CancelToken::new(),
            ahead: None,
            observer: self.observer,
            progress: Some(progress.clone()),
            chaos: self.chaos,
            forms: Vec::new(),
        };
        Session(Arc::new(Inner {
            engine: if self.serial { Box::new(Serial) } else { Box::new(Runtime::new(self.threads)) },
            plan: self.plan,
            cluster: self.cluster,
            run,
            budget: self.budget,
            cancel: Mutex::new(CancelToken::new()),
            process: std::process::id(),
            progress,
            cache: Mutex::new(FxHashMap::default()),
            totals: Mutex::new(Totals::default()),
            profile: self.profile,
            functions,
            allowance: Allowance::new(self.budget),
        }))
    }
}

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
    /// Bytes that blocks may take, if that is limited.
    budget: Option<u64>,
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
}

/// What one segment gave.
pub(crate) struct SegmentOutcome {
    pub(crate) results: Vec<Computed>,
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
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        SessionBuilder {
            threads,
            serial: false,
            cluster: None,
            plan: PlanOptions { provider: ProviderName::Asked(provider), ..PlanOptions::default() },
            budget: None,
            chaos: None,
            observer: None,
            profile: None,
            functions: FunctionTable::default(),
        }
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
        if self.0.process != std::process::id() {
            return Err(Error::state(
                "the threads of this session exist only in the process that made it, not in its fork",
            )
            .help("start processes afresh (\"spawn\"), or make the session after the fork"));
        }
        let cancel = token_of_run(&lock(&self.0.cancel));
        let dissolved = dissolve_selections(program, &self.0.plan)?;
        let program = dissolved.as_ref().unwrap_or(program);
        let placer = match &self.0.cluster {
            Some(cluster) => {
                let types = inputs.iter().map(|(name, input)| (name.clone(), input.ty())).collect();
                Some(place_program(self, cluster, program, &types, false)?.0)
            }
            None => None,
        };
        let mut data = Data::new(self, program, (inputs, targets), wants, cancel, placer);
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
        let (_, placed) = place_program(self, cluster, program, &declared_inputs(program), false)?;
        match placed.segments.as_slice() {
            [segment] => segment.placed().freeze(&|| false, program, &self.0.plan),
            _ => Err(Error::plan("this program is not a single segment")),
        }
    }

    pub(crate) fn run_segment(
        &self,
        segment: SegmentRun<'_>,
        cancel: &CancelToken,
        totals: &mut Totals,
    ) -> Result<SegmentOutcome> {
        let started = Instant::now();
        let SegmentRun { key, placed, place, inputs, targets, wants } = segment;
        let key = placed.as_ref().map_or(key, PlacedSegment::key);
        let found = lock(&self.0.cache).get(&key).cloned();
        let hit = found.is_some();
        let cached = match found {
            Some(cached) => cached,
            None => {
                self.check_results(&key.program)?;
                let stop = || cancel.is_cancelled();
                let planned = match placed {
                    Some(placed) => placed.placed().freeze(&stop, &key.program, &self.0.plan)?,
                    None => plan_segment_until(&stop, &key.program, &self.0.plan)?,
                };
                self.keep_ready(key, planned.schedule)?
            }
        };
        let planned = Instant::now();
        let _running = self.0.run.meter.begin_run();
        let workflow = cached.prepared.schedule().workflow();
        let is_large = cached.prepared.schedule().peak_bytes() > SURELY_AVAILABLE;
        let shared: HashSet<String> = if self.0.budget.is_some() || is_large {
            let in_memory = inputs.iter().filter(|(_, source)| source.access() == SourceAccess::Memory);
            in_memory.map(|(name, _)| name.clone()).collect()
        } else {
            HashSet::new()
        };
        if is_large {
            self.check_peak(&cached, &shared)?;
        }
        let mut options = RunOptions { cancel: cancel.clone(), ..self.0.run.clone() };
        options.ahead = self.0.budget.map(|budget| self.left_of(budget, &cached, &shared, place)).transpose()?;
        if wants.iter().any(|want| *want != Want::Blocks) {
            let (forms, needed) = forms(workflow, wants, self.threads(), options.ahead.unwrap_or(u64::MAX));
            options.forms = forms;
            options.ahead = options.ahead.map(|left| left - needed);
        }
        let read_ahead = match options.ahead {
            _ if !inputs.values().any(|source| may_read_ahead(source.as_ref())) => 0,
            Some(left) => left / 2,
            None => available_bytes().unwrap_or(SURELY_AVAILABLE) / SHARE_OF_READ_AHEAD,
        };
        options.ahead = options.ahead.map(|left| left - read_ahead);
        let loaded_bytes = cached.prepared.loaded_bytes();
        let bindings = bind(workflow, &Bound { inputs: &inputs, targets, loaded_bytes, ahead_bytes: read_ahead })?;
        drop(inputs);
        if let Some(profile) = profile_of_run(self.0.profile.as_ref()) {
            options.observer = Some(profile.watch(cached.prepared.schedule(), options.observer));
        }
        let outcome = self.0.engine.run(&cached.prepared, &bindings, &options)?;
        let results = outcome.outputs.into_iter().zip(outcome.arrays);
        let results =
            results.map(|(handle, array)| Computed { stored: handle.map(Arc::new), array, ..Computed::default() });
        let results = results.collect();
        totals.add(&Totals {
            segments: 1,
            cached_segments: hit as u64,
            planning: planned - started,
            running: planned.elapsed(),
            tasks: outcome.stats.tasks,
            read_bytes: outcome.stats.loaded_bytes,
            written_bytes: outcome.stats.stored_bytes,
            peak_bytes: outcome.stats.peak_bytes,
            planned_peak_bytes: cached.prepared.schedule().peak_bytes(),
            flops: cached.flops,
        });
        Ok(SegmentOutcome { results, sinks: bindings.sinks })
    }

    /// Refuses results that the machine cannot hold, before anything is planned: planning them would take long, too.
    pub(crate) fn check_results(&self, program: &Program) -> Result<()> {
        // What is only handed on is there already.
        let sources = program.body.nodes.iter().filter(|node| matches!(node.op, Op::Source(_)));
        let there: HashSet<ValueId> = sources.flat_map(|node| node.results.iter().copied()).collect();
        let made = program.body.results.iter().filter(|value| !there.contains(value));
        let sizes = made.map(|&value| (value, n_bytes(program.ty(value))));
        let needed = sizes.clone().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(bytes));
        let largest = sizes.max_by_key(|(_, bytes)| *bytes).map(|(value, _)| value);
        let maker = program.body.nodes.iter().find(|node| node.results.iter().any(|&value| Some(value) == largest));
        self.check_available("the results need", needed).map_err(|error| match maker {
            Some(node) => error.at(&node.span),
            None => error,
        })
    }

    /// Refuses a plan that the machine cannot hold. What is held already is not asked for again.
    fn check_peak(&self, cached: &CachedSegment, shared: &HashSet<String>) -> Result<()> {
        let schedule = cached.prepared.schedule();
        let peak = peak::replay(schedule, &|name| shared.contains(name));
        let worst = peak.during.map(|statement| &schedule.workflow().statements[statement].span);
        self.check_available("blocks need", peak.bytes).map_err(|error| error.at(worst.unwrap_or(&Span::None)))
    }

    fn check_available(&self, what: &str, needed: u64) -> Result<()> {
        if needed <= SURELY_AVAILABLE || available_bytes().is_none_or(|available| needed <= available) {
            return Ok(());
        }
        // Storage kept for later is not in use.
        self.0.run.meter.release_kept();
        match available_bytes() {
            Some(available) if needed > available => Err(Error::resource(format!(
                "{what} {needed} bytes, but only {available} bytes of memory are available"
            ))
            .help("compute less at once, or write large results to a file block by block")),
            _ => Ok(()),
        }
    }

    /// What a budget leaves to a segment for running ahead.
    fn left_of(&self, budget: u64, cached: &CachedSegment, shared: &HashSet<String>, place: Place) -> Result<u64> {
        let schedule = cached.prepared.schedule();
        let peak = peak::replay(schedule, &|name| shared.contains(name));
        let held = self.0.run.meter.now();
        let bytes = held.saturating_add(peak.bytes);
        let rest = match place {
            // With a larger budget earlier runs would have kept more, up to its share.
            Place::Last if held > 0 => {
                Rest::Enough(bytes.saturating_add(bytes / (SHARE_OF_BUDGET - 1)).saturating_add(1))
            }
            Place::Last => Rest::Enough(bytes),
            Place::Before => Rest::Unknown,
        };
        let at = peak.during.map(|statement| &schedule.workflow().statements[statement].span);
        Need { bytes, held, at, rest }.grant(budget)
    }

    /// Plans a segment and keeps it ready for a run.
    pub(crate) fn plan_ahead(&self, key: SegmentKey) -> Result<Planned> {
        let cancel = token_of_run(&lock(&self.0.cancel));
        Ok(self.plan_and_cache(key, &cancel)?.0)
    }

    /// The schedule of a segment, from the cache if it is there.
    pub(crate) fn schedule_of(&self, key: &SegmentKey) -> Result<Arc<Schedule>> {
        let found = lock(&self.0.cache).get(key).cloned();
        let cached = match found {
            Some(cached) => cached,
            None => self.plan_and_cache(key.clone(), &token_of_run(&lock(&self.0.cancel)))?.1,
        };
        Ok(cached.prepared.schedule().clone())
    }

    fn plan_and_cache(&self, key: SegmentKey, cancel: &CancelToken) -> Result<(Planned, Arc<CachedSegment>)> {
        let planned = plan_segment_until(&|| cancel.is_cancelled(), &key.program, &self.0.plan)?;
        let cached = self.keep_ready(key, planned.schedule.clone())?;
        Ok((planned, cached))
    }

    /// Plans a program and gives its plan as bytes, for [`Session::load_plan`] of another process. Segments that depend on data are left out.
    pub fn plan_bytes(&self, program: &Program) -> Result<Vec<u8>> {
        let dissolved = dissolve_selections(program, &self.0.plan)?;
        let program = dissolved.as_ref().unwrap_or(program);
        refuse_nameless_functions(&program.body)?;
        lock(&self.0.cache).clear();
        match &self.0.cluster {
            Some(cluster) => {
                let (_, placed) = place_program(self, cluster, program, &declared_inputs(program), false)?;
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
