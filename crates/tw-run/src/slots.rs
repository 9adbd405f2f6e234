//! Where blocks live during a run, and how they die.
//!
//! Every instance of a block has a slot with a number of claims left: one per read, plus one if it is an output. A task claims its operands before it
//! computes. A claim hands out a reference, and the last claim empties the slot; so the storage goes when the last task that holds a reference
//! lets go of it, without a second look at the counter. A task that reads a block twice claims it twice.
//!
//! Writers take the block out of its slot and put it back. That is exclusive although nothing checks it: the folds of a chain follow each
//! other in the dependency graph, readers follow the last fold, and [`Prepared`](crate::Prepared) has refused schedules where they do not.
//!
//! A block without readers has one claim per writer, and a writer that puts it back claims it at once: it dies with its last fold.

use std::sync::PoisonError;

use cranelift_entity::EntityRef;
use tw_ir::schedule::InstanceId;

use crate::handle::Place;
use crate::sync::Mutex;

/// The place of one block.
#[derive(Debug)]
pub(crate) struct Slot {
    block: Option<Place>,
    claims: u32,
}

impl Slot {
    /// An empty place for a block that will be claimed this often.
    pub(crate) fn new(claims: u32) -> Slot {
        Slot { block: None, claims }
    }

    /// A reference for one reader.
    pub(crate) fn claim(&mut self) -> Option<Place> {
        self.claims = self.claims.saturating_sub(1);
        if self.claims == 0 { self.block.take() } else { self.block.clone() }
    }

    /// The block, for a writer that continues it.
    pub(crate) fn take(&mut self) -> Option<Place> {
        self.block.take()
    }

    /// Gives a block back, or for the first time.
    pub(crate) fn put(&mut self, block: Place) {
        self.block = Some(block);
    }
}

/// Reaches slots: under a lock if threads share them, directly if there is one thread.
pub(crate) trait Slots {
    /// Runs `f` on the slot of an instance.
    fn with<R>(&mut self, instance: InstanceId, f: impl FnOnce(&mut Slot) -> R) -> R;
}

/// Slots of one thread.
pub(crate) struct LocalSlots(Vec<Slot>);

impl LocalSlots {
    /// One slot per instance.
    pub(crate) fn new(claims: &[u32]) -> LocalSlots {
        LocalSlots(claims.iter().map(|&n| Slot::new(n)).collect())
    }
}

impl Slots for LocalSlots {
    fn with<R>(&mut self, instance: InstanceId, f: impl FnOnce(&mut Slot) -> R) -> R {
        f(&mut self.0[instance.index()])
    }
}

/// Slots of several threads. A lock is held for a few instructions, never while a kernel runs, and hardly ever contended: only by tasks that
/// read one block at one moment.
pub(crate) struct SharedSlots(Vec<Mutex<Slot>>);

impl SharedSlots {
    /// One slot per instance.
    pub(crate) fn new(claims: &[u32]) -> SharedSlots {
        SharedSlots(claims.iter().map(|&n| Mutex::new(Slot::new(n))).collect())
    }
}

impl Slots for &SharedSlots {
    fn with<R>(&mut self, instance: InstanceId, f: impl FnOnce(&mut Slot) -> R) -> R {
        f(&mut self.0[instance.index()].lock().unwrap_or_else(PoisonError::into_inner))
    }
}
