//! Plans one segment: from a straight-line program to a frozen schedule.
//!
//! [`plan_segment`] rewrites a program, lowers it to relations, evaluates those over block coordinates, orders the tasks and freezes the result. This crate touches
//! neither data nor files. [`Passes`] and the stages beside it serve planners with more freedom, such as the placement planner in `tw-place`.
#![forbid(unsafe_code)]

mod cost;
mod fit;
mod lower;
mod options;
mod order;
mod partial;
mod pipeline;
mod rewrite;
mod tile;

pub use cost::{KernelWork, flops, is_fast_product, op_weight, statement_ops, task_bytes, task_bytes_by, task_flops};
pub use fit::{BudgetTraffic, Fitted, IoMemory, fit, fit_rank, least_bytes, least_bytes_of_rank};
pub use lower::{ChosenCuts, lower, lower_cut};
pub use options::{PlanOptions, ProviderName};
pub use order::{Makers, depth_first};
pub use partial::evaluate_sets;
pub use pipeline::{Lowered, Order, Passes, Planned, Unordered, plan_segment, plan_segment_until};
pub use rewrite::pass_names;
pub use rewrite::selections::run as dissolve_selections;
