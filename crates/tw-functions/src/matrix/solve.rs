//! Products, and systems of equations.

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{PartialPivLu, SolveCore};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::traits::math_utils::{conj, one, zero};
use faer::{Accum, Conj, Mat, MatMut, MatRef, Par};
use tw_ir::dense::{Dense, Half, Triangle};
use tw_ir::error::{Error, Result};

use super::factor::{Lu, has_reciprocal, have_reciprocals, places_of, solve_lower, solve_upper};
use super::{Library, Number, Operands, Slots, columns, in_squares, is_finite, owned};

/// `a b`.
pub(super) fn product<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let (a, b) = (matrices[0], matrices[1]);
    let dims = (b.ncols(), a.nrows(), a.ncols());
    let mut elements = vec![zero(); a.nrows() * b.ncols()];
    match library {
        // To the library all matrices are transposed, so the operands change places.
        Some(library) => library.multiply(dims, matrices.rows(1), matrices.rows(0), &mut elements),
        None => {
            let product = MatMut::from_row_major_slice_mut(&mut elements, a.nrows(), b.ncols());
            matmul(product, Accum::Replace, a, b, one(), Par::Seq);
        }
    }
    out.rows(0, &elements)
}

fn check_regular<T: Number>(triangle: MatRef<'_, T>) -> Result<()> {
    check_pivots(triangle.nrows(), |k| triangle[(k, k)])
}

fn check_pivots<T: Number>(n: usize, pivot: impl Fn(usize) -> T) -> Result<()> {
    match (0..n).find(|&k| pivot(k).magnitude() == 0.0) {
        None => Ok(()),
        Some(k) => Err(Error::matrix("the matrix is singular").note(format!("pivot {k} of its block is zero"))),
    }
}

/// x of `a x = b`, in column order, given the number of columns of b and its elements.
fn solution<T: Number>(
    library: Library<'_, T>,
    a: MatRef<'_, T>,
    n_columns: usize,
    b: impl Fn(usize, usize) -> T,
) -> Result<Vec<T>> {
    let n = a.nrows();
    let is_usable = |pivot: &dyn Fn(usize) -> T| {
        // After a pivot without a reciprocal nothing is right; a zero before the first of those is one.
        let good = (0..n).take_while(|&k| has_reciprocal(pivot(k))).count();
        good == n || pivot(good).magnitude() == 0.0 || !is_finite(a)
    };
    match library {
        Some(library) => {
            let mut lu = columns(a);
            let exchanges = library.lu(n, n, &mut lu);
            let pivot = |k: usize| lu[k + k * n];
            if is_usable(&pivot) {
                check_pivots(n, pivot)?;
                let places = places_of(n, &exchanges);
                let size = (n, n_columns);
                let mut x = vec![zero(); n * n_columns];
                in_squares(n_columns, n, |j, i| x[i + j * n] = b(places[i], j));
                let lower = Triangle { half: Half::Lower, adjoint: false, unit: true, on_right: false };
                library.solve_triangle(lower, &lu, size, &mut x);
                let upper = Triangle { half: Half::Upper, unit: false, ..lower };
                library.solve_triangle(upper, &lu, size, &mut x);
                return Ok(x);
            }
        }
        None => {
            let lu = PartialPivLu::new(a);
            if is_usable(&|k| lu.U()[(k, k)]) {
                check_regular(lu.U())?;
                let mut x = Mat::from_fn(n, n_columns, b);
                lu.solve_in_place_with_conj(Conj::No, x.as_mut());
                return Ok(columns(x.as_ref()));
            }
        }
    }
    let lu = Lu::of(library, a);
    check_pivots(n, |k| lu.pivot(k))?;
    Ok(columns(lu.solve(Mat::from_fn(n, n_columns, b).as_ref()).as_ref()))
}

/// x of `a x = b`.
pub(super) fn solve<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let ((rows, columns), b) = (matrices[1].shape(), matrices.rows(1));
    let x = solution(library, matrices[0], columns, |i, j| b[i * columns + j])?;
    out.elements(0, (rows, columns), |i, j| x[i + j * rows])
}

/// The inverse.
pub(super) fn inv<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let n = matrices[0].nrows();
    if let Some(library) = library {
        let lu = Lu::by(library, matrices[0]);
        if (0..n).all(|k| has_reciprocal(lu.pivot(k))) {
            return inverse(library, &lu, out);
        }
    }
    let x = solution(library, matrices[0], n, |i, j| if i == j { one() } else { zero() })?;
    out.elements(0, (n, n), |i, j| x[i + j * n])
}

/// `U^-1 L^-1`, with its columns in their places. L^-1 is a triangle: solving for the columns of an identity would take a third more work.
fn inverse<T: Number>(library: &dyn Dense<T>, lu: &Lu<T>, out: &mut Slots<'_>) -> Result<()> {
    let n = lu.places.len();
    let mut x = lu.factors.clone();
    library.invert_unit_lower(n, &mut x);
    for (j, column) in x.chunks_mut(n).enumerate() {
        column[..j].fill(zero());
        column[j] = one();
    }
    let upper = Triangle { half: Half::Upper, adjoint: false, unit: false, on_right: false };
    library.solve_triangle(upper, &lu.factors, (n, n), &mut x);
    let mut columns = vec![0; n];
    lu.places.iter().enumerate().for_each(|(k, &place)| columns[place] = k);
    out.elements(0, (n, n), |i, j| x[i + columns[j] * n])
}

/// The determinant as its direction (a number of magnitude 1, or 0) and the logarithm of its magnitude.
pub(super) fn slogdet<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let lu = Lu::of(library, matrices[0]);
    let (mut sign, n) = (lu.sign(), matrices[0].nrows());
    let mut logarithm = 0.0;
    for k in 0..n {
        let mut pivot = lu.pivot(k);
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

/// Solves by a library, if there is one and the triangle is to its liking: it multiplies by reciprocals. To it all matrices are transposed, so
/// what stands on the left of x here stands on its right there.
fn solve_by<T: Number>(
    library: Library<'_, T>,
    triangle: Triangle,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<bool> {
    let Some(library) = library.filter(|_| triangle.unit || have_reciprocals(matrices[0])) else { return Ok(false) };
    let (rows, columns) = matrices[1].shape();
    out.changed_rows(0, matrices.rows(1), |x| {
        library.solve_triangle(triangle, matrices.rows(0), (columns, rows), x);
    })?;
    Ok(true)
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
pub(super) fn lower<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let triangle = Triangle { half: Half::Upper, adjoint: false, unit: false, on_right: true };
    if solve_by(library, triangle, matrices, out)? {
        return Ok(());
    }
    let mut x = owned(matrices[1]);
    solve_lower_regular(owned(matrices[0]).as_ref(), x.as_mut())?;
    out.matrix(0, x.as_ref())
}

/// x of `l x = b`, of the lower half of l with ones on its diagonal.
pub(super) fn unit_lower<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let triangle = Triangle { half: Half::Upper, adjoint: false, unit: true, on_right: true };
    if solve_by(library, triangle, matrices, out)? {
        return Ok(());
    }
    let mut x = owned(matrices[1]);
    solve_unit_lower_triangular_in_place(owned(matrices[0]).as_ref(), x.as_mut(), Par::Seq);
    out.matrix(0, x.as_ref())
}

/// x of `u x = b`, of the upper half of u.
pub(super) fn upper<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let triangle = Triangle { half: Half::Lower, adjoint: false, unit: false, on_right: true };
    if solve_by(library, triangle, matrices, out)? {
        return Ok(());
    }
    let (u, mut x) = (owned(matrices[0]), owned(matrices[1]));
    check_regular(u.as_ref())?;
    match have_reciprocals(u.as_ref()) {
        true => solve_upper_triangular_in_place(u.as_ref(), x.as_mut(), Par::Seq),
        false => solve_upper(u.as_ref(), x.as_mut()),
    }
    out.matrix(0, x.as_ref())
}

/// x of `x l^H = b`, of the lower half of l.
pub(super) fn adjoint_lower_right<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    // Transposed, that is `conj(l) x^T = b^T`, and the library sees `u = l^T`, of which `conj(l)` is the adjoint.
    let triangle = Triangle { half: Half::Upper, adjoint: true, unit: false, on_right: false };
    if solve_by(library, triangle, matrices, out)? {
        return Ok(());
    }
    let b = matrices[1];
    let mut x = Mat::from_fn(b.ncols(), b.nrows(), |i, j| conj(&b[(j, i)]));
    solve_lower_regular(owned(matrices[0]).as_ref(), x.as_mut())?;
    let x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| conj(&x[(j, i)]));
    out.matrix(0, x.as_ref())
}

/// x of `x u = b`, of the upper half of u.
pub(super) fn upper_right<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let triangle = Triangle { half: Half::Lower, adjoint: false, unit: false, on_right: false };
    if solve_by(library, triangle, matrices, out)? {
        return Ok(());
    }
    let mut x = owned(matrices[1].transpose());
    solve_lower_regular(owned(matrices[0]).transpose(), x.as_mut())?;
    out.matrix(0, x.transpose())
}
