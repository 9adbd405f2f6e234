//! The planner's pipeline, readable on one screen.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tw_ir::contraction::Contraction;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::plan::{self, Plan};
use tw_ir::program::{self, Op, Program};
use tw_ir::schedule::{Placement, Schedule, Step};
use tw_ir::workflow::{self, TaskId, Workflow};

use crate::options::{PlanOptions, ProviderName};
use crate::{lower, order, partial, rewrite};
use tw_build::contraction_order;

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
    let mut passes = Passes::until(stop);
    let unordered = passes.unordered(program, options)?;
    let rewritten = passes.ordered(&unordered, &[])?;
    let plan = passes.pass("lower", || lower::lower(&rewritten, options))?;
    debug_verify("lower", || plan::verify(&plan))?;
    let workflow = passes.pass("partial evaluation", || partial::evaluate(&plan, stop))?;
    let order = passes.pass("order", || Ok(order::depth_first(&workflow)))?;
    passes.freeze(program, Lowered { program: rewritten, plan, workflow }, Order::OneRank(order), options)
}

/// A program with times as integers, what has no kernel expanded, and rewritten if that is asked for, up to the orders of its products.
pub struct Unordered {
    program: Program,
    /// Orders of products by the number of the node; none if nothing is rewritten.
    orders: Option<BTreeMap<usize, Vec<contraction_order::ContractionOrder>>>,
    /// Passes that are left out.
    without: Vec<&'static str>,
}

impl Unordered {
    /// Prepares a program.
    pub fn new(program: &Program, options: &PlanOptions) -> Result<Unordered> {
        Passes::until(&|| false).unordered(program, options)
    }

    /// How many orders there are to choose from for every product.
    pub fn n_orders(&self) -> Vec<usize> {
        self.orders.iter().flat_map(BTreeMap::values).map(Vec::len).collect()
    }

    /// The program that is lowered, with these orders; products that are not mentioned have their best.
    pub fn ordered(&self, choice: &[usize]) -> Result<Program> {
        Passes::until(&|| false).ordered(self, choice)
    }
}

/// Runs passes: times each by its name, and stops between them if that is asked for.
pub struct Passes<'a> {
    stop: &'a dyn Fn() -> bool,
    timings: Vec<(&'static str, Duration)>,
}

impl<'a> Passes<'a> {
    /// Passes that are given up, as cancelled, when `stop` says so.
    pub fn until(stop: &'a dyn Fn() -> bool) -> Passes<'a> {
        Passes { stop, timings: Vec::new() }
    }

    /// Prepares a program, up to the orders of its products.
    pub fn unordered(&mut self, program: &Program, options: &PlanOptions) -> Result<Unordered> {
        let mut erased = Cow::Borrowed(program);
        if !options.leaves_out(rewrite::ERASE) {
            erased = self.pass(rewrite::ERASE, || rewrite::erase::run(program))?;
            debug_verify(rewrite::ERASE, || rewrite::erase::verify(&erased))?;
        }
        let mut program = match options.leaves_out(rewrite::EXPAND) {
            true => erased.into_owned(),
            false => self.pass(rewrite::EXPAND, || rewrite::expand(&erased))?,
        };
        let mut orders = None;
        if options.rewrites {
            program = self.passes(program, rewrite::BEFORE_ORDERS, &options.without)?;
            let found = || Ok(rewrite::contraction::orders(&program));
            let is_chosen = !options.leaves_out(rewrite::ORDERS);
            orders = Some(if is_chosen { self.pass(rewrite::ORDERS, found)? } else { BTreeMap::new() });
        }
        Ok(Unordered { program, orders, without: options.without.clone() })
    }

    fn ordered(&mut self, unordered: &Unordered, choice: &[usize]) -> Result<Program> {
        let Some(orders) = &unordered.orders else { return Ok(unordered.program.clone()) };
        let without = &unordered.without;
        let mut program = unordered.program.clone();
        if !without.contains(&rewrite::PAIRS) {
            program = self.pass(rewrite::PAIRS, || rewrite::contraction::run(&program, orders, choice))?;
            debug_verify(rewrite::PAIRS, || program::verify(&program))?;
        }
        self.passes(program, rewrite::AFTER_ORDERS, without)
    }

    fn passes(&mut self, mut program: Program, passes: &[rewrite::Pass], without: &[&str]) -> Result<Program> {
        for pass in passes.iter().filter(|pass| !without.contains(&pass.name)) {
            program = self.pass(pass.name, || (pass.run)(&program))?;
            debug_verify(pass.name, || program::verify(&program))?;
        }
        Ok(program)
    }

    /// Runs a pass.
    pub fn pass<T>(&mut self, name: &'static str, run: impl FnOnce() -> Result<T>) -> Result<T> {
        if (self.stop)() {
            return Err(Error::cancelled());
        }
        let start = Instant::now();
        let result = run();
        self.timings.push((name, start.elapsed()));
        result
    }

    /// The last pass: freezes a workflow. Its schedule promises the bits of a provider if any of its tasks multiplies matrices or calls a function
    /// that may.
    ///
    /// `original` is the program before times became integers: results and files have its types.
    pub fn freeze(
        mut self,
        original: &Program,
        lowered: Lowered,
        order: Order,
        options: &PlanOptions,
    ) -> Result<Planned> {
        let Lowered { program, plan, mut workflow } = lowered;
        restore_times(&mut workflow, original);
        debug_verify("partial evaluation and placement", || workflow::verify(&workflow))?;
        let needs_provider = workflow.kernels.values().any(|entry| match &entry.kernel {
            Kernel::Statement(statement) => Contraction::of_kernel(statement).is_some(),
            Kernel::Call(_) => true,
            _ => false,
        });
        let none = ProviderName::none();
        let provider = if needs_provider { &options.provider } else { &none };
        let schedule = self.pass("freeze", || match order {
            Order::OneRank(order) => Schedule::freeze(workflow, order, provider.get()),
            Order::Placed(steps, placement) => {
                Schedule::freeze_placed(workflow, steps, *placement, None, provider.get())
            }
        })?;
        Ok(Planned { program, plan, schedule: Arc::new(schedule), timings: self.timings })
    }
}

/// What a planner has made of a program when it freezes it.
pub struct Lowered {
    /// The program after rewriting.
    pub program: Program,
    /// Its relations.
    pub plan: Plan,
    /// Its tasks.
    pub workflow: Workflow,
}

/// In which order tasks run, and where.
pub enum Order {
    /// On one rank.
    OneRank(Vec<TaskId>),
    /// On several.
    Placed(Vec<Step>, Box<Placement>),
}

/// Gives results and files the types that the user sees.
fn restore_times(workflow: &mut Workflow, original: &Program) {
    for (output, &value) in workflow.outputs.iter_mut().zip(&original.body.results) {
        output.dtype = original.ty(value).dtype;
    }
    for node in &original.body.nodes {
        if let (Op::Store { path, .. }, Some(&stored)) = (&node.op, node.args.first()) {
            let sinks = workflow.sinks.values_mut().filter(|sink| sink.path == *path);
            sinks.for_each(|sink| sink.dtype = original.ty(stored).dtype);
        }
    }
}

/// In debug builds, verifies what a pass made and names the guilty one.
fn debug_verify(pass: &str, verify: impl FnOnce() -> Result<()>) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    verify().map_err(|error| Error::internal(format!("after `{pass}`: {}", error.message())).at(error.span()))
}
