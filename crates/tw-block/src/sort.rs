//! Sorting along an axis: runs inside blocks, then an exact merge by rank.
//!
//! Elements are compared by an integer key that puts NaN after everything and makes both zeros equal. Ties go to the lower position along the
//! axis of the whole tensor, so every sort is stable and every merge exact.

use tw_ir::{BoxRegion, DType, Error, Result};

use crate::block::Block;
use crate::strip::{Element, with_dtype};
use crate::walk::Points;

mod merge;

pub(crate) use merge::sort_merge;

/// Element types that can be sorted.
trait Sortable: Element {
    /// Larger for larger values.
    fn key(self) -> u64;
}

impl Sortable for bool {
    fn key(self) -> u64 {
        self as u64
    }
}
impl Sortable for i64 {
    fn key(self) -> u64 {
        self as u64 ^ (1 << 63)
    }
}
impl Sortable for f32 {
    fn key(self) -> u64 {
        (self as f64).key()
    }
}
impl Sortable for f64 {
    fn key(self) -> u64 {
        if self.is_nan() {
            return u64::MAX;
        }
        // Adding zero turns -0.0 into 0.0.
        let bits = (self + 0.0).to_bits();
        if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
    }
}

/// An element as it is compared: its key, reversed for descending order, and its position.
type Entry = (u64, i64);

fn entry<T: Sortable>(value: T, position: i64, descending: bool) -> Entry {
    let key = value.key();
    (if descending { !key } else { key }, position)
}

/// Elements of one row of a block: every `step`-th from `start` on.
#[derive(Clone, Copy)]
struct Row {
    start: usize,
    step: usize,
}

impl Row {
    fn at(self, k: usize) -> usize {
        self.start + k * self.step
    }
}

/// The row of a block that goes through a point.
fn row_through(block: &Block, at: &[u64], axis: usize) -> Result<Row> {
    let bbox = block.bbox();
    let inside = at.len() == bbox.rank() && (0..at.len()).all(|k| k == axis || bbox.range(k).contains(&at[k]));
    if !inside {
        return Err(Error::internal(format!("a block at {bbox} does not cover the rows it is sorted into")));
    }
    let distance = |k: usize| if k == axis { 0 } else { (at[k] - bbox.lo[k]) as usize * block.stride(k) };
    Ok(Row { start: block.offset() + (0..at.len()).map(distance).sum::<usize>(), step: block.stride(axis) })
}

/// Calls `f` with a point of every row of a box along an axis.
fn for_rows(bbox: &BoxRegion, axis: usize, mut f: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
    let mut across = bbox.clone();
    if axis >= across.rank() {
        return Err(Error::internal(format!("a sort along axis {axis} of a block at {bbox}")));
    }
    across.hi[axis] = across.hi[axis].min(across.lo[axis] + 1);
    let mut rows = Points::new(&across);
    while let Some(at) = rows.next() {
        f(at)?;
    }
    Ok(())
}

/// Sorts one block; positions are those along the axis of the whole tensor.
pub(crate) fn sort_run(axis: usize, descending: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    let ([block], [values, positions]) = (operands, outputs) else {
        return Err(Error::internal("a sort takes one block and makes two"));
    };
    let bbox = block.bbox();
    let fits = values.bbox() == bbox
        && positions.bbox() == bbox
        && values.dtype() == block.dtype()
        && positions.dtype() == DType::I64;
    if !fits {
        return Err(Error::internal("the blocks of a sort do not fit each other"));
    }
    let mut entries: Vec<Entry> = Vec::new();
    for_rows(bbox, axis, |at| {
        let (from, to) = (row_through(block, at, axis)?, row_through(values, at, axis)?);
        let range = bbox.range(axis);
        with_dtype!(block.dtype(), T => {
            let data = T::of(block.data());
            entries.clear();
            entries.extend(range.clone().enumerate().map(|(k, p)| entry(data[from.at(k)], p as i64, descending)));
            // Positions differ, so no two entries are equal, and the faster unstable sort gives the stable order.
            entries.sort_unstable();
            let out = T::of_mut(values.output()?.1);
            for (k, (_, position)) in entries.iter().enumerate() {
                out[to.at(k)] = data[from.at((*position as u64 - range.start) as usize)];
            }
        });
        let out = i64::of_mut(positions.output()?.1);
        entries.iter().enumerate().for_each(|(k, (_, position))| out[to.at(k)] = *position);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_order() {
        let order = [f64::NEG_INFINITY, -1e300, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        assert!(order.windows(2).all(|pair| pair[0].key() < pair[1].key()));
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert_eq!((-f64::NAN).key(), f64::NAN.key());
        assert!(i64::MIN.key() < (-1i64).key() && (-1i64).key() < 0i64.key() && 0i64.key() < i64::MAX.key());
    }
}
