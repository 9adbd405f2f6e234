//! Contributions to a block, as chains and a reduction tree.

use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::plan::PlanStep;
use tw_ir::workflow::{BlockId, BlockSetId, Boxes, KernelId, MaybeOperand, Operand, TaskKind};
use tw_ir::{Accum, Scalar};

use super::Partial;

/// The blocks and kernels that contributions to the outputs of one step go through.
pub(super) struct Chains {
    /// Output sets of every chain: the first chain writes the step's outputs, the others partial results.
    sets: Vec<Vec<BlockSetId>>,
    kernel: KernelId,
    combine: Option<KernelId>,
    fill: KernelId,
}

impl Chains {
    /// Prepares `n` chains. `fill` is the value of an output block without contributions.
    pub(super) fn new(
        partial: &mut Partial<'_>,
        step: &PlanStep,
        kernel: Kernel,
        accum: Option<&Accum>,
        fill: Vec<Scalar>,
        n: u32,
    ) -> Result<Chains> {
        let first: Vec<BlockSetId> = step.outputs.iter().map(|r| partial.sets[r]).collect();
        let mut sets = vec![first];
        for chain in 1..n {
            let mut partials = Vec::new();
            for &output in &step.outputs {
                let relation = &partial.plan.relations[output];
                let name = format!("{} (chain {chain})", relation.name);
                let boxes = Boxes::Grid(relation.grid.clone());
                partials.push(partial.add_set(&name, relation.dtype, &relation.shape, boxes, step.statement)?);
            }
            sets.push(partials);
        }
        let combine = match accum {
            Some(accum) if n > 1 => Some(partial.kernel(Kernel::Combine(accum.clone()), step.statement)),
            _ => None,
        };
        let fill = partial.kernel(Kernel::Fill(fill), step.statement);
        let kernel = partial.kernel(kernel, step.statement);
        Ok(Chains { sets, kernel, combine, fill })
    }

    fn blocks(&self, partial: &Partial<'_>, chain: usize, position: u64) -> Vec<BlockId> {
        self.sets[chain].iter().map(|&set| partial.workflow.block(set, position)).collect()
    }

    /// Emits the tasks for one output block: `contributions` in order of their keys, each with the operands that `operands` finds.
    pub(super) fn emit(
        &self,
        partial: &mut Partial<'_>,
        position: u64,
        contributions: &[u32],
        mut operands: impl FnMut(&mut Partial<'_>, u32, &mut Vec<MaybeOperand>) -> Result<()>,
    ) -> Result<()> {
        let n = contributions.len();
        if n == 0 {
            let outputs = self.blocks(partial, 0, position);
            return partial.task(TaskKind::Apply, self.fill, 0, 0, &[], &outputs);
        }
        let n_chains = self.sets.len().min(n);
        let mut lengths = Vec::with_capacity(n_chains);
        let mut scratch = Vec::new();
        for chain in 0..n_chains {
            let outputs = self.blocks(partial, chain, position);
            let part = &contributions[chain * n / n_chains..(chain + 1) * n / n_chains];
            for (k, &point) in part.iter().enumerate() {
                scratch.clear();
                operands(partial, point, &mut scratch)?;
                let kind = if n == 1 { TaskKind::Apply } else { TaskKind::Fold };
                partial.task(kind, self.kernel, point, k as u32, &scratch, &outputs)?;
            }
            lengths.push(part.len() as u32);
        }
        let Some(combine) = self.combine else { return Ok(()) };
        // A binary tree over neighbouring chains: its shape depends on their number alone.
        let mut stride = 1;
        while stride < n_chains {
            for chain in (0..n_chains - stride).step_by(2 * stride) {
                let outputs = self.blocks(partial, chain, position);
                let from = self.blocks(partial, chain + stride, position);
                let from: Vec<MaybeOperand> = from.into_iter().map(|block| Operand::whole(block).into()).collect();
                partial.task(TaskKind::Fold, combine, 0, lengths[chain], &from, &outputs)?;
                lengths[chain] += 1;
            }
            stride *= 2;
        }
        Ok(())
    }
}
