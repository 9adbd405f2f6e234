//! Products, and systems of equations.

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{PartialPivLu, SolveCore};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::traits::math_utils::{conj, one, zero};
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par};
use tw_ir::error::{Error, Result};

use super::factor::Lu;
use super::{Number, Slots, owned};

/// `a b`.
pub(super) fn product<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let (a, b) = (matrices[0], matrices[1]);
    let mut product = Mat::<T>::zeros(a.nrows(), b.ncols());
    matmul(product.as_mut(), Accum::Replace, a, b, one(), Par::Seq);
    out.matrix(0, product.as_ref())?;
    Ok(())
}

fn check_regular<T: Number>(triangle: MatRef<'_, T>) -> Result<()> {
    match (0..triangle.nrows()).find(|&k| triangle[(k, k)].magnitude() == 0.0) {
        None => Ok(()),
        Some(k) => Err(Error::matrix("the matrix is singular").note(format!("pivot {k} of its block is zero"))),
    }
}

fn factored<T: Number>(matrix: MatRef<'_, T>) -> Result<PartialPivLu<T>> {
    let lu = PartialPivLu::new(matrix);
    check_regular(lu.U())?;
    Ok(lu)
}

/// x of `a x = b`.
pub(super) fn solve<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let mut x = owned(matrices[1]);
    factored(matrices[0])?.solve_in_place_with_conj(Conj::No, x.as_mut());
    out.matrix(0, x.as_ref())?;
    Ok(())
}

/// The inverse.
pub(super) fn inv<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let n = matrices[0].nrows();
    let mut x = Mat::<T>::identity(n, n);
    factored(matrices[0])?.solve_in_place_with_conj(Conj::No, x.as_mut());
    out.matrix(0, x.as_ref())?;
    Ok(())
}

/// The determinant as its direction (a number of magnitude 1, or 0) and the logarithm of its magnitude.
pub(super) fn slogdet<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let lu = Lu::of(matrices[0]);
    let (mut sign, n) = (lu.sign(), matrices[0].nrows());
    let mut logarithm = 0.0;
    for k in 0..n {
        let pivot = lu.u[(k, k)];
        let size = pivot.magnitude();
        logarithm += size.ln();
        sign = if size == 0.0 { zero() } else { sign * pivot.divided(size) };
    }
    out.vector(0, vec![sign])?;
    out.vector(1, vec![logarithm])?;
    Ok(())
}

/// Solves in place for a copy of the right-hand side.
fn solved<T: Number>(
    matrices: &[MatRef<'_, T>],
    out: &mut Slots<'_>,
    solve: impl Fn(MatRef<'_, T>, MatMut<'_, T>),
) -> Result<()> {
    let mut x = owned(matrices[1]);
    solve(owned(matrices[0]).as_ref(), x.as_mut());
    out.matrix(0, x.as_ref())
}

/// x of `l x = b`, of the lower half of l.
pub(super) fn lower<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_regular(matrices[0])?;
    solved(matrices, out, |l, x| solve_lower_triangular_in_place(l, x, Par::Seq))
}

/// x of `l x = b`, of the lower half of l with ones on its diagonal.
pub(super) fn unit_lower<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    solved(matrices, out, |l, x| solve_unit_lower_triangular_in_place(l, x, Par::Seq))
}

/// x of `u x = b`, of the upper half of u.
pub(super) fn upper<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_regular(matrices[0])?;
    solved(matrices, out, |u, x| solve_upper_triangular_in_place(u, x, Par::Seq))
}

/// x of `x l^H = b`, of the lower half of l.
pub(super) fn adjoint_lower_right<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_regular(matrices[0])?;
    let b = matrices[1];
    let mut x = Mat::from_fn(b.ncols(), b.nrows(), |i, j| conj(&b[(j, i)]));
    solve_lower_triangular_in_place(owned(matrices[0]).as_ref(), x.as_mut(), Par::Seq);
    let x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| conj(&x[(j, i)]));
    out.matrix(0, x.as_ref())?;
    Ok(())
}

/// x of `x u = b`, of the upper half of u.
pub(super) fn upper_right<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_regular(matrices[0])?;
    let mut x = owned(matrices[1].transpose());
    solve_lower_triangular_in_place(owned(matrices[0]).transpose(), x.as_mut(), Par::Seq);
    out.matrix(0, x.transpose())?;
    Ok(())
}
