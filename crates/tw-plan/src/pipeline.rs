//! The planner's pipeline, readable on one screen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tw_ir::contraction::Contraction;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::plan::{self, Plan};
use tw_ir::program::{self, Program};
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{self, TaskId, Workflow};

use crate::contraction_order::Order;
use crate::options::{PlanOptions, ProviderName};
use crate::{lower, order, partial, rewrite};

/// A planned segment: what explain shows and what the runtime runs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The program after rewriting.
    pub program: Program,
    /// Its relations.
    pub plan: Plan,
    /// The frozen order.
    pub schedule: Arc<Schedule>,
    /// How long each pass took, in order.
    pub timings: Vec<(&'static str, Duration)>,
}

impl Planned {
    /// Time of all passes.
    pub fn planning_time(&self) -> Duration {
        self.timings.iter().map(|(_, time)| *time).sum()
    }
}

/// Plans a straight-line program whose extents are all known.
pub fn plan_segment(program: &Program, options: &PlanOptions) -> Result<Planned> {
    plan_segment_until(&|| false, program, options)
}

/// As [`plan_segment`], but gives up as cancelled when `stop` says so, between passes and while tasks are made: plans of millions of tasks take seconds.
pub fn plan_segment_until(stop: &dyn Fn() -> bool, program: &Program, options: &PlanOptions) -> Result<Planned> {
    let mut timer = Timer { stop, timings: Vec::new() };
    if let Some(cluster) = options.cluster {
        let unordered = timer.unordered(program, options)?;
        let (program, plan, placed) = timer.pass("place", || cluster.place(&unordered, options))?;
        debug_verify("place", || workflow::verify(&placed.workflow))?;
        let freeze = || freeze(placed.workflow, placed.order, options);
        let schedule = timer.pass("freeze", freeze)?;
        return Ok(Planned { program, plan, schedule: Arc::new(schedule), timings: timer.timings });
    }
    let program = timer.rewritten(program, options)?;
    let plan = timer.pass("lower", || lower::lower(&program, options))?;
    debug_verify("lower", || plan::verify(&plan))?;
    let workflow = timer.pass("partial evaluation", || partial::evaluate(&plan, stop))?;
    debug_verify("partial evaluation", || workflow::verify(&workflow))?;
    let order = timer.pass("order", || Ok(order::depth_first(&workflow)))?;
    let schedule = timer.pass("freeze", || freeze(workflow, order, options))?;
    Ok(Planned { program, plan, schedule: Arc::new(schedule), timings: timer.timings })
}

/// Freezes a workflow. Its schedule promises the bits of a provider if any of its tasks multiplies matrices or calls a function that may.
fn freeze(workflow: Workflow, order: Vec<TaskId>, options: &PlanOptions) -> Result<Schedule> {
    let needs_provider = workflow.kernels.values().any(|entry| match &entry.kernel {
        Kernel::Statement(statement) => Contraction::of_kernel(statement).is_some(),
        Kernel::Call(_) => true,
        _ => false,
    });
    let none = ProviderName::none();
    let provider = if needs_provider { &options.provider } else { &none };
    Schedule::freeze(workflow, order, provider.get())
}

/// A program with times as integers, what has no kernel expanded, and rewritten if that is asked for, up to the orders of its products.
pub(crate) struct Unordered {
    program: Program,
    /// Orders of products by the number of the node; none if nothing is rewritten.
    orders: Option<BTreeMap<usize, Vec<Order>>>,
}

impl Unordered {
    /// Prepares a program.
    pub(crate) fn new(program: &Program, options: &PlanOptions) -> Result<Unordered> {
        Timer { stop: &|| false, timings: Vec::new() }.unordered(program, options)
    }

    /// How many orders there are to choose from for every product.
    pub(crate) fn n_orders(&self) -> Vec<usize> {
        self.orders.iter().flat_map(BTreeMap::values).map(Vec::len).collect()
    }

    /// The program that is lowered, with these orders; products that are not mentioned have their best.
    pub(crate) fn ordered(&self, choice: &[usize]) -> Result<Program> {
        Timer { stop: &|| false, timings: Vec::new() }.ordered(self, choice)
    }
}

struct Timer<'a> {
    stop: &'a dyn Fn() -> bool,
    timings: Vec<(&'static str, Duration)>,
}

impl Timer<'_> {
    fn rewritten(&mut self, program: &Program, options: &PlanOptions) -> Result<Program> {
        let unordered = self.unordered(program, options)?;
        self.ordered(&unordered, &[])
    }

    fn unordered(&mut self, program: &Program, options: &PlanOptions) -> Result<Unordered> {
        let erased = self.pass("erase times", || rewrite::erase::run(program))?;
        debug_verify("erase times", || rewrite::erase::verify(&erased))?;
        let mut program = self.pass("expand", || rewrite::expand(&erased))?;
        let mut orders = None;
        if options.rewrites {
            program = self.passes(program, rewrite::BEFORE_ORDERS)?;
            orders = Some(self.pass("contraction order", || Ok(rewrite::contraction::orders(&program)))?);
        }
        Ok(Unordered { program, orders })
    }

    fn ordered(&mut self, unordered: &Unordered, choice: &[usize]) -> Result<Program> {
        let Some(orders) = &unordered.orders else { return Ok(unordered.program.clone()) };
        let name = "products in pairs";
        let program = self.pass(name, || rewrite::contraction::run(&unordered.program, orders, choice))?;
        debug_verify(name, || program::verify(&program))?;
        self.passes(program, rewrite::AFTER_ORDERS)
    }

    fn passes(&mut self, mut program: Program, passes: &[rewrite::Pass]) -> Result<Program> {
        for pass in passes {
            program = self.pass(pass.name, || (pass.run)(&program))?;
            debug_verify(pass.name, || program::verify(&program))?;
        }
        Ok(program)
    }

    fn pass<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if (self.stop)() {
            return Err(Error::cancelled());
        }
        let start = Instant::now();
        let result = run();
        self.timings.push((name, start.elapsed()));
        result
    }
}

/// In debug builds, verifies what a pass made and names the guilty one.
fn debug_verify(pass: &str, verify: impl FnOnce() -> Result<()>) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    verify().map_err(|error| Error::internal(format!("after `{pass}`: {}", error.message())).at(error.span()))
}
