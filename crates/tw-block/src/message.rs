//! Blocks as the bytes of messages between ranks.
//!
//! A message has the elements of a block, or of a part of one, in row-major order, as they lie in memory. The schedule tells both sides their box and their type, so
//! nothing else is sent. Elements that lie together are sent from where they are; others are copied first, and the copy is charged to the meter.

use std::ops::Range;
use std::sync::Arc;

use tw_ir::{BoxRegion, DType, Error, Result};

use crate::block::Block;
use crate::bytes::{bytes_of, bytes_of_mut};
use crate::memory::Meter;

/// The bytes of a block that is sent. The block lives as long as they do.
#[derive(Debug)]
pub struct BlockMessage {
    block: Arc<Block>,
    /// Where the elements lie in the storage.
    elements: Range<usize>,
}

impl BlockMessage {
    /// The elements of a block, or of a part of it.
    pub fn new(block: Arc<Block>, part: Option<&BoxRegion>, meter: &Arc<Meter>) -> Result<BlockMessage> {
        if !block.is_dense() {
            return Err(Error::internal(format!("a block {} of several buffers is sent as a dense one", block.bbox())));
        }
        let part = part.unwrap_or(block.bbox());
        if let Some(elements) = together(part, block.bbox(), &block.strides(), block.offset()) {
            return Ok(BlockMessage { block, elements });
        }
        let mut copy = Block::for_output(block.dtype(), part.clone(), Some(meter))?;
        let (bbox, buffer) = copy.output()?;
        block.copy_moved_overlap(block.bbox(), bbox, buffer)?;
        let elements = 0..copy.n_elements() as usize;
        Ok(BlockMessage { block: Arc::new(copy), elements })
    }
}

impl AsRef<[u8]> for BlockMessage {
    fn as_ref(&self) -> &[u8] {
        bytes_of(self.block.data(), self.elements.clone())
    }
}

/// Where the elements of a part lie in the storage of a block, if they lie together in row-major order.
fn together(part: &BoxRegion, bbox: &BoxRegion, strides: &[usize], offset: usize) -> Option<Range<usize>> {
    let (mut first, mut n) = (offset, 1usize);
    for axis in (0..part.rank()).rev() {
        let extent = (part.hi[axis] - part.lo[axis]) as usize;
        if extent > 1 && strides[axis] != n {
            return None;
        }
        first += (part.lo[axis] - bbox.lo[axis]) as usize * strides[axis];
        n *= extent;
    }
    Some(first..first + n)
}

/// A block that is received: room for its bytes, and then the block.
#[derive(Debug)]
pub struct BlockBuffer {
    block: Block,
    /// True if the bytes are truth values, which have to be checked before they are values.
    is_bool: bool,
}

impl BlockBuffer {
    /// Room for a block, charged to the meter.
    pub fn new(dtype: DType, bbox: BoxRegion, meter: &Arc<Meter>) -> Result<BlockBuffer> {
        let is_bool = dtype == DType::Bool;
        let block = Block::for_output(if is_bool { DType::U8 } else { dtype }, bbox, Some(meter))?;
        Ok(BlockBuffer { block, is_bool })
    }

    /// The block, when all bytes are there.
    pub fn into_block(self) -> Result<Block> {
        Ok(if self.is_bool { self.block.into_truth_values() } else { self.block })
    }

    /// Bytes of its elements.
    pub fn n_bytes(&self) -> u64 {
        self.block.n_bytes()
    }

    /// Its box.
    pub fn bbox(&self) -> &BoxRegion {
        self.block.bbox()
    }
}

impl AsRef<[u8]> for BlockBuffer {
    fn as_ref(&self) -> &[u8] {
        bytes_of(self.block.data(), 0..self.block.n_elements() as usize)
    }
}

impl AsMut<[u8]> for BlockBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        let n = self.block.n_elements() as usize;
        // A block that was made for output owns its storage.
        self.block.output().map_or(&mut [], |(_, buffer)| bytes_of_mut(buffer, 0..n))
    }
}

#[cfg(test)]
mod tests {
    use tw_ir::Array;

    use super::*;

    fn region(lo: &[u64], hi: &[u64]) -> BoxRegion {
        BoxRegion { lo: lo.into(), hi: hi.into() }
    }

    /// Sends a part of a block; true if it was sent from where it lies.
    fn send(block: &Arc<Block>, part: Option<&BoxRegion>) -> (Block, bool) {
        let meter = Meter::new();
        let message = BlockMessage::new(block.clone(), part, &meter).unwrap();
        let in_place = Arc::ptr_eq(&message.block, block);
        assert_eq!(meter.now() == 0, in_place);
        let bbox = part.unwrap_or(block.bbox()).clone();
        let mut buffer = BlockBuffer::new(block.dtype(), bbox, &meter).unwrap();
        assert_eq!(buffer.as_mut().len(), message.as_ref().len());
        buffer.as_mut().copy_from_slice(message.as_ref());
        (buffer.into_block().unwrap(), in_place)
    }

    #[test]
    fn parts_arrive_and_are_copied_only_if_they_are_spread_out() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        let array = Array::new(vec![4, 6], values.into()).unwrap();
        let block = Arc::new(Block::from_array(&[10, 20], array, None).unwrap());
        let cases = [
            (None, true),
            (Some(region(&[11, 20], &[13, 26])), true),
            (Some(region(&[12, 21], &[13, 24])), true),
            (Some(region(&[11, 21], &[13, 24])), false),
            (Some(region(&[10, 25], &[14, 26])), false),
        ];
        for (part, in_place) in cases {
            let (received, sent_in_place) = send(&block, part.as_ref());
            assert_eq!(sent_in_place, in_place, "{part:?}");
            let bbox = received.bbox().clone();
            for i in bbox.range(0) {
                for j in bbox.range(1) {
                    assert_eq!(received.get(&[i, j]), block.get(&[i, j]), "{part:?}");
                }
            }
        }
    }

    #[test]
    fn truth_values_arrive_as_truth_values() {
        let array = Array::new(vec![5], vec![true, false, false, true, true].into()).unwrap();
        let block = Arc::new(Block::from_array(&[0], array, None).unwrap());
        let (received, _) = send(&block, Some(&region(&[1], &[4])));
        assert_eq!(received.to_array().unwrap().data(), &vec![false, false, true].into());
        // They take their bytes once, also while they are received.
        let meter = Meter::new();
        let buffer = BlockBuffer::new(DType::Bool, region(&[0], &[1 << 20]), &meter).unwrap();
        let block = buffer.into_block().unwrap();
        assert_eq!((block.dtype(), meter.now(), meter.peak()), (DType::Bool, 1 << 20, 1 << 20));
        // A rank that sends other bytes makes no invalid value.
        let mut buffer = BlockBuffer::new(DType::Bool, region(&[0], &[2]), &Meter::new()).unwrap();
        buffer.as_mut().copy_from_slice(&[7, 0]);
        assert_eq!(buffer.into_block().unwrap().to_array().unwrap().data(), &vec![true, false].into());
    }
}
