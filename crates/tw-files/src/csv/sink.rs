//! Writing tables as text.

use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tw_block::{Block, Sink};
use tw_ir::{Axis, Buffer, DType, Error, Grid, Result};

use super::TableOptions;
use crate::formats::FileOptions;
use crate::spool::Spool;

/// Bytes of numbers that a block of rows has.
const BLOCK_BYTES: u64 = 4 << 20;

/// Bytes of text that are written at once.
const PIECE_BYTES: usize = 1 << 20;

/// Beside a block: a piece of text that may be full but for one number, and room to grow.
pub(super) const SCRATCH_BYTES: u64 = 3 << 20;

/// The blocks in which a table is written: whole rows.
pub(super) fn blocks_for(dtype: DType, shape: &[u64]) -> Option<Grid> {
    let width = match *shape {
        [_] => 1,
        [_, width] => width,
        _ => return None,
    };
    let rows = Axis::uniform(shape[0], (BLOCK_BYTES / dtype.size().saturating_mul(width).max(1)).max(1));
    Some(Grid::from_iter(std::iter::once(rows).chain(shape.get(1).map(|&width| Axis::whole(width)))))
}

/// A file being written. Several threads write its blocks of rows, in any order.
#[derive(Debug)]
struct CsvSink {
    path: PathBuf,
    delimiter: u8,
    dtype: DType,
    grid: Grid,
    spool: Spool,
    /// For each block of rows the pieces of its text.
    parts: Mutex<Vec<Option<Vec<Range<u64>>>>>,
}

pub(super) fn create(path: &Path, dtype: DType, grid: &Grid, options: &FileOptions) -> Result<Arc<dyn Sink>> {
    let wrong = |what: String| Error::source(format!("{}: {what}", path.display()));
    let delimiter = TableOptions::of(path).delimiter;
    let width = match grid.shape()[..] {
        [_] => 1,
        [_, width] => width,
        ref extents => return Err(wrong(format!("a table has one or two axes, not {}", extents.len()))),
    };
    let is_number = dtype == DType::Bool
        || matches!(dtype, DType::F32 | DType::F64)
        || dtype.time_unit().is_none() && dtype.is_integer();
    if !is_number {
        return Err(wrong(format!("numbers of {dtype} are not written as text")).help("convert them, to f64 say"));
    }
    if grid.len() == 2 && grid[1].n_tiles() > 1 {
        return Err(wrong("text is written in whole rows, but its blocks cut them".into())
            .help("choose blocks of whole rows, or write an .npy file"));
    }
    if width == 0 {
        return Err(wrong("a table has at least one column".into()));
    }
    if *options != (FileOptions { dimensions: options.dimensions.clone(), ..FileOptions::default() }) {
        return Err(wrong("text has names of columns and no other options".into()));
    }
    let names = match &options.dimensions {
        Some(names) if names.len() as u64 == width => names.clone(),
        Some(names) => return Err(wrong(format!("{} names for {width} columns", names.len()))),
        None => (0..width).map(|k| k.to_string()).collect(),
    };
    let quoted = |name: &String| match name.bytes().any(|byte| byte == delimiter || b"\"\r\n".contains(&byte))
        || name.is_empty()
    {
        // Quotes in names would have to be doubled, and not every reader undoes that.
        true => format!("\"{}\"", name.replace('"', "'")),
        false => name.clone(),
    };
    let mut head = names.iter().map(quoted).collect::<Vec<_>>().join(&char::from(delimiter).to_string());
    head.push('\n');
    let spool = Spool::create(path, head.into_bytes())?;
    let n_parts = if grid[0].extent() == 0 { 0 } else { grid[0].n_tiles() };
    let parts = Mutex::new(vec![None; n_parts as usize]);
    let (path, grid) = (path.to_path_buf(), grid.clone());
    Ok(Arc::new(CsvSink { path, delimiter, dtype, grid, spool, parts }))
}

impl CsvSink {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Vec<Range<u64>>>>> {
        // A list is whole at every moment, whoever panicked while holding it.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for CsvSink {
    fn write(&self, block: &Block) -> Result<()> {
        let bbox = block.bbox();
        if bbox.is_empty() {
            return Ok(());
        }
        if self.grid.position_of(bbox).is_none() || !block.is_dense() || block.dtype() != self.dtype.storage() {
            return Err(Error::internal(format!("a {} block {bbox} of {}", block.dtype(), self.path.display())));
        }
        let (extents, strides) = (bbox.shape(), block.strides());
        let width = extents.get(1).copied().unwrap_or(1) as usize;
        let step = strides.get(1).copied().unwrap_or(0);
        let (mut text, mut pieces) = (String::new(), Vec::new());
        for row in 0..extents[0] as usize {
            for column in 0..width {
                write_number(block.data(), block.offset() + row * strides[0] + column * step, &mut text);
                text.push(if column + 1 < width { char::from(self.delimiter) } else { '\n' });
                // A row may be longer than a piece.
                if text.len() >= PIECE_BYTES {
                    pieces.push(self.spool.put(text.as_bytes())?);
                    text.clear();
                }
            }
        }
        pieces.push(self.spool.put(text.as_bytes())?);
        match self.lock().get_mut(self.grid[0].tile_of(bbox.lo[0]) as usize) {
            Some(part @ None) => *part = Some(pieces),
            _ => return Err(Error::internal(format!("rows of {} are written twice", self.path.display()))),
        }
        Ok(())
    }

    fn scratch(&self, _: u64) -> u64 {
        SCRATCH_BYTES
    }

    fn make_durable(&self) -> Result<()> {
        let parts: Option<Vec<Vec<Range<u64>>>> = self.lock().iter().cloned().collect();
        let parts = parts.ok_or_else(|| Error::internal("rows of a table were never written"))?;
        self.spool.finish(&parts.concat(), &[])
    }

    fn commit(&self) -> Result<()> {
        self.spool.commit()
    }
}

/// Appends the shortest text that is read as the same number.
fn write_number(buffer: &Buffer, at: usize, text: &mut String) {
    macro_rules! put {
        ($pattern:literal, $value:expr) => {
            write!(text, $pattern, $value)
        };
    }
    // Writing to a string does not fail.
    let _ = match buffer {
        Buffer::Bool(values) => put!("{}", values[at] as u8),
        Buffer::I8(values) => put!("{}", values[at]),
        Buffer::I16(values) => put!("{}", values[at]),
        Buffer::I32(values) => put!("{}", values[at]),
        Buffer::I64(values) => put!("{}", values[at]),
        Buffer::U8(values) => put!("{}", values[at]),
        Buffer::U16(values) => put!("{}", values[at]),
        Buffer::U32(values) => put!("{}", values[at]),
        Buffer::U64(values) => put!("{}", values[at]),
        Buffer::F32(values) => put!("{:?}", values[at]),
        Buffer::F64(values) => put!("{:?}", values[at]),
        other => put!("{}", other.get(at)),
    };
}
