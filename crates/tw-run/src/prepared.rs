//! A schedule with compiled kernels, prepared once for all its runs.

use std::sync::Arc;

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use tw_block::{CompiledKernel, LARGER_THAN_CACHES, Provider, Source, SourceAccess};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{InstanceId, Schedule};
use tw_ir::workflow::{BlockId, BlockSetId, KernelId, ScratchSizes, TaskId, Workflow};
use tw_ir::{Error, Result};

use crate::bindings::Bindings;
use crate::budget::StepSizes;
use crate::execute::in_statement;
use crate::part::{Part, Role};
use crate::rest::{KeptTask, Rest};

/// A schedule with compiled kernels and initial counters. Cheap to clone; runs share it.
#[derive(Clone)]
pub struct Prepared(Arc<PreparedSchedule>);

/// The immutable data of a run.
#[derive(Clone)]
pub(crate) struct PreparedSchedule {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) code: Arc<PrimaryMap<KernelId, TaskCode>>,
    /// The steps that wait for nothing.
    pub(crate) initial: Arc<[u32]>,
    /// The number of claims of each instance; see [`crate::slots`].
    pub(crate) claims: Vec<u32>,
    /// Per instance, the step that completes it.
    last_writers: Vec<u32>,
    pub(crate) sizes: StepSizes,
    scratch: ScratchSizes,
    /// Bytes of the largest block that is stored.
    largest_stored: u64,
    /// Per source, bytes of the blocks that are read from it.
    loaded_bytes: Vec<u64>,
    /// Per set, the source that its blocks are loaded from.
    pub(crate) loaded_from: SecondaryMap<BlockSetId, Option<u32>>,
    /// Per set: true if its blocks are written past the caches.
    pub(crate) past_cache: SecondaryMap<BlockSetId, bool>,
    /// Per set: true if its blocks may be parts of one array, which nobody reads before it is whole.
    pub(crate) in_place: SecondaryMap<BlockSetId, bool>,
    /// False if a second thread could not help.
    pub(crate) worth_sharing: bool,
    /// True if blocks are on disk for a time.
    has_disk: bool,
    /// What one rank runs of the schedule; nothing if one process runs all of it.
    pub(crate) part: Option<Part>,
    /// What is left to run, if not everything.
    pub(crate) rest: Option<Rest>,
}

impl PreparedSchedule {
    /// Bytes of the blocks that are read from sources in memory.
    pub(crate) fn resident_bytes(&self, bindings: &Bindings) -> u64 {
        let sources = bindings.sources.iter().zip(&self.loaded_bytes);
        sources.filter(|(source, _)| source.access() == SourceAccess::Memory).map(|(_, bytes)| bytes).sum()
    }

    /// The most scratch space that a load or a store takes.
    pub(crate) fn io_scratch(&self, bindings: &Bindings) -> u64 {
        let workflow = self.schedule.workflow();
        let of_sets = workflow.sets.iter().map(|(id, set)| {
            let source = self.loaded_from[id].and_then(|source| bindings.sources.get(source as usize));
            let source = source.filter(|source| source.access() != SourceAccess::Memory);
            let of_blocks = |source: &Arc<dyn Source>| {
                (0..set.n_blocks()).map(|position| source.scratch(&set.block_box(position))).max()
            };
            source.and_then(of_blocks).unwrap_or(0)
        });
        let of_sinks = bindings.sinks.iter().map(|sink| sink.scratch(self.largest_stored));
        of_sets.chain(of_sinks).max().unwrap_or(0)
    }

    /// The scratch space of a task.
    pub(crate) fn scratch_bytes(&self, task: TaskId, bindings: &Bindings) -> u64 {
        let workflow = self.schedule.workflow();
        match &self.code[workflow.kernel(task)] {
            TaskCode::Load(source) => {
                let source = bindings.sources.get(*source as usize).filter(|s| s.access() != SourceAccess::Memory);
                let block = workflow.outputs(task).first();
                source.zip(block).map_or(0, |(source, &block)| source.scratch(&workflow.block_box(block)))
            }
            TaskCode::Store(sink) => {
                let sink = bindings.sinks.get(*sink as usize);
                let stored = workflow.present_operands(task).next();
                sink.zip(stored).map_or(0, |(sink, stored)| sink.scratch(workflow.block_bytes(stored.block)))
            }
            TaskCode::Compute(_) => self.scratch.task(workflow, task),
        }
    }

    /// The number of steps to run.
    pub(crate) fn n_steps(&self) -> u64 {
        self.part.as_ref().map_or(self.schedule.n_steps() as u64, |part| part.n_steps)
    }

    /// The number of steps that have to end before a step may begin.
    pub(crate) fn n_dependencies(&self, step: usize) -> u32 {
        match &self.part {
            None => self.schedule.n_dependencies(step),
            Some(part) => part.dependencies[step],
        }
    }

    /// What this process does in a step.
    pub(crate) fn role(&self, step: u32) -> Role {
        self.part.as_ref().map_or(Role::Runs, |part| part.role(step))
    }

    /// True if a step is a transfer between ranks, which ends some time after it was begun.
    pub(crate) fn is_transfer(&self, step: u32) -> bool {
        matches!(self.role(step), Role::Sends { .. } | Role::Receives { .. })
    }

    /// Bytes that a transfer takes in main memory: a receive those of its block, a send those of elements that have to be put together. `resident` says which sources
    /// are in memory, so that blocks are views of them.
    pub(crate) fn transfer_bytes(&self, step: u32, resident: &[bool]) -> u64 {
        let schedule = &self.schedule;
        let is_view = || {
            let from = schedule.reads(step as usize).flatten().next();
            let set = from.map(|from| schedule.workflow().set_of(schedule.block_of(from)));
            let source = set.and_then(|set| self.loaded_from[set]);
            source.is_some_and(|source| resident.get(source as usize) == Some(&true))
        };
        let to = schedule.writes(step as usize).next();
        match (self.role(step), schedule.placement(), to) {
            (Role::Receives { .. }, Some(placement), Some(to)) => placement.instance_bytes(schedule.workflow(), to),
            (Role::Sends { .. }, Some(_), Some(_)) => schedule.replay().packing_bytes(step as usize, is_view()),
            _ => 0,
        }
    }

    /// The rank that has an instance, if that is another one.
    pub(crate) fn elsewhere(&self, instance: InstanceId) -> Option<u32> {
        let part = self.part.as_ref()?;
        (!part.holds(&self.schedule, instance)).then(|| self.schedule.memory_of(instance).rank())
    }

    /// The most bytes alive at once in serial replay.
    pub(crate) fn peak_bytes(&self) -> u64 {
        match &self.part {
            None => self.schedule.peak_bytes(),
            Some(part) => self.schedule.peaks().get(part.rank as usize).copied().unwrap_or(0),
        }
    }

    /// True if a step reads operands on disk.
    pub(crate) fn streams(&self, step: u32) -> bool {
        self.has_disk && self.schedule.replay().streaming_bytes(step as usize) > 0
    }

    /// True if nobody claims an instance.
    pub(crate) fn is_unread(&self, instance: InstanceId) -> bool {
        match &self.rest {
            None => self.schedule.uses(instance) == 0,
            Some(rest) => !rest.is_used(instance),
        }
    }

    /// The step that completes an instance.
    pub(crate) fn last_writer(&self, instance: InstanceId) -> u32 {
        self.last_writers[instance.index()]
    }
}

/// The work of the tasks of a kernel.
pub(crate) enum TaskCode {
    Load(u32),
    Store(u32),
    Compute(Box<CompiledKernel>),
}

impl Prepared {
    /// Compiles the kernels and checks the assumptions of the runtime.
    pub fn new(schedule: Arc<Schedule>) -> Result<Prepared> {
        let workflow = schedule.workflow();
        let provider = Provider::named(schedule.provider())?;
        if let Some(set) = workflow.sets.values().find(|set| !set.format.is_dense()) {
            let what =
                format!("blocks of `{}` are stored as {}; this engine stores blocks densely", set.name, set.format);
            return Err(in_statement(Error::plan(what), &workflow.statements[set.statement]));
        }
        let mut code = PrimaryMap::with_capacity(workflow.kernels.len());
        for entry in workflow.kernels.values() {
            code.push(match &entry.kernel {
                Kernel::Load { source } => TaskCode::Load(source.as_u32()),
                Kernel::Store { sink } => TaskCode::Store(sink.as_u32()),
                kernel => {
                    let compiled = CompiledKernel::compile_for(kernel, &provider)
                        .map_err(|error| in_statement(error, &workflow.statements[entry.statement]))?;
                    TaskCode::Compute(Box::new(compiled))
                }
            });
        }
        Prepared::with_code(schedule, Arc::new(code), None)
    }

    /// The part of the schedule that one rank runs, with the same kernels.
    pub fn for_rank(&self, rank: u32) -> Result<Prepared> {
        let schedule = self.schedule();
        let n_ranks = schedule.placement().map_or(1, |placement| placement.n_ranks());
        if rank >= n_ranks {
            return Err(Error::internal(format!("a schedule for {n_ranks} ranks has no part for rank {rank}")));
        }
        Prepared::with_code(schedule.clone(), Arc::clone(&self.0.code), Some(Part::of(schedule, rank)))
    }

    /// The same kernels for another schedule of the same workflow, such as one with moves.
    pub fn with_schedule(&self, schedule: Arc<Schedule>) -> Result<Prepared> {
        let part = self.0.part.as_ref().map(|part| Part::of(&schedule, part.rank));
        Prepared::with_code(schedule, Arc::clone(&self.0.code), part)
    }

    fn with_code(
        schedule: Arc<Schedule>,
        code: Arc<PrimaryMap<KernelId, TaskCode>>,
        part: Option<Part>,
    ) -> Result<Prepared> {
        let workflow = schedule.workflow();
        let claims = count_claims(&schedule)?;
        let mut last_writers = vec![0; schedule.n_instances()];
        for step in 0..schedule.n_steps() {
            schedule.writes(step).for_each(|instance| last_writers[instance.index()] = step as u32);
        }
        let initial = match &part {
            Some(part) => Arc::clone(&part.initial),
            None => {
                let initial = (0..schedule.n_steps()).filter(|&step| schedule.n_dependencies(step) == 0);
                initial.map(|step| step as u32).collect()
            }
        };
        let sizes = StepSizes::of(&schedule);
        let past_cache = results_larger_than_caches(&schedule);
        let mut loaded_from = SecondaryMap::new();
        workflow.loaded_sets().for_each(|(set, source)| loaded_from[set] = Some(source.as_u32()));
        let in_place = results_in_place(&schedule, &code, &past_cache);
        let worth_sharing = !is_chain(&schedule) && !is_quick(&schedule);
        Ok(Prepared(Arc::new(PreparedSchedule {
            code,
            initial,
            claims,
            last_writers,
            sizes,
            scratch: ScratchSizes::of(workflow),
            largest_stored: largest_stored(workflow),
            loaded_bytes: loaded_bytes(&schedule, part.as_ref()),
            loaded_from,
            past_cache,
            in_place,
            worth_sharing,
            has_disk: schedule.n_moves() > 0,
            part,
            rest: None,
            schedule,
        })))
    }

    /// What is left to run where tasks were kept. Without `wants_results` only stores are made up for, and there are no results.
    pub fn with_rest(&self, kept: Vec<KeptTask>, wants_results: bool) -> Prepared {
        let rest = Rest::of(&self.0.schedule, kept, wants_results);
        let claims = rest.claims(&self.0.schedule);
        Prepared(Arc::new(PreparedSchedule { claims, rest: Some(rest), ..(*self.0).clone() }))
    }

    /// The schedule.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.0.schedule
    }

    /// Per source, bytes of the blocks that are read from it.
    pub fn loaded_bytes(&self) -> &[u64] {
        &self.0.loaded_bytes
    }

    pub(crate) fn plan(&self) -> &Arc<PreparedSchedule> {
        &self.0
    }
}

/// Per source, bytes of the blocks that are read from it here.
fn loaded_bytes(schedule: &Schedule, part: Option<&Part>) -> Vec<u64> {
    let workflow = schedule.workflow();
    let mut bytes = vec![0u64; workflow.sources.len()];
    let site = |task: TaskId| schedule.placement().map_or(0, |placement| placement.sites()[task.index()]);
    for task in workflow.tasks().filter(|&task| part.is_none_or(|part| site(task) == part.rank)) {
        if let Kernel::Load { source } = workflow.kernels[workflow.kernel(task)].kernel {
            let blocks = workflow.outputs(task).iter();
            bytes[source.index()] += blocks.map(|&block| workflow.block_bytes(block)).sum::<u64>();
        }
    }
    bytes
}

/// Bytes of the largest block that is stored.
fn largest_stored(workflow: &Workflow) -> u64 {
    if workflow.sinks.is_empty() {
        return 0;
    }
    let is_store = |task: &TaskId| matches!(workflow.kernels[workflow.kernel(*task)].kernel, Kernel::Store { .. });
    let stored = workflow.tasks().filter(is_store).flat_map(|task| workflow.present_operands(task));
    stored.map(|operand| workflow.block_bytes(operand.block)).max().unwrap_or(0)
}

/// Sets of blocks that are results without readers and too large to stay in a cache. Kernels write them past the cache.
fn results_larger_than_caches(schedule: &Schedule) -> SecondaryMap<BlockSetId, bool> {
    let workflow = schedule.workflow();
    let mut found = SecondaryMap::new();
    for output in &workflow.outputs {
        let set = &workflow.sets[output.set];
        let first = set.first as usize;
        let blocks = (first..first + set.n_blocks() as usize).map(BlockId::new);
        let bytes = blocks.fold(0u64, |sum, block| sum.saturating_add(workflow.block_bytes(block)));
        found[output.set] = bytes >= LARGER_THAN_CACHES;
    }
    for instance in schedule.results().filter(|&instance| !schedule.readers(instance).is_empty()) {
        found[workflow.set_of(schedule.block_of(instance))] = false;
    }
    found
}

/// Sets of blocks that are results without readers, and whose kernels write them where they belong.
fn results_in_place(
    schedule: &Schedule,
    code: &PrimaryMap<KernelId, TaskCode>,
    past_cache: &SecondaryMap<BlockSetId, bool>,
) -> SecondaryMap<BlockSetId, bool> {
    let workflow = schedule.workflow();
    let mut found = SecondaryMap::new();
    if schedule.n_moves() > 0 {
        return found;
    }
    workflow.outputs.iter().for_each(|output| found[output.set] = true);
    for instance in schedule.results().filter(|&instance| !schedule.readers(instance).is_empty()) {
        found[workflow.set_of(schedule.block_of(instance))] = false;
    }
    for task in workflow.tasks() {
        for &block in workflow.outputs(task) {
            let set = workflow.set_of(block);
            found[set] &= match &code[workflow.kernel(task)] {
                TaskCode::Compute(kernel) => kernel.writes_parts(past_cache[set]),
                TaskCode::Load(_) | TaskCode::Store(_) => false,
            };
        }
    }
    found
}

/// The number of claims of each instance: one per reader and one for a result, or one per writer if it has no readers.
fn count_claims(schedule: &Schedule) -> Result<Vec<u32>> {
    let mut writers = vec![0u32; schedule.n_instances()];
    for step in 0..schedule.n_steps() {
        schedule.writes(step).for_each(|instance| writers[instance.index()] += 1);
    }
    if let Some(missing) = schedule.results().find(|instance| writers[instance.index()] == 0) {
        return Err(Error::internal(format!("{}, a result, is never made", schedule.block_of(missing))));
    }
    let claims = writers.iter().enumerate().map(|(instance, &n)| match schedule.uses(EntityRef::new(instance)) {
        0 => n,
        uses => uses,
    });
    Ok(claims.collect())
}

/// True if every step waits for the one before it: then one thread does it all.
fn is_chain(schedule: &Schedule) -> bool {
    (1..schedule.n_steps()).all(|step| schedule.successors(step - 1).contains(&(step as u32)))
}

/// Nanoseconds it takes to get a sleeping thread to work, about. Less work than that is done before help arrives.
const WAKE_NANOSECONDS: u64 = 50_000;

/// True if all tasks together are surely done in about the time it takes to wake a thread.
fn is_quick(schedule: &Schedule) -> bool {
    let mut total = 0u64;
    for task in schedule.order() {
        total = total.saturating_add(guess_nanoseconds(schedule, task));
        if total > WAKE_NANOSECONDS {
            return false;
        }
    }
    true
}

/// A guess at how long a task takes, rather too long than too short: a nanosecond per point of a statement or byte of another task.
fn guess_nanoseconds(schedule: &Schedule, task: TaskId) -> u64 {
    let workflow = schedule.workflow();
    let kernel = &workflow.kernels[workflow.kernel(task)].kernel;
    let work = match kernel {
        Kernel::Statement(kernel) => kernel.n_points(workflow.point(task) as u64),
        _ => {
            let operands = workflow.present_operands(task).map(|operand| operand.block);
            operands.chain(workflow.outputs(task).iter().copied()).map(|block| workflow.block_bytes(block)).sum()
        }
    };
    let fixed = match kernel {
        // Code of the user may do anything, and files are slow to begin with.
        Kernel::Call(_) => WAKE_NANOSECONDS / 2,
        Kernel::Load { .. } | Kernel::Store { .. } => WAKE_NANOSECONDS / 10,
        _ => 300,
    };
    work.saturating_add(fixed)
}
