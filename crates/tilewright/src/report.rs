//! What a run cost.

use std::time::Duration;

/// Sums over the segments of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Segments run.
    pub segments: u64,
    /// Of these, how many were found in the cache.
    pub cached_segments: u64,
    /// Time spent planning.
    pub planning: Duration,
    /// Time spent running.
    pub running: Duration,
    /// Tasks run.
    pub tasks: u64,
    /// Bytes that sources gave, views of arrays included.
    pub read_bytes: u64,
    /// Bytes handed to files.
    pub written_bytes: u64,
    /// Most bytes of blocks alive at once, as measured.
    pub peak_bytes: u64,
    /// The largest peak of any segment as planned: serial replay of its schedule.
    pub planned_peak_bytes: u64,
    /// Scalar operations.
    pub flops: u64,
}

impl Totals {
    /// Adds the cost of another run.
    pub fn add(&mut self, other: &Totals) {
        self.segments += other.segments;
        self.cached_segments += other.cached_segments;
        self.planning += other.planning;
        self.running += other.running;
        self.tasks += other.tasks;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.planned_peak_bytes = self.planned_peak_bytes.max(other.planned_peak_bytes);
        self.flops = self.flops.saturating_add(other.flops);
    }
}
