//! The items of a sort: keys, alone or with their original positions.

use std::cell::Cell;

use super::key::Key;
use crate::memory::{SMALLEST_KEPT, with_scratch};

/// A key, maybe with a position.
pub(super) trait Item: Copy + Default + Send + 'static {
    /// The sort key.
    type Key: Key;
    /// From a key and the position of its element.
    fn new(key: Self::Key, position: u64) -> Self;
    /// Its key.
    fn key(self) -> Self::Key;
    /// Its position, if it has one.
    fn position(self) -> u64;
    /// Sorts by key and keeps the order of equal keys; for few items, or for many that are nearly in order.
    fn sort_by_comparison(items: &mut [Self]);
    /// Brings the `n` items that come first in the order to the front, in any order.
    fn select(items: &mut [Self], n: usize);
    /// Scratch space of this type.
    fn of(scratch: &mut Scratch) -> &mut Vectors<Self>;
    /// Its key as bits.
    #[inline]
    fn bits(self) -> u64 {
        self.key().widen()
    }
}

/// A key with a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair<K> {
    key: K,
    position: u64,
}

/// A vector of items, and scratch space as long.
pub(super) type Vectors<I> = [Vec<I>; 2];

/// Vectors of every kind of item.
#[derive(Default)]
pub(super) struct Scratch {
    narrow: Vectors<u32>,
    wide: Vectors<u64>,
    narrow_pairs: Vectors<Pair<u32>>,
    wide_pairs: Vectors<Pair<u64>>,
}

thread_local! {
    /// Small vectors that sorts of one thread use one after the other.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Runs code with vectors that have room for so many items, and whose contents are arbitrary. Those of tasks are kept with other memory and counted.
pub(super) fn with_vectors<I: Item, R>(room: [usize; 2], run: impl FnOnce(&mut Vectors<I>) -> R) -> R {
    let n_bytes = |items: usize| items.saturating_mul(size_of::<I>()) as u64;
    let is_large = n_bytes(room[0].saturating_add(room[1])) >= SMALLEST_KEPT;
    let run = match if is_large { with_scratch(room, run) } else { Err(run) } {
        Ok(result) => return result,
        Err(run) => run,
    };
    let mut of_thread = SCRATCH.take().unwrap_or_default();
    let vectors = I::of(&mut of_thread);
    let result = run(vectors);
    if n_bytes(vectors.iter().map(Vec::capacity).sum()) >= SMALLEST_KEPT {
        *vectors = Vectors::default();
    }
    SCRATCH.set(Some(of_thread));
    result
}

macro_rules! items {
    ($($key:ident $alone:ident $pairs:ident;)*) => {
        $(impl Item for $key {
            type Key = $key;
            #[inline]
            fn new(key: $key, _: u64) -> $key {
                key
            }
            #[inline]
            fn key(self) -> $key {
                self
            }
            #[inline]
            fn position(self) -> u64 {
                0
            }
            fn sort_by_comparison(items: &mut [$key]) {
                // Equal keys are indistinguishable, so stability is not needed; but unlike its unstable sibling, this sort merges runs that are in order already.
                items.sort();
            }
            fn select(items: &mut [$key], n: usize) {
                if n > 0 && n < items.len() {
                    items.select_nth_unstable(n - 1);
                }
            }
            fn of(scratch: &mut Scratch) -> &mut Vectors<$key> {
                &mut scratch.$alone
            }
        }
        impl Item for Pair<$key> {
            type Key = $key;
            #[inline]
            fn new(key: $key, position: u64) -> Pair<$key> {
                Pair { key, position }
            }
            #[inline]
            fn key(self) -> $key {
                self.key
            }
            #[inline]
            fn position(self) -> u64 {
                self.position
            }
            fn sort_by_comparison(items: &mut [Pair<$key>]) {
                items.sort_by_key(|item| item.key);
            }
            fn select(items: &mut [Pair<$key>], n: usize) {
                if n > 0 && n < items.len() {
                    items.select_nth_unstable_by_key(n - 1, |item| (item.key, item.position));
                    // The selected items are sorted by key next, and that sort is stable.
                    items[..n].sort_unstable_by_key(|item| item.position);
                }
            }
            fn of(scratch: &mut Scratch) -> &mut Vectors<Pair<$key>> {
                &mut scratch.$pairs
            }
        })*
    };
}
items! {
    u32 narrow narrow_pairs;
    u64 wide wide_pairs;
}
