//! Pages of a column, decompressed with a bound on what comes out.
//!
//! The crate reads headers of pages and would decompress them too, into as much memory as the header claims (2 GiB) or as comes out. It is told here that nothing is compressed, so it hands out pages as
//! they lie in the file. How many bytes a page may unfold to follows from the rows of the row group; memory grows with what comes out.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::serialized_reader::SerializedPageReader;
use bytes::Bytes;

use crate::bounded::{LZ4_RATIO, check_length, read_bounded, too_much, zeros};

/// A byte of Snappy unfolds to at most this many: an element of three bytes copies 64.
const SNAPPY_RATIO: u64 = 32;

/// Bytes that a page may have beside its values: lengths, headers of runs.
const PAGE_OVERHEAD: u64 = 1 << 16;

/// Bytes of a value with its level in the widest encoding: eight for the value, and those of a block of deltas or of levels that are packed badly.
const MOST_PER_VALUE: u64 = 12;

/// No page unfolds to more, whatever number of values its header and the metadata claim. Writers make pages of about 1 MiB.
const MOST_PAGE_BYTES: u64 = 256 << 20;

/// Zstandard frames of up to this many bytes are decompressed at once, if they declare their length.
const AT_ONCE: u64 = 16 << 20;

/// Headers of pages are read through a buffer of so many bytes.
const HEADER_BYTES: usize = 256;

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
    /// Decompresses bytes to at most `most` of them.
    fn decode(self, bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
        match self {
            Codec::None => Ok(bytes.to_vec()),
            Codec::Snappy => {
                let length = snap::raw::decompress_len(bytes).map_err(|error| error.to_string())?;
                check_length(length as u64, bytes.len(), SNAPPY_RATIO, most)?;
                let mut out = zeros(length)?;
                let n = snap::raw::Decoder::new().decompress(bytes, &mut out).map_err(|error| error.to_string())?;
                if n == length { Ok(out) } else { Err(format!("it unfolds to {n} bytes instead of {length}")) }
            }
            Codec::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(bytes), most),
            Codec::Zstd => match zstd::zstd_safe::get_frame_content_size(bytes) {
                Ok(Some(length)) if length > most => Err(too_much(most)),
                Ok(Some(length)) if length <= AT_ONCE => {
                    zstd::bulk::decompress(bytes, length as usize).map_err(|error| error.to_string())
                }
                _ => {
                    let decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| error.to_string())?;
                    read_bounded(decoder, most)
                }
            },
            Codec::Lz4 => {
                // The length is not written down.
                let mut out = zeros(most.min(LZ4_RATIO.saturating_mul(bytes.len() as u64)) as usize)?;
                let n = lz4_flex::block::decompress_into(bytes, &mut out).map_err(|error| error.to_string())?;
                out.truncate(n);
                Ok(out)
            }
        }
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
}

impl Length for FileBytes {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for FileBytes {
    type T = BufReader<FileFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(HEADER_BYTES, FileFrom { file: self.file()?, at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!("{length} bytes at byte {start} of {}", self.length)));
        }
        let mut bytes = zeros(length).map_err(ParquetError::General)?;
        self.file()?.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A file from a position on.
pub(super) struct FileFrom {
    file: Arc<File>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Decompresses a page of so many values.
fn unfold(codec: Codec, compressed: &Bytes, n_values: u64) -> Result<Bytes> {
    if codec == Codec::None {
        return Ok(compressed.clone());
    }
    let most = n_values.saturating_mul(MOST_PER_VALUE).saturating_add(PAGE_OVERHEAD);
    let out = codec.decode(compressed, most.min(MOST_PAGE_BYTES)).map_err(|error| {
        let limit = match most > MOST_PAGE_BYTES {
            true => format!(" (pages of more than {} MiB are not supported)", MOST_PAGE_BYTES >> 20),
            false => String::new(),
        };
        wrong(format!("a page cannot be decompressed: {error}{limit}"))
    })?;
    Ok(out.into())
}

/// The pages of a column in a row group.
pub(super) struct BoundedPages {
    pages: SerializedPageReader<FileBytes>,
    codec: Codec,
    /// Rows of the row group: no page has more values.
    n_rows: u64,
    /// Bytes of a value in a dictionary.
    value_bytes: u64,
}

impl BoundedPages {
    pub(super) fn new(
        pages: SerializedPageReader<FileBytes>,
        codec: Codec,
        n_rows: u64,
        value_bytes: u64,
    ) -> BoundedPages {
        BoundedPages { pages, codec, n_rows, value_bytes }
    }

    fn checked(&self, page: Page) -> Result<Page> {
        let n_values = u64::from(page.num_values());
        if n_values > self.n_rows {
            return Err(wrong(format!("a page has {n_values} values, but there are {} rows", self.n_rows)));
        }
        Ok(match page {
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics } => {
                let buf = unfold(self.codec, &buf, n_values)?;
                Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                statistics,
            } => {
                // Levels come first and are never compressed.
                let levels = def_levels_byte_len as usize + rep_levels_byte_len as usize;
                if levels > buf.len() || num_nulls > num_values || num_rows != num_values {
                    return Err(wrong("the header of a page contradicts itself".into()));
                }
                let buf = match is_compressed && self.codec != Codec::None && buf.len() > levels {
                    true => {
                        let values = unfold(self.codec, &buf.slice(levels..), n_values)?;
                        [&buf[..levels], &values].concat().into()
                    }
                    false => buf,
                };
                Page::DataPageV2 {
                    buf,
                    num_values,
                    encoding,
                    num_nulls,
                    num_rows,
                    def_levels_byte_len,
                    rep_levels_byte_len,
                    is_compressed: false,
                    statistics,
                }
            }
            Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
                let buf = unfold(self.codec, &buf, n_values)?;
                // The decoder makes room for as many values as the header claims.
                if n_values.saturating_mul(self.value_bytes) > buf.len() as u64 {
                    return Err(wrong(format!("a dictionary of {n_values} values in {} bytes", buf.len())));
                }
                Page::DictionaryPage { buf, num_values, encoding, is_sorted }
            }
        })
    }
}

impl Iterator for BoundedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for BoundedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.pages.get_next_page()?.map(|page| self.checked(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.pages.take_deferred_dictionary()?.map(|page| self.checked(page)).transpose()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

fn wrong(what: String) -> ParquetError {
    ParquetError::General(what)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_page_unfolds_without_a_limit() {
        let n_bytes = MOST_PAGE_BYTES + 1;
        // Once without a declared length, and once with one.
        for pledged in [None, Some(n_bytes)] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.set_pledged_src_size(pledged).unwrap();
            std::io::copy(&mut std::io::repeat(0).take(n_bytes), &mut encoder).unwrap();
            let bomb = Bytes::from(encoder.finish().unwrap());
            assert!(bomb.len() < 1 << 16, "{}", bomb.len());
            let error = unfold(Codec::Zstd, &bomb, u64::MAX).unwrap_err().to_string();
            assert!(error.contains("more than 256 MiB are not supported"), "{error}");
            let error = unfold(Codec::Zstd, &bomb, 1000).unwrap_err().to_string();
            assert!(error.contains("77536 bytes that its metadata allows"), "{error}");
        }
    }
}
