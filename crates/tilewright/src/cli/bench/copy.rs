//! The memory bandwidth of the machine, measured by copying: the rival of every memory-bound bench.

use std::time::Instant;

use super::machine;

/// Eight bytes each: far more than any cache.
const ELEMENTS: usize = 1 << 25;

/// Two arrays, one of which is copied into the other by all threads. As in STREAM, bytes read and bytes written count.
pub(super) struct CopyRival {
    from: Vec<u64>,
    to: Vec<u64>,
}

impl CopyRival {
    pub(super) fn new() -> CopyRival {
        // Not zeros: all pages of fresh zeros may be the same one.
        let mut copy = CopyRival { from: (0..ELEMENTS as u64).collect(), to: vec![1; ELEMENTS] };
        copy.bytes_per_second();
        copy
    }

    /// Bytes read and written per second.
    pub(super) fn bytes_per_second(&mut self) -> f64 {
        let chunk = ELEMENTS.div_ceil(machine::threads());
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for (from, to) in self.from.chunks(chunk).zip(self.to.chunks_mut(chunk)) {
                scope.spawn(|| to.copy_from_slice(from));
            }
        });
        let bytes = 2 * ELEMENTS * size_of::<u64>();
        bytes as f64 / begin.elapsed().as_secs_f64()
    }
}
