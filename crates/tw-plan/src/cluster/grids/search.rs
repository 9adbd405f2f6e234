//! The search: a first choice for every statement, then exchanges as long as they help.
//!
//! What a worker reads of a value in any statement it receives once, so what counts is, for every value and worker, the union of what is read less what is owned.
//! Statements of one form are first exchanged all together: a loop that was unrolled is one choice, not a thousand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use tw_ir::EntityRef;
use tw_ir::program::{Op, Program, ValueId};

use super::boxes::{Kept, Regions};
use super::form::{Array, Candidate, Form, Owned};
use super::{Grids, SearchReport};
use crate::cluster::machine::Machine;
use crate::cluster::mesh::Mesh;
use crate::cluster::notation::Written;

/// Numbered grids that are kept for each form, at most and at least.
const MOST_CANDIDATES: usize = 96;
const FEWEST_CANDIDATES: usize = 2;

/// Grids of a statement that are reported with what a worker would receive.
const BEST_FEW: usize = 4;

/// Workers times grids of all forms that are looked at.
const LOOKS: usize = 8_000_000;

/// Workers times values that may be looked at for each choice that may be compared.
const LOOKS_OF_A_CHOICE: usize = 1000;

/// Largest first, then all together: smaller is better.
fn score(received: &[u64]) -> (u64, u64) {
    (received.iter().copied().max().unwrap_or(0), received.iter().sum())
}

/// A statement as the search sees it.
struct Statement {
    node: usize,
    /// The number of its form.
    form: usize,
    reads: Vec<ValueId>,
    results: Vec<ValueId>,
    /// The number of its grid among the candidates of its form.
    chosen: usize,
    /// Bytes of parts of sums that every worker receives.
    sums: Rc<Vec<u64>>,
}

/// A value as the search sees it.
struct Value {
    bytes: u64,
    /// The statement that makes it, if that has a grid, and statements that read it, with the number of the read.
    maker: Option<usize>,
    readers: Vec<(usize, usize)>,
    /// The statement whose reading says where a source is.
    anchor: Option<usize>,
    owner: Option<Rc<Owned>>,
    /// True if the owners stay as they are.
    fixed: bool,
    /// Bytes that every worker receives.
    received: Rc<Vec<u64>>,
}

/// What is received of a value by those who read it in some ways, by the owner, the ways and the bytes of an element. Addresses stand for owners and ways, which all live as long as the search.
type Known = HashMap<(*const Owned, Vec<*const Regions>, u64), Rc<Vec<u64>>>;

pub(super) struct Search<'a> {
    machine: &'a Machine,
    /// Forms with their grids.
    forms: Vec<(Form, Vec<Candidate>)>,
    statements: Vec<Statement>,
    values: Vec<Value>,
    owner_computes: BTreeMap<usize, (Mesh, Vec<u64>)>,
    /// Bytes by worker.
    total: Vec<u64>,
    known: Known,
    /// How to get back to what was there before the steps under way.
    undo: Vec<Undo>,
    report: SearchReport,
    limit: usize,
    looks: usize,
}

/// What a step changed, to be put back.
enum Undo {
    Chosen(usize, usize, Rc<Vec<u64>>),
    Anchor(usize, Option<usize>),
    Owner(usize, Option<Rc<Owned>>),
    Received(usize, Rc<Vec<u64>>),
}

impl<'a> Search<'a> {
    /// A search that leaves values which have owners already where they are.
    pub(super) fn beside(
        program: &Program,
        machine: &'a Machine,
        limit: usize,
        written: &[(ValueId, Written)],
    ) -> Search<'a> {
        let n_workers = machine.n_workers() as u64;
        let nothing = Rc::new(vec![0; machine.n_workers()]);
        let value = |id: ValueId| Value {
            bytes: program.ty(id).dtype.size(),
            maker: None,
            readers: Vec::new(),
            anchor: None,
            owner: None,
            fixed: false,
            received: nothing.clone(),
        };
        let mut search = Search {
            machine,
            forms: Vec::new(),
            statements: Vec::new(),
            values: program.values.keys().map(value).collect(),
            owner_computes: BTreeMap::new(),
            total: nothing.to_vec(),
            known: HashMap::new(),
            undo: Vec::new(),
            report: SearchReport::default(),
            limit,
            looks: 0,
        };
        for (id, written) in written {
            let value = &mut search.values[id.index()];
            (value.owner, value.fixed) = (Some(Rc::new(Owned::new(written.ownership(), n_workers))), true);
        }
        let nodes = program.body.nodes.iter().enumerate();
        let forms = nodes.filter_map(|(number, node)| match &node.op {
            Op::Index(stmt) => Some((number, node, stmt, Form::of(program, node, stmt)?)),
            _ => None,
        });
        let forms: Vec<_> = forms.collect();
        let mut numbers: HashMap<Form, usize> = HashMap::new();
        let n_forms = forms.iter().map(|(.., form)| form).collect::<std::collections::HashSet<_>>().len();
        // Every candidate is looked at on every worker, and what it touches there is kept.
        let most = LOOKS / (n_workers as usize * n_forms.max(1));
        let most = most.clamp(FEWEST_CANDIDATES, MOST_CANDIDATES);
        let mut kept = Kept::default();
        for (node, made_by, stmt, form) in forms {
            let written = written.iter().find(|(value, _)| made_by.results.contains(value));
            let number = match written {
                // It runs where its results are. A grid of one worker keeps its operands cut alike.
                Some((_, written)) => match written.mesh(&form.out_vars, form.extents.len()) {
                    Some(mesh) => {
                        let only = form.candidate(mesh, 0, n_workers, &mut kept);
                        search.forms.push((form, vec![only]));
                        search.forms.len() - 1
                    }
                    None => {
                        search.owner_computes.insert(node, (Mesh::new(vec![1; form.extents.len()]), form.extents));
                        continue;
                    }
                },
                None => *numbers.entry(form.clone()).or_insert_with(|| {
                    let (candidates, n_looked) = form.candidates(n_workers, most, &mut kept);
                    search.report.candidates += n_looked;
                    search.forms.push((form, candidates));
                    search.forms.len() - 1
                }),
            };
            if search.forms[number].1.is_empty() {
                continue;
            }
            let k = search.statements.len();
            made_by.results.iter().for_each(|value| search.values[value.index()].maker = Some(k));
            search.statements.push(Statement {
                node,
                form: number,
                reads: stmt.reads.iter().map(|read| made_by.args[read.operand as usize]).collect(),
                results: made_by.results.clone(),
                chosen: 0,
                sums: nothing.clone(),
            });
        }
        search.report.statements = search.statements.len();
        search
    }

    /// Begins, improves, and tells what it found.
    pub(super) fn run(mut self) -> Grids {
        self.start();
        let mut by_form: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (k, statement) in self.statements.iter().enumerate() {
            by_form.entry(statement.form).or_default().push(k);
        }
        let limits = (self.limit, self.limit * LOOKS_OF_A_CHOICE);
        if by_form.len() < self.statements.len() {
            self.improve(&by_form.into_values().collect::<Vec<_>>(), (limits.0 / 2, limits.1 / 2));
        }
        self.improve(&(0..self.statements.len()).map(|k| vec![k]).collect::<Vec<_>>(), limits);
        self.finish()
    }

    /// Every statement in turn gets the grid that is best for what is known by then.
    fn start(&mut self) {
        for k in 0..self.statements.len() {
            for (number, value) in self.statements[k].reads.clone().into_iter().enumerate() {
                let value = &mut self.values[value.index()];
                value.readers.push((k, number));
                if value.maker.is_none() && !value.fixed {
                    value.anchor.get_or_insert(k);
                }
            }
            let tried = (0..self.candidates(k).len()).map(|candidate| {
                self.choose(&[k], candidate);
                let found = score(&self.total);
                self.go_back(0);
                found
            });
            let tried: Vec<(u64, u64)> = tried.collect();
            let best = (0..tried.len()).min_by_key(|&candidate| tried[candidate]);
            self.choose(&[k], best.unwrap_or(0));
            self.undo.clear();
        }
    }

    fn candidates(&self, k: usize) -> &[Candidate] {
        &self.forms[self.statements[k].form].1
    }

    /// Improves what was begun with until nothing in reach is better. Statements of a unit always change together, and have one form.
    fn improve(&mut self, units: &[Vec<usize>], limits: (usize, usize)) {
        let mut unit_of = vec![0; self.statements.len()];
        for (number, unit) in units.iter().enumerate() {
            unit.iter().for_each(|&k| unit_of[k] = number);
        }
        let around = Units { units, unit_of, limits };
        self.report.stopped = false;
        self.exchange(&around, (0..units.len()).collect(), None);
        let mut changed = true;
        while changed && !self.report.stopped {
            changed = false;
            for unit in 0..units.len() {
                self.undo.clear();
                changed |= self.escape(&around, unit);
            }
        }
    }

    /// Exchanges the grids of units, or the places of sources they read, as long as that helps; then those of units next to the ones that changed. One
    /// of them may have to stay as it is.
    fn exchange(&mut self, around: &Units<'_>, units: Vec<usize>, pinned: Option<usize>) {
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
                for (reader, _) in self.values[value].readers.clone() {
                    if self.values[value].anchor == Some(reader) {
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

    /// Tries other grids of a unit together with those that its neighbours then want: a step that makes things worse at first.
    fn escape(&mut self, around: &Units<'_>, number: usize) -> bool {
        let unit = &around.units[number];
        let mut better = false;
        for candidate in 0..self.candidates(unit[0]).len() {
            let before = score(&self.total);
            // A grid that alone receives that much cannot be part of anything better.
            if self.are_at(unit, candidate) || self.candidates(unit[0])[candidate].alone >= before.0 {
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

    fn is_over(&mut self, around: &Units<'_>) -> bool {
        self.report.stopped |= self.report.compared >= around.limits.0 || self.looks >= around.limits.1;
        self.report.stopped
    }

    fn are_at(&self, unit: &[usize], candidate: usize) -> bool {
        unit.iter().all(|&k| self.statements[k].chosen == candidate)
    }

    /// Units that read what a unit makes or reads, or make what it reads.
    fn next_to(&self, around: &Units<'_>, number: usize) -> Vec<usize> {
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

    /// Gives statements of one form another grid.
    fn choose(&mut self, unit: &[usize], candidate: usize) {
        let mut affected: Vec<usize> = Vec::new();
        for &k in unit {
            let (form, candidates) = &self.forms[self.statements[k].form];
            let turn = self.statements[k].results.first().map_or(0, |value| value.index() as u64);
            let sums = form.sums(&candidates[candidate], turn, self.machine);
            let statement = &mut self.statements[k];
            exchange_in(&mut self.total, &statement.sums, &sums);
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

    /// What a statement says the owners of: what it makes, and sources that are where it reads them.
    fn owned_by(&self, k: usize) -> Vec<(usize, Rc<Owned>)> {
        let statement = &self.statements[k];
        let mut owned: Vec<(usize, Rc<Owned>)> = Vec::new();
        for (number, value) in statement.reads.iter().enumerate() {
            let value = value.index();
            if self.values[value].anchor == Some(k) && owned.iter().all(|(known, _)| *known != value) {
                owned.push((value, self.owner(k, Array::Read(number), value)));
            }
        }
        let made = statement.results.iter().map(|value| value.index()).filter(|&value| !self.values[value].fixed);
        owned.extend(made.map(|value| (value, self.owner(k, Array::Output, value))));
        owned
    }

    fn owner(&self, k: usize, array: Array, value: usize) -> Rc<Owned> {
        let statement = &self.statements[k];
        let (form, candidates) = &self.forms[statement.form];
        // All results of a statement are where the first is.
        let first = statement.results.first().filter(|_| array == Array::Output);
        let turn = first.map_or(value, |first| first.index());
        form.owner(&candidates[statement.chosen], array, turn as u64, self.machine)
    }

    /// Puts a source where one of its readers wants it.
    fn anchor(&mut self, value: usize, reader: usize) {
        let Some(number) = self.statements[reader].reads.iter().position(|read| read.index() == value) else { return };
        let owner = self.owner(reader, Array::Read(number), value);
        let found = &mut self.values[value];
        self.undo.push(Undo::Anchor(value, found.anchor.replace(reader)));
        self.undo.push(Undo::Owner(value, found.owner.replace(owner)));
        self.update(vec![value]);
    }

    /// Counts again what is received of some values.
    fn update(&mut self, mut affected: Vec<usize>) {
        self.report.compared += 1;
        affected.sort_unstable();
        affected.dedup();
        self.looks += affected.len() * self.total.len();
        for value in affected {
            let received = self.received_of(value);
            exchange_in(&mut self.total, &self.values[value].received, &received);
            let before = std::mem::replace(&mut self.values[value].received, received);
            self.undo.push(Undo::Received(value, before));
        }
    }

    fn received_of(&mut self, number: usize) -> Rc<Vec<u64>> {
        let value = &self.values[number];
        let Some(owner) = value.owner.as_ref().filter(|_| !value.readers.is_empty()) else {
            return Rc::new(vec![0; self.total.len()]);
        };
        let need = |&(k, read): &(usize, usize)| {
            let statement = &self.statements[k];
            &self.forms[statement.form].1[statement.chosen].needs[read]
        };
        let mut needs: Vec<&Rc<Regions>> = value.readers.iter().map(need).collect();
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
                    exchange_in(&mut self.total, &statement.sums, &sums);
                    (statement.chosen, statement.sums) = (chosen, sums);
                }
                Some(Undo::Anchor(value, anchor)) => self.values[value].anchor = anchor,
                Some(Undo::Owner(value, owner)) => self.values[value].owner = owner,
                Some(Undo::Received(value, received)) => {
                    exchange_in(&mut self.total, &self.values[value].received, &received);
                    self.values[value].received = received;
                }
                None => return,
            }
        }
    }

    fn finish(self) -> Grids {
        let form = |statement: &Statement| &self.forms[statement.form];
        let mesh = |statement: &Statement| form(statement).1[statement.chosen].mesh.clone();
        let meshes = self.statements.iter().map(|s| (s.node, (mesh(s), form(s).0.extents.clone())));
        let values = (0..).map(ValueId::new).zip(&self.values);
        let owner = |(id, value): (ValueId, &Value)| Some((id, value.owner.as_ref()?.ownership.clone()));
        Grids {
            n_workers: self.machine.n_workers() as u64,
            meshes: meshes.chain(self.owner_computes.clone()).collect(),
            owners: values.filter_map(owner).collect(),
            best_few: self.statements.iter().map(|s| (s.node, best_grids(&form(s).1))).collect(),
            received: self.total,
            report: self.report,
        }
    }
}

/// Statements that change together, the unit of each, and how many choices may be compared and looks taken.
struct Units<'a> {
    units: &'a [Vec<usize>],
    unit_of: Vec<usize>,
    limits: (usize, usize),
}

fn exchange_in(total: &mut [u64], before: &Rc<Vec<u64>>, after: &Rc<Vec<u64>>) {
    if Rc::ptr_eq(before, after) {
        return;
    }
    for ((sum, old), new) in total.iter_mut().zip(before.iter()).zip(after.iter()) {
        *sum = *sum - old + new;
    }
}

/// The best few grids for a statement by itself, with what a worker then receives.
fn best_grids(candidates: &[Candidate]) -> Vec<(Vec<u64>, u64)> {
    let grids = candidates.iter().map(|candidate| (candidate.mesh.factors().to_vec(), candidate.alone));
    let mut best: Vec<(Vec<u64>, u64)> = grids.collect();
    // The numberings of a grid follow each other.
    best.dedup();
    best.truncate(BEST_FEW);
    best
}
