//! Tables of numbers as text: one row per line, fields between delimiters.
//!
//! A file is a tensor of doubles with a row per line and a column per column of numbers. When it is opened, one pass over it counts its lines and notes where every block
//! of rows begins; blocks are then parsed by several tasks at once, each from its own range of bytes. An empty field, `NA`, `null` and `nan` are NaN.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_block::{Block, Meter, Sink, Source, SourceAccess};
use tw_ir::schedule::Digest;
use tw_ir::{Axis, BoxRegion, Buffer, DType, Error, Grid, Result, TensorType, Tiling};

use crate::formats::{FileSummary, FileTarget, Format};
use crate::version;

mod number;
mod table;

use table::Table;

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

    fn create(&self, path: &Path, _: DType, _: &Grid, _: &FileTarget) -> Result<Arc<dyn Sink>> {
        Err(Error::source(format!("{}: text is read, but not written", path.display()))
            .help("write an .npy file or a Zarr array"))
    }

    fn blocks_for(&self, _: &Path, _: DType, _: &[u64], _: &FileTarget) -> Result<Option<Grid>> {
        Ok(None)
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
    let table = Table::scan(path, &file, options)?;
    let names = table.columns.iter().map(|column| column.name.clone()).collect();
    let grid =
        Grid::from_iter([Axis::uniform(table.n_rows, table.rows_per_block), Axis::whole(table.columns.len() as u64)]);
    Ok((Arc::new(CsvSource { path: path.to_path_buf(), file, table, grid }), names))
}

/// An open file.
#[derive(Debug)]
struct CsvSource {
    path: PathBuf,
    file: File,
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
        let columns: Vec<u8> = self.table.columns.iter().flat_map(|column| column.index.to_le_bytes()).collect();
        version::of_file(&self.file, &columns)
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        format!("text, {} rows to a block", self.table.rows_per_block)
    }

    fn scratch(&self, region: &BoxRegion) -> u64 {
        let blocks = self.table.blocks_of(region.range(0));
        self.table.longest_block().saturating_mul((blocks.end - blocks.start).min(2))
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let mut block = Block::for_output(DType::F64, region.clone(), Some(meter))?;
        if region.rank() != 2 || region.hi[0] > self.table.n_rows || region.hi[1] > self.table.columns.len() as u64 {
            return Err(Error::internal(format!("a region {region} of {}", self.path.display())));
        }
        let Buffer::F64(values) = block.output()?.1 else { return Err(Error::internal("text that is not doubles")) };
        let (rows, columns) = (region.range(0), region.range(1));
        let columns = columns.start as usize..columns.end as usize;
        let mut text = Vec::new();
        let mut filled = 0;
        for k in self.table.blocks_of(rows.clone()) {
            let bytes = self.table.bytes_of(k);
            text.resize((bytes.end - bytes.start) as usize, 0);
            self.file
                .read_exact_at(&mut text, bytes.start)
                .map_err(|error| failed(&self.path, &format!("byte {} cannot be read", bytes.start), &error))?;
            let first = k * self.table.rows_per_block;
            let wanted = rows.start.max(first) - first..rows.end.min(first + self.table.rows_per_block) - first;
            let n = (wanted.end - wanted.start) as usize * columns.len();
            let target = &mut values[filled..filled + n];
            self.table.parse(&text, wanted, columns.clone(), target).map_err(|(row, what)| {
                // Only now, because counting lines takes a pass over the file.
                let line = table::line_of(&self.file, &self.table, first + row)
                    .map_or(String::new(), |n| format!("line {n}: "));
                Error::io(format!("{}: {line}{what}", self.path.display()))
            })?;
            filled += n;
        }
        Ok(Arc::new(block))
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}
