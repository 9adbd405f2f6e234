//! The container of Blosc 1, in safe Rust: a header, then blocks that are shuffled and compressed each on their own.
//!
//! All compressors are read but Snappy, which needs C++ and which nobody chose for years. Written are LZ4, Zstandard and zlib; arrays that ask for another compressor
//! get LZ4, which every reader of Blosc knows, since each chunk names its own.

use crate::bounded::{check_length, lz4_block, read_bounded, too_much, zeros, zstd_reader};

const HEADER_BYTES: usize = 16;
/// Blocks of this many bytes stay in a cache while they are shuffled.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks of at most this many bytes per element may be split, one stream per byte of the element,
const MOST_SPLITS: usize = 16;
/// if a stream has at least this many bytes.
const LEAST_STREAM: usize = 128;
/// A byte of BloscLZ unfolds to at most this many: each further byte of the length of a copy says that it is so much longer.
const BLOSC_LZ_RATIO: u64 = 255;
/// A nearer distance of BloscLZ takes 13 bits.
const NEAR: usize = 8191;

const SHUFFLED: u8 = 1;
const COPIED: u8 = 2;
const BIT_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;

/// How chunks are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blosc {
    pub(super) compressor: Compressor,
    pub(super) level: i32,
    pub(super) shuffle: Shuffle,
    pub(super) typesize: u8,
}

/// What compresses a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressor {
    BloscLz,
    Lz4,
    Zlib,
    Zstd,
}

/// How bytes are rearranged before they are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    None,
    /// First bytes of all elements, then second bytes, ..
    Bytes,
    /// First bits of all elements, then second bits, ..
    Bits,
}

impl Blosc {
    /// Compresses bytes.
    pub(super) fn encode(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let n = u32::try_from(bytes.len()).ok().filter(|n| *n < i32::MAX as u32 - 16);
        let n = n.ok_or("Blosc cannot hold 2 GiB or more in one chunk")?;
        let size = self.typesize.max(1) as usize;
        // Bits are shuffled in eights of elements.
        let block_bytes = BLOCK_BYTES.next_multiple_of(8 * size).min(bytes.len().max(1));
        let (method, format) = match self.compressor {
            Compressor::Zstd => (Compressor::Zstd, 4),
            Compressor::Zlib => (Compressor::Zlib, 3),
            Compressor::Lz4 | Compressor::BloscLz => (Compressor::Lz4, 1),
        };
        let flag = match self.shuffle {
            Shuffle::None => 0,
            Shuffle::Bytes => SHUFFLED,
            Shuffle::Bits => BIT_SHUFFLED,
        };
        let header = |flags: u8, length: usize| {
            let mut header = vec![2, 1, flags, size as u8];
            header.extend(n.to_le_bytes());
            header.extend((block_bytes as u32).to_le_bytes());
            header.extend((length as u32).to_le_bytes());
            header
        };
        let n_blocks = bytes.len().div_ceil(block_bytes);
        let mut out = vec![0; HEADER_BYTES + 4 * n_blocks];
        let mut shuffled = vec![0; block_bytes];
        for (k, block) in bytes.chunks(block_bytes).enumerate() {
            let start = (out.len() as u32).to_le_bytes();
            out[HEADER_BYTES + 4 * k..][..4].copy_from_slice(&start);
            let shuffled = &mut shuffled[..block.len()];
            match self.shuffle {
                Shuffle::Bytes if size > 1 => shuffle_bytes(size, block, shuffled),
                Shuffle::Bits if block.len() >= size => shuffle_bits(size, block, shuffled),
                _ => shuffled.copy_from_slice(block),
            }
            let packed = match method {
                Compressor::Zstd => zstd::bulk::compress(shuffled, self.level).map_err(|error| error.to_string())?,
                Compressor::Zlib => {
                    super::compress::Method::Zlib { level: self.level.clamp(1, 9) as u32 }.encode(shuffled)?
                }
                Compressor::Lz4 | Compressor::BloscLz => lz4_flex::block::compress(shuffled),
            };
            // A stream as long as the block is the block itself.
            let stream = if packed.len() < block.len() { &packed[..] } else { &shuffled[..] };
            out.extend((stream.len() as u32).to_le_bytes());
            out.extend(stream);
        }
        if out.len() >= bytes.len() + HEADER_BYTES {
            let mut copied = header(flag | COPIED | NOT_SPLIT | format << 5, bytes.len() + HEADER_BYTES);
            copied.extend(bytes);
            return Ok(copied);
        }
        let header = header(flag | NOT_SPLIT | format << 5, out.len());
        out[..HEADER_BYTES].copy_from_slice(&header);
        Ok(out)
    }
}

/// Decompresses bytes to at most `most` of them.
pub(super) fn decode(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or("it ends before its Blosc header")?;
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize;
    let (version, flags, size) = (header[0], header[2], header[3] as usize);
    let (n, block_bytes, length) = (number(4), number(8), number(12));
    if version == 0 || version > 2 {
        return Err(format!("version {version} of Blosc is not known"));
    }
    if n as u64 > most {
        return Err(too_much(most));
    }
    if length > bytes.len() {
        return Err(format!("it is truncated: {} of {length} bytes are there", bytes.len()));
    }
    let bytes = &bytes[..length];
    if flags & COPIED != 0 {
        let elements = bytes.get(HEADER_BYTES..HEADER_BYTES + n).ok_or("its Blosc header gives a wrong length")?;
        return Ok(elements.to_vec());
    }
    if n == 0 {
        return Ok(Vec::new());
    }
    if block_bytes == 0 || block_bytes > n || size == 0 {
        return Err("its Blosc header gives wrong lengths".into());
    }
    let n_blocks = n.div_ceil(block_bytes);
    if bytes.len() < HEADER_BYTES + 4 * n_blocks {
        return Err("it ends before the places of its blocks".into());
    }
    let compressor = match flags >> 5 {
        0 => Compressor::BloscLz,
        1 => Compressor::Lz4,
        3 => Compressor::Zlib,
        4 => Compressor::Zstd,
        2 => return Err("it is compressed by Snappy, which is not supported".into()),
        other => return Err(format!("compressor {other} of Blosc is not known")),
    };
    let mut out: Vec<u8> = Vec::new();
    for k in 0..n_blocks {
        let own = block_bytes.min(n - k * block_bytes);
        let at = HEADER_BYTES + 4 * k;
        let mut start = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
        let is_split =
            flags & NOT_SPLIT == 0 && size <= MOST_SPLITS && own / size >= LEAST_STREAM && own == block_bytes;
        let n_streams = if is_split { size } else { 1 };
        let stream_bytes = own / n_streams;
        let mut block: Vec<u8> = Vec::new();
        for _ in 0..n_streams {
            let length =
                bytes.get(start..).and_then(|rest| rest.first_chunk::<4>()).ok_or("a block is not inside it")?;
            let length = u32::from_le_bytes(*length) as usize;
            start += 4;
            let stream = bytes.get(start..start.saturating_add(length)).ok_or("a block is not inside it")?;
            start += length;
            if length == stream_bytes {
                block.extend(stream);
                continue;
            }
            let unpacked = match compressor {
                Compressor::BloscLz => blosc_lz(stream, stream_bytes)?,
                Compressor::Lz4 => lz4_block(stream, stream_bytes as u64, stream_bytes as u64)?,
                Compressor::Zlib => read_bounded(flate2::read::ZlibDecoder::new(stream), stream_bytes as u64)?,
                Compressor::Zstd => read_bounded(zstd_reader(stream, stream_bytes as u64)?, stream_bytes as u64)?,
            };
            if unpacked.len() != stream_bytes {
                return Err(format!("a block unfolds to {} bytes instead of {stream_bytes}", unpacked.len()));
            }
            block.extend(unpacked);
        }
        // What a split leaves over is lost by Blosc as well; no element is that wide.
        if block.len() != own {
            return Err("its Blosc header gives wrong lengths".into());
        }
        out.try_reserve(own).map_err(|_| format!("no memory for {n} bytes"))?;
        if flags & SHUFFLED != 0 && size > 1 {
            let start = out.len();
            out.resize(start + own, 0);
            unshuffle_bytes(size, &block, &mut out[start..]);
        } else if flags & BIT_SHUFFLED != 0 && own >= size {
            let start = out.len();
            out.resize(start + own, 0);
            unshuffle_bits(size, &block, &mut out[start..]);
        } else {
            out.extend(block);
        }
    }
    Ok(out)
}

/// One stream of BloscLZ that unfolds to `length` bytes: literals, and copies of what came before.
fn blosc_lz(stream: &[u8], length: usize) -> Result<Vec<u8>, String> {
    const DAMAGED: &str = "a BloscLZ stream is damaged";
    check_length(length as u64, stream.len(), BLOSC_LZ_RATIO, length as u64)?;
    let mut out = zeros(length)?;
    let (mut filled, mut rest) = (0usize, stream);
    let next = |rest: &mut &[u8]| {
        let (&first, after) = rest.split_first().ok_or(DAMAGED)?;
        *rest = after;
        Ok::<usize, String>(first as usize)
    };
    let mut control = next(&mut rest)? & 31;
    loop {
        if control < 32 {
            let n = control + 1;
            let (literals, after) = rest.split_at_checked(n).ok_or(DAMAGED)?;
            out.get_mut(filled..filled + n).ok_or(DAMAGED)?.copy_from_slice(literals);
            (filled, rest) = (filled + n, after);
        } else {
            let mut n = (control >> 5) - 1;
            let high = (control & 31) << 8;
            if n == 6 {
                loop {
                    let more = next(&mut rest)?;
                    n += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = next(&mut rest)?;
            n += 3;
            let mut distance = high + low + 1;
            if low == 255 && high == 31 << 8 {
                let far = next(&mut rest)? << 8;
                distance = far + next(&mut rest)? + NEAR + 1;
            }
            if distance > filled || n > length - filled {
                return Err(DAMAGED.into());
            }
            for k in filled..filled + n {
                out[k] = out[k - distance];
            }
            filled += n;
        }
        match rest.split_first() {
            Some((&first, after)) => (control, rest) = (first as usize, after),
            None => break,
        }
    }
    if filled == length { Ok(out) } else { Err(DAMAGED.into()) }
}

fn shuffle_bytes(size: usize, from: &[u8], to: &mut [u8]) {
    let n = from.len() / size;
    for (k, element) in from.chunks_exact(size).enumerate() {
        for (byte, &value) in element.iter().enumerate() {
            to[byte * n + k] = value;
        }
    }
    to[n * size..].copy_from_slice(&from[n * size..]);
}

fn unshuffle_bytes(size: usize, from: &[u8], to: &mut [u8]) {
    match size {
        2 => unshuffle_of::<2>(from, to),
        4 => unshuffle_of::<4>(from, to),
        8 => unshuffle_of::<8>(from, to),
        16 => unshuffle_of::<16>(from, to),
        _ => {
            let n = from.len() / size;
            for (k, element) in to.chunks_exact_mut(size).enumerate() {
                for (byte, value) in element.iter_mut().enumerate() {
                    *value = from[byte * n + k];
                }
            }
        }
    }
    let rest = from.len() / size * size;
    to[rest..].copy_from_slice(&from[rest..]);
}

/// As the general case, with the size known to the compiler.
fn unshuffle_of<const SIZE: usize>(from: &[u8], to: &mut [u8]) {
    let n = from.len() / SIZE;
    if n == 0 {
        return;
    }
    let planes: [&[u8]; SIZE] = std::array::from_fn(|byte| &from[byte * n..(byte + 1) * n]);
    let (elements, _) = to.as_chunks_mut::<SIZE>();
    for (k, element) in elements.iter_mut().enumerate().take(n) {
        *element = std::array::from_fn(|byte| planes[byte][k]);
    }
}

/// Transposes a matrix of 8 by 8 bits, a row per byte.
fn transpose_bits(mut x: u64) -> u64 {
    let mut t = (x ^ (x >> 7)) & 0x00AA_00AA_00AA_00AA;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000_CCCC_0000_CCCC;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x0000_0000_F0F0_F0F0;
    x ^ t ^ (t << 28)
}

/// Row `8 * byte + bit` of the result has that bit of every element. Blocks whose elements do not come in eights stay as they are.
fn shuffle_bits(size: usize, from: &[u8], to: &mut [u8]) {
    let n = from.len() / size;
    if !n.is_multiple_of(8) {
        return to.copy_from_slice(from);
    }
    for eight in 0..n / 8 {
        for byte in 0..size {
            let rows: [u8; 8] = std::array::from_fn(|k| from[(8 * eight + k) * size + byte]);
            let bits = transpose_bits(u64::from_le_bytes(rows)).to_le_bytes();
            for (bit, &value) in bits.iter().enumerate() {
                to[(8 * byte + bit) * (n / 8) + eight] = value;
            }
        }
    }
    to[n * size..].copy_from_slice(&from[n * size..]);
}

fn unshuffle_bits(size: usize, from: &[u8], to: &mut [u8]) {
    let n = from.len() / size;
    if !n.is_multiple_of(8) {
        return to.copy_from_slice(from);
    }
    for eight in 0..n / 8 {
        for byte in 0..size {
            let rows: [u8; 8] = std::array::from_fn(|bit| from[(8 * byte + bit) * (n / 8) + eight]);
            let elements = transpose_bits(u64::from_le_bytes(rows)).to_le_bytes();
            for (k, &value) in elements.iter().enumerate() {
                to[(8 * eight + k) * size + byte] = value;
            }
        }
    }
    to[n * size..].copy_from_slice(&from[n * size..]);
}
