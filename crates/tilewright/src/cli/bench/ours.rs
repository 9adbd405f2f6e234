//! Our side of the benches.

use std::collections::BTreeMap;
use std::time::Instant;

use tw_ir::Program;
use tw_ir::error::{Error, Result};
use tw_ir::program::FunctionTable;
use tw_plan::lang::{NoFiles, ParamValue, parse_program};
use tw_plan::{PlanOptions, plan_segment};
use tw_run::{Runtime, overhead};

use super::Bench;
use super::harness::Figure;
use crate::explain::units;
use crate::session::Session;
use crate::tensor::Tensor;

/// Both sides use as many threads.
const THREADS: usize = 2;

/// One repeat.
pub(super) struct Ours {
    /// Seconds per unit.
    pub(super) seconds: f64,
    pub(super) figures: Vec<Figure>,
}

/// What is measured, set up once.
pub(super) enum Subject {
    Overhead { runtime: Runtime, tasks: u32 },
    Plan { program: Program },
    Segment { vector: Tensor, runs: u32 },
}

const PRODUCT: &str = "
param n = 100
input A: f64[n * 1000, n * 1000] tile(1000)
input B: f64[n * 1000, n * 1000] tile(1000)
C = A @ B
output C
";

impl Subject {
    pub(super) fn new(bench: Bench, quick: bool) -> Result<Subject> {
        match bench {
            Bench::Overhead => {
                let tasks = if quick { 100_000 } else { 1_000_000 };
                Ok(Subject::Overhead { runtime: Runtime::new(THREADS), tasks })
            }
            Bench::Plan => {
                let blocks = if quick { 40 } else { 100 };
                let sets = BTreeMap::from([("n".to_string(), ParamValue::Int(blocks))]);
                let unit = parse_program(PRODUCT, &sets, &NoFiles, &FunctionTable::default());
                let first = |errors: Vec<Error>| errors.into_iter().next();
                let unit = unit.map_err(|errors| first(errors).unwrap_or_else(|| Error::internal("no program")))?;
                Ok(Subject::Plan { program: unit.program })
            }
            Bench::Segment => {
                let vector = Session::builder().threads(THREADS).build().random_uniform(&[1000], 1)?;
                vector.persist()?;
                Ok(Subject::Segment { vector, runs: if quick { 500 } else { 5000 } })
            }
        }
    }

    pub(super) fn measure(&mut self) -> Result<Ours> {
        match self {
            Subject::Overhead { runtime, tasks } => {
                // As many chains as steps in each, and every step waits for two: threads keep waiting for each other.
                let workflow = overhead::coupled_workflow(*tasks, tasks.isqrt())?;
                let overhead = overhead::measure(runtime, workflow, 1)?;
                Ok(Ours { seconds: overhead.run, figures: Vec::new() })
            }
            Subject::Plan { program } => {
                let begin = Instant::now();
                let planned = plan_segment(program, &PlanOptions::default())?;
                let seconds = begin.elapsed().as_secs_f64();
                let tasks = planned.schedule.order().len() as f64;
                let bytes = planned.schedule.heap_bytes() as f64 / tasks;
                let text = format!("{} tasks in {}", units::count(tasks as u64), units::seconds(seconds));
                let figures = vec![
                    Figure { name: "seconds", value: seconds, text },
                    Figure { name: "bytes_per_task", value: bytes, text: format!("{bytes:.0} bytes per task") },
                ];
                Ok(Ours { seconds: seconds / tasks, figures })
            }
            Subject::Segment { vector, runs } => {
                let begin = Instant::now();
                for _ in 0..*runs {
                    vector.add_scalar(1.0)?.sum(None)?.item()?;
                }
                Ok(Ours { seconds: begin.elapsed().as_secs_f64() / f64::from(*runs), figures: Vec::new() })
            }
        }
    }
}
