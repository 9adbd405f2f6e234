//! Options of the command line whose feature does not exist yet. They are read and refused, never ignored.

use std::path::PathBuf;

use tw_ir::error::{Error, Result};

use super::cluster::Scheduler;

/// Options that run and explain will understand.
#[derive(clap::Args)]
pub(crate) struct LaterArgs {
    /// Place tasks by this scheduler.
    #[arg(long, value_enum, default_value_t = Scheduler::Auto, hide_default_value = true, hide_possible_values = true)]
    scheduler: Scheduler,
    /// Plan for this many nodes.
    #[arg(long, value_name = "K", hide = true)]
    nodes: Option<u32>,
    /// Plan for this many ranks per node.
    #[arg(long, value_name = "R", hide = true)]
    workers: Option<u32>,
}

/// Options that only a run will understand.
#[derive(clap::Args)]
pub(crate) struct LaterRunArgs {
    /// Write blocks that do not fit to this directory.
    #[arg(long, value_name = "DIR", hide = true)]
    spill: Option<PathBuf>,
    /// Replay this schedule.
    #[arg(long, value_name = "FILE", hide = true)]
    schedule: Option<PathBuf>,
    /// Go on with a run that was interrupted.
    #[arg(long, value_name = "DIR", hide = true)]
    resume: Option<PathBuf>,
    /// The same bits for any number of ranks.
    #[arg(long, hide = true)]
    reproducible: bool,
}

/// The error for something that comes later.
pub(crate) fn refusal(option: &str, comes_with: &str) -> Error {
    Error::plan(format!("{option} is not there yet; it comes with {comes_with}"))
}

const CLUSTERS: &str = "the planner for clusters";

impl LaterArgs {
    /// An error if one of them is given.
    pub(crate) fn refuse(&self) -> Result<()> {
        if self.scheduler != Scheduler::Auto {
            let help = "on one machine tasks run depth-first; leave the option out";
            return Err(refusal("`--scheduler` other than `auto`", CLUSTERS).help(help));
        }
        let given = [(self.nodes.is_some(), "`--nodes`"), (self.workers.is_some(), "`--workers`")];
        given.into_iter().find(|(given, _)| *given).map_or(Ok(()), |(_, option)| Err(refusal(option, CLUSTERS)))
    }
}

impl LaterRunArgs {
    /// An error if one of them is given.
    pub(crate) fn refuse(&self) -> Result<()> {
        if self.reproducible {
            let help = "on one machine results do not depend on the number of threads anyway; leave the option out";
            return Err(refusal("`--reproducible`", "the MPI engine").help(help));
        }
        let given = [
            (self.spill.is_some(), "`--spill`", "running larger than memory"),
            (self.schedule.is_some(), "`--schedule`", "schedules as files"),
            (self.resume.is_some(), "`--resume`", "checkpoints"),
        ];
        let first = given.into_iter().find(|(given, ..)| *given);
        first.map_or(Ok(()), |(_, option, feature)| Err(refusal(option, feature)))
    }
}
