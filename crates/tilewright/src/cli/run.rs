//! `tw run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tw_block::Meter;
use tw_ir::error::Result;
use tw_ir::{Array, BoxRegion, DType, TensorType};
use tw_run::TensorHandle;

use super::Failure;
use super::cluster::ClusterArgs;
use super::digest::Digest;
use super::engine::EngineArgs;
use super::load::ProgramArgs;
use super::out::Out;
use super::preview::{self, Corner};
use super::progress::Bar;
use super::ranks::Ranks;
use super::report::{ReportFile, report};
use crate::explain::{Explanation, units};
use crate::profile::Profile;
use crate::report::Totals;
use crate::session::Session;

/// Tasks and moves that a trace has at most.
const MOST_TRACED: usize = 1_000_000;

/// Arguments of `tw run`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Write costs and results of the run to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write a trace of the run to this file: with the ending .svg a picture of threads and memory over time, otherwise JSON for chrome://tracing and Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Run the schedules in this file, which `tw plan` wrote for the same program.
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// Keep a checkpoint in this directory, and go on with the one that a killed run of the same program with the same data has left there.
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Print nothing but errors.
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Compute the bits that threads do, on any number of ranks. Without ranks, bits never depend on threads.
    #[arg(long)]
    reproducible: bool,
}

/// A result, for the terminal and the report.
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) dtype: DType,
    pub(crate) digest: Digest,
    corner: Array,
    path: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    // A mistake in the program is found by every rank, before there is anything to end.
    drop(args.program.load()?);
    match args.engine.connect()? {
        None => run_with(args, None, out),
        Some(ranks) => {
            let result = run_with(args, Some(&ranks), out);
            ranks.end(result)
        }
    }
}

fn run_with(args: &Args, ranks: Option<&Ranks>, out: &mut Out) -> Result<(), Failure> {
    if ranks.is_some() && args.schedule.is_some() {
        let error = tw_ir::Error::plan("`--schedule` runs a plan of this machine, not one of several ranks");
        return Err(error.help("leave it out: every rank makes the same plan").into());
    }
    let profile = args.trace.as_ref().map(|_| Arc::new(Profile::with_tasks(MOST_TRACED)));
    let mut builder = args.engine.builder_on(ranks, &args.cluster)?;
    // Rank 0 speaks for all.
    let is_first = ranks.is_none_or(|ranks| ranks.rank() == 0);
    let is_quiet = args.quiet || !is_first;
    if args.reproducible {
        builder = builder.reproducible();
    }
    if let Some(directory) = &args.resume {
        builder = builder.checkpoint(directory);
    }
    let session = match &profile {
        Some(profile) => builder.profile(profile.clone()).build(),
        None => builder.build(),
    };
    let mut loaded = args.program.load()?;
    let names = loaded.unit.program.outputs.clone();
    let paths = loaded.release_stored();
    let mut planning = Duration::ZERO;
    let mut plan = String::new();
    let mut explanation = None;
    if args.schedule.is_none() || args.trace.is_some() {
        // A branch that cannot be planned may never run: the run itself tells.
        let found = session.explain(&loaded.unit.program).ok();
        explanation = found.map(|explanation| explanation.with_source(loaded.source.clone()));
    }
    if let Some(path) = &args.schedule {
        let bytes = read_plan(path)?;
        let hash = session.load_plan(&loaded.unit.program, &bytes).map_err(|error| loaded.failure(error))?;
        plan.push_str(&format!("schedules {} of {}", hash.short(), path.display()));
    } else if let Some(explanation) = &explanation {
        // The budget of a rank is for its part of the plan.
        if let Some(budget) = args.engine.memory.filter(|_| ranks.is_none()) {
            explanation.check_budget(budget).map_err(|error| loaded.failure(error))?;
        }
        planning = explanation.summary().planning;
        plan.push_str(&explanation.short_line());
    }
    let report_file = args.report.as_deref().filter(|_| is_first).map(ReportFile::create).transpose()?;
    if !is_quiet {
        let budget = args.engine.memory.map(|bytes| format!(" (budget {})", units::bytes(bytes))).unwrap_or_default();
        out.aside(format_args!("plan: {plan}{budget}"));
    }

    let begin = Instant::now();
    let bar = Bar::watch(&session, is_quiet);
    let outcome = session.run_with_report(&loaded.unit.program, &loaded.inputs);
    drop(bar);
    let elapsed = begin.elapsed();
    if let (Some(path), Some(profile), true) = (&args.trace, &profile, is_first) {
        match &explanation {
            Some(explanation) => write_trace(path, profile, explanation, out)?,
            None => out.aside("there is no trace: the program could not be planned before its run"),
        }
    }
    let (results, totals) = outcome.map_err(|error| loaded.failure(error))?;

    let mut shown = Vec::new();
    // All ranks take part, and the first one shows what it gets.
    if !args.quiet || args.report.is_some() {
        for name in names.iter().filter(|name| is_first || !paths.contains_key(*name)) {
            shown.push(show(&session, name, &results, &paths)?);
        }
    }
    if !is_quiet {
        shown.iter().for_each(|result| print(result, out));
        out.aside(after(&totals, elapsed, &session));
    }
    if let Some(file) = report_file {
        file.write(&report(&totals, planning, args.engine.memory, &shown))?;
    }
    Ok(())
}

/// Writes what the threads did, also of a run that failed.
fn write_trace(path: &Path, profile: &Profile, explanation: &Explanation, out: &mut Out) -> Result<()> {
    let (tasks, others) = profile.tasks();
    let text = match path.extension().is_some_and(|ending| ending == "svg") {
        true => explanation.timeline_svg(&tasks, others),
        false => explanation.chrome_trace(&tasks).to_string(),
    };
    std::fs::write(path, text)
        .map_err(|error| tw_ir::Error::io(format!("cannot write {}: {error}", path.display())))?;
    if others > 0 {
        out.aside(format_args!("the trace has the first {} tasks; {others} others are left out", tasks.len()));
    }
    Ok(())
}

/// The bytes of a plan file.
fn read_plan(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| tw_ir::Error::io(format!("cannot read {}: {error}", path.display())))
}

fn show(
    session: &Session,
    name: &str,
    results: &BTreeMap<String, Arc<TensorHandle>>,
    paths: &BTreeMap<String, String>,
) -> Result<Shown> {
    let name = name.to_string();
    if let Some(path) = paths.get(&name) {
        let source = tw_files::open(path)?;
        let (shape, dtype) = (source.shape()?, source.ty().dtype);
        let corner = BoxRegion::whole(&preview::corner_shape(&shape));
        let corner = source.read(&corner, &Meter::new())?.to_array()?;
        let digest = Digest::of_source(source.as_ref())?;
        return Ok(Shown { name, shape, dtype, digest, corner, path: Some(path.clone()) });
    }
    let handle = results.get(&name).ok_or_else(|| tw_ir::Error::internal(format!("no result `{name}`")))?;
    let (shape, dtype) = (handle.shape(), handle.dtype());
    let (mut digest, mut corner) = (Digest::new(dtype), Corner::new(&shape, dtype)?);
    session.gather(handle, Some(0), &mut |_, block| {
        digest.add(&block, &shape)?;
        corner.add(&block)
    })?;
    Ok(Shown { name, shape, dtype, digest, corner: corner.array, path: None })
}

fn print(shown: &Shown, out: &mut Out) {
    let ty = TensorType::known(shown.dtype, &shown.shape);
    let text = preview::corner_text(&shown.corner, &shown.shape);
    if shown.shape.is_empty() {
        out.heading(format_args!("{}: {} = {text}", shown.name, shown.dtype));
    } else {
        let sum = preview::sum_text(shown.digest.sum());
        let path = shown.path.as_ref().map(|path| format!("  -> {path}")).unwrap_or_default();
        out.heading(format_args!("{}: {ty}  sum {sum}{path}", shown.name));
        text.lines().for_each(|line| out.line(format_args!("  {line}")));
    }
}

fn after(totals: &Totals, elapsed: Duration, session: &Session) -> String {
    let rate = totals.flops as f64 / totals.running.as_secs_f64().max(f64::MIN_POSITIVE) / 1e9;
    format!(
        "ran in {} on {}: {}, peak {}, {rate:.2} GFLOP/s",
        units::duration(elapsed),
        units::counted(session.threads() as u64, "thread"),
        units::counted(totals.tasks, "task"),
        units::bytes(totals.peak_bytes),
    )
}
