//! Runs a frozen schedule on the threads of one machine.
//!
//! A [`Prepared`] is a [`Schedule`](tw_ir::schedule::Schedule) with its kernels compiled; it is made once and run any number of times. A [`Runtime`]
//! is a pool of threads; a run borrows them. Data comes in and goes out through [`BlockIo`].
//!
//! What a run promises:
//!
//! * The same bits for any number of threads: contributions to one block are ordered by the schedule, never by time.
//! * A block is dropped by the last task that reads it; outputs are handed to the caller.
//! * With a [budget](RunOptions::budget) blocks never hold more bytes than that, as long as the schedule's own peak fits.
//! * When [`Runtime::run`] returns, whether with results or an error, nothing of the run is left behind in the pool.
//! * A failing or panicking task ends its run with an error that names the statement; the pool lives on.
//!
//! How threads share work, sleep and stop is argued in the documentation of the module `pool`.
#![forbid(unsafe_code)]

mod board;
mod budget;
mod cancel;
mod chaos;
mod events;
mod execute;
mod job;
mod options;
pub mod overhead;
mod pool;
mod prepared;
mod queue;
mod slots;
mod timeline;

pub use cancel::CancelToken;
pub use events::{Observer, Progress};
pub use options::{BlockIo, Outcome, RunOptions, RunStats};
pub use pool::Runtime;
pub use prepared::Prepared;
pub use timeline::{Event, Timeline};
