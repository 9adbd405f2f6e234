//! The search: a first choice for every statement, then exchanges as long as they help.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tw_ir::program::{Program, ValueId};

use super::statement::{Candidate, Owned, Statement};
use super::{Grids, SearchReport};
use crate::cluster::machine::Machine;
use crate::cluster::mesh::Mesh;
use crate::cluster::notation::Written;

/// Numbered grids that are kept for each statement, at most and at least.
const MOST_CANDIDATES: usize = 96;
const FEWEST_CANDIDATES: usize = 2;

/// Grids of a statement that are reported with what a worker would receive.
const BEST_FEW: usize = 4;

/// Workers times comparisons that a search may take. Every comparison looks at all workers.
const LOOKS: usize = 8_000_000;

/// Largest first, then all together: smaller is better.
fn score(received: &[u64]) -> (u64, u64) {
    (received.iter().copied().max().unwrap_or(0), received.iter().sum())
}

pub(super) struct Search<'a> {
    n_workers: u64,
    per_node: u64,
    statements: Vec<Statement<'a>>,
    /// Statements that read each value.
    readers: BTreeMap<ValueId, Vec<usize>>,
    /// The statement that makes each value.
    makers: BTreeMap<ValueId, usize>,
    /// The statement whose reading says where a source is.
    anchors: BTreeMap<ValueId, usize>,
    owners: BTreeMap<ValueId, Rc<Owned>>,
    /// Values whose owners stay as they are, and the statements that run there.
    fixed: BTreeMap<ValueId, Rc<Owned>>,
    owner_computes: BTreeMap<usize, (Mesh, Vec<u64>)>,
    /// Bytes by statement and worker, and by worker alone.
    received: Vec<Vec<u64>>,
    total: Vec<u64>,
    /// How to get back to what was there before the steps under way.
    undo: Vec<Undo>,
    report: SearchReport,
    limit: usize,
}

/// What a step changed, to be put back.
enum Undo {
    Chosen(usize, usize),
    Anchor(ValueId, usize),
    Owner(ValueId, Option<Rc<Owned>>),
    Received(usize, Vec<u64>),
}

impl<'a> Search<'a> {
    /// A search that leaves values which have owners already where they are.
    pub(super) fn beside(
        program: &'a Program,
        machine: &Machine,
        limit: usize,
        written: &[(ValueId, Written)],
    ) -> Search<'a> {
        let (n_workers, per_node) = (machine.n_workers() as u64, machine.workers as u64);
        let mut statements: Vec<Statement<'a>> = Vec::new();
        let mut owner_computes = BTreeMap::new();
        // Every candidate is looked at on every worker once, and what it touches there is kept.
        let looks_of_one = n_workers as usize * program.body.nodes.len().max(1);
        let most = (LOOKS / looks_of_one).clamp(FEWEST_CANDIDATES, MOST_CANDIDATES);
        let mut report = SearchReport::default();
        for (number, node) in program.body.nodes.iter().enumerate() {
            let Some(mut statement) = Statement::of(program, number, node) else { continue };
            if let Some((_, written)) = written.iter().find(|(value, _)| node.results.contains(value)) {
                match written.mesh(&statement.out_vars, statement.extents.len()) {
                    Some(mesh) => {
                        statement.candidates.push(Candidate::new(mesh, 0));
                        statements.push(statement);
                    }
                    // It runs where its results are. A grid of one worker keeps its operands cut alike.
                    None => {
                        owner_computes.insert(number, (Mesh::new(vec![1; statement.extents.len()]), statement.extents));
                    }
                }
                continue;
            }
            report.candidates += statement.find_candidates(n_workers, most);
            if statement.candidates.is_empty() {
                continue;
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
        let total = vec![0; n_workers as usize];
        let received = vec![total.clone(); statements.len()];
        let undo = Vec::new();
        let owned = |(value, written): &(ValueId, Written)| {
            let rank = program.ty(*value).rank();
            (*value, Rc::new(Owned::new(written.ownership(), rank, n_workers)))
        };
        let fixed: BTreeMap<ValueId, Rc<Owned>> = written.iter().map(owned).collect();
        let (anchors, owners) = (BTreeMap::new(), fixed.clone());
        let limit = limit.min(LOOKS / n_workers.max(1) as usize);
        Search {
            n_workers,
            per_node,
            statements,
            readers,
            makers,
            anchors,
            owners,
            fixed,
            owner_computes,
            received,
            total,
            undo,
            report,
            limit,
        }
    }

    /// Begins, improves, and tells what it found.
    pub(super) fn run(mut self) -> Grids {
        self.start();
        self.improve();
        self.finish()
    }

    /// Every statement in turn gets the grid that is best for what is known by then.
    fn start(&mut self) {
        for k in 0..self.statements.len() {
            let statement = &self.statements[k];
            let scores = (0..statement.candidates.len()).map(|candidate| {
                let received = statement.received(candidate, &self.owners, self.n_workers, self.per_node);
                (score(&received), received)
            });
            let best = scores.enumerate().min_by(|(_, a), (_, b)| a.0.cmp(&b.0));
            if let Some((chosen, (_, received))) = best {
                self.statements[k].chosen = chosen;
                self.set_received(k, received);
            }
            for (value, owner) in self.owned_by(k) {
                if self.owners.insert(value, owner).is_none() && !self.statements[k].results.contains(&value) {
                    self.anchors.insert(value, k);
                }
            }
        }
    }

    /// What a statement says the owners of: what it makes, and sources that are where it reads them.
    fn owned_by(&self, k: usize) -> Vec<(ValueId, Rc<Owned>)> {
        let statement = &self.statements[k];
        let mut owned: Vec<(ValueId, Rc<Owned>)> = Vec::new();
        for (number, read) in statement.reads.iter().enumerate() {
            let anchored = match self.anchors.get(&read.value) {
                Some(&anchor) => anchor == k,
                None => !self.owners.contains_key(&read.value),
            };
            if anchored && owned.iter().all(|(value, _)| *value != read.value) {
                owned.push((read.value, statement.operand_owner(statement.chosen, number, self.n_workers).clone()));
            }
        }
        let output = statement.output_owner(statement.chosen, self.n_workers);
        owned.extend(statement.results.iter().map(|&value| (value, output.clone())));
        owned.retain(|(value, _)| !self.fixed.contains_key(value));
        owned
    }

    /// Improves what was begun with until nothing in reach is better.
    fn improve(&mut self) {
        let all: Vec<usize> = (0..self.statements.len()).collect();
        self.exchange(all, None);
        let mut changed = true;
        while changed && !self.report.stopped {
            changed = false;
            for k in 0..self.statements.len() {
                self.undo.clear();
                changed |= self.escape(k);
            }
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
            let before = score(&self.total);
            let statement = &self.statements[k];
            // A grid that alone receives that much cannot be part of anything better.
            if candidate == statement.chosen || statement.candidates[candidate].alone >= before.0 {
                continue;
            }
            if self.is_over() {
                break;
            }
            let mark = self.undo.len();
            self.choose(k, candidate);
            self.exchange(self.next_to(k), Some(k));
            if score(&self.total) < before {
                better = true;
            } else {
                self.go_back(mark);
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

    fn try_mesh(&mut self, k: usize, candidate: usize) -> bool {
        self.keep_if_better(|search| search.choose(k, candidate))
    }

    fn try_anchor(&mut self, value: ValueId, reader: usize) -> bool {
        let statement = &self.statements[reader];
        let Some(read) = statement.reads.iter().position(|read| read.value == value) else { return false };
        let owner = statement.operand_owner(statement.chosen, read, self.n_workers).clone();
        self.keep_if_better(|search| {
            if let Some(before) = search.anchors.insert(value, reader) {
                search.undo.push(Undo::Anchor(value, before));
            }
            search.set_owners(vec![(value, owner)], None);
        })
    }

    fn keep_if_better(&mut self, step: impl FnOnce(&mut Self)) -> bool {
        let (mark, before) = (self.undo.len(), score(&self.total));
        step(self);
        let better = score(&self.total) < before;
        match better {
            true => self.report.improved += 1,
            false => self.go_back(mark),
        }
        better
    }

    /// Gives a statement another grid.
    fn choose(&mut self, k: usize, candidate: usize) {
        self.undo.push(Undo::Chosen(k, self.statements[k].chosen));
        self.statements[k].chosen = candidate;
        let owned = self.owned_by(k);
        self.set_owners(owned, Some(k));
    }

    /// Gives values other owners.
    fn set_owners(&mut self, owned: Vec<(ValueId, Rc<Owned>)>, also: Option<usize>) {
        self.report.compared += 1;
        let mut affected: Vec<usize> = also.into_iter().collect();
        for (value, owner) in owned {
            affected.extend(self.readers.get(&value).into_iter().flatten());
            let before = self.owners.insert(value, owner);
            self.undo.push(Undo::Owner(value, before));
        }
        affected.sort_unstable();
        affected.dedup();
        for k in affected {
            let statement = &self.statements[k];
            let now = statement.received(statement.chosen, &self.owners, self.n_workers, self.per_node);
            let before = self.set_received(k, now);
            self.undo.push(Undo::Received(k, before));
        }
    }

    fn set_received(&mut self, k: usize, received: Vec<u64>) -> Vec<u64> {
        for ((sum, old), new) in self.total.iter_mut().zip(&self.received[k]).zip(&received) {
            *sum = *sum - old + new;
        }
        std::mem::replace(&mut self.received[k], received)
    }

    fn go_back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Chosen(k, chosen)) => self.statements[k].chosen = chosen,
                Some(Undo::Anchor(value, reader)) => {
                    self.anchors.insert(value, reader);
                }
                Some(Undo::Owner(value, Some(owner))) => {
                    self.owners.insert(value, owner);
                }
                Some(Undo::Owner(value, None)) => {
                    self.owners.remove(&value);
                }
                Some(Undo::Received(k, received)) => {
                    self.set_received(k, received);
                }
                None => return,
            }
        }
    }

    fn finish(self) -> Grids {
        let meshes = self.statements.iter().map(|s| (s.node, (s.mesh().clone(), s.extents.clone())));
        let best_few = self.statements.iter().map(|s| (s.node, s.best_grids(BEST_FEW))).collect();
        Grids {
            n_workers: self.n_workers,
            meshes: meshes.chain(self.owner_computes).collect(),
            owners: self.owners.iter().map(|(&value, owned)| (value, owned.ownership.clone())).collect(),
            best_few,
            received: self.total,
            report: self.report,
        }
    }
}
