//! How far a session is, for people who wait.

use std::time::{Duration, Instant};

use crate::session::Session;
use crate::units;

/// Time and steps that a segment has to have taken before the rest of it is guessed.
const LEAST_TIME: Duration = Duration::from_secs(2);
const LEAST_STEPS: u64 = 5;

/// Watches the runs of a session.
#[derive(Debug)]
pub struct Watch {
    begun: Instant,
    /// Steps done and to do, and bytes read, when it began.
    before: (u64, u64, u64),
    /// The steps to do, when they have last changed, and the steps done then: a segment begins there.
    segment: (u64, Instant, u64),
    peak: u64,
}

/// How far the runs are that were watched.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Steps done.
    pub done: u64,
    /// Steps of all segments that have begun.
    pub total: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// The most bytes held so far.
    pub peak_bytes: u64,
    /// The budget, if one was set.
    pub budget: Option<u64>,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// A guess at the time that the segment takes that runs now, if as much of it is done as a guess needs. What comes after it, only the data may tell.
    pub left: Option<Duration>,
}

impl Watch {
    /// Begins to watch.
    pub fn new(session: &Session) -> Watch {
        let (progress, now) = (session.progress(), Instant::now());
        let before = (progress.done(), progress.total(), progress.read_bytes());
        Watch { begun: now, before, segment: (before.1, now, before.0), peak: 0 }
    }

    /// How far it is.
    pub fn look(&mut self, session: &Session) -> Look {
        let progress = session.progress();
        self.at(Instant::now(), (progress.done(), progress.total(), progress.read_bytes()), session)
    }

    fn at(&mut self, now: Instant, (done, total, read): (u64, u64, u64), session: &Session) -> Look {
        if total != self.segment.0 {
            self.segment = (total, now, done);
        }
        self.peak = self.peak.max(session.memory().1);
        let (own, to_do) = (done - self.before.0, total - self.before.1);
        Look {
            done: own,
            total: to_do,
            read_bytes: read - self.before.2,
            peak_bytes: self.peak,
            budget: session.budget(),
            elapsed: now - self.begun,
            // Steps of runs that have failed before are never done.
            left: left(now - self.segment.1, done - self.segment.2, to_do.saturating_sub(own)),
        }
    }
}

/// The time that steps take which are left, if as long as now.
fn left(taken: Duration, done: u64, left: u64) -> Option<Duration> {
    let knows = taken >= LEAST_TIME && done >= LEAST_STEPS;
    knows.then(|| taken.mul_f64(left as f64 / done as f64))
}

impl Look {
    /// All of it but the steps, in a line.
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        if self.read_bytes > 0 {
            parts.push(format!("{} read", units::bytes(self.read_bytes)));
        }
        let peak = units::bytes(self.peak_bytes);
        parts.push(match self.budget {
            Some(budget) => format!("peak {peak} of {}", units::bytes(budget)),
            None => format!("peak {peak}"),
        });
        parts.push(whole_seconds(self.elapsed));
        if let Some(left) = self.left {
            parts.push(format!("about {} left", whole_seconds(left)));
        }
        parts.join(", ")
    }
}

/// `8 s`, `3 min 20 s`, `2 h 5 min`.
fn whole_seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_segment_is_guessed_from_its_beginning() {
        let session = Session::builder().threads(1).memory(1 << 20).build();
        let mut watch = Watch::new(&session);
        let at = |seconds: u64| watch.begun + Duration::from_secs(seconds);
        let (second, fifth, sixth) = (at(2), at(5), at(6));
        let look = watch.at(at(0), (0, 100, 0), &session);
        assert_eq!((look.done, look.total, look.left), (0, 100, None));
        assert_eq!(watch.at(second, (4, 100, 0), &session).left, None, "too few steps");
        let look = watch.at(fifth, (20, 100, 3 << 20), &session);
        assert_eq!(look.left, Some(Duration::from_secs(20)));
        assert_eq!(look.line(), "3.00 MiB read, peak 0 B of 1.00 MiB, 5 s, about 20 s left");
        let look = watch.at(sixth, (100, 300, 3 << 20), &session);
        assert_eq!((look.left, look.total), (None, 300), "a new segment has begun");
    }

    #[test]
    fn steps_of_runs_that_have_failed_are_not_left() {
        let session = Session::builder().threads(1).build();
        let mut watch = Watch::new(&session);
        (watch.before, watch.segment) = ((10, 1000, 0), (1000, watch.begun, 10));
        let at = |seconds: u64| watch.begun + Duration::from_secs(seconds);
        let (first, fifth) = (at(1), at(5));
        watch.at(first, (10, 1100, 0), &session);
        let look = watch.at(fifth, (60, 1100, 0), &session);
        assert_eq!((look.done, look.total, look.left), (50, 100, Some(Duration::from_secs(4))));
    }

    #[test]
    fn times_are_short() {
        let texts = [0, 59, 60, 200, 7500].map(|seconds| whole_seconds(Duration::from_secs(seconds)));
        assert_eq!(texts, ["0 s", "59 s", "1 min 0 s", "3 min 20 s", "2 h 5 min"]);
    }
}
