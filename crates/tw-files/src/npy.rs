//! NumPy's `.npy` files.
//!
//! Files are read and written at given positions, never mapped: a file that shrinks while it is open is an error with a name and an
//! offset, not a signal. A header is believed only as far as the length of the file supports it.

use std::path::Path;
use std::sync::Arc;

use tw_ir::{DType, Error, Result, TimeUnit};

use crate::formats::Format;
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
    fn extension(&self) -> &'static str {
        "npy"
    }

    fn magic(&self) -> &'static [u8] {
        header::MAGIC
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Source>> {
        Ok(Arc::new(source::NpySource::new(NpyReader::open(path)?)))
    }

    fn create(&self, path: &Path, dtype: DType, shape: &[u64]) -> Result<Arc<dyn Sink>> {
        Ok(Arc::new(NpyWriter::create(path, dtype, shape)?))
    }
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
