//! Places a plan on a machine: scheduler, expansion of reductions, order, transfers, simulation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::plan::{Plan, RelId, RelOp};
use tw_ir::program::{Program, ValueId};
use tw_ir::workflow::{BlockSetId, Statement, TaskId, Workflow};
use tw_plan::{Lowered, Order, Passes, PlanOptions, Planned, Unordered, evaluate_sets, lower_cut};

use super::eager;
use super::grids::{Aim, Grids};
use super::homes::Before;
use super::machine::Machine;
use super::notation::Notation;
use super::reductions::{Expanded, expand};
use super::schedulers::{Algebraic, Scheduler};
use super::simulate::Simulation;
use super::sites::Sites;
use super::traffic::Traffic;

/// A plan placed on a machine by a scheduler, with its simulation.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The scheduler.
    pub scheduler: &'static str,
    /// The program that was lowered, after rewriting.
    pub program: Arc<Program>,
    /// Its relations.
    pub plan: Arc<Plan>,
    /// Its tasks, reductions expanded.
    pub workflow: Workflow,
    /// The worker of each task.
    pub sites: Sites,
    /// The global order of tasks.
    pub order: Vec<TaskId>,
    /// The transfers.
    pub traffic: Traffic,
    /// The simulated run.
    pub simulation: Simulation,
    /// The meshes that decided the placement, if any.
    pub grids: Option<Grids>,
    /// Time of placing and simulating, including the search for meshes.
    pub took: Duration,
}

impl Placed {
    /// Freezes the plan for engines. `original` is the program before rewriting.
    pub fn freeze(&self, stop: &dyn Fn() -> bool, original: &Program, options: &PlanOptions) -> Result<Planned> {
        let n_ranks = self.simulation.workers.len() as u32;
        let (steps, placement) = self.traffic.schedule(&self.workflow, &self.order, &self.sites, n_ranks);
        let lowered = Lowered {
            program: self.program.as_ref().clone(),
            plan: self.plan.as_ref().clone(),
            workflow: self.workflow.clone(),
        };
        Passes::until(stop).freeze(original, lowered, Order::Placed(steps, Box::new(placement)), options)
    }

    /// The statement that runs when some worker holds most.
    pub fn statement_at_peak(&self) -> Option<&Statement> {
        let task = self.simulation.at_peak?;
        self.workflow.statements.get(self.workflow.statement(task))
    }
}

/// The tasks of a plan, with each contribution to a reduction as a task of its own. Schedulers place these.
pub fn contributions(plan: &Plan) -> Result<Workflow> {
    Ok(loose(plan)?.0)
}

fn loose(plan: &Plan) -> Result<(Workflow, HashMap<RelId, BlockSetId>)> {
    let mut plan = plan.clone();
    for step in &mut plan.steps {
        if let RelOp::Join { chains, .. } | RelOp::Scatter { chains, .. } = &mut step.op {
            *chains = 1;
        }
    }
    evaluate_sets(&plan, &|| false)
}

/// A plan and its tasks, for schedulers that place the same tasks.
pub(super) struct Loose {
    plan: Arc<Plan>,
    tasks: Workflow,
    /// Time of evaluating the plan. It counts for every scheduler, although it is spent once.
    took: Duration,
}

impl Loose {
    /// Evaluates a plan.
    pub(super) fn of(plan: Plan) -> Result<Loose> {
        let started = Instant::now();
        let tasks = contributions(&plan)?;
        Ok(Loose { plan: Arc::new(plan), tasks, took: started.elapsed() })
    }
}

/// Places a plan on workers that hold nothing yet.
#[cfg(test)]
pub(crate) fn place(planned: &Planned, machine: &Machine, scheduler: &dyn Scheduler) -> Result<Placed> {
    place_after(&Before::default(), &planned.program, &Loose::of(planned.plan.clone())?, machine, scheduler)
}

/// Places the tasks of a plan on workers that already hold some inputs. The plan must use the tilings of those inputs.
pub(super) fn place_after(
    before: &Before,
    program: &Program,
    loose: &Loose,
    machine: &Machine,
    scheduler: &dyn Scheduler,
) -> Result<Placed> {
    machine.verify()?;
    let (program, plan, started) = (Arc::new(program.clone()), loose.plan.clone(), Instant::now());
    let placed = place_tasks(program, plan, &loose.tasks, machine, before, scheduler, started)?;
    Ok(Placed { took: placed.took + loose.took, ..placed })
}

/// Places tasks; `started` is when their planning began.
fn place_tasks(
    program: Arc<Program>,
    plan: Arc<Plan>,
    loose: &Workflow,
    machine: &Machine,
    before: &Before,
    scheduler: &dyn Scheduler,
    started: Instant,
) -> Result<Placed> {
    let assignment = scheduler.place(loose, machine, before)?;
    let Expanded { workflow, sites } = expand(loose, &assignment, machine)?;
    let depth_first = tw_plan::depth_first(&workflow);
    let seconds = machine.task_seconds(&workflow);
    let mut order = eager::as_they_can_begin(&workflow, &depth_first, &sites, machine, &seconds);
    let mut traffic = Traffic::of(&workflow, &order, &sites, machine)?;
    let mut simulation = Simulation::run(&workflow, &order, &sites, machine, &traffic, before, &seconds)?;
    if machine.memory.is_some_and(|memory| simulation.peak_bytes_max() > memory) {
        // Depth first takes longer and, mostly, less memory.
        let other_traffic = Traffic::of(&workflow, &depth_first, &sites, machine)?;
        let other = Simulation::run(&workflow, &depth_first, &sites, machine, &other_traffic, before, &seconds)?;
        if other.peak_bytes_max() < simulation.peak_bytes_max() {
            (order, traffic, simulation) = (depth_first, other_traffic, other);
        }
    }
    let (scheduler, took) = (scheduler.name(), started.elapsed());
    Ok(Placed { scheduler, program, plan, workflow, sites, order, traffic, simulation, grids: None, took })
}

/// Chooses a mesh for each statement of a straight-line program, cuts values to match, and places the tasks. Compares at most `limit` choices. Values that have
/// a tiling keep it.
pub fn place_jointly(
    program: &Program,
    options: &PlanOptions,
    machine: &Machine,
    limit: usize,
) -> Result<(Placed, Grids)> {
    machine.verify()?;
    let target = Target { options, machine, before: &Before::default(), limit };
    let by_grids = place_by_grids(&Unordered::new(program, options)?, &target)?;
    Ok((by_grids.placed, by_grids.grids))
}

/// The result of [`place_jointly`].
pub(super) struct ByGrids {
    /// The program with the chosen contraction orders.
    pub(super) program: Program,
    pub(super) placed: Placed,
    pub(super) grids: Grids,
}

/// The options, machine and limits of a placement.
pub(super) struct Target<'a> {
    pub(super) options: &'a PlanOptions,
    pub(super) machine: &'a Machine,
    pub(super) before: &'a Before,
    /// How many choices of meshes may be compared.
    pub(super) limit: usize,
}

impl Target<'_> {
    /// Plans with the options that are wanted, or with smaller tiles if workers cannot hold that: less of what a worker touches is then there at a time.
    pub(super) fn within_memory(&self, place: impl Fn(&PlanOptions) -> Result<Placed>) -> Result<Placed> {
        let peak = |placed: &Placed| placed.simulation.peak_bytes_max();
        let mut found = place(self.options)?;
        for tile in SMALLER_TILES.into_iter().filter(|&tile| self.options.tile.is_none_or(|wanted| tile < wanted)) {
            if self.machine.memory.is_none_or(|memory| peak(&found) <= memory) {
                break;
            }
            let next = place(&PlanOptions { tile: Some(tile), ..self.options.clone() })?;
            if peak(&next) < peak(&found) {
                found = next;
            }
        }
        Ok(found)
    }
}

/// As [`place_jointly`], for a program without contraction orders.
pub(super) fn place_by_grids(unordered: &Unordered, target: &Target<'_>) -> Result<ByGrids> {
    let started = Instant::now();
    let (program, grids) = choose_grids(unordered, target, Aim::Bytes, target.limit)?;
    let placed = place_on_grids("algebraic", &program, &grids, target, started)?;
    Ok(ByGrids { program, placed, grids })
}

/// The same with meshes that minimise time, if they promise less time than the known ones.
pub(super) fn place_by_time(
    unordered: &Unordered,
    target: &Target<'_>,
    (known_program, known): (&Program, &Grids),
) -> Result<Option<Placed>> {
    /// The part of the known time beyond which another plan is not worth making.
    const SOONER: f64 = 0.97;
    let started = Instant::now();
    // Times are not as exact as bytes are.
    let (program, grids) = choose_grids(unordered, target, Aim::Time, target.limit / 4)?;
    if grids.score() as f64 > known.score_in_time(known_program, target.machine) as f64 * SOONER {
        return Ok(None);
    }
    Ok(Some(place_on_grids("timed", &program, &grids, target, started)?))
}

fn choose_grids(unordered: &Unordered, target: &Target<'_>, aim: Aim, limit: usize) -> Result<(Program, Grids)> {
    let Target { before, machine, .. } = target;
    choose_orders(unordered, limit, |program, limit| Ok(Grids::search_after(before, program, machine, aim, limit)))
}

/// Places a program by its meshes.
fn place_on_grids(
    name: &'static str,
    program: &Program,
    grids: &Grids,
    target: &Target<'_>,
    started: Instant,
) -> Result<Placed> {
    let shared = Arc::new(program.clone());
    let place = |options: &PlanOptions| {
        let (plan, loose, values) = lower_on_grids(program, grids, options, target.machine)?;
        let scheduler = Algebraic { name, grids, values: &values, may_wait: name != "timed" };
        place_tasks(shared.clone(), Arc::new(plan), &loose, target.machine, target.before, &scheduler, started)
    };
    Ok(Placed { grids: Some(grids.clone()), ..target.within_memory(place)? })
}

/// Tile lengths to try, in turn, when the memory limit is exceeded.
const SMALLER_TILES: [u64; 3] = [512, 256, 128];

/// Places a program by the user's distributions.
pub(super) fn place_as_written(unordered: &Unordered, target: &Target<'_>, notation: &Notation) -> Result<Placed> {
    let started = Instant::now();
    let search = |program: &Program, limit| Grids::written(target.before, program, notation, target.machine, limit);
    let (program, grids) = choose_orders(unordered, target.limit, search)?;
    place_on_grids("tdn", &program, &grids, target, started)
}

/// The plan of a program with cuts for its meshes, its tasks, and the value of each set of blocks.
fn lower_on_grids(
    program: &Program,
    grids: &Grids,
    options: &PlanOptions,
    machine: &Machine,
) -> Result<(Plan, Workflow, Vec<Option<ValueId>>)> {
    let plan = lower_cut(program, options, grids.cut(program, options.tile, machine))?;
    let (loose, sets) = loose(&plan)?;
    let mut values: Vec<Option<ValueId>> = vec![None; loose.sets.len()];
    for step in &plan.steps {
        // States of an accumulator are cut as its results and belong to the same workers.
        let Some(node) = plan.statements[step.statement].node.and_then(|id| program.node(id)) else { continue };
        for (k, output) in step.outputs.iter().enumerate() {
            let shape = &plan.relations[*output].shape;
            let value = node.results.get(k).or(node.results.first()).copied();
            let value = value.filter(|&value| program.ty(value).known_shape().as_ref() == Some(shape));
            if let Some(set) = sets.get(output) {
                values[set.index()] = value;
            }
        }
    }
    Ok((plan, loose, values))
}

/// Chooses contraction orders together with meshes, so that large intermediate sums need not be sent. Exchanges one order at a time, with a short search for each. Half
/// of the comparisons are reserved for the final search with the chosen orders.
fn choose_orders(
    unordered: &Unordered,
    limit: usize,
    search: impl Fn(&Program, usize) -> Result<Grids>,
) -> Result<(Program, Grids)> {
    let n_orders = unordered.n_orders();
    let mut choice = vec![0; n_orders.len()];
    let mut program = unordered.ordered(&choice)?;
    let others = n_orders.iter().enumerate().flat_map(|(product, &n)| (1..n).map(move |order| (product, order)));
    let others: Vec<(usize, usize)> = others.take(MOST_ORDERS).collect();
    if others.is_empty() {
        let grids = search(&program, limit)?;
        return Ok((program, grids));
    }
    let short = limit / 2 / (others.len() + 1);
    let mut grids = search(&program, short)?;
    let (mut candidates, mut compared, mut improved) = (0, 0, 0);
    for (product, order) in others {
        let before = std::mem::replace(&mut choice[product], order);
        let other = unordered.ordered(&choice)?;
        let other_grids = search(&other, short)?;
        candidates += other_grids.report.candidates;
        compared += other_grids.report.compared;
        if other_grids.score() < grids.score() {
            (program, grids) = (other, other_grids);
            improved += 1;
        } else {
            choice[product] = before;
        }
    }
    let mut grids = search(&program, limit / 2)?;
    grids.report.candidates += candidates;
    grids.report.compared += compared;
    grids.report.improved += improved;
    Ok((program, grids))
}

/// How many alternative contraction orders to try for a program.
const MOST_ORDERS: usize = 16;
