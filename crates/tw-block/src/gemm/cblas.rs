//! A CBLAS, found when the program runs.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fmt;

use libloading::Library;

use super::known::{Known, Multiply, Task};
use super::provider::Products;
use super::{Batch, Matrix};

/// Rows, columns and terms from which on a call of a library pays.
const WORTH_CALLING: usize = 24;

const ROW_MAJOR: c_int = 101;
const AS_IT_IS: c_int = 111;
const TRANSPOSED: c_int = 112;

/// How `cblas_?gemm` is called, with its integers of type `I`.
type Gemm<T, I> = unsafe extern "C" fn(c_int, c_int, c_int, I, I, I, T, *const T, I, *const T, I, T, *mut T, I);

/// A product in a library, which counts in 32 or 64 bits.
#[derive(Clone, Copy)]
enum Call<T> {
    Narrow(Gemm<T, i32>),
    Wide(Gemm<T, i64>),
}

/// A library that has been checked.
pub(super) struct Cblas {
    name: String,
    single: Call<f32>,
    double: Call<f64>,
    /// Keeps the code that the functions above point to.
    _library: Library,
}

impl fmt::Debug for Cblas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cblas").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a library cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// It cannot be loaded.
    Absent(String),
    /// It lacks a function.
    Lacks(&'static str),
    /// It gives a wrong product.
    Wrong,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Absent(reason) => write!(f, "it cannot be loaded ({reason})"),
            Unusable::Lacks(what) => write!(f, "it has no {what}"),
            Unusable::Wrong => f.write_str("it gives a wrong product of two small matrices"),
        }
    }
}

impl Cblas {
    /// Loads a library, makes it use one thread, and checks a product.
    pub(super) fn open(path: &OsStr) -> Result<Cblas, Unusable> {
        // SAFETY: loading runs the initialisers of the library. The user named it, or it is the system's BLAS.
        let library = unsafe { Library::new(path) }.map_err(|error| Unusable::Absent(error.to_string()))?;
        // Builds for Python have a prefix, those that count in 64 bits a suffix.
        for (prefix, suffix) in [("", ""), ("scipy_", ""), ("", "64_"), ("scipy_", "64_")] {
            let symbols = Symbols { library: &library, prefix, suffix };
            let Some((single, double)) = symbols.products() else { continue };
            let name = symbols.use_one_thread().ok_or(Unusable::Lacks("known way to set its number of threads"))?;
            let found = Cblas { name, single, double, _library: library };
            return if found.is_right() { Ok(found) } else { Err(Unusable::Wrong) };
        }
        Err(Unusable::Lacks("cblas_sgemm and cblas_dgemm"))
    }

    /// Tries products of every layout whose results are known.
    fn is_right(&self) -> bool {
        const N: usize = WORTH_CALLING + 1;
        let row_major = Matrix { offset: 0, row: N, column: 1 };
        let layouts = [row_major, row_major.transposed()];
        let numbers = |k: usize| (0..N * N).map(move |i| (i * k % 7) as f64 - 3.0);
        let (a, b): (Vec<f64>, Vec<f64>) = (numbers(3).collect(), numbers(5).collect());
        let singles = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let (single_a, single_b) = (singles(&a), singles(&b));
        layouts.iter().flat_map(|left| layouts.iter().map(move |right| (*left, *right))).all(|(left, right)| {
            let (mut doubles, mut floats) = (vec![1.0; N * N], vec![1.0f32; N * N]);
            let dims = (N, N, N);
            let batch = Batch::ONE;
            let out = (&mut doubles[..], row_major);
            self.double.run(Task { dims, out, left: (&a, left), right: (&b, right), batch, accumulate: true });
            let out = (&mut floats[..], row_major);
            self.single.run(Task {
                dims,
                out,
                left: (&single_a, left),
                right: (&single_b, right),
                batch,
                accumulate: true,
            });
            (0..N * N).all(|at| {
                let (i, j) = (at / N, at % N);
                let term = |k: usize| a[i * left.row + k * left.column] * b[k * right.row + j * right.column];
                let sum = 1.0 + (0..N).map(term).sum::<f64>();
                doubles[at] == sum && f64::from(floats[at]) == sum
            })
        })
    }
}

impl Products for Cblas {
    fn name(&self) -> &str {
        &self.name
    }
    fn multiply_f32(&self, task: Task<'_, f32>) {
        self.single.run(task);
    }
    fn multiply_f64(&self, task: Task<'_, f64>) {
        self.double.run(task);
    }
}

/// The functions of a library, under their decorated names.
struct Symbols<'a> {
    library: &'a Library,
    prefix: &'static str,
    suffix: &'static str,
}

impl Symbols<'_> {
    /// A function.
    ///
    /// # Safety
    /// A function of this name must have type `F`.
    unsafe fn find<F: Copy>(&self, name: &str) -> Option<F> {
        let name = format!("{}{name}{}", self.prefix, self.suffix);
        // SAFETY: the caller vouches for the type.
        unsafe { self.library.get::<F>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    fn products(&self) -> Option<(Call<f32>, Call<f64>)> {
        // SAFETY: these types are the interface of CBLAS, whose builds with the suffix count in 64 bits.
        unsafe {
            match self.suffix {
                "" => Some((Call::Narrow(self.find("cblas_sgemm")?), Call::Narrow(self.find("cblas_dgemm")?))),
                _ => Some((Call::Wide(self.find("cblas_sgemm")?), Call::Wide(self.find("cblas_dgemm")?))),
            }
        }
    }

    /// Makes the library use one thread, and tells its name and version; `None` if it is none of the known ones.
    fn use_one_thread(&self) -> Option<String> {
        type Set = unsafe extern "C" fn(c_int);
        type Text = unsafe extern "C" fn() -> *const c_char;
        // SAFETY: the types are those of the interfaces of OpenBLAS, MKL and BLIS. Texts are static and end with 0; MKL writes at most as many
        // bytes as it is told.
        unsafe {
            let text = |name: &str| -> Option<String> {
                let text = self.find::<Text>(name)?();
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            if let Some(set) = self.find::<Set>("openblas_set_num_threads") {
                set(1);
                // "OpenBLAS 0.3.30 ...": what follows describes the build, not its bits.
                let config = text("openblas_get_config").unwrap_or_default();
                let version: Vec<&str> = config.split_whitespace().take(2).collect();
                let core = text("openblas_get_corename").unwrap_or_default();
                return Some(format!("{} {core}", version.join(" ")).trim().to_string());
            }
            if let Some(set) = self.find::<Set>("MKL_Set_Num_Threads") {
                set(1);
                let mut version = [0u8; 200];
                if let Some(get) = self.find::<unsafe extern "C" fn(*mut c_char, c_int)>("mkl_get_version_string") {
                    get(version.as_mut_ptr().cast(), version.len() as c_int - 1);
                }
                let version = CStr::from_bytes_until_nul(&version).ok()?.to_string_lossy().trim().to_string();
                return Some(format!("MKL {version}"));
            }
            if let Some(set) = self.find::<unsafe extern "C" fn(isize)>("bli_thread_set_num_threads") {
                set(1);
                return Some(format!("BLIS {}", text("bli_info_get_version_str").unwrap_or_default()));
            }
        }
        None
    }
}

impl<T: Float> Call<T> {
    /// Computes the products of a task, by the library where it is good at it.
    fn run(self, task: Task<'_, T>) {
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
        for b in 0..batch.n {
            let out_at = out_at.shifted(b * batch.out);
            let left = (left.0, left.1.shifted(b * batch.left));
            let right = (right.0, right.1.shifted(b * batch.right));
            if has_rows {
                self.call((m, n, k), out, out_at, left, right, accumulate);
            } else {
                let turned = |(data, at): (_, Matrix)| (data, at.transposed());
                self.call((n, m, k), out, out_at.transposed(), turned(right), turned(left), accumulate);
            }
        }
    }

    /// Calls the library for one product that has been checked and whose numbers fit 32 bits. Rows of the output are contiguous.
    fn call(
        self,
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
        macro_rules! call {
            ($gemm:ident, $int:ident) => {{
                let (m, n, k) = (m as $int, n as $int, k as $int);
                let (lda, ldb, ldc) = (left.distance as $int, right.distance as $int, out_at.row as $int);
                // SAFETY: the function has this type. All elements of the three matrices lie in their slices: the task was checked, its
                // numbers fit 32 bits, and distances fit the orders. `out` is borrowed mutably, so nobody else looks at it.
                unsafe {
                    $gemm(ROW_MAJOR, left.order, right.order, m, n, k, T::ONE, a, lda, b, ldb, beta, c, ldc);
                }
            }};
        }
        match self {
            Call::Narrow(gemm) => call!(gemm, i32),
            Call::Wide(gemm) => call!(gemm, i64),
        }
    }
}

/// Types that libraries multiply.
pub(super) trait Float: Multiply {
    const ONE: Self;
}
impl Float for f32 {
    const ONE: f32 = 1.0;
}
impl Float for f64 {
    const ONE: f64 = 1.0;
}

/// An operand as a library wants it: one of its distances is 1.
struct Operand<'a, T> {
    given: &'a [T],
    copied: Option<Vec<T>>,
    order: c_int,
    distance: usize,
}

impl<'a, T: Copy> Operand<'a, T> {
    fn new(data: &'a [T], at: Matrix, rows: usize, columns: usize) -> Operand<'a, T> {
        let given = &data[at.offset..];
        if at.column == 1 && at.row >= columns {
            return Operand { given, copied: None, order: AS_IT_IS, distance: at.row };
        }
        if at.row == 1 && at.column >= rows {
            return Operand { given, copied: None, order: TRANSPOSED, distance: at.column };
        }
        let elements = (0..rows).flat_map(|i| (0..columns).map(move |j| i * at.row + j * at.column));
        let copied = Some(elements.map(|at| given[at]).collect());
        Operand { given, copied, order: AS_IT_IS, distance: columns }
    }

    fn elements(&self) -> *const T {
        self.copied.as_deref().unwrap_or(self.given).as_ptr()
    }
}
