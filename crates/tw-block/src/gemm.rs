//! Matrix products over semirings, behind a checked interface.
//!
//! One kernel in plain Rust serves every element type and semiring; (+, x) is one instance. Operands are packed into panels where that pays, so strides (and transposes) matter
//! only to packing; a tile of the output stays in registers while terms are accumulated. The kernel is compiled for several instruction sets, and all versions give the same bits: sums
//! are cut by the number of terms alone. A matrix times its own transpose takes half the work. Products of floats may go to a BLAS instead (`provider`). Packed
//! operands are not shared between tasks.

mod blocked;
mod complex;
mod known;
mod library;
mod pack;
mod provider;
mod semiring;
mod symmetric;
#[cfg(test)]
mod tests;
mod thin;
mod tile;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use blocked::Batch;
use blocked::{Product, Version};
pub(crate) use known::{Known, Multiply, Task};
pub(crate) use provider::Products;
pub use provider::{Provider, provider};
use semiring::Semiring;
pub(crate) use vector::Truth;

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
    /// Panics unless every element of some matrices of the given size lies in a slice of the given length.
    fn check(&self, rows: usize, columns: usize, (n_matrices, step): (usize, usize), len: usize) {
        if rows == 0 || columns == 0 || n_matrices == 0 {
            return;
        }
        let distances = [(rows, self.row), (columns, self.column), (n_matrices, step)];
        let last = distances
            .iter()
            .try_fold(self.offset, |last, (n, distance)| last.checked_add((n - 1).checked_mul(*distance)?));
        assert!(last.is_some_and(|last| last < len), "a matrix of {rows} by {columns} leaves its block");
    }

    fn shifted(self, by: usize) -> Matrix {
        Matrix { offset: self.offset + by, ..self }
    }

    fn transposed(self) -> Matrix {
        Matrix { row: self.column, column: self.row, ..self }
    }
}

/// Computes products over a semiring: `out = left * right`, or `out += left * right` if the task accumulates.
///
/// Elements of `out` must be distinct: none of its distances may be 0 where its size is above 1.
fn multiply<S: Semiring>(semiring: S, task: Task<'_, S::Element>) {
    multiply_version(Version::best(), semiring, task);
}

fn multiply_version<S: Semiring>(version: Version, semiring: S, task: Task<'_, S::Element>) {
    task.check();
    let symmetric = S::COMMUTES && task.is_symmetric();
    let Task { dims: (m, n, k), out: (out, out_at), left: (left, left_at), right: (right, right_at), .. } = task;
    let Task { batch, accumulate, .. } = task;
    if m == 0 || n == 0 || k == 0 {
        if !accumulate {
            let elements = (0..batch.n).flat_map(|b| (0..m).flat_map(move |i| (0..n).map(move |j| (b, i, j))));
            elements.for_each(|(b, i, j)| {
                out[out_at.offset + b * batch.out + i * out_at.row + j * out_at.column] = semiring.identity();
            });
        }
        return;
    }
    let (out, left, right) = (out.as_mut_ptr(), left.as_ptr(), right.as_ptr());
    let product = Product { m, n, k, out, out_at, left, left_at, right, right_at, accumulate, batch, symmetric };
    let turn = S::COMMUTES && product.is_better_transposed();
    let product = if turn { product.transposed() } else { product };
    // SAFETY: the checks above make sure that every element lies in its slice: row and column numbers are below m, n and k, and
    // distances are not negative. `out` is borrowed mutably, so it overlaps neither operand. The version is available.
    unsafe { semiring.run(version, product) };
}
