//! Running aggregates.

use super::groups::{Fold, empty_group};
use super::points::Fibres;
use crate::accum::Accum;
use crate::array::{Array, Buffer};
use crate::dtype::Scalar;
use crate::error::{Error, Result};

/// Runs the aggregate along every fibre of the axis.
pub(super) fn run(accum: &Accum, axis: usize, exclusive: bool, reverse: bool, bodies: &[&Array]) -> Result<Vec<Array>> {
    let shape = bodies.first().ok_or_else(|| Error::internal("a scan without operands"))?.shape();
    let fibres = Fibres::new(shape, axis)?;
    let mut outputs: Vec<Array> =
        accum.result_types().into_iter().map(|dtype| Array::zeros(shape, dtype)).collect::<Result<_>>()?;
    let mut fold = Fold::new(accum);
    for start in fibres.starts() {
        let mut state = accum.identity.clone();
        for step in 0..fibres.length {
            let k = if reverse { fibres.length - 1 - step } else { step };
            let position = fibres.position(start, k);
            let body: Vec<Scalar> = bodies.iter().map(|array| array.at(position)).collect();
            if !exclusive {
                fold.add(&mut state, &body);
            }
            // Only the first element of an exclusive scan sees nothing.
            if exclusive && step == 0 {
                write(&mut outputs, position, empty_group(accum, shape, position)?.into_iter());
            } else {
                write(&mut outputs, position, fold.finish(&state));
            }
            if exclusive {
                fold.add(&mut state, &body);
            }
        }
    }
    Ok(outputs)
}

fn write(outputs: &mut [Array], position: usize, values: impl Iterator<Item = Scalar>) {
    let buffers = outputs.iter_mut().map(Array::data_mut);
    buffers.zip(values).for_each(|(buffer, value): (&mut Buffer, Scalar)| buffer.set(position, value));
}
