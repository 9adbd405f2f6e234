//! A grid of workers for every statement: the search that keeps what the busiest worker receives small.
//!
//! A statement under a grid of workers touches a box of every operand and of the output on each worker. Who owns which part of a value is what the grid
//! of the statement that makes it says; sources belong where one of their readers wants them. What a worker touches and does not own it receives;
//! of what it owns of a sum it receives the parts that others computed. All of that is known from boxes alone, before there is any task: exactly, but for sums of very many parts (an average), and for parts
//! of a block that overlap in ways no box covers, which are sent twice.

use std::collections::BTreeMap;

use tw_ir::contraction::Contraction;
use tw_ir::error::Result;
use tw_ir::program::{IndexStmt, Program, ValueId};

use super::homes::Before;
use super::machine::Machine;
use super::mesh::{Mesh, Variable};
use super::notation::Notation;
use tw_plan::{is_fast_product, statement_ops};

mod access;
mod boxes;
mod cuts;
mod cutting;
mod form;
mod owners;
mod search;
mod touching;

use form::Form;
pub use owners::Owners;
use search::Search;
pub(super) use touching::touching;

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

/// What a search makes small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// What the busiest worker receives, where all do equally much of every statement.
    Bytes,
    /// The time of all statements, one after the other, and of what the busiest worker receives: statements may leave workers idle.
    Time,
}

/// A statement on its grid.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnGrid {
    mesh: Mesh,
    variables: Vec<Variable>,
    /// True if it runs where its results are, whatever the grid.
    where_owned: bool,
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
    /// The time that statements take, as bytes that a worker could receive meanwhile; 0 where only bytes count.
    cost: u64,
    /// What the search did.
    pub report: SearchReport,
}

impl Grids {
    /// Searches grids for a straight-line program, comparing at most `limit` choices.
    pub fn search(program: &Program, machine: &Machine, limit: usize) -> Grids {
        Grids::search_after(&Before::default(), program, machine, Aim::Bytes, limit)
    }

    /// The same where workers hold something already.
    pub(super) fn search_after(before: &Before, program: &Program, machine: &Machine, aim: Aim, limit: usize) -> Grids {
        Search::beside(program, machine, before, aim, &[]).run(limit)
    }

    /// The grids that follow from a distribution written by the user: a value that it names is made where it is owned; everything else is searched for.
    pub(super) fn written(
        before: &Before,
        program: &Program,
        notation: &Notation,
        machine: &Machine,
        limit: usize,
    ) -> Result<Grids> {
        Ok(Search::beside(program, machine, before, Aim::Bytes, &notation.owners(program, machine)?).run(limit))
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

    /// What was to be made small.
    pub(super) fn score(&self) -> u64 {
        self.cost.saturating_add(self.received_max())
    }

    /// What a search for time would have made small.
    pub(super) fn score_in_time(&self, program: &Program, machine: &Machine) -> u64 {
        let cost = |(&number, on_grid): (&usize, &OnGrid)| {
            let form = Form::of(program, &program.body.nodes[number], Aim::Time);
            form.map_or(0, |form| form.cost(&on_grid.mesh, machine))
        };
        self.meshes.iter().map(cost).fold(self.received_max(), u64::saturating_add)
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
}

/// Operations of a statement at every point, and whether they run as fast as those of matrix products.
fn work_of(stmt: &IndexStmt) -> (u64, bool) {
    let is_product = Contraction::of_statement(stmt).is_some_and(|found| is_fast_product(&found));
    (statement_ops(stmt), is_product)
}
