//! Runs a frozen schedule on the threads of one machine.
//!
//! A [`Prepared`] is a [`Schedule`](tw_ir::schedule::Schedule) with its kernels compiled; it is made once and run any number of times. A [`Runtime`]
//! is a pool of threads; a run borrows them. [`Serial`] runs step by step; both are an [`Engine`]. Data comes in from the sources of its
//! [`Bindings`] and goes out to their sinks; results are [`TensorHandle`]s.
//!
//! What a run promises:
//!
//! * The same bits for any number of threads: contributions to one block are ordered by the schedule, never by time.
//! * A block is dropped by the last task that reads it; outputs are handed to the caller.
//! * Blocks never hold more bytes than the schedule's own peak and what a run may [run ahead by](RunOptions::ahead).
//! * When [`Engine::run`] returns, whether with results or an error, nothing of the run is left behind in the pool.
//! * A failing or panicking task ends its run with an error that names the statement; the pool lives on.
//!
//! ```
//! use std::sync::Arc;
//! use tw_block::provider;
//! use tw_ir::{Error, schedule::Schedule};
//! use tw_run::{Bindings, Engine, Prepared, RunOptions, Runtime, overhead::overhead_workflow};
//!
//! let workflow = overhead_workflow(100, 4)?; // four chains of 25 tasks
//! let order = workflow.tasks().collect();
//! let prepared = Prepared::new(Arc::new(Schedule::freeze(workflow, order, provider())?))?;
//! let outcome = Runtime::new(2).run(&prepared, &Bindings::default(), &RunOptions::default())?;
//! let result = outcome.outputs[0].as_ref().ok_or_else(|| Error::internal("no blocks"))?;
//! assert_eq!(result.blocks().len(), 4);
//! assert_eq!(result.to_array()?.to_f64_vec(), [25.0; 4]);
//! # Ok::<(), Error>(())
//! ```
//!
//! How threads share work, sleep and stop is argued in the documentation of the module `pool`.
#![forbid(unsafe_code)]

// Helpers that the tests of this crate share with those outside it name it from outside.
#[cfg(test)]
extern crate self as tw_run;

mod bindings;
mod board;
mod budget;
mod cancel;
mod chaos;
mod delivery;
mod engine;
mod events;
mod exchange;
mod execute;
mod handle;
mod job;
mod keep;
mod lane;
mod options;
pub mod overhead;
mod part;
mod pool;
mod prepared;
mod queue;
mod ranks;
mod rest;
mod slots;
mod sync;
mod timeline;
mod transfer;

pub use bindings::Bindings;
pub use budget::{run_ahead, run_ahead_of};
pub use cancel::CancelToken;
pub use engine::{Claim, Engine, Fetch, Group, Serial};
pub use events::{MoveKind, Moved, Observer, Progress};
pub use handle::{BlockHandle, Freed, Pins, TensorHandle};
pub use keep::{Keep, Keeper};
pub use options::{Outcome, OutputForm, RunOptions, RunStats};
pub use pool::Runtime;
pub use prepared::Prepared;
pub use ranks::{Ranks, bring};
pub use rest::KeptTask;
pub use timeline::{Timeline, TimelineEvent};
