//! Writing blocks.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tw_ir::{BoxRegion, Buffer, DType, Error, Result, shape};

use super::{failed, header};
use tw_block::Block;
use tw_block::Points;
use tw_block::Sink;
use tw_block::write_elements;

/// A file being written. Blocks may be written by several threads at once. The file gets its name only when it is committed; a writer
/// that is dropped before leaves nothing behind.
#[derive(Debug)]
pub struct NpyWriter {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    dtype: DType,
    shape: Vec<u64>,
    data_offset: u64,
    committed: AtomicBool,
    /// True if another process has begun the file and gives it its name.
    is_joined: bool,
    /// True if what was written stays when the writer is dropped before it commits.
    is_kept: bool,
    /// Held while the rows of a block are written. The system lets one thread at a time write to a file; a second one would spin in the kernel for every row,
    /// instead of sleeping until the block is written.
    turn: Mutex<()>,
}

/// Tells apart the temporaries of one process.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl NpyWriter {
    /// Begins a file of the given type and shape, full of zeros.
    pub fn create(path: impl AsRef<Path>, dtype: DType, shape: &[u64]) -> Result<NpyWriter> {
        let number = NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        Ok(NpyWriter::begin(path.as_ref(), dtype, shape, &name, false)?.0)
    }

    /// Goes on with a file that an earlier process has begun under this name, or begins it. Tells whether it was found. What is written stays when the writer is dropped.
    pub fn create_kept(path: impl AsRef<Path>, dtype: DType, shape: &[u64], name: &str) -> Result<(NpyWriter, bool)> {
        NpyWriter::begin(path.as_ref(), dtype, shape, name, true)
    }

    fn begin(path: &Path, dtype: DType, shape: &[u64], name: &str, is_kept: bool) -> Result<(NpyWriter, bool)> {
        let path = path.to_path_buf();
        let n_bytes = shape::n_bytes(shape, dtype.size())?;
        let header = header::write(dtype, shape)?;
        let own_name = path.file_name().ok_or_else(|| Error::io(format!("{} does not name a file", path.display())))?;
        let mut temporary_name = std::ffi::OsString::from(".");
        temporary_name.push(own_name);
        temporary_name.push(format!(".{name}.tmp"));
        let temporary = path.with_file_name(temporary_name);
        let mut options = File::options();
        options.write(true).read(is_kept);
        if is_kept {
            options.create(true).truncate(false)
        } else {
            options.create_new(true)
        };
        let file = options.open(&temporary).map_err(|error| failed(&path, "cannot be created", &error))?;
        let data_offset = header.len() as u64;
        let length = data_offset + n_bytes;
        let found = is_kept && begins_with(&file, &header) && file.metadata().is_ok_and(|data| data.len() == length);
        let (shape, committed) = (shape.to_vec(), AtomicBool::new(false));
        let turn = Mutex::new(());
        let is_joined = false;
        let writer =
            NpyWriter { path, temporary, file, dtype, shape, data_offset, committed, is_joined, is_kept, turn };
        if !found {
            // The length comes last: a file of that length has its header.
            writer.file.set_len(0).map_err(|error| writer.write_failed(0, &error))?;
            writer.file.write_all_at(&header, 0).map_err(|error| writer.write_failed(0, &error))?;
            writer.file.set_len(length).map_err(|error| writer.write_failed(length, &error))?;
        }
        Ok((writer, found))
    }

    /// Joins a file that another process has begun: `joint` is what [`Sink::joint`] says there.
    pub(super) fn join(path: &Path, dtype: DType, shape: &[u64], joint: &str) -> Result<NpyWriter> {
        let temporary = PathBuf::from(joint);
        let file = File::options().write(true).open(&temporary).map_err(|error| {
            failed(path, "was begun by another rank and cannot be opened", &error)
                .help("ranks write to one file system: choose a directory that all of them share")
        })?;
        Ok(NpyWriter {
            path: path.to_path_buf(),
            temporary,
            file,
            dtype,
            shape: shape.to_vec(),
            data_offset: header::write(dtype, shape)?.len() as u64,
            committed: AtomicBool::new(false),
            is_joined: true,
            is_kept: false,
            turn: Mutex::new(()),
        })
    }

    fn write_run(&self, start: u64, buffer: &Buffer, range: std::ops::Range<usize>) -> Result<()> {
        let mut offset = self.data_offset + start * self.dtype.size();
        write_elements(buffer, range, |bytes| {
            self.file.write_all_at(bytes, offset).map_err(|error| self.write_failed(offset, &error))?;
            offset += bytes.len() as u64;
            Ok::<(), Error>(())
        })
    }

    fn write_failed(&self, offset: u64, error: &std::io::Error) -> Error {
        failed(&self.path, &format!("cannot be written at byte {offset}"), error)
    }
}

fn begins_with(file: &File, header: &[u8]) -> bool {
    let mut start = vec![0; header.len()];
    file.read_exact_at(&mut start, 0).is_ok() && start == header
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
        let absolute = std::path::absolute(&self.temporary).ok()?;
        absolute.to_str().map(str::to_string)
    }

    fn make_durable(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| failed(&self.path, "cannot be made durable", &error))
    }

    fn commit(&self) -> Result<()> {
        if self.is_joined {
            return Ok(());
        }
        fs::rename(&self.temporary, &self.path).map_err(|error| failed(&self.path, "cannot be replaced", &error))?;
        self.committed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for NpyWriter {
    fn drop(&mut self) {
        if !*self.committed.get_mut() && !self.is_kept && !self.is_joined {
            // Nothing can be done about a failure here, and the error that led here is more important.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
