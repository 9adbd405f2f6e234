//! The interface of a dense linear-algebra library, for block functions.
//!
//! The engine may have such a library, and only kernels may call foreign code. So the interface is defined here, between the crate that implements it and the crate that calls it.
//! Matrices are in column order without gaps: element (i, j) of a matrix with r rows is at `i + j * r`.
//! Each routine checks the lengths of its slices and panics if they do not fit. No routine uses threads.

use std::fmt::Debug;

use crate::dtype::C128;

/// A library, for the types that matrices are factored in.
pub trait DenseLibrary: Debug + Send + Sync {
    /// For real matrices.
    fn real(&self) -> &dyn Dense<f64>;
    /// For complex matrices.
    fn complex(&self) -> &dyn Dense<C128>;
}

/// Which half of a triangular matrix is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Rows below the diagonal.
    Lower,
    /// Columns right of the diagonal.
    Upper,
}

/// A triangle as the factor of an unknown matrix.
#[derive(Clone, Copy, Debug)]
pub struct Triangle {
    /// The half that is read.
    pub half: Half,
    /// True if its adjoint is meant.
    pub adjoint: bool,
    /// True if its diagonal is all ones and not read.
    pub unit: bool,
    /// True if it stands on the right of the unknown matrix.
    pub on_right: bool,
}

/// `U diag(s) V^H` of a matrix.
#[derive(Clone, Debug)]
pub struct SingularValues<T> {
    /// Left vectors as columns; empty if not asked for.
    pub u: Vec<T>,
    /// The values, largest first.
    pub s: Vec<f64>,
    /// Right vectors, conjugated, as rows; empty if not asked for.
    pub vh: Vec<T>,
}

/// Which singular vectors are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// None.
    None,
    /// As many as there are values.
    Thin,
    /// Square matrices of them.
    Full,
}

/// Routines for matrices of one type.
pub trait Dense<T> {
    /// Replaces one half of a positive definite matrix by its Cholesky factor: `U^H U` for the upper, `L L^H` for the lower half. The other half
    /// is left as it is. False if the matrix is not positive definite.
    fn cholesky(&self, half: Half, n: usize, a: &mut [T]) -> bool;
    /// Replaces a matrix by L below and U on and above the diagonal. Gives the row that was exchanged with each row in turn.
    fn lu(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<usize>;
    /// Replaces b by x of `triangle x = alpha b`, or `x triangle = alpha b`. The triangle has `n` rows; b has the given rows and columns.
    fn solve_triangle(&self, triangle: Triangle, t: &[T], size: (usize, usize), b: &mut [T]);
    /// Replaces the lower half of a matrix, whose diagonal is all ones and not read, by that of its inverse. The other half is left as it is.
    fn invert_unit_lower(&self, n: usize, a: &mut [T]);
    /// Replaces a matrix by R on and above, and reflectors below the diagonal; gives their factors.
    fn reflect(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<T>;
    /// Replaces the first columns of a matrix, which hold reflectors, by the first columns of their product Q.
    fn multiply_reflectors(&self, rows: usize, columns: usize, a: &mut [T], factors: &[T]);
    /// The triangle T of `I - V T V^H`, the product of the reflectors below the diagonal of a matrix.
    fn reflector_triangle(&self, rows: usize, a: &[T], factors: &[T]) -> Vec<T>;
    /// Singular values and vectors; `None` if they do not converge. The matrix is destroyed.
    fn singular_values(&self, vectors: Vectors, rows: usize, columns: usize, a: &mut [T]) -> Option<SingularValues<T>>;
    /// Eigenvalues, smallest first, of one half of a self-adjoint matrix, which is replaced by eigenvectors as columns if asked for; `None` if they
    /// do not converge.
    fn eigenvalues(&self, vectors: bool, half: Half, n: usize, a: &mut [T]) -> Option<Vec<f64>>;
    /// `c = a b` for matrices of `m` by `k` and `k` by `n`.
    fn multiply(&self, dims: (usize, usize, usize), a: &[T], b: &[T], c: &mut [T]);
}
