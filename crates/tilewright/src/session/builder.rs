//! What a session is built from.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use tw_block::{Meter, Provider, SpillFile, provider};
use tw_ir::error::{Error, Result};
use tw_ir::program::FunctionTable;
use tw_place::{Cluster, Machine, SchedulerName};
use tw_plan::{PlanOptions, ProviderName};
use tw_run::{CancelToken, Engine, Observer, Progress, Ranks, RunOptions, Runtime, Serial};
use tw_wire::Wire;

use super::{Inner, Session, budget_of_environment};
use crate::available::spill_directory;
use crate::grant::{FittedCache, Spillable};
use crate::pool::Pool;
use crate::profile::Profile;
use crate::program_text::standard_functions;
use crate::report::Totals;
use crate::tensor::allowance::Allowance;

/// What to build a [`Session`] with.
#[derive(Clone)]
pub struct SessionBuilder {
    threads: usize,
    serial: bool,
    plan: PlanOptions,
    cluster: Option<Cluster>,
    budget: Option<u64>,
    chaos: Option<u64>,
    observer: Option<Arc<dyn Observer>>,
    profile: Option<Arc<Profile>>,
    functions: FunctionTable,
    spill_directory: Option<PathBuf>,
    spill_limit: Option<u64>,
    checkpoint: Option<PathBuf>,
    wire: Option<Arc<dyn Wire>>,
    ranks_on_host: u32,
    reproducible: bool,
}

impl SessionBuilder {
    /// As many threads as the machine has, everything else by default.
    pub(super) fn new() -> SessionBuilder {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        SessionBuilder {
            threads,
            serial: false,
            cluster: None,
            plan: PlanOptions { provider: ProviderName::Asked(provider), ..PlanOptions::default() },
            budget: None,
            chaos: None,
            observer: None,
            profile: None,
            functions: FunctionTable::default(),
            spill_directory: None,
            spill_limit: None,
            checkpoint: None,
            wire: None,
            ranks_on_host: 1,
            reproducible: false,
        }
    }

    /// Number of threads; the caller's is one of them. Results do not depend on it.
    pub fn threads(mut self, threads: usize) -> SessionBuilder {
        self.threads = threads.max(1);
        self
    }

    /// Runs steps one by one in the order of the schedule, on the calling thread: the engine `serial`.
    pub fn serial(mut self) -> SessionBuilder {
        self.serial = true;
        self
    }

    /// Tile length of every axis that nobody has cut.
    pub fn tile(mut self, tile: u64) -> SessionBuilder {
        self.plan.tile = Some(tile.max(1));
        self
    }

    /// Bytes of a block where the planner chooses.
    pub fn block_bytes(mut self, bytes: u64) -> SessionBuilder {
        self.plan.block_bytes = Some(bytes.max(1));
        self
    }

    /// Who multiplies and factors matrices; the fastest that this process found if not given. It shows in the last bits.
    pub fn provider(mut self, provider: &Provider) -> SessionBuilder {
        self.plan.provider = ProviderName::Known(provider.name().to_string());
        self
    }

    /// Rewrites on or off; off only to compare.
    pub fn rewrites(mut self, on: bool) -> SessionBuilder {
        self.plan.rewrites = on;
        self
    }

    /// Plans as if for these workers; the threads of this machine then run that plan. Results are the same up to the order of sums.
    pub fn cluster(mut self, cluster: Cluster) -> SessionBuilder {
        self.cluster = Some(cluster);
        self
    }

    /// Runs programs together with other ranks, which run the same script: every rank plans by itself and runs its part. All ranks make the same calls in the
    /// same order. Results stay where they were made until [`Session::fetch`], or a call that gives arrays, brings them. Unless a [cluster](SessionBuilder::cluster) says otherwise, programs are planned for one worker per rank on one node.
    pub fn ranks(mut self, wire: Arc<dyn Wire>) -> SessionBuilder {
        self.wire = Some(wire);
        self
    }

    /// How many ranks share the memory of this host: each takes its part of it where nobody has set a budget.
    pub fn ranks_on_host(mut self, n: u32) -> SessionBuilder {
        self.ranks_on_host = n.max(1);
        self
    }

    /// Makes the bits of results those of threads, on any number of ranks. Programs are planned as for one machine, and ranks share the tasks of that plan, which may send more
    /// than a plan that is made for them.
    pub fn reproducible(mut self) -> SessionBuilder {
        self.reproducible = true;
        self
    }

    /// Makes scheduling decisions at random from a seed. Results do not change; tests use it.
    pub fn chaos(mut self, seed: u64) -> SessionBuilder {
        self.chaos = Some(seed);
        self
    }

    /// Most bytes of blocks alive at once, results that are kept included. Blocks that do not fit are read again, or spilled and fetched. Only a budget below
    /// the largest single task is refused, before anything runs. By default most of the memory of the machine.
    pub fn memory(mut self, bytes: u64) -> SessionBuilder {
        self.budget = Some(bytes);
        self
    }

    /// Where blocks are spilled that do not fit into memory. By default a directory for temporary files that is not in memory itself.
    pub fn spill_directory(mut self, directory: &Path) -> SessionBuilder {
        self.spill_directory = Some(directory.to_path_buf());
        self
    }

    /// Most bytes that may be spilled at once.
    pub fn spill_limit(mut self, bytes: u64) -> SessionBuilder {
        self.spill_limit = Some(bytes);
        self
    }

    /// Keeps checkpoints below a directory: a program that was killed goes on where it was when it is run again with the same data. Results of segments and
    /// what loops carry are written there.
    pub fn checkpoint(mut self, directory: &Path) -> SessionBuilder {
        self.checkpoint = Some(directory.to_path_buf());
        self
    }

    /// Watches every task of every run.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> SessionBuilder {
        self.observer = Some(observer);
        self
    }

    /// Measures the time of every statement.
    pub fn profile(mut self, profile: Arc<Profile>) -> SessionBuilder {
        self.profile = Some(profile);
        self
    }

    /// Makes block functions known to program text.
    pub fn functions(mut self, functions: FunctionTable) -> SessionBuilder {
        self.functions = functions;
        self
    }

    /// Starts the threads.
    pub fn build(self) -> Session {
        let (budget, wrong_setting) = match self.budget {
            Some(budget) => (Some(budget), None),
            None => match budget_of_environment() {
                Ok(budget) => (budget, None),
                Err(error) => (None, Some(error)),
            },
        };
        // Ranks of one process must not wait for memory that another one holds.
        let pool = if self.budget.is_some() || self.wire.is_some() { Pool::alone() } else { Pool::of_process() };
        let meter = Meter::new();
        pool.join(&meter);
        let mut functions = self.functions;
        functions.include(&standard_functions());
        let (engine, cluster, wrong_setting) = match self.wire {
            None => {
                let engine: Box<dyn Engine> =
                    if self.serial { Box::new(Serial) } else { Box::new(Runtime::new(self.threads)) };
                (engine, self.cluster, wrong_setting)
            }
            Some(wire) => match ranks(&wire, self.threads, self.cluster) {
                Ok((engine, cluster)) => (engine, Some(cluster), wrong_setting),
                Err(error) => (Box::new(Serial) as Box<dyn Engine>, None, wrong_setting.or(Some(error))),
            },
        };
        let progress = Arc::new(Progress::new());
        let run = RunOptions {
            meter,
            // Every run has its own.
            cancel: CancelToken::new(),
            ahead: None,
            spill: None,
            names_sources: false,
            keep: None,
            observer: self.observer,
            progress: Some(progress.clone()),
            chaos: self.chaos,
            forms: Vec::new(),
        };
        Session(Arc::new(Inner {
            plan: self.plan,
            reproducible: self.reproducible && cluster.is_some(),
            cluster,
            run,
            budget,
            ranks_on_host: self.ranks_on_host.into(),
            wrong_setting,
            cancel: Mutex::new(CancelToken::new()),
            process: std::process::id(),
            progress,
            cache: Mutex::new(FxHashMap::default()),
            totals: Mutex::new(Totals::default()),
            profile: self.profile,
            functions,
            allowance: match engine.group() {
                Some(group) => Allowance::of_ranks(budget, group.size()),
                None => Allowance::new(budget),
            },
            spill: SpillFile::new(&self.spill_directory.unwrap_or_else(spill_directory), self.spill_limit),
            checkpoint: self.checkpoint,
            spillable: Spillable::default(),
            engine,
            pool,
            fitted: FittedCache::default(),
        }))
    }
}

/// The engine of a rank, and what programs are planned for: one worker per rank, on one node if nobody says otherwise.
fn ranks(wire: &Arc<dyn Wire>, threads: usize, cluster: Option<Cluster>) -> Result<(Box<dyn Engine>, Cluster)> {
    let size = wire.size();
    let cluster = match cluster {
        Some(cluster) if cluster.machine.n_workers() == size as usize => cluster,
        Some(cluster) => {
            let n = cluster.machine.n_workers();
            return Err(Error::source(format!("programs are planned for {n} workers, but {size} ranks run them")));
        }
        None => Cluster { machine: Machine::of(1, size)?, scheduler: SchedulerName::Auto, distribution: None },
    };
    Ok((Box::new(Ranks::new(Arc::clone(wire), threads)?), cluster))
}
