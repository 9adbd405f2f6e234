//! Sorting over block coordinates: sorted runs, then an exact merge by rank.
//!
//! Each block is sorted by the digits of integer keys. Then each output block takes its own ranks out of all runs. The result is exact and stable for ragged tiles, unlike that of
//! merge networks. If there are many output blocks, one task merges several neighbours, so that the plan grows linearly with the length. All runs of a fibre are live while
//! it merges. Positions are carried only if a statement reads them. If only the first elements are wanted, each run keeps no more than those.

use std::ops::Range;

use tw_ir::error::Result;
use tw_ir::kernel::{Kernel, SortResults, Sorting};
use tw_ir::plan::PlanStep;
use tw_ir::workflow::{BlockId, BlockSetId, Boxes, Operand, TaskKind};
use tw_ir::{BoxRegion, DType};

use super::{MAX_OPERANDS, Odometer, Partial, check_count};

/// A fibre is merged by no more tasks than this: enough for the threads of any machine.
const MAX_MERGES: u64 = 128;
/// All merges of a fibre together name no more runs than this, or one of them does it all: every merge reads all runs.
const MAX_RUNS_OF_MERGES: u64 = 1 << 22;

impl Partial<'_> {
    /// Sorted runs per block; output blocks then merge their own ranks out of all runs of their fibre. Neighbours are merged by one task where a
    /// task for each would make the plan grow with the square of their number.
    ///
    /// If only the first elements are wanted, each run keeps no more than those, so the merge is short for any input.
    pub(super) fn sort(&mut self, step: &PlanStep, sorting: Sorting) -> Result<()> {
        let k = sorting.spec.axis as usize;
        let input = self.plan.relations[step.inputs[0]].clone();
        let output = self.plan.relations[step.outputs[0]].clone();
        let n_tiles = input.grid[k].n_tiles();
        if output.n_blocks() == 0 {
            return Ok(());
        }
        if n_tiles <= 1 {
            return self.block_by_block(step, Kernel::SortRun(sorting));
        }
        let n_outputs = output.grid[k].n_tiles();
        let n_together = n_outputs.div_ceil((MAX_RUNS_OF_MERGES / n_tiles).clamp(1, MAX_MERGES));
        let mut merges: Vec<Range<u64>> = output.grid.iter().map(|axis| 0..axis.n_tiles()).collect();
        merges[k] = 0..n_outputs.div_ceil(n_together);
        let n_merges = merges.iter().fold(1u64, |n, range| n.saturating_mul(range.end));
        check_count(n_merges.saturating_mul(n_tiles), MAX_OPERANDS, "operands of tasks")?;
        let kept = output.shape[k];
        let boxes: Vec<BoxRegion> =
            (0..input.n_blocks()).map(|position| run_box(input.grid.box_of(position), k, kept)).collect();
        let mut runs: Vec<BlockSetId> = Vec::new();
        let (run_results, types) = match sorting.results {
            SortResults::Values => (SortResults::Values, &[input.dtype][..]),
            SortResults::Both | SortResults::Positions => (SortResults::Both, &[input.dtype, DType::I64][..]),
        };
        for &dtype in types {
            let name = format!("{} (runs)", input.name);
            runs.push(self.add_set(&name, dtype, &input.shape, Boxes::List(boxes.clone()), step.statement)?);
        }
        let run = self.kernel(Kernel::SortRun(Sorting { results: run_results, ..sorting }), step.statement);
        let merge = self.kernel(Kernel::SortMerge(sorting), step.statement);
        for position in 0..input.n_blocks() {
            let outputs: Vec<BlockId> = runs.iter().map(|&set| self.workflow.block(set, position)).collect();
            let operand = self.whole(step.inputs[0], position);
            self.task(TaskKind::Apply, run, 0, 0, &[operand], &outputs)?;
        }
        for mut coords in Odometer::new(merges) {
            let first = coords[k] * n_together;
            let mut operands = Vec::with_capacity(runs.len() * n_tiles as usize);
            for &set in &runs {
                for tile in 0..n_tiles {
                    coords[k] = tile;
                    let block = self.workflow.block(set, input.grid.position(&coords));
                    operands.push(Operand::whole(block).into());
                }
            }
            let mut outputs: Vec<BlockId> = Vec::with_capacity(step.outputs.len() * n_together as usize);
            for tile in first..(first + n_together).min(n_outputs) {
                coords[k] = tile;
                let position = output.grid.position(&coords);
                outputs.extend(step.outputs.iter().map(|&relation| self.block_at(relation, position)));
            }
            self.task(TaskKind::Apply, merge, 0, 0, &operands, &outputs)?;
        }
        Ok(())
    }
}

/// The position of a run: at the start of its block, no longer than the kept elements.
fn run_box(mut bbox: BoxRegion, axis: usize, kept: u64) -> BoxRegion {
    bbox.hi[axis] = bbox.hi[axis].min(bbox.lo[axis] + kept);
    bbox
}
