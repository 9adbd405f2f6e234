//! Counting the bytes that blocks hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts bytes held by blocks: how many now, and how many at the worst moment.
#[derive(Debug, Default)]
pub struct Meter {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Meter {
    /// A meter at zero.
    pub fn new() -> Arc<Meter> {
        Arc::new(Meter::default())
    }

    /// Bytes held now.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The most bytes held at once since the last reset.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Forgets the past: the peak becomes what is held now.
    pub fn reset_peak(&self) {
        self.peak.store(self.now(), Ordering::Relaxed);
    }
}

/// A block's share of a meter, given back when the block goes.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Arc<Meter>,
    bytes: u64,
}

impl Charge {
    pub(crate) fn new(meter: &Arc<Meter>, bytes: u64) -> Charge {
        let now = meter.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        meter.peak.fetch_max(now, Ordering::Relaxed);
        Charge { meter: Arc::clone(meter), bytes }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.now.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_given_back() {
        let meter = Meter::new();
        let first = Charge::new(&meter, 100);
        let second = Charge::new(&meter, 50);
        assert_eq!((meter.now(), meter.peak()), (150, 150));
        drop(first);
        assert_eq!((meter.now(), meter.peak()), (50, 150));
        meter.reset_peak();
        drop(second);
        assert_eq!((meter.now(), meter.peak()), (0, 50));
    }
}
