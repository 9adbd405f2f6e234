//! What travels: buffers that are shared, not copied, and memory that receives them.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tw_ir::{Error, Result};

/// Memory that a message sends. It must not change while it is shared; safe code cannot change it.
pub trait SharedBytes: Any + Send + Sync {
    /// All bytes, the same ones at every call.
    fn bytes(&self) -> &[u8];
}

impl SharedBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// A range of shared memory. Cloning it copies no bytes.
#[derive(Clone)]
pub struct Payload {
    owner: Arc<dyn SharedBytes>,
    range: Range<usize>,
}

impl Payload {
    /// All bytes of an owner.
    pub fn new(owner: Arc<dyn SharedBytes>) -> Payload {
        let range = 0..owner.bytes().len();
        Payload { owner, range }
    }

    /// A part of these bytes.
    pub fn slice(&self, part: Range<usize>) -> Result<Payload> {
        if part.start > part.end || part.end > self.len() {
            return Err(Error::internal(format!("bytes {part:?} of a payload of {}", self.len())));
        }
        let start = self.range.start;
        Ok(Payload { owner: Arc::clone(&self.owner), range: start + part.start..start + part.end })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // An owner that breaks its promise and shrinks sends less; the receiver then refuses the message.
        self.owner.bytes().get(self.range.clone()).unwrap_or_default()
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// The owner, if it has this type. A received payload that was not given [`Landing`]s may be owned by what its sender owns
    /// (ranks of one process share memory) or by a vector.
    pub fn downcast<T: SharedBytes>(self) -> Result<Arc<T>, Payload> {
        let any: Arc<dyn Any + Send + Sync> = self.owner.clone();
        any.downcast().map_err(|_| self)
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload::new(Arc::new(bytes))
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

/// Memory that a message is received into.
///
/// A landing lets the receiver choose type, alignment and accounting of the memory: the elements of a block can be received in place.
pub trait Landing: Send {
    /// All bytes, to be overwritten.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// The filled memory, ready to be read and sent on. [`Payload::downcast`] gives the typed memory back.
    fn finish(self: Box<Self>) -> Payload;
}

impl Landing for Vec<u8> {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
    fn finish(self: Box<Self>) -> Payload {
        Payload::from(*self)
    }
}

/// A small header and any number of buffers, all of which may be empty.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// What describes the buffers to the receiver. At most [`MAX_HEADER`](crate::MAX_HEADER) bytes.
    pub header: Vec<u8>,
    /// At most [`MAX_BUFFERS`](crate::MAX_BUFFERS).
    pub buffers: Vec<Payload>,
}

impl Message {
    /// A message of one buffer without a header.
    pub fn of(bytes: Vec<u8>) -> Message {
        Message { header: Vec::new(), buffers: vec![Payload::from(bytes)] }
    }

    /// The bytes of all buffers; the header does not count.
    pub fn payload_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_their_owner() {
        let whole = Payload::from(vec![0, 1, 2, 3, 4]);
        let part = whole.slice(1..4).unwrap().slice(1..2).unwrap();
        assert_eq!(part.bytes(), [2]);
        for wrong in [4..6, 6..6, Range { start: 2, end: 1 }] {
            assert!(whole.slice(wrong).is_err());
        }
        drop(whole);
        assert_eq!(*part.downcast::<Vec<u8>>().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn other_owners_are_given_back() {
        struct Zeros;
        impl SharedBytes for Zeros {
            fn bytes(&self) -> &[u8] {
                &[0; 3]
            }
        }
        let payload = Payload::new(Arc::new(Zeros));
        let payload = payload.downcast::<Vec<u8>>().unwrap_err();
        assert_eq!(payload.bytes(), [0; 3]);
        assert!(payload.downcast::<Zeros>().is_ok());
    }
}
