//! Singular values and eigenvalues.

use faer::Side;
use faer::linalg::solvers::{Eigen, SelfAdjointEigen, Svd};
use tw_ir::dense::{Dense, Half, Vectors};
use tw_ir::dtype::C128;
use tw_ir::error::{Error, Result};

use super::scale::Scale;
use super::{Library, Number, Operands, Slots, check_finite, in_squares, owned, owned_self_adjoint};

fn gave_up(what: &str) -> Error {
    Error::matrix(format!("{what} did not converge"))
}

/// Singular values are real numbers in the type of the matrix.
fn real_parts<T: Number>(values: impl ExactSizeIterator<Item = T>) -> Vec<f64> {
    values.map(|value| faer::traits::math_utils::real(&value)).collect()
}

/// `a = U diag(s) V^H` by a library. It is told of the transposed matrix, whose columns are our rows; its U and V^H, read by rows, are then our V^H
/// and U.
fn svd_by<T: Number>(
    library: &dyn Dense<T>,
    vectors: Vectors,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let (a, mut elements) = (matrices[0], matrices.rows(0).to_vec());
    let scale = Scale::apply_all(&mut elements);
    let mut found = library
        .singular_values(vectors, a.ncols(), a.nrows(), &mut elements)
        .ok_or_else(|| gave_up("the singular value decomposition"))?;
    scale.undo(&mut found.s);
    if vectors == Vectors::None {
        return out.vector(0, found.s);
    }
    out.rows(0, &found.vh)?;
    out.vector(1, found.s)?;
    out.rows(2, &found.u)
}

fn write_svd<T: Number>(svd: &Svd<T>, scale: Scale, out: &mut Slots<'_>) -> Result<()> {
    let mut values = real_parts(svd.S().column_vector().iter().copied());
    scale.undo(&mut values);
    out.matrix(0, svd.U())?;
    out.vector(1, values)?;
    out.matrix(2, svd.V().adjoint().to_owned().as_ref())
}

/// `a = U diag(s) V^H` with as many columns of U and V as there are singular values.
pub(super) fn svd<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices.rows(0), "the singular value decomposition")?;
    if let Some(library) = library {
        return svd_by(library, Vectors::Thin, matrices, out);
    }
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let svd = Svd::new_thin(scaled.as_ref()).map_err(|_| gave_up("the singular value decomposition"))?;
    write_svd(&svd, scale, out)
}

/// `a = U diag(s) V^H` with square U and V.
pub(super) fn svd_full<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    check_finite(matrices.rows(0), "the singular value decomposition")?;
    if let Some(library) = library {
        return svd_by(library, Vectors::Full, matrices, out);
    }
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let svd = Svd::new(scaled.as_ref()).map_err(|_| gave_up("the singular value decomposition"))?;
    write_svd(&svd, scale, out)
}

/// The singular values, largest first.
pub(super) fn svdvals<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    check_finite(matrices.rows(0), "the singular values")?;
    if let Some(library) = library {
        return svd_by(library, Vectors::None, matrices, out);
    }
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let mut values = scaled.singular_values().map_err(|_| gave_up("the singular values"))?;
    scale.undo(&mut values);
    out.vector(0, values)
}

/// Eigenvalues, and eigenvectors if asked for, by a library. To it our lower half is the upper half of the conjugate matrix, whose vectors are
/// conjugate, too.
fn eigh_by<T: Number>(
    library: &dyn Dense<T>,
    vectors: bool,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let (a, mut elements) = (matrices[0], matrices.rows(0).to_vec());
    let scale = Scale::apply_all(&mut elements);
    let n = a.nrows();
    let mut values =
        library.eigenvalues(vectors, Half::Upper, n, &mut elements).ok_or_else(|| gave_up("the eigenvalues"))?;
    scale.undo(&mut values);
    out.vector(0, values)?;
    if vectors {
        let mut turned = vec![faer::traits::math_utils::zero(); n * n];
        in_squares(n, n, |i, j| turned[i * n + j] = elements[i + j * n].conjugate());
        out.rows(1, &turned)?;
    }
    Ok(())
}

/// Eigenvalues, smallest first, and eigenvectors as columns, of the lower half of a self-adjoint matrix.
pub(super) fn eigh<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices.rows(0), "the eigenvalues")?;
    if let Some(library) = library {
        return eigh_by(library, true, matrices, out);
    }
    let (scaled, scale) = Scale::apply(owned_self_adjoint(matrices[0]));
    let eigen = SelfAdjointEigen::new(scaled.as_ref(), Side::Lower).map_err(|_| gave_up("the eigenvalues"))?;
    let mut values = real_parts(eigen.S().column_vector().iter().copied());
    scale.undo(&mut values);
    out.vector(0, values)?;
    out.matrix(1, eigen.U())
}

/// Eigenvalues, smallest first, of the lower half of a self-adjoint matrix.
pub(super) fn eigvalsh<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    check_finite(matrices.rows(0), "the eigenvalues")?;
    if let Some(library) = library {
        return eigh_by(library, false, matrices, out);
    }
    let (scaled, scale) = Scale::apply(owned_self_adjoint(matrices[0]));
    let mut values = scaled.self_adjoint_eigenvalues(Side::Lower).map_err(|_| gave_up("the eigenvalues"))?;
    scale.undo(&mut values);
    out.vector(0, values)
}

fn write_eigen(eigen: &Eigen<f64>, scale: Scale, out: &mut Slots<'_>) -> Result<()> {
    let mut values: Vec<C128> = eigen.S().column_vector().iter().copied().collect();
    scale.undo(&mut values);
    out.vector(0, values)?;
    // Vectors of length 1, as LAPACK gives them.
    let mut vectors = eigen.U().to_owned();
    for column in vectors.col_iter_mut() {
        let length = column.norm_l2();
        if length > 0.0 {
            column.iter_mut().for_each(|x| *x /= length);
        }
    }
    out.matrix(1, vectors.as_ref())
}

/// Eigenvalues and eigenvectors of a real matrix, as complex numbers.
pub(super) fn eig_real(_: Library<'_, f64>, matrices: &Operands<'_, f64>, out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices.rows(0), "the eigenvalues")?;
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let eigen = Eigen::new_from_real(scaled.as_ref()).map_err(|_| gave_up("the eigenvalues"))?;
    write_eigen(&eigen, scale, out)
}

/// Eigenvalues and eigenvectors of a complex matrix.
pub(super) fn eig_complex(_: Library<'_, C128>, matrices: &Operands<'_, C128>, out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices.rows(0), "the eigenvalues")?;
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let eigen = Eigen::new(scaled.as_ref()).map_err(|_| gave_up("the eigenvalues"))?;
    write_eigen(&eigen, scale, out)
}

/// Eigenvalues of a real matrix, as complex numbers.
pub(super) fn eigvals_real(_: Library<'_, f64>, matrices: &Operands<'_, f64>, out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices.rows(0), "the eigenvalues")?;
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let mut values = scaled.eigenvalues().map_err(|_| gave_up("the eigenvalues"))?;
    scale.undo(&mut values);
    out.vector(0, values)
}

/// Eigenvalues of a complex matrix.
pub(super) fn eigvals_complex(_: Library<'_, C128>, matrices: &Operands<'_, C128>, out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices.rows(0), "the eigenvalues")?;
    let (scaled, scale) = Scale::apply(owned(matrices[0]));
    let mut values = scaled.eigenvalues().map_err(|_| gave_up("the eigenvalues"))?;
    scale.undo(&mut values);
    out.vector(0, values)
}
