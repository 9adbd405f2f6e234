//! Tables of numbers as text: one row per line, fields between delimiters.
//!
//! A file is a tensor of doubles with a row per line and a column per column of numbers. When it is opened, one pass over it counts its lines and notes where every block
//! of rows begins ([`rows`]); blocks are then parsed by several tasks at once, each from its own range of bytes, piece by piece ([`parse`]). An empty field, `NA`, `null` and `nan` are
//! NaN.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_block::{Block, Meter, Sink, Source, SourceAccess};
use tw_ir::schedule::Digest;
use tw_ir::{Axis, BoxRegion, Buffer, DType, Error, Grid, Result, TensorType, Tiling};

use crate::formats::{FileSummary, FileTarget, Format};
use crate::version::Version;

mod number;
mod parse;
mod powers;
mod rows;
mod sink;
mod table;

use table::Table;

/// No row has more bytes: a row is held in memory.
const MOST_ROW: u64 = 16 << 20;

/// Bytes of text that are parsed at once. They stay in a cache.
const PIECE_BYTES: u64 = 256 << 10;

/// The format, for the table of all.
pub(crate) struct Csv;

/// How a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// What stands between fields.
    pub delimiter: u8,
    /// True if the first line has the names of the columns.
    pub header: bool,
    /// The columns that are wanted, by name. `None` for all columns of numbers, as the first rows show.
    pub columns: Option<Vec<String>>,
}

impl TableOptions {
    /// The usual options for a file of this name: `.tsv` has tabs.
    pub fn of(path: &Path) -> TableOptions {
        let is_tabbed = path.extension().is_some_and(|extension| extension == "tsv");
        TableOptions { delimiter: if is_tabbed { b'\t' } else { b',' }, header: true, columns: None }
    }
}

impl Format for Csv {
    fn names(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "csv" || extension == "tsv")
    }

    fn begins(&self, _: &Path) -> bool {
        false
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Source>> {
        Ok(open(path, &TableOptions::of(path))?.0)
    }

    fn create(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>> {
        match target {
            FileTarget::New(options) => sink::create(path, dtype, grid, options),
            _ => Err(Error::source(format!("{}: text is written as a whole", path.display()))
                .help("write a Zarr array, with a name that ends in .zarr")),
        }
    }

    fn blocks_for(&self, _: &Path, dtype: DType, shape: &[u64], _: &FileTarget) -> Result<Option<Grid>> {
        Ok(sink::blocks_for(dtype, shape))
    }

    fn scratch_of_store(&self, _: u64) -> u64 {
        sink::SCRATCH_BYTES
    }

    fn describe(&self, path: &Path) -> Result<FileSummary> {
        let (source, names) = open(path, &TableOptions::of(path))?;
        drop(source);
        let bytes = std::fs::metadata(path).map_err(|error| failed(path, "cannot be examined", &error))?.len();
        Ok(FileSummary {
            format: format!("text, columns {}", names.join(", ")),
            lines: Vec::new(),
            bytes_on_disk: Some(bytes),
        })
    }
}

/// Opens a file: its numbers, and the names of their columns.
pub fn open(path: impl AsRef<Path>, options: &TableOptions) -> Result<(Arc<dyn Source>, Vec<String>)> {
    let path = path.as_ref();
    let file = File::open(path).map_err(|error| failed(path, "cannot be opened", &error))?;
    let version = Version::of(&file).map_err(|error| failed(path, "cannot be examined", &error))?;
    let table = Table::scan(path, &file, options)?;
    let names = table.columns.iter().map(|column| column.name.clone()).collect();
    let grid = Grid::from_iter([
        Axis::uniform(table.rows.count, table.rows_per_block),
        Axis::whole(table.columns.len() as u64),
    ]);
    Ok((Arc::new(CsvSource { path: path.to_path_buf(), file, version, table, grid }), names))
}

/// An open file.
#[derive(Debug)]
struct CsvSource {
    path: PathBuf,
    file: File,
    version: Version,
    table: Table,
    grid: Grid,
}

impl Source for CsvSource {
    fn ty(&self) -> TensorType {
        let tiling = Some(Tiling::Grid(self.grid.clone()));
        TensorType { tiling, ..TensorType::known(DType::F64, &self.grid.shape()) }
    }

    fn chunks(&self) -> Option<&Grid> {
        Some(&self.grid)
    }

    fn fingerprint(&self) -> Option<Digest> {
        let columns = self.table.columns.iter().flat_map(|column| (column.index as u64).to_le_bytes());
        Some(self.version.digest(&columns.collect::<Vec<u8>>()))
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        format!("text, {} rows to a block", self.table.rows_per_block)
    }

    fn scratch(&self, _: &BoxRegion) -> u64 {
        PIECE_BYTES.max(self.table.rows.longest)
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let (n_rows, n_columns) = (self.table.rows.count, self.table.columns.len() as u64);
        if region.rank() != 2 || region.hi[0] > n_rows || region.hi[1] > n_columns {
            return Err(Error::internal(format!("a region {region} of {}", self.path.display())));
        }
        let mut block = Block::for_output(DType::F64, region.clone(), Some(meter))?;
        let Buffer::F64(values) = block.output()?.1 else { return Err(Error::internal("text that is not doubles")) };
        let read = self.fill(region.range(0), region.range(1), values);
        // What is wrong with a row matters only if the file is still the one that was opened.
        self.version.check(&self.path, &self.file)?;
        read.map(|()| Arc::new(block))
    }
}

impl CsvSource {
    /// Parses some columns of some rows.
    fn fill(&self, rows: Range<u64>, columns: Range<u64>, values: &mut [f64]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let columns = columns.start as usize..columns.end as usize;
        let (step, starts, width) = (self.table.rows_per_block, &self.table.rows.starts, columns.len());
        let fields = self.table.fields(columns);
        let first = rows.start / step;
        let mut skipped = rows.start - first * step;
        let (mut at, end) = (starts[first as usize], starts[rows.end.div_ceil(step) as usize]);
        // A row that is not whole is kept until the rest of it is there.
        let room = PIECE_BYTES.max(self.table.rows.longest).min(end - at) as usize;
        let (mut text, mut kept, mut done) = (vec![0; room], 0, 0);
        while done < values.len() {
            let n = ((end - at) as usize).min(room - kept);
            self.file
                .read_exact_at(&mut text[kept..kept + n], at)
                .map_err(|error| failed(&self.path, &format!("byte {at} cannot be read"), &error))?;
            (at, kept) = (at + n as u64, kept + n);
            let (whole, is_all) = (&text[..kept], at == end);
            let passed = fields.skip(whole, skipped, is_all);
            skipped -= passed.rows;
            let mut used = passed.bytes;
            if skipped == 0 {
                let parsed = fields.parse(&whole[used..], is_all, &mut values[done..]).map_err(|wrong| {
                    let place = at - (kept - used - wrong.at) as u64;
                    let line = rows::line_at(&self.file, place).map_or(String::new(), |n| format!("line {n}: "));
                    Error::io(format!("{}: {line}{}", self.path.display(), wrong.what))
                })?;
                used += parsed.bytes;
                done += parsed.rows as usize * width;
            }
            if used == 0 && n == 0 {
                return Err(Error::io(format!("{}: rows are missing before byte {end}", self.path.display())));
            }
            text.copy_within(used..kept, 0);
            kept -= used;
        }
        Ok(())
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}
