//! Where the loads of a segment read and its stores write.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tw_block::npy::{Bands, NpyReader, NpyWriter};
use tw_block::{Block, Meter};
use tw_ir::error::{Error, Result};
use tw_ir::program::TensorType;
use tw_ir::workflow::{SourceDecl, Workflow};
use tw_ir::{Array, BoxRegion};
use tw_run::BlockIo;

use crate::stored::Stored;

/// Data bound to the name of an input.
#[derive(Clone)]
pub enum Input {
    /// An array of the host; blocks are views of it.
    Array(Arc<Array>),
    /// A tensor computed before.
    Stored(Arc<Stored>),
    /// An `.npy` file, read block by block.
    File(Arc<NpyReader>),
}

impl Input {
    /// Opens a file. Only the header is read.
    pub fn open(path: impl Into<PathBuf>) -> Result<Input> {
        Ok(Input::File(Arc::new(NpyReader::open(path.into())?)))
    }

    /// Its type, with a tiling if it is cut into blocks already.
    pub fn ty(&self) -> TensorType {
        match self {
            Input::Array(array) => TensorType::known(array.dtype(), array.shape()),
            Input::Stored(stored) => stored.ty(),
            Input::File(reader) => TensorType::known(reader.header().dtype, &reader.header().shape),
        }
    }

    /// True for files that may be read in bands. Blocks of small ones are read on their own, and hold no more than was planned.
    pub(crate) fn is_large_file(&self) -> bool {
        const LARGE: u64 = 1 << 20;
        matches!(self, Input::File(reader) if reader.header().n_bytes() >= LARGE)
    }

    /// True if blocks of it are shared with whoever holds them, and so take no memory of their own.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Input::File(_))
    }
}

/// Blocks are cut out of bands if one part in so many of the file is read.
const LEAST_SHARE_FOR_BANDS: u64 = 4;

/// The sources and sinks of one run of a segment.
pub(crate) struct SegmentIo {
    sources: Vec<Input>,
    /// Parts of files that several blocks are cut out of.
    bands: Bands,
    /// Per source: true if blocks are cut out of bands.
    in_bands: Vec<bool>,
    sinks: Vec<NpyWriter>,
}

impl SegmentIo {
    /// Finds every source by name and opens every sink. Of each source the blocks that are read have `loaded_bytes`. Parts of files of up to
    /// `band_bytes` may be held to cut blocks out of.
    pub(crate) fn open(
        workflow: &Workflow,
        inputs: &BTreeMap<String, Input>,
        loaded_bytes: &[u64],
        band_bytes: u64,
    ) -> Result<SegmentIo> {
        let sources: Vec<Input> = workflow
            .sources
            .values()
            .map(|source| match source {
                SourceDecl::Constant(array) => Ok(Input::Array(array.clone())),
                SourceDecl::Input { name, .. } => inputs
                    .get(name)
                    .cloned()
                    .ok_or_else(|| Error::source(format!("input `{name}` is not bound to any data"))),
            })
            .collect::<Result<_>>()?;
        let sinks = workflow
            .sinks
            .values()
            .map(|sink| NpyWriter::create(&sink.path, sink.dtype, &sink.shape))
            .collect::<Result<_>>()?;
        // Of a file that is hardly read the parts beside a block are not worth reading along.
        let mostly_read = |(input, &bytes): (&Input, &u64)| match input {
            Input::File(reader) => bytes.saturating_mul(LEAST_SHARE_FOR_BANDS) >= reader.header().n_bytes(),
            _ => false,
        };
        let in_bands = sources.iter().zip(loaded_bytes).map(mostly_read).collect();
        Ok(SegmentIo { sources, bands: Bands::new(band_bytes), in_bands, sinks })
    }

    /// The files written, still under temporary names.
    pub(crate) fn into_sinks(self) -> Vec<NpyWriter> {
        self.sinks
    }

    /// True if some file is being written.
    pub(crate) fn has_sinks(&self) -> bool {
        !self.sinks.is_empty()
    }
}

impl BlockIo for SegmentIo {
    fn load(&self, source: u32, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        match &self.sources[source as usize] {
            Input::Array(array) => Ok(Arc::new(Block::view_of(array, region)?)),
            Input::Stored(stored) => stored.block(region),
            Input::File(reader) if self.in_bands[source as usize] => {
                Ok(Arc::new(self.bands.read_region(source, reader, region, Some(meter))?))
            }
            Input::File(reader) => Ok(Arc::new(reader.read_region(region, Some(meter))?)),
        }
    }

    fn store(&self, sink: u32, block: &Block) -> Result<()> {
        self.sinks[sink as usize].write_block(block)
    }
}
