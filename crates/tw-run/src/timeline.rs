//! An observer that records events.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tw_ir::workflow::{BlockId, TaskId};

use crate::events::{Moved, Observer};

/// Something that happened during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineEvent {
    /// A task ran.
    Task {
        /// Which.
        task: TaskId,
        /// Where.
        worker: u32,
        /// From here.
        start: Instant,
        /// To here.
        end: Instant,
        /// Bytes held afterwards.
        held: u64,
    },
    /// A block was moved between main memory and disk.
    Moved {
        /// Which, and where to.
        moved: Moved,
        /// Where.
        worker: u32,
        /// From here.
        start: Instant,
        /// To here.
        end: Instant,
        /// Bytes held afterwards.
        held: u64,
    },
    /// A block was deleted.
    Deleted {
        /// Which.
        block: BlockId,
        /// Its size.
        bytes: u64,
        /// Where.
        worker: u32,
        /// When.
        at: Instant,
    },
}

impl TimelineEvent {
    /// When it ended.
    pub fn at(&self) -> Instant {
        match self {
            TimelineEvent::Task { end, .. } | TimelineEvent::Moved { end, .. } => *end,
            TimelineEvent::Deleted { at, .. } => *at,
        }
    }
}

/// Collects every event. Each worker writes to a list of its own, so workers do not wait for each other.
#[derive(Debug)]
pub struct Timeline {
    begin: Instant,
    lanes: Vec<Mutex<Vec<TimelineEvent>>>,
}

impl Timeline {
    /// An empty timeline for a runtime with this many threads.
    pub fn new(threads: usize) -> Timeline {
        Timeline { begin: Instant::now(), lanes: (0..threads.max(1)).map(|_| Mutex::default()).collect() }
    }

    /// Its creation time: the zero of a chart.
    pub fn begin(&self) -> Instant {
        self.begin
    }

    /// Everything so far, in order of time.
    pub fn events(&self) -> Vec<TimelineEvent> {
        let mut events: Vec<TimelineEvent> =
            self.lanes.iter().flat_map(|lane| lane.lock().unwrap_or_else(PoisonError::into_inner).clone()).collect();
        events.sort_by_key(TimelineEvent::at);
        events
    }

    fn record(&self, worker: u32, event: TimelineEvent) {
        let lane = &self.lanes[worker as usize % self.lanes.len()];
        lane.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }
}

impl Observer for Timeline {
    fn task_finished(&self, task: TaskId, worker: u32, start: Instant, end: Instant, held: u64) {
        self.record(worker, TimelineEvent::Task { task, worker, start, end, held });
    }

    fn block_moved(&self, moved: Moved, worker: u32, start: Instant, end: Instant, held: u64) {
        self.record(worker, TimelineEvent::Moved { moved, worker, start, end, held });
    }

    fn block_deleted(&self, block: BlockId, bytes: u64, worker: u32, at: Instant) {
        self.record(worker, TimelineEvent::Deleted { block, bytes, worker, at });
    }
}
