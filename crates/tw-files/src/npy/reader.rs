//! Reading regions.
//!
//! A call of the system costs as much as copying a few KiB. So runs of elements that lie close to each other in the file are read with what is between
//! them and picked out in memory (data sieving). Blocks that share rows of a file, such as its columns, are cut out of bands: see [`super::source`].

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_ir::schedule::Digest;
use tw_ir::{BoxRegion, Buffer, Error, Result, shape};

use super::failed;
use super::header::{self, NpyHeader};
use tw_block::Block;
use tw_block::Meter;
use tw_block::Points;
use tw_block::copy_strided;
use tw_block::zeros;
use tw_block::{read_elements, swap_bytes};

/// How much of a file in Fortran order is held besides the block it is read into. Whoever runs the task counts it ([`NpyReader::scratch`]).
const SLAB_BYTES: u64 = 4 << 20;

/// Bytes between two runs up to which it is cheaper to read them than to call the system twice.
const SHORT_GAP: u64 = 4 << 10;

/// Bytes that are read at once to pick runs out of them; they stay in a cache.
const SIEVE_BYTES: u64 = 512 << 10;

/// An open file. Regions may be read by several threads at once.
#[derive(Debug)]
pub struct NpyReader {
    path: PathBuf,
    file: File,
    header: NpyHeader,
}

impl NpyReader {
    /// Opens a file and checks its header.
    pub fn open(path: impl AsRef<Path>) -> Result<NpyReader> {
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(|error| failed(&path, "cannot be opened", &error))?;
        let header = header::read(&path, &file)?;
        Ok(NpyReader { path, file, header })
    }

    /// What the file holds.
    pub fn header(&self) -> &NpyHeader {
        &self.header
    }

    /// What tells this version of the file from others, as far as the system knows.
    pub(super) fn fingerprint(&self) -> Option<Digest> {
        let metadata = self.file.metadata().ok()?;
        let facts = [metadata.dev(), metadata.ino(), metadata.len()];
        let times = [metadata.mtime(), metadata.mtime_nsec()];
        let facts = facts.map(u64::to_le_bytes).into_iter().chain(times.map(i64::to_le_bytes));
        Some(Digest::of("tilewright 1 version of a file", &[&facts.collect::<Vec<_>>().concat()]))
    }

    /// At most so many bytes are held beside the block while a region is read.
    pub(super) fn scratch(&self, region: &BoxRegion) -> u64 {
        let bytes = region.n_elements().saturating_mul(self.header.dtype.size());
        let slab = match (region.lo.last(), region.hi.last()) {
            // A row is read at once, however long it is.
            (Some(lo), Some(hi)) if self.header.fortran => SLAB_BYTES.max(bytes / (hi - lo).max(1)).min(bytes),
            _ => 0,
        };
        slab + SIEVE_BYTES.min(self.header.n_bytes())
    }

    /// Reads one region into a block of its own.
    pub fn read_region(&self, region: &BoxRegion, meter: Option<&Arc<Meter>>) -> Result<Block> {
        let whole = &self.header.shape;
        if region.rank() != whole.len() || region.hi.iter().zip(whole).any(|(hi, n)| hi > n) {
            return Err(Error::internal(format!("a region {region} of a file of shape {}", shape::display(whole))));
        }
        let mut block = Block::for_output(self.header.dtype, region.clone(), meter)?;
        if self.header.fortran {
            self.read_fortran(region, &mut block)?;
        } else {
            self.read_rows(whole, region, &mut block)?;
        }
        Ok(block)
    }

    /// Reads a region of a file in Fortran order, which is the C order of the transposed array: slab by slab, so that little more than the block itself
    /// is ever held.
    fn read_fortran(&self, region: &BoxRegion, block: &mut Block) -> Result<()> {
        let reversed = |extents: &[u64]| extents.iter().rev().copied().collect::<Vec<u64>>();
        let whole = reversed(&self.header.shape);
        let mut slab = BoxRegion { lo: reversed(&region.lo), hi: reversed(&region.hi) };
        let Some(&end) = slab.hi.first() else { return self.read_rows(&whole, &slab, block) };
        let row_bytes = region.n_elements() / (end - slab.lo[0]).max(1) * self.header.dtype.size();
        let rows = (SLAB_BYTES / row_bytes.max(1)).max(1);
        while slab.lo[0] < end {
            slab.hi[0] = end.min(slab.lo[0] + rows);
            let mut part = Block::for_output(self.header.dtype, slab.clone(), None)?;
            self.read_rows(&whole, &slab, &mut part)?;
            part.copy_transposed_into(block)?;
            slab.lo[0] = slab.hi[0];
        }
        Ok(())
    }

    /// Reads a region of row-major data of the given shape, one contiguous run at a time.
    fn read_rows(&self, whole: &[u64], region: &BoxRegion, block: &mut Block) -> Result<()> {
        if region.is_empty() {
            return Ok(());
        }
        let strides = shape::row_major_strides(whole);
        // Trailing axes read in full, and one more, make one run.
        let mut outer = whole.len();
        let mut run = 1u64;
        while outer > 0 {
            outer -= 1;
            run *= region.hi[outer] - region.lo[outer];
            if run < strides[outer] * whole[outer] {
                break;
            }
        }
        let size = self.header.dtype.size();
        // Along the axis before them runs follow each other at an even distance; those that are close are read together.
        let n_even = if outer == 0 { 1 } else { region.hi[outer - 1] - region.lo[outer - 1] };
        let distance = if outer == 0 { run } else { strides[outer - 1] };
        let is_close = (distance - run) * size <= SHORT_GAP;
        let most = if is_close { (SIEVE_BYTES / (distance * size).max(1)).clamp(1, n_even) } else { 1 };
        let mut sieve = match most {
            1 => None,
            _ => {
                Some(zeros(self.header.dtype.storage(), ((most - 1) * distance + run) as usize).ok_or_else(no_memory)?)
            }
        };
        let inner_start: u64 = (outer..whole.len()).map(|axis| region.lo[axis] * strides[axis]).sum();
        let (_, buffer) = block.output()?;
        let mut starts = BoxRegion { lo: region.lo[..outer].to_vec(), hi: region.hi[..outer].to_vec() };
        if outer > 0 {
            starts.hi[outer - 1] = starts.lo[outer - 1] + 1;
        }
        let mut points = Points::new(&starts);
        let mut filled = 0usize;
        while let Some(at) = points.next() {
            let start = inner_start + at.iter().zip(&strides).map(|(c, stride)| c * stride).sum::<u64>();
            let mut k = 0;
            while k < n_even {
                let n = most.min(n_even - k);
                let first = self.header.data_offset + (start + k * distance) * size;
                let end = filled + (n * run) as usize;
                match &mut sieve {
                    Some(sieve) => {
                        self.read_at(first, sieve, 0..((n - 1) * distance + run) as usize)?;
                        let from = (&*sieve, 0, &[distance as usize, 1][..]);
                        copy_strided(&[n, run], from, (buffer, filled, &[run as usize, 1]))?;
                    }
                    None => self.read_at(first, buffer, filled..end)?,
                }
                if self.header.big_endian {
                    swap_bytes(buffer, filled..end);
                }
                (filled, k) = (end, k + n);
            }
        }
        Ok(())
    }

    /// Fills some elements of a buffer with those that follow each other from a byte of the file on.
    fn read_at(&self, mut offset: u64, buffer: &mut Buffer, range: std::ops::Range<usize>) -> Result<()> {
        read_elements(buffer, range, |bytes| {
            self.file.read_exact_at(bytes, offset).map_err(|error| {
                failed(&self.path, &format!("{} bytes at byte {offset} cannot be read", bytes.len()), &error)
            })?;
            offset += bytes.len() as u64;
            Ok::<(), Error>(())
        })
    }
}

fn no_memory() -> Error {
    Error::resource("no memory to read a file through")
}
