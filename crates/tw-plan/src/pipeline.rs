//! The pipeline of the planner, on one screen.

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

/// A planned segment. Explain shows it and an engine runs it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The program after rewriting.
    pub program: Program,
    /// Its relations.
    pub plan: Plan,
    /// The frozen schedule.
    pub schedule: Arc<Schedule>,
    /// The time of each pass, in order.
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

/// As [`plan_segment`], but fails as cancelled once `stop` returns true. It is checked between passes and while tasks are created, because plans of millions of tasks take
/// seconds.
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

/// A program without contraction orders: times are integers, operators without kernels are expanded, and the rewrites before ordering are done if requested.
pub struct Unordered {
    program: Program,
    /// Candidate contraction orders by node; `None` without rewrites.
    orders: Option<BTreeMap<usize, Vec<contraction_order::ContractionOrder>>>,
    /// Passes to skip.
    without: Vec<&'static str>,
}

impl Unordered {
    /// Prepares a program.
    pub fn new(program: &Program, options: &PlanOptions) -> Result<Unordered> {
        Passes::until(&|| false).unordered(program, options)
    }

    /// The number of candidate orders of each product.
    pub fn n_orders(&self) -> Vec<usize> {
        self.orders.iter().flat_map(BTreeMap::values).map(Vec::len).collect()
    }

    /// The program with these contraction orders; products that are not mentioned get their best order.
    pub fn ordered(&self, choice: &[usize]) -> Result<Program> {
        Passes::until(&|| false).ordered(self, choice)
    }
}

/// Runs passes: times each by name, and stops between passes on request.
pub struct Passes<'a> {
    stop: &'a dyn Fn() -> bool,
    timings: Vec<(&'static str, Duration)>,
}

impl<'a> Passes<'a> {
    /// Passes that fail as cancelled once `stop` returns true.
    pub fn until(stop: &'a dyn Fn() -> bool) -> Passes<'a> {
        Passes { stop, timings: Vec::new() }
    }

    /// Prepares a program, up to its contraction orders.
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

/// The stages of a program before freezing.
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

/// In debug builds, verifies the result of a pass and names the pass in the error.
fn debug_verify(pass: &str, verify: impl FnOnce() -> Result<()>) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    verify().map_err(|error| Error::internal(format!("after `{pass}`: {}", error.message())).at(error.span()))
}
