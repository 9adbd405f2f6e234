//! Blocks that share rows of a file, cut out of bands.
//!
//! A block of columns of a row-major file consists of short runs. Reading them one by one costs a call each; reading what lies between them costs
//! the whole file for every block. So the blocks beside it are read along: a band is a block made wider until its runs are long or it takes all
//! the memory that bands may take. It is held until every element has been asked for, or until newer bands need its place. Files in Fortran order
//! have the same with rows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tw_ir::{BoxRegion, Result};

use super::reader::NpyReader;
use crate::block::Block;
use crate::memory::Meter;

/// Runs of so many bytes are read as they are: the call of the system no longer matters.
const LONG_RUN: u64 = 16 << 10;

/// The bands of some files that several threads read blocks of.
#[derive(Debug)]
pub struct Bands {
    /// Bytes that all bands may hold.
    limit: u64,
    held: Mutex<Vec<Band>>,
}

#[derive(Debug)]
struct Band {
    /// Which of the files.
    file: u32,
    block: Arc<Block>,
    /// Elements that nobody has asked for.
    unread: u64,
}

impl Bands {
    /// Nothing yet, and never more than this many bytes.
    pub fn new(limit: u64) -> Bands {
        Bands { limit, held: Mutex::default() }
    }

    /// Reads one region of a file into a block of its own, out of a band if its runs are short. Callers give every file a number.
    pub fn read_region(
        &self,
        file: u32,
        reader: &NpyReader,
        region: &BoxRegion,
        meter: Option<&Arc<Meter>>,
    ) -> Result<Block> {
        // Half, because a thread may still be in the band before.
        let wide = widened(reader, region, self.limit / 2);
        if wide == *region {
            return reader.read_region(region, meter);
        }
        let band = self.band(file, reader, region, wide, meter)?;
        let mut block = Block::for_output(reader.header().dtype, region.clone(), meter)?;
        let (_, buffer) = block.output()?;
        band.copy_moved_overlap(band.bbox(), region, buffer)?;
        Ok(block)
    }

    /// The band that a region lies in. Threads wait here for whoever reads it.
    fn band(
        &self,
        file: u32,
        reader: &NpyReader,
        region: &BoxRegion,
        wide: BoxRegion,
        meter: Option<&Arc<Meter>>,
    ) -> Result<Arc<Block>> {
        let mut held = self.lock();
        let found = held.iter().position(|band| band.file == file && band.block.bbox().contains(region));
        let position = match found {
            Some(position) => position,
            None => {
                let bytes = wide.n_elements() * reader.header().dtype.size();
                while held.iter().map(|band| band.block.n_bytes()).sum::<u64>() + bytes > self.limit && !held.is_empty()
                {
                    held.remove(0);
                }
                let unread = wide.n_elements();
                held.push(Band { file, block: Arc::new(reader.read_region(&wide, meter)?), unread });
                held.len() - 1
            }
        };
        let band = &mut held[position];
        band.unread = band.unread.saturating_sub(region.n_elements());
        let block = Arc::clone(&band.block);
        if band.unread == 0 {
            held.remove(position);
        }
        Ok(block)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Band>> {
        // A list of bands is whole at every moment, whoever panicked while holding it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::walk::Points;

    fn file(name: &str, extents: &[u64]) -> (std::path::PathBuf, Arc<Array>) {
        let path = std::env::temp_dir().join(format!("tw-bands-{name}-{}.npy", std::process::id()));
        let n = extents.iter().product::<u64>() as u32;
        let array = Array::new(extents.to_vec(), Buffer::U32((0..n).collect())).unwrap();
        crate::npy::write_array(&path, &array).unwrap();
        (path, Arc::new(array))
    }

    #[test]
    fn blocks_of_any_cut_are_those_of_the_file() {
        let (path, array) = file("cuts", &[50, 6, 70]);
        let reader = NpyReader::open(&path).unwrap();
        for tiles in [[50, 6, 1], [50, 1, 7], [7, 6, 70], [50, 6, 33], [20, 4, 9], [50, 6, 70]] {
            let grid: Vec<Axis> = array.shape().iter().zip(tiles).map(|(&n, tile)| Axis::uniform(n, tile)).collect();
            for limit in [0, 1000, 20_000, 1 << 20] {
                let bands = Bands::new(limit);
                let meter = Meter::new();
                let n_tiles: Vec<u64> = grid.iter().map(Axis::n_tiles).collect();
                let mut points = Points::new(&BoxRegion::whole(&n_tiles));
                while let Some(at) = points.next() {
                    let region = BoxRegion::from_ranges(at.iter().zip(&grid).map(|(&tile, axis)| axis.range(tile)));
                    let block = bands.read_region(0, &reader, &region, Some(&meter)).unwrap();
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
        let reader = NpyReader::open(&path).unwrap();
        let (bands, meter) = (Bands::new(1 << 20), Meter::new());
        for column in 0..100 {
            let region = BoxRegion { lo: vec![0, column], hi: vec![100, column + 1] };
            bands.read_region(0, &reader, &region, Some(&meter)).unwrap();
            assert_eq!(meter.now(), if column < 99 { 40_000 } else { 0 });
        }
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
