//! Blocks that leave main memory in parts.
//!
//! When a tensor is cut differently, every reader of a block takes a part of it, and the parts of many blocks meet in one task. Such a block is spilled in its
//! parts, so that a reader fetches no more than it reads. A [`Unit`] is what leaves memory and comes back: a block, or a part of one.

use std::collections::HashMap;
use std::ops::Range;

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{BlockId, Operand, TaskId, Workflow};

use super::IoMemory;

/// A block, or a part of one: blocks have their own numbers, parts come after all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit(pub(super) u32);

impl Unit {
    pub(super) fn whole(block: BlockId) -> Unit {
        Unit(block.as_u32())
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn is_block(self, workflow: &Workflow) -> bool {
        self.index() < workflow.n_blocks()
    }
}

/// The parts of all blocks that are read in parts, and the blocks that are streamed.
pub(super) struct Parts {
    n_blocks: usize,
    /// Per part, its block and its region; parts of a block are together.
    list: Vec<(BlockId, u32)>,
    /// Per block that is read in parts, its parts in the list.
    of_blocks: HashMap<BlockId, Range<u32>>,
    numbers: HashMap<(BlockId, u32), u32>,
    is_streamed: Vec<bool>,
    is_read_whole: Vec<bool>,
}

impl Parts {
    /// Finds the blocks that are worth spilling in parts: the parts that operands read are together about as large as the block, and spilling and fetching them moves fewer bytes than
    /// loading the block for each of these readers. Other readers may take all of it, unless a statement makes it.
    pub(super) fn of(workflow: &Workflow, order: &[TaskId], io: &IoMemory) -> Parts {
        let mut parts = Parts {
            n_blocks: workflow.n_blocks(),
            list: Vec::new(),
            of_blocks: HashMap::new(),
            numbers: HashMap::new(),
            is_streamed: vec![false; workflow.n_blocks()],
            is_read_whole: vec![false; workflow.n_blocks()],
        };
        let mut readers_of_parts = vec![0u32; workflow.n_blocks()];
        for &task in order {
            let n_streamed = workflow.streamed_operands(task).len();
            for (number, operand) in workflow.operands(task).iter().enumerate() {
                let Some(operand) = operand.expand() else { continue };
                let block = operand.block.index();
                let is_whole = operand.region == 0 || number < n_streamed;
                readers_of_parts[block] += u32::from(!is_whole);
                parts.is_streamed[block] |= number < n_streamed;
                parts.is_read_whole[block] |= is_whole;
            }
        }
        let mut is_result = vec![false; workflow.n_blocks()];
        // Statements are often cheap to run again, which takes no copy of a block on disk.
        let mut is_of_statement = vec![false; workflow.n_blocks()];
        for &task in order {
            if matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Statement(_) | Kernel::Fill(_)) {
                workflow.outputs(task).iter().for_each(|block| is_of_statement[block.index()] = true);
            }
        }
        for output in &workflow.outputs {
            let first = workflow.sets[output.set].first as usize;
            is_result[first..first + workflow.sets[output.set].n_blocks() as usize].fill(true);
        }
        let mut found: Vec<(BlockId, u32)> = Vec::new();
        for &task in order {
            let operands = workflow.operands(task)[workflow.streamed_operands(task).len()..].iter();
            let operands = operands.filter_map(|operand| operand.expand());
            let in_parts = operands.filter(|operand| operand.region != 0 && !is_result[operand.block.index()]);
            found.extend(in_parts.map(|operand| (operand.block, operand.region)));
        }
        found.sort_unstable_by_key(|&(block, region)| (block.as_u32(), region));
        found.dedup();
        let loaded: Vec<_> = workflow.loaded_sets().map(|(set, _)| set).collect();
        for of_block in found.chunk_by(|a, b| a.0 == b.0) {
            let block = of_block[0].0;
            let bytes = workflow.block_bytes(block);
            let size = |&(block, region): &(BlockId, u32)| workflow.operand_size(Operand { block, region }).max();
            let moved = of_block.iter().map(size).fold(0u64, u64::saturating_add);
            let again = match loaded.contains(&workflow.set_of(block)) {
                true => bytes.saturating_mul(readers_of_parts[block.index()] as u64),
                false => bytes.saturating_mul(3),
            };
            let may_be_both = !parts.is_read_whole[block.index()] || !is_of_statement[block.index()];
            if may_be_both && !io.is_resident(block) && moved.saturating_mul(2) < again {
                let first = parts.list.len() as u32;
                parts.list.extend_from_slice(of_block);
                parts.of_blocks.insert(block, first..parts.list.len() as u32);
            }
        }
        let numbered = parts.list.iter().zip(parts.n_blocks as u32..);
        parts.numbers = numbered.map(|(&part, number)| (part, number)).collect();
        parts
    }

    /// Blocks and parts together.
    pub(super) fn n_units(&self) -> usize {
        self.n_blocks + self.list.len()
    }

    /// The part that an operand reads, or its block if that is not read in parts.
    pub(super) fn unit(&self, operand: Operand) -> Unit {
        let part = self.numbers.get(&(operand.block, operand.region)).copied();
        part.map_or(Unit::whole(operand.block), Unit)
    }

    pub(super) fn block(&self, unit: Unit) -> BlockId {
        match unit.index().checked_sub(self.n_blocks) {
            Some(part) => self.list[part].0,
            None => BlockId::from_u32(unit.0),
        }
    }

    /// The region of a part; 0 for a block.
    pub(super) fn region(&self, unit: Unit) -> u32 {
        unit.index().checked_sub(self.n_blocks).map_or(0, |part| self.list[part].1)
    }

    pub(super) fn bytes(&self, workflow: &Workflow, unit: Unit) -> u64 {
        workflow.operand_size(Operand { block: self.block(unit), region: self.region(unit) }).max()
    }

    /// True if a block that is spilled in parts has readers that take all of it, too.
    pub(super) fn is_also_read_whole(&self, block: BlockId) -> bool {
        self.is_read_whole[block.index()]
    }

    /// True if a block is spilled in the parts that its readers take.
    pub(super) fn is_read_in_parts(&self, block: BlockId) -> bool {
        self.of_blocks.contains_key(&block)
    }

    /// The parts of a block.
    pub(super) fn of_block(&self, block: BlockId) -> impl Iterator<Item = Unit> + use<> {
        let first = self.n_blocks as u32;
        let range = self.of_blocks.get(&block).cloned().unwrap_or(0..0);
        range.map(move |part| Unit(first + part))
    }

    /// True if a block can leave memory before the task that reads it: it is then on disk, and is not made again.
    pub(super) fn leaves_early(&self, block: BlockId) -> bool {
        self.is_read_in_parts(block) || self.is_streamed[block.index()]
    }
}
