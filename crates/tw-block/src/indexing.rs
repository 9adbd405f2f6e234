//! What gather and scatter share: elements at positions that are data.
//!
//! A gathered tensor has the axes of the data, with the index axes in place of the gathered ones, where the first of them was. So its points are
//! (data axes before, index axes, data axes after), and each index point names a place in the data along the gathered axes.

use std::ops::Range;

use tw_ir::{BoxRegion, Edge, Error, Result, shape};

use crate::block::Block;
use crate::strip::Element;
use crate::walk::Points;

/// Index points treated at a time.
const BATCH: usize = 4096;

/// Which axes are indexed, and what happens outside.
#[derive(Debug)]
pub(crate) struct Indexing {
    axes: Vec<usize>,
    /// Shape of the whole data tensor.
    shape: Vec<u64>,
    edge: Edge,
}

/// One side of a transfer: storage, box, and distances in it.
pub(crate) struct Side<'a> {
    pub(crate) bbox: &'a BoxRegion,
    pub(crate) strides: &'a [usize],
    pub(crate) offset: usize,
}

/// A box of elements to be moved for one index point: distances on both sides.
pub(crate) struct Moves {
    /// Extents of the data axes that are not indexed and follow the indexed ones.
    pub(crate) shape: Vec<u64>,
    pub(crate) data_strides: Vec<usize>,
    pub(crate) point_strides: Vec<usize>,
}

impl Moves {
    /// The number of elements, if they are neighbours on both sides.
    pub(crate) fn run(&self) -> Option<usize> {
        let mut run = 1;
        for axis in (0..self.shape.len()).rev() {
            let length = self.shape[axis] as usize;
            if length > 1 && (self.data_strides[axis] != run || self.point_strides[axis] != run) {
                return None;
            }
            run *= length;
        }
        Some(run)
    }
}

impl Indexing {
    pub(crate) fn new(axes: &[u32], shape: &[u64], edge: Edge) -> Result<Indexing> {
        let axes: Vec<usize> = axes.iter().map(|&axis| axis as usize).collect();
        let increasing = axes.windows(2).all(|pair| pair[0] < pair[1]);
        if axes.is_empty() || !increasing || axes.iter().any(|&axis| axis >= shape.len()) {
            return Err(Error::internal(format!("indexing along axes {axes:?} of {}", shape::display(shape))));
        }
        Ok(Indexing { axes, shape: shape.to_vec(), edge })
    }

    /// Number of indexed axes.
    pub(crate) fn n_axes(&self) -> usize {
        self.axes.len()
    }

    /// Calls `f` with batches of (position in the data, position among the points), and with what is to be moved for each, for all points
    /// whose element lies in the data block. Pairs come in row-major order of the points.
    pub(crate) fn transfer(
        &self,
        indices: &[&Block],
        data: Side<'_>,
        points: Side<'_>,
        mut f: impl FnMut(&[(usize, usize)], &Moves),
    ) -> Result<()> {
        let first = self.axes[0];
        let free: Vec<usize> = (0..self.shape.len()).filter(|axis| !self.axes.contains(axis)).collect();
        let index_rank = (points.bbox.rank() + self.axes.len()).checked_sub(self.shape.len());
        let fits = index_rank.is_some_and(|rank| indices.iter().all(|index| index.bbox().rank() == rank))
            && data.bbox.rank() == self.shape.len()
            && indices.len() == self.axes.len();
        let Some(index_rank) = index_rank.filter(|_| fits) else {
            return Err(Error::internal("the blocks of a gather or scatter do not fit each other"));
        };
        // Axis k of the data, if it is not indexed, is this axis of the points.
        let point_axis = |axis: usize| {
            let position = free.partition_point(|&other| other < axis);
            if axis < first { position } else { position + index_rank }
        };
        let mut common: Vec<Range<u64>> = Vec::with_capacity(free.len());
        for &axis in &free {
            let (a, b) = (data.bbox.range(axis), points.bbox.range(point_axis(axis)));
            common.push(a.start.max(b.start)..a.end.min(b.end));
        }
        let n_before = free.partition_point(|&axis| axis < first);
        let distance = |axis: usize, range: &Range<u64>| {
            let in_data = (range.start - data.bbox.lo[axis]) as usize * data.strides[axis];
            let p = point_axis(axis);
            (in_data, (range.start - points.bbox.lo[p]) as usize * points.strides[p])
        };
        let index_box = BoxRegion::from_ranges((first..first + index_rank).map(|axis| points.bbox.range(axis)));
        if common.iter().any(Range::is_empty) {
            // Nothing meets the data block; indices outside the tensor are still errors.
            return self.locate(indices, &index_box, data.bbox, |_, _| Ok(()));
        }
        let (mut data_start, mut point_start) = (data.offset, points.offset);
        for (&axis, range) in free.iter().zip(&common) {
            let (in_data, in_points) = distance(axis, range);
            data_start += in_data;
            point_start += in_points;
        }
        let after = &free[n_before..];
        let moves = Moves {
            shape: common[n_before..].iter().map(|range| range.end - range.start).collect(),
            data_strides: after.iter().map(|&axis| data.strides[axis]).collect(),
            point_strides: after.iter().map(|&axis| points.strides[point_axis(axis)]).collect(),
        };
        let before = BoxRegion::from_ranges(common[..n_before].iter().map(|range| 0..range.end - range.start));
        let mut rows = Points::new(&before);
        let mut batch: Vec<(usize, usize)> = Vec::with_capacity(BATCH);
        while let Some(row) = rows.next() {
            let (mut data_row, mut point_row) = (data_start, point_start);
            for (&at, &axis) in row.iter().zip(&free) {
                data_row += at as usize * data.strides[axis];
                point_row += at as usize * points.strides[point_axis(axis)];
            }
            self.locate(indices, &index_box, data.bbox, |place, at| {
                let mut from = data_row;
                for (&axis, &coord) in self.axes.iter().zip(place) {
                    from += (coord - data.bbox.lo[axis]) as usize * data.strides[axis];
                }
                let mut to = point_row;
                for (k, &coord) in at.iter().enumerate() {
                    to += (coord - index_box.lo[k]) as usize * points.strides[first + k];
                }
                batch.push((from, to));
                if batch.len() == BATCH {
                    f(&batch, &moves);
                    batch.clear();
                }
                Ok(())
            })?;
        }
        f(&batch, &moves);
        Ok(())
    }

    /// Calls `f` with the place an index point names, along the indexed axes, and the point itself, where the place lies in the data block.
    fn locate(
        &self,
        indices: &[&Block],
        index_box: &BoxRegion,
        data_box: &BoxRegion,
        mut f: impl FnMut(&[u64], &[u64]) -> Result<()>,
    ) -> Result<()> {
        let lacking = || Error::internal("an index block does not hold what its task reads");
        let mut values = Vec::with_capacity(indices.len());
        for index in indices {
            if index.dtype() != tw_ir::DType::I64 || !index.bbox().contains(index_box) {
                return Err(lacking());
            }
            values.push((i64::of(index.data()), index.strides(), index.offset()));
        }
        let mut place = vec![0; self.axes.len()];
        let mut points = Points::new(index_box);
        'points: while let Some(at) = points.next() {
            for (k, &axis) in self.axes.iter().enumerate() {
                let (values, strides, offset) = &values[k];
                let lo = &indices[k].bbox().lo;
                let distance: usize = (0..at.len()).map(|d| (at[d] - lo[d]) as usize * strides[d]).sum();
                let index = values[offset + distance];
                match self.edge.apply(index, self.shape[axis]) {
                    Some(coord) if data_box.range(axis).contains(&coord) => place[k] = coord,
                    Some(_) => continue 'points,
                    None if self.edge == Edge::Error => return Err(self.outside(index, axis, at)),
                    None => continue 'points,
                }
            }
            f(&place, at)?;
        }
        Ok(())
    }

    fn outside(&self, index: i64, axis: usize, at: &[u64]) -> Error {
        let length = self.shape[axis];
        Error::data(format!("index {index}, element {at:?} of the indices, is outside axis {axis} of length {length}"))
    }
}
