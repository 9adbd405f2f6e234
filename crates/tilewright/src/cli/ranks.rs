//! `tw run --engine mpi`: this process is one of the ranks that a launcher such as `mpirun` has started.
//!
//! All ranks run the same command. Rank 0 prints; another rank prints only an error that has happened there. A rank whose run has failed leaves MPI without
//! finalising it, which could wait for ranks that are gone; the launcher then ends the others.

use std::sync::Arc;

use tw_ir::error::{Error, Result};
use tw_mpi::{MpiOptions, MpiWire};
use tw_place::{Cluster, Machine, SchedulerName};
use tw_wire::Wire;

use super::Failure;
use super::cluster::ClusterArgs;
use crate::session::SessionBuilder;

/// The connection of this process to the other ranks.
pub(super) struct Ranks {
    wire: Arc<MpiWire>,
}

impl Ranks {
    /// Connects to the ranks that the launcher has started.
    pub(super) fn connect() -> Result<Ranks> {
        // Messages are moved by one thread, and nothing else uses MPI here.
        Ok(Ranks { wire: Arc::new(tw_mpi::world(&MpiOptions { is_alone: true, ..MpiOptions::default() })?) })
    }

    pub(super) fn rank(&self) -> u32 {
        self.wire.rank()
    }

    /// A session of these ranks. Without options about the machine, it has a worker for each rank, on one node.
    pub(super) fn builder(
        &self,
        builder: SessionBuilder,
        threads: Option<u16>,
        args: &ClusterArgs,
    ) -> Result<SessionBuilder, Failure> {
        let size = self.wire.size();
        // All ranks have to plan for the same machine, and each knows only how many there are on its own host.
        let machine = match args.machine_or(|| Machine::of(1, size))? {
            machine if machine.n_workers() == size as usize => machine,
            machine => {
                let text = format!("the machine has {} workers, but {size} ranks run", machine.n_workers());
                return Err(Error::source(text).help("start as many ranks as the machine has workers").into());
            }
        };
        let scheduler = SchedulerName::named(args.scheduler())?;
        let cluster = Cluster { machine, scheduler, distribution: args.distribution()?.map(Arc::new) };
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let on_host = tw_mpi::ranks_on_this_host().unwrap_or(size).max(1) as usize;
        let threads = threads.map_or((cores / on_host).max(1), usize::from);
        let wire: Arc<dyn Wire> = self.wire.clone();
        Ok(builder.threads(threads).cluster(cluster).ranks(wire))
    }

    /// Ends this rank after its session has ended.
    pub(super) fn end(self, result: Result<(), Failure>) -> Result<(), Failure> {
        let Err(failure) = result else { return Ok(tw_mpi::finish(&self.wire)?) };
        let happened_here = |error: &Error| !error.notes().iter().any(|note| note.starts_with(FROM_ANOTHER_RANK));
        if self.rank() == 0 || failure.errors.iter().any(happened_here) {
            failure.print();
        }
        tw_mpi::abandon(failure.code().into())
    }
}

/// How the note of an error begins that another rank has met.
const FROM_ANOTHER_RANK: &str = "the error comes from rank";
