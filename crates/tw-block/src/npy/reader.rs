//! Reading regions.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_ir::{BoxRegion, Error, Result, shape};

use super::failed;
use super::header::{self, NpyHeader};
use crate::block::Block;
use crate::bytes::{read_elements, swap_bytes};
use crate::memory::Meter;
use crate::walk::Points;

/// How much of a file in Fortran order is held besides the block it is read into.
const SLAB_BYTES: u64 = 4 << 20;

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

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads one region into a block of its own.
    pub fn read_region(&self, region: &BoxRegion, meter: Option<&Arc<Meter>>) -> Result<Block> {
        let whole = &self.header.shape;
        if region.rank() != whole.len() || region.hi.iter().zip(whole).any(|(hi, n)| hi > n) {
            return Err(Error::internal(format!("a region {region} of a file of shape {}", shape::display(whole))));
        }
        let mut block = Block::for_output(self.header.dtype, region.clone(), meter)?;
        if self.header.fortran {
            self.read_fortran(region, &mut block, meter)?;
        } else {
            self.read_rows(whole, region, &mut block)?;
        }
        Ok(block)
    }

    /// Reads a region of a file in Fortran order, which is the C order of the transposed array: slab by slab, so that little more than the block itself
    /// is ever held.
    fn read_fortran(&self, region: &BoxRegion, block: &mut Block, meter: Option<&Arc<Meter>>) -> Result<()> {
        let reversed = |extents: &[u64]| extents.iter().rev().copied().collect::<Vec<u64>>();
        let whole = reversed(&self.header.shape);
        let mut slab = BoxRegion { lo: reversed(&region.lo), hi: reversed(&region.hi) };
        let Some(&end) = slab.hi.first() else { return self.read_rows(&whole, &slab, block) };
        let row_bytes = region.n_elements() / (end - slab.lo[0]).max(1) * self.header.dtype.size();
        let rows = (SLAB_BYTES / row_bytes.max(1)).max(1);
        while slab.lo[0] < end {
            slab.hi[0] = end.min(slab.lo[0] + rows);
            let mut part = Block::for_output(self.header.dtype, slab.clone(), meter)?;
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
        let rows = BoxRegion { lo: region.lo[..outer].to_vec(), hi: region.hi[..outer].to_vec() };
        let inner_start: u64 = (outer..whole.len()).map(|axis| region.lo[axis] * strides[axis]).sum();
        let (_, buffer) = block.output()?;
        let mut points = Points::new(&rows);
        let mut filled = 0usize;
        while let Some(at) = points.next() {
            let start = inner_start + at.iter().zip(&strides).map(|(c, stride)| c * stride).sum::<u64>();
            let mut offset = self.header.data_offset + start * size;
            read_elements(buffer, filled..filled + run as usize, |bytes| {
                self.file.read_exact_at(bytes, offset).map_err(|error| {
                    failed(&self.path, &format!("{} bytes at byte {offset} cannot be read", bytes.len()), &error)
                })?;
                offset += bytes.len() as u64;
                Ok::<(), Error>(())
            })?;
            if self.header.big_endian {
                swap_bytes(buffer, filled..filled + run as usize);
            }
            filled += run as usize;
        }
        Ok(())
    }
}
