//! Plans whose bits do not depend on the number of ranks.
//!
//! Sums are rounded, so the bits of a result depend on how reductions are cut into chains and how chains are combined. Placement schedulers choose that for their
//! workers. A reproducible session plans every segment as for one machine instead, as threads do, and then gives each task a rank without changing the tasks. So results have the
//! bits that threads compute, on any number of ranks.
//!
//! Who runs a task is decided greedily, in the order of the plan. What a load reads is where it is held, or else dealt in equal runs of blocks. All contributions to a
//! block run on one rank: that with the least to do so far, where bytes that it would have to receive count as work several times over. The order of tasks stays that of one
//! machine, so no rank begins the next statement before its share of the last.
//!
//! Rejected: placing for a fixed number of virtual workers and folding those onto ranks. The bits would then depend on that number, which somebody has to choose, and
//! would not be those of threads.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{BlockId, Boxes, SourceDecl, TaskId, Workflow};
use tw_place::{Before, Machine, Sites, Traffic};

use crate::control::placed::Held;

/// The name of these placements where those of schedulers have theirs.
pub(crate) const REPRODUCIBLE: &str = "reproducible";

/// A byte that a rank receives counts as so many that it computes with.
const PRICE_OF_RECEIVING: u64 = 4;

/// What workers hold when a segment with these inputs begins.
pub(crate) fn before(held: &Held) -> Before {
    Before {
        inputs: held.iter().map(|(name, homes)| (name.clone(), homes.as_ref().clone())).collect(),
        bytes: Vec::new(),
    }
}

/// The schedule of one machine with its tasks on the workers of another.
pub(crate) fn place(schedule: &Schedule, machine: &Machine, held: &Held) -> Result<Arc<Schedule>> {
    let workflow = schedule.workflow();
    let order: Vec<TaskId> = schedule.order().collect();
    let sites = Sites::from_workers(workers_of(workflow, &order, machine.n_workers(), held)?);
    sites.verify(workflow, machine)?;
    let traffic = Traffic::of(workflow, &order, &sites, machine)?;
    let (steps, placement) = traffic.schedule(workflow, &order, &sites, machine.n_workers() as u32);
    Schedule::freeze_placed(workflow.clone(), steps, placement, None, schedule.provider()).map(Arc::new)
}

fn workers_of(workflow: &Workflow, order: &[TaskId], n_workers: usize, held: &Held) -> Result<Vec<u32>> {
    // The tasks that contribute to a block, by their first block.
    let mut chains: FxHashMap<BlockId, Vec<TaskId>> = FxHashMap::default();
    for &task in order {
        if let Some(&block) = workflow.outputs(task).first() {
            chains.entry(block).or_default().push(task);
        }
    }
    let mut workers = vec![0u32; workflow.n_tasks()];
    let mut homes: Vec<Option<u32>> = vec![None; workflow.n_blocks()];
    let mut work = vec![0u64; n_workers];
    for &task in order {
        let Some(&first) = workflow.outputs(task).first() else {
            // A store runs where its block is.
            let home = workflow.present_operands(task).find_map(|operand| homes[operand.block.index()]);
            workers[task.index()] = home.unwrap_or(0);
            continue;
        };
        if homes[first.index()].is_some() {
            continue;
        }
        let chain = chains.get(&first).map_or(&[][..], Vec::as_slice);
        let worker = match loaded(workflow, task, first, n_workers, held)? {
            Some(worker) => worker,
            None => cheapest(workflow, chain, &homes, &work),
        };
        for &task in chain {
            workers[task.index()] = worker;
            for &block in workflow.outputs(task) {
                homes[block.index()] = Some(worker);
            }
            work[worker as usize] = work[worker as usize].saturating_add(bytes_of(workflow, task));
        }
    }
    Ok(workers)
}

/// Bytes that a task reads and writes.
fn bytes_of(workflow: &Workflow, task: TaskId) -> u64 {
    let read = workflow.present_operands(task).map(|operand| workflow.operand_size(operand).max());
    let written = workflow.outputs(task).iter().map(|&block| workflow.block_bytes(block));
    read.chain(written).fold(0, u64::saturating_add)
}

/// The worker of a load: the one that holds the block, or else its share of the blocks of the set. Nothing for other tasks with operands.
fn loaded(workflow: &Workflow, task: TaskId, block: BlockId, n_workers: usize, held: &Held) -> Result<Option<u32>> {
    let set = &workflow.sets[workflow.set_of(block)];
    let position = u64::from(block.as_u32() - set.first);
    if let Kernel::Load { source } = workflow.kernels[workflow.kernel(task)].kernel
        && let Some(SourceDecl::Input { name, .. }) = workflow.sources.get(source)
        && let Some(homes) = held.get(name)
    {
        if !matches!(&set.boxes, Boxes::Grid(grid) if grid == homes.grid()) {
            return Err(Error::internal(format!("`{name}` is loaded in other blocks than it is held in")));
        }
        return Ok(homes.worker(position));
    }
    if workflow.present_operands(task).next().is_some() {
        return Ok(None);
    }
    Ok(Some((u128::from(position) * n_workers as u128 / u128::from(set.n_blocks().max(1))) as u32))
}

/// The worker of a chain that has the least to do, with what it would have to receive.
fn cheapest(workflow: &Workflow, chain: &[TaskId], homes: &[Option<u32>], work: &[u64]) -> u32 {
    let mut there: FxHashMap<u32, u64> = FxHashMap::default();
    let mut all = 0u64;
    for operand in chain.iter().flat_map(|&task| workflow.present_operands(task)) {
        let bytes = workflow.operand_size(operand).max();
        all = all.saturating_add(bytes);
        if let Some(home) = homes[operand.block.index()] {
            *there.entry(home).or_default() += bytes;
        }
    }
    let cost = |worker: u32| {
        let received = all.saturating_sub(there.get(&worker).copied().unwrap_or(0));
        work[worker as usize].saturating_add(received.saturating_mul(PRICE_OF_RECEIVING))
    };
    (0..work.len() as u32).min_by_key(|&worker| (cost(worker), worker)).unwrap_or(0)
}
