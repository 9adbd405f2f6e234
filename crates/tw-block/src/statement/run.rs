//! Running a statement over one box.

use std::cell::Cell;

use tw_ir::{BoxRegion, Buffer, Error, Result};

use super::access::Plan;
use super::compile::{Fold, Statement};
use super::frame::{Frame, Strip};
use super::general::StateBuffers;
use crate::block::{Block, row_major_stride};
use crate::strip::{Cascade, Direct, Lane, Registers, STRIP};

thread_local! {
    /// Memory that tasks of one thread use one after the other.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// What a task needs besides its blocks.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) registers: Registers,
    pub(super) frame: Frame,
    /// One per read.
    pub(super) plans: Vec<Plan>,
    pub(super) out_plan: Plan,
    pub(super) cascade: Cascade,
    pub(super) state: StateBuffers,
    /// Parts of the current strip where a read is outside although that is an error: (read, offset, length).
    pub(super) misses: Vec<(usize, usize, usize)>,
}

/// One task.
pub(super) struct Task<'a> {
    pub(super) statement: &'a Statement,
    pub(super) blocks: &'a [Option<&'a Block>],
    pub(super) buffers: Vec<&'a mut Buffer>,
    /// Per parameter: the elements of the current strip, if they need no copy.
    pub(super) lanes: Vec<Option<Lane<'a>>>,
    pub(super) scratch: &'a mut Scratch,
}

impl Statement {
    pub(crate) fn run(
        &self,
        point: u32,
        first: bool,
        operands: &[Option<&Block>],
        outputs: &mut [Block],
    ) -> Result<()> {
        self.check_blocks(operands, outputs)?;
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let result = self.run_with(point, first, operands, outputs, &mut scratch);
        SCRATCH.set(Some(scratch));
        result
    }

    fn run_with(
        &self,
        point: u32,
        first: bool,
        operands: &[Option<&Block>],
        outputs: &mut [Block],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let not_empty = scratch.frame.set_box(&self.vars, point as u64);
        let mut out_box: Option<&BoxRegion> = None;
        let mut buffers = Vec::with_capacity(outputs.len());
        for output in outputs {
            let (bbox, buffer) = output.output()?;
            out_box.get_or_insert(bbox);
            buffers.push(buffer);
        }
        let Some(out_box) = out_box else { return Ok(()) };
        if not_empty {
            scratch.frame.set_loops(&self.order, self.n_inner);
            scratch.out_plan.prepare(&self.out, &scratch.frame, out_box, 0, |axis| row_major_stride(out_box, axis));
        }
        if !not_empty {
            return if first { self.begin(&mut buffers) } else { Ok(()) };
        }
        scratch.plan_reads(self, operands);
        if self.contract(first, operands, &mut buffers, out_box, scratch)? {
            return Ok(());
        }
        if first && !self.covers(&scratch.frame, &scratch.out_plan, out_box) {
            self.begin(&mut buffers)?;
        }
        scratch.plan_loops(self);
        let lanes = vec![None; self.code.n_params()];
        Task { statement: self, blocks: operands, buffers, lanes, scratch }.run()
    }

    /// Gives outputs what they hold before the first contribution.
    fn begin(&self, buffers: &mut [&mut Buffer]) -> Result<()> {
        buffers.iter_mut().zip(&self.start).try_for_each(|(buffer, &value)| crate::block::fill(buffer, value))
    }

    /// Runs the task as a matrix product, if it is one; says whether it did.
    fn contract(
        &self,
        first: bool,
        operands: &[Option<&Block>],
        buffers: &mut [&mut Buffer],
        out_box: &BoxRegion,
        scratch: &Scratch,
    ) -> Result<bool> {
        let Scratch { frame, plans, out_plan, .. } = scratch;
        let Some(contraction) = &self.contraction else { return Ok(false) };
        let (Some(left), Some(right)) = (operands[contraction.left], operands[contraction.right]) else {
            return Ok(false);
        };
        let (left_plan, right_plan) = (&plans[contraction.left], &plans[contraction.right]);
        let direct = out_plan.is_direct() && left_plan.is_direct() && right_plan.is_direct();
        if !direct || !contraction.is_worthwhile(frame) {
            return Ok(false);
        }
        let all = contraction.n_results(frame) == out_box.n_elements();
        if first && !all {
            self.begin(buffers)?;
        }
        let accumulate = !first || !all;
        contraction.run(frame, (buffers[0], out_plan), (left, left_plan), (right, right_plan), accumulate);
        Ok(true)
    }

    /// True if every element of the output block is written by this task.
    fn covers(&self, frame: &Frame, out_plan: &Plan, out_box: &BoxRegion) -> bool {
        // Maps of statements without an accumulator are injective, so counting is enough.
        matches!(self.fold, Fold::Write)
            && !self.has_guard
            && out_plan.is_direct()
            && frame.extents.iter().product::<i64>() as u64 == out_box.n_elements()
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

impl Scratch {
    /// Plans how operands are read.
    fn plan_reads(&mut self, statement: &Statement, operands: &[Option<&Block>]) {
        self.plans.resize_with(statement.reads.len().max(self.plans.len()), Plan::default);
        for ((read, block), plan) in statement.reads.iter().zip(operands).zip(&mut self.plans) {
            let frame = &self.frame;
            match block {
                Some(block) => {
                    plan.prepare(&read.access, frame, block.bbox(), block.offset(), |axis| block.stride(axis))
                }
                None => plan.prepare_absent(&read.access, frame),
            }
        }
    }

    /// Settles the loops, and makes registers ready.
    fn plan_loops(&mut self, statement: &Statement) {
        let Scratch { registers, frame, plans, out_plan, .. } = self;
        registers.prepare(&statement.registers);
        let plans = &mut plans[..statement.reads.len()];
        statement.merge_loops(frame, plans, out_plan);
        frame.begin();
        plans.iter_mut().for_each(|plan| plan.settle(frame));
        out_plan.settle(frame);
    }
}

impl Task<'_> {
    fn run(&mut self) -> Result<()> {
        let row_len = self.scratch.frame.row_len();
        loop {
            let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
            for plan in &mut plans[..self.statement.reads.len()] {
                plan.begin_row(frame);
            }
            out_plan.begin_row(frame);
            let mut start = 0;
            while start < row_len {
                let strip = Strip { start, len: STRIP.min(row_len - start) };
                self.strip(strip)?;
                start += strip.len;
            }
            self.end_row();
            if !self.scratch.frame.next_row() {
                return Ok(());
            }
        }
    }

    fn strip(&mut self, strip: Strip) -> Result<()> {
        self.load(strip)?;
        let Scratch { registers, out_plan, .. } = &mut *self.scratch;
        let straight = matches!(self.statement.fold, Fold::Write) && !self.statement.has_guard;
        let neighbours = out_plan.inner == Some(1) || (strip.len == 1 && out_plan.inner.is_some());
        if straight && neighbours {
            let start = (out_plan.row() + strip.start as i64 * out_plan.inner.unwrap_or(0)) as usize;
            let direct = Direct { buffers: &mut self.buffers, start };
            self.statement.code.eval_into(&self.lanes, registers, strip.len, Some(direct));
            return Ok(());
        }
        self.statement.code.eval(&self.lanes, registers, strip.len);
        self.store(strip)
    }
}

impl Statement {
    /// Merges neighbouring loops along which everything moves evenly. It changes no result: what is reduced is never merged, because whether
    /// it could be depends on how blocks are stored, and the order of a sum must not.
    fn merge_loops(&self, frame: &mut Frame, plans: &mut [Plan], out_plan: &mut Plan) {
        let all_direct = out_plan.is_direct() && plans.iter().all(Plan::is_direct);
        if !all_direct {
            return;
        }
        let mut depth = frame.loops.len();
        while depth >= 2 {
            depth -= 1;
            let inside = frame.loops[depth];
            let even = |plan: &Plan| plan.step(depth - 1) == plan.step(depth) * inside.extent;
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
