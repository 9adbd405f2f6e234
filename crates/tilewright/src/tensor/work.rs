//! A guess at how long computing a tensor takes, before anything is planned: in elements that a simple operation touches, each about a nanosecond or two.
//!
//! The guess decides whether a run gets a thread of its own, so that it can be interrupted, and which kept tensor is the cheapest to compute again. It is rather too
//! large than too small.

use tw_block::{Source, SourceAccess};
use tw_ir::program::{IndexStmt, Op, TensorType};

use super::n_elements;

/// What an operation costs however small it is: planning it.
const PER_OPERATION: u64 = 1 << 12;
/// What a block of a given tiling costs however small it is: its tasks are planned and run one by one.
const PER_BLOCK: u64 = 1 << 10;
/// An element of a file, which may be on a slow disk.
const PER_ELEMENT_OF_A_FILE: u64 = 1 << 6;

/// The work of reading a source.
pub(super) fn of_source(source: &dyn Source, n_elements: u64) -> u64 {
    match source.access() {
        SourceAccess::Memory => n_elements,
        SourceAccess::File | SourceAccess::Foreign => n_elements.saturating_mul(PER_ELEMENT_OF_A_FILE),
    }
}

/// The work of an operation, without that of its operands.
pub(super) fn of_operation(op: &Op, operands: &[&TensorType], results: &[TensorType]) -> u64 {
    let elements = results.iter().map(n_elements).fold(0, u64::saturating_add);
    let touched = operands.iter().map(|ty| n_elements(ty)).fold(elements, u64::saturating_add);
    let work = match op {
        Op::Index(stmt) => n_points(stmt).max(elements),
        Op::Gather { .. } | Op::Scatter { .. } | Op::Scan { .. } => touched.saturating_mul(4),
        Op::Sort { .. } => touched.saturating_mul(32),
        // Code of the user may do anything, and a loop may run for any time.
        Op::BlockFn(call) if !call.function.0.is_lasting() => u64::MAX,
        Op::While { .. } | Op::If { .. } => u64::MAX,
        // A factorisation of a matrix of n x n needs about n^3 operations.
        Op::BlockFn(_) => touched.saturating_mul(touched.isqrt().max(1)),
        _ => touched,
    };
    let grids = results.iter().filter_map(|ty| ty.tiling.as_ref()?.grid());
    let blocks = grids.map(|grid| grid.n_blocks().saturating_mul(PER_BLOCK)).fold(PER_OPERATION, u64::saturating_add);
    work.saturating_add(blocks)
}

/// Points of the iteration space of a statement, as far as they are known.
fn n_points(stmt: &IndexStmt) -> u64 {
    stmt.vars.iter().filter_map(|var| var.extent.known()).fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use tw_ir::Axis;

    use crate::Session;

    #[test]
    fn products_and_small_blocks_are_more_work_than_their_elements() {
        let session = Session::new();
        let matrix = session.random_uniform(&[100, 100], 1).unwrap();
        let sum = matrix.add_scalar(1.0).unwrap();
        let product = matrix.matmul(&matrix).unwrap();
        assert!(sum.work() - matrix.work() < 20_000, "{}", sum.work() - matrix.work());
        assert!(product.work() > 1_000_000, "{}", product.work());
        let vector = session.random_uniform(&[1000], 1).unwrap();
        let cut = |tile| vector.rechunk(&[Axis::uniform(1000, tile)]).unwrap().work();
        assert!(cut(1) > 50 * cut(500), "{} {}", cut(1), cut(500));
    }
}
