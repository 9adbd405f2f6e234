//! Blocks that ranks give each other outside of schedules: results that somebody asks for, scalars that decide, digests that are compared.
//!
//! An exchange is a run of its own. Its messages are sent and expected one by one, in any number, while others are under way; each side decides how much it has under way at
//! once. A rank that is cancelled while it waits ends its wait, and the group.
//!
//! # No deadlock
//!
//! Ranks that exchange the blocks of a tensor go through its positions in the same order, each in its own pace: a rank sends its own block of a position, or expects
//! that of another rank. It waits only for transfers of positions that it has passed. Take the lowest position whose transfer has not ended. Its sender
//! has passed it, since it could only wait for lower ones, which have ended; so it has sent the block. Its receivers have posted their receives for
//! the same reason. The wire delivers a message that was sent and is expected, so that transfer ends.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tw_block::{Block, BlockBuffer};
use tw_ir::{Error, Result};
use tw_wire::{Message, Tag};

use crate::cancel::CancelToken;
use crate::lane::Lane;
use crate::transfer::{received, room};

/// The longest time between two looks at the token of a rank that waits.
const LOOK: Duration = Duration::from_millis(20);

/// What the lane and the caller share of an exchange.
#[derive(Default)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What has come, by the number of the message.
    arrived: FxHashMap<u32, Block>,
    /// Messages that leave: to how many ranks they still do, and their bytes.
    leaving: FxHashMap<u32, (usize, u64)>,
    leaving_bytes: u64,
    error: Option<Error>,
}

impl Exchange {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message has come, or has left.
    pub(crate) fn end(&self, id: u32, outcome: Result<Option<Message>>) {
        let mut state = self.lock();
        match outcome.and_then(|message| message.map(received).transpose()) {
            Ok(Some(block)) => {
                state.arrived.insert(id, block);
            }
            Ok(None) => {
                let left = state.leaving.get_mut(&id).map(|(n, bytes)| {
                    *n -= 1;
                    (*n, *bytes)
                });
                if let Some((0, bytes)) = left {
                    state.leaving.remove(&id);
                    state.leaving_bytes -= bytes;
                }
            }
            Err(error) => state.error = state.error.take().or(Some(error)),
        }
        self.changed.notify_all();
    }

    /// No further message comes.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.error = state.error.take().or(Some(error));
        self.changed.notify_all();
    }

    /// Waits until `ready` gives something.
    fn wait<T>(&self, cancel: &CancelToken, mut ready: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if let Some(found) = ready(&mut state) {
                return Ok(found);
            }
            if cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            state = self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// This rank's side of an exchange.
pub(crate) struct Side<'a> {
    pub(crate) lane: &'a Lane,
    pub(crate) run: u64,
    pub(crate) shared: &'a Exchange,
    pub(crate) cancel: &'a CancelToken,
}

impl Side<'_> {
    /// Sends a message to several ranks.
    pub(crate) fn send(&self, to: impl IntoIterator<Item = u32>, id: u32, message: &Message) -> Result<()> {
        let to: Vec<u32> = to.into_iter().collect();
        if to.is_empty() {
            return Ok(());
        }
        let bytes = message.payload_bytes();
        {
            let mut state = self.shared.lock();
            state.leaving.insert(id, (to.len(), bytes));
            state.leaving_bytes += bytes;
        }
        let tag = Tag { run: self.run, id };
        to.into_iter().try_for_each(|to| self.lane.wire().send(to, tag, message.clone()).map(drop))?;
        self.lane.wire().wake();
        Ok(())
    }

    /// Expects a message. [`Side::take`] gives it.
    pub(crate) fn receive(&self, from: u32, id: u32, buffer: BlockBuffer) -> Result<()> {
        self.lane.wire().receive(from, Tag { run: self.run, id }, room(buffer))?;
        self.lane.wire().wake();
        Ok(())
    }

    /// Waits for a message that is expected.
    pub(crate) fn take(&self, id: u32) -> Result<Block> {
        self.shared.wait(self.cancel, |state| state.arrived.remove(&id))
    }

    /// Waits until at most so many bytes are leaving; with 0, until nothing is.
    pub(crate) fn settle(&self, most: u64) -> Result<()> {
        let is_over =
            |state: &mut State| if most == 0 { state.leaving.is_empty() } else { state.leaving_bytes <= most };
        self.shared.wait(self.cancel, |state| is_over(state).then_some(()))
    }
}
