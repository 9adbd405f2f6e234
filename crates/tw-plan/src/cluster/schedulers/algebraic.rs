//! Tasks where the grid of their statement says.

use std::collections::BTreeMap;

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::program::ValueId;
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

use super::{Scheduler, is_copy, place_loads};
use crate::cluster::grids::Grids;
use crate::cluster::held::Before;
use crate::cluster::layout::Layouts;
use crate::cluster::machine::Machine;
use crate::cluster::reductions::Assignment;

/// Places tasks by grids that were searched for their program. Statements without a grid run where they can begin soonest.
pub struct Algebraic<'a> {
    /// A word for reports: who made the grids.
    pub name: &'static str,
    /// The grids.
    pub grids: &'a Grids,
    /// The value of every set of blocks, where it is one of the program; other sets are made on the way.
    pub values: &'a [Option<ValueId>],
}

impl Scheduler for Algebraic<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        let layouts = Layouts::new(workflow, machine);
        let mut assignment = Assignment::together(workflow);
        place_loads(workflow, &layouts, before, &mut assignment);
        for block in (0..workflow.n_blocks()).map(BlockId::new) {
            if let Some(home) = self.home(workflow, block) {
                assignment.homes[block.index()] = home;
            }
        }
        let readers = self.readers(workflow);
        let seconds = machine.task_seconds(workflow);
        // What workers do for statements without a grid.
        let mut work = vec![0.0; machine.n_workers()];
        for task in workflow.tasks() {
            let site = match self.planned_site(workflow, task, &assignment, &readers) {
                Some(site) => site,
                None => {
                    let site = soonest(workflow, task, &assignment, &layouts, machine, &work);
                    work[site as usize] += seconds[task.index()];
                    site
                }
            };
            assignment.tasks[task.index()] = site;
            // Contributions meet where the block is wanted; everything else is where it is made.
            let first = workflow.outputs(task).first().copied();
            let free = first.is_some_and(|block| self.home(workflow, block).is_none());
            if workflow.kind(task) != TaskKind::Fold || (free && workflow.position(task) == 0) {
                workflow.outputs(task).iter().for_each(|block| assignment.homes[block.index()] = site);
            }
        }
        Ok(assignment)
    }
}

impl Algebraic<'_> {
    /// The worker that owns a block.
    fn home(&self, workflow: &Workflow, block: BlockId) -> Option<u32> {
        let value = (*self.values.get(workflow.set_of(block).index())?)?;
        let owners = self.grids.owners(value)?;
        let region = workflow.block_box(block);
        Some(owners.owner(&middle(&region.lo, &region.hi)))
    }

    /// The worker of a task whose statement has a grid.
    fn on_grid(&self, workflow: &Workflow, task: TaskId) -> Option<u32> {
        let kernel = &workflow.kernels[workflow.kernel(task)].kernel;
        // Statements of the plan are numbered as the nodes of the program.
        let (mesh, variables) = self.grids.mesh(workflow.statement(task).index())?;
        let Kernel::Statement(statement) = kernel else { return None };
        let region = statement.var_box(workflow.point(task) as u64);
        (region.rank() == variables.len()).then(|| mesh.worker_at(&middle(&region.lo, &region.hi), variables) as u32)
    }

    /// Who first reads each block, where its statement has a grid.
    fn readers(&self, workflow: &Workflow) -> Vec<Option<u32>> {
        let mut readers = vec![None; workflow.n_blocks()];
        for task in workflow.tasks() {
            let site = self.on_grid(workflow, task);
            for operand in workflow.present_operands(task) {
                let reader: &mut Option<u32> = &mut readers[operand.block.index()];
                *reader = reader.or(site);
            }
        }
        readers
    }

    /// Where a task belongs by grids and owners, if they say.
    fn planned_site(
        &self,
        workflow: &Workflow,
        task: TaskId,
        assignment: &Assignment,
        readers: &[Option<u32>],
    ) -> Option<u32> {
        let first = workflow.outputs(task).first().copied();
        if workflow.kind(task) == TaskKind::Load {
            return Some(first.map_or(0, |block| assignment.homes[block.index()]));
        }
        // What is put together from pieces is put together by whoever reads it.
        let reader = || first.and_then(|block| readers[block.index()]).filter(|_| is_copy(workflow, task));
        let owner = || first.and_then(|block| self.home(workflow, block));
        self.on_grid(workflow, task).or_else(reader).or_else(owner)
    }
}

/// Of the workers that have something a task reads, and the one that a layout would give its output to: the one that can begin it soonest, after what it does already and with what it has to receive.
fn soonest(
    workflow: &Workflow,
    task: TaskId,
    assignment: &Assignment,
    layouts: &Layouts<'_>,
    machine: &Machine,
    work: &[f64],
) -> u32 {
    let mut there: BTreeMap<u32, u64> = BTreeMap::new();
    let mut all = 0;
    for operand in workflow.present_operands(task) {
        let bytes = workflow.operand_bytes(operand);
        *there.entry(assignment.homes[operand.block.index()]).or_default() += bytes;
        all += bytes;
    }
    if let Some(&block) = workflow.outputs(task).first() {
        there.entry(layouts.worker(block)).or_default();
    }
    let bandwidth = if machine.nodes > 1 { machine.across.bandwidth } else { machine.inside.bandwidth };
    let begins = |(&worker, &here): (&u32, &u64)| (work[worker as usize] + (all - here) as f64 / bandwidth, worker);
    let soonest = there.iter().map(begins).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    soonest.map_or(0, |(_, worker)| worker)
}

/// An element in the middle of a box, or its first if it is empty.
fn middle(lo: &[u64], hi: &[u64]) -> Vec<u64> {
    lo.iter().zip(hi).map(|(&lo, &hi)| lo + hi.saturating_sub(lo).saturating_sub(1) / 2).collect()
}
