//! Sets of blocks: their boxes, their storage format and their sizes.

use super::StmtId;
use crate::dtype::DType;
use crate::format::Format;
use crate::grid::Grid;
use crate::tiling::{Axis, BoxRegion};

/// The boxes of a set of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boxes {
    /// Cut by a grid; blocks are numbered row-major.
    Grid(Grid),
    /// One box each: regions assembled from several blocks.
    List(Vec<BoxRegion>),
}

impl Boxes {
    /// How many there are.
    pub fn n_blocks(&self) -> u64 {
        match self {
            Boxes::Grid(grid) => grid.n_blocks(),
            Boxes::List(list) => list.len() as u64,
        }
    }
}

/// The bytes of a block, as far as they are known before it is computed.
///
/// Costs are estimated with [`Size::estimate`]. Promises (peaks, budgets, reservations) are made with [`Size::max`], so they hold whatever the data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// Exactly this many.
    Exact(u64),
    /// A block whose stored elements depend on data.
    Bound {
        /// About this many.
        estimate: u64,
        /// Never more than this.
        max: u64,
    },
}

impl Size {
    /// The most bytes that the block can take.
    pub fn max(self) -> u64 {
        match self {
            Size::Exact(bytes) | Size::Bound { max: bytes, .. } => bytes,
        }
    }

    /// The bytes that the block takes, as far as is known.
    pub fn estimate(self) -> u64 {
        match self {
            Size::Exact(bytes) | Size::Bound { estimate: bytes, .. } => bytes,
        }
    }
}

/// The sizes of a set of blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Every element is stored: a size follows from the box. Such a set has no array of sizes.
    Dense,
    /// One size per block, in order.
    List(Vec<Size>),
}

/// Blocks of one relation, numbered from `first` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockSet {
    /// A name for messages.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole tensor.
    pub shape: Vec<u64>,
    /// Their boxes.
    pub boxes: Boxes,
    /// How they are stored.
    pub format: Format,
    /// Their sizes: [`Sizes::Dense`] exactly if the format stores every element.
    pub sizes: Sizes,
    /// Number of the first block; [`Workflow::add_set`](super::Workflow::add_set) chooses it.
    pub first: u32,
    /// The statement that makes them.
    pub statement: StmtId,
}

impl BlockSet {
    /// Blocks that store every element in row-major order.
    pub fn dense(name: String, dtype: DType, shape: Vec<u64>, boxes: Boxes, statement: StmtId) -> BlockSet {
        let format = Format::dense(shape.len());
        BlockSet { name, dtype, shape, boxes, format, sizes: Sizes::Dense, first: 0, statement }
    }

    /// The name of the value that the blocks belong to: copies, parts of sums and states of accumulators have it with a suffix.
    pub fn value_name(&self) -> &str {
        let name = self.name.split_once(" (").map_or(self.name.as_str(), |(name, _)| name);
        name.split_once(".state").map_or(name, |(name, _)| name)
    }

    /// The number of blocks.
    pub fn n_blocks(&self) -> u64 {
        self.boxes.n_blocks()
    }

    /// The box of the block with this position in the set.
    pub fn block_box(&self, position: u64) -> BoxRegion {
        match &self.boxes {
            Boxes::List(list) => list[position as usize].clone(),
            Boxes::Grid(grid) => grid.box_of(position),
        }
    }

    /// The size of the block with this position in the set.
    pub fn block_size(&self, position: u64) -> Size {
        match (&self.sizes, &self.boxes) {
            (Sizes::List(sizes), _) => sizes[position as usize],
            (Sizes::Dense, Boxes::Grid(grid)) => Size::Exact(grid.n_elements_of(position) * self.dtype.size()),
            (Sizes::Dense, Boxes::List(list)) => Size::Exact(list[position as usize].n_elements() * self.dtype.size()),
        }
    }

    /// The most bytes of all blocks together, and of one of them. Blocks of a grid need not be looked at one by one.
    pub fn total_and_largest_bytes(&self) -> (u64, u64) {
        match (&self.sizes, &self.boxes) {
            (Sizes::Dense, Boxes::Grid(grid)) => {
                let bytes = |n: u64, length: u64| n.saturating_mul(length);
                let largest = grid.iter().map(Axis::longest).fold(self.dtype.size(), bytes);
                (grid.iter().map(Axis::extent).fold(self.dtype.size(), bytes), largest)
            }
            _ => (0..self.n_blocks()).fold((0, 0), |(total, largest): (u64, u64), position| {
                let bytes = self.block_size(position).max();
                (total.saturating_add(bytes), largest.max(bytes))
            }),
        }
    }

    /// The size of a part of the block with this position. Of a sparse block, it is not known how many of the stored elements a part has.
    pub fn part_size(&self, position: u64, part: &BoxRegion) -> Size {
        let elements = part.n_elements();
        match &self.sizes {
            Sizes::Dense => Size::Exact(elements * self.dtype.size()),
            Sizes::List(sizes) => {
                let (size, all) = (sizes[position as usize], self.block_box(position).n_elements().max(1));
                let estimate = u128::from(size.estimate()) * u128::from(elements) / u128::from(all);
                Size::Bound { estimate: (estimate as u64).min(size.max()), max: size.max() }
            }
        }
    }

    /// Bytes of the whole tensor as one dense array.
    pub fn array_bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.size(), |bytes, &n| bytes.saturating_mul(n))
    }

    /// Bytes of the list of sizes, if there is one.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.sizes {
            Sizes::Dense => 0,
            Sizes::List(sizes) => sizes.capacity() * size_of::<Size>(),
        }
    }
}
