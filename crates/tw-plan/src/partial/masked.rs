//! Masks over block coordinates: one task per piece that selects an element.

use tw_ir::BoxRegion;
use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::plan::{PlanStep, RelId};
use tw_ir::program::MaskCounts;
use tw_ir::workflow::{BlockId, MaybeOperand, TaskKind};

use super::Partial;

/// Most blocks of values that a task reads beside each other; more are put together first.
const MAX_PARTS: u64 = 8;

impl Partial<'_> {
    /// Pieces whose runs lie in one block of the result write it one after the other.
    pub(super) fn compact(&mut self, step: &PlanStep, counts: &MaskCounts) -> Result<()> {
        let starts = counts.starts();
        let pieces: Vec<usize> = (0..counts.counts().len()).filter(|&k| counts.counts()[k] > 0).collect();
        let regions = |partial: &Self, input: RelId| -> Vec<BoxRegion> {
            let rank = partial.plan.relations[input].shape.len();
            pieces.iter().map(|&k| piece_of(partial, input, counts, k, rank)).collect()
        };
        let mut operands: Vec<Vec<BoxRegion>> = Vec::new();
        for &input in &step.inputs {
            let regions = regions(self, input);
            self.assemble_spanning(input, &regions, step)?;
            operands.push(regions);
        }
        let axis = self.plan.relations[step.outputs[0]].grid[0].clone();
        // Rows without elements have no blocks to write.
        if step.outputs.iter().all(|&output| self.plan.relations[output].n_blocks() == 0) {
            return Ok(());
        }
        let kernel = self.kernel(Kernel::Compact(counts.clone()), step.statement);
        let block_of = |k: usize| axis.tile_of(starts[pieces[k]]);
        let mut turn = 0;
        for (k, &piece) in pieces.iter().enumerate() {
            let block = block_of(k);
            let follows = k > 0 && block_of(k - 1) == block;
            let goes_on = k + 1 < pieces.len() && block_of(k + 1) == block;
            turn = if follows { turn + 1 } else { 0 };
            let kind = if follows || goes_on { TaskKind::Fold } else { TaskKind::Apply };
            let mut reads = Vec::with_capacity(step.inputs.len());
            for (&input, regions) in step.inputs.iter().zip(&operands) {
                reads.push(self.operand_for(input, &regions[k])?);
            }
            let outputs: Vec<BlockId> = step.outputs.iter().map(|&output| self.block_at(output, block)).collect();
            self.task(kind, kernel, piece as u32, turn, &reads, &outputs)?;
        }
        Ok(())
    }

    /// Every piece reads its run of the values, block by block: runs seldom end where blocks do, and putting them together would copy all values.
    pub(super) fn expand(&mut self, step: &PlanStep, counts: &MaskCounts) -> Result<()> {
        let [mask, values, data] = step.inputs[..] else { return Ok(()) };
        let starts = counts.starts();
        let n = counts.counts().len();
        let pieces: Vec<BoxRegion> = (0..n).map(|k| counts.cut().box_of(k as u64)).collect();
        let runs: Vec<BoxRegion> =
            starts.windows(2).map(|run| BoxRegion { lo: vec![run[0]], hi: vec![run[1]] }).collect();
        let parts: Vec<Vec<BoxRegion>> = runs.iter().map(|run| self.parts_of(values, run)).collect();
        for (input, regions) in [(mask, &pieces), (values, &parts.concat()), (data, &pieces)] {
            self.assemble_spanning(input, regions, step)?;
        }
        let kernel = self.kernel(Kernel::Expand(counts.clone()), step.statement);
        for (k, (piece, parts)) in pieces.iter().zip(&parts).enumerate() {
            let mut reads: Vec<MaybeOperand> = vec![self.operand_for(mask, piece)?, self.operand_for(data, piece)?];
            for part in parts {
                reads.push(self.operand_for(values, part)?);
            }
            let output = self.block_at(step.outputs[0], k as u64);
            self.task(TaskKind::Apply, kernel, k as u32, 0, &reads, &[output])?;
        }
        Ok(())
    }

    /// The parts of a run of values that lie in one block each; the run itself if those are many.
    fn parts_of(&self, values: RelId, run: &BoxRegion) -> Vec<BoxRegion> {
        let axis = &self.plan.relations[values].grid[0];
        let tiles = axis.tiles_meeting(&run.range(0));
        if run.is_empty() {
            return Vec::new();
        }
        if tiles.end - tiles.start > MAX_PARTS {
            return vec![run.clone()];
        }
        tiles.map(|tile| BoxRegion::from_ranges([axis.range(tile)]).intersect(run)).collect()
    }

    /// Puts regions together that span several blocks.
    fn assemble_spanning(&mut self, input: RelId, regions: &[BoxRegion], step: &PlanStep) -> Result<()> {
        let spanning = regions.iter().filter(|region| self.spans_blocks(input, region)).cloned().collect();
        self.assemble(input, spanning, step.statement)
    }
}

/// The box of an operand that belongs to a piece of the mask: all of its further axes.
fn piece_of(partial: &Partial<'_>, input: RelId, counts: &MaskCounts, piece: usize, rank: usize) -> BoxRegion {
    let mut region = counts.cut().box_of(piece as u64);
    let shape = &partial.plan.relations[input].shape;
    region.lo.extend((region.lo.len()..rank).map(|_| 0));
    region.hi.extend(&shape[region.hi.len()..rank]);
    region
}
