//! Functions of matrices and of stacks of matrices: the last two axes of a block are rows and columns, earlier axes count matrices.
//!
//! Single precision is computed in double precision: a block is copied into column order anyway, and half as many instances compile.
//!
//! Factorisations use the [library](tw_ir::dense) that the engine passes, or else `faer`. A matrix whose squared elements would overflow or underflow is scaled by a power
//! of two first, as in LAPACK ([`scale`]).

use std::borrow::Cow;

use faer::traits::ComplexField;
use faer::traits::math_utils::{from_real, real, zero};
use faer::{Mat, MatRef};
use tw_ir::dense::{Dense, DenseLibrary};
use tw_ir::dtype::{C64, C128};
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockFunction, FunctionTable};
use tw_ir::workflow::BlockShape;
use tw_ir::{Array, ArrayView, Buffer, DType, Slice};

mod factor;
mod scale;
mod scratch;
mod solve;
mod spectral;

/// The numbers matrices are computed in.
trait Number: ComplexField<Real = f64> + Copy {
    /// Elements as such numbers.
    fn read(slice: Slice<'_>) -> Result<Cow<'_, [Self]>>;
    /// Overwrites an element of a buffer, which may be of a narrower type.
    fn write(self, buffer: &mut Buffer, position: usize);
    /// The elements of a buffer, if it is of this type.
    fn elements(buffer: &mut Buffer) -> Option<&mut [Self]>;
    /// The routines of a library for such numbers.
    fn routines(library: &dyn DenseLibrary) -> &dyn Dense<Self>;
    fn is_finite(self) -> bool;
    fn magnitude(self) -> f64;
    /// The larger of the magnitudes of its parts.
    fn largest_part(self) -> f64;
    fn divided(self, by: f64) -> Self;
    fn times(self, by: f64) -> Self;
    fn conjugate(self) -> Self;
    /// The quotient, whatever the size of the divisor; a dividend at the end of the range may leave it.
    fn over(self, by: Self) -> Self;
}

impl Number for f64 {
    fn read(slice: Slice<'_>) -> Result<Cow<'_, [f64]>> {
        match slice {
            Slice::F64(values) => Ok(Cow::Borrowed(values)),
            Slice::F32(values) => Ok(values.iter().map(|&x| x as f64).collect()),
            other => Err(not_numbers(other)),
        }
    }
    fn write(self, buffer: &mut Buffer, position: usize) {
        match buffer {
            Buffer::F64(values) => values[position] = self,
            Buffer::F32(values) => values[position] = self as f32,
            _ => C128::new(self, 0.0).write(buffer, position),
        }
    }
    fn elements(buffer: &mut Buffer) -> Option<&mut [f64]> {
        match buffer {
            Buffer::F64(values) => Some(values),
            _ => None,
        }
    }
    fn routines(library: &dyn DenseLibrary) -> &dyn Dense<f64> {
        library.real()
    }
    fn is_finite(self) -> bool {
        f64::is_finite(self)
    }
    fn magnitude(self) -> f64 {
        self.abs()
    }
    fn largest_part(self) -> f64 {
        self.abs()
    }
    fn divided(self, by: f64) -> f64 {
        self / by
    }
    fn times(self, by: f64) -> f64 {
        self * by
    }
    fn conjugate(self) -> f64 {
        self
    }
    fn over(self, by: f64) -> f64 {
        self / by
    }
}

impl Number for C128 {
    fn read(slice: Slice<'_>) -> Result<Cow<'_, [C128]>> {
        match slice {
            Slice::C128(values) => Ok(Cow::Borrowed(values)),
            Slice::C64(values) => Ok(values.iter().map(|x| C128::new(x.re as f64, x.im as f64)).collect()),
            other => Err(not_numbers(other)),
        }
    }
    fn write(self, buffer: &mut Buffer, position: usize) {
        match buffer {
            Buffer::C128(values) => values[position] = self,
            Buffer::C64(values) => values[position] = C64::new(self.re as f32, self.im as f32),
            Buffer::F64(values) => values[position] = self.re,
            Buffer::F32(values) => values[position] = self.re as f32,
            _ => unreachable!("results of matrix functions are floating point or complex"),
        }
    }
    fn elements(buffer: &mut Buffer) -> Option<&mut [C128]> {
        match buffer {
            Buffer::C128(values) => Some(values),
            _ => None,
        }
    }
    fn routines(library: &dyn DenseLibrary) -> &dyn Dense<C128> {
        library.complex()
    }
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }
    fn magnitude(self) -> f64 {
        self.re.hypot(self.im)
    }
    fn largest_part(self) -> f64 {
        self.re.abs().max(self.im.abs())
    }
    fn divided(self, by: f64) -> C128 {
        self / by
    }
    fn times(self, by: f64) -> C128 {
        self * by
    }
    fn conjugate(self) -> C128 {
        self.conj()
    }
    /// Smith's rule, with the divisor scaled away from the ends of the range, where the square of its size is no number.
    fn over(self, by: C128) -> C128 {
        let (small, large, far) = (2f64.powi(-500), 2f64.powi(500), 2f64.powi(600));
        let scale = match by.re.abs().max(by.im.abs()) {
            size if size < small => far,
            size if size > large => far.recip(),
            _ => 1.0,
        };
        let by = by * scale;
        let quotient = if by.re.abs() >= by.im.abs() {
            let ratio = by.im / by.re;
            let total = by.re + by.im * ratio;
            C128::new((self.re + self.im * ratio) / total, (self.im - self.re * ratio) / total)
        } else {
            let ratio = by.re / by.im;
            let total = by.re * ratio + by.im;
            C128::new((self.re * ratio + self.im) / total, (self.im * ratio - self.re) / total)
        };
        quotient * scale
    }
}

fn not_numbers(slice: Slice<'_>) -> Error {
    Error::types(format!("a matrix of {}", slice.dtype())).help("convert it to a floating point or complex type")
}

/// The part of the results that belongs to one matrix of a stack.
struct Slots<'a> {
    results: &'a mut [Array],
    /// Which matrix, of how many.
    matrix: usize,
    n_matrices: usize,
    /// Results that were written.
    written: &'a mut [bool],
}

impl Slots<'_> {
    /// Where the elements of a result begin that belong to the matrix: there must be as many as are written, of a type that holds them. Programs
    /// may call functions with results of any shape.
    fn start(&mut self, result: usize, n: usize, is_fit: fn(DType) -> bool) -> Result<usize> {
        if let Some(written) = self.written.get_mut(result) {
            *written = true;
        }
        let wrong = |what: &str| Err(Error::source(format!("result {result} of a matrix function {what}")));
        match self.results.get(result) {
            None => wrong("is missing"),
            Some(array) if !is_fit(array.dtype()) => wrong(&format!("of type {}", array.dtype())),
            Some(array) if array.len() != n * self.n_matrices => wrong(&format!("has {} elements", array.len())),
            Some(_) => Ok(n * self.matrix),
        }
    }

    fn matrix<T: Number>(&mut self, result: usize, value: MatRef<'_, T>) -> Result<()> {
        self.elements(result, value.shape(), |i, j| value[(i, j)])
    }

    /// A matrix, given its elements.
    fn elements<T: Number>(
        &mut self,
        result: usize,
        (rows, columns): (usize, usize),
        value: impl Fn(usize, usize) -> T,
    ) -> Result<()> {
        let start = self.start(result, rows * columns, holds_numbers)?;
        let data = self.results[result].data_mut();
        match T::elements(data) {
            Some(elements) => in_squares(rows, columns, |i, j| elements[start + i * columns + j] = value(i, j)),
            None => in_squares(rows, columns, |i, j| value(i, j).write(data, start + i * columns + j)),
        }
        Ok(())
    }

    /// A matrix whose rows lie one after the other.
    fn rows<T: Number>(&mut self, result: usize, values: &[T]) -> Result<()> {
        let start = self.start(result, values.len(), holds_numbers)?;
        let data = self.results[result].data_mut();
        match T::elements(data) {
            Some(elements) => elements[start..start + values.len()].copy_from_slice(values),
            None => values.iter().enumerate().for_each(|(k, value)| value.write(data, start + k)),
        }
        Ok(())
    }

    /// As `rows`, of a matrix that is changed first, where it will lie if it can.
    fn changed_rows<T: Number>(&mut self, result: usize, values: &[T], change: impl FnOnce(&mut [T])) -> Result<()> {
        let start = self.start(result, values.len(), holds_numbers)?;
        match T::elements(self.results[result].data_mut()) {
            Some(elements) => {
                let elements = &mut elements[start..start + values.len()];
                elements.copy_from_slice(values);
                change(elements);
                Ok(())
            }
            None => {
                let mut values = values.to_vec();
                change(&mut values);
                self.rows(result, &values)
            }
        }
    }

    fn vector<T: Number>(&mut self, result: usize, values: Vec<T>) -> Result<()> {
        let start = self.start(result, values.len(), holds_numbers)?;
        let data = self.results[result].data_mut();
        values.into_iter().enumerate().for_each(|(k, value)| value.write(data, start + k));
        Ok(())
    }

    fn indices(&mut self, result: usize, values: &[usize]) -> Result<()> {
        let start = self.start(result, values.len(), |dtype| dtype == DType::I64)?;
        if let Buffer::I64(data) = self.results[result].data_mut() {
            values.iter().enumerate().for_each(|(k, &value)| data[start + k] = value as i64);
        }
        Ok(())
    }
}

/// Visits all elements of a matrix. Columns of one side of a copy lie one after the other, rows of the other: squares of both stay in cache. The inner loop
/// is over the second number, along which the copy should lie. Squares are a line of the cache wide: larger ones are up to twice as slow where the
/// lines of a square fall into few sets of the cache.
fn in_squares(rows: usize, columns: usize, mut visit: impl FnMut(usize, usize)) {
    const SIDE: usize = 8;
    for first in (0..rows).step_by(SIDE) {
        for left in (0..columns).step_by(SIDE) {
            for i in first..(first + SIDE).min(rows) {
                for j in left..(left + SIDE).min(columns) {
                    visit(i, j);
                }
            }
        }
    }
}

fn holds_numbers(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// The routines of a library, if the engine has one.
type Library<'a, T> = Option<&'a dyn Dense<T>>;

/// A function of one set of matrices.
type Matrices<T> = fn(Library<'_, T>, &Operands<'_, T>, &mut Slots<'_>) -> Result<()>;

/// The matrices that a function is called with.
struct Operands<'a, T> {
    views: Vec<MatRef<'a, T>>,
    elements: Vec<&'a [T]>,
}

impl<'a, T> Operands<'a, T> {
    /// The elements of a matrix, row by row.
    fn rows(&self, operand: usize) -> &'a [T] {
        self.elements[operand]
    }
}

impl<'a, T> std::ops::Index<usize> for Operands<'a, T> {
    type Output = MatRef<'a, T>;
    fn index(&self, operand: usize) -> &MatRef<'a, T> {
        &self.views[operand]
    }
}

struct MatrixFunction {
    name: &'static str,
    real: Matrices<f64>,
    complex: Matrices<C128>,
    /// Numbers that are allocated for each matrix.
    scratch: scratch::Numbers,
}

impl BlockFunction for MatrixFunction {
    fn name(&self) -> &str {
        self.name
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        self.run(None, operands, results)
    }
    fn apply_by(&self, library: &dyn DenseLibrary, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        self.run(Some(library), operands, results)
    }
    fn overwrites_results(&self) -> bool {
        // Those that it does not write are errors.
        true
    }
    fn scratch_bytes(&self, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
        scratch::bytes(self.scratch, operands, results)
    }
}

impl MatrixFunction {
    fn run(&self, library: Option<&dyn DenseLibrary>, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        match operands.iter().any(|operand| operand.dtype().is_complex()) {
            false => for_each_matrix(library, operands, results, self.real),
            true => for_each_matrix(library, operands, results, self.complex),
        }
    }
}

fn for_each_matrix<T: Number>(
    library: Option<&dyn DenseLibrary>,
    operands: &[ArrayView<'_>],
    results: &mut [Array],
    function: Matrices<T>,
) -> Result<()> {
    let library = library.map(T::routines);
    let data = operands.iter().map(|operand| T::read(operand.data())).collect::<Result<Vec<_>>>()?;
    let sizes = operands.iter().map(|operand| match operand.shape() {
        [.., rows, columns] => Ok((*rows as usize, *columns as usize)),
        _ => Err(Error::source("a matrix function needs two axes")),
    });
    let sizes = sizes.collect::<Result<Vec<_>>>()?;
    let count = |k: usize| data[k].len().checked_div(sizes[k].0 * sizes[k].1).unwrap_or(0);
    let n_matrices = count(0);
    if (1..operands.len()).any(|k| count(k) != n_matrices) {
        return Err(Error::source("stacks of different numbers of matrices"));
    }
    let mut written = vec![false; results.len()];
    for matrix in 0..n_matrices {
        let elements: Vec<&[T]> = data
            .iter()
            .zip(&sizes)
            .map(|(values, (rows, columns))| &values[matrix * rows * columns..(matrix + 1) * rows * columns])
            .collect();
        let views = elements
            .iter()
            .zip(&sizes)
            .map(|(&elements, &(rows, columns))| MatRef::from_row_major_slice(elements, rows, columns))
            .collect();
        let operands = Operands { views, elements };
        let mut slots = Slots { results: &mut *results, matrix, n_matrices, written: &mut written };
        function(library, &operands, &mut slots)?;
    }
    match results.iter().zip(&written).position(|(result, written)| !written && !result.is_empty()) {
        Some(extra) => Err(Error::source(format!("a matrix function has no result {extra}"))),
        None => Ok(()),
    }
}

/// The elements in column order, without gaps, as a library wants them.
fn columns<T: Number>(matrix: MatRef<'_, T>) -> Vec<T> {
    let (rows, columns) = matrix.shape();
    let mut copy = vec![zero(); rows * columns];
    // Of rows that lie together, slices are read: the checks of `faer` take as long as the copy.
    let slices: Option<Vec<&[T]>> =
        matrix.row_iter().map(|row| row.try_as_row_major().map(|row| row.as_slice())).collect();
    match slices {
        Some(slices) => in_squares(columns, rows, |j, i| copy[i + j * rows] = slices[i][j]),
        None => in_squares(columns, rows, |j, i| copy[i + j * rows] = matrix[(i, j)]),
    }
    copy
}

/// A copy in column order, which all of `faer` wants.
fn owned<T: Number>(matrix: MatRef<'_, T>) -> Mat<T> {
    matrix.to_owned()
}

/// A copy of a self-adjoint matrix. What its diagonal has of imaginary parts is not looked at, as in LAPACK.
fn owned_self_adjoint<T: Number>(matrix: MatRef<'_, T>) -> Mat<T> {
    let mut copy = owned(matrix);
    for k in 0..copy.nrows().min(copy.ncols()) {
        copy[(k, k)] = from_real(&real(&copy[(k, k)]));
    }
    copy
}

fn is_finite<T: Number>(matrix: MatRef<'_, T>) -> bool {
    (0..matrix.nrows()).all(|i| (0..matrix.ncols()).all(|j| matrix[(i, j)].is_finite()))
}

fn check_finite<T: Number>(elements: &[T], what: &str) -> Result<()> {
    match elements.iter().all(|x| Number::is_finite(*x)) {
        true => Ok(()),
        false => Err(Error::matrix(format!("{what} of a matrix with infinities or NaNs"))),
    }
}

/// Makes the matrix functions known.
pub(crate) fn register(table: &mut FunctionTable) {
    macro_rules! functions {
        ($($name:literal = $function:path, $scratch:ident;)*) => {
            $(table.register(MatrixFunction {
                name: $name,
                real: $function,
                complex: $function,
                scratch: scratch::$scratch,
            });)*
        };
    }
    functions! {
        "linalg_lu" = factor::lu, pivoted;
        "linalg_cholesky" = factor::cholesky, factors;
        "linalg_qr" = factor::qr, orthogonal;
        "linalg_qr_complete" = factor::qr_complete, reflectors;
        "linalg_r" = factor::r, orthogonal;
        "linalg_reflectors" = factor::reflectors, reflectors;
        "linalg_product" = solve::product, product;
        "linalg_solve" = solve::solve, solution;
        "linalg_inv" = solve::inv, solution;
        "linalg_slogdet" = solve::slogdet, pivoted;
        "linalg_solve_lower" = solve::lower, triangle;
        "linalg_solve_unit_lower" = solve::unit_lower, triangle;
        "linalg_solve_upper" = solve::upper, triangle;
        "linalg_solve_adjoint_lower_right" = solve::adjoint_lower_right, triangle;
        "linalg_solve_upper_right" = solve::upper_right, triangle;
        "linalg_svd" = spectral::svd, singular_values;
        "linalg_svd_full" = spectral::svd_full, singular_values;
        "linalg_svdvals" = spectral::svdvals, singular_values_alone;
        "linalg_eigh" = spectral::eigh, eigenvalues;
        "linalg_eigvalsh" = spectral::eigvalsh, eigenvalues;
    }
    table.register(MatrixFunction {
        name: "linalg_eig",
        real: spectral::eig_real,
        complex: spectral::eig_complex,
        scratch: scratch::any_eigenvalues,
    });
    table.register(MatrixFunction {
        name: "linalg_eigvals",
        real: spectral::eigvals_real,
        complex: spectral::eigvals_complex,
        scratch: scratch::any_eigenvalues,
    });
    table.register(factor::Parity);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_a_function_does_not_have_are_errors() {
        let mut table = FunctionTable::default();
        register(&mut table);
        let a = Array::from_f64(&[4.0, 2.0, 2.0, 5.0]).reshaped(&[2, 2]).unwrap();
        let mut results = vec![Array::from_f64(&[7.0; 4]).reshaped(&[2, 2]).unwrap(), Array::from_f64(&[7.0])];
        let function = table.get("linalg_cholesky").unwrap();
        assert!(function.0.overwrites_results());
        let error = function.0.apply(&[a.view()], &mut results).unwrap_err();
        assert!(error.to_string().contains("no result 1"), "{error}");
        results.pop();
        function.0.apply(&[a.view()], &mut results).unwrap();
        assert_eq!(results[0].to_f64_vec(), [2.0, 0.0, 1.0, 2.0]);
    }
}
