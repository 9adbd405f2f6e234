//! Assembling a block from parts of others.

use tw_ir::{Error, Result};

use crate::block::Block;

/// Copies operands into the outputs where they overlap, after moving the operands' boxes up by `shift` along `axis`.
pub(crate) fn place(axis: usize, shift: u64, operands: &[Option<&Block>], outputs: &mut [Block]) -> Result<()> {
    for operand in operands.iter().flatten() {
        let mut bbox = operand.bbox().clone();
        if shift > 0 {
            let moved = (bbox.lo.get(axis).zip(bbox.hi.get(axis)))
                .and_then(|(lo, hi)| lo.checked_add(shift).zip(hi.checked_add(shift)))
                .ok_or_else(|| Error::internal(format!("a block at {bbox} cannot move along axis {axis}")))?;
            (bbox.lo[axis], bbox.hi[axis]) = moved;
        }
        for output in outputs.iter_mut() {
            let (output_box, buffer) = output.output()?;
            operand.copy_moved_overlap(&bbox, output_box, buffer)?;
        }
    }
    Ok(())
}
