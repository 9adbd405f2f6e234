//! The baseline: a scheduler that knows where blocks are, but neither the layout of a tensor nor later tasks.

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{BlockSizes, TaskId, TaskKind, Workflow};

use super::holders::Holders;
use super::{MOST_OPTIONS, Scheduler};
use crate::homes::Before;
use crate::machine::Machine;
use crate::reductions::Assignment;

/// Dask's default policy. Tasks without operands are dealt to all workers in turn. Any other task goes to the worker that can start it first, among those that hold one
/// of its operands: the worker must finish its earlier tasks and receive the missing operands. Ties go to the worker that holds fewer bytes, then to the lowest number.
/// Contributions to a sum are ordinary tasks.
///
/// Work stealing is omitted: it depends on times that only a run knows.
pub struct RoundRobin;

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "roundrobin"
    }

    fn place(&self, workflow: &Workflow, machine: &Machine, before: &Before) -> Result<Assignment> {
        let mut assignment = Assignment::together(workflow);
        let mut state = State::new(workflow, machine);
        let mut dealt = 0;
        for task in workflow.tasks() {
            let held = before.home(workflow, task).filter(|_| workflow.kind(task) == TaskKind::Load);
            let site = match held.or_else(|| state.first_to_begin(task)) {
                Some(site) => site,
                None => {
                    dealt += 1;
                    ((dealt - 1) % machine.n_workers()) as u32
                }
            };
            state.run(task, site);
            assignment.tasks[task.index()] = site;
            for &block in workflow.outputs(task) {
                assignment.homes[block.index()] = site;
            }
        }
        Ok(assignment)
    }
}

struct State<'a> {
    workflow: &'a Workflow,
    sizes: BlockSizes<'a>,
    machine: &'a Machine,
    /// Seconds of every task, by its number.
    seconds: Vec<f64>,
    /// Seconds of work assigned to each worker.
    busy: Vec<f64>,
    /// Bytes that every worker holds.
    bytes: Vec<u64>,
    holders: Vec<Holders>,
    /// The options of one task; kept because every task needs such a list.
    options: Vec<u32>,
}

impl<'a> State<'a> {
    fn new(workflow: &'a Workflow, machine: &'a Machine) -> State<'a> {
        let n = machine.n_workers();
        State {
            workflow,
            sizes: BlockSizes::of(workflow),
            machine,
            seconds: machine.task_seconds(workflow),
            busy: vec![0.0; n],
            bytes: vec![0; n],
            holders: vec![Holders::default(); workflow.n_blocks()],
            options: Vec::new(),
        }
    }

    /// The worker that can start a task first, if it has operands.
    fn first_to_begin(&mut self, task: TaskId) -> Option<u32> {
        let mut options = std::mem::take(&mut self.options);
        options.clear();
        for operand in self.workflow.present_operands(task) {
            options.extend(self.holders[operand.block.index()].list().iter().take(MOST_OPTIONS));
        }
        options.sort_unstable();
        options.dedup();
        options.truncate(MOST_OPTIONS);
        let start = |&worker: &u32| {
            (self.busy[worker as usize] + self.receiving(task, worker), self.bytes[worker as usize], worker)
        };
        let soonest = options.iter().map(start).min_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        self.options = options;
        soonest.map(|(.., worker)| worker)
    }

    /// Seconds until a worker has received the operands of a task.
    fn receiving(&self, task: TaskId, worker: u32) -> f64 {
        let missing = self
            .workflow
            .present_operands(task)
            .filter(|operand| !self.holders[operand.block.index()].contains(worker))
            .map(|operand| self.sizes.operand(operand).estimate());
        missing.sum::<u64>() as f64 / self.machine.farthest().bandwidth
    }

    fn run(&mut self, task: TaskId, worker: u32) {
        self.busy[worker as usize] += self.receiving(task, worker) + self.seconds[task.index()];
        let whole = self.workflow.present_operands(task).filter(|operand| operand.region == 0);
        let read = whole.map(|operand| operand.block);
        for block in read.chain(self.workflow.outputs(task).iter().copied()) {
            let holders = &mut self.holders[block.index()];
            if !holders.contains(worker) {
                holders.add(worker, self.machine);
                self.bytes[worker as usize] += self.sizes.block(block).estimate();
            }
        }
    }
}
