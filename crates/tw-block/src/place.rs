//! Assembling a block from parts of others.

use tw_ir::{BoxRegion, Error, Result};

use crate::block::Block;

/// Copies operands into the output where they overlap, after moving the operands' boxes up by `shift` along `axis`. Where none does, the
/// output is zero.
pub(crate) fn place(
    axis: usize,
    shift: u64,
    first: bool,
    operands: &[Option<&Block>],
    outputs: &mut [Block],
) -> Result<()> {
    let [output] = outputs else { return Err(Error::internal("a place kernel makes one block")) };
    let mut boxes = Vec::with_capacity(operands.len());
    for operand in operands.iter().flatten() {
        let mut bbox = operand.bbox().clone();
        if shift > 0 {
            let moved = (bbox.lo.get(axis).zip(bbox.hi.get(axis)))
                .and_then(|(lo, hi)| lo.checked_add(shift).zip(hi.checked_add(shift)))
                .ok_or_else(|| Error::internal(format!("a block at {bbox} cannot move along axis {axis}")))?;
            (bbox.lo[axis], bbox.hi[axis]) = moved;
        }
        boxes.push((operand, bbox));
    }
    if first && !covers(output.bbox(), boxes.iter().map(|(_, bbox)| bbox)) {
        output.fill(output.dtype().zero())?;
    }
    let (output_box, buffer) = output.output()?;
    boxes.iter().try_for_each(|(operand, bbox)| operand.copy_moved_overlap(bbox, output_box, buffer))
}

/// True if boxes that do not overlap cover another; may be false for boxes that do overlap.
fn covers<'a>(whole: &BoxRegion, boxes: impl Iterator<Item = &'a BoxRegion>) -> bool {
    let parts: Vec<BoxRegion> = boxes.map(|bbox| bbox.intersect(whole)).filter(|part| !part.is_empty()).collect();
    let apart = (1..parts.len()).all(|k| parts[..k].iter().all(|other| other.intersect(&parts[k]).is_empty()));
    apart && parts.iter().map(BoxRegion::n_elements).sum::<u64>() == whole.n_elements()
}
