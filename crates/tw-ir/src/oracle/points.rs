//! Walking over boxes and finding elements.

use crate::error::{Error, Result};
use crate::index::Edge;
use crate::shape;

/// Visits every point of `0..extents` in row-major order.
pub(super) fn for_each_point(extents: &[u64], mut visit: impl FnMut(&[i64]) -> Result<()>) -> Result<()> {
    if extents.contains(&0) {
        return Ok(());
    }
    let mut point = vec![0i64; extents.len()];
    loop {
        visit(&point)?;
        let mut axis = extents.len();
        loop {
            if axis == 0 {
                return Ok(());
            }
            axis -= 1;
            point[axis] += 1;
            if (point[axis] as u64) < extents[axis] {
                break;
            }
            point[axis] = 0;
        }
    }
}

/// The row-major position of coordinates under an edge rule, or `None` if they lie outside and the rule does not move them inside.
pub(super) fn locate(coords: impl Iterator<Item = i64>, edge: Edge, shape: &[u64]) -> Option<usize> {
    let mut position = 0;
    for (coord, &extent) in coords.zip(shape) {
        position = position * extent + edge.apply(coord, extent)?;
    }
    Some(position as usize)
}

/// The error for coordinates that no rule moves inside.
pub(super) fn outside(what: &str, coords: impl Iterator<Item = i64>, shape: &[u64]) -> Error {
    let coords: Vec<String> = coords.map(|coord| coord.to_string()).collect();
    Error::data(format!("{what} index [{}] of a tensor of shape {}", coords.join(", "), shape::display(shape)))
        .help("bound the index, or choose an edge rule: fill, clamp or wrap")
}

/// An array seen as many fibres along one axis.
pub(super) struct Fibres {
    /// Elements per fibre.
    pub(super) length: usize,
    stride: usize,
    n_outer: usize,
}

impl Fibres {
    /// The fibres of a shape along an axis.
    pub(super) fn new(shape: &[u64], axis: usize) -> Result<Fibres> {
        let stride = shape::n_elements(&shape[axis + 1..])? as usize;
        let n_outer = shape::n_elements(&shape[..axis])? as usize;
        Ok(Fibres { length: shape[axis] as usize, stride, n_outer })
    }

    /// The first position of every fibre.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.n_outer).flat_map(move |k| (0..self.stride).map(move |j| k * self.stride * self.length + j))
    }

    /// The position of the k-th element of the fibre that starts at `start`.
    pub(super) fn position(&self, start: usize, k: usize) -> usize {
        start + k * self.stride
    }
}
