//! Computed tensors, as they are held between runs.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tw_block::{Block, Meter, Source, SourceAccess, SpillFile, SpilledBlock, count_selected};
use tw_ir::program::MaskCounts;
use tw_ir::schedule::Digest;
use tw_ir::{Array, BoxRegion, DType, Error, Grid, Result, Scalar, TensorType, Tiling};

/// Where a block is. Runs have one per block, so it is small: a pointer or a number, and which of these it is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Memory(Arc<Block>),
    Disk(Arc<SpilledBlock>),
    /// Where it was read from: it can be read again, so that it need not be spilled.
    Source(Arc<Origin>),
    /// In the memory of another rank.
    Elsewhere(u32),
}

const _: () = assert!(size_of::<Option<Place>>() <= 2 * size_of::<usize>());

/// A box of a source.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) region: BoxRegion,
}

impl Place {
    /// The block, in memory. A copy is charged to the meter.
    pub(crate) fn bring(self, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        match self {
            Place::Memory(block) => Ok(block),
            Place::Disk(spilled) => spilled.read(meter).map(Arc::new),
            Place::Source(origin) => origin.source.read(&origin.region, meter),
            Place::Elsewhere(rank) => Err(Error::internal(format!("a block of rank {rank} is read on another rank"))),
        }
    }

    /// The block, in memory. A copy is charged to nobody.
    pub(crate) fn bring_uncharged(self) -> Result<Arc<Block>> {
        match self {
            Place::Memory(block) => Ok(block),
            elsewhere => elsewhere.bring(&Meter::new()),
        }
    }
}

/// A block, wherever it is. Cloning shares it: a block that is spilled through one handle is on disk for all.
#[derive(Clone, Debug)]
pub struct BlockHandle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    place: Mutex<Place>,
    /// The file that the block was read from, if it may be read from there again.
    origin: Option<Arc<dyn Source>>,
    /// True if every rank has the block.
    is_replicated: bool,
    /// Runs that count on finding the block where it is.
    pins: AtomicU32,
}

impl BlockHandle {
    fn of(place: Place, origin: Option<Arc<dyn Source>>, is_replicated: bool) -> BlockHandle {
        BlockHandle(Arc::new(Shared { place: Mutex::new(place), origin, is_replicated, pins: AtomicU32::new(0) }))
    }

    pub(crate) fn new(place: Place, origin: Option<Arc<dyn Source>>) -> BlockHandle {
        BlockHandle::of(place, origin, false)
    }

    /// A block that every rank has.
    pub(crate) fn replicated(block: Arc<Block>) -> BlockHandle {
        BlockHandle::of(Place::Memory(block), None, true)
    }

    /// True if every rank has the block.
    pub(crate) fn is_replicated(&self) -> bool {
        self.0.is_replicated
    }

    /// The rank that has the block, if that is another one.
    pub fn owner(&self) -> Option<u32> {
        match &*self.place() {
            Place::Elsewhere(rank) => Some(*rank),
            _ => None,
        }
    }

    fn place(&self) -> std::sync::MutexGuard<'_, Place> {
        // A place is replaced as a whole.
        self.0.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The block, in memory. One on disk stays there, and is charged to nobody.
    pub fn block(&self) -> Result<Arc<Block>> {
        let place = self.place().clone();
        place.bring_uncharged()
    }

    /// The block, in memory. A copy of one on disk is charged to the meter.
    pub fn block_for(&self, meter: &Arc<Meter>) -> Result<Arc<Block>> {
        let place = self.place().clone();
        place.bring(meter)
    }

    /// The block, in memory. If nobody else has it, the caller owns it.
    pub fn into_block(self) -> Result<Arc<Block>> {
        match Arc::try_unwrap(self.0) {
            Ok(shared) => shared.place.into_inner().unwrap_or_else(PoisonError::into_inner).bring_uncharged(),
            Err(shared) => BlockHandle(shared).block(),
        }
    }

    /// True if it is in main memory.
    pub fn is_in_memory(&self) -> bool {
        matches!(&*self.place(), Place::Memory(_))
    }

    /// Moves the block to disk, or lets go of one that can be read again, unless it is pinned or something else than its handles uses it.
    pub fn spill(&self, file: &Arc<SpillFile>) -> Result<Freed> {
        let mut place = self.place();
        if self.0.pins.load(Ordering::Relaxed) > 0 {
            return Ok(Freed::default());
        }
        let Place::Memory(block) = &mut *place else { return Ok(Freed::default()) };
        if Arc::get_mut(block).is_none() || block.is_view() {
            return Ok(Freed::default());
        }
        let bytes = block.n_bytes();
        let (after, written) = match &self.0.origin {
            Some(source) => {
                (Place::Source(Arc::new(Origin { source: Arc::clone(source), region: block.bbox().clone() })), 0)
            }
            None => (Place::Disk(Arc::new(file.write(block)?)), bytes),
        };
        *place = after;
        Ok(Freed { bytes, written })
    }
}

/// Blocks of a tensor that are not spilled as long as this lives. It keeps none of them: a block goes with its last handle.
#[derive(Debug)]
pub struct Pins(Vec<Weak<Shared>>);

impl Drop for Pins {
    fn drop(&mut self) {
        for block in self.0.iter().filter_map(Weak::upgrade) {
            block.pins.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What spilling has freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Bytes of main memory.
    pub bytes: u64,
    /// Bytes of those that were written to disk; the others can be read again.
    pub written: u64,
}

impl AddAssign for Freed {
    fn add_assign(&mut self, other: Freed) {
        self.bytes += other.bytes;
        self.written += other.written;
    }
}

impl From<Arc<Block>> for BlockHandle {
    fn from(block: Arc<Block>) -> BlockHandle {
        BlockHandle::new(Place::Memory(block), None)
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

    /// A tensor that one rank has as an array, seen from any rank: only there the array is given.
    pub fn of_rank(dtype: DType, grid: Grid, owner: u32, array: Option<Arc<Array>>) -> Result<TensorHandle> {
        let block = |position: u64| {
            let place = match &array {
                Some(array) => Place::Memory(Arc::new(Block::view_of(array, &grid.box_of(position))?)),
                None => Place::Elsewhere(owner),
            };
            Ok(BlockHandle::new(place, None))
        };
        let blocks = (0..grid.n_blocks()).map(block).collect::<Result<_>>()?;
        Ok(TensorHandle { dtype, grid, blocks })
    }

    /// From blocks in a spill file, in row-major order of the grid.
    pub fn on_disk(dtype: DType, grid: Grid, blocks: &[Arc<SpilledBlock>]) -> TensorHandle {
        let blocks = blocks.iter().map(|block| BlockHandle::new(Place::Disk(Arc::clone(block)), None)).collect();
        TensorHandle { dtype, grid, blocks }
    }

    /// A tensor whose blocks are read from a source when they are needed. Every rank can read it.
    pub fn of_source(dtype: DType, grid: Grid, source: &Arc<dyn Source>) -> TensorHandle {
        let handle = |position: u64| {
            let place = Place::Source(Arc::new(Origin { source: Arc::clone(source), region: grid.box_of(position) }));
            BlockHandle::of(place, Some(Arc::clone(source)), true)
        };
        let blocks = (0..grid.n_blocks()).map(handle).collect();
        TensorHandle { dtype, grid, blocks }
    }

    /// The source that all blocks can be read from again, if there is one.
    pub fn origin(&self) -> Option<&Arc<dyn Source>> {
        let mut origins = self.blocks.iter().map(|block| block.0.origin.as_ref());
        let first = origins.next()??;
        origins.all(|origin| origin.is_some_and(|origin| Arc::ptr_eq(origin, first))).then_some(first)
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

    /// Bytes of its blocks in main memory.
    pub fn bytes_in_memory(&self) -> u64 {
        let positions = (0..self.blocks.len() as u64).zip(&self.blocks).filter(|(_, block)| block.is_in_memory());
        positions.map(|(position, _)| self.grid.n_elements_of(position) * self.dtype.size()).sum()
    }

    /// Keeps its blocks where they are: a run was granted memory for reading them there.
    pub fn pin(&self) -> Pins {
        // A place does not change while it is locked.
        let pin = |block: &BlockHandle| {
            let _place = block.place();
            block.0.pins.fetch_add(1, Ordering::Relaxed);
            Arc::downgrade(&block.0)
        };
        Pins(self.blocks.iter().map(pin).collect())
    }

    /// Moves blocks to disk until so many bytes of main memory are free, or none is left to move.
    pub fn spill(&self, file: &Arc<SpillFile>, wanted: u64) -> Result<Freed> {
        let mut freed = Freed::default();
        for block in self.blocks.iter().rev() {
            if freed.bytes >= wanted {
                break;
            }
            freed += block.spill(file)?;
        }
        Ok(freed)
    }

    /// Moves blocks that are in another file to the spill file, because the other file goes.
    pub fn leave(&self, file: &Arc<SpillFile>) -> Result<()> {
        for block in &self.blocks {
            let mut place = block.place();
            if let Place::Disk(spilled) = &*place
                && !spilled.is_in(file)
            {
                let moved = file.write(&spilled.read(&Meter::new())?)?;
                *place = Place::Disk(Arc::new(moved));
            }
        }
        Ok(())
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
            block.block_for(meter)?.copy_overlap_into(&region.lo, &mut array)?;
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
        // What another rank has is not read here.
        if self.blocks.iter().all(|block| block.is_in_memory() || block.owner().is_some()) {
            SourceAccess::Memory
        } else {
            SourceAccess::File
        }
    }

    fn is_resident(&self, region: &BoxRegion) -> bool {
        let block = self.grid.position_of(region).and_then(|position| self.blocks.get(position as usize));
        block.is_some_and(BlockHandle::is_in_memory)
    }

    /// A block that every rank has is taken for one of the first.
    fn homes(&self, here: u32) -> Option<Vec<u32>> {
        let is_here = |block: &BlockHandle| if block.is_replicated() { 0 } else { block.owner().unwrap_or(here) };
        let some_are_apart = self.blocks.iter().any(|block| !block.is_replicated());
        some_are_apart.then(|| self.blocks.iter().map(is_here).collect())
    }

    fn layout(&self) -> String {
        let elsewhere = self.blocks.iter().filter(|block| block.owner().is_some()).count();
        let spilled = self.blocks.iter().filter(|block| !block.is_in_memory()).count() - elsewhere;
        match (elsewhere, spilled) {
            (0, 0) => format!("in memory, in {} blocks", self.blocks.len()),
            (0, _) => format!("{} blocks, {spilled} of them not in memory", self.blocks.len()),
            _ => format!("{} blocks, {elsewhere} of them on other ranks", self.blocks.len()),
        }
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
            return handle.block_for(meter);
        }
        self.assembled(region, meter).map(Arc::new)
    }
}
