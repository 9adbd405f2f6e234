//! The placement of a schedule: the rank of each task, the instances of blocks in each memory, and the moves between memories.

use cranelift_entity::EntityRef;

use super::links::Rows;
use super::step::{InstanceId, MoveId, Step, StepKind};
use crate::error::{Error, Result};
use crate::tiling::BoxRegion;
use crate::workflow::{BlockId, Boxes, TaskKind, Workflow};

/// A memory that holds instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// Main memory of a rank.
    Host(u32),
    /// The spill directory of a rank.
    Disk(u32),
}

impl Memory {
    /// The rank it belongs to.
    pub fn rank(self) -> u32 {
        match self {
            Memory::Host(rank) | Memory::Disk(rank) => rank,
        }
    }
}

/// One copy of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The block.
    pub block: BlockId,
    /// The part of it: 0 for all, otherwise one more than a position in the regions of the workflow, followed by those of the placement.
    pub region: u32,
    /// Its memory.
    pub memory: Memory,
}

/// A copy is made of an instance, in another memory: a transfer between ranks (host to host), a spill (host to disk) or a fetch (disk to host). Trees of
/// transfers are chains of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The instance that is copied. It stays live until the move has ended.
    pub from: InstanceId,
    /// The new instance.
    pub to: InstanceId,
}

/// The rank of each task, and the moves.
///
/// Every instance is made once: by one task, by the folds of one chain, all on its rank, or by one move. Folds may continue an instance that a move has
/// made: a chain whose block was spilled goes on in the instance that was fetched. Reads and writes are listed per step, so that a block that was dropped
/// and made again, by a second step of the same task, is another instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    pub(super) n_ranks: u32,
    /// The rank of every task of the workflow.
    pub(super) sites: Vec<u32>,
    pub(super) instances: Vec<Instance>,
    pub(super) moves: Vec<Move>,
    /// Parts of blocks beyond those of the workflow.
    pub(super) regions: Vec<BoxRegion>,
    /// Per step, the instances of its operands; [`NONE`] for operands without a block.
    pub(super) reads: Rows,
    /// Per step, the instances of its outputs.
    pub(super) writes: Rows,
    /// The instances of the blocks of every output, in order.
    pub(super) results: Vec<InstanceId>,
}

/// An operand without a block.
pub(super) const NONE: u32 = u32::MAX;

impl Placement {
    /// Nothing yet, for ranks and the sites of the tasks of a workflow. Instances, moves and steps are added.
    pub fn new(n_ranks: u32, sites: Vec<u32>, regions: Vec<BoxRegion>) -> Placement {
        Placement { n_ranks, sites, regions, ..Placement::default() }
    }

    /// Adds an instance.
    pub fn add_instance(&mut self, instance: Instance) -> InstanceId {
        self.instances.push(instance);
        InstanceId::new(self.instances.len() - 1)
    }

    /// Adds a move, with the step that makes it. Steps are added in their order.
    pub fn add_move(&mut self, moved: Move) -> Step {
        self.moves.push(moved);
        self.reads.push_row([moved.from.as_u32()]);
        self.writes.push_row([moved.to.as_u32()]);
        Step::moving(MoveId::new(self.moves.len() - 1))
    }

    /// Adds the reads and writes of the next step, a task.
    pub fn add_task(
        &mut self,
        reads: impl IntoIterator<Item = Option<InstanceId>>,
        writes: impl IntoIterator<Item = InstanceId>,
    ) {
        self.reads.push_row(reads.into_iter().map(|read| read.map_or(NONE, InstanceId::as_u32)));
        self.writes.push_row(writes.into_iter().map(InstanceId::as_u32));
    }

    /// Names the instances that are results, output by output.
    pub fn set_results(&mut self, results: Vec<InstanceId>) {
        self.results = results;
    }

    /// Number of ranks.
    pub fn n_ranks(&self) -> u32 {
        self.n_ranks
    }
    /// The rank of every task.
    pub fn sites(&self) -> &[u32] {
        &self.sites
    }
    /// Number of instances.
    pub fn n_instances(&self) -> usize {
        self.instances.len()
    }
    /// Number of moves.
    pub fn n_moves(&self) -> usize {
        self.moves.len()
    }
    /// One copy of a block.
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.instances[id.index()]
    }
    /// A move.
    pub fn moved(&self, id: MoveId) -> Move {
        self.moves[id.index()]
    }
    /// Parts of blocks beyond those of the workflow.
    pub fn regions(&self) -> &[BoxRegion] {
        &self.regions
    }
    /// All moves, in the order of their steps.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }
    pub(super) fn reads(&self, step: usize) -> impl Iterator<Item = Option<InstanceId>> + use<'_> {
        self.reads.row(step).iter().map(|&read| (read != NONE).then(|| InstanceId::from_u32(read)))
    }
    pub(super) fn writes(&self, step: usize) -> impl Iterator<Item = InstanceId> + use<'_> {
        self.writes.row(step).iter().map(|&write| InstanceId::from_u32(write))
    }
    pub(super) fn results(&self) -> impl Iterator<Item = InstanceId> + use<'_> {
        self.results.iter().copied()
    }

    /// The part of its block that an instance is.
    pub fn region<'a>(&'a self, workflow: &'a Workflow, id: InstanceId) -> Option<&'a BoxRegion> {
        let position = self.instances[id.index()].region.checked_sub(1)? as usize;
        workflow.regions.get(position).or_else(|| self.regions.get(position.checked_sub(workflow.regions.len())?))
    }

    /// The most bytes that an instance can take.
    pub fn instance_bytes(&self, workflow: &Workflow, id: InstanceId) -> u64 {
        let block = self.instances[id.index()].block;
        match self.region(workflow, id) {
            None => workflow.block_bytes(block),
            Some(part) => workflow.part_size(block, part).max(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let arrays = self.instances.capacity() * size_of::<Instance>() + self.moves.capacity() * size_of::<Move>();
        arrays
            + 4 * (self.sites.capacity() + self.results.capacity())
            + self.reads.heap_bytes()
            + self.writes.heap_bytes()
    }

    /// Checks every rule that engines rely on and that freezing does not check by itself:
    ///
    /// 1. Every task of the workflow has a site that exists; ranks of memories exist.
    /// 2. There is one row of reads and of writes per step; a task's rows name one instance per operand and output, of the same block.
    /// 3. A task reads and writes main memory of its own rank; operands that its kernel can stream it may also read on the disk of its rank. The instance that it reads contains the region of the operand.
    /// 4. A move copies between different memories of one block, and no more than there is.
    /// 5. Every instance is made once; only folds that continue a chain write an instance that is there, whole. How far a chain has come is checked
    ///    with the dependencies.
    /// 6. Only tasks that make blocks from sources and operands occur twice: folds and stores change what is there.
    /// 7. Results are the instances of the blocks of every output, whole, in main memory or on disk.
    pub fn verify(&self, workflow: &Workflow, steps: &[Step]) -> Result<()> {
        let wrong = |what: String| Err(Error::internal(what));
        if self.sites.len() != workflow.n_tasks() || self.sites.iter().any(|&site| site >= self.n_ranks) {
            return wrong(format!("sites of {} tasks on {} ranks do not fit", workflow.n_tasks(), self.n_ranks));
        }
        if self.reads.len() != steps.len() || self.writes.len() != steps.len() {
            return wrong(format!("{} steps, but reads of {}", steps.len(), self.reads.len()));
        }
        let n = self.instances.len() as u32;
        let rows = self.reads.values().iter().filter(|&&read| read != NONE).chain(self.writes.values());
        if rows.chain(self.results.iter().map(|id| id.as_u32()).collect::<Vec<_>>().iter()).any(|&id| id >= n) {
            return wrong("a step uses an instance that does not exist".to_string());
        }
        let n_regions = (workflow.regions.len() + self.regions.len()) as u32;
        for (k, instance) in self.instances.iter().enumerate() {
            let exists = instance.block.index() < workflow.n_blocks();
            if !exists || instance.region > n_regions || instance.memory.rank() >= self.n_ranks {
                return wrong(format!("instance {k} is of no block, no part of one, or on no rank"));
            }
            let id = InstanceId::new(k);
            if self.region(workflow, id).is_some_and(|part| !workflow.block_box(instance.block).contains(part)) {
                return wrong(format!("instance {k} is a part that its block does not have"));
            }
        }
        let mut is_made = vec![false; self.instances.len()];
        let (mut next_move, mut seen) = (0, vec![false; workflow.n_tasks()]);
        for (position, step) in steps.iter().enumerate() {
            match step.kind() {
                StepKind::Task(task) => {
                    let is_repeatable = workflow.kind(task) != TaskKind::Fold && !workflow.outputs(task).is_empty();
                    match seen.get_mut(task.index()).map(|seen| std::mem::replace(seen, true)) {
                        Some(false) => {}
                        Some(true) if is_repeatable => {}
                        _ => return wrong(format!("{task} occurs twice in the order, or does not exist")),
                    }
                    let here = Memory::Host(self.sites[task.index()]);
                    let disk = Memory::Disk(self.sites[task.index()]);
                    let operands = workflow.operands(task);
                    let kernel = &workflow.kernels[workflow.kernel(task)].kernel;
                    let streamed = kernel.streamed_operands(operands.len());
                    if self.reads.row(position).len() != operands.len() {
                        return wrong(format!("{task} reads other operands than it has"));
                    }
                    for (number, (operand, read)) in operands.iter().zip(self.reads(position)).enumerate() {
                        let fits = match (read, operand.expand()) {
                            (None, operand) => operand.is_none(),
                            (Some(_), None) => false,
                            (Some(id), Some(operand)) => {
                                let instance = self.instance(id);
                                let needed =
                                    (operand.region > 0).then(|| &workflow.regions[operand.region as usize - 1]);
                                let holds = match (self.region(workflow, id), needed) {
                                    (None, _) => true,
                                    (Some(_), None) => false,
                                    (Some(part), Some(needed)) => part.contains(needed),
                                };
                                let is_there = instance.memory == here
                                    || (instance.memory == disk && instance.region == 0 && streamed.contains(&number));
                                instance.block == operand.block && is_there && holds
                            }
                        };
                        if !fits {
                            return wrong(format!("{task} reads what is not there, or not on its rank"));
                        }
                    }
                    let outputs = workflow.outputs(task);
                    if self.writes.row(position).len() != outputs.len() {
                        return wrong(format!("{task} writes other outputs than it has"));
                    }
                    for (&block, id) in outputs.iter().zip(self.writes(position)) {
                        let instance = self.instance(id);
                        let continues = workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0;
                        let again = std::mem::replace(&mut is_made[id.index()], true);
                        let fits = *instance == Instance { block, region: 0, memory: here };
                        if !fits || again != continues {
                            return wrong(format!("{task} writes an instance that is not its own"));
                        }
                    }
                }
                StepKind::Move(id) => {
                    let Some(moved) = self.moves.get(id.index()).filter(|_| id.index() == next_move) else {
                        return wrong(format!("{id} is out of order, or does not exist"));
                    };
                    next_move += 1;
                    let rows = (self.reads.row(position), self.writes.row(position));
                    let (from, to) = (self.instance(moved.from), self.instance(moved.to));
                    let holds = match (self.region(workflow, moved.from), self.region(workflow, moved.to)) {
                        (None, _) => true,
                        (Some(_), None) => false,
                        (Some(all), Some(part)) => all.contains(part),
                    };
                    let fits = from.block == to.block && from.memory != to.memory && holds;
                    if !fits || std::mem::replace(&mut is_made[moved.to.index()], true) {
                        return wrong(format!("{id} moves what it cannot"));
                    }
                    if rows != (&[moved.from.as_u32()][..], &[moved.to.as_u32()][..]) {
                        return wrong(format!("{id} is listed with other instances than it moves"));
                    }
                }
            }
        }
        if next_move != self.moves.len() {
            return wrong(format!("{next_move} of {} moves have a step", self.moves.len()));
        }
        let mut results = self.results.iter();
        for output in &workflow.outputs {
            let set = &workflow.sets[output.set];
            debug_assert!(matches!(set.boxes, Boxes::Grid(_)));
            for k in 0..set.n_blocks() {
                let instance = results.next().map(|&id| self.instance(id));
                if instance.is_none_or(|found| found.block != workflow.block(output.set, k) || found.region != 0) {
                    return wrong(format!("the results of `{}` are not its blocks", output.name));
                }
            }
        }
        if results.next().is_some() {
            return wrong("more results than outputs have blocks".to_string());
        }
        Ok(())
    }
}
