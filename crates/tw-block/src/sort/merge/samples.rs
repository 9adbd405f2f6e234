//! Narrowing a bisection by the elements of spilled runs that are in memory: the first of every piece.

use std::ops::Range;

use super::{Order, Run, search};
use crate::sort::key::Sortable;

/// Elements of a sorted run at even distances.
pub(super) struct Samples<'r, T> {
    values: &'r [T],
    /// The place of the first of them in the run.
    first: usize,
    distance: usize,
}

impl<'r, T: Sortable> Samples<'r, T> {
    /// The samples of a run that begins at `start` of a block, given those of the block; `None` if the run has none.
    pub(super) fn new(firsts: &'r [T], distance: usize, start: usize, len: usize) -> Option<Samples<'r, T>> {
        let skipped = start.div_ceil(distance);
        let first = skipped * distance - start;
        let n = len.saturating_sub(first).div_ceil(distance);
        let values = firsts.get(skipped..skipped + n).filter(|values| !values.is_empty())?;
        Some(Samples { values, first, distance })
    }

    /// The place of a sample in the run.
    fn place(&self, sample: usize) -> usize {
        self.first + sample * self.distance
    }

    /// The part of a range in which the first element lies that does not come before: up to one piece.
    pub(super) fn enclose(&self, range: Range<usize>, comes_before: impl Fn(T::Key) -> bool) -> Range<usize> {
        let n = self.values.partition_point(|&value| comes_before(value.key()));
        let lo = if n > 0 { self.place(n - 1) + 1 } else { 0 };
        let hi = if n < self.values.len() { self.place(n) } else { usize::MAX };
        lo.clamp(range.start, range.end)..hi.clamp(range.start, range.end)
    }
}

/// For every run, bounds on how many of its entries are among the first `rank` of all, from samples alone. Of a run on disk without
/// samples nothing is known; runs in memory are searched.
pub(super) fn enclose<T: Sortable>(runs: &[Run<'_, '_, T>], order: Order, rank: usize) -> (Vec<usize>, Vec<usize>) {
    let samples: Vec<Option<Samples<'_, T>>> = runs.iter().map(|run| run.values.samples(run.len)).collect();
    let (mut lo, mut hi) = (vec![0; runs.len()], runs.iter().map(|run| run.len).collect::<Vec<_>>());
    let of_run = |(r, samples): (usize, &Option<Samples<'_, T>>)| {
        let samples = samples
            .as_ref()
            .into_iter()
            .flat_map(|samples| samples.values.iter().enumerate().map(|(k, &value)| (value.key(), samples.place(k))));
        samples.map(move |(key, place)| (order.turn(key), r, place)).collect::<Vec<_>>()
    };
    // In the order of the result: equal keys go to the earlier run.
    let mut pivots: Vec<(T::Key, usize, usize)> = samples.iter().enumerate().flat_map(of_run).collect();
    pivots.sort_unstable();
    // Bounds on how many entries of each run come before a pivot.
    let bounds = |&(pivot, r, place): &(T::Key, usize, usize)| {
        let of_run = |(k, run): (usize, &Run<'_, '_, T>)| {
            if k == r {
                return place..place;
            }
            let comes_before = |key: T::Key| if k < r { order.turn(key) <= pivot } else { order.turn(key) < pivot };
            match &samples[k] {
                Some(samples) => samples.enclose(0..run.len, comes_before),
                None if run.values.is_on_disk() => 0..run.len,
                None => {
                    let found = search(0, run.len, 0, |k| comes_before(run.key(k)));
                    found..found
                }
            }
        };
        runs.iter().enumerate().map(of_run).collect::<Vec<_>>()
    };
    // The last pivot that is certainly among the first `rank`, and the first that is certainly not.
    let certainly = pivots.partition_point(|pivot| bounds(pivot).iter().map(|range| range.end).sum::<usize>() < rank);
    if let Some(pivot) = certainly.checked_sub(1).map(|k| &pivots[k]) {
        lo.iter_mut().zip(bounds(pivot)).for_each(|(lo, range)| *lo = range.start);
        lo[pivot.1] = pivot.2 + 1;
    }
    let possibly = pivots.partition_point(|pivot| bounds(pivot).iter().map(|range| range.start).sum::<usize>() < rank);
    if let Some(pivot) = pivots.get(possibly) {
        hi.iter_mut().zip(bounds(pivot)).for_each(|(hi, range)| *hi = range.end);
    }
    (lo, hi)
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn a_place_is_enclosed_by_the_samples_around_it() {
        let block: Vec<i64> = (0..100).collect();
        for (start, len) in [(0, 100), (5, 40), (10, 90), (7, 2), (99, 1)] {
            let firsts: Vec<i64> = block.iter().step_by(10).copied().collect();
            let samples = Samples::new(&firsts, 10, start, len);
            let has_one = (start..start + len).any(|k| k % 10 == 0);
            assert_eq!(samples.is_some(), has_one, "{start} {len}");
            let Some(samples) = samples else { continue };
            for answer in 0..=len {
                let value = |k: usize| block[start + k];
                let key = |k: usize| <i64 as crate::sort::key::Sortable>::key(value(k));
                let found = samples.enclose(0..len, |x| answer > 0 && x <= key(answer - 1));
                assert!(found.start <= answer && answer <= found.end && found.len() <= 10, "{found:?} {answer}");
            }
        }
    }
}
