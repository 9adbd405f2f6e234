//! Writing arrays of a store.
//!
//! | target | chunks | after a crash |
//! |---|---|---|
//! | a new array, or one that replaces another | the blocks | the old array or nothing; perhaps groups around it, and a hidden directory that may be deleted |
//! | a region of an array | as they are | each chunk is old or new as a whole; which ones are new is not known. The metadata is that of before |
//! | an append along an axis | as they are | the old array: its metadata, with the new shape, is written last. Chunks beyond the end are seen by nobody and are overwritten by the next append |
//!
//! Every file of an existing array is replaced in one step, after it was made durable beside its place. A chunk that a block covers is written without being read. One
//! that is covered in part is read, changed and written under a lock, so that several blocks may share it; other processes do not know that lock and must not write
//! to the same chunks at the same time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tw_block::{Block, Points, Sink, write_elements};
use tw_ir::{Axis, BoxRegion, DType, Error, Grid, Result, shape};

use super::array::ZarrArray;
use super::metadata::{self, Declared, Kind, describes};
use super::{bytes, root_of, store, whole_chunks};
use crate::descr;
use crate::formats::{FileOptions, FileTarget, KeptSink};

/// Chunks whose numbers differ seldom have the same lock.
const N_LOCKS: usize = 64;

/// Uneven blocks have chunks of their greatest common length, unless that makes more than this many of the longest block.
const MOST_PIECES: u64 = 8;

/// Zstandard at its fastest level: files of numbers hardly get smaller with more.
const USUAL_CODEC: (&str, i64) = ("zstd", 1);

/// Begins to write a new array that a later process can go on with. Whatever is written into an array that exists is written again.
pub(super) fn create_kept(path: &Path, dtype: DType, grid: &Grid, target: &FileTarget, name: &str) -> Result<KeptSink> {
    let FileTarget::New(options) = target else {
        return Ok(KeptSink { sink: create(path, dtype, grid, target)?, keeps: false, found: false });
    };
    let (sink, found) = ZarrSink::new_array(path, dtype, grid, options, Some(name))?;
    Ok(KeptSink { sink: Arc::new(sink), keeps: true, found })
}

/// Begins to write.
pub(super) fn create(path: &Path, dtype: DType, grid: &Grid, target: &FileTarget) -> Result<Arc<dyn Sink>> {
    let sink = match target {
        FileTarget::New(options) => ZarrSink::new_array(path, dtype, grid, options, None)?.0,
        FileTarget::Region(lo) => ZarrSink::region(path, dtype, &grid.shape(), lo)?,
        FileTarget::Append(axis) => ZarrSink::append(path, dtype, &grid.shape(), *axis)?,
        #[cfg(feature = "parquet")]
        FileTarget::Column(_) => return Err(Error::internal("a column of a table in a Zarr store")),
    };
    Ok(Arc::new(sink))
}

/// Joins an array that another process has begun to write.
pub(super) fn join(path: &Path, dtype: DType, grid: &Grid, target: &FileTarget, joint: &str) -> Result<Arc<dyn Sink>> {
    let shape = grid.shape();
    let mut sink = match target {
        FileTarget::New(_) => {
            let array = ZarrArray::open(Path::new(joint)).map_err(|error| {
                error.help("ranks write to one file system: choose a directory that all of them share")
            })?;
            ZarrSink::into_existing(array, dtype, &shape, vec![0; shape.len()], Finish::Joined)
        }
        FileTarget::Region(lo) => ZarrSink::region(path, dtype, &shape, lo)?,
        FileTarget::Append(axis) => ZarrSink::append(path, dtype, &shape, *axis)?,
        #[cfg(feature = "parquet")]
        FileTarget::Column(_) => return Err(Error::internal("a column of a table in a Zarr store")),
    };
    // The metadata is written by the process that has begun.
    if matches!(sink.finish, Finish::Metadata { .. }) {
        sink.finish = Finish::Nothing;
    }
    Ok(Arc::new(sink))
}

/// The blocks in which a tensor is to be stored: those of an array that is there are made of its chunks. A new array takes its chunks from the blocks.
pub(super) fn blocks_for(path: &Path, dtype: DType, shape: &[u64], target: &FileTarget) -> Result<Option<Grid>> {
    let sink = match target {
        FileTarget::New(_) => return Ok(None),
        FileTarget::Region(lo) => ZarrSink::region(path, dtype, shape, lo)?,
        FileTarget::Append(axis) => ZarrSink::append(path, dtype, shape, *axis)?,
        #[cfg(feature = "parquet")]
        FileTarget::Column(_) => return Ok(None),
    };
    Ok(Some(whole_chunks(shape, &sink.lo, &sink.array.declared().chunk, dtype.size())))
}

/// An array being written. Blocks may be written by several threads at once.
#[derive(Debug)]
struct ZarrSink {
    array: ZarrArray,
    /// Type and shape of what is stored, and where its first element goes.
    dtype: DType,
    stored: Vec<u64>,
    lo: Vec<u64>,
    finish: Finish,
    locks: Vec<Mutex<()>>,
    committed: AtomicBool,
    /// True if what was written stays when the sink is dropped before it commits.
    is_kept: bool,
    /// True if no two blocks share a chunk.
    has_own_chunks: bool,
}

/// What is left to do when all blocks are written.
#[derive(Debug)]
enum Finish {
    /// The directory, which nobody sees, gets this name.
    Rename {
        root: PathBuf,
        path: PathBuf,
    },
    /// The metadata is written.
    Metadata {
        root: PathBuf,
    },
    Nothing,
    /// Another process, which has begun the directory, gives it its name.
    Joined,
}

impl ZarrSink {
    /// Begins a new array. With a name, goes on with what an earlier process has begun under it, and tells whether there was anything.
    fn new_array(
        path: &Path,
        dtype: DType,
        grid: &Grid,
        options: &FileOptions,
        name: Option<&str>,
    ) -> Result<(ZarrSink, bool)> {
        let root = root_of(path).unwrap_or_else(|| path.to_path_buf());
        match describes(path) {
            Some((_, Kind::Group)) => {
                return Err(Error::io(format!("{} is a group, which is not replaced by an array", path.display()))
                    .help("name an array in it, as in \"store.zarr/name\", or delete it first"));
            }
            None if path.exists() => {
                return Err(Error::io(format!(
                    "{} exists and is not a Zarr array, so it is not replaced",
                    path.display()
                ))
                .help("choose another name, or delete it first"));
            }
            _ => {}
        }
        let around = path.ancestors().skip(1).take_while(|group| group.starts_with(&root)).find_map(describes);
        let version = options.version.or(around.map(|(version, _)| version)).unwrap_or(3);
        let declared = declare(dtype, grid, version, options)?;
        let is_cut_at_chunks = |(axis, chunk): (&Axis, &u64)| {
            axis.boundaries().iter().all(|cut| *cut == axis.extent() || (*chunk > 0 && cut.is_multiple_of(*chunk)))
        };
        let has_own_chunks = grid.iter().zip(&declared.chunk).all(is_cut_at_chunks);
        // Beside the store, so that nobody who lists the store sees it.
        let directory = match name {
            Some(name) => crate::spool::hidden(&root, name)?,
            None => store::temporary(&root)?,
        };
        let text = store::text_of(&declared.json)?;
        let array = ZarrArray::new(directory, declared)?;
        let metadata = array.directory().join(metadata_file(array.declared()));
        let found = name.is_some() && std::fs::read(&metadata).is_ok_and(|before| before == text.as_bytes());
        if !found {
            if name.is_some() && array.directory().exists() {
                store::remove(array.directory());
            }
            let made = std::fs::create_dir(array.directory());
            made.map_err(|error| super::failed(path, "cannot be created", &error))?;
        }
        let sink = ZarrSink {
            array,
            dtype,
            stored: grid.shape(),
            lo: vec![0; grid.len()],
            finish: Finish::Rename { root, path: path.to_path_buf() },
            locks: (0..N_LOCKS).map(|_| Mutex::new(())).collect(),
            committed: AtomicBool::new(false),
            is_kept: name.is_some(),
            has_own_chunks,
        };
        if !found {
            store::write_new(&metadata, text.as_bytes())?;
        }
        Ok((sink, found))
    }

    fn region(path: &Path, dtype: DType, stored: &[u64], lo: &[u64]) -> Result<ZarrSink> {
        let array = ZarrArray::open(path)?;
        check_dtype(&array, dtype)?;
        let inside = lo.len() == array.shape().len()
            && stored.len() == lo.len()
            && lo
                .iter()
                .zip(stored)
                .zip(array.shape())
                .all(|((lo, n), whole)| lo.checked_add(*n).is_some_and(|hi| hi <= *whole));
        if !inside {
            return Err(Error::source(format!(
                "a region of shape {} at {lo:?} is not inside {}, which has shape {}",
                shape::display(stored),
                path.display(),
                shape::display(array.shape())
            )));
        }
        Ok(ZarrSink::into_existing(array, dtype, stored, lo.to_vec(), Finish::Nothing))
    }

    fn append(path: &Path, dtype: DType, stored: &[u64], axis: usize) -> Result<ZarrSink> {
        let array = ZarrArray::open(path)?;
        check_dtype(&array, dtype)?;
        let before = array.shape().to_vec();
        let fits = stored.len() == before.len()
            && axis < before.len()
            && stored.iter().zip(&before).enumerate().all(|(k, (n, whole))| k == axis || n == whole);
        if !fits {
            return Err(Error::source(format!(
                "an array of shape {} cannot be appended along axis {axis} to {}, which has shape {}",
                shape::display(stored),
                path.display(),
                shape::display(&before)
            )));
        }
        let mut after = before.clone();
        after[axis] = before[axis]
            .checked_add(stored[axis])
            .ok_or_else(|| Error::source("an axis longer than can be counted"))?;
        let mut lo = vec![0; before.len()];
        lo[axis] = before[axis];
        let root = root_of(path).unwrap_or_else(|| path.to_path_buf());
        Ok(ZarrSink::into_existing(array.with_shape(&after)?, dtype, stored, lo, Finish::Metadata { root }))
    }

    fn into_existing(array: ZarrArray, dtype: DType, stored: &[u64], lo: Vec<u64>, finish: Finish) -> ZarrSink {
        let locks = (0..N_LOCKS).map(|_| Mutex::new(())).collect();
        ZarrSink {
            array,
            dtype,
            stored: stored.to_vec(),
            lo,
            finish,
            locks,
            committed: AtomicBool::new(false),
            is_kept: false,
            has_own_chunks: false,
        }
    }

    /// Writes what a block has of a chunk.
    fn write_chunk(&self, at: &[u64], block: &Block, place: &BoxRegion) -> Result<()> {
        let array = &self.array;
        let whole = array.chunk_box(at);
        let inside = whole.intersect(&BoxRegion::whole(array.shape()));
        let is_covered = place.contains(&inside);
        let file = array.chunk_file(at);
        // Elements that are neighbours in the block, too, are encoded where they are.
        let is_run = place.contains(&whole) && (1..whole.rank()).all(|axis| whole.range(axis) == place.range(axis));
        let n_rows = place.shape().first().copied().unwrap_or(0);
        if let (true, Some(row)) = (is_run && array.is_plain(), place.n_elements().checked_div(n_rows)) {
            let first = ((whole.lo[0] - place.lo[0]) * row) as usize;
            let run = first..first + whole.n_elements() as usize;
            return write_elements(block.data(), run, |elements| {
                self.put(&file, array.encode_plain(at, elements)?.as_deref(), is_covered)
            });
        }
        let n = usize::try_from(array.chunk_bytes()).map_err(|_| Error::resource("a chunk larger than memory"))?;
        let position = shape::ravel(at, &array.chunks_meeting(&BoxRegion::whole(array.shape())).hi);
        let _alone = (!is_covered)
            .then(|| self.locks[position as usize % N_LOCKS].lock().unwrap_or_else(PoisonError::into_inner));
        let before = if is_covered { None } else { array.decode(at, &inside)? };
        let mut elements = match before {
            Some((bbox, decoded)) if bbox == whole => decoded,
            before => {
                let mut elements = crate::bounded::zeros(n).map_err(Error::resource)?;
                if array.fill().iter().any(|&byte| byte != 0) {
                    elements.chunks_exact_mut(array.fill().len()).for_each(|each| each.copy_from_slice(array.fill()));
                }
                if let Some((bbox, decoded)) = before {
                    bytes::between(&decoded, &bbox, &mut elements, &whole, self.dtype.size() as usize)?;
                }
                elements
            }
        };
        bytes::from_block(block, place, &mut elements, &whole)?;
        self.put(&file, array.encode(at, elements)?.as_deref(), is_covered)
    }

    /// Writes the file of a chunk, or removes it.
    fn put(&self, file: &Path, encoded: Option<&[u8]>, is_covered: bool) -> Result<()> {
        match (encoded, &self.finish) {
            // A chunk that several blocks share has to be whole when a later process goes on with it.
            (Some(encoded), Finish::Rename { .. } | Finish::Joined) if is_covered || !self.is_kept => {
                store::write_new(file, encoded)
            }
            (Some(encoded), _) => store::replace(file, encoded),
            (None, _) => match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(super::failed(file, "cannot be removed", &error))
                }
                _ => Ok(()),
            },
        }
    }
}

impl Sink for ZarrSink {
    fn write(&self, block: &Block) -> Result<()> {
        let region = block.bbox();
        let outside = region.rank() != self.stored.len() || region.hi.iter().zip(&self.stored).any(|(hi, n)| hi > n);
        if outside || block.dtype() != self.dtype.storage() {
            return Err(Error::internal(format!(
                "a {} block at {region} for {} {} of {}",
                block.dtype(),
                self.dtype,
                shape::display(&self.stored),
                self.array.directory().display()
            )));
        }
        if region.is_empty() {
            return Ok(());
        }
        let moved = |coords: &[u64]| coords.iter().zip(&self.lo).map(|(c, lo)| c + lo).collect::<Vec<u64>>();
        let place = BoxRegion { lo: moved(&region.lo), hi: moved(&region.hi) };
        // Elements of a view lie apart.
        let dense = match block.lend() {
            Some(_) if block.offset() == 0 => None,
            _ => Some(Block::from_array(&region.lo, block.to_array()?, None)?),
        };
        let block = dense.as_ref().unwrap_or(block);
        let mut points = Points::new(&self.array.chunks_meeting(&place));
        while let Some(at) = points.next() {
            self.write_chunk(at, block, &place)?;
        }
        Ok(())
    }

    fn scratch(&self, block_bytes: u64) -> u64 {
        super::scratch_of_store(block_bytes)
    }

    fn joint(&self) -> Option<String> {
        // A chunk that blocks share is read, changed and written under a lock of this process.
        if !self.has_own_chunks {
            return None;
        }
        let absolute = std::path::absolute(self.array.directory()).ok()?;
        absolute.to_str().map(str::to_string)
    }

    fn make_durable(&self) -> Result<()> {
        match &self.finish {
            Finish::Rename { .. } | Finish::Joined => store::sync_all_below(self.array.directory()),
            // Chunks of an array that exists were made durable one by one.
            Finish::Metadata { .. } | Finish::Nothing => Ok(()),
        }
    }

    fn commit(&self) -> Result<()> {
        let declared = self.array.declared();
        match &self.finish {
            Finish::Rename { root, path } => {
                store::make_groups(root, path, declared.version)?;
                store::put_in_place(self.array.directory(), path)?;
                self.committed.store(true, Ordering::Relaxed);
                store::refresh_consolidated(root, path, &declared.json)?;
            }
            Finish::Metadata { root } => {
                let file = self.array.directory().join(metadata_file(declared));
                store::replace(&file, store::text_of(&declared.json)?.as_bytes())?;
                self.committed.store(true, Ordering::Relaxed);
                store::refresh_consolidated(root, self.array.directory(), &declared.json)?;
            }
            // Whoever gives the directory its name makes all of it durable.
            Finish::Nothing | Finish::Joined => self.committed.store(true, Ordering::Relaxed),
        }
        Ok(())
    }
}

impl Drop for ZarrSink {
    fn drop(&mut self) {
        if !*self.committed.get_mut() && !self.is_kept && matches!(self.finish, Finish::Rename { .. }) {
            store::remove(self.array.directory());
        }
    }
}

fn metadata_file(declared: &Declared) -> &'static str {
    if declared.version == 2 { ".zarray" } else { "zarr.json" }
}

fn check_dtype(array: &ZarrArray, dtype: DType) -> Result<()> {
    if array.dtype() == dtype {
        return Ok(());
    }
    let message =
        format!("{dtype} cannot be written to {}, which holds {}", array.directory().display(), array.dtype());
    Err(Error::source(message).help(format!("convert it to {} first", array.dtype())))
}

/// The length of chunks along an axis that is cut into blocks.
fn chunk_length(axis: &Axis) -> u64 {
    let longest = axis.longest().max(1);
    match axis {
        Axis::Uniform { .. } => longest,
        Axis::Ragged(boundaries) => {
            // The last block may be as short as it likes.
            let inner = &boundaries[..boundaries.len().saturating_sub(1)];
            let common = inner.iter().fold(0, |a, &b| gcd(a, b));
            if common * MOST_PIECES >= longest { common } else { longest }
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The metadata of a new array.
fn declare(dtype: DType, grid: &Grid, version: u8, options: &FileOptions) -> Result<Declared> {
    let shape = grid.shape();
    let chunk: Vec<u64> = grid.iter().map(chunk_length).collect();
    if let Some(inner) = &options.inner_chunks
        && (inner.len() != chunk.len() || inner.iter().zip(&chunk).any(|(n, whole)| *n == 0 || whole % n != 0))
    {
        return Err(Error::source(format!(
            "chunks of shape {} do not fill shards of shape {}",
            shape::display(inner),
            shape::display(&chunk)
        )));
    }
    let (name, level) = options.codec.as_ref().map_or(USUAL_CODEC, |(name, level)| (name.as_str(), *level));
    let attributes = match &options.attributes {
        Some(text) => serde_json::from_str::<Map<String, Value>>(text)
            .map_err(|error| Error::source(format!("the attributes are no JSON object: {error}")))?,
        None => Map::new(),
    };
    let json = match version {
        2 => {
            if options.inner_chunks.is_some() {
                return Err(Error::source("Zarr 2 has no shards").help("write version 3"));
            }
            let descr = descr::of(dtype).ok_or_else(|| {
                Error::source(format!("Zarr 2 cannot hold {dtype}")).help("write version 3, or convert to f32")
            })?;
            let compressor = match name {
                "none" => Value::Null,
                "blosc" => json!({"id": "blosc", "cname": "lz4", "clevel": level, "shuffle": 1, "blocksize": 0}),
                "zstd" | "gzip" | "zlib" => json!({"id": name, "level": level}),
                "lz4" => json!({"id": "lz4", "acceleration": 1}),
                other => return Err(unknown_codec(other)),
            };
            json!({
                "zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": descr, "compressor": compressor, "fill_value": fill_of(dtype),
                "order": "C", "filters": null, "dimension_separator": ".",
            })
        }
        3 => {
            let mut codecs = vec![match dtype.size() {
                1 => json!({"name": "bytes"}),
                _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
            }];
            let size = dtype.size();
            match name {
                "none" => {}
                "zstd" => codecs.push(json!({"name": "zstd", "configuration": {"level": level, "checksum": false}})),
                "gzip" => codecs.push(json!({"name": "gzip", "configuration": {"level": level}})),
                "blosc" => codecs.push(json!({"name": "blosc", "configuration": {
                    "cname": "lz4", "clevel": level, "shuffle": if size > 1 { "shuffle" } else { "noshuffle" }, "typesize": size, "blocksize": 0,
                }})),
                "lz4" => return Err(Error::source("Zarr 3 has no plain lz4").help("blosc compresses by lz4, too")),
                other => return Err(unknown_codec(other)),
            }
            if let Some(inner) = &options.inner_chunks {
                codecs = vec![json!({"name": "sharding_indexed", "configuration": {
                    "chunk_shape": inner, "codecs": codecs, "index_location": "end",
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                }})];
            }
            let mut json = json!({
                "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": metadata::data_type(dtype),
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": fill_of(dtype), "codecs": codecs, "attributes": attributes,
            });
            if let (Some(names), Some(map)) = (&options.dimensions, json.as_object_mut()) {
                map.insert("dimension_names".into(), json!(names));
            }
            json
        }
        other => return Err(Error::source(format!("version {other} of Zarr is not known")).help("write 2 or 3")),
    };
    match json {
        Value::Object(json) => metadata::check(json).map_err(|wrong| Error::source(wrong.to_string())),
        _ => Err(Error::internal("metadata that is not an object")),
    }
}

fn unknown_codec(name: &str) -> Error {
    Error::source(format!("the compressor `{}` is not known", name.escape_debug()))
        .help("there are zstd, gzip, blosc and none")
}

/// Zero, as metadata says it.
fn fill_of(dtype: DType) -> Value {
    match dtype {
        DType::Bool => json!(false),
        _ if dtype.is_complex() => json!([0.0, 0.0]),
        _ if dtype.is_float() => json!(0.0),
        _ => json!(0),
    }
}
