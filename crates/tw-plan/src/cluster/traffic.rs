//! What has to be sent, once it is known where tasks run.
//!
//! A block goes to every worker that reads it, once. Where several workers of a node read it, one of them gets it and hands it on; nodes hand on to
//! nodes in a binomial tree, in the order in which they need the block. A part of a block goes straight from its home.

use std::collections::BTreeMap;
use std::ops::Range;

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::workflow::{BlockId, Operand, TaskId, Workflow};

use super::machine::Machine;
use super::sites::Sites;

mod flows;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What is sent.
    pub block: BlockId,
    /// The part of it, as in [`tw_ir::workflow::Operand`]; 0 for all.
    pub region: u32,
    /// Its size.
    pub bytes: u64,
    /// The worker that has it.
    pub from: u32,
    /// The worker that reads it.
    pub to: u32,
    /// Position in the order of the first task that reads it there.
    pub first_read: u32,
    /// The message that brought it to `from`, unless that is its home.
    pub after: Option<u32>,
}

/// All messages of a placed workflow, by block; of one block, each after the one it waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    transfers: Vec<Transfer>,
    /// Where the messages of each block end.
    ends: Vec<u32>,
    /// The same messages of each block by receiver, and whole blocks first.
    by_receiver: Vec<u32>,
}

/// That a worker reads a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    block: u32,
    to: u32,
    /// Whole blocks come first: whoever has all of it needs no part.
    region: u32,
    position: u32,
}

impl Traffic {
    /// What tasks in this order send. Tasks that are not in the order neither run nor read.
    pub fn of(workflow: &Workflow, order: &[TaskId], sites: &Sites, machine: &Machine) -> Result<Traffic> {
        let homes = sites.homes(workflow);
        let mut needs: Vec<Need> = Vec::new();
        for (position, &task) in order.iter().enumerate() {
            let to = sites.of(task);
            for operand in workflow.present_operands(task) {
                let block = operand.block;
                match homes[block.index()] {
                    None => return Err(Error::internal(format!("{task} reads {block}, which nothing makes"))),
                    Some(home) if home == to => {}
                    Some(_) => {
                        let position = position as u32;
                        needs.push(Need { block: block.as_u32(), to, region: operand.region, position });
                    }
                }
            }
        }
        needs.sort_unstable();
        needs.dedup_by(|next, kept| {
            let same = next.block == kept.block && next.to == kept.to;
            let covered = same && (kept.region == 0 || kept.region == next.region);
            if covered {
                kept.position = kept.position.min(next.position);
            }
            covered
        });
        let transfers = Vec::with_capacity(needs.len());
        let mut traffic = Traffic { transfers, ends: vec![0; workflow.n_blocks()], by_receiver: Vec::new() };
        let mut rest = &needs[..];
        for (block, &home) in homes.iter().enumerate() {
            let n = rest.iter().take_while(|need| need.block as usize == block).count();
            let (here, later) = rest.split_at(n);
            rest = later;
            if let (Some(home), false) = (home, here.is_empty()) {
                traffic.send(workflow, machine, home, here);
            }
            traffic.ends[block] = traffic.transfers.len() as u32;
            let first = traffic.by_receiver.len();
            traffic.by_receiver.extend(first as u32..traffic.ends[block]);
            let transfers = &traffic.transfers;
            traffic.by_receiver[first..].sort_unstable_by_key(|&number| {
                let transfer = &transfers[number as usize];
                (transfer.to, transfer.region)
            });
        }
        Ok(traffic)
    }

    /// Messages that bring one block from its home to all who need it.
    fn send(&mut self, workflow: &Workflow, machine: &Machine, home: u32, needs: &[Need]) {
        let block = BlockId::new(needs[0].block as usize);
        let size = workflow.block_bytes(block);
        let mut whole: Vec<Need> = needs.iter().copied().filter(|need| need.region == 0).collect();
        whole.sort_unstable_by_key(|need| (need.position, need.to));
        // Who first gets the block on each node, and by which message. The home is the first.
        let mut firsts: Vec<(u32, Option<u32>)> = vec![(home, None)];
        let mut known = BTreeMap::from([(machine.node_of(home), 0)]);
        for need in whole {
            let k = firsts.len();
            let first = *known.entry(machine.node_of(need.to)).or_insert(k);
            let (from, after) = if first == k {
                firsts.push((need.to, Some(self.transfers.len() as u32)));
                // In a binomial tree the parent of number k is k without its highest bit.
                firsts[k - (1 << k.ilog2())]
            } else {
                firsts[first]
            };
            self.transfers.push(Transfer {
                block,
                region: 0,
                bytes: size,
                from,
                to: need.to,
                first_read: need.position,
                after,
            });
        }
        for need in needs.iter().filter(|need| need.region != 0) {
            let (region, first_read) = (need.region, need.position);
            let bytes = workflow.operand_bytes(&Operand { block, region });
            self.transfers.push(Transfer { block, region, bytes, from: home, to: need.to, first_read, after: None });
        }
    }

    /// All messages.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// The messages of a block, with their numbers.
    pub fn of_block(&self, block: BlockId) -> impl Iterator<Item = (usize, &Transfer)> {
        let numbers = self.numbers(block);
        numbers.clone().zip(&self.transfers[numbers])
    }

    fn numbers(&self, block: BlockId) -> Range<usize> {
        let start = if block.index() == 0 { 0 } else { self.ends[block.index() - 1] as usize };
        start..self.ends[block.index()] as usize
    }

    /// The message that brings a block, or a part of it, to a worker.
    pub fn bringing(&self, block: BlockId, region: u32, to: u32) -> Option<usize> {
        let numbers = &self.by_receiver[self.numbers(block)];
        let transfer = |number: u32| &self.transfers[number as usize];
        let first = numbers.partition_point(|&number| transfer(number).to < to);
        let mut mine = numbers[first..].iter().copied().take_while(|&number| transfer(number).to == to);
        let fits = |number: &u32| transfer(*number).region == 0 || transfer(*number).region == region;
        mine.find(fits).map(|number| number as usize)
    }
}
