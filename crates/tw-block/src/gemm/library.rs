//! Matrix products by a BLAS, found when the program runs.

use std::ffi::{OsStr, c_char};
use std::fmt;
use std::sync::Arc;

use tw_ir::dense::DenseLibrary;
use tw_ir::dtype::{C64, C128};

use super::known::{Known, Multiply, Task};
use super::provider::Products;
use super::{Batch, Matrix};
use crate::blas::{Lapack, Library, Symbols, Unusable};

/// Rows, columns and terms from which on a call of a library pays.
const WORTH_CALLING: usize = 24;

const AS_IT_IS: &[u8; 1] = b"N";
const TRANSPOSED: &[u8; 1] = b"T";

/// How `?gemm` of Fortran is called. Integers of 64 bits are right for libraries that count in 32 bits, too: these read the low half.
type Gemm<T> = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const i64,
    *const i64,
    *const i64,
    *const T,
    *const T,
    *const i64,
    *const T,
    *const i64,
    *const T,
    *mut T,
    *const i64,
    usize,
    usize,
);

/// A BLAS that has been checked, with its LAPACK if it has one.
pub(super) struct Blas {
    single: Gemm<f32>,
    double: Gemm<f64>,
    complex_single: Gemm<C64>,
    complex_double: Gemm<C128>,
    lapack: Option<Lapack>,
    /// Keeps the code that the functions above point to.
    library: Arc<Library>,
}

impl fmt::Debug for Blas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blas").field("library", &self.library).finish_non_exhaustive()
    }
}

impl Blas {
    /// Loads a library, makes it use one thread, and checks a product.
    pub(super) fn open(path: &OsStr) -> Result<Blas, Unusable> {
        if cfg!(target_endian = "big") {
            return Err(Unusable::Lacks("integers with the low half first"));
        }
        let library = Arc::new(Library::open(path)?);
        let symbols = library.symbols();
        let (Some(single), Some(double), Some(complex_single), Some(complex_double)) =
            (gemm(&symbols, "sgemm_"), gemm(&symbols, "dgemm_"), gemm(&symbols, "cgemm_"), gemm(&symbols, "zgemm_"))
        else {
            return Err(Unusable::Lacks("sgemm, dgemm, cgemm and zgemm"));
        };
        let mut found = Blas { single, double, complex_single, complex_double, lapack: None, library };
        if !found.is_right() {
            return Err(Unusable::Wrong);
        }
        found.lapack = Lapack::of(&found.library);
        Ok(found)
    }

    /// Tries products of every layout whose results are known.
    fn is_right(&self) -> bool {
        is_right(self, self.single, |x| x as f32)
            && is_right(self, self.double, |x| x)
            && is_right(self, self.complex_single, |x| C64::new(x as f32, 0.0))
            && is_right(self, self.complex_double, |x| C128::new(x, 0.0))
    }

    /// Computes the products of a task, by the library where it is good at it.
    fn run<T: BlasElement>(&self, gemm: Gemm<T>, task: Task<'_, T>) {
        let (m, n, k) = task.dims;
        let large = m >= WORTH_CALLING && n >= WORTH_CALLING && k >= WORTH_CALLING;
        let out_at = task.out.1;
        let has_rows = out_at.column == 1 && out_at.row >= n;
        let has_columns = out_at.row == 1 && out_at.column >= m;
        let distances = [task.left.1.row, task.left.1.column, task.right.1.row, task.right.1.column];
        let countable =
            [m, n, k, out_at.row, out_at.column].iter().chain(&distances).all(|&x| i32::try_from(x).is_ok());
        // Half the work is worth more than a faster kernel.
        if !large || !countable || !(has_rows || has_columns) || task.is_symmetric() {
            return T::multiply(Known::SumProduct, T::default(), task);
        }
        task.check();
        let Task { out: (out, out_at), left, right, batch, accumulate, .. } = task;
        let _alone = self.library.on_one_thread();
        for b in 0..batch.n {
            let out_at = out_at.shifted(b * batch.out);
            let left = (left.0, left.1.shifted(b * batch.left));
            let right = (right.0, right.1.shifted(b * batch.right));
            // Fortran keeps columns together, so a matrix with its rows together is the transposed one to it.
            if has_columns {
                call(gemm, (m, n, k), out, out_at, left, right, accumulate);
            } else {
                let turned = |(data, at): (_, Matrix)| (data, at.transposed());
                call(gemm, (n, m, k), out, out_at.transposed(), turned(right), turned(left), accumulate);
            }
        }
    }
}

impl Products for Blas {
    fn name(&self) -> &str {
        self.library.name()
    }
    fn multiply_f32(&self, task: Task<'_, f32>) {
        self.run(self.single, task);
    }
    fn multiply_f64(&self, task: Task<'_, f64>) {
        self.run(self.double, task);
    }
    fn multiply_c64(&self, task: Task<'_, C64>) {
        self.run(self.complex_single, task);
    }
    fn multiply_c128(&self, task: Task<'_, C128>) {
        self.run(self.complex_double, task);
    }
    fn dense(&self) -> Option<&dyn DenseLibrary> {
        self.lapack.as_ref().map(|lapack| lapack as &dyn DenseLibrary)
    }
}

fn gemm<T>(symbols: &Symbols<'_>, name: &str) -> Option<Gemm<T>> {
    // SAFETY: this type is the interface of BLAS.
    unsafe { symbols.find(name) }
}

/// Tries products of small integers, which every type computes exactly.
fn is_right<T: BlasElement + PartialEq>(blas: &Blas, gemm: Gemm<T>, number: fn(f64) -> T) -> bool {
    const N: usize = WORTH_CALLING + 1;
    let row_major = Matrix { offset: 0, row: N, column: 1 };
    let layouts = [row_major, row_major.transposed()];
    let numbers = |k: usize| (0..N * N).map(move |i| (i * k % 7) as f64 - 3.0);
    let (a, b): (Vec<f64>, Vec<f64>) = (numbers(3).collect(), numbers(5).collect());
    let typed = |values: &[f64]| values.iter().map(|&x| number(x)).collect::<Vec<T>>();
    let (typed_a, typed_b) = (typed(&a), typed(&b));
    layouts.iter().flat_map(|left| layouts.iter().map(move |right| (*left, *right))).all(|(left, right)| {
        let mut products = [T::ONE; N * N];
        let out = (&mut products[..], row_major);
        let (dims, left_in, right_in) = ((N, N, N), (&typed_a[..], left), (&typed_b[..], right));
        blas.run(gemm, Task { dims, out, left: left_in, right: right_in, batch: Batch::ONE, accumulate: true });
        (0..N * N).all(|at| {
            let (i, j) = (at / N, at % N);
            let term = |k: usize| a[i * left.row + k * left.column] * b[k * right.row + j * right.column];
            products[at] == number(1.0 + (0..N).map(term).sum::<f64>())
        })
    })
}

/// Calls the library for one product that has been checked and whose numbers fit 32 bits. Columns of the output are contiguous.
fn call<T: BlasElement>(
    gemm: Gemm<T>,
    (m, n, k): (usize, usize, usize),
    out: &mut [T],
    out_at: Matrix,
    (left, left_at): (&[T], Matrix),
    (right, right_at): (&[T], Matrix),
    accumulate: bool,
) {
    let left = Operand::new(left, left_at, m, k);
    let right = Operand::new(right, right_at, k, n);
    let beta = if accumulate { T::ONE } else { T::default() };
    let (a, b) = (left.elements(), right.elements());
    let c = out[out_at.offset..].as_mut_ptr();
    let (m, n, k) = (m as i64, n as i64, k as i64);
    let (lda, ldb, ldc) = (left.distance as i64, right.distance as i64, out_at.column as i64);
    let (form_a, form_b) = (left.form.as_ptr().cast(), right.form.as_ptr().cast());
    // SAFETY: the function has this type. All elements of the three matrices lie in their slices: the task was checked, its numbers fit 32 bits, and
    // distances fit the orders. `out` is borrowed mutably, so nobody else looks at it.
    unsafe {
        gemm(form_a, form_b, &m, &n, &k, &T::ONE, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
    }
}

/// Types that libraries multiply.
pub(super) trait BlasElement: Multiply {
    const ONE: Self;
}
impl BlasElement for f32 {
    const ONE: f32 = 1.0;
}
impl BlasElement for f64 {
    const ONE: f64 = 1.0;
}
impl BlasElement for C64 {
    const ONE: C64 = C64::new(1.0, 0.0);
}
impl BlasElement for C128 {
    const ONE: C128 = C128::new(1.0, 0.0);
}

/// An operand as a library wants it: one of its distances is 1.
struct Operand<'a, T> {
    given: &'a [T],
    copied: Option<Vec<T>>,
    form: &'static [u8; 1],
    distance: usize,
}

impl<'a, T: Copy> Operand<'a, T> {
    fn new(data: &'a [T], at: Matrix, rows: usize, columns: usize) -> Operand<'a, T> {
        let given = &data[at.offset..];
        if at.row == 1 && at.column >= rows {
            return Operand { given, copied: None, form: AS_IT_IS, distance: at.column };
        }
        if at.column == 1 && at.row >= columns {
            return Operand { given, copied: None, form: TRANSPOSED, distance: at.row };
        }
        let elements = (0..columns).flat_map(|j| (0..rows).map(move |i| i * at.row + j * at.column));
        let copied = Some(elements.map(|at| given[at]).collect());
        Operand { given, copied, form: AS_IT_IS, distance: rows }
    }

    fn elements(&self) -> *const T {
        self.copied.as_deref().unwrap_or(self.given).as_ptr()
    }
}
