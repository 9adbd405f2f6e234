//! Places each task by the mesh of its statement.

use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::program::ValueId;
use tw_ir::spec::{GatherSpec, ScatterSpec};
use tw_ir::workflow::{BlockId, BlockSizes, TaskId, TaskKind, Workflow};
use tw_ir::{BoxRegion, EntityRef};

use super::{Scheduler, is_copy, place_loads};
use crate::grids::Grids;
use crate::homes::Before;
use crate::layout::Layouts;
use crate::machine::Machine;
use crate::reductions::Assignment;

/// Places tasks by the meshes of a search. A task whose statement has no mesh runs where it can start first.
pub struct Algebraic<'a> {
    /// The name in reports: the scheduler that chose the meshes.
    pub name: &'static str,
    /// The meshes and owners.
    pub grids: &'a Grids,
    /// The program value of each set of blocks; `None` for intermediate sets.
    pub values: &'a [Option<ValueId>],
    /// True if the search minimised bytes: sums may then take a little longer than in trees.
    pub may_wait: bool,
}

impl Scheduler for Algebraic<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        let layouts = Layouts::new(workflow, machine);
        let mut assignment = Assignment { may_wait: self.may_wait, ..Assignment::together(workflow) };
        place_loads(workflow, &layouts, before, &mut assignment);
        for block in (0..workflow.n_blocks()).map(BlockId::new) {
            if let Some(home) = self.home(workflow, block) {
                assignment.homes[block.index()] = home;
            }
        }
        let readers = self.readers(workflow);
        let mut times = Times::new(workflow, machine);
        for task in workflow.tasks() {
            let site = match self.planned_site(workflow, task, &assignment, &readers) {
                Some(site) => site,
                None => times.soonest(task, &assignment, &layouts),
            };
            times.run(task, site, &assignment);
            assignment.tasks[task.index()] = site;
            // Contributions meet at the home of the block; any other block stays where it is computed.
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
        Some(owners.owner(&middle_of(&region)))
    }

    /// The worker of a task whose statement has a mesh.
    fn on_grid(&self, workflow: &Workflow, task: TaskId) -> Option<u32> {
        let kernel = &workflow.kernels[workflow.kernel(task)].kernel;
        let (mesh, variables) = self.grids.mesh(workflow.statements[workflow.statement(task)].node?)?;
        let point = point_of(workflow, task, kernel)?;
        (point.len() == variables.len()).then(|| mesh.worker_at(&point, variables) as u32)
    }

    /// The worker of the first reader of each block, if the statement of the reader has a mesh.
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

    /// The worker of a task by meshes and owners, if they determine it.
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
        // A state goes on where the total of the next block is.
        if let Kernel::ScanCarry(_) = workflow.kernels[workflow.kernel(task)].kernel {
            let total = workflow.present_operands(task).last()?;
            return Some(assignment.homes[total.block.index()]);
        }
        // A block without an owner is assembled on the worker that reads it. Where it has one, readers may want no more than its border.
        let reader = || first.and_then(|block| readers[block.index()]).filter(|_| is_copy(workflow, task));
        let owner = || first.and_then(|block| self.home(workflow, block));
        self.on_grid(workflow, task).or_else(owner).or_else(reader)
    }
}

/// The times at which workers become free and blocks are ready, if tasks start in the listed order.
struct Times<'a> {
    workflow: &'a Workflow,
    sizes: BlockSizes<'a>,
    machine: &'a Machine,
    seconds: Vec<f64>,
    free: Vec<f64>,
    made: Vec<f64>,
}

impl<'a> Times<'a> {
    fn new(workflow: &'a Workflow, machine: &'a Machine) -> Times<'a> {
        let (free, made) = (vec![0.0; machine.n_workers()], vec![0.0; workflow.n_blocks()]);
        let (sizes, seconds) = (BlockSizes::of(workflow), machine.task_seconds(workflow));
        Times { workflow, sizes, machine, seconds, free, made }
    }

    /// The worker that can start a task first, among the holders of its operands and the default owner of its output. Ties go to the worker that receives least.
    fn soonest(&self, task: TaskId, assignment: &Assignment, layouts: &Layouts<'_>) -> u32 {
        let operands = self.workflow.present_operands(task);
        let mut workers: Vec<u32> = operands.map(|operand| assignment.homes[operand.block.index()]).collect();
        workers.extend(self.workflow.outputs(task).first().map(|&block| layouts.worker(block)));
        workers.sort_unstable();
        workers.dedup();
        // Of very many holders, the lowest numbers suffice.
        workers.truncate(MOST_OPTIONS);
        let begin = |&worker: &u32| (self.begin(task, worker, assignment), worker);
        let soonest = workers
            .iter()
            .map(begin)
            .min_by(|(a, one), (b, two)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(one.cmp(two)));
        soonest.map_or(0, |(_, worker)| worker)
    }

    /// The time at which a task can start on a worker, and the bytes that the worker must receive.
    fn begin(&self, task: TaskId, worker: u32, assignment: &Assignment) -> (f64, u64) {
        let (mut begin, mut missing) = (self.free[worker as usize], 0);
        // Messages arrive one after the other.
        let mut last_there = 0.0f64;
        for operand in self.workflow.present_operands(task) {
            let (home, made) = (assignment.homes[operand.block.index()], self.made[operand.block.index()]);
            if home == worker {
                begin = begin.max(made);
            } else {
                let bytes = self.sizes.operand(operand).estimate();
                last_there = last_there.max(made) + self.machine.link(home, worker).seconds(bytes);
                missing += bytes;
            }
        }
        (begin.max(last_there), missing)
    }

    fn run(&mut self, task: TaskId, worker: u32, assignment: &Assignment) {
        let end = self.begin(task, worker, assignment).0 + self.seconds[task.index()];
        self.free[worker as usize] = end;
        self.workflow.outputs(task).iter().for_each(|block| self.made[block.index()] = end);
    }
}

/// Workers considered for one task.
const MOST_OPTIONS: usize = 64;

/// A point in the middle of the iteration space of a task, along the variables that a mesh may split.
fn point_of(workflow: &Workflow, task: TaskId, kernel: &Kernel) -> Option<Vec<u64>> {
    let of_block = |block: BlockId| {
        let region = workflow.block_box(block);
        middle_of(&region)
    };
    let output = || workflow.outputs(task).first().map(|&block| of_block(block));
    match kernel {
        Kernel::Statement(statement) => {
            let mut point = vec![0; statement.vars.len()];
            statement
                .vars
                .for_ranges(workflow.point(task) as u64, |k, range| point[k] = middle(range.start, range.end));
            Some(point)
        }
        Kernel::ScanBlock(_) => output(),
        // What a block of a fibre adds up to is counted in blocks along the fibre.
        Kernel::ScanTotal { .. } => Some(of_block(workflow.present_operands(task).next()?.block)),
        Kernel::SortRun(_) | Kernel::SortMerge(_) => output(),
        // Gathered axes are not shared.
        Kernel::Gather { spec: GatherSpec { axes, .. }, .. } => Some([output()?, vec![0; axes.len()]].concat()),
        Kernel::Scatter { spec: ScatterSpec { axes, .. }, .. } => {
            let values = workflow.operands(task).get(axes.len())?.expand()?;
            let (values, output) = (of_block(values.block), output()?);
            Some(values.into_iter().chain(axes.iter().map(|&axis| output[axis as usize])).collect())
        }
        _ => None,
    }
}

/// An element in the middle of a box, or its first if it is empty.
fn middle_of(region: &BoxRegion) -> Vec<u64> {
    region.lo.iter().zip(&region.hi).map(|(&lo, &hi)| middle(lo, hi)).collect()
}

fn middle(lo: u64, hi: u64) -> u64 {
    lo + hi.saturating_sub(lo).saturating_sub(1) / 2
}
