//! The matrix product of the provider, behind a checked interface. All that is unsafe about it is here.

use gemm::Parallelism;

/// Terms per call. The provider cuts longer sums by the sizes of the machine's caches, and the cut shows in the last bits; it leaves sums of
/// this length whole.
const LONGEST_SUM: usize = 512;

/// Element types the provider multiplies.
pub(crate) trait Multiply: Copy + 'static {
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
}
impl Multiply for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}
impl Multiply for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}

/// A matrix inside a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    /// Position of the first element.
    pub(crate) offset: usize,
    /// Distance between rows.
    pub(crate) row: usize,
    /// Distance between columns.
    pub(crate) column: usize,
}

impl Matrix {
    /// Panics unless every element of a matrix of the given size lies in a slice of the given length.
    fn check(&self, rows: usize, columns: usize, len: usize) {
        let last = (rows - 1)
            .checked_mul(self.row)
            .zip((columns - 1).checked_mul(self.column))
            .and_then(|(down, across)| self.offset.checked_add(down)?.checked_add(across));
        assert!(last.is_some_and(|last| last < len), "a matrix of {rows} by {columns} leaves its block");
    }
}

/// `out = left * right`, or `out += left * right` if `accumulate`, for matrices of `m` by `k` and `k` by `n`.
///
/// Elements of `out` must be distinct: neither of its distances may be 0 where its size is above 1.
pub(crate) fn multiply<T: Multiply>(
    (m, n, k): (usize, usize, usize),
    (out, out_at): (&mut [T], Matrix),
    (left, left_at): (&[T], Matrix),
    (right, right_at): (&[T], Matrix),
    accumulate: bool,
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    out_at.check(m, n, out.len());
    left_at.check(m, k, left.len());
    right_at.check(k, n, right.len());
    let n_parts = k.div_ceil(LONGEST_SUM);
    let part = k.div_ceil(n_parts);
    for start in (0..k).step_by(part) {
        let read_out = accumulate || start > 0;
        // SAFETY: the three checks above make sure that every element the call reads or writes lies in its slice: row and column numbers are
        // below m, n and k, and distances are not negative. `out` is borrowed mutably, so it overlaps neither operand. Slices of f32 and f64
        // are aligned and initialised, and T is one of these two.
        unsafe {
            gemm::gemm(
                m,
                n,
                part.min(k - start),
                out.as_mut_ptr().add(out_at.offset),
                out_at.column as isize,
                out_at.row as isize,
                read_out,
                left.as_ptr().add(left_at.offset + start * left_at.column),
                left_at.column as isize,
                left_at.row as isize,
                right.as_ptr().add(right_at.offset + start * right_at.row),
                right_at.column as isize,
                right_at.row as isize,
                if read_out { T::ONE } else { T::ZERO },
                T::ONE,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_and_long_sums() {
        let (m, n, k) = (5, 7, 1300);
        // The left matrix is stored transposed, the right one with gaps.
        let left: Vec<f64> = (0..m * k).map(|x| (x % 7) as f64 - 3.0).collect();
        let right: Vec<f64> = (0..k * n * 2).map(|x| (x % 5) as f64 - 2.0).collect();
        let mut out = vec![1.0; m * n + 1];
        let at = |offset, row, column| Matrix { offset, row, column };
        for accumulate in [false, true] {
            multiply((m, n, k), (&mut out, at(1, n, 1)), (&left, at(0, 1, m)), (&right, at(0, 2 * n, 2)), accumulate);
        }
        for i in 0..m {
            for j in 0..n {
                let once: f64 = (0..k).map(|l| left[l * m + i] * right[(l * n + j) * 2]).sum();
                assert_eq!(out[1 + i * n + j], 2.0 * once);
            }
        }
        assert_eq!(out[0], 1.0);
    }

    #[test]
    #[should_panic(expected = "leaves its block")]
    fn matrices_must_lie_in_their_slices() {
        let at = Matrix { offset: 0, row: 2, column: 1 };
        multiply((2, 2, 2), (&mut [0.0f32; 4], at), (&[0.0; 3], at), (&[0.0; 4], at), false);
    }
}
