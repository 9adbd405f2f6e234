//! The protocol: one rank's [`Wire`] over any transport.
//!
//! * A message that fits into a frame goes at once, if the window to its receiver has room for it. The receiver gives the window back when a receive takes the
//!   message.
//! * Any other message is offered: a frame says its header and lengths, and the sender keeps the buffers. When a receive matches, the
//!   receiver posts a transfer on a free lane and grants it; then the sender transfers the buffers.
//! * A receiver that cancelled the run refuses the offer. A sender that cancelled the run answers a grant by withdrawing it.
//!
//! Frames between two ranks keep their order, so messages of one tag match the receives of that tag in order.
//!
//! Rejected: posting transfers before the message is known. It would save one round trip for long messages, but the receiver would
//! have to hold memory for the largest possible message before the sender has computed it, and a cancelled run would leave transfers
//! in the MPI library that nobody can take back. Rejected, too: synchronous sends of MPI instead of offers, for the same reason.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tw_ir::{Error, Result};

use crate::carrier::{Carrier, CarrierEvent, TakeMemory, Waiter};
use crate::frame::{self, Content, Frame};
use crate::message::{Landing, Message, Payload};
use crate::runs::RunSet;
use crate::wire::{
    Completion, Control, MAX_BUFFERS, MAX_CONTROL, MAX_HEADER, Room, Tag, Ticket, Unfinished, Wire, WireLimits,
    WireMemory,
};

/// One rank over a transport.
pub struct Endpoint<C> {
    rank: u32,
    size: u32,
    state: Mutex<State<C>>,
    waiter: Box<dyn Waiter>,
}

impl<C: Carrier> Endpoint<C> {
    /// Rank `rank` of `size` over a transport.
    pub fn new(rank: u32, size: u32, limits: WireLimits, carrier: C, waiter: Box<dyn Waiter>) -> Endpoint<C> {
        let state = State {
            carrier,
            rank,
            size,
            limits,
            last_ticket: 0,
            peers: BTreeMap::new(),
            posted: BTreeMap::new(),
            arrived: BTreeMap::new(),
            asked: BTreeMap::new(),
            ungranted: BTreeMap::new(),
            offers: BTreeMap::new(),
            puts: BTreeMap::new(),
            takes: BTreeMap::new(),
            lanes: BTreeMap::new(),
            cancelled: RunSet::default(),
            broken: None,
            ready: Vec::new(),
            is_behind: false,
            events: Vec::new(),
        };
        Endpoint { rank, size, state: Mutex::new(state), waiter }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the thread that polls if it has something to hear.
    fn call<R>(&self, change: impl FnOnce(&mut State<C>) -> R) -> R {
        let mut state = self.state();
        let result = change(&mut state);
        let has_news = !state.ready.is_empty();
        drop(state);
        if has_news {
            self.waiter.wake();
        }
        result
    }

    /// Runs code on the transport, under the lock of the wire.
    pub fn with_carrier<R>(&self, code: impl FnOnce(&mut C) -> R) -> R {
        code(&mut self.state().carrier)
    }
}

impl<C: Carrier> Wire for Endpoint<C> {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: u32, tag: Tag, message: Message) -> Result<Ticket> {
        self.call(|state| state.send(to, tag, message))
    }

    fn receive(&self, from: u32, tag: Tag, room: Room) -> Result<Ticket> {
        self.call(|state| state.receive(from, tag, room))
    }

    fn accept(&self, ticket: Ticket, landings: Vec<Box<dyn Landing>>) -> Result<()> {
        self.call(|state| state.accept(ticket, landings))
    }

    fn control(&self, to: u32, control: Control) -> Result<()> {
        self.state().control(to, control)
    }

    fn poll(&self, completions: &mut Vec<Completion>) {
        let mut state = self.state();
        let has_progress = state.poll();
        completions.append(&mut state.ready);
        drop(state);
        if has_progress {
            self.waiter.progressed();
        }
    }

    fn wait(&self, limit: Duration) {
        let state = self.state();
        let is_idle = state.ready.is_empty() && !state.is_behind;
        drop(state);
        if is_idle {
            self.waiter.wait(limit);
        }
    }

    fn wake(&self) {
        self.waiter.wake();
    }

    fn cancel(&self, run: u64) -> Unfinished {
        self.state().cancel(run)
    }

    fn give_up(&self, rank: u32, error: Error) {
        self.call(|state| state.lose(Some(rank), error));
    }

    fn memory(&self) -> WireMemory {
        self.state().memory()
    }
}

/// How often one poll asks the transport.
const MAX_ROUNDS: u32 = 4;

/// The messages of one tag between two ranks. Ordered, so that nothing depends on hashes.
type Key = (u32, Tag);

struct State<C> {
    carrier: C,
    rank: u32,
    size: u32,
    limits: WireLimits,
    last_ticket: u64,
    /// Only ranks that this one has talked to.
    peers: BTreeMap<u32, Peer>,
    /// Receives without a message.
    posted: BTreeMap<Key, VecDeque<(Ticket, Room)>>,
    /// Messages without a receive.
    arrived: BTreeMap<Key, VecDeque<Arrived>>,
    /// Messages whose receiver has not provided memory yet.
    asked: BTreeMap<Ticket, (Key, Arrived)>,
    /// Messages that wait for a lane, by sender.
    ungranted: BTreeMap<u32, VecDeque<Granted>>,
    /// Sends that wait for a grant, by ticket, which is the number of the offer.
    offers: BTreeMap<u64, (Key, Vec<Payload>)>,
    /// Sends under way.
    puts: BTreeMap<u64, Transit>,
    /// Receives under way.
    takes: BTreeMap<u64, Transit>,
    /// The take on each lane from each rank.
    lanes: BTreeMap<(u32, u32), u64>,
    cancelled: RunSet,
    /// Set once no rank can be reached any more.
    broken: Option<Error>,
    ready: Vec<Completion>,
    /// The last poll left something undone.
    is_behind: bool,
    /// Empty between polls; kept for its memory.
    events: Vec<CarrierEvent>,
}

struct Peer {
    /// Bytes that this rank may still send it ahead of its receives.
    window: u64,
    /// Bytes of its window that this rank has not given back yet.
    owed: u64,
    next_lane: u32,
    lost: Option<Error>,
}

/// A message that came.
struct Arrived {
    header: Vec<u8>,
    lengths: Vec<u64>,
    body: Body,
}

enum Body {
    /// All bytes are here, and this much of the window is taken.
    Here { bytes: Vec<u8>, window: u64 },
    /// The sender keeps them under this number.
    Offered(u64),
}

impl Arrived {
    fn total(&self) -> u64 {
        // Frames with a sum that is no u64 are refused.
        self.lengths.iter().sum()
    }
}

/// An offer whose receiver is ready.
struct Granted {
    ticket: Ticket,
    key: Key,
    offer: u64,
    header: Vec<u8>,
    lengths: Vec<u64>,
    landings: Option<Vec<Box<dyn Landing>>>,
}

/// A transfer.
struct Transit {
    key: Key,
    lane: u32,
    header: Vec<u8>,
    bytes: u64,
    /// Nobody hears of its end.
    is_cancelled: bool,
}

impl<C: Carrier> State<C> {
    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    fn peer(&mut self, rank: u32) -> &mut Peer {
        let window = self.limits.window;
        self.peers.entry(rank).or_insert(Peer { window, owed: 0, next_lane: 0, lost: None })
    }

    fn check_rank(&self, rank: u32) -> Result<()> {
        if rank >= self.size || rank == self.rank {
            return Err(Error::internal(format!(
                "rank {} of {} exchanges messages with rank {rank}",
                self.rank, self.size
            )));
        }
        let lost = self.peers.get(&rank).and_then(|peer| peer.lost.as_ref());
        match self.broken.as_ref().or(lost) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    fn check(&self, rank: u32, tag: Tag) -> Result<()> {
        self.check_rank(rank)?;
        if self.cancelled.contains(tag.run) { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Sends a frame, and what is owed with it.
    fn transmit(&mut self, to: u32, content: Content, parts: &[&[u8]]) -> u64 {
        let from = self.rank;
        let peer = self.peer(to);
        if peer.lost.is_some() {
            return 0;
        }
        let returned = u32::try_from(peer.owed).unwrap_or(u32::MAX);
        peer.owed -= u64::from(returned);
        let mut bytes = Vec::new();
        frame::encode(&Frame { from, returned, content }, parts, &mut bytes);
        let length = bytes.len() as u64;
        self.carrier.frame(to, bytes);
        length
    }

    fn send(&mut self, to: u32, tag: Tag, message: Message) -> Result<Ticket> {
        self.check(to, tag)?;
        let Message { header, buffers } = message;
        if header.len() > MAX_HEADER || buffers.len() > MAX_BUFFERS {
            return Err(Error::internal(format!(
                "a message with {} buffers and a header of {} bytes",
                buffers.len(),
                header.len()
            )));
        }
        let lengths: Vec<u64> = buffers.iter().map(|buffer| buffer.len() as u64).collect();
        let total = lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(length));
        let total = total.ok_or_else(|| Error::internal("a message of more than 2^64 bytes"))?;
        let ticket = self.ticket();
        let length = frame::inline_len(header.len(), buffers.len(), total);
        if length <= self.limits.frame.min(WireLimits::MAX_FRAME) as u64 && length <= self.peer(to).window {
            let parts: Vec<&[u8]> = buffers.iter().map(Payload::bytes).collect();
            let content = Content::Inline { run: tag.run, id: tag.id, header, lengths, bytes: Vec::new() };
            let sent = self.transmit(to, content, &parts);
            self.peer(to).window -= sent.min(length);
            self.ready.push(Completion::Sent { ticket, to, tag });
        } else {
            self.offers.insert(ticket.0, ((to, tag), buffers));
            self.transmit(to, Content::Offer { offer: ticket.0, run: tag.run, id: tag.id, header, lengths }, &[]);
        }
        Ok(ticket)
    }

    fn receive(&mut self, from: u32, tag: Tag, room: Room) -> Result<Ticket> {
        self.check(from, tag)?;
        let ticket = self.ticket();
        let key = (from, tag);
        match take_front(&mut self.arrived, key) {
            Some(arrived) => self.fill(ticket, key, room, arrived),
            None => self.posted.entry(key).or_default().push_back((ticket, room)),
        }
        Ok(ticket)
    }

    fn accept(&mut self, ticket: Ticket, mut landings: Vec<Box<dyn Landing>>) -> Result<()> {
        let Some((_, arrived)) = self.asked.get(&ticket) else {
            return Err(Error::internal("a message is accepted that was not offered, or is not any more"));
        };
        if !lengths_match(&arrived.lengths, &mut landings) {
            return Err(Error::internal("the memory for a message has other lengths than were offered"));
        }
        if let Some((key, arrived)) = self.asked.remove(&ticket) {
            self.deliver(ticket, key, arrived, Some(landings));
        }
        Ok(())
    }

    fn control(&mut self, to: u32, control: Control) -> Result<()> {
        self.check_rank(to)?;
        let Control { run, kind, content } = control;
        if content.len() > MAX_CONTROL {
            return Err(Error::internal(format!("a control message of {} bytes", content.len())));
        }
        self.transmit(to, Content::Control { run, kind, content }, &[]);
        Ok(())
    }

    /// A receive and its message have met.
    fn fill(&mut self, ticket: Ticket, key: Key, room: Room, arrived: Arrived) {
        let (from, tag) = key;
        let total = arrived.total();
        let problem = match room {
            Room::Bytes(most) if total <= most => return self.deliver(ticket, key, arrived, None),
            Room::Ask(most) if total <= most => {
                let (header, lengths) = (arrived.header.clone(), arrived.lengths.clone());
                self.asked.insert(ticket, (key, arrived));
                self.ready.push(Completion::Offered { ticket, from, tag, header, lengths });
                return;
            }
            Room::Into(mut landings) => {
                if lengths_match(&arrived.lengths, &mut landings) {
                    return self.deliver(ticket, key, arrived, Some(landings));
                }
                let expected: Vec<usize> = landings.iter_mut().map(|landing| landing.bytes_mut().len()).collect();
                format!("sent buffers of {:?} bytes, but {expected:?} were expected", arrived.lengths)
            }
            Room::Bytes(most) | Room::Ask(most) => format!("sent {total} bytes, but at most {most} were expected"),
        };
        self.discard(from, arrived);
        let error =
            Error::internal(format!("rank {from} {problem}")).note(format!("{tag}, received by rank {}", self.rank));
        self.ready.push(Completion::Failed { ticket, from, tag, error });
    }

    fn deliver(&mut self, ticket: Ticket, key: Key, arrived: Arrived, landings: Option<Vec<Box<dyn Landing>>>) {
        let (from, tag) = key;
        let Arrived { header, lengths, body } = arrived;
        match body {
            Body::Here { bytes, window } => {
                self.give_back(from, window);
                let buffers = unpack(bytes, &lengths, landings);
                self.ready.push(Completion::Received { ticket, from, tag, message: Message { header, buffers } });
            }
            Body::Offered(offer) => {
                let waiting = Granted { ticket, key, offer, header, lengths, landings };
                self.ungranted.entry(from).or_default().push_back(waiting);
                self.grant(from);
            }
        }
    }

    /// Grants what waits for lanes from a rank. Lanes become free by themselves: a transfer that was granted needs nothing else.
    fn grant(&mut self, from: u32) {
        while let Some(lane) = self.ungranted.contains_key(&from).then(|| self.free_lane(from)).flatten() {
            let Some(granted) = take_front(&mut self.ungranted, from) else { return };
            let Granted { ticket, key, offer, header, lengths, landings } = granted;
            self.lanes.insert((from, lane), ticket.0);
            let bytes = lengths.iter().sum();
            self.takes.insert(ticket.0, Transit { key, lane, header, bytes, is_cancelled: false });
            let memory = landings.map_or(TakeMemory::New(lengths), TakeMemory::Given);
            self.carrier.take(from, lane, memory, ticket.0);
            self.transmit(from, Content::Grant { offer, lane }, &[]);
        }
    }

    /// A lane from this rank that no transfer uses.
    fn free_lane(&mut self, from: u32) -> Option<u32> {
        let n_lanes = self.limits.lanes.max(1);
        let first = self.peer(from).next_lane;
        // Lanes are used in turn, so the first one tried is nearly always free.
        let lane = (first..n_lanes).chain(0..first).find(|&lane| !self.lanes.contains_key(&(from, lane)))?;
        self.peer(from).next_lane = (lane + 1) % n_lanes;
        Some(lane)
    }

    /// Nobody wants this message.
    fn discard(&mut self, from: u32, arrived: Arrived) {
        match arrived.body {
            Body::Here { window, .. } => self.give_back(from, window),
            Body::Offered(offer) => {
                self.transmit(from, Content::Refuse { offer }, &[]);
            }
        }
    }

    fn give_back(&mut self, from: u32, window: u64) {
        let half = self.limits.window / 2;
        let peer = self.peer(from);
        peer.owed += window;
        if peer.owed >= half {
            self.transmit(from, Content::Credit, &[]);
        }
    }

    fn poll(&mut self) -> bool {
        let mut events = std::mem::take(&mut self.events);
        let mut n_rounds = 0;
        // What is answered may be done at once, so the transport is asked again; not for ever, since others may never stop sending.
        self.is_behind = loop {
            self.carrier.progress(&mut events);
            if events.is_empty() {
                break false;
            }
            events.drain(..).for_each(|event| self.event(event));
            n_rounds += 1;
            if n_rounds == MAX_ROUNDS {
                break true;
            }
        };
        self.events = events;
        n_rounds > 0
    }

    fn event(&mut self, event: CarrierEvent) {
        match event {
            CarrierEvent::Frame { from, bytes } => self.frame(from, &bytes),
            CarrierEvent::Put { key } => {
                if let Some(Transit { key: (to, tag), is_cancelled: false, .. }) = self.puts.remove(&key) {
                    self.ready.push(Completion::Sent { ticket: Ticket(key), to, tag });
                }
            }
            CarrierEvent::Taken { key, buffers } => self.taken(key, buffers),
            CarrierEvent::Lost { rank, error } => self.lose(rank, error),
        }
    }

    fn taken(&mut self, key: u64, buffers: Vec<Payload>) {
        let Some(transit) = self.takes.remove(&key) else { return };
        let (from, tag) = transit.key;
        self.lanes.remove(&(from, transit.lane));
        if !transit.is_cancelled {
            let message = Message { header: transit.header, buffers };
            self.ready.push(Completion::Received { ticket: Ticket(key), from, tag, message });
        }
        self.grant(from);
    }

    fn frame(&mut self, from: u32, bytes: &[u8]) {
        if self.check_rank(from).is_err() {
            return; // What a lost rank said before is void.
        }
        let Frame { returned, content, .. } = match frame::decode(bytes) {
            Ok(frame) if frame.from == from => frame,
            Ok(_) => return self.lose(Some(from), Error::internal("a frame names another rank than its sender")),
            Err(error) => return self.lose(Some(from), error),
        };
        let most = self.limits.window;
        let peer = self.peer(from);
        peer.window = most.min(peer.window + u64::from(returned));
        match content {
            Content::Inline { run, id, header, lengths, bytes } => {
                let window = frame::inline_len(header.len(), lengths.len(), bytes.len() as u64);
                self.arrive((from, Tag { run, id }), Arrived { header, lengths, body: Body::Here { bytes, window } });
            }
            Content::Offer { offer, run, id, header, lengths } => {
                self.arrive((from, Tag { run, id }), Arrived { header, lengths, body: Body::Offered(offer) });
            }
            Content::Grant { offer, lane } => match self.offers.remove(&offer) {
                Some((key, buffers)) if key.0 == from => {
                    let bytes = buffers.iter().map(|buffer| buffer.len() as u64).sum();
                    self.puts.insert(offer, Transit { key, lane, header: Vec::new(), bytes, is_cancelled: false });
                    self.carrier.put(from, lane, buffers, offer);
                }
                other => {
                    // An offer to another rank stays as it is.
                    self.offers.extend(other.map(|kept| (offer, kept)));
                    self.transmit(from, Content::Withdraw { lane }, &[]);
                }
            },
            Content::Refuse { offer } => {
                if self.offers.get(&offer).is_some_and(|(key, _)| key.0 == from)
                    && let Some(((to, tag), _)) = self.offers.remove(&offer)
                {
                    self.ready.push(Completion::Sent { ticket: Ticket(offer), to, tag });
                }
            }
            Content::Withdraw { lane } => {
                let Some(key) = self.lanes.remove(&(from, lane)) else { return };
                self.carrier.drop_take(key);
                if let Some(Transit { key: (from, tag), is_cancelled: false, .. }) = self.takes.remove(&key) {
                    let error = Error::cancelled().note(format!("rank {from} ended run {}", tag.run));
                    self.ready.push(Completion::Failed { ticket: Ticket(key), from, tag, error });
                }
                self.grant(from);
            }
            Content::Control { run, kind, content } => {
                self.ready.push(Completion::Control { from, control: Control { run, kind, content } });
            }
            Content::Credit => {}
        }
    }

    fn arrive(&mut self, key: Key, arrived: Arrived) {
        if self.cancelled.contains(key.1.run) {
            return self.discard(key.0, arrived);
        }
        match take_front(&mut self.posted, key) {
            Some((ticket, room)) => self.fill(ticket, key, room, arrived),
            None => self.arrived.entry(key).or_default().push_back(arrived),
        }
    }

    fn lose(&mut self, rank: Option<u32>, error: Error) {
        match rank {
            Some(rank) => {
                let peer = self.peer(rank);
                if peer.lost.is_some() {
                    return;
                }
                peer.lost = Some(error.clone());
            }
            None if self.broken.is_some() => return,
            None => self.broken = Some(error.clone()),
        }
        let is_lost = |key: &Key| rank.is_none_or(|rank| key.0 == rank);
        self.posted.retain(|key, _| !is_lost(key));
        self.arrived.retain(|key, _| !is_lost(key));
        self.asked.retain(|_, (key, _)| !is_lost(key));
        self.ungranted.retain(|from, _| rank.is_some_and(|rank| *from != rank));
        self.offers.retain(|_, (key, _)| !is_lost(key));
        self.puts.retain(|_, transit| !is_lost(&transit.key));
        self.takes.retain(|_, transit| !is_lost(&transit.key));
        self.lanes.retain(|&(from, _), _| rank.is_some_and(|rank| from != rank));
        self.ready.push(Completion::Lost { rank, error });
    }

    fn cancel(&mut self, run: u64) -> Unfinished {
        self.cancelled.insert(run);
        let mut unfinished = Unfinished::default();
        self.posted.retain(|(_, tag), queue| {
            unfinished.receives += if tag.run == run { queue.len() } else { 0 };
            tag.run != run
        });
        let keys: Vec<Key> = self.arrived.keys().filter(|(_, tag)| tag.run == run).copied().collect();
        for key in keys {
            for arrived in self.arrived.remove(&key).unwrap_or_default() {
                unfinished.messages += 1;
                self.discard(key.0, arrived);
            }
        }
        let tickets: Vec<Ticket> =
            self.asked.iter().filter(|(_, ((_, tag), _))| tag.run == run).map(|(&ticket, _)| ticket).collect();
        unfinished.receives += tickets.len();
        for ((from, _), arrived) in tickets.iter().filter_map(|ticket| self.asked.remove(ticket)).collect::<Vec<_>>() {
            self.discard(from, arrived);
        }
        let mut refused = Vec::new();
        self.ungranted.retain(|&from, queue| {
            refused
                .extend(queue.iter().filter(|granted| granted.key.1.run == run).map(|granted| (from, granted.offer)));
            queue.retain(|granted| granted.key.1.run != run);
            !queue.is_empty()
        });
        unfinished.receives += refused.len();
        for (from, offer) in refused {
            self.transmit(from, Content::Refuse { offer }, &[]);
        }
        let n_offers = self.offers.len();
        self.offers.retain(|_, ((_, tag), _)| tag.run != run);
        unfinished.sends += n_offers - self.offers.len();
        for (transits, count) in [(&mut self.puts, &mut unfinished.sends), (&mut self.takes, &mut unfinished.receives)]
        {
            for transit in transits.values_mut().filter(|transit| transit.key.1.run == run && !transit.is_cancelled) {
                transit.is_cancelled = true;
                *count += 1;
            }
        }
        self.ready.retain(|completion| match completion {
            Completion::Sent { tag, .. }
            | Completion::Received { tag, .. }
            | Completion::Offered { tag, .. }
            | Completion::Failed { tag, .. } => tag.run != run,
            Completion::Control { .. } | Completion::Lost { .. } => true,
        });
        unfinished
    }

    fn memory(&self) -> WireMemory {
        let here = |arrived: &Arrived| match &arrived.body {
            Body::Here { bytes, .. } => bytes.len() as u64,
            Body::Offered(_) => 0,
        };
        let offered: u64 =
            self.offers.values().flat_map(|(_, buffers)| buffers).map(|buffer| buffer.len() as u64).sum();
        let early: u64 = self.arrived.values().flatten().map(here).sum();
        WireMemory {
            sending: offered + self.puts.values().map(|transit| transit.bytes).sum::<u64>(),
            receiving: self.takes.values().map(|transit| transit.bytes).sum(),
            early: early + self.asked.values().map(|(_, arrived)| here(arrived)).sum::<u64>(),
            entries: self.posted.values().map(VecDeque::len).sum::<usize>()
                + self.arrived.values().map(VecDeque::len).sum::<usize>()
                + self.asked.len()
                + self.ungranted.values().map(VecDeque::len).sum::<usize>()
                + self.offers.len()
                + self.puts.len()
                + self.takes.len(),
        }
    }
}

/// The first of a queue, which goes when it is empty.
fn take_front<K: Ord, T>(queues: &mut BTreeMap<K, VecDeque<T>>, key: K) -> Option<T> {
    let queue = queues.get_mut(&key)?;
    let front = queue.pop_front();
    if queue.is_empty() {
        queues.remove(&key);
    }
    front
}

fn lengths_match(lengths: &[u64], landings: &mut [Box<dyn Landing>]) -> bool {
    lengths.len() == landings.len()
        && lengths.iter().zip(landings).all(|(&length, landing)| landing.bytes_mut().len() as u64 == length)
}

/// The buffers of an inline message.
fn unpack(bytes: Vec<u8>, lengths: &[u64], landings: Option<Vec<Box<dyn Landing>>>) -> Vec<Payload> {
    let mut end = 0;
    let ranges = lengths.iter().map(|&length| {
        let start = end;
        end += length as usize;
        start..end
    });
    match landings {
        None => {
            let owner = Payload::new(Arc::new(bytes));
            ranges.map(|range| owner.slice(range).unwrap_or_else(|_| Payload::from(Vec::new()))).collect()
        }
        Some(landings) => {
            let copy = |(range, mut landing): (std::ops::Range<usize>, Box<dyn Landing>)| {
                let from = &bytes[range];
                let into = landing.bytes_mut();
                let n = from.len().min(into.len());
                into[..n].copy_from_slice(&from[..n]);
                landing.finish()
            };
            ranges.zip(landings).map(copy).collect()
        }
    }
}
