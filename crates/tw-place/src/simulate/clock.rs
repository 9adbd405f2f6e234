//! Simulated time, event by event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::workflow::{TaskId, Workflow};

use super::{Simulation, TimeInterval};
use crate::machine::Machine;
use crate::sites::Sites;
use crate::traffic::Traffic;

/// Events; simultaneous events happen in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker finishes its task.
    Ended(u32),
    /// A message has arrived.
    Arrived(u32),
    /// The data of a message is ready to be sent.
    Ready(u32),
}

/// No message.
const NONE: u32 = u32::MAX;

/// The state of a simulated run.
pub(super) struct Clock<'a> {
    workflow: &'a Workflow,
    sites: &'a Sites,
    machine: &'a Machine,
    traffic: &'a Traffic,
    /// Seconds of each task.
    seconds: &'a [f64],
    /// The tasks of each worker in order, worker by worker, and the range of its remaining tasks.
    tasks: Vec<TaskId>,
    left: Vec<(usize, usize)>,
    /// Messages for which the next task of each worker waits.
    waits: Vec<u32>,
    /// The times at which each worker can send and receive the next message.
    sends: Vec<f64>,
    receives: Vec<f64>,
    /// The last writer of each block; a message sends its result.
    finisher: Vec<Option<TaskId>>,
    has_arrived: Vec<bool>,
    is_awaited: Vec<bool>,
    /// Messages that forward the data of another message, as a linked list: the first, and the next after each.
    first_after: Vec<u32>,
    next_after: Vec<u32>,
    /// Non-negative seconds as bits, which sort like the numbers.
    events: BinaryHeap<Reverse<(u64, Event)>>,
}

impl<'a> Clock<'a> {
    pub(super) fn new(
        workflow: &'a Workflow,
        order: &[TaskId],
        sites: &'a Sites,
        machine: &'a Machine,
        traffic: &'a Traffic,
        seconds: &'a [f64],
    ) -> Clock<'a> {
        let n_workers = machine.n_workers();
        let mut left = vec![(0, 0); n_workers];
        order.iter().for_each(|&task| left[sites.of(task) as usize].1 += 1);
        let mut begin = 0;
        for (start, end) in &mut left {
            (*start, *end, begin) = (begin, begin, begin + *end);
        }
        let mut tasks = order.to_vec();
        let mut finisher = vec![None; workflow.n_blocks()];
        for &task in order {
            let (_, end) = &mut left[sites.of(task) as usize];
            tasks[*end] = task;
            *end += 1;
            workflow.outputs(task).iter().for_each(|block| finisher[block.index()] = Some(task));
        }
        let n_messages = traffic.transfers().len();
        let (mut first_after, mut next_after) = (vec![NONE; n_messages], vec![NONE; n_messages]);
        for (number, transfer) in traffic.transfers().iter().enumerate().rev() {
            if let Some(before) = transfer.after {
                next_after[number] = std::mem::replace(&mut first_after[before as usize], number as u32);
            }
        }
        Clock {
            workflow,
            sites,
            machine,
            traffic,
            seconds,
            tasks,
            left,
            waits: vec![0; n_workers],
            sends: vec![0.0; n_workers],
            receives: vec![0.0; n_workers],
            finisher,
            has_arrived: vec![false; n_messages],
            is_awaited: vec![false; n_messages],
            first_after,
            next_after,
            events: BinaryHeap::new(),
        }
    }

    pub(super) fn run(mut self, simulation: &mut Simulation) -> Result<()> {
        (0..self.left.len()).for_each(|worker| self.look_at_next(worker, 0.0, simulation));
        while let Some(Reverse((bits, event))) = self.events.pop() {
            let now = f64::from_bits(bits);
            match event {
                Event::Ended(worker) => self.end(worker as usize, now, simulation),
                Event::Ready(number) => self.send(number as usize, now),
                Event::Arrived(number) => self.arrive(number as usize, now, simulation),
            }
        }
        match self.left.iter().position(|(start, end)| start < end) {
            Some(worker) => {
                let task = self.tasks[self.left[worker].0];
                Err(Error::internal(format!("{task} waits forever on worker {worker}")))
            }
            None => Ok(()),
        }
    }

    fn at(&mut self, time: f64, event: Event) {
        self.events.push(Reverse((time.to_bits(), event)));
    }

    /// Starts the next task of a worker, or determines the messages that it waits for.
    fn look_at_next(&mut self, worker: usize, now: f64, simulation: &mut Simulation) {
        let (start, end) = self.left[worker];
        if start == end {
            return;
        }
        let task = self.tasks[start];
        debug_assert_eq!(self.sites.of(task) as usize, worker);
        for operand in self.workflow.present_operands(task) {
            // A block computed on this worker comes from an earlier task.
            let message = self.traffic.bringing(operand.block, operand.region, worker as u32);
            if let Some(number) = message.filter(|&number| !self.has_arrived[number] && !self.is_awaited[number]) {
                self.is_awaited[number] = true;
                self.waits[worker] += 1;
            }
        }
        if self.waits[worker] == 0 {
            self.begin(worker, now, simulation);
        }
    }

    fn begin(&mut self, worker: usize, now: f64, simulation: &mut Simulation) {
        let task = self.tasks[self.left[worker].0];
        let end = now + self.seconds[task.index()];
        simulation.intervals[task.index()] = TimeInterval { start: now, end };
        self.at(end, Event::Ended(worker as u32));
    }

    fn end(&mut self, worker: usize, now: f64, simulation: &mut Simulation) {
        let task = self.tasks[self.left[worker].0];
        self.left[worker].0 += 1;
        simulation.makespan = simulation.makespan.max(now);
        for &block in self.workflow.outputs(task) {
            if self.finisher[block.index()] == Some(task) {
                let from_home = self.traffic.of_block(block).filter(|(_, transfer)| transfer.after.is_none());
                let ready: Vec<u32> = from_home.map(|(number, _)| number as u32).collect();
                ready.into_iter().for_each(|number| self.at(now, Event::Ready(number)));
            }
        }
        self.look_at_next(worker, now, simulation);
    }

    /// Sends a message as soon as both ends are free. Messages that become ready later follow it.
    fn send(&mut self, number: usize, now: f64) {
        let transfer = &self.traffic.transfers()[number];
        let (from, to) = (transfer.from as usize, transfer.to as usize);
        let seconds = self.machine.link(transfer.from, transfer.to).seconds(transfer.bytes);
        let end = now.max(self.sends[from]).max(self.receives[to]) + seconds;
        (self.sends[from], self.receives[to]) = (end, end);
        self.at(end, Event::Arrived(number as u32));
    }

    fn arrive(&mut self, number: usize, now: f64, simulation: &mut Simulation) {
        self.has_arrived[number] = true;
        let mut next = self.first_after[number];
        while next != NONE {
            self.at(now, Event::Ready(next));
            next = self.next_after[next as usize];
        }
        let worker = self.traffic.transfers()[number].to as usize;
        if self.is_awaited[number] {
            self.waits[worker] -= 1;
            if self.waits[worker] == 0 {
                self.begin(worker, now, simulation);
            }
        }
    }
}
