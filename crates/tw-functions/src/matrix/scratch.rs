//! Upper bounds on what the functions allocate, whether a library or `faer` does the work.
//!
//! The factors before sizes are rounded up from what `crates/tw-test/tests/scratch.rs` measures; that test fails if an allocation exceeds its bound, and if a bound
//! is far too large.

use tw_ir::DType;
use tw_ir::workflow::BlockShape;

/// The sizes of one call for one matrix, in numbers. They may come from a plan that nobody has checked: none exceeds [`MOST`], so that bounds do not overflow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Rows and columns of the first operand.
    rows: u128,
    columns: u128,
    /// All operands.
    operands: u128,
    /// All results.
    results: u128,
}

/// More numbers than any memory holds.
const MOST: u64 = 1 << 60;

impl Sizes {
    /// Blocks of columns that libraries and `faer` work with. Those of small matrices do not count.
    fn panels(self) -> u128 {
        (PANEL * self.shorter() + 4 * (self.rows + self.columns)).min(2 * self.operands)
    }

    fn shorter(self) -> u128 {
        self.rows.min(self.columns)
    }
}

/// Columns of a panel and a little more.
const PANEL: u128 = 80;

/// How many numbers a function allocates for each matrix.
pub(super) type Numbers = fn(Sizes) -> u128;

/// Bytes that a call takes: a copy of operands in single precision, and what each matrix takes in turn.
pub(super) fn bytes(numbers: Numbers, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
    let is_complex = operands.iter().any(|operand| operand.dtype.is_complex());
    let size = if is_complex { DType::C128.size() } else { DType::F64.size() };
    let is_narrow = |operand: &&BlockShape| operand.dtype.size() < size;
    let Some([.., rows, columns]) = operands.first().map(|operand| &operand.extents[..]) else { return 0 };
    let n_matrices = operands[0].n_elements().checked_div(rows.saturating_mul(*columns)).unwrap_or(0).max(1);
    let converted = sum(operands.iter().filter(is_narrow).map(BlockShape::n_elements));
    let of_one = |blocks: &[BlockShape]| sum(blocks.iter().map(|block| block.n_elements() / n_matrices));
    let [rows, columns, operands, results] =
        [*rows, *columns, of_one(operands), of_one(results)].map(|n| u128::from(n.min(MOST)));
    let sizes = Sizes { rows, columns, operands, results };
    let numbers = u64::try_from(numbers(sizes)).unwrap_or(u64::MAX);
    numbers.saturating_add(converted).saturating_mul(size)
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// LU factors, which take the place of a copy.
pub(super) fn pivoted(sizes: Sizes) -> u128 {
    sizes.operands + sizes.panels()
}

/// Cholesky factors.
pub(super) fn factors(sizes: Sizes) -> u128 {
    4 * sizes.operands + sizes.panels()
}

pub(super) fn orthogonal(sizes: Sizes) -> u128 {
    9 * sizes.operands / 4 + 4 * sizes.shorter() * sizes.columns + sizes.panels()
}

pub(super) fn reflectors(sizes: Sizes) -> u128 {
    orthogonal(sizes) + sizes.results
}

pub(super) fn product(sizes: Sizes) -> u128 {
    sizes.results + sizes.panels()
}

pub(super) fn solution(sizes: Sizes) -> u128 {
    4 * sizes.operands + 3 * sizes.results + sizes.panels()
}

pub(super) fn triangle(sizes: Sizes) -> u128 {
    sizes.operands + 2 * sizes.results + sizes.panels()
}

pub(super) fn singular_values(sizes: Sizes) -> u128 {
    3 * sizes.operands + 2 * sizes.results + 10 * sizes.shorter() * sizes.shorter() + sizes.panels()
}

/// Without vectors.
pub(super) fn singular_values_alone(sizes: Sizes) -> u128 {
    3 * sizes.operands + 3 * sizes.shorter() * sizes.shorter() + sizes.panels()
}

pub(super) fn eigenvalues(sizes: Sizes) -> u128 {
    6 * sizes.operands + 2 * sizes.results + sizes.panels()
}

/// Of matrices that need not be self-adjoint.
pub(super) fn any_eigenvalues(sizes: Sizes) -> u128 {
    12 * sizes.operands + 4 * sizes.results + sizes.panels()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_no_machine_has_do_not_overflow() {
        let all: [Numbers; 10] = [
            factors,
            orthogonal,
            reflectors,
            product,
            solution,
            triangle,
            singular_values,
            singular_values_alone,
            eigenvalues,
            any_eigenvalues,
        ];
        let huge = [u64::MAX, 1 << 62, 1 << 32, 3, 0];
        for numbers in all {
            for rows in huge {
                for columns in huge {
                    for lead in huge {
                        let block = BlockShape { dtype: DType::F32, extents: vec![lead, rows, columns] };
                        bytes(numbers, &[block.clone(), block.clone()], &[block.clone(), block]);
                    }
                }
            }
        }
        let square = |n: u64| BlockShape { dtype: DType::F64, extents: vec![n, n] };
        assert_eq!(bytes(product, &[square(1 << 40), square(1 << 40)], &[square(1 << 40)]), u64::MAX);
        assert!(bytes(product, &[square(8), square(8)], &[square(8)]) < 4096);
    }
}
