//! The main memory of loads and stores.

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::{Memory, Schedule};
use tw_ir::workflow::{BlockId, ScratchSizes, TaskId, Workflow};

/// The main memory of the inputs and outputs of a workflow, which its sources and sinks know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IoMemory {
    /// Per block, true if it is in memory before the workflow runs: loading it shares it, and costs nothing. No entry means false.
    resident: Vec<bool>,
    /// Per set, the most bytes that loading one of its blocks takes besides the block.
    loads: Vec<u64>,
    /// Per sink, the most bytes that storing one of its blocks takes besides the block.
    stores: Vec<u64>,
}

impl IoMemory {
    /// From what is known of every block, set and sink.
    pub fn new(resident: Vec<bool>, loads: Vec<u64>, stores: Vec<u64>) -> IoMemory {
        IoMemory { resident, loads, stores }
    }

    /// True if a block is in memory before the workflow runs.
    pub fn is_resident(&self, block: BlockId) -> bool {
        self.resident.get(block.index()).copied().unwrap_or(false)
    }

    /// The scratch space of a task; `scratch` is that of kernels.
    pub fn of_task(&self, workflow: &Workflow, scratch: &ScratchSizes, task: TaskId) -> u64 {
        match &workflow.kernels[workflow.kernel(task)].kernel {
            Kernel::Load { .. } => workflow.outputs(task).first().map_or(0, |&block| self.of_load(workflow, block)),
            Kernel::Store { sink } => self.stores.get(sink.as_u32() as usize).copied().unwrap_or(0),
            _ => scratch.task(workflow, task),
        }
    }

    /// The scratch space of loading a block, for the first time or again.
    pub fn of_load(&self, workflow: &Workflow, block: BlockId) -> u64 {
        self.loads.get(workflow.set_of(block).index()).copied().unwrap_or(0)
    }

    /// What a step takes besides its blocks: scratch space, and pieces of operands that it reads on disk.
    pub fn of_step(&self, schedule: &Schedule, scratch: &ScratchSizes, step: usize) -> u64 {
        let workflow = schedule.workflow();
        match schedule.steps()[step].as_task() {
            Some(task) => self.of_task(workflow, scratch, task).saturating_add(schedule.replay().streaming_bytes(step)),
            // A block that came from a source is read there again.
            None => schedule.writes(step).next().map_or(0, |to| match schedule.memory_of(to) {
                Memory::Host(_) => self.of_load(workflow, schedule.block_of(to)),
                Memory::Disk(_) => 0,
            }),
        }
    }

    /// The most that a load or a store takes.
    pub fn largest_scratch(&self) -> u64 {
        self.loads.iter().chain(&self.stores).copied().max().unwrap_or(0)
    }
}
