//! `tw explain`.

use std::sync::Arc;

use super::Failure;
use super::cluster::ClusterArgs;
use super::engine::EngineArgs;
use super::load::ProgramArgs;
use super::out::Out;
use super::progress::Bar;
use crate::explain::{Level, Profile};

/// Arguments of `tw explain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    /// How much to tell, and in which form.
    #[arg(long, value_enum, default_value_t = Level::Table)]
    level: Level,
    /// Run the program too, and show the measured time of every line.
    #[arg(long)]
    analyze: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let machine = args.cluster.machine()?;
    let profile = Arc::new(Profile::new());
    let session = args.engine.builder()?.profile(profile.clone()).build();
    let mut loaded = args.program.load()?;
    loaded.release_stored();
    let explanation = session.explain(&loaded.unit.program).map_err(|error| loaded.failure(error))?;
    let mut explanation = explanation.with_source(loaded.source.clone());
    if args.analyze {
        let bar = Bar::watch(&session, false);
        let outcome = session.run_with_report(&loaded.unit.program, &loaded.inputs);
        drop(bar);
        let (_, totals) = outcome.map_err(|error| loaded.failure(error))?;
        explanation = explanation.with_measured(profile.measured(), totals);
    }
    let Some(machine) = machine else {
        out.text(explanation.to_text(args.level));
        return Ok(());
    };
    let placed = explanation.on(&session, &machine, args.cluster.scheduler()).map_err(|error| loaded.failure(error))?;
    match args.level {
        #[cfg(feature = "json")]
        Level::Json => {
            let mut value = explanation.to_json();
            placed.add_to_json(&mut value);
            out.text(format!("{value}\n"));
        }
        level => out.text(format!("{}\n{}", explanation.to_text(level), placed.to_text())),
    }
    Ok(())
}
