//! What a checkpoint knows of a segment that has not ended: tasks that need not run again.
//!
//! While a segment runs, the engine keeps blocks in the file of the checkpoint ([`tw_run::Keep`]), and [`TaskLog`] appends what is kept to the log, under the hash of the bits of
//! the schedule. A later run plans the same segment again, finds the same bits, and leaves out what is kept ([`tw_run::Prepared::with_rest`]).
//!
//! A task that stores a block in a new file need not run again if the file is found as it was left: a hidden file whose name has the key of the checkpoint. Nothing says whether the disk
//! has got what was written before the machine has stopped, so after a restart of the machine blocks are stored again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tw_block::SpillFile;
use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Digest, Schedule};
use tw_ir::workflow::TaskId;
use tw_run::{Keep, Keeper, KeptTask, Prepared};

use super::event::{Event, SavedTasks};
use super::log::Log;
use crate::session::lock;

/// Appends what is kept to the log.
pub(super) struct TaskLog {
    pub(super) log: Arc<Mutex<Log>>,
    pub(super) blocks: Arc<SpillFile>,
}

impl Keeper for TaskLog {
    fn record(&self, bits: Digest, kept: &[KeptTask], useless: &[TaskId]) -> Result<()> {
        let describe = |kept: &KeptTask| {
            (kept.task.as_u32(), kept.blocks.iter().map(|block| block.describe()).collect::<Vec<_>>())
        };
        let kept = kept.iter().map(describe).collect();
        let useless = useless.iter().map(|task| task.as_u32()).collect();
        // Slots that were dropped before the record are free after it.
        let retired = self.blocks.retired();
        lock(&self.log).push(Event::Tasks(SavedTasks { bits, boot: boot(), kept, useless }))?;
        self.blocks.reuse(retired);
        Ok(())
    }
}

/// What tells the running system from the same machine after a restart; nothing if the system does not say.
pub(super) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// Tasks that runs before have kept.
#[derive(Debug, Default)]
pub(crate) struct Part {
    bits: Option<Digest>,
    tasks: BTreeMap<u32, KeptTask>,
}

impl Part {
    /// Takes in one more record. Tasks of another schedule than those before count no more.
    pub(super) fn add(&mut self, bits: Digest, is_same_boot: bool, kept: Vec<KeptTask>, useless: &[u32]) {
        if self.bits.replace(bits).is_some_and(|before| before != bits) {
            self.tasks.clear();
        }
        let counts = kept.into_iter().filter(|kept| is_same_boot || !kept.blocks.is_empty());
        self.tasks.extend(counts.map(|kept| (kept.task.as_u32(), kept)));
        useless.iter().for_each(|task| drop(self.tasks.remove(task)));
    }

    /// The bits of the schedule.
    pub(super) fn bits(&self) -> Option<Digest> {
        self.bits
    }

    /// Keeps only tasks that have stored blocks: others may have been given up when the segment had ended.
    pub(super) fn stores_only(&mut self) {
        self.tasks.retain(|_, kept| kept.blocks.is_empty());
    }

    /// The tasks that need not run, of sinks that were found as they were left.
    fn tasks_of(&self, schedule: &Schedule, found: &[bool]) -> Vec<KeptTask> {
        let workflow = schedule.workflow();
        if self.tasks.is_empty() || self.bits != Some(schedule.bits()) {
            return Vec::new();
        }
        let counts = |kept: &&KeptTask| {
            kept.task.index() < workflow.n_tasks()
                && match workflow.kernels[workflow.kernel(kept.task)].kernel {
                    Kernel::Store { sink } => found.get(sink.as_u32() as usize).copied().unwrap_or(false),
                    _ => kept.blocks.len() == workflow.outputs(kept.task).len(),
                }
        };
        self.tasks.values().filter(counts).cloned().collect()
    }
}

/// What a segment takes from a checkpoint and leaves in it.
pub(crate) struct Remembered {
    pub(super) file: Arc<SpillFile>,
    pub(super) keeper: Arc<dyn Keeper>,
    /// The middle part of the names of hidden files.
    pub(super) name: String,
    pub(super) before: Part,
    /// False if the results are known: only files are written.
    pub(super) wants_results: bool,
}

impl Remembered {
    /// The name of the hidden file of a sink.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What is left to run of a segment whose sinks keep, and were found, as said.
    pub(crate) fn rest_of(&self, prepared: Prepared, sinks: &[(bool, bool)]) -> (Prepared, Keep) {
        let found: Vec<bool> = sinks.iter().map(|&(_, found)| found).collect();
        let tasks = self.before.tasks_of(prepared.schedule(), &found);
        let sinks = sinks.iter().map(|&(keeps, _)| keeps).collect();
        let keep = Keep { file: Arc::clone(&self.file), keeper: Arc::clone(&self.keeper), sinks };
        match tasks.is_empty() && self.wants_results {
            true => (prepared, keep),
            false => (prepared.with_rest(tasks, self.wants_results), keep),
        }
    }
}
