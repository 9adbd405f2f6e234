//! A plan placed on a machine.

use tw_ir::error::Result;
use tw_ir::plan::{Plan, RelOp};
use tw_ir::workflow::{TaskId, Workflow};

use super::machine::Machine;
use super::reductions::{Expanded, expand};
use super::schedulers::Scheduler;
use super::simulate::Simulation;
use super::sites::Sites;
use super::traffic::Traffic;
use crate::{order, partial};

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
    let mut plan = plan.clone();
    for step in &mut plan.steps {
        if let RelOp::Join { chains, .. } | RelOp::Scatter { chains, .. } = &mut step.op {
            *chains = 1;
        }
    }
    partial::evaluate(&plan)
}

/// Places a plan.
pub fn place(plan: &Plan, machine: &Machine, scheduler: &dyn Scheduler) -> Result<Placed> {
    machine.verify()?;
    let loose = contributions(plan)?;
    let assignment = scheduler.place(&loose, machine)?;
    let Expanded { workflow, sites } = expand(&loose, &assignment, machine)?;
    let order = order::depth_first(&workflow);
    let traffic = Traffic::of(&workflow, &order, &sites, machine)?;
    let simulation = Simulation::run(&workflow, &order, &sites, machine)?;
    Ok(Placed { scheduler: scheduler.name(), workflow, sites, order, traffic, simulation })
}
