//! Benches of the planner and the runtime, with almost no numeric work.

use std::collections::BTreeMap;
use std::time::Instant;

use tw_ir::Program;
use tw_ir::error::Result;
use tw_lang::ParamValue;
use tw_plan::{PlanOptions, plan_segment};
use tw_run::{Runtime, overhead};

use super::machine;
use super::subject::{Figure, Sample, Subject, parse};
use crate::explain::units;
use crate::session::Session;
use crate::tensor::Tensor;

pub(super) mod placing;

/// Blocks of 1000 x 1000, `n` in each direction: `n` cubed tasks.
const PRODUCT: &str = "
param n = 100
input A: f64[n * 1000, n * 1000] tile(1000)
input B: f64[n * 1000, n * 1000] tile(1000)
C = A @ B
output C
";

/// Trivial tasks that depend on each other; seconds per task.
pub(super) fn overhead(quick: bool) -> Result<Box<dyn Subject>> {
    let tasks = if quick { 100_000 } else { 1_000_000 };
    Ok(Box::new(Overhead { runtime: Runtime::new(machine::threads()), tasks }))
}

/// Planning a matrix product; seconds per task planned.
pub(super) fn plan(quick: bool) -> Result<Box<dyn Subject>> {
    let blocks = if quick { 40 } else { 100 };
    let sets = BTreeMap::from([("n".to_string(), ParamValue::Int(blocks))]);
    Ok(Box::new(Plan { program: parse(PRODUCT, &sets)?.program }))
}

/// A small program over and over; seconds per run.
pub(super) fn segment(quick: bool) -> Result<Box<dyn Subject>> {
    let vector = Session::builder().threads(machine::threads()).build().random_uniform(&[1000], 1)?;
    vector.persist()?;
    Ok(Box::new(Segment { vector, runs: if quick { 500 } else { 5000 } }))
}

struct Overhead {
    runtime: Runtime,
    tasks: u32,
}

impl Subject for Overhead {
    fn measure(&mut self) -> Result<Sample> {
        // As many chains as steps in each, and every step waits for two: threads keep waiting for each other.
        let workflow = overhead::coupled_workflow(self.tasks, self.tasks.isqrt())?;
        let overhead = overhead::measure(&self.runtime, workflow, 1)?;
        Ok(Sample { seconds: overhead.run, figures: Vec::new() })
    }
}

struct Plan {
    program: Program,
}

impl Subject for Plan {
    fn measure(&mut self) -> Result<Sample> {
        let begin = Instant::now();
        let planned = plan_segment(&self.program, &PlanOptions::default())?;
        let seconds = begin.elapsed().as_secs_f64();
        let tasks = planned.schedule.n_tasks() as f64;
        let bytes = planned.schedule.heap_bytes() as f64 / tasks;
        let whole = format!("{} tasks in {}", units::count(tasks as u64), units::seconds(seconds));
        let figure = |name, value, text| Figure { name, value, text, at_most: None };
        let figures = vec![
            figure("seconds", seconds, whole),
            figure("bytes_per_task", bytes, format!("{bytes:.0} bytes per task")),
        ];
        Ok(Sample { seconds: seconds / tasks, figures })
    }
}

struct Segment {
    vector: Tensor,
    runs: u32,
}

impl Subject for Segment {
    fn measure(&mut self) -> Result<Sample> {
        let begin = Instant::now();
        for _ in 0..self.runs {
            self.vector.add_scalar(1.0)?.sum(None)?.item()?;
        }
        Ok(Sample { seconds: begin.elapsed().as_secs_f64() / f64::from(self.runs), figures: Vec::new() })
    }
}
