//! An array of the host as a source: what callers bind, and the constants of a plan.

use std::sync::{Arc, OnceLock};

use tw_ir::schedule::Digest;
use tw_ir::{Array, BoxRegion, Result, TensorType};

use crate::block::Block;
use crate::bytes::write_elements;
use crate::memory::Meter;
use crate::source::{Source, SourceAccess};

#[derive(Debug)]
struct InMemory {
    array: Arc<Array>,
    /// Computed when somebody asks: it reads all elements.
    fingerprint: OnceLock<Digest>,
}

/// A source over an array. Blocks are views of it.
pub fn in_memory(array: impl Into<Arc<Array>>) -> Arc<dyn Source> {
    Arc::new(InMemory { array: array.into(), fingerprint: OnceLock::new() })
}

impl Source for InMemory {
    fn ty(&self) -> TensorType {
        TensorType::known(self.array.dtype(), self.array.shape())
    }

    /// Of type and elements.
    fn fingerprint(&self) -> Option<Digest> {
        let of_elements = || {
            let mut parts = vec![Digest::of("tilewright 1 type of an array", &[self.ty().to_string().as_bytes()])];
            let add = |bytes: &[u8]| {
                parts.push(Digest::of("tilewright 1 elements of an array", &[bytes]));
                Ok::<(), std::convert::Infallible>(())
            };
            let data = self.array.data();
            let Ok(()) = write_elements(data, 0..data.len(), add);
            Digest::of_all(&parts)
        };
        Some(*self.fingerprint.get_or_init(of_elements))
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::Memory
    }

    fn layout(&self) -> String {
        "in memory".into()
    }

    fn scratch(&self, _: &BoxRegion) -> u64 {
        0
    }

    fn read(&self, region: &BoxRegion, _: &Arc<Meter>) -> Result<Arc<Block>> {
        Ok(Arc::new(Block::view_of(&self.array, region)?))
    }
}
