//! Factorisations.

use std::cmp::Ordering;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch};
use faer::linalg::solvers::{Llt, PartialPivLu, Qr};
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::traits::math_utils::{one, zero};
use faer::{Mat, MatMut, MatRef, Par, Side};
use tw_ir::error::{Error, Result};
use tw_ir::program::BlockFunction;
use tw_ir::{Array, ArrayView, Slice};

use super::{Number, Slots, is_finite, owned, owned_self_adjoint};

/// `a[places] = l u`.
pub(super) struct Lu<T> {
    pub(super) l: Mat<T>,
    pub(super) u: Mat<T>,
    pub(super) places: Vec<usize>,
}

impl<T: Number> Lu<T> {
    /// Factors with the largest pivots of their columns.
    pub(super) fn of(matrix: MatRef<'_, T>) -> Lu<T> {
        let lu = PartialPivLu::new(matrix);
        let is_zero = |k: usize| lu.U()[(k, k)].magnitude() == 0.0;
        let pivots = matrix.nrows().min(matrix.ncols());
        if (0..pivots).any(is_zero) || !have_reciprocals(lu.U()) && is_finite(matrix) {
            return Lu::by_columns(matrix);
        }
        Lu { l: lu.L().to_owned(), u: lu.U().to_owned(), places: lu.P().arrays().0.to_vec() }
    }

    /// Column by column. `faer` multiplies by reciprocals of pivots, which tiny ones do not have, and zeros even less; a column that has nothing
    /// else is left as it is, so singular matrices have factors, too.
    fn by_columns(matrix: MatRef<'_, T>) -> Lu<T> {
        let mut a = owned(matrix);
        let (rows, columns) = a.shape();
        let n = rows.min(columns);
        let mut places: Vec<usize> = (0..rows).collect();
        for k in 0..n {
            let largest =
                (k..rows).fold(k, |best, i| if a[(i, k)].magnitude() > a[(best, k)].magnitude() { i } else { best });
            let pivot = a[(largest, k)];
            if pivot.magnitude() == 0.0 {
                continue;
            }
            places.swap(k, largest);
            for j in 0..columns {
                (a[(k, j)], a[(largest, j)]) = (a[(largest, j)], a[(k, j)]);
            }
            for i in k + 1..rows {
                a[(i, k)] = a[(i, k)].over(pivot);
            }
            for j in k + 1..columns {
                let factor = a[(k, j)];
                for i in k + 1..rows {
                    a[(i, j)] = a[(i, j)] - a[(i, k)] * factor;
                }
            }
        }
        let (zero, one): (T, T) = (zero(), one());
        let l = Mat::from_fn(rows, n, |i, j| match i.cmp(&j) {
            Ordering::Less => zero,
            Ordering::Equal => one,
            Ordering::Greater => a[(i, j)],
        });
        let u = Mat::from_fn(n, columns, |i, j| if i <= j { a[(i, j)] } else { zero });
        Lu { l, u, places }
    }

    /// x of `a x = b`.
    pub(super) fn solve(&self, b: MatRef<'_, T>) -> Mat<T> {
        let mut x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(self.places[i], j)]);
        solve_lower(self.l.as_ref(), x.as_mut());
        solve_upper(self.u.as_ref(), x.as_mut());
        x
    }

    /// 1 or -1: the determinant of the order of the rows.
    pub(super) fn sign(&self) -> T {
        if is_odd(self.places.len(), |k| self.places[k]) { -one::<T>() } else { one() }
    }
}

/// True if the reciprocals of a diagonal are far from the ends of the range, as `faer` needs them.
pub(super) fn have_reciprocals<T: Number>(triangle: MatRef<'_, T>) -> bool {
    (0..triangle.nrows().min(triangle.ncols())).all(|k| has_reciprocal(triangle[(k, k)]))
}

/// True if the reciprocal of a number is far from the ends of the range.
pub(super) fn has_reciprocal<T: Number>(number: T) -> bool {
    (2f64.powi(-1000)..2f64.powi(1000)).contains(&number.magnitude())
}

/// Replaces b by x of `l x = b`, by division.
pub(super) fn solve_lower<T: Number>(l: MatRef<'_, T>, mut b: MatMut<'_, T>) {
    for column in 0..b.ncols() {
        for k in 0..l.nrows() {
            let x = b[(k, column)].over(l[(k, k)]);
            b[(k, column)] = x;
            for i in k + 1..l.nrows() {
                b[(i, column)] -= l[(i, k)] * x;
            }
        }
    }
}

/// Replaces b by x of `u x = b`, by division.
pub(super) fn solve_upper<T: Number>(u: MatRef<'_, T>, mut b: MatMut<'_, T>) {
    for column in 0..b.ncols() {
        for k in (0..u.nrows()).rev() {
            let x = b[(k, column)].over(u[(k, k)]);
            b[(k, column)] = x;
            for i in 0..k {
                b[(i, column)] -= u[(i, k)] * x;
            }
        }
    }
}

/// `a[p] = L U` with the largest pivots of their columns: L with ones on its diagonal, U, and p.
pub(super) fn lu<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let lu = Lu::of(matrices[0]);
    out.matrix(0, lu.l.as_ref())?;
    out.matrix(1, lu.u.as_ref())?;
    out.indices(2, &lu.places)?;
    Ok(())
}

/// `a = L L^H`, of the lower half of a.
pub(super) fn cholesky<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let factor = Llt::new(owned_self_adjoint(matrices[0]).as_ref(), Side::Lower)
        .map_err(|_| Error::matrix("the matrix is not positive definite, so it has no Cholesky factor"))?;
    out.matrix(0, factor.L())?;
    Ok(())
}

/// `a = Q R` with as many columns of Q as a has rows or columns, whichever are fewer.
pub(super) fn qr<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let qr = Qr::new(matrices[0]);
    out.matrix(0, qr.compute_thin_Q().as_ref())?;
    out.matrix(1, qr.thin_R())?;
    Ok(())
}

/// `a = Q R` with a square Q.
pub(super) fn qr_complete<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let qr = Qr::new(matrices[0]);
    out.matrix(0, qr.compute_Q().as_ref())?;
    // R has rows of zeros below the square part; results come filled with zeros.
    let (rows, columns) = (matrices[0].nrows(), matrices[0].ncols());
    let mut r = Mat::<T>::zeros(rows, columns);
    r.get_mut(..rows.min(columns), ..).copy_from(qr.thin_R());
    out.matrix(1, r.as_ref())?;
    Ok(())
}

/// R of `a = Q R`.
pub(super) fn r<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    out.matrix(0, Qr::new(matrices[0]).thin_R())?;
    Ok(())
}

/// `a = (I - V T V^H) R`: the reflections of a panel in one, for the columns beside it.
pub(super) fn reflectors<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let mut panel = owned(matrices[0]);
    let (rows, columns) = panel.shape();
    let n = rows.min(columns);
    let mut coefficients = Mat::<T>::zeros(n, n);
    let scratch = qr_in_place_scratch::<T>(rows, columns, n, Par::Seq, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    qr_in_place(panel.as_mut(), coefficients.as_mut(), Par::Seq, MemStack::new(stack), Default::default());
    let (zero, one): (T, T) = (zero(), one());
    let basis = Mat::from_fn(rows, n, |i, j| match i.cmp(&j) {
        Ordering::Less => zero,
        Ordering::Equal => one,
        Ordering::Greater => panel[(i, j)],
    });
    // `faer` keeps the inverse of T.
    let mut t = Mat::<T>::identity(n, n);
    solve_upper_triangular_in_place(coefficients.as_ref(), t.as_mut(), Par::Seq);
    let r = Mat::from_fn(n, columns, |i, j| if i <= j { panel[(i, j)] } else { zero });
    out.matrix(0, basis.as_ref())?;
    out.matrix(1, t.as_ref())?;
    out.matrix(2, r.as_ref())?;
    Ok(())
}

/// The sign of a permutation: 1 or -1.
pub(super) struct Parity;

impl BlockFunction for Parity {
    fn name(&self) -> &str {
        "linalg_parity"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let Slice::I64(places) = operands[0].data() else {
            return Err(Error::types(format!("a permutation of {}", operands[0].dtype())));
        };
        if let Some(wrong) = places.iter().find(|&&place| place < 0 || place >= places.len() as i64) {
            return Err(Error::matrix(format!("{wrong} is no place of a permutation")));
        }
        let sign = if is_odd(places.len(), |k| places[k] as usize) { -1.0 } else { 1.0 };
        Slots { results, matrix: 0, n_matrices: 1 }.vector(0, vec![sign])
    }
}

/// True if a permutation is an odd number of exchanges.
fn is_odd(n: usize, place: impl Fn(usize) -> usize) -> bool {
    let mut seen = vec![false; n];
    let mut odd = false;
    for start in 0..n {
        let (mut at, mut length) = (start, 0usize);
        while !std::mem::replace(&mut seen[at], true) {
            (at, length) = (place(at), length + 1);
        }
        // A cycle of even length is odd.
        odd ^= length > 0 && length % 2 == 0;
    }
    odd
}
