//! An open file: its columns of numbers and its row groups, checked against the length of the file.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ::parquet::basic::{Compression, ConvertedType, LogicalType, TimeUnit as FileUnit, Type as Physical};
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use tw_ir::{DType, Error, Result, TimeUnit};

use super::footer;
use super::guarded::guarded;
use super::header::PageKind;
use super::pages::{Codec, FileBytes, MOST_PAGE_BYTES, PageBuffers, Pages};
use crate::version::Version;

/// More row groups than this, or more columns, are not what anybody writes.
const MOST_PARTS: usize = 1 << 22;

/// Pages that take no more than this all together are not looked at one by one.
const FEW_BYTES: u64 = 1 << 20;

/// A column that is read.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) physical: Physical,
    /// How many columns of the file have this name, those that hold something else than numbers included.
    n_namesakes: usize,
    /// Which column of the file it is.
    index: usize,
}

/// A column that is asked for, of each of several files.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) name: String,
    /// How many columns must have this name, and which of them it is. Nothing forbids a file to use a name twice.
    n_namesakes: usize,
    namesake: usize,
}

/// Rows that lie together in a file.
#[derive(Clone, Debug)]
pub(super) struct RowGroup {
    pub(super) rows: Range<u64>,
    /// Of each column that is read.
    chunks: Vec<Chunk>,
}

/// A column of a row group.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// Where its pages lie.
    pub(super) bytes: Range<u64>,
    pub(super) column: ColumnDescPtr,
    codec: Result<Codec, Compression>,
    /// Bytes of all pages together when they are decompressed, as the footer claims.
    unfolded: u64,
    /// What its pages take, once somebody asked.
    largest: OnceLock<PageBytes>,
}

/// What the largest pages of a column take in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageBytes {
    in_file: u64,
    unfolded: u64,
    dictionary: u64,
}

impl PageBytes {
    /// The larger of each.
    pub(super) fn max(self, other: PageBytes) -> PageBytes {
        PageBytes {
            in_file: self.in_file.max(other.in_file),
            unfolded: self.unfolded.max(other.unfolded),
            dictionary: self.dictionary.max(other.dictionary),
        }
    }

    /// All that is held at once: the buffers of pages serve one page after the other.
    pub(super) fn total(self) -> u64 {
        self.in_file.saturating_add(self.unfolded).saturating_add(self.dictionary)
    }
}

impl Chunk {
    /// True if some of its values may be null.
    pub(super) fn is_optional(&self) -> bool {
        self.column.max_def_level() > 0
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct ParquetFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Arc<FileBytes>,
    pub(super) length: u64,
    pub(super) version: Version,
    pub(super) columns: Vec<Column>,
    /// Names of columns that hold something else than numbers.
    pub(super) left_out: Vec<String>,
    pub(super) groups: Vec<RowGroup>,
    pub(super) n_rows: u64,
}

impl ParquetFile {
    /// Reads the metadata of a file. The file stays open if `keep_open` says so, and is otherwise opened for every access.
    pub(super) fn open(path: &Path, keep_open: bool) -> Result<Arc<ParquetFile>> {
        let wrong = |what: String| Error::io(format!("{}: {what}", path.display()));
        let file = File::open(path).map_err(|error| wrong(format!("it cannot be opened: {error}")))?;
        let examined = |error| wrong(format!("it cannot be examined: {error}"));
        let version = Version::of(&file).map_err(examined)?;
        let length = file.metadata().map_err(examined)?.len();
        let mut bytes = FileBytes { path: path.to_path_buf(), open: Some(Arc::new(file)), length };
        let metadata = footer::read(&bytes)
            .and_then(|footer| guarded(|| ParquetMetaDataReader::decode_metadata(&footer)))
            .map_err(|error| wrong(format!("its metadata is wrong: {error}")))?;
        let schema = metadata.file_metadata().schema_descr();
        if metadata.num_row_groups().saturating_mul(schema.num_columns()) > MOST_PARTS {
            return Err(wrong(format!(
                "{} row groups of {} columns are more than can be planned",
                metadata.num_row_groups(),
                schema.num_columns()
            )));
        }
        let mut n_namesakes: HashMap<&str, usize> = HashMap::new();
        for column in schema.columns() {
            // The field of a struct is no namesake of a column: its path has several parts.
            if let [name] = column.path().parts() {
                *n_namesakes.entry(name).or_default() += 1;
            }
        }
        let (mut columns, mut left_out) = (Vec::new(), Vec::new());
        for (index, column) in schema.columns().iter().enumerate() {
            let name = column.path().string();
            match dtype_of(column) {
                Some(dtype) => {
                    let n_namesakes = n_namesakes.get(name.as_str()).copied().unwrap_or(1);
                    columns.push(Column { name, dtype, physical: column.physical_type(), n_namesakes, index });
                }
                None => left_out.push(name),
            }
        }
        let mut groups = Vec::with_capacity(metadata.num_row_groups());
        let mut n_rows = 0u64;
        for (k, group) in metadata.row_groups().iter().enumerate() {
            let wrong = |what: String| wrong(format!("row group {k}: {what}"));
            let own = u64::try_from(group.num_rows()).map_err(|_| wrong(format!("{} rows", group.num_rows())))?;
            let end = n_rows
                .checked_add(own)
                .filter(|&end| end <= i64::MAX as u64)
                .ok_or_else(|| wrong("more rows than can be counted".into()))?;
            let chunk = |column: &Column| {
                let chunk = group.columns().get(column.index).ok_or_else(|| wrong("a column is missing".into()))?;
                checked(chunk, own, length)
                    .map_err(|what| wrong(format!("column `{}`: {what}", column.name.escape_debug())))
            };
            groups.push(RowGroup { rows: n_rows..end, chunks: columns.iter().map(chunk).collect::<Result<Vec<_>>>()? });
            n_rows = end;
        }
        if !keep_open {
            bytes.open = None;
        }
        let (path, bytes) = (path.to_path_buf(), Arc::new(bytes));
        Ok(Arc::new(ParquetFile { path, bytes, length, version, columns, left_out, groups, n_rows }))
    }

    /// The columns of the given names.
    pub(super) fn named(names: &[String]) -> Vec<Wanted> {
        names.iter().map(|name| Wanted { name: name.clone(), n_namesakes: 1, namesake: 0 }).collect()
    }

    /// All columns.
    pub(super) fn all(&self) -> Vec<Wanted> {
        self.those(|_| true)
    }

    /// All columns but those of times.
    pub(super) fn all_numbers(&self) -> Vec<Wanted> {
        self.those(|column| column.dtype.time_unit().is_none())
    }

    fn those(&self, take: impl Fn(&Column) -> bool) -> Vec<Wanted> {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut wanted = Vec::new();
        for column in &self.columns {
            let namesake = seen.entry(&column.name).or_default();
            if take(column) {
                let (name, n_namesakes) = (column.name.clone(), column.n_namesakes);
                wanted.push(Wanted { name, n_namesakes, namesake: *namesake });
            }
            *namesake += 1;
        }
        wanted
    }

    /// Which of the columns that are read is asked for; an error if there is none, or if it cannot be read.
    pub(super) fn position(&self, wanted: &Wanted) -> Result<usize> {
        let name = &wanted.name;
        let path = self.path.display();
        let shown = name.escape_debug();
        let mut namesakes = self.columns.iter().enumerate().filter(|(_, column)| column.name == *name).peekable();
        if let Some(&(_, first)) = namesakes.peek() {
            let found = namesakes.nth(wanted.namesake).filter(|_| first.n_namesakes == wanted.n_namesakes);
            let Some((column, _)) = found else {
                let (n, expected) = (first.n_namesakes, wanted.n_namesakes);
                let error =
                    Error::io(format!("{path}: the number of columns called `{shown}` is {n} instead of {expected}"));
                return Err(error.help("a name chooses a column only if no other column has that name"));
            };
            for group in 0..self.groups.len() {
                self.chunk(group, column)
                    .map_err(|what| Error::io(format!("{path}: row group {group}: column `{shown}`: {what}")))?;
            }
            return Ok(column);
        }
        if self.left_out.iter().any(|each| each == name) {
            return Err(Error::io(format!("{path}: column `{shown}` does not hold numbers"))
                .help("text, decimals and nested columns are not read"));
        }
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        Err(Error::io(format!("{path}: there is no column `{shown}`"))
            .help(format!("its columns of numbers are {}", names.join(", "))))
    }

    /// The row groups that have some of these rows.
    pub(super) fn groups_of(&self, rows: &Range<u64>) -> Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        let first = self.groups.partition_point(|group| group.rows.end <= rows.start);
        first..self.groups.partition_point(|group| group.rows.start < rows.end).max(first)
    }

    /// Where a column lies in a row group, if it is compressed in a way that can be read.
    pub(super) fn chunk(&self, group: usize, column: usize) -> Result<(&Chunk, Codec), String> {
        let chunk = &self.groups[group].chunks[column];
        let codec = chunk.codec.map_err(|other| format!("it is compressed with {other}, which is not supported"))?;
        Ok((chunk, codec))
    }
}

/// The headers of a column are looked at until so many pages have been seen. Writers make pages of one size.
const MOST_EXAMINED: usize = 64;

impl ParquetFile {
    /// What the largest pages of a column take while they are read. The footer has only the bytes of all pages together; where those are many, the headers of pages are looked at.
    pub(super) fn page_bytes(&self, group: usize, column: usize) -> PageBytes {
        let Some(chunk) = self.groups.get(group).and_then(|group| group.chunks.get(column)) else {
            return PageBytes::default();
        };
        *chunk.largest.get_or_init(|| self.examine(group, chunk))
    }

    fn examine(&self, group: usize, chunk: &Chunk) -> PageBytes {
        let together = chunk.bytes.end - chunk.bytes.start;
        let Ok(codec) = chunk.codec else { return PageBytes::default() };
        let unfolds = |n: u64| if codec == Codec::None { 0 } else { n };
        if together.saturating_add(unfolds(chunk.unfolded)) <= FEW_BYTES {
            return PageBytes { in_file: together, unfolded: unfolds(chunk.unfolded), dictionary: 0 };
        }
        let Ok(file) = self.bytes.file() else { return PageBytes::default() };
        let rows = &self.groups[group].rows;
        let mut pages = Pages::new(file, chunk.bytes.clone(), codec, rows.end - rows.start, 0, PageBuffers::default());
        let mut largest = PageBytes::default();
        // What is wrong with a page is said when it is read.
        for _ in 0..MOST_EXAMINED {
            let Ok(Some(header)) = pages.peek() else { break };
            let dictionary = match header.kind {
                PageKind::Dictionary { .. } => header.n_values.saturating_mul(8).min(8 * header.unfolded as u64),
                _ => 0,
            };
            let unfolded = unfolds(header.unfolded as u64).min(MOST_PAGE_BYTES);
            largest = largest.max(PageBytes { in_file: header.bytes as u64, unfolded, dictionary });
            if pages.pass().is_err() {
                break;
            }
        }
        largest
    }
}

/// The type of the elements of a column, if it has numbers, one per row.
fn dtype_of(column: &ColumnDescriptor) -> Option<DType> {
    if column.path().parts().len() != 1 || column.max_rep_level() > 0 {
        return None;
    }
    let unit = |unit: &FileUnit| match unit {
        FileUnit::MILLIS => Some(TimeUnit::Milli),
        FileUnit::MICROS => Some(TimeUnit::Micro),
        FileUnit::NANOS => Some(TimeUnit::Nano),
        #[allow(unreachable_patterns)]
        _ => None,
    };
    let integer = |bits: i8, signed: bool| match (bits, signed) {
        (8, true) => Some(DType::I8),
        (16, true) => Some(DType::I16),
        (32, true) => Some(DType::I32),
        (64, true) => Some(DType::I64),
        (8, false) => Some(DType::U8),
        (16, false) => Some(DType::U16),
        (32, false) => Some(DType::U32),
        (64, false) => Some(DType::U64),
        _ => None,
    };
    // Files of old writers have a converted type alone.
    let declared = match (column.logical_type_ref(), column.converted_type()) {
        (None, ConvertedType::NONE) => None,
        (Some(LogicalType::Integer(own)), _) => Some(integer(own.bit_width, own.is_signed)?),
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Some(DType::DateTime(TimeUnit::Day)),
        (Some(LogicalType::Timestamp(own)), _) => Some(DType::DateTime(unit(&own.unit)?)),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(DType::DateTime(TimeUnit::Milli)),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(DType::DateTime(TimeUnit::Micro)),
        (None, ConvertedType::INT_8) => Some(DType::I8),
        (None, ConvertedType::INT_16) => Some(DType::I16),
        (None, ConvertedType::INT_32) => Some(DType::I32),
        (None, ConvertedType::INT_64) => Some(DType::I64),
        (None, ConvertedType::UINT_8) => Some(DType::U8),
        (None, ConvertedType::UINT_16) => Some(DType::U16),
        (None, ConvertedType::UINT_32) => Some(DType::U32),
        (None, ConvertedType::UINT_64) => Some(DType::U64),
        _ => return None,
    };
    match (column.physical_type(), declared) {
        (Physical::BOOLEAN, None) => Some(DType::Bool),
        (Physical::FLOAT, None) => Some(DType::F32),
        (Physical::DOUBLE, None) => Some(DType::F64),
        (Physical::INT32, None) => Some(DType::I32),
        (Physical::INT64, None) => Some(DType::I64),
        (Physical::INT32, Some(dtype)) if dtype.storage().size() <= 4 || dtype == DType::DateTime(TimeUnit::Day) => {
            Some(dtype)
        }
        (Physical::INT64, Some(dtype)) if dtype.size() == 8 && dtype != DType::DateTime(TimeUnit::Day) => Some(dtype),
        _ => None,
    }
}

/// Where a column lies in a row group, if that is inside the file, and how it is compressed.
fn checked(chunk: &ColumnChunkMetaData, n_rows: u64, length: u64) -> Result<Chunk, String> {
    let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let bytes = u64::try_from(start)
        .ok()
        .zip(u64::try_from(chunk.compressed_size()).ok())
        .and_then(|(start, n)| Some(start..start.checked_add(n)?))
        .filter(|bytes| bytes.end <= length)
        .ok_or("it does not lie in the file")?;
    if u64::try_from(chunk.num_values()) != Ok(n_rows) {
        return Err(format!("{} values for {n_rows} rows", chunk.num_values()));
    }
    if chunk.file_path().is_some() {
        return Err("it lies in another file".into());
    }
    let codec = match chunk.compression() {
        Compression::UNCOMPRESSED => Ok(Codec::None),
        Compression::SNAPPY => Ok(Codec::Snappy),
        Compression::GZIP(_) => Ok(Codec::Gzip),
        Compression::ZSTD(_) => Ok(Codec::Zstd),
        Compression::LZ4_RAW => Ok(Codec::Lz4),
        // The other columns of the file can still be read.
        other => Err(other),
    };
    let unfolded = u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
    Ok(Chunk { bytes, column: chunk.column_descr_ptr(), codec, unfolded, largest: OnceLock::new() })
}
