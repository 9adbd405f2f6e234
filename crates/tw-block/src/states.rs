//! States of accumulators, many at a time: one buffer per component.

use std::borrow::Borrow;

use tw_ir::{Accum, Buffer, DType, ScalarOp, Slot, Writable};

use crate::strip::{Direct, Element, Lane, Monoid, Registers, STRIP, StripCode, with_dtype};

/// The operation of every component, if each is combined by one operation that has fast loops.
pub(crate) fn monoids(accum: &Accum) -> Option<Vec<(Monoid, DType)>> {
    let n = accum.identity.len() as u32;
    let combine = &accum.combine;
    let op = |slot: Slot| combine.ops()[slot.0 as usize];
    (0..n)
        .zip(combine.results())
        .map(|(k, &result)| match op(result) {
            ScalarOp::Binary(binary, a, b) if op(a) == ScalarOp::Param(k) && op(b) == ScalarOp::Param(n + k) => {
                let dtype = combine.dtype(result);
                Some((Monoid::of(binary, dtype)?, dtype))
            }
            _ => None,
        })
        .collect()
}

/// Room for a strip of states.
pub(crate) fn strip_buffers(types: impl Iterator<Item = DType>) -> Vec<Buffer> {
    types.map(|dtype| Buffer::zeros(dtype, STRIP)).collect()
}

/// Reduces states pairwise: halves are combined until one is left, at `start`. Returns how many are left: one.
pub(crate) fn reduce(
    combine: &StripCode,
    state: &mut [Buffer],
    start: usize,
    len: usize,
    combined: &mut [Buffer],
    registers: &mut Registers,
) -> usize {
    let mut left = len;
    while left > 1 {
        let half = left / 2;
        combine_strips(combine, (state, start), (state, start + left - half), half, combined, registers);
        state.iter_mut().zip(&*combined).for_each(|(to, from)| overwrite(to, start, from, half));
        left -= half;
    }
    left
}

/// `combined[0..n] = combine(first, second)`, for `n` states that begin at the given positions.
pub(crate) fn combine_strips(
    combine: &StripCode,
    first: (&[impl Writable], usize),
    second: (&[impl Borrow<Buffer>], usize),
    n: usize,
    combined: &mut [Buffer],
    registers: &mut Registers,
) {
    let lanes: Vec<Option<Lane<'_>>> = (first.0.iter())
        .map(|buffer| Lane::of(buffer.elements(), first.1..first.1 + n))
        .chain(second.0.iter().map(|buffer| Lane::slice(buffer.borrow(), second.1..second.1 + n)))
        .map(Some)
        .collect();
    combine.eval_into(&lanes, registers, n, Some(Direct { buffers: combined, start: 0 }));
}

/// Copies the first `n` elements of a buffer to a position in another.
pub(crate) fn overwrite(to: &mut impl Writable, position: usize, from: &Buffer, n: usize) {
    with_dtype!(from.dtype(), T => T::of_mut(to)[position..position + n].copy_from_slice(&T::of(from)[..n]))
}
