//! Fits the part of one rank into its budget.
//!
//! The schedule of several ranks stays as it is but for moves between main memory and the disk of this rank, and loads that run again. They are put between the
//! steps of the schedule, whose order does not change; so the steps that ranks share, the transfers, keep their order on all of them, each rank may have a budget of its own, and
//! no rank need know what the others have done. (Together the parts are one schedule again: the steps of each rank between those that were there. What is argued about the order
//! of a schedule, that it can always go on, holds for that one.)
//!
//! A block of a rank, or a part of a block that it has received, leaves when a step needs room: the one whose next use is farthest away. A block that a load makes
//! is dropped, and loaded again; any other is spilled once, and fetched. What a step reads, writes, sends or receives is in main memory while it runs, but for whole blocks that a merge of sorted
//! runs or a gather can read on disk ([`Workflow::streamed_operands`](tw_ir::workflow::Workflow::streamed_operands)). So a budget works if every step of the rank fits alone ([`least_bytes_of_rank`]).
//!
//! Rejected: other orders, as for a single rank. They would have to be the same on all ranks, which see different budgets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Instance, InstanceId, Memory, Move, Placement, Schedule, Step, StepKind};
use tw_ir::workflow::{ScratchSizes, TaskId};

use super::{BudgetTraffic, Fitted, IoMemory};

const NONE: u32 = u32::MAX;

/// The bytes of the largest step of a rank: the blocks that it touches and its scratch space, but for blocks that are in memory anyway. Gives its task, too, or the one that
/// made what it moves. No smaller budget works.
pub fn least_bytes_of_rank(schedule: &Schedule, rank: u32, io: &IoMemory) -> (u64, Option<TaskId>) {
    let facts = Facts::of(schedule, rank, io);
    let mut most = (0, None);
    let mut last_task = None;
    for position in 0..schedule.n_steps() {
        let mut touched: Vec<InstanceId> = facts.touched(position).collect();
        if touched.is_empty() && !facts.runs_here(position) {
            continue;
        }
        touched.sort_unstable();
        touched.dedup();
        let task = schedule.steps()[position].as_task();
        last_task = task.or(last_task);
        let streamed = facts.streamed(position);
        let held = touched.iter().filter(|id| !streamed.contains(id));
        let blocks = held.fold(0u64, |sum, &id| sum.saturating_add(facts.bytes(id)));
        // What is brought back may take scratch space, too. What is read on disk may have to be loaded and spilled before.
        let again = touched.iter().map(|&id| {
            let is_loaded = streamed.contains(&id) && facts.loads[id.index()] != NONE;
            let block = if is_loaded { facts.bytes(id) } else { 0 };
            block.saturating_add(io.of_load(schedule.workflow(), schedule.block_of(id)))
        });
        let pieces =
            if streamed.is_empty() { 0 } else { task.map_or(0, |task| schedule.workflow().streaming_bytes(task)) };
        let scratch = facts.scratch(position).saturating_add(pieces);
        let bytes = blocks.saturating_add(again.chain([scratch]).max().unwrap_or(0));
        if bytes > most.0 {
            most = (bytes, task.or(last_task));
        }
    }
    most
}

/// The same schedule, with moves that keep the part of a rank to a budget. `None` if a step alone is larger than the budget.
pub fn fit_rank(schedule: &Schedule, rank: u32, budget: u64, io: &IoMemory) -> Result<Option<Fitted>> {
    if least_bytes_of_rank(schedule, rank, io).0 > budget {
        return Ok(None);
    }
    let Some(placement) = schedule.placement() else {
        return Err(Error::internal("a schedule of a single rank is fitted as one of several"));
    };
    let mut replayed = Replayed::new(Facts::of(schedule, rank, io), placement, budget)?;
    for position in 0..schedule.n_steps() {
        replayed.step(position as u32)?;
    }
    replayed.finish().map(Some)
}

/// What is known of a schedule from the side of a rank.
struct Facts<'a> {
    schedule: &'a Schedule,
    rank: u32,
    io: &'a IoMemory,
    scratch: ScratchSizes,
    /// Per instance, the load that makes it from what is there at any time, if one does.
    loads: Vec<u32>,
    /// Per instance, true if it takes no memory, since it is a view of what is there.
    is_free: Vec<bool>,
}

impl<'a> Facts<'a> {
    fn of(schedule: &'a Schedule, rank: u32, io: &'a IoMemory) -> Facts<'a> {
        let workflow = schedule.workflow();
        let (mut loads, mut is_free) = (vec![NONE; schedule.n_instances()], vec![false; schedule.n_instances()]);
        for (position, step) in schedule.steps().iter().enumerate() {
            let Some(task) = step.as_task() else { continue };
            let is_load = matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Load { .. });
            for id in schedule.writes(position).filter(|_| is_load) {
                is_free[id.index()] = io.is_resident(schedule.block_of(id));
                // A result has to be somewhere at the end.
                loads[id.index()] = if schedule.is_result(id) { NONE } else { task.as_u32() };
            }
        }
        Facts { schedule, rank, io, scratch: ScratchSizes::of(workflow), loads, is_free }
    }

    fn is_here(&self, id: InstanceId) -> bool {
        self.schedule.memory_of(id) == Memory::Host(self.rank)
    }

    /// True if this rank runs a step, or puts what it receives.
    fn runs_here(&self, position: usize) -> bool {
        self.schedule.replay().rank_of(position) == self.rank as usize
    }

    /// The instances of this rank that a step reads or writes; some may come twice.
    fn touched(&self, position: usize) -> impl Iterator<Item = InstanceId> {
        let reads = self.schedule.reads(position).flatten();
        reads.chain(self.schedule.writes(position)).filter(|&id| self.is_here(id))
    }

    /// The instances of this rank that a step can read on disk.
    fn streamed(&self, position: usize) -> Vec<InstanceId> {
        let (workflow, Some(placement)) = (self.schedule.workflow(), self.schedule.placement()) else {
            return Vec::new();
        };
        let Some(task) = self.schedule.steps()[position].as_task().filter(|_| self.runs_here(position)) else {
            return Vec::new();
        };
        let n = workflow.streamed_operands(task).len();
        let mut reads = self.schedule.reads(position);
        let mut streamed: Vec<InstanceId> = reads.by_ref().take(n).flatten().collect();
        let others: Vec<InstanceId> = reads.flatten().chain(self.schedule.writes(position)).collect();
        streamed.retain(|&id| {
            self.is_here(id) && !self.is_free[id.index()] && placement.instance(id).region == 0 && !others.contains(&id)
        });
        streamed
    }

    fn bytes(&self, id: InstanceId) -> u64 {
        if self.is_free[id.index()] {
            return 0;
        }
        let workflow = self.schedule.workflow();
        self.schedule.placement().map_or(0, |placement| placement.instance_bytes(workflow, id))
    }

    /// What a step takes on this rank besides its blocks.
    fn scratch(&self, position: usize) -> u64 {
        if self.runs_here(position) {
            return self.io.of_step(self.schedule, &self.scratch, position);
        }
        let sent = self.schedule.reads(position).flatten().next().filter(|&id| self.is_here(id));
        sent.map_or(0, |id| self.schedule.replay().packing_bytes(position, self.is_free[id.index()]))
    }
}

/// The order of a schedule replayed on a rank under a budget.
struct Replayed<'a> {
    facts: Facts<'a>,
    budget: u64,
    /// Per instance of the schedule, the positions of the steps that touch it, in order, and how many have passed.
    uses: Vec<Vec<u32>>,
    passed: Vec<u32>,
    /// Per instance of the schedule, its instance in main memory and on disk.
    host: Vec<u32>,
    disk: Vec<u32>,
    is_made: Vec<bool>,
    /// What the current step can read on disk.
    streamed: Vec<InstanceId>,
    /// Instances that can be evicted, the farthest next use first; ties by number. Entries whose next use has changed are stale.
    candidates: BinaryHeap<(u32, Reverse<u32>)>,
    now: u64,
    steps: Vec<Step>,
    placement: Placement,
    traffic: BudgetTraffic,
}

impl<'a> Replayed<'a> {
    fn new(facts: Facts<'a>, before: &Placement, budget: u64) -> Result<Replayed<'a>> {
        let schedule = facts.schedule;
        let n = schedule.n_instances();
        let mut uses: Vec<Vec<u32>> = vec![Vec::new(); n];
        for position in 0..schedule.n_steps() {
            for id in facts.touched(position) {
                let uses = &mut uses[id.index()];
                if uses.last() != Some(&(position as u32)) {
                    uses.push(position as u32);
                }
            }
        }
        let mut placement = Placement::new(before.n_ranks(), before.sites().to_vec(), before.regions().to_vec());
        for k in 0..n {
            let instance = *before.instance(InstanceId::new(k));
            if matches!(instance.memory, Memory::Disk(_)) {
                return Err(Error::internal("a schedule that is fitted into a budget has moves to disk already"));
            }
            placement.add_instance(instance);
        }
        Ok(Replayed {
            facts,
            budget,
            uses,
            passed: vec![0; n],
            host: vec![NONE; n],
            disk: vec![NONE; n],
            is_made: vec![false; n],
            streamed: Vec::new(),
            candidates: BinaryHeap::new(),
            now: 0,
            steps: Vec::with_capacity(schedule.n_steps()),
            placement,
            traffic: BudgetTraffic::default(),
        })
    }

    fn next_use(&self, id: InstanceId) -> u32 {
        self.uses[id.index()].get(self.passed[id.index()] as usize).copied().unwrap_or(NONE)
    }

    fn step(&mut self, position: u32) -> Result<()> {
        let (schedule, at) = (self.facts.schedule, position as usize);
        let (mut reads, mut writes): (Vec<Option<InstanceId>>, Vec<InstanceId>) =
            (schedule.reads(at).collect(), schedule.writes(at).collect());
        self.streamed = self.facts.streamed(at);
        for &id in reads.iter().flatten() {
            if !self.facts.is_here(id) {
                continue;
            }
            let is_streamed = self.streamed.contains(&id);
            if !is_streamed || self.disk[id.index()] == NONE {
                self.bring(id, position)?;
            }
            if is_streamed {
                // It may leave again before the step runs.
                self.candidates.push((position, Reverse(id.as_u32())));
            }
        }
        for &id in &writes {
            if !self.facts.is_here(id) {
                continue;
            }
            if self.is_made[id.index()] {
                self.bring(id, position)?;
                // The copy on disk lacks the contribution that comes now.
                self.disk[id.index()] = NONE;
            } else {
                self.make_room(self.facts.bytes(id), position)?;
                self.now += self.facts.bytes(id);
                self.is_made[id.index()] = true;
                self.host[id.index()] = id.as_u32();
            }
        }
        self.make_room_to_run(at)?;
        let touched: Vec<InstanceId> = self.facts.touched(at).collect();
        for id in reads.iter_mut().flatten().chain(&mut writes) {
            if self.facts.is_here(*id) {
                let (host, disk) = (self.host[id.index()], self.disk[id.index()]);
                *id = InstanceId::from_u32(if host == NONE { disk } else { host });
            }
        }
        let step = match schedule.steps()[at].kind() {
            StepKind::Task(task) => {
                self.placement.add_task(reads, writes);
                Step::task(task)
            }
            StepKind::Move(_) => match (reads.as_slice(), writes.as_slice()) {
                (&[Some(from)], &[to]) => self.placement.add_move(Move { from, to }),
                _ => return Err(Error::internal("a move of several blocks")),
            },
        };
        self.steps.push(step);
        for id in touched {
            // An instance that the step touches twice was counted off the first time.
            if self.next_use(id) == position {
                self.passed[id.index()] += 1;
                self.after_use(id);
            }
        }
        Ok(())
    }

    /// A step needs its scratch space, and pieces of operands that it reads on disk.
    fn make_room_to_run(&mut self, at: usize) -> Result<()> {
        let scratch = self.facts.scratch(at);
        self.make_room(scratch, at as u32)?;
        // Room for scratch space may have cost operands that were in memory.
        let task = self.facts.schedule.steps()[at].as_task();
        if let Some(task) = task.filter(|_| self.streamed.iter().any(|id| self.host[id.index()] == NONE)) {
            let pieces = self.facts.schedule.workflow().streaming_bytes(task);
            self.make_room(scratch.saturating_add(pieces), at as u32)?;
        }
        Ok(())
    }

    /// An instance was used: it dies, or can be evicted from now on.
    fn after_use(&mut self, id: InstanceId) {
        let next = self.next_use(id);
        if next == NONE && !self.facts.schedule.is_result(id) {
            self.let_go(id);
            self.disk[id.index()] = NONE;
        } else if !self.facts.is_free[id.index()] {
            self.candidates.push((next, Reverse(id.as_u32())));
        }
    }

    fn let_go(&mut self, id: InstanceId) {
        if std::mem::replace(&mut self.host[id.index()], NONE) != NONE {
            self.now -= self.facts.bytes(id);
        }
    }

    fn make_room(&mut self, bytes: u64, position: u32) -> Result<()> {
        while self.now.saturating_add(bytes) > self.budget {
            self.evict(position)?;
        }
        Ok(())
    }

    /// Sees to it that an instance that was made before is in main memory.
    fn bring(&mut self, id: InstanceId, position: u32) -> Result<()> {
        if self.host[id.index()] != NONE {
            return Ok(());
        }
        let (workflow, bytes) = (self.facts.schedule.workflow(), self.facts.bytes(id));
        self.make_room(bytes, position)?;
        self.now += bytes;
        let before = *self.placement.instance(id);
        let to = self.placement.add_instance(Instance { memory: Memory::Host(self.facts.rank), ..before });
        self.host[id.index()] = to.as_u32();
        self.make_room(self.facts.io.of_load(workflow, before.block), position)?;
        let (disk, load) = (self.disk[id.index()], self.facts.loads[id.index()]);
        let step = if disk != NONE {
            self.traffic.fetched += bytes;
            self.placement.add_move(Move { from: InstanceId::from_u32(disk), to })
        } else if load != NONE {
            self.traffic.remade += bytes;
            self.placement.add_task([], [to]);
            Step::task(TaskId::from_u32(load))
        } else {
            return Err(Error::internal(format!("{id} is used before it is made")));
        };
        self.steps.push(step);
        Ok(())
    }

    /// Evicts the instance whose next use is farthest away.
    fn evict(&mut self, position: u32) -> Result<()> {
        while let Some((next, Reverse(number))) = self.candidates.pop() {
            let id = InstanceId::from_u32(number);
            // What the current step needs is a candidate again after it.
            let is_streamed = self.streamed.contains(&id);
            if self.host[id.index()] == NONE || self.next_use(id) != next || (next <= position && !is_streamed) {
                continue;
            }
            if self.disk[id.index()] == NONE && (self.facts.loads[id.index()] == NONE || is_streamed) {
                let before = *self.placement.instance(id);
                let to = self.placement.add_instance(Instance { memory: Memory::Disk(self.facts.rank), ..before });
                let from = InstanceId::from_u32(self.host[id.index()]);
                let step = self.placement.add_move(Move { from, to });
                self.steps.push(step);
                self.disk[id.index()] = to.as_u32();
                self.traffic.spilled += self.facts.bytes(id);
            }
            self.let_go(id);
            return Ok(());
        }
        Err(Error::internal("a step of a rank is larger than the budget that was said to be enough"))
    }

    /// Results stay where they are at the end.
    fn finish(mut self) -> Result<Fitted> {
        let schedule = self.facts.schedule;
        let mut results = Vec::new();
        for id in schedule.results() {
            if !self.facts.is_here(id) {
                results.push(id);
                continue;
            }
            let found = [self.host[id.index()], self.disk[id.index()]].into_iter().find(|&at| at != NONE);
            let missing = || Error::internal(format!("{id}, a result, is never made"));
            results.push(InstanceId::from_u32(found.ok_or_else(missing)?));
        }
        self.placement.set_results(results);
        let schedule = schedule.with_moves(self.steps, self.placement, Some(self.budget))?;
        Ok(Fitted { schedule, traffic: self.traffic })
    }
}
