//! Ranks as threads of one process.
//!
//! Every rank has one inbox, whatever the number of ranks; a rank that talks to few others knows only those. Buffers are shared with the
//! receiver, not copied, unless it gives [`Landing`](crate::Landing)s.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tw_ir::Error;

use crate::carrier::{Carrier, CarrierEvent, TakeMemory, Waiter};
use crate::endpoint::Endpoint;
use crate::message::Payload;
use crate::wire::WireLimits;

/// A rank of this process.
pub type ChannelWire = Endpoint<ChannelCarrier>;

/// The wires of `size` ranks of this process, by rank.
pub fn channels(size: u32, limits: WireLimits) -> Vec<ChannelWire> {
    let inboxes: Arc<[Inbox]> = (0..size).map(|_| Inbox::default()).collect();
    let rank = |rank| {
        let waiter = Box::new(ChannelWaiter { inboxes: Arc::clone(&inboxes), rank });
        let carrier = ChannelCarrier {
            inboxes: Arc::clone(&inboxes),
            rank,
            takes: BTreeMap::new(),
            events: Vec::new(),
            parcels: VecDeque::new(),
        };
        Endpoint::new(rank, size, limits, carrier, waiter)
    };
    (0..size).map(rank).collect()
}

#[derive(Default)]
struct Inbox {
    parcels: Mutex<Parcels>,
    changed: Condvar,
    /// The rank has ended; nobody will read. A rank ends when nobody needs it any more, so this is no error: it is what happens to windows that
    /// are given back late.
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Parcels {
    waiting: VecDeque<Parcel>,
    is_woken: bool,
}

enum Parcel {
    Frame { from: u32, bytes: Vec<u8> },
    Buffers { from: u32, lane: u32, buffers: Vec<Payload> },
    Gone { from: u32 },
}

impl Inbox {
    fn parcels(&self) -> MutexGuard<'_, Parcels> {
        self.parcels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, parcel: Parcel) {
        if !self.is_closed.load(Ordering::Acquire) {
            self.parcels().waiting.push_back(parcel);
            self.changed.notify_one();
        }
    }
}

/// The transport between threads.
pub struct ChannelCarrier {
    inboxes: Arc<[Inbox]>,
    rank: u32,
    /// What is expected, by sender and lane.
    takes: BTreeMap<(u32, u32), (u64, TakeMemory)>,
    /// Happened inside a call.
    events: Vec<CarrierEvent>,
    /// Empty between calls; swapped with what waits in the inbox.
    parcels: VecDeque<Parcel>,
}

impl Carrier for ChannelCarrier {
    fn frame(&mut self, to: u32, bytes: Vec<u8>) {
        self.inboxes[to as usize].put(Parcel::Frame { from: self.rank, bytes });
    }

    fn put(&mut self, to: u32, lane: u32, buffers: Vec<Payload>, key: u64) {
        self.inboxes[to as usize].put(Parcel::Buffers { from: self.rank, lane, buffers });
        self.events.push(CarrierEvent::Put { key });
    }

    fn take(&mut self, from: u32, lane: u32, memory: TakeMemory, key: u64) {
        self.takes.insert((from, lane), (key, memory));
    }

    fn drop_take(&mut self, key: u64) {
        self.takes.retain(|_, (found, _)| *found != key);
    }

    fn progress(&mut self, events: &mut Vec<CarrierEvent>) {
        events.append(&mut self.events);
        std::mem::swap(&mut self.inboxes[self.rank as usize].parcels().waiting, &mut self.parcels);
        for parcel in self.parcels.drain(..) {
            match parcel {
                Parcel::Frame { from, bytes } => events.push(CarrierEvent::Frame { from, bytes }),
                Parcel::Gone { from } => {
                    self.takes.retain(|(sender, _), _| *sender != from);
                    let error = Error::resource(format!("rank {from} panicked"));
                    events.push(CarrierEvent::Lost { rank: Some(from), error });
                }
                Parcel::Buffers { from, lane, buffers } => {
                    if let Some((key, memory)) = self.takes.remove(&(from, lane)) {
                        events.push(CarrierEvent::Taken { key, buffers: land(memory, buffers) });
                    }
                }
            }
        }
    }
}

/// Buffers in the memory that was given for them, if any was.
pub(crate) fn land(memory: TakeMemory, buffers: Vec<Payload>) -> Vec<Payload> {
    let TakeMemory::Given(landings) = memory else { return buffers };
    let copy = |(mut landing, buffer): (Box<dyn crate::Landing>, Payload)| {
        let (into, from) = (landing.bytes_mut(), buffer.bytes());
        let n = into.len().min(from.len());
        into[..n].copy_from_slice(&from[..n]);
        landing.finish()
    };
    landings.into_iter().zip(buffers).map(copy).collect()
}

impl Drop for ChannelCarrier {
    fn drop(&mut self) {
        let own = &self.inboxes[self.rank as usize];
        own.is_closed.store(true, Ordering::Release);
        own.parcels().waiting.clear();
        // Others may wait for this rank for ever.
        if std::thread::panicking() {
            for (to, inbox) in self.inboxes.iter().enumerate() {
                if to as u32 != self.rank {
                    inbox.put(Parcel::Gone { from: self.rank });
                }
            }
        }
    }
}

struct ChannelWaiter {
    inboxes: Arc<[Inbox]>,
    rank: u32,
}

impl Waiter for ChannelWaiter {
    fn wait(&self, limit: Duration) {
        let inbox = &self.inboxes[self.rank as usize];
        let is_idle = |parcels: &mut Parcels| parcels.waiting.is_empty() && !parcels.is_woken;
        let parcels = inbox.changed.wait_timeout_while(inbox.parcels(), limit, is_idle);
        parcels.unwrap_or_else(PoisonError::into_inner).0.is_woken = false;
    }

    fn wake(&self) {
        let inbox = &self.inboxes[self.rank as usize];
        inbox.parcels().is_woken = true;
        inbox.changed.notify_one();
    }
}
