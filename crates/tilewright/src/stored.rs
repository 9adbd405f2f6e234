//! A computed tensor: its blocks, in memory.

use std::sync::Arc;

use tw_block::{Block, count_selected};
use tw_ir::error::{Error, Result};
use tw_ir::program::MaskCounts;
use tw_ir::{Array, Axis, BoxRegion, DType, Grid, Scalar, TensorType, Tiling};

/// A computed tensor, cut by a grid. Blocks are shared, never changed.
#[derive(Clone, Debug)]
pub struct Stored {
    dtype: DType,
    grid: Grid,
    blocks: Vec<Arc<Block>>,
}

impl Stored {
    /// From blocks in row-major order of the grid.
    pub(crate) fn new(dtype: DType, grid: Grid, blocks: Vec<Arc<Block>>) -> Stored {
        Stored { dtype, grid, blocks }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents of the axes.
    pub fn shape(&self) -> Vec<u64> {
        self.grid.iter().map(Axis::extent).collect()
    }

    /// How it is cut.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Its blocks, row-major.
    pub fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// The type with the tiling it really has.
    pub fn ty(&self) -> TensorType {
        TensorType::known(self.dtype, &self.shape()).with_tiling(Tiling::Grid(self.grid.clone()))
    }

    /// The block with exactly this box.
    pub(crate) fn block(&self, region: &BoxRegion) -> Result<Arc<Block>> {
        let position =
            self.grid.iter().enumerate().fold(0, |position, (axis, cut)| {
                position * cut.n_tiles() + cut.tiles_meeting(&region.range(axis)).start
            });
        match self.blocks.get(position as usize) {
            Some(block) if block.bbox() == region => Ok(block.clone()),
            _ => Err(Error::internal(format!("no block of the stored tensor is {region}"))),
        }
    }

    /// All elements in one array.
    pub fn to_array(&self) -> Result<Array> {
        let shape = self.shape();
        if let [block] = self.blocks.as_slice() {
            return block.to_array()?.with_dtype(self.dtype);
        }
        let mut array = Block::for_output(self.dtype.storage(), BoxRegion::whole(&shape), None)?.into_array()?;
        let origin = vec![0; shape.len()];
        for block in &self.blocks {
            block.copy_overlap_into(&origin, &mut array)?;
        }
        array.with_dtype(self.dtype)
    }

    /// As a mask: how many elements each of its pieces takes.
    pub(crate) fn mask_counts(&self, pieces: Grid) -> Result<MaskCounts> {
        let n_pieces = pieces.iter().fold(1, |n, axis| n * axis.n_tiles());
        let mut counts = Vec::with_capacity(n_pieces as usize);
        for position in 0..n_pieces {
            let piece = pieces.box_of(position);
            let mut count = 0u64;
            for block in self.blocks_meeting(&piece) {
                count = count.saturating_add(count_selected(block, &block.bbox().intersect(&piece))?);
            }
            counts.push(count);
        }
        MaskCounts::new(pieces, counts)
    }

    /// The blocks that have elements of a region.
    fn blocks_meeting(&self, region: &BoxRegion) -> impl Iterator<Item = &Arc<Block>> {
        let mut positions = vec![0u64];
        for (axis, cut) in self.grid.iter().enumerate() {
            let tiles = cut.tiles_meeting(&region.range(axis));
            positions = positions.iter().flat_map(|p| tiles.clone().map(move |t| p * cut.n_tiles() + t)).collect();
        }
        positions.into_iter().filter_map(|position| self.blocks.get(position as usize))
    }

    /// All elements in one array. If nobody else has the blocks they go one by one as they are copied.
    pub(crate) fn into_array(stored: Arc<Stored>) -> Result<Array> {
        let Stored { dtype, grid, mut blocks } = match Arc::try_unwrap(stored) {
            Ok(stored) => stored,
            Err(shared) => return shared.to_array(),
        };
        if blocks.len() == 1
            && let Some(block) = blocks.pop()
        {
            let array = match Arc::try_unwrap(block) {
                Ok(block) => block.into_array()?,
                Err(shared) => shared.to_array()?,
            };
            return array.with_dtype(dtype);
        }
        let shape: Vec<u64> = grid.iter().map(Axis::extent).collect();
        let mut array = Block::for_output(dtype.storage(), BoxRegion::whole(&shape), None)?.into_array()?;
        let origin = vec![0; shape.len()];
        for block in blocks {
            block.copy_overlap_into(&origin, &mut array)?;
        }
        array.with_dtype(dtype)
    }

    /// Bytes of all elements.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.grid.iter().fold(self.dtype.size(), |bytes, axis| bytes.saturating_mul(axis.extent()))
    }

    /// The only element of a tensor of size one.
    pub fn item(&self) -> Result<Scalar> {
        let scalar = match self.blocks.as_slice() {
            [block] if block.n_elements() == 1 => block.get(&block.bbox().lo).map(|value| value.cast(self.dtype)),
            _ => None,
        };
        scalar.ok_or_else(|| {
            Error::source(format!("a tensor of shape {} is not a single value", tw_ir::shape::display(&self.shape())))
        })
    }
}
