//! Where every task runs.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::workflow::{BlockId, TaskId, TaskKind, Workflow};

use super::machine::Machine;

/// A worker for every task. All contributions to a block are made where its first is, so a block has one home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    tasks: Vec<u32>,
}

impl Sites {
    /// The worker of every task, in order of their numbers.
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

    /// The worker that holds each block when it is finished; `None` for blocks that nothing makes.
    pub fn homes(&self, workflow: &Workflow) -> Vec<Option<u32>> {
        let mut homes = vec![None; workflow.n_blocks()];
        for task in workflow.tasks() {
            for &block in workflow.outputs(task) {
                homes[block.index()] = Some(self.of(task));
            }
        }
        homes
    }

    /// Checks that workers exist and that no block is made in two places.
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
