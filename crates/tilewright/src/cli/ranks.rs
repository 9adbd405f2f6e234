//! `tw run --engine mpi`: this process is one of the ranks that a launcher such as `mpirun` has started.
//!
//! All ranks run the same command. Rank 0 prints; another rank prints only an error that has happened there.

use std::sync::Arc;

use tw_ir::error::{Error, Result};
use tw_place::{Cluster, SchedulerName};

use super::Failure;
use super::cluster::ClusterArgs;
use crate::mpi::{MpiRanks, happened_here};
use crate::session::SessionBuilder;

/// The connection of this process to the other ranks.
pub(super) struct Ranks(MpiRanks);

impl Ranks {
    /// Connects to the ranks that the launcher has started.
    pub(super) fn connect() -> Result<Ranks> {
        // Messages are moved by one thread, and nothing else uses MPI here.
        MpiRanks::connect(true, Vec::new()).map(Ranks)
    }

    pub(super) fn rank(&self) -> u32 {
        self.0.rank()
    }

    /// A session of these ranks. Without options about the machine, it has a worker for each rank.
    pub(super) fn builder(
        &self,
        builder: SessionBuilder,
        threads: Option<u16>,
        args: &ClusterArgs,
    ) -> Result<SessionBuilder, Failure> {
        let size = self.0.size();
        let machine = match args.machine_or(|| self.0.machine())? {
            machine if machine.n_workers() == size as usize => machine,
            machine => {
                let text = format!("the machine has {} workers, but {size} ranks run", machine.n_workers());
                return Err(Error::source(text).help("start as many ranks as the machine has workers").into());
            }
        };
        let scheduler = SchedulerName::named(args.scheduler())?;
        let cluster = Cluster { machine, scheduler, distribution: args.distribution()?.map(Arc::new) };
        let threads = threads.map_or(self.0.threads(), usize::from);
        Ok(self.0.builder(builder.threads(threads).cluster(cluster)))
    }

    /// Ends this rank after its session has ended.
    pub(super) fn end(self, result: Result<(), Failure>) -> Result<(), Failure> {
        let Err(failure) = result else { return Ok(MpiRanks::finish_all(&[self.0])?) };
        if self.rank() == 0 || failure.errors.iter().any(happened_here) {
            failure.print();
        }
        MpiRanks::abandon(&[self.0], failure.code().into())
    }
}
