//! Operations by name. Each is one line: the builder decides types and shapes, and the tensor gets one more node.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use tilewright::Axis;
use tilewright::build::{self, Overlap, Reduction, ScanKind, SliceItem};
use tilewright::ir::program::{Op, SourceOp};
use tilewright::ir::{BinaryOp, Edge, Extent, UnaryOp};

use crate::apply::{Argument, apply, apply_to, compute_extents, inner, make, types};
use crate::convert::array_of;
use crate::dtypes::{dtype, literal, scalar};
use crate::errors::{OrRaise, exception};
use crate::tensor::Tensor;

fn named<T: std::str::FromStr>(name: &str) -> PyResult<T> {
    name.parse().map_err(|_| PyValueError::new_err(format!("there is no operation {name}")))
}

/// An axis of a tensor, counted from the front.
fn axis_of(x: &Tensor, axis: i64) -> PyResult<usize> {
    build::normalize_axis(axis, x.0.ty().rank()).or_raise()
}

/// Axes of a tensor, counted from the front.
fn axes_of(x: &Tensor, axes: &[i64]) -> PyResult<Vec<usize>> {
    build::normalize_axes(axes, x.0.ty().rank()).or_raise()
}

fn known(shape: &[u64]) -> Vec<Extent> {
    shape.iter().map(|&n| Extent::Known(n)).collect()
}

/// A function of every element.
#[pyfunction]
pub(crate) fn unary(py: Python<'_>, op: &str, x: &Tensor) -> PyResult<Tensor> {
    let op: UnaryOp = named(op)?;
    apply(py, &[&x.0], || build::unary(op, x.0.ty()))
}

/// A function of elements of two tensors, or of one and a number.
#[pyfunction]
pub(crate) fn binary(py: Python<'_>, op: &str, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let op: BinaryOp = named(op)?;
    let (a, b) = (Argument::of(a)?, Argument::of(b)?);
    apply_to(py, &[&a, &b], || build::binary(op, a.operand(), b.operand()))
}

/// `and`, `or` or `xor` of truth values.
#[pyfunction]
pub(crate) fn logical(py: Python<'_>, op: &str, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let op: BinaryOp = named(op)?;
    let (a, b) = (Argument::of(a)?, Argument::of(b)?);
    apply_to(py, &[&a, &b], || build::logical(op, a.operand(), b.operand()))
}

/// True where an element is zero or false.
#[pyfunction]
pub(crate) fn logical_not(py: Python<'_>, x: &Tensor) -> PyResult<Tensor> {
    apply(py, &[&x.0], || build::logical_not(x.0.ty()))
}

/// One value where the condition holds, another elsewhere.
#[pyfunction]
pub(crate) fn where_(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    yes: &Bound<'_, PyAny>,
    no: &Bound<'_, PyAny>,
) -> PyResult<Tensor> {
    let (condition, yes, no) = (Argument::of(condition)?, Argument::of(yes)?, Argument::of(no)?);
    apply_to(py, &[&condition, &yes, &no], || build::select(condition.operand(), yes.operand(), no.operand()))
}

/// Another element type.
#[pyfunction]
pub(crate) fn cast(py: Python<'_>, x: &Tensor, dtype_name: &str) -> PyResult<Tensor> {
    let dtype = dtype(dtype_name)?;
    apply(py, &[&x.0], || build::cast(x.0.ty(), dtype))
}

/// An aggregate along axes, or of everything.
#[pyfunction]
#[pyo3(signature = (kind, x, axes=None, keepdims=false, ddof=0.0))]
pub(crate) fn reduce(
    py: Python<'_>,
    kind: &str,
    x: &Tensor,
    axes: Option<Vec<i64>>,
    keepdims: bool,
    ddof: f64,
) -> PyResult<Tensor> {
    let kind = match kind {
        "var" => Reduction::Var { ddof },
        "std" => Reduction::Std { ddof },
        name => Reduction::named(name).ok_or_else(|| PyValueError::new_err(format!("there is no reduction {name}")))?,
    };
    let axes = axes.map(|axes| axes_of(x, &axes)).transpose()?;
    apply(py, &[&x.0], || build::reduce(x.0.ty(), kind, axes.as_deref(), keepdims))
}

/// A running aggregate along an axis.
#[pyfunction]
pub(crate) fn scan(py: Python<'_>, kind: &str, x: &Tensor, axis: i64) -> PyResult<Tensor> {
    let kind = match kind {
        "sum" => ScanKind::Sum,
        "prod" => ScanKind::Prod,
        "min" => ScanKind::Min,
        "max" => ScanKind::Max,
        other => return Err(PyValueError::new_err(format!("there is no running {other}"))),
    };
    let axis = axis_of(x, axis)?;
    apply(py, &[&x.0], || build::scan(x.0.ty(), kind, axis))
}

/// Sorted values along an axis, and their positions before; with a limit, only so many from the first on.
#[pyfunction]
#[pyo3(signature = (x, axis, descending=false, limit=None))]
pub(crate) fn sort(
    py: Python<'_>,
    x: &Tensor,
    axis: i64,
    descending: bool,
    limit: Option<u64>,
) -> PyResult<(Tensor, Tensor)> {
    let axis = axis_of(x, axis)?;
    let (values, positions) = make(py, &[&x.0], || match limit {
        None => x.0.sorted(build::sort(x.0.ty(), axis, descending)?),
        Some(n) => {
            let ty = x.0.ty();
            let sorted = build::topk(ty, n, axis, descending)?;
            // More than there are is an error of this call.
            ty.require_shape()?;
            x.0.sorted(sorted)
        }
    })?;
    Ok((Tensor(values), Tensor(positions)))
}

/// Elements that index tensors of one shape name along some axes.
#[pyfunction]
pub(crate) fn gather(py: Python<'_>, x: &Tensor, indices: Vec<Bound<'_, Tensor>>, axes: Vec<i64>) -> PyResult<Tensor> {
    let axes = axes_of(x, &axes)?;
    let mut tensors = vec![&x.0];
    tensors.extend(inner(&indices));
    let gathered = || {
        let ty = x.0.ty();
        let gathered = build::gather(ty, &types(&tensors[1..]), &axes, Edge::Error)?;
        // Negative indices count from the end.
        ty.require_shape()?;
        Ok(gathered)
    };
    make(py, &tensors, || tilewright::joined(gathered()?, &tensors)).map(Tensor)
}

/// As `gather`, with indices that are inside and known now: arrays of int64 of one shape. The plan then reads what they name and nothing else.
#[pyfunction]
pub(crate) fn gather_known(
    py: Python<'_>,
    x: &Tensor,
    indices: Vec<Bound<'_, PyAny>>,
    axes: Vec<i64>,
) -> PyResult<Tensor> {
    let axes = axes_of(x, &axes)?;
    let constant = |index: &Bound<'_, PyAny>| {
        let array = Arc::new(array_of(index, "int64")?);
        apply(py, &[], || Ok(Op::Source(SourceOp::Constant(array.clone()))))
    };
    let indices: Vec<Tensor> = indices.iter().map(constant).collect::<PyResult<_>>()?;
    let mut tensors = vec![&x.0];
    tensors.extend(indices.iter().map(|index| &index.0));
    // None is outside, so none has to be checked: clamping says so.
    let gathered = || build::gather(x.0.ty(), &types(&tensors[1..]), &axes, Edge::Clamp);
    make(py, &tensors, || tilewright::joined(gathered()?, &tensors)).map(Tensor)
}

/// Contributions to the elements of a tensor that index tensors name along its first axes.
///
/// Indices that are known to be inside need no look for negative ones.
#[pyfunction]
#[pyo3(signature = (kind, indices, values, extents, inside=false))]
pub(crate) fn scatter(
    py: Python<'_>,
    kind: &str,
    indices: Vec<Bound<'_, Tensor>>,
    values: &Tensor,
    extents: Vec<u64>,
    inside: bool,
) -> PyResult<Tensor> {
    let edge = if inside { Edge::Clamp } else { Edge::Error };
    let kind = Reduction::named(kind).ok_or_else(|| PyValueError::new_err(format!("there is no reduction {kind}")))?;
    let axes: Vec<usize> = (0..extents.len()).collect();
    let indices = inner(&indices);
    let scattered = || build::scatter(&types(&indices), values.0.ty(), &axes, &known(&extents), kind, edge);
    let mut tensors = indices.clone();
    tensors.push(&values.0);
    make(py, &tensors, || tilewright::joined(scattered()?, &tensors)).map(Tensor)
}

/// The value with the largest position for each element of a vector that an index names, and zero elsewhere.
#[pyfunction]
pub(crate) fn scatter_last(
    py: Python<'_>,
    index: &Tensor,
    values: &Tensor,
    positions: &Tensor,
    extent: u64,
) -> PyResult<Tensor> {
    let scattered = || build::scatter_last(index.0.ty(), values.0.ty(), Extent::Known(extent));
    let tensors = [&index.0, &values.0, &positions.0];
    make(py, &tensors, || tilewright::joined(scattered()?, &tensors)).map(Tensor)
}

/// The elements under a mask, in row-major order. Their number is computed with them, or when the shape is requested.
#[pyfunction]
pub(crate) fn compact(py: Python<'_>, x: &Tensor, mask: &Tensor) -> PyResult<Tensor> {
    make(py, &[&x.0, &mask.0], || x.0.compact_lazily(&mask.0)).map(Tensor)
}

/// The row-major positions where a mask holds.
#[pyfunction]
pub(crate) fn positions(py: Python<'_>, mask: &Tensor) -> PyResult<Tensor> {
    make(py, &[&mask.0], || mask.0.positions()).map(Tensor)
}

/// Elements under a mask replaced by those of a vector, in row-major order.
#[pyfunction]
pub(crate) fn expand(py: Python<'_>, x: &Tensor, mask: &Tensor, values: &Tensor) -> PyResult<Tensor> {
    make(py, &[&x.0, &mask.0, &values.0], || x.0.expand(&mask.0, &values.0)).map(Tensor)
}

/// Matrix product of tensors of any rank.
#[pyfunction]
pub(crate) fn matmul(py: Python<'_>, a: &Tensor, b: &Tensor) -> PyResult<Tensor> {
    apply(py, &[&a.0, &b.0], || build::matmul(a.0.ty(), b.0.ty()))
}

/// Sums of products over pairs of axes.
#[pyfunction]
pub(crate) fn tensordot(py: Python<'_>, a: &Tensor, b: &Tensor, pairs: Vec<(usize, usize)>) -> PyResult<Tensor> {
    apply(py, &[&a.0, &b.0], || build::tensordot(a.0.ty(), b.0.ty(), &pairs))
}

/// Einstein's notation.
#[pyfunction]
pub(crate) fn einsum(py: Python<'_>, spec: &str, tensors: Vec<Bound<'_, Tensor>>) -> PyResult<Tensor> {
    let tensors = inner(&tensors);
    apply(py, &tensors, || build::einsum(spec, &types(&tensors)))
}

/// The pairs in which the planner multiplies the operands of Einstein's notation, and their operations.
#[pyfunction]
pub(crate) fn einsum_path(
    py: Python<'_>,
    spec: &str,
    tensors: Vec<Bound<'_, Tensor>>,
) -> PyResult<(Vec<(usize, usize)>, f64)> {
    let tensors = inner(&tensors);
    let order = make(py, &tensors, || build::einsum_path(spec, &types(&tensors)))?;
    Ok((order.pairs, order.operations))
}

/// Axes in another order.
#[pyfunction]
pub(crate) fn permute(py: Python<'_>, x: &Tensor, order: Vec<i64>) -> PyResult<Tensor> {
    let order = axes_of(x, &order)?;
    apply(py, &[&x.0], || build::permute(x.0.ty(), &order))
}

/// The same elements under another shape.
#[pyfunction]
pub(crate) fn reshape(py: Python<'_>, x: &Tensor, shape: Vec<i64>) -> PyResult<Tensor> {
    apply(py, &[&x.0], || {
        let ty = x.0.ty();
        let op = build::reshape(ty, &shape)?;
        if shape != [-1] {
            // A shape for another number of elements is an error of this call.
            ty.require_shape()?;
        }
        Ok(op)
    })
}

/// Repeated along axes of extent 1 and new ones in front.
#[pyfunction]
pub(crate) fn broadcast_to(py: Python<'_>, x: &Tensor, shape: Vec<u64>) -> PyResult<Tensor> {
    apply(py, &[&x.0], || build::broadcast_to(x.0.ty(), &known(&shape)))
}

/// The shape where shapes meet.
#[pyfunction]
pub(crate) fn broadcast_shapes(shapes: Vec<Vec<u64>>) -> PyResult<Vec<u64>> {
    let shapes: Vec<Vec<Extent>> = shapes.iter().map(|shape| known(shape)).collect();
    let shape = build::broadcast_shapes(&shapes.iter().map(Vec::as_slice).collect::<Vec<_>>()).or_raise()?;
    Ok(shape.into_iter().filter_map(Extent::known).collect())
}

/// A new axis of extent 1.
#[pyfunction]
pub(crate) fn expand_dims(py: Python<'_>, x: &Tensor, position: usize) -> PyResult<Tensor> {
    apply(py, &[&x.0], || build::expand_dims(x.0.ty(), position))
}

/// Without some axes of extent 1.
#[pyfunction]
pub(crate) fn squeeze(py: Python<'_>, x: &Tensor, axes: Vec<i64>) -> PyResult<Tensor> {
    let axes = axes_of(x, &axes)?;
    apply(py, &[&x.0], || build::squeeze(x.0.ty(), &axes))
}

/// Reversed along some axes.
#[pyfunction]
pub(crate) fn flip(py: Python<'_>, x: &Tensor, axes: Vec<i64>) -> PyResult<Tensor> {
    let axes = axes_of(x, &axes)?;
    apply(py, &[&x.0], || build::flip(x.0.ty(), &axes))
}

/// Moved along an axis, around its end.
#[pyfunction]
pub(crate) fn roll(py: Python<'_>, x: &Tensor, shift: i64, axis: i64) -> PyResult<Tensor> {
    let axis = axis_of(x, axis)?;
    apply(py, &[&x.0], || build::roll(x.0.ty(), shift, axis))
}

/// Every element several times along an axis.
#[pyfunction]
pub(crate) fn repeat(py: Python<'_>, x: &Tensor, times: u64, axis: i64) -> PyResult<Tensor> {
    let axis = axis_of(x, axis)?;
    apply(py, &[&x.0], || build::repeat(x.0.ty(), times, axis))
}

/// A diagonal of two axes, as the last axis.
#[pyfunction]
pub(crate) fn diagonal(py: Python<'_>, x: &Tensor, offset: i64, axis1: i64, axis2: i64) -> PyResult<Tensor> {
    apply(py, &[&x.0], || build::diagonal(x.0.ty(), offset, (axis1, axis2)))
}

/// On and below a diagonal; zero above.
#[pyfunction]
pub(crate) fn tril(py: Python<'_>, x: &Tensor, k: i64) -> PyResult<Tensor> {
    apply(py, &[&x.0], || build::tril(x.0.ty(), k))
}

/// On and above a diagonal; zero below.
#[pyfunction]
pub(crate) fn triu(py: Python<'_>, x: &Tensor, k: i64) -> PyResult<Tensor> {
    apply(py, &[&x.0], || build::triu(x.0.ty(), k))
}

/// One after the other along an axis.
#[pyfunction]
pub(crate) fn concat(py: Python<'_>, tensors: Vec<Bound<'_, Tensor>>, axis: i64) -> PyResult<Tensor> {
    let tensors = inner(&tensors);
    let rank = tensors.first().map_or(0, |tensor| tensor.ty().rank());
    let axis = build::normalize_axis(axis, rank).or_raise()?;
    make(py, &tensors, || tilewright::joined(build::concat(&types(&tensors), axis)?, &tensors)).map(Tensor)
}

/// Side by side along a new axis.
#[pyfunction]
pub(crate) fn stack(py: Python<'_>, tensors: Vec<Bound<'_, Tensor>>, axis: i64) -> PyResult<Tensor> {
    let tensors = inner(&tensors);
    let rank = tensors.first().map_or(0, |tensor| tensor.ty().rank());
    let axis = build::normalize_axis(axis, rank + 1).or_raise()?;
    make(py, &tensors, || tilewright::joined(build::stack(&types(&tensors), axis)?, &tensors)).map(Tensor)
}

fn items(key: &Bound<'_, PyTuple>) -> PyResult<Vec<SliceItem>> {
    key.iter()
        .map(|item| {
            if item.is_none() {
                return Ok(SliceItem::NewAxis);
            }
            if item.is_instance_of::<PyEllipsis>() {
                return Ok(SliceItem::Ellipsis);
            }
            if let Ok(slice) = item.cast::<PySlice>() {
                let part = |name: &str| -> PyResult<Option<i64>> {
                    let value = slice.getattr(name)?;
                    if value.is_none() {
                        return Ok(None);
                    }
                    let whole = value.call_method0("__index__").map_err(|_| {
                        PyTypeError::new_err("slices are made of integers, None or what has an __index__ method")
                    })?;
                    whole.extract().map(Some)
                };
                let step = part("step")?.unwrap_or(1);
                return Ok(SliceItem::Slice { start: part("start")?, stop: part("stop")?, step });
            }
            let index = item.call_method0("__index__").map_err(|_| {
                PyTypeError::new_err("an index is an integer, a slice, None, ... or an array of integers or bools")
            })?;
            Ok(SliceItem::Index(index.extract()?))
        })
        .collect()
}

/// `x[..]` with integers, slices, None and `...`.
#[pyfunction]
pub(crate) fn slice(py: Python<'_>, x: &Tensor, key: &Bound<'_, PyTuple>) -> PyResult<Tensor> {
    let items = items(key)?;
    apply(py, &[&x.0], || {
        let ty = x.0.ty();
        let op = build::slice(ty, &items)?;
        if items.iter().any(|item| matches!(item, SliceItem::Index(_))) {
            // An index outside is an error of this call.
            ty.require_shape()?;
        }
        Ok(op)
    })
}

/// `x[..] = value` as a function.
#[pyfunction]
pub(crate) fn replace(
    py: Python<'_>,
    x: &Tensor,
    key: &Bound<'_, PyTuple>,
    value: &Bound<'_, PyAny>,
) -> PyResult<Tensor> {
    let (items, value) = (items(key)?, Argument::of(value)?);
    let op = || build::replace(x.0.ty(), &items, value.operand());
    match &value {
        Argument::Tensor(tensor) => apply(py, &[&x.0, &tensor.get().0], op),
        Argument::Number(_) => apply(py, &[&x.0], op),
    }
}

/// Blocks one after the other, each with elements of its neighbours: per axis the length of a block, how many elements come from before and
/// after it, and whether the ends have them, too.
#[pyfunction]
pub(crate) fn overlap(py: Python<'_>, x: &Tensor, axes: Vec<(u64, u64, u64, bool)>) -> PyResult<Tensor> {
    let axis = |(tile, before, after, border)| Overlap { tile, before, after, border };
    let axes: Vec<Overlap> = axes.into_iter().map(axis).collect();
    apply(py, &[&x.0], || build::overlap(x.0.ty(), &axes))
}

/// Blocks of other lengths.
#[pyfunction]
pub(crate) fn rechunk(py: Python<'_>, x: &Tensor, chunks: Vec<Vec<u64>>) -> PyResult<Tensor> {
    // Blocks without elements are none.
    let axis = |lengths: &Vec<u64>| match lengths.iter().copied().filter(|&n| n > 0).collect::<Vec<u64>>() {
        lengths if lengths.is_empty() => Ok(Axis::whole(0)),
        lengths => Axis::from_lengths(&lengths),
    };
    let axes = chunks.iter().map(axis).collect::<Result<Vec<_>, _>>().or_raise()?;
    compute_extents(py, &[&x.0])?;
    make(py, &[&x.0], || x.0.rechunk(&axes)).map(Tensor)
}

/// The same tensor, of which users see the blocks of another one that has the same elements.
#[pyfunction]
pub(crate) fn seen_as(py: Python<'_>, x: &Tensor, whole: &Tensor) -> PyResult<Tensor> {
    make(py, &[], || x.0.seen_as(&whole.0)).map(Tensor)
}

/// One value everywhere.
#[pyfunction]
pub(crate) fn full(py: Python<'_>, shape: Vec<u64>, value: &Bound<'_, PyAny>, dtype_name: &str) -> PyResult<Tensor> {
    let (value, dtype) = (literal(value)?, dtype(dtype_name)?);
    apply(py, &[], || Ok(build::full(&known(&shape), value.cast(dtype)?)))
}

/// Evenly spaced values by the first two of them.
#[pyfunction]
pub(crate) fn progression(
    py: Python<'_>,
    first: &Bound<'_, PyAny>,
    second: &Bound<'_, PyAny>,
    n: u64,
    dtype_name: &str,
) -> PyResult<Tensor> {
    let (first, second, dtype) = (scalar(first)?, scalar(second)?, dtype(dtype_name)?);
    apply(py, &[], || build::progression(first, second, n, dtype))
}

/// Evenly spaced values by their number.
#[pyfunction]
pub(crate) fn linspace(
    py: Python<'_>,
    start: f64,
    stop: f64,
    n: u64,
    endpoint: bool,
    dtype_name: &str,
) -> PyResult<Tensor> {
    let dtype = dtype(dtype_name)?;
    apply(py, &[], || build::linspace(start, stop, n, endpoint, dtype))
}

/// Ones on a diagonal.
#[pyfunction]
pub(crate) fn eye(py: Python<'_>, n: u64, m: u64, k: i64, dtype_name: &str) -> PyResult<Tensor> {
    let dtype = dtype(dtype_name)?;
    apply(py, &[], || build::eye(n, m, k, dtype))
}

/// The position along an axis.
#[pyfunction]
pub(crate) fn coordinate(py: Python<'_>, shape: Vec<u64>, axis: usize) -> PyResult<Tensor> {
    apply(py, &[], || Ok(build::coordinate(&known(&shape), axis)))
}

/// The position along an axis, in the shape of a tensor.
#[pyfunction]
pub(crate) fn coordinate_of(py: Python<'_>, x: &Tensor, axis: i64) -> PyResult<Tensor> {
    let axis = axis_of(x, axis)?;
    make(py, &[&x.0], || x.0.coordinate(axis)).map(Tensor)
}

/// Random numbers that depend on the seed and their position alone.
#[pyfunction]
pub(crate) fn random(
    py: Python<'_>,
    kind: &str,
    shape: Vec<u64>,
    seed: u64,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> PyResult<Tensor> {
    let op = match kind {
        "uniform" => build::random_uniform(&shape, seed, a.extract()?, b.extract()?),
        "normal" => build::random_normal(&shape, seed, a.extract()?, b.extract()?),
        "integers" => build::random_integers(&shape, seed, a.extract()?, b.extract()?),
        other => return Err(PyValueError::new_err(format!("there is no distribution {other}"))),
    };
    apply(py, &[], || op.clone())
}

/// The type in which types and numbers meet.
#[pyfunction]
pub(crate) fn result_type(arguments: Vec<Bound<'_, PyAny>>) -> PyResult<&'static str> {
    let mut meeting: Option<build::ElementType> = None;
    for argument in arguments {
        let element = match argument.extract::<&str>() {
            Ok(name) => build::ElementType::strong(dtype(name)?),
            Err(_) => literal(&argument)?.element(),
        };
        meeting = Some(match meeting {
            None => element,
            Some(before) => build::ElementType::strong(build::meet(before, element).map_err(exception)?),
        });
    }
    let found = meeting.ok_or_else(|| PyValueError::new_err("no types to find the common one of"))?;
    Ok(crate::dtypes::numpy_name(found.dtype))
}
