//! Operators that move elements without computing: compact, reshape, concat.

use super::points::{for_each_point, locate};
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::index::Edge;
use crate::shape;

/// The elements of each data array under the mask.
pub(super) fn compact(extent: u64, mask: &Array, data: &[&Array]) -> Result<Vec<Array>> {
    let chosen: Vec<usize> = (0..mask.data().len()).filter(|&k| mask.at(k).is_true()).collect();
    if chosen.len() as u64 != extent {
        return Err(Error::data(format!(
            "the mask holds {} times, but {extent} elements were announced",
            chosen.len()
        )));
    }
    data.iter()
        .map(|array| {
            let mut result = Array::zeros(&[extent], array.dtype())?;
            for (k, &from) in chosen.iter().enumerate() {
                result.data_mut().set(k, array.at(from));
            }
            Ok(result)
        })
        .collect()
}

/// The same elements under another shape; sizes can only disagree where extents depend on data.
pub(super) fn reshape(array: &Array, shape: &[u64]) -> Result<Array> {
    if shape::n_elements(shape)? != array.data().len() as u64 {
        let (from, to) = (shape::display(array.shape()), shape::display(shape));
        return Err(Error::data(format!("a tensor of shape {from} does not reshape to {to}")));
    }
    array.clone().reshaped(shape)
}

/// Arrays one after the other along an axis.
pub(super) fn concat(arrays: &[&Array], axis: usize) -> Result<Array> {
    let first = arrays.first().ok_or_else(|| Error::internal("a concat without operands"))?;
    let mut shape = first.shape().to_vec();
    shape[axis] = arrays.iter().map(|array| array.shape()[axis]).sum();
    let mut result = Array::zeros(&shape, first.dtype())?;
    let mut start = 0;
    for array in arrays {
        place(array, axis, start, &mut result)?;
        start += array.shape()[axis] as i64;
    }
    Ok(result)
}

/// Copies a whole array into another, moved by `start` along an axis.
fn place(array: &Array, axis: usize, start: i64, into: &mut Array) -> Result<()> {
    let shape = into.shape().to_vec();
    let mut next = 0;
    for_each_point(array.shape(), |point| {
        let moved = point.iter().enumerate().map(|(k, &coord)| if k == axis { coord + start } else { coord });
        let position = locate(moved, Edge::Error, &shape)
            .ok_or_else(|| Error::internal("an operand of concat does not fit its result"))?;
        let value: Scalar = array.at(next);
        into.data_mut().set(position, value);
        next += 1;
        Ok(())
    })
}
