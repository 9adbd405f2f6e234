//! What the user may choose about planning.

/// Bytes of a block where nothing else decides: large enough that overhead vanishes, small enough that several fit into memory.
pub const DEFAULT_BLOCK_BYTES: u64 = 32 << 20;

/// Choices that change a plan. A session fixes them, so its cache of segments need not tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// Rewrite the program first (fusion, contraction order, common subexpressions). Off only to compare.
    pub rewrites: bool,
    /// Tile length for every axis nobody has cut; `None` lets the planner choose by size.
    pub tile: Option<u64>,
    /// Bytes of a block where the planner chooses.
    pub block_bytes: u64,
    /// The kernel provider recorded in the schedule.
    pub provider: String,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions { rewrites: true, tile: None, block_bytes: DEFAULT_BLOCK_BYTES, provider: "none".to_string() }
    }
}
