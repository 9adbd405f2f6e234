//! What every worker holds while tasks run one by one in the global order: what it must be able to hold, whenever messages come.

use tw_ir::EntityRef;
use tw_ir::workflow::{BlockId, TaskId, Workflow};

use super::Simulation;
use crate::held::Before;
use crate::sites::Sites;
use crate::traffic::Traffic;

/// Bytes that are alive.
pub(super) struct Memory<'a> {
    workflow: &'a Workflow,
    sites: &'a Sites,
    traffic: &'a Traffic,
    before: &'a Before,
    /// Position in the order after which a block is not needed at its home, and each message's copy not where it went.
    home_until: Vec<u32>,
    copy_until: Vec<u32>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(
        workflow: &'a Workflow,
        order: &[TaskId],
        sites: &'a Sites,
        traffic: &'a Traffic,
        before: &'a Before,
    ) -> Memory<'a> {
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
        Memory { workflow, sites, traffic, before, home_until, copy_until }
    }

    pub(super) fn run(self, order: &[TaskId], simulation: &mut Simulation) {
        let mut now: Vec<u64> = (0..simulation.workers.len()).map(|worker| self.before.bytes_of(worker)).collect();
        now.iter().zip(&mut simulation.workers).for_each(|(&bytes, worker)| worker.peak_bytes = bytes);
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
        let mut most = 0;
        for (position, &task) in order.iter().enumerate() {
            let position = position as u32;
            let mut add = |worker: u32, bytes: u64, now: &mut Vec<u64>| {
                let held = &mut now[worker as usize];
                *held += bytes;
                let peak = &mut simulation.workers[worker as usize].peak_bytes;
                *peak = (*peak).max(*held);
                if *held > most {
                    (most, simulation.at_peak) = (*held, Some(task));
                }
            };
            while let Some((_, number)) = arrivals.next_if(|(first, _)| *first <= position) {
                let transfer = &self.traffic.transfers()[number as usize];
                add(transfer.to, transfer.bytes, &mut now);
            }
            let site = self.sites.of(task);
            // What was here before stays, and is counted already.
            let is_new = self.before.home(self.workflow, task).is_none();
            for &block in self.workflow.outputs(task).iter().filter(|_| is_new) {
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
