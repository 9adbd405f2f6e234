//! Running one task: operands in, kernel, outputs out.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use tw_block::{Block, BlockBuffer, BlockMessage, CompiledKernel, Source, SourceAccess, Streamed};
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{InstanceId, Memory, StepKind};
use tw_ir::workflow::{BlockId, Statement, TaskId, TaskKind};
use tw_ir::{Error, Result, Span};
use tw_wire::Message;

use crate::bindings::Bindings;
use crate::delivery::Deliveries;
use crate::events::{MoveKind, Moved};
use crate::handle::{Origin, Place};
use crate::keep::Keeping;
use crate::options::RunOptions;
use crate::part::Role;
use crate::prepared::{PreparedSchedule, TaskCode};
use crate::rest::{KeptTask, Todo};
use crate::slots::{Slot, Slots};
use crate::transfer::{Transfers, received};

/// More operands or outputs than this need the heap.
const FEW: usize = 4;

type HeldBlocks = SmallVec<[Option<Arc<Block>>; FEW]>;

/// The work of one thread since its last report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) steps: u64,
    pub(crate) loaded_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) spilled_bytes: u64,
    pub(crate) fetched_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.steps += other.steps;
        self.loaded_bytes += other.loaded_bytes;
        self.stored_bytes += other.stored_bytes;
        self.spilled_bytes += other.spilled_bytes;
        self.fetched_bytes += other.fetched_bytes;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
    }
}

/// One thread's view of a run.
pub(crate) struct TaskRunner<'a> {
    pub(crate) plan: &'a PreparedSchedule,
    pub(crate) bindings: &'a Bindings,
    pub(crate) options: &'a RunOptions,
    pub(crate) deliveries: &'a Deliveries,
    /// Where blocks are kept for later runs.
    pub(crate) keeping: Option<&'a Keeping>,
    pub(crate) worker: u32,
    pub(crate) tally: Tally,
    /// In a run of several ranks.
    pub(crate) transfers: Option<&'a Transfers>,
}

impl TaskRunner<'_> {
    /// Runs a step. When it returns, with or without an error, the step holds no block any more.
    pub(crate) fn run(&mut self, step: u32, slots: &mut impl Slots) -> Result<()> {
        if let Some(rest) = &self.plan.rest
            && rest.todo(step) != Todo::Run
        {
            if let Todo::Restore(k) = rest.todo(step) {
                self.restore(step, rest.kept(k), slots)?;
            }
            self.tally.steps += 1;
            if let Some(progress) = &self.options.progress {
                progress.step();
            }
            return Ok(());
        }
        let task = match self.plan.schedule.steps()[step as usize].kind() {
            StepKind::Task(task) => task,
            StepKind::Move(_) if self.plan.is_transfer(step) => return self.begin_transfer(step, slots),
            StepKind::Move(_) => {
                self.run_move(step, slots)?;
                self.count_step();
                return Ok(());
            }
        };
        // Nothing half-done survives a panic: blocks being written are dropped with the stack, and the run ends.
        let options = self.options;
        let result = catch_unwind(AssertUnwindSafe(|| match &options.observer {
            None => self.compute(step, task, slots),
            Some(observer) => {
                let start = Instant::now();
                observer.task_started(task, self.worker, start);
                self.compute(step, task, slots)?;
                observer.task_finished(task, self.worker, start, Instant::now(), options.meter.now());
                Ok(())
            }
        }));
        match result {
            Ok(Ok(())) => {
                self.count_step();
                Ok(())
            }
            Ok(Err(error)) => Err(in_statement(error, self.statement(task))),
            Err(payload) => {
                let label = &self.statement(task).label;
                let error = Error::internal(format!("a panic in `{label}`: {}", panic_text(payload.as_ref())));
                Err(in_statement(error, self.statement(task)))
            }
        }
    }

    fn count_step(&mut self) {
        self.tally.steps += 1;
        if let Some(progress) = &self.options.progress {
            progress.step();
        }
    }

    /// Begins a transfer between ranks. The lane ends it.
    fn begin_transfer(&mut self, step: u32, slots: &mut impl Slots) -> Result<()> {
        let schedule = &self.plan.schedule;
        let meter = &self.options.meter;
        let transfers = self.transfers.ok_or_else(|| Error::internal("a transfer without other ranks"))?;
        let (from, to) = (schedule.reads(step as usize).flatten().next(), schedule.writes(step as usize).next());
        let id = self.plan.part.as_ref().and_then(|part| part.number_of(step));
        let (Some(from), Some(to), Some(id)) = (from, to, id) else {
            return Err(Error::internal(format!("step {step} moves nothing")));
        };
        match self.plan.role(step) {
            Role::Sends { to: rank } => {
                let place = slots.with(from, Slot::claim);
                let place =
                    place.ok_or_else(|| Error::internal(format!("step {step} sends {from}, which is not there")))?;
                // An instance that is a part is a block of its own.
                let message = BlockMessage::new(place.bring(meter)?, schedule.part_of(to), meter)?;
                self.tally.sent_bytes += message.as_ref().len() as u64;
                transfers.send(id, rank, message)
            }
            Role::Receives { from: rank } => {
                let workflow = schedule.workflow();
                let block = schedule.block_of(to);
                let bbox = schedule.part_of(to).cloned().unwrap_or_else(|| workflow.block_box(block));
                let dtype = workflow.sets[workflow.set_of(block)].dtype;
                transfers.receive(id, rank, BlockBuffer::new(dtype, bbox, meter)?)
            }
            role => Err(Error::internal(format!("step {step} is no transfer: {role:?}"))),
        }
    }

    /// Ends a transfer between ranks. A block that has come goes into its slot.
    pub(crate) fn end_transfer(&mut self, step: u32, message: Option<Message>, slots: &mut impl Slots) -> Result<()> {
        if let Some(message) = message {
            let block = received(message)?;
            self.tally.received_bytes += block.n_bytes();
            self.put(step, self.written(step)?, Arc::new(block), slots)?;
        }
        self.count_step();
        Ok(())
    }

    fn statement(&self, task: TaskId) -> &Statement {
        let workflow = self.plan.schedule.workflow();
        &workflow.statements[workflow.statement(task)]
    }

    /// Makes a copy of a block in another memory. Ranks on one machine share main memory: there both instances are the same block.
    fn run_move(&mut self, step: u32, slots: &mut impl Slots) -> Result<()> {
        let schedule = &self.plan.schedule;
        let (from, to) = (schedule.reads(step as usize).flatten().next(), schedule.writes(step as usize).next());
        let (Some(from), Some(to)) = (from, to) else {
            return Err(Error::internal(format!("step {step} moves nothing")));
        };
        let place = slots.with(from, Slot::claim);
        let place = place.ok_or_else(|| Error::internal(format!("step {step} moves {from}, which is not there")))?;
        let start = self.options.observer.as_ref().map(|_| Instant::now());
        if let Some(keeping) = self.keeping {
            keeping.after_move(self.plan, from, to);
        }
        let (kind, bytes) = match (place, schedule.memory_of(to)) {
            (Place::Memory(block), Memory::Host(_)) => return self.put(step, to, block, slots),
            (place, Memory::Host(_)) => {
                let is_spilled = matches!(place, Place::Disk(_));
                let scratch = match &place {
                    Place::Source(origin) => origin.source.scratch(&origin.region),
                    _ => 0,
                };
                let _scratch = self.options.meter.charge_scratch(scratch);
                let block = place.bring(&self.options.meter)?;
                let bytes = block.n_bytes();
                let tally = &mut self.tally;
                *(if is_spilled { &mut tally.fetched_bytes } else { &mut tally.loaded_bytes }) += bytes;
                if let Some(progress) = &self.options.progress {
                    progress.has_read(bytes);
                }
                self.put(step, to, block, slots)?;
                (MoveKind::Fetch, bytes)
            }
            (Place::Memory(block), Memory::Disk(_)) if self.origin(to).is_some() => {
                let (region, source) = (block.bbox().clone(), self.origin(to).cloned());
                self.drop_block(schedule.block_of(from), block);
                let place = source.map(|source| Place::Source(Arc::new(Origin { source, region })));
                let place = place.ok_or_else(|| Error::internal("a source has gone"))?;
                slots.with(to, |slot| slot.put(place));
                return Ok(());
            }
            (Place::Memory(block), Memory::Disk(_)) => {
                let file = self.options.spill.as_ref();
                let file = file.ok_or_else(|| Error::internal("a schedule spills, but there is no spill file"))?;
                let spilled = match schedule.part_of(to) {
                    None => file.write(&block)?,
                    Some(part) => file.write_part(&block, part)?,
                };
                let bytes = spilled.n_bytes();
                self.tally.spilled_bytes += bytes;
                self.drop_block(schedule.block_of(from), block);
                slots.with(to, |slot| slot.put(Place::Disk(Arc::new(spilled))));
                (MoveKind::Spill, bytes)
            }
            (_, Memory::Disk(_)) => {
                return Err(Error::internal(format!("step {step} moves a block from disk to disk")));
            }
        };
        if let (Some(observer), Some(start)) = (&self.options.observer, start) {
            let moved = Moved { kind, block: schedule.block_of(from), bytes };
            observer.block_moved(moved, self.worker, start, Instant::now(), self.options.meter.now());
        }
        Ok(())
    }

    /// Where the block of an instance on disk can be read again, so that it need not be written. A result that the user gets must not depend on a file that may
    /// change; a part of a block would cost as much to read as all of it.
    fn origin(&self, instance: InstanceId) -> Option<&Arc<dyn Source>> {
        let schedule = &self.plan.schedule;
        let set = schedule.workflow().set_of(schedule.block_of(instance));
        let may_name = self.options.names_sources || !schedule.is_result(instance);
        self.bindings.origin(self.plan.loaded_from[set]?).filter(|_| may_name && schedule.part_of(instance).is_none())
    }

    /// Reads what a task has made in an earlier run.
    fn restore(&mut self, step: u32, kept: &KeptTask, slots: &mut impl Slots) -> Result<()> {
        let schedule = &self.plan.schedule;
        for (instance, saved) in schedule.writes(step as usize).zip(&kept.blocks) {
            let workflow = schedule.workflow();
            let output = schedule.block_of(instance);
            let set = &workflow.sets[workflow.set_of(output)];
            let block = saved.read(&self.options.meter)?;
            if block.dtype() != set.dtype || *block.bbox() != workflow.block_box(output) {
                return Err(Error::internal(format!("a kept block of `{}` is of another kind", set.name)));
            }
            self.tally.fetched_bytes += block.n_bytes();
            // Also a block that nobody reads: who adds to it takes it, together with the others of its task.
            self.put(step, instance, Arc::new(block), slots)?;
        }
        Ok(())
    }

    /// The outputs of a task are complete for now.
    fn keep(&self, (step, task): (u32, TaskId), start: Option<Instant>, outputs: &[&Block]) -> Result<()> {
        match (self.keeping, start) {
            (Some(keeping), Some(start)) => keeping.after_task(self.plan, (step, task), start.elapsed(), outputs),
            _ => Ok(()),
        }
    }

    fn compute(&mut self, step: u32, task: TaskId, slots: &mut impl Slots) -> Result<()> {
        let workflow = self.plan.schedule.workflow();
        let start = self.keeping.map(|_| Instant::now());
        // The space is counted before it is taken, and counted off when the task has ended.
        let scratch = self.plan.scratch_bytes(task, self.bindings);
        let code = &self.plan.code[workflow.kernel(task)];
        let _scratch = match code {
            TaskCode::Compute(kernel) if kernel.takes_kept_scratch() => self.options.meter.lease_scratch(scratch),
            _ => self.options.meter.charge_scratch(scratch),
        };
        match code {
            TaskCode::Load(source) => {
                let &[output] = workflow.outputs(task) else { return Err(malformed(task)) };
                let region = workflow.block_box(output);
                let source = self.bindings.source(*source)?;
                let block = source.read(&region, &self.options.meter)?;
                let set = &workflow.sets[workflow.set_of(output)];
                if *block.bbox() != region || block.dtype() != set.dtype {
                    return Err(Error::internal(format!(
                        "asked for {} {region}, the source gave {} {}",
                        set.dtype,
                        block.dtype(),
                        block.bbox()
                    )));
                }
                self.tally.loaded_bytes += block.n_bytes();
                if let Some(progress) = &self.options.progress
                    && source.access() != SourceAccess::Memory
                {
                    progress.has_read(block.n_bytes());
                }
                self.keep((step, task), start, &[&block])?;
                self.put(step, self.written(step)?, block, slots)?;
            }
            TaskCode::Store(sink) => {
                let held = self.claim_operands(step, task, slots)?;
                let [Some(block)] = held.as_slice() else { return Err(malformed(task)) };
                self.bindings.sink(*sink)?.write(block)?;
                self.tally.stored_bytes += block.n_bytes();
                if let Some(keeping) = self.keeping {
                    keeping.after_store(self.plan, (step, task), *sink)?;
                }
                self.let_go(task, held);
            }
            TaskCode::Compute(kernel) if self.plan.streams(step) => {
                self.compute_streamed((step, task), kernel, start, slots)?;
            }
            TaskCode::Compute(kernel) => {
                let held = self.claim_operands(step, task, slots)?;
                let operands: SmallVec<[Option<&Block>; FEW]> = held.iter().map(Option::as_deref).collect();
                match workflow.outputs(task) {
                    &[output] => self.compute_one((step, task), kernel, (&operands, start), output, slots)?,
                    outputs => self.compute_several((step, task), kernel, (&operands, start), outputs, slots)?,
                }
                drop(operands);
                self.let_go(task, held);
            }
        }
        Ok(())
    }

    /// The usual case: the output is written where it lies.
    fn compute_one(
        &self,
        (step, task): (u32, TaskId),
        kernel: &CompiledKernel,
        (operands, start): (&[Option<&Block>], Option<Instant>),
        output: BlockId,
        slots: &mut impl Slots,
    ) -> Result<()> {
        let first = self.is_first(task);
        let instance = self.written(step)?;
        let mut block = if first { Arc::new(self.new_block(output)?) } else { continued(task, instance, slots)? };
        let Some(target) = Arc::get_mut(&mut block) else { return Err(shared_while_written(task, output)) };
        kernel.run(self.plan.schedule.workflow().point(task), first, operands, slice::from_mut(target))?;
        self.keep((step, task), start, &[target])?;
        self.put(step, instance, block, slots)
    }

    fn compute_several(
        &self,
        (step, task): (u32, TaskId),
        kernel: &CompiledKernel,
        (operands, start): (&[Option<&Block>], Option<Instant>),
        outputs: &[BlockId],
        slots: &mut impl Slots,
    ) -> Result<()> {
        let first = self.is_first(task);
        let mut blocks: SmallVec<[Block; FEW]> = SmallVec::with_capacity(outputs.len());
        let schedule = &self.plan.schedule;
        for (&output, instance) in outputs.iter().zip(schedule.writes(step as usize)) {
            blocks.push(if first {
                self.new_block(output)?
            } else {
                Arc::into_inner(continued(task, instance, slots)?).ok_or_else(|| shared_while_written(task, output))?
            });
        }
        kernel.run(self.plan.schedule.workflow().point(task), first, operands, &mut blocks)?;
        self.keep((step, task), start, &blocks.iter().collect::<SmallVec<[&Block; FEW]>>())?;
        for (instance, block) in schedule.writes(step as usize).zip(blocks) {
            self.put(step, instance, Arc::new(block), slots)?;
        }
        Ok(())
    }

    /// A task that reads operands on disk. A merge reads them piece by piece. A gather takes its data blocks one after the other: each run of its kernel
    /// writes the elements that its data block has.
    fn compute_streamed(
        &self,
        (step, task): (u32, TaskId),
        kernel: &CompiledKernel,
        start: Option<Instant>,
        slots: &mut impl Slots,
    ) -> Result<()> {
        let schedule = &self.plan.schedule;
        let workflow = schedule.workflow();
        let mut places: Vec<Option<Place>> = Vec::new();
        for read in schedule.reads(step as usize) {
            places.push(match read {
                None => None,
                Some(instance) => {
                    let place = slots.with(instance, Slot::claim);
                    Some(place.ok_or_else(|| missing(task, instance))?)
                }
            });
        }
        let outputs = workflow.outputs(task);
        let mut blocks: Vec<Block> = outputs.iter().map(|&output| self.new_block(output)).collect::<Result<_>>()?;
        let kind = &workflow.kernels[workflow.kernel(task)].kernel;
        if matches!(kind, Kernel::SortMerge(_)) {
            let _pieces = self.options.meter.charge_scratch(schedule.replay().streaming_bytes(step as usize));
            let mut runs = Vec::with_capacity(places.len());
            for place in &places {
                runs.push(match place {
                    Some(Place::Memory(block)) => Streamed::Memory(block),
                    Some(Place::Disk(block)) => Streamed::Disk(block),
                    _ => return Err(malformed(task)),
                });
            }
            kernel.run_streamed(&runs, &mut blocks)?;
        } else {
            let streamed = kind.streamed_operands(places.len());
            let others: Vec<Option<Arc<Block>>> = places.split_off(streamed.end).into_iter().map(block_of).collect();
            for (turn, place) in places.into_iter().enumerate() {
                let data = place.map(|place| place.bring(&self.options.meter)).transpose()?;
                let operands = std::iter::once(data.as_deref()).chain(others.iter().map(Option::as_deref));
                let operands: Vec<Option<&Block>> = operands.collect();
                kernel.run(workflow.point(task), turn == 0, &operands, &mut blocks)?;
            }
        }
        self.keep((step, task), start, &blocks.iter().collect::<Vec<_>>())?;
        for (instance, block) in schedule.writes(step as usize).zip(blocks) {
            self.put(step, instance, Arc::new(block), slots)?;
        }
        Ok(())
    }

    fn is_first(&self, task: TaskId) -> bool {
        let workflow = self.plan.schedule.workflow();
        workflow.kind(task) != TaskKind::Fold || workflow.position(task) == 0
    }

    fn new_block(&self, block: BlockId) -> Result<Block> {
        let workflow = self.plan.schedule.workflow();
        let set = workflow.set_of(block);
        let bbox = workflow.block_box(block);
        let (output, is_copied) = match self.deliveries.lend(set, &bbox)? {
            Some(part) => (part, false),
            None => {
                let own = Block::for_output(workflow.sets[set].dtype, bbox, Some(&self.options.meter))?;
                (own, self.deliveries.copies(set))
            }
        };
        let past_cache = self.plan.past_cache[set] && !is_copied;
        Ok(if past_cache { output.write_past_cache() } else { output })
    }

    /// The instance that a step of one output writes.
    fn written(&self, step: u32) -> Result<InstanceId> {
        let instance = self.plan.schedule.writes(step as usize).next();
        instance.ok_or_else(|| Error::internal(format!("step {step} writes nothing")))
    }

    fn claim_operands(&self, step: u32, task: TaskId, slots: &mut impl Slots) -> Result<HeldBlocks> {
        let mut held = HeldBlocks::new();
        for read in self.plan.schedule.reads(step as usize) {
            held.push(match read {
                None => None,
                Some(instance) => Some(in_memory(task, instance, slots.with(instance, Slot::claim))?),
            });
        }
        Ok(held)
    }

    /// Puts a block into its slot. A block without readers is claimed at once by its writer; so is a block that was copied into its output array.
    fn put(&self, step: u32, instance: InstanceId, value: Arc<Block>, slots: &mut impl Slots) -> Result<()> {
        let delivered = self.deliveries.deliver(self.plan, step, instance, &value)?;
        let unread = self.plan.is_unread(instance);
        let dead = slots.with(instance, |slot| {
            slot.put(Place::Memory(value));
            // For a block without readers, only the claim of the last writer is the last claim; an earlier one is a clone, dropped here.
            (0..delivered + unread as usize).fold(None, |_, _| slot.claim())
        });
        if let Some(Place::Memory(value)) = dead {
            self.drop_block(self.plan.schedule.block_of(instance), value);
        }
        Ok(())
    }

    /// Drops references to operands; the last one takes the block with it.
    fn let_go(&self, task: TaskId, held: HeldBlocks) {
        if self.options.observer.is_none() {
            return;
        }
        let operands = self.plan.schedule.workflow().operands(task);
        for (operand, value) in operands.iter().zip(held) {
            if let (Some(operand), Some(value)) = (operand.expand(), value) {
                self.drop_block(operand.block, value);
            }
        }
    }

    fn drop_block(&self, block: BlockId, value: Arc<Block>) {
        // `into_inner` rather than looking at the count: of several threads that let go at once exactly one gets the block.
        if let Some(value) = Arc::into_inner(value)
            && let Some(observer) = &self.options.observer
        {
            let bytes = value.n_bytes();
            drop(value);
            observer.block_deleted(block, bytes, self.worker, Instant::now());
        }
    }
}

/// Names the statement an error comes from.
pub(crate) fn in_statement(error: Error, statement: &Statement) -> Error {
    let error = error.at(&statement.span);
    match error.span() {
        Span::Text { .. } => error,
        _ => error.note(format!("in `{}`", statement.label)),
    }
}

fn continued(task: TaskId, instance: InstanceId, slots: &mut impl Slots) -> Result<Arc<Block>> {
    in_memory(task, instance, slots.with(instance, Slot::take))
}

/// A block in main memory.
fn block_of(place: Option<Place>) -> Option<Arc<Block>> {
    match place {
        Some(Place::Memory(block)) => Some(block),
        _ => None,
    }
}

/// Tasks find their operands in main memory: the schedule has moved them there.
fn in_memory(task: TaskId, instance: InstanceId, place: Option<Place>) -> Result<Arc<Block>> {
    match place {
        Some(Place::Memory(block)) => Ok(block),
        _ => Err(missing(task, instance)),
    }
}

fn missing(task: TaskId, instance: InstanceId) -> Error {
    Error::internal(format!("{task} needs {instance}, which is not there"))
}

fn malformed(task: TaskId) -> Error {
    Error::internal(format!("{task} does not have the operands and outputs its kernel takes"))
}

fn shared_while_written(task: TaskId, block: BlockId) -> Error {
    Error::internal(format!("{task} writes {block} while another task reads it"))
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    match payload.downcast_ref::<&str>() {
        Some(text) => text,
        None => payload.downcast_ref::<String>().map_or("no message", String::as_str),
    }
}
