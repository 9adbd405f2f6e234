//! The transfers of a placed workflow.
//!
//! A block, or the region of it that is read, goes once to each worker that reads it. If several workers of a node read it, one of them receives it and forwards it.
//! Nodes forward to nodes in a binomial tree, in the order in which they need it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use tw_ir::error::{Error, Result};
use tw_ir::schedule::{Instance, InstanceId, Memory, Move, Placement, Step};
use tw_ir::workflow::{BlockId, Operand, TaskId, Workflow};
use tw_ir::{BoxRegion, EntityRef};

use super::machine::Machine;
use super::sites::Sites;

mod flows;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The block.
    pub block: BlockId,
    /// The region of it, numbered as in [`tw_ir::workflow::Operand`]; 0 for the whole block. Numbers beyond the regions of the workflow are regions of the traffic.
    pub region: u32,
    /// Size of the message.
    pub bytes: u64,
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Position of its first reader in the order of tasks.
    pub first_read: u32,
    /// The message that brought it to `from`, unless `from` is its home.
    pub after: Option<u32>,
}

/// All messages of a placed workflow, by block. Messages of one block are in topological order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    transfers: Vec<Transfer>,
    /// The end of the messages of each block.
    ends: Vec<u32>,
    /// The messages of each block sorted by receiver, whole blocks first.
    by_receiver: Vec<u32>,
    /// Regions that no task reads as such: each covers several overlapping regions that one worker reads.
    parts: Vec<BoxRegion>,
    /// Regions that arrive inside larger ones: block, region and worker to the larger region.
    within: HashMap<(u32, u32, u32), u32>,
}

/// A worker reads a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    block: u32,
    to: u32,
    /// Whole blocks sort first: a worker with the whole block needs no region.
    region: u32,
    position: u32,
}

impl Traffic {
    /// The messages of tasks in this order. Tasks that are not in the order neither run nor read.
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
        let mut traffic = Traffic { ends: vec![0; workflow.n_blocks()], ..Traffic::default() };
        let needs = traffic.merge(workflow, needs);
        traffic.transfers.reserve(needs.len());
        let mut rest = &needs[..];
        for (block, &home) in homes.iter().enumerate() {
            let n = rest.iter().take_while(|need| need.block as usize == block).count();
            let (here, later) = rest.split_at(n);
            rest = later;
            let mut parts: BTreeMap<u32, Vec<Need>> = BTreeMap::new();
            here.iter().for_each(|need| parts.entry(need.region).or_default().push(*need));
            if let Some(home) = home {
                parts.into_values().for_each(|needs| traffic.send(workflow, machine, home, needs));
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

    /// Messages that bring one block, or one region of it, from its home to all readers.
    fn send(&mut self, workflow: &Workflow, machine: &Machine, home: u32, mut needs: Vec<Need>) {
        let (block, region) = (BlockId::new(needs[0].block as usize), needs[0].region);
        let bytes = match (region as usize).checked_sub(workflow.regions.len() + 1) {
            None => workflow.operand_size(Operand { block, region }).estimate(),
            Some(part) => workflow.part_size(block, &self.parts[part]).estimate(),
        };
        needs.sort_unstable_by_key(|need| (need.position, need.to));
        // The first receiver on each node, and its message. The home is the first of all.
        let mut firsts: Vec<(u32, Option<u32>)> = vec![(home, None)];
        let mut known = BTreeMap::from([(machine.node_of(home), 0)]);
        for need in needs {
            let k = firsts.len();
            let first = *known.entry(machine.node_of(need.to)).or_insert(k);
            let (from, after) = if first == k {
                firsts.push((need.to, Some(self.transfers.len() as u32)));
                // In a binomial tree the parent of number k is k without its highest bit.
                firsts[k - (1 << k.ilog2())]
            } else {
                firsts[first]
            };
            let (to, first_read) = (need.to, need.position);
            self.transfers.push(Transfer { block, region, bytes, from, to, first_read, after });
        }
    }

    /// The steps of a schedule: tasks in this order, each message just before its first reader; and the block instances that they read and write. The first instances
    /// are the blocks at their homes; the others are replicas that messages bring.
    pub fn schedule(
        &self,
        workflow: &Workflow,
        order: &[TaskId],
        sites: &Sites,
        n_ranks: u32,
    ) -> (Vec<Step>, Placement) {
        let n_blocks = workflow.n_blocks();
        let copy = |number: usize| InstanceId::new(n_blocks + number);
        let mut placement = Placement::new(n_ranks, sites.workers().to_vec(), self.parts.clone());
        for (block, home) in sites.homes(workflow).into_iter().enumerate() {
            let memory = Memory::Host(home.unwrap_or(0));
            placement.add_instance(Instance { block: BlockId::new(block), region: 0, memory });
        }
        for transfer in &self.transfers {
            let Transfer { block, region, to, .. } = *transfer;
            placement.add_instance(Instance { block, region, memory: Memory::Host(to) });
        }
        let mut arrivals: Vec<(u32, u32)> =
            (0u32..).zip(&self.transfers).map(|(number, transfer)| (transfer.first_read, number)).collect();
        arrivals.sort_unstable();
        let mut arrivals = arrivals.into_iter().peekable();
        let mut steps = Vec::with_capacity(order.len() + self.transfers.len());
        for (position, &task) in order.iter().enumerate() {
            while let Some((_, number)) = arrivals.next_if(|(first, _)| *first as usize <= position) {
                let Transfer { block, after, .. } = self.transfers[number as usize];
                let from = after.map_or(InstanceId::new(block.index()), |before| copy(before as usize));
                steps.push(placement.add_move(Move { from, to: copy(number as usize) }));
            }
            let site = sites.of(task);
            let reads = workflow.operands(task).iter().map(|operand| {
                let operand = operand.expand()?;
                let home = InstanceId::new(operand.block.index());
                Some(self.bringing(operand.block, operand.region, site).map_or(home, copy))
            });
            placement.add_task(reads, workflow.outputs(task).iter().map(|block| InstanceId::new(block.index())));
            steps.push(Step::task(task));
        }
        let results = workflow.outputs.iter().flat_map(|output| {
            (0..workflow.sets[output.set].n_blocks()).map(|k| InstanceId::new(workflow.block(output.set, k).index()))
        });
        placement.set_results(results.collect());
        (steps, placement)
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

    /// The message that brings a block, or a region of it, to a worker.
    pub fn bringing(&self, block: BlockId, region: u32, to: u32) -> Option<usize> {
        let region = self.within.get(&(block.as_u32(), region, to)).copied().unwrap_or(region);
        let numbers = &self.by_receiver[self.numbers(block)];
        let transfer = |number: u32| &self.transfers[number as usize];
        let first = numbers.partition_point(|&number| transfer(number).to < to);
        let mut mine = numbers[first..].iter().copied().take_while(|&number| transfer(number).to == to);
        let fits = |number: &u32| transfer(*number).region == 0 || transfer(*number).region == region;
        mine.find(fits).map(|number| number as usize)
    }

    /// Merges overlapping regions of a block for one worker, unless the merged region has more elements than the parts together. `needs` is sorted.
    fn merge(&mut self, workflow: &Workflow, needs: Vec<Need>) -> Vec<Need> {
        let mut merged: Vec<Need> = Vec::with_capacity(needs.len());
        // Equal regions have one number, so that workers that need the same region forward it.
        let mut numbers: HashMap<BoxRegion, u32> = HashMap::new();
        for group in needs.chunk_by(|a, b| (a.block, a.to) == (b.block, b.to)) {
            if group.len() == 1 || group.len() > MOST_PARTS {
                merged.extend(group);
                continue;
            }
            let mut parts: Vec<(BoxRegion, Vec<Need>)> = Vec::new();
            for &need in group {
                let mut part = (workflow.regions[need.region as usize - 1].clone(), vec![need]);
                // The grown region may overlap others now.
                while let Some(other) = parts.iter().position(|(other, _)| overlap(other, &part.0)) {
                    let (region, needs) = parts.swap_remove(other);
                    part = (around(&region, &part.0), [needs, part.1].concat());
                }
                parts.push(part);
            }
            let start = merged.len();
            for (region, needs) in parts {
                let position = needs.iter().map(|need| need.position).min().unwrap_or(0);
                let whole = needs.iter().find(|need| workflow.regions[need.region as usize - 1] == region);
                let number = whole.map_or_else(
                    || {
                        *numbers.entry(region).or_insert_with_key(|region| {
                            self.parts.push(region.clone());
                            (workflow.regions.len() + self.parts.len()) as u32
                        })
                    },
                    |need| need.region,
                );
                let Need { block, to, .. } = needs[0];
                self.within.extend(needs.iter().map(|need| ((block, need.region, to), number)));
                merged.push(Need { block, to, region: number, position });
            }
            merged[start..].sort_unstable();
        }
        merged
    }
}

/// True if the bounding box of two has fewer elements than both together.
fn overlap(a: &BoxRegion, b: &BoxRegion) -> bool {
    around(a, b).n_elements() < a.n_elements() + b.n_elements()
}

/// The bounding box of two.
fn around(a: &BoxRegion, b: &BoxRegion) -> BoxRegion {
    let lo = a.lo.iter().zip(&b.lo).map(|(a, b)| *a.min(b)).collect();
    let hi = a.hi.iter().zip(&b.hi).map(|(a, b)| *a.max(b)).collect();
    BoxRegion { lo, hi }
}

/// Up to this many regions of one block for one worker are checked for overlaps.
const MOST_PARTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn region(rows: Range<u64>, columns: Range<u64>) -> BoxRegion {
        BoxRegion::from_ranges([rows, columns])
    }

    #[test]
    fn overlapping_parts_are_sent_once() {
        let with_regions = |regions: Vec<BoxRegion>| {
            let mut workflow = Workflow::default();
            workflow.regions = regions;
            workflow
        };
        let overlapping = [region(0..1, 0..8), region(0..1, 1..9), region(4..6, 0..2), region(4..5, 0..1)];
        let workflow = with_regions([&overlapping[..], &[region(7..8, 0..2)]].concat());
        let need = |region: u32| Need { block: 3, to: 1, region, position: 10 - region };
        let mut traffic = Traffic::default();
        let merged = traffic.merge(&workflow, (1..=5).map(need).collect());
        // Two that overlap, one within another, and one by itself.
        let found: Vec<(u32, u32)> = merged.iter().map(|need| (need.region, need.position)).collect();
        assert_eq!(found, [(3, 6), (5, 5), (6, 8)]);
        assert_eq!(traffic.parts, [region(0..1, 0..9)]);
        assert_eq!(traffic.within[&(3, 1, 1)], 6);
        assert_eq!(traffic.within[&(3, 4, 1)], 3);
        // Workers that need the same region have it under the same number and forward it.
        let mut traffic = Traffic::default();
        let both = [1, 2].iter().flat_map(|&to| (1..=2).map(move |region| Need { to, ..need(region) })).collect();
        let numbers: Vec<u32> = traffic.merge(&workflow, both).iter().map(|need| need.region).collect();
        assert_eq!(numbers, [6, 6]);
        // Neighbours that do not overlap come as they are needed.
        let apart = with_regions(vec![region(0..1, 0..8), region(1..2, 0..8)]);
        let mut traffic = Traffic::default();
        assert_eq!(traffic.merge(&apart, (1..=2).map(need).collect()).len(), 2);
        assert!(traffic.parts.is_empty());
    }
}
