//! One statement under a grid: what each worker reads, owns and receives.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tw_ir::index::{Idx, Var};
use tw_ir::program::{Node, Op, Program, ValueId};
use tw_ir::{BoxRegion, EntityRef};

use crate::cluster::bounds::{Touching, Volume};
use crate::cluster::mesh::{Mesh, Ownership, part};

/// Grids that are kept for a statement, before they are numbered.
const MOST_GRIDS: usize = 24;

/// The busiest worker may do this much more than its share.
const BALANCED: f64 = 1.05;

/// A statement as the search sees it.
pub(super) struct Statement<'a> {
    pub(super) node: usize,
    pub(super) extents: Vec<u64>,
    pub(super) reads: Vec<Read<'a>>,
    pub(super) results: &'a [ValueId],
    out_shape: Vec<u64>,
    pub(super) out_vars: Vec<Option<usize>>,
    /// Bytes of what is summed for one element of the output.
    state_bytes: u64,
    pub(super) candidates: Vec<Candidate>,
    pub(super) chosen: usize,
}

/// A grid that a statement may have.
pub(super) struct Candidate {
    pub(super) mesh: Mesh,
    /// What a worker receives if everything the statement reads is where it wants it.
    pub(super) alone: u64,
    /// What every worker reads of each operand, who would own the operands where they are read, and who owns the output; known once somebody asks.
    needs: OnceCell<Vec<Regions>>,
    operands: OnceCell<Vec<Rc<Owned>>>,
    output: OnceCell<Rc<Owned>>,
    /// How often each worker receives what it owns of the output, as parts of sums.
    sums: OnceCell<Vec<f64>>,
}

impl Candidate {
    pub(super) fn new(mesh: Mesh, alone: u64) -> Candidate {
        let (needs, operands) = (OnceCell::new(), OnceCell::new());
        Candidate { mesh, alone, needs, operands, output: OnceCell::new(), sums: OnceCell::new() }
    }
}

/// Who owns a value, and the part of every worker.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) ownership: Ownership,
    regions: Regions,
    /// For a value without axes: who has it.
    has_scalar: Vec<bool>,
}

impl Owned {
    pub(super) fn new(ownership: Ownership, rank: usize, n_workers: u64) -> Owned {
        let regions = Regions::new(rank, (0..n_workers).map(|worker| ownership.owned(worker)));
        let has_scalar = match rank {
            0 => (0..n_workers).map(|worker| ownership.owns_scalar(worker)).collect(),
            _ => Vec::new(),
        };
        Owned { ownership, regions, has_scalar }
    }

    fn elements(&self, worker: usize) -> u64 {
        match self.has_scalar.get(worker) {
            Some(has) => *has as u64,
            None => self.regions.elements(worker),
        }
    }
}

/// A box for every worker.
#[derive(Debug)]
struct Regions {
    rank: usize,
    ranges: Vec<(u64, u64)>,
}

impl Regions {
    fn new(rank: usize, boxes: impl Iterator<Item = BoxRegion>) -> Regions {
        let mut ranges = Vec::new();
        boxes.for_each(|region| ranges.extend(region.lo.iter().copied().zip(region.hi.iter().copied()).take(rank)));
        Regions { rank, ranges }
    }

    fn of(&self, worker: usize) -> &[(u64, u64)] {
        &self.ranges[worker * self.rank..][..self.rank]
    }

    fn elements(&self, worker: usize) -> u64 {
        self.of(worker).iter().map(|(lo, hi)| hi.saturating_sub(*lo)).product()
    }
}

/// Elements that are in all of some boxes.
fn common<const N: usize>(boxes: [&[(u64, u64)]; N]) -> u64 {
    let length = |axis: usize| {
        let lo = boxes.iter().map(|ranges| ranges[axis].0).max().unwrap_or(0);
        let hi = boxes.iter().map(|ranges| ranges[axis].1).min().unwrap_or(0);
        hi.saturating_sub(lo)
    };
    (0..boxes[0].len()).map(length).product()
}

pub(super) struct Read<'a> {
    pub(super) value: ValueId,
    idx: &'a [Idx],
    shape: Vec<u64>,
    bytes: u64,
}

impl<'a> Statement<'a> {
    /// A statement that can have a grid: every element of the output is made at one point, or is a sum over some.
    pub(super) fn of(program: &'a Program, number: usize, node: &'a Node) -> Option<Statement<'a>> {
        let Op::Index(stmt) = &node.op else { return None };
        if !stmt.out_is_plain() {
            return None;
        }
        let extents: Vec<u64> = stmt.vars.iter().map(|var| var.extent.known()).collect::<Option<_>>()?;
        let reads = stmt.reads.iter().map(|read| {
            let value = node.args[read.operand as usize];
            let ty = program.ty(value);
            Some(Read { value, idx: &read.idx, shape: ty.known_shape()?, bytes: ty.dtype.size() })
        });
        let reads = reads.collect::<Option<Vec<Read<'_>>>>()?;
        let state = stmt.accum.as_ref().map(|accum| accum.state_types());
        let state_bytes = state.unwrap_or_else(|| stmt.body_types()).iter().map(|dtype| dtype.size()).sum();
        let out_shape = program.ty(*node.results.first()?).known_shape()?;
        let out_vars = stmt.out.idx.iter().map(|idx| idx.as_var().map(|Var(var)| var as usize)).collect();
        Some(Statement {
            node: number,
            extents,
            reads,
            results: &node.results,
            out_shape,
            out_vars,
            state_bytes,
            candidates: Vec::new(),
            chosen: 0,
        })
    }

    /// Looks at all grids of so many workers and keeps those under which a worker receives least if everything is where the statement wants it, with their
    /// numberings, at most so many in all. Tells how many it looked at.
    pub(super) fn find_candidates(&mut self, n_workers: u64, most: usize) -> usize {
        let mut meshes = Mesh::all(n_workers, &self.extents);
        if meshes.iter().any(|mesh| mesh.imbalance(&self.extents) <= BALANCED) {
            meshes.retain(|mesh| mesh.imbalance(&self.extents) <= BALANCED);
        } else {
            meshes.sort_by(|a, b| a.imbalance(&self.extents).total_cmp(&b.imbalance(&self.extents)));
            meshes.truncate(MOST_GRIDS);
        }
        let n_looked = meshes.len();
        self.candidates = meshes.into_iter().map(|mesh| Candidate::new(mesh, 0)).collect();
        // One worker stands for all: the others differ by the rounding of parts alone.
        let alone = |candidate: usize| self.received(candidate, &BTreeMap::new(), 1, 1)[0];
        let alone: Vec<u64> = (0..n_looked).map(alone).collect();
        let mut ranked: Vec<(u64, Mesh)> =
            alone.into_iter().zip(self.candidates.drain(..).map(|candidate| candidate.mesh)).collect();
        ranked.sort();
        for (alone, mesh) in ranked.into_iter().take(MOST_GRIDS) {
            let numbered = mesh.numberings(most - self.candidates.len());
            self.candidates.extend(numbered.into_iter().map(|mesh| Candidate::new(mesh, alone)));
        }
        n_looked
    }

    /// The best few grids for the statement by itself, with what a worker then receives.
    pub(super) fn best_grids(&self, few: usize) -> Vec<(Vec<u64>, u64)> {
        let mut best: Vec<(Vec<u64>, u64)> =
            self.candidates.iter().map(|candidate| (candidate.mesh.factors().to_vec(), candidate.alone)).collect();
        // The numberings of a grid follow each other.
        best.dedup();
        best.truncate(few);
        best
    }

    pub(super) fn mesh(&self) -> &Mesh {
        &self.candidates[self.chosen].mesh
    }

    /// Who owns what the statement reads, if it belongs where the statement reads it under one of its grids.
    pub(super) fn operand_owner(&self, candidate: usize, read: usize, n_workers: u64) -> &Rc<Owned> {
        let found = &self.candidates[candidate];
        let owned =
            |read: &Read<'_>| Rc::new(Owned::new(self.ownership_of(read, &found.mesh), read.shape.len(), n_workers));
        &found.operands.get_or_init(|| self.reads.iter().map(owned).collect())[read]
    }

    /// Who owns what the statement makes under one of its grids.
    pub(super) fn output_owner(&self, candidate: usize, n_workers: u64) -> &Rc<Owned> {
        let found = &self.candidates[candidate];
        found.output.get_or_init(|| {
            let ownership = Ownership::new(&self.out_shape, &found.mesh, self.out_vars.clone());
            Rc::new(Owned::new(ownership, self.out_shape.len(), n_workers))
        })
    }

    fn needs(&self, candidate: usize, n_workers: u64) -> &[Regions] {
        let found = &self.candidates[candidate];
        let regions = |read: &Read<'_>| {
            Regions::new(read.shape.len(), (0..n_workers).map(|worker| self.box_of(read, &found.mesh, worker)))
        };
        found.needs.get_or_init(|| self.reads.iter().map(regions).collect())
    }

    fn ownership_of(&self, read: &Read<'_>, mesh: &Mesh) -> Ownership {
        let mut vars: Vec<Option<usize>> = Vec::new();
        for (idx, &n) in read.idx.iter().zip(&read.shape) {
            let var = idx.as_shifted_var().map(|(Var(var), _)| var as usize);
            // A statement about the inside of an array leaves out its borders.
            let nearly = |extent: u64| extent <= n && n - extent <= n / 8;
            let fits = |&var: &usize| nearly(self.extents[var]) && !vars.contains(&Some(var));
            vars.push(var.filter(fits));
        }
        Ownership::new(&read.shape, mesh, vars)
    }

    /// The box of an operand that a worker reads.
    fn box_of(&self, read: &Read<'_>, mesh: &Mesh, worker: u64) -> BoxRegion {
        let coordinates = mesh.coordinates(worker);
        let ranges: Vec<(i64, i64)> = (0..self.extents.len())
            .map(|var| part(self.extents[var], coordinates[var], mesh.factors()[var]))
            .map(|range| (range.start as i64, range.end as i64 - 1))
            .collect();
        BoxRegion::from_ranges(read.idx.iter().zip(&read.shape).map(|(idx, &n)| {
            let (lo, hi) = idx.interval(&ranges);
            let clip = |at: i64| at.clamp(0, n as i64) as u64;
            clip(lo)..clip(hi.saturating_add(1)).max(clip(lo))
        }))
    }

    /// How often each worker receives what it owns of the output. Of a sum over g workers it would receive g - 1 parts, were it not that parts are combined
    /// inside nodes first: then whoever has more of the others on its node receives more.
    fn sums(&self, candidate: usize, n_workers: u64, per_node: u64) -> &[f64] {
        let found = &self.candidates[candidate];
        found.sums.get_or_init(|| {
            let factors = found.mesh.factors();
            let summed = |var: usize| !self.out_vars.contains(&Some(var));
            let parts: u64 = (0..factors.len()).filter(|&var| summed(var)).map(|var| factors[var]).product();
            if parts == 1 || per_node == 1 {
                return vec![(parts - 1) as f64; n_workers as usize];
            }
            // Those with equal coordinates along the output add up.
            let group = |worker: u64| {
                let coordinates = found.mesh.coordinates(worker);
                let kept = coordinates.iter().zip(factors).enumerate().filter(|(var, _)| !summed(*var));
                kept.fold(0, |number, (_, (coordinate, factor))| number * factor + coordinate)
            };
            let mut together: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            let mut nodes: BTreeMap<u64, u64> = BTreeMap::new();
            for worker in 0..found.mesh.n_workers() {
                let here = together.entry((group(worker), worker / per_node)).or_insert(0);
                if *here == 0 {
                    *nodes.entry(group(worker)).or_insert(0) += 1;
                }
                *here += 1;
            }
            let times = |worker: u64| {
                let here = together[&(group(worker), worker / per_node)] as f64;
                let nodes = nodes[&group(worker)] as f64;
                parts as f64 * ((here - 1.0) + (nodes - 1.0) / nodes) / here
            };
            (0..n_workers).map(times).collect()
        })
    }

    /// Bytes that every worker receives under one of the grids. What nobody owns yet will belong where it is read.
    pub(super) fn received(
        &self,
        candidate: usize,
        owners: &BTreeMap<ValueId, Rc<Owned>>,
        n_workers: u64,
        per_node: u64,
    ) -> Vec<u64> {
        let output = self.output_owner(candidate, n_workers);
        let sums = self.sums(candidate, n_workers, per_node);
        let parts = sums
            .iter()
            .enumerate()
            .map(|(worker, &times)| (times * (output.elements(worker) * self.state_bytes) as f64).round() as u64);
        let mut received: Vec<u64> = parts.collect();
        let needs = self.needs(candidate, n_workers);
        for (k, read) in self.reads.iter().enumerate() {
            let owner = owners.get(&read.value).unwrap_or_else(|| self.operand_owner(candidate, k, n_workers));
            for (worker, bytes) in received.iter_mut().enumerate() {
                if read.shape.is_empty() {
                    *bytes += (!owner.has_scalar[worker]) as u64 * read.bytes;
                    continue;
                }
                let (need, own) = (needs[k].of(worker), owner.regions.of(worker));
                let mut missing = needs[k].elements(worker) - common([need, own]);
                // What is read twice is received once. Of several reads before, the one that has most in common counts.
                let mut had = 0;
                for (before, other) in self.reads[..k].iter().zip(needs).filter(|(other, _)| other.value == read.value)
                {
                    debug_assert_eq!(before.shape, read.shape);
                    let other = other.of(worker);
                    had = had.max(common([need, other]) - common([need, other, own]));
                }
                missing -= had;
                *bytes += missing * read.bytes;
            }
        }
        received
    }
}

/// Every statement of a program whose arrays all run along its variables, for bounds, with the number of its node. Arrays are numbered as values are.
pub(in crate::cluster) fn touching(program: &Program) -> Vec<(usize, Touching)> {
    let statements = program.body.nodes.iter().enumerate();
    let statements = statements.filter_map(|(number, node)| Statement::of(program, number, node));
    // What a guard leaves out nobody has to touch.
    let is_unguarded = |statement: &Statement<'_>| match &program.body.nodes[statement.node].op {
        Op::Index(stmt) => !stmt.has_guard,
        _ => false,
    };
    let statements = statements.filter(is_unguarded);
    let touching = |statement: Statement<'_>| {
        let mut arrays: Vec<(ValueId, Vec<usize>, u64)> = Vec::new();
        for read in &statement.reads {
            let vars = read.idx.iter().zip(&read.shape).map(|(idx, &n)| {
                let var = idx.as_var()?.0 as usize;
                (statement.extents[var] == n).then_some(var)
            });
            arrays.push((read.value, vars.collect::<Option<Vec<usize>>>()?, read.bytes));
        }
        let out = statement.out_vars.iter().copied().collect::<Option<Vec<usize>>>()?;
        arrays.push((*statement.results.first()?, out, statement.state_bytes));
        let vars: Vec<&[usize]> = arrays.iter().map(|(_, vars, _)| &vars[..]).collect();
        let volume = Volume::new(&statement.extents, &vars).ok()?;
        let arrays = arrays.iter().map(|(value, _, bytes)| (value.index(), *bytes as f64)).collect();
        Some((statement.node, Touching { volume, arrays }))
    };
    statements.filter_map(touching).collect()
}
