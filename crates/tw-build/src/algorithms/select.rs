//! The elements at given ranks along an axis.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockResult, Op, OperandMode, ResultMode};
use tw_ir::spec::SortSpec;
use tw_ir::{Axis, Grid, Tiling};

use super::{Algorithms, N_AXES, fibre_modes, first};
use crate as build;
use crate::Reduction;
use tw_ir::ValueId;
use tw_ir::tiling::cut_leading;

/// Fibres up to this length are selected from in one task.
const SHORT: u64 = 1 << 21;

/// Elements of a block that is counted, or whose fibres are selected from, where the user has not cut the tensor.
const BLOCK_ELEMENTS: u64 = 1 << 18;

/// Above this many ranks a sort is quicker than counting for each.
const FEW_RANKS: u64 = 32;

/// Bits that one pass over a long vector takes off the range of keys of each rank, as the library counts them.
const BUCKET_BITS: u32 = 11;

/// The part of a block that may be handed on instead of it once few elements may still be wanted.
const CANDIDATES: u64 = 16;

impl Algorithms<'_> {
    /// The elements at some ranks along an axis, counted from the smallest; NaNs are the largest. Ranks are i64 and shaped like the tensor but
    /// along the axis, where they count ranks.
    pub fn select(&mut self, x: &ValueId, ranks: &ValueId, axis: usize) -> Result<ValueId> {
        let (shape, wanted) = (self.shape(x)?, self.shape(ranks)?);
        let alike = |k: usize| k == axis || shape[k] == wanted[k];
        if axis >= shape.len() || wanted.len() != shape.len() || !(0..shape.len()).all(alike) {
            return Err(Error::source(format!(
                "ranks of shape {} in a tensor of shape {}",
                tw_ir::shape::display(&wanted),
                tw_ir::shape::display(&shape)
            )));
        }
        let dtype = self.ty(x).dtype;
        if dtype == DType::Bool || dtype.is_complex() || dtype.is_time() || dtype.is_half() {
            return Err(Error::types(format!("order statistics of {dtype}")));
        }
        if wanted.contains(&0) {
            return self.full(&wanted, dtype.zero());
        }
        if shape[axis] == 0 {
            return Err(Error::source("order statistics of no elements"));
        }
        if shape.len() == 1 && shape[0] > SHORT {
            return match wanted[0] <= FEW_RANKS {
                true => self.select_by_counting(x, ranks),
                false => self.select_by_sorting(x, ranks),
            };
        }
        let rank = shape.len();
        if rank - 1 - axis >= N_AXES {
            let there: Vec<usize> = (0..rank).filter(|&k| k != axis).chain([axis]).collect();
            let ranks = self.permuted(ranks, &there)?;
            return self.brought_last(x, axis, |algorithms, x| algorithms.select(x, &ranks, rank - 1));
        }
        let mut grid = Grid::whole(&shape);
        let others: Vec<usize> = (0..rank).filter(|&k| k != axis).collect();
        cut_leading(&mut grid, &others, BLOCK_ELEMENTS);
        let x = self.retiled(x, grid.clone())?;
        grid[axis] = Axis::whole(wanted[axis]);
        let ranks = self.retiled(ranks, grid)?;
        let (modes, results) = fibre_modes(rank, axis, wanted[axis]);
        let name = format!("select_{}", rank - 1 - axis);
        let args: [(&ValueId, &[OperandMode]); 2] = [(&x, &modes), (&ranks, &modes)];
        first(self.call(&name, &args, vec![BlockResult { dtype, modes: results }])?)
    }

    fn select_by_sorting(&mut self, x: &ValueId, ranks: &ValueId) -> Result<ValueId> {
        let sort = Op::Sort { spec: SortSpec { axis: 0, descending: false }, limit: None };
        let sorted = first(self.push(sort, &[x])?)?;
        self.take(&sorted, ranks)
    }

    /// Narrows the range of keys of every rank, with a pass over the vector for each step; later passes look only at what is left in the ranges.
    fn select_by_counting(&mut self, x: &ValueId, ranks: &ValueId) -> Result<ValueId> {
        const BLOCK: &[OperandMode] = &[OperandMode::Grid(0)];
        const TABLE: &[OperandMode] = &[OperandMode::Whole, OperandMode::Whole];
        let (n, n_ranks) = (self.shape(x)?[0], self.shape(ranks)?[0]);
        let dtype = self.ty(x).dtype;
        let cut = match self.ty(x).tiling.as_ref().and_then(Tiling::grid) {
            Some(grid) => grid[0].clone(),
            None => Axis::uniform(n, BLOCK_ELEMENTS.max(n >> 12)),
        };
        let lengths = (0..cut.n_tiles()).map(|tile| cut.range(tile)).map(|tile| tile.end - tile.start);
        let room = 1 + lengths.max().unwrap_or(0) / CANDIDATES;
        let x = self.retiled(x, vec![cut])?;
        let per_block = ResultMode::PerBlock(0, 1);
        let keys = |modes: Vec<ResultMode>| BlockResult { dtype: DType::U64, modes };
        let known = || keys(vec![ResultMode::Whole(n_ranks), ResultMode::Whole(3)]);
        let bounds =
            first(self.call("rank_bounds", &[(&x, BLOCK)], vec![keys(vec![per_block, ResultMode::Whole(2)])])?)?;
        let mut state =
            first(self.call("rank_start", &[(&bounds, TABLE), (ranks, &[OperandMode::Whole])], vec![known()])?)?;
        let mut candidates: Option<ValueId> = None;
        let n_passes = (8 * dtype.size()).div_ceil(BUCKET_BITS as u64);
        for pass in 0..n_passes {
            let parts = ResultMode::Whole(1 << BUCKET_BITS);
            let mut results =
                vec![BlockResult { dtype: DType::I64, modes: vec![per_block, ResultMode::Whole(n_ranks), parts] }];
            // The first pass finds all in the range, and nothing follows the last.
            if pass > 0 && pass + 1 < n_passes {
                results.push(keys(vec![ResultMode::PerBlock(0, room)]));
            }
            let mut args: Vec<(&ValueId, &[OperandMode])> = vec![(&x, BLOCK)];
            args.extend(candidates.as_ref().map(|candidates| (candidates, BLOCK)));
            args.push((&state, TABLE));
            let mut made = self.call("rank_count", &args, results)?.into_iter();
            let counts = made.next().ok_or_else(|| Error::internal("a count without counts"))?;
            candidates = made.next();
            let op = build::reduce(self.ty(&counts), Reduction::Sum, Some(&[0]), false)?;
            let counts = self.one(op, &[&counts])?;
            state = first(self.call("rank_narrow", &[(&counts, TABLE), (&state, TABLE)], vec![known()])?)?;
        }
        let values = BlockResult { dtype, modes: vec![ResultMode::Whole(n_ranks)] };
        first(self.call("rank_value", &[(&state, TABLE)], vec![values])?)
    }
}
