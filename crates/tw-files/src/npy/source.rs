//! A file as a source. Blocks that share rows of it are cut out of bands.
//!
//! A block of columns of a row-major file consists of short runs. Reading them one by one costs a call each; reading what lies between them costs
//! the whole file for every block. So the blocks beside it are read along: a band is a block made wider until its runs are long or it takes all
//! the memory that a part which is read ahead may take. Files in Fortran order have the same with rows.

use std::sync::Arc;

use tw_ir::schedule::Digest;
use tw_ir::{BoxRegion, Result, TensorType};

use super::reader::NpyReader;
use tw_block::Block;
use tw_block::Meter;
use tw_block::ReadAhead;
use tw_block::{Source, SourceAccess};

/// Runs of so many bytes are read as they are: the call of the system no longer matters.
const LONG_RUN: u64 = 16 << 10;

/// Blocks are cut out of bands if one part in so many of the file is read. Of a file that is hardly read the parts beside a block are not worth
/// reading along.
const LEAST_SHARE_FOR_BANDS: u64 = 4;

/// An open file.
#[derive(Debug)]
pub(super) struct NpySource {
    reader: Arc<NpyReader>,
    /// Where bands are held, and the number of this reader there; `None` to read blocks on their own.
    bands: Option<(Arc<ReadAhead>, u32)>,
}

impl NpySource {
    pub(super) fn new(reader: NpyReader) -> NpySource {
        NpySource { reader: Arc::new(reader), bands: None }
    }

    fn read_from_band(
        &self,
        (ahead, number): (&ReadAhead, u32),
        region: &BoxRegion,
        meter: &Arc<Meter>,
    ) -> Result<Block> {
        let reader = &self.reader;
        let wide = widened(reader, region, ahead.most_bytes());
        if wide == *region {
            return reader.read_region(region, Some(meter));
        }
        let bytes = wide.n_elements() * reader.header().dtype.size();
        let band = ahead.part(number, region, &wide, bytes, || reader.read_region(&wide, Some(meter)))?;
        let mut block = Block::for_output(reader.header().dtype, region.clone(), Some(meter))?;
        let (_, buffer) = block.output()?;
        band.copy_moved_overlap(band.bbox(), region, buffer)?;
        Ok(block)
    }
}

impl Source for NpySource {
    fn ty(&self) -> TensorType {
        TensorType::known(self.reader.header().dtype, &self.reader.header().shape)
    }

    fn fingerprint(&self) -> Option<Digest> {
        self.reader.fingerprint()
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        let header = self.reader.header();
        let order = if header.fortran { "column-major (Fortran)" } else { "row-major (C)" };
        format!("{order}, data from byte {} on", header.data_offset)
    }

    fn scratch(&self, region: &BoxRegion) -> u64 {
        self.reader.scratch(region)
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let block = match &self.bands {
            Some((ahead, number)) => self.read_from_band((ahead, *number), region, meter)?,
            None => self.reader.read_region(region, Some(meter))?,
        };
        Ok(Arc::new(block))
    }

    fn for_run(&self, bytes: u64, ahead: &Arc<ReadAhead>) -> Option<Arc<dyn Source>> {
        let is_mostly_read = bytes.saturating_mul(LEAST_SHARE_FOR_BANDS) >= self.reader.header().n_bytes();
        let bands = Some((ahead.clone(), ahead.add_reader()));
        is_mostly_read.then(|| Arc::new(NpySource { reader: self.reader.clone(), bands }) as Arc<dyn Source>)
    }
}

/// A region made wider along the fastest axes of a file until its runs are long, or as far as the limit allows. Regions that are cut evenly
/// are not cut by the ends of what they are widened to.
fn widened(reader: &NpyReader, region: &BoxRegion, limit: u64) -> BoxRegion {
    let header = reader.header();
    let mut wide = region.clone();
    let mut run = header.dtype.size();
    let rank = region.rank();
    for axis in (0..rank).map(|k| if header.fortran { k } else { rank - 1 - k }) {
        let (whole, extent) = (header.shape[axis], wide.hi[axis] - wide.lo[axis]);
        let bytes = wide.n_elements().saturating_mul(header.dtype.size());
        let own_run = run.saturating_mul(extent);
        if bytes <= own_run || own_run >= LONG_RUN {
            break;
        }
        let width = extent.saturating_mul(limit / bytes);
        if width < whole {
            if width > extent {
                wide.lo[axis] = wide.lo[axis] / width * width;
                wide.hi[axis] = whole.min(wide.hi[axis].max(wide.lo[axis] + width));
            }
            break;
        }
        (wide.lo[axis], wide.hi[axis]) = (0, whole);
        run = run.saturating_mul(whole);
    }
    wide
}

#[cfg(test)]
mod tests {
    use tw_ir::{Array, Axis, Buffer};

    use super::*;
    use tw_block::Points;

    fn file(name: &str, extents: &[u64]) -> (std::path::PathBuf, Arc<Array>) {
        let path = std::env::temp_dir().join(format!("tw-bands-{name}-{}.npy", std::process::id()));
        let n = extents.iter().product::<u64>() as u32;
        let array = Array::new(extents.to_vec(), Buffer::U32((0..n).collect())).unwrap();
        crate::write_array(&path, &array).unwrap();
        (path, Arc::new(array))
    }

    fn in_bands(path: &std::path::Path, limit: u64) -> Arc<dyn Source> {
        let source = crate::open(path).unwrap();
        source.for_run(source.n_bytes(), &ReadAhead::new(limit)).unwrap()
    }

    #[test]
    fn blocks_of_any_cut_are_those_of_the_file() {
        let (path, array) = file("cuts", &[50, 6, 70]);
        for tiles in [[50, 6, 1], [50, 1, 7], [7, 6, 70], [50, 6, 33], [20, 4, 9], [50, 6, 70]] {
            let grid: Vec<Axis> = array.shape().iter().zip(tiles).map(|(&n, tile)| Axis::uniform(n, tile)).collect();
            for limit in [0, 1000, 20_000, 1 << 20] {
                let bands = in_bands(&path, limit);
                let meter = Meter::new();
                let n_tiles: Vec<u64> = grid.iter().map(Axis::n_tiles).collect();
                let mut points = Points::new(&BoxRegion::whole(&n_tiles));
                while let Some(at) = points.next() {
                    let region = BoxRegion::from_ranges(at.iter().zip(&grid).map(|(&tile, axis)| axis.range(tile)));
                    let block = bands.read(&region, &meter).unwrap();
                    let expected = Block::view_of(&array, &region).unwrap().to_array().unwrap();
                    assert_eq!(block.to_array().unwrap(), expected, "{tiles:?} {limit} {region}");
                }
                drop(bands);
                assert_eq!(meter.now(), 0);
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn bands_go_when_all_of_them_is_read() {
        let (path, _) = file("gone", &[100, 100]);
        let (bands, meter) = (in_bands(&path, 1 << 20), Meter::new());
        for column in 0..100 {
            let region = BoxRegion { lo: vec![0, column], hi: vec![100, column + 1] };
            bands.read(&region, &meter).unwrap();
            assert_eq!(meter.now(), if column < 99 { 40_000 } else { 0 });
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn files_that_are_hardly_read_have_no_bands() {
        let (path, _) = file("hardly", &[100, 100]);
        let source = crate::open(&path).unwrap();
        // The file is smaller than what is read through at once.
        assert_eq!(source.scratch(&BoxRegion::whole(&[100, 1])), source.n_bytes());
        assert_eq!(source.layout(), "row-major (C), data from byte 128 on");
        assert!(source.for_run(source.n_bytes() / 5, &ReadAhead::new(1 << 20)).is_none());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn regions_are_widened_along_the_fastest_axes_as_far_as_memory_allows() {
        let (path, _) = file("wide", &[200, 300]);
        let reader = NpyReader::open(&path).unwrap();
        let region = |columns: std::ops::Range<u64>| BoxRegion::from_ranges([0..200, columns]);
        assert_eq!(widened(&reader, &region(6..9), 1 << 20), region(0..300));
        assert_eq!(widened(&reader, &region(6..9), 4 * 3 * 200 * 4), region(0..12));
        assert_eq!(widened(&reader, &region(12..15), 4 * 3 * 200 * 4), region(12..24));
        assert_eq!(widened(&reader, &region(6..9), 1000), region(6..9));
        // Whole rows are one run.
        let rows = BoxRegion::from_ranges([3..4, 0..300]);
        assert_eq!(widened(&reader, &rows, 1 << 20), rows);
        std::fs::remove_file(path).unwrap();
    }
}
