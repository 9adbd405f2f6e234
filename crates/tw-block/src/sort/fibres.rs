//! Rows of blocks along an axis, several at a time where neighbours in memory belong to different rows.

use tw_ir::workflow::ROWS_SORTED_TOGETHER;
use tw_ir::{BoxRegion, Error, Result};

use crate::block::{Block, row_major};
use crate::walk::Points;

/// Rows treated together: about as many elements as a cache line holds.
pub(super) const MOST_TOGETHER: usize = ROWS_SORTED_TOGETHER as usize;

/// Neighbouring rows of a block: element `k` of row `j` is `k * step + j * across` after the first.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) start: usize,
    pub(super) step: usize,
    pub(super) across: usize,
    pub(super) n_rows: usize,
}

impl Rows {
    /// Where element `k` of row `j` lies.
    #[inline]
    pub(super) fn at(self, j: usize, k: usize) -> usize {
        self.start + k * self.step + j * self.across
    }

    /// The row of a block whose elements lie one after the other in row-major order.
    pub(super) fn in_row_major(bbox: &BoxRegion, at: &[u64], axis: usize) -> Result<Rows> {
        let is_inside = at.len() == bbox.rank() && (0..at.len()).all(|k| k == axis || bbox.range(k).contains(&at[k]));
        if !is_inside {
            return Err(Error::internal(format!("a block at {bbox} does not cover the row it is sorted into")));
        }
        let strides = row_major(bbox);
        let distance = |k: usize| if k == axis { 0 } else { (at[k] - bbox.lo[k]) as usize * strides[k] };
        Ok(Rows { start: (0..at.len()).map(distance).sum(), step: strides[axis], across: 0, n_rows: 1 })
    }

    /// The rows of a block along an axis, beginning with the one through a point.
    pub(super) fn through(block: &Block, at: &[u64], axis: usize, n_rows: usize) -> Result<Rows> {
        let bbox = block.bbox();
        let last = at.len().wrapping_sub(1);
        let inside = at.len() == bbox.rank()
            && (0..at.len()).all(|k| {
                let reach = if k == last { at[k] + n_rows as u64 - 1 } else { at[k] };
                k == axis || (bbox.range(k).contains(&at[k]) && bbox.range(k).contains(&reach))
            });
        if !inside {
            return Err(Error::internal(format!("a block at {bbox} does not cover the rows it is sorted into")));
        }
        let distance = |k: usize| if k == axis { 0 } else { (at[k] - bbox.lo[k]) as usize * block.stride(k) };
        let start = block.offset() + (0..at.len()).map(distance).sum::<usize>();
        Ok(Rows { start, step: block.stride(axis), across: block.stride(last), n_rows })
    }
}

/// Calls `f` for all rows of a box along an axis: with a point of the first of several neighbours, and with their number.
pub(super) fn for_rows(bbox: &BoxRegion, axis: usize, mut f: impl FnMut(&[u64], usize) -> Result<()>) -> Result<()> {
    let mut across = bbox.clone();
    if axis >= across.rank() {
        return Err(Error::internal(format!("a sort along axis {axis} of a block at {bbox}")));
    }
    across.hi[axis] = across.hi[axis].min(across.lo[axis] + 1);
    let last = across.rank() - 1;
    if across.is_empty() {
        return Ok(());
    }
    let columns = across.range(last);
    across.hi[last] = columns.start + 1;
    let mut points = Points::new(&across);
    let mut at = Vec::new();
    while let Some(point) = points.next() {
        at.clear();
        at.extend_from_slice(point);
        for column in columns.clone().step_by(MOST_TOGETHER) {
            at[last] = column;
            let n_rows = (columns.end - column).min(MOST_TOGETHER as u64) as usize;
            f(&at, n_rows)?;
        }
    }
    Ok(())
}
