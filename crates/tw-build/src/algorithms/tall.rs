//! QR of tall matrices: blocks of rows are factored apart, then their triangles together (TSQR).

use tw_ir::error::Result;
use tw_ir::program::{BlockResult, OperandMode, ResultMode};
use tw_ir::{Axis, Tiling};

use super::{Algorithms, Shaped, exactly, first};
use tw_ir::ValueId;

/// A matrix is tall if it has at least so many rows per column.
const TALL: u64 = 4;

/// Columns of a tall matrix: a block of rows must fit into one task.
const MAX_COLUMNS: u64 = 2048;

/// Elements of a block of rows where the user has not cut the matrix.
const BLOCK_ELEMENTS: u64 = 1 << 20;

/// Triangles that are factored together.
const FAN_IN: u64 = 8;

/// A factored tall matrix: Q as factors still to be multiplied.
pub(super) struct Tall<V> {
    /// Blocks of rows of Q, and how they are cut; the level above is the first.
    levels: Vec<(V, Axis)>,
    /// Q of the triangles that were left in the end.
    top: V,
    pub(super) r: V,
}

const BY_ROWS: [OperandMode; 2] = [OperandMode::Grid(0), OperandMode::Whole];

impl Algorithms<'_> {
    /// How a tall matrix is cut into blocks of rows, each with more rows than columns; nothing if the matrix is not tall or not worth cutting.
    pub(super) fn tall_cut(&self, a: &ValueId) -> Result<Option<Axis>> {
        let ty = self.ty(a);
        let (rows, columns) = self.size(a)?;
        if ty.rank() > 2 || columns == 0 || columns > MAX_COLUMNS || rows / columns < TALL {
            return Ok(None);
        }
        let cut = match ty.tiling.as_ref().and_then(Tiling::grid) {
            Some(grid) => merged(&grid[0], 2 * columns),
            None => by_size(rows, columns),
        };
        Ok(Some(cut).filter(|cut| cut.n_tiles() > 1))
    }

    pub(super) fn tall_qr(&mut self, a: &ValueId, cut: &Axis) -> Result<Tall<ValueId>> {
        let dtype = self.ty(a).dtype;
        let (_, n) = self.size(a)?;
        let (mut levels, mut rest, mut cut) = (Vec::new(), *a, cut.clone());
        while cut.n_tiles() > 1 {
            let blocks = self.retiled(&rest, vec![cut.clone(), Axis::whole(n)])?;
            let results = vec![
                BlockResult { dtype, modes: vec![ResultMode::Grid(0), ResultMode::Whole(n)] },
                BlockResult { dtype, modes: vec![ResultMode::PerBlock(0, n), ResultMode::Whole(n)] },
            ];
            let [q, triangles] = exactly(self.call("linalg_qr", &[(&blocks, &BY_ROWS)], results)?)?;
            levels.push((q, cut.clone()));
            cut = together(cut.n_tiles(), n);
            rest = triangles;
        }
        let (rows, _) = self.size(&rest)?;
        let shapes = [(dtype, Shaped::Matrix(rows, n)), (dtype, Shaped::Matrix(n, n))];
        let [top, r] = exactly(self.whole("linalg_qr", &[&rest], &shapes)?)?;
        levels.reverse();
        Ok(Tall { levels, top, r })
    }

    /// Q itself.
    pub(super) fn tall_q(&mut self, tall: Tall<ValueId>) -> Result<ValueId> {
        let Tall { levels, top, .. } = tall;
        self.tall_times(&levels, top)
    }

    /// `Q x` for a small x, without making Q.
    pub(super) fn tall_product(&mut self, tall: &Tall<ValueId>, x: &ValueId) -> Result<ValueId> {
        let top = self.matmul(&tall.top, x)?;
        self.tall_times(&tall.levels, top)
    }

    /// Every block of rows times its own part of the level above.
    fn tall_times(&mut self, levels: &[(ValueId, Axis)], top: ValueId) -> Result<ValueId> {
        let mut product = top;
        for (q, cut) in levels {
            let (_, n) = self.size(q)?;
            let (rows, columns) = self.size(&product)?;
            let parts = self.retiled(&product, vec![Axis::uniform(rows, n), Axis::whole(columns)])?;
            debug_assert_eq!(rows, n * cut.n_tiles());
            let dtype = self.ty(q).dtype;
            let result = BlockResult { dtype, modes: vec![ResultMode::Grid(0), ResultMode::Whole(columns)] };
            product = first(self.call("linalg_product", &[(q, &BY_ROWS), (&parts, &BY_ROWS)], vec![result])?)?;
        }
        Ok(product)
    }

    /// R alone: nothing of Q is kept.
    pub(super) fn tall_r(&mut self, a: &ValueId, cut: &Axis) -> Result<ValueId> {
        let dtype = self.ty(a).dtype;
        let (_, n) = self.size(a)?;
        let (mut rest, mut cut) = (*a, cut.clone());
        while cut.n_tiles() > 1 {
            let blocks = self.retiled(&rest, vec![cut.clone(), Axis::whole(n)])?;
            let result = BlockResult { dtype, modes: vec![ResultMode::PerBlock(0, n), ResultMode::Whole(n)] };
            rest = first(self.call("linalg_r", &[(&blocks, &BY_ROWS)], vec![result])?)?;
            cut = together(cut.n_tiles(), n);
        }
        first(self.whole("linalg_r", &[&rest], &[(dtype, Shaped::Matrix(n, n))])?)
    }

    /// `a = Q R` with Q computed as `a R^-1`: half the work and memory of [`Algorithms::qr`], but columns of Q are orthogonal only as far as a is
    /// well conditioned.
    pub fn qr_indirect(&mut self, a: &ValueId) -> Result<[ValueId; 2]> {
        let a = self.numbers(a)?;
        let Some(cut) = self.tall_cut(&a)? else { return self.qr(&a) };
        let (_, n) = self.size(&a)?;
        let dtype = self.ty(&a).dtype;
        let r = self.tall_r(&a, &cut)?;
        let blocks = self.retiled(&a, vec![cut, Axis::whole(n)])?;
        let result = BlockResult { dtype, modes: vec![ResultMode::Grid(0), ResultMode::Whole(n)] };
        let args: [(&ValueId, &[OperandMode]); 2] =
            [(&r, &[OperandMode::Whole, OperandMode::Whole]), (&blocks, &BY_ROWS)];
        Ok([first(self.call("linalg_solve_upper_right", &args, vec![result])?)?, r])
    }
}

/// Blocks of rows of about the same number of elements.
fn by_size(rows: u64, columns: u64) -> Axis {
    let tile = (BLOCK_ELEMENTS / columns).max(TALL * columns);
    even(rows, (rows / tile).max(1))
}

/// Triangles, several to a block.
fn together(n_triangles: u64, columns: u64) -> Axis {
    let n_blocks = if n_triangles <= FAN_IN { 1 } else { n_triangles.div_ceil(FAN_IN) };
    let per_block = n_triangles.div_ceil(n_blocks);
    Axis::uniform(n_triangles * columns, per_block * columns)
}

/// So many tiles, all of about the same length and none shorter than the quotient.
fn even(extent: u64, n_tiles: u64) -> Axis {
    Axis::from_boundaries((0..=n_tiles).map(|k| (extent as u128 * k as u128 / n_tiles as u128) as u64).collect())
}

/// The same cut without tiles shorter than `least`.
fn merged(cut: &Axis, least: u64) -> Axis {
    let boundaries = cut.boundaries();
    let mut kept = vec![0];
    for &boundary in boundaries.iter().skip(1) {
        if boundary - kept[kept.len() - 1] >= least {
            kept.push(boundary);
        }
    }
    // What is left over belongs to the last tile.
    let extent = cut.extent();
    if kept[kept.len() - 1] != extent {
        if kept.len() > 1 {
            kept.pop();
        }
        kept.push(extent);
    }
    Axis::from_boundaries(kept)
}
