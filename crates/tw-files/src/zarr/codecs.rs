//! Makes the bounded compressors of [`super::compress`] known to `zarrs`.

use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, Once};

use serde_json::{Map, Value};
use zarrs::array::codec::api::{
    CodecRuntimePluginV2, CodecRuntimePluginV3, PartialDecoderCapability, PartialEncoderCapability, register_codec_v2,
    register_codec_v3,
};
use zarrs::array::{
    ArrayBytesRaw, BytesRepresentation, BytesToBytesCodecTraits, Codec, CodecError, CodecMetadataOptions, CodecOptions,
    CodecTraits, RecommendedConcurrency,
};
use zarrs::metadata::Configuration;
use zarrs::plugin::{ExtensionName, PluginCreateError, ZarrVersion};

use super::blosc::{Blosc, Compressor, Shuffle};
use super::compress::Method;

/// What a chunk whose size nothing bounds may unfold to. Elements of fixed size always have a bound.
const WITHOUT_A_BOUND: u64 = 1 << 31;

/// Names of compressors, as Zarr 3 has them; Zarr 2 has the part after the dot.
const NAMES: [&str; 7] = ["gzip", "zlib", "zstd", "blosc", "lz4", "numcodecs.zlib", "numcodecs.lz4"];

/// Makes the compressors known, once.
pub(super) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register_codec_v3(CodecRuntimePluginV3::new(
            |name| NAMES.contains(&name),
            |metadata| create(metadata.name(), metadata.configuration().map(|each| &**each).unwrap_or(&Map::new())),
        ));
        register_codec_v2(CodecRuntimePluginV2::new(
            |name| NAMES.contains(&name),
            |metadata| create(metadata.id(), metadata.configuration()),
        ));
    });
}

/// A compressor from what metadata says of it.
fn create(name: &str, configuration: &Map<String, Value>) -> Result<Codec, PluginCreateError> {
    let method = method(name, configuration)?;
    let codec = Bounded { name: name.to_string(), method, configuration: configuration.clone() };
    Ok(Codec::BytesToBytes(Arc::new(codec)))
}

/// How the bytes of elements become those of a chunk, if they lie in it as they lie in memory: as they are, or through one compressor. `None` if other codecs take part.
pub(super) fn only_compressed(version: u8, json: &Map<String, Value>, size: u64) -> Option<Option<Method>> {
    let none = Map::new();
    let configuration = |codec: &Value| codec.get("configuration").and_then(Value::as_object).cloned();
    if version == 2 {
        let dtype = json.get("dtype")?.as_str()?;
        let filters =
            json.get("filters").filter(|list| !list.is_null() && list.as_array().is_none_or(|list| !list.is_empty()));
        if json.get("order")?.as_str()? != "C" || filters.is_some() || (size > 1 && !dtype.starts_with('<')) {
            return None;
        }
        return match json.get("compressor")? {
            Value::Null => Some(None),
            Value::Object(compressor) => method(compressor.get("id")?.as_str()?, compressor).ok().map(Some),
            _ => None,
        };
    }
    let codecs = json.get("codecs")?.as_array()?;
    let name = |codec: &Value| Some(codec.as_str().or_else(|| codec.get("name")?.as_str())?.to_string());
    let (to_bytes, compressors) = codecs.split_first()?;
    let endian = configuration(to_bytes).and_then(|each| each.get("endian")?.as_str().map(str::to_string));
    if name(to_bytes)? != "bytes" || (size > 1 && endian.as_deref() != Some("little")) {
        return None;
    }
    match compressors {
        [] => Some(None),
        [one] if NAMES.contains(&name(one)?.as_str()) => {
            method(&name(one)?, configuration(one).as_ref().unwrap_or(&none)).ok().map(Some)
        }
        _ => None,
    }
}

fn method(name: &str, configuration: &Map<String, Value>) -> Result<Method, PluginCreateError> {
    let number = |key: &str, usual: i64| configuration.get(key).and_then(Value::as_i64).unwrap_or(usual);
    Ok(match name.trim_start_matches("numcodecs.") {
        "gzip" => Method::Gzip { level: number("level", 5).clamp(0, 9) as u32 },
        "zlib" => Method::Zlib { level: number("level", 1).clamp(0, 9) as u32 },
        "zstd" => {
            let checksum = configuration.get("checksum").and_then(Value::as_bool).unwrap_or(false);
            Method::Zstd { level: number("level", 0).clamp(-100, 22) as i32, checksum }
        }
        "lz4" => Method::Lz4,
        "blosc" => Method::Blosc(blosc(configuration)?),
        other => return Err(PluginCreateError::Other(format!("the codec `{other}` is not supported"))),
    })
}

fn blosc(configuration: &Map<String, Value>) -> Result<Blosc, PluginCreateError> {
    let compressor = match configuration.get("cname").and_then(Value::as_str) {
        Some("blosclz") => Compressor::BloscLz,
        Some("zlib") => Compressor::Zlib,
        Some("zstd") => Compressor::Zstd,
        Some("lz4" | "lz4hc") | None => Compressor::Lz4,
        Some(other) => {
            return Err(PluginCreateError::Other(format!("the compressor `{other}` of Blosc is not supported")));
        }
    };
    let number = |key: &str, usual: i64| configuration.get(key).and_then(Value::as_i64).unwrap_or(usual);
    // Zarr 2 leaves the size of elements to whoever writes. What is read names its own.
    let typesize = number("typesize", 1).clamp(1, 255) as u8;
    let shuffle = match configuration.get("shuffle") {
        Some(Value::String(name)) if name == "noshuffle" => Shuffle::None,
        Some(Value::String(name)) if name == "bitshuffle" => Shuffle::Bits,
        Some(Value::Number(n)) => match n.as_i64() {
            Some(0) => Shuffle::None,
            Some(2) => Shuffle::Bits,
            Some(-1) if typesize == 1 => Shuffle::Bits,
            _ => Shuffle::Bytes,
        },
        _ => Shuffle::Bytes,
    };
    Ok(Blosc { compressor, level: number("clevel", 5).clamp(0, 9) as i32, shuffle, typesize })
}

/// A compressor whose decoder gives no more than it was told.
#[derive(Debug)]
struct Bounded {
    name: String,
    method: Method,
    configuration: Map<String, Value>,
}

impl ExtensionName for Bounded {
    fn name(&self, _: ZarrVersion) -> Option<Cow<'static, str>> {
        Some(Cow::Owned(self.name.clone()))
    }
}

impl CodecTraits for Bounded {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn configuration(&self, _: ZarrVersion, _: &CodecMetadataOptions) -> Option<Configuration> {
        Some(self.configuration.clone().into())
    }

    fn partial_decoder_capability(&self) -> PartialDecoderCapability {
        PartialDecoderCapability { partial_read: false, partial_decode: false }
    }

    fn partial_encoder_capability(&self) -> PartialEncoderCapability {
        PartialEncoderCapability { partial_encode: false }
    }
}

impl BytesToBytesCodecTraits for Bounded {
    fn into_dyn(self: Arc<Self>) -> Arc<dyn BytesToBytesCodecTraits> {
        self
    }

    fn recommended_concurrency(&self, _: &BytesRepresentation) -> Result<RecommendedConcurrency, CodecError> {
        Ok(RecommendedConcurrency::new_maximum(1))
    }

    /// No compressor makes bytes longer than this.
    fn encoded_representation(&self, decoded: &BytesRepresentation) -> BytesRepresentation {
        decoded.size().map_or(BytesRepresentation::UnboundedSize, |size| {
            BytesRepresentation::BoundedSize(size.saturating_add(size / 4).saturating_add(64 << 10))
        })
    }

    fn encode<'a>(&self, decoded: ArrayBytesRaw<'a>, _: &CodecOptions) -> Result<ArrayBytesRaw<'a>, CodecError> {
        self.method.encode(&decoded).map(Cow::Owned).map_err(CodecError::Other)
    }

    fn decode<'a>(
        &self,
        encoded: ArrayBytesRaw<'a>,
        decoded: &BytesRepresentation,
        _: &CodecOptions,
    ) -> Result<ArrayBytesRaw<'a>, CodecError> {
        let most = decoded.size().unwrap_or(WITHOUT_A_BOUND);
        self.method
            .decode(&encoded, most)
            .map(Cow::Owned)
            .map_err(|error| CodecError::Other(format!("{}: {error}", self.name)))
    }
}
