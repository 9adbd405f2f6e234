//! Scratch space: the main memory that a task takes while it runs, besides its operands and outputs.
//!
//! Replays, reservations and budgets count it, and an engine charges its meter with it while the task runs. A test with a counting
//! allocator (`crates/tw-test/tests/scratch.rs`) compares it with what kernels allocate. Three copies of operands in contractions are not counted yet: of the matrix of a
//! matrix-vector product of a narrow type, of operands whose rows or terms are not neighbouring axes, and of semirings without a compiled kernel. Space that does not grow with blocks is not counted, nor is what functions of
//! the user allocate. What sources and sinks take is known to those who bind them.

use cranelift_entity::PrimaryMap;

use crate::contraction;
use crate::dtype::DType;
use crate::index::Idx;
use crate::kernel::{Kernel, KernelRead, SortResults, Sorting, StatementKernel};
use crate::tiling::BoxRegion;

use super::{BlockId, KernelId, TaskId, Workflow};

/// Element type and shape of a block that a function is called with, or makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub extents: Vec<u64>,
}

impl BlockShape {
    /// The number of elements.
    pub fn n_elements(&self) -> u64 {
        self.extents.iter().fold(1, |n: u64, &extent| n.saturating_mul(extent))
    }

    /// The bytes of the elements.
    pub fn n_bytes(&self) -> u64 {
        self.n_elements().saturating_mul(self.dtype.size())
    }
}

/// Rows of a block that a sort takes together, where neighbours in memory belong to different rows.
pub const ROWS_SORTED_TOGETHER: u64 = 16;

/// How the tasks of each kernel of a workflow take scratch space.
///
/// Replays and engines ask for every task. What depends on the kernel alone is found once per kernel here; most kernels take nothing.
#[derive(Clone, Debug, Default)]
pub struct ScratchSizes {
    rules: PrimaryMap<KernelId, Rule>,
}

/// How the tasks of one kernel take scratch space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Nothing,
    /// Copies of the first two operands: bytes per element, 0 for an operand that is not copied.
    Copies([u64; 2]),
    SortRun(Sorting),
    SortMerge(Sorting),
    /// The function says.
    Call,
}

impl ScratchSizes {
    /// Those of a workflow.
    pub fn of(workflow: &Workflow) -> ScratchSizes {
        ScratchSizes { rules: workflow.kernels.values().map(|entry| Rule::of(&entry.kernel)).collect() }
    }

    /// Scratch space of a task of that workflow. Loads and stores take what their source and sink say, which is not known here.
    pub fn task(&self, workflow: &Workflow, task: TaskId) -> u64 {
        let kernel = workflow.kernel(task);
        match &self.rules[kernel] {
            Rule::Nothing => 0,
            Rule::Copies(sizes) => {
                let copied = workflow.operands(task).iter().zip(sizes).filter(|(_, size)| **size > 0);
                copied.filter_map(|(operand, size)| Some((operand.expand()?, size))).fold(
                    0,
                    |sum: u64, (operand, size)| {
                        sum.saturating_add(workflow.block_box(operand.block).n_elements().saturating_mul(*size))
                    },
                )
            }
            Rule::SortRun(sorting) => match workflow.present_operands(task).next() {
                Some(operand) => scratch_of_sort(
                    *sorting,
                    workflow.sets[workflow.set_of(operand.block)].dtype,
                    &workflow.block_box(operand.block),
                ),
                None => 0,
            },
            Rule::SortMerge(sorting) => {
                let length = |&block: &BlockId| extent(&workflow.block_box(block), sorting.spec.axis as usize);
                let longest = workflow.outputs(task).iter().map(length).max().unwrap_or(0);
                let operand = workflow.present_operands(task).next();
                let dtype = operand.map(|operand| workflow.sets[workflow.set_of(operand.block)].dtype);
                dtype.map_or(0, |dtype| longest.saturating_mul(2 * item_bytes(*sorting, dtype)))
            }
            Rule::Call => {
                let Kernel::Call(function) = &workflow.kernels[kernel].kernel else { return 0 };
                let operands: Vec<BlockShape> =
                    workflow.present_operands(task).map(|operand| workflow.shape_of(operand.block)).collect();
                let results: Vec<BlockShape> =
                    workflow.outputs(task).iter().map(|&block| workflow.shape_of(block)).collect();
                function.0.scratch_bytes(&operands, &results)
            }
        }
    }
}

impl Rule {
    fn of(kernel: &Kernel) -> Rule {
        match kernel {
            Kernel::Statement(kernel) => match copied_operands(kernel) {
                Some(sizes) if sizes != [0, 0] => Rule::Copies(sizes),
                _ => Rule::Nothing,
            },
            Kernel::SortRun(sorting) => Rule::SortRun(*sorting),
            Kernel::SortMerge(sorting) => Rule::SortMerge(*sorting),
            Kernel::Call(_) => Rule::Call,
            _ => Rule::Nothing,
        }
    }
}

/// A contraction converts operands of another type than its own before it begins. One that is no matrix product over numbers copies both operands. `None` for other
/// statements.
fn copied_operands(kernel: &StatementKernel) -> Option<[u64; 2]> {
    let (Some(accum), [left, right, ..]) = (&kernel.accum, &kernel.reads[..]) else { return None };
    let [identity] = &accum.identity[..] else { return None };
    let variables = |read: &KernelRead| {
        let vars = read.idx.iter().filter_map(Idx::as_var);
        vars.fold(0u64, |vars, var| vars | 1 << (var.0 % u64::BITS))
    };
    let (of_left, of_right) = (variables(left), variables(right));
    if of_left & !of_right == 0 || of_right & !of_left == 0 {
        return None;
    }
    let dtype = identity.dtype();
    let has_products =
        matches!(dtype, DType::Bool | DType::I32 | DType::I64 | DType::F32 | DType::F64 | DType::C64 | DType::C128);
    let is_product = has_products && contraction::product_of(&kernel.code, Some(dtype)).is_some();
    Some([left, right].map(|read| match is_product {
        true if read.dtype == dtype => 0,
        true => dtype.size(),
        false => read.dtype.size(),
    }))
}

impl Workflow {
    fn shape_of(&self, block: BlockId) -> BlockShape {
        let bbox = self.block_box(block);
        let extents = bbox.lo.iter().zip(&bbox.hi).map(|(lo, hi)| hi - lo).collect();
        BlockShape { dtype: self.sets[self.set_of(block)].dtype, extents }
    }
}

/// Rows that are sorted together, as keys with or without positions, and as much again for one of them.
fn scratch_of_sort(sorting: Sorting, dtype: DType, bbox: &BoxRegion) -> u64 {
    let (axis, rank) = (sorting.spec.axis as usize, bbox.rank());
    let rows = if axis + 1 == rank { 1 } else { extent(bbox, rank.wrapping_sub(1)).min(ROWS_SORTED_TOGETHER) };
    extent(bbox, axis).saturating_mul(rows + 1).saturating_mul(item_bytes(sorting, dtype))
}

/// The extent of a box along an axis; nothing if it has no such axis, as in a plan from outside that is refused later.
fn extent(bbox: &BoxRegion, axis: usize) -> u64 {
    bbox.lo.get(axis).zip(bbox.hi.get(axis)).map_or(0, |(lo, hi)| hi.saturating_sub(*lo))
}

/// Bytes of a key, with a position if positions are wanted.
fn item_bytes(sorting: Sorting, dtype: DType) -> u64 {
    match sorting.results {
        SortResults::Values if dtype.size() <= 4 => 4,
        SortResults::Values => 8,
        _ => 16,
    }
}
