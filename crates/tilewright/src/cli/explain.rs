//! `tw explain`.

use std::sync::Arc;

use tw_ir::error::Error;
use tw_place::{Cluster, SchedulerName};

use super::Failure;
use super::cluster::{ClusterArgs, SAY_WHICH_MACHINE};
use super::engine::EngineArgs;
use super::load::{Loaded, ProgramArgs};
use super::out::Out;
use super::progress::Bar;
use crate::explain::{Explanation, Level, Profile};
use crate::session::Session;

mod diff;

use diff::DiffArgs;

/// Arguments of `tw explain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// Level of detail and form.
    #[arg(long, value_enum, default_value_t = Level::Table)]
    level: Level,
    /// Also run the program, and show the measured time of each line.
    #[arg(long)]
    analyze: bool,
    /// Add maps of block owners, a matrix of transfers and a timeline of workers to the text; HTML, SVG and JSON always have them.
    #[arg(long)]
    pictures: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    diff: DiffArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    if args.diff.is_given() {
        return compare(args, out);
    }
    if args.pictures && args.cluster.machine()?.is_none() {
        let error = Error::plan("`--pictures` shows what several workers do");
        return Err(error.help(SAY_WHICH_MACHINE).into());
    }
    let profile = Arc::new(Profile::new());
    let (session, loaded, mut explanation) = planned(&args.program, &args.engine, &args.cluster, Some(&profile))?;
    if args.analyze {
        let bar = Bar::watch(&session, false);
        let outcome = session.run_with_report(&loaded.unit.program, &loaded.inputs);
        drop(bar);
        let (_, totals) = outcome.map_err(|error| loaded.failure(error))?;
        explanation = explanation.with_measured(profile.measured(), totals);
    }
    if args.pictures {
        explanation = explanation.with_pictures();
    }
    out.text(explanation.to_text(args.level));
    Ok(())
}

/// Plans a program, also for a cluster if one is requested.
fn planned(
    program: &ProgramArgs,
    engine: &EngineArgs,
    cluster: &ClusterArgs,
    profile: Option<&Arc<Profile>>,
) -> Result<(Session, Loaded, Explanation), Failure> {
    let (mut machine, distribution) = (cluster.machine()?, cluster.distribution()?);
    if let (Some(machine), Some(memory)) = (&mut machine, engine.memory) {
        machine.memory = Some(memory);
    }
    let mut builder = engine.builder()?;
    if let Some(profile) = profile {
        builder = builder.profile(profile.clone());
    }
    let session = builder.build();
    let mut loaded = program.load()?;
    loaded.release_stored();
    let explanation = session.explain(&loaded.unit.program).map_err(|error| loaded.failure(error))?;
    let mut explanation = explanation.with_source(loaded.source.clone());
    if let Some(machine) = machine {
        let scheduler = SchedulerName::named(cluster.scheduler())?;
        let cluster = Cluster { machine, scheduler, distribution: distribution.map(Arc::new) };
        let placed = explanation.placed_on(&session, &cluster);
        explanation = placed.map_err(|error| loaded.failure(error))?;
    }
    Ok((session, loaded, explanation))
}

/// Plans twice and prints the difference.
fn compare(args: &Args, out: &mut Out) -> Result<(), Failure> {
    for (is_given, name) in [(args.analyze, "--analyze"), (args.pictures, "--pictures")] {
        if is_given {
            let error = Error::plan(format!("`{name}` is about one plan, and `--diff` compares two"));
            return Err(error.help(format!("leave `{name}` out")).into());
        }
    }
    args.diff.check_level(args.level)?;
    let (program, engine) = (args.diff.program(&args.program), args.diff.engine(&args.engine));
    let cluster = args.diff.cluster(&args.cluster);
    let (_, _, first) = planned(&args.program, &args.engine, &args.cluster, None)?;
    let (_, _, second) = planned(&program, &engine, &cluster, None)?;
    let difference = first.diff(&second).named("", &args.diff.words());
    out.text(diff::to_text(&difference, args.level));
    Ok(())
}
