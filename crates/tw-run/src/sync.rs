//! The locks, atomics and threads of the protocol in [`crate::pool`], taken from one place so that they can be exchanged.
//!
//! They are the standard library's. In this crate's own tests with the feature `model-check` they are those of `shuttle`, which runs all threads on
//! one, and asks a scheduler which thread goes on whenever a lock, a condition variable or an atomic is touched. The feature changes nothing
//! outside those tests. A compiler flag (`--cfg`) in its place would build every dependency a second time.

#[cfg(not(all(test, feature = "model-check")))]
mod chosen {
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;

    /// How often an idle thread looks for work before it goes to sleep. With the pauses in between these are some ten microseconds, about what
    /// waking a thread costs. It yields each time: on a busy machine the thread it waits for may need this very core.
    pub(crate) const SEARCH_ROUNDS: usize = 30;
}

#[cfg(all(test, feature = "model-check"))]
mod chosen {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;

    /// Rounds differ in nothing but time, and the model has no clock: one that finds work and one that does not are all cases there are.
    pub(crate) const SEARCH_ROUNDS: usize = 2;
}

pub(crate) use chosen::*;
