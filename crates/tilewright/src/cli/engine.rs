//! Options about the engine, turned into a session.

use std::path::PathBuf;

use tw_ir::error::{Error, Result};

use super::Failure;
use super::cluster::ClusterArgs;
use super::ranks::Ranks;
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
    /// The ranks that an MPI launcher has started: `mpirun -n 4 tw run FILE --engine mpi`.
    Mpi,
}

impl EngineArgs {
    /// The same options with another tile length, if one is given.
    pub(super) fn with_tile(&self, tile: Option<u64>) -> EngineArgs {
        EngineArgs { tile: tile.or(self.tile), ..self.clone() }
    }

    /// The connection to other ranks, if the engine is theirs.
    pub(super) fn connect(&self) -> Result<Option<Ranks>> {
        match self.engine {
            Engine::Mpi => Ranks::connect().map(Some),
            Engine::Threads | Engine::Serial => Ok(None),
        }
    }

    /// A session builder with these options, for one of several ranks if they are given.
    pub(super) fn builder_on(&self, ranks: Option<&Ranks>, cluster: &ClusterArgs) -> Result<SessionBuilder, Failure> {
        let Some(ranks) = ranks else {
            cluster.refuse_to_run()?;
            return Ok(self.builder()?);
        };
        let builder = EngineArgs { engine: Engine::Threads, ..self.clone() }.builder()?;
        ranks.builder(builder, self.threads, cluster)
    }

    /// A session builder with these options.
    pub(crate) fn builder(&self) -> Result<SessionBuilder> {
        let mut builder = Session::builder();
        match self.engine {
            Engine::Threads => {}
            Engine::Serial => builder = builder.threads(1).serial(),
            Engine::Mpi => return Err(Error::plan("`--engine mpi` is for `tw run`, which every rank runs")),
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
