//! The transfers of one run: blocks that leave this rank and blocks that come.
//!
//! A move of the schedule between two ranks is one message. Its tag is the number of the run and that of the transfer among all transfers between ranks,
//! so both sides know it without asking, also if they have moves of their own beside them.
//! A transfer is a step like others: it begins when its dependencies have ended and the ledger admits it. A receive then has its memory, and is posted;
//! a send has its block, which stays alive. The step ends when the wire says so, in the hands of the [lane](crate::lane). So the order of the schedule bounds what
//! is received ahead, and a send blocks no thread.

use std::sync::Arc;

use tw_block::{Block, BlockBuffer, BlockMessage};
use tw_ir::{Error, Result};
use tw_wire::{Landing, Message, Payload, Room, SharedBytes, Tag, Wire};

/// A block on its way to other ranks.
pub(crate) struct Outgoing(pub(crate) BlockMessage);

impl SharedBytes for Outgoing {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

/// A block that is received.
pub(crate) struct Incoming(pub(crate) BlockBuffer);

impl SharedBytes for Incoming {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl Landing for Incoming {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut()
    }

    fn finish(self: Box<Self>) -> Payload {
        Payload::new(Arc::new(*self))
    }
}

/// A message of one block.
pub(crate) fn outgoing(block: BlockMessage) -> Message {
    Message { header: Vec::new(), buffers: vec![Payload::new(Arc::new(Outgoing(block)))] }
}

/// Room for one block.
pub(crate) fn room(buffer: BlockBuffer) -> Room {
    Room::Into(vec![Box::new(Incoming(buffer))])
}

/// The block of a message that was received into a [`room`].
pub(crate) fn received(message: Message) -> Result<Block> {
    let wrong = || Error::internal("a message without the block that was asked for");
    let payload = message.buffers.into_iter().next().ok_or_else(wrong)?;
    let incoming = payload.downcast::<Incoming>().map_err(|_| wrong())?;
    Arc::into_inner(incoming).ok_or_else(wrong)?.0.into_block()
}

/// Begins the transfers of one run.
#[derive(Clone)]
pub(crate) struct Transfers {
    pub(crate) wire: Arc<dyn Wire>,
    /// The number of the run, the same on all ranks.
    pub(crate) run: u64,
}

impl Transfers {
    fn tag(&self, number: u32) -> Tag {
        Tag { run: self.run, id: number }
    }

    pub(crate) fn send(&self, number: u32, to: u32, block: BlockMessage) -> Result<()> {
        self.wire.send(to, self.tag(number), outgoing(block)).map(drop)
    }

    pub(crate) fn receive(&self, number: u32, from: u32, buffer: BlockBuffer) -> Result<()> {
        self.wire.receive(from, self.tag(number), room(buffer)).map(drop)
    }
}
