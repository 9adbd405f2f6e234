//! What a run promises, one promise at a time.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::{BLOCK_BYTES, Builder, Flaky, N, Reading, SCRATCH, TestIo, bits, only, random_schedule, replay, whole};
use tw_block::{Block, Meter, provider};
use tw_ir::program::{BlockFunction, FunctionRef};
use tw_ir::schedule::Schedule;
use tw_ir::workflow::{BlockSet, Boxes, OutputDecl, TaskId, TaskKind};
use tw_ir::{Array, ArrayView, Axis, Blame, BoxRegion, DType, EntityRef, Error, Grid, Result, Span};
use tw_run::{
    Bindings, CancelToken, Engine, Outcome, Prepared, Progress, RunOptions, Runtime, Timeline, TimelineEvent,
};

fn run(threads: usize, prepared: &Prepared, options: &RunOptions) -> Result<Outcome> {
    run_with(threads, prepared, TestIo::default(), options)
}

fn run_with(threads: usize, prepared: &Prepared, io: TestIo, options: &RunOptions) -> Result<Outcome> {
    Runtime::new(threads).run(prepared, &Arc::new(io).bindings(prepared.schedule()), options)
}

#[test]
fn a_run_without_tasks_gives_nothing() {
    let prepared = Builder::new(&Flaky::never()).prepare();
    for chaos in [None, Some(1)] {
        let outcome = run(2, &prepared, &RunOptions { chaos, ..RunOptions::default() }).unwrap();
        assert!(outcome.outputs.is_empty());
        assert_eq!(outcome.stats.tasks, 0);
    }
}

#[test]
fn statistics_count_what_moved() {
    let mut builder = Builder::new(&Flaky::never());
    let (a, b) = (builder.load(), builder.load());
    let c = builder.apply(a, b);
    builder.store(c);
    builder.output(c);
    builder.output(c);
    let prepared = builder.prepare();
    let stats = run(1, &prepared, &RunOptions::default()).unwrap().stats;
    assert_eq!((stats.tasks, stats.loaded_bytes, stats.stored_bytes), (4, 2 * BLOCK_BYTES, BLOCK_BYTES));
    assert_eq!(stats.peak_bytes, 3 * BLOCK_BYTES);
    assert_eq!(stats.threads, 1);
    assert!(stats.seconds > 0.0);
}

#[test]
fn one_thread_holds_exactly_the_peak_of_the_schedule() {
    for seed in 0..20 {
        let prepared = Prepared::new(random_schedule(seed, 120, &Flaky::never())).unwrap();
        let stats = run(1, &prepared, &RunOptions::default()).unwrap().stats;
        assert_eq!(stats.peak_bytes, prepared.schedule().peak_bytes());
    }
}

#[test]
fn errors_name_the_statement() {
    let failing = Flaky::at(0, false);
    let mut builder = Builder::new(&failing);
    let a = builder.load();
    builder.statement("y = f(x)", Span::host("script.py", 7));
    let b = builder.call(&[a]);
    builder.output(b);
    let error = run(1, &builder.prepare(), &RunOptions::default()).unwrap_err();
    assert_eq!(error.blame(), Blame::Data);
    assert_eq!(error.to_string(), "injected failure (at script.py:7); in `y = f(x)`");
}

#[test]
fn a_panic_becomes_an_error_that_names_the_statement() {
    struct Panics;
    impl BlockFunction for Panics {
        fn name(&self) -> &str {
            "panics"
        }
        fn apply(&self, operands: &[ArrayView<'_>], _: &mut [Array]) -> Result<()> {
            std::panic::resume_unwind(Box::new(format!("{} operands", operands.len())));
        }
    }
    let mut builder = Builder::new(&Flaky::never());
    let a = builder.load();
    let b = builder.call_function(FunctionRef(Arc::new(Panics)), &[a, a]);
    builder.output(b);
    let meter = Meter::new();
    let options = RunOptions { meter: meter.clone(), ..RunOptions::default() };
    let error = run(2, &builder.prepare(), &options).unwrap_err();
    assert_eq!(error.blame(), Blame::Internal);
    assert_eq!(error.message(), "a panic in `x = test`: 2 operands");
    assert_eq!(*error.span(), Span::text(3, 9));
    assert_eq!(meter.now(), 0);
}

#[test]
fn of_several_failures_the_lowest_rank_is_reported() {
    let mut builder = Builder::new(&Flaky::never());
    for _ in 0..200 {
        let block = builder.load();
        builder.output(block);
    }
    let prepared = builder.prepare();
    let broken = || TestIo { fail_sources: vec![20, 150], ..TestIo::default() };
    let error = run_with(1, &prepared, broken(), &RunOptions::default()).unwrap_err();
    assert_eq!(error.message(), "source 20 is broken");
    // Lowest first means that with a few threads nobody can be at 150 when somebody meets 20.
    let error = run_with(4, &prepared, broken(), &RunOptions::default()).unwrap_err();
    assert_eq!(error.message(), "source 20 is broken");
    let error = run_with(4, &prepared, broken(), &RunOptions { chaos: Some(3), ..RunOptions::default() }).unwrap_err();
    assert!(error.message().ends_with("is broken"));
}

#[test]
fn cancelled_before_it_begins() {
    let prepared = Prepared::new(random_schedule(1, 100, &Flaky::never())).unwrap();
    let cancel = CancelToken::new();
    cancel.cancel();
    for threads in [1, 2] {
        let options = RunOptions { cancel: cancel.clone(), ..RunOptions::default() };
        assert_eq!(run(threads, &prepared, &options).unwrap_err(), Error::cancelled());
    }
}

#[test]
fn a_reader_between_contributions_is_refused() {
    let mut builder = Builder::new(&Flaky::never());
    let a = builder.load();
    let sum = builder.block();
    builder.fold(sum, 0, a, a);
    let early = builder.apply(sum, a);
    builder.fold(sum, 1, a, a);
    builder.output(early);
    let order = builder.workflow.tasks().collect();
    let error = Schedule::freeze(builder.workflow, order, provider()).unwrap_err();
    assert!(error.message().contains("before it is complete"), "{error}");
}

#[test]
fn a_source_that_gives_another_box_is_refused() {
    let shifted = |region: &BoxRegion, meter: &Arc<Meter>| {
        let moved = BoxRegion { lo: vec![region.lo[0] + 1], hi: vec![region.hi[0] + 1] };
        Block::for_output(DType::F64, moved, Some(meter)).map(Arc::new)
    };
    let mut builder = Builder::new(&Flaky::never());
    let a = builder.load();
    builder.output(a);
    let bindings = Bindings { sources: vec![Arc::new(Reading(shifted))], ..Bindings::default() };
    let error = Runtime::new(1).run(&builder.prepare(), &bindings, &RunOptions::default()).unwrap_err();
    assert_eq!(error.blame(), Blame::Internal);
}

#[test]
fn the_timeline_has_every_task_and_every_deletion_once() {
    for threads in [1, 4] {
        let schedule = random_schedule(17, 200, &Flaky::never());
        let timeline = Arc::new(Timeline::new(threads));
        let progress = Arc::new(Progress::new());
        let options =
            RunOptions { observer: Some(timeline.clone()), progress: Some(progress.clone()), ..RunOptions::default() };
        let outcome = run(threads, &Prepared::new(schedule.clone()).unwrap(), &options).unwrap();
        let n_tasks = schedule.n_tasks() as u64;
        assert_eq!((progress.done(), progress.total()), (n_tasks, n_tasks));
        let (mut tasks, mut deleted) = (BTreeMap::new(), BTreeMap::new());
        for event in timeline.events() {
            assert!(event.at() >= timeline.begin());
            match event {
                TimelineEvent::Task { task, worker, start, end, .. } => {
                    assert!(start <= end && (worker as usize) < threads);
                    *tasks.entry(task).or_insert(0) += 1;
                }
                TimelineEvent::Moved { moved, .. } => panic!("{moved:?} in a schedule without moves"),
                TimelineEvent::Deleted { block, bytes, .. } => {
                    assert_eq!(bytes, BLOCK_BYTES);
                    *deleted.entry(block).or_insert(0) += 1;
                }
            }
        }
        assert!(tasks.len() as u64 == n_tasks && tasks.values().all(|&n| n == 1));
        assert!(deleted.values().all(|&n| n == 1));
        let mut kept: Vec<_> = outcome.outputs.iter().map(|output| Arc::as_ptr(&only(output))).collect();
        kept.sort_unstable();
        kept.dedup();
        let made: std::collections::BTreeSet<_> =
            schedule.order().flat_map(|task| schedule.workflow().outputs(task)).collect();
        assert_eq!(deleted.len() + kept.len(), made.len());
    }
}

/// Waits in its calls until something has happened `target` times, or too long.
struct Meeting {
    arrived: Mutex<usize>,
    changed: Condvar,
    target: usize,
}

impl Meeting {
    fn of(target: usize) -> Arc<Meeting> {
        Arc::new(Meeting { arrived: Mutex::new(0), changed: Condvar::new(), target })
    }
    fn arrive(&self) {
        *self.arrived.lock().unwrap() += 1;
        self.changed.notify_all();
    }
    fn wait(&self, limit: Duration) -> bool {
        let arrived = self.arrived.lock().unwrap();
        let waiting = self.changed.wait_timeout_while(arrived, limit, |arrived| *arrived < self.target);
        !waiting.unwrap().1.timed_out()
    }
}

impl BlockFunction for Meeting {
    fn name(&self) -> &str {
        "meeting"
    }
    fn apply(&self, _: &[ArrayView<'_>], _: &mut [Array]) -> Result<()> {
        self.arrive();
        if self.wait(Duration::from_secs(20)) { Ok(()) } else { Err(Error::data("nobody came")) }
    }
}

#[test]
fn independent_tasks_run_at_the_same_time() {
    let runtime = Runtime::new(3);
    assert_eq!(runtime.threads(), 3);
    for _ in 0..50 {
        let mut builder = Builder::new(&Flaky::never());
        let meeting = Meeting::of(3);
        for _ in 0..3 {
            let block = builder.call_function(FunctionRef(meeting.clone()), &[]);
            builder.output(block);
        }
        assert_eq!(
            runtime.run(&builder.prepare(), &Bindings::default(), &RunOptions::default()).unwrap().stats.threads,
            3
        );
    }
}

/// The first block of a set takes no scratch space, the others do: they are read one at a time where two of them exceed what threads may run ahead.
#[test]
fn scratch_space_of_every_block_counts() {
    let mut builder = Builder::new(&Flaky::never());
    let first = builder.load();
    builder.output(first);
    let set = builder.workflow.set_of(first);
    let (kernel, statement) = (builder.workflow.kernel(TaskId::new(0)), builder.workflow.sets[set].statement);
    let boxes = Boxes::Grid(Grid::from_iter([Axis::uniform(50 * N, N)]));
    let cut = BlockSet::dense("cut".into(), DType::F64, vec![50 * N], boxes, statement);
    let cut = builder.workflow.add_set(cut).unwrap();
    for position in 0..50 {
        let block = builder.workflow.block(cut, position);
        builder.workflow.add_task(TaskKind::Load, kernel, 0, 0, &[], &[block]);
    }
    builder.workflow.outputs.push(OutputDecl { name: "cut".into(), set: cut, dtype: DType::F64 });
    let prepared = builder.prepare();
    for (room, most, limit) in [(SCRATCH, 1, Duration::from_millis(10)), (8 * SCRATCH, 2, Duration::from_secs(20))] {
        // Readers now, and the most there were.
        let readers = Arc::new((Mutex::new((0, 0)), Condvar::new()));
        let seen = readers.clone();
        let read = move |region: &BoxRegion, meter: &Arc<Meter>| {
            if region.lo[0] > 0 {
                let mut count = readers.0.lock().unwrap();
                count.0 += 1;
                count.1 = count.1.max(count.0);
                readers.1.notify_all();
                // Others that may read now come in that time.
                count = readers.1.wait_timeout_while(count, limit, |count| count.1 < 2).unwrap().0;
                count.0 -= 1;
            }
            Block::from_array(&region.lo, Array::from_f64(&[0.0; N as usize]), Some(meter)).map(Arc::new)
        };
        let bindings = Bindings { sources: vec![Arc::new(Reading(read))], ..Bindings::default() };
        let options = RunOptions { ahead: Some(room), ..RunOptions::default() };
        Runtime::new(2).run(&prepared, &bindings, &options).unwrap();
        assert_eq!(seen.0.lock().unwrap().1, most, "with room for {room} bytes");
    }
}

/// One slow fold after many loads that could all run ahead of it.
#[test]
fn a_budget_keeps_loads_from_running_ahead() {
    /// Passes if all loads have run ahead before the time is over, exactly if it should.
    struct Slow(Arc<Meeting>, Duration, bool);
    impl BlockFunction for Slow {
        fn name(&self) -> &str {
            "slow"
        }
        fn apply(&self, _: &[ArrayView<'_>], _: &mut [Array]) -> Result<()> {
            if self.0.wait(self.1) == self.2 { Ok(()) } else { Err(Error::data("loads ran ahead, or did not")) }
        }
    }
    for (bounded, limit) in [(false, Duration::from_secs(20)), (true, Duration::from_millis(30))] {
        let loads = Meeting::of(50);
        let mut builder = Builder::new(&Flaky::never());
        let mut last = builder.load();
        last = builder.call_function(FunctionRef(Arc::new(Slow(loads.clone(), limit, !bounded))), &[last]);
        for _ in 1..50 {
            let next = builder.load();
            last = builder.apply(last, next);
        }
        builder.output(last);
        let prepared = builder.prepare();
        let ahead = bounded.then_some(3 * BLOCK_BYTES);
        let mut bindings = Arc::new(TestIo::default()).bindings(prepared.schedule());
        for source in &mut bindings.sources {
            let (usual, loads) = (source.clone(), loads.clone());
            *source = Arc::new(Reading(move |region: &BoxRegion, meter: &Arc<Meter>| {
                loads.arrive();
                usual.read(region, meter)
            }));
        }
        let options = RunOptions { ahead, ..RunOptions::default() };
        Runtime::new(2).run(&prepared, &bindings, &options).unwrap();
        match ahead {
            Some(ahead) => assert!(options.meter.peak() <= prepared.schedule().peak_bytes() + ahead),
            None => assert!(options.meter.peak() > 40 * BLOCK_BYTES),
        }
    }
}

#[test]
fn a_task_may_run_another_schedule_on_the_same_pool() {
    struct Nested(Arc<Runtime>, Prepared, AtomicUsize);
    impl BlockFunction for Nested {
        fn name(&self) -> &str {
            "nested"
        }
        fn apply(&self, _: &[ArrayView<'_>], _: &mut [Array]) -> Result<()> {
            let bindings = Arc::new(TestIo::default()).bindings(self.1.schedule());
            self.0.run(&self.1, &bindings, &RunOptions::default())?;
            self.2.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
    let runtime = Arc::new(Runtime::new(2));
    let inner = Prepared::new(random_schedule(3, 60, &Flaky::never())).unwrap();
    let nested = Arc::new(Nested(runtime.clone(), inner, AtomicUsize::new(0)));
    let mut builder = Builder::new(&Flaky::never());
    for _ in 0..10 {
        let block = builder.call_function(FunctionRef(nested.clone()), &[]);
        builder.output(block);
    }
    runtime.run(&builder.prepare(), &Bindings::default(), &RunOptions::default()).unwrap();
    assert_eq!(nested.2.load(Ordering::Relaxed), 10);
}

#[test]
fn tasks_outside_the_order_do_not_run() {
    let mut builder = Builder::new(&Flaky::never());
    let a = builder.load();
    let b = builder.apply(a, a);
    builder.call(&[a]);
    builder.output(b);
    let order = builder.workflow.tasks().take(2).collect();
    let schedule = Arc::new(Schedule::freeze(builder.workflow, order, provider()).unwrap());
    let expected = replay(&schedule).outputs;
    for chaos in [None, Some(9)] {
        let prepared = Prepared::new(schedule.clone()).unwrap();
        let outcome = run(2, &prepared, &RunOptions { chaos, ..RunOptions::default() }).unwrap();
        assert_eq!(outcome.stats.tasks, 2);
        assert_eq!(bits(&only(&outcome.outputs[0])), expected[0]);
    }
}

#[test]
fn an_output_that_is_not_made_is_refused() {
    let mut builder = Builder::new(&Flaky::never());
    let a = builder.load();
    let b = builder.apply(a, a);
    builder.output(b);
    let order = builder.workflow.tasks().take(1).collect();
    let schedule = Schedule::freeze(builder.workflow, order, provider()).unwrap();
    assert!(Prepared::new(Arc::new(schedule)).is_err());
}

#[test]
fn operands_may_be_absent() {
    let mut builder = Builder::new(&Flaky::never());
    let a = builder.load();
    let b = builder.apply(a, a);
    let kernel = builder.workflow.kernel(builder.workflow.tasks().last().unwrap());
    let c = builder.block();
    let none = tw_ir::workflow::MaybeOperand::default();
    builder.workflow.add_task(TaskKind::Apply, kernel, 0, 0, &[whole(b), none], &[c]);
    builder.output(c);
    let outcome = run(2, &builder.prepare(), &RunOptions { chaos: Some(1), ..RunOptions::default() }).unwrap();
    assert_eq!(only(&outcome.outputs[0]).to_array().unwrap().to_f64_vec(), [0.1; common::N as usize]);
}
