//! NumPy's `.npy` files.
//!
//! Files are read and written at given positions, never mapped: a file that shrinks while it is open is an error with a name and an
//! offset, not a signal. A header is believed only as far as the length of the file supports it.

use std::fs::File;
use std::path::Path;

use tw_ir::{Array, BoxRegion, DType, Error, Result, TimeUnit};

mod bands;
mod header;
mod reader;
mod writer;

pub use bands::Bands;
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
    reader.read_region(&whole, None)?.into_array()?.with_dtype(reader.header().dtype)
}

/// Writes a whole array, replacing the file only when all of it is written.
pub fn write_array(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let writer = NpyWriter::create(path, array.dtype(), array.shape())?;
    writer.write_rows(0, array.data())?;
    writer.commit()
}

/// How a dtype is written in a header. NumPy has no bfloat16.
fn descr(dtype: DType) -> Option<String> {
    Some(match dtype {
        DType::BF16 => return None,
        DType::Bool => "|b1".into(),
        DType::DateTime(unit) => format!("<M8[{}]", unit.name()),
        DType::TimeDelta(unit) => format!("<m8[{}]", unit.name()),
        _ => {
            let kind = match dtype {
                _ if dtype.is_float() => 'f',
                _ if dtype.is_complex() => 'c',
                _ if dtype.is_unsigned() => 'u',
                _ => 'i',
            };
            let order = if dtype.size() == 1 { '|' } else { '<' };
            format!("{order}{kind}{}", dtype.size())
        }
    })
}

/// The dtype a header names, and whether its bytes are in big-endian order. `=` is what NumPy wrote on some machine, which we take for little-endian.
fn parse_descr(text: &str) -> Option<(DType, bool)> {
    let body = text.strip_prefix(['<', '>', '|', '=']).unwrap_or(text);
    let times = TimeUnit::ALL.iter().flat_map(|&unit| [DType::DateTime(unit), DType::TimeDelta(unit)]);
    let dtype =
        DType::PHYSICAL.into_iter().chain(times).find(|&dtype| descr(dtype).is_some_and(|d| &d[1..] == body))?;
    Some((dtype, text.starts_with('>') && dtype.size() > 1))
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}
