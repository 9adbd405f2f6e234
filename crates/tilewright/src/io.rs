//! Where the loads of a segment read and its stores write.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tw_block::npy::{NpyReader, NpyWriter};
use tw_block::{Block, Meter};
use tw_ir::error::{Error, Result};
use tw_ir::program::TensorType;
use tw_ir::workflow::{SourceDecl, Workflow};
use tw_ir::{Array, BoxRegion, DType};
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

    /// True if blocks of it are shared with whoever holds them, and so take no memory of their own.
    pub(crate) fn is_shared(&self) -> bool {
        !matches!(self, Input::File(_))
    }

    fn load(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        match self {
            Input::Array(array) => Ok(Arc::new(Block::view_of(array, region)?)),
            Input::Stored(stored) => stored.block(region),
            Input::File(reader) => Ok(Arc::new(reader.read_region(region, Some(meter))?)),
        }
    }
}

/// The sources and sinks of one run of a segment.
pub(crate) struct SegmentIo {
    sources: Vec<Input>,
    sinks: Vec<NpyWriter>,
}

impl SegmentIo {
    /// Finds every source by name and opens every sink.
    pub(crate) fn open(
        workflow: &Workflow,
        sink_types: &[DType],
        inputs: &BTreeMap<String, Input>,
    ) -> Result<SegmentIo> {
        let sources = workflow
            .sources
            .iter()
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
            .iter()
            .zip(sink_types)
            .map(|(sink, &dtype)| NpyWriter::create(&sink.path, dtype, &sink.shape))
            .collect::<Result<_>>()?;
        Ok(SegmentIo { sources, sinks })
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
        self.sources[source as usize].load(region, meter)
    }

    fn store(&self, sink: u32, block: &Block) -> Result<()> {
        self.sinks[sink as usize].write_block(block)
    }
}
