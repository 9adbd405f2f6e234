//! The cost of a run.

use std::time::Duration;

/// Sums over the segments of a run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Segments run.
    pub segments: u64,
    /// Segments found in the cache.
    pub cached_segments: u64,
    /// Time spent planning.
    pub planning: Duration,
    /// Time spent running.
    pub running: Duration,
    /// Tasks run.
    pub tasks: u64,
    /// Steps that did not run, since a checkpoint has what they made.
    pub resumed_steps: u64,
    /// Bytes read from sources, including views of arrays.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Bytes of blocks written to the spill file.
    pub spilled_bytes: u64,
    /// Bytes of blocks read from the spill file.
    pub fetched_bytes: u64,
    /// Bytes of blocks sent to other ranks, as the schedules say. Results that all ranks get are not counted.
    pub sent_bytes: u64,
    /// Bytes of blocks that other ranks have sent.
    pub received_bytes: u64,
    /// The bytes that the schedules let this rank send.
    pub planned_sent_bytes: u64,
    /// Measured peak of the bytes of live blocks and scratch space.
    pub peak_bytes: u64,
    /// Planned peak: the largest over all segments, by serial replay of the schedule.
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
        self.resumed_steps += other.resumed_steps;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.spilled_bytes += other.spilled_bytes;
        self.fetched_bytes += other.fetched_bytes;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.planned_sent_bytes = self.planned_sent_bytes.saturating_add(other.planned_sent_bytes);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.planned_peak_bytes = self.planned_peak_bytes.max(other.planned_peak_bytes);
        self.flops = self.flops.saturating_add(other.flops);
    }
}
