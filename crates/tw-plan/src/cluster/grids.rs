//! A grid of workers for every statement: the search that keeps what the busiest worker receives small.
//!
//! A statement under a grid of workers touches a box of every operand and of the output on each worker. Who owns which part of a value is what the grid
//! of the statement that makes it says; sources belong where one of their readers wants them. What a worker touches and does not own it receives;
//! of what it owns of a sum it receives the parts that others computed. All of that is known from boxes alone, before there is any task: exactly, but for sums inside nodes (an average) and values
//! that a statement reads three times (an upper bound).

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::contraction::Contraction;
use tw_ir::error::Result;
use tw_ir::index::{Idx, Var};
use tw_ir::program::{Node, Op, Program, ValueId};
use tw_ir::{Axis, Tiling};

use super::held::{Before, Held};
use super::machine::Machine;
use super::mesh::{Mesh, Ownership, Variable, part};
use super::notation::Notation;
use crate::cost::{is_fast_product, statement_ops};
use crate::lower::ChosenCuts;

mod access;
mod boxes;
mod cuts;
mod form;
mod search;
mod touching;

use access::Accesses;
use cuts::{Cuts, Side};
use search::Search;
pub(super) use touching::touching;

/// Tiles of a part of a variable: this long, and this many at most; only one each for more workers than that.
const GOOD_TILE: u64 = 1024;
const MOST_TILES: u64 = 8;
const MANY_WORKERS: u64 = 512;

/// A task should take this many times what every task costs, unless there are no more than so many for each worker.
const WORTH_A_TASK: f64 = 16.0;
const FEW_TASKS: u64 = 4;

/// How far a search may go, in numbers of plans that are compared: the same everywhere, whatever the machine it runs on.
pub const DEFAULT_LIMIT: usize = 100_000;

/// What the search did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchReport {
    /// Statements that have a grid.
    pub statements: usize,
    /// Grids that were looked at for one statement alone.
    pub candidates: usize,
    /// Choices for the whole program that were compared.
    pub compared: usize,
    /// How often a better one was found.
    pub improved: usize,
    /// True if the limit ended the search; else nothing better was in reach.
    pub stopped: bool,
}

/// A statement on its grid.
#[derive(Clone, Debug)]
struct OnGrid {
    mesh: Mesh,
    variables: Vec<Variable>,
    /// True if it runs where its results are, whatever the grid.
    where_owned: bool,
}

/// Who owns which part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Those whom a grid gives it to.
    Grid(Ownership),
    /// Those whom a grid gives whole tiles to.
    Tiles(Ownership, Vec<Axis>),
    /// Those who had it before.
    Held(Held),
}

impl Owners {
    /// The worker that owns an element.
    pub fn owner(&self, element: &[u64]) -> u32 {
        match self {
            Owners::Grid(ownership) => ownership.owner(element) as u32,
            Owners::Tiles(ownership, axes) => {
                let tiles: Vec<u64> = axes.iter().zip(element).map(|(axis, &at)| axis.tile_of(at)).collect();
                ownership.owner(&tiles) as u32
            }
            Owners::Held(held) => held.owner(element),
        }
    }

    /// Where the value must be cut so that every block has one owner.
    fn cuts(&self, axis: usize) -> Vec<u64> {
        match self {
            Owners::Grid(ownership) => ownership.cuts(axis),
            Owners::Tiles(_, axes) => axes[axis].boundaries(),
            Owners::Held(held) => held.axes()[axis].boundaries(),
        }
    }

    fn turn(&self) -> u64 {
        match self {
            Owners::Grid(ownership) | Owners::Tiles(ownership, _) => ownership.turn(),
            Owners::Held(_) => 0,
        }
    }
}

/// A grid for every statement that can have one, and who owns every value.
#[derive(Clone, Debug)]
pub struct Grids {
    n_workers: u64,
    /// By the number of the node.
    meshes: BTreeMap<usize, OnGrid>,
    owners: BTreeMap<ValueId, Owners>,
    /// By the number of the node.
    best_few: BTreeMap<usize, Vec<(Vec<u64>, u64)>>,
    /// Bytes that each worker receives.
    pub received: Vec<u64>,
    /// What the search did.
    pub report: SearchReport,
}

impl Grids {
    /// Searches grids for a straight-line program, comparing at most `limit` choices.
    pub fn search(program: &Program, machine: &Machine, limit: usize) -> Grids {
        Grids::search_after(&Before::default(), program, machine, limit)
    }

    /// The same where workers hold something already.
    pub(super) fn search_after(before: &Before, program: &Program, machine: &Machine, limit: usize) -> Grids {
        Search::beside(program, machine, before, &[]).run(limit)
    }

    /// The grids that follow from a distribution written by the user: a value that it names is made where it is owned; everything else is searched for.
    pub(super) fn written(
        before: &Before,
        program: &Program,
        notation: &Notation,
        machine: &Machine,
        limit: usize,
    ) -> Result<Grids> {
        Ok(Search::beside(program, machine, before, &notation.owners(program, machine)?).run(limit))
    }

    /// The grid of a node's statement, and its variables.
    pub fn mesh(&self, node: usize) -> Option<(&Mesh, &[Variable])> {
        let found = self.meshes.get(&node).filter(|found| !found.where_owned);
        found.map(|found| (&found.mesh, &found.variables[..]))
    }

    /// The best few grids of a node's statement by itself, and the bytes that a worker would then receive.
    pub fn best_few(&self, node: usize) -> &[(Vec<u64>, u64)] {
        self.best_few.get(&node).map_or(&[], |few| &few[..])
    }

    /// Who owns a value.
    pub fn owners(&self, value: ValueId) -> Option<&Owners> {
        self.owners.get(&value)
    }

    /// Bytes that the busiest worker receives.
    pub fn received_max(&self) -> u64 {
        self.received.iter().copied().max().unwrap_or(0)
    }

    /// Workers of the largest grid; 0 if there is none.
    pub fn largest(&self) -> u64 {
        let grids = self.meshes.values().filter(|found| !found.where_owned);
        grids.map(|found| found.mesh.n_workers()).max().unwrap_or(0)
    }

    /// Workers that were planned for.
    pub fn n_workers(&self) -> u64 {
        self.n_workers
    }

    /// Cuts of values with which every block has one owner, and of variables with which every task has one worker. Parts are cut further, into tiles of about the length
    /// that is wanted: work then begins before all of a part has arrived.
    pub(super) fn cut(&self, program: &Program, tile: Option<u64>, machine: &Machine) -> ChosenCuts {
        let statements: Vec<Cutting<'_>> =
            self.meshes.iter().filter_map(|(&number, on_grid)| Cutting::of(program, number, on_grid)).collect();
        // Where everything along a variable is cut alike, no task reads two blocks of an operand. Where that would make tasks too small, a statement is cut by itself, and workers put together
        // what they read.
        let mut apart: BTreeSet<usize> = BTreeSet::new();
        loop {
            let cuts = self.cuts(program, &statements, &apart, tile);
            let too_many = |statement: &&Cutting<'_>| {
                let axes = statement.axes(&cuts);
                let n_tasks = axes.iter().fold(1u64, |n, axis| n.saturating_mul(axis.n_tiles()));
                !apart.contains(&statement.number) && n_tasks > statement.most_tasks(machine)
            };
            let more: Vec<usize> = statements.iter().filter(too_many).map(|statement| statement.number).collect();
            if more.is_empty() {
                let value = |&value: &ValueId| {
                    let shape = program.ty(value).known_shape().unwrap_or_default();
                    let axes = shape.iter().enumerate().map(|(axis, &n)| cuts.axis(Side::Axis(value, axis), n));
                    (value, axes.collect())
                };
                let of_index = statements.iter().filter(|statement| matches!(statement.node.op, Op::Index(_)));
                let variables = of_index.map(|statement| (statement.number, statement.axes(&cuts)));
                return ChosenCuts { values: self.owners.keys().map(value).collect(), variables: variables.collect() };
            }
            apart.extend(more);
        }
    }

    fn cuts(&self, program: &Program, statements: &[Cutting<'_>], apart: &BTreeSet<usize>, tile: Option<u64>) -> Cuts {
        let most = if self.n_workers <= MANY_WORKERS { MOST_TILES } else { 1 };
        let mut cuts = Cuts::new(tile.map_or((GOOD_TILE, most), |tile| (tile, u64::MAX)));
        for (&value, owner) in &self.owners {
            (0..program.ty(value).rank()).for_each(|axis| cuts.add(Side::Axis(value, axis), owner.cuts(axis)));
            // What the user has cut stays so, and what goes with it follows.
            if let Some(Tiling::Grid(axes)) = &program.ty(value).tiling {
                axes.iter().enumerate().for_each(|(axis, cut)| cuts.add(Side::Axis(value, axis), cut.boundaries()));
            }
        }
        let scattered: BTreeSet<Side> = statements.iter().flat_map(Cutting::scattered).collect();
        for statement in statements {
            let factors = statement.on_grid.mesh.factors();
            for (var, (along, &parts)) in statement.on_grid.variables.iter().zip(factors).enumerate() {
                let variable = Side::Variable(statement.number, var);
                cuts.add(variable, (0..parts).map(|k| part(along.along, k, parts).start));
                let alike = statement.along(program, var, !apart.contains(&statement.number));
                let own = statement.scattered();
                let alike = alike.into_iter().filter(|side| own.contains(side) || !scattered.contains(side));
                alike.for_each(|side| cuts.join(variable, side));
            }
        }
        cuts
    }
}

/// An operation that is cut by its grid.
struct Cutting<'a> {
    number: usize,
    node: &'a Node,
    accesses: Accesses,
    on_grid: &'a OnGrid,
}

impl<'a> Cutting<'a> {
    fn of(program: &'a Program, number: usize, on_grid: &'a OnGrid) -> Option<Cutting<'a>> {
        let node = &program.body.nodes[number];
        Some(Cutting { number, node, accesses: Accesses::of(program, node)?, on_grid })
    }

    /// Axes of what it makes that are not cut as its readers are: every block along them is another pass over all that may belong into it.
    fn scattered(&self) -> Vec<Side> {
        let Op::Scatter { axes, .. } = &self.node.op else { return Vec::new() };
        let sides = |&value: &ValueId| axes.iter().map(move |&axis| Side::Axis(value, axis as usize));
        self.node.results.iter().flat_map(sides).collect()
    }

    /// Axes of what it makes, and maybe of what it reads, that run along a variable.
    fn along(&self, program: &Program, var: usize, of_reads: bool) -> Vec<Side> {
        let reads = self.accesses.reads.iter().filter(|_| of_reads);
        let reads = reads.map(|(argument, part)| (self.node.args[*argument], part));
        let Variable { first, along, .. } = self.on_grid.variables[var];
        let mut found = Vec::new();
        for (value, part) in self
            .node
            .results
            .iter()
            .zip(self.accesses.outs.iter().cycle())
            .map(|(&value, part)| (value, part))
            .chain(reads)
        {
            let shape = program.ty(value).known_shape().unwrap_or_default();
            // What is in tiles is cut already.
            let axes = part.idx.iter().zip(&shape).enumerate().filter(|_| part.tiles.is_none());
            let fits = |idx: &Idx, n: u64| idx.as_shifted_var() == Some((Var(var as u32), first as i64)) && n == along;
            let axes = axes.filter(|(_, (idx, n))| fits(idx, **n));
            found.extend(axes.map(|(axis, _)| Side::Axis(value, axis)));
        }
        found
    }

    fn axes(&self, cuts: &Cuts) -> Vec<Axis> {
        let axis = |(number, var): (usize, &Variable)| {
            let along = cuts.axis(Side::Variable(self.number, number), var.along);
            let mut cuts: Vec<u64> = along.boundaries().into_iter().map(|cut| var.value_at(cut)).collect();
            cuts.dedup();
            Axis::from_boundaries(cuts)
        };
        self.on_grid.variables.iter().enumerate().map(axis).collect()
    }

    /// Tasks that are large enough to be worth their cost, or a few for every worker. Other operations than statements are cut as what they read is.
    fn most_tasks(&self, machine: &Machine) -> u64 {
        let Op::Index(stmt) = &self.node.op else { return u64::MAX };
        let points = self.on_grid.variables.iter().fold(1.0, |points, var| points * var.extent as f64);
        let is_product = Contraction::of_statement(stmt).is_some_and(|found| is_fast_product(&found));
        let rate = if is_product { machine.flops } else { machine.scalar };
        let seconds = points * statement_ops(stmt) as f64 / rate;
        let worth = seconds / (machine.task * WORTH_A_TASK).max(f64::MIN_POSITIVE);
        (worth as u64).max(machine.n_workers() as u64 * FEW_TASKS)
    }
}
