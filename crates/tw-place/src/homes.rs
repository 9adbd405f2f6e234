//! Values that earlier segments left on workers.

use std::collections::BTreeMap;

use tw_ir::kernel::Kernel;
use tw_ir::program::{Op, Program, SourceOp};
use tw_ir::workflow::{BlockId, BlockSetId, Boxes, SourceDecl, TaskId, Workflow};
use tw_ir::{BoxRegion, EntityRef, Grid, Tiling};

use super::placed::Placed;

/// The location of a value: its blocks, and the worker that holds each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    grid: Grid,
    /// The worker of each block, row-major.
    homes: Vec<u32>,
}

impl Homes {
    /// A value in blocks of a grid, each on a worker, row-major.
    pub fn new(grid: Grid, homes: Vec<u32>) -> Homes {
        Homes { grid, homes }
    }

    /// The location in which a plan leaves an output. `homes` are the homes of all blocks; `number` is that of the output. `None` if the output has no grid.
    pub fn output(placed: &Placed, homes: &[Option<u32>], number: usize) -> Option<Homes> {
        Homes::set(&placed.workflow, homes, placed.workflow.outputs.get(number)?.set)
    }

    /// The location in which a plan has an input. `homes` are the homes of all blocks.
    pub fn input(placed: &Placed, homes: &[Option<u32>], name: &str) -> Option<Homes> {
        let workflow = &placed.workflow;
        let is_input = |source: &SourceDecl| matches!(source, SourceDecl::Input { name: input, .. } if input == name);
        let (set, _) = workflow.loaded_sets().find(|&(_, source)| is_input(&workflow.sources[source]))?;
        Homes::set(workflow, homes, set)
    }

    fn set(workflow: &Workflow, homes: &[Option<u32>], id: BlockSetId) -> Option<Homes> {
        let set = &workflow.sets[id];
        let Boxes::Grid(grid) = &set.boxes else { return None };
        // A block without a producer has no elements and no home.
        let home = |position: u64| homes[workflow.block(id, position).index()].unwrap_or(0);
        Some(Homes { grid: grid.clone(), homes: (0..set.n_blocks()).map(home).collect() })
    }

    /// Elements along every axis.
    pub fn shape(&self) -> Vec<u64> {
        self.grid.shape()
    }

    /// Elements that each worker holds.
    pub fn elements(&self, n_workers: usize) -> Vec<u64> {
        let mut elements = vec![0; n_workers];
        self.boxes().for_each(|(worker, region)| elements[worker as usize] += region.n_elements());
        elements
    }

    /// Each block with its worker.
    pub(super) fn boxes(&self) -> impl Iterator<Item = (u32, BoxRegion)> {
        let region = |position: usize| self.grid.box_of(position as u64);
        self.homes.iter().enumerate().map(move |(position, &home)| (home, region(position)))
    }

    /// The worker that holds an element.
    pub(super) fn owner(&self, element: &[u64]) -> u32 {
        let tiles: Vec<u64> = self.grid.iter().zip(element).map(|(axis, &at)| axis.tile_of(at)).collect();
        self.homes[self.grid.position(&tiles) as usize]
    }

    /// The worker of a block.
    pub fn worker(&self, position: u64) -> Option<u32> {
        self.homes.get(position as usize).copied()
    }

    /// How it is cut.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }
}

/// The values on workers before a segment starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Inputs that workers already hold, by name. Any worker can load the other inputs.
    pub inputs: BTreeMap<String, Homes>,
    /// Bytes per worker of those inputs and of values that only later segments need. They stay live throughout. Empty if there are none.
    pub bytes: Vec<u64>,
}

impl Before {
    /// The program with the tilings that its inputs already have.
    pub(super) fn cut(&self, program: &Program) -> Program {
        let mut program = program.clone();
        for (name, held) in &self.inputs {
            program.cut_input(name, Some(&Tiling::Grid(held.grid.clone())));
        }
        program
    }

    /// The location of the input that a node loads.
    pub(super) fn source(&self, op: &Op) -> Option<&Homes> {
        match op {
            Op::Source(SourceOp::Input { name, .. }) => self.inputs.get(name),
            _ => None,
        }
    }

    /// The worker that already holds the block that a task loads.
    pub(super) fn home(&self, workflow: &Workflow, task: TaskId) -> Option<u32> {
        let held = self.inputs.get(input_of(workflow, task)?)?;
        let block = *workflow.outputs(task).first()?;
        held.homes.get(position(workflow, block)).copied()
    }

    /// Bytes that stay on a worker throughout.
    pub(super) fn bytes_of(&self, worker: usize) -> u64 {
        self.bytes.get(worker).copied().unwrap_or(0)
    }
}

fn position(workflow: &Workflow, block: BlockId) -> usize {
    (block.as_u32() - workflow.sets[workflow.set_of(block)].first) as usize
}

/// The input of the program that a task loads from.
fn input_of(workflow: &Workflow, task: TaskId) -> Option<&str> {
    let Kernel::Load { source } = workflow.kernels[workflow.kernel(task)].kernel else { return None };
    match workflow.sources.get(source)? {
        SourceDecl::Input { name, .. } => Some(name),
        SourceDecl::Constant(_) => None,
    }
}
