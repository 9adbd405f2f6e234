//! The worker of each task.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

use super::machine::Machine;

/// The worker of each task. All contributions to a block run on the worker of the first, so a block has one home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    tasks: Vec<u32>,
}

impl Sites {
    /// From the worker of each task, by task number.
    pub fn from_workers(tasks: Vec<u32>) -> Sites {
        Sites { tasks }
    }

    /// The worker of every task.
    pub fn workers(&self) -> &[u32] {
        &self.tasks
    }

    /// The worker of a task.
    pub fn of(&self, task: TaskId) -> u32 {
        self.tasks[task.index()]
    }

    /// The home of each finished block; `None` for blocks that no task computes.
    pub fn homes(&self, workflow: &Workflow) -> Vec<Option<u32>> {
        let mut homes = vec![None; workflow.n_blocks()];
        for task in workflow.tasks() {
            for &block in workflow.outputs(task) {
                homes[block.index()] = Some(self.of(task));
            }
        }
        homes
    }

    /// Checks that workers exist and that no block is computed on two workers.
    pub fn verify(&self, workflow: &Workflow, machine: &Machine) -> Result<()> {
        if self.tasks.len() != workflow.n_tasks() {
            return Err(Error::internal(format!("{} tasks are placed of {}", self.tasks.len(), workflow.n_tasks())));
        }
        let mut homes: Vec<Option<u32>> = vec![None; workflow.n_blocks()];
        for task in workflow.tasks() {
            let site = self.of(task);
            if site as usize >= machine.n_workers() {
                return Err(Error::internal(format!("{task} is placed on worker {site} of {}", machine.n_workers())));
            }
            for &block in workflow.outputs(task) {
                check_home(workflow, task, block, homes[block.index()].replace(site), site)?;
            }
        }
        Ok(())
    }
}

fn check_home(workflow: &Workflow, task: TaskId, block: BlockId, before: Option<u32>, site: u32) -> Result<()> {
    match before {
        Some(home) if home != site && workflow.kind(task) == TaskKind::Fold => {
            Err(Error::internal(format!("{task} adds to {block} on worker {site}, but it began on worker {home}")))
        }
        _ => Ok(()),
    }
}
