//! Where blocks are written to.

use std::fmt::Debug;

use tw_ir::Result;

use crate::block::Block;

/// A tensor that is written block by block. Several threads write at once. Nobody sees anything of it before it is committed; a sink that is dropped
/// uncommitted leaves nothing behind.
pub trait Sink: Debug + Send + Sync {
    /// Writes a block where its box says. Every element is written once.
    fn write(&self, block: &Block) -> Result<()>;

    /// Bytes that writing a block of so many bytes takes for a moment besides the block.
    fn scratch(&self, block_bytes: u64) -> u64 {
        let _ = block_bytes;
        0
    }

    /// What other processes need to know to write blocks of the same tensor. `None` if one process has to write all of it.
    fn joint(&self) -> Option<String> {
        None
    }

    /// Makes what was written durable and visible. Called at most once, after the last write has returned.
    fn commit(&self) -> Result<()>;
}
