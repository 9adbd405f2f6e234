//! Statements that only move elements.

use tw_ir::Result;

use super::compile::Fold;
use super::run::{Scratch, Task};
use crate::copy::{Place, Stores, copy_box_by};

impl Task<'_> {
    /// Runs the task as one strided copy, if it is that; says whether it did. Accesses must have been planned.
    pub(super) fn copy(&mut self) -> Result<bool> {
        let statement = self.statement;
        let ([Some(block)], [buffer]) = (self.blocks, self.buffers.as_mut_slice()) else { return Ok(false) };
        let moves =
            matches!(statement.fold, Fold::Write) && !statement.has_guard && statement.code.as_param() == Some(0);
        let Scratch { frame, plans, out_plan, .. } = &*self.scratch;
        let too_deep = frame.loops.len() > tw_ir::shape::MAX_RANK;
        if !moves || too_deep || !out_plan.is_direct() || !plans[0].is_direct() {
            return Ok(false);
        }
        let mut shape = Vec::with_capacity(frame.loops.len());
        let (mut from, mut to) = (Vec::with_capacity(shape.capacity()), Vec::with_capacity(shape.capacity()));
        for (depth, each) in frame.loops.iter().enumerate() {
            let steps = (plans[0].step(depth), out_plan.step(depth));
            // Repeated elements and reversed axes are left to strips.
            let (Ok(source @ 1..), Ok(target @ 1..)) = (usize::try_from(steps.0), usize::try_from(steps.1)) else {
                if each.extent == 1 {
                    continue;
                }
                return Ok(false);
            };
            shape.push(each.extent as u64);
            from.push(source);
            to.push(target);
        }
        let source = Place { offset: plans[0].base(), strides: &from };
        let stores = if self.past_cache { Stores::PastCache } else { Stores::Cached };
        copy_box_by(stores, &shape, block.data(), source, buffer, Place { offset: out_plan.base(), strides: &to })?;
        Ok(true)
    }
}
