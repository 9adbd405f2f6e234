//! Basic indexing, as in NumPy.

use tw_ir::error::Blame;
use tw_ir::{Edge, Error, Extent, Idx, Op, Result, TensorType, Var};

use super::axes::display_shape;
use super::statement::moved;

/// One item between the brackets of `x[..]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceItem {
    /// `start:stop:step`; negative bounds count from the end, bounds outside are clipped.
    Slice {
        /// First element; by default the first in the direction of the step.
        start: Option<i64>,
        /// One past the last element; by default the end in the direction of the step.
        stop: Option<i64>,
        /// Distance between elements; not zero.
        step: i64,
    },
    /// One element; the axis disappears.
    Index(i64),
    /// A new axis of extent 1.
    NewAxis,
    /// As many full slices as are missing.
    Ellipsis,
}

impl SliceItem {
    /// `:`, the whole axis.
    pub const FULL: SliceItem = SliceItem::Slice { start: None, stop: None, step: 1 };
}

/// The part of a tensor that the items select. Axes without an item are taken whole.
pub fn slice(x: &TensorType, items: &[SliceItem]) -> Result<Op> {
    let taken = items.iter().filter(|item| matches!(item, SliceItem::Slice { .. } | SliceItem::Index(_))).count();
    if taken > x.rank() {
        let shape = display_shape(&x.shape);
        return Err(Error::indices(
            Blame::Source,
            format!("{taken} indices for a tensor of rank {} and shape {shape}", x.rank()),
        ));
    }
    if items.iter().filter(|item| **item == SliceItem::Ellipsis).count() > 1 {
        return Err(Error::indices(Blame::Source, "an index with more than one `...`"));
    }
    let missing = x.rank() - taken;
    let mut selection = Selection { x, idx: Vec::new(), shape: Vec::new() };
    for item in items {
        match *item {
            SliceItem::NewAxis => selection.shape.push(Extent::Known(1)),
            SliceItem::Ellipsis => selection.take_whole(missing),
            SliceItem::Index(at) => selection.take_one(at)?,
            SliceItem::FULL => selection.take_whole(1),
            SliceItem::Slice { start, stop, step } => selection.take_range(start, stop, step)?,
        }
    }
    selection.take_whole(x.rank() - selection.idx.len());
    Ok(moved(x, selection.idx, Edge::Error, &selection.shape))
}

struct Selection<'a> {
    x: &'a TensorType,
    idx: Vec<Idx>,
    shape: Vec<Extent>,
}

impl Selection<'_> {
    fn next_var(&self) -> Idx {
        Idx::var(Var(self.shape.len() as u32))
    }

    fn take_whole(&mut self, n: usize) {
        for _ in 0..n {
            let extent = self.x.shape[self.idx.len()];
            self.idx.push(self.next_var());
            self.shape.push(extent);
        }
    }

    fn take_one(&mut self, at: i64) -> Result<()> {
        let axis = self.idx.len();
        let n = match self.x.shape[axis] {
            Extent::Deferred(_) if at >= 0 => None,
            extent => Some(extent.require(|| unknown_end(axis))?),
        };
        let inside = match n {
            Some(n) => {
                let counted = if at < 0 { at as i128 + n as i128 } else { at as i128 };
                if !(0..n as i128).contains(&counted) {
                    return Err(Error::indices(
                        Blame::Source,
                        format!("index {at} of axis {axis}, which has {n} elements"),
                    )
                    .note(format!("the tensor has shape {}", display_shape(&self.x.shape))));
                }
                counted as i64
            }
            None => at,
        };
        self.idx.push(Idx::constant(inside));
        Ok(())
    }

    fn take_range(&mut self, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<()> {
        let axis = self.idx.len();
        if step == 0 {
            return Err(Error::source(format!("the slice of axis {axis} has step 0")));
        }
        let n = self.x.shape[axis].require(|| unknown_end(axis))?;
        let (first, length) = slice_range(start, stop, step, n);
        // The stride of a single element does not matter, and a huge one would overflow.
        let stride = if length <= 1 { 1 } else { step };
        self.idx.push(self.next_var().times(stride).plus_constant(first));
        self.shape.push(Extent::Known(length));
        Ok(())
    }
}

fn unknown_end(axis: usize) -> Error {
    Error::plan(format!(
        "axis {axis} has an extent that depends on data; only `:` and indices from the front are known"
    ))
}

/// First element and length of the slice `start:stop:step` of an axis of `n` elements. The step is not zero.
pub(super) fn slice_range(start: Option<i64>, stop: Option<i64>, step: i64, n: u64) -> (i64, u64) {
    let n = n as i128;
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clip = |bound: i64| {
        let bound = bound as i128;
        (if bound < 0 { bound + n } else { bound }).clamp(low, high)
    };
    let first = start.map_or(if step > 0 { low } else { high }, clip);
    let end = stop.map_or(if step > 0 { high } else { low }, clip);
    let (distance, stride) = if step > 0 { (end - first, step as i128) } else { (first - end, -(step as i128)) };
    let length = (distance.max(0) + stride - 1) / stride;
    (if length == 0 { 0 } else { first as i64 }, length as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition by walking, as Python does it.
    fn walked(start: Option<i64>, stop: Option<i64>, step: i64, n: i64) -> Vec<i64> {
        let fix = |bound: i64| if bound < 0 { bound + n } else { bound };
        let first = start.map_or(if step > 0 { 0 } else { n - 1 }, fix);
        let first = if step > 0 { first.max(0) } else { first.min(n - 1) };
        let end = stop.map_or(if step > 0 { n } else { -1 }, |s| if step > 0 { fix(s) } else { fix(s).max(-1) });
        let mut seen = Vec::new();
        let mut at = first;
        while if step > 0 { at < end && at < n } else { at > end && at >= 0 } {
            seen.push(at);
            at += step;
        }
        seen
    }

    #[test]
    fn slices_agree_with_walking() {
        let bounds: Vec<Option<i64>> = std::iter::once(None).chain((-7..8).map(Some)).collect();
        for n in 0..6 {
            for &start in &bounds {
                for &stop in &bounds {
                    for step in [-3, -2, -1, 1, 2, 3] {
                        let (first, length) = slice_range(start, stop, step, n as u64);
                        let ours: Vec<i64> = (0..length as i64).map(|k| first + k * step).collect();
                        assert_eq!(ours, walked(start, stop, step, n), "{start:?}:{stop:?}:{step} of {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_bounds_do_not_overflow() {
        let x = TensorType::known(tw_ir::DType::F64, &[5]);
        for step in [i64::MIN, i64::MAX] {
            for start in [None, Some(i64::MIN), Some(i64::MAX)] {
                slice(&x, &[SliceItem::Slice { start, stop: start, step }]).unwrap();
            }
        }
        assert!(slice(&x, &[SliceItem::Index(i64::MIN)]).is_err());
    }
}
