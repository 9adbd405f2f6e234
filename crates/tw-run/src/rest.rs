//! What is left to run of a schedule, where an earlier run has kept blocks.
//!
//! A later run of a schedule need not repeat tasks whose blocks are in a file ([`KeptTask`]), nor tasks that only such tasks need. [`Rest`] walks the steps backwards
//! and finds out, with *needed* meaning that a step that runs reads an instance, or that it is a result that no kept block serves:
//!
//! * A step is skipped if nothing that it writes is needed. A store is skipped if its sink still has the block.
//! * A task that was kept is not run. Its blocks are read from the file, and what it reads is not needed for it. Of a chain of folds, kept is what the chain had
//!   become by that task, so that the tasks before it are not needed either.
//! * Any other step runs, and needs what it reads.
//!
//! The promises of a schedule hold for its rest. The steps that run keep their order. An instance appears at the same step as in the whole schedule or later, and goes at the same step or
//! earlier, so that serial replay never holds more. Tasks are named by their numbers in the workflow, not by steps: the later run may have another budget, and
//! with it other moves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cranelift_entity::EntityRef;
use tw_block::SpilledBlock;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{InstanceId, Schedule, StepKind};
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

/// A task that need not run again: what its outputs were when it had run. A task that stores a block has none.
#[derive(Clone, Debug)]
pub struct KeptTask {
    /// The task, by its number in the workflow.
    pub task: TaskId,
    /// Its outputs, in order.
    pub blocks: Vec<Arc<SpilledBlock>>,
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Todo {
    Run,
    Skip,
    /// The blocks of this kept task are read.
    Restore(u32),
}

/// The part of a schedule that is left to run.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    todo: Vec<Todo>,
    kept: Vec<KeptTask>,
    /// Per instance, how often steps that run read it, and how often it is handed out as a result.
    uses: Vec<u32>,
    /// Per result of the schedule, its block in the file, if that serves it.
    results: Vec<Option<Arc<SpilledBlock>>>,
    /// False if nobody wants the results: only stores are made up for.
    wants_results: bool,
}

/// True if a task adds to blocks that other tasks have begun.
pub(crate) fn continues(workflow: &Workflow, task: TaskId) -> bool {
    workflow.kind(task) == TaskKind::Fold && workflow.position(task) > 0
}

impl Rest {
    pub(crate) fn of(schedule: &Schedule, kept: Vec<KeptTask>, wants_results: bool) -> Rest {
        let workflow = schedule.workflow();
        let by_task: HashMap<TaskId, u32> = kept.iter().map(|kept| kept.task).zip(0..).collect();
        let mut last_tasks: HashMap<BlockId, (TaskId, usize)> = HashMap::new();
        for task in schedule.order() {
            last_tasks.extend(workflow.outputs(task).iter().zip(0..).map(|(&block, k)| (block, (task, k))));
        }
        let n_instances = schedule.n_instances();
        let (mut needed, mut uses) = (vec![false; n_instances], vec![0u32; n_instances]);
        let mut results = Vec::new();
        for instance in schedule.results() {
            let last = last_tasks.get(&schedule.block_of(instance));
            let found = last.and_then(|(task, k)| kept[*by_task.get(task)? as usize].blocks.get(*k).cloned());
            if found.is_none() && wants_results {
                needed[instance.index()] = true;
                uses[instance.index()] += 1;
            }
            results.push(found);
        }
        let mut todo = vec![Todo::Skip; schedule.n_steps()];
        for step in (0..schedule.n_steps()).rev() {
            let is_needed = schedule.writes(step).any(|instance| needed[instance.index()]);
            todo[step] = match schedule.steps()[step].kind() {
                StepKind::Task(task) => {
                    let is_store = matches!(workflow.kernels[workflow.kernel(task)].kernel, Kernel::Store { .. });
                    match by_task.get(&task) {
                        Some(_) if is_store => Todo::Skip,
                        Some(&k) if is_needed => Todo::Restore(k),
                        None if is_needed || is_store => Todo::Run,
                        _ => Todo::Skip,
                    }
                }
                StepKind::Move(_) if is_needed => Todo::Run,
                StepKind::Move(_) => Todo::Skip,
            };
            match todo[step] {
                Todo::Run => {
                    // Who adds to blocks needs all of them as they were before, and puts all of them back.
                    let adds = schedule.steps()[step].as_task().is_some_and(|task| continues(workflow, task));
                    schedule.writes(step).for_each(|instance| needed[instance.index()] = adds);
                    for instance in schedule.reads(step).flatten() {
                        needed[instance.index()] = true;
                        uses[instance.index()] += 1;
                    }
                }
                Todo::Restore(_) => schedule.writes(step).for_each(|instance| needed[instance.index()] = false),
                Todo::Skip => {}
            }
        }
        Rest { todo, kept, uses, results, wants_results }
    }

    pub(crate) fn todo(&self, step: u32) -> Todo {
        self.todo[step as usize]
    }

    pub(crate) fn kept(&self, k: u32) -> &KeptTask {
        &self.kept[k as usize]
    }

    /// True if a step that runs, or the caller, needs an instance.
    pub(crate) fn is_used(&self, instance: InstanceId) -> bool {
        self.uses[instance.index()] > 0
    }

    /// The number of claims of each instance, as for a whole schedule: its uses, or one for each step that writes it if it has none.
    pub(crate) fn claims(&self, schedule: &Schedule) -> Vec<u32> {
        let mut claims = self.uses.clone();
        for step in (0..schedule.n_steps()).filter(|&step| self.todo[step] != Todo::Skip) {
            let writes = schedule.writes(step).filter(|instance| !self.is_used(*instance));
            writes.for_each(|instance| claims[instance.index()] += 1);
        }
        claims
    }

    /// The block in the file that serves a result of the schedule.
    pub(crate) fn result(&self, number: usize) -> Option<&Arc<SpilledBlock>> {
        self.results.get(number)?.as_ref()
    }

    pub(crate) fn wants_results(&self) -> bool {
        self.wants_results
    }

    /// Steps that do nothing.
    pub(crate) fn n_skipped(&self) -> u64 {
        self.todo.iter().filter(|&&todo| todo != Todo::Run).count() as u64
    }

    /// Kept tasks whose blocks serve nothing any more.
    pub(crate) fn useless(&self) -> impl Iterator<Item = TaskId> {
        let mut is_used = vec![false; self.kept.len()];
        for todo in &self.todo {
            if let Todo::Restore(k) = todo {
                is_used[*k as usize] = true;
            }
        }
        let results: HashSet<*const SpilledBlock> = self.results.iter().flatten().map(Arc::as_ptr).collect();
        let serves = move |block: &Arc<SpilledBlock>| results.contains(&Arc::as_ptr(block));
        let kept = self.kept.iter().zip(is_used);
        let useless =
            kept.filter(move |(kept, is_used)| !is_used && !kept.blocks.is_empty() && !kept.blocks.iter().any(&serves));
        useless.map(|(kept, _)| kept.task)
    }
}
