//! The cache of computed tensors: values that are kept for live handles without an explicit request, within one allowance per session.
//!
//! When the allowance is exceeded, values are evicted, cheapest first: those with the least work per byte to recompute, then the oldest. Only a tensor
//! that is computed from files, functions and numbers alone can be evicted. To recompute any other tensor, its argument arrays would have to be kept, and they may be larger.
//! So when such a tensor is kept, its arguments are released, and it stays while its handle lives. Tensors kept by `persist` are not part of the allowance.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use tw_run::TensorHandle;

use super::{Tensor, TensorNode};
use crate::available::machine_bytes;
use crate::session::lock;

/// The fraction of a budget that the allowance may take.
pub(crate) const SHARE_OF_BUDGET: u64 = 8;

/// The part of the machine's memory that may be taken by it where there is no budget, and the least.
const SHARE_OF_MACHINE: u64 = 32;
const LEAST: u64 = 256 << 20;

/// So many entries are looked through without thinking.
const MANY: usize = 1024;

/// The cached tensors of one session.
pub(crate) struct Allowance {
    limit: u64,
    /// False where ranks would not let go of the same tensors.
    lets_go: bool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// In the order in which they were kept, among them some whose tensors have gone.
    entries: Vec<Entry>,
    /// How many were there when those that have gone were last taken out.
    n_alive: usize,
    /// Bytes of all entries, and of those that cannot be let go.
    bytes: u64,
    fixed_bytes: u64,
}

struct Entry {
    node: Weak<TensorNode>,
    result: usize,
    stored: Weak<TensorHandle>,
    bytes: u64,
    /// The work of computing it again, if that is possible.
    work: Option<u64>,
}

impl Kept {
    fn push(&mut self, entry: Entry) {
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.fixed_bytes = self.fixed_bytes.saturating_add(if entry.work.is_none() { entry.bytes } else { 0 });
        self.entries.push(entry);
    }

    /// Takes out what has gone. Of very many entries only if that may halve them, so that each costs the same however many there are.
    fn sweep(&mut self) {
        if self.entries.len() > MANY && self.entries.len() < 2 * self.n_alive {
            return;
        }
        let entries = std::mem::take(&mut self.entries);
        (self.bytes, self.fixed_bytes) = (0, 0);
        entries.into_iter().filter(|entry| entry.stored.strong_count() > 0).for_each(|entry| self.push(entry));
        self.n_alive = self.entries.len();
    }
}

impl Allowance {
    /// For a session with or without a budget.
    pub(crate) fn new(budget: Option<u64>) -> Allowance {
        let of_machine = || (machine_bytes().unwrap_or(0) / SHARE_OF_MACHINE).max(LEAST);
        let limit = budget.map_or_else(of_machine, |budget| budget / SHARE_OF_BUDGET);
        Allowance { limit, lets_go: true, kept: Mutex::default() }
    }

    /// For one of several ranks. All of them keep the same tensors, whatever their machines have, so nothing is let go before its handle is.
    pub(crate) fn of_ranks(budget: Option<u64>, n_ranks: u32) -> Allowance {
        let of_rank = budget.map_or(LEAST, |budget| budget / SHARE_OF_BUDGET);
        Allowance { limit: of_rank.saturating_mul(n_ranks.into()), lets_go: false, kept: Mutex::default() }
    }

    /// Bytes that can be kept besides what cannot be let go.
    pub(crate) fn room(&self) -> u64 {
        let mut kept = lock(&self.kept);
        if kept.fixed_bytes > self.limit / 2 {
            kept.sweep();
        }
        self.limit.saturating_sub(kept.fixed_bytes)
    }

    /// Keeps the blocks of a tensor, and lets go of what does not fit any more. `again` says whether they can be computed again.
    pub(super) fn keep(&self, tensor: &Tensor, stored: Arc<TensorHandle>, again: bool) {
        let node = &tensor.node;
        let again = again && self.lets_go;
        let entry = Entry {
            node: Arc::downgrade(node),
            result: tensor.result,
            stored: Arc::downgrade(&stored),
            bytes: stored.n_bytes(),
            work: again.then_some(node.work),
        };
        let mut kept = lock(&self.kept);
        if tensor.stored().is_some_and(|before| Arc::ptr_eq(&before, &stored)) {
            return;
        }
        match again {
            true => lock(&node.computed)[tensor.result] = Some(stored),
            false => tensor.keep(stored),
        }
        node.in_allowance.store(true, Ordering::Relaxed);
        kept.push(entry);
        let dropped = kept.let_go(self.limit);
        drop(kept);
        drop(dropped);
    }

    /// Removes blocks from the allowance, because `persist` keeps them now.
    pub(super) fn forget(&self, stored: &Arc<TensorHandle>) {
        let mut kept = lock(&self.kept);
        let is_of = |entry: &Entry| std::ptr::eq(entry.stored.as_ptr(), Arc::as_ptr(stored));
        let entries = std::mem::take(&mut kept.entries);
        (kept.bytes, kept.fixed_bytes) = (0, 0);
        entries.into_iter().filter(|entry| !is_of(entry)).for_each(|entry| kept.push(entry));
    }

    /// Lets go of all that can be computed again.
    pub(crate) fn release(&self) {
        let dropped = lock(&self.kept).let_go(0);
        drop(dropped);
    }
}

impl Kept {
    /// Evicts the cheapest tensors until the rest fits, or nothing else can go. Returns them, so that the caller drops them without the lock.
    fn let_go(&mut self, limit: u64) -> Vec<Arc<TensorHandle>> {
        let mut dropped = Vec::new();
        if self.bytes > limit || self.entries.len() > MANY.max(2 * self.n_alive) {
            self.sweep();
        }
        while self.bytes > limit {
            let useful = |a: &Entry, b: &Entry| {
                let per_byte = |x: &Entry, y: &Entry| u128::from(x.work.unwrap_or(0)) * u128::from(y.bytes);
                per_byte(a, b).cmp(&per_byte(b, a))
            };
            let candidates = self.entries.iter().enumerate().filter(|(_, entry)| entry.work.is_some());
            // Of equals `min_by` gives the first, which is the oldest.
            let Some((position, _)) = candidates.min_by(|(_, a), (_, b)| useful(a, b)) else { break };
            let entry = self.entries.remove(position);
            self.bytes -= entry.bytes;
            if let (Some(node), Some(stored)) = (entry.node.upgrade(), entry.stored.upgrade()) {
                lock(&node.computed)[entry.result].take_if(|kept| Arc::ptr_eq(kept, &stored));
                dropped.push(stored);
            }
        }
        dropped
    }
}
