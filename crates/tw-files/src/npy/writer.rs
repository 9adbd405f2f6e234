//! Writing blocks.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tw_ir::{BoxRegion, Buffer, DType, Error, Result, shape};

use super::{failed, header};
use crate::spool::Temporary;
use tw_block::Block;
use tw_block::Points;
use tw_block::Sink;
use tw_block::write_elements;

/// A file being written. Blocks may be written by several threads at once. The file gets its name only when it is committed; a writer
/// that is dropped before leaves nothing behind.
#[derive(Debug)]
pub struct NpyWriter {
    path: PathBuf,
    file: Temporary,
    dtype: DType,
    shape: Vec<u64>,
    data_offset: u64,
    /// Held while the rows of a block are written. The system lets one thread at a time write to a file; a second one would spin in the kernel for every row,
    /// instead of sleeping until the block is written.
    turn: Mutex<()>,
}

impl NpyWriter {
    /// Begins a file of the given type and shape, full of zeros.
    pub fn create(path: impl AsRef<Path>, dtype: DType, shape: &[u64]) -> Result<NpyWriter> {
        Ok(NpyWriter::begin(path.as_ref(), dtype, shape, None)?.0)
    }

    /// Goes on with a file that an earlier process has begun under this name, or begins it. Tells whether it was found. What is written stays when the writer is dropped.
    pub fn create_kept(path: impl AsRef<Path>, dtype: DType, shape: &[u64], name: &str) -> Result<(NpyWriter, bool)> {
        NpyWriter::begin(path.as_ref(), dtype, shape, Some(name))
    }

    /// With a name, goes on with what an earlier process has begun under it, and tells whether there was anything.
    fn begin(path: &Path, dtype: DType, shape: &[u64], name: Option<&str>) -> Result<(NpyWriter, bool)> {
        let n_bytes = shape::n_bytes(shape, dtype.size())?;
        let header = header::write(dtype, shape)?;
        let length = header.len() as u64 + n_bytes;
        let file = name.map_or_else(|| Temporary::create(path), |name| Temporary::kept(path, name))?;
        let found =
            name.is_some() && file.begins_with(&header) && file.file.metadata().is_ok_and(|data| data.len() == length);
        let (path, shape) = (path.to_path_buf(), shape.to_vec());
        let (data_offset, turn) = (header.len() as u64, Mutex::new(()));
        let writer = NpyWriter { path, file, dtype, shape, data_offset, turn };
        if !found {
            // The length comes last: a file of that length has its header.
            writer.file.file.set_len(0).map_err(|error| writer.write_failed(0, &error))?;
            writer.file.write_at(&header, 0)?;
            writer.file.file.set_len(length).map_err(|error| writer.write_failed(length, &error))?;
        }
        Ok((writer, found))
    }

    /// Joins a file that another process has begun: `joint` is what [`Sink::joint`] says there.
    pub(super) fn join(path: &Path, dtype: DType, shape: &[u64], joint: &str) -> Result<NpyWriter> {
        let file = Temporary::join(path, joint)?;
        let data_offset = header::write(dtype, shape)?.len() as u64;
        Ok(NpyWriter {
            path: path.to_path_buf(),
            file,
            dtype,
            shape: shape.to_vec(),
            data_offset,
            turn: Mutex::new(()),
        })
    }

    fn write_run(&self, start: u64, buffer: &Buffer, range: std::ops::Range<usize>) -> Result<()> {
        let mut offset = self.data_offset + start * self.dtype.size();
        write_elements(buffer, range, |bytes| {
            self.file.write_at(bytes, offset)?;
            offset += bytes.len() as u64;
            Ok::<(), Error>(())
        })
    }

    fn write_failed(&self, offset: u64, error: &std::io::Error) -> Error {
        failed(&self.path, &format!("cannot be written at byte {offset}"), error)
    }
}

impl Sink for NpyWriter {
    fn write(&self, block: &Block) -> Result<()> {
        let region = block.bbox();
        let outside = region.rank() != self.shape.len() || region.hi.iter().zip(&self.shape).any(|(hi, n)| hi > n);
        if outside || !block.is_dense() || block.dtype() != self.dtype.storage() {
            return Err(Error::internal(format!(
                "a {} block at {region} for {} {} of {}",
                block.dtype(),
                self.dtype,
                shape::display(&self.shape),
                self.path.display()
            )));
        }
        if region.is_empty() {
            return Ok(());
        }
        // Trailing axes that are whole in the file and contiguous in the block, and one more, make one run.
        let (file_strides, block_strides) = (shape::row_major_strides(&self.shape), block.strides());
        let mut outer = self.shape.len();
        let mut run = 1u64;
        while outer > 0 && block_strides[outer - 1] as u64 == run && file_strides[outer - 1] == run {
            outer -= 1;
            run *= region.hi[outer] - region.lo[outer];
        }
        let rows = BoxRegion { lo: region.lo[..outer].to_vec(), hi: region.hi[..outer].to_vec() };
        let inner_start: u64 = (outer..self.shape.len()).map(|axis| region.lo[axis] * file_strides[axis]).sum();
        let mut points = Points::new(&rows);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(at) = points.next() {
            let start = inner_start + at.iter().zip(&file_strides).map(|(c, stride)| c * stride).sum::<u64>();
            let from: usize =
                at.iter().zip(&region.lo).zip(&block_strides).map(|((c, lo), s)| (c - lo) as usize * s).sum();
            let from = block.offset() + from;
            self.write_run(start, block.data(), from..from + run as usize)?;
        }
        Ok(())
    }

    fn joint(&self) -> Option<String> {
        self.file.joint()
    }

    fn make_durable(&self) -> Result<()> {
        self.file.make_durable()
    }

    fn commit(&self) -> Result<()> {
        self.file.commit()
    }
}
