//! A plan placed on a machine.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tw_ir::EntityRef;
use tw_ir::error::{Error, Result};
use tw_ir::plan::{Plan, RelId, RelOp};
use tw_ir::program::{Program, ValueId};
use tw_ir::workflow::{BlockSetId, Statement, TaskId, Workflow};
use tw_plan::{Lowered, Order, Passes, PlanOptions, Planned, Unordered, evaluate_sets, lower, lower_cut};

use super::eager;
use super::grids::{Aim, DEFAULT_LIMIT, Grids};
use super::homes::Before;
use super::machine::Machine;
use super::notation::Notation;
use super::reductions::{Expanded, expand};
use super::schedulers::{Algebraic, Lshs, Pattern, RoundRobin, Scheduler, SchedulerName};
use super::simulate::Simulation;
use super::sites::Sites;
use super::traffic::Traffic;

/// A plan placed on a machine by a scheduler, and what it would do there.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Who placed it.
    pub scheduler: &'static str,
    /// Its tasks, reductions expanded.
    pub workflow: Workflow,
    /// Where they run.
    pub sites: Sites,
    /// In which order, over all workers.
    pub order: Vec<TaskId>,
    /// What is sent.
    pub traffic: Traffic,
    /// What it does.
    pub simulation: Simulation,
    /// The grids it was placed by, if there are any.
    pub grids: Option<Grids>,
    /// How long placing and simulating took, for plans by grids with their search.
    pub took: Duration,
}

impl Placed {
    /// The statement that runs when some worker holds most.
    pub fn statement_at_peak(&self) -> Option<&Statement> {
        let task = self.simulation.at_peak?;
        self.workflow.statements.get(self.workflow.statement(task))
    }
}

/// The tasks of a plan, with every contribution to a reduction by itself: what schedulers place.
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

/// Places a plan on workers that hold nothing yet.
pub fn place(plan: &Plan, machine: &Machine, scheduler: &dyn Scheduler) -> Result<Placed> {
    place_after(&Before::default(), plan, machine, scheduler)
}

/// Places a plan on workers that hold something already. Its inputs must be cut as they are.
pub(super) fn place_after(
    before: &Before,
    plan: &Plan,
    machine: &Machine,
    scheduler: &dyn Scheduler,
) -> Result<Placed> {
    machine.verify()?;
    let started = Instant::now();
    place_tasks(&contributions(plan)?, machine, before, scheduler, started)
}

/// Places tasks whose planning began at some time.
fn place_tasks(
    loose: &Workflow,
    machine: &Machine,
    before: &Before,
    scheduler: &dyn Scheduler,
    started: Instant,
) -> Result<Placed> {
    let assignment = scheduler.place(loose, machine, before)?;
    let Expanded { workflow, sites } = expand(loose, &assignment, machine)?;
    let depth_first = tw_plan::depth_first(&workflow);
    let mut order = eager::as_they_can_begin(&workflow, &depth_first, &sites, machine);
    let mut traffic = Traffic::of(&workflow, &order, &sites, machine)?;
    let mut simulation = Simulation::run(&workflow, &order, &sites, machine, &traffic, before)?;
    if machine.memory.is_some_and(|memory| simulation.peak_bytes_max() > memory) {
        // Depth first takes longer and, mostly, less memory.
        let other_traffic = Traffic::of(&workflow, &depth_first, &sites, machine)?;
        let other = Simulation::run(&workflow, &depth_first, &sites, machine, &other_traffic, before)?;
        if other.peak_bytes_max() < simulation.peak_bytes_max() {
            (order, traffic, simulation) = (depth_first, other_traffic, other);
        }
    }
    let (scheduler, took) = (scheduler.name(), started.elapsed());
    Ok(Placed { scheduler, workflow, sites, order, traffic, simulation, grids: None, took })
}

/// Chooses grids of workers for the statements of a straight-line program, cuts values so that they fit, and places the tasks. At most `limit`
/// choices are compared. Values that are cut already stay so.
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

/// What [`place_jointly`] decides.
pub(super) struct ByGrids {
    /// The program with the orders of products that were chosen.
    pub(super) program: Program,
    pub(super) plan: Plan,
    pub(super) placed: Placed,
    pub(super) grids: Grids,
}

/// What is planned for.
pub(super) struct Target<'a> {
    pub(super) options: &'a PlanOptions,
    pub(super) machine: &'a Machine,
    pub(super) before: &'a Before,
    /// How many choices of grids may be compared.
    pub(super) limit: usize,
}

impl Target<'_> {
    /// Plans with the options that are wanted, or with smaller tiles if workers cannot hold that: less of what a worker touches is then there at a time.
    pub(super) fn within_memory<T>(
        &self,
        place: impl Fn(&PlanOptions) -> Result<T>,
        placed: impl Fn(&T) -> &Placed,
    ) -> Result<T> {
        let peak = |found: &T| placed(found).simulation.peak_bytes_max();
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

/// As [`place_jointly`], for a program whose products have no order yet.
pub(super) fn place_by_grids(unordered: &Unordered, target: &Target<'_>) -> Result<ByGrids> {
    let started = Instant::now();
    let (program, grids) = choose_grids(unordered, target, Aim::Bytes, target.limit)?;
    let (plan, placed) = place_on_grids("algebraic", &program, &grids, target, started)?;
    Ok(ByGrids { program, plan, placed, grids })
}

/// The same with grids that are chosen for time, if they promise less of it than known ones.
pub(super) fn place_by_time(
    unordered: &Unordered,
    target: &Target<'_>,
    (known_program, known): (&Program, &Grids),
) -> Result<Option<ByGrids>> {
    /// The part of the known time beyond which another plan is not worth making.
    const SOONER: f64 = 0.97;
    let started = Instant::now();
    // Times are not as exact as bytes are.
    let (program, grids) = choose_grids(unordered, target, Aim::Time, target.limit / 4)?;
    if grids.score() as f64 > known.score_in_time(known_program, target.machine) as f64 * SOONER {
        return Ok(None);
    }
    let (plan, placed) = place_on_grids("timed", &program, &grids, target, started)?;
    Ok(Some(ByGrids { program, plan, placed, grids }))
}

fn choose_grids(unordered: &Unordered, target: &Target<'_>, aim: Aim, limit: usize) -> Result<(Program, Grids)> {
    let Target { before, machine, .. } = target;
    choose_orders(unordered, limit, |program, limit| Ok(Grids::search_after(before, program, machine, aim, limit)))
}

/// Places a program on grids.
fn place_on_grids(
    name: &'static str,
    program: &Program,
    grids: &Grids,
    target: &Target<'_>,
    started: Instant,
) -> Result<(Plan, Placed)> {
    let place = |options: &PlanOptions| {
        let (plan, loose, values) = lower_on_grids(program, grids, options, target.machine)?;
        let scheduler = Algebraic { name, grids, values: &values };
        Ok((plan, place_tasks(&loose, target.machine, target.before, &scheduler, started)?))
    };
    let (plan, placed) = target.within_memory(place, |(_, placed)| placed)?;
    Ok((plan, Placed { grids: Some(grids.clone()), ..placed }))
}

/// Tile lengths that are tried, one after the other, where a limit of memory is not kept.
const SMALLER_TILES: [u64; 3] = [512, 256, 128];

/// Places a program as the user's distribution says.
pub(super) fn place_as_written(unordered: &Unordered, target: &Target<'_>, notation: &Notation) -> Result<Placed> {
    let started = Instant::now();
    let search = |program: &Program, limit| Grids::written(target.before, program, notation, target.machine, limit);
    let (program, grids) = choose_orders(unordered, target.limit, search)?;
    Ok(place_on_grids("tdn", &program, &grids, target, started)?.1)
}

/// The plan of a program that is cut for its grids, its tasks, and the value of each of their sets of blocks.
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
        // Statements are numbered as nodes are. States of an accumulator are cut as its results and belong to the same workers.
        let node = &program.body.nodes[step.statement.index()];
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

/// Chooses orders of products together with grids: what is summed first should not be what workers would have to send. One order is exchanged at a time, after a short search each; half
/// of what may be compared is left for the orders that are chosen.
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

/// Other orders of products that are tried for a program.
const MOST_ORDERS: usize = 16;

/// Workers that a session plans for, and who places tasks on them. The runtime of one machine runs such a plan as any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// Nodes.
    pub nodes: u32,
    /// Workers of each.
    pub workers: u32,
    /// Who places tasks.
    pub scheduler: SchedulerName,
}

impl Cluster {
    /// Plans a straight-line program for these workers; gives up as cancelled when `stop` says so.
    pub fn plan_segment_until(
        self,
        stop: &dyn Fn() -> bool,
        program: &Program,
        options: &PlanOptions,
    ) -> Result<Planned> {
        let mut passes = Passes::until(stop);
        let unordered = passes.unordered(program, options)?;
        let (chosen, plan, placed) = passes.pass("place", || self.place(&unordered, options))?;
        let n_ranks = self.nodes * self.workers;
        let (steps, placement) = placed.traffic.schedule(&placed.workflow, &placed.order, &placed.sites, n_ranks);
        let lowered = Lowered { program: chosen, plan, workflow: placed.workflow };
        passes.freeze(program, lowered, Order::Placed(steps, Box::new(placement)), options)
    }

    /// Plans a program whose products have no order yet; tells the program with those that were chosen.
    fn place(self, unordered: &Unordered, options: &PlanOptions) -> Result<(Program, Plan, Placed)> {
        let machine = Machine::of(self.nodes, self.workers)?;
        let target = Target { options, machine: &machine, before: &Before::default(), limit: DEFAULT_LIMIT };
        let others: &[&dyn Scheduler] = match self.scheduler {
            SchedulerName::Pattern => &[&Pattern],
            SchedulerName::Lshs => &[&Lshs],
            SchedulerName::RoundRobin => &[&RoundRobin],
            SchedulerName::Algebraic => {
                let found = place_by_grids(unordered, &target)?;
                return Ok((found.program, found.plan, found.placed));
            }
            SchedulerName::Timed => &[],
            SchedulerName::Auto => &[&Pattern, &Lshs, &RoundRobin],
        };
        let mut found: Vec<(Program, Plan, Placed)> = Vec::new();
        if matches!(self.scheduler, SchedulerName::Auto | SchedulerName::Timed) {
            let by_grids = place_by_grids(unordered, &target)?;
            let by_time = place_by_time(unordered, &target, (&by_grids.program, &by_grids.grids))?;
            found.extend(by_time.map(|by_time| (by_time.program, by_time.plan, by_time.placed)));
            if self.scheduler == SchedulerName::Auto || found.is_empty() {
                found.push((by_grids.program, by_grids.plan, by_grids.placed));
            }
        }
        let program = unordered.ordered(&[])?;
        let plan = lower(&program, options)?;
        for scheduler in others {
            found.push((program.clone(), plan.clone(), place(&plan, &machine, *scheduler)?));
        }
        let ends = |(_, _, placed): &(Program, Plan, Placed)| placed.simulation.makespan;
        let first = found.into_iter().min_by(|a, b| ends(a).total_cmp(&ends(b)));
        first.ok_or_else(|| Error::internal("no scheduler was asked"))
    }
}
