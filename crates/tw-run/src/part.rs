//! The part of a schedule that one rank runs.
//!
//! Every rank has the whole schedule. Its part are the tasks that are placed on it, and the moves that begin or end in its memories, in the order of the schedule.
//! A move between two ranks belongs to both: the rank that has the block sends it, the other one receives it.
//!
//! Within a part, steps wait for each other as the schedule says. Nothing in a part waits for a step of another rank, with one exception: a receive ends when
//! the message has come. That follows from the rules of placements ([`tw_ir::schedule::Placement::verify`]): a task reads and writes memories of its own rank, and
//! an instance in such a memory is made by tasks of that rank, or by a move that ends there.

use std::sync::Arc;

use cranelift_entity::EntityRef;
use tw_ir::schedule::{InstanceId, Move, Schedule, StepKind};

/// What a rank does in a step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It runs the step by itself.
    Runs,
    /// It sends a block to a rank.
    Sends { to: u32 },
    /// It receives a block from a rank.
    Receives { from: u32 },
    /// Other ranks run the step.
    Absent,
}

/// The steps of one rank.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) rank: u32,
    roles: Vec<Role>,
    /// Per step of this rank, the number of steps of this rank that it waits for.
    pub(crate) dependencies: Vec<u32>,
    pub(crate) initial: Arc<[u32]>,
    pub(crate) n_steps: u64,
    /// The steps of the transfers between any two ranks, in their order: a transfer has the same number on all ranks, whatever moves each has beside them.
    transfers: Vec<u32>,
}

impl Part {
    pub(crate) fn of(schedule: &Schedule, rank: u32) -> Part {
        let roles: Vec<Role> = (0..schedule.n_steps()).map(|step| role(schedule, step, rank)).collect();
        let mut dependencies = vec![0; roles.len()];
        for (step, role) in roles.iter().enumerate() {
            // What waits for a block that was sent belongs to the rank that has received it.
            if matches!(role, Role::Runs | Role::Receives { .. }) {
                schedule.successors(step).iter().for_each(|&next| dependencies[next as usize] += 1);
            }
        }
        let is_mine = |step: &usize| roles[*step] != Role::Absent;
        let initial = (0..roles.len()).filter(is_mine).filter(|&step| dependencies[step] == 0);
        let initial = initial.map(|step| step as u32).collect();
        let n_steps = (0..roles.len()).filter(is_mine).count() as u64;
        let transfers = (0..schedule.n_steps() as u32).filter(|&step| is_transfer(schedule, step as usize)).collect();
        Part { rank, roles, dependencies, initial, n_steps, transfers }
    }

    pub(crate) fn role(&self, step: u32) -> Role {
        self.roles[step as usize]
    }

    /// The number of a transfer, the same on all ranks.
    pub(crate) fn number_of(&self, step: u32) -> Option<u32> {
        self.transfers.binary_search(&step).ok().map(|number| number as u32)
    }

    /// The step of a transfer of this rank.
    pub(crate) fn step_of(&self, number: u32) -> Option<u32> {
        let step = *self.transfers.get(number as usize)?;
        matches!(self.role(step), Role::Sends { .. } | Role::Receives { .. }).then_some(step)
    }

    /// True if an instance is in a memory of this rank.
    pub(crate) fn holds(&self, schedule: &Schedule, instance: InstanceId) -> bool {
        schedule.memory_of(instance).rank() == self.rank
    }
}

/// True if a step moves a block from one rank to another.
fn is_transfer(schedule: &Schedule, step: usize) -> bool {
    let (Some(placement), StepKind::Move(id)) = (schedule.placement(), schedule.steps()[step].kind()) else {
        return false;
    };
    let Move { from, to } = placement.moved(id);
    schedule.memory_of(from).rank() != schedule.memory_of(to).rank()
}

fn role(schedule: &Schedule, step: usize, rank: u32) -> Role {
    let Some(placement) = schedule.placement() else {
        return if rank == 0 { Role::Runs } else { Role::Absent };
    };
    let (from, to) = match schedule.steps()[step].kind() {
        StepKind::Task(task) => {
            return if placement.sites()[task.index()] == rank { Role::Runs } else { Role::Absent };
        }
        StepKind::Move(id) => {
            let Move { from, to } = placement.moved(id);
            (schedule.memory_of(from), schedule.memory_of(to))
        }
    };
    match (from.rank() == rank, to.rank() == rank) {
        (true, true) => Role::Runs,
        (true, false) => Role::Sends { to: to.rank() },
        (false, true) => Role::Receives { from: from.rank() },
        (false, false) => Role::Absent,
    }
}
