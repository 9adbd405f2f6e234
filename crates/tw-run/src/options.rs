//! Options and results of a run.

use std::sync::Arc;

use tw_block::{Meter, SpillFile, SpilledBlock};
use tw_ir::Array;

use crate::cancel::CancelToken;
use crate::events::{Observer, Progress};
use crate::handle::TensorHandle;
use crate::keep::Keep;

/// The form of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputForm {
    /// Its blocks are handed to the caller.
    #[default]
    Blocks,
    /// One array: blocks are computed in it where their elements lie together there; others are copied into it when they are complete, and dropped after their last read.
    Array,
    /// Both.
    BlocksAndArray,
}

impl OutputForm {
    /// True if the caller gets the blocks.
    pub fn has_blocks(self) -> bool {
        self != OutputForm::Array
    }

    /// True if the caller gets one array.
    pub fn has_array(self) -> bool {
        self != OutputForm::Blocks
    }
}

/// Options of a run.
#[derive(Clone)]
pub struct RunOptions {
    /// Counts the bytes of every block of the run.
    pub meter: Arc<Meter>,
    /// Stops the run from outside.
    pub cancel: CancelToken,
    /// Bytes of blocks that a run may hold beyond the peak of its schedule, because threads run ahead of its order. If not given, as many as
    /// [`run_ahead`](crate::run_ahead) says.
    pub ahead: Option<u64>,
    /// Where schedules with moves to disk spill.
    pub spill: Option<Arc<SpillFile>>,
    /// True if handles of results may name the file that a block was read from, instead of the block: the caller reads them soon, and keeps none for long.
    pub names_sources: bool,
    /// Keeps blocks for a later run of the same schedule.
    pub keep: Option<Keep>,
    /// Sees every event.
    pub observer: Option<Arc<dyn Observer>>,
    /// Counts tasks, for progress displays.
    pub progress: Option<Arc<Progress>>,
    /// Makes every scheduling decision at random, from this seed. Results do not change.
    pub chaos: Option<u64>,
    /// The form of each output of the workflow; blocks if not given. An array costs as many bytes as the blocks would, and
    /// for each thread a block that is being copied.
    pub forms: Vec<OutputForm>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            meter: Meter::new(),
            cancel: CancelToken::new(),
            ahead: None,
            spill: None,
            names_sources: false,
            keep: None,
            observer: None,
            progress: None,
            chaos: None,
            forms: Vec::new(),
        }
    }
}

/// The results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// Per output of the workflow its blocks, unless it is wanted as an array alone.
    pub outputs: Vec<Option<TensorHandle>>,
    /// Per output of the workflow all of it, if it is wanted as an array.
    pub arrays: Vec<Option<Array>>,
    /// With [`RunOptions::keep`], the blocks of each output that were kept.
    pub kept: Vec<Vec<Option<Arc<SpilledBlock>>>>,
    /// Measurements.
    pub stats: RunStats,
}

/// Measurements of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunStats {
    /// Tasks that ran.
    pub tasks: u64,
    /// Steps that did not run, because of what an earlier run has kept.
    pub skipped: u64,
    /// From the call to the results.
    pub seconds: f64,
    /// Bytes of blocks that sources gave.
    pub loaded_bytes: u64,
    /// Bytes of blocks handed to sinks.
    pub stored_bytes: u64,
    /// Bytes of blocks that were written to the spill file.
    pub spilled_bytes: u64,
    /// Bytes of blocks that were read from the spill file.
    pub fetched_bytes: u64,
    /// Bytes of blocks that were sent to other ranks.
    pub sent_bytes: u64,
    /// Bytes of blocks that other ranks have sent.
    pub received_bytes: u64,
    /// The peak of the meter when the run ended. A meter shared with other runs counts them too.
    pub peak_bytes: u64,
    /// Threads the run could use, the caller's included; 1 if it ran on the caller's alone.
    pub threads: usize,
}
