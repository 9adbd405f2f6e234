//! Products, and systems of equations.

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{PartialPivLu, SolveCore};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::traits::math_utils::{conj, one, zero};
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par};
use tw_ir::error::{Error, Result};

use super::factor::{Lu, has_reciprocal, have_reciprocals, solve_lower, solve_upper};
use super::{Number, Slots, is_finite, owned};

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

/// x of `a x = b`.
fn solution<T: Number>(a: MatRef<'_, T>, mut b: Mat<T>) -> Result<Mat<T>> {
    let lu = PartialPivLu::new(a);
    // After a pivot without a reciprocal nothing is right; a zero before the first of those is one.
    let good = (0..a.nrows()).take_while(|&k| has_reciprocal(lu.U()[(k, k)])).count();
    if good == a.nrows() || lu.U()[(good, good)].magnitude() == 0.0 || !is_finite(a) {
        check_regular(lu.U())?;
        lu.solve_in_place_with_conj(Conj::No, b.as_mut());
        return Ok(b);
    }
    let lu = Lu::of(a);
    check_regular(lu.u.as_ref())?;
    Ok(lu.solve(b.as_ref()))
}

/// x of `a x = b`.
pub(super) fn solve<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let x = solution(matrices[0], owned(matrices[1]))?;
    out.matrix(0, x.as_ref())
}

/// The inverse.
pub(super) fn inv<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let n = matrices[0].nrows();
    let x = solution(matrices[0], Mat::identity(n, n))?;
    out.matrix(0, x.as_ref())
}

/// The determinant as its direction (a number of magnitude 1, or 0) and the logarithm of its magnitude.
pub(super) fn slogdet<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let lu = Lu::of(matrices[0]);
    let (mut sign, n) = (lu.sign(), matrices[0].nrows());
    let mut logarithm = 0.0;
    for k in 0..n {
        let mut pivot = lu.u[(k, k)];
        if pivot.magnitude() < 2f64.powi(-900) {
            // Where numbers have fewer digits a direction is lost.
            pivot = pivot.divided(2f64.powi(-600));
            logarithm -= 600.0 * std::f64::consts::LN_2;
        }
        let size = pivot.magnitude();
        logarithm += size.ln();
        sign = if size == 0.0 { zero() } else { sign * pivot.divided(size) };
    }
    out.vector(0, vec![sign])?;
    out.vector(1, vec![logarithm])?;
    Ok(())
}

/// Replaces b by x of `l x = b`, of the lower half of l.
fn solve_lower_regular<T: Number>(l: MatRef<'_, T>, b: MatMut<'_, T>) -> Result<()> {
    check_regular(l)?;
    match have_reciprocals(l) {
        true => solve_lower_triangular_in_place(l, b, Par::Seq),
        false => solve_lower(l, b),
    }
    Ok(())
}

/// x of `l x = b`, of the lower half of l.
pub(super) fn lower<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let mut x = owned(matrices[1]);
    solve_lower_regular(owned(matrices[0]).as_ref(), x.as_mut())?;
    out.matrix(0, x.as_ref())
}

/// x of `l x = b`, of the lower half of l with ones on its diagonal.
pub(super) fn unit_lower<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let mut x = owned(matrices[1]);
    solve_unit_lower_triangular_in_place(owned(matrices[0]).as_ref(), x.as_mut(), Par::Seq);
    out.matrix(0, x.as_ref())
}

/// x of `u x = b`, of the upper half of u.
pub(super) fn upper<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let (u, mut x) = (owned(matrices[0]), owned(matrices[1]));
    check_regular(u.as_ref())?;
    match have_reciprocals(u.as_ref()) {
        true => solve_upper_triangular_in_place(u.as_ref(), x.as_mut(), Par::Seq),
        false => solve_upper(u.as_ref(), x.as_mut()),
    }
    out.matrix(0, x.as_ref())
}

/// x of `x l^H = b`, of the lower half of l.
pub(super) fn adjoint_lower_right<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let b = matrices[1];
    let mut x = Mat::from_fn(b.ncols(), b.nrows(), |i, j| conj(&b[(j, i)]));
    solve_lower_regular(owned(matrices[0]).as_ref(), x.as_mut())?;
    let x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| conj(&x[(j, i)]));
    out.matrix(0, x.as_ref())?;
    Ok(())
}

/// x of `x u = b`, of the upper half of u.
pub(super) fn upper_right<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    let mut x = owned(matrices[1].transpose());
    solve_lower_regular(owned(matrices[0]).transpose(), x.as_mut())?;
    out.matrix(0, x.transpose())?;
    Ok(())
}
