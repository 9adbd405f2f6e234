//! Statements that only move blocks, and their tilings.

use std::sync::Arc;

use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, IndexVar, Op, Output, TensorType};
use tw_ir::scalar::ScalarCode;
use tw_ir::{Axis, DType, Extent, Grid, Tiling, shape};

use crate::tensor::Tensor;

/// The k-th variable.
pub(super) fn var(k: usize) -> Idx {
    Idx::var(Var(k as u32))
}

/// Variables of some extents, with names for explanations: components of keys first.
pub(super) fn variables(extents: &[u64], n_lead: usize) -> Vec<IndexVar> {
    let name = |k: usize| if k < n_lead { format!("k{k}") } else { format!("b{}", k - n_lead) };
    extents.iter().enumerate().map(|(k, &n)| IndexVar { name: name(k), extent: Extent::Known(n) }).collect()
}

/// The result at each point of a shape is the operand at the indices.
pub(super) fn moved(x: &Tensor, idx: Vec<Idx>, to: &[u64], n_lead: usize) -> Result<Tensor> {
    let ty: &TensorType = x.ty();
    let mut params = vec![ty.dtype];
    params.extend(std::iter::repeat_n(DType::I64, to.len()));
    let mut code = ScalarCode::new(params);
    let body = code.param(0);
    code.set_results(vec![body]);
    let out = Output {
        idx: (0..to.len()).map(var).collect(),
        edge: Edge::Error,
        shape: to.iter().map(|&n| Extent::Known(n)).collect(),
        fill: vec![ty.fill],
    };
    let reads = vec![Access { operand: 0, idx, edge: Edge::Error }];
    let stmt = IndexStmt { vars: variables(to, n_lead), reads, code, has_guard: false, accum: None, out };
    Tensor::apply(x.session(), Op::Index(stmt), &[x])
}

/// Blocks under other keys: the one at row-major position p of the axes `to` is the operand's at position `from[p]` of its first `n_lead` axes.
pub(super) fn looked_up(x: &Tensor, n_lead: usize, to: &[u64], from: &[u64]) -> Result<Tensor> {
    let known = x.shape()?;
    let (lead, bound) = known.split_at(n_lead);
    if from.iter().enumerate().all(|(at, &source)| at as u64 == source) && lead == to {
        return Ok(x.clone());
    }
    let tables = columns(lead, from);
    let mut idx: Vec<Idx> = tables.iter().map(|table| index_for(table, to)).collect();
    idx.extend((0..bound.len()).map(|k| var(to.len() + k)));
    moved(x, idx, &[to, bound].concat(), to.len())
}

/// Positions in the given axes, taken apart: one list of coordinates per axis.
pub(super) fn columns(axes: &[u64], positions: &[u64]) -> Vec<Vec<u64>> {
    let mut columns = vec![Vec::with_capacity(positions.len()); axes.len()];
    for &position in positions {
        let coordinates = shape::unravel(position, axes);
        columns.iter_mut().zip(coordinates).for_each(|(column, at)| column.push(at));
    }
    columns
}

/// The expression in the variables of some axes with the given values: a constant, a variable that is moved or reversed, or a table.
pub(super) fn index_for(values: &[u64], axes: &[u64]) -> Idx {
    let value = |at: usize| values.get(at).map_or(0, |&value| value as i64);
    let mut stride = values.len();
    let mut simple = Idx::constant(value(0));
    let mut n_moving = 0;
    for (k, &n) in axes.iter().enumerate() {
        stride /= (n as usize).max(1);
        let step = if n > 1 { value(stride) - value(0) } else { 0 };
        n_moving += (step != 0) as usize;
        simple = simple.plus(&var(k).times(step));
        // A longer step skips blocks, which are not needed.
        n_moving += 2 * (step.abs() > 1) as usize;
    }
    let point = |at: usize| -> Vec<i64> { shape::unravel(at as u64, axes).into_iter().map(|c| c as i64).collect() };
    if n_moving <= 1 && (0..values.len()).all(|at| simple.eval(&point(at)) == value(at)) {
        return simple;
    }
    let table: Arc<[i64]> = values.iter().map(|&value| value as i64).collect();
    position(axes).table(table)
}

/// The row-major position among the first variables.
pub(super) fn position(axes: &[u64]) -> Idx {
    axes.iter().enumerate().fold(Idx::constant(0), |sum, (k, &n)| sum.times(n as i64).plus(&var(k)))
}

/// The same tensor with a cut.
pub(super) fn retiled(x: &Tensor, grid: Grid) -> Result<Tensor> {
    let tiling = Tiling::Grid(grid);
    if x.ty().tiling.as_ref() == Some(&tiling) {
        return Ok(x.clone());
    }
    Tensor::apply(x.session(), Op::Retile { tiling }, &[x])
}

/// One block per key, and no block cut.
pub(super) fn block_per_key(x: &Tensor, n_lead: usize) -> Result<Tensor> {
    let known = x.shape()?;
    let cut = |(axis, &n): (usize, &u64)| if axis < n_lead { Axis::uniform(n, 1) } else { Axis::whole(n) };
    retiled(x, known.iter().enumerate().map(cut).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_maps_are_no_tables() {
        assert_eq!(index_for(&[3, 4, 5], &[3]), var(0).plus_constant(3));
        assert_eq!(index_for(&[2, 1, 0], &[3]), var(0).times(-1).plus_constant(2));
        assert_eq!(index_for(&[0, 0, 0, 1, 1, 1], &[2, 3]), var(0));
        assert_eq!(index_for(&[7, 7], &[2]), Idx::constant(7));
        for values in [[0, 2, 4], [0, 2, 1]] {
            let idx = index_for(&values, &[3]);
            assert!(idx.has_table());
            assert!((0..3).all(|at| idx.eval(&[at as i64]) == values[at] as i64));
        }
        let transposed = index_for(&[0, 2, 4, 1, 3, 5], &[2, 3]);
        assert_eq!(transposed.eval(&[1, 1]), 3);
    }
}
