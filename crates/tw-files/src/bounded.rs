//! Decompression with a bound on what comes out, shared by formats.
//!
//! A few KiB of compressed bytes can fill the memory. Every function here knows how many bytes may come out and stops there; memory grows with what really comes out, or with what the
//! compressed bytes can hold at most, never with what a header claims.

use std::io::Read;

/// Decoding starts with at most this much memory.
const FIRST_BYTES: u64 = 1 << 20;

/// Windows of frames as large as every decoder has to support by the specification (8 MiB), and as large as compressors make them without being asked to (128 MiB).
const LEAST_WINDOW_LOG: u32 = 23;
const MOST_WINDOW_LOG: u32 = 27;

/// A byte of LZ4 unfolds to at most this many.
pub(crate) const LZ4_RATIO: u64 = 255;

/// One LZ4 block that unfolds to exactly `length` bytes, which are at most `most`.
#[cfg(feature = "zarr")]
pub(crate) fn lz4_block(bytes: &[u8], length: u64, most: u64) -> Result<Vec<u8>, String> {
    check_length(length, bytes.len(), LZ4_RATIO, most)?;
    let length = length as usize;
    let mut out = zeros(length)?;
    match lz4_flex::block::decompress_into(bytes, &mut out) {
        Ok(n) if n == length => Ok(out),
        Ok(n) => Err(format!("it unfolds to {n} bytes instead of {length}")),
        Err(error) => Err(error.to_string()),
    }
}

/// All that a reader gives, unless that is more than `most` bytes.
pub(crate) fn read_bounded(reader: impl Read, most: u64) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    // One byte more, to see whether there is more. The memory grows with what comes out.
    out.try_reserve(most.saturating_add(1).min(FIRST_BYTES) as usize).map_err(|_| "no memory".to_string())?;
    reader.take(most.saturating_add(1)).read_to_end(&mut out).map_err(|error| error.to_string())?;
    if out.len() as u64 > most { Err(too_much(most)) } else { Ok(out) }
}

/// So many bytes of a buffer, which grows if it is too short. What they hold is of no interest.
#[cfg(feature = "parquet")]
pub(crate) fn room(buffer: &mut Vec<u8>, length: u64) -> Result<&mut [u8], String> {
    let no_memory = || format!("no memory for {length} bytes");
    let length = usize::try_from(length).map_err(|_| no_memory())?;
    if buffer.capacity() < length {
        *buffer = Vec::new();
        buffer.try_reserve_exact(length).map_err(|_| no_memory())?;
    }
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    Ok(&mut buffer[..length])
}

/// Decompresses Zstandard frames that unfold to at most `most` bytes together. A frame may ask for a window of gigabytes, in which earlier bytes are kept: one that is larger than what
/// may come out is refused.
pub(crate) fn zstd_reader(bytes: &[u8], most: u64) -> Result<impl Read, String> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| error.to_string())?;
    let enough = most.max(1).next_power_of_two().ilog2();
    decoder.window_log_max(enough.clamp(LEAST_WINDOW_LOG, MOST_WINDOW_LOG)).map_err(|error| error.to_string())?;
    Ok(decoder)
}

/// Zeroed memory, or an error if there is not enough.
#[cfg(feature = "zarr")]
pub(crate) fn zeros(length: usize) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    out.try_reserve_exact(length).map_err(|_| format!("no memory for {length} bytes"))?;
    out.resize(length, 0);
    Ok(out)
}

pub(crate) fn too_much(most: u64) -> String {
    format!("it unfolds to more than the {most} bytes that its metadata allows")
}

/// Refuses a declared length that is over a bound, or that the compressed bytes cannot unfold to.
pub(crate) fn check_length(length: u64, n_compressed: usize, ratio: u64, most: u64) -> Result<(), String> {
    if length > most {
        return Err(too_much(most));
    }
    if length > ratio.saturating_mul(n_compressed as u64) {
        return Err(format!("it says that {n_compressed} bytes unfold to {length}"));
    }
    Ok(())
}
