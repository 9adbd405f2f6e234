//! Runs all schedulers on one program and compares them in one simulator.

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::program::Program;
use tw_ir::workflow::StmtId;

use super::bounds::{Touching, least_together_within};
use super::grids::{Aim, Grids, SearchReport, touching};
use super::held::Before;
use super::machine::Machine;
use super::notation::Notation;
use super::placed::{ByGrids, Placed, Target, place_after, place_as_written, place_by_grids, place_by_time};
use super::schedulers::{Lshs, Pattern, RoundRobin, Scheduler};
use tw_plan::PlanOptions;
use tw_plan::Unordered;
use tw_plan::lower;

/// The plans of all schedulers for a program, the one with the smallest makespan first.
#[derive(Clone, Debug)]
pub struct Rivals {
    /// The rewritten program that `algebraic` placed.
    pub program: Program,
    /// The plans.
    pub placed: Vec<Placed>,
    /// Plans that exceed the memory of a worker.
    pub refused: Vec<Placed>,
    /// Schedulers without a plan, each with its error.
    pub failed: Vec<(&'static str, Error)>,
    /// The meshes of the plan of `algebraic`.
    pub grids: Grids,
    /// The lower bound in bytes of each statement that has one. Statements are those of the plan of `algebraic`; other plans may have other contraction
    /// orders.
    pub statements: Vec<(StmtId, f64)>,
    /// The lower bound of the whole program. Like the bounds of statements, it assumes that the work of each statement is even.
    pub bound_bytes: f64,
}

/// Makespans within this factor count as equal; the model is not more accurate.
const SAME_TIME: f64 = 1.01;

/// Work within this factor of an even share counts as even.
const EVEN: f64 = 1.05;

impl Rivals {
    /// Plans a straight-line program with every scheduler. Plans that exceed the memory of a worker go to `refused`.
    pub fn of(program: &Program, options: &PlanOptions, machine: &Machine, limit: usize) -> Result<Rivals> {
        Rivals::beside(None, program, options, machine, limit)
    }

    /// The same, with the user's distributions as the further scheduler `tdn`.
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

    /// The same on workers that already hold some inputs. Does not check that the program has the tensors that the user's distributions name; another segment
    /// may have them.
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
            // A failure of the user's distributions is an error, not an omission.
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

    /// The plan of `algebraic`, even if it was refused.
    pub fn by_grids(&self) -> Option<&Placed> {
        self.placed.iter().chain(&self.refused).find(|placed| placed.scheduler == "algebraic")
    }

    /// True if the lower bound holds for a plan: the work of each statement with a bound is even.
    pub fn is_bounded(&self, placed: &Placed) -> bool {
        placed.unevenness_of(self.statements.iter().map(|(statement, _)| *statement)) <= EVEN
    }

    /// Statistics of the search for meshes.
    pub fn report(&self) -> &SearchReport {
        &self.grids.report
    }
}
