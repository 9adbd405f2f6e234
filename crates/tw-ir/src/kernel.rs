//! Kernel signatures: what one task computes, without saying how.
//!
//! A kernel is shared by all tasks of one statement. What differs per task is its `point` (which tile of the iteration space), its operand
//! blocks and its output blocks; the boxes of those blocks, in coordinates of the whole tensor, tell a kernel everything else.
//!
//! Kernels of fold tasks update their outputs in place. The first task of a chain finds uninitialised outputs and starts from the identity (or
//! the fill value); later ones continue.

use std::ops::Range;

use crate::accum::Accum;
use crate::dtype::{DType, Scalar};
use crate::grid::Grid;
use crate::index::{Edge, Idx};
use crate::program::{FunctionRef, MaskCounts};
use crate::scalar::ScalarCode;
use crate::spec::{FinishSpec, GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use crate::tiling::BoxRegion;
use crate::workflow::{SinkId, SourceId};

/// How a statement kernel reads one operand. The block given may hold only part of the tensor, but it holds all that the task's box reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelRead {
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole tensor: edge rules refer to it.
    pub shape: Vec<u64>,
    /// One expression per axis, giving coordinates of the whole tensor.
    pub idx: Vec<Idx>,
    /// The edge rule.
    pub edge: Edge,
    /// The value read outside with [`Edge::Fill`], and everywhere if the task has no block for this operand.
    pub fill: Scalar,
}

/// An index statement over one box of its iteration space.
///
/// `code` is as in [`IndexStmt`](crate::program::IndexStmt). With an accumulator the outputs are its state, one block per component; results are
/// finished by [`Kernel::Finish`]. A contribution whose output coordinate lies outside the output block is dropped: another task writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatementKernel {
    /// The tiles of each variable; a task's point numbers them row-major.
    pub vars: Grid,
    /// Operands in order.
    pub reads: Vec<KernelRead>,
    /// Guard and bodies.
    pub code: ScalarCode,
    /// True if the first result of `code` is a guard.
    pub has_guard: bool,
    /// Lift, identity and combine; finish is not the kernel's business.
    pub accum: Option<Accum>,
    /// Output coordinates, one expression per axis.
    pub out_idx: Vec<Idx>,
    /// The edge rule of the whole output.
    pub out_edge: Edge,
    /// Shape of the whole output.
    pub out_shape: Vec<u64>,
    /// Without an accumulator: what the first task of a block writes where no point does, one per output.
    pub out_fill: Vec<Scalar>,
}

impl StatementKernel {
    /// The box of variables a point stands for.
    pub fn var_box(&self, point: u64) -> BoxRegion {
        self.vars.box_of(point)
    }

    /// The number of elements of that box, without the box.
    pub fn n_points(&self, point: u64) -> u64 {
        self.vars.n_elements_of(point)
    }
}

/// The computation of one task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// The output block, from the source with this number.
    Load {
        /// One of the workflow's sources.
        source: SourceId,
    },
    /// One box of an index statement. Operands: one block per read (or none). Outputs: results, or the state of the accumulator.
    Statement(StatementKernel),
    /// Every output filled with its value: blocks that no contribution reaches.
    Fill(Vec<Scalar>),
    /// Folds the state in the operands into the state in the outputs, element by element: `outputs = combine(outputs, operands)`.
    Combine(Accum),
    /// Operands: state blocks. Outputs: results.
    Finish(FinishSpec),
    /// Copies operands into the output where their boxes overlap, after moving operand boxes up by `shift` along `axis`.
    Place {
        /// The axis moved along.
        axis: u32,
        /// The distance.
        shift: u64,
    },
    /// Aggregate of a block along an axis. Operands: bodies. Outputs: state, of length 1 along the axis.
    ScanTotal {
        /// The accumulator.
        accum: Accum,
        /// Along this axis.
        axis: u32,
        /// From the end towards the start.
        reverse: bool,
    },
    /// Operands: carried state, then totals. Outputs: `combine(carried, totals)`.
    ScanCarry(Accum),
    /// Running aggregate inside a block. Operands: bodies, then (unless the block is the first) the state carried in. Outputs: results. What
    /// the first element of an exclusive scan sees is an empty group.
    ScanBlock(ScanSpec),
    /// Elements of one or several data blocks. Operands: data blocks that are neighbours along the gathered axes, in row-major order, then one
    /// index block per gathered axis. Elements whose index lies outside the data blocks are left alone: another task of the chain writes them.
    /// With [`Edge::Fill`] the first task fills the output with `fill`.
    Gather {
        /// Axes and edge rule.
        spec: GatherSpec,
        /// Shape of the whole data tensor.
        shape: Vec<u64>,
        /// The value of elements outside with [`Edge::Fill`].
        fill: Scalar,
    },
    /// Contributions to one block of results. Operands: one index block per scattered axis, then one value block per body. Outputs: state.
    Scatter {
        /// Axes, edge rule and accumulator.
        spec: ScatterSpec,
        /// Shape of the whole result.
        shape: Vec<u64>,
    },
    /// What one piece of a mask selects; the task's point is the number of the piece. Operands: mask, then data, exactly the piece. Outputs: one
    /// block per data operand, with room for the run of the piece, which alone is written.
    Compact(MaskCounts),
    /// Values put where one piece of a mask holds; the task's point is the number of the piece. Operands: mask, values (none if there is no place
    /// for any), data. Output: the piece.
    Expand(MaskCounts),
    /// Sorts one block along an axis. Outputs: values, their positions along the axis of the whole tensor, or both. Outputs that are shorter than
    /// the block hold the first elements of the order.
    SortRun(Sorting),
    /// Merges sorted runs. Operands: values of every run along the axis, then (unless only values are wanted) positions of every run. Outputs:
    /// for each of one or several output blocks the part of the merged values and positions that belongs to it.
    SortMerge(Sorting),
    /// A block function: operands in, results out.
    Call(FunctionRef),
    /// Writes the operand block to the sink with this number. No outputs.
    Store {
        /// One of the workflow's sinks.
        sink: SinkId,
    },
}

/// A stable sort along an axis, and its requested results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sorting {
    /// The axis and the order.
    pub spec: SortSpec,
    /// The requested results.
    pub results: SortResults,
}

/// The requested results of a sort. A sort of values alone does not carry positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortResults {
    /// The sorted values and the positions they had.
    Both,
    /// The sorted values.
    Values,
    /// The positions they had.
    Positions,
}

/// Bytes that a kernel keeps in memory of each operand that it reads where it lies on disk.
pub const STREAM_PIECE: u64 = 16 << 10;

impl Kernel {
    /// Of so many operands, those that a task may read on disk, a part at a time: no more than a part of them has to be in main memory.
    ///
    /// A merge looks at every run from its beginning to its end. A gather from several data blocks takes them one after the other.
    pub fn streamed_operands(&self, n_operands: usize) -> Range<usize> {
        match self {
            Kernel::SortMerge(_) => 0..n_operands,
            Kernel::Gather { spec: GatherSpec { axes, .. }, .. } if n_operands > axes.len() + 1 => {
                0..n_operands - axes.len()
            }
            _ => 0..0,
        }
    }

    /// A word for messages and text.
    pub fn name(&self) -> &'static str {
        match self {
            Kernel::Load { .. } => "load",
            Kernel::Statement(_) => "statement",
            Kernel::Fill(_) => "fill",
            Kernel::Combine(_) => "combine",
            Kernel::Finish(_) => "finish",
            Kernel::Place { .. } => "place",
            Kernel::ScanTotal { .. } => "scan_total",
            Kernel::ScanCarry(_) => "scan_carry",
            Kernel::ScanBlock(_) => "scan_block",
            Kernel::Gather { .. } => "gather",
            Kernel::Scatter { .. } => "scatter",
            Kernel::Compact(_) => "compact",
            Kernel::Expand(_) => "expand",
            Kernel::SortRun(_) => "sort_run",
            Kernel::SortMerge(_) => "sort_merge",
            Kernel::Call(_) => "call",
            Kernel::Store { .. } => "store",
        }
    }
}
