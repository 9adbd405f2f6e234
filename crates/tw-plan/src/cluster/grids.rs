//! A grid of workers for every statement: the search that keeps what the busiest worker receives small.
//!
//! A statement under a grid of workers touches a box of every operand and of the output on each worker. Who owns which part of a value is what the grid
//! of the statement that makes it says; sources belong where one of their readers wants them. What a worker touches and does not own it receives;
//! of what it owns of a sum it receives the parts that others computed. All of that is known from boxes alone, before there is any task: exactly, but for sums inside nodes (an average) and values
//! that a statement reads three times (an upper bound).

use std::collections::BTreeMap;

use tw_ir::Axis;
use tw_ir::error::Result;
use tw_ir::index::{Idx, Var};
use tw_ir::program::{Op, Program, ValueId};

use super::machine::Machine;
use super::mesh::{Mesh, Ownership, part};
use super::notation::Notation;

mod boxes;
mod cuts;
mod form;
mod search;
mod touching;

use cuts::Cuts;
use search::Search;
pub(super) use touching::touching;

/// Tiles of a part of a variable: this long, and this many at most; only one each for more workers than that.
const GOOD_TILE: u64 = 1024;
const MOST_TILES: u64 = 8;
const MANY_WORKERS: u64 = 512;

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

/// A grid for every statement that can have one, and who owns every value.
#[derive(Clone, Debug)]
pub struct Grids {
    n_workers: u64,
    /// By the number of the node.
    meshes: BTreeMap<usize, (Mesh, Vec<u64>)>,
    owners: BTreeMap<ValueId, Ownership>,
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
        Search::beside(program, machine, limit, &[]).run()
    }

    /// The grids that follow from a distribution written by the user: a value that it names is made where it is owned; everything else is searched for.
    pub fn written(program: &Program, notation: &Notation, machine: &Machine, limit: usize) -> Result<Grids> {
        Ok(Search::beside(program, machine, limit, &notation.owners(program, machine)?).run())
    }

    /// The grid of a node's statement, and the extents of its variables.
    pub fn mesh(&self, node: usize) -> Option<(&Mesh, &[u64])> {
        let found = self.meshes.get(&node).map(|(mesh, extents)| (mesh, &extents[..]));
        found.filter(|(mesh, _)| mesh.n_workers() == self.n_workers)
    }

    /// The best few grids of a node's statement by itself, and the bytes that a worker would then receive.
    pub fn best_few(&self, node: usize) -> &[(Vec<u64>, u64)] {
        self.best_few.get(&node).map_or(&[], |few| &few[..])
    }

    /// Who owns a value.
    pub fn owner(&self, value: ValueId) -> Option<&Ownership> {
        self.owners.get(&value)
    }

    /// Bytes that the busiest worker receives.
    pub fn received_max(&self) -> u64 {
        self.received.iter().copied().max().unwrap_or(0)
    }

    /// Workers of the grids.
    pub fn n_workers(&self) -> u64 {
        self.n_workers
    }

    /// Cuts of values with which every block has one owner, and every task one worker. Parts are cut further, into tiles of about the length that is
    /// wanted: work then begins before all of a part has arrived.
    pub fn tilings(&self, program: &Program, tile: Option<u64>) -> BTreeMap<ValueId, Vec<Axis>> {
        let most = if self.n_workers <= MANY_WORKERS { MOST_TILES } else { 1 };
        let mut cuts = Cuts::new(tile.map_or((GOOD_TILE, most), |tile| (tile, u64::MAX)));
        for (&value, owner) in &self.owners {
            (0..program.ty(value).rank()).for_each(|axis| cuts.add((value, axis), owner.cuts(axis)));
        }
        for (&number, (mesh, extents)) in &self.meshes {
            let node = &program.body.nodes[number];
            let Op::Index(stmt) = &node.op else { continue };
            let reads = stmt.reads.iter().map(|read| (node.args[read.operand as usize], &read.idx));
            let accesses: Vec<(ValueId, &Vec<Idx>)> =
                reads.chain(node.results.iter().map(|&value| (value, &stmt.out.idx))).collect();
            for (var, (&n, &parts)) in extents.iter().zip(mesh.factors()).enumerate() {
                // Everything along one variable is cut alike, so that no task reads two blocks of an operand.
                let along = accesses.iter().flat_map(|(value, idx)| {
                    let axes = idx.iter().enumerate().filter(|(_, idx)| idx.as_var() == Some(Var(var as u32)));
                    axes.map(|(axis, _)| (*value, axis)).collect::<Vec<_>>()
                });
                let known = |&(value, axis): &(ValueId, usize)| {
                    program.ty(value).known_shape().is_some_and(|shape| shape[axis] == n)
                };
                let along: Vec<(ValueId, usize)> = along.filter(known).collect();
                if let Some(&first) = along.first() {
                    cuts.add(first, (0..parts).map(|k| part(n, k, parts).start));
                    along.iter().for_each(|&other| cuts.join(first, other));
                }
            }
        }
        let cut = |&value: &ValueId| {
            let shape = program.ty(value).known_shape().unwrap_or_default();
            let axes = shape.iter().enumerate().map(|(axis, &n)| cuts.axis((value, axis), n));
            (value, axes.collect())
        };
        self.owners.keys().map(cut).collect()
    }
}
