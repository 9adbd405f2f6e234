//! Writing Parquet files.
//!
//! A file consists of row groups, a row group of one chunk of pages for each column. Rows of a grid make a row group each; a chunk belongs to one block alone, so no two tasks write
//! one. Pages go to the file as they are made ([`crate::spool`]); what the file then consists of is written behind them when all blocks are there. Columns of different types are
//! tensors of their own, each with a sink; they share a [`TableWriter`], which finishes the file with the last of them.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tw_block::{Block, Sink};
use tw_ir::{Axis, DType, Error, Grid, Result, shape};

use super::MAGIC;
use super::encode::{self, Compressor, Elements, EncodedPage, Logical, PAGE_ROWS, Stored};
use super::pages::{PLAIN, RLE};
use super::thrift_writer::Writer;
use crate::formats::FileOptions;
use crate::spool::Spool;

/// Rows of a row group, if a row has few columns.
const MOST_GROUP_ROWS: u64 = 1 << 18;

/// Bytes of a block of a table.
const BLOCK_BYTES: u64 = 16 << 20;

/// A page before and after it is compressed, with room for compressors that make it larger.
pub(super) const SCRATCH_BYTES: u64 = 3 << 20;

/// The cut of the rows into row groups.
pub(super) fn groups_of(n_rows: u64, row_bytes: u64) -> Axis {
    Axis::uniform(n_rows, (BLOCK_BYTES / row_bytes.max(1)).clamp(1, MOST_GROUP_ROWS))
}

/// Without rows there is no row group.
fn n_groups(rows: &Axis) -> u64 {
    if rows.extent() == 0 { 0 } else { rows.n_tiles() }
}

/// What is known of a chunk that was written.
#[derive(Clone, Debug, Default)]
struct Written {
    pages: Vec<Range<u64>>,
    unfolded: u64,
}

/// A file that is being written.
#[derive(Debug)]
pub(super) struct TableWriter {
    path: PathBuf,
    names: Vec<String>,
    dtypes: Vec<DType>,
    compressor: Compressor,
    rows: Axis,
    spool: Spool,
    /// For each row group its columns.
    chunks: Mutex<Vec<Option<Written>>>,
    /// Sinks that are not committed yet.
    missing: AtomicUsize,
}

impl TableWriter {
    /// Begins a file with these columns, whose rows are cut into row groups. So many sinks write it.
    fn new(
        path: &Path,
        columns: Vec<(String, DType)>,
        rows: Axis,
        options: &FileOptions,
        n_sinks: usize,
    ) -> Result<Arc<TableWriter>> {
        let wrong = |what: String| Error::source(format!("{}: {what}", path.display()));
        let mut seen = HashSet::with_capacity(columns.len());
        for (name, dtype) in &columns {
            if Stored::of(*dtype).is_none() {
                return Err(wrong(format!(
                    "column `{}` is {dtype}, which Parquet files do not have",
                    name.escape_debug()
                ))
                .help("convert it: to f32 or f64, or to times in days, ms, us or ns"));
            }
            if !seen.insert(name.as_str()) {
                return Err(wrong(format!("two columns are called `{}`", name.escape_debug())));
            }
        }
        if options.version.is_some() || options.inner_chunks.is_some() || options.attributes.is_some() {
            return Err(wrong("Parquet files have a codec and names of columns, and no other options".into()));
        }
        let compressor = Compressor::named(options.codec.as_ref()).map_err(wrong)?;
        let n_chunks = shape::n_elements(&[n_groups(&rows), columns.len() as u64])?;
        let spool = Spool::create(path, MAGIC.to_vec())?;
        let (names, dtypes) = columns.into_iter().unzip();
        let chunks = Mutex::new(vec![None; n_chunks as usize]);
        let (path, missing) = (path.to_path_buf(), AtomicUsize::new(n_sinks));
        Ok(Arc::new(TableWriter { path, names, dtypes, compressor, rows, spool, chunks, missing }))
    }

    /// Writes a column of a row group.
    fn chunk(&self, group: usize, column: usize, elements: Elements<'_>, n: usize) -> Result<()> {
        let stored = Stored::of(self.dtypes[column]).ok_or_else(|| Error::internal("a column of an unknown type"))?;
        let first_row = self.rows.range(group as u64).start;
        let mut written = Written::default();
        for skip in (0..n).step_by(PAGE_ROWS) {
            let rows = (skip, PAGE_ROWS.min(n - skip));
            let EncodedPage { bytes, unfolded } =
                encode::page(elements, rows, stored, self.compressor, first_row + skip as u64).map_err(|error| {
                    let name = self.names[column].escape_debug();
                    Error::io(format!("{}: column `{name}`: {}", self.path.display(), error.message()))
                })?;
            written.pages.push(self.spool.put(&bytes)?);
            written.unfolded += unfolded;
        }
        let place = group * self.names.len() + column;
        match self.lock().get_mut(place) {
            Some(chunk @ None) => *chunk = Some(written),
            _ => return Err(Error::internal(format!("column {column} of row group {group} is written twice"))),
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Written>>> {
        // A list is whole at every moment, whoever panicked while holding it.
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One sink is done; with the last one the file is whole.
    fn finish(&self) -> Result<()> {
        if self.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        let chunks: Option<Vec<Written>> = self.lock().iter().cloned().collect();
        let chunks = chunks.ok_or_else(|| Error::internal("a row group was never written"))?;
        let pages: Vec<Range<u64>> = chunks.iter().flat_map(|chunk| chunk.pages.iter().cloned()).collect();
        let mut tail = self.footer(&chunks);
        let length = u32::try_from(tail.len()).map_err(|_| {
            Error::source(format!("{}: {} row groups are too many", self.path.display(), n_groups(&self.rows)))
        })?;
        tail.extend_from_slice(&length.to_le_bytes());
        tail.extend_from_slice(MAGIC);
        self.spool.finish(&pages, &tail)
    }

    fn footer(&self, chunks: &[Written]) -> Vec<u8> {
        let columns = || self.names.iter().zip(&self.dtypes);
        let bytes_of = |chunk: &Written| chunk.pages.iter().map(|page| page.end - page.start).sum::<u64>();
        let mut starts = Vec::with_capacity(chunks.len());
        let mut end = MAGIC.len() as u64;
        for chunk in chunks {
            starts.push(end);
            end += bytes_of(chunk);
        }
        let groups: Vec<_> = chunks.chunks(self.names.len()).zip(starts.chunks(self.names.len())).enumerate().collect();
        Writer::whole(|file| {
            file.i32(1, 2);
            let root = std::iter::once(None);
            let elements: Vec<Option<(&String, &DType)>> = root.chain(columns().map(Some)).collect();
            file.structs(2, elements.into_iter(), |element, column| match column {
                None => {
                    element.text(4, "schema");
                    element.i32(5, self.names.len() as i32);
                }
                Some((name, &dtype)) => schema_element(element, name, dtype),
            });
            file.i64(3, self.rows.extent());
            file.structs(4, groups.into_iter(), |group, (k, (chunks, starts))| {
                let rows = self.rows.range(k as u64);
                let n_rows = rows.end - rows.start;
                let each: Vec<_> = chunks.iter().zip(starts).zip(columns()).collect();
                group.structs(1, each.into_iter(), |chunk, ((written, &start), (name, &dtype))| {
                    chunk.i64(2, 0);
                    chunk.nested(3, |meta| {
                        let physical = Stored::of(dtype).map_or(0, |stored| stored.physical);
                        meta.i32(1, physical);
                        meta.ints(2, &[PLAIN, RLE]);
                        meta.texts(3, &[name]);
                        meta.i32(4, self.compressor.number());
                        meta.i64(5, n_rows);
                        meta.i64(6, written.unfolded);
                        meta.i64(7, bytes_of(written));
                        meta.i64(9, start);
                    });
                });
                group.i64(2, chunks.iter().map(|chunk| chunk.unfolded).sum());
                group.i64(3, n_rows);
                group.i64(5, starts.first().copied().unwrap_or(0));
                group.i64(6, chunks.iter().map(bytes_of).sum());
                if let Ok(k) = i16::try_from(k) {
                    group.i16(7, k);
                }
            });
            file.text(6, concat!("tilewright version ", env!("CARGO_PKG_VERSION")));
        })
    }
}

fn schema_element(element: &mut Writer, name: &str, dtype: DType) {
    let Some(stored) = Stored::of(dtype) else { return };
    element.i32(1, stored.physical);
    element.i32(3, stored.is_optional as i32);
    element.text(4, name);
    let Some(logical) = stored.logical else { return };
    // Old readers know the converted type alone, which timestamps without a zone do not have.
    match logical {
        Logical::Integer { bits, is_signed } => {
            element.i32(6, if is_signed { 15 } else { 11 } + i32::from(bits.ilog2() as u8 - 3));
            element.nested(10, |ty| {
                ty.nested(10, |integer| {
                    integer.byte(1, bits);
                    integer.bool(2, is_signed);
                })
            });
        }
        Logical::Date => {
            element.i32(6, 6);
            element.nested(10, |ty| ty.nested(6, |_| {}));
        }
        Logical::Timestamp(unit) => element.nested(10, |ty| {
            ty.nested(8, |timestamp| {
                timestamp.bool(1, false);
                let number = match unit {
                    tw_ir::TimeUnit::Milli => 1,
                    tw_ir::TimeUnit::Micro => 2,
                    _ => 3,
                };
                timestamp.nested(2, |own| own.nested(number, |_| {}));
            })
        }),
    }
}

/// A tensor as all columns of a file: one, or one for each of the second axis.
pub(super) fn whole(path: &Path, dtype: DType, grid: &Grid, options: &FileOptions) -> Result<Arc<dyn Sink>> {
    let extents = grid.shape();
    let n = match extents[..] {
        [_] => 1,
        [_, n] => n,
        _ => {
            let message = format!("{}: a table has one or two axes, not {}", path.display(), extents.len());
            return Err(Error::source(message).help("reshape the tensor, or write an .npy file or a Zarr array"));
        }
    };
    let names = match &options.dimensions {
        Some(names) if names.len() as u64 == n => names.clone(),
        Some(names) => {
            let message = format!("{}: {} names for {n} columns", path.display(), names.len());
            return Err(Error::source(message));
        }
        None => (0..n).map(|k| k.to_string()).collect(),
    };
    if n == 0 {
        return Err(Error::source(format!("{}: a Parquet file has at least one column", path.display())));
    }
    let columns = names.into_iter().map(|name| (name, dtype)).collect();
    let table = TableWriter::new(path, columns, grid[0].clone(), options, 1)?;
    Ok(Arc::new(TableSink { table, columns: 0..n as usize, dtype, grid: grid.clone() }))
}

/// A tensor that becomes columns of a file.
#[derive(Debug)]
struct TableSink {
    table: Arc<TableWriter>,
    columns: Range<usize>,
    dtype: DType,
    grid: Grid,
}

impl Sink for TableSink {
    fn write(&self, block: &Block) -> Result<()> {
        let bbox = block.bbox();
        if bbox.is_empty() {
            return Ok(());
        }
        if self.grid.position_of(bbox).is_none() || !block.is_dense() || block.dtype() != self.dtype.storage() {
            return Err(Error::internal(format!("a {} block {bbox} of {}", block.dtype(), self.table.path.display())));
        }
        let strides = block.strides();
        let rows = bbox.range(0);
        let group = self.grid[0].tile_of(rows.start) as usize;
        let columns = if bbox.rank() == 1 { 0..1 } else { bbox.range(1) };
        for (k, column) in columns.enumerate() {
            let first = block.offset() + k * strides.get(1).copied().unwrap_or(0);
            let elements = Elements { buffer: block.data(), first, stride: strides[0].max(1) };
            let column = self.columns.start + column as usize;
            self.table.chunk(group, column, elements, (rows.end - rows.start) as usize)?;
        }
        Ok(())
    }

    fn scratch(&self, _: u64) -> u64 {
        SCRATCH_BYTES
    }

    fn make_durable(&self) -> Result<()> {
        self.table.finish()
    }

    fn commit(&self) -> Result<()> {
        self.table.spool.commit()
    }
}

/// A file that several tensors are written to, a column each.
#[derive(Clone, Debug)]
pub struct TableColumn {
    table: Arc<TableWriter>,
    column: usize,
}

impl PartialEq for TableColumn {
    fn eq(&self, other: &TableColumn) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.column == other.column
    }
}

impl Eq for TableColumn {}

/// Begins a file with the given columns of so many rows each: where each of them is stored. The file gets its name when all of them are committed.
pub fn create_columns(
    path: &Path,
    columns: &[(String, DType)],
    n_rows: u64,
    codec: Option<(String, i64)>,
) -> Result<Vec<TableColumn>> {
    if columns.is_empty() {
        return Err(Error::source(format!("{}: a Parquet file has at least one column", path.display())));
    }
    let options = FileOptions { codec, ..FileOptions::default() };
    let rows = groups_of(n_rows, 8);
    let table = TableWriter::new(path, columns.to_vec(), rows, &options, columns.len())?;
    Ok((0..columns.len()).map(|column| TableColumn { table: table.clone(), column }).collect())
}

impl TableColumn {
    /// The blocks that the column is written in.
    pub(crate) fn blocks(&self) -> Grid {
        Grid::from_iter([self.table.rows.clone()])
    }

    pub(crate) fn sink(&self, dtype: DType, grid: &Grid) -> Result<Arc<dyn Sink>> {
        let table = &self.table;
        if grid[..] != [table.rows.clone()] || dtype != table.dtypes[self.column] {
            return Err(Error::internal(format!("blocks of a column of {}", table.path.display())));
        }
        let columns = self.column..self.column + 1;
        Ok(Arc::new(TableSink { table: table.clone(), columns, dtype, grid: grid.clone() }))
    }
}
