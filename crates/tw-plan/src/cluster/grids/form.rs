//! What statements that differ in their arrays alone have in common: the grids they may have, and what every worker then reads, owns and receives.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use tw_ir::index::Var;
use tw_ir::program::{Node, Op, Program, ValueId};
use tw_ir::{Axis, BoxRegion};

use super::Owners;
use super::access::{Accesses, Part};
use super::boxes::{Kept, Ranges, Regions, beside, n_elements, shared};
use crate::cluster::held::Held;
use crate::cluster::layout::prime_factors;
use crate::cluster::machine::Machine;
use crate::cluster::mesh::{Mesh, Ownership, Variable};
use crate::cluster::reductions::meetings;

/// Grids that are kept for a statement, before they are numbered.
const MOST_GRIDS: usize = 24;

/// The busiest worker may do this much more than its share.
const BALANCED: f64 = 1.05;

/// Messages of sums that are followed one by one; of more, what a worker receives is taken to be the average of its group.
const MOST_MEETINGS: u64 = 1 << 18;

/// The form of a statement: its variables, and how it reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) variables: Vec<Variable>,
    /// Those that a grid may cut.
    can_cut: Vec<bool>,
    pub(super) reads: Vec<Read>,
    /// Every result, or one for all that are at the same place.
    pub(super) outs: Vec<Out>,
    /// Bytes of what is summed for one element of the output.
    pub(super) state_bytes: u64,
    /// True if workers that share a part of the output each own a piece of it; else one of them owns it all.
    in_pieces: bool,
}

/// How one operand is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    /// The first read of the same array.
    array: usize,
    pub(super) part: Part,
    pub(super) shape: Vec<u64>,
    pub(super) bytes: u64,
    /// The tiles that belong to somebody as a whole, where there are such.
    tiles: Option<Vec<Axis>>,
}

/// How results are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Out {
    shape: Vec<u64>,
    /// The variable along each axis, if there is one.
    pub(super) vars: Vec<Option<usize>>,
    tiles: Option<Vec<Axis>>,
}

/// A grid that statements of a form may have.
pub(super) struct Candidate {
    pub(super) mesh: Mesh,
    /// What a worker receives if everything the statement reads is where it wants it.
    pub(super) alone: u64,
    /// What every worker reads of each operand.
    pub(super) needs: Vec<Rc<Regions>>,
    /// Who would own the operands where they are read, and the output: before anybody's turn, and by the turn of the value; known once somebody asks.
    ownerships: RefCell<BTreeMap<Array, (Ownership, Option<Vec<Axis>>)>>,
    owners: RefCell<BTreeMap<(Array, u64), Rc<Owned>>>,
    /// Bytes of parts of sums that every worker receives, by the turn of the output.
    sums: RefCell<BTreeMap<u64, Rc<Vec<u64>>>>,
}

/// An array of a statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Array {
    Read(usize),
    /// The number of the result.
    Output(usize),
}

/// Who owns a value, and the parts of every worker.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) owners: Owners,
    rank: usize,
    /// Boxes of all workers, one after the other, and how many boxes have been there before each worker's.
    boxes: Vec<(u64, u64)>,
    starts: Vec<usize>,
    /// For a value without axes: who has it.
    has_scalar: Vec<bool>,
}

impl Owned {
    /// What some workers own under a grid, of elements or of tiles; they are counted from 0 on here.
    pub(super) fn new(ownership: Ownership, tiles: Option<Vec<Axis>>, workers: Range<u64>) -> Owned {
        let rank = ownership.rank();
        let elements = |region: BoxRegion| match &tiles {
            None => region,
            Some(axes) => BoxRegion::from_ranges(
                axes.iter().zip(region.lo.iter().zip(&region.hi)).map(|(axis, (&lo, &hi))| of_tiles(axis, lo, hi)),
            ),
        };
        let boxes = workers.clone().map(|worker| vec![elements(ownership.owned(worker))]).collect();
        let has_scalar = match rank {
            0 => workers.map(|worker| ownership.owns_scalar(worker)).collect(),
            _ => Vec::new(),
        };
        let owners = match tiles {
            None => Owners::Grid(ownership),
            Some(axes) => Owners::Tiles(ownership, axes),
        };
        Owned::with_boxes(owners, rank, boxes, has_scalar)
    }

    /// What workers hold of a value from before.
    pub(super) fn held(held: &Held, n_workers: usize) -> Owned {
        let rank = held.axes().len();
        let mut boxes = vec![Vec::new(); n_workers];
        held.boxes().for_each(|(worker, region)| boxes[worker as usize].push(region));
        let has_scalar = match rank {
            0 => boxes.iter().map(|boxes| !boxes.is_empty()).collect(),
            _ => Vec::new(),
        };
        Owned::with_boxes(Owners::Held(held.clone()), rank, boxes, has_scalar)
    }

    fn with_boxes(owners: Owners, rank: usize, of_workers: Vec<Vec<BoxRegion>>, has_scalar: Vec<bool>) -> Owned {
        let (mut boxes, mut starts) = (Vec::new(), vec![0]);
        for region in of_workers {
            let n_before = starts[starts.len() - 1];
            starts.push(n_before + region.len());
            region.into_iter().for_each(|region| boxes.extend(region.lo.into_iter().zip(region.hi)));
        }
        Owned { owners, rank, boxes, starts, has_scalar }
    }

    fn boxes(&self, worker: usize) -> impl Iterator<Item = &Ranges> + Clone {
        self.boxes[self.starts[worker] * self.rank..self.starts[worker + 1] * self.rank].chunks(self.rank.max(1))
    }

    fn elements(&self, worker: usize) -> u64 {
        match self.has_scalar.get(worker) {
            Some(has) => *has as u64,
            None => self.boxes(worker).map(n_elements).sum(),
        }
    }

    /// Elements that a worker reads in any of some ways and does not own.
    pub(super) fn missing<'a>(&self, worker: usize, needs: impl Iterator<Item = &'a Rc<Regions>>) -> u64 {
        if let Some(has) = self.has_scalar.get(worker) {
            return !has as u64;
        }
        let owned = self.boxes(worker);
        let mut before: Vec<&Ranges> = Vec::new();
        let mut sum = 0;
        for need in needs.map(|need| need.of(worker)) {
            // Nobody else owns what the worker owns, and none of its boxes share elements.
            beside(need, &before, &mut |part| {
                sum += n_elements(part) - owned.clone().map(|owned| shared(part, owned)).sum::<u64>()
            });
            before.push(need);
        }
        sum
    }
}

impl Form {
    /// The form of an operation that can have a grid: every element of the output is made at one point, or is a sum over some.
    pub(super) fn of(program: &Program, node: &Node) -> Option<Form> {
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
            let tiles = ty.tiling.as_ref().and_then(|tiling| tiling.grid()).map(<[Axis]>::to_vec);
            Some(Read { array, part, shape: ty.known_shape()?, bytes: ty.dtype.size(), tiles })
        };
        let reads = (0..reads.len()).map(read).collect::<Option<_>>()?;
        // Every piece of the output of a scatter is another pass over all that may belong into it.
        let in_pieces = !matches!(node.op, Op::Scatter { .. });
        Some(Form { variables, can_cut, reads, outs, state_bytes, in_pieces })
    }

    /// True if all workers can have a share.
    pub(super) fn has_work_for(&self, n_workers: u64) -> bool {
        self.cut_extents().iter().fold(1u64, |points, &n| points.saturating_mul(n)) >= n_workers
    }

    /// What there is of each variable to be cut.
    fn cut_extents(&self) -> Vec<u64> {
        let extent = |(var, can_cut): (&Variable, &bool)| if *can_cut { var.extent } else { var.extent.min(1) };
        self.variables.iter().zip(&self.can_cut).map(extent).collect()
    }

    /// A grid of this form.
    pub(super) fn candidate(&self, mesh: Mesh, alone: u64, n_workers: u64, kept: &mut Kept) -> Candidate {
        let regions =
            |read: &Read| Regions::new(read.shape.len(), (0..n_workers).map(|worker| self.box_of(read, &mesh, worker)));
        let needs = self.reads.iter().map(|read| kept.keep(regions(read))).collect();
        let (ownerships, owners) = (RefCell::default(), RefCell::default());
        Candidate { needs, mesh, alone, ownerships, owners, sums: RefCell::default() }
    }

    /// Looks at all grids of so many workers and keeps those under which a worker receives least if everything is where the statement wants it, with their
    /// numberings, at most so many in all. Tells how many it looked at.
    pub(super) fn candidates(&self, n_workers: u64, most: usize, kept: &mut Kept) -> (Vec<Candidate>, usize) {
        let (ranked, n_looked) = self.ranked(n_workers);
        let mut found = Vec::new();
        for (alone, mesh) in ranked {
            let numbered = mesh.numberings(most - found.len());
            found.extend(numbered.into_iter().map(|mesh| self.candidate(mesh, alone, n_workers, kept)));
        }
        (found, n_looked)
    }

    /// Grids by what a worker receives, and how many were looked at. Some workers may stay idle, the same for all statements, if the others then receive a tenth less than with all at
    /// work; or if there is no other way.
    fn ranked(&self, n_workers: u64) -> (Vec<(u64, Mesh)>, usize) {
        let extents = self.cut_extents();
        let points = extents.iter().fold(1u64, |points, &n| points.saturating_mul(n));
        let share = |mesh: &Mesh| mesh.imbalance(&self.variables) * n_workers as f64 / mesh.n_workers() as f64;
        let is_even = |mesh: &Mesh| share(mesh) <= BALANCED;
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
            while uneven.is_empty() && workers > 1 {
                uneven = Mesh::all(workers, &extents);
                workers -= 1;
            }
            uneven.sort_by(|a, b| share(a).total_cmp(&share(b)));
            uneven.truncate(MOST_GRIDS);
            return (rank(uneven), n_looked);
        }
        (ranked, n_looked)
    }

    /// What a worker receives under a grid if everything is spread evenly over those who touch it. One in the middle, with neighbours on all sides, stands for all: the others differ by
    /// the rounding of parts alone, or receive less.
    fn alone(&self, mesh: &Mesh) -> u64 {
        let middle = mesh.worker(&mesh.factors().iter().map(|factor| factor / 2).collect::<Vec<_>>());
        let need =
            |read: &Read| Rc::new(Regions::new(read.shape.len(), std::iter::once(self.box_of(read, mesh, middle))));
        let mut sum = 0;
        for (number, first) in self.reads.iter().enumerate().filter(|(number, read)| *number == read.array) {
            let needs: Vec<Rc<Regions>> = self.reads.iter().filter(|read| read.array == number).map(need).collect();
            let (ownership, tiles) = self.ownership(Array::Read(number), mesh);
            let owned = Owned::new(ownership, tiles, middle..middle + 1);
            sum += owned.missing(0, needs.iter()) * first.bytes;
        }
        let (ownership, tiles) = self.ownership(Array::Output(0), mesh);
        let output = Owned::new(ownership, tiles, middle..middle + 1);
        sum + (self.parts(mesh) - 1) * output.elements(0) * self.state_bytes
    }

    /// Who owns an array where a grid has it: elements of it, or tiles.
    fn ownership(&self, array: Array, mesh: &Mesh) -> (Ownership, Option<Vec<Axis>>) {
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
                (&read.shape, vars, &read.tiles)
            }
        };
        let ownership = match tiles {
            None => Ownership::new(shape, mesh, vars),
            Some(axes) => Ownership::new(&axes.iter().map(Axis::n_tiles).collect::<Vec<_>>(), mesh, vars),
        };
        let whole = matches!(array, Array::Output(_)) && !self.in_pieces;
        (if whole { ownership.in_pieces_of(u64::MAX) } else { ownership }, tiles.clone())
    }

    /// Who owns an array of the statement if it belongs where a grid has it. Pieces that are not worth a message are not made; of those who then could own the array, it
    /// is the turn of one.
    pub(super) fn owner(&self, candidate: &Candidate, array: Array, turn: u64, machine: &Machine) -> Rc<Owned> {
        let mut ownerships = candidate.ownerships.borrow_mut();
        let (ownership, tiles) = ownerships.entry(array).or_insert_with(|| {
            let (ownership, tiles) = self.ownership(array, &candidate.mesh);
            let bytes = match array {
                _ if tiles.is_some() => return (ownership, tiles),
                Array::Read(number) => self.reads[number].bytes,
                Array::Output(_) if self.in_pieces => self.state_bytes,
                Array::Output(_) => return (ownership, tiles),
            };
            (ownership.in_pieces_of(machine.worth_sending() / bytes.max(1)), tiles)
        });
        let turn = turn % ownership.turns();
        let mut owners = candidate.owners.borrow_mut();
        let workers = 0..machine.n_workers() as u64;
        let owned = || Rc::new(Owned::new(ownership.clone().turned(turn), tiles.clone(), workers));
        owners.entry((array, turn)).or_insert_with(owned).clone()
    }

    /// True for variables that results have.
    fn is_written(&self, var: usize) -> bool {
        self.outs.first().is_some_and(|out| out.vars.contains(&Some(var)))
    }

    /// Parts that every element of the output is the sum of.
    fn parts(&self, mesh: &Mesh) -> u64 {
        let summed = (0..self.variables.len()).filter(|var| !self.is_written(*var));
        summed.map(|var| mesh.factors()[var]).product()
    }

    /// The box of an operand that a worker reads.
    fn box_of(&self, read: &Read, mesh: &Mesh, worker: u64) -> BoxRegion {
        if worker >= mesh.n_workers() {
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

    /// Bytes of parts of sums that every worker receives where an output has this turn.
    pub(super) fn sums(&self, candidate: &Candidate, turn: u64, machine: &Machine) -> Rc<Vec<u64>> {
        let output = self.owner(candidate, Array::Output(0), turn, machine);
        let mut sums = candidate.sums.borrow_mut();
        let found = sums.entry(output.owners.turn()).or_insert_with(|| Rc::new(self.meet(candidate, &output, machine)));
        found.clone()
    }

    fn meet(&self, candidate: &Candidate, output: &Owned, machine: &Machine) -> Vec<u64> {
        let n_workers = machine.n_workers();
        let (factors, parts) = (candidate.mesh.factors(), self.parts(&candidate.mesh));
        let mut received = vec![0; n_workers];
        if parts == 1 {
            return received;
        }
        // Those with equal coordinates along the output add up.
        let group = |worker: usize| {
            let coordinates = candidate.mesh.coordinates(worker as u64);
            let kept = coordinates.iter().zip(factors).enumerate().filter(|(var, _)| self.is_written(*var));
            kept.fold(0, |number, (_, (coordinate, factor))| number * factor + coordinate)
        };
        let mut groups: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for worker in 0..candidate.mesh.n_workers() as usize {
            groups.entry(group(worker)).or_default().push(worker as u32);
        }
        for members in groups.values() {
            let owners = members.iter().filter(|&&owner| output.elements(owner as usize) > 0);
            let one_by_one = owners.clone().count() as u64 * parts <= MOST_MEETINGS;
            for &owner in owners {
                let bytes = output.elements(owner as usize) * self.state_bytes;
                if one_by_one {
                    let meetings = meetings(owner, members, machine);
                    meetings.iter().for_each(|&(to, _)| received[to as usize] += bytes);
                } else {
                    received[owner as usize] += bytes * (parts - 1);
                }
            }
        }
        received
    }
}

/// True if a statement that runs over so many elements of an axis leaves out no more than its borders.
fn is_nearly(extent: u64, along: u64) -> bool {
    extent <= along && along - extent <= along / 8
}

/// Elements of some tiles of an axis.
fn of_tiles(axis: &Axis, lo: u64, hi: u64) -> Range<u64> {
    let start = if lo < axis.n_tiles() { axis.range(lo).start } else { axis.extent() };
    start..if hi > lo { axis.range(hi - 1).end } else { start }
}

/// Fewer workers than there are, but no fewer than that a share is balanced, of the number with the most grids.
fn fewer_workers(n_workers: u64) -> Option<u64> {
    let fewest = (n_workers as f64 / BALANCED).ceil() as u64;
    let n_divisors = |n: u64| {
        let factors = prime_factors(n);
        let groups = factors.chunk_by(|a, b| a == b);
        groups.map(|group| group.len() as u64 + 1).product::<u64>()
    };
    (fewest.max(2)..n_workers).max_by_key(|&workers| (n_divisors(workers), workers))
}
