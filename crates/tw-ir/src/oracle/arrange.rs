//! Operators that move elements without computing: compact, expand, reshape, concat.

use super::points::{for_each_point, locate};
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::index::Edge;
use crate::shape;

/// The elements of each data array that the mask takes, each as often as it says; their positions without any data.
pub(super) fn compact(extent: u64, mask: &Array, data: &[&Array]) -> Result<Vec<Array>> {
    let mut chosen: Vec<usize> = Vec::new();
    for k in 0..mask.data().len() {
        let times = u64::try_from(mask.at(k).as_i64())
            .map_err(|_| Error::data(format!("an element is taken {} times", mask.at(k))))?;
        if (chosen.len() as u64).saturating_add(times) > extent {
            return Err(announced(extent, "more".to_string()));
        }
        chosen.extend(std::iter::repeat_n(k, times as usize));
    }
    if chosen.len() as u64 != extent {
        return Err(announced(extent, chosen.len().to_string()));
    }
    if data.is_empty() {
        let positions: Vec<i64> = chosen.iter().map(|&k| k as i64).collect();
        return Ok(vec![Array::from_i64(&positions)]);
    }
    let rank = mask.shape().len();
    data.iter()
        .map(|array| {
            let inner = &array.shape()[rank..];
            let mut result = Array::zeros(&[&[extent], inner].concat(), array.dtype())?;
            let n = shape::n_elements(inner)? as usize;
            for (k, &from) in chosen.iter().enumerate() {
                (0..n).for_each(|j| result.data_mut().set(k * n + j, array.at(from * n + j)));
            }
            Ok(result)
        })
        .collect()
}

fn announced(extent: u64, found: String) -> Error {
    Error::data(format!("the mask takes {found} elements, but {extent} were announced"))
}

/// Values one after the other where the mask holds, data elsewhere.
pub(super) fn expand(mask: &Array, values: &Array, data: &Array) -> Result<Array> {
    let places: Vec<usize> = (0..mask.data().len()).filter(|&k| mask.at(k).is_true()).collect();
    if places.len() != values.data().len() {
        return Err(Error::data(format!("{} values for {} places", values.data().len(), places.len())));
    }
    let mut result = data.clone();
    for (k, &place) in places.iter().enumerate() {
        result.data_mut().set(place, values.at(k));
    }
    Ok(result)
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
