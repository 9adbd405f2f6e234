//! Running a statement over one box.

use std::cell::Cell;
use std::ops::Range;

use tw_ir::{BoxRegion, Error, Result, Scalar, SliceMut, Writable};

use super::access::AccessPlan;
use super::aggregate::AggregateState;
use super::compile::{CompiledStatement, Fold};
use super::contract::Operands;
use super::frame::{Frame, Strip};
use super::general::StateBuffers;
use crate::block::{Block, row_major_stride};
use crate::past_cache;
use crate::strip::{Cascade, Direct, Element, LONG_STRIP, Lane, Registers, STRIP, StripCode, Values, with_lane};

thread_local! {
    /// Memory that tasks of one thread use one after the other.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// The scratch buffers of a task.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) registers: Registers,
    pub(super) frame: Frame,
    /// One per read.
    pub(super) plans: Vec<AccessPlan>,
    pub(super) out_plan: AccessPlan,
    /// One per component of a simple fold: the partial result of the current row.
    pub(super) cascades: Vec<Cascade<Scalar>>,
    pub(super) aggregates: AggregateState,
    pub(super) state: StateBuffers,
    /// Parts of the current strip where a read is outside although that is an error: (read, offset, length).
    pub(super) misses: Vec<(usize, usize, usize)>,
}

/// One task.
pub(super) struct Task<'a> {
    pub(super) statement: &'a CompiledStatement,
    pub(super) blocks: &'a [Option<&'a Block>],
    pub(super) out_box: &'a BoxRegion,
    pub(super) buffers: Vec<SliceMut<'a>>,
    /// Per parameter: the elements of the current strip, if they need no copy.
    pub(super) lanes: Vec<Option<Lane<'a>>>,
    /// Per read whose rows are all the same: position and length of what its register holds.
    pub(super) loaded: Vec<Option<(i64, usize)>>,
    /// Nobody will read the outputs soon.
    pub(super) past_cache: bool,
    pub(super) scratch: &'a mut Scratch,
}

impl CompiledStatement {
    pub(crate) fn run(
        &self,
        point: u32,
        first: bool,
        operands: &[Option<&Block>],
        outputs: &mut [Block],
    ) -> Result<()> {
        self.check_blocks(operands, outputs)?;
        let past_cache = self.only_writes() && outputs.iter().all(Block::is_past_cache);
        let mut out_box: Option<&BoxRegion> = None;
        let mut buffers = Vec::with_capacity(outputs.len());
        for output in outputs {
            let (bbox, buffer) = output.target()?;
            out_box.get_or_insert(bbox);
            buffers.push(buffer);
        }
        let Some(out_box) = out_box else { return Ok(()) };
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let lanes = vec![None; self.code.params().len()];
        let loaded = Vec::new();
        let mut task = Task {
            statement: self,
            blocks: operands,
            out_box,
            buffers,
            lanes,
            loaded,
            past_cache,
            scratch: &mut scratch,
        };
        let result = task.run(point, first);
        if past_cache {
            past_cache::fence();
        }
        SCRATCH.set(Some(scratch));
        result
    }

    /// True if every element is written once and none is folded.
    pub(crate) fn only_writes(&self) -> bool {
        matches!(self.fold, Fold::Write)
    }

    fn check_blocks(&self, operands: &[Option<&Block>], outputs: &[Block]) -> Result<()> {
        let fits = operands.len() == self.reads.len()
            && operands.iter().zip(&self.reads).all(|(operand, read)| {
                operand.is_none_or(|block| block.dtype() == read.dtype && block.bbox().rank() == read.access.axes.len())
            })
            && outputs.len() == self.start.len()
            && outputs
                .iter()
                .zip(&self.start)
                .all(|(output, start)| output.dtype() == start.dtype() && output.bbox() == outputs[0].bbox())
            && outputs.first().is_none_or(|output| output.bbox().rank() == self.out.axes.len());
        if fits { Ok(()) } else { Err(Error::internal("the blocks of a task do not fit its statement")) }
    }
}

impl<'a> Task<'a> {
    fn run(&mut self, point: u32, first: bool) -> Result<()> {
        if !self.scratch.frame.set_box(&self.statement.vars, point as u64) {
            return if first { self.begin() } else { Ok(()) };
        }
        self.plan_accesses();
        if self.contract(first)? {
            return Ok(());
        }
        if first && !self.covers() {
            self.begin()?;
        }
        if self.copy()? {
            return Ok(());
        }
        self.scratch.registers.prepare(&self.statement.registers);
        self.begin_rows();
        if self.statement.tiles.is_empty() { self.run_rows() } else { self.run_tiles(0) }
    }

    /// Initialises outputs before the first contribution.
    fn begin(&mut self) -> Result<()> {
        let start = &self.statement.start;
        self.buffers.iter_mut().zip(start).try_for_each(|(buffer, &value)| crate::block::fill(buffer, value))
    }

    /// True if every element of the output block is written by this task.
    fn covers(&self) -> bool {
        // Maps of statements without an accumulator are injective, so counting is enough.
        matches!(self.statement.fold, Fold::Write)
            && !self.statement.has_guard
            && self.scratch.out_plan.is_direct()
            && self.scratch.frame.extents.iter().product::<i64>() as u64 == self.out_box.n_elements()
    }

    /// Plans how operands are read and outputs written.
    fn plan_accesses(&mut self) {
        let Task { statement, blocks, out_box, .. } = *self;
        let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
        frame.set_loops(&statement.order, statement.n_inner);
        out_plan.prepare(&statement.out, frame, out_box, 0, |axis| row_major_stride(out_box, axis));
        plans.resize_with(statement.reads.len().max(plans.len()), AccessPlan::default);
        for ((read, block), plan) in statement.reads.iter().zip(blocks).zip(plans) {
            match block {
                Some(block) => {
                    plan.prepare(&read.access, frame, block.bbox(), block.offset(), |axis| block.stride(axis))
                }
                None => plan.prepare_absent(&read.access, frame),
            }
        }
    }

    /// Runs the task as a matrix product, if it is one; says whether it did.
    fn contract(&mut self, first: bool) -> Result<bool> {
        let Some(contraction) = &self.statement.contraction else { return Ok(false) };
        let Scratch { frame, plans, out_plan, .. } = &*self.scratch;
        let ([Some(left), Some(right)], [left_plan, right_plan, ..]) = (self.blocks, &plans[..]) else {
            return Ok(false);
        };
        let direct = out_plan.is_direct() && left_plan.is_direct() && right_plan.is_direct();
        if !direct || !contraction.is_worthwhile(frame) {
            return Ok(false);
        }
        let all = contraction.n_results(frame) == self.out_box.n_elements();
        if first && !all {
            self.begin()?;
        }
        let Scratch { frame, plans, out_plan, .. } = &*self.scratch;
        let reads = &self.statement.reads;
        let converted_left = contraction.converted(left, &reads[0].access, frame)?;
        let converted_right = contraction.converted(right, &reads[1].access, frame)?;
        let out = (self.buffers[0].elements_mut(), out_plan);
        let left = converted_left.as_ref().map_or((*left, &plans[0]), |(block, plan)| (block, plan));
        let right = converted_right.as_ref().map_or((*right, &plans[1]), |(block, plan)| (block, plan));
        contraction.run(frame, Operands { out, left, right, accumulate: !first || !all })?;
        Ok(true)
    }

    /// Runs over tiles of the box, one variable after the other.
    fn run_tiles(&mut self, depth: usize) -> Result<()> {
        let Some(&(var, size)) = self.statement.tiles.get(depth) else {
            self.plan_accesses();
            return self.run_rows();
        };
        let (start, extent) = (self.scratch.frame.starts[var], self.scratch.frame.extents[var]);
        let mut done = 0;
        while done < extent {
            self.scratch.frame.set_range(var, start + done, size.min(extent - done));
            self.run_tiles(depth + 1)?;
            done += size;
        }
        self.scratch.frame.set_range(var, start, extent);
        Ok(())
    }

    /// Runs over the rows of the box, for which accesses are planned.
    fn run_rows(&mut self) -> Result<()> {
        let n_reads = self.statement.reads.len();
        let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
        self.statement.merge_loops(frame, &mut plans[..n_reads], out_plan);
        frame.begin();
        plans[..n_reads].iter_mut().for_each(|plan| plan.settle(frame));
        out_plan.settle(frame);
        if self.slide() || self.fold_rows() {
            return Ok(());
        }
        let frame = &self.scratch.frame;
        let row_len = frame.row_len();
        let long = self.counting().map_or(self.statement.takes_long_strips(), StripCode::is_trivial);
        let strip_len = whole_rows(frame, if long { LONG_STRIP } else { STRIP });
        self.loaded.clear();
        self.loaded.resize(if frame.loops.len() > frame.n_outer + 1 { n_reads } else { 0 }, None);
        loop {
            let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
            plans[..n_reads].iter_mut().for_each(|plan| plan.begin_row(frame));
            out_plan.begin_row(frame);
            for start in (0..row_len).step_by(strip_len) {
                self.strip(Strip { start, len: strip_len.min(row_len - start) })?;
            }
            self.end_row();
            if !self.scratch.frame.next_row() {
                if let Fold::Aggregate(aggregate) = self.statement.fold {
                    self.end_aggregate(aggregate);
                }
                return Ok(());
            }
        }
    }

    /// The condition that whole rows count, if that is all they do.
    fn counting(&self) -> Option<&'a StripCode> {
        let statement = self.statement;
        statement.counted.as_ref().filter(|_| self.scratch.out_plan.inner == Some(0))
    }

    fn strip(&mut self, strip: Strip) -> Result<()> {
        let out_plan = &self.scratch.out_plan;
        let straight = matches!(self.statement.fold, Fold::Write) && !self.statement.has_guard;
        let neighbours = out_plan.inner == Some(1) || (strip.len == 1 && out_plan.inner.is_some());
        let start = (out_plan.row() + strip.start as i64 * out_plan.inner.unwrap_or(0)) as usize;
        if straight && neighbours && !self.past_cache && self.repeat_into(strip, start) {
            return Ok(());
        }
        self.load(strip)?;
        let Scratch { registers, .. } = &mut *self.scratch;
        if straight && neighbours {
            if self.past_cache {
                self.statement.code.eval(&self.lanes, registers, strip.len);
                for (k, buffer) in self.buffers.iter_mut().enumerate() {
                    let lane = self.statement.code.result(k, &self.lanes, registers, strip.len);
                    with_lane!(lane, values => write_past_cache(values, buffer, start..start + strip.len));
                }
                return Ok(());
            }
            let direct = Direct { buffers: &mut self.buffers, start };
            self.statement.code.eval_into(&self.lanes, registers, strip.len, Some(direct));
            return Ok(());
        }
        if let Some(condition) = self.counting() {
            condition.eval(&self.lanes, &mut self.scratch.registers, strip.len);
            self.count(condition, strip);
            return Ok(());
        }
        if let Fold::General { fused, .. } = &self.statement.fold
            && self.fold_fused(fused, strip)
        {
            return Ok(());
        }
        self.statement.code.eval(&self.lanes, &mut self.scratch.registers, strip.len);
        self.store(strip)
    }
}

fn write_past_cache<T: Element>(values: Values<'_, T>, buffer: &mut SliceMut<'_>, range: Range<usize>) {
    let out = &mut T::of_mut(buffer)[range];
    match values {
        Values::Each(values) => past_cache::copy(values, out),
        Values::Same(value) => out.fill(value),
    }
}

/// The length of strips: a multiple of the innermost loop where several are flattened, so that strips begin and end with it.
fn whole_rows(frame: &Frame, longest: usize) -> usize {
    match &frame.loops[frame.n_outer..] {
        [_, .., row] if row.extent as usize <= longest => longest - longest % row.extent as usize,
        _ => longest,
    }
}

impl CompiledStatement {
    /// Strips are short so that intermediate values stay near; without any, longer ones save time.
    fn takes_long_strips(&self) -> bool {
        self.code.is_trivial() && !matches!(self.fold, Fold::General { .. })
    }

    /// Where rows are short and those around the loops that reduce follow each other evenly, lets the loops that reduce go around them: strips are as long as several rows then, and what a
    /// strip takes besides its elements no longer matters. Every result still meets its elements in the same order.
    fn reduce_outside(&self, frame: &mut Frame, plans: &mut [AccessPlan], out_plan: &mut AccessPlan) {
        // Results that are folded into again and again stay in a near cache.
        const LONGEST: i64 = 1 << 16;
        if !matches!(self.fold, Fold::Simple(_)) {
            return;
        }
        while let Some(inner) = frame.loops.len().checked_sub(1) {
            let mut first = inner;
            while first > 0 && out_plan.step(first - 1) == 0 {
                first -= 1;
            }
            if first == inner || first == 0 || out_plan.step(inner) == 0 {
                return;
            }
            let (row, around) = (frame.loops[inner], frame.loops[first - 1]);
            let even = |plan: &AccessPlan| plan.step(first - 1) == plan.step(inner) * row.extent;
            let counted = self.used_vars.contains(&row.var) || self.used_vars.contains(&around.var);
            let is_short = row.extent < STRIP as i64 / 2 && row.extent.saturating_mul(around.extent) <= LONGEST;
            if !is_short || counted || !even(out_plan) || !plans.iter().all(even) {
                return;
            }
            frame.n_outer = inner;
            frame.move_loop(first - 1, inner - 1);
            frame.merge_loops(inner - 1);
            for plan in plans.iter_mut().chain([&mut *out_plan]) {
                plan.move_loop(first - 1, inner - 1);
                plan.merge_loops(inner - 1);
            }
        }
    }

    /// Merges neighbouring loops along which everything moves evenly. It changes no result: reduced loops are never merged, because whether
    /// it could be depends on how blocks are stored, and the order of a sum must not.
    fn merge_loops(&self, frame: &mut Frame, plans: &mut [AccessPlan], out_plan: &mut AccessPlan) {
        let all_direct = out_plan.is_direct() && plans.iter().all(AccessPlan::is_direct);
        if !all_direct {
            return;
        }
        self.reduce_outside(frame, plans, out_plan);
        let mut depth = frame.loops.len();
        while depth >= 2 {
            depth -= 1;
            let inside = frame.loops[depth];
            let even = |plan: &AccessPlan| plan.step(depth - 1) == plan.step(depth) * inside.extent;
            let reduces = !matches!(self.fold, Fold::Write) && out_plan.step(depth) == 0;
            let counted = |var: usize| self.used_vars.contains(&var);
            if reduces
                || counted(inside.var)
                || counted(frame.loops[depth - 1].var)
                || !even(out_plan)
                || !plans.iter().all(even)
            {
                continue;
            }
            frame.merge_loops(depth - 1);
            out_plan.merge_loops(depth - 1);
            plans.iter_mut().for_each(|plan| plan.merge_loops(depth - 1));
        }
    }
}
