//! Seeded random scheduling decisions, for tests that results do not depend on them.

use tw_ir::random;

use crate::sync::thread;

/// A stream of decisions.
#[derive(Debug)]
pub(crate) struct Chaos {
    seed: u64,
    counter: i64,
}

impl Chaos {
    /// One stream per seed and decision maker.
    pub(crate) fn new(seed: u64, who: u32) -> Chaos {
        // The stream number goes into the high half of the counter, which one run never reaches by counting.
        Chaos { seed, counter: (who as i64) << 32 }
    }

    /// A position among `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.counter += 1;
        random::integer(self.seed, self.counter, 0, n as i64) as usize
    }

    /// True once in two.
    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Sometimes lets other threads go first.
    pub(crate) fn stumble(&mut self) {
        match self.below(8) {
            0 => thread::yield_now(),
            1 => (0..self.below(200)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }
}
