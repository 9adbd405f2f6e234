//! The pool under a model checker: its own code, on threads that `shuttle` interleaves at every lock, wait and atomic.
//!
//! A scenario is run a few thousand times. Every time the scheduler makes other choices, from a fixed seed: uniformly at random, or by random
//! priorities that change a few times (PCT), which finds bugs that need few preemptions at the right places. `shuttle` fails when all
//! threads are blocked, so a lost wake-up of a caller, a worker at its end, or a lock never given up is a failure by itself. A worker that is
//! not woken blocks no other thread, because the caller does its work; tasks that wait for each other ([`Meeting`]) make that a deadlock too.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use cranelift_entity::EntityRef;
use shuttle::Runner;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Barrier;
use shuttle::thread;
use tw_block::Meter;
use tw_ir::program::{BlockFunction, FunctionRef};
use tw_ir::workflow::{BlockId, TaskId};
use tw_ir::{Array, ArrayView, Blame, Result};

use super::Runtime;
use crate::{Bindings, CancelToken, Engine, Observer, Outcome, Prepared, RunOptions};
use common::{BLOCK_BYTES, Builder, Flaky, TestIo, bits, only, replay};

#[path = "../../tests/common/mod.rs"]
mod common;

/// Executions per scenario and scheduler.
const EXECUTIONS: usize = 1000;
/// Changes of priority per execution under PCT.
const CHANGES: usize = 3;
const SEED: u64 = 7;

/// Runs a scenario under many schedules.
fn explore(scenario: impl Fn() + Clone + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    // Kernels need more than the default.
    config.stack_size = 1 << 18;
    Runner::new(RandomScheduler::new_from_seed(SEED, EXECUTIONS), config.clone()).run(scenario.clone());
    Runner::new(PctScheduler::new_from_seed(SEED, CHANGES, EXECUTIONS), config).run(scenario);
}

/// Counts how often each task has ended.
struct Counter(Vec<AtomicU32>);

impl Observer for Counter {
    fn task_finished(&self, task: TaskId, _: u32, _: Instant, _: Instant, _: u64) {
        self.0[task.index()].fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs a schedule and checks what holds of every run, whether it succeeds or not: no task runs twice, the budget is kept, nothing leaks.
/// Of a run that succeeds every task has run, and the results have the bits of a serial replay.
fn run(runtime: &Runtime, prepared: &Prepared, io: TestIo, options: RunOptions) -> Result<()> {
    let schedule = prepared.schedule();
    let n_tasks = schedule.workflow().n_tasks();
    let counter = Arc::new(Counter((0..n_tasks).map(|_| AtomicU32::new(0)).collect()));
    let observer: Arc<dyn Observer> = counter.clone();
    let meter = Meter::new();
    let budget = options.ahead.map_or(u64::MAX, |ahead| prepared.schedule().peak_bytes() + ahead);
    let io = Arc::new(io);
    let options = RunOptions { meter: meter.clone(), observer: Some(observer), ..options };
    let result = runtime.run(prepared, &io.bindings(schedule), &options);
    assert_eq!(Arc::strong_count(&io), 1, "the pool still holds on to the run");
    assert!(meter.peak() <= budget, "{} bytes under a budget of {budget}", meter.peak());
    let ran = |k: usize| counter.0[k].load(Ordering::Relaxed);
    assert!((0..n_tasks).all(|k| ran(k) <= 1), "a task has run twice");
    let result = result.map(|outcome: Outcome| {
        assert_eq!(outcome.stats.threads, runtime.threads(), "the schedule is too small to be shared");
        assert!((0..n_tasks).all(|k| ran(k) == 1), "a task has not run");
        let outputs: Vec<Vec<u64>> = outcome.outputs.iter().map(|output| bits(&only(output))).collect();
        assert_eq!(outputs, replay(schedule).outputs);
    });
    assert_eq!(meter.now(), 0, "blocks were leaked");
    result
}

fn succeeds(runtime: &Runtime, prepared: &Prepared, options: RunOptions) {
    run(runtime, prepared, TestIo::default(), options).unwrap();
}

/// Three blocks that functions make: enough work for a run to be shared.
fn leaves(builder: &mut Builder) -> [BlockId; 3] {
    [(); 3].map(|()| builder.call(&[]))
}

/// Three chains of three tasks.
fn chains() -> Prepared {
    let mut builder = Builder::new(&Flaky::never());
    for leaf in leaves(&mut builder) {
        let next = builder.apply(leaf, leaf);
        let last = builder.apply(next, next);
        builder.output(last);
    }
    builder.prepare()
}

/// A task, three that need it, one that needs those, and the same again below it.
fn diamonds() -> Prepared {
    let mut builder = Builder::new(&Flaky::never());
    let mut top = builder.call(&[]);
    for _ in 0..2 {
        let middle = [(); 3].map(|()| builder.call(&[top]));
        top = builder.call(&middle);
    }
    builder.output(top);
    builder.prepare()
}

/// Two chains of contributions to a block each, and a task that needs both.
fn folds() -> Prepared {
    let mut builder = Builder::new(&Flaky::never());
    let leaves = leaves(&mut builder);
    let sums = [builder.block(), builder.block()];
    for (position, &leaf) in (0..).zip(&leaves) {
        sums.iter().for_each(|&sum| builder.fold(sum, position, leaf, leaves[0]));
    }
    let total = builder.apply(sums[0], sums[1]);
    builder.output(total);
    builder.prepare()
}

/// Loads that could all run ahead, each used late and once.
fn hungry() -> Prepared {
    let mut builder = Builder::new(&Flaky::never());
    let mut sum = builder.call(&[]);
    for _ in 0..3 {
        let loaded = builder.load();
        sum = builder.call(&[sum, loaded]);
    }
    builder.output(sum);
    builder.prepare()
}

#[test]
fn every_task_runs_once() {
    for make in [chains, diamonds, folds, hungry] {
        let prepared = make();
        explore(move || {
            let runtime = Runtime::new(3);
            succeeds(&runtime, &prepared, RunOptions::default());
        });
    }
}

#[test]
fn a_pool_is_used_again() {
    let prepared = diamonds();
    explore(move || {
        let runtime = Runtime::new(2);
        for chaos in [None, Some(5)] {
            succeeds(&runtime, &prepared, RunOptions { chaos, ..RunOptions::default() });
        }
    });
}

#[test]
fn budgets_bind_and_nobody_waits_forever() {
    let cases: [(fn() -> Prepared, u64); 5] = [(chains, 0), (chains, 1), (folds, 0), (hungry, 0), (hungry, 1)];
    for (make, blocks_ahead) in cases {
        let prepared = make();
        let budget = prepared.schedule().peak_bytes() + blocks_ahead * BLOCK_BYTES;
        assert!(budget < prepared.plan().sizes.total, "the budget does not bind");
        explore(move || {
            succeeds(
                &Runtime::new(3),
                &prepared,
                RunOptions { ahead: Some(blocks_ahead * BLOCK_BYTES), ..RunOptions::default() },
            );
        });
    }
}

#[test]
fn concurrent_runs_share_the_pool() {
    let schedules = [diamonds(), hungry()];
    explore(move || {
        let runtime = Arc::new(Runtime::new(3));
        let callers = schedules.each_ref().map(|prepared| {
            let (runtime, prepared) = (runtime.clone(), prepared.clone());
            let ahead = Some(BLOCK_BYTES);
            thread::spawn(move || succeeds(&runtime, &prepared, RunOptions { ahead, ..RunOptions::default() }))
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}

#[test]
fn a_failure_ends_the_run_and_not_the_pool() {
    let prepared = hungry();
    explore(move || {
        let runtime = Runtime::new(3);
        let broken = TestIo { fail_sources: vec![1, 2], ..TestIo::default() };
        let error = run(&runtime, &prepared, broken, RunOptions::default()).unwrap_err();
        assert_eq!(error.blame(), Blame::Io);
        succeeds(&runtime, &prepared, RunOptions::default());
    });
}

#[test]
fn a_run_can_be_cancelled_at_any_moment() {
    for (prepared, binds) in [(diamonds(), false), (hungry(), true)] {
        explore(move || {
            let runtime = Runtime::new(3);
            let cancel = CancelToken::new();
            let canceller = thread::spawn({
                let cancel = cancel.clone();
                move || cancel.cancel()
            });
            let options = RunOptions { cancel, ahead: binds.then_some(0), ..RunOptions::default() };
            if let Err(error) = run(&runtime, &prepared, TestIo::default(), options) {
                assert_eq!(error.blame(), Blame::Cancelled, "{error}");
            }
            canceller.join().unwrap();
            succeeds(&runtime, &prepared, RunOptions::default());
        });
    }
}

/// A function whose calls wait until as many of them run at the same time as the barrier says.
struct Meeting(Barrier);

impl BlockFunction for Meeting {
    fn name(&self) -> &str {
        "meeting"
    }
    fn apply(&self, _: &[ArrayView<'_>], _: &mut [Array]) -> Result<()> {
        self.0.wait();
        Ok(())
    }
}

/// A task, `n` that wait for each other, one that needs those, and the same again below it.
fn meetings(n: usize) -> Prepared {
    let mut builder = Builder::new(&Flaky::never());
    let mut top = builder.call(&[]);
    for _ in 0..2 {
        let meeting = FunctionRef(Arc::new(Meeting(Barrier::new(n))));
        let middle: Vec<BlockId> = (0..n).map(|_| builder.call_function(meeting.clone(), &[top])).collect();
        top = builder.call(&middle);
    }
    builder.output(top);
    builder.prepare()
}

/// Runs without comparing the results: a serial replay would wait for itself.
fn meet(runtime: &Runtime, n: usize) {
    runtime.run(&meetings(n), &Bindings::default(), &RunOptions::default()).unwrap();
}

#[test]
fn workers_are_woken_for_every_task() {
    for n in [2, 3, 4] {
        explore(move || meet(&Runtime::new(n), n));
    }
}

#[test]
fn a_wake_up_is_not_swallowed_by_another_run() {
    explore(|| {
        let runtime = Arc::new(Runtime::new(2));
        let callers = [(); 2].map(|()| {
            let runtime = runtime.clone();
            thread::spawn(move || meet(&runtime, 2))
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
}
