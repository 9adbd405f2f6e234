//! The sizes of all blocks, for passes that ask for them again and again.

use cranelift_entity::{EntityRef, PrimaryMap};

use super::{BlockId, BlockSet, BlockSetId, Boxes, Operand, Size, Sizes, Workflow};
use crate::tiling::Axis;

/// The sizes of the blocks of a workflow.
///
/// Schedulers and simulators ask for the size of a block for each of its readers and each worker. Most sets consist of blocks of one size; it is
/// kept here once per set, so that an answer decodes no coordinates. Blocks of other sets are looked at one by one.
///
/// The sizes borrow the workflow. A size kept in the workflow itself, or in a set, would be wrong as soon as the set is changed, and sets are changed after they
/// were added: those who read schedules fill in formats and sizes.
#[derive(Clone, Debug)]
pub struct BlockSizes<'a> {
    workflow: &'a Workflow,
    even: PrimaryMap<BlockSetId, Option<u64>>,
}

impl<'a> BlockSizes<'a> {
    /// The sizes of the blocks of a workflow; takes a time proportional to the number of sets and of axes.
    pub fn of(workflow: &'a Workflow) -> BlockSizes<'a> {
        BlockSizes { workflow, even: workflow.sets.values().map(even_bytes).collect() }
    }

    /// The size of a block in bytes, as [`Workflow::block_size`].
    #[inline]
    pub fn block(&self, block: BlockId) -> Size {
        match self.even[self.workflow.block_sets[block.index()]] {
            Some(bytes) => Size::Exact(bytes),
            None => self.workflow.block_size(block),
        }
    }

    /// The size of the region that an operand reads, as [`Workflow::operand_size`].
    #[inline]
    pub fn operand(&self, operand: Operand) -> Size {
        match operand.region {
            0 => self.block(operand.block),
            _ => self.workflow.operand_size(operand),
        }
    }
}

/// The bytes of every block of a set, if all are dense and have as many elements.
fn even_bytes(set: &BlockSet) -> Option<u64> {
    let (Sizes::Dense, Boxes::Grid(grid)) = (&set.sizes, &set.boxes) else { return None };
    let tile_of = |axis: &Axis| match axis {
        Axis::Uniform { extent, tile } if tile >= extent => Some(*extent),
        Axis::Uniform { extent, tile } => extent.is_multiple_of(*tile).then_some(*tile),
        Axis::Ragged(_) => None,
    };
    grid.iter().try_fold(set.dtype.size(), |bytes, axis| bytes.checked_mul(tile_of(axis)?))
}
