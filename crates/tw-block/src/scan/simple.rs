//! Scans by one operation on single values.

use super::{Direction, Slabs};
use crate::strip::{Foldable, Monoid, Values};

/// Folds all rows of each slab into the totals.
pub(super) fn total<T: Foldable>(monoid: Monoid, slabs: Slabs, body: &[T], totals: &mut [T]) {
    let Slabs { outer, n, inner } = slabs;
    for slab in 0..outer {
        let rows = &body[slab * n * inner..(slab + 1) * n * inner];
        let totals = &mut totals[slab * inner..(slab + 1) * inner];
        match (totals, rows) {
            (_, []) => {}
            ([total], rows) => *total = T::combine(monoid, *total, T::reduce(monoid, rows)),
            (totals, rows) => {
                rows.chunks_exact(inner).for_each(|row| T::fold_each(monoid, totals, Values::Each(row)));
            }
        }
    }
}

/// Running aggregates, from the given states on.
pub(super) fn scan<T: Foldable>(
    monoid: Monoid,
    direction: Direction,
    exclusive: bool,
    slabs: Slabs,
    body: &[T],
    states: &mut [T],
    results: &mut [T],
) {
    let Slabs { outer, n, inner } = slabs;
    if inner == 1 {
        return scan_rows(monoid, direction, exclusive, n, body, states, results);
    }
    for slab in 0..outer {
        let start = slab * n * inner;
        let states = &mut states[slab * inner..(slab + 1) * inner];
        for k in 0..n {
            let row = start + direction.row(k, n) * inner;
            let row = row..row + inner;
            let (body, result) = (&body[row.clone()], &mut results[row]);
            for ((state, &x), result) in states.iter_mut().zip(body).zip(result) {
                let next = T::combine(monoid, *state, x);
                *result = if exclusive { *state } else { next };
                *state = next;
            }
        }
    }
}

/// Rows scanned at a time: each waits for its own last step, so together they wait less.
const TOGETHER: usize = 4;

/// Running aggregates along contiguous rows of `n` elements.
fn scan_rows<T: Foldable>(
    monoid: Monoid,
    direction: Direction,
    exclusive: bool,
    n: usize,
    body: &[T],
    states: &mut [T],
    results: &mut [T],
) {
    if n == 0 {
        return;
    }
    let groups = states.chunks_mut(TOGETHER).zip(body.chunks(TOGETHER * n).zip(results.chunks_mut(TOGETHER * n)));
    for (states, (body, results)) in groups {
        match <&mut [T; TOGETHER]>::try_from(&mut *states) {
            Ok(states) => scan_group(monoid, direction, exclusive, n, body, states, results),
            Err(_) => {
                let rows = body.chunks_exact(n).zip(results.chunks_exact_mut(n));
                for (state, (body, results)) in states.iter_mut().zip(rows) {
                    scan_group(monoid, direction, exclusive, n, body, std::array::from_mut(state), results);
                }
            }
        }
    }
}

/// Running aggregates along so many rows at once.
fn scan_group<T: Foldable, const ROWS: usize>(
    monoid: Monoid,
    direction: Direction,
    exclusive: bool,
    n: usize,
    body: &[T],
    states: &mut [T; ROWS],
    results: &mut [T],
) {
    let mut current = *states;
    for step in 0..n {
        let column = direction.row(step, n);
        for (row, state) in current.iter_mut().enumerate() {
            let next = T::combine(monoid, *state, body[row * n + column]);
            results[row * n + column] = if exclusive { *state } else { next };
            *state = next;
        }
    }
    *states = current;
}
