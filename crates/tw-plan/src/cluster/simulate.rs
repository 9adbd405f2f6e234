//! What a placed workflow would do on a machine: who sends what to whom, what everyone holds, and how long it takes.
//!
//! Tasks are looked at once, in the global order. Bytes and memory are exact for that order. Time is a model: a worker computes its tasks one at a time
//! and in order; a message takes its time after its block is there, and arrives no sooner than its sender could have sent, and its receiver received,
//! everything before it. Messages are thus taken to be sent as early as can be, however late they come in the order. Nothing is random, so equal plans have
//! equal figures everywhere.

use std::collections::BTreeMap;

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{BlockId, TaskId, Workflow};

use super::machine::Machine;
use super::sites::Sites;
use super::traffic::Traffic;
use crate::cost::task_flops;

/// What one worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worker {
    /// Tasks that run here.
    pub tasks: u64,
    /// Scalar operations of those.
    pub flops: u64,
    /// Bytes that come from others.
    pub received_bytes: u64,
    /// Bytes that go to others.
    pub sent_bytes: u64,
    /// Bytes of blocks here at the worst moment, if tasks run one by one in the global order.
    pub peak_bytes: u64,
    /// Seconds in which it computes.
    pub busy: f64,
}

/// When a task runs in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Seconds from the start of the run.
    pub start: f64,
    /// Seconds from the start of the run.
    pub end: f64,
}

/// The figures of a simulated run.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Every worker.
    pub workers: Vec<Worker>,
    /// Bytes from one worker to another, where there are any.
    pub links: BTreeMap<(u32, u32), u64>,
    /// Bytes that cross from node to node.
    pub across_bytes: u64,
    /// Messages.
    pub n_transfers: u64,
    /// When the last task ends.
    pub makespan: f64,
    /// When it would end if everyone could do everything at once.
    pub critical_path: f64,
    /// When each task runs, by its number; tasks that do not run have no length.
    pub intervals: Vec<Interval>,
}

impl Simulation {
    /// Simulates tasks in this order, with the messages they send.
    pub fn run(
        workflow: &Workflow,
        order: &[TaskId],
        sites: &Sites,
        machine: &Machine,
        traffic: &Traffic,
    ) -> Result<Simulation> {
        sites.verify(workflow, machine)?;
        let mut simulation = Simulation {
            workers: vec![Worker::default(); machine.n_workers()],
            links: BTreeMap::new(),
            across_bytes: 0,
            n_transfers: traffic.transfers().len() as u64,
            makespan: 0.0,
            critical_path: 0.0,
            intervals: vec![Interval::default(); workflow.n_tasks()],
        };
        simulation.count(machine, traffic);
        Clock::new(workflow, sites, machine, traffic).run(order, &mut simulation);
        Memory::new(workflow, order, sites, traffic).run(order, &mut simulation);
        Ok(simulation)
    }

    fn count(&mut self, machine: &Machine, traffic: &Traffic) {
        for transfer in traffic.transfers() {
            self.workers[transfer.from as usize].sent_bytes += transfer.bytes;
            self.workers[transfer.to as usize].received_bytes += transfer.bytes;
            *self.links.entry((transfer.from, transfer.to)).or_default() += transfer.bytes;
            if machine.node_of(transfer.from) != machine.node_of(transfer.to) {
                self.across_bytes += transfer.bytes;
            }
        }
    }

    /// Bytes of all messages.
    pub fn wire_bytes(&self) -> u64 {
        self.workers.iter().map(|worker| worker.received_bytes).sum()
    }

    /// Bytes that the busiest worker receives.
    pub fn wire_bytes_max(&self) -> u64 {
        self.workers.iter().map(|worker| worker.received_bytes).max().unwrap_or(0)
    }

    /// Bytes of blocks where there are most.
    pub fn peak_bytes_max(&self) -> u64 {
        self.workers.iter().map(|worker| worker.peak_bytes).max().unwrap_or(0)
    }

    /// Operations of the worker with the most, and its share over an even one: 1 if all have equally many.
    pub fn flops_max(&self) -> (u64, f64) {
        let most = self.workers.iter().map(|worker| worker.flops).max().unwrap_or(0);
        let total: u64 = self.workers.iter().map(|worker| worker.flops).sum();
        (most, if total == 0 { 1.0 } else { most as f64 * self.workers.len() as f64 / total as f64 })
    }
}

/// Time.
struct Clock<'a> {
    workflow: &'a Workflow,
    sites: &'a Sites,
    machine: &'a Machine,
    traffic: &'a Traffic,
    /// When each worker is free to compute, and how long it sends and receives so far.
    computes: Vec<f64>,
    sends: Vec<f64>,
    receives: Vec<f64>,
    /// When each block is finished, and when if nobody ever waited for a worker.
    made: Vec<(f64, f64)>,
    /// When each message has arrived, likewise; not a number before it is sent.
    arrived: Vec<(f64, f64)>,
}

impl<'a> Clock<'a> {
    fn new(workflow: &'a Workflow, sites: &'a Sites, machine: &'a Machine, traffic: &'a Traffic) -> Clock<'a> {
        let free = vec![0.0; machine.n_workers()];
        Clock {
            workflow,
            sites,
            machine,
            traffic,
            computes: free.clone(),
            sends: free.clone(),
            receives: free,
            made: vec![(0.0, 0.0); workflow.n_blocks()],
            arrived: vec![(f64::NAN, f64::NAN); traffic.transfers().len()],
        }
    }

    fn run(mut self, order: &[TaskId], simulation: &mut Simulation) {
        for &task in order {
            let site = self.sites.of(task);
            let (mut start, mut earliest) = (self.computes[site as usize], 0.0f64);
            for operand in self.workflow.present_operands(task) {
                let (there, at_best) = self.available(operand.block, operand.region, site);
                (start, earliest) = (start.max(there), earliest.max(at_best));
            }
            for &block in self.workflow.outputs(task) {
                // A fold waits for the one before it; what has not been begun was made at no time.
                let (made, at_best) = self.made[block.index()];
                (start, earliest) = (start.max(made), earliest.max(at_best));
            }
            let flops = task_flops(self.workflow, task);
            let seconds = self.machine.task + flops as f64 / self.machine.flops;
            let (end, at_best) = (start + seconds, earliest + seconds);
            self.computes[site as usize] = end;
            for &block in self.workflow.outputs(task) {
                self.made[block.index()] = (end, at_best);
            }
            let worker = &mut simulation.workers[site as usize];
            worker.tasks += 1;
            worker.flops += flops;
            worker.busy += seconds;
            simulation.intervals[task.index()] = Interval { start, end };
            simulation.makespan = simulation.makespan.max(end);
            simulation.critical_path = simulation.critical_path.max(at_best);
        }
    }

    /// When a worker has a block, or the part of it that it needs; sends it if nobody has.
    fn available(&mut self, block: BlockId, region: u32, site: u32) -> (f64, f64) {
        match self.traffic.bringing(block, region, site) {
            None => self.made[block.index()],
            Some(number) => self.arrival(number),
        }
    }

    fn arrival(&mut self, number: usize) -> (f64, f64) {
        if !self.arrived[number].0.is_nan() {
            return self.arrived[number];
        }
        let transfer = self.traffic.transfers()[number];
        // The message before it comes first in the list, so this is as deep as a tree over the nodes.
        let (there, at_best) = match transfer.after {
            None => self.made[transfer.block.index()],
            Some(before) => self.arrival(before as usize),
        };
        let seconds = self.machine.link(transfer.from, transfer.to).seconds(transfer.bytes);
        let (from, to) = (transfer.from as usize, transfer.to as usize);
        self.sends[from] += seconds;
        self.receives[to] += seconds;
        let end = (there + seconds).max(self.sends[from]).max(self.receives[to]);
        self.arrived[number] = (end, at_best + seconds);
        self.arrived[number]
    }
}

/// Bytes that are alive.
struct Memory<'a> {
    workflow: &'a Workflow,
    sites: &'a Sites,
    traffic: &'a Traffic,
    /// Position in the order after which a block is not needed at its home, and each message's copy not where it went.
    home_until: Vec<u32>,
    copy_until: Vec<u32>,
}

impl<'a> Memory<'a> {
    fn new(workflow: &'a Workflow, order: &[TaskId], sites: &'a Sites, traffic: &'a Traffic) -> Memory<'a> {
        let mut home_until = vec![0; workflow.n_blocks()];
        let mut copy_until: Vec<u32> = traffic.transfers().iter().map(|transfer| transfer.first_read).collect();
        for (position, &task) in order.iter().enumerate() {
            let position = position as u32;
            for &block in workflow.outputs(task) {
                home_until[block.index()] = position;
            }
            for operand in workflow.present_operands(task) {
                match traffic.bringing(operand.block, operand.region, sites.of(task)) {
                    None => home_until[operand.block.index()] = position,
                    Some(number) => copy_until[number] = position,
                }
            }
        }
        for transfer in traffic.transfers() {
            let holder = match transfer.after {
                None => &mut home_until[transfer.block.index()],
                Some(before) => &mut copy_until[before as usize],
            };
            *holder = (*holder).max(transfer.first_read);
        }
        for output in &workflow.outputs {
            let set = &workflow.sets[output.set];
            (0..set.n_blocks()).for_each(|k| home_until[workflow.block(output.set, k).index()] = u32::MAX);
        }
        Memory { workflow, sites, traffic, home_until, copy_until }
    }

    fn run(self, order: &[TaskId], simulation: &mut Simulation) {
        let mut now = vec![0u64; simulation.workers.len()];
        // What ends when: blocks, then messages.
        let n_blocks = self.workflow.n_blocks();
        let mut ends: Vec<(u32, u32)> = Vec::with_capacity(n_blocks + self.copy_until.len());
        ends.extend((0u32..).zip(&self.home_until).map(|(block, &until)| (until, block)));
        ends.extend((n_blocks as u32..).zip(&self.copy_until).map(|(copy, &until)| (until, copy)));
        ends.sort_unstable();
        let mut arrivals: Vec<(u32, u32)> =
            (0u32..).zip(self.traffic.transfers()).map(|(number, transfer)| (transfer.first_read, number)).collect();
        arrivals.sort_unstable();
        let (mut ends, mut arrivals) = (ends.into_iter().peekable(), arrivals.into_iter().peekable());
        let mut homes: Vec<Option<u32>> = vec![None; n_blocks];
        for (position, &task) in order.iter().enumerate() {
            let position = position as u32;
            let mut add = |worker: u32, bytes: u64, now: &mut Vec<u64>| {
                let held = &mut now[worker as usize];
                *held += bytes;
                let peak = &mut simulation.workers[worker as usize].peak_bytes;
                *peak = (*peak).max(*held);
            };
            while let Some((_, number)) = arrivals.next_if(|(first, _)| *first <= position) {
                let transfer = &self.traffic.transfers()[number as usize];
                add(transfer.to, transfer.bytes, &mut now);
            }
            let site = self.sites.of(task);
            for &block in self.workflow.outputs(task) {
                if homes[block.index()].replace(site).is_none() {
                    add(site, self.workflow.block_bytes(block), &mut now);
                }
            }
            while let Some((_, ended)) = ends.next_if(|(until, _)| *until <= position) {
                let (worker, bytes) = match (ended as usize).checked_sub(n_blocks) {
                    Some(number) => {
                        let transfer = &self.traffic.transfers()[number];
                        (Some(transfer.to), transfer.bytes)
                    }
                    None => (homes[ended as usize], self.workflow.block_bytes(BlockId::new(ended as usize))),
                };
                if let Some(worker) = worker {
                    now[worker as usize] -= bytes;
                }
            }
        }
    }
}
