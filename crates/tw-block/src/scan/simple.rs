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
