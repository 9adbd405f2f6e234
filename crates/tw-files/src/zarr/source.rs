//! An array of a store as a source.

use std::sync::Arc;

use tw_block::{Block, Meter, Points, ReadAhead, Source, SourceAccess, read_elements};
use tw_ir::schedule::Digest;
use tw_ir::{BoxRegion, Error, Grid, Result, TensorType, Tiling, shape};

use super::array::ZarrArray;
use super::{MOST_BLOCKS, bytes, store, whole_chunks};

/// An open array.
#[derive(Debug)]
pub(super) struct ZarrSource {
    array: Arc<ZarrArray>,
    grid: Grid,
    /// Where chunks are held that a block needs only a part of, and the number of this reader there.
    ahead: Option<(Arc<ReadAhead>, u32)>,
}

impl ZarrSource {
    pub(super) fn new(array: ZarrArray) -> Result<ZarrSource> {
        let grid = whole_chunks(array.shape(), &vec![0; array.shape().len()], array.unit(), array.dtype().size());
        if grid.n_blocks() > MOST_BLOCKS {
            let message = format!(
                "{}: {} elements of shape {} in chunks of shape {} are more than can be planned",
                array.directory().display(),
                array.dtype(),
                shape::display(array.shape()),
                shape::display(array.unit())
            );
            return Err(
                Error::io(message).help("if the store is as large as that, read it in parts with the package zarr")
            );
        }
        Ok(ZarrSource { array: Arc::new(array), grid, ahead: None })
    }

    /// A part of a block that lies in one chunk.
    fn read_from(&self, at: &[u64], part: &BoxRegion, block: &mut Block, meter: &Arc<Meter>) -> Result<()> {
        let array = &self.array;
        let wide = self.widened(at, part);
        let wide_bytes = wide.n_elements().saturating_mul(array.dtype().size());
        match &self.ahead {
            Some((ahead, number)) if wide != *part && wide_bytes <= ahead.most_bytes() => {
                let held = ahead.part(*number, part, &wide, wide_bytes, || {
                    let mut whole = Block::for_output(array.dtype(), wide.clone(), Some(meter))?;
                    self.decode_into(at, &wide, &wide, &mut whole)?;
                    Ok(whole)
                })?;
                let region = block.bbox().clone();
                let (_, buffer) = block.output()?;
                // Only what was asked for: around it the block has elements of other chunks.
                held.copy_moved_overlap(held.bbox(), &region, buffer)
            }
            _ => self.decode_into(at, &wide, part, block),
        }
    }

    fn decode_into(&self, at: &[u64], wide: &BoxRegion, part: &BoxRegion, block: &mut Block) -> Result<()> {
        if part == wide && *part == self.array.chunk_box(at) && self.array.is_plain() {
            // Elements that are neighbours in the block, too, are decoded where they belong.
            let region = block.bbox().clone();
            let is_run = (1..part.rank()).all(|axis| part.range(axis) == region.range(axis));
            let n_rows = region.shape().first().copied().unwrap_or(0);
            if let (true, Some(row)) = (is_run, region.n_elements().checked_div(n_rows)) {
                let first = ((part.lo[0] - region.lo[0]) * row) as usize;
                let run = first..first + part.n_elements() as usize;
                let (_, buffer) = block.output()?;
                let mut is_there = true;
                read_elements(buffer, run, |bytes| {
                    is_there = self.array.decode_into(at, bytes)?;
                    Ok::<_, Error>(())
                })?;
                return if is_there { Ok(()) } else { bytes::fill_block(self.array.fill(), part, block) };
            }
        }
        match self.array.decode(at, wide)? {
            Some((bbox, decoded)) => bytes::into_block(&decoded, &bbox, part, block),
            None => bytes::fill_block(self.array.fill(), part, block),
        }
    }

    /// A part of a chunk made wider to whole units, as far as the array goes.
    fn widened(&self, at: &[u64], part: &BoxRegion) -> BoxRegion {
        let (chunk, unit) = (self.array.chunk_box(at), self.array.unit());
        BoxRegion::from_ranges((0..part.rank()).map(|axis| {
            let (start, n) = (chunk.lo[axis], unit[axis]);
            let lo = start + (part.lo[axis] - start) / n * n;
            let hi = start + (part.hi[axis] - start).div_ceil(n) * n;
            lo..hi.min(chunk.hi[axis]).min(self.array.shape()[axis])
        }))
    }
}

impl Source for ZarrSource {
    fn ty(&self) -> TensorType {
        let ty = TensorType::known(self.array.dtype(), self.array.shape());
        TensorType { tiling: Some(Tiling::Grid(self.grid.clone())), ..ty }
    }

    fn chunks(&self) -> Option<&Grid> {
        Some(&self.grid)
    }

    /// Of the names, lengths and times of all files. Chunks are written one by one, so the metadata alone tells nothing.
    fn fingerprint(&self) -> Option<Digest> {
        let files = store::files_below(self.array.directory())?;
        let parts: Vec<Vec<u8>> = files.iter().map(|file| file.facts()).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Some(Digest::of("tilewright 1 version of a store", &parts))
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        let declared = self.array.declared();
        let codecs = if declared.codecs.is_empty() { "no codec".to_string() } else { declared.codecs.join(", ") };
        let chunks = match &declared.inner {
            Some(inner) => format!("shards {} of chunks {}", shape::display(&declared.chunk), shape::display(inner)),
            None => format!("chunks {}", shape::display(&declared.chunk)),
        };
        format!("Zarr {}, {chunks}, {codecs}", declared.version)
    }

    /// The bytes of a chunk before and after each of up to two steps of decoding.
    fn scratch(&self, region: &BoxRegion) -> u64 {
        let unit = self.array.unit().iter().fold(self.array.dtype().size(), |bytes, &n| bytes.saturating_mul(n));
        let own = match self.array.declared().sharded {
            true => region.n_elements().saturating_mul(self.array.dtype().size()).min(self.array.chunk_bytes()),
            false => 0,
        };
        unit.saturating_mul(3).saturating_add(own)
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let array = &self.array;
        let whole = BoxRegion::whole(array.shape());
        if region.rank() != whole.rank() || !whole.contains(region) {
            return Err(Error::internal(format!("a region {region} of {}", array.directory().display())));
        }
        let mut block = Block::for_output(array.dtype(), region.clone(), Some(meter))?;
        if !region.is_empty() {
            let mut points = Points::new(&array.chunks_meeting(region));
            while let Some(at) = points.next() {
                let part = array.chunk_box(at).intersect(region);
                self.read_from(at, &part, &mut block, meter)?;
            }
        }
        Ok(Arc::new(block))
    }

    fn for_run(&self, _: u64, ahead: &Arc<ReadAhead>) -> Option<Arc<dyn Source>> {
        let ahead = Some((ahead.clone(), ahead.add_reader()));
        Some(Arc::new(ZarrSource { array: self.array.clone(), grid: self.grid.clone(), ahead }))
    }
}
