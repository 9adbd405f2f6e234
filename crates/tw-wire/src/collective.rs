//! What all ranks do together, along a binomial tree: share a scalar's bits, wait for each other, compare hashes.
//!
//! Every rank starts the same collectives of a run in the same order. They use two tags of the run, and messages of a tag keep their order,
//! so collectives never mix. Each takes at most `2 log2(size)` messages after one another, and a rank sends at most `log2(size) + 1`.
//! Collectives are small: blocks travel by moves of the schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tw_ir::{Error, Result};

use crate::message::Message;
use crate::wire::{Completion, FIRST_RESERVED_ID, Room, Tag, Ticket, Wire};

/// The tag of messages towards the root.
const UP: u32 = FIRST_RESERVED_ID;
/// The tag of messages from the root.
const DOWN: u32 = FIRST_RESERVED_ID + 1;
/// The most bytes that a message of a collective has.
const MOST: u64 = 64 << 20;

/// A collective under way on one rank. The rank that polls hands it each completion; see also [`Collective::finish`].
#[derive(Debug)]
pub struct Collective {
    run: u64,
    rank: u32,
    size: u32,
    root: u32,
    /// Contents go up to the root.
    is_gathered: bool,
    /// The root's result comes down.
    is_shared: bool,
    parent: Option<u32>,
    /// Nearest first; their subtrees follow one another in ranks relative to the root.
    children: Vec<u32>,
    /// Receives from children, by position in `children`, or from the parent.
    expected: BTreeMap<Ticket, Option<usize>>,
    /// What this rank and its subtree contribute, packed; none from children that have not answered.
    gathered: Vec<Option<Vec<u8>>>,
    /// What the wire still holds.
    sends: BTreeSet<Ticket>,
    result: Option<Vec<u8>>,
}

impl Collective {
    /// All ranks get what the root has: the bits of a scalar, the verdict of a condition. Only the root gives bytes.
    pub fn share(wire: &dyn Wire, run: u64, root: u32, bytes: Option<Vec<u8>>) -> Result<Collective> {
        if (wire.rank() == root) != bytes.is_some() {
            return Err(Error::internal("the root of a collective, and only the root, has what is shared"));
        }
        Collective::start(wire, run, root, bytes.map(|bytes| pack(&bytes)), false, true)
    }

    /// The root gets what every rank has, by rank. The others get nothing.
    pub fn gather(wire: &dyn Wire, run: u64, root: u32, bytes: &[u8]) -> Result<Collective> {
        Collective::start(wire, run, root, Some(pack(bytes)), true, false)
    }

    /// All ranks get what every rank has, by rank: hashes of schedules, versions, homes of blocks.
    pub fn gather_all(wire: &dyn Wire, run: u64, bytes: &[u8]) -> Result<Collective> {
        Collective::start(wire, run, 0, Some(pack(bytes)), true, true)
    }

    /// Is finished on no rank before it is started on all. Before files get their names, for example.
    pub fn barrier(wire: &dyn Wire, run: u64) -> Result<Collective> {
        Collective::gather_all(wire, run, &[])
    }

    fn start(
        wire: &dyn Wire,
        run: u64,
        root: u32,
        bytes: Option<Vec<u8>>,
        is_gathered: bool,
        is_shared: bool,
    ) -> Result<Collective> {
        let (rank, size) = (wire.rank(), wire.size());
        if root >= size {
            return Err(Error::internal(format!("a collective of {size} ranks has root {root}")));
        }
        let (parent, children) = tree(rank, size, root);
        let mut collective = Collective {
            run,
            rank,
            size,
            root,
            is_gathered,
            is_shared,
            parent,
            gathered: vec![None; children.len() + 1],
            children,
            expected: BTreeMap::new(),
            sends: BTreeSet::new(),
            result: None,
        };
        if is_gathered {
            for (k, &child) in collective.children.iter().enumerate() {
                let ticket = wire.receive(child, Tag { run, id: UP }, Room::Bytes(MOST))?;
                collective.expected.insert(ticket, Some(k));
            }
        }
        if let (Some(parent), true) = (parent, is_shared) {
            let ticket = wire.receive(parent, Tag { run, id: DOWN }, Room::Bytes(MOST))?;
            collective.expected.insert(ticket, None);
        }
        collective.gathered[0] = bytes;
        collective.go_on(wire)?;
        Ok(collective)
    }

    /// Takes a completion that belongs to this collective, and gives back any other. An error means that the collective cannot end.
    pub fn advance(&mut self, wire: &dyn Wire, completion: Completion) -> Result<Option<Completion>> {
        match completion {
            Completion::Received { ticket, message, .. } if self.expected.contains_key(&ticket) => {
                let bytes = message.buffers.first().map_or(&[][..], |buffer| buffer.bytes()).to_vec();
                match self.expected.remove(&ticket).flatten() {
                    Some(child) => {
                        self.gathered[child + 1] = Some(bytes);
                        self.go_on(wire)?;
                    }
                    None => self.pass_on(wire, bytes)?,
                }
                Ok(None)
            }
            Completion::Failed { ticket, error, .. } if self.expected.contains_key(&ticket) => Err(error),
            Completion::Sent { ticket, .. } if self.sends.remove(&ticket) => Ok(None),
            other => Ok(Some(other)),
        }
    }

    /// Sends up what is complete.
    fn go_on(&mut self, wire: &dyn Wire) -> Result<()> {
        let needed = if self.is_gathered { self.gathered.len() } else { 1 };
        if self.gathered[..needed].iter().any(Option::is_none) {
            return Ok(());
        }
        let bytes = self.gathered[..needed].iter().flatten().flatten().copied().collect();
        match self.parent {
            Some(parent) if self.is_gathered => {
                self.sends.insert(wire.send(parent, Tag { run: self.run, id: UP }, Message::of(bytes))?);
                if !self.is_shared {
                    self.result = Some(Vec::new());
                }
                Ok(())
            }
            Some(_) => Ok(()),
            None => self.pass_on(wire, bytes),
        }
    }

    /// The result is here.
    fn pass_on(&mut self, wire: &dyn Wire, bytes: Vec<u8>) -> Result<()> {
        if self.is_shared {
            // Farthest first: they have the most ranks behind them.
            for &child in self.children.iter().rev() {
                self.sends.insert(wire.send(child, Tag { run: self.run, id: DOWN }, Message::of(bytes.clone()))?);
            }
        }
        self.result = Some(bytes);
        Ok(())
    }

    /// True once this rank has its result and the wire has let go of all it sent, so that the run may be cancelled.
    pub fn is_done(&self) -> bool {
        self.result.is_some() && self.sends.is_empty()
    }

    /// The contents by rank: one for [`Collective::share`], none where the result goes to another rank. None before it is there.
    pub fn result(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let Some(bytes) = &self.result else { return Ok(None) };
        let mut parts = unpack(bytes)?;
        let n = match (self.is_gathered, self.is_shared || self.rank == self.root) {
            (true, true) => self.size as usize,
            (true, false) => 0,
            (false, _) => 1,
        };
        if parts.len() != n {
            return Err(Error::internal(format!("a collective of {} ranks has {} results", self.size, parts.len())));
        }
        if self.is_gathered && n > 0 {
            // Relative to the root so far.
            parts.rotate_right(self.root as usize);
        }
        Ok(Some(parts))
    }

    /// Polls until the collective is done, and hands all other completions to `other`, whose error ends it. So does the loss of a rank, which
    /// `other` hears of first.
    pub fn finish(mut self, wire: &dyn Wire, other: &mut dyn FnMut(Completion) -> Result<()>) -> Result<Vec<Vec<u8>>> {
        let mut completions = Vec::new();
        loop {
            if let (true, Some(result)) = (self.is_done(), self.result()?) {
                return Ok(result);
            }
            wire.poll(&mut completions);
            if completions.is_empty() {
                wire.wait(Duration::from_millis(100));
            }
            // Also those after the last of this collective belong to somebody.
            let mut failure = None;
            for completion in completions.drain(..) {
                let rest = match self.advance(wire, completion) {
                    Ok(rest) => rest,
                    Err(error) => {
                        failure.get_or_insert(error);
                        continue;
                    }
                };
                let Some(rest) = rest else { continue };
                let lost = if let Completion::Lost { error, .. } = &rest { Some(error.clone()) } else { None };
                if let Some(error) = other(rest).err().or(lost) {
                    failure.get_or_insert(error);
                }
            }
            if let Some(error) = failure {
                return Err(error);
            }
        }
    }
}

/// The parent and the children of a rank.
fn tree(rank: u32, size: u32, root: u32) -> (Option<u32>, Vec<u32>) {
    let (size, root) = (u64::from(size), u64::from(root));
    let relative = (u64::from(rank) + size - root) % size;
    let absolute = |relative: u64| ((relative + root) % size) as u32;
    let parent = (relative > 0).then(|| absolute(relative & (relative - 1)));
    let reach = if relative > 0 { relative & relative.wrapping_neg() } else { size.next_power_of_two() };
    let steps = std::iter::successors(Some(1u64), |step| Some(step * 2)).take_while(|&step| step < reach);
    let children = steps.map(|step| relative + step).filter(|&child| child < size).map(absolute).collect();
    (parent, children)
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = (bytes.len() as u64).to_le_bytes().to_vec();
    packed.extend_from_slice(bytes);
    packed
}

fn unpack(mut packed: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = packed.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let wrong = || Error::internal("a result of a collective is cut off");
        parts.push(rest.get(..length).ok_or_else(wrong)?.to_vec());
        packed = &rest[length..];
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_reach_every_rank_once_and_in_order() {
        for size in 1..40 {
            for root in [0, size / 2, size - 1] {
                let mut order = Vec::new();
                let mut waiting = vec![(root, 0)];
                while let Some((rank, depth)) = waiting.pop() {
                    assert!(1u64 << depth < 2 * u64::from(size), "{depth} levels for {size} ranks");
                    let (parent, children) = tree(rank, size, root);
                    assert_eq!(parent.is_none(), rank == root);
                    order.push((rank + size - root) % size);
                    for &child in children.iter().rev() {
                        assert_eq!(tree(child, size, root).0, Some(rank));
                        waiting.push((child, depth + 1));
                    }
                }
                assert_eq!(order, (0..size).collect::<Vec<_>>(), "{size} ranks, root {root}");
            }
        }
    }

    #[test]
    fn cut_off_results_are_refused() {
        let packed: Vec<u8> = [pack(b"abc"), pack(b""), pack(b"d")].concat();
        assert_eq!(unpack(&packed).unwrap(), [&b"abc"[..], b"", b"d"]);
        assert!(unpack(&packed[..10]).is_err());
        assert!(unpack(&u64::MAX.to_le_bytes()).is_err());
    }
}
