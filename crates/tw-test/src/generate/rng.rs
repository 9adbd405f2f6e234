//! A small deterministic random number generator.

use tw_ir::random;

/// Draws from the counter-based streams of [`tw_ir::random`]: equal seeds give equal draws in every version and on every machine.
pub(crate) struct Rng {
    seed: u64,
    counter: i64,
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng { seed, counter: 0 }
    }

    /// An integer from `low` to `high`, both included.
    pub(crate) fn range(&mut self, low: i64, high: i64) -> i64 {
        self.counter += 1;
        random::integer(self.seed, self.counter, low, high + 1)
    }

    /// A position in a collection of `n` things. `n` is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.range(0, n as i64 - 1) as usize
    }

    /// True this often in a hundred.
    pub(crate) fn chance(&mut self, percent: i64) -> bool {
        self.range(0, 99) < percent
    }

    /// One of several. There must be one.
    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// One of several, if there is one.
    pub(crate) fn try_pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        if items.is_empty() { None } else { Some(self.pick(items)) }
    }

    /// A random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for k in (1..items.len()).rev() {
            items.swap(k, self.below(k + 1));
        }
    }

    /// A 64-bit seed.
    pub(crate) fn seed(&mut self) -> u64 {
        self.counter += 1;
        random::bits(self.seed, self.counter) as u64
    }
}
