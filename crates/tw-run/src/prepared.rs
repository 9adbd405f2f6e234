//! A schedule made ready to run, once for all its runs.

use std::sync::Arc;

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use tw_block::{CompiledKernel, LARGER_THAN_CACHES, Provider};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{BlockId, BlockSetId, KernelId, TaskId};
use tw_ir::{Error, Result};

use crate::execute::in_statement;

/// A schedule with compiled kernels and initial counters. Cheap to clone; runs share it.
#[derive(Clone)]
pub struct Prepared(Arc<Plan>);

/// What a run needs to know and does not change.
pub(crate) struct Plan {
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) code: PrimaryMap<KernelId, TaskCode>,
    /// Ranks of the tasks that wait for nothing.
    pub(crate) initial: Arc<[u32]>,
    /// How often each block is claimed; see [`crate::slots`].
    pub(crate) claims: Vec<u32>,
    /// Per block, the task that completes it.
    last_writers: Vec<TaskId>,
    /// Bytes of all blocks together.
    pub(crate) total_bytes: u64,
    /// Per set: true if its blocks are written past the caches.
    pub(crate) past_cache: SecondaryMap<BlockSetId, bool>,
    /// False if a second thread could not help.
    pub(crate) worth_sharing: bool,
}

impl Plan {
    /// The task that completes a block.
    pub(crate) fn last_writer(&self, block: BlockId) -> TaskId {
        self.last_writers[block.index()]
    }
}

/// What the tasks of a kernel do.
pub(crate) enum TaskCode {
    Load(u32),
    Store(u32),
    Compute(Box<CompiledKernel>),
}

impl Prepared {
    /// Compiles the kernels and checks what the runtime relies on.
    pub fn new(schedule: Arc<Schedule>) -> Result<Prepared> {
        let workflow = schedule.workflow();
        let provider = Provider::named(schedule.provider())?;
        let mut code = PrimaryMap::with_capacity(workflow.kernels.len());
        for entry in workflow.kernels.values() {
            code.push(match &entry.kernel {
                Kernel::Load { source } => TaskCode::Load(*source),
                Kernel::Store { sink } => TaskCode::Store(*sink),
                kernel => {
                    let compiled = CompiledKernel::compile_for(kernel, &provider)
                        .map_err(|error| in_statement(error, &workflow.statements[entry.statement]))?;
                    TaskCode::Compute(Box::new(compiled))
                }
            });
        }
        let claims = count_claims(&schedule)?;
        let mut last_writers = vec![TaskId::new(0); workflow.n_blocks()];
        for &task in schedule.order() {
            workflow.outputs(task).iter().for_each(|block| last_writers[block.index()] = task);
        }
        let initial = (0u32..).zip(schedule.order()).filter(|(_, task)| schedule.n_dependencies(**task) == 0);
        let initial = initial.map(|(rank, _)| rank).collect();
        let blocks = (0..workflow.n_blocks()).map(EntityRef::new);
        let total_bytes = blocks.fold(0u64, |sum, block| sum.saturating_add(workflow.block_bytes(block)));
        let past_cache = results_larger_than_caches(&schedule);
        let worth_sharing = !is_chain(&schedule) && !is_quick(&schedule);
        Ok(Prepared(Arc::new(Plan {
            code,
            initial,
            claims,
            last_writers,
            total_bytes,
            past_cache,
            worth_sharing,
            schedule,
        })))
    }

    /// What will run.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.0.schedule
    }

    pub(crate) fn plan(&self) -> &Arc<Plan> {
        &self.0
    }
}

/// Sets that are results, that no task reads, and that would not stay in a cache until somebody does.
fn results_larger_than_caches(schedule: &Schedule) -> SecondaryMap<BlockSetId, bool> {
    let workflow = schedule.workflow();
    let mut found = SecondaryMap::new();
    for output in &workflow.outputs {
        let set = &workflow.sets[output.set];
        let first = set.first as usize;
        let mut blocks = (first..first + set.n_blocks() as usize).map(BlockId::new);
        let bytes = blocks.clone().fold(0u64, |sum, block| sum.saturating_add(workflow.block_bytes(block)));
        // The one use is that of the result.
        found[output.set] = bytes >= LARGER_THAN_CACHES && blocks.all(|block| schedule.uses(block) == 1);
    }
    found
}

/// How often each block is claimed. Refuses a schedule in which a block is read before all contributions to it are there: dependencies
/// do not order that reader before the next contribution, so its bits would depend on time.
fn count_claims(schedule: &Schedule) -> Result<Vec<u32>> {
    let workflow = schedule.workflow();
    let mut writers = vec![0u32; workflow.n_blocks()];
    for &task in schedule.order() {
        for block in workflow.outputs(task) {
            writers[block.index()] += 1;
        }
    }
    let claims = writers
        .iter()
        .enumerate()
        .map(|(block, &n)| match schedule.uses(EntityRef::new(block)) {
            0 => n,
            uses => uses,
        })
        .collect();
    for output in &workflow.outputs {
        let first = workflow.sets[output.set].first as usize;
        let n = workflow.sets[output.set].n_blocks() as usize;
        if writers[first..first + n].contains(&0) {
            return Err(Error::internal(format!("a block of output `{}` is never made", output.name)));
        }
    }
    for &task in schedule.order() {
        for operand in workflow.operands(task).iter().filter(|operand| operand.block.is_some()) {
            if writers[operand.block.index()] != 0 {
                return Err(Error::internal(format!("{task} reads {} before it is complete", operand.block)));
            }
        }
        for block in workflow.outputs(task) {
            writers[block.index()] -= 1;
        }
    }
    Ok(claims)
}

/// True if every task waits for the one before it: then one thread does it all.
fn is_chain(schedule: &Schedule) -> bool {
    schedule.order().windows(2).all(|pair| schedule.successors(pair[0]).contains(&pair[1]))
}

/// Nanoseconds it takes to get a sleeping thread to work, about. Less work than that is done before help arrives.
const WAKE_NANOSECONDS: u64 = 50_000;

/// True if all tasks together are surely done in about the time it takes to wake a thread.
fn is_quick(schedule: &Schedule) -> bool {
    let mut total = 0u64;
    for &task in schedule.order() {
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
        Kernel::Statement(kernel) => kernel.var_box(workflow.point(task) as u64).n_elements(),
        _ => {
            let operands = workflow.operands(task).iter().map(|operand| operand.block).filter(|block| block.is_some());
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
