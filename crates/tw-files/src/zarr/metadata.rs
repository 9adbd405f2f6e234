//! What a store says of its arrays, checked before anybody believes it.

use std::fs::File;
use std::io::Read;
use std::num::NonZeroU64;
use std::path::Path;

use serde_json::{Map, Value, json};
use tw_ir::{DType, Error, Result, TimeUnit, shape};

use super::{failed, names_in};
use crate::descr;
use crate::formats::FileSummary;

/// Longer files of metadata are refused. Consolidated metadata of thousands of arrays is shorter.
const MOST_BYTES: u64 = 64 << 20;

/// More arrays of a group are not listed.
const MOST_LISTED: usize = 1000;

/// Keys of an array of version 3 that have a meaning for us. Others must say that they need not be understood.
const KNOWN_KEYS: [&str; 11] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
];

/// An array or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Array,
    Group,
}

/// Names of the files that describe a node.
const FILES: [(&str, u8, Option<Kind>); 3] =
    [("zarr.json", 3, None), (".zarray", 2, Some(Kind::Array)), (".zgroup", 2, Some(Kind::Group))];

/// What is in a directory: the version of the format, and whether it is an array. `None` if it is nothing of Zarr.
pub(super) fn describes(directory: &Path) -> Option<(u8, Kind)> {
    let (name, version, kind) = FILES.into_iter().find(|(name, ..)| directory.join(name).is_file())?;
    let kind = kind.or_else(|| match read_json(&directory.join(name)).ok()?.get("node_type")?.as_str()? {
        "array" => Some(Kind::Array),
        "group" => Some(Kind::Group),
        _ => None,
    })?;
    Some((version, kind))
}

/// Reads a file of metadata.
pub(super) fn read_json(path: &Path) -> Result<Map<String, Value>> {
    let file = File::open(path).map_err(|error| failed(path, "cannot be opened", &error))?;
    let mut text = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(|error| failed(path, "cannot be read", &error))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(Error::io(format!("{}: metadata of more than {MOST_BYTES} bytes", path.display())));
    }
    match serde_json::from_slice(&text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Error::io(format!("{}: the metadata is not an object", path.display()))),
        Err(error) => Err(Error::io(format!("{}: line {}: {error}", path.display(), error.line()))),
    }
}

/// What an array consists of, as its metadata says, after the numbers in it have been checked.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) version: u8,
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    /// Extents of a chunk, or of a shard.
    pub(super) chunk: Vec<u64>,
    /// Extents of the chunks inside a shard.
    pub(super) inner: Option<Vec<u64>>,
    /// True if chunks are shards, also such that cannot be told apart from here.
    pub(super) sharded: bool,
    /// Names of the codecs, for people.
    pub(super) codecs: Vec<String>,
    /// The metadata itself.
    pub(super) json: Map<String, Value>,
}

/// Reads the metadata of an array.
pub(super) fn read(directory: &Path) -> Result<Declared> {
    match describes(directory) {
        Some((version, Kind::Array)) => {
            let file = directory.join(if version == 3 { "zarr.json" } else { ".zarray" });
            let json = read_json(&file)?;
            check(json).map_err(|wrong| {
                let error = Error::io(format!("{}: {}", file.display(), wrong.message));
                wrong.help.into_iter().fold(error, |error, help| error.help(help))
            })
        }
        Some((_, Kind::Group)) => Err(Error::io(format!("{} is a group, not an array", directory.display()))
            .help(format!("name one of its arrays: {}", listed(directory)))),
        None if directory.is_dir() => {
            Err(Error::io(format!("{} is not a Zarr array: it has neither zarr.json nor .zarray", directory.display())))
        }
        None => Err(Error::io(format!("{} cannot be opened: there is no such directory", directory.display()))),
    }
}

fn listed(directory: &Path) -> String {
    let arrays = |name: &String| describes(&directory.join(name)).is_some();
    let mut names: Vec<String> = names_in(directory).into_iter().filter(arrays).take(9).collect();
    if names.len() > 8 {
        names[8] = "..".into();
    }
    if names.is_empty() { "it has none".into() } else { names.join(", ") }
}

/// What is wrong with metadata.
#[derive(Debug)]
pub(super) struct Wrong {
    message: String,
    help: Option<String>,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<String> for Wrong {
    fn from(message: String) -> Wrong {
        Wrong { message, help: None }
    }
}

impl From<&str> for Wrong {
    fn from(message: &str) -> Wrong {
        Wrong { message: message.into(), help: None }
    }
}

/// Checks metadata.
pub(super) fn check(json: Map<String, Value>) -> Result<Declared, Wrong> {
    let version = json.get("zarr_format").and_then(Value::as_u64).ok_or("`zarr_format` is missing")?;
    let shape = extents(&json, "shape")?;
    if shape.len() > shape::MAX_RANK {
        return Err(format!("an array of rank {}; the limit is {}", shape.len(), shape::MAX_RANK).into());
    }
    let (dtype, chunk, inner, sharded, codecs) = match version {
        2 => {
            let dtype = dtype_v2(json.get("dtype"))?;
            let codecs = ["filters", "compressor"].into_iter().flat_map(|key| match json.get(key) {
                Some(Value::Array(list)) => list.iter().filter_map(codec_id).collect(),
                Some(one) => codec_id(one).into_iter().collect(),
                None => Vec::new(),
            });
            (dtype, extents(&json, "chunks")?, None, false, codecs.collect())
        }
        3 => {
            let foreign = json.iter().find(|(key, value)| {
                !KNOWN_KEYS.contains(&key.as_str()) && value.get("must_understand") != Some(&Value::Bool(false))
            });
            if let Some((key, _)) = foreign {
                return Err(format!("the key `{}` is not known and must be understood", key.escape_debug()).into());
            }
            if json.get("storage_transformers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
                return Err("storage transformers are not supported".into());
            }
            let grid = json.get("chunk_grid").and_then(Value::as_object).ok_or("`chunk_grid` is missing")?;
            let name = grid.get("name").and_then(Value::as_str).unwrap_or_default();
            if name != "regular" {
                return Err(
                    format!("chunks of a `{}` grid are not supported, only regular ones", name.escape_debug()).into()
                );
            }
            let configuration =
                grid.get("configuration").and_then(Value::as_object).ok_or("`chunk_grid` is not configured")?;
            let list = json.get("codecs").and_then(Value::as_array).ok_or("`codecs` is missing")?;
            let names: Vec<String> = list.iter().filter_map(codec_name).collect();
            let place = names.iter().position(|name| name == "sharding_indexed");
            let inner = match place {
                // Codecs before it may have changed the order of the axes.
                Some(0) => match list[0].get("configuration").and_then(Value::as_object) {
                    Some(configuration) => Some(extents(configuration, "chunk_shape")?),
                    None => return Err("shards are not configured".into()),
                },
                _ => None,
            };
            let inside = place.and_then(|k| list[k].get("configuration")?.get("codecs")?.as_array().cloned());
            let inside: Vec<String> = inside.iter().flatten().filter_map(codec_name).collect();
            let names = names.into_iter().chain(inside).collect();
            (dtype_v3(json.get("data_type"))?, extents(configuration, "chunk_shape")?, inner, place.is_some(), names)
        }
        other => return Err(format!("version {other} of Zarr is not known").into()),
    };
    shape::n_bytes(&shape, dtype.size()).map_err(|error| error.message().to_string())?;
    for (name, extents) in [("chunks", Some(&chunk)), ("inner chunks", inner.as_ref())] {
        let Some(extents) = extents else { continue };
        if extents.len() != shape.len() || extents.contains(&0) {
            return Err(format!(
                "{name} of shape {} for an array of shape {}",
                shape::display(extents),
                shape::display(&shape)
            )
            .into());
        }
        // Products of these are taken in many places, of shards also with 16 bytes per inner chunk.
        let bytes = shape::n_bytes(extents, dtype.size().max(16)).map_err(|error| error.message().to_string())?;
        if bytes >= 1 << 56 {
            return Err(format!("{name} of {bytes} bytes").into());
        }
    }
    if let Some(inner) = &inner
        && chunk.iter().zip(inner).any(|(whole, part)| whole % part != 0)
    {
        return Err(
            format!("shards of shape {} of chunks of shape {}", shape::display(&chunk), shape::display(inner)).into()
        );
    }
    Ok(Declared { version: version as u8, dtype, shape, chunk, inner, sharded, codecs, json })
}

fn extents(json: &Map<String, Value>, key: &str) -> Result<Vec<u64>, Wrong> {
    let list = json.get(key).and_then(Value::as_array).ok_or_else(|| format!("`{key}` is missing"))?;
    list.iter().map(|n| n.as_u64().ok_or_else(|| format!("`{key}` has an extent of {n}").into())).collect()
}

fn codec_name(codec: &Value) -> Option<String> {
    Some(codec.as_str().or_else(|| codec.get("name")?.as_str())?.to_string())
}

fn codec_id(codec: &Value) -> Option<String> {
    let id = codec.get("id")?.as_str()?;
    Some(match codec.get("cname").and_then(Value::as_str) {
        Some(inner) => format!("{id} ({inner})"),
        None => id.to_string(),
    })
}

const SUPPORTED: &str =
    "supported are bool, integers, float16 to float64, bfloat16, complex64, complex128, datetime64 and timedelta64";

fn unsupported(name: &str) -> Wrong {
    let message = format!("elements of type `{}` are not supported", name.escape_debug());
    Wrong { message, help: Some(SUPPORTED.into()) }
}

fn dtype_v2(dtype: Option<&Value>) -> Result<DType, Wrong> {
    let name = dtype.ok_or("`dtype` is missing")?;
    let Some(name) = name.as_str() else { return Err(unsupported("structured")) };
    descr::parse(name).map(|(dtype, _)| dtype).ok_or_else(|| unsupported(name))
}

fn dtype_v3(dtype: Option<&Value>) -> Result<DType, Wrong> {
    let dtype = dtype.ok_or("`data_type` is missing")?;
    let name = codec_name(dtype).unwrap_or_default();
    let unit = || {
        let configuration = dtype.get("configuration")?;
        let scale = configuration.get("scale_factor").and_then(Value::as_u64).unwrap_or(1);
        let unit = configuration.get("unit")?.as_str()?;
        TimeUnit::ALL.iter().copied().find(|each| scale == 1 && each.name() == unit)
    };
    match name.as_str() {
        "numpy.datetime64" => unit().map(DType::DateTime),
        "numpy.timedelta64" => unit().map(DType::TimeDelta),
        name => DType::PHYSICAL.into_iter().find(|&dtype| name_v3(dtype) == name),
    }
    .ok_or_else(|| unsupported(&dtype.to_string()))
}

fn name_v3(dtype: DType) -> String {
    let bits = dtype.size() * 8;
    match dtype {
        DType::Bool => "bool".into(),
        DType::BF16 => "bfloat16".into(),
        _ if dtype.is_float() => format!("float{bits}"),
        _ if dtype.is_complex() => format!("complex{bits}"),
        _ if dtype.is_unsigned() => format!("uint{bits}"),
        _ => format!("int{bits}"),
    }
}

/// The element type as version 3 names it.
pub(super) fn data_type(dtype: DType) -> Value {
    let time =
        |name: &str, unit: TimeUnit| json!({"name": name, "configuration": {"unit": unit.name(), "scale_factor": 1}});
    match dtype {
        DType::DateTime(unit) => time("numpy.datetime64", unit),
        DType::TimeDelta(unit) => time("numpy.timedelta64", unit),
        other => Value::String(name_v3(other)),
    }
}

/// Extents as `zarrs` wants them.
pub(super) fn non_zero(extents: &[u64]) -> Vec<NonZeroU64> {
    extents.iter().map(|&n| NonZeroU64::new(n).unwrap_or(NonZeroU64::MIN)).collect()
}

/// What people want to know of a node.
pub(super) fn summary(path: &Path) -> Result<FileSummary> {
    if let Some((version, Kind::Group)) = describes(path) {
        let mut lines = Vec::new();
        let mut waiting = vec![String::new()];
        while let Some(group) = waiting.pop() {
            for name in names_in(&path.join(&group)) {
                let node = if group.is_empty() { name } else { format!("{group}/{name}") };
                match describes(&path.join(&node)) {
                    Some((_, Kind::Group)) => waiting.push(node),
                    Some((_, Kind::Array)) if lines.len() < MOST_LISTED => lines.push(match read(&path.join(&node)) {
                        Ok(found) => format!("{node}: {}[{}]", found.dtype, extents_text(&found.shape)),
                        Err(error) => format!("{node}: {error}"),
                    }),
                    _ => {}
                }
            }
        }
        return Ok(FileSummary { format: format!("Zarr {version} group"), lines, bytes_on_disk: None });
    }
    let declared = read(path)?;
    let bytes = super::store::files_below(path).map(|files| files.iter().map(|file| file.bytes).sum());
    Ok(FileSummary { format: format!("Zarr {}", declared.version), lines: Vec::new(), bytes_on_disk: bytes })
}

fn extents_text(extents: &[u64]) -> String {
    extents.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
