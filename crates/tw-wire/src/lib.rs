//! Messages between the ranks of a distributed run.
//!
//! [`Wire`] is what an engine sees: non-blocking sends, receives posted early, completions from polling, cancelling. [`channels()`] connects
//! ranks that are threads of one process, [`SimulatedNetwork`] ranks of a network with delays and faults from a seed; the crate `tw-mpi`
//! connects processes by MPI. [`Collective`] builds on the trait what all ranks do together.
//!
//! ```
//! use tw_wire::{Completion, Message, Room, Tag, Wire, WireLimits, channels};
//!
//! let [a, b]: [_; 2] = channels(2, WireLimits::default()).try_into().ok().unwrap();
//! let tag = Tag { run: 1, id: 7 };
//! b.receive(0, tag, Room::Bytes(1 << 20))?;
//! a.send(1, tag, Message::of(vec![42; 100_000]))?;
//! let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
//! while of_b.is_empty() {
//!     a.poll(&mut of_a); // the sender's part: the message is long, so the receiver asks for it first
//!     b.poll(&mut of_b);
//! }
//! let Some(Completion::Received { message, .. }) = of_b.pop() else { panic!() };
//! assert_eq!(message.buffers[0].bytes(), [42; 100_000]);
//! # Ok::<(), tw_ir::Error>(())
//! ```
//!
//! # What every wire promises
//!
//! **Messages.** A message is a small header and up to [`MAX_BUFFERS`] buffers of any length. It arrives once, whole and unchanged, or the
//! receiver's run ends with an error. It names sender, receiver and [`Tag`]: the number of the run and the move of the schedule.
//!
//! **Order.** The k-th message from one rank to another with one tag goes to the k-th receive there with that tag. Nothing else is
//! ordered: completions of one tag may come in any order (they name their [`Ticket`]), and messages of different tags or ranks overtake each
//! other. Control messages from one rank to another arrive in order, but overtake messages and are overtaken by them.
//!
//! **Ownership.** A send shares its buffers ([`Payload`] counts references) and keeps them until [`Completion::Sent`]. Nobody writes to
//! shared memory; safe code cannot. A receive owns its [`Landing`]s until its completion returns them inside [`Payload`]s. Without landings the
//! wire allocates, once the message is there, never more than [`Room`] allows; inside one process it hands over the sender's buffers instead.
//!
//! **Memory.** A posted receive holds no memory of its own. A message longer than a frame (16 KiB) stays with its sender until its receive is
//! posted, and [`Room::Ask`] until its receiver has made room. Short messages may come earlier; each sender has a window of 256 KiB of those,
//! and beyond it they stay with the sender, too. So a rank of `n` holds at most `256 KiB * (n - 1)` for messages without receives, plus
//! header and lengths of each offer. Buffers cross in pieces of at most 1 GiB ([`WireLimits`]). [`Wire::memory`] tells the current sums.
//!
//! **No deadlock.** No call waits for another rank. A message whose receive is posted arrives if both ranks keep polling: the sender's offer
//! needs nothing but the two queues of frames, the grant follows from the receive, the transfer from the grant. No resource that it needs can be
//! held by another message: frames are never refused, an exhausted window turns a message into an offer, and the lanes of transfers become
//! free by themselves. What an engine waits for is therefore only what its schedule makes it wait for.
//!
//! **Control messages** ([`Control`]) need no receive and no window: errors that end a run, heartbeats, notices of at most 4 KiB. The next poll hands
//! them over, also while data is stuck. Scalars that decide control flow travel by [`Collective::share`] instead, which has an order.
//!
//! **Errors.** A call fails for reasons on this rank, and then has had no effect. A message that its receive has no room for ends as [`Completion::Failed`]
//! there, and as `Sent` at its sender. A rank out of reach is reported once, as [`Completion::Lost`]; nothing between it and this rank completes
//! afterwards, and further sends and receives with it fail. The loss of one rank leaves the traffic of others intact. The transport does not
//! watch silent ranks: engines send heartbeats and call [`Wire::give_up`]. After an error an engine tells the others by a control message, and
//! every rank calls [`Wire::cancel`]. Then the wire is ready for the next run: what still arrives of the old one is refused, and transfers
//! under way drain as long as both ends poll.
//!
//! **Threads.** Any thread may call any method. One lock serialises the calls of a rank; it is never held while waiting. One thread per rank polls,
//! the lane of the engine, since each completion is handed out once.
//!
//! # Why one protocol over small transports
//!
//! Matching, windows, offers, cancelling and losses are in [`Endpoint`], once for all wires. A transport is a [`Carrier`]: ordered frames, and
//! transfers whose receiver is known to be ready. So what runs over MPI is what the simulation has tested. Rejected: the matching of MPI
//! itself. Its tags are too small for runs and moves, its unexpected messages hold memory that nobody counts, its sends cannot be cancelled, and
//! other transports have none.
//!
//! # Wires to come
//!
//! * **TCP**: one connection per pair, made when first used. A frame and a piece of a transfer are records with a kind and a length, in
//!   one queue per connection, frames before pieces, so that a long transfer (64 KiB at a time) does not delay them. `put` enqueues buffers,
//!   `take` registers where the reader writes the records of a lane. One thread per rank waits for all connections (`epoll`); a broken connection
//!   is [`CarrierEvent::Lost`]. Listeners bind to loopback or to an interface that the user names, and the first record
//!   proves a secret of the run.
//! * **Ray, dask.distributed**: one actor per worker runs a rank; the cluster places and restarts it. The actors exchange addresses through
//!   their framework once and then use the TCP wire: an actor call costs about 1 ms of CPU, a frame a few microseconds.
#![forbid(unsafe_code)]

pub mod carrier;
mod channels;
pub mod collective;
mod endpoint;
mod frame;
mod message;
mod runs;
mod simulated;
mod wire;

pub use carrier::{Carrier, CarrierEvent, TakeMemory, Waiter};
pub use channels::{ChannelCarrier, ChannelWire, channels};
pub use collective::Collective;
pub use endpoint::Endpoint;
pub use frame::{frame_length, frame_sender};
pub use message::{Landing, Message, Payload, SharedBytes};
pub use simulated::{Notice, SimulatedCarrier, SimulatedNetwork, SimulatedWire};
pub use wire::{
    Completion, Control, ControlKind, FIRST_RESERVED_ID, MAX_BUFFERS, MAX_CONTROL, MAX_HEADER, Room, Tag, Ticket,
    Unfinished, Wire, WireLimits, WireMemory,
};
