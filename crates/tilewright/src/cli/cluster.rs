//! The machine that `tw explain` plans for.

use std::path::PathBuf;

use tw_plan::cluster::Machine;

use super::Failure;

/// Options that say for which machine to plan.
#[derive(clap::Args)]
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

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scheduler {
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
                    .help("say which machine: `--nodes K --workers R`, or `--machine FILE`");
                return Err(error.into());
            }
            return Ok(None);
        }
        let mut machine = match &self.machine {
            None => Machine::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    tw_ir::Error::source(format!("the machine file `{}` cannot be read: {error}", path.display()))
                })?;
                Machine::parse(&text).map_err(|error| {
                    let line = match error.span() {
                        tw_ir::Span::Text { start, .. } => text[..*start as usize].lines().count() + 1,
                        _ => 1,
                    };
                    error.note(format!("in line {line} of the machine file `{}`", path.display()))
                })?
            }
        };
        machine.nodes = self.nodes.unwrap_or(machine.nodes);
        machine.workers = self.workers.unwrap_or(machine.workers);
        machine.verify()?;
        Ok(Some(machine))
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
