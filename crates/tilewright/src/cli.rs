//! The command `tw`.
//!
//! Each subcommand is a module with its arguments (`Args`) and a function (`run`). To add one, add a variant to `Command` and an arm to
//! `run_command`. Errors come back as `Failure` and are drawn here. Standard output goes through `Out`, which survives a closed pipe.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tw_ir::error::Error;

use crate::diagnose;
use crate::explain::SourceText;

mod bench;
mod calibrate;
mod check;
mod cluster;
mod demo;
mod digest;
mod doctor;
mod engine;
mod explain;
mod info;
mod load;
mod out;
mod plan;
mod preview;
mod progress;
mod ranks;
mod report;
mod run;

use out::Out;

/// Plan and run tensor programs over blocks.
#[derive(Parser)]
#[command(name = "tw", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the plan and the run of a real program, in half a minute.
    Demo(demo::Args),
    /// Run a program and show its results.
    Run(run::Args),
    /// Show the plan and the cost of a program, line by line, without running it.
    Explain(explain::Args),
    /// Plan a program and write its schedules to a file, for `tw run --schedule`.
    Plan(plan::Args),
    /// Parse, type-check and plan a program without running it.
    Check(check::Args),
    /// Show the header of an .npy file, or the inputs and outputs of a program.
    Info(info::Args),
    /// Compare the speed with NumPy, numexpr, dask and JAX in the same run.
    Bench(bench::Args),
    /// Measure this machine and write a file for `tw explain --machine`.
    Calibrate(calibrate::Args),
    /// Look at this machine: cores, vectors, memory, spill directory and disk, with advice.
    Doctor(doctor::Args),
}

/// Why a command did not succeed.
pub(crate) struct Failure {
    errors: Vec<Error>,
    /// The text that spans of the errors point into.
    source: Option<SourceText>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { errors: vec![error], source: None }
    }
}

impl Failure {
    fn in_source(errors: Vec<Error>, source: &SourceText) -> Failure {
        Failure { errors, source: Some(source.clone()) }
    }

    fn report(&self) -> ExitCode {
        self.print();
        ExitCode::from(self.code())
    }

    /// The exit code of the process.
    fn code(&self) -> u8 {
        self.errors.iter().map(diagnose::exit_code).max().unwrap_or(70)
    }

    fn print(&self) {
        let (text, file) = self.source.as_ref().map_or(("", ""), |source| (source.text(), source.file()));
        let mut stderr = std::io::stderr();
        for error in &self.errors {
            let drawn = match out::has_colour(&stderr) {
                true => diagnose::render_in_colour(error, text, file),
                false => diagnose::render(error, text, file),
            };
            // If even standard error is closed, the exit code has to do.
            let _ = writeln!(stderr, "{drawn}");
        }
    }
}

/// Reads the arguments of the process, runs the command and gives its exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Help and version are not failures; a closed pipe is ignored.
            let _ = usage.print();
            return ExitCode::from(if usage.use_stderr() { 2 } else { 0 });
        }
    };
    std::panic::set_hook(Box::new(|panic| {
        let _ = writeln!(std::io::stderr(), "internal error: {panic}\nthis is a fault of Tilewright; please report it");
    }));
    match std::panic::catch_unwind(|| run_command(cli.command)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(),
        Err(_) => ExitCode::from(70),
    }
}

fn run_command(command: Command) -> Result<(), Failure> {
    let mut out = Out::new(std::io::stdout().is_terminal());
    match command {
        Command::Demo(args) => demo::run(&args, &mut out)?,
        Command::Run(args) => run::run(&args, &mut out)?,
        Command::Explain(args) => explain::run(&args, &mut out)?,
        Command::Plan(args) => plan::run(&args, &mut out)?,
        Command::Check(args) => check::run(&args, &mut out)?,
        Command::Info(args) => info::run(&args, &mut out)?,
        Command::Bench(args) => bench::run(&args, &mut out)?,
        Command::Calibrate(args) => calibrate::run(&args, &mut out)?,
        Command::Doctor(args) => doctor::run(&args, &mut out)?,
    }
    Ok(out.finish()?)
}
