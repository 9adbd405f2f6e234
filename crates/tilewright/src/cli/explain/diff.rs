//! `tw explain --diff`: options of the second plan.

use std::path::PathBuf;

use tw_ir::error::Error;
use tw_lang::ParamValue;

use super::super::Failure;
use super::super::cluster::{ClusterArgs, Scheduler};
use super::super::engine::{EngineArgs, parse_tile};
use super::super::load::{ProgramArgs, parse_set};
use crate::explain::{Difference, Level};

/// Options of the second plan. Missing options are those of the first plan.
#[derive(clap::Args)]
#[command(next_help_heading = "The plan to compare with")]
pub(crate) struct DiffArgs {
    /// Compare with this program.
    #[arg(long, value_name = "FILE")]
    diff: Option<PathBuf>,
    /// Compare with the plan of this scheduler.
    #[arg(long, value_enum, value_name = "SCHEDULER")]
    diff_scheduler: Option<Scheduler>,
    /// Compare with a plan for this many nodes.
    #[arg(long, value_name = "K")]
    diff_nodes: Option<u32>,
    /// Compare with a plan for this many workers on each node.
    #[arg(long, value_name = "R")]
    diff_workers: Option<u32>,
    /// Compare with a plan for the machine in this file.
    #[arg(long, value_name = "FILE")]
    diff_machine: Option<PathBuf>,
    /// Compare with a plan with tiles of this length.
    #[arg(long, value_name = "N", value_parser = parse_tile)]
    diff_tile: Option<u64>,
    /// Compare with a plan where a parameter has this value.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set)]
    diff_set: Vec<(String, ParamValue)>,
}

impl DiffArgs {
    /// True if a second plan is requested.
    pub(crate) fn is_given(&self) -> bool {
        self.diff.is_some()
            || self.diff_scheduler.is_some()
            || self.diff_nodes.is_some()
            || self.diff_workers.is_some()
            || self.diff_machine.is_some()
            || self.diff_tile.is_some()
            || !self.diff_set.is_empty()
    }

    /// Refuses forms that a difference does not have.
    pub(crate) fn check_level(&self, level: Level) -> Result<(), Failure> {
        match level {
            Level::Line | Level::Table | Level::Html | Level::Json => Ok(()),
            _ => {
                let error = Error::plan("two plans cannot be compared in this form");
                Err(error.help("write `--level line`, `table`, `html` or `json`").into())
            }
        }
    }

    /// The options of the other plan.
    pub(crate) fn program(&self, args: &ProgramArgs) -> ProgramArgs {
        let file = self.diff.clone().unwrap_or_else(|| args.file.clone());
        args.with(file, &self.diff_set)
    }

    /// Likewise.
    pub(crate) fn engine(&self, args: &EngineArgs) -> EngineArgs {
        args.with_tile(self.diff_tile)
    }

    /// Likewise.
    pub(crate) fn cluster(&self, args: &ClusterArgs) -> ClusterArgs {
        args.with(self.diff_nodes, self.diff_workers, self.diff_machine.as_ref(), self.diff_scheduler)
    }

    /// Words for what neither file nor machine tells about the other plan.
    pub(crate) fn words(&self) -> String {
        let tile = self.diff_tile.map(|tile| format!("tiles of {tile}"));
        let sets = self.diff_set.iter().map(|(name, value)| format!("{name} = {value}"));
        tile.into_iter().chain(sets).collect::<Vec<_>>().join(", ")
    }
}

/// A difference in the form that was asked for.
pub(crate) fn to_text(difference: &Difference, level: Level) -> String {
    match level {
        Level::Line => difference.to_line(),
        Level::Html => difference.to_html(),
        Level::Json => format!("{}\n", difference.to_json()),
        _ => difference.to_text(),
    }
}
