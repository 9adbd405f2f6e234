//! NumPy's `.npy` files.
//!
//! Files are read and written at given positions, never mapped: a file that shrinks while it is open is an error with a name and an
//! offset, not a signal. A header is believed only as far as the length of the file supports it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tw_ir::{DType, Error, Grid, Result};

use crate::formats::{FileSummary, FileTarget, Format, KeptSink};
use tw_block::Sink;
use tw_block::Source;

mod header;
mod reader;
mod source;
mod writer;

pub use header::NpyHeader;
pub use reader::NpyReader;
pub use writer::NpyWriter;

/// The format, for the table of all.
pub(crate) struct Npy;

impl Format for Npy {
    fn names(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "npy")
    }

    fn begins(&self, path: &Path) -> bool {
        let mut start = [0; header::MAGIC.len()];
        let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *header::MAGIC
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(source::NpySource::new(NpyReader::open(path)?)))
    }

    fn create(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>> {
        refuse_options(path, target)?;
        Ok(Arc::new(NpyWriter::create(path, dtype, &grid.shape())?))
    }

    fn join(&self, path: &Path, dtype: DType, grid: &Grid, _: &FileTarget, joint: &str) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(NpyWriter::join(path, dtype, &grid.shape(), joint)?))
    }

    fn create_kept(
        &self,
        path: &Path,
        (dtype, grid): (DType, &Grid),
        target: &FileTarget,
        name: &str,
    ) -> Result<KeptSink> {
        refuse_options(path, target)?;
        let (writer, found) = NpyWriter::create_kept(path, dtype, &grid.shape(), name)?;
        Ok(KeptSink { sink: Arc::new(writer), keeps: true, found })
    }

    fn blocks_for(&self, _: &Path, _: DType, _: &[u64], _: &FileTarget) -> Result<Option<Grid>> {
        Ok(None)
    }

    fn describe(&self, path: &Path) -> Result<FileSummary> {
        let header = NpyReader::open(path)?.header().clone();
        Ok(FileSummary {
            format: "NumPy".into(),
            lines: Vec::new(),
            bytes_on_disk: Some(header.data_offset + header.n_bytes()),
        })
    }
}

fn refuse_options(path: &Path, target: &FileTarget) -> Result<()> {
    if *target == FileTarget::default() {
        return Ok(());
    }
    let message = format!("{}: .npy files are written as a whole and have no options", path.display());
    Err(Error::source(message).help("write a Zarr array, with a name that ends in .zarr"))
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}
