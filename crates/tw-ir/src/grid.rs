//! The product of one cut per axis. Row-major positions of blocks are encoded and decoded here and nowhere else.

use std::ops::{Deref, DerefMut, Range};

use smallvec::SmallVec;

use crate::tiling::{Axis, BoxRegion};

/// Most tensors have no more axes than this; their grids need no memory of their own.
const INLINE: usize = 4;

/// How a tensor is cut into blocks: one [`Axis`] per dimension. Blocks are numbered row-major.
///
/// A grid with an axis of extent 0 has no blocks. Where such an axis is decoded all the same, it counts as one tile without elements.
///
/// ```
/// use tw_ir::{Axis, BoxRegion, Grid};
/// let grid = Grid::from_iter([Axis::uniform(4, 2), Axis::uniform(5, 2)]);
/// assert_eq!(grid.n_blocks(), 6);
/// assert_eq!(grid.box_of(5), BoxRegion { lo: vec![2, 4], hi: vec![4, 5] });
/// assert_eq!(grid.position_of(&grid.box_of(5)), Some(5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grid(SmallVec<[Axis; INLINE]>);

impl Grid {
    /// One block.
    pub fn whole(shape: &[u64]) -> Grid {
        shape.iter().map(|&n| Axis::whole(n)).collect()
    }

    /// Lengths of the axes.
    pub fn shape(&self) -> Vec<u64> {
        self.iter().map(Axis::extent).collect()
    }

    /// Number of tiles along each axis.
    pub fn tiles_per_axis(&self) -> Vec<u64> {
        self.iter().map(Axis::n_tiles).collect()
    }

    /// Number of blocks, or the largest number if they cannot be counted.
    pub fn n_blocks(&self) -> u64 {
        self.iter().fold(1, |n, axis| n.saturating_mul(axis.n_tiles()))
    }

    /// The axes with their tiles at a position, last axis first: the order in which a position is decoded.
    pub fn tiles_from_last(&self, position: u64) -> impl Iterator<Item = (usize, u64)> {
        let mut rest = position;
        self.iter().enumerate().rev().map(move |(axis, cut)| {
            // Asked for every block of a workflow, so divisions are few: none for the outermost axis, nor for one that is not cut.
            if axis == 0 {
                return (axis, rest);
            }
            match cut.n_tiles() {
                0 | 1 => (axis, 0),
                n => {
                    let tile = rest % n;
                    rest /= n;
                    (axis, tile)
                }
            }
        })
    }

    /// The axes with the elements of the block at a position along each, last axis first.
    pub fn ranges_from_last(&self, position: u64) -> impl Iterator<Item = (usize, Range<u64>)> {
        self.tiles_from_last(position).map(|(axis, tile)| match self[axis].extent() {
            0 => (axis, 0..0),
            _ => (axis, self[axis].range(tile)),
        })
    }

    /// The tile along each axis of the block at a position.
    pub fn coords(&self, position: u64) -> SmallVec<[u64; INLINE]> {
        let mut coords = SmallVec::from_elem(0, self.len());
        self.tiles_from_last(position).for_each(|(axis, tile)| coords[axis] = tile);
        coords
    }

    /// The position of the block with these tiles, one per axis.
    pub fn position(&self, coords: &[u64]) -> u64 {
        coords.iter().zip(&self.0).fold(0, |position, (&tile, axis)| position * axis.n_tiles() + tile)
    }

    /// The box of the block at a position.
    pub fn box_of(&self, position: u64) -> BoxRegion {
        let mut bbox = BoxRegion { lo: vec![0; self.len()], hi: vec![0; self.len()] };
        for (axis, range) in self.ranges_from_last(position) {
            (bbox.lo[axis], bbox.hi[axis]) = (range.start, range.end);
        }
        bbox
    }

    /// Number of elements of the block at a position.
    pub fn n_elements_of(&self, position: u64) -> u64 {
        self.ranges_from_last(position).map(|(_, range)| range.end - range.start).product()
    }

    /// The position of a box that is one of the blocks.
    pub fn position_of(&self, bbox: &BoxRegion) -> Option<u64> {
        if bbox.rank() != self.len() {
            return None;
        }
        self.iter().enumerate().try_fold(0, |position, (k, axis)| {
            let range = bbox.range(k);
            let tile = (range.start < axis.extent()).then(|| axis.tile_of(range.start))?;
            (axis.range(tile) == range).then(|| position * axis.n_tiles() + tile)
        })
    }

    /// The positions of the blocks that have elements of a region of the tensor, in order.
    pub fn blocks_meeting(&self, region: &BoxRegion) -> Vec<u64> {
        self.iter().enumerate().fold(vec![0], |positions, (k, axis)| {
            let tiles = axis.tiles_meeting(&region.range(k));
            let along = |position: &u64| {
                let first = position * axis.n_tiles();
                tiles.clone().map(move |tile| first + tile)
            };
            positions.iter().flat_map(along).collect()
        })
    }
}

impl FromIterator<Axis> for Grid {
    fn from_iter<I: IntoIterator<Item = Axis>>(axes: I) -> Grid {
        Grid(axes.into_iter().collect())
    }
}

impl From<Vec<Axis>> for Grid {
    fn from(axes: Vec<Axis>) -> Grid {
        Grid(axes.into())
    }
}

impl From<&[Axis]> for Grid {
    fn from(axes: &[Axis]) -> Grid {
        Grid(axes.into())
    }
}

impl Deref for Grid {
    type Target = [Axis];

    fn deref(&self) -> &[Axis] {
        &self.0
    }
}

impl DerefMut for Grid {
    fn deref_mut(&mut self) -> &mut [Axis] {
        &mut self.0
    }
}

impl<'a> IntoIterator for &'a Grid {
    type Item = &'a Axis;
    type IntoIter = std::slice::Iter<'a, Axis>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::philox;

    /// A random number below `n`, by its place in the test.
    fn below(n: u64, turn: u32, at: u32) -> u64 {
        philox([turn, at, 0, 0], [7, 15])[0] as u64 % n
    }

    /// Up to five axes, uniform and ragged, now and then one without elements.
    fn random_grid(turn: u32) -> Grid {
        let axis = |k: u32| {
            let extent = below(8, turn, 4 * k + 1);
            match below(2, turn, 4 * k + 2) {
                0 => Axis::uniform(extent, 1 + below(4, turn, 4 * k + 3)),
                _ => Axis::whole(extent).with_cuts(&[2, 3, 6]),
            }
        };
        (0..below(6, turn, 0) as u32).map(axis).collect()
    }

    fn random_region(shape: &[u64], turn: u32) -> BoxRegion {
        BoxRegion::from_ranges(shape.iter().zip(0..).map(|(&n, k)| {
            let (a, b) = (below(n + 1, turn, 100 + 2 * k), below(n + 1, turn, 101 + 2 * k));
            a.min(b)..a.max(b)
        }))
    }

    #[test]
    fn positions_and_boxes_are_inverse_and_boxes_tile_the_tensor() {
        for turn in 0..500 {
            let grid = random_grid(turn);
            let boxes: Vec<BoxRegion> = (0..grid.n_blocks()).map(|position| grid.box_of(position)).collect();
            for (bbox, position) in boxes.iter().zip(0..) {
                assert_eq!(grid.position_of(bbox), Some(position), "{grid:?}");
                assert_eq!(grid.position(&grid.coords(position)), position, "{grid:?}");
                assert_eq!(grid.n_elements_of(position), bbox.n_elements(), "{grid:?}");
                assert!(!bbox.is_empty() && BoxRegion::whole(&grid.shape()).contains(bbox), "{grid:?}");
            }
            // Boxes inside the tensor that do not meet, and have as many elements as it, cover it.
            for (k, bbox) in boxes.iter().enumerate() {
                assert!(boxes[..k].iter().all(|other| meet(bbox, other).is_none()), "{grid:?}");
            }
            let n_elements: u64 = boxes.iter().map(BoxRegion::n_elements).sum();
            assert_eq!(n_elements, grid.shape().iter().product::<u64>(), "{grid:?}");
        }
    }

    /// The common part of two boxes; of boxes without axes, their one element.
    fn meet(a: &BoxRegion, b: &BoxRegion) -> Option<BoxRegion> {
        Some(a.intersect(b)).filter(|common| !common.is_empty())
    }

    #[test]
    fn blocks_meeting_a_region_are_those_with_common_elements() {
        for turn in 0..500 {
            let grid = random_grid(turn);
            let region = random_region(&grid.shape(), turn);
            let meets = |position: &u64| meet(&grid.box_of(*position), &region).is_some();
            let expected: Vec<u64> = (0..grid.n_blocks()).filter(meets).collect();
            assert_eq!(grid.blocks_meeting(&region), expected, "{grid:?} and {region}");
        }
    }

    #[test]
    fn other_boxes_have_no_position() {
        let grid = Grid::from_iter([Axis::uniform(4, 2), Axis::uniform(6, 3)]);
        let position = |lo: &[u64], hi: &[u64]| grid.position_of(&BoxRegion { lo: lo.to_vec(), hi: hi.to_vec() });
        assert_eq!(position(&[2, 3], &[4, 6]), Some(3));
        assert_eq!(position(&[1, 0], &[3, 3]), None);
        assert_eq!(position(&[2, 6], &[4, 9]), None);
        assert_eq!(position(&[2], &[4]), None);
    }

    #[test]
    fn empty_axes_decode_to_one_empty_tile() {
        let grid = Grid::from_iter([Axis::uniform(4, 2), Axis::whole(0), Axis::Ragged([0].into())]);
        assert_eq!((grid.n_blocks(), grid.n_elements_of(1)), (0, 0));
        assert_eq!(grid.box_of(1), BoxRegion { lo: vec![2, 0, 0], hi: vec![4, 0, 0] });
        assert_eq!(grid.position_of(&grid.box_of(1)), None);
    }
}
