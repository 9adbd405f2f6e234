//! Tilings: how a tensor is cut into blocks.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::grid::Grid;

/// One axis cut into consecutive tiles. An axis of extent 0 has no tiles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Tiles of one size; the last may be shorter.
    Uniform {
        /// Length of the axis.
        extent: u64,
        /// Length of a tile, at least 1.
        tile: u64,
    },
    /// Explicit boundaries, strictly increasing, from 0 to the extent.
    Ragged(Arc<[u64]>),
}

impl Axis {
    /// Tiles of one size. A tile of 0 is read as 1.
    pub fn uniform(extent: u64, tile: u64) -> Axis {
        Axis::Uniform { extent, tile: tile.clamp(1, extent.max(1)) }
    }

    /// The whole axis as one tile.
    pub fn whole(extent: u64) -> Axis {
        Axis::uniform(extent, extent)
    }

    /// Tiles with the given lengths; they must be positive.
    ///
    /// ```
    /// use tw_ir::Axis;
    /// let axis = Axis::from_lengths(&[3, 1, 4]).unwrap();
    /// assert_eq!(axis.range(2), 4..8);
    /// assert_eq!(axis.tile_of(3), 1);
    /// ```
    pub fn from_lengths(lengths: &[u64]) -> Result<Axis> {
        let mut boundaries = vec![0u64];
        let mut end = 0u64;
        for &length in lengths {
            if length == 0 {
                return Err(Error::source("a tile of length 0"));
            }
            end = end
                .checked_add(length)
                .ok_or_else(|| Error::source("the tiles of an axis are longer than can be counted"))?;
            boundaries.push(end);
        }
        Ok(Axis::from_boundaries(boundaries))
    }

    /// From boundaries known to be strictly increasing from 0. Even ones are stored as [`Axis::Uniform`], so that equal cuts compare equal.
    pub fn from_boundaries(boundaries: Vec<u64>) -> Axis {
        let n = boundaries.len();
        let extent = boundaries.last().copied().unwrap_or(0);
        if n <= 2 {
            return Axis::whole(extent);
        }
        let tile = boundaries[1];
        let even = boundaries.iter().enumerate().all(|(k, &b)| b == (k as u64 * tile).min(extent));
        if even { Axis::uniform(extent, tile) } else { Axis::Ragged(boundaries.into()) }
    }

    /// Length of the axis.
    pub fn extent(&self) -> u64 {
        match self {
            Axis::Uniform { extent, .. } => *extent,
            Axis::Ragged(boundaries) => boundaries.last().copied().unwrap_or(0),
        }
    }

    /// Number of tiles.
    pub fn n_tiles(&self) -> u64 {
        match self {
            Axis::Uniform { extent, tile } => extent.div_ceil(*tile),
            Axis::Ragged(boundaries) => (boundaries.len() as u64).saturating_sub(1),
        }
    }

    /// The elements of one tile.
    pub fn range(&self, tile: u64) -> std::ops::Range<u64> {
        match self {
            Axis::Uniform { extent, tile: length } => {
                let start = tile * length;
                start..(start + length).min(*extent)
            }
            Axis::Ragged(boundaries) => boundaries[tile as usize]..boundaries[tile as usize + 1],
        }
    }

    /// The tile that holds an element.
    pub fn tile_of(&self, element: u64) -> u64 {
        match self {
            Axis::Uniform { tile, .. } => element / tile,
            Axis::Ragged(boundaries) => boundaries.partition_point(|&b| b <= element) as u64 - 1,
        }
    }

    /// The tiles that meet a non-empty range of elements.
    pub fn tiles_meeting(&self, range: &std::ops::Range<u64>) -> std::ops::Range<u64> {
        if range.is_empty() {
            return 0..0;
        }
        self.tile_of(range.start)..self.tile_of(range.end - 1) + 1
    }

    /// All boundaries, from 0 to the extent.
    pub fn boundaries(&self) -> Vec<u64> {
        match self {
            Axis::Uniform { extent, .. } => (0..self.n_tiles()).map(|t| self.range(t).start).chain([*extent]).collect(),
            Axis::Ragged(boundaries) => boundaries.to_vec(),
        }
    }

    /// The coarsest axis that has the boundaries of both.
    pub fn refine(&self, other: &Axis) -> Axis {
        if self == other {
            return self.clone();
        }
        self.with_cuts(&other.boundaries())
    }

    /// The same axis with further boundaries; those outside it are ignored.
    pub fn with_cuts(&self, cuts: &[u64]) -> Axis {
        let extent = self.extent();
        let mut boundaries = self.boundaries();
        boundaries.extend(cuts.iter().copied().filter(|&cut| cut < extent));
        boundaries.sort_unstable();
        boundaries.dedup();
        Axis::from_boundaries(boundaries)
    }

    /// The length of the longest tile.
    pub fn longest(&self) -> u64 {
        match self {
            Axis::Uniform { extent, tile } => *tile.min(extent),
            Axis::Ragged(b) => b.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0),
        }
    }
}

impl fmt::Display for Axis {
    /// `500` for uniform tiles, `(3 1 4)` for ragged ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Axis::Uniform { tile, .. } => write!(f, "{tile}"),
            Axis::Ragged(b) => {
                let lengths: Vec<String> = b.windows(2).map(|w| (w[1] - w[0]).to_string()).collect();
                write!(f, "({})", lengths.join(" "))
            }
        }
    }
}

/// How a tensor is cut into blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tiling {
    /// The product of one cut per axis. Blocks are disjoint and cover the tensor.
    Grid(Grid),
    /// Explicit boxes, which may overlap: partitions by stored positions share the rows they cut.
    Pieces {
        /// Modes fused before cutting, as a range of axes.
        fused: std::ops::Range<usize>,
        /// One box per piece.
        boxes: Vec<BoxRegion>,
    },
}

impl Tiling {
    /// One block.
    pub fn single(shape: &[u64]) -> Tiling {
        Tiling::Grid(Grid::whole(shape))
    }

    /// The grid, if it is one.
    pub fn grid(&self) -> Option<&Grid> {
        match self {
            Tiling::Grid(axes) => Some(axes),
            Tiling::Pieces { .. } => None,
        }
    }

    /// Checks that the tiling covers exactly the shape.
    pub fn verify(&self, shape: &[u64]) -> Result<()> {
        let wrong = |what: String| Err(Error::source(what));
        match self {
            Tiling::Grid(axes) => {
                if axes.len() != shape.len() {
                    return wrong(format!("a tiling of {} axes for a tensor of rank {}", axes.len(), shape.len()));
                }
                for (k, (axis, &n)) in axes.iter().zip(shape).enumerate() {
                    if axis.extent() != n {
                        return wrong(format!(
                            "the tiles of axis {k} cover {} elements, but the axis has {n}",
                            axis.extent()
                        ));
                    }
                    if let Axis::Ragged(b) = axis
                        && (b.first() != Some(&0) || b.windows(2).any(|w| w[0] >= w[1]))
                    {
                        return wrong(format!("the tile boundaries of axis {k} do not increase from 0"));
                    }
                }
            }
            Tiling::Pieces { fused, boxes } => {
                if fused.end > shape.len() || fused.start > fused.end {
                    return wrong(format!("fused modes {fused:?} of a tensor of rank {}", shape.len()));
                }
                for piece in boxes {
                    if piece.rank() != shape.len() || piece.hi.iter().zip(shape).any(|(&hi, &n)| hi > n) {
                        return wrong("a piece reaches outside its tensor".to_string());
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiling::Grid(axes) => {
                let parts: Vec<String> = axes.iter().map(Axis::to_string).collect();
                write!(f, "tile({})", parts.join(", "))
            }
            Tiling::Pieces { fused, boxes } => {
                let parts: Vec<String> = boxes.iter().map(BoxRegion::to_string).collect();
                write!(f, "pieces({}..{}; {})", fused.start, fused.end, parts.join(" "))
            }
        }
    }
}

/// A box of elements: `lo[k] <= x[k] < hi[k]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoxRegion {
    /// First element per axis.
    pub lo: Vec<u64>,
    /// One past the last element per axis.
    pub hi: Vec<u64>,
}

impl BoxRegion {
    /// The box of a whole tensor.
    pub fn whole(shape: &[u64]) -> BoxRegion {
        BoxRegion { lo: vec![0; shape.len()], hi: shape.to_vec() }
    }

    /// From one range per axis.
    pub fn from_ranges(ranges: impl IntoIterator<Item = std::ops::Range<u64>>) -> BoxRegion {
        let (lo, hi) = ranges.into_iter().map(|r| (r.start, r.end)).unzip();
        BoxRegion { lo, hi }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.lo.len()
    }
    /// The elements along one axis.
    pub fn range(&self, axis: usize) -> std::ops::Range<u64> {
        self.lo[axis]..self.hi[axis]
    }
    /// Lengths of the sides.
    pub fn shape(&self) -> Vec<u64> {
        self.lo.iter().zip(&self.hi).map(|(&lo, &hi)| hi.saturating_sub(lo)).collect()
    }
    /// Number of elements.
    pub fn n_elements(&self) -> u64 {
        self.lo.iter().zip(&self.hi).map(|(&lo, &hi)| hi.saturating_sub(lo)).product()
    }
    /// True if there is no element in it.
    pub fn is_empty(&self) -> bool {
        self.lo.iter().zip(&self.hi).any(|(lo, hi)| lo >= hi)
    }
    /// True if every element of `other` lies in this box.
    pub fn contains(&self, other: &BoxRegion) -> bool {
        other.is_empty() || (0..self.rank()).all(|k| self.lo[k] <= other.lo[k] && other.hi[k] <= self.hi[k])
    }
    /// True if its elements follow each other in the row-major order of a box around it.
    pub fn lies_together_in(&self, whole: &BoxRegion) -> bool {
        let (mut mine, mut all) = (1u64, 1u64);
        (0..self.rank()).rev().all(|axis| {
            let extent = self.hi[axis].saturating_sub(self.lo[axis]);
            let follows = extent <= 1 || mine == all;
            mine = mine.saturating_mul(extent);
            all = all.saturating_mul(whole.hi[axis].saturating_sub(whole.lo[axis]));
            follows
        })
    }
    /// The common part, possibly empty.
    pub fn intersect(&self, other: &BoxRegion) -> BoxRegion {
        BoxRegion {
            lo: self.lo.iter().zip(&other.lo).map(|(a, b)| *a.max(b)).collect(),
            hi: self.hi.iter().zip(&other.hi).map(|(a, b)| *a.min(b)).collect(),
        }
    }
}

impl fmt::Display for BoxRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.lo.iter().zip(&self.hi).map(|(lo, hi)| format!("{lo}..{hi}")).collect();
        write!(f, "[{}]", parts.join(", "))
    }
}

/// Cuts the candidates, first axes first, until a block has at most about `limit` elements.
pub fn cut_leading(axes: &mut [Axis], candidates: &[usize], limit: u64) {
    for &k in candidates {
        let others = (0..axes.len()).filter(|&other| other != k);
        let rest = others.fold(1u64, |n, other| n.saturating_mul(axes[other].longest().max(1)));
        let tile = (limit / rest).max(1);
        if tile < axes[k].longest() {
            // As many tiles as that needs, but even ones, so that no thread waits for a short last one.
            let extent = axes[k].extent();
            axes[k] = Axis::uniform(extent, extent.div_ceil(extent.div_ceil(tile)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_boundaries_are_uniform() {
        assert_eq!(Axis::from_lengths(&[4, 4, 3]).unwrap(), Axis::uniform(11, 4));
        assert_eq!(Axis::from_lengths(&[4]).unwrap(), Axis::whole(4));
        assert!(matches!(Axis::from_lengths(&[4, 3, 4]).unwrap(), Axis::Ragged(_)));
    }

    #[test]
    fn refine_has_both_boundaries() {
        let axis = Axis::uniform(12, 4).refine(&Axis::uniform(12, 6));
        assert_eq!(axis.boundaries(), vec![0, 4, 6, 8, 12]);
        assert_eq!(axis.tiles_meeting(&(5..9)), 1..4);
    }

    #[test]
    fn rows_lie_together_and_columns_do_not() {
        let whole = BoxRegion::from_ranges([2..6, 10..15]);
        let part = |rows, columns| BoxRegion::from_ranges([rows, columns]).lies_together_in(&whole);
        assert!(part(2..6, 10..15) && part(3..5, 10..15) && part(4..5, 11..13));
        assert!(!part(3..5, 11..15) && !part(2..6, 10..11));
    }

    #[test]
    fn empty_axes_have_no_tiles() {
        assert_eq!(Axis::uniform(0, 5).n_tiles(), 0);
        assert_eq!(Axis::from_lengths(&[]).unwrap().n_tiles(), 0);
    }
}
