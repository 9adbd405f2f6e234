//! Options about the engine, turned into a session.

use std::path::PathBuf;

use tw_ir::error::Result;

use super::later::refusal;
use crate::explain::units::parse_bytes;
use crate::session::{Session, SessionBuilder};

/// Options about the engine.
#[derive(Clone, clap::Args)]
pub(crate) struct EngineArgs {
    /// The engine that runs the schedule.
    #[arg(long, value_enum, default_value_t = Engine::Threads)]
    engine: Engine,
    /// Number of threads; all hardware threads by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Tile length of every axis that the program does not tile.
    #[arg(long, value_name = "N", value_parser = parse_tile)]
    tile: Option<u64>,
    /// Memory budget, for example 2GiB. Blocks that do not fit are read again or spilled. Default: TILEWRIGHT_MEMORY, or 70 % of the machine.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<u64>,
    /// Spill blocks to this directory. Default: TILEWRIGHT_SPILL, or a directory for temporary files.
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Spill at most so many bytes at once, for example 100GiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    spill_limit: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// A pool of threads on this machine.
    Threads,
    /// One step after another, in the order of the schedule.
    Serial,
    /// MPI ranks of a cluster.
    #[value(hide = true)]
    Mpi,
}

impl EngineArgs {
    /// The same options with another tile length, if one is given.
    pub(super) fn with_tile(&self, tile: Option<u64>) -> EngineArgs {
        EngineArgs { tile: tile.or(self.tile), ..self.clone() }
    }

    /// A session builder with these options.
    pub(crate) fn builder(&self) -> Result<SessionBuilder> {
        let mut builder = Session::builder();
        match self.engine {
            Engine::Threads => {}
            Engine::Serial => builder = builder.threads(1).serial(),
            Engine::Mpi => return Err(refusal("`--engine mpi`", "the MPI engine")),
        }
        if let (Engine::Threads, Some(threads)) = (self.engine, self.threads) {
            builder = builder.threads(threads.into());
        }
        if let Some(tile) = self.tile {
            builder = builder.tile(tile);
        }
        if let Some(bytes) = self.memory {
            builder = builder.memory(bytes);
        }
        if let Some(directory) = &self.spill {
            builder = builder.spill_directory(directory);
        }
        if let Some(bytes) = self.spill_limit {
            builder = builder.spill_limit(bytes);
        }
        Ok(builder)
    }
}

/// A positive number, with `_` between digits as in programs.
pub(super) fn parse_tile(text: &str) -> Result<u64, String> {
    match text.replace('_', "").parse() {
        Ok(0) | Err(_) => Err("a tile is a number of elements, at least 1".to_string()),
        Ok(tile) => Ok(tile),
    }
}
