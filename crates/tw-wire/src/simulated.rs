//! A network in which everything goes wrong that may go wrong, from a seed.
//!
//! All ranks share one world with a clock of ticks. A frame or a piece of a buffer is delivered at a random later tick, and only when somebody
//! calls [`SimulatedNetwork::step`] or waits. Frames between two ranks keep their order, as every transport promises; everything else is
//! reordered: frames of different ranks, buffers against frames, buffers against each other. Nothing is delivered twice.
//!
//! With one thread that drives all ranks, a seed determines everything that happens. With a thread per rank, waiting threads step the world,
//! and the order of their calls is up to the machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tw_ir::{Error, random};

use crate::carrier::{Carrier, CarrierEvent, TakeMemory, Waiter, pieces};
use crate::channels::land;
use crate::endpoint::Endpoint;
use crate::message::Payload;
use crate::wire::WireLimits;

/// A rank of a simulated network.
pub type SimulatedWire = Endpoint<SimulatedCarrier>;

/// The network: its clock and its faults.
#[derive(Clone)]
pub struct SimulatedNetwork(Arc<Mutex<World>>);

/// When the other ranks learn that one was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// After at most this many ticks, each of them at a time of its own.
    Within(u64),
    /// Never: the machine or its link is cut off.
    Never,
}

impl SimulatedNetwork {
    /// A network and the wires of its ranks. Most deliveries take a few ticks, some up to `slowest`.
    pub fn new(size: u32, seed: u64, slowest: u64, limits: WireLimits) -> (SimulatedNetwork, Vec<SimulatedWire>) {
        let world = World {
            seed,
            n_draws: 0,
            slowest: slowest.max(1),
            now: 0,
            n_sent: 0,
            piece: limits.piece,
            under_way: BTreeMap::new(),
            last_frame: BTreeMap::new(),
            cut: BTreeSet::new(),
            ranks: (0..size).map(|_| RankState::default()).collect(),
        };
        let network = SimulatedNetwork(Arc::new(Mutex::new(world)));
        let wire = |rank| {
            let carrier = SimulatedCarrier { network: network.clone(), rank, takes: BTreeMap::new() };
            Endpoint::new(rank, size, limits, carrier, Box::new(SimulatedWaiter { network: network.clone(), rank }))
        };
        let wires = (0..size).map(wire).collect();
        (network, wires)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers what comes next. False if nothing is under way.
    pub fn step(&self) -> bool {
        self.world().step()
    }

    /// The clock.
    pub fn now(&self) -> u64 {
        self.world().now
    }

    /// Kills a rank: what it sent last may be lost, and nothing reaches it any more.
    pub fn kill(&self, rank: u32, notice: Notice) {
        let mut world = self.world();
        if std::mem::replace(&mut world.ranks[rank as usize].is_dead, true) {
            return;
        }
        let error = Error::resource(format!("rank {rank} was killed"));
        world.ranks[rank as usize].inbox = [Delivery::Lost { rank: None, error: error.clone() }].into();
        for other in (0..world.ranks.len() as u32).filter(|&other| other != rank) {
            world.lose_last(rank, other);
            world.lose_last(other, rank);
            if let Notice::Within(ticks) = notice {
                let at = world.now + world.draw(ticks + 1);
                world.tell_lost(at, other, rank, error.clone());
            }
        }
    }

    /// Drops the connection between two ranks. Both learn of it after at most so many ticks; what was sent last may be lost.
    pub fn drop_connection(&self, a: u32, b: u32, notice: u64) {
        let mut world = self.world();
        for (from, to) in [(a, b), (b, a)] {
            if world.cut.insert((from, to)) {
                world.lose_last(from, to);
                let at = world.now + world.draw(notice + 1);
                let error = Error::resource(format!("the connection from rank {to} to rank {from} broke"));
                world.tell_lost(at, to, from, error);
            }
        }
    }
}

struct World {
    seed: u64,
    n_draws: i64,
    slowest: u64,
    now: u64,
    n_sent: u64,
    piece: usize,
    /// By time, then in the order of sending.
    under_way: BTreeMap<(u64, u64), (Link, Delivery)>,
    /// When the last frame on each link arrives.
    last_frame: BTreeMap<Link, u64>,
    /// Broken connections.
    cut: BTreeSet<Link>,
    ranks: Vec<RankState>,
}

/// From a rank to a rank.
type Link = (u32, u32);

#[derive(Default)]
struct RankState {
    is_dead: bool,
    inbox: VecDeque<Delivery>,
}

enum Delivery {
    Frame {
        from: u32,
        bytes: Vec<u8>,
    },
    /// The whole transfer arrived; its pieces did at other times before.
    Buffers {
        from: u32,
        lane: u32,
        buffers: Vec<Payload>,
    },
    /// The sender may use its buffers again.
    Put {
        key: u64,
    },
    Lost {
        rank: Option<u32>,
        error: Error,
    },
}

impl World {
    fn draw(&mut self, below: u64) -> u64 {
        self.n_draws += 1;
        random::integer(self.seed, self.n_draws, 0, i64::try_from(below.max(1)).unwrap_or(i64::MAX)) as u64
    }

    /// Few ticks usually, many sometimes.
    fn delay(&mut self) -> u64 {
        match self.draw(8) {
            0 => self.draw(self.slowest) + 1,
            1 | 2 => self.draw(self.slowest.isqrt()) + 1,
            _ => self.draw(3) + 1,
        }
    }

    fn send(&mut self, at: u64, link: Link, delivery: Delivery) {
        self.n_sent += 1;
        self.under_way.insert((at, self.n_sent), (link, delivery));
    }

    fn is_up(&self, (from, to): Link) -> bool {
        let is_dead = |rank: u32| self.ranks[rank as usize].is_dead;
        !is_dead(from) && !is_dead(to) && !self.cut.contains(&(from, to))
    }

    fn step(&mut self) -> bool {
        let Some(((at, _), ((_, to), delivery))) = self.under_way.pop_first() else { return false };
        self.now = at;
        let rank = &mut self.ranks[to as usize];
        if !rank.is_dead {
            rank.inbox.push_back(delivery);
        }
        true
    }

    /// Loses what was sent last on a link: frames from some point on, and any transfers.
    fn lose_last(&mut self, from: u32, to: u32) {
        let on_link = |(link, delivery): &(Link, Delivery)| {
            *link == (from, to) && matches!(delivery, Delivery::Frame { .. } | Delivery::Buffers { .. })
        };
        let keys: Vec<(u64, u64)> =
            self.under_way.iter().filter(|(_, entry)| on_link(entry)).map(|(&key, _)| key).collect();
        let n_kept = self.draw(keys.len() as u64 + 1) as usize;
        for key in &keys[n_kept..] {
            self.under_way.remove(key);
        }
    }

    /// Tells a rank of a loss, after what is still to come from the lost rank.
    fn tell_lost(&mut self, at: u64, rank: u32, lost: u32, error: Error) {
        let last =
            self.under_way.iter().rev().find(|(_, (link, _))| *link == (lost, rank)).map_or(at, |(&(last, _), _)| last);
        self.send(at.max(last), (lost, rank), Delivery::Lost { rank: Some(lost), error });
    }
}

/// The transport of a simulated network.
pub struct SimulatedCarrier {
    network: SimulatedNetwork,
    rank: u32,
    takes: BTreeMap<(u32, u32), (u64, TakeMemory)>,
}

impl Carrier for SimulatedCarrier {
    fn frame(&mut self, to: u32, bytes: Vec<u8>) {
        let mut world = self.network.world();
        let link = (self.rank, to);
        if !world.is_up(link) {
            return;
        }
        let at = (world.now + world.delay()).max(world.last_frame.get(&link).copied().unwrap_or(0));
        world.last_frame.insert(link, at);
        world.send(at, link, Delivery::Frame { from: self.rank, bytes });
    }

    fn put(&mut self, to: u32, lane: u32, buffers: Vec<Payload>, key: u64) {
        let mut world = self.network.world();
        let link = (self.rank, to);
        // The slowest piece decides.
        let n_pieces: usize = buffers.iter().map(|buffer| pieces(buffer.len(), world.piece).count()).sum();
        let delay = (0..n_pieces.max(1)).map(|_| world.delay()).max().unwrap_or(0);
        let (arrives, is_free) = (world.now + delay, world.now + world.delay());
        if world.is_up(link) {
            let copies = buffers.iter().map(|buffer| {
                let mut copy = Vec::with_capacity(buffer.len());
                pieces(buffer.len(), world.piece).for_each(|piece| copy.extend_from_slice(&buffer.bytes()[piece]));
                Payload::from(copy)
            });
            let buffers = copies.collect();
            world.send(arrives, link, Delivery::Buffers { from: self.rank, lane, buffers });
        }
        world.send(is_free, (self.rank, self.rank), Delivery::Put { key });
    }

    fn take(&mut self, from: u32, lane: u32, memory: TakeMemory, key: u64) {
        self.takes.insert((from, lane), (key, memory));
    }

    fn drop_take(&mut self, key: u64) {
        self.takes.retain(|_, (found, _)| *found != key);
    }

    fn progress(&mut self, events: &mut Vec<CarrierEvent>) {
        let inbox = std::mem::take(&mut self.network.world().ranks[self.rank as usize].inbox);
        for delivery in inbox {
            match delivery {
                Delivery::Frame { from, bytes } => events.push(CarrierEvent::Frame { from, bytes }),
                Delivery::Put { key } => events.push(CarrierEvent::Put { key }),
                Delivery::Buffers { from, lane, buffers } => {
                    if let Some((key, memory)) = self.takes.remove(&(from, lane)) {
                        events.push(CarrierEvent::Taken { key, buffers: land(memory, buffers) });
                    }
                }
                Delivery::Lost { rank, error } => {
                    self.takes.retain(|(sender, _), _| rank.is_some_and(|rank| *sender != rank));
                    events.push(CarrierEvent::Lost { rank, error });
                }
            }
        }
    }
}

struct SimulatedWaiter {
    network: SimulatedNetwork,
    rank: u32,
}

impl Waiter for SimulatedWaiter {
    fn wait(&self, limit: Duration) {
        let mut world = self.network.world();
        while world.ranks[self.rank as usize].inbox.is_empty() {
            if !world.step() {
                drop(world);
                // Only other threads can send something now.
                std::thread::sleep(limit.min(Duration::from_micros(50)));
                return;
            }
        }
    }

    fn wake(&self) {}
}
