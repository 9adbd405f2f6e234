//! Stable sorting.

use std::cmp::Ordering;

use super::points::Fibres;
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};

/// The sorted array, and the position along the axis that each element had before; only the first `limit` along the axis.
pub(super) fn run(array: &Array, axis: usize, descending: bool, limit: Option<u64>) -> Result<Vec<Array>> {
    let fibres = Fibres::new(array.shape(), axis)?;
    let mut shape = array.shape().to_vec();
    if let Some(limit) = limit {
        if limit > shape[axis] {
            return Err(Error::data(format!("the first {limit} of {} elements along axis {axis}", shape[axis])));
        }
        shape[axis] = limit;
    }
    let targets = Fibres::new(&shape, axis)?;
    let mut values = Array::zeros(&shape, array.dtype())?;
    let mut positions = Array::zeros(&shape, DType::I64)?;
    for (start, target) in fibres.starts().zip(targets.starts()) {
        let at = |k: usize| array.at(fibres.position(start, k));
        let mut order: Vec<usize> = (0..fibres.length).collect();
        order.sort_by(|&a, &b| {
            let ascending = compare(at(a), at(b));
            if descending { ascending.reverse() } else { ascending }
        });
        for (k, &from) in order.iter().enumerate().take(targets.length) {
            let to = targets.position(target, k);
            values.data_mut().set(to, at(from));
            positions.data_mut().set(to, Scalar::I64(from as i64));
        }
    }
    Ok(vec![values, positions])
}

/// The order of values of one type: NaN is larger than everything and equal to itself; zeros of either sign are equal.
fn compare(a: Scalar, b: Scalar) -> Ordering {
    match (a, b) {
        (Scalar::U64(x), Scalar::U64(y)) => x.cmp(&y),
        _ if a.dtype().is_integer() => a.as_i64().cmp(&b.as_i64()),
        _ => {
            // Narrower floats and bools widen to f64 without changing the order.
            let (x, y) = (a.as_f64(), b.as_f64());
            x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
        }
    }
}
