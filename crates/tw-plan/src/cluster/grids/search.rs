//! The search: a first choice for every statement, then exchanges as long as they help.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::error::Result;
use tw_ir::program::{Program, ValueId};

use super::statement::{Candidate, Statement};
use super::{Grids, SearchReport};
use crate::cluster::mesh::{Mesh, Ownership};

/// Grids that are kept for each statement, best first, before statements are compared with each other; and how many with all their numberings.
const CANDIDATES: usize = 24;
const NUMBERED: usize = 96;

/// Workers times comparisons that a search may take. Every comparison looks at all workers.
const LOOKS: usize = 4_000_000;

/// The busiest worker may do this much more than its share.
const BALANCED: f64 = 1.05;

/// Largest first, then all together: smaller is better.
fn score(received: &[u64]) -> (u64, u64) {
    (received.iter().copied().max().unwrap_or(0), received.iter().sum())
}

pub(super) struct Search<'a> {
    n_workers: u64,
    statements: Vec<Statement<'a>>,
    /// Statements that read each value.
    readers: BTreeMap<ValueId, Vec<usize>>,
    /// The statement that makes each value.
    makers: BTreeMap<ValueId, usize>,
    /// The statement whose reading says where a source is.
    anchors: BTreeMap<ValueId, usize>,
    owners: BTreeMap<ValueId, Ownership>,
    /// Per statement and worker.
    received: Vec<Vec<u64>>,
    report: SearchReport,
    limit: usize,
}

type OwnersBefore = Vec<(ValueId, Option<Ownership>)>;
type ReceivedBefore = Vec<(usize, Vec<u64>)>;

/// What a step may change, to be put back.
struct Choice {
    chosen: Vec<usize>,
    anchors: BTreeMap<ValueId, usize>,
    owners: BTreeMap<ValueId, Ownership>,
    received: Vec<Vec<u64>>,
}

impl<'a> Search<'a> {
    pub(super) fn new(program: &'a Program, n_workers: u64, limit: usize) -> Result<Search<'a>> {
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
            for ((alone, _), mesh) in ranked {
                let numbered = mesh.numberings().into_iter().take(NUMBERED - statement.candidates.len());
                statement.candidates.extend(numbered.map(|mesh| Candidate { mesh, alone }));
            }
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
        let results = statements
            .iter()
            .enumerate()
            .flat_map(|(k, statement)| statement.results.iter().map(move |&value| (value, k)));
        let makers = results.collect();
        let received = vec![Vec::new(); statements.len()];
        let (anchors, owners) = (BTreeMap::new(), BTreeMap::new());
        let limit = limit.min(LOOKS / n_workers.max(1) as usize);
        Ok(Search { n_workers, statements, readers, makers, anchors, owners, received, report, limit })
    }

    /// Every statement in turn gets the grid that is best for what is known by then.
    pub(super) fn start(&mut self) {
        for k in 0..self.statements.len() {
            let statement = &self.statements[k];
            let scores = statement.candidates.iter().map(|candidate| {
                let received = statement.received(&candidate.mesh, &self.owners, self.n_workers);
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

    /// Improves what was begun with until nothing in reach is better.
    pub(super) fn improve(&mut self) {
        let all: Vec<usize> = (0..self.statements.len()).collect();
        self.exchange(all, None);
        let mut changed = true;
        while changed && !self.report.stopped {
            changed = (0..self.statements.len()).any(|k| self.escape(k));
        }
    }

    /// Exchanges the grids of statements, or the places of sources they read, as long as that helps; then those of statements next to the ones that changed. One
    /// of them may have to stay as it is.
    fn exchange(&mut self, statements: Vec<usize>, pinned: Option<usize>) {
        let mut waiting: BTreeSet<usize> = statements.into_iter().collect();
        while let Some(k) = waiting.pop_first() {
            let mut changed = false;
            for candidate in 0..self.statements[k].candidates.len() {
                let statement = &self.statements[k];
                if candidate == statement.chosen || Some(k) == pinned {
                    continue;
                }
                if self.is_over() {
                    return;
                }
                changed |= self.try_mesh(k, candidate);
            }
            let sources: BTreeSet<ValueId> = self.statements[k].reads.iter().map(|read| read.value).collect();
            for value in sources {
                for reader in self.readers.get(&value).cloned().unwrap_or_default() {
                    let anchor = self.anchors.get(&value).copied();
                    if anchor.is_none_or(|anchor| anchor == reader) {
                        continue;
                    }
                    if self.is_over() {
                        return;
                    }
                    changed |= self.try_anchor(value, reader);
                }
            }
            if changed {
                waiting.extend(self.next_to(k));
            }
        }
    }

    /// Tries other grids of a statement together with those that its neighbours then want: a step that makes things worse at first.
    fn escape(&mut self, k: usize) -> bool {
        let mut better = false;
        for candidate in 0..self.statements[k].candidates.len() {
            let before = score(&self.total());
            let statement = &self.statements[k];
            // A grid that alone receives that much cannot be part of anything better.
            if candidate == statement.chosen || statement.candidates[candidate].alone >= before.0 {
                continue;
            }
            if self.is_over() {
                break;
            }
            let choice = self.remember();
            let mesh = self.statements[k].candidates[candidate].mesh.clone();
            self.statements[k].chosen = candidate;
            let owned = self.owned_by(k, &mesh);
            self.set_owners(owned, Some(k));
            self.exchange(self.next_to(k), Some(k));
            if score(&self.total()) < before {
                better = true;
            } else {
                self.restore(choice);
            }
        }
        better
    }

    fn is_over(&mut self) -> bool {
        self.report.stopped |= self.report.compared >= self.limit;
        self.report.stopped
    }

    /// Statements that read what a statement makes or reads, or make what it reads.
    fn next_to(&self, k: usize) -> Vec<usize> {
        let statement = &self.statements[k];
        let values = statement.reads.iter().map(|read| read.value).chain(statement.results.iter().copied());
        let mut next: Vec<usize> = Vec::new();
        for value in values {
            next.extend(self.readers.get(&value).into_iter().flatten());
            next.extend(self.makers.get(&value));
        }
        next.retain(|&other| other != k);
        next
    }

    fn remember(&self) -> Choice {
        Choice {
            chosen: self.statements.iter().map(|statement| statement.chosen).collect(),
            anchors: self.anchors.clone(),
            owners: self.owners.clone(),
            received: self.received.clone(),
        }
    }

    fn restore(&mut self, choice: Choice) {
        self.statements.iter_mut().zip(choice.chosen).for_each(|(statement, chosen)| statement.chosen = chosen);
        (self.anchors, self.owners, self.received) = (choice.anchors, choice.owners, choice.received);
    }

    fn try_mesh(&mut self, k: usize, candidate: usize) -> bool {
        let mesh = self.statements[k].candidates[candidate].mesh.clone();
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
        let before = score(&self.total());
        let (owners, received) = self.set_owners(owned, also);
        if score(&self.total()) < before {
            self.report.improved += 1;
            return true;
        }
        for (value, owner) in owners.into_iter().rev() {
            match owner {
                Some(owner) => self.owners.insert(value, owner),
                None => self.owners.remove(&value),
            };
        }
        received.into_iter().for_each(|(k, received)| self.received[k] = received);
        false
    }

    /// Gives values other owners; tells who owned them, and what the statements that this concerns received.
    fn set_owners(&mut self, owned: Vec<(ValueId, Ownership)>, also: Option<usize>) -> (OwnersBefore, ReceivedBefore) {
        self.report.compared += 1;
        let mut affected: Vec<usize> = also.into_iter().collect();
        let mut owners: OwnersBefore = Vec::new();
        for (value, owner) in owned {
            affected.extend(self.readers.get(&value).into_iter().flatten());
            owners.push((value, self.owners.insert(value, owner)));
        }
        affected.sort_unstable();
        affected.dedup();
        let mut received: ReceivedBefore = Vec::new();
        for k in affected {
            let statement = &self.statements[k];
            let now = statement.received(statement.mesh(), &self.owners, self.n_workers);
            received.push((k, std::mem::replace(&mut self.received[k], now)));
        }
        (owners, received)
    }

    fn total(&self) -> Vec<u64> {
        let mut total = vec![0; self.n_workers as usize];
        for received in &self.received {
            total.iter_mut().zip(received).for_each(|(sum, received)| *sum += received);
        }
        total
    }

    pub(super) fn finish(self) -> Grids {
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
