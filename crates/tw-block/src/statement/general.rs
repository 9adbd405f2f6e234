//! Accumulators whose state is a tuple combined by code.

use tw_ir::{Buffer, DType, Result, Slice, Writable};

use super::access::{Piece, Place};
use super::frame::Strip;
use super::run::{Scratch, Task};
use super::store::write;
use crate::states::{combine_strips, overwrite, reduce, strip_buffers};
use crate::strip::{Direct, Element, InRegisters, Lane, StripCode, Values, select, with_dtype, with_lane};

/// States of the elements of a strip, one buffer per component.
#[derive(Debug, Default)]
pub(super) struct StateBuffers {
    lifted: Vec<Buffer>,
    current: Vec<Buffer>,
    combined: Vec<Buffer>,
    /// The partial states of the current row: one per position in a strip.
    row: Vec<Buffer>,
    /// How many states of `row` hold something.
    row_len: usize,
}

impl StateBuffers {
    /// Forgets the current row.
    pub(super) fn begin_row(&mut self) {
        self.row_len = 0;
    }

    /// Makes sure there is room for a strip of every component.
    fn fit(&mut self, types: impl Iterator<Item = DType> + Clone) {
        for buffers in [&mut self.lifted, &mut self.current, &mut self.combined, &mut self.row] {
            if !buffers.iter().map(Buffer::dtype).eq(types.clone()) {
                *buffers = strip_buffers(types.clone());
            }
        }
    }
}

impl Task<'_> {
    /// Folds a strip by code that takes and gives states, where the output allows it: all of the strip goes to one element, or each point to
    /// the neighbour of the last. Says whether it did.
    pub(super) fn fold_fused(&mut self, fused: &StripCode, strip: Strip) -> bool {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, out_plan, state, misses, .. } = &mut **scratch;
        // Where a guard must excuse reads outside, states are combined after it has been asked.
        let (Some(step @ (0 | 1)), true) = (out_plan.inner, misses.is_empty()) else { return false };
        state.fit(statement.start.iter().map(|identity| identity.dtype()));
        let StateBuffers { combined, row, row_len, .. } = state;
        let position = (out_plan.row() + strip.start as i64 * step) as usize;
        let current = |k: usize| match (step, *row_len) {
            (1, _) => Lane::of(buffers[k].elements(), position..position + strip.len),
            (_, 0) => Lane::same(statement.start[k]),
            _ => Lane::slice(&row[k], 0..strip.len),
        };
        let mut all: Vec<Option<Lane<'_>>> = Vec::with_capacity(lanes.len() + buffers.len());
        all.extend_from_slice(lanes);
        all.extend((0..buffers.len()).map(|k| Some(current(k))));
        fused.eval_into(&all, registers, strip.len, Some(Direct { buffers: combined, start: 0 }));
        drop(all);
        if step == 1 {
            buffers.iter_mut().zip(combined).for_each(|(to, from)| overwrite(to, position, from, strip.len));
        } else if strip.len >= *row_len {
            std::mem::swap(row, combined);
            *row_len = strip.len;
        } else {
            row.iter_mut().zip(combined).for_each(|(to, from)| overwrite(to, 0, from, strip.len));
        }
        true
    }

    /// Writes the states of a row to the output.
    pub(super) fn end_fused_row(&mut self, combine: &StripCode) {
        let Scratch { registers, out_plan, state, .. } = &mut *self.scratch;
        let StateBuffers { combined, row, row_len, .. } = state;
        if *row_len == 0 {
            return;
        }
        let position = out_plan.row() as usize;
        reduce(combine, row, 0, *row_len, combined, registers);
        combine_strips(combine, (&self.buffers, position), (row, 0), 1, combined, registers);
        self.buffers.iter_mut().zip(combined).for_each(|(to, from)| overwrite(to, position, from, 1));
        *row_len = 0;
    }

    pub(super) fn fold_general(&mut self, combine: &StripCode, strip: Strip) -> Result<()> {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, frame, out_plan, state, .. } = &mut **scratch;
        state.fit(statement.start.iter().map(|identity| identity.dtype()));
        let StateBuffers { lifted, current, combined, .. } = state;
        let guard = match statement.has_guard {
            true => bool::of_lane(statement.code.result(0, lanes, registers, strip.len)),
            false => Values::Same(true),
        };
        for (k, (buffer, &identity)) in lifted.iter_mut().zip(&statement.start).enumerate() {
            let lane = statement.code.result(k + statement.has_guard as usize, lanes, registers, strip.len);
            // The identity changes nothing, so it stands for points that the guard excludes.
            with_dtype!(identity.dtype(), T => {
                let identity = Values::Same(T::from_scalar(identity));
                select(guard, T::of_lane(lane), identity, &mut T::of_mut(buffer)[..strip.len]);
            });
        }
        out_plan.pieces(&statement.out, frame, strip, |Piece { offset, len, place }| {
            let Place::Inside { position, slope } = place else { return Ok(()) };
            let n = match slope {
                0 => reduce(combine, lifted, offset, len, combined, registers),
                _ => len,
            };
            if slope == 1 || n == 1 {
                combine_strips(combine, (buffers, position as usize), (lifted, offset), n, combined, registers);
            } else {
                buffers.iter().zip(&mut *current).for_each(|(from, to)| gather(from.elements(), position, slope, to, n));
                combine_strips(combine, (current, 0), (lifted, offset), n, combined, registers);
            }
            for (from, to) in combined.iter().zip(&mut *buffers) {
                with_lane!(Lane::slice(from, 0..n), values => write(to, position, slope, values, Values::Same(true), n));
            }
            Ok(())
        })
    }
}

fn gather(from: Slice<'_>, position: i64, slope: i64, to: &mut Buffer, n: usize) {
    with_dtype!(from.dtype(), T => {
        let (from, to) = (T::of_slice(from), T::of_mut(to));
        to[..n].iter_mut().enumerate().for_each(|(k, to)| *to = from[(position + k as i64 * slope) as usize]);
    })
}
