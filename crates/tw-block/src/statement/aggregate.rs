//! Tuples with loops of their own: variances, and extrema with their positions.
//!
//! Both could be folded by the code of their accumulator; here a strip becomes one state, or meets a strip of states, in a few vector loops.

use tw_ir::{Accum, Buffer, DType};

use super::access::{Piece, Place};
use super::frame::Strip;
use super::run::{Scratch, Task};
use crate::strip::{AllSums, Cascade, Element, Extremum, InRegisters, Moments, Ordered, Real, Values, compete_each};

/// Runs code with a name for an ordered element type.
macro_rules! with_ordered {
    ($dtype:expr, $type:ident => $body:expr, else $other:expr) => {
        with_ordered!(@ $dtype, $type, $body, $other,
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $type:ident, $body:expr, $other:expr, $($variant:ident $element:ident),*) => {
        match $dtype {
            $(DType::$variant => {
                #[allow(unused)]
                type $type = $element;
                $body
            })*
            _ => $other,
        }
    };
}

/// An accumulator with loops of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    /// Count, mean and squared deviations.
    Moments(DType),
    /// An extremum and its position.
    Extremum(Extremum, DType),
}

impl Aggregate {
    /// The aggregate that an accumulator is, if it is one.
    pub(super) fn of(accum: &Accum) -> Option<Aggregate> {
        let dtype = accum.identity.first()?.dtype();
        let same = |other: &Accum| {
            accum.identity == other.identity && accum.lift == other.lift && accum.combine == other.combine
        };
        let ordered = with_ordered!(dtype, _T => true, else false);
        let found = match accum.identity.len() {
            3 if matches!(dtype, DType::F32 | DType::F64) => (Accum::variance(dtype, 0.0), Aggregate::Moments(dtype)),
            2 if ordered && accum.combine == Accum::argmin(dtype).combine => {
                (Accum::argmin(dtype), Aggregate::Extremum(Extremum::Smallest, dtype))
            }
            2 if ordered => (Accum::argmax(dtype), Aggregate::Extremum(Extremum::Largest, dtype)),
            _ => return None,
        };
        same(&found.0).then_some(found.1)
    }
}

/// What aggregates keep between strips.
#[derive(Debug, Default)]
pub(super) struct AggregateState {
    sums: AllSums,
    /// Of the current row: count, mean and squared deviations, as doubles hold them exactly.
    row: Cascade<[f64; 3]>,
    /// Of the current row: the best element so far, as a buffer of one element, and its position.
    best: Option<(Buffer, i64)>,
}

impl Task<'_> {
    /// Folds a strip whose code has been evaluated.
    pub(super) fn fold_aggregate(&mut self, aggregate: Aggregate, strip: Strip) {
        match aggregate {
            Aggregate::Moments(DType::F32) => self.fold_moments::<f32>(strip),
            Aggregate::Moments(_) => self.fold_moments::<f64>(strip),
            Aggregate::Extremum(which, dtype) => {
                with_ordered!(dtype, T => self.fold_extremum::<T>(which, strip), else {})
            }
        }
    }

    fn fold_moments<T: Real>(&mut self, strip: Strip) {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, frame, out_plan, aggregates, .. } = &mut **scratch;
        let values = T::of_lane(statement.code.result(1, lanes, registers, strip.len));
        if out_plan.inner == Some(0) {
            let run = moments(values, strip.len);
            aggregates.row.push(as_doubles(run), |a, b| as_doubles(from_doubles::<T>(a).merge(from_doubles(b))));
            return;
        }
        let [ns, means, squares] = &mut buffers[..] else { return };
        let mut states = [T::of_mut(ns), T::of_mut(means), T::of_mut(squares)];
        if out_plan.inner == Some(1)
            && let Values::Each(row) = values
        {
            let position = (out_plan.row() + strip.start as i64) as usize;
            let [a, b, c] = &mut states;
            return T::sums(&mut aggregates.sums).add(row, position, [a, b, c]);
        }
        let never_fails = out_plan.pieces(&statement.out, frame, strip, |Piece { offset, len, place }| {
            if let Place::Inside { position, slope } = place {
                let values = values.part(offset..offset + len);
                match slope {
                    0 => merge_at(&mut states, position as usize, moments(values, len)),
                    _ => (0..len).for_each(|k| {
                        let at = (position + k as i64 * slope) as usize;
                        merge_at(&mut states, at, Moments::one(values.at(k)));
                    }),
                }
            }
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = never_fails;
    }

    fn fold_extremum<T: Ordered>(&mut self, which: Extremum, strip: Strip) {
        let Task { statement, lanes, buffers, scratch, .. } = self;
        let Scratch { registers, frame, out_plan, aggregates, .. } = &mut **scratch;
        let values = T::of_lane(statement.code.result(0, lanes, registers, strip.len));
        let positions = i64::of_lane(statement.code.result(1, lanes, registers, strip.len));
        if out_plan.inner == Some(0) {
            let (value, position) = which.of_strip(values, positions, strip.len);
            let best = aggregates.best.get_or_insert_with(|| (Buffer::full(value.to_scalar(), 1), position));
            if which.prefers((value, position), (T::of(&best.0)[0], best.1)) {
                T::of_mut(&mut best.0)[0] = value;
                best.1 = position;
            }
            return;
        }
        let [best, best_positions] = &mut buffers[..] else { return };
        let (best, best_positions) = (T::of_mut(best), i64::of_mut(best_positions));
        let never_fails = out_plan.pieces(&statement.out, frame, strip, |Piece { offset, len, place }| {
            if let Place::Inside { position, slope } = place {
                let (values, positions) = (values.part(offset..offset + len), positions.part(offset..offset + len));
                let mut compete = |value: Values<'_, T>, from: Values<'_, i64>, at: usize, n: usize| {
                    compete_each(which, value, from, &mut best[at..at + n], &mut best_positions[at..at + n]);
                };
                match slope {
                    1 => compete(values, positions, position as usize, len),
                    0 => {
                        let (value, from) = which.of_strip(values, positions, len);
                        compete(Values::Same(value), Values::Same(from), position as usize, 1);
                    }
                    _ => (0..len).for_each(|k| {
                        let at = (position + k as i64 * slope) as usize;
                        compete(Values::Same(values.at(k)), Values::Same(positions.at(k)), at, 1);
                    }),
                }
            }
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = never_fails;
    }

    /// Writes the state of a row to the output.
    pub(super) fn end_aggregate_row(&mut self, aggregate: Aggregate) {
        match aggregate {
            Aggregate::Moments(DType::F32) => self.end_moments_row::<f32>(),
            Aggregate::Moments(_) => self.end_moments_row::<f64>(),
            Aggregate::Extremum(which, dtype) => {
                with_ordered!(dtype, T => self.end_extremum_row::<T>(which), else {})
            }
        }
    }

    fn end_moments_row<T: Real>(&mut self) {
        let Scratch { out_plan, aggregates, .. } = &mut *self.scratch;
        let merge = |a, b| as_doubles(from_doubles::<T>(a).merge(from_doubles(b)));
        if let (Some(row), [ns, means, squares]) = (aggregates.row.finish(merge), &mut self.buffers[..]) {
            let mut states = [T::of_mut(ns), T::of_mut(means), T::of_mut(squares)];
            merge_at(&mut states, out_plan.row() as usize, from_doubles(row));
        }
    }

    fn end_extremum_row<T: Ordered>(&mut self, which: Extremum) {
        let Scratch { out_plan, aggregates, .. } = &mut *self.scratch;
        if let (Some((value, from)), [best, positions]) = (aggregates.best.take(), &mut self.buffers[..]) {
            let at = out_plan.row() as usize;
            let (value, from) = (Values::Same(T::of(&value)[0]), Values::Same(from));
            compete_each(which, value, from, &mut T::of_mut(best)[at..=at], &mut i64::of_mut(positions)[at..=at]);
        }
    }

    /// Brings what several rows were folded into to the output.
    pub(super) fn end_aggregate(&mut self, aggregate: Aggregate) {
        match aggregate {
            Aggregate::Moments(DType::F32) => self.flush_sums::<f32>(),
            Aggregate::Moments(_) => self.flush_sums::<f64>(),
            Aggregate::Extremum(..) => {}
        }
    }

    fn flush_sums<T: Real>(&mut self) {
        if let [ns, means, squares] = &mut self.buffers[..] {
            let states = [T::of_mut(ns), T::of_mut(means), T::of_mut(squares)];
            T::sums(&mut self.scratch.aggregates.sums).flush(states);
        }
    }
}

impl AggregateState {
    /// Clears the state that a failed task left behind.
    pub(super) fn clear(&mut self) {
        self.row.clear();
        self.best = None;
        f32::sums(&mut self.sums).clear();
        f64::sums(&mut self.sums).clear();
    }
}

fn moments<T: Real>(values: Values<'_, T>, n: usize) -> Moments<T> {
    match values {
        Values::Each(values) => Moments::of(values),
        Values::Same(value) => Moments::repeated(value, n),
    }
}

pub(super) fn merge_at<T: Real>(states: &mut [&mut [T]; 3], at: usize, group: Moments<T>) {
    let [ns, means, squares] = states;
    let merged = Moments { n: ns[at], mean: means[at], squares: squares[at] }.merge(group);
    (ns[at], means[at], squares[at]) = (merged.n, merged.mean, merged.squares);
}

fn as_doubles<T: Real>(moments: Moments<T>) -> [f64; 3] {
    [moments.n, moments.mean, moments.squares].map(|x| x.to_scalar().as_f64())
}

fn from_doubles<T: Real>([n, mean, squares]: [f64; 3]) -> Moments<T> {
    let [n, mean, squares] = [n, mean, squares].map(|x| T::from_scalar(tw_ir::Scalar::F64(x)));
    Moments { n, mean, squares }
}
