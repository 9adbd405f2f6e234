//! Chooses cuts for values and statements with meshes, such that each block has one owner, each task one worker, and tasks are worth their overhead.
//!
//! A variable is cut like the output axis that it runs along, and like an operand axis if a task would otherwise read two blocks of a large operand. Blocks have at most 64 MiB. If
//! this would create tasks that are too small or that read the same data repeatedly, the statement is cut by its own mesh, and its workers assemble their operands.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::index::{Idx, Var};
use tw_ir::program::{Node, NodeId, Op, Program, TensorType, ValueId};
use tw_ir::spec::ScatterSpec;
use tw_ir::{Axis, Grid, Tiling};

use super::access::{Accesses, Part};
use super::cuts::{Cuts, Side};
use super::{Grids, OnGrid, Owners, work_of};
use crate::machine::Machine;
use crate::mesh::Variable;
use tw_plan::ChosenCuts;

/// Tiles per part of a variable: of this length, at most this many; one per part with more workers than `MANY_WORKERS`.
const GOOD_TILE: u64 = 1024;
const MOST_TILES: u64 = 8;
const MANY_WORKERS: u64 = 512;

/// A task should take this many times its overhead, unless there are at most `FEW_TASKS` per worker.
const WORTH_A_TASK: f64 = 16.0;
const FEW_TASKS: u64 = 4;

/// The largest block in bytes; larger blocks delay their readers and need more memory.
const MOST_BYTES: u64 = 64 << 20;

/// A cut that slows a statement by this factor is replaced by another.
const SLOWER: f64 = 1.05;

/// Assembly of an operand is negligible below this fraction of the time of its statement.
const IN_NO_TIME: f64 = 0.001;

impl Grids {
    /// The cuts of values and variables with which each block has one owner and each task one worker. Parts are cut further, into tiles of about the requested length,
    /// so that work starts before a whole part has arrived.
    pub(crate) fn cut(&self, program: &Program, tile: Option<u64>, machine: &Machine) -> ChosenCuts {
        let statements: Vec<Cutting<'_>> =
            self.meshes.iter().filter_map(|(&id, on_grid)| Cutting::of(program, id, on_grid)).collect();
        // If all sides along a variable are cut alike, no task reads two blocks of an operand. If that makes tasks too small, workers assemble operands instead: small operands first,
        // then all.
        let mut apart: BTreeMap<NodeId, Apart> = BTreeMap::new();
        loop {
            let cuts = self.cuts(program, &statements, &apart, tile, machine);
            let alone = |statement: &Cutting<'_>| {
                let only = BTreeMap::from([(statement.id, Apart::FromAll)]);
                self.cuts(program, std::slice::from_ref(statement), &only, tile, machine)
            };
            let is_cut_too_small = |statement: &&Cutting<'_>| {
                let axes = statement.axes(&cuts);
                let n_tasks = axes.n_blocks();
                let too_many = n_tasks > statement.most_tasks(machine);
                too_many || statement.is_slower(program, &axes, machine, || statement.axes(&alone(statement)))
            };
            let is_free = |id: NodeId| apart.get(&id) == Some(&Apart::FromAll);
            // Readers that share the cuts of results, where putting those together takes less time than reading operands again for every piece.
            let readers = |statement: &Cutting<'_>| -> Vec<NodeId> {
                let reads = |other: &&Cutting<'_>| {
                    !is_free(other.id) && statement.node.results.iter().any(|value| other.node.args.contains(value))
                };
                let gained = statement.seconds_gained(
                    program,
                    &statement.axes(&cuts),
                    machine,
                    &statement.axes(&alone(statement)),
                );
                let found = statements.iter().filter(reads).filter(|other| other.assembled(program, machine) < gained);
                found.map(|other| other.id).collect()
            };
            let mut more: BTreeSet<NodeId> = BTreeSet::new();
            for statement in statements.iter().filter(is_cut_too_small) {
                match is_free(statement.id) {
                    false => more.extend([statement.id]),
                    true => more.extend(readers(statement)),
                }
            }
            if more.is_empty() {
                let value = |&value: &ValueId| {
                    let shape = program.ty(value).known_shape().unwrap_or_default();
                    let axes = shape.iter().enumerate().map(|(axis, &n)| cuts.axis(Side::Axis(value, axis), n));
                    (value, axes.collect())
                };
                let of_index = statements.iter().filter(|statement| matches!(statement.node.op, Op::Index(_)));
                let variables = of_index.map(|statement| (statement.id, statement.axes(&cuts)));
                return ChosenCuts { values: self.owners.keys().map(value).collect(), variables: variables.collect() };
            }
            for node in more {
                apart.entry(node).and_modify(|apart| *apart = Apart::FromAll).or_insert(Apart::FromSmall);
            }
        }
    }

    fn cuts(
        &self,
        program: &Program,
        statements: &[Cutting<'_>],
        apart: &BTreeMap<NodeId, Apart>,
        tile: Option<u64>,
        machine: &Machine,
    ) -> Cuts {
        let most = if self.n_workers <= MANY_WORKERS { MOST_TILES } else { 1 };
        let mut cuts = Cuts::new(tile.map_or((GOOD_TILE, most), |tile| (tile, u64::MAX)));
        // Cuts of one statement are asked for by itself.
        let only = match statements {
            [only] => Some([&only.node.args[..], &only.node.results].concat()),
            _ => None,
        };
        let touched = || self.owners.iter().filter(|(value, _)| only.as_ref().is_none_or(|only| only.contains(value)));
        for (&value, owner) in touched() {
            (0..program.ty(value).rank()).for_each(|axis| cuts.add(Side::Axis(value, axis), owner.cuts(axis)));
            if let (Owners::Tiles(..), None) = (owner, &program.ty(value).tiling) {
                (0..program.ty(value).rank()).for_each(|axis| cuts.keep(Side::Axis(value, axis)));
            }
            // Tilings of the user stay, and the sides of their classes follow.
            if let Some(Tiling::Grid(axes)) = &program.ty(value).tiling {
                axes.iter().enumerate().for_each(|(axis, cut)| cuts.add(Side::Axis(value, axis), cut.boundaries()));
            }
        }
        let scattered: BTreeSet<Side> = statements.iter().flat_map(Cutting::scattered).collect();
        // The reads along each variable that may have to be cut alike.
        let mut reading: Vec<(Side, Side, u64)> = Vec::new();
        for statement in statements {
            let (own, apart) = (statement.scattered(), apart.get(&statement.id));
            for (var, (along, &parts)) in
                statement.on_grid.variables.iter().zip(statement.on_grid.mesh.factors()).enumerate()
            {
                let variable = Side::Variable(statement.id, var);
                cuts.add(variable, (0..parts).map(|k| along.part_along(k, parts).start));
                let (made, read) = statement.along(program, var, apart, machine);
                made.into_iter()
                    .filter(|side| own.contains(side) || !scattered.contains(side))
                    .for_each(|side| cuts.join(variable, side));
                let read = read.into_iter().filter(|side| !scattered.contains(side));
                match statement.node.op {
                    Op::Index(_) => reading.extend(read.map(|side| (variable, side, along.along))),
                    // Other operations are cut as what they read is.
                    _ => read.for_each(|side| cuts.join(variable, side)),
                }
            }
        }
        touched().for_each(|(&value, _)| halve_large_blocks(program.ty(value), value, &mut cuts));
        // A read within one block need not share the cuts of the block.
        loop {
            let n_before = reading.len();
            reading.retain(|&(variable, read, n)| {
                let is_within = cuts.is_within(variable, read, n);
                if !is_within {
                    cuts.join(variable, read);
                }
                is_within
            });
            if reading.len() == n_before {
                break;
            }
        }
        cuts
    }
}

/// Cuts a value along its longest sides until no block exceeds the limit.
fn halve_large_blocks(ty: &TensorType, value: ValueId, cuts: &mut Cuts) {
    let (Some(shape), None) = (ty.known_shape(), &ty.tiling) else { return };
    loop {
        let side = |axis: usize| Side::Axis(value, axis);
        let longest: Vec<u64> = (0..shape.len()).map(|axis| cuts.axis(side(axis), shape[axis]).longest()).collect();
        let bytes = longest.iter().fold(ty.dtype.size(), |bytes, &n| bytes.saturating_mul(n));
        match (0..shape.len()).max_by_key(|&axis| longest[axis]).filter(|_| bytes > MOST_BYTES) {
            Some(axis) => cuts.halve(side(axis), shape[axis]),
            None => return,
        }
    }
}

/// The operands that a statement assembles instead of sharing their cuts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// Operands whose assembly is negligible.
    FromSmall,
    FromAll,
}

/// An operation with a mesh, to be cut.
struct Cutting<'a> {
    id: NodeId,
    node: &'a Node,
    accesses: Accesses,
    on_grid: &'a OnGrid,
}

impl<'a> Cutting<'a> {
    fn of(program: &'a Program, id: NodeId, on_grid: &'a OnGrid) -> Option<Cutting<'a>> {
        let node = program.node(id)?;
        Some(Cutting { id, node, accesses: Accesses::of(program, node)?, on_grid })
    }

    /// Output axes that are not cut like their readers: each block along them needs another pass over all contributions.
    fn scattered(&self) -> Vec<Side> {
        let Op::Scatter { spec: ScatterSpec { axes, .. }, .. } = &self.node.op else { return Vec::new() };
        let sides = |&value: &ValueId| axes.iter().map(move |&axis| Side::Axis(value, axis as usize));
        self.node.results.iter().flat_map(sides).collect()
    }

    /// The output axes along a variable, and the axes of operands that share its cuts.
    fn along(&self, program: &Program, var: usize, apart: Option<&Apart>, machine: &Machine) -> (Vec<Side>, Vec<Side>) {
        let Variable { first, along, .. } = self.on_grid.variables[var];
        let sides = |value: ValueId, part: &Part| -> Vec<Side> {
            let shape = program.ty(value).known_shape().unwrap_or_default();
            // Accesses in tiles are cut already.
            let axes = part.idx.iter().zip(&shape).enumerate().filter(|_| part.tiles.is_none());
            let fits = |idx: &Idx, n: u64| idx.as_shifted_var() == Some((Var(var as u32), first as i64)) && n == along;
            let axes = axes.filter(|(_, (idx, n))| fits(idx, **n));
            axes.map(|(axis, _)| Side::Axis(value, axis)).collect()
        };
        let made = self.node.results.iter().zip(self.accesses.outs.iter().cycle());
        let read = self.accesses.reads.iter().map(|(argument, part)| (self.node.args[*argument], part));
        let read = read.filter(|(value, part)| match apart {
            None => true,
            Some(Apart::FromSmall) => self.is_worth_cutting_alike(program.ty(*value), part, machine),
            Some(Apart::FromAll) => false,
        });
        (
            made.flat_map(|(&value, part)| sides(value, part)).collect(),
            read.flat_map(|(value, part)| sides(value, part)).collect(),
        )
    }

    fn axes(&self, cuts: &Cuts) -> Grid {
        let axis = |(number, var): (usize, &Variable)| {
            let along = cuts.axis(Side::Variable(self.id, number), var.along);
            let mut cuts: Vec<u64> = along.boundaries().into_iter().map(|cut| var.value_at(cut)).collect();
            cuts.dedup();
            Axis::from_boundaries(cuts)
        };
        self.on_grid.variables.iter().enumerate().map(axis).collect()
    }

    /// True if tasks with these tiles reread so much that another cut with assembled operands would be faster.
    fn is_slower(&self, program: &Program, axes: &Grid, machine: &Machine, alone: impl FnOnce() -> Grid) -> bool {
        let whole = Grid::whole(&axes.shape());
        let seconds = |axes: &[Axis]| self.seconds_cut(program, axes, machine);
        let (Some(cut), Some(least)) = (seconds(axes), seconds(&whole)) else { return false };
        if cut < least * SLOWER {
            return false;
        }
        let assembled = self.assembled(program, machine);
        seconds(&alone()).is_some_and(|alone| cut > (alone + assembled) * SLOWER)
    }

    /// The seconds that other cuts save.
    fn seconds_gained(&self, program: &Program, axes: &Grid, machine: &Machine, other: &Grid) -> f64 {
        let seconds = |axes: &[Axis]| self.seconds_cut(program, axes, machine).unwrap_or(0.0);
        seconds(axes) - seconds(other)
    }

    /// Seconds to assemble all operands, over all workers.
    fn assembled(&self, program: &Program, machine: &Machine) -> f64 {
        self.reads(program).map(|(ty, part)| self.assembling(ty, part, machine)).sum()
    }

    /// Seconds of a statement with these cuts, over all workers.
    fn seconds_cut(&self, program: &Program, axes: &[Axis], machine: &Machine) -> Option<f64> {
        let arithmetic = self.seconds(machine)?;
        let n_tasks = axes.iter().fold(1.0, |n, axis| n * axis.n_tiles() as f64);
        let tile = |var: usize| axes[var].extent() as f64 / axes[var].n_tiles().max(1) as f64;
        let elements = |part: &Part| -> f64 { (0..axes.len()).filter(|&var| part.uses(var)).map(tile).product() };
        let read = self.reads(program).map(|(ty, part)| elements(part) * ty.dtype.size() as f64);
        let made = self.accesses.outs.iter().map(|part| elements(part) * self.accesses.state_bytes as f64);
        let bytes = read.chain(made).sum::<f64>() * n_tasks;
        Some(n_tasks * machine.task + arithmetic.max(bytes / machine.stream))
    }

    fn reads<'b>(&'b self, program: &'b Program) -> impl Iterator<Item = (&'b TensorType, &'b Part)> {
        self.accesses.reads.iter().map(|(argument, part)| (program.ty(self.node.args[*argument]), part))
    }

    /// False for operands whose assembly is negligible: the cuts of small operands should not determine those of large ones.
    fn is_worth_cutting_alike(&self, ty: &TensorType, part: &Part, machine: &Machine) -> bool {
        let assembled = self.assembling(ty, part, machine);
        self.seconds(machine).is_none_or(|seconds| assembled > seconds * IN_NO_TIME)
    }

    /// Seconds to assemble an operand, over all workers. Workers along variables that it does not have each assemble a replica.
    fn assembling(&self, ty: &TensorType, part: &Part, machine: &Machine) -> f64 {
        let vars = self.on_grid.variables.iter().zip(self.on_grid.mesh.factors()).enumerate();
        let touched =
            vars.map(|(var, (along, &factor))| if part.uses(var) { along.extent as f64 } else { factor as f64 });
        touched.product::<f64>() * (2 * ty.dtype.size()) as f64 / machine.stream
    }

    /// Seconds of a statement, over all workers.
    fn seconds(&self, machine: &Machine) -> Option<f64> {
        let Op::Index(stmt) = &self.node.op else { return None };
        let points = self.on_grid.variables.iter().fold(1.0, |points, var| points * var.extent as f64);
        let (ops, is_product) = work_of(stmt);
        Some(points * ops as f64 / machine.rate(is_product))
    }

    /// The largest number of tasks that are worth their overhead, or a few per worker. Operations other than index statements are cut like their operands.
    fn most_tasks(&self, machine: &Machine) -> u64 {
        let Some(seconds) = self.seconds(machine) else { return u64::MAX };
        let worth = seconds / (machine.task * WORTH_A_TASK).max(f64::MIN_POSITIVE);
        (worth as u64).max(machine.n_workers() as u64 * FEW_TASKS)
    }
}
