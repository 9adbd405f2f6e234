//! Counts of the elements that each piece of a mask selects. Selection needs them before it moves anything.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::tiling::{Axis, Tiling};

/// The number of elements that each piece of a mask selects.
///
/// Pieces are consecutive in row-major order: one axis of the mask is cut, those before it into single positions, those after it not at all. So
/// what a piece selects is one run of the result, and its place follows from the counts of the pieces before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MaskCounts {
    cut: Grid,
    counts: Arc<[u64]>,
}

impl MaskCounts {
    /// Counts of the pieces of a cut, in row-major order.
    pub fn new(cut: Grid, counts: Vec<u64>) -> Result<MaskCounts> {
        if !is_row_major(&cut) || cut.n_blocks() != counts.len() as u64 {
            return Err(Error::internal("counts of a mask are not those of consecutive pieces"));
        }
        Ok(MaskCounts { cut, counts: counts.into() })
    }

    /// A mask as one piece.
    pub fn whole(shape: &[u64], count: u64) -> MaskCounts {
        let counts = if shape.contains(&0) { Vec::new() } else { vec![count] };
        MaskCounts { cut: Grid::whole(shape), counts: counts.into() }
    }

    /// `total` elements spread evenly over the pieces: the assumption for an uncounted mask.
    pub fn even(cut: Grid, total: u64) -> Result<MaskCounts> {
        let n = cut.n_blocks();
        let share = |k: u64| (total as u128 * k as u128 / n.max(1) as u128) as u64;
        MaskCounts::new(cut, (0..n).map(|k| share(k + 1) - share(k)).collect())
    }

    /// The pieces of the mask.
    pub fn cut(&self) -> &Grid {
        &self.cut
    }

    /// The count of every piece, in row-major order.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The count of the whole mask.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The start of the run of each piece in the result, and the end of the last.
    pub fn starts(&self) -> Vec<u64> {
        let mut end = 0;
        let ends = self.counts.iter().map(|count| {
            end += count;
            end
        });
        std::iter::once(0).chain(ends).collect()
    }

    /// Checks that the pieces are those of a mask of this shape.
    pub fn verify(&self, shape: &[u64]) -> Result<()> {
        Tiling::Grid(self.cut.clone()).verify(shape)
    }
}

/// True if the tiles of a grid are consecutive in row-major order.
pub(crate) fn is_row_major(grid: &[Axis]) -> bool {
    let last_cut = grid.iter().rposition(|axis| axis.n_tiles() > 1);
    last_cut.is_none_or(|last| grid[..last].iter().all(|axis| axis.longest() <= 1))
}

/// A cut of a mask into pieces of at most about `wanted` elements, consecutive in row-major order, that follows the boundaries of the grids its
/// elements and the data under it have, as far as these are consecutive too. So pieces are seldom put together from several blocks.
pub fn mask_pieces(shape: &[u64], grids: &[&[Axis]], wanted: u64) -> Grid {
    // The axis that is cut: the first behind which everything fits into a piece.
    let rest = |k: usize| shape[k + 1..].iter().fold(1u64, |n, &extent| n.saturating_mul(extent));
    let Some(axis) = (0..shape.len()).find(|&k| rest(k) <= wanted) else {
        return Grid::whole(shape);
    };
    let rows = (wanted / rest(axis).max(1)).max(1);
    let follows = |grid: &&&[Axis]| is_row_major(grid) && grid[axis + 1..].iter().all(|cut| cut.n_tiles() <= 1);
    let mut cut = Axis::whole(shape[axis]);
    for grid in grids.iter().filter(follows) {
        let finer = cut.refine(&grid[axis]);
        // Boundaries that do not fall together would make many small pieces; those that come later are then put together.
        if finer.n_tiles() <= 2 * cut.n_tiles().max(shape[axis].div_ceil(rows)) + 8 {
            cut = finer;
        }
    }
    let boundaries = cut.boundaries();
    let mut cuts = Vec::new();
    for range in boundaries.windows(2) {
        let n = (range[1] - range[0]).div_ceil(rows);
        let length = (range[1] - range[0]).div_ceil(n.max(1));
        cuts.extend((1..n).map(|k| range[0] + k * length).filter(|&cut| cut < range[1]));
    }
    let at = |(k, &extent): (usize, &u64)| match k.cmp(&axis) {
        std::cmp::Ordering::Less => Axis::uniform(extent, 1),
        std::cmp::Ordering::Equal => cut.with_cuts(&cuts),
        std::cmp::Ordering::Greater => Axis::whole(extent),
    };
    shape.iter().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_the_blocks() {
        let blocks = [Axis::uniform(1000, 300)];
        assert_eq!(*mask_pieces(&[1000], &[&blocks], 400), blocks);
        assert_eq!(*mask_pieces(&[1000], &[], 400), [Axis::uniform(1000, 334)]);
        let finer = mask_pieces(&[1000], &[&blocks], 200);
        assert_eq!(*finer, [Axis::from_boundaries(vec![0, 150, 300, 450, 600, 750, 900, 1000])]);
        assert_eq!(*mask_pieces(&[10, 50], &[], 100), [Axis::uniform(10, 2), Axis::whole(50)]);
        assert_eq!(*mask_pieces(&[3, 50], &[], 20), [Axis::uniform(3, 1), Axis::from_boundaries(vec![0, 17, 34, 50])]);
        // Blocks that are not consecutive are put together.
        let squares = [Axis::uniform(10, 5), Axis::uniform(50, 25)];
        assert_eq!(*mask_pieces(&[10, 50], &[&squares], 100), [Axis::uniform(10, 2), Axis::whole(50)]);
        assert_eq!(*mask_pieces(&[0, 5], &[], 100), [Axis::whole(0), Axis::whole(5)]);
        assert_eq!(*mask_pieces(&[], &[], 100), []);
        for cut in [mask_pieces(&[7, 1000, 3], &[], 100), mask_pieces(&[7, 11, 3], &[&squares], 100)] {
            assert!(is_row_major(&cut), "{cut:?}");
        }
    }

    #[test]
    fn counts_tell_where_runs_begin() {
        let counts = MaskCounts::new(vec![Axis::uniform(9, 3)].into(), vec![2, 0, 3]).unwrap();
        assert_eq!((counts.starts(), counts.total()), (vec![0, 2, 2, 5], 5));
        assert!(MaskCounts::new(vec![Axis::uniform(9, 3)].into(), vec![2, 0]).is_err());
        assert!(MaskCounts::new(vec![Axis::uniform(4, 2), Axis::uniform(4, 2)].into(), vec![0; 4]).is_err());
        assert_eq!(MaskCounts::even(vec![Axis::uniform(9, 3)].into(), 7).unwrap().counts(), [2, 2, 3]);
    }
}
