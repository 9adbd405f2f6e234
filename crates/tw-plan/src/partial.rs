//! Partial evaluation: runs the plan on block coordinates alone, which yields the workflow.
//!
//! Each block key yields its tasks. For each tile of the variables, interval arithmetic gives the box of each operand that is read, and so the blocks. No data is
//! touched. A box that spans several blocks (a halo, a misaligned tiling) becomes a block of its own, assembled once by an explicit task and shared by all readers. Tiles that a
//! guard excludes yield no tasks.
//!
//! Rejected: operands of several pieces. Every kernel would have to read through tables of pieces, and the peak would hide the copies. The price of an assembled block
//! is one copy.

use std::collections::HashMap;

use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::plan::{Plan, PlanStep, RelId, RelOp};
use tw_ir::workflow::{
    BlockId, BlockSet, BlockSetId, Boxes, KernelEntry, KernelId, MaybeOperand, Operand, OutputDecl, SourceId, StmtId,
    TaskKind, Workflow,
};
use tw_ir::{Axis, BoxRegion, DType};

mod chains;
mod guard;
mod join;
mod masked;
mod operators;
mod reads;
mod sort;

/// More tasks or blocks than this are refused before memory is spent on them: the tiles are too small for the program.
const MAX_TASKS: u64 = 1 << 24;
/// Tasks that read many blocks each (a sort of very many blocks) are refused in the same way.
const MAX_OPERANDS: u64 = 1 << 26;

/// The number of tasks between two checks of `stop`.
const TASKS_BETWEEN_QUESTIONS: usize = 1 << 10;

/// Evaluates a plan over its block keys, unless `stop` returns true.
pub(crate) fn evaluate(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<Workflow> {
    Ok(evaluate_sets(plan, stop)?.0)
}

/// Evaluates a plan over its block keys as planning does, and tells which blocks are those of each relation.
pub fn evaluate_sets(plan: &Plan, stop: &dyn Fn() -> bool) -> Result<(Workflow, HashMap<RelId, BlockSetId>)> {
    let mut workflow = Workflow::default();
    workflow.statements = plan.statements.clone();
    workflow.sources = plan.sources.clone();
    workflow.sinks = plan.sinks.clone();
    let mut partial =
        Partial { plan, stop, workflow, sets: HashMap::new(), assembled: HashMap::new(), regions: HashMap::new() };
    for step in &plan.steps {
        partial.step(step).map_err(|error| error.at(&plan.statements[step.statement].span))?;
    }
    for (name, relation) in &plan.outputs {
        let set = partial.sets[relation];
        let dtype = partial.workflow.sets[set].dtype;
        partial.workflow.outputs.push(OutputDecl { name: name.clone(), set, dtype });
    }
    Ok((partial.workflow, partial.sets))
}

struct Partial<'a> {
    plan: &'a Plan,
    stop: &'a dyn Fn() -> bool,
    workflow: Workflow,
    sets: HashMap<RelId, BlockSetId>,
    /// Regions of a relation that span several of its blocks, as blocks of their own.
    assembled: HashMap<(RelId, BoxRegion), BlockId>,
    /// Numbers of parts of blocks already in the workflow's table.
    regions: HashMap<BoxRegion, u32>,
}

impl Partial<'_> {
    fn step(&mut self, step: &PlanStep) -> Result<()> {
        for &output in &step.outputs {
            let relation = &self.plan.relations[output];
            let boxes = Boxes::Grid(relation.grid.clone());
            let set = self.add_set(&relation.name, relation.dtype, &relation.shape, boxes, step.statement)?;
            self.sets.insert(output, set);
        }
        match &step.op {
            RelOp::Load { source } => self.load(step, *source),
            RelOp::Join { kernel, chains, .. } => self.join(step, kernel, *chains),
            RelOp::Finish(spec) => {
                let kernel = Kernel::Finish(spec.clone());
                self.block_by_block(step, kernel)
            }
            RelOp::Retile => self.concat(step, 0),
            RelOp::Concat { axis } => self.concat(step, *axis),
            RelOp::Scan(spec) => self.scan(step, spec),
            RelOp::Gather { spec, fill } => self.gather(step, spec, *fill),
            RelOp::Scatter { spec, chains } => self.scatter(step, spec, *chains),
            RelOp::Compact(counts) => self.compact(step, counts),
            RelOp::Expand(counts) => self.expand(step, counts),
            RelOp::Sort(sorting) => self.sort(step, *sorting),
            RelOp::BlockFn(call) => self.block_fn(step, call),
            RelOp::Store { sink } => self.block_by_block(step, Kernel::Store { sink: *sink }),
        }
    }

    fn load(&mut self, step: &PlanStep, source: SourceId) -> Result<()> {
        let set = self.sets[&step.outputs[0]];
        let kernel = self.kernel(Kernel::Load { source }, step.statement);
        for position in 0..self.workflow.sets[set].n_blocks() {
            let block = self.workflow.block(set, position);
            self.task(TaskKind::Load, kernel, 0, 0, &[], &[block])?;
        }
        Ok(())
    }

    /// One apply task per block of relations that share a grid.
    fn block_by_block(&mut self, step: &PlanStep, kernel: Kernel) -> Result<()> {
        let kernel = self.kernel(kernel, step.statement);
        for position in 0..self.plan.relations[step.inputs[0]].n_blocks() {
            let operands: Vec<MaybeOperand> = step.inputs.iter().map(|&r| self.whole(r, position)).collect();
            let outputs: Vec<BlockId> = step.outputs.iter().map(|&r| self.block_at(r, position)).collect();
            self.task(TaskKind::Apply, kernel, 0, 0, &operands, &outputs)?;
        }
        Ok(())
    }

    fn kernel(&mut self, kernel: Kernel, statement: StmtId) -> KernelId {
        self.workflow.kernels.push(KernelEntry { kernel, statement })
    }

    fn task(
        &mut self,
        kind: TaskKind,
        kernel: KernelId,
        point: u32,
        position: u32,
        operands: &[MaybeOperand],
        outputs: &[BlockId],
    ) -> Result<()> {
        check_count(self.workflow.n_tasks() as u64, MAX_TASKS, "tasks")?;
        check_count((self.workflow.n_operands() + operands.len()) as u64, MAX_OPERANDS, "operands of tasks")?;
        if self.workflow.n_tasks().is_multiple_of(TASKS_BETWEEN_QUESTIONS) && (self.stop)() {
            return Err(Error::cancelled());
        }
        self.workflow.add_task(kind, kernel, point, position, operands, outputs);
        Ok(())
    }

    fn add_set(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[u64],
        boxes: Boxes,
        statement: StmtId,
    ) -> Result<BlockSetId> {
        check_count(boxes.n_blocks().saturating_add(self.workflow.n_blocks() as u64), MAX_TASKS, "blocks")?;
        self.workflow
            .add_set(BlockSet::dense(name.to_string(), dtype, shape.to_vec(), boxes, statement))
            .ok_or_else(|| Error::internal(format!("the blocks of `{name}` cannot be numbered")))
    }

    /// The block of a relation at a row-major position of its grid.
    fn block_at(&self, relation: RelId, position: u64) -> BlockId {
        self.workflow.block(self.sets[&relation], position)
    }

    /// The same as an operand read as a whole.
    fn whole(&self, relation: RelId, position: u64) -> MaybeOperand {
        Operand::whole(self.block_at(relation, position)).into()
    }

    /// The number of a part of a block.
    fn region(&mut self, region: BoxRegion) -> u32 {
        if let Some(&number) = self.regions.get(&region) {
            return number;
        }
        self.workflow.regions.push(region.clone());
        let number = self.workflow.regions.len() as u32;
        self.regions.insert(region, number);
        number
    }

    /// Makes blocks out of regions that span several blocks of a relation; those that are there already are not made again.
    fn assemble(&mut self, relation: RelId, regions: Vec<BoxRegion>, statement: StmtId) -> Result<()> {
        let mut new: Vec<BoxRegion> = Vec::new();
        let first = self.workflow.n_blocks();
        for region in regions {
            if let std::collections::hash_map::Entry::Vacant(entry) = self.assembled.entry((relation, region)) {
                let region = entry.key().1.clone();
                // The set of the new blocks comes next, and blocks are numbered in order.
                entry.insert(BlockId::from_u32((first + new.len()) as u32));
                new.push(region);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let source = self.plan.relations[relation].clone();
        let name = format!("{} (assembled)", source.name);
        let set = self.add_set(&name, source.dtype, &source.shape, Boxes::List(new.clone()), statement)?;
        let kernel = self.kernel(Kernel::Place { axis: 0, shift: 0 }, statement);
        for (position, region) in new.into_iter().enumerate() {
            let operands = self.overlapping(relation, &region);
            let block = self.workflow.block(set, position as u64);
            self.task(TaskKind::Apply, kernel, 0, 0, &operands, &[block])?;
        }
        Ok(())
    }

    /// The parts of a relation's blocks that make up a region, in row-major order.
    fn overlapping(&mut self, relation: RelId, region: &BoxRegion) -> Vec<MaybeOperand> {
        let grid = &self.plan.relations[relation].grid;
        let set = self.sets[&relation];
        let mut operands = Vec::new();
        for position in grid.blocks_meeting(region) {
            let block = self.workflow.block(set, position);
            let whole = self.workflow.block_box(block);
            let part = whole.intersect(region);
            let number = if part == whole { 0 } else { self.region(part) };
            operands.push(Operand { block, region: number }.into());
        }
        operands
    }

    /// One operand holding a region: a block, part of a block, or an assembled block (made by [`Partial::assemble`] before).
    fn operand_for(&mut self, relation: RelId, region: &BoxRegion) -> Result<MaybeOperand> {
        if region.is_empty() {
            return Ok(MaybeOperand::default());
        }
        if self.spans_blocks(relation, region) {
            let block = self.assembled.get(&(relation, region.clone())).copied();
            let block = block.ok_or_else(|| Error::internal("a region was not assembled"))?;
            return Ok(Operand::whole(block).into());
        }
        self.overlapping(relation, region).pop().ok_or_else(|| Error::internal("a region without blocks"))
    }

    fn spans_blocks(&self, relation: RelId, region: &BoxRegion) -> bool {
        let grid = &self.plan.relations[relation].grid;
        !region.is_empty()
            && grid.iter().enumerate().any(|(axis, cut)| {
                let tiles = cut.tiles_meeting(&region.range(axis));
                tiles.end - tiles.start > 1
            })
    }
}

/// Refuses to enumerate too many tasks.
fn check_count(n: u64, limit: u64, what: &str) -> Result<()> {
    if n < limit {
        return Ok(());
    }
    Err(Error::plan(format!("this statement makes more than {limit} {what}")).help("choose larger tiles"))
}

/// Every combination of the given ranges, row-major. One empty combination if there are no ranges.
struct Odometer {
    ranges: Vec<std::ops::Range<u64>>,
    next: Option<Vec<u64>>,
}

impl Odometer {
    fn new(ranges: Vec<std::ops::Range<u64>>) -> Odometer {
        let empty = ranges.iter().any(|r| r.is_empty());
        let next = (!empty).then(|| ranges.iter().map(|r| r.start).collect());
        Odometer { ranges, next }
    }

    fn over(grid: &[Axis]) -> Odometer {
        Odometer::new(grid.iter().map(|axis| 0..axis.n_tiles()).collect())
    }
}

impl Iterator for Odometer {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let current = self.next.take()?;
        let mut following = current.clone();
        for axis in (0..following.len()).rev() {
            following[axis] += 1;
            if following[axis] < self.ranges[axis].end {
                self.next = Some(following);
                break;
            }
            following[axis] = self.ranges[axis].start;
        }
        Some(current)
    }
}
