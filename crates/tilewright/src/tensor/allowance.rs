//! What is kept on behalf of live handles though nobody has asked for it, within one allowance per session.
//!
//! What does not fit any more is let go, least useful first: what takes the least work per byte to compute again, and of equals the oldest. Only
//! that can be let go which is computed from files, functions and numbers alone. To compute anything else again, the arrays in memory that it came
//! from would have to be kept, which may be larger than it is. So when such a tensor is kept its arguments are let go, and it stays as
//! long as its handle lives. What somebody asked to keep (`persist`) is not part of the allowance.

use std::sync::{Arc, Mutex, Weak};

use super::{Tensor, TensorNode};
use crate::available::machine_bytes;
use crate::session::lock;
use crate::stored::Stored;

/// The part of a budget that may be taken by what nobody has asked for.
pub(crate) const SHARE_OF_BUDGET: u64 = 8;

/// The part of the machine's memory that may be taken by it where there is no budget, and the least.
const SHARE_OF_MACHINE: u64 = 32;
const LEAST: u64 = 256 << 20;

/// What one session keeps though nobody has asked for it.
pub(crate) struct Allowance {
    limit: u64,
    /// In the order in which they were kept.
    entries: Mutex<Vec<Entry>>,
}

struct Entry {
    node: Weak<TensorNode>,
    result: usize,
    stored: Weak<Stored>,
    bytes: u64,
    /// Elements that are touched to compute it again, if that is possible.
    work: Option<u64>,
}

impl Entry {
    fn is_of(&self, stored: &Arc<Stored>) -> bool {
        std::ptr::eq(self.stored.as_ptr(), Arc::as_ptr(stored))
    }
}

impl Allowance {
    /// For a session with or without a budget.
    pub(crate) fn new(budget: Option<u64>) -> Allowance {
        let of_machine = || (machine_bytes().unwrap_or(0) / SHARE_OF_MACHINE).max(LEAST);
        let limit = budget.map_or_else(of_machine, |budget| budget / SHARE_OF_BUDGET);
        Allowance { limit, entries: Mutex::default() }
    }

    /// Bytes that can be kept besides what cannot be let go.
    pub(crate) fn room(&self) -> u64 {
        let mut entries = lock(&self.entries);
        entries.retain(|entry| entry.stored.strong_count() > 0);
        let fixed = entries.iter().filter(|entry| entry.work.is_none()).map(|entry| entry.bytes);
        self.limit.saturating_sub(fixed.fold(0, u64::saturating_add))
    }

    /// Keeps the blocks of a tensor, and lets go of what does not fit any more. `again` says whether they can be computed again.
    pub(super) fn keep(&self, tensor: &Tensor, stored: Arc<Stored>, again: bool) {
        let entry = Entry {
            node: Arc::downgrade(&tensor.node),
            result: tensor.result,
            stored: Arc::downgrade(&stored),
            bytes: stored.n_bytes(),
            work: again.then_some(tensor.node.n_touched),
        };
        let mut entries = lock(&self.entries);
        entries.retain(|entry| !entry.is_of(&stored));
        match again {
            true => lock(&tensor.node.computed)[tensor.result] = Some(stored),
            false => tensor.keep(stored),
        }
        entries.push(entry);
        let dropped = self.let_go(&mut entries, self.limit);
        drop(entries);
        drop(dropped);
    }

    /// Somebody has asked to keep these blocks: they are no longer part of the allowance.
    pub(super) fn forget(&self, stored: &Arc<Stored>) {
        lock(&self.entries).retain(|entry| !entry.is_of(stored));
    }

    /// Lets go of all that can be computed again.
    pub(crate) fn release(&self) {
        let dropped = self.let_go(&mut lock(&self.entries), 0);
        drop(dropped);
    }

    /// Takes out what is least useful until the rest fits, or nothing else can go. Whoever asks drops it without the lock.
    fn let_go(&self, entries: &mut Vec<Entry>, limit: u64) -> Vec<Arc<Stored>> {
        entries.retain(|entry| entry.stored.strong_count() > 0);
        let mut held = entries.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.bytes));
        let mut dropped = Vec::new();
        while held > limit {
            let useful = |a: &Entry, b: &Entry| {
                let per_byte = |x: &Entry, y: &Entry| u128::from(x.work.unwrap_or(0)) * u128::from(y.bytes);
                per_byte(a, b).cmp(&per_byte(b, a))
            };
            let candidates = entries.iter().enumerate().filter(|(_, entry)| entry.work.is_some());
            // Of equals `min_by` gives the first, which is the oldest.
            let Some((position, _)) = candidates.min_by(|(_, a), (_, b)| useful(a, b)) else { break };
            let entry = entries.remove(position);
            held -= entry.bytes;
            if let (Some(node), Some(stored)) = (entry.node.upgrade(), entry.stored.upgrade()) {
                lock(&node.computed)[entry.result].take_if(|kept| Arc::ptr_eq(kept, &stored));
                dropped.push(stored);
            }
        }
        dropped
    }
}
