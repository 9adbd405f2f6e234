//! Columns of numbers of Parquet files.
//!
//! A column is a tensor of rank one with the type that the file declares; a file as a whole is a table, a tensor of rank two. Blocks are made of whole row groups and are read by several
//! tasks at once. Columns of text, nested columns and decimals are left out.
//!
//! The crate `parquet` reads the footer and the rarer encodings. Headers of pages ([`header`]), plain values and dictionaries ([`values`]) are read here: values go straight into blocks. Its
//! decompressors are not used: they allocate what a header claims, and some unfold without a bound. Ours do neither ([`pages`]). A null is NaN in columns of floats, NaT in columns of times, and otherwise an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tw_block::{Sink, Source};
use tw_ir::{Axis, DType, Error, Grid, Result};

use crate::formats::{FileSummary, FileTarget, Format};
use crate::several;

mod decode;
mod encode;
mod file;
mod footer;
mod guarded;
mod header;
mod hybrid;
#[cfg(test)]
mod lies;
mod pages;
mod sink;
mod source;
mod thrift;
mod thrift_writer;
mod values;

use file::{ParquetFile, Wanted};
pub use sink::{TableColumn, create_columns};

/// The format, for the table of all.
pub(crate) struct Parquet;

/// How a file of this format begins, and how it ends.
const MAGIC: &[u8; 4] = b"PAR1";

/// Of more files only the first stay open while all of them are examined: a process may have only so many open at once.
const MOST_OPEN: usize = 256;

impl Format for Parquet {
    fn names(&self, path: &Path) -> bool {
        // A column of a file that is written has the name of the file in front of its own.
        let is_ours =
            |path: &Path| path.extension().is_some_and(|extension| extension == "parquet" || extension == "pq");
        is_ours(path) || path.parent().is_some_and(|parent| is_ours(parent) && !parent.is_dir())
    }

    fn begins(&self, path: &Path) -> bool {
        use std::io::Read;
        let mut start = [0; MAGIC.len()];
        let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == *MAGIC
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Source>> {
        let file = ParquetFile::open(path, true)?;
        let wanted = file.all_numbers();
        source::table(file, &wanted)
    }

    fn create(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>> {
        match target {
            FileTarget::New(options) => sink::whole(path, dtype, grid, options),
            _ => Err(Error::source(format!("{}: Parquet files are written as a whole", path.display()))
                .help("write a Zarr array, with a name that ends in .zarr")),
        }
    }

    fn blocks_for(&self, _: &Path, dtype: DType, shape: &[u64], _: &FileTarget) -> Result<Option<Grid>> {
        Ok(match *shape {
            [n] => Some(Grid::from_iter([sink::groups_of(n, dtype.size())])),
            [n, width] => {
                let rows = sink::groups_of(n, dtype.size().saturating_mul(width));
                Some(Grid::from_iter([rows, Axis::whole(width)]))
            }
            _ => None,
        })
    }

    fn scratch_of_store(&self, _: u64) -> u64 {
        sink::SCRATCH_BYTES
    }

    fn describe(&self, path: &Path) -> Result<FileSummary> {
        let file = ParquetFile::open(path, false)?;
        let columns: Vec<String> =
            file.columns.iter().map(|column| format!("{} {}", column.name, column.dtype)).collect();
        let mut format = format!("Parquet, {} row groups, columns {}", file.groups.len(), columns.join(", "));
        if !file.left_out.is_empty() {
            format += &format!("; no numbers: {}", file.left_out.join(", "));
        }
        Ok(FileSummary { format, lines: Vec::new(), bytes_on_disk: Some(file.length) })
    }
}

/// Opens columns of files that follow each other: all columns of numbers, or those of the given names. Each has its own type.
pub fn open_columns(paths: &[PathBuf], columns: Option<&[String]>) -> Result<Vec<(String, Arc<dyn Source>)>> {
    let files = open_files(paths)?;
    let column = |wanted: Wanted| {
        let name = wanted.name.clone();
        let whole = one_after_the_other(&files, move |file| source::column(file, &wanted))?;
        Ok((name, whole))
    };
    columns.map_or_else(|| files[0].all(), ParquetFile::named).into_iter().map(column).collect()
}

/// Opens files that follow each other as one tensor with a column for each of the given columns, or for all columns of numbers; and their names. Columns of several types become doubles.
pub fn open_column_table(paths: &[PathBuf], columns: Option<&[String]>) -> Result<(Arc<dyn Source>, Vec<String>)> {
    let files = open_files(paths)?;
    let wanted = columns.map_or_else(|| files[0].all_numbers(), ParquetFile::named);
    let names = wanted.iter().map(|each| each.name.clone()).collect();
    Ok((one_after_the_other(&files, move |file| source::table(file.clone(), &wanted))?, names))
}

/// Reads the metadata of at least one file.
fn open_files(paths: &[PathBuf]) -> Result<Vec<Arc<ParquetFile>>> {
    if paths.is_empty() {
        return Err(Error::source("no files to read columns of"));
    }
    paths.iter().enumerate().map(|(k, path)| ParquetFile::open(path, k < MOST_OPEN)).collect()
}

/// The same part of all files, as one tensor.
fn one_after_the_other(
    files: &[Arc<ParquetFile>],
    part: impl Fn(&Arc<ParquetFile>) -> Result<Arc<dyn Source>> + Send + Sync + 'static,
) -> Result<Arc<dyn Source>> {
    if let [file] = files {
        return part(file);
    }
    let parts: Vec<_> = files.iter().map(|file| Ok((file.path.clone(), part(file)?))).collect();
    let again = move |path: &Path| part(&ParquetFile::open(path, true)?);
    several::chain(parts.into_iter(), 0, several::Again(Arc::new(again)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn of_many_files_only_the_first_stay_open() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/plain.parquet");
        let paths = vec![path; MOST_OPEN + 2];
        let files = open_files(&paths).unwrap();
        assert_eq!(files.iter().filter(|file| file.bytes.open.is_some()).count(), MOST_OPEN);
        // A file that is closed is read as one that is open.
        let wanted = &ParquetFile::named(&["i".into()])[0];
        let last = source::column(&files[MOST_OPEN + 1], wanted).unwrap();
        let first = source::column(&files[0], wanted).unwrap();
        assert_eq!(last.to_array().unwrap(), first.to_array().unwrap());
        assert!(last.fingerprint().is_some() && last.fingerprint() == first.fingerprint());
        let all = open_columns(&paths, Some(&["i".into()])).unwrap().remove(0).1;
        assert_eq!(all.shape().unwrap(), [(MOST_OPEN as u64 + 2) * 1000]);
    }
}
