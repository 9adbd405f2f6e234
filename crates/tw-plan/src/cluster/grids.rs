//! A grid of workers for every statement: the search that keeps what the busiest worker receives small.
//!
//! A statement under a grid of workers touches a box of every operand and of the output on each worker. Who owns which part of a value is what the grid
//! of the statement that makes it says; sources belong where one of their readers wants them. What a worker touches and does not own it receives;
//! of what it owns of a sum it receives the parts that others computed. All of that is known from boxes alone, so candidates are compared exactly.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::error::Result;
use tw_ir::index::{Idx, Var};
use tw_ir::program::{Node, Op, Program, ValueId};
use tw_ir::{Axis, BoxRegion};

use super::bounds::Volume;
use super::mesh::{Mesh, Ownership, part};

/// Grids that are kept for each statement, best first, before statements are compared with each other.
const CANDIDATES: usize = 24;

/// The busiest worker may do this much more than its share.
const BALANCED: f64 = 1.05;

/// Tiles of a part of a variable: this long, and this many at most; only one each for more workers than that.
const GOOD_TILE: u64 = 1024;
const MOST_TILES: u64 = 8;
const MANY_WORKERS: u64 = 512;

/// How far a search may go, in numbers of plans that are compared: the same everywhere, whatever the machine it runs on.
pub const DEFAULT_LIMIT: usize = 20_000;

/// What the search did.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Bytes that each worker receives.
    pub received: Vec<u64>,
    /// What the search did.
    pub report: SearchReport,
}

impl Grids {
    /// Searches grids for a straight-line program, comparing at most `limit` choices.
    pub fn search(program: &Program, n_workers: u64, limit: usize) -> Result<Grids> {
        let mut search = Search::new(program, n_workers)?;
        search.start();
        search.improve(limit);
        Ok(search.finish())
    }

    /// The grid of a node's statement, and the extents of its variables.
    pub fn mesh(&self, node: usize) -> Option<(&Mesh, &[u64])> {
        self.meshes.get(&node).map(|(mesh, extents)| (mesh, &extents[..]))
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

/// Cuts of axes, some of which are cut alike.
struct Cuts {
    /// How long a tile may be, and how many there may be between two cuts.
    tile: u64,
    most: u64,
    /// The class of an axis, and the class that a class was joined to.
    class: BTreeMap<(ValueId, usize), usize>,
    joined: Vec<usize>,
    cuts: Vec<BTreeSet<u64>>,
}

impl Cuts {
    fn new((tile, most): (u64, u64)) -> Cuts {
        Cuts { tile, most, class: BTreeMap::new(), joined: Vec::new(), cuts: Vec::new() }
    }

    fn class(&mut self, axis: (ValueId, usize)) -> usize {
        let next = self.joined.len();
        let class = *self.class.entry(axis).or_insert(next);
        if class == next {
            self.joined.push(next);
            self.cuts.push(BTreeSet::new());
        }
        self.root(class)
    }

    fn root(&self, mut class: usize) -> usize {
        while self.joined[class] != class {
            class = self.joined[class];
        }
        class
    }

    fn add(&mut self, axis: (ValueId, usize), cuts: impl IntoIterator<Item = u64>) {
        let class = self.class(axis);
        self.cuts[class].extend(cuts);
    }

    fn join(&mut self, a: (ValueId, usize), b: (ValueId, usize)) {
        let (a, b) = (self.class(a), self.class(b));
        if a != b {
            let cuts = std::mem::take(&mut self.cuts[b]);
            self.cuts[a].extend(cuts);
            self.joined[b] = a;
        }
    }

    fn axis(&self, axis: (ValueId, usize), n: u64) -> Axis {
        let cuts = self.class.get(&axis).map(|&class| &self.cuts[self.root(class)]);
        let inner = cuts.into_iter().flatten().copied().filter(|&cut| cut > 0 && cut < n);
        let cuts: Vec<u64> = std::iter::once(0).chain(inner).chain([n]).collect();
        let mut boundaries = vec![0];
        for pair in cuts.windows(2) {
            let length = pair[1] - pair[0];
            let tiles = length.div_ceil(self.tile.max(1)).clamp(1, self.most);
            boundaries.extend((1..=tiles).map(|k| pair[0] + part(length, k - 1, tiles).end));
        }
        Axis::from_boundaries(boundaries)
    }
}

/// The least that the busiest of some workers receives for every statement of a program whose arrays all run along its variables, in bytes, by the
/// number of the node; and the values that the statement reads or makes.
pub(super) fn bounds(program: &Program, n_workers: u64) -> Vec<(usize, f64, Vec<ValueId>)> {
    let statements = program.body.nodes.iter().enumerate();
    let statements = statements.filter_map(|(number, node)| Statement::of(program, number, node));
    let bound = |statement: Statement<'_>| {
        let mut arrays: Vec<(ValueId, Vec<usize>, u64)> = Vec::new();
        for read in &statement.reads {
            let vars = read.idx.iter().zip(&read.shape).map(|(idx, &n)| {
                let var = idx.as_var()?.0 as usize;
                (statement.extents[var] == n).then_some(var)
            });
            let vars = vars.collect::<Option<Vec<usize>>>()?;
            // One array read in two ways is owned once, and what it saves is not known.
            if arrays.iter().any(|(value, ..)| *value == read.value) {
                return None;
            }
            arrays.push((read.value, vars, read.bytes));
        }
        let out = statement.out_vars.iter().copied().collect::<Option<Vec<usize>>>()?;
        arrays.push((*statement.results.first()?, out, statement.state_bytes));
        let vars: Vec<&[usize]> = arrays.iter().map(|(_, vars, _)| &vars[..]).collect();
        let weights: Vec<u64> = arrays.iter().map(|(.., bytes)| *bytes).collect();
        let volume = Volume::new(&statement.extents, &vars).ok()?.weighted(&weights);
        let values = arrays.iter().map(|(value, ..)| *value).collect();
        Some((statement.node, volume.least_words(n_workers), values))
    };
    statements.filter_map(bound).collect()
}

/// A statement as the search sees it.
struct Statement<'a> {
    node: usize,
    extents: Vec<u64>,
    reads: Vec<Read<'a>>,
    results: &'a [ValueId],
    out_shape: Vec<u64>,
    out_vars: Vec<Option<usize>>,
    /// Bytes of what is summed for one element of the output.
    state_bytes: u64,
    candidates: Vec<Mesh>,
    chosen: usize,
}

struct Read<'a> {
    value: ValueId,
    idx: &'a [Idx],
    shape: Vec<u64>,
    bytes: u64,
}

impl<'a> Statement<'a> {
    /// A statement that can have a grid: every element of the output is made at one point, or is a sum over some.
    fn of(program: &'a Program, number: usize, node: &'a Node) -> Option<Statement<'a>> {
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

    fn mesh(&self) -> &Mesh {
        &self.candidates[self.chosen]
    }

    /// Who owns a value that belongs where this statement reads it.
    fn ownership_of(&self, read: &Read<'_>, mesh: &Mesh) -> Ownership {
        let mut vars: Vec<Option<usize>> = Vec::new();
        for (idx, &n) in read.idx.iter().zip(&read.shape) {
            let var = idx.as_shifted_var().map(|(Var(var), _)| var as usize);
            let fits = |&var: &usize| self.extents[var] == n && !vars.contains(&Some(var));
            vars.push(var.filter(fits));
        }
        Ownership::new(&read.shape, mesh, vars)
    }

    fn ownership_of_output(&self, mesh: &Mesh) -> Ownership {
        Ownership::new(&self.out_shape, mesh, self.out_vars.clone())
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

    /// Bytes that every worker receives. What nobody owns yet will belong where it is read.
    fn received(&self, mesh: &Mesh, owners: &BTreeMap<ValueId, Ownership>, n_workers: u64) -> Vec<u64> {
        let own: Vec<Ownership> = (self.reads.iter())
            .map(|read| owners.get(&read.value).cloned().unwrap_or_else(|| self.ownership_of(read, mesh)))
            .collect();
        let output = self.ownership_of_output(mesh);
        let parts: u64 = (0..self.extents.len())
            .filter(|&var| !self.out_vars.contains(&Some(var)))
            .map(|var| mesh.factors()[var])
            .product();
        (0..n_workers)
            .map(|worker| {
                let mut bytes = 0;
                for (k, (read, owner)) in self.reads.iter().zip(&own).enumerate() {
                    let need = self.box_of(read, mesh, worker);
                    let mut missing = elements(&need) - elements(&need.intersect(&owner.owned(worker)));
                    if owner.owned(worker).rank() == 0 {
                        missing = !owner.owns_scalar(worker) as u64;
                    }
                    // What is read twice is received once.
                    for before in self.reads[..k].iter().filter(|before| before.value == read.value) {
                        let both = need.intersect(&self.box_of(before, mesh, worker));
                        missing =
                            missing.saturating_sub(elements(&both) - elements(&both.intersect(&owner.owned(worker))));
                    }
                    bytes += missing * read.bytes;
                }
                let owned = match self.out_shape.is_empty() {
                    true => output.owns_scalar(worker) as u64,
                    false => elements(&output.owned(worker)),
                };
                bytes + (parts - 1) * owned * self.state_bytes
            })
            .collect()
    }
}

fn elements(region: &BoxRegion) -> u64 {
    if region.is_empty() { 0 } else { region.n_elements() }
}

/// Largest first, then all together: smaller is better.
fn score(received: &[u64]) -> (u64, u64) {
    (received.iter().copied().max().unwrap_or(0), received.iter().sum())
}

struct Search<'a> {
    n_workers: u64,
    statements: Vec<Statement<'a>>,
    /// Statements that read each value.
    readers: BTreeMap<ValueId, Vec<usize>>,
    /// The statement whose reading says where a source is.
    anchors: BTreeMap<ValueId, usize>,
    owners: BTreeMap<ValueId, Ownership>,
    /// Per statement and worker.
    received: Vec<Vec<u64>>,
    report: SearchReport,
}

impl<'a> Search<'a> {
    fn new(program: &'a Program, n_workers: u64) -> Result<Search<'a>> {
        let mut statements: Vec<Statement<'a>> = Vec::new();
        let mut report = SearchReport { statements: 0, candidates: 0, compared: 0, improved: 0, stopped: false };
        for (number, node) in program.body.nodes.iter().enumerate() {
            let Some(mut statement) = Statement::of(program, number, node) else { continue };
            let mut meshes = Mesh::all(n_workers, &statement.extents);
            if meshes.iter().any(|mesh| mesh.imbalance(&statement.extents) <= BALANCED) {
                meshes.retain(|mesh| mesh.imbalance(&statement.extents) <= BALANCED);
            } else {
                meshes.sort_by(|a, b| a.imbalance(&statement.extents).total_cmp(&b.imbalance(&statement.extents)));
                meshes.truncate(CANDIDATES);
            }
            if meshes.is_empty() {
                continue;
            }
            report.candidates += meshes.len();
            // One worker stands for all: the others differ by the rounding of parts alone.
            let alone = |mesh: &Mesh| score(&statement.received(mesh, &BTreeMap::new(), 1));
            let mut ranked: Vec<((u64, u64), Mesh)> = meshes.into_iter().map(|mesh| (alone(&mesh), mesh)).collect();
            ranked.sort();
            ranked.truncate(CANDIDATES);
            statement.candidates = ranked.into_iter().map(|(_, mesh)| mesh).collect();
            statements.push(statement);
        }
        report.statements = statements.len();
        let mut readers: BTreeMap<ValueId, Vec<usize>> = BTreeMap::new();
        for (k, statement) in statements.iter().enumerate() {
            for read in &statement.reads {
                let readers = readers.entry(read.value).or_default();
                if readers.last() != Some(&k) {
                    readers.push(k);
                }
            }
        }
        let received = vec![Vec::new(); statements.len()];
        let (anchors, owners) = (BTreeMap::new(), BTreeMap::new());
        Ok(Search { n_workers, statements, readers, anchors, owners, received, report })
    }

    /// Every statement in turn gets the grid that is best for what is known by then.
    fn start(&mut self) {
        for k in 0..self.statements.len() {
            let statement = &self.statements[k];
            let scores = statement.candidates.iter().map(|mesh| {
                let received = statement.received(mesh, &self.owners, self.n_workers);
                (score(&received), received)
            });
            let best = scores.enumerate().min_by(|(_, a), (_, b)| a.0.cmp(&b.0));
            if let Some((chosen, (_, received))) = best {
                self.statements[k].chosen = chosen;
                self.received[k] = received;
            }
            for (value, owner) in self.owned_by(k, self.statements[k].mesh()) {
                if self.owners.insert(value, owner).is_none() && !self.statements[k].results.contains(&value) {
                    self.anchors.insert(value, k);
                }
            }
        }
    }

    /// What a statement says the owners of, under a grid: what it makes, and sources that are where it reads them.
    fn owned_by(&self, k: usize, mesh: &Mesh) -> Vec<(ValueId, Ownership)> {
        let statement = &self.statements[k];
        let mut owned: Vec<(ValueId, Ownership)> = Vec::new();
        for read in &statement.reads {
            let anchored = match self.anchors.get(&read.value) {
                Some(&anchor) => anchor == k,
                None => !self.owners.contains_key(&read.value),
            };
            if anchored && owned.iter().all(|(value, _)| *value != read.value) {
                owned.push((read.value, statement.ownership_of(read, mesh)));
            }
        }
        owned.extend(statement.results.iter().map(|&value| (value, statement.ownership_of_output(mesh))));
        owned
    }

    /// Exchanges the grid of one statement, or the place of one source, as long as that helps.
    fn improve(&mut self, limit: usize) {
        let mut changed = true;
        while changed {
            changed = false;
            for k in 0..self.statements.len() {
                for candidate in 0..self.statements[k].candidates.len() {
                    if self.report.compared >= limit {
                        self.report.stopped = true;
                        return;
                    }
                    if candidate != self.statements[k].chosen && self.try_mesh(k, candidate) {
                        changed = true;
                    }
                }
            }
            let sources: Vec<(ValueId, usize)> = self.anchors.iter().map(|(&value, &k)| (value, k)).collect();
            for (value, anchor) in sources {
                for reader in self.readers.get(&value).cloned().unwrap_or_default() {
                    if self.report.compared >= limit {
                        self.report.stopped = true;
                        return;
                    }
                    if reader != anchor && self.try_anchor(value, reader) {
                        changed = true;
                    }
                }
            }
        }
    }

    fn try_mesh(&mut self, k: usize, candidate: usize) -> bool {
        let mesh = self.statements[k].candidates[candidate].clone();
        let owned = self.owned_by(k, &mesh);
        let before = std::mem::replace(&mut self.statements[k].chosen, candidate);
        let better = self.try_owners(owned, Some(k));
        if !better {
            self.statements[k].chosen = before;
        }
        better
    }

    fn try_anchor(&mut self, value: ValueId, reader: usize) -> bool {
        let statement = &self.statements[reader];
        let Some(read) = statement.reads.iter().find(|read| read.value == value) else { return false };
        let owner = statement.ownership_of(read, statement.mesh());
        let better = self.try_owners(vec![(value, owner)], None);
        if better {
            self.anchors.insert(value, reader);
        }
        better
    }

    /// Takes other owners of some values if that makes the whole better.
    fn try_owners(&mut self, owned: Vec<(ValueId, Ownership)>, also: Option<usize>) -> bool {
        self.report.compared += 1;
        let mut affected: Vec<usize> = also.into_iter().collect();
        let mut before: Vec<(ValueId, Option<Ownership>)> = Vec::new();
        for (value, owner) in owned {
            affected.extend(self.readers.get(&value).into_iter().flatten());
            before.push((value, self.owners.insert(value, owner)));
        }
        affected.sort_unstable();
        affected.dedup();
        let received = |k: usize| {
            let statement = &self.statements[k];
            statement.received(statement.mesh(), &self.owners, self.n_workers)
        };
        let new: Vec<(usize, Vec<u64>)> = affected.iter().map(|&k| (k, received(k))).collect();
        let mut total = self.total();
        let now = score(&total);
        for (k, received) in &new {
            for ((sum, old), new) in total.iter_mut().zip(&self.received[*k]).zip(received) {
                *sum = *sum - old + new;
            }
        }
        if score(&total) < now {
            new.into_iter().for_each(|(k, received)| self.received[k] = received);
            self.report.improved += 1;
            return true;
        }
        for (value, owner) in before.into_iter().rev() {
            match owner {
                Some(owner) => self.owners.insert(value, owner),
                None => self.owners.remove(&value),
            };
        }
        false
    }

    fn total(&self) -> Vec<u64> {
        let mut total = vec![0; self.n_workers as usize];
        for received in &self.received {
            total.iter_mut().zip(received).for_each(|(sum, received)| *sum += received);
        }
        total
    }

    fn finish(self) -> Grids {
        let received = self.total();
        let meshes = self.statements.iter().map(|s| (s.node, (s.mesh().clone(), s.extents.clone())));
        Grids {
            n_workers: self.n_workers,
            meshes: meshes.collect(),
            owners: self.owners,
            received,
            report: self.report,
        }
    }
}
