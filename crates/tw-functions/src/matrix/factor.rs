//! Factorisations.

use std::cmp::Ordering;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch};
use faer::linalg::solvers::{Llt, Qr};
use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::traits::math_utils::{from_real, one, real, zero};
use faer::{Mat, MatMut, MatRef, Par, Side};
use tw_ir::dense::{Dense, Half};
use tw_ir::error::{Error, Result};
use tw_ir::program::BlockFunction;
use tw_ir::{Array, ArrayView, Slice};

use super::scale::Scale;
use super::{Library, Number, Operands, Slots, is_finite, owned, owned_self_adjoint};

/// `a[places] = L U`.
pub(super) struct Lu<T> {
    rows: usize,
    columns: usize,
    /// L below and U on and above the diagonal, in column order.
    pub(super) factors: Vec<T>,
    pub(super) places: Vec<usize>,
}

impl<T: Number> Lu<T> {
    /// Factors with the largest pivots of their columns.
    pub(super) fn of(library: Library<'_, T>, matrix: MatRef<'_, T>) -> Lu<T> {
        let found = match library {
            Some(library) => Lu::by(library, matrix),
            None => Lu::in_place(matrix),
        };
        let is_zero = |k: usize| found.pivot(k).magnitude() == 0.0;
        let have_reciprocals = (0..found.n_pivots()).all(|k| has_reciprocal(found.pivot(k)));
        if (0..found.n_pivots()).any(is_zero) || !have_reciprocals && is_finite(matrix) {
            return Lu::by_columns(matrix, found.factors);
        }
        found
    }

    /// By `faer`, in a copy of the matrix.
    fn in_place(matrix: MatRef<'_, T>) -> Lu<T> {
        let (rows, columns) = matrix.shape();
        let mut factors = super::columns(matrix);
        let (mut places, mut places_inverse) = (vec![0; rows], vec![0; rows]);
        let scratch = lu_in_place_scratch::<usize, T>(rows, columns, Par::Seq, Default::default());
        let (mut memory, of_factors) =
            (MemBuffer::new(scratch), MatMut::from_column_major_slice_mut(&mut factors, rows, columns));
        let stack = MemStack::new(&mut memory);
        lu_in_place(of_factors, &mut places, &mut places_inverse, Par::Seq, stack, Default::default());
        Lu { rows, columns, factors, places }
    }

    /// By a library, whatever the pivots.
    pub(super) fn by(library: &dyn Dense<T>, matrix: MatRef<'_, T>) -> Lu<T> {
        let (rows, columns) = matrix.shape();
        let mut factors = super::columns(matrix);
        let exchanges = library.lu(rows, columns, &mut factors);
        Lu { rows, columns, factors, places: places_of(rows, &exchanges) }
    }

    /// Both factors in one matrix.
    fn matrix(&self) -> MatRef<'_, T> {
        MatRef::from_column_major_slice(&self.factors, self.rows, self.columns)
    }

    fn n_pivots(&self) -> usize {
        self.rows.min(self.columns)
    }

    /// An element of the diagonal of U.
    pub(super) fn pivot(&self, k: usize) -> T {
        self.factors[k + k * self.rows]
    }

    /// Column by column. `faer` multiplies by reciprocals of pivots, which tiny ones do not have, and zeros even less; a column that has nothing
    /// else is left as it is, so singular matrices have factors, too. They take the place of other factors of the matrix.
    fn by_columns(matrix: MatRef<'_, T>, mut factors: Vec<T>) -> Lu<T> {
        let (rows, columns) = matrix.shape();
        let mut a = MatMut::from_column_major_slice_mut(&mut factors, rows, columns);
        a.copy_from(matrix);
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
        Lu { rows, columns, factors, places }
    }

    /// x of `a x = b`.
    pub(super) fn solve(&self, b: MatRef<'_, T>) -> Mat<T> {
        let mut x = Mat::from_fn(b.nrows(), b.ncols(), |i, j| b[(self.places[i], j)]);
        let n = self.n_pivots();
        solve_lower(unit_lower_half(self.rows, n, |i, j| self.matrix()[(i, j)]).as_ref(), x.as_mut());
        solve_upper(self.matrix().get(..n, ..), x.as_mut());
        x
    }

    /// 1 or -1: the determinant of the order of the rows.
    pub(super) fn sign(&self) -> T {
        if is_odd(self.places.len(), |k| self.places[k]) { -one::<T>() } else { one() }
    }
}

/// The columns below the diagonal, which are ones.
fn unit_lower_half<T: Number>(rows: usize, columns: usize, element: impl Fn(usize, usize) -> T) -> Mat<T> {
    Mat::from_fn(rows, columns, |i, j| match i.cmp(&j) {
        Ordering::Less => zero(),
        Ordering::Equal => one(),
        Ordering::Greater => element(i, j),
    })
}

/// The rows from the diagonal on.
fn upper_half<T: Number>(rows: usize, columns: usize, element: impl Fn(usize, usize) -> T) -> Mat<T> {
    Mat::from_fn(rows, columns, |i, j| if i <= j { element(i, j) } else { zero() })
}

/// What lies below and above the diagonal of a matrix in column order.
fn halves<T: Number>(rows: usize, columns: usize, a: &[T]) -> (Mat<T>, Mat<T>) {
    let (n, element) = (rows.min(columns), |i: usize, j: usize| a[i + j * rows]);
    (unit_lower_half(rows, n, element), upper_half(n, columns, element))
}

/// Where each row was, given the rows that were exchanged with each in turn.
pub(super) fn places_of(rows: usize, exchanges: &[usize]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..rows).collect();
    exchanges.iter().enumerate().for_each(|(k, &other)| places.swap(k, other));
    places
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

/// `a[p] = L U` with the largest pivots of their columns. First the rows with pivots, L below the diagonal and U from it on, and their places in a;
/// then, if there are more, the rows of L below them, and their places.
pub(super) fn lu<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let lu = Lu::of(library, matrices[0]);
    let (n, rows) = (lu.n_pivots(), lu.rows);
    out.elements(0, (n, lu.columns), |i, j| lu.factors[i + j * rows])?;
    out.indices(1, &lu.places[..n])?;
    if n < rows {
        out.elements(2, (rows - n, n), |i, j| lu.factors[n + i + j * rows])?;
        out.indices(3, &lu.places[n..])?;
    }
    Ok(())
}

/// `a = L L^H`, of the lower half of a.
pub(super) fn cholesky<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let indefinite = || Error::matrix("the matrix is not positive definite, so it has no Cholesky factor");
    if let Some(library) = library {
        // To the library our lower half is the upper half of the conjugate matrix, and its factor, read by rows, is ours.
        let (n, mut elements) = (matrices[0].nrows(), matrices.rows(0).to_vec());
        for (i, row) in elements.chunks_mut(n.max(1)).enumerate() {
            row[i] = from_real(&real(&row[i]));
            row[i + 1..].fill(zero());
        }
        if !library.cholesky(Half::Upper, n, &mut elements) {
            return Err(indefinite());
        }
        return out.rows(0, &elements);
    }
    let factor = Llt::new(owned_self_adjoint(matrices[0]).as_ref(), Side::Lower).map_err(|_| indefinite())?;
    out.matrix(0, factor.L())
}

/// A matrix as reflectors and R.
enum Reflected<T> {
    /// By a library: R, and reflectors below its diagonal, in column order, with their factors.
    Foreign { a: Vec<T>, factors: Vec<T>, scale: Scale },
    /// By `faer`.
    Own(Qr<T>, Scale),
}

impl<T: Number> Reflected<T> {
    fn of(library: Library<'_, T>, matrix: MatRef<'_, T>) -> Reflected<T> {
        match library {
            Some(library) => {
                let mut a = super::columns(matrix);
                let scale = Scale::apply_all(&mut a);
                let factors = library.reflect(matrix.nrows(), matrix.ncols(), &mut a);
                Reflected::Foreign { a, factors, scale }
            }
            None => {
                let (scaled, scale) = Scale::apply(owned(matrix));
                Reflected::Own(Qr::new(scaled.as_ref()), scale)
            }
        }
    }

    /// R, with as many rows as asked for.
    fn r(&self, (rows, columns): (usize, usize), wanted: usize) -> Mat<T> {
        let mut r = Mat::<T>::zeros(wanted, columns);
        let n = rows.min(columns);
        let (triangle, scale) = match self {
            Reflected::Foreign { a, scale, .. } => (upper_half(n, columns, |i, j| a[i + j * rows]), *scale),
            Reflected::Own(qr, scale) => (qr.thin_R().to_owned(), *scale),
        };
        r.get_mut(..n, ..).copy_from(scale.undo_matrix(triangle.as_ref()));
        r
    }

    /// The first columns of Q.
    fn q(self, library: Library<'_, T>, rows: usize, columns: usize) -> Mat<T> {
        match (self, library) {
            (Reflected::Own(qr, _), _) if columns == rows => qr.compute_Q(),
            (Reflected::Own(qr, _), _) => qr.compute_thin_Q(),
            (Reflected::Foreign { mut a, factors, .. }, Some(library)) => {
                // Columns beyond the reflectors are written by the routine, whatever they hold.
                a.resize(rows * columns, zero());
                library.multiply_reflectors(rows, columns, &mut a, &factors);
                Mat::from_fn(rows, columns, |i, j| a[i + j * rows])
            }
            (Reflected::Foreign { .. }, None) => unreachable!("reflectors of a library without the library"),
        }
    }
}

/// `a = Q R` with as many columns of Q as a has rows or columns, whichever are fewer.
pub(super) fn qr<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let (rows, columns) = matrices[0].shape();
    let n = rows.min(columns);
    let reflected = Reflected::of(library, matrices[0]);
    out.matrix(1, reflected.r((rows, columns), n).as_ref())?;
    out.matrix(0, reflected.q(library, rows, n).as_ref())
}

/// `a = Q R` with a square Q.
pub(super) fn qr_complete<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let (rows, columns) = matrices[0].shape();
    let reflected = Reflected::of(library, matrices[0]);
    out.matrix(1, reflected.r((rows, columns), rows).as_ref())?;
    out.matrix(0, reflected.q(library, rows, rows).as_ref())
}

/// R of `a = Q R`.
pub(super) fn r<T: Number>(library: Library<'_, T>, matrices: &Operands<'_, T>, out: &mut Slots<'_>) -> Result<()> {
    let (rows, columns) = matrices[0].shape();
    out.matrix(0, Reflected::of(library, matrices[0]).r((rows, columns), rows.min(columns)).as_ref())
}

/// `a = (I - V T V^H) R`: the reflections of a panel in one, for the columns beside it.
pub(super) fn reflectors<T: Number>(
    library: Library<'_, T>,
    matrices: &Operands<'_, T>,
    out: &mut Slots<'_>,
) -> Result<()> {
    let (rows, columns) = matrices[0].shape();
    let n = rows.min(columns);
    let (basis, t, r) = match library {
        Some(library) => {
            let mut a = super::columns(matrices[0]);
            let scale = Scale::apply_all(&mut a);
            let factors = library.reflect(rows, columns, &mut a);
            let triangle = library.reflector_triangle(rows, &a, &factors);
            let (basis, r) = halves(rows, columns, &a);
            let t = upper_half(n, n, |i, j| triangle[i + j * n]);
            (basis, t, scale.undo_matrix(r.as_ref()))
        }
        None => {
            let (mut panel, scale) = Scale::apply(owned(matrices[0]));
            let mut coefficients = Mat::<T>::zeros(n, n);
            let scratch = qr_in_place_scratch::<T>(rows, columns, n, Par::Seq, Default::default());
            let stack = &mut MemBuffer::new(scratch);
            qr_in_place(panel.as_mut(), coefficients.as_mut(), Par::Seq, MemStack::new(stack), Default::default());
            // `faer` keeps the inverse of T.
            let mut t = Mat::<T>::identity(n, n);
            solve_upper_triangular_in_place(coefficients.as_ref(), t.as_mut(), Par::Seq);
            let basis = unit_lower_half(rows, n, |i, j| panel[(i, j)]);
            let r = upper_half(n, columns, |i, j| panel[(i, j)]);
            (basis, t, scale.undo_matrix(r.as_ref()))
        }
    };
    out.matrix(0, basis.as_ref())?;
    out.matrix(1, t.as_ref())?;
    out.matrix(2, r.as_ref())
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
        Slots { results, matrix: 0, n_matrices: 1, written: &mut [] }.vector(0, vec![sign])
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
