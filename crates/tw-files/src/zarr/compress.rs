//! Compression of chunks, with a bound on what decoding may produce.
//!
//! The decoders of `zarrs` give back as much as a chunk unfolds to, however little its metadata declared: a few KiB can fill the memory. Those here know how many bytes
//! a chunk may have and stop there. [`super::codecs`] makes them known to `zarrs` in place of its own, which also spares us its C++.

use std::io::Read;

use super::blosc::{self, Blosc};
use crate::bounded::{lz4_block, read_bounded, zstd_reader};

/// How bytes are compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Gzip {
        level: u32,
    },
    Zlib {
        level: u32,
    },
    Zstd {
        level: i32,
        checksum: bool,
    },
    /// LZ4 as numcodecs writes it: the length, then one LZ4 block.
    Lz4,
    Blosc(Blosc),
}

impl Method {
    /// Compresses bytes.
    pub(super) fn encode(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let text = |error: std::io::Error| error.to_string();
        match self {
            Method::Gzip { level } => {
                let mut out = Vec::new();
                flate2::read::GzEncoder::new(bytes, flate2::Compression::new(*level))
                    .read_to_end(&mut out)
                    .map_err(text)?;
                Ok(out)
            }
            Method::Zlib { level } => {
                let mut out = Vec::new();
                flate2::read::ZlibEncoder::new(bytes, flate2::Compression::new(*level))
                    .read_to_end(&mut out)
                    .map_err(text)?;
                Ok(out)
            }
            Method::Zstd { level, checksum } => {
                let mut compressor = zstd::bulk::Compressor::new(*level).map_err(text)?;
                compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(*checksum)).map_err(text)?;
                compressor.compress(bytes).map_err(text)
            }
            Method::Lz4 => {
                let length = u32::try_from(bytes.len()).map_err(|_| "LZ4 cannot hold 4 GiB or more".to_string())?;
                let mut out = length.to_le_bytes().to_vec();
                out.extend(lz4_flex::block::compress(bytes));
                Ok(out)
            }
            Method::Blosc(blosc) => blosc.encode(bytes),
        }
    }

    /// Decompresses bytes to at most `most` of them.
    pub(super) fn decode(&self, bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
        match self {
            Method::Gzip { .. } => read_bounded(flate2::read::MultiGzDecoder::new(bytes), most),
            Method::Zlib { .. } => read_bounded(flate2::read::ZlibDecoder::new(bytes), most),
            Method::Zstd { .. } => read_bounded(zstd_reader(bytes, most)?, most),
            Method::Lz4 => {
                let (length, rest) = bytes.split_first_chunk::<4>().ok_or("it ends before its length")?;
                let length = u64::from(u32::from_le_bytes(*length));
                lz4_block(rest, length, most)
            }
            Method::Blosc(_) => blosc::decode(bytes, most),
        }
    }

    /// Decompresses bytes that unfold to exactly as many as `out` has, into it.
    pub(super) fn decode_into(&self, bytes: &[u8], out: &mut [u8]) -> Result<(), String> {
        let length = out.len();
        let n = match self {
            Method::Zstd { .. } => match zstd::bulk::decompress_to_buffer(bytes, out) {
                Ok(n) => n,
                Err(error) => {
                    // The other decoder tells too many bytes from damaged ones.
                    self.decode(bytes, length as u64)?;
                    return Err(error.to_string());
                }
            },
            _ => {
                let decoded = self.decode(bytes, length as u64)?;
                if decoded.len() == length {
                    out.copy_from_slice(&decoded);
                }
                decoded.len()
            }
        };
        if n == length { Ok(()) } else { Err(format!("it unfolds to {n} bytes instead of {length}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods() -> Vec<Method> {
        let blosc = |compressor, shuffle, typesize| Method::Blosc(Blosc { compressor, level: 5, shuffle, typesize });
        vec![
            Method::Gzip { level: 1 },
            Method::Zlib { level: 6 },
            Method::Zstd { level: 1, checksum: true },
            Method::Lz4,
            blosc(blosc::Compressor::Lz4, blosc::Shuffle::Bytes, 8),
            blosc(blosc::Compressor::Zstd, blosc::Shuffle::Bits, 4),
            blosc(blosc::Compressor::Zlib, blosc::Shuffle::None, 1),
            blosc(blosc::Compressor::Lz4, blosc::Shuffle::Bits, 3),
        ]
    }

    #[test]
    fn bytes_survive_a_round_trip() {
        for method in methods() {
            for n in [0usize, 1, 7, 8, 100, 4096, 100_000, 3_000_001] {
                let bytes: Vec<u8> = (0..n).map(|k| (k / 7 % 251) as u8 ^ (k % 13) as u8).collect();
                let encoded = method.encode(&bytes).unwrap();
                assert_eq!(method.decode(&encoded, n as u64).unwrap(), bytes, "{method:?} {n}");
            }
        }
    }

    #[test]
    fn bytes_unfold_where_they_belong() {
        for method in methods() {
            let bytes: Vec<u8> = (0..70_000usize).map(|k| (k / 5 % 251) as u8).collect();
            let encoded = method.encode(&bytes).unwrap();
            let mut out = vec![0; bytes.len()];
            method.decode_into(&encoded, &mut out).unwrap();
            assert_eq!(out, bytes, "{method:?}");
            for n in [0, 1, bytes.len() - 1, bytes.len() + 1] {
                assert!(method.decode_into(&encoded, &mut vec![0; n]).is_err_and(|e| !e.is_empty()), "{method:?} {n}");
            }
            for cut in [0, 1, 3, 17, encoded.len() / 2, encoded.len() - 1] {
                assert!(
                    method.decode_into(&encoded[..cut], &mut out).is_err_and(|e| !e.is_empty()),
                    "{method:?} {cut}"
                );
            }
        }
    }

    #[test]
    fn bombs_are_refused_at_the_declared_size() {
        for method in methods() {
            let bomb = method.encode(&vec![0; 5_000_000]).unwrap();
            let error = method.decode(&bomb, 1000).unwrap_err();
            assert!(error.contains("more than the 1000 bytes"), "{method:?}: {error}");
        }
    }

    /// A chunk of 32 bytes that says it has a gigabyte.
    #[test]
    fn a_stream_of_blosc_lz_is_not_believed() {
        let (n, length, place, stream) = (1u32 << 30, 32u32, 20u32, 8u32);
        let mut chunk = vec![2, 1, 16, 1];
        [n, n, length, place, stream].iter().for_each(|number| chunk.extend(number.to_le_bytes()));
        chunk.extend([0; 8]);
        let error = blosc::decode(&chunk, 1 << 30).unwrap_err();
        assert!(error.contains("8 bytes unfold to"), "{error}");
    }

    #[test]
    fn damaged_bytes_are_errors() {
        let bytes: Vec<u8> = (0..20_000usize).map(|k| (k / 3 % 200) as u8).collect();
        for method in methods() {
            let encoded = method.encode(&bytes).unwrap();
            for cut in [0, 1, 3, 15, 17, encoded.len() / 2, encoded.len() - 1] {
                assert!(method.decode(&encoded[..cut], 20_000).is_err_and(|e| !e.is_empty()), "{method:?} {cut}");
            }
            // Flipped bytes may go unnoticed where there is no checksum, but nothing worse happens.
            for at in (0..encoded.len().min(400)).step_by(7) {
                for flip in [1, 0xff] {
                    let mut damaged = encoded.clone();
                    damaged[at] ^= flip;
                    let _ = method.decode(&damaged, 20_000);
                }
            }
        }
    }
}
