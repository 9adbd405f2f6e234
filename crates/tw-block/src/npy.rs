//! NumPy's `.npy` files.
//!
//! Files are read and written at given positions, never mapped: a file that shrinks while it is open is an error with a name and an
//! offset, not a signal. A header is believed only as far as the length of the file supports it.

use std::fs::File;
use std::path::Path;

use tw_ir::{Array, BoxRegion, DType, Error, Result};

mod header;
mod reader;
mod writer;

pub use header::NpyHeader;
pub use reader::NpyReader;
pub use writer::NpyWriter;

/// Reads and checks the header of a file.
pub fn read_header(path: impl AsRef<Path>) -> Result<NpyHeader> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| failed(path, "cannot be opened", &error))?;
    header::read(path, &file)
}

/// Reads a whole file.
pub fn read_array(path: impl AsRef<Path>) -> Result<Array> {
    let reader = NpyReader::open(path)?;
    let whole = BoxRegion::whole(&reader.header().shape);
    reader.read_region(&whole, None)?.into_array()
}

/// Writes a whole array, replacing the file only when all of it is written.
pub fn write_array(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let writer = NpyWriter::create(path, array.dtype(), array.shape())?;
    writer.write_rows(0, array.data())?;
    writer.commit()
}

/// How a dtype is written in a header.
fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::I64 => "<i8",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}
