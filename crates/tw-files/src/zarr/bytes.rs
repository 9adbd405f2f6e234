//! Bytes of decoded chunks in and out of blocks.

use tw_block::{Block, Points, read_elements, write_elements};
use tw_ir::{BoxRegion, Result, shape};

/// Calls `f` for every run of elements of a box that lie together in two row-major boxes around it: where the run begins in both, and how many elements it has.
fn for_runs(
    common: &BoxRegion,
    first: &BoxRegion,
    second: &BoxRegion,
    mut f: impl FnMut(usize, usize, usize) -> Result<()>,
) -> Result<()> {
    if common.is_empty() {
        return Ok(());
    }
    let (extents, shapes) = (common.shape(), [first.shape(), second.shape()]);
    let strides = shapes.each_ref().map(|extents| shape::row_major_strides(extents));
    let mut outer = common.rank();
    let mut run = 1u64;
    while outer > 0 {
        outer -= 1;
        run *= extents[outer];
        if shapes.iter().any(|whole| whole[outer] != extents[outer]) {
            break;
        }
    }
    let mut starts = common.clone();
    for axis in outer..common.rank() {
        starts.hi[axis] = common.lo[axis] + 1;
    }
    let mut points = Points::new(&starts);
    while let Some(at) = points.next() {
        let place = |bbox: &BoxRegion, strides: &[u64]| {
            at.iter().zip(&bbox.lo).zip(strides).map(|((c, lo), stride)| (c - lo) * stride).sum::<u64>() as usize
        };
        f(place(first, &strides[0]), place(second, &strides[1]), run as usize)?;
    }
    Ok(())
}

/// Copies what a decoded box has in common with a part of a block into the block.
pub(super) fn into_block(bytes: &[u8], bbox: &BoxRegion, part: &BoxRegion, block: &mut Block) -> Result<()> {
    let size = block.dtype().size() as usize;
    let region = block.bbox().clone();
    let (_, buffer) = block.output()?;
    for_runs(&part.intersect(&region), bbox, &region, |from, to, n| {
        let mut from = from * size;
        read_elements(buffer, to..to + n, |piece| {
            piece.copy_from_slice(&bytes[from..from + piece.len()]);
            from += piece.len();
            Ok(())
        })
    })
}

/// Fills a part of a block with one element.
pub(super) fn fill_block(element: &[u8], part: &BoxRegion, block: &mut Block) -> Result<()> {
    let region = block.bbox().clone();
    let (_, buffer) = block.output()?;
    let size = element.len();
    for_runs(&part.intersect(&region), &region, &region, |_, to, n| {
        read_elements(buffer, to..to + n, |piece| {
            piece.chunks_exact_mut(size).for_each(|each| each.copy_from_slice(element));
            Ok(())
        })
    })
}

/// Copies what a row-major block has in common with a box into the bytes of the box.
pub(super) fn from_block(block: &Block, at: &BoxRegion, bytes: &mut [u8], bbox: &BoxRegion) -> Result<()> {
    let size = block.dtype().size() as usize;
    for_runs(&at.intersect(bbox), at, bbox, |from, to, n| {
        let mut to = to * size;
        write_elements(block.data(), from..from + n, |piece| {
            bytes[to..to + piece.len()].copy_from_slice(piece);
            to += piece.len();
            Ok(())
        })
    })
}

/// Copies what two boxes have in common from the bytes of one to those of the other.
pub(super) fn between(from: &[u8], from_box: &BoxRegion, to: &mut [u8], to_box: &BoxRegion, size: usize) -> Result<()> {
    for_runs(&from_box.intersect(to_box), from_box, to_box, |a, b, n| {
        to[b * size..(b + n) * size].copy_from_slice(&from[a * size..(a + n) * size]);
        Ok(())
    })
}
