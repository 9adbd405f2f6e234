//! Ranks that an MPI launcher has started: `mpirun -n 4 tw run FILE --engine mpi`, `mpirun -n 4 python script.py`.
//!
//! Every process of the launcher connects, builds a session on the connection, and makes the same calls. At the end it either [finishes](MpiRanks::finish_all), together with
//! the others, or, after an error, [leaves](MpiRanks::abandon) MPI without finalising it, which could wait for ranks that are gone; the launcher then ends the others.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tw_ir::error::{Error, Result};
use tw_mpi::{MpiOptions, MpiWire};
use tw_place::Machine;
use tw_wire::{Collective, Wire};

use crate::session::SessionBuilder;

/// The connection of this process to the ranks that the launcher has started, itself among them.
#[derive(Clone)]
pub struct MpiRanks {
    wire: Arc<MpiWire>,
    /// The host of every rank.
    hosts: Vec<String>,
}

/// The number of the exchange of hosts: runs of sessions have lower ones, and the end of the wire higher ones.
const RUN_OF_HOSTS: u64 = u64::MAX - 2;

/// The number of the last meeting of ranks that have failed.
const RUN_OF_FAREWELL: u64 = u64::MAX - 3;

/// How long a rank that has failed waits for the others.
const FAREWELL: Duration = Duration::from_secs(2);

impl MpiRanks {
    /// Connects to the other ranks. All of them do so. `is_alone` says that nothing else in this process uses MPI; `prefixes` are directories with a `lib` that may
    /// contain the library.
    pub fn connect(is_alone: bool, prefixes: Vec<PathBuf>) -> Result<MpiRanks> {
        let wire = Arc::new(tw_mpi::world(&MpiOptions { is_alone, prefixes, ..MpiOptions::default() })?);
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let gathered = Collective::gather_all(wire.as_ref(), RUN_OF_HOSTS, own.trim().as_bytes())?;
        let hosts = gathered.finish(wire.as_ref(), &mut |_| Ok(()))?;
        wire.cancel(RUN_OF_HOSTS);
        let hosts = hosts.iter().map(|host| String::from_utf8_lossy(host).into_owned()).collect();
        Ok(MpiRanks { wire, hosts })
    }

    /// The number of this rank.
    pub fn rank(&self) -> u32 {
        self.wire.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.wire.size()
    }

    /// How many ranks run on the host of this one.
    pub fn on_this_host(&self) -> u32 {
        let own = self.hosts.get(self.rank() as usize);
        self.hosts.iter().filter(|host| Some(*host) == own).count().max(1) as u32
    }

    /// The machine that programs are planned for unless somebody describes one: a worker per rank, and a node per host where all hosts have equally many ranks, one
    /// after the other. Otherwise all are taken for workers of one node.
    pub fn machine(&self) -> Result<Machine> {
        let (nodes, workers) = nodes_of(&self.hosts);
        Machine::of(nodes, workers)
    }

    /// Threads of each rank that share the cores of this host.
    pub fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        (cores / self.on_this_host() as usize).max(1)
    }

    /// A session of these ranks.
    pub fn builder(&self, builder: SessionBuilder) -> SessionBuilder {
        let wire: Arc<dyn Wire> = self.wire.clone();
        builder.ranks(wire).ranks_on_host(self.on_this_host())
    }

    /// Ends the connection, and MPI if this was the last of `connections`. All ranks do so, after their sessions have ended.
    pub fn finish_all(connections: &[MpiRanks]) -> Result<()> {
        let Some((last, others)) = connections.split_last() else { return Ok(()) };
        others.iter().try_for_each(|ranks| tw_mpi::disconnect(&ranks.wire))?;
        tw_mpi::finish(&last.wire)
    }

    /// Ends the process after an error, without MPI's own end. Sessions have ended before, so that nothing else takes messages. The launcher kills the other ranks when the first process
    /// has ended, so all meet once more before, for a moment at most: each has then removed the files that it had begun.
    pub fn abandon(connections: &[MpiRanks], code: i32) -> ! {
        let end = Instant::now() + FAREWELL;
        connections.iter().for_each(|ranks| ranks.meet(end));
        tw_mpi::abandon(code)
    }

    /// Waits for the other ranks, but not beyond a moment. Ranks that are gone do not come.
    fn meet(&self, end: Instant) {
        let wire = self.wire.as_ref();
        let Ok(mut meeting) = Collective::barrier(wire, RUN_OF_FAREWELL) else { return };
        let mut completions = Vec::new();
        while !meeting.is_done() && Instant::now() < end {
            wire.poll(&mut completions);
            let is_idle = completions.is_empty();
            for completion in completions.drain(..) {
                if meeting.advance(wire, completion).is_err() {
                    return;
                }
            }
            if is_idle {
                wire.wait(Duration::from_millis(5));
            }
        }
    }
}

/// How the note of an error begins that another rank has met.
const FROM_ANOTHER_RANK: &str = "the error comes from rank";

/// True if an error of several ranks has happened on this one, which therefore tells about it.
pub fn happened_here(error: &Error) -> bool {
    !error.notes().iter().any(|note| note.starts_with(FROM_ANOTHER_RANK))
}

/// Nodes, and ranks on each.
fn nodes_of(hosts: &[String]) -> (u32, u32) {
    let mut groups: Vec<(&String, u32)> = Vec::new();
    for host in hosts {
        match groups.last_mut().filter(|(last, _)| *last == host) {
            Some((_, n)) => *n += 1,
            None => groups.push((host, 1)),
        }
    }
    let is_even = groups.iter().all(|(_, n)| *n == groups[0].1);
    let mut names: Vec<&String> = groups.iter().map(|(host, _)| *host).collect();
    names.sort_unstable();
    names.dedup();
    match names.len() == groups.len() && is_even && !groups.is_empty() {
        true => (groups.len() as u32, groups[0].1),
        false => (1, hosts.len().max(1) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::nodes_of;

    #[test]
    fn hosts_with_equally_many_ranks_are_nodes() {
        let of = |text: &str| nodes_of(&text.split(' ').map(str::to_string).collect::<Vec<_>>());
        assert_eq!(of("a a b b c c"), (3, 2));
        assert_eq!(of("a"), (1, 1));
        assert_eq!(of("a b c"), (3, 1));
        assert_eq!(of("a b a b"), (1, 4), "ranks are dealt in turn");
        assert_eq!(of("a a b"), (1, 3));
    }
}
