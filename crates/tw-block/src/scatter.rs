//! Contributing to elements at positions that are data.

use std::ops::Range;

use tw_ir::{Accum, Buffer, Edge, Error, Result, Scalar, Slice, SliceMut, Writable};

use crate::block::Block;
use crate::indexing::{Indexing, Moves, Pair, Side, Vector};
use crate::states::{combine_strips, monoids, strip_buffers};
use crate::strip::{
    Direct, Element, Foldable, Lane, Monoid, RegisterPlan, Registers, STRIP, StripCode, Values, with_dtype, with_lane,
    with_registers,
};
use crate::wide::wide;

/// Slots of the table that tells whether two contributions of a strip may meet.
const TABLE: usize = 4096;

/// Fewest neighbours that are folded as a row: shorter ones are cheaper collected into strips.
const SHORTEST_RUN: usize = 32;

/// A scatter made ready.
#[derive(Debug)]
pub(crate) struct Scatter {
    indexing: Indexing,
    identity: Vec<Scalar>,
    lift: StripCode,
    combine: StripCode,
    /// The operation of each component, if each has one of its own.
    parts: Option<Vec<Monoid>>,
    /// True if states are a value and its position, and the largest position wins.
    keeps_last: bool,
    registers: RegisterPlan,
}

impl Scatter {
    pub(crate) fn compile(axes: &[u32], shape: &[u64], edge: Edge, accum: &Accum) -> Result<Scatter> {
        let mut registers = RegisterPlan::default();
        Ok(Scatter {
            indexing: Indexing::new(axes, shape, edge)?,
            identity: accum.identity.clone(),
            lift: StripCode::compile(&accum.lift, &mut registers),
            combine: StripCode::compile(&accum.combine, &mut registers),
            parts: monoids(accum).map(|parts| parts.into_iter().map(|(monoid, _)| monoid).collect()),
            keeps_last: (accum.identity.first())
                .is_some_and(|&first| accum.combine == Accum::last(first.dtype(), first).combine),
            registers,
        })
    }

    pub(crate) fn run(&self, first: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let misfit = || Error::internal("the blocks of a scatter do not fit each other");
        let (indices, values) = operands.split_at(self.indexing.n_axes().min(operands.len()));
        let value_types = self.lift.params().iter().map(|register| register.dtype);
        let state_types = self.identity.iter().map(|value| value.dtype());
        let fits = values.iter().map(|block| block.dtype()).eq(value_types)
            && outputs.iter().map(Block::dtype).eq(state_types.clone())
            && values.iter().all(|block| block.bbox() == values[0].bbox())
            && outputs.iter().all(|output| output.bbox() == outputs[0].bbox());
        let (Some(first_value), Some(first_output), true) = (values.first(), outputs.first(), fits) else {
            return Err(misfit());
        };
        let to = Side::of(first_output);
        if first {
            for (output, value) in outputs.iter_mut().zip(&self.identity) {
                output.fill(*value)?;
            }
        }
        let bodies = values.iter().map(|block| block.row_major_from()).collect::<Result<Vec<_>>>()?;
        let bodies: Vec<(&Buffer, usize)> = bodies.iter().map(|(body, first)| (&**body, *first)).collect();
        let from = Side::row_major(first_value.bbox());
        let states: Vec<SliceMut<'_>> = outputs.iter_mut().map(|o| Ok(o.target()?.1)).collect::<Result<_>>()?;
        with_registers(&self.registers, |registers| {
            let mut pass = Pass {
                scatter: self,
                bodies,
                states,
                registers,
                targets: Vec::with_capacity(STRIP),
                sources: Vec::with_capacity(STRIP),
                gathered: strip_buffers(self.lift.params().iter().map(|register| register.dtype)),
                lifted: strip_buffers(state_types.clone()),
                current: strip_buffers(state_types.clone()),
                combined: strip_buffers(state_types),
                table: vec![0; TABLE],
                stamp: 0,
            };
            // A scatter writes its data; its points are the values.
            if let Some(done) = self.indexing.vector(indices, std::slice::from_ref(&to), &from, |v| pass.vector(&v)) {
                return done;
            }
            self.indexing.transfer(indices, &[to], &from, |pairs, moves| pass.contribute(pairs, &moves[0]))?;
            pass.flush();
            Ok(())
        })
    }
}

/// A running scatter. Contributions are collected until there is a strip of them.
struct Pass<'a> {
    scatter: &'a Scatter,
    /// Values in row-major order, and where the first is.
    bodies: Vec<(&'a Buffer, usize)>,
    states: Vec<SliceMut<'a>>,
    registers: &'a mut Registers,
    targets: Vec<usize>,
    sources: Vec<usize>,
    gathered: Vec<Buffer>,
    lifted: Vec<Buffer>,
    current: Vec<Buffer>,
    combined: Vec<Buffer>,
    table: Vec<u32>,
    stamp: u32,
}

impl Pass<'_> {
    /// Contributes a vector of values, strip by strip; tells the first index outside.
    fn vector(&mut self, vector: &Vector<'_>) -> std::result::Result<(), usize> {
        let (range, first) = (vector.tiles.range(), vector.first());
        for (strip, indices) in vector.indices.chunks(STRIP).enumerate() {
            let start = strip * STRIP;
            self.targets.resize(STRIP, 0);
            // Where all indices are inside the block, there is nothing to leave out.
            if all_inside(indices, range.start as i64, range.end as i64) {
                let shift = first.wrapping_sub(range.start as usize);
                let from = vector.points.start + start;
                if self.fold_neighbours(indices, shift, from) {
                    continue;
                }
                self.targets.truncate(indices.len());
                for (target, &index) in self.targets.iter_mut().zip(indices) {
                    *target = (index as usize).wrapping_add(shift);
                }
                self.flush_from(Some(from));
                continue;
            }
            self.sources.resize(STRIP, 0);
            let (targets, sources) = (&mut self.targets[..indices.len()], &mut self.sources[..indices.len()]);
            let mut n = 0;
            for (k, &index) in indices.iter().enumerate() {
                let place = match vector.place(index) {
                    Some(place) => place,
                    None if vector.edge == Edge::Error => return Err(start + k),
                    None => u64::MAX,
                };
                targets[n] = place.wrapping_sub(range.start) as usize + first;
                sources[n] = vector.points.start + start + k;
                n += range.contains(&place) as usize;
            }
            self.targets.truncate(n);
            self.sources.truncate(n);
            let from = (n == indices.len()).then_some(vector.points.start + start);
            self.flush_from(from);
        }
        Ok(())
    }

    /// Folds neighbouring values, from a position on, into the states that indices and a shift name. False if components are not combined each by
    /// an operation of its own.
    fn fold_neighbours(&mut self, indices: &[i64], shift: usize, from: usize) -> bool {
        if self.scatter.parts.is_none() && !self.scatter.keeps_last {
            return false;
        }
        let len = indices.len();
        let lanes: Vec<Option<Lane<'_>>> =
            self.bodies.iter().map(|(body, first)| Some(Lane::slice(body, first + from..first + from + len))).collect();
        let lift = &self.scatter.lift;
        lift.eval(&lanes, self.registers, len);
        let Some(parts) = &self.scatter.parts else {
            let [last, positions] = &mut self.states[..] else { return false };
            let (value, position) =
                (lift.result(0, &lanes, self.registers, len), lift.result(1, &lanes, self.registers, len));
            let Lane::I64(position) = position else { return false };
            with_lane!(value, values => keep_last_at((&mut *last, &mut *positions), indices, shift, (values, position)));
            return true;
        };
        for (k, (monoid, state)) in parts.iter().zip(&mut self.states).enumerate() {
            let lane = lift.result(k, &lanes, self.registers, len);
            with_lane!(lane, values => fold_at(*monoid, state, indices, shift, values));
        }
        true
    }

    /// Folds rows of neighbours into rows of neighbours, where both sides lie so: without a list of positions. False if components are not combined each by an operation of its own.
    fn fold_runs(&mut self, pairs: &[Pair], run: usize) -> bool {
        let Some(parts) = &self.scatter.parts else { return false };
        let lift = &self.scatter.lift;
        for pair in pairs {
            for start in (0..run).step_by(STRIP) {
                let len = STRIP.min(run - start);
                let part = |first: usize| first + pair.point + start..first + pair.point + start + len;
                let lanes: Vec<Option<Lane<'_>>> =
                    self.bodies.iter().map(|(body, first)| Some(Lane::slice(body, part(*first)))).collect();
                lift.eval(&lanes, self.registers, len);
                let to = pair.data + start..pair.data + start + len;
                for (k, (monoid, state)) in parts.iter().zip(&mut self.states).enumerate() {
                    let lane = lift.result(k, &lanes, self.registers, len);
                    with_lane!(lane, values => fold_run(*monoid, state, to.clone(), values));
                }
            }
        }
        true
    }

    fn contribute(&mut self, pairs: &[Pair], moves: &Moves) {
        // All pairs of a pass have the same moves, so nothing that came earlier waits to be flushed.
        if moves.run().is_some_and(|run| run >= SHORTEST_RUN && self.fold_runs(pairs, run)) {
            return;
        }
        let n = moves.shape.iter().product::<u64>() as usize;
        let rank = moves.shape.len();
        let mut at = vec![0u64; rank];
        for pair in pairs {
            let (mut to, mut from) = (pair.data, pair.point);
            at.fill(0);
            for _ in 0..n {
                self.targets.push(to);
                self.sources.push(from);
                if self.targets.len() == STRIP {
                    self.flush();
                }
                for axis in (0..rank).rev() {
                    at[axis] += 1;
                    to += moves.data_strides[axis];
                    from += moves.point_strides[axis];
                    if at[axis] < moves.shape[axis] {
                        break;
                    }
                    at[axis] = 0;
                    to -= moves.data_strides[axis] * moves.shape[axis] as usize;
                    from -= moves.point_strides[axis] * moves.shape[axis] as usize;
                }
            }
        }
    }

    /// Folds the collected contributions into the states, in order.
    fn flush(&mut self) {
        self.flush_from(None);
    }

    /// As [`Pass::flush`]; the values may be neighbours from a position on.
    fn flush_from(&mut self, start: Option<usize>) {
        let len = self.targets.len();
        if len == 0 {
            return;
        }
        if start.is_none() {
            for ((body, first), gathered) in self.bodies.iter().zip(&mut self.gathered) {
                gather(body.as_slice(), *first, &self.sources, gathered);
            }
        }
        let lanes: Vec<Option<Lane<'_>>> = match start {
            Some(start) => {
                let part = |first: usize| first + start..first + start + len;
                self.bodies.iter().map(|(body, first)| Some(Lane::slice(body, part(*first)))).collect()
            }
            None => self.gathered.iter().map(|body| Some(Lane::slice(body, 0..len))).collect(),
        };
        let direct = Direct { buffers: &mut self.lifted, start: 0 };
        self.scatter.lift.eval_into(&lanes, self.registers, len, Some(direct));
        match &self.scatter.parts {
            Some(parts) => {
                for ((monoid, state), lifted) in parts.iter().zip(&mut self.states).zip(&self.lifted) {
                    with_dtype!(lifted.dtype(), T => fold_into(*monoid, T::of_mut(state), &self.targets, T::of(lifted)));
                }
            }
            None => self.combine_all(len),
        }
        self.targets.clear();
        self.sources.clear();
    }

    /// Combines parts of the strip in which no two contributions go to one element.
    fn combine_all(&mut self, len: usize) {
        let mut start = 0;
        while start < len {
            self.stamp += 1;
            let mut end = start;
            // Two targets that share a slot of the table may be different; then the part is cut a little early.
            while end < len && self.table[self.targets[end] % TABLE] != self.stamp {
                self.table[self.targets[end] % TABLE] = self.stamp;
                end += 1;
            }
            let (n, targets) = (end - start, &self.targets[start..end]);
            for (state, current) in self.states.iter().zip(&mut self.current) {
                gather(state.elements(), 0, targets, current);
            }
            let combine = &self.scatter.combine;
            combine_strips(combine, (&self.current, 0), (&self.lifted, start), n, &mut self.combined, self.registers);
            for (state, combined) in self.states.iter_mut().zip(&self.combined) {
                with_dtype!(combined.dtype(), T => {
                    let (state, combined) = (T::of_mut(state), T::of(combined));
                    targets.iter().zip(combined).for_each(|(&target, &value)| state[target] = value);
                });
            }
            start = end;
        }
    }
}

fn gather(from: Slice<'_>, first: usize, positions: &[usize], to: &mut Buffer) {
    with_dtype!(from.dtype(), T => {
        let (from, to) = (&T::of_slice(from)[first..], T::of_mut(to));
        to.iter_mut().zip(positions).for_each(|(to, &position)| *to = from[position]);
    })
}

wide! {
    /// True if all indices lie in a range.
    pub(crate) fn all_inside(indices: &[i64], start: i64, end: i64) -> bool {
        indices.iter().fold(true, |all, &index| all & (index >= start) & (index < end))
    }
}

fn fold_run<T: Foldable>(monoid: Monoid, state: &mut SliceMut<'_>, to: Range<usize>, values: Values<'_, T>) {
    T::fold_each(monoid, &mut T::of_mut(state)[to], values);
}

/// `state[indices[k] + shift] = state[..] op values[k]`, in order.
fn fold_at<T: Foldable>(
    monoid: Monoid,
    state: &mut SliceMut<'_>,
    indices: &[i64],
    shift: usize,
    values: Values<'_, T>,
) {
    let state = T::of_mut(state);
    let place = |index: i64| (index as usize).wrapping_add(shift);
    // The operation is chosen outside the loop for what is asked for most.
    match (monoid, values) {
        (Monoid::Sum, Values::Same(value)) => {
            for &index in indices {
                let to = &mut state[place(index)];
                *to = T::combine(Monoid::Sum, *to, value);
            }
        }
        (Monoid::Sum, Values::Each(values)) => {
            for (&index, &value) in indices.iter().zip(values) {
                let to = &mut state[place(index)];
                *to = T::combine(Monoid::Sum, *to, value);
            }
        }
        (_, values) => {
            for (k, &index) in indices.iter().enumerate() {
                let to = &mut state[place(index)];
                *to = T::combine(monoid, *to, values.at(k));
            }
        }
    }
}

/// Keeps the values with the largest positions.
fn keep_last_at<T: Element>(
    (last, positions): (&mut SliceMut<'_>, &mut SliceMut<'_>),
    indices: &[i64],
    shift: usize,
    (values, position): (Values<'_, T>, Values<'_, i64>),
) {
    let (last, positions) = (T::of_mut(last), i64::of_mut(positions));
    for (k, &index) in indices.iter().enumerate() {
        let (to, new) = ((index as usize).wrapping_add(shift), position.at(k));
        if new > positions[to] {
            positions[to] = new;
            last[to] = values.at(k);
        }
    }
}

fn fold_into<T: Foldable>(monoid: Monoid, state: &mut [T], targets: &[usize], values: &[T]) {
    for (&target, &value) in targets.iter().zip(values) {
        state[target] = T::combine(monoid, state[target], value);
    }
}
