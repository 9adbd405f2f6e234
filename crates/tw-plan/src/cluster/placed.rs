//! A plan placed on a machine.

use std::collections::HashMap;

use tw_ir::EntityRef;
use tw_ir::error::Result;
use tw_ir::plan::{Plan, RelId, RelOp};
use tw_ir::program::{Program, ValueId};
use tw_ir::workflow::{BlockSetId, TaskId, Workflow};

use super::eager;
use super::grids::{DEFAULT_LIMIT, Grids};
use super::machine::Machine;
use super::reductions::{Expanded, expand};
use super::schedulers::{Algebraic, Lshs, Pattern, RoundRobin, Scheduler, SchedulerName};
use super::simulate::Simulation;
use super::sites::Sites;
use super::traffic::Traffic;
use crate::options::PlanOptions;
use crate::{lower, order, partial, pipeline};

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
    partial::evaluate_sets(&plan, &|| false)
}

/// Places a plan.
pub fn place(plan: &Plan, machine: &Machine, scheduler: &dyn Scheduler) -> Result<Placed> {
    machine.verify()?;
    place_tasks(&contributions(plan)?, machine, scheduler)
}

fn place_tasks(loose: &Workflow, machine: &Machine, scheduler: &dyn Scheduler) -> Result<Placed> {
    let assignment = scheduler.place(loose, machine)?;
    let Expanded { workflow, sites } = expand(loose, &assignment, machine)?;
    let depth_first = order::depth_first(&workflow);
    let mut order = eager::as_they_can_begin(&workflow, &depth_first, &sites, machine);
    let mut traffic = Traffic::of(&workflow, &order, &sites, machine)?;
    let mut simulation = Simulation::run(&workflow, &order, &sites, machine, &traffic)?;
    if machine.memory.is_some_and(|memory| simulation.peak_bytes_max() > memory) {
        // Depth first takes longer and less memory.
        order = depth_first;
        traffic = Traffic::of(&workflow, &order, &sites, machine)?;
        simulation = Simulation::run(&workflow, &order, &sites, machine, &traffic)?;
    }
    Ok(Placed { scheduler: scheduler.name(), workflow, sites, order, traffic, simulation })
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
    let (_, placed, grids) = place_by_grids(&pipeline::rewritten(program, options)?, options, machine, limit)?;
    Ok((placed, grids))
}

/// As [`place_jointly`], for a program that is rewritten already; tells the plan, too.
pub(super) fn place_by_grids(
    program: &Program,
    options: &PlanOptions,
    machine: &Machine,
    limit: usize,
) -> Result<(Plan, Placed, Grids)> {
    let grids = Grids::search(program, machine.n_workers() as u64, limit)?;
    let plan = lower::lower_cut(program, options, grids.tilings(program, options.tile))?;
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
    let placed = place_tasks(&loose, machine, &Algebraic { grids: &grids, values: &values })?;
    Ok((plan, placed, grids))
}

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
    /// Plans a rewritten program.
    pub(crate) fn place(self, program: &Program, options: &PlanOptions) -> Result<(Plan, Placed)> {
        let machine = Machine::of(self.nodes, self.workers)?;
        let scheduler: &dyn Scheduler = match self.scheduler {
            SchedulerName::Pattern => &Pattern,
            SchedulerName::Lshs => &Lshs,
            SchedulerName::RoundRobin => &RoundRobin,
            SchedulerName::Algebraic => {
                let (plan, placed, _) = place_by_grids(program, options, &machine, DEFAULT_LIMIT)?;
                return Ok((plan, placed));
            }
        };
        let plan = lower::lower(program, options)?;
        let placed = place(&plan, &machine, scheduler)?;
        Ok((plan, placed))
    }
}
