//! The elements at given ranks along an axis.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockResult, Op, OperandMode, ResultMode};
use tw_ir::spec::SortSpec;
use tw_ir::{Axis, Edge, Grid, Tiling};

use super::{Algorithms, N_AXES, fibre_modes, first};
use crate as build;
use crate::Reduction;
use tw_ir::ValueId;
use tw_ir::tiling::cut_leading;

/// Fibres up to this length are selected from in one task; longer ones are counted, or sorted, along the last axis.
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
        let rank = shape.len();
        let is_long = shape[axis] > SHORT;
        if is_long && axis + 1 == rank {
            return match wanted[axis] <= FEW_RANKS {
                true => self.select_by_counting(x, ranks),
                false => self.select_by_sorting(x, ranks),
            };
        }
        if is_long || rank - 1 - axis >= N_AXES {
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

    /// Sorts along the last axis.
    fn select_by_sorting(&mut self, x: &ValueId, ranks: &ValueId) -> Result<ValueId> {
        let axis = self.ty(x).rank() - 1;
        let sort = Op::Sort { spec: SortSpec { axis: axis as u32, descending: false }, limit: None };
        let sorted = first(self.push(sort, &[x])?)?;
        if axis == 0 {
            return self.take(&sorted, ranks);
        }
        let shape = self.ty(ranks).shape.clone();
        let mut indices = Vec::with_capacity(axis + 1);
        for k in 0..axis {
            indices.push(self.one(build::coordinate(&shape, k), &[])?);
        }
        indices.push(*ranks);
        let types: Vec<_> = indices.iter().map(|index| self.ty(index)).collect();
        let axes: Vec<usize> = (0..=axis).collect();
        let joined = build::gather(self.ty(&sorted), &types, &axes, Edge::Error)?;
        let args: Vec<&ValueId> = std::iter::once(&sorted).chain(&indices).collect();
        self.joined(joined, &args)
    }

    /// Narrows the range of keys of every rank, with a pass over the fibres along the last axis for each step; later passes look only at what is left in the ranges. A block has elements of one fibre.
    fn select_by_counting(&mut self, x: &ValueId, ranks: &ValueId) -> Result<ValueId> {
        let shape = self.shape(x)?;
        let axis = shape.len() - 1;
        let (n, n_ranks) = (shape[axis], self.shape(ranks)?[axis]);
        let dtype = self.ty(x).dtype;
        let cut = match self.ty(x).tiling.as_ref().and_then(Tiling::grid) {
            Some(grid) => grid[axis].clone(),
            None => Axis::uniform(n, BLOCK_ELEMENTS.max(n >> 12)),
        };
        let lengths = (0..cut.n_tiles()).map(|tile| cut.range(tile)).map(|tile| tile.end - tile.start);
        let room = 1 + lengths.max().unwrap_or(0) / CANDIDATES;
        let one_by_one: Vec<Axis> = shape[..axis].iter().map(|&extent| Axis::uniform(extent, 1)).collect();
        let cut_with = |last: &[Axis]| [&one_by_one[..], last].concat();
        // What is small is one block for each fibre.
        let table = |extents: &[u64]| cut_with(&extents.iter().map(|&extent| Axis::whole(extent)).collect::<Vec<_>>());
        let x = self.retiled(x, cut_with(&[cut]))?;
        let ranks = if axis > 0 { self.retiled(ranks, table(&[n_ranks]))? } else { *ranks };
        let fibres = || (0..axis as u32).map(OperandMode::Grid);
        let block: Vec<OperandMode> = fibres().chain([OperandMode::Grid(axis as u32)]).collect();
        let vector: Vec<OperandMode> = fibres().chain([OperandMode::Whole]).collect();
        let matrix: Vec<OperandMode> = vector.iter().cloned().chain([OperandMode::Whole]).collect();
        let modes = |last: &[ResultMode]| (0..axis as u32).map(ResultMode::Grid).chain(last.iter().copied()).collect();
        let per_block = |n: u64| ResultMode::PerBlock(axis as u32, n);
        let keys = |last: &[ResultMode]| BlockResult { dtype: DType::U64, modes: modes(last) };
        let known = || keys(&[ResultMode::Whole(n_ranks), ResultMode::Whole(3)]);
        let results = vec![keys(&[per_block(1), ResultMode::Whole(2)])];
        let bounds = first(self.call("rank_bounds", &[(&x, &block)], results)?)?;
        let mut state = first(self.call("rank_start", &[(&bounds, &matrix), (&ranks, &vector)], vec![known()])?)?;
        let mut candidates: Option<ValueId> = None;
        let n_passes = (8 * dtype.size()).div_ceil(BUCKET_BITS as u64);
        for pass in 0..n_passes {
            let parts = 1 << BUCKET_BITS;
            let counts = modes(&[per_block(1), ResultMode::Whole(n_ranks), ResultMode::Whole(parts)]);
            let mut results = vec![BlockResult { dtype: DType::I64, modes: counts }];
            // The first pass finds all in the range, and nothing follows the last.
            if pass > 0 && pass + 1 < n_passes {
                results.push(keys(&[per_block(room)]));
            }
            let mut args: Vec<(&ValueId, &[OperandMode])> = vec![(&x, &block)];
            args.extend(candidates.as_ref().map(|candidates| (candidates, &block[..])));
            args.push((&state, &matrix));
            let mut made = self.call("rank_count", &args, results)?.into_iter();
            let counts = made.next().ok_or_else(|| Error::internal("a count without counts"))?;
            candidates = made.next();
            let op = build::reduce(self.ty(&counts), Reduction::Sum, Some(&[axis]), false)?;
            let mut counts = self.one(op, &[&counts])?;
            if axis > 0 {
                counts = self.retiled(&counts, table(&[n_ranks, parts]))?;
            }
            state = first(self.call("rank_narrow", &[(&counts, &matrix), (&state, &matrix)], vec![known()])?)?;
        }
        let values = BlockResult { dtype, modes: modes(&[ResultMode::Whole(n_ranks)]) };
        first(self.call("rank_value", &[(&state, &matrix)], vec![values])?)
    }
}
