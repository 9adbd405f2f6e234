//! Runs all schedulers on one program and compares them in one simulator.

use tw_ir::error::{Error, Result};
use tw_ir::program::{NodeId, Program};

use super::bounds::{Touching, least_together_within};
use super::grids::{Aim, DEFAULT_LIMIT, Grids, SearchReport, least_for_a_call, touching};
use super::homes::Before;
use super::machine::Machine;
use super::notation::Notation;
use super::placed::{ByGrids, Loose, Placed, Target, place_after, place_as_written, place_by_grids, place_by_time};
use super::schedulers::{Lshs, Pattern, RoundRobin, Scheduler};
use tw_plan::PlanOptions;
use tw_plan::Unordered;
use tw_plan::lower;

/// The plans of all schedulers for a program: first the one that sends least of those with about the smallest makespan, the others by makespan.
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
    /// The lower bound in bytes of each node of [`Rivals::program`] that has one. Programs of other plans may have other contraction orders.
    pub bounds: Vec<(NodeId, f64)>,
    /// The lower bound of the whole program. Like the bounds of statements, it assumes that the work of each statement is even.
    pub bound_bytes: f64,
}

/// What a program is planned for: workers, and the schedulers that may place tasks on them.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Options of the planner.
    pub options: &'a PlanOptions,
    /// The workers.
    pub machine: &'a Machine,
    /// Where the user wants tensors to be: one more plan, that of the scheduler `tdn`.
    pub distribution: Option<&'a Notation>,
    /// The only scheduler that is asked, if there is one.
    pub only: Option<&'a str>,
    /// How many choices of grids may be compared.
    pub limit: usize,
}

impl<'a> Request<'a> {
    /// All schedulers, none of them told where tensors are to be.
    pub fn new(options: &'a PlanOptions, machine: &'a Machine) -> Request<'a> {
        Request { options, machine, distribution: None, only: None, limit: DEFAULT_LIMIT }
    }

    /// Plans a straight-line program on workers that hold something already. With a limit of memory, plans that do not keep it are put aside.
    /// Whether the program has what a distribution names is not checked: another segment of a larger program may have it.
    pub fn rivals(&self, before: &Before, program: &Program) -> Result<Rivals> {
        let Request { options, machine, limit, .. } = *self;
        machine.verify()?;
        let target = Target { options, machine, before, limit };
        let unordered = Unordered::new(&before.cut(program), options)?;
        let mut found = Found::default();
        let by_grids = self.asks(&["algebraic", "timed"]).then(|| place_by_grids(&unordered, &target));
        let (program, grids) = match by_grids {
            Some(Ok(ByGrids { program, placed, grids })) => {
                // Where grids for time promise nothing, there are those for bytes.
                let mut by_time = None;
                if self.asks(&["timed"]) {
                    match place_by_time(&unordered, &target, (&program, &grids)) {
                        Ok(placed) => by_time = placed,
                        Err(error) => found.failed.push(("timed", error)),
                    }
                }
                found.placed.extend(by_time);
                found.placed.push(placed);
                (program, grids)
            }
            other => {
                found.failed.extend(other.and_then(Result::err).map(|error| ("algebraic", error)));
                let program = unordered.ordered(&[])?;
                let grids = Grids::search_after(before, &program, machine, Aim::Bytes, 0);
                (program, grids)
            }
        };
        let schedulers = [&Pattern as &dyn Scheduler, &Lshs, &RoundRobin];
        // The tasks of the plan with the options that are wanted serve all schedulers.
        let mut loose = None;
        for scheduler in schedulers.into_iter().filter(|scheduler| self.asks(&[scheduler.name()])) {
            let ordered = unordered.ordered(&[])?;
            if loose.is_none() {
                match Loose::of(lower(&ordered, options)?) {
                    Ok(tasks) => loose = Some(tasks),
                    // A plan of too many tasks only fails the schedulers that place it.
                    Err(error) => found.failed.push((scheduler.name(), error)),
                }
            }
            let Some(loose) = &loose else { continue };
            let place = |wanted: &PlanOptions| match wanted.tile == options.tile {
                true => place_after(before, &ordered, loose, machine, scheduler),
                false => {
                    let smaller = Loose::of(lower(&ordered, wanted)?)?;
                    place_after(before, &ordered, &smaller, machine, scheduler)
                }
            };
            found.add(scheduler.name(), target.within_memory(place));
        }
        if let Some(notation) = self.distribution.filter(|_| self.asks(&["tdn"])) {
            // What the user wrote is not left out silently.
            found.placed.push(place_as_written(&unordered, &target, notation)?);
        }
        let (placed, refused) = found.within(machine)?;
        let placed = in_order(placed);
        let workers = machine.n_workers() as u64;
        let touched = touching(&program);
        let alone = |(node, statement): &(NodeId, Touching)| {
            (*node, least_together_within(std::slice::from_ref(statement), workers, machine.memory))
        };
        let bounds = touched.iter().map(alone).collect();
        let all: Vec<Touching> = touched.into_iter().map(|(_, statement)| statement).collect();
        let together = least_together_within(&all, workers, machine.memory);
        let bound_bytes = together.max(least_for_a_call(&program, before, workers));
        Ok(Rivals { program, placed, refused, failed: found.failed, grids, bounds, bound_bytes })
    }

    fn asks(&self, names: &[&str]) -> bool {
        self.only.is_none_or(|only| names.contains(&only))
    }
}

/// What schedulers have made.
#[derive(Default)]
struct Found {
    placed: Vec<Placed>,
    failed: Vec<(&'static str, Error)>,
}

impl Found {
    fn add(&mut self, name: &'static str, found: Result<Placed>) {
        match found {
            Ok(placed) => self.placed.push(placed),
            Err(error) => self.failed.push((name, error)),
        }
    }

    /// The plans that keep the limit of memory, and those that do not; an error if none does.
    fn within(&mut self, machine: &Machine) -> Result<(Vec<Placed>, Vec<Placed>)> {
        let found = std::mem::take(&mut self.placed);
        if let (true, Some((_, error))) = (found.is_empty(), self.failed.first()) {
            return Err(error.clone());
        }
        let Some(memory) = machine.memory else { return Ok((found, Vec::new())) };
        let peak = |placed: &Placed| placed.simulation.peak_bytes_max();
        let least = found.iter().map(peak).min().unwrap_or(0);
        let (placed, refused): (Vec<_>, Vec<_>) = found.into_iter().partition(|placed| peak(placed) <= memory);
        if !placed.is_empty() {
            return Ok((placed, refused));
        }
        let text = format!("no plan that was tried keeps every worker within {memory} bytes; the best needs {least}");
        let error =
            Error::resource(text).help("give the machine more workers, workers more memory, or values smaller tiles");
        let best = refused.iter().find(|placed| peak(placed) == least);
        Err(match best.and_then(Placed::statement_at_peak) {
            Some(statement) => error.at(&statement.span).note(format!("`{}` is made there", statement.label)),
            None => error,
        })
    }
}

/// Plans by their makespan. Of plans that end at about the same time, those that send about the least come first.
fn in_order(mut placed: Vec<Placed>) -> Vec<Placed> {
    placed.sort_by(|a, b| a.simulation.makespan.total_cmp(&b.simulation.makespan));
    let first = placed.first().map_or(0.0, |placed| placed.simulation.makespan);
    let about = placed.iter().take_while(|placed| placed.simulation.makespan <= first * SAME_TIME).count();
    let bytes = |placed: &Placed| placed.simulation.wire_bytes_max() as f64;
    let least = placed[..about].iter().map(bytes).fold(f64::INFINITY, f64::min);
    // Sorting is stable: of equals, the one that ends first stays in front.
    placed[..about].sort_by_key(|placed| bytes(placed) > least * SAME_BYTES);
    placed
}

/// Times that differ by no more than this are the same: the model is not as good as that.
const SAME_TIME: f64 = 1.1;

/// Bytes that differ by no more than this are the same: a little more for a little less time is no loss.
const SAME_BYTES: f64 = 1.2;

/// Work within this factor of an even share counts as even.
const EVEN: f64 = 1.05;

impl Rivals {
    /// Plans a straight-line program with every scheduler, on workers that hold nothing yet.
    pub fn of(program: &Program, options: &PlanOptions, machine: &Machine, limit: usize) -> Result<Rivals> {
        Request { limit, ..Request::new(options, machine) }.rivals(&Before::default(), program)
    }

    /// The plan of `algebraic`, even if it was refused.
    pub fn by_grids(&self) -> Option<&Placed> {
        self.placed.iter().chain(&self.refused).find(|placed| placed.scheduler == "algebraic")
    }

    /// True if the lower bound holds for a plan: the work of each statement with a bound is even.
    pub fn is_bounded(&self, placed: &Placed) -> bool {
        placed.unevenness_of(&self.bounds.iter().map(|(node, _)| *node).collect()) <= EVEN
    }

    /// Statistics of the search for meshes.
    pub fn report(&self) -> &SearchReport {
        &self.grids.report
    }
}
