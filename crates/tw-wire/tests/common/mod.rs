//! Random traffic over any wires, driven by one thread.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::{BTreeMap, VecDeque};

use tw_ir::{Blame, random};
use tw_wire::{Completion, Landing, Message, Payload, Room, Tag, Ticket, Wire, WireLimits, WireMemory};

/// Random numbers from a seed.
pub(crate) struct Draw(u64, i64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed, 0)
    }
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.1 += 1;
        random::integer(self.0, self.1, 0, n.max(1) as i64) as usize
    }
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Limits so low that short messages take every path.
pub(crate) fn low_limits(draw: &mut Draw) -> WireLimits {
    WireLimits {
        frame: 40 + draw.below(200),
        window: draw.below(1000) as u64,
        piece: 1 + draw.below(60),
        lanes: 1 + draw.below(4) as u32,
    }
}

/// Which message: sender, receiver, tag, and its number among those.
type Name = (u32, u32, Tag, u32);

fn lengths_of((from, to, tag, k): Name) -> Vec<usize> {
    let mut draw = Draw::new(
        u64::from(from) * 1_000_003 + u64::from(to) * 8191 + tag.run * 131 + u64::from(tag.id) * 17 + u64::from(k) * 5,
    );
    let n = draw.below(5);
    (0..n).map(|_| if draw.one_in(4) { 0 } else { draw.below(300) }).collect()
}

fn content_of(name: Name) -> Message {
    let (from, to, tag, k) = name;
    let header = format!("{from} {to} {} {} {k}", tag.run, tag.id).into_bytes();
    let fill = |(b, length): (usize, usize)| {
        Payload::from((0..length).map(|i| (i * 7 + b * 3 + k as usize * 11 + from as usize) as u8).collect::<Vec<u8>>())
    };
    Message { header, buffers: lengths_of(name).into_iter().enumerate().map(fill).collect() }
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send(u32, Tag),
    Receive(u32, Tag),
}

/// The traffic of all ranks in one run.
pub(crate) struct Traffic {
    run: u64,
    actions: Vec<VecDeque<Action>>,
    /// How many sends and receives there were, by sender, receiver and tag.
    sent: BTreeMap<(u32, u32, Tag), u32>,
    posted: BTreeMap<(u32, u32, Tag), u32>,
    receives: BTreeMap<(u32, Ticket), Name>,
    sends: BTreeMap<(u32, Ticket), Name>,
    /// Offers that are not accepted yet.
    offered: Vec<(u32, Ticket, Vec<u64>)>,
    pub(crate) cancelled: Vec<bool>,
    pub(crate) lost: Vec<Vec<u32>>,
    pub(crate) n_received: usize,
}

impl Traffic {
    pub(crate) fn new(draw: &mut Draw, size: u32, run: u64, n_messages: usize) -> Traffic {
        let mut actions = vec![VecDeque::new(); size as usize];
        for _ in 0..n_messages {
            let from = draw.below(size as usize) as u32;
            let to = (from + 1 + draw.below(size as usize - 1) as u32) % size;
            let tag = Tag { run, id: draw.below(3) as u32 };
            for (rank, action) in [(from, Action::Send(to, tag)), (to, Action::Receive(from, tag))] {
                let list: &mut VecDeque<Action> = &mut actions[rank as usize];
                let at = draw.below(list.len() + 1);
                list.insert(at, action);
            }
        }
        Traffic {
            run,
            actions,
            sent: BTreeMap::new(),
            posted: BTreeMap::new(),
            receives: BTreeMap::new(),
            sends: BTreeMap::new(),
            offered: Vec::new(),
            cancelled: vec![false; size as usize],
            lost: vec![Vec::new(); size as usize],
            n_received: 0,
        }
    }

    fn is_over(&self, rank: u32) -> bool {
        self.cancelled[rank as usize]
    }

    /// Does the next thing of a rank, if there is one.
    pub(crate) fn act(&mut self, draw: &mut Draw, rank: u32, wire: &dyn Wire) {
        if self.is_over(rank) {
            return;
        }
        if !self.offered.is_empty() && draw.one_in(2) {
            let at = draw.below(self.offered.len());
            if self.offered[at].0 == rank {
                let (_, ticket, lengths) = self.offered.swap_remove(at);
                wire.accept(ticket, landings(&lengths)).expect("an offer is accepted");
            }
        }
        let Some(action) = self.actions[rank as usize].pop_front() else { return };
        match action {
            Action::Send(to, tag) => {
                let k = self.sent.entry((rank, to, tag)).or_default();
                let name = (rank, to, tag, *k);
                match wire.send(to, tag, content_of(name)) {
                    Ok(ticket) => {
                        *k += 1;
                        self.sends.insert((rank, ticket), name);
                    }
                    Err(error) => assert!(self.lost[rank as usize].contains(&to), "{error}"),
                }
            }
            Action::Receive(from, tag) => {
                let k = self.posted.entry((from, rank, tag)).or_default();
                let name = (from, rank, tag, *k);
                let lengths: Vec<u64> = lengths_of(name).iter().map(|&length| length as u64).collect();
                let total = lengths.iter().sum();
                let room = match draw.below(3) {
                    0 => Room::Bytes(total),
                    1 => Room::Into(landings(&lengths)),
                    _ => Room::Ask(total),
                };
                match wire.receive(from, tag, room) {
                    Ok(ticket) => {
                        *k += 1;
                        self.receives.insert((rank, ticket), name);
                    }
                    Err(error) => assert!(self.lost[rank as usize].contains(&from), "{error}"),
                }
            }
        }
    }

    /// True if a completion belongs to this traffic, which then has seen it.
    pub(crate) fn see(&mut self, rank: u32, completion: &Completion) -> bool {
        match completion {
            Completion::Sent { ticket, to, tag } if tag.run == self.run => {
                let name = self.sends.remove(&(rank, *ticket)).expect("each send ends once");
                assert_eq!((name.0, name.1, name.2), (rank, *to, *tag));
            }
            Completion::Received { ticket, from, tag, message } if tag.run == self.run => {
                let name = self.receives.remove(&(rank, *ticket)).expect("each receive ends once");
                assert_eq!((name.0, name.1, name.2), (*from, rank, *tag));
                let expected = content_of(name);
                assert_eq!(String::from_utf8_lossy(&message.header), String::from_utf8_lossy(&expected.header));
                let bytes = |message: &Message| -> Vec<Vec<u8>> {
                    message.buffers.iter().map(|b| b.bytes().to_vec()).collect()
                };
                assert_eq!(bytes(message), bytes(&expected));
                assert!(!self.is_over(rank), "a completion after the run was cancelled");
                assert!(!self.lost[rank as usize].contains(from), "a message of a lost rank");
                self.n_received += 1;
            }
            Completion::Offered { ticket, tag, lengths, header, .. } if tag.run == self.run => {
                let name = self.receives[&(rank, *ticket)];
                assert_eq!(*header, content_of(name).header);
                self.offered.push((rank, *ticket, lengths.clone()));
            }
            Completion::Failed { ticket, tag, error, .. } if tag.run == self.run => {
                assert_eq!(error.blame(), Blame::Cancelled, "{error}");
                self.receives.remove(&(rank, *ticket)).expect("each receive ends once");
            }
            _ => return false,
        }
        true
    }

    /// A rank hears that another is lost.
    pub(crate) fn lose(&mut self, rank: u32, lost: u32) {
        assert!(!self.lost[rank as usize].contains(&lost), "a loss is told twice");
        self.lost[rank as usize].push(lost);
        let between = |name: &Name| (name.0 == rank && name.1 == lost) || (name.0 == lost && name.1 == rank);
        self.sends.retain(|(at, _), name| *at != rank || !between(name));
        self.receives.retain(|(at, _), name| *at != rank || !between(name));
        let receives = &self.receives;
        self.offered.retain(|(at, ticket, _)| *at != rank || receives.contains_key(&(rank, *ticket)));
    }

    pub(crate) fn cancel(&mut self, rank: u32, wire: &dyn Wire) {
        self.cancelled[rank as usize] = true;
        wire.cancel(self.run);
        self.sends.retain(|(at, _), _| *at != rank);
        self.receives.retain(|(at, _), _| *at != rank);
        self.offered.retain(|(at, _, _)| *at != rank);
    }

    /// A rank that does nothing any more.
    pub(crate) fn bury(&mut self, rank: u32) {
        self.cancelled[rank as usize] = true;
        self.actions[rank as usize].clear();
        self.sends.retain(|(at, _), _| *at != rank);
        self.receives.retain(|(at, _), _| *at != rank);
        self.offered.retain(|(at, _, _)| *at != rank);
    }

    /// Everything that was asked for has happened.
    pub(crate) fn is_done(&self) -> bool {
        let acted =
            self.actions.iter().zip(&self.cancelled).all(|(actions, &cancelled)| cancelled || actions.is_empty());
        acted && self.receives.is_empty() && self.sends.is_empty()
    }
}

fn landings(lengths: &[u64]) -> Vec<Box<dyn Landing>> {
    lengths.iter().map(|&length| Box::new(vec![0xeeu8; length as usize]) as Box<dyn Landing>).collect()
}

/// Nothing may stay in wires once all traffic is over.
pub(crate) fn assert_empty(wires: &[impl Wire]) {
    for wire in wires {
        assert_eq!(wire.memory(), WireMemory::default(), "rank {}", wire.rank());
    }
}
