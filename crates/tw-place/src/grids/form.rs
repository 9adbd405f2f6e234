//! Forms: the common part of statements that differ only in their arrays. A form has the candidate meshes, and what each worker reads, owns and receives under each.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tw_ir::index::Var;
use tw_ir::program::{Node, Op, Program, ValueId};
use tw_ir::{Axis, BoxRegion, Grid};

use super::access::{Accesses, Part};
use super::boxes::{Kept, Regions};
use super::owners::{Owned, Owners, of_tiles};
use super::{Aim, work_of};
use crate::layout::prime_factors;
use crate::machine::Machine;
use crate::mesh::{Mesh, Ownership, Variable, part};
use crate::notation::Written;
use crate::reductions::{meetings, patience, patient_meetings};

/// Meshes kept per statement, before numberings.
const MOST_GRIDS: usize = 48;

/// A cap on costs in bytes, so that sums do not overflow.
const MOST_COST: u64 = 1 << 48;

/// The number of groups of workers tried for a mesh that does not use all workers.
const MOST_BEGINNINGS: u64 = 16;

/// Pieces of a sum may slow its statement by this factor.
const SLOWER: f64 = 1.05;

/// The largest allowed imbalance of work; for variables whose parts consist of whole tiles.
const BALANCED: f64 = 1.05;
const BALANCED_IN_TILES: f64 = 1.1;

/// Up to this many messages of a reduction are counted one by one; beyond that, the average of the group is used.
const MOST_MEETINGS: u64 = 1 << 18;

/// The form of a statement: its variables and accesses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) variables: Vec<Variable>,
    /// The variables that a mesh may split.
    can_cut: Vec<bool>,
    pub(super) reads: Vec<Read>,
    /// Each result, or one for all results with the same access.
    pub(super) outs: Vec<Out>,
    /// Bytes of the accumulator state of one output element.
    pub(super) state_bytes: u64,
    /// The number of operations, and whether they run at the rate of matrix products.
    work: (u64, bool),
    /// True if the objective is time.
    is_timed: bool,
    /// True if workers that share a part of the output each own a piece of it; false if one of them owns it all.
    in_pieces: bool,
    /// The variable along which a scan runs, and whether it runs backwards.
    scanned: Option<(usize, bool)>,
}

/// The read of one operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    /// The first read of the same array.
    array: usize,
    pub(super) part: Part,
    pub(super) shape: Vec<u64>,
    pub(super) bytes: u64,
    /// The tiles that a worker owns as a whole, if any.
    tiles: Option<Grid>,
}

/// The write of results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Out {
    shape: Vec<u64>,
    /// The variable along each axis, if there is one.
    pub(super) vars: Vec<Option<usize>>,
    tiles: Option<Grid>,
}

/// A candidate mesh of a form.
pub(super) struct Candidate {
    pub(super) mesh: Mesh,
    /// Bytes that a worker receives if all operands are where the statement wants them.
    pub(super) alone: u64,
    /// The time of the slowest worker, in bytes that it could receive meanwhile; 0 if the objective is bytes.
    pub(super) cost: u64,
    /// True if one worker owns all of a sum, for readers that want it there.
    is_gathered: bool,
    /// The box of each operand that each worker reads.
    pub(super) needs: Vec<Rc<Regions>>,
    /// The owners of operands where they are read, and of the output: without a turn, and per turn of the value. Computed on demand.
    ownerships: RefCell<BTreeMap<Array, Owners>>,
    owners: RefCell<BTreeMap<(Array, u64), Rc<Owned>>>,
    /// Bytes of partial sums that each worker receives, per turn of the output.
    sums: RefCell<BTreeMap<u64, Rc<Vec<u64>>>>,
}

/// A mesh with the bytes that a worker receives under it alone; true if one worker owns all of a sum.
pub(super) type Choice = (u64, Mesh, bool);

/// The machine and the objective of the search.
pub(super) struct Around<'a> {
    pub(super) machine: &'a Machine,
    /// Numbers of workers beyond which some statement has no further shares.
    pub(super) sizes: BTreeSet<u64>,
}

/// An array of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Array {
    Read(usize),
    /// The number of the result.
    Output(usize),
}

impl Form {
    /// The form of an operation that can have a mesh: each output element is computed at one point, or is a reduction over points.
    pub(super) fn of(program: &Program, node: &Node, aim: Aim) -> Option<Form> {
        let Accesses { variables, reads, outs, state_bytes } = Accesses::of(program, node)?;
        let can_cut = variables.iter().map(|(_, can_cut)| *can_cut).collect();
        let mut variables: Vec<Variable> = variables.iter().map(|(extent, _)| Variable::alone(*extent)).collect();
        let inside = match &node.op {
            Op::Index(stmt) if !stmt.out_is_plain() => Some(&outs.first()?.idx),
            _ => None,
        };
        // A statement about the inside of its output is cut where the output is.
        let shape = program.ty(*node.results.first()?).known_shape()?;
        let mut seen = BTreeSet::new();
        for (idx, &along) in inside.into_iter().flatten().zip(&shape) {
            // An axis of one element that a reduction keeps.
            if along == 1 && idx.terms().is_empty() {
                continue;
            }
            let (Var(var), first) = idx.as_shifted_var()?;
            let variable = &mut variables[var as usize];
            let fits =
                first >= 0 && is_nearly(first as u64 + variable.extent, along) && is_nearly(variable.extent, along);
            if !fits || !seen.insert(var) {
                return None;
            }
            (variable.first, variable.along) = (first as u64, along);
        }
        let out = |(part, &value): (&Part, &ValueId)| {
            let vars = part.idx.iter().map(|idx| idx.as_shifted_var().map(|(Var(var), _)| var as usize));
            Some(Out { shape: program.ty(value).known_shape()?, vars: vars.collect(), tiles: part.tiles.clone() })
        };
        let outs = outs.iter().zip(&node.results).map(out).collect::<Option<_>>()?;
        let value = |read: usize| node.args[reads[read].0];
        let read = |number: usize| {
            let (ty, part) = (program.ty(value(number)), reads[number].1.clone());
            let array = (0..number).find(|&before| value(before) == value(number)).unwrap_or(number);
            let tiles = ty.tiling.as_ref().and_then(|tiling| tiling.grid()).cloned();
            Some(Read { array, part, shape: ty.known_shape()?, bytes: ty.dtype.size(), tiles })
        };
        let reads = (0..reads.len()).map(read).collect::<Option<Vec<Read>>>()?;
        // Every piece of the output of a scatter is another pass over all that may belong into it.
        let in_pieces = !matches!(node.op, Op::Scatter { .. });
        let scanned = match &node.op {
            Op::Scan(spec) => Some((spec.axis as usize, spec.reverse)),
            _ => None,
        };
        let work = match &node.op {
            Op::Index(stmt) => {
                let (ops, is_fast) = work_of(stmt);
                (variables.iter().fold(ops, |n, var| n.saturating_mul(var.extent)), is_fast)
            }
            // One for every element that is looked up, added, sorted ..: of what is made, or of the last that is read.
            Op::Gather(_) => (elements(&shape), false),
            _ => (reads.last().map_or(0, |read| elements(&read.shape)), false),
        };
        Some(Form {
            variables,
            can_cut,
            reads,
            outs,
            state_bytes,
            work,
            is_timed: aim == Aim::Time,
            in_pieces,
            scanned,
        })
    }

    /// Splits variables between the tiles of the largest operand along them, if all workers then still have about the same work. Otherwise a worker would receive parts of the tiles at the
    /// borders of its part, which are small beside what it has, but large beside what everyday programs have to send. Results have those tiles, too: `grains` has the tile lengths of values
    /// along their axes. `reads` are the arguments of the node that are read.
    pub(super) fn follow_tiles(
        &mut self,
        node: &Node,
        reads: impl Iterator<Item = usize>,
        n_workers: u64,
        grains: &mut BTreeMap<ValueId, Vec<u64>>,
    ) {
        let mut largest = vec![0; self.variables.len()];
        for (argument, read) in reads.zip(&self.reads).filter(|(_, read)| read.part.tiles.is_none()) {
            let size = elements(&read.shape).saturating_mul(read.bytes);
            for (axis, (idx, &n)) in read.part.idx.iter().zip(&read.shape).enumerate() {
                let own = read.tiles.as_ref().map_or_else(
                    || grains.get(&node.args[argument]).map_or(1, |grains| grains[axis]),
                    |tiles| match tiles[axis] {
                        Axis::Uniform { tile, .. } => tile,
                        Axis::Ragged(_) => 1,
                    },
                );
                let Some((Var(var), first)) = idx.as_shifted_var() else { continue };
                let variable = &mut self.variables[var as usize];
                let fits = (variable.first as i64, variable.along) == (first, n) && own > 1 && own < n;
                // As if all workers split this variable.
                let n_tiles = n.div_ceil(own);
                let work = (n_tiles.div_ceil(n_workers) * own * n_workers) as f64 / n as f64;
                if fits && size > largest[var as usize] && n_tiles >= n_workers && work <= BALANCED_IN_TILES {
                    largest[var as usize] = size;
                    *variable = variable.in_grains(own);
                }
            }
        }
        for (out, &value) in self.outs.iter().zip(&node.results).filter(|(out, _)| out.tiles.is_none()) {
            let grain = |(var, &n): (&Option<usize>, &u64)| {
                let variable = var.map(|var| &self.variables[var]).filter(|variable| variable.along == n);
                variable.map_or(1, |variable| variable.grain)
            };
            grains.insert(value, out.vars.iter().zip(&out.shape).map(grain).collect());
        }
    }

    /// The mesh that computes a result where the user's distribution puts it, if there is one that splits no forbidden variable.
    pub(super) fn written(&self, result: usize, written: &Written) -> Option<Mesh> {
        let out = &self.outs[result.min(self.outs.len() - 1)];
        let mesh = written.mesh(&out.vars, self.variables.len())?;
        self.can_cut.iter().zip(mesh.factors()).all(|(can_cut, factor)| *can_cut || *factor == 1).then_some(mesh)
    }

    /// The largest number of workers with a share.
    pub(super) fn shares(&self) -> u64 {
        self.cut_extents().iter().fold(1u64, |points, &n| points.saturating_mul(n))
    }

    /// The extent of each variable that can be split.
    fn cut_extents(&self) -> Vec<u64> {
        let extent = |(var, can_cut): (&Variable, &bool)| if *can_cut { var.extent } else { var.extent.min(1) };
        self.variables.iter().zip(&self.can_cut).map(extent).collect()
    }

    /// A candidate mesh of this form.
    pub(super) fn candidate(
        &self,
        (alone, mesh, is_gathered): Choice,
        machine: &Machine,
        kept: &mut Kept,
    ) -> Candidate {
        let n_workers = machine.n_workers() as u64;
        let regions =
            |read: &Read| Regions::new(read.shape.len(), (0..n_workers).map(|worker| self.box_of(read, &mesh, worker)));
        let needs = self.reads.iter().map(|read| kept.keep(regions(read))).collect();
        let (ownerships, owners) = (RefCell::default(), RefCell::default());
        let cost = self.cost(&mesh, machine);
        Candidate { needs, mesh, is_gathered, alone, cost, ownerships, owners, sums: RefCell::default() }
    }

    /// Examines all meshes of `n` workers and keeps those under which a worker receives least, if all operands are where the statement wants them. Includes
    /// their numberings, up to a limit. Also returns the number of meshes examined.
    pub(super) fn candidates(&self, around: &Around<'_>, most: usize, kept: &mut Kept) -> (Vec<Candidate>, usize) {
        let machine = around.machine;
        let n_workers = machine.n_workers() as u64;
        let (ranked, n_looked) = match self.is_timed {
            false => self.ranked(n_workers),
            true => self.ranked_by_time(around),
        };
        // All grids once, then again with other numbers or on other workers: many statements do not care, but for what their neighbours want.
        let variants = |(alone, mesh): &(u64, Mesh)| -> Vec<Choice> {
            let (numbered, beginnings) = (mesh.numberings(most), self.beginnings(mesh, n_workers));
            let meshes =
                beginnings.iter().flat_map(|&first| numbered.iter().map(move |mesh| mesh.clone().beginning_at(first)));
            // A sum that has pieces may also be wanted in one piece.
            let is_sum = self.in_pieces && self.parts(mesh) > 1;
            let gathered = is_sum.then(|| (*alone, mesh.clone(), true));
            let mut found: Vec<Choice> = meshes.take(most).map(|mesh| (*alone, mesh, false)).collect();
            gathered.into_iter().for_each(|gathered| found.insert(1, gathered));
            found
        };
        let variants: Vec<Vec<Choice>> = ranked.iter().map(variants).collect();
        let longest = variants.iter().map(Vec::len).max().unwrap_or(0);
        let in_turn = (0..longest).flat_map(|k| variants.iter().filter_map(move |variants| variants.get(k)));
        let chosen: Vec<Choice> = in_turn.take(most).cloned().collect();
        (chosen.into_iter().map(|choice| self.candidate(choice, machine, kept)).collect(), n_looked)
    }

    /// The first workers of meshes that do not use all workers: one per group of equal size. Meshes that omit a few workers all omit the same ones.
    fn beginnings(&self, mesh: &Mesh, n_workers: u64) -> Vec<u64> {
        let n_groups = n_workers / mesh.n_workers();
        let n_looked = n_groups.clamp(1, MOST_BEGINNINGS);
        (0..n_looked).map(|k| part(n_groups, k, n_looked).start * mesh.n_workers()).collect()
    }

    /// Meshes of any divisor of the number of workers, or of a size that another statement needs, ranked by the time of the statement and its traffic.
    fn ranked_by_time(&self, around: &Around<'_>) -> (Vec<(u64, Mesh)>, usize) {
        let machine = around.machine;
        let n_workers = machine.n_workers() as u64;
        let (mut ranked, mut n_looked) = self.ranked(n_workers);
        let extents = self.cut_extents();
        let wanted = |workers: &u64| n_workers.is_multiple_of(*workers) || around.sizes.contains(workers);
        for workers in (1..n_workers).filter(wanted) {
            let meshes = Mesh::all(workers, &extents);
            n_looked += meshes.len();
            ranked.extend(meshes.into_iter().map(|mesh| (self.alone(&mesh), mesh)));
        }
        ranked.sort_by_cached_key(|(alone, mesh)| (alone.saturating_add(self.cost(mesh, machine)), mesh.clone()));
        ranked.dedup();
        ranked.truncate(MOST_GRIDS);
        (ranked, n_looked)
    }

    /// The time of the slowest worker plus message latencies, in bytes that it could receive meanwhile.
    pub(super) fn cost(&self, mesh: &Mesh, machine: &Machine) -> u64 {
        if !self.is_timed {
            return 0;
        }
        let (ops, is_fast) = self.work;
        let share = mesh.imbalance(&self.variables) / mesh.n_workers() as f64;
        let messages = self.messages(mesh).saturating_mul(machine.worth_sending());
        // A worker writes the elements that it computes.
        let made = self.outs.iter().map(|out| elements(&out.shape).saturating_mul(self.state_bytes));
        let made = made.fold(0, u64::saturating_add);
        let seconds = (ops as f64 / machine.rate(is_fast)).max(made as f64 / machine.stream) * share;
        ((seconds * machine.farthest().bandwidth) as u64).saturating_add(messages).min(MOST_COST)
    }

    /// Messages that a worker waits for: one per worker that shares its operands, and one per round of a reduction.
    fn messages(&self, mesh: &Mesh) -> u64 {
        let sharers = |read: &Read| -> u64 {
            (0..self.variables.len()).filter(|&var| !read.part.uses(var)).map(|var| mesh.factors()[var]).product()
        };
        let reads: u64 = self.reads.iter().map(|read| sharers(read) - 1).sum();
        reads + u64::from(self.parts(mesh).next_power_of_two().trailing_zeros())
    }

    /// Meshes ranked by the bytes that a worker receives, and the number examined. Some workers may stay idle, the same for all statements, if the others then receive at least
    /// 10 % less; or if no mesh of all workers exists.
    fn ranked(&self, n_workers: u64) -> (Vec<(u64, Mesh)>, usize) {
        let extents = self.cut_extents();
        let points = self.shares();
        let share = |mesh: &Mesh| mesh.imbalance(&self.variables) * n_workers as f64 / mesh.n_workers() as f64;
        let in_tiles = self.variables.iter().any(|var| var.grain > 1);
        let balanced = if in_tiles { BALANCED_IN_TILES } else { BALANCED };
        let is_even = |mesh: &Mesh| share(mesh) <= balanced;
        let rank = |meshes: Vec<Mesh>| {
            let mut ranked: Vec<(u64, Mesh)> = meshes.into_iter().map(|mesh| (self.alone(&mesh), mesh)).collect();
            ranked.sort();
            ranked.truncate(MOST_GRIDS);
            ranked
        };
        let (even, mut uneven): (Vec<Mesh>, Vec<Mesh>) = Mesh::all(n_workers, &extents).into_iter().partition(is_even);
        let fewer = fewer_workers(n_workers).filter(|workers| *workers <= points);
        let with_idle = fewer.map_or_else(Vec::new, |workers| Mesh::all(workers, &extents));
        let with_idle: Vec<Mesh> = with_idle.into_iter().filter(is_even).collect();
        let n_looked = even.len() + with_idle.len();
        let (mut ranked, with_idle) = (rank(even), rank(with_idle));
        let pays = match (with_idle.first(), ranked.first()) {
            (Some((fewer, _)), Some((all, _))) => *fewer < all / 10 * 9,
            _ => true,
        };
        if pays {
            ranked.extend(with_idle);
            ranked.sort();
        }
        if ranked.is_empty() {
            // The most even ones of the largest grids there are.
            let mut workers = points.min(n_workers);
            while uneven.is_empty() && workers > 0 {
                uneven = Mesh::all(workers, &extents);
                workers -= 1;
            }
            uneven.sort_by(|a, b| share(a).total_cmp(&share(b)));
            uneven.truncate(MOST_GRIDS);
            return (rank(uneven), n_looked);
        }
        (ranked, n_looked)
    }

    /// Bytes that a worker receives under a mesh if arrays are sharded evenly over the workers that touch them. A worker in the middle, with neighbours on all sides, represents all: the
    /// others differ only by rounding, or receive less.
    fn alone(&self, mesh: &Mesh) -> u64 {
        let middle = mesh.worker(&mesh.factors().iter().map(|factor| factor / 2).collect::<Vec<_>>());
        let need =
            |read: &Read| Rc::new(Regions::new(read.shape.len(), std::iter::once(self.box_of(read, mesh, middle))));
        let mut sum = 0;
        for (number, first) in self.reads.iter().enumerate().filter(|(number, read)| *number == read.array) {
            let needs: Vec<Rc<Regions>> = self.reads.iter().filter(|read| read.array == number).map(need).collect();
            let owned = Owned::new(self.owners(Array::Read(number), mesh), middle..middle + 1);
            sum += owned.missing(0, needs.iter()) * first.bytes;
        }
        let output = Owned::new(self.owners(Array::Output(0), mesh), middle..middle + 1);
        sum + (self.parts(mesh) - 1) * output.elements(0) * self.state_bytes
    }

    /// The owners of an array under a mesh, by elements or by tiles.
    fn owners(&self, array: Array, mesh: &Mesh) -> Owners {
        let (shape, vars, tiles) = match array {
            Array::Output(number) => {
                let Out { shape, vars, tiles } = &self.outs[number];
                (shape, vars.clone(), tiles)
            }
            Array::Read(number) => {
                let read = &self.reads[number];
                let mut vars: Vec<Option<usize>> = Vec::new();
                for (axis, idx) in read.part.idx.iter().enumerate() {
                    let var = idx.as_shifted_var().map(|(Var(var), _)| var as usize);
                    let n = read.part.tiles.as_ref().map_or(read.shape[axis], |tiles| tiles[axis].n_tiles());
                    let fits = |&var: &usize| is_nearly(self.variables[var].extent, n) && !vars.contains(&Some(var));
                    vars.push(var.filter(fits));
                }
                // What is read by whole tiles is owned by whole tiles, even if it has no tiling of its own.
                (&read.shape, vars, if read.tiles.is_some() { &read.tiles } else { &read.part.tiles })
            }
        };
        let grains = |var: &Option<usize>| var.map_or(1, |var| self.variables[var].grain);
        let owners = match tiles {
            None => {
                let grains = vars.iter().map(grains).collect();
                Owners::Grid(Ownership::new(shape, mesh, vars).in_grains(grains))
            }
            Some(axes) => Owners::Tiles(Ownership::new(&axes.tiles_per_axis(), mesh, vars), axes.clone()),
        };
        if matches!(array, Array::Output(_)) && !self.in_pieces { owners.in_one_piece() } else { owners }
    }

    /// The owners of an array of the statement under a mesh. Pieces below the size that is worth a message are merged; the turn then selects one of the possible
    /// owners.
    pub(super) fn owner(&self, candidate: &Candidate, array: Array, turn: u64, machine: &Machine) -> Rc<Owned> {
        let mut ownerships = candidate.ownerships.borrow_mut();
        let before = ownerships.entry(array).or_insert_with(|| {
            let bytes = match array {
                Array::Read(number) => self.reads[number].bytes,
                Array::Output(_) => self.state_bytes,
            };
            let owners = self.owners(array, &candidate.mesh);
            let is_output = matches!(array, Array::Output(_));
            if is_output && candidate.is_gathered {
                return owners.in_one_piece();
            }
            let is_sum = is_output && self.parts(&candidate.mesh) > 1;
            let least = if is_sum { self.least_piece(&candidate.mesh, machine) } else { 1 };
            if is_output && !self.in_pieces {
                owners
            } else {
                owners.in_pieces_of(least.max(machine.worth_sending() / bytes.max(1)))
            }
        });
        let turn = match candidate.is_gathered && matches!(array, Array::Output(_)) {
            // Where statements of one worker may be.
            true => {
                let n_looked = before.turns().clamp(1, MOST_BEGINNINGS);
                part(before.turns(), turn % n_looked, n_looked).start
            }
            false => turn % before.turns(),
        };
        let mut owners = candidate.owners.borrow_mut();
        let workers = 0..machine.n_workers() as u64;
        let owned = || Rc::new(Owned::new(before.clone().turned(turn), workers));
        owners.entry((array, turn)).or_insert_with(owned).clone()
    }

    /// Seconds of the statement, over all workers.
    fn seconds(&self, machine: &Machine) -> f64 {
        let (ops, is_product) = self.work;
        let read = |read: &Read| {
            let vars = self.variables.iter().enumerate().filter(|(var, _)| read.part.uses(*var));
            vars.fold(read.bytes as f64, |bytes, (_, var)| bytes * var.extent as f64)
        };
        let bytes: f64 = self.reads.iter().filter(|read| read.part.tiles.is_none()).map(read).sum();
        (ops as f64 / machine.rate(is_product)).max(bytes / machine.stream)
    }

    /// Elements of the smallest piece of a sum that does not slow the statement: with every piece, a worker reads again what does not run along it.
    fn least_piece(&self, mesh: &Mesh, machine: &Machine) -> u64 {
        let length = |var: usize| (self.variables[var].extent / mesh.factors()[var]).max(1);
        let written = (0..self.variables.len()).filter(|&var| self.is_written(var));
        let Some(cut) = written.clone().max_by_key(|&var| length(var)) else { return 1 };
        let seconds = |pieces: u64| {
            let read = self.reads.iter().map(|read| {
                let vars = (0..self.variables.len()).filter(|&var| read.part.uses(var));
                let elements = vars.fold(read.bytes, |elements, var| elements.saturating_mul(length(var)));
                elements.saturating_mul(if read.part.uses(cut) { 1 } else { pieces })
            });
            let read = read.fold(0, u64::saturating_add);
            let (ops, is_product) = self.work;
            let arithmetic = ops as f64 / machine.rate(is_product) / mesh.n_workers() as f64;
            arithmetic.max(read as f64 / machine.stream)
        };
        // One for each worker that adds to it, or else the largest power of two that is not too slow.
        let fits = |&pieces: &u64| pieces <= self.parts(mesh) && seconds(pieces) <= seconds(1) * SLOWER;
        let doubled = std::iter::successors(Some(1u64), |pieces| Some(pieces * 2)).take_while(fits);
        let most = Some(self.parts(mesh)).filter(fits).or(doubled.last()).unwrap_or(1);
        let elements = written.fold(1u64, |elements, var| elements.saturating_mul(length(var)));
        elements / most
    }

    /// True for variables that results have.
    fn is_written(&self, var: usize) -> bool {
        self.outs.first().is_some_and(|out| out.vars.contains(&Some(var)))
    }

    /// The number of partial sums per output element.
    fn parts(&self, mesh: &Mesh) -> u64 {
        let summed = (0..self.variables.len()).filter(|var| !self.is_written(*var));
        summed.map(|var| mesh.factors()[var]).product()
    }

    /// The box of an operand that a worker reads.
    fn box_of(&self, read: &Read, mesh: &Mesh, worker: u64) -> BoxRegion {
        if !mesh.contains(worker) {
            return BoxRegion { lo: vec![0; read.shape.len()], hi: vec![0; read.shape.len()] };
        }
        let parts = self.variables.iter().zip(mesh.coordinates(worker)).zip(mesh.factors());
        let ranges: Vec<(i64, i64)> = parts
            .map(|((var, k), &n)| var.part(k, n))
            .map(|range| (range.start as i64, range.end as i64 - 1))
            .collect();
        BoxRegion::from_ranges(read.part.idx.iter().enumerate().map(|(axis, idx)| {
            let (lo, hi) = idx.interval(&ranges);
            let tiles = read.part.tiles.as_ref().map(|tiles| &tiles[axis]);
            let n = tiles.map_or(read.shape[axis], Axis::n_tiles);
            let clip = |at: i64| at.clamp(0, n as i64) as u64;
            let (lo, hi) = (clip(lo), clip(hi.saturating_add(1)).max(clip(lo)));
            tiles.map_or(lo..hi, |tiles| of_tiles(tiles, lo, hi))
        }))
    }

    /// Bytes of partial sums that each worker receives if the output has this turn.
    pub(super) fn sums(&self, candidate: &Candidate, turn: u64, machine: &Machine) -> Rc<Vec<u64>> {
        let output = self.owner(candidate, Array::Output(0), turn, machine);
        let mut sums = candidate.sums.borrow_mut();
        let found = sums.entry(output.owners.turn()).or_insert_with(|| {
            let mut received = self.meet(candidate, &output, machine);
            received.iter_mut().for_each(|bytes| *bytes += candidate.cost);
            Rc::new(received)
        });
        found.clone()
    }

    fn meet(&self, candidate: &Candidate, output: &Owned, machine: &Machine) -> Vec<u64> {
        let n_workers = machine.n_workers();
        let (factors, parts) = (candidate.mesh.factors(), self.parts(&candidate.mesh));
        let mut received = vec![0; n_workers];
        if let Some((along, reverse)) = self.scanned {
            // Whoever is not the first along a fibre receives the state before its part.
            let first = if reverse { factors[along] - 1 } else { 0 };
            for worker in candidate.mesh.workers() {
                let coordinates = candidate.mesh.coordinates(worker);
                let length = |(var, along): (usize, &Variable)| {
                    let part = along.part(coordinates[var], factors[var]);
                    part.end - part.start
                };
                let across = self.variables.iter().enumerate().filter(|(var, _)| *var != along).map(length);
                let is_first = coordinates[along] == first;
                received[worker as usize] += if is_first { 0 } else { across.product::<u64>() * self.state_bytes };
            }
        }
        if parts == 1 {
            return received;
        }
        // Workers with equal coordinates along the output hold parts of one sum.
        let group = |worker: u64| {
            let coordinates = candidate.mesh.coordinates(worker);
            let kept = coordinates.iter().zip(factors).enumerate().filter(|(var, _)| self.is_written(*var));
            kept.fold(0, |number, (_, (coordinate, factor))| number * factor + coordinate)
        };
        let mut groups: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for worker in candidate.mesh.workers() {
            groups.entry(group(worker)).or_default().push(worker as u32);
        }
        for members in groups.values() {
            let owners = members.iter().filter(|&&owner| output.elements(owner as usize) > 0);
            let n_owners = owners.clone().count();
            let one_by_one = n_owners as u64 * parts <= MOST_MEETINGS;
            let patience = patience(self.seconds(machine), n_owners, members.len(), machine).filter(|_| !self.is_timed);
            for &owner in owners {
                let bytes = output.elements(owner as usize) * self.state_bytes;
                if one_by_one {
                    let meetings = match patience {
                        Some(patience) => patient_meetings(owner, members, bytes, patience, machine),
                        None => meetings(owner, members, machine),
                    };
                    meetings.iter().for_each(|&(to, _)| received[to as usize] += bytes);
                } else {
                    received[owner as usize] += bytes * (parts - 1);
                }
            }
        }
        received
    }
}

/// True if a statement over this many elements of an axis omits only its borders.
fn is_nearly(extent: u64, along: u64) -> bool {
    extent <= along && along - extent <= along / 8
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |n: u64, &extent| n.saturating_mul(extent))
}

/// A smaller number of workers with still balanced shares, chosen to have the most meshes.
fn fewer_workers(n_workers: u64) -> Option<u64> {
    let fewest = (n_workers as f64 / BALANCED).ceil() as u64;
    let n_divisors = |n: u64| {
        let factors = prime_factors(n);
        let groups = factors.chunk_by(|a, b| a == b);
        groups.map(|group| group.len() as u64 + 1).product::<u64>()
    };
    (fewest.max(2)..n_workers).max_by_key(|&workers| (n_divisors(workers), workers))
}
