//! From program text or builder to a frozen schedule.
//!
//! The front end ([`lang`] for text, [`build`] for operators) makes programs. [`plan_segment`] rewrites a straight-line program, lowers it to
//! relations, evaluates those over block coordinates, orders the tasks and freezes the result. No data and no files are touched here.
#![forbid(unsafe_code)]

pub mod algebra;
pub mod algorithms;
pub mod build;
pub mod cluster;
pub mod contraction_order;
mod cost;
pub mod lang;
mod lower;
mod options;
mod order;
mod partial;
mod pipeline;
mod rewrite;
mod tile;

pub use cost::{KernelWork, flops, op_weight, task_bytes, task_flops};
pub use options::{PlanOptions, ProviderName};
pub use pipeline::{Planned, plan_segment, plan_segment_until};
pub use rewrite::selections::run as dissolve_selections;
