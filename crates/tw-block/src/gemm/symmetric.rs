//! Products of a matrix with its own transpose: half of the output is computed, the other half copied.

use super::blocked::Product;
use super::known::Task;
use super::vector::Number;

/// Rows from which on half the work is worth a copy.
const WORTH_COPYING: usize = 24;

/// The copy proceeds by squares of this size, so that the columns that it reads stay in cache.
const SQUARE: usize = 32;

impl<T: Number> Task<'_, T> {
    /// True if the right operand is the transpose of the left one, so that the product and the output are symmetric.
    pub(super) fn is_symmetric(&self) -> bool {
        let ((m, n, _), batch) = (self.dims, self.batch);
        let ((left, left_at), (right, right_at)) = (self.left, self.right);
        let same = std::ptr::eq(left, right)
            && left_at.offset == right_at.offset
            && (left_at.row, left_at.column) == (right_at.column, right_at.row)
            && batch.left == batch.right;
        same && m == n && m >= WORTH_COPYING && (!self.accumulate || self.output_is_symmetric())
    }

    fn output_is_symmetric(&self) -> bool {
        let (out, at) = (&*self.out.0, self.out.1);
        (0..self.batch.n).all(|b| {
            let first = at.offset + b * self.batch.out;
            let value = |i: usize, j: usize| out[first + i * at.row + j * at.column];
            (0..self.dims.0).all(|i| (0..i).all(|j| value(i, j) == value(j, i)))
        })
    }
}

impl<T: Copy> Product<T> {
    /// True if a tile lies wholly below the diagonal of a symmetric product, given its first row and its last column.
    #[inline(always)]
    pub(super) fn is_copied(&self, first_row: usize, last_column: usize) -> bool {
        self.symmetric && first_row > last_column
    }

    /// Copies the upper triangle to the lower one.
    ///
    /// # Safety
    /// Every element of the output lies in memory that no other code accesses. It has as many rows as columns.
    pub(super) unsafe fn copy_across_diagonal(&self) {
        let at = self.out_at;
        for first_row in (0..self.m).step_by(SQUARE) {
            for first_column in (0..=first_row).step_by(SQUARE) {
                for row in first_row..self.m.min(first_row + SQUARE) {
                    for column in first_column..row.min(first_column + SQUARE) {
                        // SAFETY: both numbers are below m, which is n.
                        unsafe {
                            let from = self.out.add(at.offset + column * at.row + row * at.column);
                            *self.out.add(at.offset + row * at.row + column * at.column) = *from;
                        }
                    }
                }
            }
        }
    }
}
