//! `tw check`.

use super::Failure;
use super::engine::EngineArgs;
use super::load::ProgramArgs;
use super::out::Out;
use crate::explain::units;

/// Arguments of `tw check`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let session = args.engine.builder()?.build();
    let mut loaded = args.program.load()?;
    let n_outputs = loaded.unit.program.outputs.len() as u64;
    loaded.release_stored();
    let explanation = session.explain(&loaded.unit.program).map_err(|error| loaded.failure(error))?;
    let explanation = explanation.with_source(loaded.source.clone());
    if let Some(budget) = args.engine.memory {
        explanation.check_budget(budget).map_err(|error| loaded.failure(error))?;
    }
    let unit = &loaded.unit;
    out.line(format_args!(
        "{}: ok; {}, {}; {}",
        loaded.source.file(),
        units::counted(unit.inputs.len() as u64, "input"),
        units::counted(n_outputs, "output"),
        explanation.short_line()
    ));
    Ok(())
}
