//! Merging sorted runs by rank.
//!
//! An output block holds a range of ranks. Where that range begins and ends in every run is found by bisection, so a block looks at no element that
//! another block owns, apart from a few to find its place.

use std::ops::Range;

use tw_ir::{DType, Error, Result};

use super::{Entry, Row, Sortable, entry, for_rows, row_through};
use crate::block::Block;
use crate::strip::{Element, with_dtype};

/// One row of a sorted run.
struct Run<'a, T> {
    values: &'a [T],
    value_row: Row,
    positions: &'a [i64],
    position_row: Row,
    len: usize,
    descending: bool,
}

impl<T: Sortable> Run<'_, T> {
    fn value(&self, k: usize) -> T {
        self.values[self.value_row.at(k)]
    }

    fn entry(&self, k: usize) -> Entry {
        entry(self.value(k), self.positions[self.position_row.at(k)], self.descending)
    }

    /// How many entries come before another.
    fn n_before(&self, pivot: Entry) -> usize {
        let (mut lo, mut hi) = (0, self.len);
        while lo < hi {
            let middle = lo.midpoint(hi);
            if self.entry(middle) < pivot { lo = middle + 1 } else { hi = middle }
        }
        lo
    }
}

/// How many entries of each run are among the first `rank` of all.
fn split<T: Sortable>(runs: &[Run<'_, T>], rank: usize) -> Vec<usize> {
    let mut lo = vec![0; runs.len()];
    let mut hi: Vec<usize> = runs.iter().map(|run| run.len).collect();
    loop {
        // The entry in the middle of the widest open range is compared with all; one of its two sides is then decided.
        let widest = (0..runs.len()).max_by_key(|&k| hi[k] - lo[k]);
        let Some(widest) = widest.filter(|&k| hi[k] > lo[k]) else { return lo };
        let middle = lo[widest].midpoint(hi[widest]);
        let pivot = runs[widest].entry(middle);
        let before: Vec<usize> = runs.iter().map(|run| run.n_before(pivot)).collect();
        if before.iter().sum::<usize>() < rank {
            lo.iter_mut().zip(&before).for_each(|(lo, &n)| *lo = n.max(*lo));
            lo[widest] = lo[widest].max(middle + 1);
        } else {
            hi.iter_mut().zip(&before).for_each(|(hi, &n)| *hi = n.min(*hi));
        }
    }
}

/// The entries with the given ranks, in order.
fn merge<T: Sortable>(runs: &[Run<'_, T>], ranks: Range<usize>) -> Vec<(Entry, T)> {
    let (begin, end) = (split(runs, ranks.start), split(runs, ranks.end));
    let mut merged: Vec<(Entry, T)> = Vec::with_capacity(ranks.len());
    for ((run, begin), end) in runs.iter().zip(begin).zip(end) {
        merged.extend((begin..end).map(|k| (run.entry(k), run.value(k))));
    }
    // The stable sort of the standard library finds the runs and merges them.
    merged.sort_by_key(|(entry, _)| *entry);
    merged
}

/// Merges sorted runs; keeps the ranks that belong to the output block.
pub(crate) fn sort_merge(axis: usize, descending: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    let (values, positions) = operands.split_at(operands.len() / 2);
    let [out_values, out_positions] = outputs else {
        return Err(Error::internal("a merge makes two blocks"));
    };
    let misfit = || Error::internal("the runs of a merge do not fit each other");
    let bbox = out_values.bbox().clone();
    let dtype = out_values.dtype();
    let fits = values.len() == positions.len()
        && out_positions.bbox() == &bbox
        && values.iter().zip(positions).all(|(v, p)| v.bbox() == p.bbox() && v.dtype() == dtype)
        && positions.iter().map(|block| block.dtype()).chain([out_positions.dtype()]).all(|d| d == DType::I64);
    if !fits {
        return Err(misfit());
    }
    for_rows(&bbox, axis, |at| {
        let ranks = bbox.lo[axis] as usize..bbox.hi[axis] as usize;
        let to = row_through(out_values, at, axis)?;
        with_dtype!(dtype, T => {
            let runs = values
                .iter()
                .zip(positions)
                .map(|(values, positions)| {
                    Ok(Run {
                        values: T::of(values.data()),
                        value_row: row_through(values, at, axis)?,
                        positions: i64::of(positions.data()),
                        position_row: row_through(positions, at, axis)?,
                        len: (values.bbox().hi[axis] - values.bbox().lo[axis]) as usize,
                        descending,
                    })
                })
                .collect::<Result<Vec<Run<'_, T>>>>()?;
            if runs.iter().map(|run| run.len).sum::<usize>() < ranks.end {
                return Err(misfit());
            }
            let merged = merge(&runs, ranks);
            let out = T::of_mut(out_values.output()?.1);
            merged.iter().enumerate().for_each(|(k, (_, value))| out[to.at(k)] = *value);
            let out = i64::of_mut(out_positions.output()?.1);
            merged.iter().enumerate().for_each(|(k, ((_, position), _))| out[to.at(k)] = *position);
        });
        Ok(())
    })
}
