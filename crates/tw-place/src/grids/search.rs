//! The search for meshes: greedy first choices, then local search from the best of them.
//!
//! A worker receives a value once, even if several statements read it. So the cost per value and worker is the union of its reads less its shard. A first choice gives each statement its best mesh given
//! those before it: in the order of the program, and from statements on the largest values outwards. Then one mesh, or the owner of one source, is exchanged at a time while that reduces the bytes of the busiest worker and the average. To leave a local optimum, the search
//! worsens one mesh and re-optimises its neighbours, with an undo log. Workers of a mesh may be numbered in any axis order, which decides what shares a node and what two statements
//! have in common. Limits are counts. A test compares the result with exhaustive search on small programs.
//!
//! If many statements have one form, a summary with one statement per form is searched first: an unrolled loop is a few choices, not thousands.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use tw_ir::EntityRef;
use tw_ir::program::{Node, NodeId, Op, Program, ValueId};

use super::access::Accesses;
use super::boxes::{Kept, Regions};
use super::form::{Around, Array, Candidate, Form};
use super::owners::{Owned, Owners};
use super::{Aim, Grids, OnGrid, SearchReport};
use crate::homes::Before;
use crate::machine::Machine;
use crate::mesh::{Mesh, Variable};
use crate::notation::Written;

mod summary;
#[cfg(test)]
mod tests;

/// Numbered meshes kept per form: the largest and the smallest number.
const MOST_CANDIDATES: usize = 96;
const FEWEST_CANDIDATES: usize = 2;

/// The number of best meshes reported per statement.
const BEST_FEW: usize = 4;

/// The limit of workers times meshes over all forms.
const LOOKS: usize = 8_000_000;

/// Statements that a search begins with, besides the first, and meshes tried for each.
const MOST_SEEDS: usize = 3;
const MESHES_OF_A_SEED: usize = 8;

/// The limit of workers times values examined per compared choice.
const LOOKS_OF_A_CHOICE: usize = 4000;

/// The bytes of the busiest worker plus the average, times the number of workers. The average prevents large extra traffic for a small gain of the busiest. Smaller is better.
fn score(received: &[u64]) -> u128 {
    let (most, n_workers) = (received.iter().copied().max().unwrap_or(0), received.len() as u128);
    u128::from(most) * n_workers + received.iter().map(|&bytes| u128::from(bytes)).sum::<u128>()
}

/// A statement as the search sees it.
struct Statement {
    node: NodeId,
    /// The number of its form.
    form: usize,
    reads: Vec<ValueId>,
    results: Vec<ValueId>,
    /// The number of its mesh among the candidates of its form.
    chosen: usize,
    /// Bytes of partial sums that each worker receives, and the number of statements that this one represents.
    sums: Rc<Vec<u64>>,
    weight: u64,
}

/// A value as the search sees it.
struct Value {
    /// Bytes of an element, and of all.
    bytes: u64,
    size: u64,
    /// Its producer, if that has a mesh, and its readers, with the number of the read.
    maker: Option<usize>,
    readers: Vec<(usize, usize)>,
    /// The reader that decides the owners of a source.
    anchor: Option<usize>,
    owner: Option<Rc<Owned>>,
    /// True if the owners are fixed.
    fixed: bool,
    /// Bytes that each worker receives, and the number of values that this one represents.
    received: Rc<Vec<u64>>,
    weight: u64,
}

/// A cache of received bytes by owners, reads and element size. Addresses identify owners and reads, which all live as long as the search.
type Known = HashMap<(*const Owned, Vec<*const Regions>, u64), Rc<Vec<u64>>>;

pub(super) struct Search<'a> {
    machine: &'a Machine,
    /// Forms with their candidate meshes.
    forms: Rc<Vec<(Form, Vec<Candidate>)>>,
    statements: Vec<Statement>,
    /// Which statements already have a mesh.
    begun: Vec<bool>,
    values: Vec<Value>,
    owner_computes: BTreeMap<NodeId, Vec<Variable>>,
    /// Bytes by worker.
    total: Vec<u64>,
    nothing: Rc<Vec<u64>>,
    known: Known,
    /// The undo log of the current steps.
    undo: Vec<Undo>,
    report: SearchReport,
    looks: usize,
}

/// A change of a step, for undo.
enum Undo {
    Chosen(usize, usize, Rc<Vec<u64>>),
    Anchor(usize, Option<usize>),
    Owner(usize, Option<Rc<Owned>>),
    Received(usize, Rc<Vec<u64>>),
}

impl<'a> Search<'a> {
    /// A search in which some values have fixed owners, from the user's distributions or an earlier segment.
    pub(super) fn beside(
        program: &Program,
        machine: &'a Machine,
        before: &Before,
        aim: Aim,
        written: &[(ValueId, Written)],
    ) -> Search<'a> {
        let n_workers = machine.n_workers() as u64;
        let nothing = Rc::new(vec![0; machine.n_workers()]);
        let value = |id: ValueId| Value {
            bytes: program.ty(id).dtype.size(),
            size: program
                .ty(id)
                .known_shape()
                .map_or(0, |shape| shape.iter().fold(program.ty(id).dtype.size(), |bytes, &n| bytes.saturating_mul(n))),
            maker: None,
            readers: Vec::new(),
            anchor: None,
            owner: None,
            fixed: false,
            received: nothing.clone(),
            weight: 1,
        };
        let mut search = Search {
            machine,
            forms: Rc::default(),
            statements: Vec::new(),
            begun: Vec::new(),
            values: program.values.keys().map(value).collect(),
            owner_computes: BTreeMap::new(),
            total: nothing.to_vec(),
            nothing: nothing.clone(),
            known: HashMap::new(),
            undo: Vec::new(),
            report: SearchReport::default(),
            looks: 0,
        };
        for (id, written) in written {
            let value = &mut search.values[id.index()];
            (value.owner, value.fixed) =
                (Some(Rc::new(Owned::new(Owners::Grid(written.ownership()), 0..n_workers))), true);
        }
        for node in &program.body.nodes {
            let Some(held) = before.source(&node.op) else { continue };
            let value = &mut search.values[node.results[0].index()];
            // The user's distributions are fixed.
            if value.fixed {
                continue;
            }
            (value.owner, value.fixed) = (Some(Rc::new(Owned::new(Owners::Homes(held.clone()), 0..n_workers))), true);
        }
        // What cannot be shared along its variables is not an operation for one worker: its tasks have places of their own. Functions have as many calls as they have.
        let is_shared = |node: &Node, form: &Form| match node.op {
            Op::Index(_) => true,
            Op::BlockFn(_) | Op::Retile { .. } => true,
            _ => form.shares() >= n_workers,
        };
        let mut grains = BTreeMap::new();
        let found = program.nodes().filter_map(|(id, node)| {
            let (mut form, reads) = (Form::of(program, node, aim)?, Accesses::of(program, node)?.reads);
            form.follow_tiles(node, reads.iter().map(|(argument, _)| *argument), n_workers, &mut grains);
            is_shared(node, &form).then_some((id, node, reads, form))
        });
        let found: Vec<_> = found.collect();
        let sizes = found.iter().map(|(.., form)| form.shares()).filter(|shares| *shares < n_workers).collect();
        let around = Around { machine, sizes };
        let n_forms = found.iter().map(|(.., form)| form).collect::<HashSet<_>>().len();
        // Every candidate is looked at on every worker, and what it touches there is kept.
        let most = (LOOKS / (n_workers as usize * n_forms.max(1))).clamp(FEWEST_CANDIDATES, MOST_CANDIDATES);
        let (mut forms, mut numbers, mut kept) = (Vec::new(), HashMap::new(), Kept::default());
        for (node, made_by, reads, form) in found {
            let position = |value: &ValueId| made_by.results.iter().position(|result| result == value);
            let written = written.iter().find_map(|(value, written)| Some((position(value)?, written)));
            let number = match written {
                Some((result, written)) => match form.written(result, written) {
                    Some(mesh) => {
                        let only = form.candidate((0, mesh, false), machine, &mut kept);
                        forms.push((form, vec![only]));
                        forms.len() - 1
                    }
                    // It runs where its results are.
                    None => {
                        search.owner_computes.insert(node, form.variables);
                        continue;
                    }
                },
                None => *numbers.entry(form.clone()).or_insert_with(|| {
                    let (candidates, n_looked) = form.candidates(&around, most, &mut kept);
                    search.report.candidates += n_looked;
                    forms.push((form, candidates));
                    forms.len() - 1
                }),
            };
            if forms[number].1.is_empty() {
                continue;
            }
            search.add(Statement {
                node,
                form: number,
                reads: reads.iter().map(|(argument, _)| made_by.args[*argument]).collect(),
                results: made_by.results.clone(),
                chosen: 0,
                sums: nothing.clone(),
                weight: 1,
            });
        }
        search.forms = Rc::new(forms);
        search.report.statements = search.statements.len();
        search
    }

    fn add(&mut self, statement: Statement) {
        let k = self.statements.len();
        statement.results.iter().for_each(|value| self.values[value.index()].maker = Some(k));
        for (number, value) in statement.reads.iter().enumerate() {
            self.values[value.index()].readers.push((k, number));
        }
        self.statements.push(statement);
        self.begun.push(false);
    }

    /// Runs the search. Compares at most `limit` choices.
    pub(super) fn run(mut self, limit: usize) -> Grids {
        self.start(limit / 4);
        let used: BTreeSet<usize> = self.statements.iter().map(|statement| statement.form).collect();
        if used.len() < self.statements.len() {
            let (mut summary, value_of) = self.summary();
            summary.start(limit / 4);
            summary.improve(summary.by_form(), limit / 4);
            self.report.compared += summary.report.compared;
            self.looks += summary.looks;
            let (mark, before) = (self.undo.len(), score(&self.total));
            self.follow(&summary, &value_of);
            if score(&self.total) > before {
                self.go_back(mark);
            }
            self.undo.clear();
        }
        let one_by_one: Vec<Vec<usize>> = (0..self.statements.len()).map(|k| vec![k]).collect();
        self.improve(one_by_one, limit);
        self.finish()
    }

    /// Finds a first choice: that of the best of several beginnings, each improved step by step.
    ///
    /// In the order of the program, statements on parts of a value come before those on all of it, and may choose meshes that only suit them. A step changes one statement, so it does not lead from
    /// there to a choice in which all follow the sharding of the largest value. Therefore other beginnings start with a statement on the largest values, under one mesh after the other; all
    /// others follow, those with the largest values in common first.
    fn start(&mut self, limit: usize) {
        let around = Units::one_by_one(self, limit);
        self.begin(&(0..self.statements.len()).collect::<Vec<_>>(), None);
        self.exchange(&around, (0..self.statements.len()).collect(), None);
        let mut best = (score(&self.total), self.choice());
        for (k, candidate) in self.beginnings() {
            if self.is_over(&around) {
                break;
            }
            self.forget();
            self.begin(&self.order_from(k), Some(candidate));
            self.exchange(&around, (0..self.statements.len()).collect(), None);
            if score(&self.total) < best.0 {
                best = (score(&self.total), self.choice());
            }
        }
        self.repeat(&best.1);
        self.report.stopped = false;
    }

    /// Gives each statement in turn the best mesh for the choices so far, the first one a given mesh.
    fn begin(&mut self, order: &[usize], first: Option<usize>) {
        for (turn, &k) in order.iter().enumerate() {
            self.begun[k] = true;
            for value in self.statements[k].reads.clone() {
                let value = &mut self.values[value.index()];
                if value.maker.is_none() && !value.fixed {
                    value.anchor.get_or_insert(k);
                }
            }
            let first = first.filter(|_| turn == 0);
            let best = first.or_else(|| {
                let tried = (0..self.candidates(k).len()).map(|candidate| {
                    self.choose(&[k], candidate);
                    let found = score(&self.total);
                    self.go_back(0);
                    found
                });
                let tried: Vec<u128> = tried.collect();
                (0..tried.len()).min_by_key(|&candidate| tried[candidate])
            });
            self.choose(&[k], best.unwrap_or(0));
            self.undo.clear();
        }
    }

    /// Statements on the largest values, with meshes to begin with.
    fn beginnings(&self) -> Vec<(usize, usize)> {
        let mut seeds: Vec<usize> = (0..self.statements.len()).collect();
        seeds.sort_by_key(|&k| std::cmp::Reverse(self.touched(k).map(|value| self.values[value].size).max()));
        let mut forms = BTreeSet::new();
        seeds.retain(|&k| forms.insert(self.statements[k].form));
        seeds.truncate(MOST_SEEDS);
        let meshes = |k: usize| {
            let mut factors: Vec<&[u64]> = Vec::new();
            let mut found: Vec<(usize, usize)> = Vec::new();
            for (number, candidate) in self.candidates(k).iter().enumerate() {
                if found.len() < MESHES_OF_A_SEED && !factors.contains(&candidate.mesh.factors()) {
                    factors.push(candidate.mesh.factors());
                    found.push((k, number));
                }
            }
            found
        };
        seeds.into_iter().flat_map(meshes).collect()
    }

    /// All statements: one, then whichever shares the largest value with those before it.
    fn order_from(&self, first: usize) -> Vec<usize> {
        let mut next: BTreeSet<(u64, std::cmp::Reverse<usize>)> =
            BTreeSet::from([(u64::MAX, std::cmp::Reverse(first))]);
        let mut rest: BTreeSet<usize> = (0..self.statements.len()).collect();
        let mut order = Vec::new();
        while !rest.is_empty() {
            let k = match next.pop_last() {
                Some((_, std::cmp::Reverse(k))) => k,
                None => rest.first().copied().unwrap_or(first),
            };
            if !rest.remove(&k) {
                continue;
            }
            order.push(k);
            for value in self.touched(k).map(|value| &self.values[value]) {
                let around = value.readers.iter().map(|(reader, _)| *reader).chain(value.maker);
                let around = around.filter(|other| rest.contains(other));
                next.extend(around.map(|other| (value.size, std::cmp::Reverse(other))));
            }
        }
        order
    }

    fn touched(&self, k: usize) -> impl Iterator<Item = usize> {
        let statement = &self.statements[k];
        statement.reads.iter().chain(&statement.results).map(|value| value.index())
    }

    /// The mesh of each statement, and the reader that each source follows.
    fn choice(&self) -> (Vec<usize>, Vec<Option<usize>>) {
        (self.statements.iter().map(|s| s.chosen).collect(), self.values.iter().map(|value| value.anchor).collect())
    }

    /// As before any statement has a mesh.
    fn forget(&mut self) {
        self.undo.clear();
        self.begun.fill(false);
        self.total = self.nothing.to_vec();
        for statement in &mut self.statements {
            (statement.chosen, statement.sums) = (0, self.nothing.clone());
        }
        for value in &mut self.values {
            value.received = self.nothing.clone();
            if !value.fixed {
                (value.owner, value.anchor) = (None, None);
            }
        }
    }

    fn repeat(&mut self, (chosen, anchors): &(Vec<usize>, Vec<Option<usize>>)) {
        self.forget();
        self.begun.fill(true);
        self.values.iter_mut().zip(anchors).for_each(|(value, anchor)| value.anchor = *anchor);
        (0..chosen.len()).for_each(|k| self.choose(&[k], chosen[k]));
        self.undo.clear();
    }

    fn candidates(&self, k: usize) -> &[Candidate] {
        &self.forms[self.statements[k].form].1
    }

    /// Improves the first choice to a local optimum. Statements of a unit have one form and change together.
    fn improve(&mut self, units: Vec<Vec<usize>>, limit: usize) {
        let n_units = units.len();
        let around = Units::new(units, self, limit);
        self.report.stopped = false;
        self.exchange(&around, (0..n_units).collect(), None);
        let mut changed = true;
        while changed && !self.report.stopped {
            changed = false;
            for unit in 0..n_units {
                self.undo.clear();
                changed |= self.escape(&around, unit);
            }
        }
    }

    /// Exchanges the meshes of units, or the owners of sources that they read, while that helps; then those of neighbours of changed units. One
    /// unit may be fixed.
    fn exchange(&mut self, around: &Units, units: Vec<usize>, pinned: Option<usize>) {
        let mut waiting: BTreeSet<usize> = units.into_iter().collect();
        while let Some(number) = waiting.pop_first() {
            let unit = &around.units[number];
            let mut changed = false;
            for candidate in 0..self.candidates(unit[0]).len() {
                if self.are_at(unit, candidate) || Some(number) == pinned {
                    continue;
                }
                if self.is_over(around) {
                    return;
                }
                changed |= self.keep_if_better(|search| search.choose(unit, candidate));
            }
            let sources = unit.iter().flat_map(|&k| &self.statements[k].reads).map(|value| value.index());
            let sources: BTreeSet<usize> = sources.filter(|&value| self.values[value].anchor.is_some()).collect();
            for value in sources {
                // Many readers may want a source in the same places.
                let mut tried: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
                for (reader, read) in self.values[value].readers.clone() {
                    let Statement { form, chosen, .. } = self.statements[reader];
                    if self.values[value].anchor == Some(reader) || !tried.insert((form, chosen, read)) {
                        continue;
                    }
                    if self.is_over(around) {
                        return;
                    }
                    changed |= self.keep_if_better(|search| search.anchor(value, reader));
                }
            }
            if changed {
                waiting.extend(self.next_to(around, number));
            }
        }
    }

    /// Tries other meshes of a unit together with the best response of its neighbours: a step that is worse at first.
    fn escape(&mut self, around: &Units, number: usize) -> bool {
        let unit = &around.units[number];
        let mut better = false;
        for candidate in 0..self.candidates(unit[0]).len() {
            let before = score(&self.total);
            // A grid under which every worker alone receives that much cannot be part of anything better.
            let Candidate { alone, cost, .. } = &self.candidates(unit[0])[candidate];
            let alone = u128::from(alone + cost) * self.total.len() as u128;
            if self.are_at(unit, candidate) || alone >= before {
                continue;
            }
            if self.is_over(around) {
                break;
            }
            let mark = self.undo.len();
            self.choose(unit, candidate);
            self.exchange(around, self.next_to(around, number), Some(number));
            if score(&self.total) < before {
                better = true;
            } else {
                self.go_back(mark);
            }
        }
        better
    }

    fn is_over(&mut self, around: &Units) -> bool {
        self.report.stopped |= self.report.compared >= around.limit || self.looks >= around.looks;
        self.report.stopped
    }

    fn are_at(&self, unit: &[usize], candidate: usize) -> bool {
        unit.iter().all(|&k| self.statements[k].chosen == candidate)
    }

    /// The neighbours of a unit: units that share a value with it.
    fn next_to(&self, around: &Units, number: usize) -> Vec<usize> {
        let members = around.units[number].iter().map(|&k| &self.statements[k]);
        let mut next = BTreeSet::new();
        for value in members.flat_map(|statement| statement.reads.iter().chain(&statement.results)) {
            let value = &self.values[value.index()];
            next.extend(value.readers.iter().map(|(reader, _)| around.unit_of[*reader]));
            next.extend(value.maker.map(|maker| around.unit_of[maker]));
        }
        next.remove(&number);
        next.into_iter().collect()
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

    /// Changes the mesh of statements of one form.
    fn choose(&mut self, unit: &[usize], candidate: usize) {
        let mut affected: Vec<usize> = Vec::new();
        for &k in unit {
            let (form, candidates) = &self.forms[self.statements[k].form];
            let turn = self.statements[k].results.first().map_or(0, |value| value.index() as u64);
            let sums = form.sums(&candidates[candidate], turn, self.machine);
            let statement = &mut self.statements[k];
            exchange_in(&mut self.total, statement.weight, &statement.sums, &sums);
            let before = std::mem::replace(&mut statement.sums, sums);
            self.undo.push(Undo::Chosen(k, std::mem::replace(&mut statement.chosen, candidate), before));
            affected.extend(statement.reads.iter().map(|value| value.index()));
            for (value, owner) in self.owned_by(k) {
                let before = self.values[value].owner.replace(owner);
                self.undo.push(Undo::Owner(value, before));
                affected.push(value);
            }
        }
        self.update(affected);
    }

    /// The values whose owners a statement decides: its results, and sources that follow its reads.
    fn owned_by(&self, k: usize) -> Vec<(usize, Rc<Owned>)> {
        let statement = &self.statements[k];
        let mut owned: Vec<(usize, Rc<Owned>)> = Vec::new();
        for (number, value) in statement.reads.iter().enumerate() {
            let value = value.index();
            if self.values[value].anchor == Some(k) && owned.iter().all(|(known, _)| *known != value) {
                owned.push((value, self.owner(k, Array::Read(number), value)));
            }
        }
        let made = statement.results.iter().map(|value| value.index()).enumerate();
        let made = made.filter(|(_, value)| !self.values[*value].fixed);
        let last = self.forms[statement.form].0.outs.len() - 1;
        owned.extend(made.map(|(number, value)| (value, self.owner(k, Array::Output(number.min(last)), value))));
        owned
    }

    fn owner(&self, k: usize, array: Array, value: usize) -> Rc<Owned> {
        let statement = &self.statements[k];
        let (form, candidates) = &self.forms[statement.form];
        // All results of a statement are where the first is.
        let first = statement.results.first().filter(|_| matches!(array, Array::Output(_)));
        let turn = first.map_or(value, |first| first.index());
        form.owner(&candidates[statement.chosen], array, turn as u64, self.machine)
    }

    /// Gives a source the owners that one of its readers wants.
    fn anchor(&mut self, value: usize, reader: usize) {
        let Some(number) = self.statements[reader].reads.iter().position(|read| read.index() == value) else { return };
        let owner = self.owner(reader, Array::Read(number), value);
        let found = &mut self.values[value];
        self.undo.push(Undo::Anchor(value, found.anchor.replace(reader)));
        self.undo.push(Undo::Owner(value, found.owner.replace(owner)));
        self.update(vec![value]);
    }

    /// Recomputes the traffic of some values.
    fn update(&mut self, mut affected: Vec<usize>) {
        self.report.compared += 1;
        affected.sort_unstable();
        affected.dedup();
        self.looks += affected.len() * self.total.len();
        for value in affected {
            let received = self.received_of(value);
            exchange_in(&mut self.total, self.values[value].weight, &self.values[value].received, &received);
            let before = std::mem::replace(&mut self.values[value].received, received);
            self.undo.push(Undo::Received(value, before));
        }
    }

    fn received_of(&mut self, number: usize) -> Rc<Vec<u64>> {
        let value = &self.values[number];
        let Some(owner) = &value.owner else { return self.nothing.clone() };
        let need = |&(k, read): &(usize, usize)| {
            let statement = &self.statements[k];
            &self.forms[statement.form].1[statement.chosen].needs[read]
        };
        let begun = value.readers.iter().filter(|(k, _)| self.begun[*k]);
        let mut needs: Vec<&Rc<Regions>> = begun.map(need).collect();
        if needs.is_empty() {
            return self.nothing.clone();
        }
        needs.sort_unstable_by_key(|need| Rc::as_ptr(need));
        needs.dedup_by_key(|need| Rc::as_ptr(need));
        let key = (Rc::as_ptr(owner), needs.iter().map(|need| Rc::as_ptr(need)).collect(), value.bytes);
        let bytes = value.bytes;
        let missing = |worker: usize| owner.missing(worker, needs.iter().copied()) * bytes;
        let n_workers = self.total.len();
        self.known.entry(key).or_insert_with(|| Rc::new((0..n_workers).map(missing).collect())).clone()
    }

    fn go_back(&mut self, mark: usize) {
        while self.undo.len() > mark {
            match self.undo.pop() {
                Some(Undo::Chosen(k, chosen, sums)) => {
                    let statement = &mut self.statements[k];
                    exchange_in(&mut self.total, statement.weight, &statement.sums, &sums);
                    (statement.chosen, statement.sums) = (chosen, sums);
                }
                Some(Undo::Anchor(value, anchor)) => self.values[value].anchor = anchor,
                Some(Undo::Owner(value, owner)) => self.values[value].owner = owner,
                Some(Undo::Received(value, received)) => {
                    exchange_in(&mut self.total, self.values[value].weight, &self.values[value].received, &received);
                    self.values[value].received = received;
                }
                None => return,
            }
        }
    }

    fn finish(self) -> Grids {
        let form = |statement: &Statement| &self.forms[statement.form];
        let meshes = self.statements.iter().map(|s| {
            let (form, candidates) = form(s);
            let variables = form.variables.clone();
            (s.node, OnGrid { mesh: candidates[s.chosen].mesh.clone(), variables, where_owned: false })
        });
        // A grid of one worker keeps the operands of what runs where its results are cut alike.
        let owner_computes = self.owner_computes.iter().map(|(&node, variables)| {
            let (mesh, variables) = (Mesh::new(vec![1; variables.len()]), variables.clone());
            (node, OnGrid { mesh, variables, where_owned: true })
        });
        let values = (0..).map(ValueId::new).zip(&self.values);
        let owner = |(id, value): (ValueId, &Value)| Some((id, value.owner.as_ref()?.owners.clone()));
        let cost = self.statements.iter().map(|s| form(s).1[s.chosen].cost).sum();
        let received = self.total.iter().map(|total| total - cost).collect();
        Grids {
            n_workers: self.machine.n_workers() as u64,
            cost,
            meshes: meshes.chain(owner_computes).collect(),
            owners: values.filter_map(owner).collect(),
            best_few: self.statements.iter().map(|s| (s.node, best_grids(&form(s).1))).collect(),
            received,
            report: self.report,
        }
    }
}

/// Units of statements that change together, the unit of each statement, and the limits of this phase.
struct Units {
    units: Vec<Vec<usize>>,
    unit_of: Vec<usize>,
    limit: usize,
    looks: usize,
}

impl Units {
    fn new(units: Vec<Vec<usize>>, search: &Search<'_>, limit: usize) -> Units {
        let mut unit_of = vec![0; search.statements.len()];
        for (number, unit) in units.iter().enumerate() {
            unit.iter().for_each(|&k| unit_of[k] = number);
        }
        // Earlier comparisons do not count.
        let looks = search.looks.saturating_add(limit.saturating_mul(LOOKS_OF_A_CHOICE));
        let limit = search.report.compared.saturating_add(limit);
        Units { units, unit_of, limit, looks }
    }

    fn one_by_one(search: &Search<'_>, limit: usize) -> Units {
        Units::new((0..search.statements.len()).map(|k| vec![k]).collect(), search, limit)
    }
}

fn exchange_in(total: &mut [u64], weight: u64, before: &Rc<Vec<u64>>, after: &Rc<Vec<u64>>) {
    if Rc::ptr_eq(before, after) {
        return;
    }
    for ((sum, old), new) in total.iter_mut().zip(before.iter()).zip(after.iter()) {
        *sum = *sum - weight * old + weight * new;
    }
}

/// The best few meshes of a statement alone, with the bytes that a worker receives.
fn best_grids(candidates: &[Candidate]) -> Vec<(Vec<u64>, u64)> {
    let grids = candidates.iter().map(|candidate| (candidate.mesh.factors().to_vec(), candidate.alone));
    let mut best: Vec<(Vec<u64>, u64)> = Vec::new();
    for grid in grids.filter(|(factors, _)| !factors.is_empty()) {
        if !best.contains(&grid) {
            best.push(grid);
        }
    }
    best.sort_by_key(|(_, received)| *received);
    best.truncate(BEST_FEW);
    best
}
