//! Reading elements at positions that are data.

use tw_ir::{Edge, Error, Result, Scalar};

use crate::block::Block;
use crate::copy::{Place, copy_typed};
use crate::indexing::{Indexing, Side};
use crate::strip::{Element, with_dtype};

/// A gather made ready.
#[derive(Debug)]
pub(crate) struct Gather {
    indexing: Indexing,
    fill: Scalar,
    edge: Edge,
}

impl Gather {
    pub(crate) fn compile(axes: &[u32], shape: &[u64], edge: Edge, fill: Scalar) -> Result<Gather> {
        Ok(Gather { indexing: Indexing::new(axes, shape, edge)?, fill, edge })
    }

    pub(crate) fn run(&self, first: bool, operands: &[Option<&Block>], outputs: &mut [Block]) -> Result<()> {
        let ([data, indices @ ..], [output]) = (operands, outputs) else {
            return Err(Error::internal("a gather takes data and indices, and makes one block"));
        };
        if first {
            output.fill(self.fill)?;
        }
        let indices: Option<Vec<&Block>> = indices.iter().copied().collect();
        let (Some(data), Some(indices)) = (data, indices) else {
            // Without data there is nothing to read; without indices, nothing to say about them.
            return match self.edge {
                Edge::Error => Err(Error::internal("a gather lacks an operand")),
                _ => Ok(()),
            };
        };
        if data.dtype() != output.dtype() {
            return Err(Error::internal(format!("a gather of {} into {}", data.dtype(), output.dtype())));
        }
        let (from_strides, to_strides) = (data.strides(), output.strides());
        let (bbox, buffer) = output.output()?;
        let from = Side { bbox: data.bbox(), strides: &from_strides, offset: data.offset() };
        let to = Side { bbox, strides: &to_strides, offset: 0 };
        with_dtype!(data.dtype(), T => {
            let (data, out) = (T::of(data.data()), T::of_mut(buffer));
            self.indexing.transfer(&indices, from, to, |pairs, moves| match moves.run() {
                Some(1) => pairs.iter().for_each(|&(from, to)| out[to] = data[from]),
                Some(run) => {
                    pairs.iter().for_each(|&(from, to)| out[to..to + run].copy_from_slice(&data[from..from + run]));
                }
                None => {
                    for &(from, to) in pairs {
                        let src = Place { offset: from, strides: &moves.data_strides };
                        copy_typed(&moves.shape, data, src, out, Place { offset: to, strides: &moves.point_strides });
                    }
                }
            })
        })
    }
}
