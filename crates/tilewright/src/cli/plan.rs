//! `tw plan`.

use std::path::PathBuf;

use tw_ir::error::{Error, Result};

use super::Failure;
use super::engine::EngineArgs;
use super::load::ProgramArgs;
use super::out::Out;
use crate::explain::units;

/// Arguments of `tw plan`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// Write the plan to this file.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let session = args.engine.builder()?.build();
    let mut loaded = args.program.load()?;
    // As `tw run` does, so that both have one program.
    loaded.release_stored();
    let program = &loaded.unit.program;
    let bytes = session.plan_bytes(program).map_err(|error| loaded.failure(error))?;
    // Reads the plan as another process would: checks that it is readable, and gets its hash.
    let hash = session.load_plan(program, &bytes).map_err(|error| loaded.failure(error))?;
    std::fs::write(&args.output, &bytes)
        .map_err(|error| Error::io(format!("cannot write {}: {error}", args.output.display())))?;
    let (path, size) = (args.output.display(), units::bytes(bytes.len() as u64));
    out.line(format_args!("{path}: {size}, schedules {}", hash.short()));
    Ok(())
}
