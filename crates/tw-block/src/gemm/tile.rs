//! The innermost loop: a tile of the output that stays in registers while all terms are added to it.

use std::mem::MaybeUninit;

use super::semiring::Semiring;
use super::vector::Vector;

/// More elements than any tile has.
const LARGEST_TILE: usize = 1024;

/// The operands of a product.
#[derive(Clone, Copy)]
pub(super) struct Factors<T> {
    /// How many terms.
    pub(super) terms: usize,
    /// The first element of the rows.
    pub(super) left: *const T,
    /// From row to row, unless the rows are packed.
    pub(super) left_row: usize,
    /// From term to term, unless the rows are packed.
    pub(super) left_term: usize,
    /// The first element of the columns, which are neighbours.
    pub(super) right: *const T,
    /// From term to term.
    pub(super) right_term: usize,
}

/// Where a tile goes.
#[derive(Clone, Copy)]
pub(super) struct Target<T> {
    pub(super) first: *mut T,
    pub(super) row: usize,
    pub(super) column: usize,
    /// Rows and columns that exist; the rest of the tile is dropped.
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// True if the output holds something that the tile is added to.
    pub(super) accumulate: bool,
}

/// Computes one tile of `ROWS` rows and `VECTORS` vectors of columns. Packed rows lie together, term by term.
///
/// # Safety
/// The processor has the registers `V`. For every term, `right` is good for reading a whole tile of columns, and `left` for `ROWS` rows if they
/// are packed, else for `target.rows`. The target is good for its rows and columns. There is at least one row, and `ROWS` is enough.
#[inline(always)]
pub(super) unsafe fn tile<S, V, const ROWS: usize, const VECTORS: usize, const PACKED: bool>(
    semiring: S,
    factors: Factors<S::Element>,
    target: Target<S::Element>,
) where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let Factors { terms, mut left, left_row, left_term, mut right, right_term } = factors;
    let mut rows = [0; ROWS];
    for (row, at) in rows.iter_mut().enumerate() {
        // Rows beyond the last repeat it: their results are dropped.
        *at = if PACKED { row } else { row.min(target.rows - 1) * left_row };
    }
    let left_term = if PACKED { ROWS } else { left_term };
    if target.accumulate && target.column == 1 {
        for row in 0..ROWS {
            prefetch(target.first.wrapping_add(row * target.row));
        }
    }
    // SAFETY: the caller vouches for the registers, and for all elements read.
    let sums = unsafe {
        let identity = V::splat(semiring.identity());
        let mut sums = [[identity; VECTORS]; ROWS];
        for _ in 0..terms {
            let mut columns = [identity; VECTORS];
            for (vector, column) in columns.iter_mut().enumerate() {
                *column = V::load(right.add(vector * V::LANES));
            }
            for (sums, at) in sums.iter_mut().zip(rows) {
                let row = V::splat(*left.add(at));
                for (sum, column) in sums.iter_mut().zip(columns) {
                    *sum = semiring.step(*sum, row, column);
                }
            }
            left = left.wrapping_add(left_term);
            right = right.wrapping_add(right_term);
        }
        sums
    };
    if target.column == 1 && target.columns == VECTORS * V::LANES {
        for (row, sums) in sums.iter().enumerate() {
            if row >= target.rows {
                break;
            }
            for (vector, &sum) in sums.iter().enumerate() {
                // SAFETY: the row exists, and so do all columns; they are neighbours.
                unsafe {
                    let at = target.first.add(row * target.row + vector * V::LANES);
                    let sum = if target.accumulate { semiring.plus(V::load(at), sum) } else { sum };
                    sum.store(at);
                }
            }
        }
        return;
    }
    const { assert!(ROWS * VECTORS * V::LANES <= LARGEST_TILE) };
    let mut spread = [MaybeUninit::<S::Element>::uninit(); LARGEST_TILE];
    let spread = spread.as_mut_ptr().cast::<S::Element>();
    for (row, sums) in sums.iter().enumerate() {
        for (vector, sum) in sums.iter().enumerate() {
            // SAFETY: the array has room for the tile, by the assertion.
            unsafe { sum.store(spread.add((row * VECTORS + vector) * V::LANES)) }
        }
    }
    for row in 0..target.rows {
        for column in 0..target.columns {
            // SAFETY: the element of the target exists, and that of the array was written above.
            unsafe {
                let at = target.first.add(row * target.row + column * target.column);
                let sum = *spread.add(row * VECTORS * V::LANES + column);
                *at = if target.accumulate { semiring.plus(*at, sum) } else { sum };
            }
        }
    }
}

/// Asks for the cache line at an address, which need not exist, so that the line is in cache when it is read again at the end.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing, and every processor of this kind can do it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
