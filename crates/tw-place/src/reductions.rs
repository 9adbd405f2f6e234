//! Expands reductions and assembled blocks once the worker of each task is known.
//!
//! A scheduler chooses the worker of each contribution and the home of each block. Contributions on one worker become one chain there. Chains of a node are
//! combined inside the node first; then nodes are combined in a binomial tree that ends at the home of the block. So a block crosses between nodes once per
//! node but one. At the root of such a tree the block arrives once per round. A value with a home of its own for every worker has as many trees as workers, and all receive alike; but one with
//! few homes may be summed along paths instead, where that takes little of the time of its statement: see [`meetings`]. A block that is assembled from regions of several blocks is assembled by each worker that reads it, so that no worker receives a region that
//! it already has.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::spec::ScatterSpec;
use tw_ir::workflow::{
    BlockId, BlockSet, BlockSetId, Boxes, KernelEntry, KernelId, MaybeOperand, Operand, Sizes, TaskId, TaskKind,
    Workflow,
};
use tw_ir::{Accum, EntityRef};

use super::machine::Machine;
use super::schedulers::is_copy;
use super::sites::Sites;

/// The decisions of a scheduler, for a workflow whose reductions are not expanded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The worker of every task, contributions included.
    pub tasks: Vec<u32>,
    /// The home of each block: the worker on which the finished block is wanted. Only blocks with contributions from several tasks need one.
    pub homes: Vec<u32>,
    /// True if parts of sums may meet later than in trees where the busiest worker then receives less.
    pub may_wait: bool,
}

impl Assignment {
    /// All tasks on the first worker.
    pub fn together(workflow: &Workflow) -> Assignment {
        Assignment { tasks: vec![0; workflow.n_tasks()], homes: vec![0; workflow.n_blocks()], may_wait: false }
    }

    /// Checks that all workers exist.
    pub fn verify(&self, workflow: &Workflow, machine: &Machine) -> Result<()> {
        if self.tasks.len() != workflow.n_tasks() || self.homes.len() != workflow.n_blocks() {
            return Err(Error::internal("an assignment of another workflow"));
        }
        match self.tasks.iter().chain(&self.homes).find(|worker| **worker as usize >= machine.n_workers()) {
            Some(worker) => Err(Error::internal(format!("worker {worker} of {}", machine.n_workers()))),
            None => Ok(()),
        }
    }
}

/// A workflow with its reductions expanded to chains and trees, and the worker of each task.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// The tasks.
    pub workflow: Workflow,
    /// The worker of each task.
    pub sites: Sites,
}

/// Expands the reductions of a workflow. Its tasks must be in topological order.
pub fn expand(workflow: &Workflow, assignment: &Assignment, machine: &Machine) -> Result<Expanded> {
    assignment.verify(workflow, machine)?;
    let mut expansion = Expansion::new(workflow, assignment, machine);
    expansion.add_parts()?;
    expansion.add_copies()?;
    for task in workflow.tasks() {
        expansion.task(task)?;
    }
    let sites = Sites::from_workers(expansion.sites);
    sites.verify(&expansion.out, machine)?;
    Ok(Expanded { workflow: expansion.out, sites })
}

/// A block that several tasks contribute to, with what else the same tasks contribute to.
struct Reduction {
    outputs: Vec<BlockId>,
    accum: Accum,
    statement: KernelId,
    home: u32,
    /// Per worker that contributes: its chain. The home has one too, though it may contribute nothing.
    chains: BTreeMap<u32, Chain>,
    /// Contributions that are not placed yet.
    left: usize,
}

#[derive(Default)]
struct Chain {
    /// The blocks of the chain: those of the reduction at its home, parts elsewhere.
    blocks: Vec<BlockId>,
    length: u32,
}

struct Expansion<'a> {
    workflow: &'a Workflow,
    assignment: &'a Assignment,
    machine: &'a Machine,
    reductions: Vec<Reduction>,
    /// The reduction that a block belongs to.
    reduction_of: Vec<Option<u32>>,
    combine: BTreeMap<KernelId, KernelId>,
    /// Blocks that are put together on other workers than the first, too, and the block that each has then.
    copies: BTreeMap<(BlockId, u32), BlockId>,
    /// The worker of the first reader of an assembled block, which assembles it unless it is a result.
    moved: BTreeMap<BlockId, u32>,
    /// How many seconds each reduction may take longer than in trees, if any.
    patience: Vec<Option<f64>>,
    out: Workflow,
    sites: Vec<u32>,
}

impl<'a> Expansion<'a> {
    fn new(workflow: &'a Workflow, assignment: &'a Assignment, machine: &'a Machine) -> Expansion<'a> {
        let mut reductions: Vec<Reduction> = Vec::new();
        let mut reduction_of: Vec<Option<u32>> = vec![None; workflow.n_blocks()];
        for task in workflow.tasks().filter(|&task| workflow.kind(task) == TaskKind::Fold) {
            let (kernel, outputs) = (workflow.kernel(task), workflow.outputs(task));
            let Some(accum) = accumulator(&workflow.kernels[kernel].kernel) else { continue };
            let first = outputs[0].index();
            let number = *reduction_of[first].get_or_insert_with(|| {
                reductions.push(Reduction {
                    outputs: outputs.to_vec(),
                    accum: accum.clone(),
                    statement: kernel,
                    home: assignment.homes[first],
                    chains: BTreeMap::new(),
                    left: 0,
                });
                reductions.len() as u32 - 1
            });
            outputs.iter().for_each(|block| reduction_of[block.index()] = Some(number));
            let reduction = &mut reductions[number as usize];
            reduction.chains.entry(assignment.tasks[task.index()]).or_default();
            reduction.left += 1;
        }
        let out = workflow.without_tasks();
        let (combine, copies, moved) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let sites = Vec::with_capacity(workflow.n_tasks());
        let patience = match assignment.may_wait {
            true => patience_of(workflow, &reductions, machine),
            false => vec![None; reductions.len()],
        };
        Expansion {
            workflow,
            assignment,
            machine,
            reductions,
            reduction_of,
            combine,
            copies,
            moved,
            patience,
            out,
            sites,
        }
    }

    /// The worker of a task. An assembled block without a reader is assembled where its first piece is.
    fn site(&self, task: TaskId) -> u32 {
        let first = self.workflow.outputs(task).first();
        match (self.workflow.kind(task), first) {
            (TaskKind::Fold, Some(block)) if self.reduction_of[block.index()].is_none() => {
                self.assignment.homes[block.index()]
            }
            (TaskKind::Apply, Some(block)) => {
                self.moved.get(block).copied().unwrap_or(self.assignment.tasks[task.index()])
            }
            _ => self.assignment.tasks[task.index()],
        }
    }

    /// Makes the blocks of all copies, one set for each set they are copies of.
    fn add_copies(&mut self) -> Result<()> {
        let workflow = self.workflow;
        let mut made_at: BTreeMap<BlockId, u32> = BTreeMap::new();
        for task in workflow.tasks().filter(|&task| is_assembly(workflow, task)) {
            workflow.outputs(task).iter().for_each(|&block| _ = made_at.insert(block, self.site(task)));
        }
        if made_at.is_empty() {
            return Ok(());
        }
        // A block is assembled on a worker that reads it: the first reader's, unless it is a result. Readers of a reader come after it. Who reads a region alone, as at a border, receives that.
        let whole = |task: TaskId| workflow.present_operands(task).filter(|operand| operand.region == 0);
        let results: BTreeSet<BlockSetId> = workflow.outputs.iter().map(|output| output.set).collect();
        for task in workflow.tasks().rev() {
            let site = self.site(task);
            for block in whole(task).map(|operand| operand.block) {
                if made_at.contains_key(&block) && !results.contains(&workflow.set_of(block)) {
                    self.moved.insert(block, site);
                }
            }
        }
        let mut copies: BTreeMap<BlockSetId, BTreeSet<(BlockId, u32)>> = BTreeMap::new();
        for task in workflow.tasks() {
            let site = self.site(task);
            for block in whole(task).map(|operand| operand.block) {
                let Some(home) = self.moved.get(&block).or(made_at.get(&block)) else { continue };
                if *home != site {
                    copies.entry(workflow.set_of(block)).or_default().insert((block, site));
                }
            }
        }
        for (whole, copies) in copies {
            let added = self.out.add_set(like(workflow, whole, "copies", copies.iter().map(|(block, _)| *block)));
            let added = added.ok_or_else(|| Error::plan("more copies of blocks than can be numbered"))?;
            self.copies.extend((0..).zip(copies).map(|(k, key)| (key, self.out.block(added, k))));
        }
        Ok(())
    }

    /// Makes the blocks of all chains that are not at home, one set for each set they are parts of.
    fn add_parts(&mut self) -> Result<()> {
        let mut blocks: BTreeMap<BlockSetId, Vec<BlockId>> = BTreeMap::new();
        for reduction in &mut self.reductions {
            reduction.chains.entry(reduction.home).or_default();
            for _ in 1..reduction.chains.len() {
                for &block in &reduction.outputs {
                    blocks.entry(self.workflow.set_of(block)).or_default().push(block);
                }
            }
        }
        let mut sets: BTreeMap<BlockSetId, (BlockSetId, u64)> = BTreeMap::new();
        for (whole, blocks) in blocks {
            let added = self.out.add_set(like(self.workflow, whole, "parts", blocks.into_iter()));
            let added = added.ok_or_else(|| Error::plan("more parts of sums than can be numbered"))?;
            sets.insert(whole, (added, 0));
        }
        for reduction in &mut self.reductions {
            for (&worker, chain) in &mut reduction.chains {
                if worker == reduction.home {
                    chain.blocks = reduction.outputs.clone();
                    continue;
                }
                for &block in &reduction.outputs {
                    if let Some((set, next)) = sets.get_mut(&self.workflow.set_of(block)) {
                        chain.blocks.push(self.out.block(*set, *next));
                        *next += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn task(&mut self, task: TaskId) -> Result<()> {
        let workflow = self.workflow;
        let site = self.site(task);
        let reduction = workflow.outputs(task).first().and_then(|block| self.reduction_of[block.index()]);
        let Some(number) = reduction.filter(|_| workflow.kind(task) == TaskKind::Fold) else {
            self.push(task, workflow.position(task), workflow.outputs(task).to_vec(), site);
            if let (true, &[block]) = (is_assembly(workflow, task), workflow.outputs(task)) {
                let copies = self.copies.range((block, 0)..=(block, u32::MAX));
                let copies: Vec<(u32, BlockId)> = copies.map(|(&(_, site), &copy)| (site, copy)).collect();
                copies.into_iter().for_each(|(site, copy)| self.push(task, 0, vec![copy], site));
            }
            return Ok(());
        };
        let reduction = &mut self.reductions[number as usize];
        let chain = reduction.chains.entry(site).or_default();
        let (position, outputs) = (chain.length, chain.blocks.clone());
        chain.length += 1;
        reduction.left -= 1;
        let finished = reduction.left == 0;
        self.push(task, position, outputs, site);
        if finished {
            self.combine(number as usize);
        }
        Ok(())
    }

    fn push(&mut self, task: TaskId, position: u32, outputs: Vec<BlockId>, site: u32) {
        let workflow = self.workflow;
        let (kind, kernel, point) = (workflow.kind(task), workflow.kernel(task), workflow.point(task));
        match self.copies.is_empty() {
            true => self.out.add_task(kind, kernel, point, position, workflow.operands(task), &outputs),
            false => {
                let copy = |block: BlockId| self.copies.get(&(block, site)).copied().unwrap_or(block);
                let here = workflow.operands(task).iter();
                let here = here.map(|o| o.expand().map(|o| Operand { block: copy(o.block), ..o }).into());
                let here: Vec<MaybeOperand> = here.collect();
                self.out.add_task(kind, kernel, point, position, &here, &outputs)
            }
        };
        self.sites.push(site);
    }

    /// Combines the chains of a reduction.
    fn combine(&mut self, number: usize) {
        let Reduction { home, chains, outputs, .. } = &self.reductions[number];
        let with_something = chains.iter().filter(|(worker, chain)| *worker == home || chain.length > 0);
        let workers: Vec<u32> = with_something.map(|(&worker, _)| worker).collect();
        let bytes = || outputs.iter().map(|&block| self.workflow.block_size(block).estimate()).sum();
        let found = match self.patience[number] {
            Some(patience) => patient_meetings(*home, &workers, bytes(), patience, self.machine),
            None => meetings(*home, &workers, self.machine),
        };
        found.into_iter().for_each(|(to, from)| self.add(number, to, from));
    }

    /// Adds the chain of one worker to that of another.
    fn add(&mut self, number: usize, to: u32, from: u32) {
        let reduction = &mut self.reductions[number];
        let operands: Vec<MaybeOperand> = match reduction.chains.get(&from) {
            Some(chain) => chain.blocks.iter().map(|&block| Operand::whole(block).into()).collect(),
            None => return,
        };
        let kernel = *self.combine.entry(reduction.statement).or_insert_with(|| {
            let statement = self.workflow.kernels[reduction.statement].statement;
            self.out.kernels.push(KernelEntry { kernel: Kernel::Combine(reduction.accum.clone()), statement })
        });
        let chain = reduction.chains.entry(to).or_default();
        self.out.add_task(TaskKind::Fold, kernel, 0, chain.length, &operands, &chain.blocks);
        self.sites.push(to);
        chain.length += 1;
    }
}

/// Who receives whose part of a sum, one after the other, if these workers have parts and it is wanted at one of them: a tree in every node, then one over the nodes.
pub(super) fn meetings(home: u32, workers: &[u32], machine: &Machine) -> Vec<(u32, u32)> {
    let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    workers.iter().for_each(|&worker| nodes.entry(machine.node_of(worker)).or_default().push(worker));
    // In each node, start at the home's position within its own node, so that different homes combine on different workers.
    let home_node = machine.node_of(home);
    let at_home = nodes.get(&home_node);
    let place = at_home.and_then(|workers| workers.iter().position(|&worker| worker == home)).unwrap_or(0);
    let n_home = at_home.map_or(1, Vec::len);
    for workers in nodes.values_mut() {
        let n = workers.len();
        // Where fewer are at home, their places alone would never reach the last of the others.
        let shift = match n <= n_home {
            true => place,
            false => place * n / n_home + home as usize % n.div_ceil(n_home),
        };
        workers.rotate_left(shift % n);
    }
    let mut found = Vec::new();
    nodes.values().for_each(|workers| meet_in_tree(workers, &mut found));
    // Nodes likewise.
    let (before, after) = (nodes.range(..home_node), nodes.range(home_node + 1..));
    let others = after.chain(before).filter_map(|(_, workers)| workers.first());
    let leaders: Vec<u32> = std::iter::once(home).chain(others.copied()).collect();
    meet_in_tree(&leaders, &mut found);
    found
}

/// The part of the time of a statement that its sums may take longer than in trees.
const PATIENCE: f64 = 0.05;

/// How many seconds the sums of a statement may take longer than in trees: a part of its seconds, if workers share it evenly. None if a value has homes on many of the workers that add to it: one
/// tree for each home is even then.
pub(super) fn patience(seconds: f64, n_homes: usize, n_members: usize, machine: &Machine) -> Option<f64> {
    (n_homes * 2 < n_members).then_some(seconds / machine.n_workers() as f64 * PATIENCE)
}

/// The patience for every reduction of a workflow.
fn patience_of(workflow: &Workflow, reductions: &[Reduction], machine: &Machine) -> Vec<Option<f64>> {
    let each = machine.task_seconds(workflow);
    let mut seconds: BTreeMap<KernelId, f64> = BTreeMap::new();
    for task in workflow.tasks().filter(|&task| workflow.kind(task) == TaskKind::Fold) {
        *seconds.entry(workflow.kernel(task)).or_default() += each[task.index()];
    }
    // Reductions of a kernel on the same workers.
    let group = |reduction: &Reduction| {
        let first = reduction.chains.first_key_value().map(|(&worker, _)| worker);
        (reduction.statement, first, reduction.chains.len())
    };
    let mut homes: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
    reductions.iter().for_each(|reduction| _ = homes.entry(group(reduction)).or_default().insert(reduction.home));
    let of = |reduction: &Reduction| {
        let (seconds, homes) = (seconds.get(&reduction.statement)?, homes.get(&group(reduction))?);
        patience(*seconds, homes.len(), reduction.chains.len(), machine)
    };
    reductions.iter().map(of).collect()
}

/// As [`meetings`], but in another way where the busiest worker receives less and the sum is there at most so many seconds later: along a path through all workers, where everyone receives one part; or
/// along paths inside the nodes, and then along a path or a tree over the nodes.
pub(super) fn patient_meetings(
    home: u32,
    workers: &[u32],
    bytes: u64,
    patience: f64,
    machine: &Machine,
) -> Vec<(u32, u32)> {
    let in_trees = meetings(home, workers, machine);
    if workers.len() < 3 {
        return in_trees;
    }
    let limit = seconds_until(home, &in_trees, bytes, machine) + patience;
    let nodes = from_home(home, workers, machine);
    let through: Vec<u32> = nodes.iter().flatten().copied().collect();
    let leaders: Vec<u32> = nodes.iter().map(|workers| workers[0]).collect();
    let inside = || nodes.iter().flat_map(|workers| path(workers));
    let mut over_nodes = Vec::new();
    meet_in_tree(&leaders, &mut over_nodes);
    let others =
        [path(&through).collect(), inside().chain(path(&leaders)).collect(), inside().chain(over_nodes).collect()];
    let in_time = |found: &Vec<(u32, u32)>| seconds_until(home, found, bytes, machine) <= limit;
    others.into_iter().find(in_time).unwrap_or(in_trees)
}

/// The workers of each node: the home's node first, then the others behind it; the home first in its own.
fn from_home(home: u32, workers: &[u32], machine: &Machine) -> Vec<Vec<u32>> {
    let mut sorted: Vec<u32> = workers.iter().copied().filter(|&worker| worker != home).collect();
    let n_nodes = machine.nodes;
    let behind = |worker: u32| (machine.node_of(worker) + n_nodes - machine.node_of(home)) % n_nodes;
    sorted.sort_by_key(|&worker| (behind(worker), worker < home, worker));
    sorted.insert(0, home);
    sorted.chunk_by(|&a, &b| behind(a) == behind(b)).map(<[u32]>::to_vec).collect()
}

/// From the last of some workers to the first, each adding its own part.
fn path(workers: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    workers.windows(2).rev().map(|pair| (pair[0], pair[1]))
}

/// The seconds after which a sum is at its home, if all parts are there at the beginning.
fn seconds_until(home: u32, meetings: &[(u32, u32)], bytes: u64, machine: &Machine) -> f64 {
    let mut ready: BTreeMap<u32, f64> = BTreeMap::new();
    for &(to, from) in meetings {
        let there = ready.get(&from).copied().unwrap_or(0.0) + machine.link(from, to).seconds(bytes);
        let now = ready.entry(to).or_default();
        *now = now.max(there) + machine.task;
    }
    ready.get(&home).copied().unwrap_or(0.0)
}

/// A set of further instances of some blocks of a set, stored as these are.
fn like(workflow: &Workflow, whole: BlockSetId, what: &str, blocks: impl Iterator<Item = BlockId> + Clone) -> BlockSet {
    let set = &workflow.sets[whole];
    let sizes = match &set.sizes {
        Sizes::Dense => Sizes::Dense,
        Sizes::List(_) => Sizes::List(blocks.clone().map(|block| workflow.block_size(block)).collect()),
    };
    BlockSet {
        name: format!("{} ({what})", set.name),
        dtype: set.dtype,
        shape: set.shape.clone(),
        boxes: Boxes::List(blocks.map(|block| workflow.block_box(block)).collect()),
        format: set.format.clone(),
        sizes,
        first: 0,
        statement: set.statement,
    }
}

/// All parts meet at the first of some workers, those of neighbours first.
fn meet_in_tree(workers: &[u32], found: &mut Vec<(u32, u32)>) {
    let mut stride = 1;
    while stride < workers.len() {
        found.extend((0..workers.len() - stride).step_by(2 * stride).map(|k| (workers[k], workers[k + stride])));
        stride *= 2;
    }
}

/// True for tasks that put pieces of several blocks together, all at once.
fn is_assembly(workflow: &Workflow, task: TaskId) -> bool {
    workflow.kind(task) == TaskKind::Apply && workflow.operands(task).len() > 1 && is_copy(workflow, task)
}

/// The accumulator of a kernel, if partial results can be combined.
fn accumulator(kernel: &Kernel) -> Option<&Accum> {
    match kernel {
        Kernel::Statement(statement) => statement.accum.as_ref(),
        Kernel::Scatter { spec: ScatterSpec { accum, .. }, .. } => Some(accum),
        _ => None,
    }
}
