//! Engines: they run a frozen schedule.
//!
//! An engine takes a schedule with its kernels, the sources and sinks that it is bound to, and how to run it; it gives handles of blocks and a report. Engines
//! differ in where steps run, never in what they compute: results have the same bits on all of them. [`Runtime`](crate::Runtime) shares steps between the threads
//! of this machine, [`Serial`] runs them one by one in the order of the schedule and serves as the reference.

use std::sync::Arc;
use std::time::Instant;

use tw_block::{Block, Meter};
use tw_ir::schedule::Digest;
use tw_ir::{Error, Result, Span};

use crate::bindings::Bindings;
use crate::cancel::CancelToken;
use crate::delivery::Outputs;
use crate::execute::Tally;
use crate::handle::TensorHandle;
use crate::job::run_inline;
use crate::options::{Outcome, RunOptions, RunStats};
use crate::prepared::{Prepared, PreparedSchedule};

/// Runs schedules.
pub trait Engine: Send + Sync {
    /// The name in messages and options.
    fn name(&self) -> &'static str;

    /// The number of threads of a run, including the calling thread.
    fn threads(&self) -> usize;

    /// The ranks that run schedules together, if there are several.
    fn group(&self) -> Option<&dyn Group> {
        None
    }

    /// Runs a schedule to its end. Several threads may call this concurrently, unless several ranks run it: then runs are numbered by the order of the calls, which
    /// has to be the same on all ranks.
    fn run(&self, prepared: &Prepared, bindings: &Bindings, options: &RunOptions) -> Result<Outcome>;
}

/// Ranks that run schedules together. All ranks make the same calls in the same order. A call that is cancelled, or that fails in another way, ends the group.
pub trait Group {
    /// The number of this rank.
    fn rank(&self) -> u32;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Gives one rank, or all of them, the blocks of a tensor, one by one: `take` gets each with its position, in their order.
    fn fetch(
        &self,
        handle: &TensorHandle,
        fetch: &Fetch<'_>,
        take: &mut dyn FnMut(u64, Arc<Block>) -> Result<()>,
    ) -> Result<()>;

    /// Compares what this rank claims with what rank 0 does. An error on all ranks if one differs.
    fn agree(&self, claim: &Claim<'_>, cancel: &CancelToken) -> Result<()>;

    /// Gives all ranks the bytes that one of them has.
    fn share(&self, from: u32, bytes: &[u8], cancel: &CancelToken) -> Result<Vec<u8>>;

    /// Takes part in nothing any more: later calls fail here, and on other ranks those that wait for this one. The wire is free afterwards.
    fn leave(&self);

    /// Ends the group: every call under way and to come fails with this error on all ranks, unless it has ended with another one already.
    fn fail(&self, error: &Error);
}

/// How blocks are fetched from other ranks.
#[derive(Clone, Copy)]
pub struct Fetch<'a> {
    /// The rank that gets them; all of them if none is named.
    pub to: Option<u32>,
    /// Bytes of blocks that this rank expects, and of copies that it sends, at a time. A single block may be larger.
    pub window: u64,
    /// Blocks that come are charged to it.
    pub meter: &'a Arc<Meter>,
    /// Ends the call, and the group with it.
    pub cancel: &'a CancelToken,
}

/// What a rank says that all ranks have to agree about.
#[derive(Clone, Copy)]
pub struct Claim<'a> {
    /// A hash over all of it.
    pub digest: Digest,
    /// True if no rank goes on before all ranks have made the claim.
    pub waits: bool,
    /// The parts that it consists of, each with a hash and its place in the user's code. They are looked at if ranks differ, to say where.
    pub parts: &'a dyn Fn() -> Vec<(u64, Span)>,
}

impl Claim<'_> {
    /// A claim that some step has been reached.
    pub fn reached(step: &str) -> Claim<'static> {
        let digest = Digest::of("tilewright 1 step of several ranks", &[step.as_bytes()]);
        Claim { digest, waits: true, parts: &Vec::new }
    }
}

/// Runs steps one by one, in the order of the schedule, on the calling thread. So its peak is exactly that of the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Engine for Serial {
    fn name(&self) -> &'static str {
        "serial"
    }

    fn threads(&self) -> usize {
        1
    }

    fn run(&self, prepared: &Prepared, bindings: &Bindings, options: &RunOptions) -> Result<Outcome> {
        let plan = prepared.plan();
        report(plan, bindings, options, 1, |_| Ok((1, run_inline(plan, bindings, options)?)))
    }
}

/// The common part of all engines: starts progress, and fills the report. `run` gets the surplus for running ahead on so many threads, or nothing if all blocks
/// fit at once, and returns the number of threads that it used.
pub(crate) fn report(
    plan: &PreparedSchedule,
    bindings: &Bindings,
    options: &RunOptions,
    threads: usize,
    run: impl FnOnce(Option<u64>) -> Result<(usize, (Outputs, Tally))>,
) -> Result<Outcome> {
    let start = Instant::now();
    if let Some(progress) = &options.progress {
        progress.begin(plan.n_steps());
    }
    // Blocks that are in memory already cost nothing, so that the peak without them counts.
    let resident = plan.resident_bytes(bindings);
    let peak = plan.peak_bytes().saturating_sub(resident);
    let scratch = plan.sizes.scratch.max(plan.io_scratch(bindings)).saturating_mul(threads as u64);
    let everything = plan.sizes.total.saturating_sub(resident).saturating_add(scratch);
    let ahead = options.ahead.unwrap_or_else(|| plan.sizes.run_ahead(everything, peak, threads));
    let surplus = Some(ahead).filter(|_| everything > peak.saturating_add(ahead));
    // An error after cancellation is probably a consequence of it.
    let cancelled = |error| if options.cancel.is_cancelled() { Error::cancelled() } else { error };
    let (threads, (outputs, tally)) = run(surplus).map_err(cancelled)?;
    let stats = RunStats {
        tasks: plan.schedule.n_tasks() as u64,
        skipped: plan.rest.as_ref().map_or(0, |rest| rest.n_skipped()),
        seconds: start.elapsed().as_secs_f64(),
        loaded_bytes: tally.loaded_bytes,
        stored_bytes: tally.stored_bytes,
        spilled_bytes: tally.spilled_bytes,
        fetched_bytes: tally.fetched_bytes,
        sent_bytes: tally.sent_bytes,
        received_bytes: tally.received_bytes,
        peak_bytes: options.meter.peak(),
        threads,
    };
    Ok(Outcome { outputs: outputs.handles, arrays: outputs.arrays, kept: outputs.kept, stats })
}
