//! Elements of a block as pages of a column.

use tw_ir::{Buffer, DType, Error, Result, TimeUnit};

use super::pages::{PLAIN, RLE};
use super::thrift_writer::Writer;

/// Elements of a page: 1 MiB of numbers of 64 bits.
pub(super) const PAGE_ROWS: usize = 1 << 17;

/// What stands for a missing time in a block.
const NAT: i64 = i64::MIN;

/// How pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressor {
    None,
    Snappy,
    Gzip(u32),
    Zstd(i32),
    Lz4,
}

impl Compressor {
    /// The compressor of a name with a level; zstd at its fastest level unless one is named.
    pub(super) fn named(codec: Option<&(String, i64)>) -> Result<Compressor, String> {
        let Some((name, level)) = codec else { return Ok(Compressor::Zstd(1)) };
        let in_range = |most: i64| match (1..=most).contains(level) {
            true => Ok(*level as i32),
            false => Err(format!("{name} has levels from 1 to {most}, not {level}")),
        };
        Ok(match name.as_str() {
            "none" => Compressor::None,
            "snappy" => Compressor::Snappy,
            "lz4" => Compressor::Lz4,
            "gzip" => Compressor::Gzip(in_range(9)? as u32),
            "zstd" => Compressor::Zstd(in_range(22)?),
            other => {
                return Err(format!(
                    "there is no codec `{}`: none, snappy, gzip, zstd and lz4 are known",
                    other.escape_debug()
                ));
            }
        })
    }

    /// The number of the codec in the specification.
    pub(super) fn number(self) -> i32 {
        match self {
            Compressor::None => 0,
            Compressor::Snappy => 1,
            Compressor::Gzip(_) => 2,
            Compressor::Zstd(_) => 6,
            Compressor::Lz4 => 7,
        }
    }

    fn compress(self, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
        match self {
            Compressor::None => Ok(bytes),
            Compressor::Snappy => snap::raw::Encoder::new().compress_vec(&bytes).map_err(|error| error.to_string()),
            Compressor::Lz4 => Ok(lz4_flex::block::compress(&bytes)),
            Compressor::Zstd(level) => zstd::bulk::compress(&bytes, level).map_err(|error| error.to_string()),
            Compressor::Gzip(level) => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
                let written = std::io::Write::write_all(&mut encoder, &bytes);
                written.and_then(|()| encoder.finish()).map_err(|error| error.to_string())
            }
        }
    }
}

/// How elements of a type are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    /// The number of the physical type: bool 0, int32 1, int64 2, float 4, double 5.
    pub(super) physical: i32,
    /// True if elements may be missing.
    pub(super) is_optional: bool,
    pub(super) logical: Option<Logical>,
}

/// What a physical type stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Logical {
    Integer { bits: u8, is_signed: bool },
    Date,
    Timestamp(TimeUnit),
}

impl Stored {
    /// How a type is stored; `None` if the format has nothing for it.
    pub(super) fn of(dtype: DType) -> Option<Stored> {
        let integer = |physical, bits, is_signed| (physical, Some(Logical::Integer { bits, is_signed }));
        let (physical, logical) = match dtype {
            DType::Bool => (0, None),
            DType::I8 => integer(1, 8, true),
            DType::I16 => integer(1, 16, true),
            DType::I32 => (1, None),
            DType::I64 => (2, None),
            DType::U8 => integer(1, 8, false),
            DType::U16 => integer(1, 16, false),
            DType::U32 => integer(1, 32, false),
            DType::U64 => integer(2, 64, false),
            DType::F32 => (4, None),
            DType::F64 => (5, None),
            DType::DateTime(TimeUnit::Day) => (1, Some(Logical::Date)),
            DType::DateTime(unit @ (TimeUnit::Milli | TimeUnit::Micro | TimeUnit::Nano)) => {
                (2, Some(Logical::Timestamp(unit)))
            }
            _ => return None,
        };
        Some(Stored { physical, is_optional: dtype.time_unit().is_some(), logical })
    }
}

/// Elements of a block that follow each other with a stride.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    pub(super) buffer: &'a Buffer,
    pub(super) first: usize,
    pub(super) stride: usize,
}

/// A page with its header.
pub(super) struct EncodedPage {
    pub(super) bytes: Vec<u8>,
    /// Bytes that it would have without compression.
    pub(super) unfolded: u64,
}

/// The `n` elements from the `skip`-th on as a page. `row` is where the first of them lies in the file, for errors.
pub(super) fn page(
    elements: Elements<'_>,
    (skip, n): (usize, usize),
    stored: Stored,
    compressor: Compressor,
    row: u64,
) -> Result<EncodedPage> {
    let mut values = Vec::new();
    if stored.is_optional {
        times(elements, (skip, n), stored, row, &mut values)?;
    } else {
        plain(elements, (skip, n), &mut values)?;
    }
    let unfolded = values.len();
    let compressed =
        compressor.compress(values).map_err(|what| Error::io(format!("a page cannot be compressed: {what}")))?;
    let size = |n: usize| i32::try_from(n).map_err(|_| Error::internal("a page of more than 2 GiB"));
    let (in_file, unfolded) = (size(compressed.len())?, size(unfolded)?);
    let n_values = size(n)?;
    let mut bytes = Writer::whole(|header| {
        header.i32(1, 0);
        header.i32(2, unfolded);
        header.i32(3, in_file);
        header.nested(5, |data| {
            data.i32(1, n_values);
            data.i32(2, PLAIN);
            data.i32(3, RLE);
            data.i32(4, RLE);
        });
    });
    let unfolded = bytes.len() as u64 + unfolded as u64;
    bytes.extend_from_slice(&compressed);
    Ok(EncodedPage { bytes, unfolded })
}

/// Plain values, the lowest byte first. Integers of few bits take 32.
fn plain(elements: Elements<'_>, (skip, n): (usize, usize), out: &mut Vec<u8>) -> Result<()> {
    let Elements { buffer, first, stride } = elements;
    macro_rules! put {
        ($values:expr, $bytes:expr) => {{
            let values = &$values[first + skip * stride..];
            values.iter().step_by(stride).take(n).for_each(|value| out.extend_from_slice(&$bytes(*value)))
        }};
    }
    match buffer {
        Buffer::Bool(values) => {
            let values: Vec<bool> = values[first + skip * stride..].iter().step_by(stride).take(n).copied().collect();
            let eight = |bits: &[bool]| bits.iter().rev().fold(0u8, |byte, &bit| byte << 1 | bit as u8);
            out.extend(values.chunks(8).map(eight));
        }
        Buffer::I8(values) => put!(values, |x| i32::from(x).to_le_bytes()),
        Buffer::I16(values) => put!(values, |x| i32::from(x).to_le_bytes()),
        Buffer::I32(values) => put!(values, i32::to_le_bytes),
        Buffer::I64(values) => put!(values, i64::to_le_bytes),
        Buffer::U8(values) => put!(values, |x| u32::from(x).to_le_bytes()),
        Buffer::U16(values) => put!(values, |x| u32::from(x).to_le_bytes()),
        Buffer::U32(values) => put!(values, u32::to_le_bytes),
        Buffer::U64(values) => put!(values, u64::to_le_bytes),
        Buffer::F32(values) => put!(values, f32::to_le_bytes),
        Buffer::F64(values) => put!(values, f64::to_le_bytes),
        other => return Err(Error::internal(format!("elements of {} in a Parquet file", other.dtype()))),
    }
    Ok(())
}

/// Times: a level for each says whether it is there, then come those that are.
fn times(elements: Elements<'_>, (skip, n): (usize, usize), stored: Stored, row: u64, out: &mut Vec<u8>) -> Result<()> {
    let Elements { buffer: Buffer::I64(values), first, stride } = elements else {
        return Err(Error::internal(format!("times as {}", elements.buffer.dtype())));
    };
    let values = || values[first + skip * stride..].iter().step_by(stride).take(n).copied();
    // All levels as one run if nothing is missing, or else as bits.
    let n_bits = n.div_ceil(8) as u64;
    let mut levels = Vec::new();
    let is_whole = values().all(|value| value != NAT);
    let mut header = if is_whole { (n as u64) << 1 } else { n_bits << 1 | 1 };
    while header >= 0x80 {
        levels.push(header as u8 | 0x80);
        header >>= 7;
    }
    levels.push(header as u8);
    if is_whole {
        levels.push(1);
    } else {
        let start = levels.len();
        levels.resize(start + n_bits as usize, 0);
        values().enumerate().for_each(|(k, value)| levels[start + k / 8] |= ((value != NAT) as u8) << (k % 8));
    }
    out.extend_from_slice(&(levels.len() as u32).to_le_bytes());
    out.extend_from_slice(&levels);
    for (k, value) in values().enumerate().filter(|&(_, value)| value != NAT) {
        if stored.logical == Some(Logical::Date) {
            let days = i32::try_from(value).map_err(|_| {
                Error::io(format!(
                    "row {}: {value} days after 1970 are more than a date in a Parquet file can be",
                    row + k as u64
                ))
            })?;
            out.extend_from_slice(&days.to_le_bytes());
        } else {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
    Ok(())
}
