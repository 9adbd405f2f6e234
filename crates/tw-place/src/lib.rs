//! Planning for several workers: where tasks run, what is sent, and what that costs.
//!
//! A [`Scheduler`] places the tasks of a workflow, each contribution to a reduction by itself. [`expand`] turns contributions into chains and trees for
//! that placement. What earlier pieces of a larger program have left with workers is [`Before`]. [`Simulation`] says what the result would do on a [`Machine`], and [`Volume`] how little could be sent at best.

#![forbid(unsafe_code)]

pub mod algebra;
mod bounds;
mod eager;
mod grids;
mod homes;
mod layout;
mod machine;
mod mesh;
mod notation;
mod placed;
mod reductions;
mod rivals;
mod schedulers;
mod simulate;
mod sites;
#[cfg(test)]
mod tests;
mod traffic;

pub use bounds::Volume;
pub use grids::{DEFAULT_LIMIT, Grids, Owners, SearchReport};
pub use homes::{Before, Homes};
pub use layout::{Layout, Layouts, node_grid};
pub use machine::{Link, MOST_WORKERS, Machine};
pub use mesh::{Mesh, Ownership, part, part_of};
pub use notation::Notation;
pub use placed::{Cluster, Placed, contributions, place, place_jointly};
pub use reductions::{Assignment, Expanded, expand};
pub use rivals::Rivals;
pub use schedulers::{Algebraic, Lshs, Pattern, RoundRobin, Scheduler, SchedulerName};
pub use simulate::{Simulation, TimeInterval, Worker};
pub use sites::Sites;
pub use traffic::{Traffic, Transfer};
