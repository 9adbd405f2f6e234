//! Frames and transfers over MPI.
//!
//! Frames have tag 0. A ring of receives from any rank is always posted; MPI matches them in order, so the oldest is looked at first
//! and the order of each sender is kept. A transfer has the tag of its lane; its receiver has posted the receives before its sender begins, so
//! MPI holds no unexpected messages but short ones. Nothing waits inside MPI: requests are tested in turn.
//!
//! # Memory
//! A request reads or writes memory until MPI says that it is done. That memory is owned here until then, in boxes that do not move, and it is leaked
//! if the transport goes before.
#![allow(unsafe_code, reason = "MPI reads and writes memory until its requests are done")]

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

use tw_ir::{Error, Result};
use tw_wire::carrier::pieces;
use tw_wire::{Carrier, CarrierEvent, Landing, Payload, TakeMemory, WireLimits, frame_length, frame_sender};

use crate::library::MpiLibrary;

/// Receives that are posted for frames.
const RING: usize = 32;
/// Transfers of one kind that a poll looks at. Each look costs a call of MPI.
const LOOKS: usize = 16;

const FRAME_TAG: c_int = 0;

/// The transport of one rank.
pub struct MpiCarrier {
    mpi: &'static MpiLibrary,
    comm: usize,
    rank: u32,
    piece: usize,
    ring: VecDeque<(usize, Box<[u8]>)>,
    frames: VecDeque<Frame>,
    puts: VecDeque<Put>,
    takes: VecDeque<Take>,
    /// Receives that were cancelled, until MPI agrees.
    dropped: VecDeque<Take>,
    /// What happened inside a call.
    events: Vec<CarrierEvent>,
    is_broken: bool,
}

struct Frame {
    request: usize,
    to: u32,
    bytes: Vec<u8>,
}

struct Put {
    key: u64,
    to: u32,
    /// Those that are not done.
    requests: Vec<usize>,
    buffers: Vec<Payload>,
}

struct Take {
    key: u64,
    from: u32,
    requests: Vec<usize>,
    landings: Vec<Pinned>,
}

/// Memory that MPI writes to. While it is pinned, nobody else has a reference to it.
struct Pinned {
    owner: *mut dyn Landing,
    bytes: *mut u8,
    len: usize,
}

// SAFETY: it owns its landing, which is `Send`; the pointers lead into it.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(landing: Box<dyn Landing>) -> Pinned {
        let owner = Box::into_raw(landing);
        // SAFETY: the pointer comes from a box that nobody else has.
        let bytes = unsafe { &mut *owner }.bytes_mut();
        let (bytes, len) = (bytes.as_mut_ptr(), bytes.len());
        Pinned { owner, bytes, len }
    }

    /// Nothing writes to the memory any more.
    fn release(self) -> Box<dyn Landing> {
        // SAFETY: the pointer comes from `Box::into_raw`, and `self` goes without a destructor, so the box exists once.
        unsafe { Box::from_raw(self.owner) }
    }
}

impl MpiCarrier {
    /// Posts the ring of receives. The communicator is one of our own, whose errors are returned.
    pub(crate) fn new(mpi: &'static MpiLibrary, comm: usize, rank: u32, limits: &WireLimits) -> Result<MpiCarrier> {
        // Counts are `int`s.
        let piece = limits.piece.clamp(1, 1 << 30);
        let mut carrier = MpiCarrier {
            mpi,
            comm,
            rank,
            piece,
            ring: VecDeque::new(),
            frames: VecDeque::new(),
            puts: VecDeque::new(),
            takes: VecDeque::new(),
            dropped: VecDeque::new(),
            events: Vec::new(),
            is_broken: false,
        };
        for _ in 0..RING {
            let mut bytes = vec![0; WireLimits::MAX_FRAME].into_boxed_slice();
            // SAFETY: the bytes are on the heap and go into the ring, where they stay until the request is done.
            let request = unsafe {
                carrier.receive(bytes.as_mut_ptr(), bytes.len(), carrier.mpi.constants.any_source, FRAME_TAG)
            }?;
            carrier.ring.push_back((request, bytes));
        }
        Ok(carrier)
    }

    fn subject(&self, other: Option<u32>) -> String {
        match other {
            Some(other) => format!("rank {}, about rank {other}", self.rank),
            None => format!("rank {}", self.rank),
        }
    }

    /// # Safety
    /// The bytes stay as they are until the request is done.
    unsafe fn send(&self, bytes: *const u8, len: usize, to: u32, tag: c_int) -> Result<usize> {
        let mut request = 0;
        let byte = self.mpi.constants.byte;
        // SAFETY: the caller vouches for the bytes; the other arguments are as MPI asks. `len` is at most 2^30.
        let code = unsafe {
            (self.mpi.functions.isend)(
                bytes.cast::<c_void>(),
                len as c_int,
                byte,
                to as c_int,
                tag,
                self.comm,
                &mut request,
            )
        };
        self.mpi.check(code, "MPI_Isend", || self.subject(Some(to)))?;
        Ok(request)
    }

    /// # Safety
    /// The bytes stay where they are, and nobody else uses them, until the request is done.
    unsafe fn receive(&self, bytes: *mut u8, len: usize, from: c_int, tag: c_int) -> Result<usize> {
        let mut request = 0;
        let byte = self.mpi.constants.byte;
        // SAFETY: as in `send`.
        let code = unsafe {
            (self.mpi.functions.irecv)(bytes.cast::<c_void>(), len as c_int, byte, from, tag, self.comm, &mut request)
        };
        self.mpi.check(code, "MPI_Irecv", || self.subject(None))?;
        Ok(request)
    }

    /// True once a request is done.
    fn is_done(&self, request: &mut usize, other: Option<u32>) -> Result<bool> {
        let mut flag = 0;
        // SAFETY: the request was made by this library and is not done; the status is ignored.
        let code = unsafe { (self.mpi.functions.test)(request, &mut flag, self.mpi.constants.ignored_status) };
        self.mpi.check(code, "MPI_Test", || self.subject(other))?;
        Ok(flag != 0)
    }

    /// Looks at requests from the last one on, and removes those that are done. True if all are.
    fn are_done(&self, requests: &mut Vec<usize>, other: u32) -> Result<bool> {
        while let Some(request) = requests.last_mut() {
            if !self.is_done(request, Some(other))? {
                return Ok(false);
            }
            requests.pop();
        }
        Ok(true)
    }

    fn lose(&mut self, rank: Option<u32>, error: Error) {
        if rank.is_none() {
            self.is_broken = true;
        }
        if let Some(rank) = rank {
            // Nobody knows when MPI is through with them.
            std::mem::forget(drain_if(&mut self.frames, |frame| frame.to == rank));
            std::mem::forget(drain_if(&mut self.puts, |put| put.to == rank));
            std::mem::forget(drain_if(&mut self.takes, |take| take.from == rank));
            std::mem::forget(drain_if(&mut self.dropped, |take| take.from == rank));
        }
        self.events.push(CarrierEvent::Lost { rank, error });
    }

    fn try_put(&self, to: u32, lane: u32, buffers: &[Payload], requests: &mut Vec<usize>) -> Result<()> {
        for buffer in buffers {
            let bytes = buffer.bytes();
            for piece in pieces(bytes.len(), self.piece) {
                let part = &bytes[piece];
                // SAFETY: the buffers are kept until all requests are done, and shared bytes do not change.
                requests.push(unsafe { self.send(part.as_ptr(), part.len(), to, tag_of(lane)) }?);
            }
        }
        Ok(())
    }

    fn try_take(&self, from: u32, lane: u32, landings: &[Pinned], requests: &mut Vec<usize>) -> Result<()> {
        for landing in landings {
            for piece in pieces(landing.len, self.piece) {
                // SAFETY: the piece lies inside the pinned memory, which is kept until all requests are done or for ever.
                let part = unsafe { landing.bytes.add(piece.start) };
                // SAFETY: as above.
                requests.push(unsafe { self.receive(part, piece.len(), from as c_int, tag_of(lane)) }?);
            }
        }
        Ok(())
    }

    /// Frames that came. None is left out, so that the order of each sender is kept.
    fn progress_ring(&mut self, events: &mut Vec<CarrierEvent>) -> Result<()> {
        for _ in 0..4 * RING {
            let Some((mut request, bytes)) = self.ring.pop_front() else { return Ok(()) };
            let done = self.is_done(&mut request, None);
            if !matches!(done, Ok(true)) {
                self.ring.push_front((request, bytes));
                return done.map(|_| ());
            }
            let length = frame_length(&bytes).min(bytes.len());
            events.push(CarrierEvent::Frame { from: frame_sender(&bytes), bytes: bytes[..length].to_vec() });
            let mut bytes = bytes;
            // SAFETY: as in `new`.
            let request =
                unsafe { self.receive(bytes.as_mut_ptr(), bytes.len(), self.mpi.constants.any_source, FRAME_TAG) }?;
            self.ring.push_back((request, bytes));
        }
        Ok(())
    }

    fn progress_frames(&mut self) {
        // In order: if the oldest is not done, others rarely are.
        while let Some(mut frame) = self.frames.pop_front() {
            match self.is_done(&mut frame.request, Some(frame.to)) {
                Ok(true) => {}
                Ok(false) => return self.frames.push_front(frame),
                Err(error) => {
                    let to = frame.to;
                    std::mem::forget(frame.bytes);
                    self.lose(Some(to), error);
                }
            }
        }
    }

    fn progress_puts(&mut self, events: &mut Vec<CarrierEvent>) {
        for _ in 0..self.puts.len().min(LOOKS) {
            let Some(mut put) = self.puts.pop_front() else { return };
            match self.are_done(&mut put.requests, put.to) {
                Ok(true) => events.push(CarrierEvent::Put { key: put.key }),
                Ok(false) => self.puts.push_back(put),
                Err(error) => {
                    let to = put.to;
                    std::mem::forget(put.buffers);
                    self.lose(Some(to), error);
                }
            }
        }
    }

    fn progress_takes(&mut self, events: &mut Vec<CarrierEvent>) {
        for _ in 0..self.takes.len().min(LOOKS) {
            let Some(mut take) = self.takes.pop_front() else { return };
            match self.are_done(&mut take.requests, take.from) {
                Ok(true) => {
                    let buffers = take.landings.into_iter().map(|landing| landing.release().finish()).collect();
                    events.push(CarrierEvent::Taken { key: take.key, buffers });
                }
                Ok(false) => self.takes.push_back(take),
                // Pinned memory that goes without being released stays allocated.
                Err(error) => self.lose(Some(take.from), error),
            }
        }
        for _ in 0..self.dropped.len().min(LOOKS) {
            let Some(mut take) = self.dropped.pop_front() else { return };
            match self.are_done(&mut take.requests, take.from) {
                Ok(true) => take.landings.into_iter().for_each(|landing| drop(landing.release())),
                Ok(false) => self.dropped.push_back(take),
                Err(error) => self.lose(Some(take.from), error),
            }
        }
    }

    /// True if no request but those of the ring is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.frames.is_empty() && self.puts.is_empty() && self.takes.is_empty() && self.dropped.is_empty()
    }

    /// Ends the ring. Every rank is idle, and has said so.
    pub(crate) fn close(&mut self) -> Result<()> {
        while let Some((mut request, bytes)) = self.ring.pop_front() {
            // SAFETY: the request is one of this library that is not done.
            let code = unsafe { (self.mpi.functions.cancel)(&mut request) };
            let cancelled = self.mpi.check(code, "MPI_Cancel", || self.subject(None));
            // A cancelled receive is done as soon as MPI is asked, or has received a late frame.
            let mut done = cancelled.map(|()| false);
            while let Ok(false) = done {
                done = self.is_done(&mut request, None);
            }
            if let Err(error) = done {
                std::mem::forget(bytes);
                return Err(error);
            }
        }
        let mut comm = std::mem::replace(&mut self.comm, self.mpi.constants.null_comm);
        // SAFETY: the communicator is our own, and nothing uses it any more.
        let code = unsafe { (self.mpi.functions.comm_free)(&mut comm) };
        self.mpi.check(code, "MPI_Comm_free", || self.subject(None))
    }

    /// The library.
    pub(crate) fn library(&self) -> &'static MpiLibrary {
        self.mpi
    }
}

fn tag_of(lane: u32) -> c_int {
    // Lanes are fewer than the tags that the library has.
    lane as c_int + 1
}

/// Takes out what satisfies a condition.
fn drain_if<T>(from: &mut VecDeque<T>, mut condition: impl FnMut(&T) -> bool) -> Vec<T> {
    let (out, kept): (Vec<T>, VecDeque<T>) = {
        let mut out = Vec::new();
        let mut kept = VecDeque::new();
        for item in from.drain(..) {
            if condition(&item) { out.push(item) } else { kept.push_back(item) }
        }
        (out, kept)
    };
    *from = kept;
    out
}

impl Carrier for MpiCarrier {
    fn frame(&mut self, to: u32, bytes: Vec<u8>) {
        if self.is_broken || self.comm == self.mpi.constants.null_comm {
            return;
        }
        // SAFETY: the bytes are on the heap, do not change, and are kept until the request is done.
        let sent = unsafe { self.send(bytes.as_ptr(), bytes.len(), to, FRAME_TAG) };
        let done = sent.and_then(|mut request| {
            let done = self.is_done(&mut request, Some(to));
            done.map(|is_done| (request, is_done))
        });
        match done {
            // Most are short, and MPI has copied them.
            Ok((_, true)) => {}
            Ok((request, false)) => self.frames.push_back(Frame { request, to, bytes }),
            Err(error) => {
                std::mem::forget(bytes);
                self.lose(Some(to), error);
            }
        }
    }

    fn put(&mut self, to: u32, lane: u32, buffers: Vec<Payload>, key: u64) {
        let mut requests = Vec::new();
        match self.try_put(to, lane, &buffers, &mut requests) {
            Ok(()) => self.puts.push_back(Put { key, to, requests, buffers }),
            Err(error) => {
                std::mem::forget(buffers);
                self.lose(Some(to), error);
            }
        }
    }

    fn take(&mut self, from: u32, lane: u32, memory: TakeMemory, key: u64) {
        let landings: Vec<Pinned> = match memory {
            TakeMemory::Given(landings) => landings.into_iter().map(Pinned::new).collect(),
            TakeMemory::New(lengths) => {
                lengths.into_iter().map(|length| Pinned::new(Box::new(vec![0u8; length as usize]))).collect()
            }
        };
        let mut requests = Vec::new();
        match self.try_take(from, lane, &landings, &mut requests) {
            Ok(()) => self.takes.push_back(Take { key, from, requests, landings }),
            Err(error) => self.lose(Some(from), error),
        }
    }

    fn drop_take(&mut self, key: u64) {
        let mut found = drain_if(&mut self.takes, |take| take.key == key);
        let Some(mut take) = found.pop() else { return };
        for request in &mut take.requests {
            // SAFETY: the request is one of this library that is not done.
            let code = unsafe { (self.mpi.functions.cancel)(request) };
            if let Err(error) = self.mpi.check(code, "MPI_Cancel", || self.subject(Some(take.from))) {
                return self.lose(Some(take.from), error);
            }
        }
        self.dropped.push_back(take);
    }

    fn progress(&mut self, events: &mut Vec<CarrierEvent>) {
        if !self.is_broken && self.comm != self.mpi.constants.null_comm {
            if let Err(error) = self.progress_ring(events) {
                self.lose(None, error);
            }
            self.progress_frames();
            self.progress_puts(events);
            self.progress_takes(events);
        }
        events.append(&mut self.events);
    }
}

impl Drop for MpiCarrier {
    fn drop(&mut self) {
        // MPI may still use this memory, and nobody will ask whether it is done. Pinned memory has no destructor.
        std::mem::forget(std::mem::take(&mut self.ring));
        std::mem::forget(std::mem::take(&mut self.frames));
        std::mem::forget(std::mem::take(&mut self.puts));
    }
}
