//! One buffer of a spilled block: its pieces in the file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use tw_ir::kernel::STREAM_PIECE;
use tw_ir::schedule::{ByteReader, ByteWriter};
use tw_ir::{Buffer, DType, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::Pace;
use crate::bytes::{read_elements, write_elements};
use crate::width::{Bits, with_width};

/// Elements are compressed and checksummed in pieces of so many bytes: a task that needs a part of a block reads the pieces that overlap it.
const PIECE: usize = STREAM_PIECE as usize;

/// Bools are converted to bytes in pieces of this size.
const PIECE_OF_BOOLS: usize = 4096;

/// One buffer of a block in the file.
#[derive(Debug)]
pub(super) struct SpilledBuffer {
    pub(super) dtype: DType,
    pub(super) n_elements: u64,
    pieces: Vec<Piece>,
}

/// Some bytes of the elements in the file.
#[derive(Debug)]
struct Piece {
    at: u64,
    /// Bytes in the file: fewer than it has if it is compressed.
    stored: u32,
    checksum: u64,
}

/// Where the next piece goes, and how.
pub(super) struct Writing {
    pub(super) at: u64,
    /// Whether pieces are compressed, once that is decided.
    pub(super) compresses: Option<bool>,
    compressed: Vec<u8>,
}

impl Writing {
    pub(super) fn from(offset: u64) -> Writing {
        Writing { at: offset, compresses: None, compressed: Vec::new() }
    }
}

/// Elements that each piece has, but for the last.
fn elements_of_piece(dtype: DType) -> usize {
    match dtype {
        DType::Bool => PIECE_OF_BOOLS,
        dtype => PIECE / dtype.size() as usize,
    }
}

fn damaged() -> io::Error {
    io::Error::other("a piece is damaged: its checksum differs from that of what was written")
}

impl SpilledBuffer {
    /// Writes a range of elements.
    pub(super) fn write(
        file: &File,
        elements: &Buffer,
        range: Range<usize>,
        pace: &Pace,
        writing: &mut Writing,
    ) -> io::Result<SpilledBuffer> {
        let dtype = elements.dtype();
        let mut pieces = Vec::with_capacity(range.len().div_ceil(elements_of_piece(dtype)));
        let n_elements = range.len() as u64;
        let Writing { at, compresses, compressed } = writing;
        write_elements(elements, range, |bytes| {
            if !*compresses.get_or_insert_with(|| pace.compresses(bytes)) {
                file.write_all_at(bytes, *at)?;
                for piece in bytes.chunks(PIECE) {
                    pieces.push(Piece { at: *at, stored: piece.len() as u32, checksum: xxh3_64(piece) });
                    *at += piece.len() as u64;
                }
                return Ok(());
            }
            for piece in bytes.chunks(PIECE) {
                compressed.resize(lz4_flex::block::get_maximum_output_size(piece.len()), 0);
                let length = lz4_flex::block::compress_into(piece, compressed).map_err(io::Error::other)?;
                // A piece that does not shrink is stored as it is, so that no block outgrows its slot.
                let stored = if length < piece.len() { &compressed[..length] } else { piece };
                file.write_all_at(stored, *at)?;
                pieces.push(Piece { at: *at, stored: stored.len() as u32, checksum: xxh3_64(stored) });
                *at += stored.len() as u64;
            }
            Ok::<(), io::Error>(())
        })?;
        Ok(SpilledBuffer { dtype, n_elements, pieces })
    }

    /// Reads elements from the beginning of a piece on, into a range of a buffer.
    pub(super) fn read(
        &self,
        file: &File,
        first_piece: usize,
        range: Range<usize>,
        buffer: &mut Buffer,
    ) -> io::Result<()> {
        let mut stored = Vec::new();
        let mut pieces = self.pieces.get(first_piece..).unwrap_or_default();
        read_elements(buffer, range, |bytes| {
            let Some((these, rest)) = pieces.split_at_checked(bytes.len().div_ceil(PIECE)) else {
                return Err(damaged());
            };
            pieces = rest;
            let lengths = bytes.chunks(PIECE).map(<[u8]>::len);
            if let Some(first) = these.first()
                && these.iter().map(|piece| piece.stored as usize).eq(lengths)
            {
                // Pieces that are stored as they are lie one after the other, and are read together.
                file.read_exact_at(bytes, first.at)?;
                let is_whole = |(bytes, piece): (&[u8], &Piece)| xxh3_64(bytes) == piece.checksum;
                return if bytes.chunks(PIECE).zip(these).all(is_whole) { Ok(()) } else { Err(damaged()) };
            }
            for (target, piece) in bytes.chunks_mut(PIECE).zip(these) {
                stored.resize(piece.stored as usize, 0);
                file.read_exact_at(&mut stored, piece.at)?;
                if xxh3_64(&stored) != piece.checksum {
                    return Err(damaged());
                }
                if stored.len() == target.len() {
                    target.copy_from_slice(&stored);
                } else if lz4_flex::block::decompress_into(&stored, target).ok() != Some(target.len()) {
                    return Err(damaged());
                }
            }
            Ok(())
        })
    }

    /// Elements that each piece has, but for the last.
    pub(super) fn elements_of_piece(&self) -> usize {
        elements_of_piece(self.dtype)
    }

    /// The first element of every piece, given the elements, which begin at `first` of a buffer.
    pub(super) fn first_elements(&self, elements: &Buffer, first: usize) -> Buffer {
        let (n, step) = (self.n_elements as usize, self.elements_of_piece());
        let mut firsts = Buffer::zeros(self.dtype, n.div_ceil(step));
        with_width!(self.dtype, T => {
            let from = T::of(elements)[first..first + n].iter().step_by(step);
            T::of_mut(&mut firsts).iter_mut().zip(from).for_each(|(to, &from)| *to = from);
        });
        firsts
    }

    /// The description by which a later process finds the buffer: type, number of elements, and length and checksum of every piece.
    pub(super) fn describe(&self, writer: &mut ByteWriter) {
        writer.section(self.dtype.to_string().as_bytes());
        writer.unsigned(self.n_elements);
        writer.column(self.pieces.iter().map(|piece| piece.stored.into()));
        writer.column(self.pieces.iter().map(|piece| piece.checksum));
    }

    /// The buffer that was described, with its first piece at `at`, which goes on to its end; `None` if there is none like that. It has as many pieces as its
    /// elements need, so a description cannot claim more memory than it has pieces for.
    pub(super) fn from_description(reader: &mut ByteReader<'_>, at: &mut u64) -> Result<Option<SpilledBuffer>> {
        let dtype = String::from_utf8_lossy(reader.section()?).parse::<DType>().ok();
        let n_elements = reader.unsigned()?;
        let (stored, checksums) = (reader.column(u64::from(u32::MAX))?, reader.column(u64::MAX)?);
        let Some(dtype) = dtype else { return Ok(None) };
        let n_pieces = n_elements.div_ceil(elements_of_piece(dtype) as u64);
        let fits = stored.len() as u64 == n_pieces && checksums.len() == stored.len();
        if !fits || stored.iter().any(|&stored| stored > PIECE as u64) {
            return Ok(None);
        }
        let pieces = stored.iter().zip(checksums).map(|(&stored, checksum)| {
            let piece = Piece { at: *at, stored: stored as u32, checksum };
            *at = at.saturating_add(stored);
            piece
        });
        Ok(Some(SpilledBuffer { dtype, n_elements, pieces: pieces.collect() }))
    }
}
