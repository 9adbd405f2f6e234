//! What has to be sent, once it is known where tasks run.
//!
//! A block goes to every worker that reads it, once. Where several workers of a node read it, one of them gets it and hands it on; nodes hand on to
//! nodes in a binomial tree, in the order in which they need the block. A part of a block goes straight from its home.

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
        let mut traffic = Traffic { transfers: Vec::with_capacity(needs.len()), ends: vec![0; workflow.n_blocks()] };
        let mut rest = &needs[..];
        for (block, &home) in homes.iter().enumerate() {
            let n = rest.iter().take_while(|need| need.block as usize == block).count();
            let (here, later) = rest.split_at(n);
            rest = later;
            if let (Some(home), false) = (home, here.is_empty()) {
                traffic.send(workflow, machine, home, here);
            }
            traffic.ends[block] = traffic.transfers.len() as u32;
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
        let mut nodes: Vec<(u32, u32, Option<u32>)> = vec![(machine.node_of(home), home, None)];
        for need in whole {
            let node = machine.node_of(need.to);
            let (from, after) = match nodes.iter().find(|(known, ..)| *known == node) {
                Some(&(_, from, after)) => (from, after),
                None => {
                    // In a binomial tree the parent of number k is k without its highest bit.
                    let k = nodes.len();
                    let (_, from, after) = nodes[k - (1 << k.ilog2())];
                    nodes.push((node, need.to, Some(self.transfers.len() as u32)));
                    (from, after)
                }
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
        let start = if block.index() == 0 { 0 } else { self.ends[block.index() - 1] as usize };
        let end = self.ends[block.index()] as usize;
        (start..end).zip(&self.transfers[start..end])
    }

    /// The message that brings a block, or a part of it, to a worker.
    pub fn bringing(&self, block: BlockId, region: u32, to: u32) -> Option<usize> {
        let fits = |transfer: &Transfer| transfer.to == to && (transfer.region == 0 || transfer.region == region);
        self.of_block(block).find(|(_, transfer)| fits(transfer)).map(|(number, _)| number)
    }
}
