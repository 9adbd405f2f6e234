//! Measured time per statement.

use std::cell::RefCell;
use std::ops::AddAssign;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tw_ir::EntityRef;
use tw_ir::kernel::Kernel;
use tw_ir::schedule::Schedule;
use tw_ir::span::Span;
use tw_ir::workflow::{BlockId, StmtId, TaskId};
use tw_run::{MoveKind, Moved, Observer};

/// Collects the time of every task, by statement. Segments that run again and again add up.
#[derive(Debug)]
pub struct Profile {
    began: Instant,
    segments: Mutex<Vec<Arc<SegmentTimes>>>,
    /// The number of tasks to record one by one.
    most_tasks: usize,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile { began: Instant::now(), segments: Mutex::default(), most_tasks: 0 }
    }
}

/// An activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It read a block from a source.
    Load,
    /// It computed.
    Compute,
    /// It wrote a block to a sink.
    Store,
    /// It moved a block from main memory to the spill file.
    Spill,
    /// It moved a block from the spill file to main memory.
    Fetch,
}

impl Activity {
    /// Its name in charts.
    pub fn word(self) -> &'static str {
        match self {
            Activity::Load => "load",
            Activity::Compute => "compute",
            Activity::Store => "store",
            Activity::Spill => "spill",
            Activity::Fetch => "fetch",
        }
    }
}

/// One task or move that ran. Times are seconds since the profile began.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRun {
    /// Its activity.
    pub activity: Activity,
    /// The statement it belongs to.
    pub span: Span,
    /// The planner's name of its kernel.
    pub label: String,
    /// The thread.
    pub worker: u32,
    /// Its start.
    pub start: f64,
    /// Its end.
    pub end: f64,
    /// Live bytes of blocks at that time.
    pub held: u64,
}

thread_local! {
    static OWN: RefCell<Option<Arc<Profile>>> = const { RefCell::new(None) };
}

/// Runs code and measures its computations. Other runs of the same session are not measured.
pub fn profiled<T>(profile: &Arc<Profile>, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<Profile>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN.set(self.0.take());
        }
    }
    let _restore = Restore(OWN.replace(Some(profile.clone())));
    f()
}

/// The profile that watches a run that starts now: that of this thread, or the session's.
pub(crate) fn profile_of_run(session: Option<&Arc<Profile>>) -> Option<Arc<Profile>> {
    OWN.with_borrow(|own| own.as_ref().or(session).cloned())
}

/// Measurements.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Busy time per statement, in the order statements first ran.
    pub statements: Vec<(Span, Busy)>,
}

/// Time that threads spent on tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Tasks that ran.
    pub tasks: u64,
    /// Their times, added up over threads.
    pub time: Duration,
    /// Bytes that they read and wrote.
    pub moved_bytes: u64,
}

impl AddAssign for Busy {
    fn add_assign(&mut self, other: Busy) {
        self.tasks += other.tasks;
        self.time += other.time;
        self.moved_bytes = self.moved_bytes.saturating_add(other.moved_bytes);
    }
}

impl Measured {
    /// The sum over the statements at places the predicate accepts.
    pub(crate) fn sum(&self, accept: impl Fn(&Span) -> bool) -> Busy {
        let mut sum = Busy::default();
        for (_, busy) in self.statements.iter().filter(|(span, _)| accept(span)) {
            sum += *busy;
        }
        sum
    }
}

impl Profile {
    /// An empty profile.
    pub fn new() -> Profile {
        Profile::default()
    }

    /// An empty profile that records single tasks, too: the first of them up to this number.
    pub fn with_tasks(most: usize) -> Profile {
        Profile { most_tasks: most, ..Profile::default() }
    }

    /// The tasks that were recorded, in the order they began; and how many others ran.
    pub fn tasks(&self) -> (Vec<TaskRun>, u64) {
        let (mut all, mut ran) = (Vec::new(), 0);
        for segment in lock(&self.segments).iter() {
            ran += segment.totals().iter().map(|busy| busy.tasks).sum::<u64>();
            ran += segment.lanes.iter().map(|lane| lock(lane).moves).sum::<u64>();
            let statements = &segment.schedule.workflow().statements;
            for lane in &segment.lanes {
                all.extend(lock(lane).events.iter().map(|event| TaskRun {
                    activity: event.activity,
                    span: statements[event.statement].span,
                    label: statements[event.statement].label.clone(),
                    worker: event.worker,
                    start: (event.start - self.began).as_secs_f64(),
                    end: (event.end - self.began).as_secs_f64(),
                    held: event.held,
                }));
            }
        }
        all.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.worker.cmp(&b.worker)));
        all.truncate(self.most_tasks);
        let others = ran - all.len() as u64;
        (all, others)
    }

    /// The measurements so far.
    pub fn measured(&self) -> Measured {
        let mut measured = Measured::default();
        for segment in lock(&self.segments).iter() {
            let statements = segment.schedule.workflow().statements.values();
            for (statement, busy) in statements.zip(segment.totals()) {
                if busy.tasks > 0 {
                    measured.statements.push((statement.span, busy));
                }
            }
        }
        measured
    }

    /// An observer of one run of a schedule, which forwards events.
    pub(crate) fn watch(&self, schedule: &Arc<Schedule>, next: Option<Arc<dyn Observer>>) -> Arc<dyn Observer> {
        let mut segments = lock(&self.segments);
        let known = segments.iter().find(|segment| Arc::ptr_eq(&segment.schedule, schedule)).cloned();
        let times = known.unwrap_or_else(|| {
            let times = Arc::new(SegmentTimes::new(schedule.clone(), self.most_tasks));
            segments.push(times.clone());
            times
        });
        Arc::new(Watch { times, next })
    }
}

/// Threads write to different lanes, so that they rarely wait for each other.
const LANES: usize = 16;

/// Times of one schedule.
#[derive(Debug)]
struct SegmentTimes {
    schedule: Arc<Schedule>,
    lanes: Vec<Mutex<LaneTimes>>,
    most_tasks: usize,
}

/// The tasks of some threads.
#[derive(Debug)]
struct LaneTimes {
    /// By statement.
    busy: Vec<Busy>,
    moves: u64,
    events: Vec<Event>,
}

#[derive(Debug)]
struct Event {
    activity: Activity,
    statement: StmtId,
    worker: u32,
    start: Instant,
    end: Instant,
    held: u64,
}

impl SegmentTimes {
    fn new(schedule: Arc<Schedule>, most_tasks: usize) -> SegmentTimes {
        let n = schedule.workflow().statements.len();
        let lane = |_| Mutex::new(LaneTimes { busy: vec![Busy::default(); n], moves: 0, events: Vec::new() });
        SegmentTimes { schedule, lanes: (0..LANES).map(lane).collect(), most_tasks }
    }

    fn totals(&self) -> Vec<Busy> {
        let mut totals = vec![Busy::default(); self.schedule.workflow().statements.len()];
        for lane in &self.lanes {
            for (total, busy) in totals.iter_mut().zip(&lock(lane).busy) {
                *total += *busy;
            }
        }
        totals
    }
}

struct Watch {
    times: Arc<SegmentTimes>,
    next: Option<Arc<dyn Observer>>,
}

impl Observer for Watch {
    fn task_started(&self, task: TaskId, worker: u32, at: Instant) {
        if let Some(next) = &self.next {
            next.task_started(task, worker, at);
        }
    }

    fn task_finished(&self, task: TaskId, worker: u32, start: Instant, end: Instant, held: u64) {
        let workflow = self.times.schedule.workflow();
        let (statement, moved_bytes) = (workflow.statement(task), tw_plan::task_bytes(workflow, task));
        {
            let mut lane = lock(&self.times.lanes[worker as usize % LANES]);
            lane.busy[statement.index()] += Busy { tasks: 1, time: end - start, moved_bytes };
            if lane.events.len() < self.times.most_tasks {
                let activity = match workflow.kernels[workflow.kernel(task)].kernel {
                    Kernel::Load { .. } => Activity::Load,
                    Kernel::Store { .. } => Activity::Store,
                    _ => Activity::Compute,
                };
                lane.events.push(Event { activity, statement, worker, start, end, held });
            }
        }
        if let Some(next) = &self.next {
            next.task_finished(task, worker, start, end, held);
        }
    }

    fn block_moved(&self, moved: Moved, worker: u32, start: Instant, end: Instant, held: u64) {
        let workflow = self.times.schedule.workflow();
        let statement = workflow.sets[workflow.set_of(moved.block)].statement;
        {
            let mut lane = lock(&self.times.lanes[worker as usize % LANES]);
            lane.moves += 1;
            if lane.events.len() < self.times.most_tasks {
                let activity = match moved.kind {
                    MoveKind::Spill => Activity::Spill,
                    MoveKind::Fetch => Activity::Fetch,
                };
                lane.events.push(Event { activity, statement, worker, start, end, held });
            }
        }
        if let Some(next) = &self.next {
            next.block_moved(moved, worker, start, end, held);
        }
    }

    fn block_deleted(&self, block: BlockId, bytes: u64, worker: u32, at: Instant) {
        if let Some(next) = &self.next {
            next.block_deleted(block, bytes, worker, at);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    #[test]
    fn tasks_of_other_runs_are_not_recorded() {
        let profile = Arc::new(Profile::with_tasks(5));
        let session = Session::builder().threads(2).tile(100).build();
        let sum = |seed| session.random_uniform(&[1000, 300], seed).unwrap().sum(None).unwrap().item().unwrap();
        sum(1);
        profiled(&profile, || sum(2));
        sum(3);
        let all = profile.measured().sum(|_| true);
        assert_eq!(3 * all.tasks, session.totals().tasks);
        assert!(all.moved_bytes > 0);
        let (tasks, others) = profile.tasks();
        assert_eq!((tasks.len(), others), (5, all.tasks - 5));
        assert!(tasks.iter().all(|task| 0.0 <= task.start && task.start <= task.end));
    }

    #[test]
    fn every_task_is_counted_once() {
        let profile = Arc::new(Profile::new());
        let session = Session::builder().threads(2).tile(100).profile(profile.clone()).build();
        for _ in 0..2 {
            session.random_uniform(&[1000, 300], 1).unwrap().sum(None).unwrap().item().unwrap();
        }
        let all = profile.measured().sum(|_| true);
        assert_eq!(all.tasks, session.totals().tasks);
        assert!(all.time > Duration::ZERO);
    }
}
