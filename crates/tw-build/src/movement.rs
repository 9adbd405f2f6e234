//! Operators other than index statements: scans, sorts, gathers, concatenations.

use tw_ir::error::Blame;
use tw_ir::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use tw_ir::{
    Accum, BinaryOp, DType, Edge, Error, Extent, OnEmpty, Op, Result, Scalar, ScalarCode, Slot, TensorType, shape,
};

use super::axes::{check_axes, display_shape, types_first};
use super::elementwise::{cast, mapped, select};
use super::layout::expand_dims;
use super::promote::{common, emit_cast};
use super::reduce::Reduction;
use super::statement::StatementBuilder;

/// Several operands through one node. Each operand with a `prepare` goes through that node first; then all of them, in order, through `join`.
#[derive(Clone, Debug)]
pub struct Joined {
    /// One per operand; `None` if the operand is used as it is.
    pub prepare: Vec<Option<Op>>,
    /// The node that takes all operands.
    pub join: Op,
}

/// A running aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanKind {
    /// Running sum; bools are counted.
    Sum,
    /// Running product.
    Prod,
    /// Smallest so far.
    Min,
    /// Largest so far.
    Max,
}

/// A running aggregate along an axis: each element sees those up to and including itself.
pub fn scan(x: &TensorType, kind: ScanKind, axis: usize) -> Result<Op> {
    check_axes(&[axis], x.rank())?;
    let reduction = match kind {
        ScanKind::Sum => Reduction::Sum,
        ScanKind::Prod => Reduction::Prod,
        ScanKind::Min => Reduction::Min,
        ScanKind::Max => Reduction::Max,
    };
    let dtype = reduction.working_type(x.dtype);
    let mut accum = reduction.accum(dtype)?;
    // No element sees nothing.
    accum.on_empty = OnEmpty::Identity;
    if dtype != x.dtype {
        let mut lift = ScalarCode::new(vec![x.dtype]);
        let value = lift.param(0);
        let value = lift.cast(dtype, value);
        let state = lift.inline(&accum.lift, &[value])?;
        lift.set_results(state);
        accum.lift = lift;
    }
    Ok(Op::Scan(ScanSpec { accum, axis: axis as u32, exclusive: false, reverse: false }))
}

/// A sort, and what has to happen around it: halves are sorted as singles, and times as integers of which NaT is the largest.
#[derive(Clone, Debug)]
pub struct Sorted {
    /// Makes what is sorted from the operand; `None` if it is sorted as it is.
    pub prepare: Option<Op>,
    /// The sort itself, with two results: the values and their positions before.
    pub sort: Op,
    /// Makes the values from those that were sorted.
    pub restore: Option<Op>,
}

/// A stable sort along an axis. NaN and NaT come last.
pub fn sort(x: &TensorType, axis: usize, descending: bool) -> Result<Sorted> {
    sorted(x, axis, descending, None)
}

/// The `n` largest elements along an axis (or the smallest), in that order. NaN and NaT count as larger than everything; among equal elements the
/// earlier ones are taken.
pub fn topk(x: &TensorType, n: u64, axis: usize, largest: bool) -> Result<Sorted> {
    sorted(x, axis, largest, Some(n))
}

fn sorted(x: &TensorType, axis: usize, descending: bool, limit: Option<u64>) -> Result<Sorted> {
    check_axes(&[axis], x.rank())?;
    let sort = Op::Sort { spec: SortSpec { axis: axis as u32, descending }, limit };
    let as_sorted = |dtype: DType| {
        let mut ty = TensorType::dense(dtype, x.shape.clone());
        if let Some(n) = limit {
            ty.shape[axis] = Extent::Known(n);
        }
        ty
    };
    match x.dtype {
        dtype if dtype.is_half() => {
            let restore = cast(&as_sorted(DType::F32), dtype)?;
            Ok(Sorted { prepare: Some(cast(x, DType::F32)?), sort, restore: Some(restore) })
        }
        dtype if dtype.is_time() => {
            let restore = mapped(&as_sorted(DType::U64), |code, key| shifted(code, BinaryOp::Add, key, dtype))?;
            let prepare = mapped(x, |code, a| shifted(code, BinaryOp::Sub, a, DType::U64))?;
            Ok(Sorted { prepare: Some(prepare), sort, restore: Some(restore) })
        }
        dtype if dtype.is_complex() => {
            Err(Error::types(format!("a sort of {dtype}")).help("sort their real parts or magnitudes"))
        }
        _ => Ok(Sorted { prepare: None, sort, restore: None }),
    }
}

/// Times as unsigned integers in their order, and back: NaT, the smallest i64, becomes the largest u64.
fn shifted(code: &mut ScalarCode, op: BinaryOp, a: Slot, to: DType) -> Result<Slot> {
    let (one, sign) = (code.constant(Scalar::U64(1)), code.constant(Scalar::U64(1 << 63)));
    let bits = code.cast(DType::I64, a);
    let bits = code.cast(DType::U64, bits);
    let bits = if op == BinaryOp::Sub {
        let flipped = code.binary(BinaryOp::Xor, bits, sign)?;
        code.binary(op, flipped, one)?
    } else {
        let raised = code.binary(op, bits, one)?;
        code.binary(BinaryOp::Xor, raised, sign)?
    };
    let count = code.cast(DType::I64, bits);
    Ok(if to == DType::U64 { bits } else { code.cast(to, count) })
}

/// The same elements in row-major order under another shape. One extent may be -1: it follows from the others.
pub fn reshape(x: &TensorType, to: &[i64]) -> Result<Op> {
    let wrong = |why: &str| {
        let wanted: Vec<String> = to.iter().map(i64::to_string).collect();
        Error::source(format!(
            "a tensor of shape {} does not reshape to [{}]",
            display_shape(&x.shape),
            wanted.join(", ")
        ))
        .help(why)
    };
    let open: Vec<usize> = (0..to.len()).filter(|&k| to[k] == -1).collect();
    if to.iter().any(|&n| n < -1) {
        return Err(wrong("extents are not negative; -1 stands for the one that follows from the others"));
    }
    if open.len() > 1 {
        return Err(wrong("only one extent can be -1"));
    }
    let mut extents: Vec<Extent> = to.iter().map(|&n| Extent::Known(n.max(0) as u64)).collect();
    if let Some(&open) = open.first() {
        // A vector of unknown length stays one.
        if let ([extent @ Extent::Deferred(_)], 1) = (x.shape.as_slice(), extents.len()) {
            return Ok(Op::Reshape { shape: vec![*extent] });
        }
        let from = shape::require_all(&x.shape, || Error::plan("a reshape whose extents depend on data"))?;
        let given: Vec<u64> = to.iter().filter(|&&n| n != -1).map(|&n| n as u64).collect();
        let (total, known) = (shape::n_elements(&from)?, shape::n_elements(&given)?);
        if known == 0 || total % known != 0 {
            return Err(wrong("the elements cannot be divided evenly"));
        }
        extents[open] = Extent::Known(total / known);
    } else if let Some(from) = x.known_shape() {
        let given: Vec<u64> = to.iter().map(|&n| n as u64).collect();
        let (have, need) = (shape::n_elements(&from)?, shape::n_elements(&given)?);
        if have != need {
            return Err(wrong(&format!("it has {have} elements, not {need}")));
        }
    }
    Ok(Op::Reshape { shape: extents })
}

/// Operands one after the other along an axis; types are promoted.
pub fn concat(types: &[&TensorType], axis: usize) -> Result<Joined> {
    let first = types.first().ok_or_else(|| Error::source("concat of no operands"))?;
    check_axes(&[axis], first.rank())?;
    let dtypes = || types.iter().map(|ty| ty.dtype);
    let others = |ty: &TensorType| -> Vec<Extent> {
        ty.shape.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, extent)| *extent).collect()
    };
    for ty in types {
        let fits = shape::require_equal(&others(first), &others(ty), || {
            let (a, b) = (display_shape(&first.shape), display_shape(&ty.shape));
            Error::source(format!("concat of shapes {a} and {b} along axis {axis}"))
                .help("all other axes must be equal")
        });
        types_first(fits, dtypes())?;
    }
    let dtype = common(dtypes())?;
    let prepare =
        types.iter().map(|ty| (ty.dtype != dtype).then(|| cast(ty, dtype)).transpose()).collect::<Result<_>>()?;
    Ok(Joined { prepare, join: Op::Concat { axis: axis as u32 } })
}

/// Operands of one shape along a new axis; types are promoted.
pub fn stack(types: &[&TensorType], axis: usize) -> Result<Joined> {
    let first = types.first().ok_or_else(|| Error::source("stack of no operands"))?;
    let dtypes = || types.iter().map(|ty| ty.dtype);
    for ty in types {
        let fits = shape::require_equal(&first.shape, &ty.shape, || {
            let (a, b) = (display_shape(&first.shape), display_shape(&ty.shape));
            Error::source(format!("stack of shapes {a} and {b}; they must be equal"))
        });
        types_first(fits, dtypes())?;
    }
    let dtype = common(dtypes())?;
    let prepare = types
        .iter()
        .map(|ty| {
            let Op::Index(mut statement) = expand_dims(ty, axis)? else {
                return Err(Error::internal("a new axis is an index statement"));
            };
            let body = statement.code.results()[0];
            let body = emit_cast(&mut statement.code, dtype, body)?;
            statement.code.set_results(vec![body]);
            statement.out.fill = vec![ty.fill.cast(dtype)];
            Ok(Some(Op::Index(statement)))
        })
        .collect::<Result<_>>()?;
    Ok(Joined { prepare, join: Op::Concat { axis: axis as u32 } })
}

/// Elements of `data` (the first operand) where the index tensor (the second) says, along one axis. Negative indices count from the end.
pub fn take(data: &TensorType, index: &TensorType, axis: usize) -> Result<Joined> {
    gather(data, &[index], &[axis], Edge::Error)
}

/// `data[.., index, ..]` with one index tensor per axis, all of one shape. Operands: data, then the indices.
pub fn gather(data: &TensorType, indices: &[&TensorType], axes: &[usize], edge: Edge) -> Result<Joined> {
    check_axes(axes, data.rank())?;
    let extents: Vec<Extent> = axes.iter().map(|&axis| data.shape[axis]).collect();
    let mut prepare = vec![None];
    prepare.extend(prepare_indices(indices, &extents, edge)?);
    Ok(Joined { prepare, join: Op::Gather(GatherSpec { axes: axes.iter().map(|&axis| axis as u32).collect(), edge }) })
}

/// Contributions of `values` to the elements that the indices name, combined by the reduction. Operands: the indices, then the values.
///
/// Elements that nothing contributes to hold the identity of the reduction; with `min` and `max`, whose groups may not be empty in NumPy,
/// they are errors.
pub fn scatter(
    indices: &[&TensorType],
    values: &TensorType,
    axes: &[usize],
    extents: &[Extent],
    kind: Reduction,
    edge: Edge,
) -> Result<Joined> {
    if kind.takes_position() {
        return Err(Error::source(format!("`{}` does not combine scattered values", kind.name())));
    }
    let mut prepare = prepare_indices(indices, extents, edge)?;
    let working = kind.working_type(values.dtype);
    let body = if kind == Reduction::Count { DType::I64 } else { working };
    prepare.push(match (kind, values.dtype) {
        (Reduction::Count, dtype) if dtype != DType::Bool => Some(select(values, Scalar::I64(1), Scalar::I64(0))?),
        (_, dtype) if dtype != body => Some(cast(values, body)?),
        _ => None,
    });
    let axes = axes.iter().map(|&axis| axis as u32).collect();
    Ok(Joined {
        prepare,
        join: Op::Scatter { spec: ScatterSpec { axes, accum: kind.accum(working)?, edge }, extents: extents.to_vec() },
    })
}

/// The values with the largest positions among those for each element that an index tensor names: what assignments one after the other leave.
/// Elements that nothing names are zero. Operands: the indices, the values, and their positions.
pub fn scatter_last(index: &TensorType, values: &TensorType, extent: Extent) -> Result<Joined> {
    let mut prepare = prepare_indices(&[index], &[extent], Edge::Error)?;
    prepare.extend([None, None]);
    let accum = Accum::last(values.dtype, values.dtype.zero());
    let spec = ScatterSpec { axes: vec![0], accum, edge: Edge::Error };
    Ok(Joined { prepare, join: Op::Scatter { spec, extents: vec![extent] } })
}

/// Indices as i64, with negative ones counted from the end unless an edge rule gives them another meaning.
fn prepare_indices(indices: &[&TensorType], extents: &[Extent], edge: Edge) -> Result<Vec<Option<Op>>> {
    indices
        .iter()
        .zip(extents)
        .map(|(index, extent)| {
            if !index.dtype.is_integer() {
                let error = Error::indices(
                    Blame::Source,
                    format!("an index tensor of type {}; it must be an integer", index.dtype),
                );
                return Err(if index.dtype == DType::Bool { error.help("a mask selects with x[mask]") } else { error });
            }
            match extent {
                Extent::Known(n) if edge == Edge::Error => Ok(Some(counted_from_end(index, *n)?)),
                _ if index.dtype != DType::I64 => Ok(Some(cast(index, DType::I64)?)),
                _ => Ok(None),
            }
        })
        .collect()
}

fn counted_from_end(index: &TensorType, n: u64) -> Result<Op> {
    let mut statement = StatementBuilder::of(index);
    let at = statement.read(0);
    let code = &mut statement.code;
    let at = code.cast(DType::I64, at);
    let (zero, n) = (code.constant(Scalar::I64(0)), code.constant(Scalar::I64(n as i64)));
    let negative = code.binary(BinaryOp::Lt, at, zero)?;
    let from_end = code.binary(BinaryOp::Add, at, n)?;
    let body = code.select(negative, from_end, at)?;
    Ok(statement.elementwise(body))
}
