//! Random schedules under any number of threads and any scheduling decisions give the bits of a serial replay, leave nothing behind, and
//! survive failures, panics and cancellation anywhere.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use common::{BLOCK_BYTES, Dice, Flaky, Replayed, TestIo, bits, only, random_schedule, replay};
use tw_block::Meter;
use tw_ir::workflow::TaskId;
use tw_ir::{Blame, Result};
use tw_run::{CancelToken, Engine, Observer, Outcome, Prepared, RunOptions, Runtime};

const THREADS: [usize; 4] = [1, 2, 4, 8];

fn runtimes() -> Vec<Runtime> {
    THREADS.iter().map(|&threads| Runtime::new(threads)).collect()
}

/// No, with a seed, or with other seeds.
fn chaos(round: u64) -> Option<u64> {
    (!round.is_multiple_of(3)).then_some(round)
}

/// Bytes of the distinct blocks among the outputs.
fn held(outcome: &Outcome) -> u64 {
    let mut blocks: Vec<_> = outcome.outputs.iter().map(|output| Arc::as_ptr(&only(output))).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks.len() as u64 * BLOCK_BYTES
}

/// Runs, checks the result if there is one, and that nothing leaks.
fn run_checked(runtime: &Runtime, prepared: &Prepared, expected: &Replayed, options: RunOptions) -> Result<()> {
    let meter = Meter::new();
    let budget = options.ahead.map_or(u64::MAX, |ahead| prepared.schedule().peak_bytes() + ahead);
    let io = Arc::new(TestIo::default());
    let bindings = io.bindings(prepared.schedule());
    let result = runtime.run(prepared, &bindings, &RunOptions { meter: meter.clone(), ..options });
    drop(bindings);
    let checked = result.map(|outcome| {
        let outputs: Vec<Vec<u64>> = outcome.outputs.iter().map(|output| bits(&only(output))).collect();
        assert_eq!(outputs, expected.outputs);
        assert_eq!(*io.stored.lock().unwrap(), expected.stored);
        assert_eq!(outcome.stats.tasks, prepared.schedule().n_tasks() as u64);
        assert_eq!(meter.now(), held(&outcome));
    });
    assert_eq!(meter.now(), 0, "blocks were leaked");
    assert!(meter.peak() <= budget, "{} bytes were held under a budget of {budget}", meter.peak());
    assert_eq!(Arc::strong_count(&io), 1, "the pool still holds on to the run");
    checked
}

fn healthy(seed: u64, n_tasks: usize) -> (Prepared, Replayed) {
    let schedule = random_schedule(seed, n_tasks, &Flaky::never());
    let expected = replay(&schedule);
    (Prepared::new(schedule).unwrap(), expected)
}

#[test]
fn results_do_not_depend_on_threads_or_decisions() {
    let runtimes = runtimes();
    for seed in 0..60 {
        let (prepared, expected) = healthy(seed, 20 + seed as usize * 5);
        for runtime in &runtimes {
            for round in 0..4 {
                run_checked(runtime, &prepared, &expected, RunOptions { chaos: chaos(round), ..RunOptions::default() })
                    .unwrap();
            }
        }
    }
}

#[test]
fn budgets_hold_and_do_not_change_results() {
    let runtimes = runtimes();
    for seed in 100..140 {
        let (prepared, expected) = healthy(seed, 150);
        for runtime in &runtimes {
            for round in 0..4 {
                let ahead = Some(round * BLOCK_BYTES);
                let options = RunOptions { ahead, chaos: chaos(round + seed), ..RunOptions::default() };
                run_checked(runtime, &prepared, &expected, options).unwrap();
            }
        }
    }
}

#[test]
fn many_small_runs_lose_no_wake_up() {
    let runtime = Runtime::new(4);
    let (prepared, expected) = healthy(7, 40);
    let io = Arc::new(TestIo { forgets: true, ..TestIo::default() });
    let bindings = io.bindings(prepared.schedule());
    for _ in 0..4000 {
        let outcome = runtime.run(&prepared, &bindings, &RunOptions::default()).unwrap();
        assert_eq!(bits(&only(&outcome.outputs[0])), expected.outputs[0]);
    }
}

#[test]
fn several_callers_share_a_pool() {
    let runtime = Runtime::new(3);
    std::thread::scope(|scope| {
        for caller in 0..5u64 {
            let runtime = &runtime;
            scope.spawn(move || {
                for seed in 0..25 {
                    let (prepared, expected) = healthy(caller * 1000 + seed, 120);
                    let options = RunOptions {
                        chaos: chaos(seed),
                        ahead: (caller % 2 == 0).then_some(3 * BLOCK_BYTES),
                        ..RunOptions::default()
                    };
                    run_checked(runtime, &prepared, &expected, options).unwrap();
                }
            });
        }
    });
}

/// Panics that tests cause on purpose need not fill the output.
fn silence_injected_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&"injected panic") {
                usual(info);
            }
        }));
    });
}

#[test]
fn failures_and_panics_end_only_their_run() {
    silence_injected_panics();
    let runtimes = runtimes();
    for seed in 200..230 {
        let (prepared, expected) = healthy(seed, 100);
        for runtime in &runtimes {
            for round in 0..6 {
                let panics = round % 2 == 0;
                let flaky = Flaky::at(Dice::new(seed + round).below(14), panics);
                let broken = Prepared::new(random_schedule(seed, 100, &flaky)).unwrap();
                let options = RunOptions { chaos: chaos(round), ..RunOptions::default() };
                let result = run_checked(runtime, &broken, &expected, options.clone());
                if flaky.calls.load(Ordering::Relaxed) > flaky.fail_at {
                    let error = result.unwrap_err();
                    let expected = if panics { Blame::Internal } else { Blame::Data };
                    assert_eq!(error.blame(), expected, "{error}");
                    assert!(error.message().contains("injected"), "{error}");
                    assert_eq!(*error.span(), tw_ir::Span::text(3, 9));
                } else {
                    result.unwrap();
                }
                run_checked(runtime, &prepared, &expected, options).unwrap();
            }
        }
    }
}

/// Cancels when the n-th task begins.
struct CancelAt {
    started: AtomicUsize,
    at: usize,
    token: CancelToken,
}

impl Observer for CancelAt {
    fn task_started(&self, _: TaskId, _: u32, _: Instant) {
        if self.started.fetch_add(1, Ordering::Relaxed) == self.at {
            self.token.cancel();
        }
    }
}

#[test]
fn cancelled_runs_stop_soon_and_free_everything() {
    for seed in 300..320 {
        let (prepared, expected) = healthy(seed, 200);
        let n_tasks = prepared.schedule().n_tasks();
        for (runtime, threads) in runtimes().iter().zip(THREADS) {
            for at in [0, 1, seed as usize % n_tasks, n_tasks - 1, n_tasks] {
                let cancel = CancelToken::new();
                let observer = Arc::new(CancelAt { started: AtomicUsize::new(0), at, token: cancel.clone() });
                let options = RunOptions {
                    cancel,
                    observer: Some(observer.clone()),
                    chaos: chaos(seed + at as u64),
                    ..RunOptions::default()
                };
                let result = run_checked(runtime, &prepared, &expected, options);
                let started = observer.started.load(Ordering::Relaxed);
                assert!(started <= at + threads, "{started} tasks began although the run was cancelled at {at}");
                match result {
                    Ok(()) => assert_eq!(started, n_tasks),
                    Err(error) => assert_eq!(error.blame(), Blame::Cancelled),
                }
            }
        }
    }
}

#[test]
fn cancelling_from_another_thread_at_any_time() {
    let runtime = Runtime::new(4);
    let (prepared, expected) = healthy(11, 400);
    for round in 0..200 {
        let cancel = CancelToken::new();
        std::thread::scope(|scope| {
            let token = cancel.clone();
            scope.spawn(move || {
                (0..Dice::new(round).below(20_000)).for_each(|_| std::hint::spin_loop());
                token.cancel();
            });
            let options = RunOptions { cancel, chaos: chaos(round), ..RunOptions::default() };
            if let Err(error) = run_checked(&runtime, &prepared, &expected, options) {
                assert_eq!(error.blame(), Blame::Cancelled);
            }
        });
    }
}
