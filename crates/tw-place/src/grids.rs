//! The search for a mesh of workers per statement. It minimises the bytes that the busiest worker receives, or the makespan.
//!
//! Under a mesh, each worker touches a box of every operand and of the output of a statement. The mesh of the producing statement decides who owns which shard
//! of a value; a source is sharded as one of its readers wants it. A worker receives the part of its boxes that it does not own, and the partial sums that other
//! workers computed for its shards. All of this follows from boxes, before any task exists. The count is exact, with two exceptions: sums of very many
//! parts use an average, and overlapping regions that no single box covers are counted twice.
//!
//! Every other operator than an index statement is searched as an index statement over its output: `access` gives its variables, which of them a mesh may
//! split, and the elements or whole tiles that a point reads and writes.
//!
//! # Why plans of everyday programs were far from the bound
//!
//! `python/benchmarks/plans.py` plans many such programs. Its first runs showed these reasons; each says what is done about it.
//!
//! - **Statements were cut otherwise than their operands.** Means and deviations of columns alone are cheapest by columns, and come first in the program; the product of the standardised table wants
//!   rows. One step of the search changes one statement, so it did not find that all should have rows, and an array of 3 GB was sent. Now the search also begins at the largest values (`search`).
//! - **Parts of an axis ended inside chunks.** A worker received the rest of a chunk, which is small beside its part, and large beside a sum. Variables now have grains (`form`), and what is read by whole
//!   tiles is owned by whole tiles.
//! - **Small values had one home.** In a tree, the home of a sum receives one part per round: 3.4 times the bound on 8 workers. See `reductions`. A sum that one worker reads whole was scattered
//!   and gathered: twice the bound. Its owner may now be that worker.
//! - **Operations had no mesh.** Scans, joins (and with them padding), and reductions that keep an axis ran on few workers.
//! - **Pieces of small sums cut large statements.** Tasks read operands again for each piece, so the plan took longer than others, and `auto` took one that sent more.

use std::collections::BTreeMap;

use tw_ir::contraction::Contraction;
use tw_ir::error::Result;
use tw_ir::program::{IndexStmt, NodeId, Program, ValueId};

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
pub(super) use touching::{least_for_a_call, touching};

/// The default limit of a search: how many choices it compares. A count, not a time, so that all machines find the same plan.
pub const DEFAULT_LIMIT: usize = 100_000;

/// Statistics of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchReport {
    /// Statements with a mesh.
    pub statements: usize,
    /// Meshes that were examined for single statements.
    pub candidates: usize,
    /// Choices for the whole program that were compared.
    pub compared: usize,
    /// How many of them improved the best choice so far.
    pub improved: usize,
    /// True if the limit ended the search; false if it reached a local optimum.
    pub stopped: bool,
}

/// The objective of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// Bytes that the busiest worker receives, among meshes that balance the work of each statement.
    Bytes,
    /// Time of all statements, one after the other, plus the time to receive the bytes of the busiest worker. Statements may leave workers idle.
    Time,
}

/// A statement with its mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnGrid {
    mesh: Mesh,
    variables: Vec<Variable>,
    /// True if its tasks run on the owners of its results, whatever the mesh.
    where_owned: bool,
}

/// The result of a search: a mesh for each statement that can have one, and the owners of each value.
#[derive(Clone, Debug)]
pub struct Grids {
    n_workers: u64,
    meshes: BTreeMap<NodeId, OnGrid>,
    owners: BTreeMap<ValueId, Owners>,
    best_few: BTreeMap<NodeId, Vec<(Vec<u64>, u64)>>,
    /// Bytes that each worker receives.
    pub received: Vec<u64>,
    /// The time of all statements, in bytes that a worker could receive meanwhile; 0 if the objective is bytes.
    cost: u64,
    /// Statistics of the search.
    pub report: SearchReport,
}

impl Grids {
    /// Searches meshes for a straight-line program. Compares at most `limit` choices.
    pub fn search(program: &Program, machine: &Machine, limit: usize) -> Grids {
        Grids::search_after(&Before::default(), program, machine, Aim::Bytes, limit)
    }

    /// The same on workers that already hold some inputs.
    pub(super) fn search_after(before: &Before, program: &Program, machine: &Machine, aim: Aim, limit: usize) -> Grids {
        Search::beside(program, machine, before, aim, &[]).run(limit)
    }

    /// The same with distributions written by the user: a named value is computed where it is owned, and the search decides the rest.
    pub(super) fn written(
        before: &Before,
        program: &Program,
        notation: &Notation,
        machine: &Machine,
        limit: usize,
    ) -> Result<Grids> {
        Ok(Search::beside(program, machine, before, Aim::Bytes, &notation.owners(program, machine)?).run(limit))
    }

    /// The mesh of a node's statement, and its variables.
    pub fn mesh(&self, node: NodeId) -> Option<(&Mesh, &[Variable])> {
        let found = self.meshes.get(&node).filter(|found| !found.where_owned);
        found.map(|found| (&found.mesh, &found.variables[..]))
    }

    /// The best few meshes of a node's statement alone, each with the bytes that a worker would receive.
    pub fn best_few(&self, node: NodeId) -> &[(Vec<u64>, u64)] {
        self.best_few.get(&node).map_or(&[], |few| &few[..])
    }

    /// The owners of a value.
    pub fn owners(&self, value: ValueId) -> Option<&Owners> {
        self.owners.get(&value)
    }

    /// Bytes that the busiest worker receives.
    pub fn received_max(&self) -> u64 {
        self.received.iter().copied().max().unwrap_or(0)
    }

    /// The objective.
    pub(super) fn score(&self) -> u64 {
        self.cost.saturating_add(self.received_max())
    }

    /// The objective that a search for time would have had.
    pub(super) fn score_in_time(&self, program: &Program, machine: &Machine) -> u64 {
        let cost = |(&node, on_grid): (&NodeId, &OnGrid)| {
            let form = program.node(node).and_then(|node| Form::of(program, node, Aim::Time));
            form.map_or(0, |mut form| {
                form.variables.clone_from(&on_grid.variables);
                form.cost(&on_grid.mesh, machine)
            })
        };
        self.meshes.iter().map(cost).fold(self.received_max(), u64::saturating_add)
    }

    /// Workers of the largest mesh; 0 if there is none.
    pub fn largest(&self) -> u64 {
        let grids = self.meshes.values().filter(|found| !found.where_owned);
        grids.map(|found| found.mesh.n_workers()).max().unwrap_or(0)
    }

    /// Workers of the machine.
    pub fn n_workers(&self) -> u64 {
        self.n_workers
    }
}

/// Operations of a statement per point, and whether they run at the rate of matrix products.
fn work_of(stmt: &IndexStmt) -> (u64, bool) {
    let is_product = Contraction::of_statement(stmt).is_some_and(|found| is_fast_product(&found));
    (statement_ops(stmt), is_product)
}
