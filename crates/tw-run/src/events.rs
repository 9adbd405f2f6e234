//! Events of a run, for observers and progress.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tw_ir::workflow::{BlockId, TaskId};

/// Sees the events of runs. Called on the thread where they happen, so implementations should be quick; with none, no clock is read.
///
/// Worker 0 is the thread that called [`Engine::run`](crate::Engine::run), the others are those of the pool.
pub trait Observer: Send + Sync {
    /// A task begins.
    fn task_started(&self, _task: TaskId, _worker: u32, _at: Instant) {}

    /// A task that ended well. `held` is the number of bytes the run's meter shows afterwards.
    fn task_finished(&self, _task: TaskId, _worker: u32, _start: Instant, _end: Instant, _held: u64) {}

    /// A block was moved between main memory and disk. `held` is the number of bytes the run's meter shows afterwards.
    fn block_moved(&self, _moved: Moved, _worker: u32, _start: Instant, _end: Instant, _held: u64) {}

    /// The last reader of a block is done and its storage is gone.
    fn block_deleted(&self, _block: BlockId, _bytes: u64, _worker: u32, _at: Instant) {}
}

/// A move of a block between main memory and disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its direction.
    pub kind: MoveKind,
    /// The block.
    pub block: BlockId,
    /// Its size.
    pub bytes: u64,
}

/// The direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    /// From main memory to the spill file.
    Spill,
    /// From the spill file to main memory.
    Fetch,
}

/// The progress of runs. Counts add up over all runs that share it, such as the segments of a program.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    read: AtomicU64,
}

impl Progress {
    /// Nothing done of nothing.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Tasks finished so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Tasks of all runs begun so far.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Bytes read from files so far, from the spill file too.
    pub fn read_bytes(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(crate) fn has_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn begin(&self, tasks: u64) {
        self.total.fetch_add(tasks, Ordering::Relaxed);
    }

    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}
