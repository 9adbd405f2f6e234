//! All schedulers beside each other, in one simulator.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::program::Program;
use tw_ir::workflow::StmtId;

use super::bounds::{Touching, least_together_within};
use super::grids::{Aim, Grids, SearchReport, touching};
use super::homes::Before;
use super::machine::Machine;
use super::notation::Notation;
use super::placed::{ByGrids, Placed, Target, place_after, place_as_written, place_by_grids, place_by_time};
use super::schedulers::{Lshs, Pattern, RoundRobin, Scheduler};
use tw_plan::PlanOptions;
use tw_plan::Unordered;
use tw_plan::lower;

/// What each scheduler makes of a program, the one that ends first in front.
#[derive(Clone, Debug)]
pub struct Rivals {
    /// The program as it was placed by grids, rewritten.
    pub program: Program,
    /// The plans.
    pub placed: Vec<Placed>,
    /// Plans that need more memory than a worker has.
    pub refused: Vec<Placed>,
    /// Schedulers that could not make a plan, and why.
    pub failed: Vec<(&'static str, Error)>,
    /// The grids of the plan that was placed by them.
    pub grids: Grids,
    /// The least that the busiest worker can receive for each statement that has a bound, in bytes. Statements are those of the
    /// plan by grids; others may order products otherwise.
    pub statements: Vec<(StmtId, f64)>,
    /// The least for the whole program. It assumes, as the bounds of statements do, that all workers do equally much of each.
    pub bound_bytes: f64,
}

/// Times that differ by no more than this are the same: the model is not as good as that.
const SAME_TIME: f64 = 1.01;

/// Work that is no more uneven than this is even.
const EVEN: f64 = 1.05;

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
        let rivals = Rivals::after(&Before::default(), notation, program, options, machine, limit)?;
        if let Some(notation) = notation {
            notation.check_names(&[&rivals.program])?;
        }
        Ok(rivals)
    }

    /// The same on workers that hold something already. Whether the program has what the user's distribution names is not checked: another piece of a larger program may have it.
    pub fn after(
        before: &Before,
        notation: Option<&Notation>,
        program: &Program,
        options: &PlanOptions,
        machine: &Machine,
        limit: usize,
    ) -> Result<Rivals> {
        machine.verify()?;
        let target = Target { options, machine, before, limit };
        let unordered = Unordered::new(&before.cut(program), options)?;
        let plan = lower(&unordered.ordered(&[])?, options)?;
        let mut failed: Vec<(&'static str, Error)> = Vec::new();
        let by_grids = place_by_grids(&unordered, &target);
        let (program, grids, first) = match by_grids {
            Ok(ByGrids { program, placed, grids, .. }) => (program, grids, Some(placed)),
            Err(error) => {
                failed.push(("algebraic", error));
                let program = unordered.ordered(&[])?;
                let grids = Grids::search_after(before, &program, machine, Aim::Bytes, 0);
                (program, grids, None)
            }
        };
        let mut placed: Vec<Placed> = Vec::new();
        if first.is_some() {
            match place_by_time(&unordered, &target, (&program, &grids)) {
                Ok(found) => placed.extend(found.map(|found| found.placed)),
                Err(error) => failed.push(("timed", error)),
            }
        }
        placed.extend(first);
        let mut others: Vec<(&'static str, Result<Placed>)> = Vec::new();
        for scheduler in [&Pattern as &dyn Scheduler, &Lshs, &RoundRobin] {
            // The plan with the options that are wanted serves all of them.
            let place = |wanted: &PlanOptions| match wanted.tile == options.tile {
                true => place_after(before, &plan, machine, scheduler),
                false => place_after(before, &lower(&unordered.ordered(&[])?, wanted)?, machine, scheduler),
            };
            others.push((scheduler.name(), target.within_memory(place, |placed| placed)));
        }
        if let Some(notation) = notation {
            // What the user wrote is not left out silently.
            others.push(("tdn", Ok(place_as_written(&unordered, &target, notation)?)));
        }
        for (name, found) in others {
            match found {
                Ok(found) => placed.push(found),
                Err(error) => failed.push((name, error)),
            }
        }
        if let (true, Some((_, error))) = (placed.is_empty(), failed.first()) {
            return Err(error.clone());
        }
        let mut refused = Vec::new();
        if let Some(memory) = machine.memory {
            let least = placed.iter().map(|placed| placed.simulation.peak_bytes_max()).min().unwrap_or(0);
            (placed, refused) = placed.into_iter().partition(|placed| placed.simulation.peak_bytes_max() <= memory);
            if placed.is_empty() {
                let text =
                    format!("no plan that was tried keeps every worker within {memory} bytes; the best needs {least}");
                let error = Error::resource(text)
                    .help("give the machine more workers, workers more memory, or values smaller tiles");
                let best = refused.iter().find(|placed| placed.simulation.peak_bytes_max() == least);
                let peak = best.and_then(Placed::statement_at_peak);
                return Err(match peak {
                    Some(statement) => error.at(&statement.span).note(format!("`{}` is made there", statement.label)),
                    None => error,
                });
            }
        }
        placed.sort_by(|a, b| a.simulation.makespan.total_cmp(&b.simulation.makespan));
        // Of plans that end at about the same time, the one that sends least.
        let first = placed.first().map_or(0.0, |placed| placed.simulation.makespan);
        let about = placed.iter().take_while(|placed| placed.simulation.makespan <= first * SAME_TIME).count();
        placed[..about].sort_by_key(|placed| placed.simulation.wire_bytes_max());
        let workers = machine.n_workers() as u64;
        let found = touching(&program);
        let alone = |(node, statement): &(usize, Touching)| {
            (StmtId::new(*node), least_together_within(std::slice::from_ref(statement), workers, machine.memory))
        };
        let statements = found.iter().map(alone).collect();
        let all: Vec<Touching> = found.into_iter().map(|(_, statement)| statement).collect();
        let bound_bytes = least_together_within(&all, workers, machine.memory);
        Ok(Rivals { program, placed, refused, failed, grids, statements, bound_bytes })
    }

    /// The plan by grids, whether it is refused or not.
    pub fn by_grids(&self) -> Option<&Placed> {
        self.placed.iter().chain(&self.refused).find(|placed| placed.scheduler == "algebraic")
    }

    /// True if the bound holds for a plan: all workers do about equally much of every statement that has one.
    pub fn is_bounded(&self, placed: &Placed) -> bool {
        placed.unevenness_of(self.statements.iter().map(|(statement, _)| *statement)) <= EVEN
    }

    /// What the search for grids did.
    pub fn report(&self) -> &SearchReport {
        &self.grids.report
    }
}
