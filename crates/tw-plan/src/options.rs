//! What the user may choose about planning.

use crate::cluster::Cluster;

/// Choices that change a plan. A session fixes them, so its cache of segments need not tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// Rewrite the program first (fusion, contraction order, common subexpressions). Off only to compare.
    pub rewrites: bool,
    /// Tile length for every axis nobody has cut; `None` lets the planner choose by size.
    pub tile: Option<u64>,
    /// Bytes of a block where the planner chooses; `None` lets the program decide: about 2 MiB where tensors are streamed, 32 MiB where blocks meet
    /// other blocks, as in a matrix product.
    pub block_bytes: Option<u64>,
    /// Plan for these workers instead of one.
    pub cluster: Option<Cluster>,
    /// The kernel provider recorded in the schedule.
    pub provider: String,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions { rewrites: true, tile: None, block_bytes: None, cluster: None, provider: "none".to_string() }
    }
}
