//! One array of a store: where its chunks are, and what is in them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tw_ir::{BoxRegion, DType, Error, Result, shape};
use zarrs::array::{
    Array, ArrayBytes, ArrayMetadata, ArraySubset, ArrayToBytesCodecTraits, BytesPartialDecoderTraits, CodecError,
    CodecOptions,
};
use zarrs::storage::StorageError;
use zarrs::storage::byte_range::ByteRangeIterator;

use super::compress::Method;
use super::metadata::{self, Declared};
use super::{codecs, failed};

/// An array whose metadata has been read and checked.
#[derive(Debug)]
pub(super) struct ZarrArray {
    directory: PathBuf,
    declared: Declared,
    /// What `zarrs` made of the metadata. It never touches files: chunks are read and written here.
    array: Array<()>,
    options: CodecOptions,
    /// Most bytes of the file of a chunk that is decoded as a whole.
    most_encoded: u64,
    /// What compresses chunks whose elements otherwise lie as they do in memory, if anything. `None` if other codecs take part.
    plain: Option<Option<Method>>,
}

impl ZarrArray {
    /// Reads the metadata of an array.
    pub(super) fn open(directory: &Path) -> Result<ZarrArray> {
        ZarrArray::new(directory.to_path_buf(), metadata::read(directory)?)
    }

    /// An array in a directory, as its metadata says.
    pub(super) fn new(directory: PathBuf, declared: Declared) -> Result<ZarrArray> {
        codecs::register();
        let wrong = |what: &dyn std::fmt::Display| Error::io(format!("{}: {what}", directory.display()));
        let json = for_zarrs(&declared);
        let parsed = match declared.version {
            2 => serde_json::from_value(json).map(ArrayMetadata::V2),
            _ => serde_json::from_value(json).map(ArrayMetadata::V3),
        };
        let parsed = parsed.map_err(|error| wrong(&error))?;
        let array = guarded(|| Array::new_with_metadata(Arc::new(()), "/", parsed))
            .map_err(|panic| wrong(&panic))?
            .map_err(|error| wrong(&error))?;
        // Tasks are our threads; a codec has one.
        let options = CodecOptions::default().with_concurrent_target(1).with_store_empty_chunks(true);
        let whole = metadata::non_zero(&declared.chunk);
        let encoded = array.codecs().encoded_representation(&whole, array.data_type(), array.fill_value());
        let most_encoded = encoded.map_err(|error| wrong(&error))?.size().unwrap_or(u64::MAX);
        if array.data_type().fixed_size() != Some(declared.dtype.size() as usize) {
            return Err(wrong(&format!("elements of {} have another size", declared.dtype)));
        }
        let is_plain = !declared.sharded && declared.dtype != DType::Bool;
        let plain = is_plain
            .then(|| codecs::only_compressed(declared.version, &declared.json, declared.dtype.size()))
            .flatten();
        Ok(ZarrArray { directory, declared, array, options, most_encoded, plain })
    }

    /// The same metadata for another place, shape and so on.
    pub(super) fn with_shape(&self, shape: &[u64]) -> Result<ZarrArray> {
        let mut declared = self.declared.clone();
        declared.shape = shape.to_vec();
        declared.json.insert("shape".into(), shape.iter().copied().map(Value::from).collect());
        ZarrArray::new(self.directory.clone(), declared)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn declared(&self) -> &Declared {
        &self.declared
    }

    pub(super) fn dtype(&self) -> DType {
        self.declared.dtype
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.declared.shape
    }

    /// Extents of what is decoded at once: a chunk, also inside a shard.
    pub(super) fn unit(&self) -> &[u64] {
        self.declared.inner.as_ref().unwrap_or(&self.declared.chunk)
    }

    /// Bytes of a chunk or shard.
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.declared.chunk.iter().fold(self.dtype().size(), |bytes, &n| bytes.saturating_mul(n))
    }

    /// The bytes of one missing element.
    pub(super) fn fill(&self) -> &[u8] {
        self.array.fill_value().as_ne_bytes()
    }

    /// The numbers of the chunks that have elements of a region, a box of them.
    pub(super) fn chunks_meeting(&self, region: &BoxRegion) -> BoxRegion {
        let chunk = &self.declared.chunk;
        let lo = region.lo.iter().zip(chunk).map(|(lo, n)| lo / n).collect();
        let hi = region.hi.iter().zip(chunk).map(|(hi, n)| hi.div_ceil(*n)).collect();
        BoxRegion { lo, hi }
    }

    /// The box of a chunk, which may reach beyond the array.
    pub(super) fn chunk_box(&self, at: &[u64]) -> BoxRegion {
        let chunk = &self.declared.chunk;
        let lo: Vec<u64> = at.iter().zip(chunk).map(|(k, n)| k * n).collect();
        let hi = lo.iter().zip(chunk).map(|(lo, n)| lo.saturating_add(*n)).collect();
        BoxRegion { lo, hi }
    }

    /// The file of a chunk. Its name is made of numbers and separators alone.
    pub(super) fn chunk_file(&self, at: &[u64]) -> PathBuf {
        self.directory.join(self.array.chunk_key(at).as_str())
    }

    /// True if chunks can be decoded into memory where their elements belong.
    pub(super) fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Decodes a chunk of a plain array into the bytes of its elements; false if it is not there.
    pub(super) fn decode_into(&self, at: &[u64], out: &mut [u8]) -> Result<bool> {
        let path = self.chunk_file(at);
        let Some((file, length)) = open(&path)? else { return Ok(false) };
        let Some(Some(method)) = &self.plain else {
            if length != out.len() as u64 {
                return Err(Error::io(format!(
                    "{}: {length} bytes of elements instead of {}",
                    path.display(),
                    out.len()
                )));
            }
            file.read_exact_at(out, 0).map_err(|error| failed(&path, "cannot be read", &error))?;
            return Ok(true);
        };
        let encoded = self.encoded(&path, file, length)?;
        let decoded = method.decode_into(&encoded, out);
        decoded.map_err(|error| self.damaged(&path, &error)).map(|()| true)
    }

    /// The bytes of the file of a chunk that is not a shard.
    fn encoded(&self, path: &Path, file: File, length: u64) -> Result<Vec<u8>> {
        if length > self.most_encoded {
            let chunk = self.chunk_bytes();
            return Err(Error::io(format!(
                "{}: {length} bytes, more than any encoding of a chunk of {chunk} bytes takes",
                path.display()
            )));
        }
        let mut encoded = Vec::new();
        encoded
            .try_reserve_exact(length as usize)
            .map_err(|_| Error::resource(format!("no memory to read {}", path.display())))?;
        file.take(length).read_to_end(&mut encoded).map_err(|error| failed(path, "cannot be read", &error))?;
        Ok(encoded)
    }

    /// The elements of a part of a chunk, which must begin and end with units, or at the end of the array: the box that was decoded and its bytes. `None` if the chunk is not there.
    pub(super) fn decode(&self, at: &[u64], part: &BoxRegion) -> Result<Option<(BoxRegion, Vec<u8>)>> {
        let path = self.chunk_file(at);
        let Some((file, length)) = open(&path)? else { return Ok(None) };
        let whole = self.chunk_box(at);
        let decoded = if self.declared.sharded {
            let within = |coords: &[u64]| coords.iter().zip(&whole.lo).map(|(c, lo)| c - lo).collect::<Vec<u64>>();
            let subset = ArraySubset::new_with_ranges(
                &within(&part.lo).into_iter().zip(within(&part.hi)).map(|(lo, hi)| lo..hi).collect::<Vec<_>>(),
            );
            let handle = Arc::new(ChunkFile { file, length });
            self.checked(&path, || {
                let chunk = metadata::non_zero(&self.declared.chunk);
                let (dtype, fill) = (self.array.data_type(), self.array.fill_value());
                let decoder = self.array.codecs().partial_decoder(handle, &chunk, dtype, fill, &self.options)?;
                Ok(decoder.partial_decode(&subset, &self.options)?.into_fixed()?.into_owned())
            })
            .map(|bytes| (part.clone(), bytes))
        } else {
            let encoded = self.encoded(&path, file, length)?;
            self.checked(&path, || {
                let chunk = metadata::non_zero(&self.declared.chunk);
                let (dtype, fill) = (self.array.data_type(), self.array.fill_value());
                let bytes = self.array.codecs().decode(Cow::Owned(encoded), &chunk, dtype, fill, &self.options)?;
                Ok(bytes.into_fixed()?.into_owned())
            })
            .map(|bytes| (whole, bytes))
        };
        let (bbox, bytes) = decoded?;
        let expected = bbox.n_elements().saturating_mul(self.dtype().size());
        if bytes.len() as u64 != expected {
            return Err(Error::io(format!(
                "{}: {} bytes of elements instead of {expected}",
                path.display(),
                bytes.len()
            )));
        }
        Ok(Some((bbox, bytes)))
    }

    /// As [`ZarrArray::encode`], for a plain array: without a copy, if nothing compresses it.
    pub(super) fn encode_plain<'a>(&self, at: &[u64], elements: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>> {
        if elements.chunks_exact(self.fill().len().max(1)).all(|element| element == self.fill()) {
            return Ok(None);
        }
        let Some(Some(method)) = &self.plain else { return Ok(Some(Cow::Borrowed(elements))) };
        let failed = |error: String| Error::io(format!("{}: {error}", self.chunk_file(at).display()));
        Ok(Some(Cow::Owned(method.encode(elements).map_err(failed)?)))
    }

    /// The bytes of the file of a chunk with these elements. `None` if all of them are the fill value, which needs no file.
    pub(super) fn encode(&self, at: &[u64], elements: Vec<u8>) -> Result<Option<Vec<u8>>> {
        if elements.chunks_exact(self.fill().len().max(1)).all(|element| element == self.fill()) {
            return Ok(None);
        }
        let path = self.chunk_file(at);
        self.checked(&path, || {
            let chunk = metadata::non_zero(&self.declared.chunk);
            let (dtype, fill) = (self.array.data_type(), self.array.fill_value());
            let elements = ArrayBytes::new_flen(elements);
            Ok(Some(self.array.codecs().encode(elements, &chunk, dtype, fill, &self.options)?.into_owned()))
        })
    }

    fn damaged(&self, path: &Path, error: &dyn std::fmt::Display) -> Error {
        Error::io(format!("{}: the chunk is damaged: {error}", path.display())).note(format!(
            "its chunks are {} {}",
            self.dtype(),
            shape::display(&self.declared.chunk)
        ))
    }

    /// Runs code of `zarrs` and names the chunk in its errors.
    fn checked<T>(&self, path: &Path, run: impl FnOnce() -> Result<T, CodecError>) -> Result<T> {
        match guarded(run) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.damaged(path, &error)),
            Err(panic) => Err(Error::io(format!("{}: the chunk is damaged: {panic}", path.display()))),
        }
    }
}

/// The file of a chunk and its length; `None` if there is none.
fn open(path: &Path) -> Result<Option<(File, u64)>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "cannot be opened", &error)),
    };
    let length = file.metadata().map_err(|error| failed(path, "cannot be examined", &error))?.len();
    Ok(Some((file, length)))
}

/// Damaged files can bring `zarrs` to panic, for example by places in a shard that overflow. A file is no reason for that.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => panic.downcast_ref::<&str>().map_or("unknown".into(), |text| text.to_string()),
    })
}

/// The metadata in the form that `zarrs` takes.
fn for_zarrs(declared: &Declared) -> Value {
    let mut json = declared.json.clone();
    // Nothing of these matters for elements, and Zarr 2 allows what version 3 does not.
    json.remove("attributes");
    if declared.dtype.storage() != declared.dtype {
        times_as_integers(&mut json, declared.version);
    }
    if declared.version == 2 {
        add_typesize(&mut json, declared.dtype);
        return Value::Object(json);
    }
    json.retain(|key, value| value.get("must_understand") != Some(&Value::Bool(false)) || key == "chunk_grid");
    json.remove("consolidated_metadata");
    Value::Object(json)
}

/// Times lie in chunks as integers, and `zarrs` does not know all of their types.
fn times_as_integers(json: &mut Map<String, Value>, version: u8) {
    if version == 2 {
        let is_big = json.get("dtype").and_then(Value::as_str).is_some_and(|name| name.starts_with('>'));
        json.insert("dtype".into(), if is_big { ">i8" } else { "<i8" }.into());
    } else {
        json.insert("data_type".into(), "int64".into());
    }
    if json.get("fill_value").and_then(Value::as_str) == Some("NaT") {
        json.insert("fill_value".into(), i64::MIN.into());
    }
}

/// Blosc shuffles by the size of elements, which Zarr 2 does not say again.
fn add_typesize(json: &mut Map<String, Value>, dtype: DType) {
    if let Some(Value::Object(compressor)) = json.get_mut("compressor")
        && compressor.get("id").and_then(Value::as_str) == Some("blosc")
    {
        compressor.entry("typesize").or_insert(dtype.size().into());
    }
}

/// The file of a shard, read at the places that `zarrs` asks for.
struct ChunkFile {
    file: File,
    length: u64,
}

impl BytesPartialDecoderTraits for ChunkFile {
    fn exists(&self) -> Result<bool, StorageError> {
        Ok(true)
    }

    fn size_held(&self) -> usize {
        0
    }

    fn partial_decode_many(
        &self,
        ranges: ByteRangeIterator<'_>,
        _: &CodecOptions,
    ) -> Result<Option<Vec<Cow<'_, [u8]>>>, CodecError> {
        use zarrs::storage::byte_range::ByteRange;
        let read = |range: ByteRange| {
            let (start, n) = match range {
                ByteRange::FromStart(start, Some(n)) => (start, n),
                ByteRange::FromStart(start, None) => (start, self.length.saturating_sub(start)),
                ByteRange::Suffix(n) => (self.length.wrapping_sub(n), n),
            };
            if start.checked_add(n).is_none_or(|end| end > self.length) {
                return Err(CodecError::Other(format!("{n} bytes at byte {start} of a shard of {}", self.length)));
            }
            let mut bytes = vec![0; n as usize];
            self.file.read_exact_at(&mut bytes, start).map_err(|error| CodecError::Other(error.to_string()))?;
            Ok(Cow::Owned(bytes))
        };
        ranges.map(read).collect::<Result<_, _>>().map(Some)
    }

    fn supports_partial_decode(&self) -> bool {
        true
    }
}
