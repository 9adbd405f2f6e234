//! The elements at given ranks along an axis.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockResult, OperandMode, ResultMode};
use tw_ir::{Axis, Tiling};

use super::{Algorithms, Graph, N_AXES, fibre_modes, first};
use crate::build::{self, Reduction};
use crate::tile::cut_leading;

/// Fibres up to this length are selected from in one task.
const SHORT: u64 = 1 << 21;

/// Elements of a block that is counted, or whose fibres are selected from, where the user has not cut the tensor.
const BLOCK_ELEMENTS: u64 = 1 << 18;

/// Bits of a digit that one pass over a long vector finds, as the library counts them.
const DIGIT_BITS: u32 = 11;

impl<G: Graph> Algorithms<'_, G> {
    /// The elements at some ranks along an axis, counted from the smallest; NaNs are the largest. Ranks are i64 and shaped like the tensor but
    /// along the axis, where they count ranks.
    pub fn select(&mut self, x: &G::Value, ranks: &G::Value, axis: usize) -> Result<G::Value> {
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
            return self.select_by_counting(x, ranks);
        }
        let rank = shape.len();
        if rank - 1 - axis >= N_AXES {
            let there: Vec<usize> = (0..rank).filter(|&k| k != axis).chain([axis]).collect();
            let ranks = self.permuted(ranks, &there)?;
            return self.brought_last(x, axis, |algorithms, x| algorithms.select(x, &ranks, rank - 1));
        }
        let mut axes: Vec<Axis> = shape.iter().map(|&n| Axis::whole(n)).collect();
        let others: Vec<usize> = (0..rank).filter(|&k| k != axis).collect();
        cut_leading(&mut axes, &others, BLOCK_ELEMENTS);
        let x = self.retiled(x, axes.clone())?;
        axes[axis] = Axis::whole(wanted[axis]);
        let ranks = self.retiled(ranks, axes)?;
        let (modes, results) = fibre_modes(rank, axis, wanted[axis]);
        let name = format!("select_{}", rank - 1 - axis);
        let args: [(&G::Value, &[OperandMode]); 2] = [(&x, &modes), (&ranks, &modes)];
        first(self.call(&name, &args, vec![BlockResult { dtype, modes: results }])?)
    }

    /// Narrows every rank digit by digit, with a pass over the vector for each.
    fn select_by_counting(&mut self, x: &G::Value, ranks: &G::Value) -> Result<G::Value> {
        let (n, n_ranks) = (self.shape(x)?[0], self.shape(ranks)?[0]);
        let dtype = self.ty(x).dtype;
        let cut = match self.ty(x).tiling.as_ref().and_then(Tiling::grid) {
            Some(grid) => grid[0].clone(),
            None => Axis::uniform(n, BLOCK_ELEMENTS.max(n >> 12)),
        };
        let x = self.retiled(x, vec![cut])?;
        // Per rank: what its key begins with, and how many of the keys that begin so come before it.
        let op = build::expand_dims(self.ty(ranks), 1)?;
        let before = self.one(op, &[ranks])?;
        let before = self.cast(&before, DType::U64)?;
        let beginning = self.full(&[n_ranks, 1], DType::U64.zero())?;
        let mut state = self.concat(&[beginning, before], 1)?;
        let n_counts = 1 << DIGIT_BITS;
        let bits = 8 * dtype.size();
        for pass in 0..bits.div_ceil(DIGIT_BITS as u64) {
            let counted = BlockResult {
                dtype: DType::I64,
                modes: vec![ResultMode::PerBlock(0, 1), ResultMode::Whole(n_ranks), ResultMode::Whole(n_counts)],
            };
            let args: [(&G::Value, &[OperandMode]); 2] =
                [(&x, &[OperandMode::Grid(0)]), (&state, &[OperandMode::Whole; 2])];
            let counts = first(self.call(&format!("rank_count_{pass}"), &args, vec![counted])?)?;
            let op = build::reduce(self.ty(&counts), Reduction::Sum, Some(&[0]), false)?;
            let counts = self.one(op, &[&counts])?;
            let narrowed =
                BlockResult { dtype: DType::U64, modes: vec![ResultMode::Whole(n_ranks), ResultMode::Whole(2)] };
            let args: [(&G::Value, &[OperandMode]); 2] =
                [(&counts, &[OperandMode::Whole; 2]), (&state, &[OperandMode::Whole; 2])];
            state = first(self.call(&format!("rank_narrow_{bits}_{pass}"), &args, vec![narrowed])?)?;
        }
        let values = BlockResult { dtype, modes: vec![ResultMode::Whole(n_ranks)] };
        first(self.call("rank_value", &[(&state, &[OperandMode::Whole; 2])], vec![values])?)
    }
}
