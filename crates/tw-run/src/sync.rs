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
    use std::time::{Duration, Instant};

    /// An idle thread looks for work at least this long before it goes to sleep.
    const SHORTEST: Duration = Duration::from_micros(10);

    /// And at most this long: about what it takes to wake the thread of an idle processor of a virtual machine. A loop of the host that runs one short program after
    /// the other finds its workers awake.
    const LONGEST: Duration = Duration::from_micros(200);

    /// The looks of an idle thread for work: as long as it has worked before, so that looking never takes more than working.
    #[derive(Clone, Copy)]
    pub(crate) struct Stint(Instant);

    impl Stint {
        /// Work begins.
        pub(crate) fn begin() -> Stint {
            Stint(Instant::now())
        }

        /// Work has ended.
        pub(crate) fn looks(self) -> impl Iterator<Item = ()> {
            let now = Instant::now();
            let end = now + (now - self.0).clamp(SHORTEST, LONGEST);
            std::iter::repeat(()).take_while(move |()| Instant::now() < end)
        }
    }
}

#[cfg(all(test, feature = "model-check"))]
mod chosen {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use shuttle::thread;

    /// Looks differ in nothing but time, and the model has no clock: one that finds work and one that does not are all cases there are.
    #[derive(Clone, Copy)]
    pub(crate) struct Stint;

    impl Stint {
        pub(crate) fn begin() -> Stint {
            Stint
        }

        pub(crate) fn looks(self) -> impl Iterator<Item = ()> {
            std::iter::repeat_n((), 2)
        }
    }
}

pub(crate) use chosen::*;
