//! The loops around tiles: operands are cut so that reused parts stay in cache, and packed where that pays.
//!
//! None of the sizes here shows in the bits, but for the length of partial sums, which depends on the element type and the number of terms
//! alone. Every element of the output is computed by the same operations in the same order, wherever it lies and however operands are stored.

use super::Matrix;
use super::pack::{Lines, Packed, pack, with_packed};
use super::semiring::Semiring;
use super::thin;
use super::tile::{Factors, Target, tile};
use super::vector::{Number, Portable, Vector};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, Avx512};

/// Bytes of packed rows, which stay in the second cache, and of packed columns, which stay in the third.
const LEFT_BYTES: usize = 256 << 10;
const RIGHT_BYTES: usize = 2 << 20;

/// Tiles of rows from which on packing columns pays.
const WORTH_PACKING: usize = 4;

/// A product whose matrices are known to lie in their slices.
#[derive(Clone, Copy)]
pub(super) struct Product<T> {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) out: *mut T,
    pub(super) out_at: Matrix,
    pub(super) left: *const T,
    pub(super) left_at: Matrix,
    pub(super) right: *const T,
    pub(super) right_at: Matrix,
    pub(super) accumulate: bool,
    pub(super) batch: Batch,
    /// True if the product is known to be symmetric, and so is the output if it accumulates.
    pub(super) symmetric: bool,
}

/// Products of equal size at equal distances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// How many.
    pub(crate) n: usize,
    /// From output to output.
    pub(crate) out: usize,
    /// From left operand to left operand.
    pub(crate) left: usize,
    /// From right operand to right operand.
    pub(crate) right: usize,
}

impl Batch {
    /// A single product.
    pub(crate) const ONE: Batch = Batch { n: 1, out: 0, left: 0, right: 0 };
}

/// Which version of the code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Version {
    /// The versions that this processor can run, the best one last.
    pub(super) fn available() -> Vec<Version> {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
            if has_avx2 && std::arch::is_x86_feature_detected!("avx512f") {
                return vec![Version::Portable, Version::Avx2, Version::Avx512];
            }
            if has_avx2 {
                return vec![Version::Portable, Version::Avx2];
            }
        }
        vec![Version::Portable]
    }

    /// The best version.
    pub(super) fn best() -> Version {
        static BEST: std::sync::OnceLock<Version> = std::sync::OnceLock::new();
        *BEST.get_or_init(|| Version::available().last().copied().unwrap_or(Version::Portable))
    }
}

/// Computes products, with ways of their own for small and thin ones and for the widest vectors.
///
/// # Safety
/// Every element of the three matrices lies in memory that can be read, and for `out` written by nobody else. Elements of `out` are distinct. The
/// processor can run the version.
pub(super) unsafe fn run_shaped<S: Semiring>(version: Version, semiring: S, product: Product<S::Element>) {
    with_packed(|packed| {
        // SAFETY: the caller vouches for the matrices and for the processor.
        unsafe {
            match version {
                Version::Portable => shaped_portable(semiring, product, packed),
                #[cfg(target_arch = "x86_64")]
                Version::Avx2 => shaped_avx2(semiring, product, packed),
                #[cfg(target_arch = "x86_64")]
                Version::Avx512 => shaped_avx512(semiring, product, packed),
            }
        }
    });
}

/// As [`run_shaped`], for vectors that take two registers.
///
/// # Safety
/// As for [`run_shaped`].
pub(super) unsafe fn run_split<S: Semiring>(version: Version, semiring: S, product: Product<S::Element>) {
    with_packed(|packed| {
        // SAFETY: the caller vouches for the matrices and for the processor.
        unsafe {
            match version {
                Version::Portable => shaped_portable(semiring, product, packed),
                #[cfg(target_arch = "x86_64")]
                Version::Avx2 => split_avx2(semiring, product, packed),
                #[cfg(target_arch = "x86_64")]
                Version::Avx512 => split_avx512(semiring, product, packed),
            }
        }
    });
}

/// Computes products in one way for all sizes, which takes less code.
///
/// # Safety
/// As for [`run_shaped`].
pub(super) unsafe fn run_plain<S: Semiring>(version: Version, semiring: S, product: Product<S::Element>) {
    with_packed(|packed| {
        // SAFETY: the caller vouches for the matrices and for the processor. What has AVX-512 has AVX2.
        unsafe {
            match version {
                Version::Portable => plain_portable(semiring, product, packed),
                #[cfg(target_arch = "x86_64")]
                Version::Avx2 | Version::Avx512 => plain_avx2(semiring, product, packed),
            }
        }
    });
}

macro_rules! versions {
    ($($name:ident [$($feature:literal)?] $loops:ident $isa:ident $rows:literal $vectors:literal;)*) => {
        $($(#[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $feature)])?
        unsafe fn $name<S: Semiring>(semiring: S, product: Product<S::Element>, packed: &mut Packed) {
            // SAFETY: the caller vouches for the matrices and for the instructions.
            unsafe { $loops::<S, <S::Element as Number>::Vector<$isa>, $rows, $vectors>(semiring, product, packed) }
        })*
    };
}
// Tiles that fill the registers, but for those that hold a row and the columns.
versions! {
    shaped_portable [] shaped Portable 4 1;
    shaped_avx2 ["avx2,fma"] shaped Avx2 6 2;
    shaped_avx512 ["avx512f,avx2,fma"] shaped Avx512 12 2;
    split_avx2 ["avx2,fma"] shaped Avx2 6 1;
    split_avx512 ["avx512f,avx2,fma"] shaped Avx512 12 1;
    plain_portable [] plain Portable 4 1;
    plain_avx2 ["avx2,fma"] plain Avx2 6 2;
}

/// The products of a batch, each in the way that suits its shape.
///
/// # Safety
/// As for [`run_shaped`], for the registers `V`.
#[inline(always)]
unsafe fn shaped<S, V, const ROWS: usize, const VECTORS: usize>(
    semiring: S,
    mut product: Product<S::Element>,
    packed: &mut Packed,
) where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let Product { m, n, k, batch, .. } = product;
    // No closures here: they would not be compiled for the instruction set of the caller.
    for _ in 0..batch.n {
        // SAFETY: the caller vouches for every product of the batch.
        unsafe {
            if thin::is_small(m, n, k) {
                thin::small::<S, V>(semiring, product);
            } else if m == 1 && product.right_at.column == 1 {
                thin::row_times_matrix::<S, V>(semiring, product);
            } else if n <= 2 * V::LANES {
                thin::narrow::<S, V, ROWS>(semiring, product, packed);
            } else {
                blocks::<S, V, ROWS, VECTORS>(semiring, product, packed);
            }
        }
        product.advance();
    }
}

/// The products of a batch.
///
/// # Safety
/// As for [`run_shaped`], for the registers `V`.
#[inline(always)]
unsafe fn plain<S, V, const ROWS: usize, const VECTORS: usize>(
    semiring: S,
    mut product: Product<S::Element>,
    packed: &mut Packed,
) where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    for _ in 0..product.batch.n {
        // SAFETY: the caller vouches for every product of the batch.
        unsafe { blocks::<S, V, ROWS, VECTORS>(semiring, product, packed) };
        product.advance();
    }
}

/// The three loops over blocks.
///
/// # Safety
/// As for [`run_shaped`], for the registers `V`.
#[inline(always)]
unsafe fn blocks<S, V, const ROWS: usize, const VECTORS: usize>(
    semiring: S,
    product: Product<S::Element>,
    packed: &mut Packed,
) where
    S: Semiring,
    V: Vector<Element = S::Element>,
{
    let Product { m, n, k, left_at, right_at, out_at, .. } = product;
    let width = VECTORS * V::LANES;
    let pack_right = right_at.column != 1 || m > WORTH_PACKING * ROWS;
    let longest = partial_sum::<S::Element>(k);
    let most = |bytes: usize, unit: usize| {
        let fits = bytes / (longest * size_of::<S::Element>());
        (fits - fits % unit).max(unit)
    };
    let (most_rows, most_columns) = (most(LEFT_BYTES, ROWS), most(RIGHT_BYTES, width));
    let n_left = most_rows.min(m.next_multiple_of(ROWS)) * longest;
    let n_right = if pack_right { most_columns.min(n.next_multiple_of(width)) } else { width } * longest;
    let (left_room, right_room) = packed.room::<S::Element>(n_left, n_right);
    for column in (0..n).step_by(most_columns) {
        let columns = most_columns.min(n - column);
        // Columns before this one are read where they lie.
        let first_packed = if pack_right { 0 } else { columns - columns % width };
        for term in (0..k).step_by(longest) {
            let terms = longest.min(k - term);
            let accumulate = product.accumulate || term > 0;
            // SAFETY: offsets of rows, columns and terms below m, n and k lie in their matrices. Packing memory was sized above.
            unsafe {
                let right = product.right.add(right_at.offset + column * right_at.column + term * right_at.row);
                let lines = Lines {
                    first: right.wrapping_add(first_packed * right_at.column),
                    line: right_at.column,
                    term: right_at.row,
                    n_lines: columns - first_packed,
                    n_terms: terms,
                };
                pack(lines, width, right_room);
                for row in (0..m).step_by(most_rows) {
                    let rows = most_rows.min(m - row);
                    let left = product.left.add(left_at.offset + row * left_at.row + term * left_at.column);
                    let lines =
                        Lines { first: left, line: left_at.row, term: left_at.column, n_lines: rows, n_terms: terms };
                    pack(lines, ROWS, left_room);
                    let out = product.out.add(out_at.offset + row * out_at.row + column * out_at.column);
                    for j in (0..columns).step_by(width) {
                        let (right, right_term) = if j < first_packed {
                            (right.add(j * right_at.column), right_at.row)
                        } else {
                            (right_room.add((j - first_packed) * terms).cast_const(), width)
                        };
                        for i in (0..rows).step_by(ROWS) {
                            if product.is_copied(row + i, column + width.min(columns - j) + j - 1) {
                                break;
                            }
                            let target = Target {
                                first: out.add(i * out_at.row + j * out_at.column),
                                row: out_at.row,
                                column: out_at.column,
                                rows: ROWS.min(rows - i),
                                columns: width.min(columns - j),
                                accumulate,
                            };
                            let factors = Factors {
                                terms,
                                left: left_room.add(i * terms).cast_const(),
                                left_row: 1,
                                left_term: ROWS,
                                right,
                                right_term,
                            };
                            tile::<S, V, ROWS, VECTORS, true>(semiring, factors, target);
                        }
                    }
                }
            }
        }
    }
    if product.symmetric {
        // SAFETY: the caller vouches for the output, and symmetric products have as many rows as columns.
        unsafe { product.copy_across_diagonal() };
    }
}

/// How many terms are summed before they are added to the output: equal parts, none longer than the type's.
pub(super) fn partial_sum<T: Number>(k: usize) -> usize {
    k.div_ceil(k.div_ceil(T::TERMS).max(1)).max(1)
}

impl<T: Copy> Product<T> {
    /// True if rows and columns had better change places, as they may: the operations of all semirings here commute.
    pub(super) fn is_better_transposed(&self) -> bool {
        match (self.m, self.n) {
            // A matrix times a column reads the matrix along its rows, a row times a matrix as well.
            (_, 1) => self.left_at.row == 1 && self.left_at.column != 1,
            (1, _) => self.right_at.column != 1,
            // Columns of the output are neighbours.
            _ => self.out_at.row == 1 && self.out_at.column != 1,
        }
    }

    /// Moves on to the next product of the batch.
    #[inline(always)]
    fn advance(&mut self) {
        self.out_at.offset += self.batch.out;
        self.left_at.offset += self.batch.left;
        self.right_at.offset += self.batch.right;
    }

    /// The same product of transposed matrices.
    pub(super) fn transposed(self) -> Product<T> {
        Product {
            m: self.n,
            n: self.m,
            out_at: self.out_at.transposed(),
            left: self.right,
            left_at: self.right_at.transposed(),
            right: self.left,
            right_at: self.left_at.transposed(),
            batch: Batch { left: self.batch.right, right: self.batch.left, ..self.batch },
            ..self
        }
    }
}
