//! Accumulation into groups: one state per output element.

use crate::accum::{Accum, OnEmpty};
use crate::array::{Array, Buffer};
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::scalar::{BinaryOp, ScalarCode, eval_binary};
use crate::shape;

/// Runs the parts of an accumulator without allocating at every point.
pub(super) struct Fold<'a> {
    accum: &'a Accum,
    /// The operation, where lifting changes nothing and combining is a single one: most aggregates, and most of the time spent here.
    simple: Option<BinaryOp>,
    args: Vec<Scalar>,
    slots: Vec<Scalar>,
}

impl<'a> Fold<'a> {
    pub(super) fn new(accum: &'a Accum) -> Fold<'a> {
        Fold { accum, simple: accum.as_simple().map(|(op, _)| op), args: Vec::new(), slots: Vec::new() }
    }

    /// `state = combine(state, lift(bodies))`.
    pub(super) fn add(&mut self, state: &mut [Scalar], bodies: &[Scalar]) {
        if let (Some(op), [state], [body]) = (self.simple, &mut *state, bodies) {
            *state = eval_binary(op, *state, *body);
            return;
        }
        self.accum.lift.eval_slots(bodies, &mut self.slots);
        self.args.clear();
        self.args.extend_from_slice(state);
        self.args.extend(results(&self.accum.lift, &self.slots));
        self.accum.combine.eval_slots(&self.args, &mut self.slots);
        for (part, value) in state.iter_mut().zip(results(&self.accum.combine, &self.slots)) {
            *part = value;
        }
    }

    /// The results of a group that holds something.
    pub(super) fn finish(&mut self, state: &[Scalar]) -> impl Iterator<Item = Scalar> + '_ {
        self.accum.finish.eval_slots(state, &mut self.slots);
        results(&self.accum.finish, &self.slots)
    }
}

/// The returned values among the slots of code that has run.
pub(super) fn results<'a>(code: &'a ScalarCode, slots: &'a [Scalar]) -> impl Iterator<Item = Scalar> + 'a {
    code.results().iter().map(|slot| slots[slot.0 as usize])
}

/// The result of an empty group, or the error that names its coordinate.
pub(super) fn empty_group(accum: &Accum, shape: &[u64], position: usize) -> Result<Vec<Scalar>> {
    match accum.on_empty {
        OnEmpty::Error => {
            let coords = shape::display(&shape::unravel(position as u64, shape));
            Err(Error::data(format!(
                "nothing contributes to element {coords}, and this aggregate has no value for that"
            )))
        }
        OnEmpty::Identity | OnEmpty::Value(_) => Ok(accum.empty_results()),
    }
}

/// One group per element of the output.
pub(super) struct Groups<'a> {
    accum: &'a Accum,
    fold: Fold<'a>,
    shape: Vec<u64>,
    /// The components of all states, group by group.
    states: Vec<Scalar>,
    reached: Vec<bool>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(accum: &'a Accum, shape: &[u64]) -> Result<Groups<'a>> {
        let n = shape::n_elements(shape)? as usize;
        let states = accum.identity.repeat(n);
        Ok(Groups { accum, fold: Fold::new(accum), shape: shape.to_vec(), states, reached: vec![false; n] })
    }

    /// One contribution to the group at a position.
    pub(super) fn contribute(&mut self, position: usize, bodies: &[Scalar]) {
        let width = self.accum.identity.len();
        self.fold.add(&mut self.states[position * width..(position + 1) * width], bodies);
        self.reached[position] = true;
    }

    /// The results of every group.
    pub(super) fn finish(mut self) -> Result<Vec<Array>> {
        let n = self.reached.len();
        let width = self.accum.identity.len();
        let mut outputs: Vec<Buffer> =
            self.accum.result_types().into_iter().map(|dtype| Buffer::zeros(dtype, n)).collect();
        for position in 0..n {
            if self.reached[position] {
                let state = &self.states[position * width..(position + 1) * width];
                for (buffer, value) in outputs.iter_mut().zip(self.fold.finish(state)) {
                    buffer.set(position, value);
                }
            } else {
                for (buffer, value) in outputs.iter_mut().zip(empty_group(self.accum, &self.shape, position)?) {
                    buffer.set(position, value);
                }
            }
        }
        let types = self.accum.result_types();
        outputs
            .into_iter()
            .zip(types)
            .map(|(buffer, dtype)| Array::new(self.shape.clone(), buffer)?.with_dtype(dtype))
            .collect()
    }
}
