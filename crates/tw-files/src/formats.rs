//! The table of formats. A path alone decides which one is used.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tw_ir::{Array, BoxRegion, DType, Error, Result};

use tw_block::Block;
use tw_block::Sink;
use tw_block::Source;

use crate::npy;

/// What is to be known about a format.
pub(crate) trait Format: Sync {
    /// How names of its files end, after the dot.
    fn extension(&self) -> &'static str;
    /// How its files begin.
    fn magic(&self) -> &'static [u8];
    fn open(&self, path: &Path) -> Result<Arc<dyn Source>>;
    fn create(&self, path: &Path, dtype: DType, shape: &[u64]) -> Result<Arc<dyn Sink>>;
}

const FORMATS: &[&dyn Format] = &[&npy::Npy];

fn named_by(path: &Path) -> Option<&'static dyn Format> {
    let extension = path.extension()?;
    FORMATS.iter().copied().find(|format| extension == format.extension())
}

/// The format of a file. Those with other names have always been `.npy` files.
fn format_of(path: &Path) -> &'static dyn Format {
    named_by(path).unwrap_or(&npy::Npy)
}

/// Opens a file, in the format that its name says. Elements are read when they are needed.
pub fn open(path: impl AsRef<Path>) -> Result<Arc<dyn Source>> {
    format_of(path.as_ref()).open(path.as_ref())
}

/// Begins a file, in the format that its name says.
pub fn create(path: impl AsRef<Path>, dtype: DType, shape: &[u64]) -> Result<Arc<dyn Sink>> {
    format_of(path.as_ref()).create(path.as_ref(), dtype, shape)
}

/// True if a file looks like one of the formats, by its name or by how it begins.
pub fn is_known(path: impl AsRef<Path>) -> Result<bool> {
    let path = path.as_ref();
    let longest = FORMATS.iter().map(|format| format.magic().len()).max().unwrap_or(0);
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(longest as u64).read_to_end(&mut start))
        .map_err(|error| Error::io(format!("{} cannot be read: {error}", path.display())))?;
    Ok(named_by(path).is_some() || FORMATS.iter().any(|format| start.starts_with(format.magic())))
}

/// Reads a whole file.
pub fn read_array(path: impl AsRef<Path>) -> Result<Array> {
    open(path)?.to_array()
}

/// Writes a whole array, replacing the file only when all of it is written.
pub fn write_array(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let sink = create(path, array.dtype(), array.shape())?;
    sink.write(&Block::view_of(&Arc::new(array.clone()), &BoxRegion::whole(array.shape()))?)?;
    sink.commit()
}
