//! The machine that `tw explain` plans for.

use std::path::PathBuf;

use tw_plan::cluster::Machine;

use super::Failure;
use crate::explain::read_machine;

/// Advice where a machine is missing.
pub(super) const SAY_WHICH_MACHINE: &str = "say which machine: `--nodes K --workers R`, or `--machine FILE`";

/// Options that say for which machine to plan.
#[derive(Clone, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Plan for this many nodes.
    #[arg(long, value_name = "K")]
    nodes: Option<u32>,
    /// Plan for this many workers on each node.
    #[arg(long, value_name = "R")]
    workers: Option<u32>,
    /// Read what the machine is like from this file; options overrule it.
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Show this scheduler's plan first; `auto` shows the one that ends first.
    #[arg(long, value_enum, default_value_t = Scheduler::Auto)]
    scheduler: Scheduler,
}

/// Who places tasks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scheduler {
    Auto,
    Pattern,
    Lshs,
    Algebraic,
    Roundrobin,
}

impl ClusterArgs {
    /// The machine, if one is asked for.
    pub(crate) fn machine(&self) -> Result<Option<Machine>, Failure> {
        if self.nodes.is_none() && self.workers.is_none() && self.machine.is_none() {
            if self.scheduler != Scheduler::Auto {
                let error = tw_ir::Error::plan("`--scheduler` places tasks on a machine of several workers")
                    .help(SAY_WHICH_MACHINE);
                return Err(error.into());
            }
            return Ok(None);
        }
        let file = match &self.machine {
            None => None,
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path).map_err(|error| {
                    tw_ir::Error::source(format!("the machine file `{name}` cannot be read: {error}"))
                })?;
                Some((name, text))
            }
        };
        let file = file.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        Ok(Some(read_machine(file, self.nodes, self.workers)?))
    }

    /// The same with other values for what is given.
    pub(super) fn with(
        &self,
        nodes: Option<u32>,
        workers: Option<u32>,
        machine: Option<&PathBuf>,
        scheduler: Option<Scheduler>,
    ) -> ClusterArgs {
        ClusterArgs {
            nodes: nodes.or(self.nodes),
            workers: workers.or(self.workers),
            machine: machine.or(self.machine.as_ref()).cloned(),
            scheduler: scheduler.unwrap_or(self.scheduler),
        }
    }

    /// The scheduler that was asked for.
    pub(crate) fn scheduler(&self) -> Option<&'static str> {
        match self.scheduler {
            Scheduler::Auto => None,
            Scheduler::Pattern => Some("pattern"),
            Scheduler::Lshs => Some("lshs"),
            Scheduler::Algebraic => Some("algebraic"),
            Scheduler::Roundrobin => Some("roundrobin"),
        }
    }
}
