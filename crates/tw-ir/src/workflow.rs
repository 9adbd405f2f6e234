//! The third level: tasks over blocks.
//!
//! Struct of arrays with dense ids, about 40 bytes a task. The blocks of one relation are numbered consecutively, so a block's box follows
//! from its number.

use std::collections::HashMap;
use std::sync::Arc;

use cranelift_entity::packed_option::{PackedOption, ReservedValue};
use cranelift_entity::{PrimaryMap, entity_impl};

use crate::array::Array;
use crate::dtype::DType;
use crate::kernel::{Kernel, STREAM_PIECE};
use crate::program::{NodeId, TensorType};
use crate::span::Span;
use crate::tiling::BoxRegion;

mod scratch;
mod set;
mod sizes;
#[cfg(test)]
mod tests;
mod verify;

pub use scratch::{BlockShape, ROWS_SORTED_TOGETHER, ScratchSizes};
pub use set::{BlockSet, Boxes, Size, Sizes};
pub use sizes::BlockSizes;
pub use verify::verify;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);)*
    };
}

ids! {
    /// A task.
    TaskId = "t";
    /// A block.
    BlockId = "b";
    /// The blocks of one relation.
    BlockSetId = "set";
    /// A kernel shared by the tasks of a statement.
    KernelId = "k";
    /// A statement of the user.
    StmtId = "s";
    /// Where loads read.
    SourceId = "source";
    /// Where stores write.
    SinkId = "sink";
}

/// A statement of the user, as errors and explain name it.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Short text: the source line, or the operation.
    pub label: String,
    /// Its place in the user's text.
    pub span: Span,
    /// The node of the lowered program that it computes. Not part of the structure, and not of the text, which does not have that program.
    pub node: Option<NodeId>,
}

impl PartialEq for Statement {
    fn eq(&self, other: &Statement) -> bool {
        self.label == other.label && self.span == other.span
    }
}
impl Eq for Statement {}

/// The kind of a task: how it treats its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// Brings a block in from a source.
    Load,
    /// Makes its outputs.
    Apply,
    /// Contributes to its outputs, in the order of positions.
    Fold,
}

/// A block read by a task, or the part of it that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The block.
    pub block: BlockId,
    /// 0 for the whole block; otherwise one more than a position in [`Workflow::regions`]. Transfers send only this region.
    pub region: u32,
}

impl Operand {
    /// The whole of a block.
    pub fn whole(block: BlockId) -> Operand {
        Operand { block, region: 0 }
    }
}

impl ReservedValue for Operand {
    fn reserved_value() -> Operand {
        Operand::whole(BlockId::reserved_value())
    }
    fn is_reserved_value(&self) -> bool {
        self.block.is_reserved_value()
    }
}

/// An operand, or none where it would lie wholly outside its tensor. As small as an operand.
pub type MaybeOperand = PackedOption<Operand>;

/// What a source is.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "programs have few sources, and most are inputs")]
pub enum SourceDecl {
    /// An input bound by name.
    Input {
        /// Its name.
        name: String,
        /// Its type.
        ty: TensorType,
    },
    /// Data known while planning.
    Constant(Arc<Array>),
}

impl PartialEq for SourceDecl {
    fn eq(&self, other: &SourceDecl) -> bool {
        match (self, other) {
            (SourceDecl::Input { name: a, ty: x }, SourceDecl::Input { name: b, ty: y }) => a == b && x == y,
            (SourceDecl::Constant(a), SourceDecl::Constant(b)) => a.same_bits(b),
            _ => false,
        }
    }
}

/// What a sink is: a file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkDecl {
    /// Path of the file.
    pub path: String,
    /// Element type, as the user sees it: times lie in blocks as integers.
    pub dtype: DType,
    /// Shape of the whole tensor.
    pub shape: Vec<u64>,
}

/// A result that outlives the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputDecl {
    /// Its name.
    pub name: String,
    /// Its blocks, a grid.
    pub set: BlockSetId,
    /// The user's element type; blocks store times as integers.
    pub dtype: DType,
}

/// A kernel and the statement it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelEntry {
    /// The kernel of its tasks.
    pub kernel: Kernel,
    /// The statement it serves.
    pub statement: StmtId,
}

/// All tasks of a segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workflow {
    /// Statements tasks belong to.
    pub statements: PrimaryMap<StmtId, Statement>,
    /// The sources of loads.
    pub sources: PrimaryMap<SourceId, SourceDecl>,
    /// The sinks of stores.
    pub sinks: PrimaryMap<SinkId, SinkDecl>,
    /// Kernels.
    pub kernels: PrimaryMap<KernelId, KernelEntry>,
    /// Sets of blocks, in the order of their numbers.
    pub sets: PrimaryMap<BlockSetId, BlockSet>,
    /// Results.
    pub outputs: Vec<OutputDecl>,
    /// Parts of blocks, in coordinates of the whole tensor.
    pub regions: Vec<BoxRegion>,
    n_blocks: u32,
    block_sets: Vec<BlockSetId>,
    kinds: Vec<TaskKind>,
    task_kernels: Vec<KernelId>,
    points: Vec<u32>,
    positions: Vec<u32>,
    operand_ends: Vec<u32>,
    operands: Vec<MaybeOperand>,
    output_ends: Vec<u32>,
    task_outputs: Vec<BlockId>,
}

impl Workflow {
    /// Adds a set of blocks and numbers them; `None` if there are more than fit.
    pub fn add_set(&mut self, set: BlockSet) -> Option<BlockSetId> {
        let set = BlockSet { first: self.n_blocks, ..set };
        let n = u32::try_from(set.n_blocks()).ok()?;
        self.n_blocks = self.n_blocks.checked_add(n).filter(|&n| n < u32::MAX)?;
        let id = self.sets.push(set);
        self.block_sets.resize(self.n_blocks as usize, id);
        Some(id)
    }

    /// Adds a task.
    pub fn add_task(
        &mut self,
        kind: TaskKind,
        kernel: KernelId,
        point: u32,
        position: u32,
        operands: &[MaybeOperand],
        outputs: &[BlockId],
    ) -> TaskId {
        let id = TaskId(self.kinds.len() as u32);
        self.kinds.push(kind);
        self.task_kernels.push(kernel);
        self.points.push(point);
        self.positions.push(position);
        self.operands.extend_from_slice(operands);
        self.operand_ends.push(self.operands.len() as u32);
        self.task_outputs.extend_from_slice(outputs);
        self.output_ends.push(self.task_outputs.len() as u32);
        id
    }

    /// The same statements, kernels and blocks, and no tasks.
    pub fn without_tasks(&self) -> Workflow {
        Workflow {
            kinds: Vec::new(),
            task_kernels: Vec::new(),
            points: Vec::new(),
            positions: Vec::new(),
            operand_ends: Vec::new(),
            operands: Vec::new(),
            output_ends: Vec::new(),
            task_outputs: Vec::new(),
            statements: self.statements.clone(),
            sources: self.sources.clone(),
            sinks: self.sinks.clone(),
            kernels: self.kernels.clone(),
            sets: self.sets.clone(),
            outputs: self.outputs.clone(),
            regions: self.regions.clone(),
            n_blocks: self.n_blocks,
            block_sets: self.block_sets.clone(),
        }
    }

    /// Number of tasks.
    pub fn n_tasks(&self) -> usize {
        self.kinds.len()
    }
    /// Number of operands of all tasks.
    pub fn n_operands(&self) -> usize {
        self.operands.len()
    }
    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.n_blocks as usize
    }
    /// Every task, in order of creation.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + use<> {
        (0..self.kinds.len() as u32).map(TaskId)
    }
    /// The kind of a task: how it treats its outputs.
    pub fn kind(&self, task: TaskId) -> TaskKind {
        self.kinds[task.0 as usize]
    }
    /// The kernel of a task.
    pub fn kernel(&self, task: TaskId) -> KernelId {
        self.task_kernels[task.0 as usize]
    }
    /// Which tile of the iteration space a task covers.
    pub fn point(&self, task: TaskId) -> u32 {
        self.points[task.0 as usize]
    }
    /// Position of a fold in its chain; 0 for other tasks.
    pub fn position(&self, task: TaskId) -> u32 {
        self.positions[task.0 as usize]
    }
    /// The statement a task serves.
    pub fn statement(&self, task: TaskId) -> StmtId {
        self.kernels[self.kernel(task)].statement
    }
    /// The operands of a task.
    pub fn operands(&self, task: TaskId) -> &[MaybeOperand] {
        let t = task.0 as usize;
        let start = if t == 0 { 0 } else { self.operand_ends[t - 1] };
        &self.operands[start as usize..self.operand_ends[t] as usize]
    }
    /// The operands of a task that have a block.
    pub fn present_operands(&self, task: TaskId) -> impl Iterator<Item = Operand> {
        self.operands(task).iter().filter_map(|operand| operand.expand())
    }
    /// The blocks that a task computes or contributes to.
    pub fn outputs(&self, task: TaskId) -> &[BlockId] {
        let t = task.0 as usize;
        let start = if t == 0 { 0 } else { self.output_ends[t - 1] };
        &self.task_outputs[start as usize..self.output_ends[t] as usize]
    }
    /// The set a block belongs to.
    pub fn set_of(&self, block: BlockId) -> BlockSetId {
        self.block_sets[block.0 as usize]
    }
    /// The block at a position of a set.
    pub fn block(&self, set: BlockSetId, position: u64) -> BlockId {
        BlockId(self.sets[set].first + position as u32)
    }
    /// A block's box, in coordinates of its tensor.
    pub fn block_box(&self, block: BlockId) -> BoxRegion {
        let set = &self.sets[self.set_of(block)];
        set.block_box((block.0 - set.first) as u64)
    }
    /// A block's size in bytes.
    pub fn block_size(&self, block: BlockId) -> Size {
        let set = &self.sets[self.set_of(block)];
        set.block_size((block.0 - set.first) as u64)
    }
    /// The most bytes that a block can take: what peaks, budgets and reservations count.
    pub fn block_bytes(&self, block: BlockId) -> u64 {
        self.block_size(block).max()
    }
    /// The size of a part of a block.
    pub fn part_size(&self, block: BlockId, part: &BoxRegion) -> Size {
        let set = &self.sets[self.set_of(block)];
        set.part_size((block.0 - set.first) as u64, part)
    }
    /// The sets whose blocks are only loaded, with their sources.
    pub fn loaded_sets(&self) -> impl Iterator<Item = (BlockSetId, SourceId)> {
        // A statement that loads makes nothing else.
        let mut by_statement: HashMap<StmtId, SourceId> = HashMap::new();
        for entry in self.kernels.values() {
            if let Kernel::Load { source } = entry.kernel {
                by_statement.insert(entry.statement, source);
            }
        }
        self.sets.iter().filter_map(move |(id, set)| Some((id, *by_statement.get(&set.statement)?)))
    }
    /// The size of the region that an operand reads.
    pub fn operand_size(&self, operand: Operand) -> Size {
        match operand.region {
            0 => self.block_size(operand.block),
            region => self.part_size(operand.block, &self.regions[region as usize - 1]),
        }
    }
    /// The operands that a task may read on disk.
    pub fn streamed_operands(&self, task: TaskId) -> &[MaybeOperand] {
        let operands = self.operands(task);
        &operands[self.kernels[self.kernel(task)].kernel.streamed_operands(operands.len())]
    }
    /// Bytes of main memory that a task takes besides its blocks if it reads operands on disk.
    pub fn streaming_bytes(&self, task: TaskId) -> u64 {
        let streamed = self.streamed_operands(task).iter().filter_map(|operand| operand.expand());
        let sizes = streamed.map(|operand| self.block_bytes(operand.block));
        match &self.kernels[self.kernel(task)].kernel {
            Kernel::SortMerge(_) => sizes.fold(0, |sum, bytes| sum.saturating_add(bytes.min(STREAM_PIECE))),
            _ => sizes.max().unwrap_or(0),
        }
    }
    /// Bytes the task arrays take, for the report of planning overhead.
    pub fn heap_bytes(&self) -> usize {
        self.kinds.capacity() * size_of::<TaskKind>()
            + (self.task_kernels.capacity() + self.points.capacity() + self.positions.capacity()) * 4
            + (self.operand_ends.capacity() + self.output_ends.capacity() + self.task_outputs.capacity()) * 4
            + self.block_sets.capacity() * 4
            + self.operands.capacity() * size_of::<MaybeOperand>()
            + self.sets.values().map(BlockSet::heap_bytes).sum::<usize>()
            + self.regions.iter().map(|r| size_of::<BoxRegion>() + 16 * r.rank()).sum::<usize>()
    }
}
