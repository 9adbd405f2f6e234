//! Results of a strip, on their way into the outputs.

use std::hint::select_unpredictable;

use tw_ir::{Edge, Error, Result, Scalar, Writable};

use super::access::{Piece, Place};
use super::compile::{Fold, Part};
use super::frame::Strip;
use super::load::{outside, point_at};
use super::run::{Scratch, Task};
use crate::masked::count_holding;
use crate::strip::{
    Cascade, Element, Foldable, InRegisters, Lane, Monoid, StripCode, Values, combine, select, with_dtype, with_lane,
};

impl Task<'_> {
    /// Writes or folds the results of a strip.
    pub(super) fn store(&mut self, strip: Strip) -> Result<()> {
        if self.statement.has_guard && !self.check_guard(strip)? {
            return Ok(());
        }
        self.check_target(strip)?;
        match &self.statement.fold {
            Fold::Write => self.write(strip),
            Fold::Simple(parts) => {
                for (k, &part) in parts.iter().enumerate() {
                    self.mask(k, part, strip);
                    self.fold_part(k, part, strip)?;
                }
                Ok(())
            }
            Fold::Aggregate(aggregate) => {
                self.fold_aggregate(*aggregate, strip);
                Ok(())
            }
            Fold::General { combine, .. } => self.fold_general(combine, strip),
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
    fn mask(&mut self, k: usize, part: Part, strip: Strip) {
        if !self.statement.has_guard {
            return;
        }
        let identity = self.statement.start[k];
        let Task { statement, lanes, scratch, .. } = self;
        let registers = &mut scratch.registers;
        with_dtype!(part.masked.dtype, T => {
            // The register belongs to nothing else, so its vector can be taken out while the results are borrowed.
            let mut vector = registers.take_vector::<T>(part.masked.index, strip.len);
            let guard = bool::of_lane(statement.code.result(0, lanes, registers, strip.len));
            let values = T::of_lane(statement.code.result(k + 1, lanes, registers, strip.len));
            select(guard, values, Values::Same(T::from_scalar(identity)), &mut vector[..strip.len]);
            registers.put_vector(part.masked.index, vector);
        })
    }

    fn fold_part(&mut self, k: usize, Part { monoid, masked }: Part, strip: Strip) -> Result<()> {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, frame, out_plan, cascades, .. } = &mut **scratch;
        let lane = match statement.has_guard {
            true => registers.lane(masked, strip.len),
            false => statement.code.result(k, lanes, registers, strip.len),
        };
        if out_plan.inner == Some(0) {
            let total = with_lane!(lane, values => Foldable::reduce_strip(monoid, values, strip.len).to_scalar());
            cascades[k].push(total, |a, b| combine(monoid, a, b));
            return Ok(());
        }
        out_plan.pieces(&statement.out, frame, strip, |Piece { offset, len, place }| {
            if let Place::Inside { position, slope } = place {
                let range = offset..offset + len;
                with_lane!(lane, values => fold(monoid, &mut buffers[k], position, slope, values.part(range), len));
            }
            Ok(())
        })
    }

    /// Adds how often a condition holds on a strip to the count of the current row.
    pub(super) fn count(&mut self, condition: &StripCode, strip: Strip) {
        let Scratch { registers, cascades, .. } = &mut *self.scratch;
        let n = match bool::of_lane(condition.result(0, &self.lanes, registers, strip.len)) {
            Values::Same(holds) => holds as i64 * strip.len as i64,
            Values::Each(holds) => count_holding(holds) as i64,
        };
        cascades[0].push(Scalar::I64(n), |a, b| combine(Monoid::Sum, a, b));
    }

    /// Forgets rows that were left before their end, by an error.
    pub(super) fn begin_rows(&mut self) {
        let Scratch { cascades, state, aggregates, .. } = &mut *self.scratch;
        state.begin_row();
        aggregates.clear();
        cascades.resize_with(self.statement.start.len().max(cascades.len()), Cascade::default);
        cascades.iter_mut().for_each(Cascade::clear);
    }

    /// Writes the reduced value of a row to the output.
    pub(super) fn end_row(&mut self) {
        match &self.statement.fold {
            Fold::Write => {}
            Fold::Simple(parts) => {
                let Scratch { cascades, out_plan, .. } = &mut *self.scratch;
                for ((part, cascade), buffer) in parts.iter().zip(cascades).zip(&mut self.buffers) {
                    if let Some(total) = cascade.finish(|a, b| combine(part.monoid, a, b)) {
                        with_lane!(Lane::same(total), values => fold(part.monoid, buffer, out_plan.row(), 0, values, 1));
                    }
                }
            }
            &Fold::Aggregate(aggregate) => self.end_aggregate_row(aggregate),
            Fold::General { combine, .. } => self.end_fused_row(combine),
        }
    }
}

/// Writes values to every `slope`-th element from `position` on, where the mask allows.
pub(super) fn write<T: Element>(
    buffer: &mut impl Writable,
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
                allowed.for_each(|((out, &allowed), &value)| *out = select_unpredictable(allowed, value, *out));
            }
            (Values::Each(mask), Values::Same(value)) => {
                out.iter_mut().zip(mask).for_each(|(out, &allowed)| *out = select_unpredictable(allowed, value, *out));
            }
        }
        return;
    }
    for k in 0..len {
        if mask.at(k) {
            out[(position + k as i64 * slope) as usize] = values.at(k);
        }
    }
}

/// Folds values into every `slope`-th element from `position` on; with slope 0, all of them into one.
fn fold<T: Foldable>(
    monoid: Monoid,
    buffer: &mut impl Writable,
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
                *out = T::combine(monoid, *out, values.at(k));
            }
        }
    }
}
