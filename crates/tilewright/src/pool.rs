//! The memory that sessions share.
//!
//! A session that was given a budget of its own has a pool of its own. All others of a process share one: the bytes that their results hold and the bytes
//! that their running segments were promised count together, so three sessions at once keep to the budget of one. Between processes, [`processes`] says what others were
//! promised and have not taken yet.

use std::sync::{Arc, Mutex, Weak};

use tw_block::Meter;

use crate::grant::Promises;
use crate::session::lock;

pub(crate) mod processes;

/// What some sessions hold, and what their segments that run now were promised.
#[derive(Default)]
pub(crate) struct Pool {
    /// Of the sessions that share the pool.
    meters: Mutex<Vec<Weak<Meter>>>,
    pub(crate) promises: Promises,
}

/// The pool of a process. A fork begins with an empty one: what its parent has promised is none of its business.
static OF_PROCESS: Mutex<Option<(u32, Arc<Pool>)>> = Mutex::new(None);

impl Pool {
    /// A pool for one session.
    pub(crate) fn alone() -> Arc<Pool> {
        Arc::new(Pool::default())
    }

    /// The pool of all sessions without a budget of their own.
    pub(crate) fn of_process() -> Arc<Pool> {
        let process = std::process::id();
        let mut shared = lock(&OF_PROCESS);
        match &*shared {
            Some((owner, pool)) if *owner == process => pool.clone(),
            _ => shared.insert((process, Arc::default())).1.clone(),
        }
    }

    /// Counts what a session holds from now on.
    pub(crate) fn join(&self, meter: &Arc<Meter>) {
        let mut meters = lock(&self.meters);
        meters.retain(|meter| meter.strong_count() > 0);
        meters.push(Arc::downgrade(meter));
    }

    /// Bytes that the sessions hold now.
    pub(crate) fn held(&self) -> u64 {
        let meters: Vec<Arc<Meter>> = lock(&self.meters).iter().filter_map(Weak::upgrade).collect();
        meters.iter().fold(0, |sum: u64, meter| sum.saturating_add(meter.now()))
    }

    /// Gives storage that sessions keep for later back to the system.
    pub(crate) fn release_kept(&self) {
        let meters: Vec<Arc<Meter>> = lock(&self.meters).iter().filter_map(Weak::upgrade).collect();
        meters.iter().for_each(|meter| meter.release_kept());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sessions_hold_is_counted_together() {
        let pool = Pool::alone();
        let (first, second) = (Meter::new(), Meter::new());
        pool.join(&first);
        pool.join(&second);
        let of_first = first.charge_scratch(100);
        let of_second = second.charge_scratch(20);
        assert_eq!(pool.held(), 120);
        drop(of_first);
        assert_eq!(pool.held(), 20);
        drop(of_second);
        drop(second);
        assert_eq!(pool.held(), 0);
        assert!(Arc::ptr_eq(&Pool::of_process(), &Pool::of_process()));
    }
}
