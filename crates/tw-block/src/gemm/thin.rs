//! Products that do not pay for packing: small ones, those with few columns, and a row times a matrix.
//!
//! Terms are added in the same order as elsewhere, so that no size is special in its bits.

use std::mem::MaybeUninit;

use super::blocked::{Product, partial_sum};
use super::pack::{Lines, Packed, pack};
use super::semiring::Semiring;
use super::tile::{Factors, Target, tile};
use super::vector::Vector;

/// Most rows, columns or terms of a small product.
const SMALL: usize = 16;

/// Rows of a tile of a small product.
const ROWS: usize = 4;

/// Columns whose sums stay in the nearest cache.
const COLUMNS: usize = 512;

/// Terms that are added to a sum before it is written.
const UNROLLED: usize = 4;

/// True for products that [`small`] computes.
#[inline(always)]
pub(super) fn is_small(m: usize, n: usize, k: usize) -> bool {
    m <= SMALL && n <= SMALL && k <= SMALL
}

/// A small product: the right operand is copied into columns that fill vectors, the left one is read where it lies.
///
/// # Safety
/// As for [`super::blocked::run_shaped`], for the registers `V`, and the product is small.
#[inline(always)]
pub(super) unsafe fn small<S, V>(semiring: S, product: Product<S::Element>)
where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let Product { m, n, k, out_at, left_at, right_at, .. } = product;
    // With room for columns that fill the last vector.
    let mut columns = [[MaybeUninit::<S::Element>::uninit(); 2 * SMALL]; SMALL];
    const { assert!((2 * SMALL).is_multiple_of(V::LANES)) };
    let width = n.next_multiple_of(V::LANES);
    // SAFETY: rows, columns and terms below m, n and k lie in their matrices. The copy has room for k terms of `width` columns: both m and n are at
    // most `SMALL`, and twice that many columns are whole vectors.
    unsafe {
        let right = product.right.add(right_at.offset);
        for (term, line) in columns.iter_mut().enumerate().take(k) {
            for (column, to) in line.iter_mut().enumerate().take(width) {
                let from = right.add(term * right_at.row + column.min(n - 1) * right_at.column);
                to.write(*from);
            }
        }
        let copied = columns.as_ptr().cast::<S::Element>();
        for row in (0..m).step_by(ROWS) {
            for column in (0..n).step_by(V::LANES) {
                let factors = Factors {
                    terms: k,
                    left: product.left.add(left_at.offset + row * left_at.row),
                    left_row: left_at.row,
                    left_term: left_at.column,
                    right: copied.add(column),
                    right_term: 2 * SMALL,
                };
                let target = Target {
                    first: product.out.add(out_at.offset + row * out_at.row + column * out_at.column),
                    row: out_at.row,
                    column: out_at.column,
                    rows: ROWS.min(m - row),
                    columns: V::LANES.min(n - column),
                    accumulate: product.accumulate,
                };
                tile::<S, V, ROWS, 1, false>(semiring, factors, target);
            }
        }
    }
}

/// A product with few columns: these are packed, and rows are read where they lie.
///
/// # Safety
/// As for [`super::blocked::run_shaped`], for the registers `V`.
#[inline(always)]
pub(super) unsafe fn narrow<S, V, const ROWS: usize>(semiring: S, product: Product<S::Element>, packed: &mut Packed)
where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let Product { m, n, k, out_at, left_at, right_at, .. } = product;
    let longest = partial_sum::<S::Element>(k);
    let (_, columns) = packed.room::<S::Element>(0, longest * n.next_multiple_of(V::LANES));
    for term in (0..k).step_by(longest) {
        let terms = longest.min(k - term);
        // SAFETY: rows, columns and terms below m, n and k lie in their matrices, and the packed columns have the room they need.
        unsafe {
            let lines = Lines {
                first: product.right.add(right_at.offset + term * right_at.row),
                line: right_at.column,
                term: right_at.row,
                n_lines: n,
                n_terms: terms,
            };
            pack(lines, V::LANES, columns);
            for row in (0..m).step_by(ROWS) {
                for column in (0..n).step_by(V::LANES) {
                    let factors = Factors {
                        terms,
                        left: product.left.add(left_at.offset + row * left_at.row + term * left_at.column),
                        left_row: left_at.row,
                        left_term: left_at.column,
                        right: columns.add(column * terms).cast_const(),
                        right_term: V::LANES,
                    };
                    let target = Target {
                        first: product.out.add(out_at.offset + row * out_at.row + column * out_at.column),
                        row: out_at.row,
                        column: out_at.column,
                        rows: ROWS.min(m - row),
                        columns: V::LANES.min(n - column),
                        accumulate: product.accumulate || term > 0,
                    };
                    tile::<S, V, ROWS, 1, false>(semiring, factors, target);
                }
            }
        }
    }
}

/// One row times a matrix whose columns are neighbours: the matrix is read once, along its rows.
///
/// # Safety
/// As for [`super::blocked::run_shaped`], for the registers `V`.
#[inline(always)]
pub(super) unsafe fn row_times_matrix<S, V>(semiring: S, product: Product<S::Element>)
where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let Product { n, k, out_at, left_at, right_at, .. } = product;
    let longest = partial_sum::<S::Element>(k);
    let mut sums = [semiring.identity(); COLUMNS];
    for first in (0..n).step_by(COLUMNS) {
        let columns = COLUMNS.min(n - first);
        for start in (0..k).step_by(longest) {
            let end = k.min(start + longest);
            sums.fill(semiring.identity());
            // SAFETY: terms below k and columns below n lie in their matrices.
            unsafe {
                let left = |term: usize| *product.left.add(left_at.offset + term * left_at.column);
                let right = |term: usize| product.right.add(right_at.offset + term * right_at.row + first);
                let mut term = start;
                while term + UNROLLED <= end {
                    let rows: [_; UNROLLED] = std::array::from_fn(|k| (left(term + k), right(term + k)));
                    add_rows::<S, V, UNROLLED>(semiring, rows, &mut sums[..columns]);
                    term += UNROLLED;
                }
                for term in term..end {
                    add_rows::<S, V, 1>(semiring, [(left(term), right(term))], &mut sums[..columns]);
                }
                for (column, &sum) in sums[..columns].iter().enumerate() {
                    let at = product.out.add(out_at.offset + (first + column) * out_at.column);
                    *at = if product.accumulate || start > 0 { semiring.plus(*at, sum) } else { sum };
                }
            }
        }
    }
}

/// Adds factors times rows to sums, one row after the other.
///
/// # Safety
/// Rows are good for reading as many elements as there are sums, and the processor has the registers `V`.
#[inline(always)]
unsafe fn add_rows<S, V, const N: usize>(
    semiring: S,
    rows: [(S::Element, *const S::Element); N],
    sums: &mut [S::Element],
) where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let mut done = 0;
    while done + V::LANES <= sums.len() {
        // SAFETY: `LANES` elements from `done` on exist in the sums and in every row.
        unsafe {
            let at = sums.as_mut_ptr().add(done);
            let mut sum = V::load(at);
            for (factor, row) in rows {
                sum = semiring.step(sum, V::splat(factor), V::load(row.add(done)));
            }
            sum.store(at);
        }
        done += V::LANES;
    }
    for (column, sum) in sums.iter_mut().enumerate().skip(done) {
        for (factor, row) in rows {
            // SAFETY: rows are as long as there are sums.
            *sum = semiring.step(*sum, factor, unsafe { *row.add(column) });
        }
    }
}
