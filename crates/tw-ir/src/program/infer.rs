//! Result types of nodes, and the checks that make them well formed.

use cranelift_entity::PrimaryMap;

use super::{
    BlockFn, IndexStmt, MaskCounts, Op, OperandMode, Region, ResultMode, SourceOp, TensorType, ValueId, ValueInfo,
    is_injective, verify_type,
};
use crate::accum::Accum;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::index::Edge;
use crate::scalar::BinaryOp;
use crate::shape::{self, Extent};
use crate::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use crate::tiling::{Axis, Tiling};

/// The types of the results for operands of the given types, or an error that says what is wrong with the operation.
///
/// `values` is where the regions of loops and branches find the types of their values; other operators do not look at it.
pub fn infer(values: &PrimaryMap<ValueId, ValueInfo>, op: &Op, types: &[&TensorType]) -> Result<Vec<TensorType>> {
    let results = match op {
        Op::Source(source) => {
            expect_args(op, types, 0)?;
            vec![match source {
                SourceOp::Input { ty, .. } => ty.clone(),
                SourceOp::Constant(array) => TensorType::known(array.dtype(), array.shape()),
            }]
        }
        Op::Index(stmt) => infer_index(stmt, types)?,
        Op::Scan(ScanSpec { accum, axis, .. }) => {
            let shape = infer_bodies(op, accum, types)?;
            check_axis(op, *axis, shape.len())?;
            accum.result_types().into_iter().map(|dtype| TensorType::dense(dtype, shape.clone())).collect()
        }
        Op::Gather(GatherSpec { axes, .. }) => {
            expect_at_least(op, types, 2)?;
            let index_shape = index_shape(op, axes, &types[1..], types[0].rank())?;
            let shape = gather_shape(&types[0].shape, axes, &index_shape);
            vec![TensorType::dense(types[0].dtype, shape).with_fill(types[0].fill)]
        }
        Op::Scatter { spec: ScatterSpec { axes, accum, .. }, extents } => {
            infer_scatter(op, axes, extents, accum, types)?
        }
        Op::Compact { extent, counts } => {
            expect_at_least(op, types, 1)?;
            if !matches!(types[0].dtype, DType::Bool | DType::I64) {
                return Err(Error::source(format!("a mask of type {}; it must be bool or i64", types[0].dtype)));
            }
            check_counts(types[0], counts.as_ref())?;
            let rank = types[0].rank();
            let selected = |data: &&TensorType| {
                same_shape(op, &types[0].shape, &data.shape[..rank.min(data.rank())])?;
                let shape = [*extent].into_iter().chain(data.shape[rank..].iter().copied()).collect();
                Ok(TensorType::dense(data.dtype, shape).with_fill(data.fill))
            };
            match types.len() {
                1 => vec![TensorType::dense(DType::I64, vec![*extent])],
                _ => types[1..].iter().map(selected).collect::<Result<_>>()?,
            }
        }
        Op::Expand { counts } => {
            expect_args(op, types, 3)?;
            let (mask, values, data) = (types[0], types[1], types[2]);
            if mask.dtype != DType::Bool {
                return Err(Error::source(format!("a mask of type {}; it must be bool", mask.dtype)));
            }
            check_counts(mask, counts.as_ref())?;
            same_shape(op, &mask.shape, &data.shape)?;
            if values.rank() != 1 || values.dtype != data.dtype {
                return Err(Error::source(format!("{values} put into {data} under a mask; a vector of its type fits")));
            }
            vec![TensorType::dense(data.dtype, data.shape.clone()).with_fill(data.fill)]
        }
        Op::Sort { spec: SortSpec { axis, .. }, limit } => {
            expect_args(op, types, 1)?;
            check_axis(op, *axis, types[0].rank())?;
            if BinaryOp::Lt.result(types[0].dtype).is_none() {
                return Err(Error::source(format!("a sort of {}, which has no order here", types[0].dtype)));
            }
            let mut shape = types[0].shape.clone();
            if let Some(limit) = *limit {
                let extent = std::mem::replace(&mut shape[*axis as usize], Extent::Known(limit));
                if let Some(n) = extent.known().filter(|&n| n < limit) {
                    return Err(Error::source(format!("the first {limit} of {n} elements along axis {axis}")));
                }
            }
            [types[0].dtype, DType::I64].map(|dtype| TensorType::dense(dtype, shape.clone())).to_vec()
        }
        Op::Reshape { shape } => {
            expect_args(op, types, 1)?;
            let ty = TensorType::dense(types[0].dtype, shape.clone()).with_fill(types[0].fill);
            if let (Some(from), Some(to)) = (types[0].known_shape(), ty.known_shape())
                && shape::n_elements(&from)? != shape::n_elements(&to)?
            {
                let (from, to) = (shape::display(&from), shape::display(&to));
                return Err(Error::source(format!("a tensor of shape {from} does not reshape to {to}")));
            }
            vec![ty]
        }
        Op::Retile { tiling } => {
            expect_args(op, types, 1)?;
            vec![TensorType { tiling: Some(tiling.clone()), ..types[0].clone() }]
        }
        Op::Concat { axis } => infer_concat(op, *axis, types)?,
        Op::BlockFn(call) => infer_block_fn(call, types)?,
        Op::Routine(spec) => spec.result_types(types)?,
        Op::Resolve => {
            expect_args(op, types, 1)?;
            if types[0].rank() != 0 || !(types[0].dtype == DType::Bool || types[0].dtype.is_integer()) {
                return Err(Error::source(format!("only an integer or bool scalar can be resolved, not {}", types[0])));
            }
            vec![types[0].clone()]
        }
        Op::While { condition, body } => {
            expect_carried(values, types, condition, "the condition")?;
            expect_carried(values, types, body, "the body")?;
            expect_bool(&types_of(values, &condition.results))?;
            expect_results(values, types, &body.results)?;
            types.iter().map(|ty| TensorType { tiling: None, ..(*ty).clone() }).collect()
        }
        Op::If { then, otherwise } => {
            expect_args(op, types, 1)?;
            expect_bool(types)?;
            let results = types_of(values, &then.results);
            expect_results(values, &results, &otherwise.results)?;
            if !then.params.is_empty() || !otherwise.params.is_empty() {
                return Err(Error::internal("the branches of an if take no parameters"));
            }
            results.iter().map(|ty| TensorType { tiling: None, ..(*ty).clone() }).collect()
        }
        Op::Store { .. } => {
            expect_args(op, types, 1)?;
            Vec::new()
        }
    };
    for ty in &results {
        verify_type(ty)?;
    }
    Ok(results)
}

fn check_counts(mask: &TensorType, counts: Option<&MaskCounts>) -> Result<()> {
    counts.map_or(Ok(()), |counts| counts.verify(&mask.require_shape()?))
}

/// The shape of a gather: index axes stand where the first gathered axis was.
pub fn gather_shape(data: &[Extent], axes: &[u32], index: &[Extent]) -> Vec<Extent> {
    let mut shape = Vec::new();
    for (axis, extent) in data.iter().enumerate() {
        if axes.first() == Some(&(axis as u32)) {
            shape.extend_from_slice(index);
        }
        if !axes.contains(&(axis as u32)) {
            shape.push(*extent);
        }
    }
    shape
}

fn infer_index(stmt: &IndexStmt, types: &[&TensorType]) -> Result<Vec<TensorType>> {
    let n_vars = stmt.vars.len();
    let mut params = Vec::new();
    for access in &stmt.reads {
        let ty = types
            .get(access.operand as usize)
            .ok_or_else(|| Error::internal("an access names an operand that is not there"))?;
        if access.idx.len() != ty.rank() {
            return Err(Error::source(format!("{} indices for a tensor of rank {}", access.idx.len(), ty.rank())));
        }
        params.push(ty.dtype);
    }
    params.extend(std::iter::repeat_n(DType::I64, n_vars));
    if stmt.code.params() != params {
        return Err(Error::internal("the code of an index statement does not take its reads and variables"));
    }
    stmt.code.verify()?;
    let used =
        stmt.reads.iter().flat_map(|access| &access.idx).chain(&stmt.out.idx).filter_map(|idx| idx.max_var()).max();
    if used.is_some_and(|var| var.0 as usize >= n_vars) {
        return Err(Error::internal("an index uses a variable that is not there"));
    }
    if stmt.has_guard && stmt.code.result_types().first() != Some(&DType::Bool) {
        return Err(Error::source("a guard must be bool"));
    }
    if let Some(accum) = &stmt.accum {
        accum.verify(&stmt.body_types())?;
    } else if stmt.out.fill.iter().map(|v| v.dtype()).collect::<Vec<_>>() != stmt.body_types() {
        return Err(Error::internal("an index statement without accumulator needs one fill value per body"));
    }
    if stmt.out.idx.len() != stmt.out.shape.len() {
        return Err(Error::internal("the output of an index statement has a shape of another rank"));
    }
    check_bounds(stmt, types)?;
    if stmt.accum.is_none() && !is_injective(stmt) {
        return Err(Error::source("several points of this statement may write the same element")
            .help("say how they meet, for example with sum, max or last"));
    }
    let fill = |k: usize, dtype: DType| stmt.out.fill.get(k).copied().unwrap_or(dtype.zero());
    let typed = stmt.result_types().into_iter().enumerate();
    Ok(typed.map(|(k, dtype)| TensorType::dense(dtype, stmt.out.shape.clone()).with_fill(fill(k, dtype))).collect())
}

/// An affine access without a guard that leaves its tensor is wrong whatever the data; other cases are checked at run time.
fn check_bounds(stmt: &IndexStmt, types: &[&TensorType]) -> Result<()> {
    let Some(ranges) = stmt.var_ranges() else { return Ok(()) };
    if stmt.has_guard {
        return Ok(());
    }
    let reads = stmt.reads.iter().map(|access| (&access.idx, access.edge, &types[access.operand as usize].shape));
    for (idx, edge, shape) in reads.chain([(&stmt.out.idx, stmt.out.edge, &stmt.out.shape)]) {
        if edge != Edge::Error {
            continue;
        }
        for (axis, (idx, extent)) in idx.iter().zip(shape).enumerate() {
            let (lo, hi) = idx.interval(&ranges);
            let Some(n) = extent.known() else { continue };
            if (lo < 0 || hi >= n as i64) && idx.as_affine(stmt.vars.len()).is_some() {
                let text = idx.display(&stmt.var_names()).to_string();
                return Err(Error::source(format!(
                    "index `{text}` runs from {lo} to {hi}, but axis {axis} has {n} elements"
                ))
                .help("bound the index, or choose an edge rule: fill, clamp or wrap"));
            }
        }
    }
    Ok(())
}

fn infer_scatter(
    op: &Op,
    axes: &[u32],
    extents: &[Extent],
    accum: &Accum,
    types: &[&TensorType],
) -> Result<Vec<TensorType>> {
    if axes.is_empty() || axes.len() != extents.len() {
        return Err(Error::internal("a scatter needs one extent per axis"));
    }
    expect_at_least(op, types, axes.len() + 1)?;
    let (indices, values) = types.split_at(axes.len());
    let value_shape = infer_bodies(op, accum, values)?;
    let index_rank = indices[0].rank();
    let rank = (value_shape.len() + axes.len())
        .checked_sub(index_rank)
        .ok_or_else(|| Error::source("the values of a scatter have fewer axes than its indices"))?;
    let index_shape = index_shape(op, axes, indices, rank)?;
    // The result has the scattered extents at `axes`; the other axes come from the values, around the index axes.
    let first = axes[0] as usize;
    let mut others = value_shape[..first].iter().chain(&value_shape[first + index_rank..]);
    let shape: Vec<Extent> = (0..rank as u32)
        .map(|axis| match axes.iter().position(|&a| a == axis) {
            Some(k) => extents[k],
            None => others.next().copied().unwrap_or(Extent::Known(0)),
        })
        .collect();
    same_shape(op, &gather_shape(&shape, axes, &index_shape), &value_shape)?;
    Ok(accum.result_types().into_iter().map(|dtype| TensorType::dense(dtype, shape.clone())).collect())
}

fn infer_concat(op: &Op, axis: u32, types: &[&TensorType]) -> Result<Vec<TensorType>> {
    expect_at_least(op, types, 1)?;
    let first = types[0];
    check_axis(op, axis, first.rank())?;
    let axis = axis as usize;
    for ty in types {
        let mut shape = ty.shape.clone();
        if ty.rank() == first.rank() {
            shape[axis] = first.shape[axis];
        }
        same_shape(op, &first.shape, &shape)?;
        if ty.dtype != first.dtype {
            return Err(Error::source(format!("concat of {} and {}", first.dtype, ty.dtype)).help("cast one of them"));
        }
    }
    let extents: Vec<Extent> = types.iter().map(|ty| ty.shape[axis]).collect();
    let extents = shape::require_all(&extents, || {
        Error::plan("concat along an axis whose extent depends on data is not supported yet")
    })?;
    let mut total: u64 = 0;
    for extent in extents {
        total = total
            .checked_add(extent)
            .ok_or_else(|| Error::source("the result of concat is longer than can be counted"))?;
    }
    let mut shape = first.shape.clone();
    shape[axis] = Extent::Known(total);
    Ok(vec![TensorType::dense(first.dtype, shape)])
}

fn infer_block_fn(call: &BlockFn, types: &[&TensorType]) -> Result<Vec<TensorType>> {
    let name = call.function.0.name();
    if types.len() != call.operands.len() {
        return Err(Error::source(format!("`{name}` takes {} operands, not {}", call.operands.len(), types.len())));
    }
    // Grid numbers count from 0 without gap, so none can reach the number of modes.
    let n_modes: usize = call.operands.iter().map(Vec::len).sum();
    let mut grid: Vec<Option<Axis>> = Vec::new();
    for (ty, modes) in types.iter().zip(&call.operands) {
        if modes.len() != ty.rank() {
            return Err(Error::source(format!("`{name}` takes a tensor of rank {}, not {}", modes.len(), ty.rank())));
        }
        ty.require_shape()?;
        for (axis, mode) in modes.iter().enumerate() {
            if *mode == OperandMode::Whole {
                continue;
            }
            let cut = match &ty.tiling {
                Some(Tiling::Grid(axes)) => &axes[axis],
                _ => {
                    return Err(Error::source(format!("`{name}` works on blocks, but its operand has no tiling"))
                        .help("retile it first"));
                }
            };
            if let OperandMode::Pick(_, table) = mode
                && let Some(tile) = table.iter().find(|&&tile| tile >= cut.n_tiles())
            {
                return Err(Error::source(format!("`{name}` reads tile {tile} of an axis with {}", cut.n_tiles())));
            }
            let Some((g, cut)) = mode.grid(cut) else { continue };
            if g >= n_modes {
                return Err(Error::source(format!("`{name}` skips a grid number")));
            }
            grid.resize(grid.len().max(g + 1), None);
            match &grid[g] {
                Some(other) if other.n_tiles() != cut.n_tiles() => {
                    return Err(Error::source(format!(
                        "operands of `{name}` have {} and {} tiles",
                        other.n_tiles(),
                        cut.n_tiles()
                    )));
                }
                Some(_) => {}
                None => grid[g] = Some(cut),
            }
        }
    }
    let grid: Grid = grid
        .into_iter()
        .collect::<Option<_>>()
        .ok_or_else(|| Error::source(format!("`{name}` skips a grid number")))?;
    call.results
        .iter()
        .map(|result| {
            let mut seen = vec![false; grid.len()];
            let mut axes: Vec<Axis> = Vec::new();
            for mode in &result.modes {
                axes.push(match *mode {
                    // An empty axis has no tiles, so there would be no block for a call to write.
                    ResultMode::Whole(0) => {
                        return Err(Error::source(format!("a result of `{name}` has empty blocks")));
                    }
                    ResultMode::Whole(n) => Axis::whole(n),
                    ResultMode::Grid(g) | ResultMode::PerBlock(g, _) => {
                        let cut = grid
                            .get(g as usize)
                            .ok_or_else(|| Error::source(format!("`{name}` has no grid number {g}")))?;
                        if std::mem::replace(&mut seen[g as usize], true) {
                            return Err(Error::source(format!("a result of `{name}` uses grid number {g} twice")));
                        }
                        match *mode {
                            ResultMode::PerBlock(_, n) if n > 0 => {
                                let total = n
                                    .checked_mul(cut.n_tiles())
                                    .ok_or_else(|| Error::source("a result is too long"))?;
                                Axis::uniform(total, n)
                            }
                            ResultMode::PerBlock(..) => {
                                return Err(Error::source(format!("a result of `{name}` has empty blocks")));
                            }
                            _ => cut.clone(),
                        }
                    }
                });
            }
            if seen.contains(&false) {
                return Err(Error::source(format!("every call of `{name}` must write its own blocks of each result")));
            }
            let grid = Grid::from(axes);
            Ok(TensorType::known(result.dtype, &grid.shape()).with_tiling(Tiling::Grid(grid)))
        })
        .collect()
}

/// Bodies of scan and scatter: one tensor per lifted value, all of one shape.
fn infer_bodies(op: &Op, accum: &Accum, types: &[&TensorType]) -> Result<Vec<Extent>> {
    expect_args(op, types, accum.lift.params().len())?;
    let bodies: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
    accum.verify(&bodies)?;
    let first = types.first().ok_or_else(|| Error::internal("an accumulator without bodies"))?;
    for ty in types {
        same_shape(op, &first.shape, &ty.shape)?;
    }
    Ok(first.shape.clone())
}

fn index_shape(op: &Op, axes: &[u32], indices: &[&TensorType], rank: usize) -> Result<Vec<Extent>> {
    let increasing = axes.windows(2).all(|w| w[0] < w[1]);
    if !increasing || axes.is_empty() || axes.len() != indices.len() || axes.iter().any(|&a| a as usize >= rank) {
        return Err(Error::source(format!(
            "{} along axes {axes:?} of a tensor of rank {rank} by {} index tensors",
            op.name(),
            indices.len()
        )));
    }
    for ty in indices {
        if ty.dtype != DType::I64 {
            return Err(Error::source(format!("an index tensor of type {}; it must be i64", ty.dtype)));
        }
        same_shape(op, &indices[0].shape, &ty.shape)?;
    }
    Ok(indices[0].shape.clone())
}

fn expect_args(op: &Op, types: &[&TensorType], n: usize) -> Result<()> {
    if types.len() == n {
        Ok(())
    } else {
        Err(Error::source(format!("{} takes {n} operands, not {}", op.name(), types.len())))
    }
}

fn expect_at_least(op: &Op, types: &[&TensorType], n: usize) -> Result<()> {
    if types.len() >= n {
        Ok(())
    } else {
        Err(Error::source(format!("{} takes at least {n} operands, not {}", op.name(), types.len())))
    }
}

fn check_axis(op: &Op, axis: u32, rank: usize) -> Result<()> {
    if (axis as usize) < rank {
        Ok(())
    } else {
        Err(Error::source(format!("{} along axis {axis} of a tensor of rank {rank}", op.name())))
    }
}

fn same_shape(op: &Op, a: &[Extent], b: &[Extent]) -> Result<()> {
    shape::require_equal(a, b, || {
        let (a, b) = (shape::display_extents(a), shape::display_extents(b));
        Error::source(format!("{} of shapes {a} and {b}", op.name()))
    })
}

fn types_of<'a>(values: &'a PrimaryMap<ValueId, ValueInfo>, of: &[ValueId]) -> Vec<&'a TensorType> {
    of.iter().map(|&value| &values[value].ty).collect()
}

fn expect_bool(types: &[&TensorType]) -> Result<()> {
    match types {
        [ty] if ty.same_shape(&TensorType::scalar(DType::Bool)) => Ok(()),
        [ty] => Err(Error::source(format!("a condition must be a bool scalar, not {ty}"))),
        _ => Err(Error::internal("a condition is one value")),
    }
}

fn expect_carried(
    values: &PrimaryMap<ValueId, ValueInfo>,
    types: &[&TensorType],
    region: &Region,
    what: &str,
) -> Result<()> {
    expect_results(values, types, &region.params).map_err(|error| error.note(format!("in {what} of a while loop")))
}

fn expect_results(values: &PrimaryMap<ValueId, ValueInfo>, types: &[&TensorType], given: &[ValueId]) -> Result<()> {
    if types.len() != given.len() {
        return Err(Error::internal(format!("{} values where {} are expected", given.len(), types.len())));
    }
    for (ty, &value) in types.iter().zip(given) {
        let info = &values[value];
        if !ty.same_shape(&info.ty) {
            let name = info.name.clone().unwrap_or_else(|| value.to_string());
            return Err(Error::source(format!("`{name}` changes its type from {ty} to {}", info.ty))
                .help("values carried through a loop or an if keep their dtype and shape"));
        }
    }
    Ok(())
}
