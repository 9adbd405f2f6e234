//! Fits a schedule into a memory budget: which blocks leave main memory, when, and how they come back.
//!
//! [`fit`] replays an order of tasks serially under a budget. When a step needs room, the block whose next use is farthest away is evicted (Belady's rule;
//! optimal for blocks of equal size and cost, a heuristic otherwise). An evicted block comes back in the cheapest way there is:
//!
//! * a block that a task makes cheaply, from a source, from positions or from blocks that are in memory anyway, is dropped, and the task runs again;
//! * a block that is on disk already is dropped, and fetched;
//! * a result that was loaded goes back to where it came from: its handle names the source, and nothing is written;
//! * any other block is spilled first, once: it stays on disk until its last use. A fold that changes a fetched block makes the copy on disk worthless.
//!
//! Two kinds of operands need not be in main memory as a whole. A block whose readers take parts of it, as when a tensor is cut differently, is spilled in
//! these parts, and a reader fetches its part alone ([`Parts`]); where other readers take all of it, it is spilled as a whole, too. A merge of sorted runs and a gather read operands where they are, on disk
//! ([`Workflow::streamed_operands`]).
//!
//! All other blocks that the current step reads or writes are never evicted. So a budget works exactly if every single step fits ([`least_bytes`]).
//! Moves are steps of the schedule and instances are its blocks in one memory ([`tw_ir::schedule`]), so engines, peaks and hashes know nothing of this
//! module, and the bits of results do not depend on it.
//!
//! Two orders are tried ([`order`](crate::order)), and the one that moves fewer bytes is taken: depth-first, which holds few intermediate blocks, and
//! eager, where all consumers of a block run as soon as they can, which reads inputs of several results together.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::AddAssign;

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Instance, InstanceId, Memory, Move, Placement, Schedule, Step};
use tw_ir::workflow::{BlockId, BlockSetId, MaybeOperand, Operand, ScratchSizes, TaskId, TaskKind, Workflow};

use self::parts::{Parts, Unit};
use crate::cost::task_flops;
use crate::order::eager;

mod io;
mod parts;
mod ranks;

pub use self::io::IoMemory;
pub use self::ranks::{fit_rank, least_bytes_of_rank};

/// A schedule that keeps to a budget, and its price.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The schedule, with moves.
    pub schedule: Schedule,
    /// The bytes that it moves.
    pub traffic: BudgetTraffic,
}

/// Bytes that a budget makes a schedule move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetTraffic {
    /// Made again without operands: read again from sources, or computed again.
    pub remade: u64,
    /// Written to the spill directory.
    pub spilled: u64,
    /// Read from the spill directory.
    pub fetched: u64,
}

impl BudgetTraffic {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.remade.saturating_add(self.spilled).saturating_add(self.fetched)
    }
}

impl AddAssign for BudgetTraffic {
    fn add_assign(&mut self, other: BudgetTraffic) {
        self.remade = self.remade.saturating_add(other.remade);
        self.spilled = self.spilled.saturating_add(other.spilled);
        self.fetched = self.fetched.saturating_add(other.fetched);
    }
}

/// The bytes of the largest step: its operands, outputs and scratch space, but for blocks that are in memory anyway. Gives the task, too. No smaller budget works.
pub fn least_bytes(schedule: &Schedule, io: &IoMemory) -> (u64, Option<TaskId>) {
    let workflow = schedule.workflow();
    let order: Vec<TaskId> = schedule.order().collect();
    let parts = Parts::of(workflow, &order, io);
    let remakers = Remakers::of(workflow, &parts, io);
    let scratch = ScratchSizes::of(workflow);
    let mut seen = vec![u32::MAX; parts.n_units()];
    let mut most = (0, None);
    for (position, task) in order.into_iter().enumerate() {
        let makers =
            |task: TaskId| workflow.present_operands(task).filter_map(|operand| remakers.of_block(operand.block));
        let again = makers(task);
        // Operands that are made again are made before the task runs.
        let all_makers = makers(task).flat_map(|task| makers(task).chain([task]));
        let fetched = workflow.present_operands(task).map(|operand| io.of_load(workflow, operand.block));
        let making = all_makers.map(|task| io.of_task(workflow, &scratch, task)).chain(fetched).max().unwrap_or(0);
        let needed = again.flat_map(|task| workflow.present_operands(task)).map(|operand| operand.block);
        let streamed = workflow.streamed_operands(task);
        let read = workflow.operands(task)[streamed.len()..].iter().filter_map(|operand| operand.expand());
        let made = workflow.outputs(task).iter().copied();
        let streaming = if streamed.is_empty() { 0 } else { workflow.streaming_bytes(task) };
        let mut bytes = io.of_task(workflow, &scratch, task).saturating_add(streaming).max(making);
        for unit in read.map(|operand| parts.unit(operand)).chain(made.chain(needed).map(Unit::whole)) {
            let is_new = std::mem::replace(&mut seen[unit.index()], position as u32) != position as u32;
            if is_new && !io.is_resident(parts.block(unit)) {
                bytes = bytes.saturating_add(parts.bytes(workflow, unit));
            }
        }
        if bytes > most.0 {
            most = (bytes, Some(task));
        }
    }
    most
}

/// The schedule of the same workflow that keeps to a budget with the fewest bytes moved, of the orders that are tried.
///
/// `io` names blocks that are in memory already, which cost nothing, and the scratch space of loads and stores. `None` if a step alone is larger than the budget.
pub fn fit(schedule: &Schedule, budget: u64, io: &IoMemory) -> Result<Option<Fitted>> {
    if schedule.placement().is_some() {
        return Err(Error::internal("a schedule of several ranks is fitted rank by rank"));
    }
    if least_bytes(schedule, io).0 > budget {
        return Ok(None);
    }
    let workflow = schedule.workflow();
    let depth_first: Vec<TaskId> = schedule.order().collect();
    let parts = Parts::of(workflow, &depth_first, io);
    let eager = eager(workflow, &depth_first);
    let mut best: Option<Replayed> = None;
    for order in [depth_first, eager] {
        let found = Replayed::of(workflow, &parts, &order, budget, io)?;
        if best.as_ref().is_none_or(|best| found.traffic.total() < best.traffic.total()) {
            best = Some(found);
        }
    }
    let Some(Replayed { steps, placement, traffic, .. }) = best else { return Ok(None) };
    let schedule = schedule.with_moves(steps, placement, Some(budget))?;
    Ok(Some(Fitted { schedule, traffic }))
}

/// The blocks that a task reads or writes; some may come twice.
fn touched(workflow: &Workflow, task: TaskId) -> impl Iterator<Item = BlockId> {
    let reads = workflow.present_operands(task).map(|operand| operand.block);
    reads.chain(workflow.outputs(task).iter().copied())
}

/// The tasks that can make a block again.
struct Remakers {
    /// Per block, its task.
    tasks: Vec<u32>,
}

impl Remakers {
    fn of(workflow: &Workflow, parts: &Parts, io: &IoMemory) -> Remakers {
        let mut remakers = Remakers { tasks: vec![NONE; workflow.n_blocks()] };
        // Tasks come after those that make their operands.
        for task in workflow.tasks() {
            if let &[block] = workflow.outputs(task)
                && !parts.leaves_early(block)
                && remakers.is_cheap(workflow, task, block, io)
            {
                remakers.tasks[block.index()] = task.as_u32();
            }
        }
        // A result has to be somewhere at the end.
        for output in &workflow.outputs {
            let first = workflow.sets[output.set].first as usize;
            remakers.tasks[first..first + workflow.sets[output.set].n_blocks() as usize].fill(NONE);
        }
        remakers
    }

    fn of_block(&self, block: BlockId) -> Option<TaskId> {
        let task = self.tasks[block.index()];
        (task != NONE).then(|| TaskId::from_u32(task))
    }

    /// True if a task makes its block cheaply from blocks that are in memory anyway, or that are small and made from nothing.
    fn is_cheap(&self, workflow: &Workflow, task: TaskId, block: BlockId, io: &IoMemory) -> bool {
        if workflow.kind(task) == TaskKind::Fold {
            return false;
        }
        let bytes = workflow.block_bytes(block);
        let is_cheap = match &workflow.kernels[workflow.kernel(task)].kernel {
            Kernel::Load { .. } | Kernel::Fill(_) => true,
            Kernel::Statement(_) => task_flops(workflow, task) <= bytes.saturating_mul(CHEAP),
            Kernel::Call(function) => function.0.reads_input(),
            _ => false,
        };
        is_cheap
            && workflow.present_operands(task).all(|operand| {
                let from_nothing =
                    self.of_block(operand.block).is_some_and(|maker| workflow.operands(maker).is_empty());
                io.is_resident(operand.block) || from_nothing && workflow.block_bytes(operand.block) <= bytes / SMALL
            })
    }
}

/// Scalar operations for each byte of a block up to which it is computed again rather than spilled.
const CHEAP: u64 = 32;

/// Operands that are made again with a block have at most so small a part of its bytes.
const SMALL: u64 = 16;

const NONE: u32 = u32::MAX;

/// The uses of every unit, in the order of steps.
struct Uses {
    ends: Vec<u32>,
    positions: Vec<u32>,
    /// Per unit, the next of its uses.
    next: Vec<u32>,
}

impl Uses {
    fn of(workflow: &Workflow, parts: &Parts, order: &[TaskId]) -> Uses {
        let mut ends = vec![0u32; parts.n_units()];
        let mut last = vec![NONE; parts.n_units()];
        let mut each = |count: &mut dyn FnMut(Unit, u32)| {
            last.fill(NONE);
            for (position, &task) in order.iter().enumerate() {
                for unit in touched_units(workflow, parts, task) {
                    if std::mem::replace(&mut last[unit.index()], position as u32) != position as u32 {
                        count(unit, position as u32);
                    }
                }
            }
        };
        each(&mut |unit, _| ends[unit.index()] += 1);
        let mut sum = 0;
        let mut next = Vec::with_capacity(ends.len());
        for end in &mut ends {
            next.push(sum);
            sum += *end;
            *end = sum;
        }
        let mut positions = vec![0; sum as usize];
        let mut cursor = next.clone();
        each(&mut |unit, position| {
            positions[cursor[unit.index()] as usize] = position;
            cursor[unit.index()] += 1;
        });
        Uses { ends, positions, next }
    }

    /// The next use of a unit; `NONE` if there is none.
    fn next(&self, unit: Unit) -> u32 {
        let next = self.next[unit.index()];
        if next < self.ends[unit.index()] { self.positions[next as usize] } else { NONE }
    }

    /// The next use has come.
    fn advance(&mut self, unit: Unit) {
        self.next[unit.index()] += 1;
    }
}

/// The units that a task reads or writes; some may come twice. A part comes with its block, whichever of the two is in memory when the task runs.
fn touched_units<'a>(workflow: &'a Workflow, parts: &'a Parts, task: TaskId) -> impl Iterator<Item = Unit> + 'a {
    let read_parts = workflow.present_operands(task).map(|operand| parts.unit(operand));
    touched(workflow, task).map(Unit::whole).chain(read_parts)
}

/// An order replayed under a budget.
struct Replayed<'a> {
    workflow: &'a Workflow,
    budget: u64,
    io: &'a IoMemory,
    scratch: ScratchSizes,
    is_result: Vec<bool>,
    /// Sets of blocks that come from a source.
    loaded: HashSet<BlockSetId>,
    parts: &'a Parts,
    remakers: Remakers,
    uses: Uses,
    /// Per block, the last step that writes it.
    last_write: Vec<u32>,
    /// Per block, true if it was spilled in parts.
    is_split: Vec<bool>,
    /// Per unit, its instance in main memory and on disk.
    host: Vec<u32>,
    disk: Vec<u32>,
    /// Units that can be evicted, the farthest next use first; ties by number. Entries whose next use has changed are stale.
    candidates: BinaryHeap<(u32, Reverse<u32>)>,
    /// Operands of a task that runs again, which stay until it has run.
    pinned: Vec<BlockId>,
    /// Per block, the last step that can do without it in main memory, although it reads it.
    may_leave: Vec<u32>,
    now: u64,
    steps: Vec<Step>,
    placement: Placement,
    traffic: BudgetTraffic,
}

impl<'a> Replayed<'a> {
    fn of(
        workflow: &'a Workflow,
        parts: &'a Parts,
        order: &[TaskId],
        budget: u64,
        io: &'a IoMemory,
    ) -> Result<Replayed<'a>> {
        let n_blocks = workflow.n_blocks();
        let mut is_result = vec![false; n_blocks];
        for output in &workflow.outputs {
            let first = workflow.sets[output.set].first as usize;
            is_result[first..first + workflow.sets[output.set].n_blocks() as usize].fill(true);
        }
        let mut replayed = Replayed {
            workflow,
            budget,
            io,
            scratch: ScratchSizes::of(workflow),
            is_result,
            loaded: workflow.loaded_sets().map(|(set, _)| set).collect(),
            parts,
            remakers: Remakers::of(workflow, parts, io),
            uses: Uses::of(workflow, parts, order),
            last_write: vec![0; n_blocks],
            is_split: vec![false; n_blocks],
            host: vec![NONE; parts.n_units()],
            disk: vec![NONE; parts.n_units()],
            candidates: BinaryHeap::new(),
            pinned: Vec::new(),
            may_leave: vec![NONE; n_blocks],
            now: 0,
            steps: Vec::with_capacity(order.len()),
            placement: Placement::new(1, vec![0; workflow.n_tasks()], Vec::new()),
            traffic: BudgetTraffic::default(),
        };
        for (position, &task) in order.iter().enumerate() {
            workflow.outputs(task).iter().for_each(|block| replayed.last_write[block.index()] = position as u32);
        }
        for (position, &task) in order.iter().enumerate() {
            replayed.step(position as u32, task)?;
        }
        replayed.name_results()?;
        Ok(replayed)
    }

    fn step(&mut self, position: u32, task: TaskId) -> Result<()> {
        let workflow = self.workflow;
        let continues = workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0;
        let streamed = workflow.streamed_operands(task);
        let others = &workflow.operands(task)[streamed.len()..];
        for operand in streamed.iter().filter_map(|operand| operand.expand()) {
            self.may_leave[operand.block.index()] = position;
        }
        for operand in others.iter().filter_map(|operand| operand.expand()) {
            if !self.parts.unit(operand).is_block(workflow) {
                self.may_leave[operand.block.index()] = position;
            }
        }
        for operand in others.iter().filter_map(|operand| operand.expand()) {
            if self.parts.unit(operand).is_block(workflow) {
                self.may_leave[operand.block.index()] = NONE;
            }
        }
        self.bring_all(others, position)?;
        for &block in workflow.outputs(task) {
            if continues {
                self.bring(Unit::whole(block), position)?;
                // The copy on disk lacks the contribution that comes now.
                self.disk[block.index()] = NONE;
            } else {
                self.make(Unit::whole(block), position)?;
            }
        }
        // Room may cost whole blocks of which the task needs a part, and these parts need room, too. A block is split at most once.
        loop {
            self.make_room_to_run(task, position)?;
            let n_instances = self.placement.n_instances();
            self.bring_all(others, position)?;
            if self.placement.n_instances() == n_instances {
                break;
            }
        }
        self.add_task(task);
        for unit in touched_units(workflow, self.parts, task) {
            // A unit that the task touches twice was counted off the first time.
            if self.uses.next(unit) == position {
                self.uses.advance(unit);
                self.after_use(unit);
            }
        }
        Ok(())
    }

    fn bring_all(&mut self, operands: &[MaybeOperand], position: u32) -> Result<()> {
        for operand in operands.iter().filter_map(|operand| operand.expand()) {
            self.bring(self.unit_of(operand), position)?;
        }
        Ok(())
    }

    /// The unit that serves an operand: its block, or the part that was spilled.
    fn unit_of(&self, operand: Operand) -> Unit {
        if self.is_split[operand.block.index()] { self.parts.unit(operand) } else { Unit::whole(operand.block) }
    }

    /// A task needs its scratch space, and pieces of operands that it reads on disk.
    fn make_room_to_run(&mut self, task: TaskId, position: u32) -> Result<()> {
        let streamed = self.workflow.streamed_operands(task);
        for operand in streamed.iter().filter_map(|operand| operand.expand()) {
            let block = operand.block.index();
            if self.host[block] == NONE && self.disk[block] == NONE {
                self.bring(Unit::whole(operand.block), position)?;
            }
        }
        let scratch = self.io.of_task(self.workflow, &self.scratch, task);
        self.make_room(scratch, position)?;
        // Room for scratch space may have cost operands that were in memory.
        let is_on_disk = |operand: Operand| self.host[operand.block.index()] == NONE;
        if streamed.iter().filter_map(|operand| operand.expand()).any(is_on_disk) {
            self.make_room(scratch.saturating_add(self.workflow.streaming_bytes(task)), position)?;
        }
        Ok(())
    }

    /// Evicts until so many bytes are free.
    fn make_room(&mut self, bytes: u64, position: u32) -> Result<()> {
        while self.now.saturating_add(bytes) > self.budget {
            self.evict(position)?;
        }
        Ok(())
    }

    /// Adds the step of a task whose blocks all have an instance in main memory, or on disk if the task streams them.
    fn add_task(&mut self, task: TaskId) {
        let instance = |unit: Unit| {
            let host = self.host[unit.index()];
            InstanceId::from_u32(if host == NONE { self.disk[unit.index()] } else { host })
        };
        let operands = self.workflow.operands(task).iter();
        let reads = operands.map(|operand| operand.expand().map(|operand| instance(self.unit_of(operand))));
        let writes = self.workflow.outputs(task).iter().map(|&block| instance(Unit::whole(block)));
        let (reads, writes): (Vec<_>, Vec<_>) = (reads.collect(), writes.collect());
        self.placement.add_task(reads, writes);
        self.steps.push(Step::task(task));
    }

    /// A unit was used: it dies, or can be evicted from now on.
    fn after_use(&mut self, unit: Unit) {
        let block = self.parts.block(unit);
        // What serves the uses of a block is the block itself until it is split, and its parts then; readers of all of it need the block still.
        let (is_split, is_block) = (self.is_split[block.index()], unit.is_block(self.workflow));
        if is_split == is_block && !(is_split && self.parts.is_also_read_whole(block)) {
            return;
        }
        let next = self.uses.next(unit);
        if next == NONE && !self.is_result[block.index()] {
            self.let_go(unit);
            self.disk[unit.index()] = NONE;
        } else if !self.io.is_resident(block) {
            self.candidates.push((next, Reverse(unit.0)));
        }
    }

    fn let_go(&mut self, unit: Unit) {
        if self.host[unit.index()] != NONE {
            self.host[unit.index()] = NONE;
            self.now -= self.bytes(unit);
        }
    }

    fn is_loaded(&self, unit: Unit) -> bool {
        unit.is_block(self.workflow) && self.loaded.contains(&self.workflow.set_of(self.parts.block(unit)))
    }

    fn bytes(&self, unit: Unit) -> u64 {
        if self.io.is_resident(self.parts.block(unit)) { 0 } else { self.parts.bytes(self.workflow, unit) }
    }

    fn instance(&self, unit: Unit, memory: Memory) -> Instance {
        Instance { block: self.parts.block(unit), region: self.parts.region(unit), memory }
    }

    /// Makes room for a new instance of a unit in main memory.
    fn make(&mut self, unit: Unit, position: u32) -> Result<()> {
        let bytes = self.bytes(unit);
        self.make_room(bytes, position)?;
        self.now += bytes;
        let instance = self.instance(unit, Memory::Host(0));
        self.host[unit.index()] = self.placement.add_instance(instance).as_u32();
        Ok(())
    }

    /// Sees to it that a unit that was made before is in main memory.
    fn bring(&mut self, unit: Unit, position: u32) -> Result<()> {
        if self.host[unit.index()] != NONE {
            return Ok(());
        }
        self.make(unit, position)?;
        let (bytes, to) = (self.bytes(unit), InstanceId::from_u32(self.host[unit.index()]));
        if self.disk[unit.index()] != NONE {
            let is_loaded = self.is_loaded(unit);
            if is_loaded {
                self.make_room(self.io.of_load(self.workflow, self.parts.block(unit)), position)?;
            }
            let from = InstanceId::from_u32(self.disk[unit.index()]);
            let step = self.placement.add_move(Move { from, to });
            self.steps.push(step);
            let traffic = &mut self.traffic;
            *(if is_loaded { &mut traffic.remade } else { &mut traffic.fetched }) += bytes;
        } else if let Some(task) = self.remakers.of_block(self.parts.block(unit)) {
            self.remake(task, position)?;
            self.traffic.remade += bytes;
        } else {
            return Err(Error::internal(format!("{} is used before it is made", self.parts.block(unit))));
        }
        Ok(())
    }

    /// Runs a task again, with operands that are in memory anyway or made again for it.
    fn remake(&mut self, task: TaskId, position: u32) -> Result<()> {
        let workflow = self.workflow;
        // A task whose operand is made again keeps its own pins.
        let n_pinned = self.pinned.len();
        for operand in workflow.present_operands(task) {
            self.pinned.push(operand.block);
            self.bring(Unit::whole(operand.block), position)?;
        }
        self.make_room(self.io.of_task(workflow, &self.scratch, task), position)?;
        self.pinned.truncate(n_pinned);
        self.add_task(task);
        for operand in workflow.present_operands(task) {
            // The current step may need it, too.
            if self.uses.next(Unit::whole(operand.block)) != position {
                self.after_use(Unit::whole(operand.block));
            }
        }
        Ok(())
    }

    /// Evicts the unit whose next use is farthest away.
    fn evict(&mut self, position: u32) -> Result<()> {
        while let Some((next, Reverse(number))) = self.candidates.pop() {
            let unit = Unit(number);
            let block = self.parts.block(unit);
            // A block that is pinned, or that the current step needs, is a candidate again after the task that needs it.
            let is_needed =
                next <= position && !(unit.is_block(self.workflow) && self.may_leave[block.index()] == position);
            if self.host[unit.index()] == NONE
                || self.uses.next(unit) != next
                || is_needed
                || self.pinned.contains(&block)
            {
                continue;
            }
            if self.is_spilled_in_parts(unit, position) {
                self.split(block);
            } else if self.disk[unit.index()] == NONE && self.remakers.of_block(block).is_none() {
                self.spill(unit, unit);
            }
            self.let_go(unit);
            return Ok(());
        }
        Err(Error::internal("a step is larger than the budget that was said to be enough"))
    }

    /// True if a block leaves in parts: nothing writes it any more, and all that is left to come are readers of parts.
    fn is_spilled_in_parts(&self, unit: Unit, position: u32) -> bool {
        let block = self.parts.block(unit);
        unit.is_block(self.workflow)
            && self.parts.is_read_in_parts(block)
            && self.last_write[block.index()] < position
            && !self.is_split[block.index()]
    }

    /// Spills the parts of a block that are still to be read.
    fn split(&mut self, block: BlockId) {
        self.is_split[block.index()] = true;
        let whole = Unit::whole(block);
        if self.parts.is_also_read_whole(block) && self.uses.next(whole) != NONE && self.disk[whole.index()] == NONE {
            self.spill(whole, whole);
        }
        for part in self.parts.of_block(block) {
            if self.uses.next(part) != NONE {
                self.spill(Unit::whole(block), part);
            }
        }
    }

    /// Writes a unit to disk, from a unit in main memory that has it.
    fn spill(&mut self, from: Unit, unit: Unit) {
        let to = self.placement.add_instance(self.instance(unit, Memory::Disk(0)));
        let from = InstanceId::from_u32(self.host[from.index()]);
        let step = self.placement.add_move(Move { from, to });
        self.steps.push(step);
        self.disk[unit.index()] = to.as_u32();
        if !self.is_loaded(unit) {
            self.traffic.spilled += self.bytes(unit);
        }
    }

    /// Results stay where they are at the end.
    fn name_results(&mut self) -> Result<()> {
        let mut results = Vec::new();
        for output in &self.workflow.outputs {
            for k in 0..self.workflow.sets[output.set].n_blocks() {
                let block = self.workflow.block(output.set, k);
                let found = [self.host[block.index()], self.disk[block.index()]].into_iter().find(|&id| id != NONE);
                let missing = || Error::internal(format!("{block}, a result, is never made"));
                results.push(InstanceId::from_u32(found.ok_or_else(missing)?));
            }
        }
        self.placement.set_results(results);
        Ok(())
    }
}
