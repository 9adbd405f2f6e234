//! The engine of several ranks: every rank runs its part of a schedule, and blocks move between them as the schedule says.
//!
//! There is no driver. All ranks run the same program, plan by themselves, and call [`Engine::run`] with equal schedules in the same order; a run has the same number on all of them.
//! A rank keeps what its part makes: handles of results name the rank that has a block where that is another one. They stay so between runs and after the
//! last one, until somebody asks for elements: [`Group::fetch`] then brings the blocks that are asked for, a window at a time ([`crate::exchange`]).
//!
//! Each rank has a pool of threads, which run its tasks under its ledger exactly as in [`Runtime`], and a [lane](crate::lane), which moves messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tw_block::{Block, BlockBuffer, BlockMessage, Meter};
use tw_ir::{Array, BoxRegion, Buffer, DType, Error, Result, Span};
use tw_wire::{Message, Wire};

use crate::bindings::Bindings;
use crate::cancel::CancelToken;
use crate::engine::{Claim, Engine, Fetch, Group, report};
use crate::exchange::Side;
use crate::handle::{BlockHandle, TensorHandle};
use crate::job::{Job, Ranked};
use crate::lane::Lane;
use crate::options::{Outcome, RunOptions};
use crate::pool::Runtime;
use crate::prepared::Prepared;
use crate::transfer::{Transfers, outgoing};

/// The most bytes that a rank shares outside of tensors.
const MOST_SHARED: u64 = 16 << 20;

/// One of several ranks that run schedules together.
pub struct Ranks {
    // The lane ends before the pool that it reports to.
    lane: Lane,
    runtime: Runtime,
    wire: Arc<dyn Wire>,
    next_run: AtomicU64,
}

impl Ranks {
    /// This rank, on so many threads.
    pub fn new(wire: Arc<dyn Wire>, threads: usize) -> Result<Ranks> {
        let runtime = Runtime::new(threads);
        let lane = Lane::start(Arc::clone(&wire), Arc::clone(&runtime.shared))?;
        Ok(Ranks { lane, runtime, wire, next_run: AtomicU64::new(0) })
    }

    fn next_run(&self) -> u64 {
        self.next_run.fetch_add(1, Ordering::Relaxed)
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Engine for Ranks {
    fn name(&self) -> &'static str {
        "ranks"
    }

    fn threads(&self) -> usize {
        self.runtime.threads()
    }

    fn group(&self) -> Option<&dyn Group> {
        Some(self)
    }

    fn run(&self, prepared: &Prepared, bindings: &Bindings, options: &RunOptions) -> Result<Outcome> {
        let run = self.next_run();
        let mine = prepared.plan().part.as_ref().map(|part| part.rank);
        if mine != Some(self.wire.rank()) || options.forms.iter().any(|form| form.has_array()) {
            let error = Error::internal("a rank runs its own part of a schedule, and its results are blocks");
            self.lane.fail(&error);
            return Err(error);
        }
        report(prepared.plan(), bindings, options, self.threads(), |surplus| {
            let transfers = Transfers { wire: Arc::clone(&self.wire), run };
            let ranked = Ranked { transfers, lane: self.lane.handle() };
            let job = Job::new(prepared.plan(), bindings, options, surplus, Some(ranked));
            let job = job.inspect_err(|error| self.lane.fail(error))?;
            let outcome = self.runtime.shared.run(job, |id, job| self.lane.attach(run, id, job))?;
            Ok((self.threads(), outcome))
        })
    }
}

impl Group for Ranks {
    fn rank(&self) -> u32 {
        self.wire.rank()
    }

    fn size(&self) -> u32 {
        self.wire.size()
    }

    fn fail(&self, error: &Error) {
        self.lane.fail(error);
    }

    /// A rank that still waits for this one learns that it has ended.
    fn leave(&self) {
        let text = format!("rank {} has ended its session", self.wire.rank());
        self.lane.leave(self.next_run(), &Error::state(text).help("all ranks have to make the same calls"));
    }

    fn fetch(
        &self,
        handle: &TensorHandle,
        fetch: &Fetch<'_>,
        take: &mut dyn FnMut(u64, Arc<Block>) -> Result<()>,
    ) -> Result<()> {
        self.exchange(fetch.cancel, |side| self.fetch_blocks(side, handle, fetch, take))
    }

    fn share(&self, from: u32, bytes: &[u8], cancel: &CancelToken) -> Result<Vec<u8>> {
        self.exchange(cancel, |side| {
            let length = self.shared_by(side, from, 0, &(bytes.len() as u64).to_le_bytes())?;
            let length = length.try_into().map_err(|_| Error::internal("a length of other bytes"))?;
            match u64::from_le_bytes(length) {
                _ if self.rank() == from => self.shared_by(side, from, 1, bytes),
                length if length <= MOST_SHARED => self.shared_by(side, from, 1, &vec![0; length as usize]),
                length => Err(Error::internal(format!("rank {from} shares {length} bytes, more than it may"))),
            }
        })
    }

    fn agree(&self, claim: &Claim<'_>, cancel: &CancelToken) -> Result<()> {
        self.exchange(cancel, |side| {
            // Everybody compares with rank 0, which hears of everybody. So both sides of a difference notice it.
            let others: Vec<u32> = if self.rank() == 0 { (1..self.size()).collect() } else { vec![0] };
            let own = &claim.digest.0;
            others.iter().try_for_each(|&from| side.receive(from, from, room_for(own.len())?))?;
            let speaks_last = claim.waits && self.rank() == 0;
            let speak = || side.send(others.iter().copied(), self.rank(), &message_of(own)?);
            if !speaks_last {
                speak()?;
            }
            let mut differing = None;
            for &from in &others {
                if bytes_of(&side.take(from)?)? != own {
                    differing = differing.or(Some(from));
                }
            }
            if speaks_last {
                speak()?;
            }
            differing.map_or(Ok(()), |with| self.explain(side, claim, with))
        })
    }
}

/// Parts of a claim that are compared. Later ones are summed up in the last.
const MOST_PARTS: usize = 4096;

/// Bytes of a place in the user's code.
const PLACE_BYTES: usize = 256;

impl Ranks {
    /// Exchanges messages in a run of its own. A failure ends the group.
    fn exchange<T>(&self, cancel: &CancelToken, work: impl FnOnce(&Side<'_>) -> Result<T>) -> Result<T> {
        self.lane.exchange(self.next_run(), cancel, work).inspect_err(|error| self.lane.fail(error))
    }

    fn fetch_blocks(
        &self,
        side: &Side<'_>,
        handle: &TensorHandle,
        fetch: &Fetch<'_>,
        take: &mut dyn FnMut(u64, Arc<Block>) -> Result<()>,
    ) -> Result<()> {
        let (me, meter) = (self.rank(), fetch.meter);
        let receives = fetch.to.is_none_or(|to| to == me);
        let (mut expected, mut expected_bytes) = (VecDeque::new(), 0u64);
        for (position, block) in (0u64..).zip(handle.blocks()) {
            let id = u32::try_from(position).map_err(|_| Error::plan("a tensor of too many blocks"))?;
            match block.owner() {
                None => {
                    let block_here = block.block_for(meter)?;
                    if !block.is_replicated() {
                        let message = outgoing(BlockMessage::new(Arc::clone(&block_here), None, meter)?);
                        let others = (0..self.size()).filter(|&to| to != me && fetch.to.is_none_or(|only| only == to));
                        side.send(others, id, &message)?;
                        side.settle(fetch.window.max(1))?;
                    }
                    if receives {
                        expected.push_back(Coming { position, bytes: 0, here: Some(block_here) });
                    }
                }
                Some(from) if receives => {
                    let buffer = BlockBuffer::new(handle.dtype().storage(), handle.grid().box_of(position), meter)?;
                    let bytes = buffer.n_bytes();
                    while !expected.is_empty() && expected_bytes.saturating_add(bytes) > fetch.window {
                        expected_bytes -= take_first(side, &mut expected, take)?;
                    }
                    side.receive(from, id, buffer)?;
                    expected.push_back(Coming { position, bytes, here: None });
                    expected_bytes += bytes;
                }
                Some(_) => {}
            }
            // What is here already waits for nothing but its turn.
            while expected.front().is_some_and(|coming: &Coming| coming.here.is_some()) {
                take_first(side, &mut expected, take)?;
            }
        }
        while !expected.is_empty() {
            take_first(side, &mut expected, take)?;
        }
        Ok(())
    }

    /// Gives all ranks some bytes of one of them. The others give as many.
    fn shared_by(&self, side: &Side<'_>, from: u32, id: u32, bytes: &[u8]) -> Result<Vec<u8>> {
        if self.rank() != from {
            side.receive(from, id, room_for(bytes.len())?)?;
            return bytes_of(&side.take(id)?);
        }
        side.send((0..self.size()).filter(|&to| to != from), id, &message_of(bytes)?)?;
        Ok(bytes.to_vec())
    }

    /// Sends bytes to some ranks, and gets as many from each of them. `read` makes something of what came.
    fn swap<T>(
        &self,
        side: &Side<'_>,
        with: &[u32],
        round: u32,
        bytes: &[u8],
        read: impl Fn(u32, Vec<u8>) -> Result<T>,
    ) -> Result<Vec<(u32, T)>> {
        let id = |from: u32| round * self.size() + from;
        with.iter().try_for_each(|&from| side.receive(from, id(from), room_for(bytes.len())?))?;
        side.send(with.iter().copied(), id(self.rank()), &message_of(bytes)?)?;
        with.iter().map(|&from| Ok((from, read(from, bytes_of(&side.take(id(from))?)?)?))).collect()
    }

    /// The error for a claim that differs from that of another rank, which looks for the place at the same time.
    fn explain(&self, side: &Side<'_>, claim: &Claim<'_>, with: u32) -> Result<()> {
        let parts = (claim.parts)();
        let mut bytes = vec![0u8; 8 * MOST_PARTS];
        for (k, (hash, _)) in parts.iter().enumerate() {
            let at = 8 * k.min(MOST_PARTS - 1);
            let sum = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
            bytes[at..at + 8].copy_from_slice(&sum.rotate_left(1).wrapping_add(*hash).to_le_bytes());
        }
        let theirs = self.swap(side, &[with], 1, &bytes, |_, bytes| Ok(bytes))?;
        let theirs = theirs.into_iter().next().map(|(_, bytes)| bytes).unwrap_or_default();
        let differs = |(a, b): (&[u8], &[u8])| a != b;
        let first = bytes.chunks(8).zip(theirs.chunks(8)).position(differs);
        let span = first.and_then(|first| parts.get(first)).map_or(Span::None, |(_, span)| *span);
        let mut place = match span {
            Span::None => Vec::new(),
            span => span.to_string().into_bytes(),
        };
        place.resize(PLACE_BYTES, 0);
        let there = self.swap(side, &[with], 2, &place, |_, bytes| Ok(bytes))?;
        side.settle(0)?;
        let there = there.into_iter().next().map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned());
        let there = there.unwrap_or_default();
        let there = there.trim_end_matches('\0');
        let text = format!("rank {} and rank {with} do not run the same program", self.rank());
        let error = Error::source(text)
            .note("all ranks have to call the same functions in the same order, on equal data, shapes and options")
            .help(
                "look for what differs between ranks: listings of directories, clocks, random numbers without a seed",
            );
        let error = if there.is_empty() { error } else { error.note(format!("rank {with} is at {there}")) };
        Err(error.at(&span))
    }
}

/// A block that is handed on in its turn.
struct Coming {
    position: u64,
    /// Bytes that it takes of the window.
    bytes: u64,
    /// The block, if this rank has it.
    here: Option<Arc<Block>>,
}

/// Hands on the block whose turn it is, when it has come. Gives the bytes that it took of the window.
fn take_first(
    side: &Side<'_>,
    expected: &mut VecDeque<Coming>,
    take: &mut dyn FnMut(u64, Arc<Block>) -> Result<()>,
) -> Result<u64> {
    let Some(Coming { position, bytes, here }) = expected.pop_front() else { return Ok(0) };
    let block = match here {
        Some(block) => block,
        None => Arc::new(side.take(position as u32)?),
    };
    take(position, block)?;
    Ok(bytes)
}

/// All blocks of a tensor, on the ranks that they are fetched to.
pub fn bring(group: &dyn Group, handle: &TensorHandle, fetch: &Fetch<'_>) -> Result<TensorHandle> {
    let mut blocks: Vec<BlockHandle> = handle.blocks().to_vec();
    group.fetch(handle, fetch, &mut |position, block| {
        blocks[position as usize] = BlockHandle::replicated(block);
        Ok(())
    })?;
    Ok(TensorHandle::new(handle.dtype(), handle.grid().clone(), blocks))
}

/// Bytes as the elements of a block.
fn message_of(bytes: &[u8]) -> Result<Message> {
    let array = Array::new(vec![bytes.len() as u64], bytes.to_vec().into())?;
    Ok(outgoing(BlockMessage::new(Arc::new(Block::from_array(&[0], array, None)?), None, &Meter::new())?))
}

/// Room for so many bytes.
fn room_for(n: usize) -> Result<BlockBuffer> {
    BlockBuffer::new(DType::U8, BoxRegion::whole(&[n as u64]), &Meter::new())
}

/// The bytes that a block has as its elements.
fn bytes_of(block: &Block) -> Result<Vec<u8>> {
    match block.to_array()?.into_data() {
        Buffer::U8(bytes) => Ok(bytes.to_vec()),
        _ => Err(Error::internal("elements that are not bytes")),
    }
}
