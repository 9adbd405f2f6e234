//! Upper bounds on what the functions allocate, whether a library or `faer` does the work.
//!
//! The factors before sizes are rounded up from what `crates/tw-test/tests/scratch.rs` measures; that test fails if an allocation exceeds its bound, and if a bound
//! is far too large.

use tw_ir::DType;
use tw_ir::workflow::BlockShape;

/// The sizes of one call for one matrix, in numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Rows and columns of the first operand.
    rows: u64,
    columns: u64,
    /// All operands.
    operands: u64,
    /// All results.
    results: u64,
}

impl Sizes {
    /// Blocks of columns that libraries and `faer` work with. Those of small matrices do not count.
    fn panels(self) -> u64 {
        (PANEL * self.shorter() + 4 * (self.rows + self.columns)).min(2 * self.operands)
    }

    fn shorter(self) -> u64 {
        self.rows.min(self.columns)
    }
}

/// Columns of a panel and a little more.
const PANEL: u64 = 80;

/// How many numbers a function allocates for each matrix.
pub(super) type Numbers = fn(Sizes) -> u64;

/// Bytes that a call takes: a copy of operands in single precision, and what each matrix takes in turn.
pub(super) fn bytes(numbers: Numbers, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
    let is_complex = operands.iter().any(|operand| operand.dtype.is_complex());
    let size = if is_complex { DType::C128.size() } else { DType::F64.size() };
    let is_narrow = |operand: &&BlockShape| operand.dtype.size() < size;
    let converted = operands.iter().filter(is_narrow).map(BlockShape::n_elements).sum::<u64>();
    let Some([.., rows, columns]) = operands.first().map(|operand| &operand.extents[..]) else { return 0 };
    let n_matrices = operands[0].n_elements().checked_div(rows.saturating_mul(*columns)).unwrap_or(0).max(1);
    let of_one = |blocks: &[BlockShape]| blocks.iter().map(|block| block.n_elements() / n_matrices).sum::<u64>();
    let sizes = Sizes { rows: *rows, columns: *columns, operands: of_one(operands), results: of_one(results) };
    numbers(sizes).saturating_add(converted).saturating_mul(size)
}

/// LU factors, which take the place of a copy.
pub(super) fn pivoted(sizes: Sizes) -> u64 {
    sizes.operands + sizes.panels()
}

/// Cholesky factors.
pub(super) fn factors(sizes: Sizes) -> u64 {
    4 * sizes.operands + sizes.panels()
}

pub(super) fn orthogonal(sizes: Sizes) -> u64 {
    9 * sizes.operands / 4 + 4 * sizes.shorter() * sizes.columns + sizes.panels()
}

pub(super) fn reflectors(sizes: Sizes) -> u64 {
    orthogonal(sizes) + sizes.results
}

pub(super) fn product(sizes: Sizes) -> u64 {
    sizes.results + sizes.panels()
}

pub(super) fn solution(sizes: Sizes) -> u64 {
    4 * sizes.operands + 3 * sizes.results + sizes.panels()
}

pub(super) fn triangle(sizes: Sizes) -> u64 {
    sizes.operands + 2 * sizes.results + sizes.panels()
}

pub(super) fn singular_values(sizes: Sizes) -> u64 {
    3 * sizes.operands + 2 * sizes.results + 10 * sizes.shorter() * sizes.shorter() + sizes.panels()
}

/// Without vectors.
pub(super) fn singular_values_alone(sizes: Sizes) -> u64 {
    3 * sizes.operands + 3 * sizes.shorter() * sizes.shorter() + sizes.panels()
}

pub(super) fn eigenvalues(sizes: Sizes) -> u64 {
    6 * sizes.operands + 2 * sizes.results + sizes.panels()
}

/// Of matrices that need not be self-adjoint.
pub(super) fn any_eigenvalues(sizes: Sizes) -> u64 {
    12 * sizes.operands + 4 * sizes.results + sizes.panels()
}
