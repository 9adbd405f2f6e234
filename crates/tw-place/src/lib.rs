//! Placement of a segment on several workers: which worker runs each task, what is transferred, and what that costs.
//!
//! The schedule records sites and transfers. The threads of one machine can run it, and so can the ranks of a cluster.
//!
//! # Data flow
//!
//! ```text
//! Program (rewritten, straight-line)
//!    v  a mesh of workers for each statement, owners for each value    grids
//!    v  cuts such that each block has one owner and each task one worker    grids/cutting
//! Plan, Workflow   as on one machine, but each contribution to a reduction is a task of its own
//!    v  a Scheduler chooses the worker of each task: Assignment    schedulers
//! Expanded         contributions become chains and reduction trees    reductions
//!    v  transfers: Traffic    traffic
//! Simulation       bytes, memory and time of each worker on a Machine    simulate
//! ```
//!
//! For `explain`, [`Placed::terms`] reads a placed plan back as terms of the implementation algebra (`algebra`).
//!
//! # Schedulers
//!
//! `roundrobin`, `pattern` (TensorPlanner) and `lshs` (NumS) place any plan: they take its tiles as given. `algebraic` chooses meshes, cuts and contraction
//! orders together and minimises the bytes through the busiest worker; `timed` minimises the makespan instead. `tdn` is `algebraic` with the
//! distributions that a [`Notation`] fixes. `auto` takes the plan that sends least among those with about the smallest makespan. One simulator scores all of them.
//!
//! # Decisions
//!
//! - **Order of tasks.** Each worker runs the earliest of its tasks, in depth-first order, whose operands have arrived (`eager`). If that exceeds the memory
//!   of a worker, the plain depth-first order is used.
//! - **Reductions are expanded after placement.** Contributions on one worker form a chain. Chains are combined inside each node, then across nodes in a binomial
//!   tree that ends at the home of the block and starts at a different node for each home. So a sum crosses between nodes once per node but one. Where few workers are homes, `algebraic`
//!   sums along paths instead, if there is time: the root of a tree receives one part per round.
//! - **Transfers.** Overlapping regions of a block that one worker reads become one message. Workers that need the same region forward it along a
//!   binomial tree of nodes.
//! - **Segments.** Loops and branches cut a program into segments. [`Before`] describes the values that earlier segments left on workers ([`Homes`]), and the
//!   bytes that stay on each worker throughout. Such inputs keep their tiles, their loads run where the block is, and the search charges only regions that a
//!   worker does not have. A loop body starts from the values of the previous iteration; segments are placed again until no value moves, at most
//!   three times.
//! - **Memory and time.** The peak assumes one task at a time in the global order, with each transfer just before its first reader: a worker must be able to hold
//!   that much. Time comes from a discrete-event simulation that has room for early transfers.
//! - **Lower bounds.** [`Volume`] bounds the bytes of one contraction. For a program, statements that share an array share its weight.
//!
//! # Rejected
//!
//! - Dynamic programming over distributions is exact on trees for additive costs. Here the objective is a maximum over workers, values have several readers,
//!   and a received value is not received again, so few programs qualify.
//! - Logical rewrites in an e-graph: products stay n-ary until `tw_build::contraction_order` proposes the best few orders, and the search chooses among those.

#![forbid(unsafe_code)]

mod algebra;
mod bounds;
mod cluster;
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

pub use algebra::{BestTerm, StatementTerm};
pub use bounds::Volume;
pub use cluster::Cluster;
pub use grids::{DEFAULT_LIMIT, Grids, Owners, SearchReport};
pub use homes::{Before, Homes};
pub use layout::{Layout, Layouts, node_grid};
pub use machine::{Link, MOST_WORKERS, Machine};
pub use mesh::{Mesh, Ownership, part, part_of};
pub use notation::Notation;
pub use placed::{Placed, contributions, place_jointly};
pub use reductions::{Assignment, Expanded, expand};
pub use rivals::{Request, Rivals};
pub use schedulers::{Algebraic, Lshs, Pattern, RoundRobin, Scheduler, SchedulerName};
pub use simulate::{Simulation, TimeInterval, Worker};
pub use sites::Sites;
pub use traffic::{Traffic, Transfer};
