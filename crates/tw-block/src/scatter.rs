//! Contributing to elements at positions that are data.

use tw_ir::{Accum, Edge, Error, Result, Scalar};

use crate::block::Block;
use crate::gather::target;
use crate::walk::Points;

/// A scatter made ready.
#[derive(Debug)]
pub(crate) struct Scatter {
    axes: Vec<usize>,
    shape: Vec<u64>,
    edge: Edge,
    accum: Accum,
}

impl Scatter {
    pub(crate) fn compile(axes: &[u32], shape: &[u64], edge: Edge, accum: &Accum) -> Scatter {
        let axes = axes.iter().map(|&axis| axis as usize).collect();
        Scatter { axes, shape: shape.to_vec(), edge, accum: accum.clone() }
    }

    pub(crate) fn run(&self, first: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        if first {
            for (output, value) in outputs.iter_mut().zip(&self.accum.identity) {
                output.fill(*value)?;
            }
        }
        if operands.len() <= self.axes.len() {
            return Err(Error::internal("a scatter takes indices and values"));
        }
        let (indices, values) = operands.split_at(self.axes.len());
        let indices: Vec<Option<&Block>> = indices.iter().copied().map(Some).collect();
        let mut points = Points::new(values[0].bbox());
        while let Some(at) = points.next() {
            let Some(to) = target(&self.axes, &self.shape, self.edge, &indices, at)? else { continue };
            let state: Option<Vec<Scalar>> = outputs.iter().map(|output| output.get(&to)).collect();
            let Some(mut state) = state else { continue };
            let bodies: Option<Vec<Scalar>> = values.iter().map(|block| block.get(at)).collect();
            let bodies = bodies.ok_or_else(|| Error::internal("the values of a scatter do not cover one box"))?;
            state.extend(self.accum.lift.eval(&bodies));
            for (output, value) in outputs.iter_mut().zip(self.accum.combine.eval(&state)) {
                output.set(&to, value)?;
            }
        }
        Ok(())
    }
}
