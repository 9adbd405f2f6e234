//! Elements chosen by index tensors, read and written.

use super::groups::Groups;
use super::points::{for_each_point, locate, outside};
use crate::accum::Accum;
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::{Error, Result};
use crate::index::Edge;
use crate::program::gather_shape;
use crate::shape::Extent;

/// `data[.., index, ..]`.
pub(super) fn gather(axes: &[u32], edge: Edge, fill: Scalar, data: &Array, indices: &[&Array]) -> Result<Array> {
    let index_shape = shape_of_indices(indices)?;
    let known = |shape: &[u64]| -> Vec<Extent> { shape.iter().map(|&n| Extent::Known(n)).collect() };
    let shape = gather_shape(&known(data.shape()), axes, &known(index_shape));
    let shape: Vec<u64> = shape.into_iter().filter_map(Extent::known).collect();
    let mut result = Array::zeros(&shape, data.dtype())?;
    let mut next = 0;
    for_each_point(&shape, |point| {
        let coords = || indexed_coords(axes, indices, index_shape, data.shape().len(), point);
        let value = match locate(coords(), edge, data.shape()) {
            Some(position) => data.at(position),
            None if edge == Edge::Fill => fill,
            None => return Err(outside("gathering outside:", coords(), data.shape())),
        };
        result.data_mut().set(next, value);
        next += 1;
        Ok(())
    })?;
    Ok(result)
}

/// Contributions to the elements the indices name. `arrays` are the indices, then the bodies.
pub(super) fn scatter(
    axes: &[u32],
    extents: &[u64],
    accum: &Accum,
    edge: Edge,
    arrays: &[&Array],
) -> Result<Vec<Array>> {
    let (indices, bodies) = arrays.split_at(axes.len());
    let index_shape = shape_of_indices(indices)?;
    let value_shape = bodies.first().ok_or_else(|| Error::internal("a scatter without values"))?.shape();
    let rank = value_shape.len() + axes.len() - index_shape.len();
    let shape: Vec<u64> = (0..rank)
        .map(|axis| match axes.iter().position(|&a| a as usize == axis) {
            Some(k) => extents[k],
            None => value_shape[value_axis(axes, index_shape.len(), axis)],
        })
        .collect();
    let mut groups = Groups::new(accum, &shape)?;
    let (mut body, mut next) = (Vec::new(), 0);
    for_each_point(value_shape, |point| {
        body.clear();
        body.extend(bodies.iter().map(|array| array.at(next)));
        next += 1;
        let coords = || indexed_coords(axes, indices, index_shape, rank, point);
        match locate(coords(), edge, &shape) {
            Some(position) => groups.contribute(position, &body),
            None if edge == Edge::Fill => {}
            None => return Err(outside("scattering outside:", coords(), &shape)),
        }
        Ok(())
    })?;
    groups.finish()
}

/// The coordinates in the indexed tensor (of the given rank) that a point of the gathered one stands for.
fn indexed_coords<'a>(
    axes: &'a [u32],
    indices: &'a [&'a Array],
    index_shape: &'a [u64],
    rank: usize,
    point: &'a [i64],
) -> impl Iterator<Item = i64> + 'a {
    let first = axes[0] as usize;
    let at = point[first..first + index_shape.len()].iter().map(|&coord| coord as u64);
    let position = at.zip(index_shape).fold(0, |position, (coord, &n)| position * n + coord) as usize;
    (0..rank).map(move |axis| match axes.iter().position(|&a| a as usize == axis) {
        Some(k) => indices[k].at(position).as_i64(),
        None => point[value_axis(axes, index_shape.len(), axis)],
    })
}

/// Where an axis that is not indexed stands in the gathered tensor: the index axes replace the indexed ones at the first of them.
fn value_axis(axes: &[u32], index_rank: usize, axis: usize) -> usize {
    let indexed_before = axes.iter().filter(|&&a| (a as usize) < axis).count();
    if indexed_before == 0 { axis } else { axis - indexed_before + index_rank }
}

fn shape_of_indices<'a>(indices: &[&'a Array]) -> Result<&'a [u64]> {
    Ok(indices.first().ok_or_else(|| Error::internal("no index tensor"))?.shape())
}
