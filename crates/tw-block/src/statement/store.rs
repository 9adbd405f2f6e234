//! Results of a strip, on their way into the outputs.

use tw_ir::{Buffer, Edge, Error, Result};

use super::access::{Piece, Place};
use super::compile::Fold;
use super::frame::Strip;
use super::load::{outside, point_at};
use super::run::{Scratch, Task};
use crate::strip::{Element, Foldable, Lane, Monoid, Values, select, with_dtype, with_lane};

impl Task<'_> {
    /// Writes or folds the results of a strip.
    pub(super) fn store(&mut self, strip: Strip) -> Result<()> {
        if self.statement.has_guard && !self.check_guard(strip)? {
            return Ok(());
        }
        self.check_target(strip)?;
        match &self.statement.fold {
            Fold::Write => self.write(strip),
            Fold::Simple { monoid, .. } => {
                self.mask(strip);
                self.fold_simple(*monoid, strip)
            }
            Fold::General { combine } => self.fold_general(combine, strip),
        }
    }

    /// Reports reads outside where the guard holds. False if the guard holds nowhere.
    fn check_guard(&mut self, strip: Strip) -> Result<bool> {
        let guard = bool::of_lane(self.statement.code.result(0, &self.lanes, &self.scratch.registers, strip.len));
        let holds_at = |range: std::ops::Range<usize>| match guard {
            Values::Same(holds) => holds.then_some(range.start),
            Values::Each(holds) => holds[range.clone()].iter().position(|&holds| holds).map(|k| range.start + k),
        };
        if holds_at(0..strip.len).is_none() {
            return Ok(false);
        }
        let missed =
            self.scratch.misses.iter().find_map(|&(read, offset, len)| Some((read, holds_at(offset..offset + len)?)));
        match missed {
            Some((read, offset)) => Err(self.read_outside(read, strip, offset)),
            None => Ok(true),
        }
    }

    /// Reports results outside their tensor, where that is an error and the guard holds.
    fn check_target(&mut self, strip: Strip) -> Result<()> {
        let Scratch { registers, frame, out_plan, .. } = &mut *self.scratch;
        let out = &self.statement.out;
        if out_plan.is_direct() || out.edge != Edge::Error {
            return Ok(());
        }
        let guard = match self.statement.has_guard {
            true => bool::of_lane(self.statement.code.result(0, &self.lanes, registers, strip.len)),
            false => Values::Same(true),
        };
        let missed = out_plan.pieces(out, frame, strip, |Piece { offset, len, place }| {
            let held = match guard {
                Values::Same(_) => Some(0),
                Values::Each(holds) => holds[offset..offset + len].iter().position(|&holds| holds),
            };
            match (place, held) {
                (Place::Outside, Some(k)) => Err(offset + k),
                _ => Ok(()),
            }
        });
        missed.map_err(|offset| {
            let what = outside(out, &point_at(frame, strip, offset)).unwrap_or_default();
            Error::data(format!("a write outside: {what}"))
        })
    }

    fn write(&mut self, strip: Strip) -> Result<()> {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, frame, out_plan, .. } = &mut **scratch;
        let guard = statement.has_guard as usize;
        let mask = match statement.has_guard {
            true => bool::of_lane(statement.code.result(0, lanes, registers, strip.len)),
            false => Values::Same(true),
        };
        out_plan.pieces(&statement.out, frame, strip, |Piece { offset, len, place }| {
            if let Place::Inside { position, slope } = place {
                let range = offset..offset + len;
                for (k, buffer) in buffers.iter_mut().enumerate() {
                    let lane = statement.code.result(k + guard, lanes, registers, strip.len);
                    let mask = mask.part(range.clone());
                    with_lane!(lane, values => write(buffer, position, slope, values.part(range.clone()), mask, len));
                }
            }
            Ok(())
        })
    }

    /// Replaces values where the guard does not hold by the identity, in the register kept for it.
    fn mask(&mut self, strip: Strip) {
        let Fold::Simple { masked, .. } = self.statement.fold else { return };
        if !self.statement.has_guard {
            return;
        }
        let identity = self.statement.start[0];
        let Task { statement, lanes, scratch, .. } = self;
        let registers = &mut scratch.registers;
        with_dtype!(masked.dtype, T => {
            // The register belongs to nothing else, so its vector can be taken out while the results are borrowed.
            let mut vector = registers.take_vector::<T>(masked.index, strip.len);
            let guard = bool::of_lane(statement.code.result(0, lanes, registers, strip.len));
            let values = T::of_lane(statement.code.result(1, lanes, registers, strip.len));
            select(guard, values, Values::Same(T::from_scalar(identity)), &mut vector[..strip.len]);
            registers.put_vector(masked.index, vector);
        })
    }

    fn fold_simple(&mut self, monoid: Monoid, strip: Strip) -> Result<()> {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, frame, out_plan, cascade, .. } = &mut **scratch;
        let lane = match (&statement.fold, statement.has_guard) {
            (Fold::Simple { masked, .. }, true) => registers.lane(*masked, strip.len),
            _ => statement.code.result(0, lanes, registers, strip.len),
        };
        if out_plan.inner == Some(0) {
            cascade.push(
                monoid,
                with_lane!(lane, values => Foldable::reduce_strip(monoid, values, strip.len).to_scalar()),
            );
            return Ok(());
        }
        out_plan.pieces(&statement.out, frame, strip, |Piece { offset, len, place }| {
            if let Place::Inside { position, slope } = place {
                let range = offset..offset + len;
                with_lane!(lane, values => fold(monoid, buffers[0], position, slope, values.part(range), len));
            }
            Ok(())
        })
    }

    /// Brings what a row was reduced to into the output.
    pub(super) fn end_row(&mut self) {
        let Fold::Simple { monoid, .. } = self.statement.fold else { return };
        let Scratch { cascade, out_plan, .. } = &mut *self.scratch;
        if let Some(total) = cascade.finish(monoid) {
            with_lane!(Lane::same(total), values => fold(monoid, self.buffers[0], out_plan.row(), 0, values, 1));
        }
    }
}

/// Writes values to every `slope`-th element from `position` on, where the mask allows.
pub(super) fn write<T: Element>(
    buffer: &mut Buffer,
    position: i64,
    slope: i64,
    values: Values<'_, T>,
    mask: Values<'_, bool>,
    len: usize,
) {
    let out = T::of_mut(buffer);
    let start = position as usize;
    if slope == 1 {
        let out = &mut out[start..start + len];
        match (mask, values) {
            (Values::Same(true), values) => crate::strip::copy(values, out),
            (Values::Same(false), _) => {}
            (Values::Each(mask), Values::Each(values)) => {
                let allowed = out.iter_mut().zip(mask).zip(values);
                allowed.for_each(|((out, &allowed), &value)| *out = if allowed { value } else { *out });
            }
            (Values::Each(mask), Values::Same(value)) => {
                out.iter_mut().zip(mask).for_each(|(out, &allowed)| *out = if allowed { value } else { *out });
            }
        }
        return;
    }
    for k in 0..len {
        if at(mask, k) {
            out[(position + k as i64 * slope) as usize] = at(values, k);
        }
    }
}

/// Folds values into every `slope`-th element from `position` on; with slope 0, all of them into one.
fn fold<T: Foldable>(
    monoid: Monoid,
    buffer: &mut Buffer,
    position: i64,
    slope: i64,
    values: Values<'_, T>,
    len: usize,
) {
    let out = T::of_mut(buffer);
    let start = position as usize;
    match slope {
        1 => T::fold_each(monoid, &mut out[start..start + len], values),
        0 => out[start] = T::combine(monoid, out[start], T::reduce_strip(monoid, values, len)),
        _ => {
            for k in 0..len {
                let out = &mut out[(position + k as i64 * slope) as usize];
                *out = T::combine(monoid, *out, at(values, k));
            }
        }
    }
}

fn at<T: Copy>(values: Values<'_, T>, k: usize) -> T {
    match values {
        Values::Each(values) => values[k],
        Values::Same(value) => value,
    }
}
