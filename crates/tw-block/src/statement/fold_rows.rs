//! Statements that fold whole rows of one operand into one row of results.

use std::array;

use super::compile::Fold;
use super::run::{Scratch, Task};
use crate::strip::{Foldable, InRegisters, Monoid, ROWS_AT_ONCE, Values, with_dtype};
use tw_ir::{Buffer, SliceMut};

/// Rows at equal distances.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    step: usize,
    n: usize,
    len: usize,
}

impl Task<'_> {
    /// Folds several rows at a time, if the task is no more than that; says whether it did. Loops must have been merged and plans settled.
    ///
    /// Every result meets its elements in the order of the rows, as it would strip by strip.
    pub(super) fn fold_rows(&mut self) -> bool {
        let statement = self.statement;
        let (Fold::Simple(parts), [Some(block)], [buffer]) = (&statement.fold, self.blocks, &mut self.buffers[..])
        else {
            return false;
        };
        let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
        let ([part], Some(reduced)) = (&parts[..], frame.n_outer.checked_sub(1)) else { return false };
        let plan = &plans[0];
        let neighbours = plan.is_direct() && plan.inner == Some(1) && out_plan.is_direct() && out_plan.inner == Some(1);
        let only_folds = !statement.has_guard && statement.code.as_param() == Some(0);
        let Some(step) = plan.is_direct().then(|| plan.step(reduced)).and_then(|step| usize::try_from(step).ok())
        else {
            return false;
        };
        if !neighbours || !only_folds || out_plan.step(reduced) != 0 {
            return false;
        }
        let (n, len) = (frame.loops[reduced].extent as usize, frame.row_len());
        // The reduced loop is run through here; those around it are left to the frame.
        frame.n_outer = reduced;
        loop {
            plans[0].begin_row(frame);
            out_plan.begin_row(frame);
            let rows = Rows { first: plans[0].row() as usize, step, n, len };
            let start = out_plan.row() as usize;
            with_dtype!(block.dtype(), T => fold_block::<T>(part.monoid, block.data(), rows, buffer, start));
            if !frame.next_row() {
                return true;
            }
        }
    }
}

fn fold_block<T: Foldable + InRegisters>(
    monoid: Monoid,
    data: &Buffer,
    rows: Rows,
    buffer: &mut SliceMut<'_>,
    start: usize,
) {
    let data = T::of(data);
    let out = &mut T::of_mut(buffer)[start..start + rows.len];
    let row = |k: usize| &data[rows.first + k * rows.step..][..rows.len];
    let whole = rows.n - rows.n % ROWS_AT_ONCE;
    for k in (0..whole).step_by(ROWS_AT_ONCE) {
        T::fold_rows(monoid, out, array::from_fn(|i| row(k + i)));
    }
    for k in whole..rows.n {
        T::fold_each(monoid, out, Values::Each(row(k)));
    }
}
