//! What workers hold before a program begins: values that earlier pieces of a larger program have left with them.

use std::collections::BTreeMap;

use tw_ir::kernel::Kernel;
use tw_ir::program::{Op, Program, Source};
use tw_ir::workflow::{BlockId, BlockSetId, Boxes, SourceDecl, TaskId, Workflow};
use tw_ir::{BoxRegion, EntityRef, Grid, Tiling};

use super::placed::Placed;

/// Where a value is: its blocks, and the worker that has each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Homes {
    grid: Grid,
    /// By the row-major position of the block.
    homes: Vec<u32>,
}

impl Homes {
    /// Where the plan leaves an output, by its number, with the homes of all blocks; nothing if that is not cut by a grid.
    pub fn output(placed: &Placed, homes: &[Option<u32>], number: usize) -> Option<Homes> {
        Homes::set(&placed.workflow, homes, placed.workflow.outputs.get(number)?.set)
    }

    /// Where the plan has an input, by its name, with the homes of all blocks.
    pub fn input(placed: &Placed, homes: &[Option<u32>], name: &str) -> Option<Homes> {
        let workflow = &placed.workflow;
        let load = workflow.kernels.values().find(|entry| loaded_by(workflow, &entry.kernel) == Some(name))?;
        // The statement that loads has no other blocks.
        let (set, _) = workflow.sets.iter().find(|(_, set)| set.statement == load.statement)?;
        Homes::set(workflow, homes, set)
    }

    fn set(workflow: &Workflow, homes: &[Option<u32>], id: BlockSetId) -> Option<Homes> {
        let set = &workflow.sets[id];
        let Boxes::Grid(grid) = &set.boxes else { return None };
        // What nobody makes is nowhere; it has no elements.
        let home = |position: u64| homes[workflow.block(id, position).index()].unwrap_or(0);
        Some(Homes { grid: grid.clone(), homes: (0..set.n_blocks()).map(home).collect() })
    }

    /// Elements along every axis.
    pub fn shape(&self) -> Vec<u64> {
        self.grid.shape()
    }

    /// Elements that each of some workers has.
    pub fn elements(&self, n_workers: usize) -> Vec<u64> {
        let mut elements = vec![0; n_workers];
        self.boxes().for_each(|(worker, region)| elements[worker as usize] += region.n_elements());
        elements
    }

    /// Every block with the worker that has it.
    pub(super) fn boxes(&self) -> impl Iterator<Item = (u32, BoxRegion)> {
        let region = |position: usize| self.grid.box_of(position as u64);
        self.homes.iter().enumerate().map(move |(position, &home)| (home, region(position)))
    }

    /// The worker that has an element.
    pub(super) fn owner(&self, element: &[u64]) -> u32 {
        let tiles: Vec<u64> = self.grid.iter().zip(element).map(|(axis, &at)| axis.tile_of(at)).collect();
        self.homes[self.grid.position(&tiles) as usize]
    }

    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }
}

/// What workers hold when a program begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Inputs of the program that are with workers already, by name. All others can be loaded anywhere.
    pub inputs: BTreeMap<String, Homes>,
    /// Bytes by worker of those inputs, and of what only others need: it stays all the time. Empty if there are none.
    pub bytes: Vec<u64>,
}

impl Before {
    /// The program with its inputs cut as they are.
    pub(super) fn cut(&self, program: &Program) -> Program {
        let mut program = program.clone();
        for (name, held) in &self.inputs {
            program.cut_input(name, Some(&Tiling::Grid(held.grid.clone())));
        }
        program
    }

    /// Who has the input that a node of a program loads.
    pub(super) fn source(&self, op: &Op) -> Option<&Homes> {
        match op {
            Op::Source(Source::Input { name, .. }) => self.inputs.get(name),
            _ => None,
        }
    }

    /// Where the block that a task loads is already.
    pub(super) fn home(&self, workflow: &Workflow, task: TaskId) -> Option<u32> {
        let held = self.inputs.get(input_of(workflow, task)?)?;
        let block = *workflow.outputs(task).first()?;
        held.homes.get(position(workflow, block)).copied()
    }

    /// Bytes that a worker holds all the time.
    pub(super) fn bytes_of(&self, worker: usize) -> u64 {
        self.bytes.get(worker).copied().unwrap_or(0)
    }
}

fn position(workflow: &Workflow, block: BlockId) -> usize {
    (block.as_u32() - workflow.sets[workflow.set_of(block)].first) as usize
}

/// The input of the program that a task loads from.
fn input_of(workflow: &Workflow, task: TaskId) -> Option<&str> {
    loaded_by(workflow, &workflow.kernels[workflow.kernel(task)].kernel)
}

fn loaded_by<'a>(workflow: &'a Workflow, kernel: &Kernel) -> Option<&'a str> {
    let Kernel::Load { source } = kernel else { return None };
    match workflow.sources.get(*source)? {
        SourceDecl::Input { name, .. } => Some(name),
        SourceDecl::Constant(_) => None,
    }
}
