//! Singular values and eigenvalues.

use faer::linalg::solvers::{Eigen, SelfAdjointEigen, Svd};
use faer::{MatRef, Side};
use tw_ir::dtype::C128;
use tw_ir::error::{Error, Result};

use super::{Number, Slots, check_finite, owned, owned_self_adjoint};

fn gave_up(what: &str) -> Error {
    Error::matrix(format!("{what} did not converge"))
}

/// Singular values are real numbers in the type of the matrix.
fn real_parts<T: Number>(values: impl ExactSizeIterator<Item = T>) -> Vec<f64> {
    values.map(|value| faer::traits::math_utils::real(&value)).collect()
}

fn write_svd<T: Number>(svd: &Svd<T>, out: &mut Slots<'_>) -> Result<()> {
    out.matrix(0, svd.U())?;
    out.vector(1, real_parts(svd.S().column_vector().iter().copied()))?;
    out.matrix(2, svd.V().adjoint().to_owned().as_ref())
}

/// `a = U diag(s) V^H` with as many columns of U and V as there are singular values.
pub(super) fn svd<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the singular value decomposition")?;
    let svd = Svd::new_thin(owned(matrices[0]).as_ref()).map_err(|_| gave_up("the singular value decomposition"))?;
    write_svd(&svd, out)
}

/// `a = U diag(s) V^H` with square U and V.
pub(super) fn svd_full<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the singular value decomposition")?;
    let svd = Svd::new(owned(matrices[0]).as_ref()).map_err(|_| gave_up("the singular value decomposition"))?;
    write_svd(&svd, out)
}

/// The singular values, largest first.
pub(super) fn svdvals<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the singular values")?;
    let values = owned(matrices[0]).singular_values().map_err(|_| gave_up("the singular values"))?;
    out.vector(0, values)?;
    Ok(())
}

/// Eigenvalues, smallest first, and eigenvectors as columns, of the lower half of a self-adjoint matrix.
pub(super) fn eigh<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the eigenvalues")?;
    let eigen = SelfAdjointEigen::new(owned_self_adjoint(matrices[0]).as_ref(), Side::Lower)
        .map_err(|_| gave_up("the eigenvalues"))?;
    out.vector(0, real_parts(eigen.S().column_vector().iter().copied()))?;
    out.matrix(1, eigen.U())?;
    Ok(())
}

/// Eigenvalues, smallest first, of the lower half of a self-adjoint matrix.
pub(super) fn eigvalsh<T: Number>(matrices: &[MatRef<'_, T>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the eigenvalues")?;
    let values = owned_self_adjoint(matrices[0])
        .self_adjoint_eigenvalues(Side::Lower)
        .map_err(|_| gave_up("the eigenvalues"))?;
    out.vector(0, values)?;
    Ok(())
}

fn write_eigen(eigen: &Eigen<f64>, out: &mut Slots<'_>) -> Result<()> {
    out.vector(0, eigen.S().column_vector().iter().copied().collect())?;
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
pub(super) fn eig_real(matrices: &[MatRef<'_, f64>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the eigenvalues")?;
    write_eigen(&Eigen::new_from_real(owned(matrices[0]).as_ref()).map_err(|_| gave_up("the eigenvalues"))?, out)
}

/// Eigenvalues and eigenvectors of a complex matrix.
pub(super) fn eig_complex(matrices: &[MatRef<'_, C128>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the eigenvalues")?;
    write_eigen(&Eigen::new(owned(matrices[0]).as_ref()).map_err(|_| gave_up("the eigenvalues"))?, out)
}

/// Eigenvalues of a real matrix, as complex numbers.
pub(super) fn eigvals_real(matrices: &[MatRef<'_, f64>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the eigenvalues")?;
    out.vector(0, owned(matrices[0]).eigenvalues().map_err(|_| gave_up("the eigenvalues"))?)?;
    Ok(())
}

/// Eigenvalues of a complex matrix.
pub(super) fn eigvals_complex(matrices: &[MatRef<'_, C128>], out: &mut Slots<'_>) -> Result<()> {
    check_finite(matrices[0], "the eigenvalues")?;
    out.vector(0, owned(matrices[0]).eigenvalues().map_err(|_| gave_up("the eigenvalues"))?)?;
    Ok(())
}
