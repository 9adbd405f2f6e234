//! Simulates a placed workflow on a machine: transfers, memory and time of each worker.
//!
//! Bytes are exact. The peak assumes one task at a time in the global order, with each message just before its first reader: each worker must be able to hold that
//! much. Time comes from a model with room for early messages: a worker computes its tasks one at a time and in order, sends one message at a time and
//! receives one at a time; messages leave in the order in which their data becomes ready. The simulation is deterministic, so equal plans have equal
//! figures on all machines.

use std::collections::BTreeMap;

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::workflow::{TaskId, Workflow};

use super::homes::Before;
use super::machine::Machine;
use super::sites::Sites;
use super::traffic::Traffic;
use tw_plan::task_flops;

mod clock;
mod memory;
#[cfg(test)]
mod tests;

use clock::Clock;

/// The figures of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worker {
    /// Its tasks.
    pub tasks: u64,
    /// Scalar operations of its tasks.
    pub flops: u64,
    /// Bytes that it receives.
    pub received_bytes: u64,
    /// Bytes that it sends.
    pub sent_bytes: u64,
    /// Peak bytes of blocks, with one task at a time in the global order.
    pub peak_bytes: u64,
    /// Seconds of computation.
    pub busy: f64,
}

/// The interval in which a task runs, in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeInterval {
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
    /// Bytes from one worker to another, for pairs with traffic.
    pub links: BTreeMap<(u32, u32), u64>,
    /// Bytes between nodes.
    pub across_bytes: u64,
    /// Number of messages.
    pub n_transfers: u64,
    /// The end of the last task, in seconds.
    pub makespan: f64,
    /// The makespan with unlimited workers, in seconds.
    pub critical_path: f64,
    /// The task at the largest peak of any worker.
    pub at_peak: Option<TaskId>,
    /// The interval of each task; empty for tasks that do not run.
    pub intervals: Vec<TimeInterval>,
}

impl Simulation {
    /// Simulates tasks in this order with their messages, on workers that may already hold some inputs. `seconds` are the durations of tasks on the machine.
    pub fn run(
        workflow: &Workflow,
        order: &[TaskId],
        sites: &Sites,
        machine: &Machine,
        traffic: &Traffic,
        before: &Before,
        seconds: &[f64],
    ) -> Result<Simulation> {
        sites.verify(workflow, machine)?;
        let mut simulation = Simulation {
            workers: vec![Worker::default(); machine.n_workers()],
            links: BTreeMap::new(),
            across_bytes: 0,
            n_transfers: traffic.transfers().len() as u64,
            makespan: 0.0,
            critical_path: 0.0,
            at_peak: None,
            intervals: vec![TimeInterval::default(); workflow.n_tasks()],
        };
        simulation.count(machine, traffic);
        simulation.critical_path = critical_path(workflow, order, sites, machine, traffic, seconds);
        for &task in order {
            let worker = &mut simulation.workers[sites.of(task) as usize];
            worker.tasks += 1;
            worker.flops += task_flops(workflow, task);
            worker.busy += seconds[task.index()];
        }
        Clock::new(workflow, order, sites, machine, traffic, seconds).run(&mut simulation)?;
        memory::replay(&mut simulation, workflow, order, sites, traffic, before);
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

    /// The largest peak of any worker.
    pub fn peak_bytes_max(&self) -> u64 {
        self.workers.iter().map(|worker| worker.peak_bytes).max().unwrap_or(0)
    }

    /// Operations of all workers.
    pub fn flops(&self) -> u64 {
        self.workers.iter().map(|worker| worker.flops).sum()
    }

    /// Operations of the worker with the most, and their ratio to an even share.
    pub fn flops_max(&self) -> (u64, f64) {
        let most = self.workers.iter().map(|worker| worker.flops).max().unwrap_or(0);
        let total = self.flops();
        (most, if total == 0 { 1.0 } else { most as f64 * self.workers.len() as f64 / total as f64 })
    }
}

/// The end of the last task if no task or message ever waited for a worker or for another message.
fn critical_path(
    workflow: &Workflow,
    order: &[TaskId],
    sites: &Sites,
    machine: &Machine,
    traffic: &Traffic,
    seconds: &[f64],
) -> f64 {
    let mut made = vec![0.0f64; workflow.n_blocks()];
    let mut arrived = vec![f64::NAN; traffic.transfers().len()];
    let mut last = 0.0f64;
    for &task in order {
        let site = sites.of(task);
        let mut start = 0.0f64;
        for operand in workflow.present_operands(task) {
            let there = match traffic.bringing(operand.block, operand.region, site) {
                None => made[operand.block.index()],
                Some(number) => arrival(number, &made, &mut arrived, machine, traffic),
            };
            start = start.max(there);
        }
        // A fold waits for the one before it; what has not been begun was made at no time.
        start = workflow.outputs(task).iter().fold(start, |start, block| start.max(made[block.index()]));
        let end = start + seconds[task.index()];
        workflow.outputs(task).iter().for_each(|block| made[block.index()] = end);
        last = last.max(end);
    }
    last
}

fn arrival(number: usize, made: &[f64], arrived: &mut [f64], machine: &Machine, traffic: &Traffic) -> f64 {
    if arrived[number].is_nan() {
        let transfer = &traffic.transfers()[number];
        // The message before it comes first in the list, so this is as deep as a tree over the nodes.
        let there = match transfer.after {
            None => made[transfer.block.index()],
            Some(before) => arrival(before as usize, made, arrived, machine, traffic),
        };
        arrived[number] = there + machine.link(transfer.from, transfer.to).seconds(transfer.bytes);
    }
    arrived[number]
}
