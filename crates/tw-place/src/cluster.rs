//! The workers that a session plans for, and who places tasks on them.

use std::sync::Arc;

use tw_ir::error::Result;

use super::machine::Machine;
use super::notation::Notation;
use super::schedulers::SchedulerName;

/// Workers that a session plans for, and who places tasks on them. The threads of one machine run such a plan as any other.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The workers.
    pub machine: Machine,
    /// Who places tasks.
    pub scheduler: SchedulerName,
    /// Where the user wants tensors to be.
    pub distribution: Option<Arc<Notation>>,
}

impl Cluster {
    /// Nodes with some workers each, which are as fast as those of the default machine.
    pub fn of(nodes: u32, workers: u32, scheduler: SchedulerName) -> Result<Cluster> {
        Ok(Cluster { machine: Machine::of(nodes, workers)?, scheduler, distribution: None })
    }
}
