//! All schedulers beside each other, in one simulator.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::program::Program;
use tw_ir::workflow::StmtId;

use super::bounds::{Touching, least_together_within};
use super::grids::{Grids, SearchReport, touching};
use super::machine::Machine;
use super::notation::Notation;
use super::placed::{ByGrids, Placed, place, place_as_written, place_by_grids};
use super::schedulers::{Lshs, Pattern, RoundRobin, Scheduler};
use crate::lower::lower;
use crate::options::PlanOptions;
use crate::pipeline::Unordered;

/// What each scheduler makes of a program, the one that ends first in front.
#[derive(Clone, Debug)]
pub struct Rivals {
    /// The plans.
    pub placed: Vec<Placed>,
    /// Plans that need more memory than a worker has.
    pub refused: Vec<Placed>,
    /// The grids of the plan that was placed by them.
    pub grids: Grids,
    /// The least that the busiest worker can receive for each statement that has a bound, in bytes. Statements are those of the
    /// plan by grids; others may order products otherwise.
    pub statements: Vec<(StmtId, f64)>,
    /// The least for the whole program. It assumes, as the bounds of statements do, that all workers do equally much of each.
    pub bound_bytes: f64,
}

impl Rivals {
    /// Plans a straight-line program with every scheduler. With a limit of memory, plans that do not keep it are put aside.
    pub fn of(program: &Program, options: &PlanOptions, machine: &Machine, limit: usize) -> Result<Rivals> {
        Rivals::beside(None, program, options, machine, limit)
    }

    /// The same, with a distribution that the user wrote beside the others, as the scheduler `tdn`.
    pub fn beside(
        notation: Option<&Notation>,
        program: &Program,
        options: &PlanOptions,
        machine: &Machine,
        limit: usize,
    ) -> Result<Rivals> {
        machine.verify()?;
        let unordered = Unordered::new(program, options)?;
        let plan = lower(&unordered.ordered(&[])?, options)?;
        let ByGrids { program, placed: jointly, grids, .. } = place_by_grids(&unordered, options, machine, limit)?;
        let mut placed = vec![jointly];
        for scheduler in [&Pattern as &dyn Scheduler, &Lshs, &RoundRobin] {
            placed.push(place(&plan, machine, scheduler)?);
        }
        if let Some(notation) = notation {
            placed.push(place_as_written(&unordered, options, machine, limit, notation)?);
        }
        let mut refused = Vec::new();
        if let Some(memory) = machine.memory {
            let least = placed.iter().map(|placed| placed.simulation.peak_bytes_max()).min().unwrap_or(0);
            (placed, refused) = placed.into_iter().partition(|placed| placed.simulation.peak_bytes_max() <= memory);
            if placed.is_empty() {
                let text = format!("no plan keeps every worker below {memory} bytes; the best needs {least}");
                return Err(Error::resource(text).help("give the machine more workers, or workers more memory"));
            }
        }
        placed.sort_by(|a, b| a.simulation.makespan.total_cmp(&b.simulation.makespan));
        let workers = machine.n_workers() as u64;
        let found = touching(&program);
        let alone = |(node, statement): &(usize, Touching)| {
            (StmtId::new(*node), least_together_within(std::slice::from_ref(statement), workers, machine.memory))
        };
        let statements = found.iter().map(alone).collect();
        let all: Vec<Touching> = found.into_iter().map(|(_, statement)| statement).collect();
        let bound_bytes = least_together_within(&all, workers, machine.memory);
        Ok(Rivals { placed, refused, grids, statements, bound_bytes })
    }

    /// The plan by grids, whether it is refused or not.
    pub fn by_grids(&self) -> Option<&Placed> {
        self.placed.iter().chain(&self.refused).find(|placed| placed.scheduler == "algebraic")
    }

    /// What the search for grids did.
    pub fn report(&self) -> &SearchReport {
        &self.grids.report
    }
}
