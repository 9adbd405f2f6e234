//! An order of tasks in which workers wait little for each other.
//!
//! Depth-first order keeps few blocks live, but on several workers it makes all of them wait for the one result that they work on together. Here each worker runs the
//! earliest of its tasks in depth-first order whose operands have arrived, with times from the machine model. The totals and states of a scan come before everything else: all later parts of
//! the fibre wait for them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{BlockSizes, TaskId, Workflow};

use super::machine::Machine;
use super::sites::Sites;
use tw_plan::Makers;

/// Reorders tasks by the time at which they would start. `seconds` are the durations of tasks on the machine.
pub(super) fn as_they_can_begin(
    workflow: &Workflow,
    order: &[TaskId],
    sites: &Sites,
    machine: &Machine,
    seconds: &[f64],
) -> Vec<TaskId> {
    let mut run = Run::new(workflow, order, sites, machine, seconds);
    run.events.extend((0..machine.n_workers() as u32).map(|worker| Reverse((Time::default(), worker))));
    while let Some(Reverse((now, worker))) = run.events.pop() {
        run.wake(worker, now);
    }
    run.started
}

/// Non-negative seconds as bits, which sort like the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Time(u64);

impl Time {
    fn new(seconds: f64) -> Time {
        Time(seconds.max(0.0).to_bits())
    }

    fn seconds(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// One worker.
#[derive(Default)]
struct Worker {
    /// Its tasks, in the given order.
    tasks: Vec<TaskId>,
    free_at: Time,
    /// Positions of tasks that can start now, and of tasks that can start later.
    ready: BinaryHeap<Reverse<u32>>,
    later: BinaryHeap<Reverse<(Time, u32)>>,
}

struct Run<'a> {
    sites: &'a Sites,
    machine: &'a Machine,
    /// Per task: its duration, its position on its worker, the number of operands that it waits for, and the time at which they arrive.
    seconds: &'a [f64],
    place: Vec<u32>,
    missing: Vec<u32>,
    there: Vec<f64>,
    /// The successors of each task, consecutively, and the bytes that go to each.
    first_waiting: Vec<u32>,
    waiting: Vec<(TaskId, u64)>,
    workers: Vec<Worker>,
    events: BinaryHeap<Reverse<(Time, u32)>>,
    started: Vec<TaskId>,
}

impl<'a> Run<'a> {
    fn new(
        workflow: &'a Workflow,
        order: &[TaskId],
        sites: &'a Sites,
        machine: &'a Machine,
        seconds: &'a [f64],
    ) -> Run<'a> {
        let n_tasks = workflow.n_tasks();
        let sizes = BlockSizes::of(workflow);
        let makers = Makers::of(workflow);
        let mut edges: Vec<(TaskId, TaskId, u64)> = Vec::new();
        let mut missing = vec![0u32; n_tasks];
        for &task in order {
            let before = edges.len();
            edges.extend(makers.previous(task).map(|maker| (maker, task, 0)));
            for operand in workflow.present_operands(task) {
                edges.extend(
                    makers.of_block(operand.block).map(|maker| (maker, task, sizes.operand(operand).estimate())),
                );
            }
            missing[task.index()] = (edges.len() - before) as u32;
        }
        // Sorted by who is waited for, by counting.
        let mut first_waiting = vec![0u32; n_tasks + 1];
        edges.iter().for_each(|(maker, ..)| first_waiting[maker.index() + 1] += 1);
        (0..n_tasks).for_each(|task| first_waiting[task + 1] += first_waiting[task]);
        let mut next = first_waiting.clone();
        let mut waiting = vec![(TaskId::new(0), 0); edges.len()];
        for (maker, task, bytes) in edges {
            waiting[next[maker.index()] as usize] = (task, bytes);
            next[maker.index()] += 1;
        }
        let mut run = Run {
            sites,
            machine,
            seconds,
            place: vec![0; n_tasks],
            missing,
            there: vec![0.0; n_tasks],
            first_waiting,
            waiting,
            workers: (0..machine.n_workers()).map(|_| Worker::default()).collect(),
            events: BinaryHeap::new(),
            started: Vec::with_capacity(order.len()),
        };
        let is_state = |task: &TaskId| {
            let kernel = &workflow.kernels[workflow.kernel(*task)].kernel;
            matches!(kernel, Kernel::ScanTotal { .. } | Kernel::ScanCarry(_))
        };
        let (states, others): (Vec<TaskId>, Vec<TaskId>) = order.iter().partition(|task| is_state(task));
        for task in states.into_iter().chain(others) {
            let worker = &mut run.workers[sites.of(task) as usize];
            run.place[task.index()] = worker.tasks.len() as u32;
            worker.tasks.push(task);
            if run.missing[task.index()] == 0 {
                worker.ready.push(Reverse(run.place[task.index()]));
            }
        }
        run
    }

    /// Starts a task on a worker that is free and has one ready.
    fn wake(&mut self, number: u32, now: Time) {
        let worker = &mut self.workers[number as usize];
        if worker.free_at > now {
            return;
        }
        while let Some(&Reverse((when, place))) = worker.later.peek()
            && when <= now
        {
            worker.later.pop();
            worker.ready.push(Reverse(place));
        }
        match worker.ready.pop() {
            Some(Reverse(place)) => {
                let task = worker.tasks[place as usize];
                let end = Time::new(now.seconds() + self.seconds[task.index()]);
                worker.free_at = end;
                self.events.push(Reverse((end, number)));
                self.begin(task, number, end);
            }
            // The task that completes an operand wakes the worker again.
            None => {
                if let Some(&Reverse((when, _))) = worker.later.peek() {
                    self.events.push(Reverse((when, number)));
                }
            }
        }
    }

    fn begin(&mut self, task: TaskId, number: u32, end: Time) {
        self.started.push(task);
        for k in self.first_waiting[task.index()]..self.first_waiting[task.index() + 1] {
            let (reader, bytes) = self.waiting[k as usize];
            let site = self.sites.of(reader);
            let message = if site == number { 0.0 } else { self.machine.link(number, site).seconds(bytes) };
            let there = &mut self.there[reader.index()];
            *there = there.max(end.seconds() + message);
            self.missing[reader.index()] -= 1;
            if self.missing[reader.index()] == 0 {
                let (when, worker) = (Time::new(*there), &mut self.workers[site as usize]);
                worker.later.push(Reverse((when, self.place[reader.index()])));
                self.events.push(Reverse((when.max(worker.free_at), site)));
            }
        }
    }
}
