//! Files: opened as tensors, and written in one pass.

use std::path::PathBuf;

use pyo3::prelude::*;
use tilewright::files::TableOptions;
use tilewright::{FileOptions, FileTarget};

use crate::interrupt;
use crate::line::at_callers_line;
use crate::session::current;
use crate::tensor::{Tensor, takes_long};

/// A tensor over a file, of which only the header is read now. The name says the format.
#[pyfunction]
pub(crate) fn open_file(py: Python<'_>, path: PathBuf) -> PyResult<Tensor> {
    at_callers_line(py, || current().open(path)).map(Tensor)
}

/// Several files as one tensor along an axis: those that a pattern stands for, or else the given ones.
#[pyfunction]
pub(crate) fn open_files(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    pattern: Option<PathBuf>,
    axis: usize,
) -> PyResult<Tensor> {
    let open = || {
        let paths = pattern.map_or(Ok(paths), tilewright::files::expand)?;
        Ok(current().source(tilewright::files::open_all(&paths, axis)?))
    };
    at_callers_line(py, open).map(Tensor)
}

/// A table of numbers as text, and the names of its columns.
#[pyfunction]
pub(crate) fn open_table(
    py: Python<'_>,
    path: PathBuf,
    delimiter: Option<u8>,
    header: bool,
    columns: Option<Vec<String>>,
) -> PyResult<(Tensor, Vec<String>)> {
    let open = || {
        let delimiter = delimiter.unwrap_or(TableOptions::of(&path).delimiter);
        let (source, names) = tilewright::files::open_table(&path, &TableOptions { delimiter, header, columns })?;
        Ok((current().source(source), names))
    };
    at_callers_line(py, open).map(|(tensor, names)| (Tensor(tensor), names))
}

/// Columns of Parquet files that follow each other, with their names.
#[pyfunction]
pub(crate) fn open_columns(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    columns: Option<Vec<String>>,
) -> PyResult<Vec<(String, Tensor)>> {
    let open = || {
        let found = tilewright::files::open_columns(&paths, columns.as_deref())?;
        Ok(found.into_iter().map(|(name, source)| (name, Tensor(current().source(source)))).collect())
    };
    at_callers_line(py, open)
}

/// A Parquet file as one tensor with a column for each of its columns, and their names.
#[pyfunction]
pub(crate) fn open_column_table(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    columns: Option<Vec<String>>,
) -> PyResult<(Tensor, Vec<String>)> {
    let open = || {
        let (source, names) = tilewright::files::open_column_table(&paths, columns.as_deref())?;
        Ok((Tensor(current().source(source)), names))
    };
    at_callers_line(py, open)
}

/// Where a tensor is written to: the whole file, a region from the given element on, or more of it along an axis.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Target {
    path: String,
    region: Option<Vec<u64>>,
    append: Option<usize>,
    version: Option<u8>,
    codec: Option<(String, i64)>,
    inner_chunks: Option<Vec<u64>>,
    dimensions: Option<Vec<String>>,
    attributes: Option<String>,
}

/// Writes tensors to a Parquet file in one pass, each as a column with a name.
#[pyfunction]
pub(crate) fn store_columns(
    py: Python<'_>,
    columns: Vec<(String, Bound<'_, Tensor>)>,
    path: String,
    codec: Option<(String, i64)>,
) -> PyResult<()> {
    let Some((_, first)) = columns.first() else { return Ok(()) };
    let session = first.get().0.session().clone();
    let columns: Vec<(String, tilewright::Tensor)> =
        columns.into_iter().map(|(name, tensor)| (name, tensor.get().0.clone())).collect();
    let long = takes_long(&columns.iter().map(|(_, tensor)| tensor).collect::<Vec<_>>());
    interrupt::run(py, &session, long, None, move || {
        let columns: Vec<_> = columns.iter().map(|(name, tensor)| (name.clone(), tensor)).collect();
        tilewright::store_columns(&columns, &path, codec)
    })
}

/// Writes tensors to files in one pass; all of them get their names at its end.
#[pyfunction]
pub(crate) fn store_files(py: Python<'_>, stored: Vec<(Bound<'_, Tensor>, Target)>) -> PyResult<()> {
    let Some((first, _)) = stored.first() else { return Ok(()) };
    let session = first.get().0.session().clone();
    let stored: Vec<(tilewright::Tensor, String, FileTarget)> = stored
        .into_iter()
        .map(|(tensor, target)| {
            let Target { path, region, append, version, codec, inner_chunks, dimensions, attributes } = target;
            let target = match (region, append) {
                (Some(lo), _) => FileTarget::Region(lo),
                (None, Some(axis)) => FileTarget::Append(axis),
                _ => FileTarget::New(FileOptions { version, codec, inner_chunks, dimensions, attributes }),
            };
            (tensor.get().0.clone(), path, target)
        })
        .collect();
    let long = takes_long(&stored.iter().map(|(tensor, ..)| tensor).collect::<Vec<_>>());
    interrupt::run(py, &session, long, None, move || {
        let stored: Vec<_> =
            stored.iter().map(|(tensor, path, target)| (tensor, path.as_str(), target.clone())).collect();
        tilewright::store_all(&stored)
    })
}
