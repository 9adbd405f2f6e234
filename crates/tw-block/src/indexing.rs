//! What gather and scatter share: elements at positions that are data.
//!
//! A gathered tensor has the axes of the data, with the index axes in place of the gathered ones, where the first of them was. So its points are
//! (data axes before, index axes, data axes after), and each index point names a place in the data along the gathered axes.
//!
//! Index points are looked up once, in batches; the elements of a batch are then moved for every row of the leading axes.

use std::ops::Range;

use tw_ir::error::Blame;
use tw_ir::{BoxRegion, Edge, Error, Result, shape};

use crate::block::Block;
use crate::strip::Element;
use crate::walk::Points;

mod tiles;

pub(crate) use tiles::Tiles;

/// Index points of a batch, so few that their places stay in the first-level cache.
const BATCH: usize = 1024;

/// Which axes are indexed, and what happens outside.
#[derive(Debug)]
pub(crate) struct Indexing {
    axes: Vec<usize>,
    /// Shape of the whole data tensor.
    shape: Vec<u64>,
    edge: Edge,
}

/// One side of a transfer: storage, box, and distances in it.
pub(crate) struct Side {
    bbox: BoxRegion,
    strides: Vec<usize>,
    offset: usize,
}

impl Side {
    /// The side that a block is.
    pub(crate) fn of(block: &Block) -> Side {
        Side { bbox: block.bbox().clone(), strides: block.strides(), offset: block.offset() }
    }

    /// Takes another side of the same storage in, if both are vectors and it begins where this one ends; says whether it did.
    pub(crate) fn append(&mut self, next: &Side) -> bool {
        let follows = self.bbox.rank() == 1
            && next.bbox.rank() == 1
            && (&self.strides[..], &next.strides[..]) == (&[1], &[1])
            && self.bbox.hi == next.bbox.lo
            && self.offset + self.bbox.n_elements() as usize == next.offset;
        if follows {
            self.bbox.hi.clone_from(&next.bbox.hi);
        }
        follows
    }

    /// A block whose elements were brought into row-major order.
    pub(crate) fn row_major(bbox: &BoxRegion) -> Side {
        Side { bbox: bbox.clone(), strides: crate::block::row_major(bbox), offset: 0 }
    }
}

/// Neighbouring elements of a vector of indices into a vector of data: the everyday case, without strides and boxes.
pub(crate) struct Vector<'a> {
    pub(crate) indices: &'a [i64],
    /// Where the points of these indices lie.
    pub(crate) points: Range<usize>,
    pub(crate) tiles: Tiles,
    /// Length of the whole data.
    pub(crate) extent: usize,
    pub(crate) edge: Edge,
}

impl Vector<'_> {
    /// Where in the whole data an index is.
    #[inline]
    pub(crate) fn place(&self, index: i64) -> Option<u64> {
        self.edge.apply(index, self.extent as u64)
    }

    /// True if the only data block has all elements.
    pub(crate) fn is_whole(&self) -> bool {
        self.tiles.range() == (0..self.extent as u64)
    }

    /// Where the first data block begins.
    pub(crate) fn first(&self) -> usize {
        self.tiles.first()
    }
}

/// A place in one of the data blocks, and the point that names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    /// Which data block.
    pub(crate) side: u32,
    /// Position of its first element in the data.
    pub(crate) data: usize,
    /// Position of the point.
    pub(crate) point: usize,
}

/// The copy of one pair: a box of elements, with strides on both sides.
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

/// How data axes that are not indexed lie among the axes of the points.
struct FreeAxes {
    /// The data axes.
    axes: Vec<usize>,
    /// The same axes among those of the points.
    point_axes: Vec<usize>,
    /// How many of them come before the indexed ones.
    n_before: usize,
    /// What data and points have in common along each.
    common: Vec<Range<u64>>,
}

impl FreeAxes {
    /// Where the part in common begins in the data.
    fn start(&self, data: &Side) -> usize {
        let distances = self.axes.iter().zip(&self.common);
        let distance =
            |(&axis, range): (&usize, &Range<u64>)| (range.start - data.bbox.lo[axis]) as usize * data.strides[axis];
        data.offset + distances.map(distance).sum::<usize>()
    }

    /// Where the part in common begins among the points.
    fn point_start(&self, points: &Side) -> usize {
        let distances = self.point_axes.iter().zip(&self.common);
        let distance = |(&axis, range): (&usize, &Range<u64>)| {
            (range.start - points.bbox.lo[axis]) as usize * points.strides[axis]
        };
        points.offset + distances.map(distance).sum::<usize>()
    }

    fn moves(&self, data: &Side, points: &Side) -> Moves {
        let after = self.n_before..;
        Moves {
            shape: self.common[after.clone()].iter().map(|range| range.end - range.start).collect(),
            data_strides: self.axes[after.clone()].iter().map(|&axis| data.strides[axis]).collect(),
            point_strides: self.point_axes[after].iter().map(|&axis| points.strides[axis]).collect(),
        }
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

    /// Calls `f` with pairs, and with what is to be moved for those of each data block, for all points whose element lies in one of the data
    /// blocks. Pairs that name the same element come in the order of their points.
    ///
    /// The data blocks are neighbours along the indexed axes, in row-major order, and agree about the others.
    pub(crate) fn transfer(
        &self,
        indices: &[&Block],
        data: &[Side],
        points: &Side,
        mut f: impl FnMut(&[Pair], &[Moves]),
    ) -> Result<()> {
        let misfit = || Error::internal("the blocks of a gather or scatter do not fit each other");
        let first = self.axes[0];
        let index_rank = (points.bbox.rank() + self.axes.len()).checked_sub(self.shape.len()).ok_or_else(misfit)?;
        let fits = indices.iter().all(|index| index.bbox().rank() == index_rank)
            && data.iter().all(|side| side.bbox.rank() == self.shape.len())
            && indices.len() == self.axes.len();
        let (true, Some(one)) = (fits, data.first()) else { return Err(misfit()) };
        let free = self.free_axes(index_rank, one, points);
        let index_box = BoxRegion::from_ranges((first..first + index_rank).map(|axis| points.bbox.range(axis)));
        let point_strides = &points.strides[first..first + index_rank];
        let meets = !free.common.iter().any(Range::is_empty);
        let starts: Vec<usize> = data.iter().map(|side| if meets { free.start(side) } else { 0 }).collect();
        let tiles = Tiles::of(&self.axes, data, starts).ok_or_else(misfit)?;
        if !meets {
            // Indices outside the tensor are still errors.
            return self.locate(indices, &index_box, (0, point_strides), &tiles, |_| {});
        }
        let moves: Vec<Moves> = data.iter().map(|side| free.moves(side, points)).collect();
        let before =
            BoxRegion::from_ranges(free.common[..free.n_before].iter().map(|range| 0..range.end - range.start));
        let mut moved = Vec::new();
        self.locate(indices, &index_box, (free.point_start(points), point_strides), &tiles, |located| {
            if before.n_elements() == 1 {
                return f(located, &moves);
            }
            let mut rows = Points::new(&before);
            while let Some(row) = rows.next() {
                let along = |axes: &[usize], strides: &[usize]| -> usize {
                    row.iter().zip(axes).map(|(&at, &axis)| at as usize * strides[axis]).sum()
                };
                let further: Vec<usize> = data.iter().map(|side| along(&free.axes, &side.strides)).collect();
                let point = along(&free.point_axes, &points.strides);
                moved.clear();
                moved.extend(located.iter().map(|pair| Pair {
                    side: pair.side,
                    data: pair.data + further[pair.side as usize],
                    point: pair.point + point,
                }));
                f(&moved, &moves);
            }
        })
    }

    /// Runs `f` if indices, data and points are vectors without gaps; `None` if they are not. It may tell the position of an index outside.
    pub(crate) fn vector(
        &self,
        indices: &[&Block],
        data: &[Side],
        points: &Side,
        f: impl FnOnce(Vector<'_>) -> std::result::Result<(), usize>,
    ) -> Option<Result<()>> {
        let [index] = indices else { return None };
        let dense = |side: &Side| side.bbox.rank() == 1 && side.strides == [1];
        let fits = self.shape.len() == 1 && data.iter().chain([points]).all(dense);
        if !fits
            || index.dtype() != tw_ir::DType::I64
            || !dense(&Side::of(index))
            || !index.bbox().contains(&points.bbox)
        {
            return None;
        }
        let tiles = Tiles::of(&self.axes, data, data.iter().map(|side| side.offset).collect())?;
        let n = points.bbox.n_elements() as usize;
        let start = index.offset() + (points.bbox.lo[0] - index.bbox().lo[0]) as usize;
        let indices = i64::of(index.data()).get(start..start + n)?;
        let extent = self.shape[0] as usize;
        let vector = Vector { indices, points: points.offset..points.offset + n, tiles, extent, edge: self.edge };
        Some(f(vector).map_err(|k| self.outside(Outside { index: indices[k], axis: 0, k }, &points.bbox.lo)))
    }

    fn free_axes(&self, index_rank: usize, data: &Side, points: &Side) -> FreeAxes {
        let first = self.axes[0];
        let axes: Vec<usize> = (0..self.shape.len()).filter(|axis| !self.axes.contains(axis)).collect();
        let n_before = axes.partition_point(|&axis| axis < first);
        let point_axes: Vec<usize> = (0..axes.len()).map(|k| if k < n_before { k } else { k + index_rank }).collect();
        let meet = |(&axis, &point_axis): (&usize, &usize)| {
            let (a, b) = (data.bbox.range(axis), points.bbox.range(point_axis));
            a.start.max(b.start)..a.end.min(b.end)
        };
        let common = axes.iter().zip(&point_axes).map(meet).collect();
        FreeAxes { axes, point_axes, n_before, common }
    }

    /// Calls `f` with batches of pairs, in row-major order of the index points, for the first row of the axes before.
    fn locate(
        &self,
        indices: &[&Block],
        index_box: &BoxRegion,
        (point_start, point_strides): (usize, &[usize]),
        tiles: &Tiles,
        mut f: impl FnMut(&[Pair]),
    ) -> Result<()> {
        for index in indices {
            if index.dtype() != tw_ir::DType::I64 || !index.bbox().contains(index_box) {
                return Err(Error::internal("an index block does not hold what its task reads"));
            }
        }
        let inner = index_box.rank().checked_sub(1);
        let mut outer = index_box.clone();
        if let Some(inner) = inner {
            outer.hi[inner] = outer.hi[inner].min(outer.lo[inner] + 1);
        }
        let length = inner.map_or(1, |inner| (index_box.hi[inner] - index_box.lo[inner]) as usize);
        let point_step = inner.map_or(0, |inner| point_strides[inner]);
        let mut rows: Vec<IndexRow<'_>> = Vec::with_capacity(indices.len());
        let mut pairs: Vec<Pair> = Vec::with_capacity(BATCH);
        let mut points = Points::new(&outer);
        while let Some(at) = points.next() {
            rows.clear();
            for index in indices {
                let lo = &index.bbox().lo;
                let distance: usize = (0..at.len()).map(|d| (at[d] - lo[d]) as usize * index.stride(d)).sum();
                let step = inner.map_or(0, |inner| index.stride(inner));
                rows.push(IndexRow { values: i64::of(index.data()), start: index.offset() + distance, step });
            }
            let distance = |d: usize| (at[d] - index_box.lo[d]) as usize * point_strides[d];
            let start = point_start + (0..at.len()).map(distance).sum::<usize>();
            for done in (0..length).step_by(BATCH) {
                let range = done..length.min(done + BATCH);
                if pairs.len() + range.len() > BATCH {
                    f(&pairs);
                    pairs.clear();
                }
                self.locate_row(&rows, range, (start, point_step), tiles, &mut pairs)
                    .map_err(|outside| self.outside(outside, at))?;
            }
        }
        f(&pairs);
        Ok(())
    }

    /// Looks up neighbouring index points.
    fn locate_row(
        &self,
        rows: &[IndexRow<'_>],
        range: Range<usize>,
        (start, step): (usize, usize),
        tiles: &Tiles,
        pairs: &mut Vec<Pair>,
    ) -> Result<(), Outside> {
        if let ([row], [axis]) = (rows, self.axes.as_slice()) {
            let extent = self.shape[*axis];
            for k in range {
                let index = row.at(k);
                match self.edge.apply(index, extent).map(|coord| tiles.find(coord)) {
                    Some(Some((side, data))) => pairs.push(Pair { side, data, point: start + k * step }),
                    None if self.edge == Edge::Error => return Err(Outside { index, axis: *axis, k }),
                    _ => {}
                }
            }
            return Ok(());
        }
        let mut place = vec![0; self.axes.len()];
        'points: for k in range {
            for ((row, &axis), coord) in rows.iter().zip(&self.axes).zip(&mut place) {
                let index = row.at(k);
                match self.edge.apply(index, self.shape[axis]) {
                    Some(inside) => *coord = inside,
                    None if self.edge == Edge::Error => return Err(Outside { index, axis, k }),
                    None => continue 'points,
                }
            }
            if let Some((side, data)) = tiles.find_all(&place) {
                pairs.push(Pair { side, data, point: start + k * step });
            }
        }
        Ok(())
    }

    fn outside(&self, Outside { index, axis, k }: Outside, at: &[u64]) -> Error {
        let length = self.shape[axis];
        let mut at = at.to_vec();
        if let Some(last) = at.last_mut() {
            *last += k as u64;
        }
        let what = format!("index {index}, element {at:?} of the indices, is outside axis {axis} of length {length}");
        Error::indices(Blame::Data, what)
    }
}

/// Neighbours of an index block.
struct IndexRow<'a> {
    values: &'a [i64],
    start: usize,
    step: usize,
}

impl IndexRow<'_> {
    #[inline]
    fn at(&self, k: usize) -> i64 {
        self.values[self.start + k * self.step]
    }
}

/// An index outside its axis, at element `k` of a row.
struct Outside {
    index: i64,
    axis: usize,
    k: usize,
}
