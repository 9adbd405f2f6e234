//! Where blocks are read from.

use std::fmt::Debug;
use std::sync::Arc;

use tw_ir::schedule::Digest;
use tw_ir::{Array, BoxRegion, Error, Grid, Result, TensorType};

use crate::block::Block;
use crate::memory::Meter;
use crate::read_ahead::ReadAhead;

/// Where the elements of a source are, which decides the time and memory of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceAccess {
    /// It is in memory already. Blocks of it are shared, not copied, and charged to no meter.
    Memory,
    /// A file: reads take time, and a copy.
    File,
    /// Code of the host language, which may take locks of its own.
    Foreign,
}

/// A tensor whose elements are read box by box. Several threads read at once.
///
/// Errors name the source, since only it knows what its users call it; the engine adds the statement.
pub trait Source: Debug + Send + Sync {
    /// Element type and shape, every extent known. A tiling is the cut it is planned with.
    fn ty(&self) -> TensorType;

    /// The blocks it consists of, if it has any: reading one of them as a whole costs least. Any other box may be read as well.
    fn chunks(&self) -> Option<&Grid> {
        None
    }

    /// Tells apart sources with different elements, and versions of one, as well as that can be done without reading a file. `None` if nothing is known.
    fn fingerprint(&self) -> Option<Digest>;

    /// How it is reached.
    fn access(&self) -> SourceAccess;

    /// True if a box is in memory already, so that reading it costs nothing.
    fn is_resident(&self, region: &BoxRegion) -> bool {
        let _ = region;
        self.access() == SourceAccess::Memory
    }

    /// On rank `here` of several, the rank that has each of its [chunks](Source::chunks), if not every rank can read them. The same on all ranks.
    fn homes(&self, here: u32) -> Option<Vec<u32>> {
        let _ = here;
        None
    }

    /// How it lies where it is, in a few words for people.
    fn layout(&self) -> String;

    /// Scratch space of a read: the most bytes that it allocates for a moment besides its block. The reader charges them to its meter.
    fn scratch(&self, region: &BoxRegion) -> u64;

    /// The elements of one box. Copied elements are charged to the meter.
    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>>;

    /// The same source for one run, which will read blocks of `bytes` bytes and lets its sources hold more than they were asked for in `ahead`. `None` if it
    /// reads as it always does.
    fn for_run(&self, bytes: u64, ahead: &Arc<ReadAhead>) -> Option<Arc<dyn Source>> {
        let _ = (bytes, ahead);
        None
    }
}

impl dyn Source + '_ {
    /// Extents of the axes.
    pub fn shape(&self) -> Result<Vec<u64>> {
        self.ty().known_shape().ok_or_else(|| Error::internal(format!("a source of type {}", self.ty())))
    }

    /// Bytes of all elements.
    pub fn n_bytes(&self) -> u64 {
        self.ty().known_bytes().unwrap_or(0)
    }

    /// All elements in one array.
    pub fn to_array(&self) -> Result<Array> {
        let block = self.read(&BoxRegion::whole(&self.shape()?), &Meter::new())?;
        let array = match Arc::try_unwrap(block) {
            Ok(block) => block.into_array()?,
            Err(shared) => shared.to_array()?,
        };
        array.with_dtype(self.ty().dtype)
    }
}
