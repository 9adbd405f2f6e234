//! The implementation-algebra terms of the statements of a placed plan.
//!
//! A term follows from the plan itself, not from the scheduler. The tasks of a statement tell which of its variables
//! decide on the worker: tiles of a variable that no worker tells apart are one *part*, and the variables with several
//! parts are the *placing* ones. A read operand that depends on all of them needs one copy of each block (a shuffle); one
//! that depends on none of them is needed by every worker (a broadcast); one that depends on some of them is copied
//! along the others and then shuffled. If no message brings blocks for the statement, the operand is in place already.
//! A sum over a placing variable leaves partial sums, which are shuffled to their homes and aggregated again.
//!
//! Keys are numbers of parts, and bounds are bytes. `wire` then predicts the bytes of the statement. It assumes that
//! owners are spread evenly, whereas a plan may keep a block on one of its readers: for statements that receive all of
//! their operands themselves, prediction and transfers differ by at most one copy of every relation that moves (and by
//! rounding, if parts differ in size). Data that an earlier statement received is not sent again.
//!
//! The same owners are also given to the textbook term of the paper (broadcast the left relation, shuffle, aggregate), and
//! `search` rewrites that by the rules: what it finds tells what another way to deal the statement would send.
//!
//! Other statements (sorts, gathers, tasks that are not dealt as a grid) have terms too, from the readers of each
//! block, but no prediction. Neither have statements that read a halo or a slice of an operand: whole blocks are the
//! tuples of the algebra.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tw_ir::EntityRef;
use tw_ir::accum::Accum;
use tw_ir::grid::Grid;
use tw_ir::index::{Idx, Var};
use tw_ir::kernel::{Kernel, KernelRead, StatementKernel};
use tw_ir::scalar::BinaryOp;
use tw_ir::workflow::{BlockId, BlockSetId, StmtId, TaskId, Workflow};

use super::super::placed::Placed;
use super::cost::wire;
use super::kernel::{KernelFunction, KeyMap};
use super::search::{Stop, search};
use super::term::RelationTerm;
use super::types::{Spread, Type};

/// How a placed plan computes a statement.
#[derive(Clone, Debug)]
pub struct StatementTerm {
    term: RelationTerm,
    /// Workers that take part.
    pub sites: u64,
    /// The bytes that the term sends if owners are spread evenly; `None` if its tasks are not dealt as a grid.
    pub bytes: Option<u64>,
    /// The cheapest term that the rules reach from the textbook one, with the same owners; `None` if there are no `bytes`.
    pub best: Option<BestTerm>,
}

/// The result of a search over the rules.
#[derive(Clone, Debug)]
pub struct BestTerm {
    term: RelationTerm,
    /// The bytes that it sends.
    pub bytes: u64,
    /// The rules that lead to it.
    pub rules: Vec<&'static str>,
    /// The number of terms that the search examined.
    pub tried: usize,
    /// How often each rule produced a new term.
    pub fired: BTreeMap<&'static str, usize>,
    /// True if the search stopped at its limit and left terms unexamined.
    pub stopped: bool,
}

impl StatementTerm {
    /// The term in words: `local aggregate(sum, local join(broadcast(a), shuffle(b)))`.
    pub fn words(&self) -> String {
        self.term.words()
    }
}

impl BestTerm {
    /// The term in words, as [`StatementTerm::words`].
    pub fn words(&self) -> String {
        self.term.words()
    }
}

/// Terms that a search examines for one statement.
const MOST_TERMS: usize = 64;

/// Terms with maps are typed by listing keys: at most this many.
const MOST_KEYS: u64 = 1 << 12;

impl Placed {
    /// The term of each statement that computes; `None` for statements without tasks, and for those that only load or fill.
    /// `name` gives the text for a set of blocks.
    pub fn terms(&self, name: &dyn Fn(BlockSetId) -> String) -> Vec<Option<StatementTerm>> {
        let workflow = &self.workflow;
        let homes = self.sites.homes(workflow);
        let mut tasks: Vec<Vec<TaskId>> = vec![Vec::new(); workflow.statements.len()];
        self.order.iter().for_each(|&task| tasks[workflow.statement(task).index()].push(task));
        let mut sent: BTreeSet<(StmtId, BlockSetId)> = BTreeSet::new();
        self.flows(None).iter().for_each(|flow| _ = sent.insert((flow.statement, flow.set)));
        let term = |(number, tasks): (usize, &Vec<TaskId>)| {
            let reads = tasks.iter().any(|&task| workflow.present_operands(task).next().is_some());
            let statement = StmtId::new(number);
            let compiler = Compiler { placed: self, homes: &homes, sent: &sent, name, statement, tasks };
            reads.then(|| compiler.dealt_as_grid().unwrap_or_else(|| compiler.by_readers()))
        };
        tasks.iter().enumerate().map(term).collect()
    }
}

struct Compiler<'a> {
    placed: &'a Placed,
    homes: &'a [Option<u32>],
    /// What was sent for which statement.
    sent: &'a BTreeSet<(StmtId, BlockSetId)>,
    name: &'a dyn Fn(BlockSetId) -> String,
    statement: StmtId,
    tasks: &'a [TaskId],
}

/// A term and the variables that are the components of its keys.
struct Keyed {
    term: RelationTerm,
    vars: Vec<usize>,
    /// The variables of an operand before copies are made of it.
    own: Vec<usize>,
}

/// How the variables of a statement are cut in its term.
struct Parts {
    /// The number of parts of each variable. One that does not decide on the worker has as many as there are workers, so
    /// that the rules may deal it instead, or as it has tiles if these are fewer.
    n: Vec<u64>,
    /// The variables that decide on the worker.
    placing: Vec<usize>,
}

impl Parts {
    fn frontier(&self, vars: &[usize]) -> Vec<u64> {
        vars.iter().map(|&var| self.n[var]).collect()
    }

    /// Workers that take part: one for each combination of parts of the placing variables.
    fn sites(&self) -> u64 {
        self.frontier(&self.placing).iter().product()
    }

    /// Parts of a relation with these variables as keys, of so many bytes.
    fn ty(&self, vars: &[usize], bytes: u64, spread: Spread) -> Type {
        let frontier = self.frontier(vars);
        let n: u64 = frontier.iter().product();
        Type::new(&frontier, &[bytes.div_ceil(n.max(1))], spread)
    }
}

/// Where some variables are among others.
fn positions(of: &[usize], among: &[usize]) -> Vec<usize> {
    of.iter().filter_map(|var| among.iter().position(|other| other == var)).collect()
}

impl Compiler<'_> {
    fn workflow(&self) -> &Workflow {
        &self.placed.workflow
    }

    fn sites(&self) -> u64 {
        self.tasks.iter().map(|&task| self.placed.sites.of(task)).collect::<BTreeSet<u32>>().len() as u64
    }

    /// The term of an index statement whose tasks are dealt as a grid.
    fn dealt_as_grid(&self) -> Option<StatementTerm> {
        let workflow = self.workflow();
        let mut kernels = self.tasks.iter().map(|&task| workflow.kernel(task)).filter_map(|kernel| {
            let Kernel::Statement(statement) = &workflow.kernels[kernel].kernel else { return None };
            Some((kernel, statement))
        });
        let (kernel, statement) = kernels.next()?;
        if kernels.any(|(other, _)| other != kernel) {
            return None;
        }
        let tasks: Vec<TaskId> = self.tasks.iter().copied().filter(|&task| workflow.kernel(task) == kernel).collect();
        let parts = self.parts(statement, &tasks)?;
        let sites = parts.sites();
        let operands: Vec<Keyed> =
            (0..statement.reads.len()).filter_map(|slot| self.operand(statement, slot, &tasks, &parts)).collect();
        let owned: Vec<Keyed> = operands.iter().map(Keyed::owned).collect();
        let out_vars = used(statement.out_idx.iter().flat_map(|idx| vars_of(idx, parts.n.len())));
        let out_bytes = self.output_bytes(&tasks);
        let kernel = element_kernel(parts.ty(&out_vars, out_bytes, Spread::All).bound);
        let joined = operands.into_iter().reduce(|left, right| left.join(right, &kernel))?;
        let (n_reads, body) = (statement.reads.len(), kernel.clone());
        let Keyed { mut term, vars, .. } = joined;
        let mut is_known = statement.reads.iter().all(|read| reads_all(read, &statement.vars));
        if let Some(accum) = &statement.accum {
            let group = positions(&out_vars, &vars);
            // A sum over a placing variable that no operand has would be counted once per worker.
            let is_counted_once = term.types().is_ok_and(|ty| ty.spread != Spread::All) || parts.placing.is_empty();
            is_known &= group.len() == out_vars.len() && is_counted_once;
            // The body of a statement with one operand is done by the aggregate; that of several by their join.
            let before = if n_reads == 1 { kernel } else { KernelFunction::identity() };
            let sum = KernelFunction::same_bound(&accum_name(accum), |values| values[0]);
            let all: Vec<usize> = (0..group.len()).collect();
            let (after, input) = (KernelFunction::identity(), Box::new(term));
            term = RelationTerm::Aggregate { group, before, kernel: sum.clone(), after, input };
            if self.sends_own() {
                term = term.shuffle(&all).aggregate(&all, sum);
            }
        } else {
            if n_reads == 1 {
                term = term.map(KeyMap::identity(), kernel);
            }
            is_known &= !self.sends_own();
        }
        let is_whole = term.types().is_ok_and(|ty| ty.spread != Spread::Partial);
        let bytes = if is_known && is_whole { wire(&term, sites).ok() } else { None };
        let best = bytes.and_then(|_| best(owned, &out_vars, &term, &body, sites));
        Some(StatementTerm { term, sites, bytes, best })
    }

    /// The parts of each variable, if every point of the grid has one worker and every worker one combination of parts.
    fn parts(&self, statement: &StatementKernel, tasks: &[TaskId]) -> Option<Parts> {
        let grid = &statement.vars;
        let mut workers: Vec<Option<u32>> = vec![None; usize::try_from(grid.n_blocks()).ok()?];
        for &task in tasks {
            let worker = self.placed.sites.of(task);
            let known = workers.get_mut(self.workflow().point(task) as usize)?;
            if known.replace(worker).is_some_and(|other| other != worker) {
                return None;
            }
        }
        let workers = workers.into_iter().collect::<Option<Vec<u32>>>()?;
        let tiles = grid.tiles_per_axis();
        // Per variable and tile of it, the workers of its points in order: tiles with equal lists are one part.
        let mut seen: Vec<Vec<Vec<u32>>> = tiles.iter().map(|&n| vec![Vec::new(); n as usize]).collect();
        for (point, &worker) in (0u64..).zip(&workers) {
            grid.tiles_from_last(point).for_each(|(var, tile)| seen[var][tile as usize].push(worker));
        }
        let n: Vec<u64> =
            seen.into_iter().map(|lists| lists.into_iter().collect::<BTreeSet<_>>().len() as u64).collect();
        let placing: Vec<usize> = (0..tiles.len()).filter(|&var| n[var] > 1).collect();
        let mut parts = Parts { n, placing };
        let sites = parts.sites();
        if sites != workers.iter().collect::<BTreeSet<_>>().len() as u64 {
            return None;
        }
        for var in (0..tiles.len()).filter(|var| !parts.placing.contains(var)) {
            let next = tiles[var].min(sites);
            if parts.n.iter().product::<u64>().saturating_mul(next) <= MOST_KEYS {
                parts.n[var] = next;
            }
        }
        Some(parts)
    }

    /// A read operand, with the broadcast or shuffle that brings it; `None` if it reads nothing.
    fn operand(&self, statement: &StatementKernel, slot: usize, tasks: &[TaskId], parts: &Parts) -> Option<Keyed> {
        let workflow = self.workflow();
        let block = |task: &TaskId| workflow.operands(*task).get(slot).and_then(|operand| operand.expand());
        let first = workflow.set_of(tasks.iter().find_map(block)?.block);
        let comes = |task: &TaskId| block(task).is_some_and(|operand| self.comes(operand.block, operand.region, *task));
        let is_assembled = workflow.sets[first].statement == self.statement;
        let moved = tasks.iter().any(comes) || is_assembled && self.sends(workflow.sets[first].value_name());
        let read = &statement.reads[slot];
        let bytes = read.shape.iter().product::<u64>() * read.dtype.size();
        let mut vars = used(read.idx.iter().flat_map(|idx| vars_of(idx, parts.n.len())));
        let placing = &parts.placing;
        let missing: Vec<usize> = placing.iter().copied().filter(|var| !vars.contains(var)).collect();
        let to_all = !placing.is_empty() && missing.len() == placing.len();
        let name = (self.name)(first);
        if !moved {
            let here = if to_all { Vec::new() } else { missing };
            let copies: u64 = parts.frontier(&here).iter().product();
            vars.extend(here);
            vars.sort_unstable();
            let spread = if to_all { Spread::All } else { Spread::Part(positions(placing, &vars)) };
            let term = RelationTerm::input(&name, parts.ty(&vars, bytes * copies, spread));
            return Some(Keyed { term, own: vars.clone(), vars });
        }
        let mut term = RelationTerm::input(&name, parts.ty(&vars, bytes, Spread::Somewhere));
        let own = vars.clone();
        if to_all {
            return Some(Keyed { term: term.broadcast(), vars, own });
        }
        for var in missing {
            let position = vars.partition_point(|&other| other < var);
            vars.insert(position, var);
            term = term.map(KeyMap::insert(position, parts.n[var]), KernelFunction::identity());
        }
        Some(Keyed { term: term.shuffle(&positions(placing, &vars)), vars, own })
    }

    /// True if a message brings a block to a task, and no earlier statement has asked for it.
    fn comes(&self, block: BlockId, region: u32, task: TaskId) -> bool {
        let (traffic, site) = (&self.placed.traffic, self.placed.sites.of(task));
        let message = traffic.bringing(block, region, site).filter(|_| self.homes[block.index()] != Some(site));
        message.is_some_and(|number| {
            let first = self.placed.order[traffic.transfers()[number].first_read as usize];
            self.workflow().statement(first) == self.statement
        })
    }

    /// The sets that are sent for the statement.
    fn sets_sent(&self) -> impl Iterator<Item = BlockSetId> {
        self.sent
            .range((self.statement, BlockSetId::from_u32(0))..)
            .map_while(|(statement, set)| (*statement == self.statement).then_some(*set))
    }

    /// True if blocks of a value are sent for the statement.
    fn sends(&self, value: &str) -> bool {
        self.sets_sent().any(|set| self.workflow().sets[set].value_name() == value)
    }

    /// True if blocks that the statement computes itself are sent for it: parts of sums, or intermediate results.
    fn sends_own(&self) -> bool {
        let sets = &self.workflow().sets;
        self.sets_sent().any(|set| sets[set].statement == self.statement)
    }

    /// Bytes of all results, or of the states of an accumulator.
    fn output_bytes(&self, tasks: &[TaskId]) -> u64 {
        let workflow = self.workflow();
        let outputs = tasks.first().map_or(&[][..], |&task| workflow.outputs(task));
        let size = |block: &BlockId| workflow.sets[workflow.set_of(*block)].array_bytes();
        outputs.iter().map(size).sum()
    }

    /// The term of any other statement, from the workers that read each block.
    fn by_readers(&self) -> StatementTerm {
        let workflow = self.workflow();
        let (sites, mut operands) = (self.sites(), BTreeMap::<&str, (BlockSetId, bool)>::new());
        let mut readers: HashMap<&str, BTreeSet<(BlockId, u32)>> = HashMap::new();
        let mut accum = None;
        for &task in self.tasks {
            let site = self.placed.sites.of(task);
            if let Kernel::Combine(by) = &workflow.kernels[workflow.kernel(task)].kernel {
                accum = Some(by);
            }
            for operand in workflow.present_operands(task) {
                let id = workflow.set_of(operand.block);
                if workflow.sets[id].statement != self.statement {
                    let name = workflow.sets[id].value_name();
                    operands.entry(name).or_insert((id, false)).1 |= self.comes(operand.block, operand.region, task);
                    readers.entry(name).or_default().insert((operand.block, site));
                }
            }
        }
        let moved = |(name, (set, moved)): (&str, (BlockSetId, bool))| {
            let term = RelationTerm::input(&(self.name)(set), Type::new(&[1], &[1], Spread::Somewhere));
            let pairs = readers.get(name).map_or(0, BTreeSet::len) as u64;
            let blocks = readers.get(name).map_or(0, |read| read.iter().map(|(b, _)| b).collect::<BTreeSet<_>>().len());
            let copies = pairs.div_ceil(blocks.max(1) as u64);
            match moved {
                false => term,
                true if copies == sites && sites > 1 => term.broadcast(),
                true if copies <= 1 => term.shuffle(&[0]),
                true => term.map(KeyMap::insert(1, copies), KernelFunction::identity()).shuffle(&[0, 1]),
            }
        };
        let kernel = element_kernel(vec![1]);
        let n_operands = operands.len();
        let joined = operands.into_iter().map(moved).reduce(|left, right| left.join(right, &[(0, 0)], kernel.clone()));
        let mut term = joined.unwrap_or_else(|| RelationTerm::input("nothing", Type::new(&[1], &[1], Spread::All)));
        let by = accum.map(|accum| KernelFunction::same_bound(&accum_name(accum), |values| values[0]));
        term = match &by {
            Some(by) => term.aggregate(&[0], by.clone()),
            None if n_operands < 2 => term.map(KeyMap::identity(), kernel.clone()),
            None => term,
        };
        if self.sends_own() {
            term = match by {
                Some(by) => term.shuffle(&[0]).aggregate(&[0], by),
                None => term.shuffle(&[0]).map(KeyMap::identity(), kernel),
            };
        }
        StatementTerm { term, sites, bytes: None, best: None }
    }
}

/// The cheapest term that the rules reach from the textbook one: join with a broadcast of the left relation, shuffle by
/// what stays, aggregate. Terms that leave workers without a pair to join do not count.
fn best(
    owned: Vec<Keyed>,
    out_vars: &[usize],
    term: &RelationTerm,
    body: &KernelFunction,
    sites: u64,
) -> Option<BestTerm> {
    let joined = owned.into_iter().reduce(|left, right| {
        let everywhere = Keyed { term: left.term.broadcast(), ..left };
        everywhere.join(right, body)
    })?;
    let compiled = match term {
        RelationTerm::Aggregate { kernel, before, .. } => {
            let (group, after) = (positions(out_vars, &joined.vars), KernelFunction::identity());
            let (before, kernel, input) = (first_body(term, before), kernel.clone(), joined.term.shuffle(&group));
            RelationTerm::Aggregate { group, before, kernel, after, input: Box::new(input) }
        }
        _ => joined.term,
    };
    let found = search(&compiled, sites, MOST_TERMS, MOST_TERMS).ok()?;
    let (tried, fired, stopped) = (found.tried, found.fired, found.stop == Stop::Limit);
    let (bytes, term, rules) = found.best.into_iter().find(|(_, term, _)| n_busy(term, sites) >= sites)?;
    Some(BestTerm { term, bytes, rules, tried, fired, stopped })
}

/// What the innermost aggregate applies first: in two phases, the second only combines.
fn first_body(term: &RelationTerm, before: &KernelFunction) -> KernelFunction {
    match term.parts()[..] {
        [RelationTerm::Shuffle(_, input)] => match &**input {
            RelationTerm::Aggregate { before, .. } => before.clone(),
            _ => before.clone(),
        },
        _ => before.clone(),
    }
}

/// The most sites that can have something to do in every join of a term.
fn n_busy(term: &RelationTerm, sites: u64) -> u64 {
    let here = match (term, term.types()) {
        (RelationTerm::Join { .. }, Ok(Type { spread: Spread::Part(by), frontier, .. })) => {
            by.iter().map(|&k| frontier[k]).product()
        }
        (RelationTerm::Join { left, right, .. }, Ok(Type { spread: Spread::Somewhere, .. })) => {
            let spread = |side: &RelationTerm| side.types().ok().filter(|ty| ty.spread == Spread::Somewhere);
            spread(left).or(spread(right)).map_or(sites, |ty| ty.n_keys())
        }
        _ => sites,
    };
    term.parts().into_iter().map(|part| n_busy(part, sites)).fold(here, u64::min)
}

impl Keyed {
    /// The operand before it is moved for the statement.
    fn owned(&self) -> Keyed {
        let mut term = &self.term;
        while let [below] = term.parts()[..] {
            term = below;
        }
        Keyed { term: term.clone(), vars: self.own.clone(), own: self.own.clone() }
    }

    fn join(self, right: Keyed, kernel: &KernelFunction) -> Keyed {
        let pair = |(r, var): (usize, &usize)| self.vars.iter().position(|other| other == var).map(|l| (l, r));
        let on: Vec<(usize, usize)> = right.vars.iter().enumerate().filter_map(pair).collect();
        let rest = right.vars.iter().copied().filter(|var| !self.vars.contains(var));
        let vars: Vec<usize> = self.vars.iter().copied().chain(rest).collect();
        Keyed { term: self.term.join(right.term, &on, kernel.clone()), own: vars.clone(), vars }
    }
}

/// The body of a statement: arrays of this bound, whatever goes in.
fn element_kernel(bound: Vec<u64>) -> KernelFunction {
    KernelFunction::new("body", move |_| bound.clone(), |values| values[0])
}

/// True for an access that reads every element of its tensor once per point of the other variables: no halo, no slice.
fn reads_all(read: &KernelRead, vars: &Grid) -> bool {
    let extents = vars.shape();
    let axes = read.idx.iter().zip(&read.shape);
    let plain = |(idx, n): (&Idx, &u64)| idx.as_var().filter(|var| extents[var.0 as usize] == *n);
    axes.map(plain).collect::<Option<BTreeSet<Var>>>().is_some_and(|vars| vars.len() == read.idx.len())
}

/// Variables in order, each once.
fn used(vars: impl Iterator<Item = usize>) -> Vec<usize> {
    vars.collect::<BTreeSet<usize>>().into_iter().collect()
}

fn vars_of(idx: &Idx, n: usize) -> impl Iterator<Item = usize> + use<'_> {
    (0..n).filter(|&var| idx.uses(Var(var as u32)))
}

/// What an accumulator does, in a word.
fn accum_name(accum: &Accum) -> String {
    let word = match accum.as_simple() {
        Some((BinaryOp::Add, _)) => "sum",
        Some((BinaryOp::Mul, _)) => "product",
        Some((op, _)) => return op.name().to_string(),
        None => "combine",
    };
    word.to_string()
}
