//! NumS's load-simulated hierarchical scheduling (LSHS).
//!
//! The scheduler places tasks one by one and simulates the cluster meanwhile: the bytes that each worker holds, has received and has sent. Among the workers that hold
//! an operand, a task goes to the one that minimises the sum of the largest memory, the largest receipt and the largest dispatch of any worker. Results of the program
//! go to their worker in the default layout.
//!
//! Greedy placement of single contributions does not see reuse: a block that is sent for one contribution also serves other contributions on the same worker, and so does
//! a partial sum. Contributions that are placed one by one therefore end up partly with their operands and partly with their sums, and both are sent. So this scheduler also
//! simulates all contributions of a statement under a few uniform rules (`Rule`), and keeps the rule with the least load.

use std::cmp::Reverse;
use std::collections::HashMap;

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{BlockId, BlockSizes, Operand, TaskId, TaskKind, Workflow};

use super::holders::Holders;
use super::{MOST_OPTIONS, Scheduler, place_loads};
use crate::homes::Before;
use crate::layout::Layouts;
use crate::machine::Machine;
use crate::reductions::{Assignment, meetings};

/// Load-simulated hierarchical scheduling. Ties go to the worker with the least load, then to the lowest number.
pub struct Lshs;

impl Scheduler for Lshs {
    fn name(&self) -> &'static str {
        "lshs"
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        let layouts = Layouts::new(workflow, machine);
        let mut assignment = Assignment::together(workflow);
        place_loads(workflow, &layouts, before, &mut assignment);
        let mut state = State::new(workflow, machine, layouts);
        for output in &workflow.outputs {
            let set = &workflow.sets[output.set];
            for k in 0..set.n_blocks() {
                let block = workflow.block(output.set, k);
                state.wanted[block.index()] = state.layouts.worker(block);
            }
        }
        let mut placing = Placing { workflow, state, assignment, left: contributions(workflow) };
        let tasks: Vec<TaskId> = workflow.tasks().collect();
        let is_sum = |task: TaskId| workflow.kind(task) == TaskKind::Fold;
        let alike = |a: TaskId, b: TaskId| is_sum(a) == is_sum(b) && workflow.statement(a) == workflow.statement(b);
        for statement in tasks.chunk_by(|&a, &b| alike(a, b)) {
            match is_sum(statement[0]) && statement.len() > 1 && machine.n_workers() > 1 {
                true => placing.place_by_best_rule(statement),
                false => placing.place(statement, Rule::OneByOne),
            }
        }
        Ok(placing.assignment)
    }
}

/// A rule for the workers of contributions to a reduction.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Each contribution on the worker where the load grows least, as in the paper.
    OneByOne,
    /// On the home of the sum. A matrix product is then SUMMA: no partial sum is sent.
    AtSum,
    /// On the worker that computed the operand at this position, which then is not sent.
    AtOperand(usize),
}

/// How many operands a rule may follow.
const MOST_FOLLOWED: usize = 3;

/// After this many tasks, check whether a rule can still win.
const BETWEEN_LOOKS: usize = 64;

/// A rule must beat greedy placement by more than rounding.
const CLEARLY: f64 = 1.0 - 1e-9;

struct Placing<'a> {
    workflow: &'a Workflow,
    state: State<'a>,
    assignment: Assignment,
    /// Contributions to each block that are not placed yet.
    left: Vec<u32>,
}

impl Placing<'_> {
    /// Places the contributions of one statement by the rule with the least load.
    fn place_by_best_rule(&mut self, tasks: &[TaskId]) {
        let n_operands = self.workflow.operands(tasks[0]).len().min(MOST_FOLLOWED);
        let rules = std::iter::once(Rule::AtSum).chain((0..n_operands).map(Rule::AtOperand));
        let loads = self.state.begin();
        let mut best = (f64::INFINITY, Rule::OneByOne);
        for rule in rules {
            if let Some(load) = self.place_below(best.0, tasks, rule) {
                best = (load, rule);
            }
            self.undo(&loads);
        }
        if self.place_below(best.0 / CLEARLY, tasks, Rule::OneByOne).is_none() {
            self.undo(&loads);
            self.place(tasks, best.1);
        }
        self.state.changes = None;
    }

    /// Places tasks by a rule while the load can stay below a limit. Loads only grow, so a losing rule ends early.
    fn place_below(&mut self, limit: f64, tasks: &[TaskId], rule: Rule) -> Option<f64> {
        let mut coming = Coming::default();
        for &task in tasks {
            coming.made += self.state.made_bytes(task) as f64;
            coming.work += self.state.work[task.index()];
        }
        for several in tasks.chunks(BETWEEN_LOOKS) {
            self.place(several, rule);
            for &task in several {
                coming.made -= self.state.made_bytes(task) as f64;
                coming.work -= self.state.work[task.index()];
            }
            if self.state.loads.at_least(&coming) >= limit {
                return None;
            }
        }
        Some(self.state.loads.at_least(&Coming::default()))
    }

    fn undo(&mut self, loads: &Cluster) {
        for block in self.state.undo(loads) {
            self.left[block.index()] += 1;
        }
    }

    fn place(&mut self, tasks: &[TaskId], rule: Rule) {
        let workflow = self.workflow;
        for &task in tasks {
            if workflow.kind(task) == TaskKind::Load {
                self.state.make(task, self.assignment.tasks[task.index()]);
                continue;
            }
            let last = workflow.outputs(task).first().map(|block| {
                self.state.note(|| Change::Contributed(*block));
                let left = &mut self.left[block.index()];
                *left -= 1;
                *left == 0
            });
            let followed = self.state.follow(task, rule);
            let site = followed.unwrap_or_else(|| self.state.choose(task, last.unwrap_or(true)));
            self.state.run(task, site);
            self.assignment.tasks[task.index()] = site;
            if last == Some(true) {
                for &block in workflow.outputs(task) {
                    self.assignment.homes[block.index()] = self.state.finish(block);
                }
            }
        }
    }
}

/// The number of contributions to each block.
fn contributions(workflow: &Workflow) -> Vec<u32> {
    let mut n = vec![0; workflow.n_blocks()];
    for task in workflow.tasks() {
        workflow.outputs(task).iter().for_each(|block| n[block.index()] += 1);
    }
    n
}

/// No preferred worker.
const ANYWHERE: u32 = u32::MAX;

/// Loads of one kind on all workers, with the largest. They only grow.
#[derive(Clone)]
struct Loads {
    each: Vec<f64>,
    largest: f64,
    total: f64,
}

impl Loads {
    fn new(n: usize) -> Loads {
        Loads { each: vec![0.0; n], largest: 0.0, total: 0.0 }
    }

    fn add(&mut self, worker: u32, load: f64) {
        let each = &mut self.each[worker as usize];
        *each += load;
        self.total += load;
        self.largest = self.largest.max(*each);
    }

    /// A lower bound of the largest load once more bytes are added to any worker.
    fn at_least(&self, more: f64) -> f64 {
        self.largest.max((self.total + more) / self.each.len() as f64)
    }

    /// The largest load if a worker had more.
    fn largest_with(&self, worker: u32, more: f64) -> f64 {
        self.largest.max(self.each[worker as usize] + more)
    }
}

/// All loads of the cluster.
#[derive(Clone)]
struct Cluster {
    memory: Loads,
    received: Loads,
    sent: Loads,
    /// Bytes between nodes, per node: workers of a node share its link.
    into_node: Loads,
    out_of_node: Loads,
    /// Work of each worker, in bytes that it could receive meanwhile.
    work: Loads,
}

impl Cluster {
    fn new(machine: &Machine) -> Cluster {
        let (workers, nodes) = (Loads::new(machine.n_workers()), Loads::new(machine.nodes as usize));
        Cluster {
            memory: workers.clone(),
            received: workers.clone(),
            sent: workers.clone(),
            into_node: nodes.clone(),
            out_of_node: nodes,
            work: workers,
        }
    }

    fn send(&mut self, from: u32, to: u32, load: f64, machine: &Machine) {
        self.sent.add(from, load);
        self.received.add(to, load);
        let (from, to) = (machine.node_of(from), machine.node_of(to));
        if from != to {
            self.out_of_node.add(from, load);
            self.into_node.add(to, load);
        }
    }

    /// The sum of the largest loads, by which rules are compared, or a lower bound of it once the given work is placed. In the paper memory also stands for work,
    /// because blocks have one size. Rules may use different numbers of workers for the same blocks, so work is a load of its own here.
    fn at_least(&self, more: &Coming) -> f64 {
        let network = self.received.largest + self.sent.largest + self.into_node.largest + self.out_of_node.largest;
        self.memory.at_least(more.made) + self.work.at_least(more.work) + network
    }
}

/// Bytes and work of tasks that are not placed yet.
#[derive(Clone, Copy, Default)]
struct Coming {
    made: f64,
    work: f64,
}

/// A simulated change, for undo.
enum Change {
    /// A contribution to a block was placed.
    Contributed(BlockId),
    /// Another worker holds a block.
    Holder(BlockId),
    /// Another worker holds a part of a block.
    Part(u32, u32),
    /// A sum was completed; the workers that had partial sums before.
    Finished(BlockId, Holders),
}

struct State<'a> {
    workflow: &'a Workflow,
    sizes: BlockSizes<'a>,
    machine: &'a Machine,
    layouts: Layouts<'a>,
    loads: Cluster,
    /// Work of each task, in bytes that its worker could receive meanwhile.
    work: Vec<f64>,
    /// Holders of each block, or of a chain of contributions to it; the worker that computed it first.
    holders: Vec<Holders>,
    /// Workers that received a region of a block, by block and region.
    parts: HashMap<(u32, u32), Holders>,
    /// Changes since the last commit, for undo.
    changes: Option<Vec<Change>>,
    bytes: Vec<u64>,
    /// The default layouts, for results of the program.
    wanted: Vec<u32>,
    /// Cost of a byte inside a node relative to a byte between nodes.
    inside: f64,
}

impl<'a> State<'a> {
    fn new(workflow: &'a Workflow, machine: &'a Machine, layouts: Layouts<'a>) -> State<'a> {
        let work = machine.task_seconds(workflow).into_iter().map(|seconds| seconds * machine.farthest().bandwidth);
        let sizes = BlockSizes::of(workflow);
        let bytes = (0..workflow.n_blocks()).map(|k| sizes.block(BlockId::new(k)).estimate()).collect();
        State {
            workflow,
            sizes,
            machine,
            layouts,
            loads: Cluster::new(machine),
            work: work.collect(),
            holders: vec![Holders::default(); workflow.n_blocks()],
            parts: HashMap::new(),
            changes: None,
            bytes,
            wanted: vec![ANYWHERE; workflow.n_blocks()],
            inside: (machine.across.bandwidth / machine.inside.bandwidth).min(1.0),
        }
    }

    /// Loads that an undo restores.
    fn begin(&mut self) -> Cluster {
        self.changes = Some(Vec::new());
        self.loads.clone()
    }

    /// Undoes all changes, and reports each block with an undone contribution, once per contribution.
    fn undo(&mut self, loads: &Cluster) -> Vec<BlockId> {
        self.loads.clone_from(loads);
        let mut contributed = Vec::new();
        for change in self.changes.iter_mut().flat_map(|changes| changes.drain(..).rev()) {
            match change {
                Change::Contributed(block) => contributed.push(block),
                Change::Holder(block) => self.holders[block.index()].remove_last(self.machine),
                Change::Part(block, region) => {
                    if let Some(holders) = self.parts.get_mut(&(block, region)) {
                        holders.remove_last(self.machine);
                    }
                }
                Change::Finished(block, holders) => self.holders[block.index()] = holders,
            }
        }
        contributed
    }

    /// The worker of a task under a rule, if the rule determines one.
    fn follow(&self, task: TaskId, rule: Rule) -> Option<u32> {
        match rule {
            Rule::OneByOne => None,
            Rule::AtSum => self.workflow.outputs(task).first().map(|&block| match self.wanted[block.index()] {
                ANYWHERE => self.layouts.worker(block),
                wanted => wanted,
            }),
            Rule::AtOperand(position) => {
                let block = self.workflow.operands(task).get(position)?.expand()?.block;
                self.holders.get(block.index())?.list().first().copied()
            }
        }
    }

    /// The best worker of a task. The only task of a result runs on the owner of the result.
    fn choose(&self, task: TaskId, last: bool) -> u32 {
        let out = self.workflow.outputs(task).first();
        if let Some(&block) = out
            && self.workflow.kind(task) != TaskKind::Fold
            && last
            && self.wanted[block.index()] != ANYWHERE
        {
            return self.wanted[block.index()];
        }
        let holders = self.operands(task).flat_map(|operand| {
            let part = self.part(operand).map_or(&[][..], Holders::list);
            [self.holders[operand.block.index()].list(), part]
        });
        let mut options: Vec<u32> = holders.flat_map(|holders| holders.iter().copied().take(MOST_OPTIONS)).collect();
        options.sort_unstable();
        options.dedup();
        if options.len() > MOST_OPTIONS {
            options = self.with_most(task, options);
        }
        let cheapest = options.iter().map(|&worker| (self.objective(task, worker), worker));
        let cheapest = cheapest
            .min_by(|((a, mine), v), ((b, theirs), w)| a.total_cmp(b).then(mine.total_cmp(theirs)).then(v.cmp(w)));
        match (cheapest, out) {
            (Some((_, worker)), _) => worker,
            (None, Some(&block)) => self.layouts.worker(block),
            (None, None) => 0,
        }
    }

    /// Of very many workers, those that computed most of the bytes that a task reads.
    fn with_most(&self, task: TaskId, mut options: Vec<u32>) -> Vec<u32> {
        let mut there: HashMap<u32, u64> = HashMap::new();
        for operand in self.operands(task) {
            if let Some(&first) = self.holders[operand.block.index()].list().first() {
                *there.entry(first).or_default() += self.sizes.operand(operand).estimate();
            }
        }
        options.sort_by_key(|worker| (Reverse(there.get(worker).copied().unwrap_or(0)), *worker));
        options.truncate(MOST_OPTIONS);
        options
    }

    fn operands(&self, task: TaskId) -> impl Iterator<Item = Operand> {
        self.workflow.present_operands(task)
    }

    /// The largest memory, receipt and dispatch of any worker if a task ran on this one. Many options change none of these; to rank them, also the bytes that this worker
    /// would hold and have received.
    fn objective(&self, task: TaskId, worker: u32) -> (f64, f64) {
        let (mut memory, mut received) = (0.0, 0.0);
        // Bytes from one sender add up.
        let mut sent: Vec<(u32, f64)> = Vec::new();
        for operand in self.operands(task).filter(|operand| !self.is_there(*operand, worker)) {
            let (from, load) = self.message(operand, worker);
            memory += self.sizes.operand(operand).estimate() as f64;
            received += load;
            sent.push((from, load));
        }
        sent.sort_by_key(|(from, _)| *from);
        sent.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0.0 };
            same
        });
        memory += self.made_bytes(task) as f64;
        let dispatch = sent.iter().fold(self.loads.sent.largest, |largest, &(from, load)| {
            largest.max(self.loads.sent.largest_with(from, load))
        });
        let largest = self.loads.memory.largest_with(worker, memory)
            + self.loads.received.largest_with(worker, received)
            + dispatch;
        (
            largest,
            self.loads.memory.each[worker as usize] + memory + self.loads.received.each[worker as usize] + received,
        )
    }

    /// Bytes that a task produces. Each contribution to a sum counts, although a chain accumulates in place. As in the paper, this load spreads products over
    /// workers that already hold their operands.
    fn made_bytes(&self, task: TaskId) -> u64 {
        self.workflow.outputs(task).iter().map(|block| self.bytes[block.index()]).sum()
    }

    fn is_there(&self, operand: Operand, worker: u32) -> bool {
        self.holders[operand.block.index()].contains(worker)
            || self.part(operand).is_some_and(|holders| holders.contains(worker))
    }

    /// Workers that received the region of a block that is read, if it is not the whole block.
    fn part(&self, operand: Operand) -> Option<&Holders> {
        if operand.region == 0 { None } else { self.parts.get(&(operand.block.as_u32(), operand.region)) }
    }

    /// The sender of an operand, on the same node if possible, and the load of the transfer.
    fn message(&self, operand: Operand, to: u32) -> (u32, f64) {
        let holders = &self.holders[operand.block.index()];
        let node = self.machine.node_of(to);
        let near = holders.first_on_node(node, self.machine);
        let near = near.or_else(|| self.part(operand)?.first_on_node(node, self.machine));
        let from = near.or(holders.list().first().copied()).unwrap_or(to);
        let factor = if near.is_some() { self.inside } else { 1.0 };
        (from, factor * self.sizes.operand(operand).estimate() as f64)
    }

    /// Simulates a task on a worker.
    fn run(&mut self, task: TaskId, worker: u32) {
        let workflow = self.workflow;
        for operand in workflow.present_operands(task) {
            if self.is_there(operand, worker) {
                continue;
            }
            let (from, load) = self.message(operand, worker);
            self.loads.send(from, worker, load, self.machine);
            self.loads.memory.add(worker, self.sizes.operand(operand).estimate() as f64);
            let (block, region) = (operand.block, operand.region);
            if region == 0 {
                self.hold(block, worker);
            } else {
                self.parts.entry((block.as_u32(), region)).or_default().add(worker, self.machine);
                self.note(|| Change::Part(block.as_u32(), region));
            }
        }
        self.loads.work.add(worker, self.work[task.index()]);
        self.make(task, worker);
    }

    fn make(&mut self, task: TaskId, worker: u32) {
        self.loads.memory.add(worker, self.made_bytes(task) as f64);
        for &block in self.workflow.outputs(task) {
            if !self.holders[block.index()].contains(worker) {
                self.hold(block, worker);
            }
        }
    }

    fn hold(&mut self, block: BlockId, worker: u32) {
        self.holders[block.index()].add(worker, self.machine);
        self.note(|| Change::Holder(block));
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if let Some(changes) = &mut self.changes {
            changes.push(change());
        }
    }

    /// Completes a block after its last contribution: its chains are combined on its home, or else where that costs least.
    fn finish(&mut self, block: BlockId) -> u32 {
        let chains = std::mem::take(&mut self.holders[block.index()]);
        let bytes = self.bytes[block.index()] as f64;
        let home = match (self.wanted[block.index()], chains.list()) {
            (ANYWHERE, &[only]) => only,
            (ANYWHERE, several) => {
                let load = |worker: u32| {
                    self.loads.received.largest_with(worker, bytes) + self.loads.memory.largest_with(worker, bytes)
                };
                let best = several.iter().copied().min_by(|&a, &b| load(a).total_cmp(&load(b)).then(a.cmp(&b)));
                best.unwrap_or(0)
            }
            (home, _) => home,
        };
        // Each chain except the one at home is sent once, as in the expanded reduction tree.
        let mut workers = chains.list().to_vec();
        if !chains.contains(home) {
            workers.push(home);
        }
        workers.sort_unstable();
        for (to, from) in meetings(home, &workers, self.machine) {
            let load = bytes * if self.machine.node_of(to) == self.machine.node_of(from) { self.inside } else { 1.0 };
            self.loads.send(from, to, load, self.machine);
        }
        if !chains.contains(home) {
            self.loads.memory.add(home, bytes);
        }
        self.holders[block.index()] = Holders::only(home);
        self.note(|| Change::Finished(block, chains));
        home
    }
}
