//! Pages of a column, decompressed with a bound on what comes out.
//!
//! How many bytes a page may unfold to follows from the rows of the row group; memory grows with what comes out. The buffers of one page serve the next. The crate `parquet` would decompress
//! pages too, into as much memory as a header claims (2 GiB); where its decoders are used it is given pages that are decompressed already ([`PageReader`]).

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::parquet::basic::Encoding;
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::ParquetError;
use bytes::Bytes;

use super::header::{self, PageHeader, PageKind};
use crate::bounded::{LZ4_RATIO, check_length, read_bounded, room, too_much, zstd_reader};

/// A byte of Snappy unfolds to at most this many: an element of three bytes copies 64.
const SNAPPY_RATIO: u64 = 32;

/// Bytes that a page may have beside its values: lengths, headers of runs.
const PAGE_OVERHEAD: u64 = 1 << 16;

/// Bytes of a value with its level in the widest encoding: eight for the value, and those of a block of deltas or of levels that are packed badly.
const MOST_PER_VALUE: u64 = 12;

/// No page has more bytes, or unfolds to more, whatever number of values its header and the metadata claim. Writers make pages of about 1 MiB.
pub(super) const MOST_PAGE_BYTES: u64 = 256 << 20;

/// For pages of up to this many bytes room is made as their headers say; what larger ones claim is believed only as it comes out.
const AT_ONCE: u64 = 16 << 20;

/// Bytes that are read to find the header of a page, and of which more are read if they are too few.
const HEADER_BYTES: usize = 256;

/// No header has more: it may hold statistics, but those of numbers are short.
const MOST_HEADER_BYTES: usize = 1 << 20;

/// How the pages of a column are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Snappy,
    Gzip,
    Zstd,
    Lz4,
}

impl Codec {
    /// Decompresses bytes to `length` bytes, with which `out` then begins.
    fn decode(self, bytes: &[u8], length: u64, out: &mut Vec<u8>) -> Result<(), String> {
        let found = match self {
            Codec::None => {
                *out = bytes.to_vec();
                out.len()
            }
            Codec::Snappy => {
                let own = snap::raw::decompress_len(bytes).map_err(|error| error.to_string())?;
                check_length(own as u64, bytes.len(), SNAPPY_RATIO, length)?;
                let out = room(out, length)?;
                snap::raw::Decoder::new().decompress(bytes, out).map_err(|error| error.to_string())?
            }
            Codec::Zstd if length <= AT_ONCE => {
                let out = room(out, length)?;
                zstd::bulk::decompress_to_buffer(bytes, out).map_err(|error| error.to_string())?
            }
            Codec::Zstd => {
                *out = read_bounded(zstd_reader(bytes, length)?, length)?;
                out.len()
            }
            Codec::Gzip => {
                *out = read_bounded(flate2::read::MultiGzDecoder::new(bytes), length)?;
                out.len()
            }
            Codec::Lz4 => {
                check_length(length, bytes.len(), LZ4_RATIO, length)?;
                let out = room(out, length)?;
                lz4_flex::block::decompress_into(bytes, out).map_err(|error| error.to_string())?
            }
        };
        if found as u64 == length { Ok(()) } else { Err(format!("it unfolds to {found} bytes instead of {length}")) }
    }
}

/// A file, read at given positions: several threads read at once.
#[derive(Debug)]
pub(super) struct FileBytes {
    pub(super) path: PathBuf,
    /// Of very many files only the first stay open. The others are opened for every access.
    pub(super) open: Option<Arc<File>>,
    /// What it had when it was opened.
    pub(super) length: u64,
}

impl FileBytes {
    pub(super) fn file(&self) -> std::io::Result<Arc<File>> {
        match &self.open {
            Some(file) => Ok(file.clone()),
            None => File::open(&self.path).map(Arc::new),
        }
    }

    /// Bytes from a position on.
    pub(super) fn bytes(&self, start: u64, n: usize) -> Result<Vec<u8>, String> {
        if start.checked_add(n as u64).is_none_or(|end| end > self.length) {
            return Err(format!("{n} bytes at byte {start} of {}", self.length));
        }
        let mut bytes = Vec::new();
        room(&mut bytes, n as u64)?;
        let file = self.file().map_err(|error| error.to_string())?;
        file.read_exact_at(&mut bytes, start).map_err(|error| format!("byte {start} cannot be read: {error}"))?;
        Ok(bytes)
    }
}

/// Memory for a page as it lies in the file, and for one that is decompressed.
#[derive(Debug, Default)]
pub(super) struct PageBuffers {
    in_file: Vec<u8>,
    unfolded: Vec<u8>,
}

impl PageBuffers {
    /// Buffers of a read that is over: fresh memory costs a fault for every page of the system.
    pub(super) fn spare() -> PageBuffers {
        spare().pop().unwrap_or_default()
    }

    /// Keeps the buffers for another read, of this file or of another. Nobody counts them, so few are kept in the whole process, and none that is large.
    pub(super) fn keep(self) {
        const MOST: usize = 4;
        const MOST_BYTES: usize = 4 << 20;
        let mut spare = spare();
        if spare.len() < MOST && self.in_file.capacity() + self.unfolded.capacity() <= MOST_BYTES {
            spare.push(self);
        }
    }
}

fn spare() -> MutexGuard<'static, Vec<PageBuffers>> {
    static SPARE: Mutex<Vec<PageBuffers>> = Mutex::new(Vec::new());
    // A list is whole at every moment, whoever panicked while holding it.
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pages of a column in a row group.
pub(super) struct Pages {
    file: Arc<File>,
    /// Where the next page begins, and where the last one ends.
    bytes: Range<u64>,
    codec: Codec,
    /// Rows of the row group: no page has more values.
    n_rows: u64,
    /// Bytes of a value in a dictionary.
    value_bytes: u64,
    /// The header of the next page, and where it ends.
    next: Option<(PageHeader, u64)>,
    buffers: PageBuffers,
}

/// A page without its header.
pub(super) struct PageBody<'a> {
    pub(super) header: PageHeader,
    /// The levels of a page that keeps them apart.
    pub(super) levels: &'a [u8],
    /// Everything else.
    pub(super) values: &'a [u8],
}

impl Pages {
    /// The pages that lie in a range of bytes inside the file.
    pub(super) fn new(
        file: Arc<File>,
        bytes: Range<u64>,
        codec: Codec,
        n_rows: u64,
        value_bytes: u64,
        buffers: PageBuffers,
    ) -> Pages {
        Pages { file, bytes, codec, n_rows, value_bytes, next: None, buffers }
    }

    /// The buffers, for other pages.
    pub(super) fn into_buffers(self) -> PageBuffers {
        self.buffers
    }

    /// The header of the next page, if there is one.
    pub(super) fn peek(&mut self) -> Result<Option<PageHeader>, String> {
        if let Some((header, _)) = self.next {
            return Ok(Some(header));
        }
        let Range { start, end } = self.bytes;
        if start >= end {
            return Ok(None);
        }
        let mut n = HEADER_BYTES;
        let (header, length) = loop {
            let whole = n as u64 >= end - start;
            let mut bytes = [0; HEADER_BYTES];
            let mut more = Vec::new();
            let bytes = match n <= HEADER_BYTES {
                true => &mut bytes[..n.min((end - start) as usize)],
                false => {
                    more.resize(n.min((end - start) as usize), 0);
                    &mut more
                }
            };
            self.file.read_exact_at(bytes, start).map_err(|error| format!("byte {start} cannot be read: {error}"))?;
            match header::read(bytes) {
                Ok(found) => break found,
                Err(what) if whole || n >= MOST_HEADER_BYTES => return Err(what),
                Err(_) => n *= 8,
            }
        };
        let body = start + length as u64;
        if header.bytes as u64 > end - body {
            return Err(format!("a page of {} bytes, of which {} are there", header.bytes, end - body));
        }
        if header.bytes as u64 > MOST_PAGE_BYTES {
            return Err(format!("pages of more than {} MiB are not supported", MOST_PAGE_BYTES >> 20));
        }
        if header.n_values > self.n_rows {
            return Err(format!("a page has {} values, but there are {} rows", header.n_values, self.n_rows));
        }
        self.next = Some((header, body));
        Ok(Some(header))
    }

    /// Goes on behind the next page.
    pub(super) fn pass(&mut self) -> Result<(), String> {
        self.peek()?;
        if let Some((header, body)) = self.next.take() {
            self.bytes.start = body + header.bytes as u64;
        }
        Ok(())
    }

    /// Reads and decompresses the next page; `None` behind the last one.
    pub(super) fn read(&mut self) -> Result<Option<PageBody<'_>>, String> {
        self.peek()?;
        let Some((header, body)) = self.next.take() else { return Ok(None) };
        self.bytes.start = body + header.bytes as u64;
        let PageBuffers { in_file, unfolded } = &mut self.buffers;
        let in_file = room(in_file, header.bytes as u64)?;
        self.file.read_exact_at(in_file, body).map_err(|error| format!("byte {body} cannot be read: {error}"))?;
        let (n_levels, is_compressed) = match header.kind {
            PageKind::DataV2 { level_bytes, is_compressed, .. } => (level_bytes, is_compressed),
            _ => (0, true),
        };
        let (levels, values) = in_file.split_at(n_levels);
        let values = match self.codec {
            // Nothing is not always compressed to something.
            Codec::None => values,
            _ if !is_compressed || values.is_empty() => values,
            codec => {
                let length = header.unfolded.checked_sub(n_levels).ok_or("the header of a page contradicts itself")?;
                unfold(codec, values, header.n_values, length as u64, unfolded)?;
                &unfolded[..length]
            }
        };
        // Whoever decodes a dictionary makes room for as many values as the header claims.
        if matches!(header.kind, PageKind::Dictionary { .. })
            && header.n_values.saturating_mul(self.value_bytes) > values.len() as u64
        {
            return Err(format!("a dictionary of {} values in {} bytes", header.n_values, values.len()));
        }
        Ok(Some(PageBody { header, levels, values }))
    }

    fn page(&mut self) -> Result<Option<Page>, String> {
        while self.peek()?.is_some_and(|header| header.kind == PageKind::Other) {
            self.pass()?;
        }
        let Some(PageBody { header, levels, values }) = self.read()? else { return Ok(None) };
        let n_values = u32::try_from(header.n_values).map_err(|_| "a page of too many values")?;
        let encoding = encoding(header.encoding)?;
        Ok(Some(match header.kind {
            PageKind::Data { levels } => Page::DataPage {
                buf: Bytes::copy_from_slice(values),
                num_values: n_values,
                encoding,
                def_level_encoding: self::encoding(levels)?,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            PageKind::DataV2 { n_nulls, .. } => Page::DataPageV2 {
                buf: [levels, values].concat().into(),
                num_values: n_values,
                encoding,
                num_nulls: n_nulls as u32,
                num_rows: n_values,
                def_levels_byte_len: levels.len() as u32,
                rep_levels_byte_len: 0,
                is_compressed: false,
                statistics: None,
            },
            PageKind::Dictionary { is_sorted } => {
                Page::DictionaryPage { buf: Bytes::copy_from_slice(values), num_values: n_values, encoding, is_sorted }
            }
            PageKind::Other => return Err("a page of an unknown kind".into()),
        }))
    }
}

/// Decompresses a page of so many values to the number of bytes that its header claims.
fn unfold(codec: Codec, compressed: &[u8], n_values: u64, length: u64, out: &mut Vec<u8>) -> Result<(), String> {
    let most = n_values.saturating_mul(MOST_PER_VALUE).saturating_add(PAGE_OVERHEAD);
    let decoded = match length > most.min(MOST_PAGE_BYTES) {
        true => Err(too_much(most.min(MOST_PAGE_BYTES))),
        false => codec.decode(compressed, length, out),
    };
    decoded.map_err(|error| {
        let limit = match most > MOST_PAGE_BYTES {
            true => format!(" (pages of more than {} MiB are not supported)", MOST_PAGE_BYTES >> 20),
            false => String::new(),
        };
        format!("a page cannot be decompressed: {error}{limit}")
    })
}

/// The numbers of encodings that are decoded here, by their names in the specification.
pub(super) const PLAIN: i32 = 0;
pub(super) const PLAIN_DICTIONARY: i32 = 2;
pub(super) const RLE: i32 = 3;
pub(super) const RLE_DICTIONARY: i32 = 8;

fn encoding(number: i32) -> Result<Encoding, String> {
    Ok(match number {
        PLAIN => Encoding::PLAIN,
        PLAIN_DICTIONARY => Encoding::PLAIN_DICTIONARY,
        RLE => Encoding::RLE,
        #[allow(deprecated)]
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        RLE_DICTIONARY => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        other => return Err(format!("values in encoding {other}, which is not supported")),
    })
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Result<Page, ParquetError>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        self.page().map_err(ParquetError::General)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        let header = self.peek().map_err(ParquetError::General)?;
        Ok(header.map(|header| match header.kind {
            PageKind::Dictionary { .. } => PageMetadata { num_rows: None, num_levels: None, is_dict: true },
            // A value for each row.
            _ => {
                let n = Some(header.n_values as usize);
                PageMetadata { num_rows: n, num_levels: n, is_dict: false }
            }
        }))
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pass().map_err(ParquetError::General)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn no_page_unfolds_without_a_limit() {
        let n_bytes = MOST_PAGE_BYTES + 1;
        // Once without a declared length, and once with one.
        for pledged in [None, Some(n_bytes)] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.set_pledged_src_size(pledged).unwrap();
            std::io::copy(&mut std::io::repeat(0).take(n_bytes), &mut encoder).unwrap();
            let bomb = encoder.finish().unwrap();
            assert!(bomb.len() < 1 << 16, "{}", bomb.len());
            let mut out = Vec::new();
            // Whatever the header of the page claims.
            for (n_values, length, message) in [
                (u64::MAX, n_bytes, "more than 256 MiB are not supported"),
                (u64::MAX, MOST_PAGE_BYTES, "unfolds to more than the 268435456 bytes"),
                (1000, n_bytes, "77536 bytes that its metadata allows"),
                (1000, 77_000, "a page cannot be decompressed"),
            ] {
                let error = unfold(Codec::Zstd, &bomb, n_values, length, &mut out).unwrap_err();
                assert!(error.contains(message), "{error}");
                assert!(out.capacity() as u64 <= MOST_PAGE_BYTES);
            }
        }
    }

    #[test]
    fn every_codec_gives_what_the_header_says_or_fails() {
        let data: Vec<u8> = (0..50_000u32).flat_map(|k| (k / 7).to_le_bytes()).collect();
        let gzip = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, &data).unwrap();
            encoder.finish().unwrap()
        };
        for (codec, bytes) in [
            (Codec::Snappy, snap::raw::Encoder::new().compress_vec(&data).unwrap()),
            (Codec::Gzip, gzip),
            (Codec::Zstd, zstd::bulk::compress(&data, 1).unwrap()),
            (Codec::Lz4, lz4_flex::block::compress(&data)),
        ] {
            let mut out = vec![7; 3];
            unfold(codec, &bytes, 50_000, data.len() as u64, &mut out).unwrap();
            assert!(out[..data.len()] == data, "{codec:?}");
            for length in [0, 1, data.len() - 1, data.len() + 1] {
                assert!(unfold(codec, &bytes, 50_000, length as u64, &mut out).is_err(), "{codec:?} {length}");
            }
            assert!(unfold(codec, &bytes[..bytes.len() / 2], 50_000, data.len() as u64, &mut out).is_err());
        }
    }
}
