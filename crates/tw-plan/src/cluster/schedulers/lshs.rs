//! NumS's load simulated hierarchical scheduling.
//!
//! The state of the cluster is simulated while tasks are placed one by one: what every worker holds, has received and has sent. Of the workers that hold
//! an operand, a task goes to the one for which the largest memory, the largest receipt and the largest dispatch of any worker add up to least. Results
//! of the program go to their place in the layout.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{BlockId, Operand, TaskId, TaskKind, Workflow};

use super::holders::Holders;
use super::{MOST_OPTIONS, Scheduler, place_loads};
use crate::cluster::held::Before;
use crate::cluster::layout::Layouts;
use crate::cluster::machine::Machine;
use crate::cluster::reductions::{Assignment, meetings};

/// Load simulated hierarchical scheduling. Ties go to the worker with the least load of its own, then to the lowest number.
pub struct Lshs;

impl Scheduler for Lshs {
    fn name(&self) -> &'static str {
        "lshs"
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        let layouts = Layouts::new(workflow, machine);
        let mut assignment = Assignment::together(workflow);
        place_loads(workflow, &layouts, before, &mut assignment);
        let mut state = State::new(workflow, machine);
        for output in &workflow.outputs {
            let set = &workflow.sets[output.set];
            for k in 0..set.n_blocks() {
                let block = workflow.block(output.set, k);
                state.wanted[block.index()] = layouts.worker(block);
            }
        }
        let mut left = contributions(workflow);
        for task in workflow.tasks() {
            if workflow.kind(task) == TaskKind::Load {
                state.make(task, assignment.tasks[task.index()]);
                continue;
            }
            let last = workflow.outputs(task).first().map(|block| {
                let left = &mut left[block.index()];
                *left -= 1;
                *left == 0
            });
            let site = state.choose(task, &layouts, last.unwrap_or(true));
            state.run(task, site);
            assignment.tasks[task.index()] = site;
            if last == Some(true) {
                for &block in workflow.outputs(task) {
                    assignment.homes[block.index()] = state.finish(block);
                }
            }
        }
        Ok(assignment)
    }
}

/// How many tasks contribute to each block.
fn contributions(workflow: &Workflow) -> Vec<u32> {
    let mut n = vec![0; workflow.n_blocks()];
    for task in workflow.tasks() {
        workflow.outputs(task).iter().for_each(|block| n[block.index()] += 1);
    }
    n
}

/// Nowhere in particular.
const ANYWHERE: u32 = u32::MAX;

/// Loads of one kind on all workers, with the largest. They only grow.
struct Loads {
    each: Vec<f64>,
    largest: f64,
}

impl Loads {
    fn new(n: usize) -> Loads {
        Loads { each: vec![0.0; n], largest: 0.0 }
    }

    fn add(&mut self, worker: u32, load: f64) {
        let each = &mut self.each[worker as usize];
        *each += load;
        self.largest = self.largest.max(*each);
    }

    /// The largest if a worker had more.
    fn largest_with(&self, worker: u32, more: f64) -> f64 {
        self.largest.max(self.each[worker as usize] + more)
    }
}

struct State<'a> {
    workflow: &'a Workflow,
    machine: &'a Machine,
    memory: Loads,
    received: Loads,
    sent: Loads,
    /// Workers that hold a block, or a chain of contributions to it; whoever made it first.
    holders: Vec<Holders>,
    /// Parts of blocks that were sent: block, region, worker.
    parts: HashSet<(u32, u32, u32)>,
    bytes: Vec<u64>,
    /// Where results of the program belong.
    wanted: Vec<u32>,
    /// What a byte inside a node costs beside one between nodes.
    inside: f64,
}

impl<'a> State<'a> {
    fn new(workflow: &'a Workflow, machine: &'a Machine) -> State<'a> {
        let n = machine.n_workers();
        let block_bytes = |k: usize| workflow.block_bytes(BlockId::new(k));
        State {
            workflow,
            machine,
            memory: Loads::new(n),
            received: Loads::new(n),
            sent: Loads::new(n),
            holders: vec![Holders::default(); workflow.n_blocks()],
            parts: HashSet::new(),
            bytes: (0..workflow.n_blocks()).map(block_bytes).collect(),
            wanted: vec![ANYWHERE; workflow.n_blocks()],
            inside: (machine.across.bandwidth / machine.inside.bandwidth).min(1.0),
        }
    }

    /// The best worker for a task. The only task of a result runs where the result belongs.
    fn choose(&self, task: TaskId, layouts: &Layouts<'_>, last: bool) -> u32 {
        let out = self.workflow.outputs(task).first();
        if let Some(&block) = out
            && self.workflow.kind(task) != TaskKind::Fold
            && last
            && self.wanted[block.index()] != ANYWHERE
        {
            return self.wanted[block.index()];
        }
        let holders = self.operands(task).map(|operand| self.holders[operand.block.index()].list());
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
            (None, Some(&block)) => layouts.worker(block),
            (None, None) => 0,
        }
    }

    /// Of very many workers those that made most of what a task reads.
    fn with_most(&self, task: TaskId, mut options: Vec<u32>) -> Vec<u32> {
        let mut there: HashMap<u32, u64> = HashMap::new();
        for operand in self.operands(task) {
            if let Some(&first) = self.holders[operand.block.index()].list().first() {
                *there.entry(first).or_default() += self.workflow.operand_bytes(operand);
            }
        }
        options.sort_by_key(|worker| (Reverse(there.get(worker).copied().unwrap_or(0)), *worker));
        options.truncate(MOST_OPTIONS);
        options
    }

    fn operands(&self, task: TaskId) -> impl Iterator<Item = &'a Operand> {
        self.workflow.present_operands(task)
    }

    /// Largest memory, receipt and dispatch of any worker if a task ran on this one; and, for the many options that change none of these, what the
    /// worker itself would hold and have received.
    fn objective(&self, task: TaskId, worker: u32) -> (f64, f64) {
        let (mut memory, mut received) = (0.0, 0.0);
        // What comes from one worker adds up.
        let mut sent: Vec<(u32, f64)> = Vec::new();
        for operand in self.operands(task).filter(|operand| !self.is_there(operand, worker)) {
            let (from, load) = self.message(operand, worker);
            memory += self.workflow.operand_bytes(operand) as f64;
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
        let dispatch = sent
            .iter()
            .fold(self.sent.largest, |largest, &(from, load)| largest.max(self.sent.largest_with(from, load)));
        let largest =
            self.memory.largest_with(worker, memory) + self.received.largest_with(worker, received) + dispatch;
        (largest, self.memory.each[worker as usize] + memory + self.received.each[worker as usize] + received)
    }

    /// Bytes that a task makes. Every contribution to a sum counts, though a chain adds them up in one place: as in the paper this load is what spreads
    /// products over workers that hold their operands already.
    fn made_bytes(&self, task: TaskId) -> u64 {
        self.workflow.outputs(task).iter().map(|block| self.bytes[block.index()]).sum()
    }

    fn is_there(&self, operand: &Operand, worker: u32) -> bool {
        self.holders[operand.block.index()].contains(worker)
            || self.parts.contains(&(operand.block.as_u32(), operand.region, worker))
    }

    /// Who sends an operand, someone on the same node if possible, and the load of that.
    fn message(&self, operand: &Operand, to: u32) -> (u32, f64) {
        let holders = &self.holders[operand.block.index()];
        let near = holders.first_on_node(self.machine.node_of(to), self.machine);
        let from = near.or(holders.list().first().copied()).unwrap_or(to);
        let factor = if near.is_some() { self.inside } else { 1.0 };
        (from, factor * self.workflow.operand_bytes(operand) as f64)
    }

    /// Simulates a task on a worker.
    fn run(&mut self, task: TaskId, worker: u32) {
        let workflow = self.workflow;
        for operand in workflow.present_operands(task) {
            if self.is_there(operand, worker) {
                continue;
            }
            let (from, load) = self.message(operand, worker);
            self.sent.add(from, load);
            self.received.add(worker, load);
            self.memory.add(worker, workflow.operand_bytes(operand) as f64);
            match operand.region {
                0 => self.holders[operand.block.index()].add(worker, self.machine),
                region => {
                    self.parts.insert((operand.block.as_u32(), region, worker));
                }
            }
        }
        self.make(task, worker);
    }

    fn make(&mut self, task: TaskId, worker: u32) {
        self.memory.add(worker, self.made_bytes(task) as f64);
        for &block in self.workflow.outputs(task) {
            let holders = &mut self.holders[block.index()];
            if !holders.contains(worker) {
                holders.add(worker, self.machine);
            }
        }
    }

    /// Ends a block to which everything has been contributed: its chains are combined where it belongs, or else where that costs least.
    fn finish(&mut self, block: BlockId) -> u32 {
        let chains = std::mem::take(&mut self.holders[block.index()]);
        let bytes = self.bytes[block.index()] as f64;
        let home = match (self.wanted[block.index()], chains.list()) {
            (ANYWHERE, &[only]) => only,
            (ANYWHERE, several) => {
                let load =
                    |worker: u32| self.received.largest_with(worker, bytes) + self.memory.largest_with(worker, bytes);
                let best = several.iter().copied().min_by(|&a, &b| load(a).total_cmp(&load(b)).then(a.cmp(&b)));
                best.unwrap_or(0)
            }
            (home, _) => home,
        };
        // Every chain but that at home is sent once, as the trees of the expanded reduction send it.
        let mut workers = chains.list().to_vec();
        if !chains.contains(home) {
            workers.push(home);
        }
        workers.sort_unstable();
        for (to, from) in meetings(home, &workers, self.machine) {
            let load = bytes * if self.machine.node_of(to) == self.machine.node_of(from) { self.inside } else { 1.0 };
            self.sent.add(from, load);
            self.received.add(to, load);
        }
        if !chains.contains(home) {
            self.memory.add(home, bytes);
        }
        self.holders[block.index()] = Holders::only(home);
        home
    }
}
