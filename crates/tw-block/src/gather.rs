//! Reading elements at positions that are data.

use tw_ir::{Edge, Error, Result, Scalar};

use crate::block::Block;
use crate::walk::Points;

/// A gather made ready.
#[derive(Debug)]
pub(crate) struct Gather {
    axes: Vec<usize>,
    shape: Vec<u64>,
    edge: Edge,
    fill: Scalar,
}

impl Gather {
    pub(crate) fn compile(axes: &[u32], shape: &[u64], edge: Edge, fill: Scalar) -> Gather {
        Gather { axes: axes.iter().map(|&axis| axis as usize).collect(), shape: shape.to_vec(), edge, fill }
    }

    pub(crate) fn run(&self, first: bool, operands: &[Option<&Block>], outputs: &mut [Block]) -> Result<()> {
        let ([data, indices @ ..], [output]) = (operands, outputs) else {
            return Err(Error::internal("a gather takes data and indices, and makes one block"));
        };
        if first {
            output.fill(self.fill)?;
        }
        let mut points = Points::new(output.bbox());
        while let Some(at) = points.next() {
            if let Some(source) = target(&self.axes, &self.shape, self.edge, indices, at)?
                && let Some(value) = data.and_then(|data| data.get(&source))
            {
                output.set(at, value)?;
            }
        }
        Ok(())
    }
}

/// The element of the indexed tensor that a point of the gathered (or scattered) one stands for; `None` outside.
pub(crate) fn target(
    axes: &[usize],
    shape: &[u64],
    edge: Edge,
    indices: &[Option<&Block>],
    at: &[u64],
) -> Result<Option<Vec<u64>>> {
    let first = axes[0];
    let index_rank = at.len() + axes.len() - shape.len();
    let index_at = &at[first..first + index_rank];
    let mut others = at[..first].iter().chain(&at[first + index_rank..]);
    let mut coords = Vec::with_capacity(shape.len());
    for (axis, &extent) in shape.iter().enumerate() {
        let coord = match axes.iter().position(|&a| a == axis) {
            None => others.next().copied(),
            Some(k) => {
                let index = indices[k].and_then(|block| block.get(index_at));
                let index = index.ok_or_else(|| Error::internal("an index block does not hold what its task reads"))?;
                let index = index.as_i64();
                let inside = edge.apply(index, extent);
                if inside.is_none() && edge == Edge::Error {
                    return Err(Error::data(format!("index {index} is outside axis {axis} of length {extent}"))
                        .note(format!("the index is element {index_at:?}")));
                }
                inside
            }
        };
        match coord {
            Some(coord) => coords.push(coord),
            None => return Ok(None),
        }
    }
    Ok(Some(coords))
}
