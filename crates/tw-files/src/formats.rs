//! The table of formats. A path alone decides which one is used.

use std::path::Path;
use std::sync::Arc;

use tw_block::{Block, Sink, Source, commit_all};
use tw_ir::{Array, BoxRegion, DType, Error, Grid, Result};

#[cfg(feature = "parquet")]
use crate::parquet;
#[cfg(feature = "zarr")]
use crate::zarr;
use crate::{coordinates, csv, npy, several};

/// What is to be known about a format.
pub(crate) trait Format: Sync {
    /// True if a path is of this format by its name, or is a directory of it.
    fn names(&self, path: &Path) -> bool;
    /// True if what is there begins as this format does.
    fn begins(&self, path: &Path) -> bool;
    fn open(&self, path: &Path) -> Result<Arc<dyn Source>>;
    /// Begins a file for a tensor that is stored in the blocks of a grid.
    fn create(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>>;
    /// Joins a file that another process has begun, to write other blocks of it: `joint` is what [`Sink::joint`] says there. Committing makes durable what was written here;
    /// the process that began the file then gives it its name.
    fn join(&self, path: &Path, dtype: DType, grid: &Grid, target: &FileTarget, joint: &str) -> Result<Arc<dyn Sink>> {
        let _ = (dtype, grid, target, joint);
        Err(one_writer(path))
    }
    /// The same, of which a later process finds what this one has written. Formats without that begin anew.
    fn create_kept(
        &self,
        path: &Path,
        (dtype, grid): (DType, &Grid),
        target: &FileTarget,
        name: &str,
    ) -> Result<KeptSink> {
        let _ = name;
        Ok(KeptSink { sink: self.create(path, dtype, grid, target)?, keeps: false, found: false })
    }
    /// The blocks in which a tensor of this type and shape is to be stored, so that no two of them share what is written at once. `None` if any will do.
    fn blocks_for(&self, path: &Path, dtype: DType, shape: &[u64], target: &FileTarget) -> Result<Option<Grid>>;
    /// Bytes that storing a block of so many bytes takes for a moment besides the block: what [`Sink::scratch`] says of its sinks.
    fn scratch_of_store(&self, block_bytes: u64) -> u64 {
        let _ = block_bytes;
        0
    }
    /// A summary of a file for people: format, layout, codecs.
    fn describe(&self, path: &Path) -> Result<FileSummary>;
}

/// Which part of a file is written, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileTarget {
    /// All of it, in place of what is there.
    New(FileOptions),
    /// A part of the array that is there: the box with this first element and the shape of what is stored.
    Region(Vec<u64>),
    /// More of the array that is there, after its last element along an axis.
    Append(usize),
    /// A column of a file that several tensors are written to.
    #[cfg(feature = "parquet")]
    Column(parquet::TableColumn),
}

impl Default for FileTarget {
    fn default() -> FileTarget {
        FileTarget::New(FileOptions::default())
    }
}

/// A sink that may outlive its process.
#[derive(Clone, Debug)]
pub struct KeptSink {
    /// The sink.
    pub sink: Arc<dyn Sink>,
    /// True if it stays where it is when it is dropped before it is committed, so that a later process can go on with it.
    pub keeps: bool,
    /// True if an earlier process has begun it: blocks that were written to it are there.
    pub found: bool,
}

/// How a new file is written, where the format leaves a choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// The version of the format.
    pub version: Option<u8>,
    /// A compressor with its level.
    pub codec: Option<(String, i64)>,
    /// Extents of chunks inside shards, which are then the blocks. They must divide the extents of blocks.
    pub inner_chunks: Option<Vec<u64>>,
    /// Names of the axes, or of the columns of a table.
    pub dimensions: Option<Vec<String>>,
    /// Further attributes, as the text of a JSON object.
    pub attributes: Option<String>,
}

/// What is to be said about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The name of the format.
    pub format: String,
    /// For a group its arrays.
    pub lines: Vec<String>,
    /// Bytes that it takes on disk, if they can be counted; those of a group are not.
    pub bytes_on_disk: Option<u64>,
}

const FORMATS: &[&dyn Format] = &[
    &npy::Npy,
    &csv::Csv,
    &coordinates::CoordinateText,
    #[cfg(feature = "parquet")]
    &parquet::Parquet,
    #[cfg(feature = "zarr")]
    &zarr::Zarr,
];

fn named_by(path: &Path) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.names(path))
}

/// The format of a file. Those with other names have always been `.npy` files.
fn format_of(path: &Path) -> &'static dyn Format {
    named_by(path).unwrap_or(&npy::Npy)
}

/// Opens a file, in the format that its name says; a name with `*` or `?` opens all files that fit it, one after the other along the first axis. Elements are read when
/// they are needed.
pub fn open(path: impl AsRef<Path>) -> Result<Arc<dyn Source>> {
    let path = path.as_ref();
    if several::is_pattern(path) { several::open_all(&several::expand(path)?, 0) } else { format_of(path).open(path) }
}

/// Begins to write a tensor that is stored in the blocks of a grid, in the format that the name says.
pub fn create(path: impl AsRef<Path>, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>> {
    match target {
        #[cfg(feature = "parquet")]
        FileTarget::Column(column) => column.sink(dtype, grid),
        _ => format_of(path.as_ref()).create(path.as_ref(), dtype, grid, target),
    }
}

/// Joins a file that another process has begun to write.
pub fn join(
    path: impl AsRef<Path>,
    dtype: DType,
    grid: &Grid,
    target: &FileTarget,
    joint: &str,
) -> Result<Arc<dyn Sink>> {
    format_of(path.as_ref()).join(path.as_ref(), dtype, grid, target, joint)
}

/// The error for a file that several processes cannot write.
pub fn one_writer(path: &Path) -> Error {
    Error::plan(format!("{} cannot be written by several ranks", path.display()))
        .help("write an .npy file or a Zarr array, whose blocks all ranks write at once")
}

/// Begins to write a tensor as [`create`] does, or goes on where an earlier process has begun that used the same name. The name is part of a hidden file beside the path,
/// which stays until the sink is committed.
pub fn create_kept(
    path: impl AsRef<Path>,
    tensor: (DType, &Grid),
    target: &FileTarget,
    name: &str,
) -> Result<KeptSink> {
    format_of(path.as_ref()).create_kept(path.as_ref(), tensor, target, name)
}

/// The blocks in which a tensor is to be stored, so that no two tasks write what can only be written at once. `None` if any will do.
pub fn blocks_for(path: impl AsRef<Path>, dtype: DType, shape: &[u64], target: &FileTarget) -> Result<Option<Grid>> {
    match target {
        #[cfg(feature = "parquet")]
        FileTarget::Column(column) => Ok(Some(column.blocks())),
        _ => format_of(path.as_ref()).blocks_for(path.as_ref(), dtype, shape, target),
    }
}

/// Bytes that storing a block of so many bytes takes for a moment besides the block.
pub fn scratch_of_store(path: impl AsRef<Path>, block_bytes: u64) -> u64 {
    format_of(path.as_ref()).scratch_of_store(block_bytes)
}

/// True if a file looks like one of the formats, by its name or by how it begins.
pub fn is_known(path: impl AsRef<Path>) -> Result<bool> {
    let path = path.as_ref();
    if let Err(error) = std::fs::metadata(path) {
        return Err(Error::io(format!("{} cannot be read: {error}", path.display())));
    }
    Ok(named_by(path).is_some() || FORMATS.iter().any(|format| format.begins(path)))
}

/// What is to be said about a file.
pub fn describe(path: impl AsRef<Path>) -> Result<FileSummary> {
    format_of(path.as_ref()).describe(path.as_ref())
}

/// Reads a whole file.
pub fn read_array(path: impl AsRef<Path>) -> Result<Array> {
    open(path)?.to_array()
}

/// Writes a whole array, replacing the file only when all of it is written.
pub fn write_array(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let sink = create(path, array.dtype(), &Grid::whole(array.shape()), &FileTarget::default())?;
    sink.write(&Block::view_of(&Arc::new(array.clone()), &BoxRegion::whole(array.shape()))?)?;
    commit_all(vec![sink])
}
