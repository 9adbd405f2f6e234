//! Time per statement, measured while programs run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tw_ir::EntityRef;
use tw_ir::schedule::Schedule;
use tw_ir::span::Span;
use tw_ir::workflow::{BlockId, TaskId};
use tw_run::Observer;

/// Collects the time of every task of a session's runs, by statement. Segments that run again and again add up.
#[derive(Debug, Default)]
pub struct Profile {
    segments: Mutex<Vec<Arc<SegmentTimes>>>,
}

/// What was measured.
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
}

impl Measured {
    /// The sum over the statements at places the predicate accepts.
    pub(crate) fn sum(&self, accept: impl Fn(&Span) -> bool) -> Busy {
        let mut sum = Busy::default();
        for (_, busy) in self.statements.iter().filter(|(span, _)| accept(span)) {
            sum.tasks += busy.tasks;
            sum.time += busy.time;
        }
        sum
    }
}

impl Profile {
    /// An empty profile.
    pub fn new() -> Profile {
        Profile::default()
    }

    /// What was measured so far.
    pub fn measured(&self) -> Measured {
        let mut measured = Measured::default();
        for segment in lock(&self.segments).iter() {
            let statements = segment.schedule.workflow().statements.values();
            for (statement, busy) in statements.zip(segment.totals()) {
                if busy.tasks > 0 {
                    measured.statements.push((statement.span.clone(), busy));
                }
            }
        }
        measured
    }

    /// What watches one run of a schedule, and passes events on.
    pub(crate) fn watch(&self, schedule: &Arc<Schedule>, next: Option<Arc<dyn Observer>>) -> Arc<dyn Observer> {
        let mut segments = lock(&self.segments);
        let known = segments.iter().find(|segment| Arc::ptr_eq(&segment.schedule, schedule)).cloned();
        let times = known.unwrap_or_else(|| {
            let times = Arc::new(SegmentTimes::new(schedule.clone()));
            segments.push(times.clone());
            times
        });
        Arc::new(Watch { times, next })
    }
}

/// Threads write to different lanes, so that they rarely wait for each other.
const LANES: usize = 16;

/// Times of one schedule: per lane one entry per statement.
#[derive(Debug)]
struct SegmentTimes {
    schedule: Arc<Schedule>,
    lanes: Vec<Mutex<Vec<Busy>>>,
}

impl SegmentTimes {
    fn new(schedule: Arc<Schedule>) -> SegmentTimes {
        let n = schedule.workflow().statements.len();
        SegmentTimes { schedule, lanes: (0..LANES).map(|_| Mutex::new(vec![Busy::default(); n])).collect() }
    }

    fn totals(&self) -> Vec<Busy> {
        let mut totals = vec![Busy::default(); self.schedule.workflow().statements.len()];
        for lane in &self.lanes {
            for (total, busy) in totals.iter_mut().zip(lock(lane).iter()) {
                total.tasks += busy.tasks;
                total.time += busy.time;
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
        let statement = self.times.schedule.workflow().statement(task).index();
        let busy = &mut lock(&self.times.lanes[worker as usize % LANES])[statement];
        busy.tasks += 1;
        busy.time += end - start;
        if let Some(next) = &self.next {
            next.task_finished(task, worker, start, end, held);
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
