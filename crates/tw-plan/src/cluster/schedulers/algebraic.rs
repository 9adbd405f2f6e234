//! Tasks where the grid of their statement says.

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::program::ValueId;
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

use super::{Scheduler, home_of_largest, is_copy, place_loads};
use crate::cluster::grids::Grids;
use crate::cluster::layout::Layouts;
use crate::cluster::machine::Machine;
use crate::cluster::reductions::Assignment;

/// Places tasks by grids that were searched for their program. Statements without a grid run where most of what they read is.
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

    fn place(&self, workflow: &Workflow, machine: &Machine) -> Result<Assignment> {
        let layouts = Layouts::new(workflow, machine);
        let mut assignment = Assignment::together(workflow);
        place_loads(workflow, &layouts, &mut assignment);
        for block in (0..workflow.n_blocks()).map(BlockId::new) {
            if let Some(home) = self.home(workflow, block) {
                assignment.homes[block.index()] = home;
            }
        }
        let readers = self.readers(workflow);
        for task in workflow.tasks() {
            let site = self.site(workflow, task, &assignment, &layouts, &readers);
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
        let owner = self.grids.owner(value)?;
        let region = workflow.block_box(block);
        Some(owner.owner(&middle(&region.lo, &region.hi)) as u32)
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

    fn site(
        &self,
        workflow: &Workflow,
        task: TaskId,
        assignment: &Assignment,
        layouts: &Layouts<'_>,
        readers: &[Option<u32>],
    ) -> u32 {
        let first = workflow.outputs(task).first().copied();
        if workflow.kind(task) == TaskKind::Load {
            return first.map_or(0, |block| assignment.homes[block.index()]);
        }
        if let Some(site) = self.on_grid(workflow, task) {
            return site;
        }
        // What is put together from pieces is put together by whoever reads it.
        let reader = first.and_then(|block| readers[block.index()]).filter(|_| is_copy(workflow, task));
        let owned = reader.or_else(|| first.and_then(|block| self.home(workflow, block)));
        let there = home_of_largest(workflow, task, assignment);
        owned.or(there).or(first.map(|block| layouts.worker(block))).unwrap_or(0)
    }
}

/// An element in the middle of a box, or its first if it is empty.
fn middle(lo: &[u64], hi: &[u64]) -> Vec<u64> {
    lo.iter().zip(hi).map(|(&lo, &hi)| lo + hi.saturating_sub(lo).saturating_sub(1) / 2).collect()
}
