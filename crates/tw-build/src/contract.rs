//! Contractions: matrix products and tensordot.

use tw_ir::{Accum, BinaryOp, DType, Error, Extent, Idx, Op, Result, TensorType, Var, shape};

use super::axes::{broadcast_shapes, check_axes, display_shape, types_first};
use super::promote::common;
use super::statement::{StatementBuilder, access};

/// An operand of a product: which label each of its axes carries.
pub(super) struct Labelled<'a> {
    pub(super) ty: &'a TensorType,
    /// One label per axis, `None` for an axis of extent 1 that broadcasts.
    pub(super) labels: Vec<Option<usize>>,
}

/// The sum over every label that is not in the output (the first `n_out` labels) of the product of the operands.
pub(super) fn product_sum(operands: &[Labelled<'_>], extents: &[Extent], n_out: usize) -> Result<Op> {
    if operands.is_empty() {
        return Err(Error::source("a product of no operands"));
    }
    let dtype = common(operands.iter().map(|operand| operand.ty.dtype))?;
    if dtype.is_time() {
        return Err(Error::source(format!("a product of {dtype}")));
    }
    // Halves are multiplied and added as singles.
    let working = if dtype.is_half() { DType::F32 } else { dtype };
    let reads = operands.iter().enumerate().map(|(k, operand)| {
        let idx = operand.labels.iter().map(|label| match label {
            Some(label) => Idx::var(Var(*label as u32)),
            None => Idx::constant(0),
        });
        (access(k, idx.collect()), operand.ty.dtype)
    });
    let mut statement = StatementBuilder::new(extents, reads.collect());
    let mut product = None;
    for k in 0..operands.len() {
        let value = statement.read(k);
        let value = statement.code.cast(working, value);
        product = Some(match product {
            None => value,
            Some(before) => statement.code.binary(BinaryOp::Mul, before, value)?,
        });
    }
    let body = product.ok_or_else(|| Error::source("a product of no operands"))?;
    if n_out == extents.len() {
        let body = statement.code.cast(dtype, body);
        return Ok(statement.elementwise(body));
    }
    let mut accum = Accum::sum(working);
    let sum = accum.finish.results()[0];
    let sum = accum.finish.cast(dtype, sum);
    accum.finish.set_results(vec![sum]);
    let idx = (0..n_out).map(|label| Idx::var(Var(label as u32))).collect();
    Ok(statement.accumulated(vec![body], accum, idx, extents[..n_out].to_vec()))
}

/// `a @ b`: vectors, matrices, and stacks of matrices that broadcast.
pub fn matmul(a: &TensorType, b: &TensorType) -> Result<Op> {
    let wrong = |what: &str| {
        let shapes = format!("{} and {}", display_shape(&a.shape), display_shape(&b.shape));
        Error::source(format!("the matrix product of shapes {shapes}{what}"))
    };
    if a.rank() == 0 || b.rank() == 0 {
        return Err(wrong(" needs at least one axis each").help("use `*` with scalars"));
    }
    let (batch_a, core_a) = a.shape.split_at(a.rank().saturating_sub(2));
    let (batch_b, core_b) = b.shape.split_at(b.rank().saturating_sub(2));
    let (inner_a, inner_b) = (core_a[core_a.len() - 1], core_b[0]);
    let dtypes = || [a.dtype, b.dtype].into_iter();
    let fits = shape::require_equal(&[inner_a], &[inner_b], || match (inner_a, inner_b) {
        (Extent::Known(a), Extent::Known(b)) => {
            wrong("").help(format!("{a} columns on the left meet {b} rows on the right"))
        }
        _ => wrong("").help("the columns on the left and the rows on the right depend on data and may differ"),
    });
    types_first(fits, dtypes())?;
    let batch = broadcast_shapes(&[batch_a, batch_b]).map_err(|error| error.note(wrong("").message().to_string()));
    let batch = types_first(batch, dtypes())?;
    // Labels: batch axes, then the row, then the column, then what is summed.
    let mut extents = batch.clone();
    let row = (core_a.len() == 2).then(|| push(&mut extents, core_a[0]));
    let column = (core_b.len() == 2).then(|| push(&mut extents, core_b[1]));
    let n_out = extents.len();
    let inner = push(&mut extents, inner_a);
    let stacked = |shape: &[Extent]| -> Vec<Option<usize>> {
        let skip = batch.len() - shape.len();
        let label = |(axis, extent): (usize, &Extent)| (*extent != Extent::Known(1)).then_some(skip + axis);
        shape.iter().enumerate().map(label).collect()
    };
    let (mut left, mut right) = (stacked(batch_a), stacked(batch_b));
    left.extend(row.map(Some));
    left.push(Some(inner));
    right.push(Some(inner));
    right.extend(column.map(Some));
    product_sum(&[Labelled { ty: a, labels: left }, Labelled { ty: b, labels: right }], &extents, n_out)
}

/// Sums over pairs of axes; the remaining axes of `a`, then those of `b`, are the result.
pub fn tensordot(a: &TensorType, b: &TensorType, pairs: &[(usize, usize)]) -> Result<Op> {
    let (axes_a, axes_b): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
    check_axes(&axes_a, a.rank())?;
    check_axes(&axes_b, b.rank())?;
    for &(x, y) in pairs {
        let fits = shape::require_equal(&[a.shape[x]], &[b.shape[y]], || {
            let (left, right) = (display_shape(&a.shape), display_shape(&b.shape));
            Error::source(format!("axis {x} of shape {left} has another extent than axis {y} of shape {right}"))
        });
        types_first(fits, [a.dtype, b.dtype].into_iter())?;
    }
    let mut extents = Vec::new();
    let mut free = |ty: &TensorType, bound: &[usize]| -> Vec<Option<usize>> {
        let label = |axis: usize| (!bound.contains(&axis)).then(|| push(&mut extents, ty.shape[axis]));
        (0..ty.rank()).map(label).collect()
    };
    let (mut left, mut right) = (free(a, &axes_a), free(b, &axes_b));
    let n_out = extents.len();
    for &(x, y) in pairs {
        let label = push(&mut extents, a.shape[x]);
        (left[x], right[y]) = (Some(label), Some(label));
    }
    product_sum(&[Labelled { ty: a, labels: left }, Labelled { ty: b, labels: right }], &extents, n_out)
}

fn push(extents: &mut Vec<Extent>, extent: Extent) -> usize {
    extents.push(extent);
    extents.len() - 1
}
