//! Chunks: the tiling that a user sees.
//!
//! The chunks of a result follow from those of its operands, as in dask: elementwise operations refine the chunks of their operands, slices keep the rest of
//! each block, reductions drop axes. Functions that are called once per block use chunks. The planner does not: it retiles for block functions, and otherwise chooses its own
//! tiles. A source may be loaded in smaller blocks than its chunks.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tw_block::Source;
use tw_ir::error::{Error, Result};
use tw_ir::index::{Idx, Term, Var};
use tw_ir::program::{IndexStmt, Op, RoutineSpec, SourceOp, TensorType, ValueId};
use tw_ir::spec::{GatherSpec, SortSpec};
use tw_ir::{Axis, Edge, Grid, Tiling};

use super::Tensor;

/// The default size of a block in bytes.
const AUTOMATIC_BYTES: u64 = 128 << 20;

/// Most operations have no more operands than this.
pub(super) const FEW: usize = 4;

/// The chunks of a tensor; `None` while its shape is deferred.
pub(super) type Cut = Option<Grid>;

/// Blocks that stand for several of a tensor.
pub(super) struct Seen {
    chunks: Grid,
    /// The same tensor retiled to these chunks, on request.
    whole: Tensor,
}

impl Tensor {
    /// Its chunks, for user functions: from its type, or from its operands. `None` while its shape is deferred.
    pub fn chunks(&self) -> Option<Grid> {
        let seen = self.seen.as_ref().map(|seen| &seen.chunks).or(self.node.chunks[self.result].as_ref());
        seen.cloned().or_else(|| of_type(self.ty()))
    }
    /// The same tensor, of which users see the blocks of `whole`: the same elements, made in larger blocks. It takes part in plans with its own blocks,
    /// several of which make up one that is seen, so tasks and their memory stay small.
    pub fn seen_as(&self, whole: &Tensor) -> Result<Tensor> {
        match whole.chunks() {
            Some(chunks) if whole.ty().shape == self.ty().shape && whole.dtype() == self.dtype() => {
                Ok(Tensor { seen: Some(Arc::new(Seen { chunks, whole: whole.clone() })), ..self.clone() })
            }
            _ => Err(Error::source(format!("{} is not seen as {}", self.ty(), whole.ty()))),
        }
    }
    /// The same tensor in the given blocks. Where those are the ones that users see, it is made in them from the start, unless its own are there already.
    #[track_caller]
    pub fn rechunk(&self, axes: &[Axis]) -> Result<Tensor> {
        match &self.seen {
            Some(seen) if *seen.chunks == *axes && !self.is_computed() => Ok(seen.whole.clone()),
            _ => Tensor::apply(self.session(), Op::Retile { tiling: Tiling::Grid(axes.into()) }, &[self]),
        }
    }
}

/// The cut of a source: its own, or as its type says.
pub(super) fn of_source(source: &dyn Source) -> Cut {
    source.chunks().cloned().or_else(|| of_type(&source.ty()))
}

/// The cut of a tensor that nothing but its type describes.
pub(super) fn of_type(ty: &TensorType) -> Cut {
    match ty.tiling.as_ref().and_then(|tiling| tiling.grid()) {
        Some(grid) => Some(grid.clone()),
        None => Some(automatic(&ty.known_shape()?, ty.dtype.size(), AUTOMATIC_BYTES)),
    }
}

/// The cuts of the results of an operation.
pub(super) fn of_results(op: &Op, operands: &[Cut], results: &[TensorType]) -> Vec<Cut> {
    let of_result = |ty: &TensorType| {
        let shape = ty.known_shape()?;
        let known: Option<SmallVec<[&[Axis]; FEW]>> = operands.iter().map(Option::as_deref).collect();
        match known {
            Some(operands) if ty.tiling.is_none() && !operands.is_empty() => {
                let axes = of_operands(op, &operands, &shape)?;
                let fits = axes.len() == shape.len() && axes.iter().zip(&shape).all(|(axis, &n)| axis.extent() == n);
                fits.then_some(axes)
            }
            _ => None,
        }
    };
    results.iter().map(|ty| of_result(ty).or_else(|| of_type(ty))).collect()
}

/// The cuts of the results of a routine, which follow from operation to operation through its algorithm, and the work of that algorithm.
pub(super) fn of_routine(spec: &RoutineSpec, operands: &[Cut]) -> Result<(Vec<Cut>, u64)> {
    let program = spec.expand()?;
    let mut cuts: FxHashMap<ValueId, Cut> = FxHashMap::default();
    let mut operands = operands.iter();
    let mut work: u64 = 0;
    for node in &program.body.nodes {
        if let Op::Source(SourceOp::Input { .. }) = node.op {
            cuts.insert(node.results[0], operands.next().cloned().flatten());
            continue;
        }
        let args: Vec<Cut> = node.args.iter().map(|arg| cuts.get(arg).cloned().flatten()).collect();
        let types: Vec<TensorType> = node.results.iter().map(|&value| program.ty(value).clone()).collect();
        let operands: Vec<&TensorType> = node.args.iter().map(|&arg| program.ty(arg)).collect();
        work = work.saturating_add(super::work::of_operation(&node.op, &operands, &types));
        cuts.extend(node.results.iter().copied().zip(of_results(&node.op, &args, &types)));
    }
    Ok((program.body.results.iter().map(|value| cuts.get(value).cloned().flatten()).collect(), work))
}

/// Blocks of at most `limit` bytes: the longest axis is halved until they are small enough.
pub fn automatic(shape: &[u64], element_size: u64, limit: u64) -> Grid {
    let mut lengths: Vec<u64> = shape.iter().map(|&n| n.max(1)).collect();
    let bytes =
        |lengths: &[u64]| lengths.iter().fold(u128::from(element_size), |size, &n| size.saturating_mul(n.into()));
    // Of the largest arrays the blocks grow, lest their number does.
    let limit = u128::from(limit).max(bytes(&lengths) >> 20);
    while bytes(&lengths) > limit {
        let longest = (0..lengths.len()).max_by_key(|&k| (lengths[k], std::cmp::Reverse(k)));
        match longest {
            Some(k) if lengths[k] > 1 => lengths[k] = lengths[k].div_ceil(2),
            _ => break,
        }
    }
    shape.iter().zip(lengths).map(|(&n, length)| Axis::uniform(n, length)).collect()
}

fn of_operands(op: &Op, operands: &[&[Axis]], shape: &[u64]) -> Option<Grid> {
    let first = operands[0];
    match op {
        Op::Index(stmt) => Some(of_statement(stmt, operands, shape)),
        Op::Scan(_) | Op::Sort { limit: None, .. } => Some(first.into()),
        Op::Sort { spec: SortSpec { axis, .. }, limit: Some(n) } => {
            let mut axes = Grid::from(first);
            *axes.get_mut(*axis as usize)? = Axis::whole(*n);
            Some(axes)
        }
        Op::Reshape { .. } => Some(reshaped(first, shape)),
        Op::Concat { axis } => joined(operands, *axis as usize),
        Op::Gather(GatherSpec { axes, .. }) => gathered(operands, axes),
        _ => None,
    }
}

/// Along each axis, the coarsest cut that has the boundaries of all operands, seen through the statement.
fn of_statement(stmt: &IndexStmt, operands: &[&[Axis]], shape: &[u64]) -> Grid {
    // What is not cut cuts nothing.
    if operands.iter().copied().flatten().all(|axis| axis.n_tiles() <= 1) {
        return Grid::whole(shape);
    }
    let along = |var: Var, n: u64, inside: bool| {
        let reads = stmt.reads.iter().filter(|read| (read.edge == Edge::Error) == inside);
        let cuts = reads.flat_map(|read| {
            let axes = operands.get(read.operand as usize).copied().unwrap_or_default();
            read.idx.iter().zip(axes).filter_map(move |(idx, axis)| seen_through(idx, var, axis, n, read.edge))
        });
        cuts.reduce(|a, b| a.refine(&b))
    };
    let axis = |(idx, &n): (&Idx, &u64)| {
        let Some(var) = idx.as_var().filter(|_| n > 1) else { return Axis::whole(n) };
        // What reaches beyond its end, such as a value that is put somewhere into a tensor, does not cut the tensor.
        along(var, n, true).or_else(|| along(var, n, false)).unwrap_or_else(|| Axis::whole(n))
    };
    stmt.out.idx.iter().zip(shape).map(axis).collect()
}

/// The cut of a variable of `n` values under which its index stays in one tile of an axis. Other variables are taken to be zero, so windows are
/// cut where their first elements are.
fn seen_through(idx: &Idx, var: Var, axis: &Axis, n: u64, edge: Edge) -> Option<Axis> {
    if axis.extent() <= 1 {
        return None;
    }
    let is_remainder = |term: &Term| matches!(term, Term::Mod(..));
    let mut terms = idx.terms().iter().filter(|(term, _)| term.uses(var) && !is_remainder(term));
    let (term, factor) = match (terms.next(), terms.next()) {
        (Some((term, factor)), None) => (term, *factor),
        _ => return None,
    };
    let offset = idx.offset();
    match term {
        Term::Var(_) if edge == Edge::Wrap && factor == 1 && n == axis.extent() => Some(rolled(axis, offset, n)),
        Term::Var(_) if factor == 1 => Some(shifted(axis, offset, n)),
        Term::Var(_) => Some(cut_at(axis, n, |end| first_beyond(factor, offset, end))),
        Term::Div(inner, divisor) if factor == 1 => {
            let (_, by) = inner.as_shifted_var()?;
            Some(cut_at(axis, n, |end| end.saturating_sub(offset).saturating_mul(*divisor).saturating_sub(by)))
        }
        _ => None,
    }
}

/// The cut of `v` where `v + offset` is cut like an axis.
fn shifted(axis: &Axis, offset: i64, n: u64) -> Axis {
    match axis {
        _ if offset == 0 && n == axis.extent() => axis.clone(),
        Axis::Uniform { tile, .. } if offset >= 0 && (offset as u64).is_multiple_of(*tile) => Axis::uniform(n, *tile),
        _ => cut_at(axis, n, |end| end.saturating_sub(offset)),
    }
}

/// The cut of `v` where `v + offset` is cut like an axis and goes on at its other end.
fn rolled(axis: &Axis, offset: i64, n: u64) -> Axis {
    let place = |end: &u64| (*end as i64).saturating_sub(offset).rem_euclid(n as i64) as u64;
    Axis::whole(n).with_cuts(&axis.boundaries().iter().map(place).collect::<Vec<_>>())
}

/// An axis of `n` values with a boundary for every inner boundary of another one.
fn cut_at(axis: &Axis, n: u64, place: impl Fn(i64) -> i64) -> Axis {
    let inner = axis.boundaries().into_iter().filter(|&end| end > 0 && end < axis.extent());
    let cuts: Vec<u64> = inner.filter_map(|end| u64::try_from(place(end as i64)).ok()).collect();
    Axis::whole(n).with_cuts(&cuts)
}

/// The first `v` for which `factor * v + offset` is on the other side of a boundary than its predecessor.
fn first_beyond(factor: i64, offset: i64, end: i64) -> i64 {
    let distance = end.saturating_sub(offset);
    match factor {
        0 => 0,
        1.. => distance.div_euclid(factor) + i64::from(distance.rem_euclid(factor) != 0),
        _ => distance.saturating_neg().div_euclid(factor.saturating_neg()).saturating_add(1),
    }
}

/// Operands one after the other keep their blocks along the axis; along others they are cut alike.
fn joined(operands: &[&[Axis]], axis: usize) -> Option<Grid> {
    let holds_some = |axes: &&&[Axis]| axes.iter().all(|axis| axis.extent() > 0);
    let full: Vec<&[Axis]> = operands.iter().filter(holds_some).copied().collect();
    let (first, rest) = full.split_first()?;
    let mut axes = Grid::from(*first);
    let mut boundaries = first.get(axis)?.boundaries();
    for other in rest {
        for (own, cut) in axes.iter_mut().zip(*other) {
            if own.extent() == cut.extent() {
                *own = own.refine(cut);
            }
        }
        let end = boundaries.last().copied().unwrap_or(0);
        boundaries.extend(other.get(axis)?.boundaries()[1..].iter().map(|cut| end.saturating_add(*cut)));
    }
    axes[axis] = Axis::from_boundaries(boundaries);
    Some(axes)
}

/// Elements that one index vector names come in blocks as long as those they are taken from are on average; otherwise they come in the blocks of the index.
fn gathered(operands: &[&[Axis]], axes: &[u32]) -> Option<Grid> {
    let (data, index) = (operands.first()?, operands.get(1)?);
    let first = *axes.first()? as usize;
    let mut found: Vec<Axis> = Vec::new();
    for (k, axis) in data.iter().enumerate() {
        if k == first {
            match index {
                [only] if axes.len() == 1 && axis.n_tiles() > 0 => {
                    found.push(Axis::uniform(only.extent(), axis.extent() / axis.n_tiles()));
                }
                _ => found.extend(index.iter().cloned()),
            }
        }
        if !axes.contains(&(k as u32)) {
            found.push(axis.clone());
        }
    }
    Some(found.into())
}

/// The cut under another shape: axes that stay keep theirs; a group of axes that becomes another is cut where its elements in a row were, or into blocks
/// that are no larger.
fn reshaped(axes: &[Axis], shape: &[u64]) -> Grid {
    if shape.contains(&0) {
        return Grid::whole(shape);
    }
    let mut found = Vec::with_capacity(shape.len());
    let (mut from, mut to) = (0, 0);
    while to < shape.len() {
        if from < axes.len() && axes[from].extent() == shape[to] {
            found.push(axes[from].clone());
            (from, to) = (from + 1, to + 1);
            continue;
        }
        let (start, first) = (from, to);
        let (mut before, mut after) = (1u64, shape[to]);
        to += 1;
        while before != after {
            if before < after && from < axes.len() {
                before = before.saturating_mul(axes[from].extent());
                from += 1;
            } else if to < shape.len() {
                after = after.saturating_mul(shape[to]);
                to += 1;
            } else {
                break;
            }
        }
        found.extend_from_slice(&regrouped(&axes[start..from], &shape[first..to]));
    }
    found.into()
}

fn regrouped(axes: &[Axis], shape: &[u64]) -> Grid {
    let long: Vec<&Axis> = axes.iter().filter(|axis| axis.extent() > 1).collect();
    let total: u64 = shape.iter().product();
    let most = long.iter().map(|axis| axis.longest()).fold(1, u64::saturating_mul);
    // In a row, blocks are neighbours if the axes before one are cut into single steps and those after it are whole.
    let single = long.iter().take_while(|axis| axis.longest() == 1).count();
    let row = match long.get(single) {
        Some(cut) if long[single + 1..].iter().all(|axis| axis.n_tiles() == 1) => {
            let after: u64 = long[single + 1..].iter().map(|axis| axis.extent()).product();
            let repeats: u64 = long[..single].iter().map(|axis| axis.extent()).product();
            let period = cut.extent() * after;
            let ends = cut.boundaries();
            let cuts = (0..repeats).flat_map(|k| ends.iter().map(move |end| k * period + end * after));
            Axis::whole(total).with_cuts(&cuts.collect::<Vec<_>>())
        }
        _ => Axis::uniform(total, most),
    };
    // The first axis along which a step is no more than a block; those before it are cut into single steps.
    let step = |k: usize| shape[k + 1..].iter().product::<u64>();
    let split = (0..shape.len()).find(|&k| step(k) <= most).unwrap_or(shape.len() - 1);
    let axis = |k: usize| match k {
        _ if k < split => Axis::uniform(shape[k], 1),
        0 => {
            let ends: Vec<u64> = row.boundaries().iter().map(|end| end / step(0)).collect();
            Axis::whole(shape[0]).with_cuts(&ends)
        }
        _ if k == split => Axis::uniform(shape[k], (most / step(k)).max(1)),
        _ => Axis::whole(shape[k]),
    };
    (0..shape.len()).map(axis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(axis: &Axis) -> Vec<u64> {
        axis.boundaries().windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn cut(lengths: &[u64]) -> Axis {
        Axis::from_lengths(lengths).unwrap()
    }

    #[test]
    fn slices_keep_what_is_left_of_each_block() {
        let axis = cut(&[4, 4, 2]);
        let through = |factor: i64, offset: i64, n: u64| {
            let idx = Idx::var(Var(0)).times(factor).plus_constant(offset);
            lengths(&seen_through(&idx, Var(0), &axis, n, Edge::Error).unwrap())
        };
        assert_eq!(through(1, 0, 10), [4, 4, 2]);
        assert_eq!(through(2, 0, 5), [2, 2, 1]);
        assert_eq!(through(3, 1, 3), [1, 2]);
        assert_eq!(through(1, 3, 5), [1, 4]);
        assert_eq!(through(-1, 9, 10), [2, 4, 4]);
        assert_eq!(through(-2, 9, 5), [1, 2, 2]);
        let rolled = Idx::var(Var(0)).plus_constant(-3);
        assert_eq!(lengths(&seen_through(&rolled, Var(0), &axis, 10, Edge::Wrap).unwrap()), [1, 2, 4, 3]);
    }

    #[test]
    fn reshapes_keep_aligned_blocks() {
        let to =
            |axes: &[Axis], shape: &[u64]| -> Vec<Vec<u64>> { reshaped(axes, shape).iter().map(lengths).collect() };
        assert_eq!(to(&[cut(&[2, 2]), Axis::whole(3)], &[12]), [[6, 6]]);
        assert_eq!(to(&[cut(&[6, 6])], &[4, 3]), [vec![2, 2], vec![3]]);
        assert_eq!(to(&[Axis::uniform(2, 1), cut(&[2, 1])], &[6]), [[2, 1, 2, 1]]);
        assert_eq!(to(&[cut(&[5, 7])], &[4, 3]), [vec![1, 3], vec![3]]);
        assert_eq!(to(&[cut(&[2, 2]), cut(&[3, 1])], &[1, 4, 1, 4]), [vec![1], vec![2, 2], vec![1], vec![3, 1]]);
        assert_eq!(to(&[cut(&[2, 2]), cut(&[2, 2])], &[16]), [[4, 4, 4, 4]]);
        assert_eq!(to(&[], &[1, 1]), [[1], [1]]);
    }

    #[test]
    fn automatic_blocks_halve_the_longest_axis() {
        assert_eq!(
            *automatic(&[1 << 14, 1 << 12], 8, 128 << 20),
            [Axis::uniform(1 << 14, 1 << 12), Axis::whole(1 << 12)]
        );
        assert_eq!(*automatic(&[0, 5], 8, 1), [Axis::whole(0), Axis::uniform(5, 1)]);
        assert_eq!(*automatic(&[], 8, 1), []);
    }
}
