//! The fourth level: a frozen order. Runtimes see nothing else.
//!
//! A schedule owns its workflow. The order is total; running tasks one by one in it is always possible and takes `peak_bytes`. Threads run ahead of it
//! where dependencies allow, preferring what comes first. Bits do not depend on that: contributions to one block are ordered by their
//! position in the chain, never by time.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::error::{Error, Result};
use crate::workflow::{BlockId, TaskId, TaskKind, Workflow};
use cranelift_entity::EntityRef;

/// A workflow with a total order, its dependencies, deletion counters and peak.
#[derive(Clone, Debug)]
pub struct Schedule {
    workflow: Workflow,
    order: Vec<TaskId>,
    rank: Vec<u32>,
    n_dependencies: Vec<u32>,
    successor_ends: Vec<u32>,
    successors: Vec<TaskId>,
    uses: Vec<u32>,
    peak_bytes: u64,
    provider: String,
    hash: u64,
}

impl Schedule {
    /// Freezes a workflow in the given order. Tasks that are not in the order do not run.
    ///
    /// `provider` names the kernel provider whose bits the schedule promises.
    pub fn freeze(workflow: Workflow, order: Vec<TaskId>, provider: &str) -> Result<Schedule> {
        let n_tasks = workflow.n_tasks();
        let mut rank = vec![u32::MAX; n_tasks];
        for (k, &task) in order.iter().enumerate() {
            match rank.get_mut(task.index()) {
                Some(slot) if *slot == u32::MAX => *slot = k as u32,
                _ => return Err(Error::internal(format!("{task} occurs twice in the order, or does not exist"))),
            }
        }
        let mut schedule = Schedule {
            rank,
            order,
            n_dependencies: vec![0; n_tasks],
            successor_ends: vec![0; n_tasks],
            successors: Vec::new(),
            uses: vec![0; workflow.n_blocks()],
            peak_bytes: 0,
            provider: provider.to_string(),
            hash: 0,
            workflow,
        };
        schedule.link()?;
        schedule.peak_bytes = schedule.replay()?;
        schedule.hash = schedule.compute_hash();
        Ok(schedule)
    }

    /// Builds the dependency graph: a reader waits for the last writer of each operand, a fold for the fold before it.
    fn link(&mut self) -> Result<()> {
        let workflow = &self.workflow;
        // Writers in order of position; `order` may interleave chains, but inside a chain it must follow positions.
        let mut last_writer: Vec<u32> = vec![u32::MAX; workflow.n_blocks()];
        let mut edges: Vec<(TaskId, TaskId)> = Vec::with_capacity(self.order.len() * 3);
        // The last task that was made to wait for each.
        let mut last_follower: Vec<u32> = vec![u32::MAX; workflow.n_tasks()];
        for &task in &self.order {
            let mut add = |from: u32, edges: &mut Vec<(TaskId, TaskId)>| {
                // A task may read several blocks of another, or one twice; parallel edges would only cost time.
                if std::mem::replace(&mut last_follower[from as usize], task.as_u32()) != task.as_u32() {
                    edges.push((TaskId::from_u32(from), task));
                }
            };
            for operand in workflow.operands(task) {
                if operand.block.is_some() {
                    match last_writer[operand.block.index()] {
                        u32::MAX => {
                            return Err(Error::internal(format!("{task} reads {} before it is made", operand.block)));
                        }
                        writer => add(writer, &mut edges),
                    }
                    self.uses[operand.block.index()] += 1;
                }
            }
            for &block in workflow.outputs(task) {
                match (workflow.kind(task), workflow.position(task), last_writer[block.index()]) {
                    (TaskKind::Fold, 1.., u32::MAX) => {
                        return Err(Error::internal(format!("{task} continues a chain that has not begun")));
                    }
                    (TaskKind::Fold, 1.., writer)
                        if workflow.position(TaskId::from_u32(writer)) + 1 == workflow.position(task) =>
                    {
                        add(writer, &mut edges)
                    }
                    (_, 0, u32::MAX) => {}
                    _ => return Err(Error::internal(format!("{task} writes {block} out of turn"))),
                }
                last_writer[block.index()] = task.as_u32();
            }
        }
        for output in &workflow.outputs {
            let set = &workflow.sets[output.set];
            for k in 0..set.n_blocks() {
                self.uses[(set.first as u64 + k) as usize] += 1;
            }
        }
        for (from, to) in &edges {
            self.successor_ends[from.index()] += 1;
            self.n_dependencies[to.index()] += 1;
        }
        let mut sum = 0;
        for end in &mut self.successor_ends {
            sum += *end;
            *end = sum;
        }
        // Filled from the back of each task's range, so that `successor_ends` becomes the start of the next; restored below.
        self.successors = vec![TaskId::from_u32(0); edges.len()];
        let mut cursor = self.successor_ends.clone();
        for (from, to) in edges.iter().rev() {
            let slot = &mut cursor[from.index()];
            *slot -= 1;
            self.successors[*slot as usize] = *to;
        }
        Ok(())
    }

    /// Replays the order serially and returns the largest number of bytes alive at once.
    fn replay(&self) -> Result<u64> {
        let workflow = &self.workflow;
        let mut uses = self.uses.clone();
        // A block nobody reads lives until its last contribution.
        for &task in &self.order {
            for &block in workflow.outputs(task) {
                uses[block.index()] += (self.uses[block.index()] == 0) as u32;
            }
        }
        let mut alive = vec![false; workflow.n_blocks()];
        let (mut now, mut peak) = (0u64, 0u64);
        for &task in &self.order {
            for &block in workflow.outputs(task) {
                if !std::mem::replace(&mut alive[block.index()], true) {
                    now = now
                        .checked_add(workflow.block_bytes(block))
                        .ok_or_else(|| Error::plan("the blocks of this program cannot be counted"))?;
                }
            }
            peak = peak.max(now);
            let read = workflow.operands(task).iter().map(|operand| operand.block).filter(|block| block.is_some());
            let unread = workflow.outputs(task).iter().copied().filter(|block| self.uses[block.index()] == 0);
            for block in read.chain(unread) {
                let left = &mut uses[block.index()];
                *left -= 1;
                if *left == 0 {
                    now -= workflow.block_bytes(block);
                }
            }
        }
        Ok(peak)
    }

    fn compute_hash(&self) -> u64 {
        // DefaultHasher::new() has fixed keys, so the hash is the same in every process.
        let mut hasher = DefaultHasher::new();
        self.provider.hash(&mut hasher);
        for entry in self.workflow.kernels.values() {
            entry.kernel.hash(&mut hasher);
        }
        for &task in &self.order {
            (task, self.workflow.kernel(task), self.workflow.point(task), self.workflow.position(task))
                .hash(&mut hasher);
            self.workflow.operands(task).hash(&mut hasher);
            self.workflow.outputs(task).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What is run.
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }
    /// The total order.
    pub fn order(&self) -> &[TaskId] {
        &self.order
    }
    /// Position of a task in the order; `u32::MAX` if it does not run.
    pub fn rank(&self, task: TaskId) -> u32 {
        self.rank[task.index()]
    }
    /// How many tasks must finish before this one starts.
    pub fn n_dependencies(&self, task: TaskId) -> u32 {
        self.n_dependencies[task.index()]
    }
    /// The tasks that wait for this one, in order.
    pub fn successors(&self, task: TaskId) -> &[TaskId] {
        let t = task.index();
        let start = if t == 0 { 0 } else { self.successor_ends[t - 1] };
        &self.successors[start as usize..self.successor_ends[t] as usize]
    }
    /// How often a block is read, plus one if it is an output. At zero it is deleted.
    pub fn uses(&self, block: BlockId) -> u32 {
        self.uses[block.index()]
    }
    /// Bytes alive at the worst moment of serial replay.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }
    /// The kernel provider whose bits are promised.
    pub fn provider(&self) -> &str {
        &self.provider
    }
    /// Tells schedules apart; equal for equal programs in every process.
    pub fn hash(&self) -> u64 {
        self.hash
    }
    /// Bytes of all arrays that grow with the number of tasks.
    pub fn heap_bytes(&self) -> usize {
        self.workflow.heap_bytes()
            + 4 * (self.order.capacity() + self.rank.capacity() + self.n_dependencies.capacity())
            + 4 * (self.successor_ends.capacity() + self.successors.capacity() + self.uses.capacity())
    }
}
