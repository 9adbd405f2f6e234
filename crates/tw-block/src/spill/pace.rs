//! Whether compressing a block is faster than writing it as it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a block that are compressed to see how well and how fast that goes.
const SAMPLE: usize = 1 << 16;

/// Smaller blocks are not worth a look.
const SMALLEST: usize = 1 << 18;

/// How fast the file takes blocks that are not compressed.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Nanoseconds per mebibyte, averaged over the last blocks; 0 before the first.
    writing: AtomicU64,
}

impl Pace {
    /// A block was written as it is.
    pub(super) fn wrote(&self, bytes: u64, time: Duration) {
        if bytes < SMALLEST as u64 {
            return;
        }
        let now = (time.as_nanos() as u64).saturating_mul(1 << 20) / bytes;
        let before = self.writing.load(Ordering::Relaxed);
        // An average that forgets: what matters is how fast the disk is now.
        let average = if before == 0 { now } else { (7 * before + now) / 8 };
        self.writing.store(average.max(1), Ordering::Relaxed);
    }

    /// True if compressing these bytes and writing less saves time.
    pub(super) fn compresses(&self, bytes: &[u8]) -> bool {
        let writing = self.writing.load(Ordering::Relaxed);
        if writing == 0 || bytes.len() < SMALLEST {
            return false;
        }
        let middle = bytes.len() / 2 - SAMPLE / 2;
        let start = Instant::now();
        let compressed = lz4_flex::block::compress(&bytes[middle..middle + SAMPLE]);
        let compressing = (start.elapsed().as_nanos() as u64).saturating_mul(1 << 20) / SAMPLE as u64;
        let rest = writing.saturating_mul(compressed.len() as u64) / SAMPLE as u64;
        compressing.saturating_add(rest) < writing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shrinks_is_compressed_if_the_file_is_slow() {
        let (zeros, noise) = (
            vec![0u8; SMALLEST],
            (0..SMALLEST as u64).map(|k| (k.wrapping_mul(k) >> 3) as u8 ^ (k as u8).wrapping_mul(97)),
        );
        let pace = Pace::default();
        assert!(!pace.compresses(&zeros), "nothing is known of the file yet");
        pace.wrote(1 << 20, Duration::from_secs(10));
        assert!(pace.compresses(&zeros));
        assert!(!pace.compresses(&zeros[..100]));
        let random: Vec<u8> = noise
            .scan(1u64, |state, byte| {
                *state = state.wrapping_mul(6364136223846793005).wrapping_add(byte as u64 + 1);
                Some((*state >> 56) as u8)
            })
            .collect();
        assert!(!pace.compresses(&random), "bytes without a pattern do not shrink");
        let quick = Pace::default();
        quick.wrote(1 << 30, Duration::from_nanos(1));
        assert!(!quick.compresses(&zeros));
    }
}
