//! The planner's pipeline, readable on one screen.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tw_ir::error::{Error, Result};
use tw_ir::plan::{self, Plan};
use tw_ir::program::{self, Program};
use tw_ir::schedule::Schedule;
use tw_ir::workflow;

use crate::options::PlanOptions;
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
    let program = timer.rewritten(program, options)?;
    if let Some(cluster) = options.cluster {
        let (plan, placed) = timer.pass("place", || cluster.place(&program, options))?;
        debug_verify("place", || workflow::verify(&placed.workflow))?;
        let freeze = || Schedule::freeze(placed.workflow, placed.order, &options.provider);
        let schedule = timer.pass("freeze", freeze)?;
        return Ok(Planned { program, plan, schedule: Arc::new(schedule), timings: timer.timings });
    }
    let plan = timer.pass("lower", || lower::lower(&program, options))?;
    debug_verify("lower", || plan::verify(&plan))?;
    let workflow = timer.pass("partial evaluation", || partial::evaluate(&plan, stop))?;
    debug_verify("partial evaluation", || workflow::verify(&workflow))?;
    let order = timer.pass("order", || Ok(order::depth_first(&workflow)))?;
    let schedule = timer.pass("freeze", || Schedule::freeze(workflow, order, &options.provider))?;
    Ok(Planned { program, plan, schedule: Arc::new(schedule), timings: timer.timings })
}

/// The program that is lowered: times as integers, what has no kernel expanded, and rewritten if that is asked for.
pub(crate) fn rewritten(program: &Program, options: &PlanOptions) -> Result<Program> {
    Timer { stop: &|| false, timings: Vec::new() }.rewritten(program, options)
}

struct Timer<'a> {
    stop: &'a dyn Fn() -> bool,
    timings: Vec<(&'static str, Duration)>,
}

impl Timer<'_> {
    fn rewritten(&mut self, program: &Program, options: &PlanOptions) -> Result<Program> {
        let erased = self.pass("erase times", || rewrite::erase::run(program))?;
        debug_verify("erase times", || rewrite::erase::verify(&erased))?;
        let mut program = self.pass("expand", || rewrite::expand(&erased))?;
        if options.rewrites {
            for pass in rewrite::PASSES {
                program = self.pass(pass.name, || (pass.run)(&program))?;
                debug_verify(pass.name, || program::verify(&program))?;
            }
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
