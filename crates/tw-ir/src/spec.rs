//! What an operation is at every level: programs, plans and kernels share these descriptions, and a level adds what it alone decides.

use crate::accum::Accum;
use crate::index::Edge;

/// A running aggregate along an axis. What the first element of an exclusive scan sees is an empty group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScanSpec {
    /// What is aggregated; only associativity is used.
    pub accum: Accum,
    /// Along this axis.
    pub axis: u32,
    /// Each element sees only those before it.
    pub exclusive: bool,
    /// From the end towards the start.
    pub reverse: bool,
}

/// Elements that index tensors name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatherSpec {
    /// Gathered axes of data, increasing.
    pub axes: Vec<u32>,
    /// The rule for indices outside the whole tensor.
    pub edge: Edge,
}

/// Contributions to the elements that index tensors name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterSpec {
    /// Scattered axes of the results, increasing.
    pub axes: Vec<u32>,
    /// The rule for indices outside the whole results.
    pub edge: Edge,
    /// How contributions meet; elements without contributions follow its rule for empty groups.
    pub accum: Accum,
}

/// A stable sort along an axis, NaN last. NaNs are equal to each other, and so are zeros of either sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SortSpec {
    /// Along this axis.
    pub axis: u32,
    /// Largest first (and NaN first). Still stable: equal elements keep their order.
    pub descending: bool,
}

/// States of an accumulator become results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FinishSpec {
    /// What is finished.
    pub accum: Accum,
    /// True if the last component of the state is a bool that says whether the group holds anything, appended to the state of `accum`.
    pub tracked: bool,
}
