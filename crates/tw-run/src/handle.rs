//! Computed tensors, as they are held between runs.

use std::sync::Arc;

use tw_block::{Block, Meter, Source, SourceAccess, count_selected};
use tw_ir::program::MaskCounts;
use tw_ir::schedule::Digest;
use tw_ir::{Array, BoxRegion, DType, Error, Grid, Result, Scalar, TensorType, Tiling};

/// A block, wherever it is. Cloning shares it.
#[derive(Clone, Debug)]
pub struct BlockHandle(Place);

/// Where a block is. One that was moved to disk or is held by another rank will be a further case; callers see results already.
#[derive(Clone, Debug)]
enum Place {
    Memory(Arc<Block>),
}

impl BlockHandle {
    /// The block, in memory.
    pub fn block(&self) -> Result<Arc<Block>> {
        match &self.0 {
            Place::Memory(block) => Ok(Arc::clone(block)),
        }
    }

    /// The block, in memory. If nobody else has it, the caller owns it.
    pub fn into_block(self) -> Result<Arc<Block>> {
        match self.0 {
            Place::Memory(block) => Ok(block),
        }
    }
}

impl From<Arc<Block>> for BlockHandle {
    fn from(block: Arc<Block>) -> BlockHandle {
        BlockHandle(Place::Memory(block))
    }
}

/// A computed tensor, cut by a grid. Blocks are shared, never changed.
#[derive(Clone, Debug)]
pub struct TensorHandle {
    dtype: DType,
    grid: Grid,
    blocks: Vec<BlockHandle>,
}

impl TensorHandle {
    /// From blocks in row-major order of the grid.
    pub fn new(dtype: DType, grid: Grid, blocks: Vec<BlockHandle>) -> TensorHandle {
        TensorHandle { dtype, grid, blocks }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents of the axes.
    pub fn shape(&self) -> Vec<u64> {
        self.grid.shape()
    }

    /// How it is cut.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Its blocks, row-major.
    pub fn blocks(&self) -> &[BlockHandle] {
        &self.blocks
    }

    /// Bytes of all elements.
    pub fn n_bytes(&self) -> u64 {
        self.grid.iter().fold(self.dtype.size(), |bytes, axis| bytes.saturating_mul(axis.extent()))
    }

    /// All elements in one array.
    pub fn to_array(&self) -> Result<Array> {
        TensorHandle::into_array(Arc::new(self.clone()))
    }

    /// All elements in one array. If nobody else has the blocks they go one by one as they are copied.
    pub fn into_array(handle: Arc<TensorHandle>) -> Result<Array> {
        let TensorHandle { dtype, grid, mut blocks } = Arc::unwrap_or_clone(handle);
        if blocks.len() == 1
            && let Some(block) = blocks.pop()
        {
            let array = match Arc::try_unwrap(block.into_block()?) {
                Ok(block) => block.into_array()?,
                Err(shared) => shared.to_array()?,
            };
            return array.with_dtype(dtype);
        }
        let shape = grid.shape();
        let mut array = Block::for_output(dtype.storage(), BoxRegion::whole(&shape), None)?.into_array()?;
        let origin = vec![0; shape.len()];
        for block in blocks {
            block.into_block()?.copy_overlap_into(&origin, &mut array)?;
        }
        array.with_dtype(dtype)
    }

    /// The only element of a tensor of size one.
    pub fn item(&self) -> Result<Scalar> {
        let scalar = match self.blocks.as_slice() {
            [block] => {
                let block = block.block()?;
                let only = if block.n_elements() == 1 { block.get(&block.bbox().lo) } else { None };
                only.map(|value| value.cast(self.dtype))
            }
            _ => None,
        };
        scalar.ok_or_else(|| {
            Error::source(format!("a tensor of shape {} is not a single value", tw_ir::shape::display(&self.shape())))
        })
    }

    /// As a mask: how many elements each of its pieces takes.
    pub fn mask_counts(&self, pieces: Grid) -> Result<MaskCounts> {
        let mut counts = Vec::with_capacity(pieces.n_blocks() as usize);
        for position in 0..pieces.n_blocks() {
            let piece = pieces.box_of(position);
            let mut count = 0u64;
            for block in self.blocks_meeting(&piece) {
                let block = block.block()?;
                count = count.saturating_add(count_selected(&block, &block.bbox().intersect(&piece))?);
            }
            counts.push(count);
        }
        MaskCounts::new(pieces, counts)
    }

    /// The blocks that have elements of a region.
    fn blocks_meeting(&self, region: &BoxRegion) -> impl Iterator<Item = &BlockHandle> {
        let positions = self.grid.blocks_meeting(region);
        positions.into_iter().filter_map(|position| self.blocks.get(position as usize))
    }

    /// A block that is put together from the blocks that it meets.
    fn assembled(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Block> {
        let mut array = Array::zeros(&region.shape(), self.dtype.storage())?;
        for block in self.blocks_meeting(region) {
            block.block()?.copy_overlap_into(&region.lo, &mut array)?;
        }
        Block::from_array(&region.lo, array, Some(meter))
    }
}

impl Source for TensorHandle {
    /// The type with the tiling it really has.
    fn ty(&self) -> TensorType {
        TensorType::known(self.dtype, &self.shape()).with_tiling(Tiling::Grid(self.grid.clone()))
    }

    fn chunks(&self) -> Option<&Grid> {
        Some(&self.grid)
    }

    /// It is known by what computed it.
    fn fingerprint(&self) -> Option<Digest> {
        None
    }

    fn access(&self) -> SourceAccess {
        SourceAccess::Memory
    }

    fn layout(&self) -> String {
        format!("in memory, in {} blocks", self.blocks.len())
    }

    fn scratch(&self, _: &BoxRegion) -> u64 {
        0
    }

    /// Blocks are shared; any other box is a copy.
    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        if region.rank() != self.grid.len() || region.hi.iter().zip(&self.grid).any(|(hi, cut)| *hi > cut.extent()) {
            let shape = tw_ir::shape::display(&self.shape());
            return Err(Error::internal(format!("a region {region} of a computed tensor of shape {shape}")));
        }
        if let Some(handle) = self.grid.position_of(region).and_then(|position| self.blocks.get(position as usize)) {
            return handle.block();
        }
        self.assembled(region, meter).map(Arc::new)
    }
}
