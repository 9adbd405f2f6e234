//! Options of `tw explain` about the machine that it plans for.

use std::path::{Path, PathBuf};

use tw_place::{Machine, Notation};

use super::Failure;
use crate::explain::{read_distribution, read_machine};

/// Help text for errors about a missing machine.
pub(super) const SAY_WHICH_MACHINE: &str = "say which machine: `--nodes K --workers R`, or `--machine FILE`";

/// Options about the machine to plan for.
#[derive(Clone, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Plan for this many nodes.
    #[arg(long, value_name = "K")]
    nodes: Option<u32>,
    /// Plan for this many workers on each node.
    #[arg(long, value_name = "R")]
    workers: Option<u32>,
    /// Read the machine model from this file; options override its entries.
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Show the plan of this scheduler first; `auto` shows the plan with the smallest makespan.
    #[arg(long, value_enum, default_value_t = Scheduler::Auto)]
    scheduler: Scheduler,
    /// Read distributions of tensors from this file, for the scheduler `tdn`.
    #[arg(long, value_name = "FILE")]
    distribution: Option<PathBuf>,
}

/// The placement schedulers.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scheduler {
    /// The plan with the smallest makespan of all schedulers.
    Auto,
    /// TensorPlanner's patterns: reductions run where their result is owned.
    Pattern,
    /// NumS's load-simulated hierarchical scheduling.
    Lshs,
    /// A mesh per statement that minimises bytes through the busiest worker.
    Algebraic,
    /// A mesh per statement that minimises the makespan; may leave workers idle.
    Timed,
    /// Dask's default policy: inputs in turn, other tasks where an operand is.
    Roundrobin,
    /// The distributions in the file of --distribution.
    Tdn,
}

impl ClusterArgs {
    /// The machine, if one is requested.
    pub(crate) fn machine(&self) -> Result<Option<Machine>, Failure> {
        if self.nodes.is_none() && self.workers.is_none() && self.machine.is_none() {
            let given =
                [(self.scheduler != Scheduler::Auto, "--scheduler"), (self.distribution.is_some(), "--distribution")];
            if let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) {
                let text = format!("`{option}` places tasks on a machine of several workers");
                return Err(tw_ir::Error::plan(text).help(SAY_WHICH_MACHINE).into());
            }
            return Ok(None);
        }
        let file = self.machine.as_deref().map(|path| read("machine", path)).transpose()?;
        let file = file.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        Ok(Some(read_machine(file, self.nodes, self.workers)?))
    }

    /// The requested machine, or another one if none is.
    pub(super) fn machine_or(&self, other: impl FnOnce() -> tw_ir::Result<Machine>) -> Result<Machine, Failure> {
        if self.nodes.is_none() && self.workers.is_none() && self.machine.is_none() {
            return Ok(other()?);
        }
        self.machine()?.ok_or_else(|| tw_ir::Error::internal("a machine that is asked for and not there").into())
    }

    /// An error if one of the options is given: the command runs on this machine alone.
    pub(super) fn refuse_to_run(&self) -> tw_ir::Result<()> {
        let given = [
            (self.scheduler != Scheduler::Auto, "--scheduler"),
            (self.nodes.is_some(), "--nodes"),
            (self.workers.is_some(), "--workers"),
            (self.machine.is_some(), "--machine"),
            (self.distribution.is_some(), "--distribution"),
        ];
        let Some((_, option)) = given.into_iter().find(|(is_given, _)| *is_given) else { return Ok(()) };
        let text = format!("`tw run` runs on this machine alone, so it does not take `{option}`");
        let help = "leave it out to run here, or run on several ranks: `mpirun -n P tw run FILE --engine mpi`; \
                    `tw explain --nodes K --workers R` shows the plan for several workers";
        Err(tw_ir::Error::plan(text).help(help))
    }

    /// The distribution, if one is given.
    pub(super) fn distribution(&self) -> Result<Option<Notation>, Failure> {
        let Some(path) = &self.distribution else { return Ok(None) };
        let (name, text) = read("distribution", path)?;
        Ok(Some(read_distribution(&name, &text)?))
    }

    /// The same options with the given values replaced.
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
            distribution: self.distribution.clone(),
        }
    }

    /// The requested scheduler; `None` for `auto`.
    pub(crate) fn scheduler(&self) -> Option<&'static str> {
        match self.scheduler {
            Scheduler::Auto => None,
            Scheduler::Pattern => Some("pattern"),
            Scheduler::Lshs => Some("lshs"),
            Scheduler::Algebraic => Some("algebraic"),
            Scheduler::Timed => Some("timed"),
            Scheduler::Roundrobin => Some("roundrobin"),
            Scheduler::Tdn => Some("tdn"),
        }
    }
}

/// The name and the text of a file.
fn read(what: &str, path: &Path) -> Result<(String, String), tw_ir::Error> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| tw_ir::Error::source(format!("the {what} file `{name}` cannot be read: {error}")))?;
    Ok((name, text))
}
