//! The engine of several ranks: every rank runs its part of a schedule, and blocks move between them as the schedule says.
//!
//! There is no driver. All ranks run the same program, plan by themselves, and call [`Engine::run`] with equal schedules in the same order; a run has the same number on all of them.
//! A rank keeps what its part makes: handles of results name the rank that has a block where that is another one, and [`Ranks::bring`] gives every rank all
//! blocks of a tensor.
//!
//! Each rank has a pool of threads, which run its tasks under its ledger exactly as in [`Runtime`], and a [lane](crate::lane), which moves messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tw_block::{Block, BlockBuffer, BlockMessage, Meter};
use tw_ir::{Array, BoxRegion, Buffer, DType, Error, Result};
use tw_wire::{Message, Wire};

use crate::bindings::Bindings;
use crate::engine::{Engine, Group, report};
use crate::handle::{BlockHandle, TensorHandle};
use crate::job::{Job, Ranked};
use crate::lane::Lane;
use crate::options::{Outcome, RunOptions};
use crate::pool::Runtime;
use crate::prepared::Prepared;
use crate::transfer::{Transfers, outgoing};

/// The most bytes that rank 0 shares outside of tensors.
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
    /// A rank that still waits for this one learns that it has ended.
    fn drop(&mut self) {
        let text = format!("rank {} has ended its session", self.wire.rank());
        self.lane.leave(self.next_run(), &Error::state(text).help("all ranks have to make the same calls"));
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

    fn bring(&self, handle: &TensorHandle, meter: &Arc<Meter>) -> Result<TensorHandle> {
        self.bring_all(handle, meter).inspect_err(|error| self.lane.fail(error))
    }

    fn share(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.share_all(bytes).inspect_err(|error| self.lane.fail(error))
    }

    fn agree(&self, digest: &[u8]) -> Result<()> {
        self.agree_all(digest).inspect_err(|error| self.lane.fail(error))
    }
}

impl Ranks {
    fn bring_all(&self, handle: &TensorHandle, meter: &Arc<Meter>) -> Result<TensorHandle> {
        let run = self.next_run();
        let (me, size) = (self.wire.rank(), self.wire.size());
        let (mut sent, mut expected, mut positions) = (Vec::new(), Vec::new(), Vec::new());
        for (position, block) in handle.blocks().iter().enumerate() {
            let id = position as u32;
            match block.owner() {
                // Every rank has it: nothing is sent.
                None if block.is_replicated() => {}
                None => {
                    let message = outgoing(BlockMessage::new(block.block_for(meter)?, None, meter)?);
                    sent.extend((0..size).filter(|&to| to != me).map(|to| (to, id, message.clone())));
                }
                Some(from) => {
                    let bbox = handle.grid().box_of(position as u64);
                    expected.push((from, id, BlockBuffer::new(handle.dtype().storage(), bbox, meter)?));
                    positions.push(position);
                }
            }
        }
        let received = self.lane.exchange(run, sent, expected)?;
        let mut blocks: Vec<BlockHandle> = handle.blocks().to_vec();
        for (position, block) in positions.into_iter().zip(received) {
            blocks[position] = BlockHandle::replicated(Arc::new(block));
        }
        Ok(TensorHandle::new(handle.dtype(), handle.grid().clone(), blocks))
    }

    fn share_all(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let (me, size) = (self.wire.rank(), self.wire.size());
        let from_first = |bytes: &[u8]| -> Result<Vec<u8>> {
            let run = self.next_run();
            if me > 0 {
                let received = self.lane.exchange(run, Vec::new(), vec![(0, 0, room_for(bytes.len())?)])?;
                return received.first().map_or(Ok(Vec::new()), bytes_of);
            }
            let sent = (1..size).map(|to| Ok((to, 0, message_of(bytes)?))).collect::<Result<_>>()?;
            self.lane.exchange(run, sent, Vec::new())?;
            Ok(bytes.to_vec())
        };
        let length = from_first(&(bytes.len() as u64).to_le_bytes())?;
        let length = length.try_into().map_err(|_| Error::internal("a length of other bytes"))?;
        match u64::from_le_bytes(length) {
            _ if me == 0 => from_first(bytes),
            length if length <= MOST_SHARED => from_first(&vec![0; length as usize]),
            length => Err(Error::internal(format!("rank 0 shares {length} bytes, more than it may"))),
        }
    }

    fn agree_all(&self, digest: &[u8]) -> Result<()> {
        let run = self.next_run();
        let (me, size) = (self.wire.rank(), self.wire.size());
        // Everybody compares with rank 0, which hears of everybody.
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        let others: Vec<u32> = if me == 0 { (1..size).collect() } else { vec![0] };
        for other in others {
            sent.push((other, me, message_of(digest)?));
            expected.push((other, other, room_for(digest.len())?));
        }
        let from: Vec<u32> = expected.iter().map(|(from, _, _)| *from).collect();
        let received = self.lane.exchange(run, sent, expected)?;
        for (from, block) in from.into_iter().zip(received) {
            if bytes_of(&block)? != digest {
                let text = format!("rank {me} and rank {from} do not run the same program");
                let error = Error::source(text)
                    .note("all ranks have to call the same functions in the same order, on equal shapes and options")
                    .help("look for what differs between ranks: listings of directories, clocks, random numbers without a seed");
                return Err(error);
            }
        }
        Ok(())
    }
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
