//! LAPACK for block functions.
//!
//! Routines of Fortran take every number by its address. Integers are handed over as 64 bits, in which a library that counts in 32 bits finds the
//! number as well, as the low half comes first. Only the list of exchanged rows has to be read as what it is.

use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::mem::transmute;
use std::sync::Arc;

use tw_ir::dense::{Dense, DenseLibrary, Half, SingularValues, Triangle, Vectors};
use tw_ir::dtype::C128;

use super::library::{Library, OneThread, Symbols};

/// Which form of an option a routine takes.
type Letter = &'static [u8; 1];

/// A routine whose arguments the caller knows.
type Routine = unsafe extern "C" fn();

/// An argument passed by address: a number or a list of numbers.
trait ByAddress {
    fn address(self) -> *mut c_void;
}

impl<T> ByAddress for &T {
    fn address(self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

impl<T> ByAddress for &mut T {
    fn address(self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }
}

impl<T> ByAddress for &[T] {
    fn address(self) -> *mut c_void {
        self.as_ptr().cast_mut().cast()
    }
}

impl<T> ByAddress for &mut [T] {
    fn address(self) -> *mut c_void {
        self.as_mut_ptr().cast()
    }
}

/// Calls a routine with letters, which all routines take first, and with numbers by their addresses. Fortran passes the length of every text at
/// the end.
///
/// # Safety
/// These must be the arguments of the routine; arguments that it changes must be passed as `&mut`, and be as long as the numbers say.
macro_rules! call {
    ($routine:expr, [$($letter:expr),*], $($number:expr),+ $(,)?) => {{
        type Arguments = unsafe extern "C" fn(
            $(call!(@ $letter => *const c_char),)*
            $(call!(@ $number => *mut c_void),)+
            $(call!(@ $letter => usize),)*
        );
        let routine = transmute::<Routine, Arguments>($routine);
        routine($($letter.as_ptr().cast(),)* $(ByAddress::address($number),)+ $(call!(@ $letter => 1),)*)
    }};
    (@ $one:expr => $type:ty) => { $type };
    (@ $one:expr => 1) => { 1 };
}

/// A whole LAPACK.
pub(crate) struct Lapack {
    real: Routines<f64>,
    complex: Routines<C128>,
}

impl fmt::Debug for Lapack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lapack").field("library", &self.real.library).finish_non_exhaustive()
    }
}

impl DenseLibrary for Lapack {
    fn real(&self) -> &dyn Dense<f64> {
        &self.real
    }
    fn complex(&self) -> &dyn Dense<C128> {
        &self.complex
    }
}

impl Lapack {
    /// The routines of a library, if it has all of them and factors a small matrix rightly.
    pub(crate) fn of(library: &Arc<Library>) -> Option<Lapack> {
        if cfg!(target_endian = "big") {
            return None;
        }
        let symbols = library.symbols();
        let mut found =
            Lapack { real: Routines::find(&symbols, library)?, complex: Routines::find(&symbols, library)? };
        let counts_in_64_bits = found.real.find_width()?;
        found.complex.counts_in_64_bits = counts_in_64_bits;
        found.is_right().then_some(found)
    }

    /// Factors matrices whose factors are known.
    fn is_right(&self) -> bool {
        let mut real = [4.0, 2.0, 0.0, 5.0];
        let mut complex = [C128::new(4.0, 0.0), C128::new(0.0, -2.0), C128::new(0.0, 0.0), C128::new(5.0, 0.0)];
        let right = self.real.cholesky(Half::Lower, 2, &mut real) && real == [2.0, 1.0, 0.0, 2.0];
        let expected = [C128::new(2.0, 0.0), C128::new(0.0, -1.0), C128::new(0.0, 0.0), C128::new(2.0, 0.0)];
        right && self.complex.cholesky(Half::Lower, 2, &mut complex) && complex == expected
    }
}

/// Types that LAPACK factors.
trait Element: Copy + Default + Send + Sync + 'static {
    const ONE: Self;
    /// Routines for complex numbers take room for real ones as well.
    const IS_COMPLEX: bool;
    /// The letter with which names of routines begin, and the names that differ.
    const LETTER: &'static str;
    const ORGQR: &'static str;
    const SYEVD: &'static str;
    /// How a conjugate transpose is asked for.
    const ADJOINT: Letter;
    fn real_part(self) -> f64;
}

impl Element for f64 {
    const ONE: f64 = 1.0;
    const IS_COMPLEX: bool = false;
    const LETTER: &'static str = "d";
    const ORGQR: &'static str = "orgqr";
    const SYEVD: &'static str = "syevd";
    const ADJOINT: Letter = b"T";
    fn real_part(self) -> f64 {
        self
    }
}

impl Element for C128 {
    const ONE: C128 = C128::new(1.0, 0.0);
    const IS_COMPLEX: bool = true;
    const LETTER: &'static str = "z";
    const ORGQR: &'static str = "ungqr";
    const SYEVD: &'static str = "heevd";
    const ADJOINT: Letter = b"C";
    fn real_part(self) -> f64 {
        self.re
    }
}

/// The routines for one type.
struct Routines<T> {
    potrf: Routine,
    getrf: Routine,
    geqrf: Routine,
    orgqr: Routine,
    larft: Routine,
    trtri: Routine,
    trsm: Routine,
    gemm: Routine,
    gesdd: Routine,
    syevd: Routine,
    counts_in_64_bits: bool,
    /// Keeps the code that the functions above point to.
    library: Arc<Library>,
    of: PhantomData<T>,
}

fn half_letter(half: Half) -> Letter {
    match half {
        Half::Lower => b"L",
        Half::Upper => b"U",
    }
}

/// An integer for Fortran.
fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A leading dimension, which is at least 1.
fn leading(rows: usize) -> i64 {
    int(rows.max(1))
}

/// The length of scratch space that a routine has asked for.
fn asked<T: Element>(answer: T) -> usize {
    answer.real_part().max(1.0) as usize
}

/// The status that a routine returns: a library that counts in 32 bits has written the low half only.
fn outcome(info: i64) -> c_int {
    info as c_int
}

impl<T: Element> Routines<T> {
    fn find(symbols: &Symbols<'_>, library: &Arc<Library>) -> Option<Routines<T>> {
        // SAFETY: any function is an address; those who call it know its type.
        let find = |name: &str| unsafe { symbols.find::<Routine>(&format!("{}{name}_", T::LETTER)) };
        Some(Routines {
            potrf: find("potrf")?,
            getrf: find("getrf")?,
            geqrf: find("geqrf")?,
            orgqr: find(T::ORGQR)?,
            larft: find("larft")?,
            trtri: find("trtri")?,
            trsm: find("trsm")?,
            gemm: find("gemm")?,
            gesdd: find("gesdd")?,
            syevd: find(T::SYEVD)?,
            counts_in_64_bits: true,
            library: library.clone(),
            of: PhantomData,
        })
    }

    fn alone(&self) -> OneThread {
        self.library.on_one_thread()
    }

    /// Calls a routine that takes scratch space twice: first it says how much it wants.
    fn with_work(&self, mut call: impl FnMut(&mut [T], i64, &mut i64)) -> c_int {
        let (mut answer, mut info) = ([T::default()], 0);
        call(&mut answer, -1, &mut info);
        let mut work = vec![T::default(); asked(answer[0])];
        let length = int(work.len());
        call(&mut work, length, &mut info);
        outcome(info)
    }

    /// Factors a matrix and gives the rows that were exchanged, as the library writes them.
    fn factor(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<i64> {
        assert_eq!(a.len(), rows * columns);
        let (_alone, mut pivots, mut info) = (self.alone(), vec![0i64; rows.min(columns)], 0i64);
        // SAFETY: the slice holds the matrix; there is room for as many pivots as it has, of whatever width up to 64 bits.
        unsafe { call!(self.getrf, [], &int(rows), &int(columns), a, &leading(rows), &mut pivots[..], &mut info) };
        pivots
    }

    /// Exchanged rows, numbered from 0. Where the matrix has NaNs a library may name rows that are no longer there, or none.
    fn exchanges(&self, pivots: &[i64], n: usize, rows: usize) -> Vec<usize> {
        let narrow = |k: usize| (pivots[k / 2] >> (32 * (k % 2))) as i32 as i64;
        let row = |k: usize| if self.counts_in_64_bits { pivots[k] } else { narrow(k) };
        (0..n).map(|k| usize::try_from(row(k) - 1).unwrap_or(k).clamp(k, rows - 1)).collect()
    }
}

impl Routines<f64> {
    /// Finds out whether the library counts in 64 bits, by a matrix that exchanges rows; `None` if it does neither.
    fn find_width(&mut self) -> Option<bool> {
        let mut a = [0.0, 1.0, 1.0, 0.0];
        self.counts_in_64_bits = match self.factor(2, 2, &mut a)[..] {
            [2, 2] => true,
            [both, 0] if both == 2 | 2 << 32 => false,
            _ => return None,
        };
        (a == [1.0, 0.0, 0.0, 1.0]).then_some(self.counts_in_64_bits)
    }
}

impl<T: Element> Dense<T> for Routines<T> {
    fn cholesky(&self, half: Half, n: usize, a: &mut [T]) -> bool {
        assert_eq!(a.len(), n * n);
        let (_alone, mut info) = (self.alone(), 0i64);
        // SAFETY: the slice holds a matrix of n by n.
        unsafe { call!(self.potrf, [half_letter(half)], &int(n), a, &leading(n), &mut info) };
        outcome(info) == 0
    }

    fn lu(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<usize> {
        let pivots = self.factor(rows, columns, a);
        self.exchanges(&pivots, rows.min(columns), rows)
    }

    fn solve_triangle(&self, triangle: Triangle, t: &[T], (rows, columns): (usize, usize), b: &mut [T]) {
        let n = if triangle.on_right { columns } else { rows };
        assert_eq!((t.len(), b.len()), (n * n, rows * columns));
        let side: Letter = if triangle.on_right { b"R" } else { b"L" };
        let form = if triangle.adjoint { T::ADJOINT } else { b"N" };
        let diagonal: Letter = if triangle.unit { b"U" } else { b"N" };
        let half = half_letter(triangle.half);
        let (m, k, lead_t, lead_b) = (int(rows), int(columns), leading(n), leading(rows));
        let _alone = self.alone();
        // SAFETY: the slices hold a triangle of n by n and a matrix of rows by columns, and n is the side that meets the triangle.
        unsafe { call!(self.trsm, [side, half, form, diagonal], &m, &k, &T::ONE, t, &lead_t, b, &lead_b) };
    }

    fn invert_unit_lower(&self, n: usize, a: &mut [T]) {
        assert_eq!(a.len(), n * n);
        let (_alone, mut info) = (self.alone(), 0i64);
        // SAFETY: the slice holds a matrix of n by n.
        unsafe { call!(self.trtri, [b"L", b"U"], &int(n), a, &leading(n), &mut info) };
    }

    fn reflect(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<T> {
        assert_eq!(a.len(), rows * columns);
        let (_alone, mut factors) = (self.alone(), vec![T::default(); rows.min(columns)]);
        let (m, n, lead) = (int(rows), int(columns), leading(rows));
        self.with_work(|work, length, info| {
            // SAFETY: the slice holds the matrix, there are as many factors as reflectors, and scratch space is as long as said.
            unsafe { call!(self.geqrf, [], &m, &n, &mut *a, &lead, &mut factors[..], work, &length, info) };
        });
        factors
    }

    fn multiply_reflectors(&self, rows: usize, columns: usize, a: &mut [T], factors: &[T]) {
        assert_eq!(a.len(), rows * columns);
        assert!(factors.len() <= columns && columns <= rows);
        let (m, n, k, lead) = (int(rows), int(columns), int(factors.len()), leading(rows));
        let _alone = self.alone();
        self.with_work(|work, length, info| {
            // SAFETY: the slice holds the matrix, which has at least as many columns as there are factors, and as many rows as columns.
            unsafe { call!(self.orgqr, [], &m, &n, &k, &mut *a, &lead, factors, work, &length, info) };
        });
    }

    fn reflector_triangle(&self, rows: usize, a: &[T], factors: &[T]) -> Vec<T> {
        let n = factors.len();
        assert!(a.len() >= rows * n && n <= rows);
        let (_alone, mut triangle) = (self.alone(), vec![T::default(); n * n]);
        let (m, k, lead_a, lead_t) = (int(rows), int(n), leading(rows), leading(n));
        // SAFETY: the first n columns of the matrix hold the reflectors, and the triangle has n by n elements.
        unsafe { call!(self.larft, [b"F", b"C"], &m, &k, a, &lead_a, factors, &mut triangle[..], &lead_t) };
        triangle
    }

    fn singular_values(&self, vectors: Vectors, rows: usize, columns: usize, a: &mut [T]) -> Option<SingularValues<T>> {
        assert_eq!(a.len(), rows * columns);
        let n = rows.min(columns);
        let (job, u_columns, v_rows): (Letter, _, _) = match vectors {
            Vectors::None => (b"N", 0, 0),
            Vectors::Thin => (b"S", n, n),
            Vectors::Full => (b"A", rows, columns),
        };
        let mut u = vec![T::default(); rows * u_columns];
        let mut vh = vec![T::default(); v_rows * columns];
        let mut s = vec![0.0; n];
        let mut counts = vec![0i64; 8 * n.max(1)];
        // What LAPACK's page asks for, with room to spare.
        let mut reals = match vectors {
            _ if !T::IS_COMPLEX => Vec::new(),
            Vectors::None => vec![0.0; 8 * n.max(1)],
            _ => vec![0.0; (7 * n * n + 8 * n + 2 * rows.max(columns) * n).max(1)],
        };
        let (m, k, lead, lead_v) = (int(rows), int(columns), leading(rows), leading(v_rows));
        let _alone = self.alone();
        let info = self.with_work(|work, length, info| {
            let (a, s, u, vh) = (&mut *a, &mut s[..], &mut u[..], &mut vh[..]);
            let (reals, counts, f) = (&mut reals[..], &mut counts[..], self.gesdd);
            // SAFETY: the slice holds the matrix; results and scratch space are as long as the routine asks for with this job.
            unsafe {
                if T::IS_COMPLEX {
                    call!(f, [job], &m, &k, a, &lead, s, u, &lead, vh, &lead_v, work, &length, reals, counts, info);
                } else {
                    call!(f, [job], &m, &k, a, &lead, s, u, &lead, vh, &lead_v, work, &length, counts, info);
                }
            }
        });
        (info == 0).then_some(SingularValues { u, s, vh })
    }

    fn eigenvalues(&self, vectors: bool, half: Half, n: usize, a: &mut [T]) -> Option<Vec<f64>> {
        assert_eq!(a.len(), n * n);
        let mut values = vec![0.0; n];
        // What LAPACK's page asks for at most.
        let mut counts = vec![0i64; 3 + 5 * n];
        let mut reals = vec![0.0; if T::IS_COMPLEX { 1 + 5 * n + 2 * n * n } else { 0 }];
        let (job, half): (Letter, _) = (if vectors { b"V" } else { b"N" }, half_letter(half));
        let (order, lead) = (int(n), leading(n));
        let _alone = self.alone();
        let info = self.with_work(|work, length, info| {
            // A question about one kind of scratch space is one about all of them.
            let asked = |room: usize| if length < 0 { -1 } else { int(room) };
            let (n_reals, n_counts) = (asked(reals.len()), asked(counts.len()));
            let (a, values, f) = (&mut *a, &mut values[..], self.syevd);
            let (reals, counts) = (&mut reals[..], &mut counts[..]);
            // SAFETY: the slice holds the matrix; there is room for all eigenvalues and the scratch space that the routine asks for.
            unsafe {
                if T::IS_COMPLEX {
                    let (n_work, l) = (&length, &lead);
                    call!(f, [job, half], &order, a, l, values, work, n_work, reals, &n_reals, counts, &n_counts, info);
                } else {
                    call!(f, [job, half], &order, a, &lead, values, work, &length, counts, &n_counts, info);
                }
            }
        });
        (info == 0).then_some(values)
    }

    fn multiply(&self, (m, n, k): (usize, usize, usize), a: &[T], b: &[T], c: &mut [T]) {
        assert_eq!((a.len(), b.len(), c.len()), (m * k, k * n, m * n));
        let (rows, columns, terms) = (int(m), int(n), int(k));
        let (lead_a, lead_b, lead_c) = (leading(m), leading(k), leading(m));
        let (one, zero, _alone) = (&T::ONE, &T::default(), self.alone());
        // SAFETY: the slices hold matrices of these sizes, one column after the other without gaps.
        unsafe {
            call!(self.gemm, [b"N", b"N"], &rows, &columns, &terms, one, a, &lead_a, b, &lead_b, zero, c, &lead_c);
        }
    }
}
