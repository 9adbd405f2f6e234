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
    let (output_box, mut target) = output.target()?;
    boxes.iter().try_for_each(|(operand, bbox)| operand.copy_moved_overlap(bbox, output_box, &mut target))
}

/// True if boxes are a grid that covers another box; may be false for others that cover it too.
fn covers<'a>(whole: &BoxRegion, boxes: impl Iterator<Item = &'a BoxRegion>) -> bool {
    let parts: Vec<BoxRegion> = boxes.map(|bbox| bbox.intersect(whole)).filter(|part| !part.is_empty()).collect();
    if let [part] = parts.as_slice() {
        return part == whole;
    }
    // Where parts begin along each axis.
    let mut cuts: Vec<Vec<u64>> = Vec::with_capacity(whole.rank());
    for axis in 0..whole.rank() {
        let mut ranges: Vec<(u64, u64)> = parts.iter().map(|part| (part.lo[axis], part.hi[axis])).collect();
        ranges.sort_unstable();
        ranges.dedup();
        let follow = ranges.windows(2).all(|pair| pair[0].1 == pair[1].0);
        let ends = ranges.first().map(|first| first.0).zip(ranges.last().map(|last| last.1));
        if !follow || ends != Some((whole.lo[axis], whole.hi[axis])) {
            return false;
        }
        cuts.push(ranges.into_iter().map(|range| range.0).collect());
    }
    if cuts.iter().try_fold(1usize, |n, cut| n.checked_mul(cut.len())) != Some(parts.len()) {
        return false;
    }
    let mut seen = vec![false; parts.len()];
    parts.iter().all(|part| {
        let place = |axis: usize| cuts[axis].partition_point(|&start| start < part.lo[axis]);
        let position = (0..cuts.len()).fold(0, |position, axis| position * cuts[axis].len() + place(axis));
        !std::mem::replace(&mut seen[position], true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes(list: &[[u64; 4]]) -> Vec<BoxRegion> {
        list.iter().map(|&[top, bottom, left, right]| BoxRegion::from_ranges([top..bottom, left..right])).collect()
    }

    #[test]
    fn grids_cover_what_they_lie_over() {
        let whole = BoxRegion::from_ranges([2..6, 1..9]);
        for (expected, parts) in [
            (true, boxes(&[[0, 7, 0, 9]])),
            (true, boxes(&[[2, 4, 1, 5], [2, 4, 5, 9], [4, 6, 1, 5], [4, 6, 5, 9]])),
            (true, boxes(&[[0, 4, 0, 5], [4, 9, 5, 9], [4, 9, 0, 5], [0, 4, 5, 9], [6, 9, 0, 9]])),
            (false, boxes(&[[2, 4, 1, 9]])),
            (false, boxes(&[])),
            // One part twice, another not at all.
            (false, boxes(&[[2, 4, 1, 5], [2, 4, 5, 9], [4, 6, 1, 5], [4, 6, 1, 5]])),
            // A gap between columns.
            (false, boxes(&[[2, 6, 1, 4], [2, 6, 5, 9]])),
        ] {
            assert_eq!(covers(&whole, parts.iter()), expected, "{parts:?}");
        }
        assert!(covers(&BoxRegion::whole(&[]), [BoxRegion::whole(&[])].iter()));
    }
}
