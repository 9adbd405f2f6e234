//! What a transport provides below the [`Endpoint`](crate::Endpoint).
//!
//! A transport moves two things: small frames, and the buffers of messages whose receiver is ready. It knows nothing of tags, runs,
//! matching or cancelling; the protocol above it is the same for all transports.

use std::ops::Range;
use std::time::Duration;

use tw_ir::Error;

use crate::message::{Landing, Payload};

/// A transport of one rank. No call waits for another rank.
pub trait Carrier: Send {
    /// Sends a frame. Frames from one rank to another arrive once and in order. They have at most
    /// [`MAX_FRAME`](crate::WireLimits::MAX_FRAME) bytes.
    fn frame(&mut self, to: u32, bytes: Vec<u8>);

    /// Sends buffers to a rank that has called [`Carrier::take`] for this lane, and whose frame that says so has arrived here.
    fn put(&mut self, to: u32, lane: u32, buffers: Vec<Payload>, key: u64);

    /// Expects the buffers of a later [`Carrier::put`] on this lane.
    fn take(&mut self, from: u32, lane: u32, memory: TakeMemory, key: u64);

    /// Forgets an expected transfer that the other rank does not begin.
    fn drop_take(&mut self, key: u64);

    /// Makes progress and appends what happened.
    fn progress(&mut self, events: &mut Vec<CarrierEvent>);
}

/// Where the buffers of a transfer go.
pub enum TakeMemory {
    /// Buffers of these lengths, from the transport.
    New(Vec<u64>),
    /// Into these, which have the right lengths.
    Given(Vec<Box<dyn Landing>>),
}

/// What a transport reports.
pub enum CarrierEvent {
    /// A frame came. The bytes may go on after its end.
    Frame {
        /// The sender.
        from: u32,
        /// The frame.
        bytes: Vec<u8>,
    },
    /// The buffers of a put can be used otherwise.
    Put {
        /// The key of the put.
        key: u64,
    },
    /// A transfer is complete.
    Taken {
        /// The key of the take.
        key: u64,
        /// As many as were expected, of the expected lengths.
        buffers: Vec<Payload>,
    },
    /// A rank, or if none is named every rank, is out of reach. The transport has let go of all memory of puts and takes with it as soon as
    /// nothing can touch it any more.
    Lost {
        /// The rank.
        rank: Option<u32>,
        /// Why.
        error: Error,
    },
}

/// How a thread waits for a transport without holding its lock.
pub trait Waiter: Send + Sync {
    /// Returns when there may be progress, or after this time.
    fn wait(&self, limit: Duration);
    /// Ends waiting.
    fn wake(&self);
    /// A poll made progress.
    fn progressed(&self) {}
}

/// Cuts `len` bytes into pieces of at most `most` bytes. No bytes are no piece.
pub fn pieces(len: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let most = most.max(1);
    (0..len.div_ceil(most)).map(move |k| k * most..len.min((k + 1).saturating_mul(most)))
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn pieces_cover_everything_once() {
        for len in 0..30 {
            for most in [1, 2, 3, 7, 29, 30, usize::MAX] {
                let mut end = 0;
                for piece in pieces(len, most) {
                    assert!(piece.start == end && piece.len() <= most && !piece.is_empty());
                    end = piece.end;
                }
                assert_eq!(end, len);
            }
        }
        assert_eq!(pieces(3 << 30, 1 << 30).count(), 3);
        assert_eq!(pieces((3 << 30) + 1, 1 << 30).last(), Some(3 << 30..(3 << 30) + 1));
    }
}
