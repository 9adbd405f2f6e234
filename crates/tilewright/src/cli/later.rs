//! Options for features that do not exist yet. `tw` parses them and refuses them; it never ignores them.

use std::path::PathBuf;

use tw_ir::error::{Error, Result};

use super::cluster::Scheduler;

/// Options about machines of several workers: `tw explain` plans for them, `tw run` cannot run on them yet.
#[derive(clap::Args)]
pub(crate) struct ClusterOptions {
    /// Use this placement scheduler.
    #[arg(long, value_enum, default_value_t = Scheduler::Auto, hide = true)]
    scheduler: Scheduler,
    /// Plan for this many nodes.
    #[arg(long, value_name = "K", hide = true)]
    nodes: Option<u32>,
    /// Plan for this many workers on each node.
    #[arg(long, value_name = "R", hide = true)]
    workers: Option<u32>,
    /// Read the machine model from this file.
    #[arg(long, value_name = "FILE", hide = true)]
    machine: Option<PathBuf>,
    /// Read distributions of tensors from this file.
    #[arg(long, value_name = "FILE", hide = true)]
    distribution: Option<PathBuf>,
}

/// Options that only `tw run` has.
#[derive(clap::Args)]
pub(crate) struct LaterRunArgs {
    /// The same bits for any number of ranks.
    #[arg(long, hide = true)]
    reproducible: bool,
}

/// The error for a feature that does not exist yet.
pub(crate) fn refusal(option: &str, comes_with: &str) -> Error {
    Error::plan(format!("{option} is not there yet; it comes with {comes_with}"))
}

impl ClusterOptions {
    /// An error if one of them is given.
    pub(crate) fn refuse(&self) -> Result<()> {
        let given = [
            (self.scheduler != Scheduler::Auto, "--scheduler"),
            (self.nodes.is_some(), "--nodes"),
            (self.workers.is_some(), "--workers"),
            (self.machine.is_some(), "--machine"),
            (self.distribution.is_some(), "--distribution"),
        ];
        let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
        let text = format!("`tw run` runs on this machine alone, so it does not take `{option}`");
        let help = "leave it out to run here; `tw explain --nodes K --workers R` shows the plan for several workers";
        Err(Error::plan(text).help(help))
    }
}

impl LaterRunArgs {
    /// An error if one of them is given.
    pub(crate) fn refuse(&self) -> Result<()> {
        if self.reproducible {
            let help = "on one machine results do not depend on the number of threads anyway; leave the option out";
            return Err(refusal("`--reproducible`", "the MPI engine").help(help));
        }
        Ok(())
    }
}
