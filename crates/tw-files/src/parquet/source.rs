//! Columns and tables as sources.

use std::ops::Range;
use std::sync::Arc;

use tw_block::{Block, Meter, Source, SourceAccess};
use tw_ir::schedule::Digest;
use tw_ir::{Axis, BoxRegion, Buffer, DType, Error, Grid, Result, TensorType, Tiling, shape};

use super::decode::{Part, Place};
use super::file::{PageBytes, ParquetFile, Wanted};
use super::pages::PageBuffers;

/// Row groups are put together to blocks of about this many bytes, as if every column had eight bytes: so all columns of a file are cut at the same rows.
const BLOCK_BYTES: u64 = 4 << 20;

/// Row groups of more bytes are read in parts. A part skips the pages before it.
const MOST_BLOCK_BYTES: u64 = 32 << 20;

/// A file of more blocks cannot be planned. Metadata may claim any number of rows.
const MOST_BLOCKS: u64 = 1 << 22;

/// One column.
pub(super) fn column(file: &Arc<ParquetFile>, wanted: &Wanted) -> Result<Arc<dyn Source>> {
    let column = file.position(wanted)?;
    let rows = rows_of(file, 8)?;
    let dtype = file.columns[column].dtype;
    Ok(Arc::new(ParquetSource { file: file.clone(), columns: vec![column], dtype, grid: Grid::from_iter([rows]) }))
}

/// Several columns side by side. Columns of different types become doubles.
pub(super) fn table(file: Arc<ParquetFile>, wanted: &[Wanted]) -> Result<Arc<dyn Source>> {
    let columns = wanted.iter().map(|each| file.position(each)).collect::<Result<Vec<usize>>>()?;
    let Some(&first) = columns.first() else {
        return Err(Error::io(format!("{}: no column holds numbers", file.path.display()))
            .help(format!("its columns are {}", file.left_out.join(", "))));
    };
    let first = file.columns[first].dtype;
    let others = columns.iter().map(|&column| file.columns[column].dtype).find(|&dtype| dtype != first);
    let dtype = match others {
        None => first,
        Some(other) if [first, other].iter().any(|dtype| dtype.time_unit().is_some()) => {
            return Err(Error::io(format!(
                "{}: columns of {first} and of {other} are not one table",
                file.path.display()
            ))
            .help("read the columns one by one, or name those that go together"));
        }
        Some(_) => DType::F64,
    };
    if let Some(&time) =
        columns.iter().find(|&&column| file.columns[column].dtype.time_unit().is_some() && others.is_some())
    {
        let name = &file.columns[time].name;
        return Err(Error::io(format!(
            "{}: column `{}` holds times, others do not",
            file.path.display(),
            name.escape_debug()
        )));
    }
    let n_columns = columns.len() as u64;
    let grid = Grid::from_iter([rows_of(&file, n_columns.saturating_mul(8))?, Axis::whole(n_columns)]);
    shape::n_bytes(&grid.shape(), dtype.size())?;
    Ok(Arc::new(ParquetSource { file, columns, dtype, grid }))
}

/// The cut of the rows: whole row groups, several where they are small, parts of them where they are large.
fn rows_of(file: &ParquetFile, row_bytes: u64) -> Result<Axis> {
    let (usual, most) = ((BLOCK_BYTES / row_bytes).max(1), (MOST_BLOCK_BYTES / row_bytes).max(1));
    let n_blocks = file.groups.iter().fold(0u64, |n, group| n + (group.rows.end - group.rows.start) / most + 1);
    if n_blocks > MOST_BLOCKS.max(file.groups.len() as u64) {
        return Err(Error::io(format!("{}: {} rows are more than can be planned", file.path.display(), file.n_rows)));
    }
    let mut cuts = vec![0];
    let mut start = 0;
    for group in &file.groups {
        // What was put together before stays apart from a row group that makes it too large.
        if group.rows.start > start && group.rows.end - start > usual {
            start = group.rows.start;
            cuts.push(start);
        }
        let n = group.rows.end - start;
        if n > most {
            let parts = n.div_ceil(most);
            cuts.extend((1..parts).map(|k| start + n / parts * k));
        }
        if n >= usual {
            start = group.rows.end;
            cuts.push(start);
        }
    }
    if cuts.last() != Some(&file.n_rows) {
        cuts.push(file.n_rows);
    }
    Ok(if file.n_rows == 0 { Axis::whole(0) } else { Axis::from_boundaries(cuts) })
}

/// Columns of an open file.
#[derive(Debug)]
struct ParquetSource {
    file: Arc<ParquetFile>,
    /// Positions among the columns that are read. One of them alone is a tensor of rank one if the grid says so.
    columns: Vec<usize>,
    dtype: DType,
    grid: Grid,
}

impl Source for ParquetSource {
    fn ty(&self) -> TensorType {
        let tiling = Some(Tiling::Grid(self.grid.clone()));
        TensorType { tiling, ..TensorType::known(self.dtype, &self.grid.shape()) }
    }

    fn chunks(&self) -> Option<&Grid> {
        Some(&self.grid)
    }

    fn fingerprint(&self) -> Option<Digest> {
        let columns: Vec<u8> = self.columns.iter().flat_map(|&column| (column as u64).to_le_bytes()).collect();
        Some(self.file.version.digest(&columns))
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::File
    }

    fn layout(&self) -> String {
        format!("Parquet, {} row groups", self.file.groups.len())
    }

    fn scratch(&self, region: &BoxRegion) -> u64 {
        let wanted = if region.rank() == 1 { 0..1 } else { region.range(1) };
        let columns = self.columns.get(wanted.start as usize..wanted.end as usize).unwrap_or_default();
        let groups = self.file.groups_of(&region.range(0));
        let each = groups.flat_map(|group| columns.iter().map(move |&column| self.file.page_bytes(group, column)));
        each.fold(PageBytes::default(), PageBytes::max).total()
    }

    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let whole = BoxRegion::whole(&self.grid.shape());
        if region.rank() != whole.rank() || !whole.contains(region) {
            return Err(Error::internal(format!("a region {region} of {}", self.file.path.display())));
        }
        let mut block = Block::for_output(self.dtype, region.clone(), Some(meter))?;
        let rows = region.range(0);
        let wanted = if region.rank() == 1 { 0..1 } else { region.range(1) };
        let columns = &self.columns[wanted.start as usize..wanted.end as usize];
        let read = self.fill(&rows, columns, block.output()?.1);
        // What is wrong matters only if the file is still the one that was opened.
        let file = self.file.bytes.file();
        let file =
            file.map_err(|error| Error::io(format!("{} cannot be opened again: {error}", self.file.path.display())))?;
        self.file.version.check(&self.file.path, &file)?;
        read.map(|()| Arc::new(block))
    }
}

impl ParquetSource {
    /// Reads some columns of some rows.
    fn fill(&self, rows: &Range<u64>, columns: &[usize], buffer: &mut Buffer) -> Result<()> {
        let mut buffers = PageBuffers::spare();
        for group in self.file.groups_of(rows) {
            let own = &self.file.groups[group].rows;
            let (lo, hi) = (own.start.max(rows.start), own.end.min(rows.end));
            if lo >= hi {
                continue;
            }
            for (k, &column) in columns.iter().enumerate() {
                let first = (lo - rows.start) as usize * columns.len() + k;
                let part = ((lo - own.start) as usize, (hi - lo) as usize);
                let place = Place { buffer: &mut *buffer, first, stride: columns.len() };
                Part { file: &self.file, group, column, rows: part }.read(place, &mut buffers)?;
            }
        }
        buffers.keep();
        Ok(())
    }
}
