//! Programs on several ranks of this process, connected by channels.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tilewright::{Session, SessionBuilder};
use tw_ir::Program;
use tw_ir::error::Error;
use tw_wire::{Wire, WireLimits, channels};

use crate::differential::{Configuration, Results, run};

/// A run that has not ended after this time hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The wires of so many ranks.
pub fn wires(size: u32) -> Vec<Arc<dyn Wire>> {
    channels(size, WireLimits::default()).into_iter().map(|wire| Arc::new(wire) as Arc<dyn Wire>).collect()
}

/// Calls a function on every rank, each with a session and a thread of its own. Gives what it returns, by rank. Ends the process if the ranks hang.
pub fn on_ranks<T: Send>(
    wires: Vec<Arc<dyn Wire>>,
    configuration: &Configuration,
    work: impl Fn(&Session) -> T + Sync,
) -> Vec<T> {
    on_ranks_within(wires, configuration, None, work)
}

/// The same, each rank within a budget if one is given.
pub fn on_ranks_within<T: Send>(
    wires: Vec<Arc<dyn Wire>>,
    configuration: &Configuration,
    budget: Option<u64>,
    work: impl Fn(&Session) -> T + Sync,
) -> Vec<T> {
    let within = |builder: SessionBuilder| budget.into_iter().fold(builder, |builder, bytes| builder.memory(bytes));
    on_ranks_with(wires, configuration, &within, work)
}

/// The same, each rank with a session of its own making.
pub fn on_ranks_with<T: Send>(
    wires: Vec<Arc<dyn Wire>>,
    configuration: &Configuration,
    options: &(dyn Fn(SessionBuilder) -> SessionBuilder + Sync),
    work: impl Fn(&Session) -> T + Sync,
) -> Vec<T> {
    let n = wires.len();
    let (ended, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for (rank, wire) in wires.into_iter().enumerate() {
            let (ended, work) = (ended.clone(), &work);
            scope.spawn(move || {
                let session = options(configuration.builder().ranks(wire)).build();
                // The other end is gone only if the test has failed.
                let _ = ended.send((rank, work(&session)));
            });
        }
        drop(ended);
        let mut found: Vec<Option<T>> = (0..n).map(|_| None).collect();
        for _ in 0..n {
            match results.recv_timeout(PATIENCE) {
                Ok((rank, result)) => found[rank] = Some(result),
                Err(mpsc::RecvTimeoutError::Disconnected) => panic!("a rank has panicked"),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let missing: Vec<usize> = (0..n).filter(|&rank| found[rank].is_none()).collect();
                    // Threads that hang cannot be left behind.
                    eprintln!("ranks {missing:?} of {n} do not end: {configuration:?}");
                    std::process::exit(1);
                }
            }
        }
        found.into_iter().flatten().collect()
    })
}

/// Runs a program on every rank.
pub fn run_on_ranks(
    wires: Vec<Arc<dyn Wire>>,
    configuration: &Configuration,
    program: &Program,
    inputs: &Results,
) -> Vec<Result<Results, Error>> {
    on_ranks(wires, configuration, |session| run(session, program, inputs))
}
