//! The interface that engines see.

use std::fmt;
use std::time::Duration;

use tw_ir::{Error, Result};

use crate::message::{Landing, Message};

/// The longest header of a message, in bytes.
pub const MAX_HEADER: usize = 2048;

/// The most buffers of one message.
pub const MAX_BUFFERS: usize = 64;

/// The longest content of a control message, in bytes.
pub const MAX_CONTROL: usize = 4096;

/// Ids of tags from here on belong to [`collectives`](crate::collective).
pub const FIRST_RESERVED_ID: u32 = 0xffff_fff0;

/// Names the messages of one move of one run.
///
/// Runs are numbered alike on all ranks and never twice, so a message of a run that failed is never taken for one of the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The number of the run.
    pub run: u64,
    /// The move of the schedule, below [`FIRST_RESERVED_ID`].
    pub id: u32,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "move {} of run {}", self.id, self.run)
    }
}

/// Names one send or one receive of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u64);

/// Where a message is received.
pub enum Room {
    /// The wire provides the memory once the message is there, unless its buffers have more bytes than this in total.
    Bytes(u64),
    /// Into this memory; the message must have as many buffers of these lengths.
    Into(Vec<Box<dyn Landing>>),
    /// The receiver is told header and lengths, unless the buffers have more bytes than this in total, and then calls [`Wire::accept`].
    Ask(u64),
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Room::Bytes(most) => write!(f, "Bytes({most})"),
            Room::Into(landings) => write!(f, "Into({} buffers)", landings.len()),
            Room::Ask(most) => write!(f, "Ask({most})"),
        }
    }
}

/// What a control message is about. The wire carries all kinds alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlKind {
    /// A rank is alive. Its engine sends it; the wire itself never does.
    Heartbeat,
    /// A rank ends a run with an error: the receiver cancels the run, too.
    Error,
    /// A scalar, or anything else that few bytes say and nobody posted a receive for.
    Notice,
}

/// A message that needs no receive: [`Wire::poll`] hands it over as soon as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The run that it is about. Control messages of cancelled runs arrive all the same.
    pub run: u64,
    /// What it is about.
    pub kind: ControlKind,
    /// At most [`MAX_CONTROL`] bytes.
    pub content: Vec<u8>,
}

/// Something that happened. Each ticket has at most one completion, and exactly one unless its run is cancelled or a rank is lost; a
/// receive with [`Room::Ask`] is also `Offered` before.
#[derive(Debug)]
pub enum Completion {
    /// The wire has let go of the buffers of a send. The message may still be on its way.
    Sent {
        /// The send.
        ticket: Ticket,
        /// Its receiver.
        to: u32,
        /// Its tag.
        tag: Tag,
    },
    /// A message is complete.
    Received {
        /// The receive.
        ticket: Ticket,
        /// The sender.
        from: u32,
        /// Its tag.
        tag: Tag,
        /// Header and buffers. The wire has let go of them.
        message: Message,
    },
    /// A message for a receive with [`Room::Ask`] waits for [`Wire::accept`].
    Offered {
        /// The receive.
        ticket: Ticket,
        /// The sender.
        from: u32,
        /// Its tag.
        tag: Tag,
        /// The header.
        header: Vec<u8>,
        /// The lengths of its buffers.
        lengths: Vec<u64>,
    },
    /// A message came that its receive has no room for, or whose sender cancelled the run.
    Failed {
        /// The receive.
        ticket: Ticket,
        /// The sender.
        from: u32,
        /// Its tag.
        tag: Tag,
        /// Why.
        error: Error,
    },
    /// A control message.
    Control {
        /// The sender.
        from: u32,
        /// The message.
        control: Control,
    },
    /// A rank cannot be reached any more, or no rank can. Nothing that was under way between it and this rank completes.
    Lost {
        /// The rank, or none if the wire itself is broken.
        rank: Option<u32>,
        /// Why.
        error: Error,
    },
}

/// What [`Wire::cancel`] found unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Sends without a completion.
    pub sends: usize,
    /// Receives without a completion.
    pub receives: usize,
    /// Messages that came and that no receive took.
    pub messages: usize,
}

/// What a wire holds at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireMemory {
    /// Bytes of sends that are not completed, which their senders own together with the wire.
    pub sending: u64,
    /// Bytes of messages that are being received, in memory of [`Room`]s.
    pub receiving: u64,
    /// Bytes of small messages that came before their receives. At most the window of [`WireLimits`] for each sender.
    pub early: u64,
    /// Sends, receives, offers and transfers of any size.
    pub entries: usize,
}

/// Sizes that tests lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireLimits {
    /// The longest frame. A message that fits is sent at once and copied once on each side; a longer one is offered first.
    pub frame: usize,
    /// Bytes of messages that one rank may send another ahead of the receives. Beyond them, small messages are offered, too.
    pub window: u64,
    /// The longest piece of a buffer that is transferred at once.
    pub piece: usize,
    /// Transfers that one rank may be sending to another at a time; further ones wait.
    pub lanes: u32,
}

impl WireLimits {
    /// The longest frame there can be. Transports receive frames into memory of this size.
    pub const MAX_FRAME: usize = 16 << 10;
}

impl Default for WireLimits {
    fn default() -> WireLimits {
        WireLimits { frame: WireLimits::MAX_FRAME, window: 256 << 10, piece: 1 << 30, lanes: (1 << 28) - 1 }
    }
}

/// One rank's end of the connections to all others. See the [crate](crate) for the promises.
pub trait Wire: Send + Sync {
    /// The number of this rank.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Sends a message to another rank. Returns at once, whether or not the receiver is ready. Fails if the message breaks a limit, if the run is
    /// cancelled or if the rank is lost; nothing is sent then.
    fn send(&self, to: u32, tag: Tag, message: Message) -> Result<Ticket>;

    /// Expects a message from another rank. Returns at once. Fails as [`Wire::send`] does.
    fn receive(&self, from: u32, tag: Tag, room: Room) -> Result<Ticket>;

    /// Provides the memory for a message that was [`Completion::Offered`]. Fails if the lengths differ from those offered, or if
    /// the run was cancelled or the sender lost in the meantime.
    fn accept(&self, ticket: Ticket, landings: Vec<Box<dyn Landing>>) -> Result<()>;

    /// Sends a control message. Those from one rank to another arrive in order.
    fn control(&self, to: u32, control: Control) -> Result<()>;

    /// Makes progress and appends what happened. Returns at once.
    fn poll(&self, completions: &mut Vec<Completion>);

    /// Returns when [`Wire::poll`] may have something new, after a call of [`Wire::wake`], or after this time, whichever comes first. It may also return
    /// early for no reason.
    fn wait(&self, limit: Duration);

    /// Ends a thread's [`Wire::wait`].
    fn wake(&self);

    /// Ends a run on this rank: its sends and receives are forgotten, and its messages are refused from now on.
    ///
    /// A run that ends well is cancelled, too, so that nothing of it stays. Before that, a rank waits for the completions of its sends, because
    /// cancelling takes back what no receiver has asked for; then nothing is unfinished. Transfers under way go on until both ends are through; their memory is held until then.
    fn cancel(&self, run: u64) -> Unfinished;

    /// Takes a rank for lost, as if its connection broke: for callers that count heartbeats.
    fn give_up(&self, rank: u32, error: Error);

    /// What the wire holds.
    fn memory(&self) -> WireMemory;
}
