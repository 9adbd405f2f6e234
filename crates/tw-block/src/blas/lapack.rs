//! LAPACK for block functions.
//!
//! Routines of Fortran take every number by its address. Integers are handed over as 64 bits, in which a library that counts in 32 bits finds the
//! number as well, as the low half comes first. Only the list of exchanged rows has to be read as what it is.

use std::ffi::{c_char, c_int};
use std::fmt;
use std::sync::Arc;

use tw_ir::dense::{Dense, DenseLibrary, Half, SingularValues, Triangle, Vectors};
use tw_ir::dtype::C128;

use super::library::{Library, OneThread, Symbols};

/// Which form of an option a routine takes: the address of a letter.
type Letter = *const c_char;
/// The address of an integer.
type Int = *const i64;
/// Where a routine says how it went.
type Info = *mut i64;
/// Fortran passes the length of every text at the end.
type Length = usize;

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

type Potrf<T> = unsafe extern "C" fn(Letter, Int, *mut T, Int, Info, Length);
type Getrf<T> = unsafe extern "C" fn(Int, Int, *mut T, Int, *mut i64, Info);
type Geqrf<T> = unsafe extern "C" fn(Int, Int, *mut T, Int, *mut T, *mut T, Int, Info);
type Orgqr<T> = unsafe extern "C" fn(Int, Int, Int, *mut T, Int, *const T, *mut T, Int, Info);
type Larft<T> = unsafe extern "C" fn(Letter, Letter, Int, Int, *const T, Int, *const T, *mut T, Int, Length, Length);
type Trsm<T> = unsafe extern "C" fn(
    Letter,
    Letter,
    Letter,
    Letter,
    Int,
    Int,
    *const T,
    *const T,
    Int,
    *mut T,
    Int,
    Length,
    Length,
    Length,
    Length,
);
type Gemm<T> = unsafe extern "C" fn(
    Letter,
    Letter,
    Int,
    Int,
    Int,
    *const T,
    *const T,
    Int,
    *const T,
    Int,
    *const T,
    *mut T,
    Int,
    Length,
    Length,
);

/// The routine for singular values. That for complex numbers takes room for real ones as well.
#[derive(Clone, Copy)]
pub(super) enum Gesdd<T> {
    Real(
        unsafe extern "C" fn(
            Letter,
            Int,
            Int,
            *mut T,
            Int,
            *mut f64,
            *mut T,
            Int,
            *mut T,
            Int,
            *mut T,
            Int,
            *mut i64,
            Info,
            Length,
        ),
    ),
    Complex(
        unsafe extern "C" fn(
            Letter,
            Int,
            Int,
            *mut T,
            Int,
            *mut f64,
            *mut T,
            Int,
            *mut T,
            Int,
            *mut T,
            Int,
            *mut f64,
            *mut i64,
            Info,
            Length,
        ),
    ),
}

/// The routine for eigenvalues.
#[derive(Clone, Copy)]
pub(super) enum Syevd<T> {
    Real(
        unsafe extern "C" fn(
            Letter,
            Letter,
            Int,
            *mut T,
            Int,
            *mut f64,
            *mut T,
            Int,
            *mut i64,
            Int,
            Info,
            Length,
            Length,
        ),
    ),
    Complex(
        unsafe extern "C" fn(
            Letter,
            Letter,
            Int,
            *mut T,
            Int,
            *mut f64,
            *mut T,
            Int,
            *mut f64,
            Int,
            *mut i64,
            Int,
            Info,
            Length,
            Length,
        ),
    ),
}

/// Types that LAPACK factors.
pub(super) trait Element: Copy + Default + Send + Sync + 'static {
    const ONE: Self;
    /// Letters with which names of routines begin, and the names that differ.
    const LETTER: &'static str;
    const ORGQR: &'static str;
    /// How a conjugate transpose is asked for.
    const ADJOINT: &'static [u8; 1];
    fn real_part(self) -> f64;
    fn singular(symbols: &Symbols<'_>) -> Option<Gesdd<Self>>;
    fn symmetric(symbols: &Symbols<'_>) -> Option<Syevd<Self>>;
}

impl Element for f64 {
    const ONE: f64 = 1.0;
    const LETTER: &'static str = "d";
    const ORGQR: &'static str = "dorgqr_";
    const ADJOINT: &'static [u8; 1] = b"T";
    fn real_part(self) -> f64 {
        self
    }
    fn singular(symbols: &Symbols<'_>) -> Option<Gesdd<f64>> {
        // SAFETY: this is the interface of LAPACK.
        unsafe { symbols.find("dgesdd_") }.map(Gesdd::Real)
    }
    fn symmetric(symbols: &Symbols<'_>) -> Option<Syevd<f64>> {
        // SAFETY: this is the interface of LAPACK.
        unsafe { symbols.find("dsyevd_") }.map(Syevd::Real)
    }
}

impl Element for C128 {
    const ONE: C128 = C128::new(1.0, 0.0);
    const LETTER: &'static str = "z";
    const ORGQR: &'static str = "zungqr_";
    const ADJOINT: &'static [u8; 1] = b"C";
    fn real_part(self) -> f64 {
        self.re
    }
    fn singular(symbols: &Symbols<'_>) -> Option<Gesdd<C128>> {
        // SAFETY: this is the interface of LAPACK.
        unsafe { symbols.find("zgesdd_") }.map(Gesdd::Complex)
    }
    fn symmetric(symbols: &Symbols<'_>) -> Option<Syevd<C128>> {
        // SAFETY: this is the interface of LAPACK.
        unsafe { symbols.find("zheevd_") }.map(Syevd::Complex)
    }
}

/// The routines for one type.
struct Routines<T> {
    potrf: Potrf<T>,
    getrf: Getrf<T>,
    geqrf: Geqrf<T>,
    orgqr: Orgqr<T>,
    larft: Larft<T>,
    trsm: Trsm<T>,
    gemm: Gemm<T>,
    gesdd: Gesdd<T>,
    syevd: Syevd<T>,
    counts_in_64_bits: bool,
    /// Keeps the code that the functions above point to.
    library: Arc<Library>,
}

fn letter(text: &[u8; 1]) -> Letter {
    text.as_ptr().cast()
}

fn half_letter(half: Half) -> Letter {
    letter(match half {
        Half::Lower => b"L",
        Half::Upper => b"U",
    })
}

/// An integer for Fortran. Leading dimensions are at least 1.
fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn leading(rows: usize) -> i64 {
    int(rows.max(1))
}

/// The length of scratch space that a routine has asked for.
fn asked<T: Element>(answer: T) -> usize {
    answer.real_part().max(1.0) as usize
}

/// What a routine says of how it went: a library that counts in 32 bits has written the low half only.
fn outcome(info: i64) -> c_int {
    info as c_int
}

impl<T: Element> Routines<T> {
    fn find(symbols: &Symbols<'_>, library: &Arc<Library>) -> Option<Routines<T>> {
        let name = |rest: &str| format!("{}{rest}_", T::LETTER);
        // SAFETY: these types are the interface of BLAS and LAPACK.
        unsafe {
            Some(Routines {
                potrf: symbols.find(&name("potrf"))?,
                getrf: symbols.find(&name("getrf"))?,
                geqrf: symbols.find(&name("geqrf"))?,
                orgqr: symbols.find(T::ORGQR)?,
                larft: symbols.find(&name("larft"))?,
                trsm: symbols.find(&name("trsm"))?,
                gemm: symbols.find(&name("gemm"))?,
                gesdd: T::singular(symbols)?,
                syevd: T::symmetric(symbols)?,
                counts_in_64_bits: true,
                library: library.clone(),
            })
        }
    }

    fn alone(&self) -> OneThread {
        self.library.on_one_thread()
    }

    /// Calls a routine that takes scratch space twice: first it says how much it wants.
    fn with_work(&self, mut call: impl FnMut(*mut T, &i64, &mut i64)) -> c_int {
        let (mut answer, mut info) = ([T::default()], 0);
        call(answer.as_mut_ptr(), &-1, &mut info);
        let mut work = vec![T::default(); asked(answer[0])];
        call(work.as_mut_ptr(), &int(work.len()), &mut info);
        outcome(info)
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
        let (mut a, mut pivots, mut info) = ([0.0, 1.0, 1.0, 0.0], [0i64; 2], 0);
        let _alone = self.alone();
        // SAFETY: a matrix of 2 by 2 and as many pivots, of whatever width up to 64 bits.
        unsafe { (self.getrf)(&2, &2, a.as_mut_ptr(), &2, pivots.as_mut_ptr(), &mut info) };
        self.counts_in_64_bits = match pivots {
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
        let (_alone, mut info) = (self.alone(), 0);
        // SAFETY: the slice holds a matrix of n by n.
        unsafe { (self.potrf)(half_letter(half), &int(n), a.as_mut_ptr(), &leading(n), &mut info, 1) };
        outcome(info) == 0
    }

    fn lu(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<usize> {
        assert_eq!(a.len(), rows * columns);
        let n = rows.min(columns);
        let (_alone, mut pivots, mut info) = (self.alone(), vec![0; n], 0);
        // SAFETY: the slice holds the matrix; there is room for as many pivots as it has.
        unsafe {
            (self.getrf)(&int(rows), &int(columns), a.as_mut_ptr(), &leading(rows), pivots.as_mut_ptr(), &mut info)
        };
        self.exchanges(&pivots, n, rows)
    }

    fn solve_triangle(&self, triangle: Triangle, t: &[T], (rows, columns): (usize, usize), b: &mut [T]) {
        let n = if triangle.on_right { columns } else { rows };
        assert_eq!((t.len(), b.len()), (n * n, rows * columns));
        let side = letter(if triangle.on_right { b"R" } else { b"L" });
        let form = letter(if triangle.adjoint { T::ADJOINT } else { b"N" });
        let diagonal = letter(if triangle.unit { b"U" } else { b"N" });
        let _alone = self.alone();
        // SAFETY: the slices hold a triangle of n by n and a matrix of rows by columns, and n is the side that meets the triangle.
        unsafe {
            (self.trsm)(
                side,
                half_letter(triangle.half),
                form,
                diagonal,
                &int(rows),
                &int(columns),
                &T::ONE,
                t.as_ptr(),
                &leading(n),
                b.as_mut_ptr(),
                &leading(rows),
                1,
                1,
                1,
                1,
            );
        }
    }

    fn reflect(&self, rows: usize, columns: usize, a: &mut [T]) -> Vec<T> {
        assert_eq!(a.len(), rows * columns);
        let (_alone, mut factors) = (self.alone(), vec![T::default(); rows.min(columns)]);
        let (m, n, lead) = (int(rows), int(columns), leading(rows));
        self.with_work(|work, length, info| {
            // SAFETY: the slice holds the matrix, there are as many factors as reflectors, and scratch space is as long as said.
            unsafe { (self.geqrf)(&m, &n, a.as_mut_ptr(), &lead, factors.as_mut_ptr(), work, length, info) };
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
            unsafe { (self.orgqr)(&m, &n, &k, a.as_mut_ptr(), &lead, factors.as_ptr(), work, length, info) };
        });
    }

    fn reflector_triangle(&self, rows: usize, a: &[T], factors: &[T]) -> Vec<T> {
        let n = factors.len();
        assert!(a.len() >= rows * n && n <= rows);
        let (_alone, mut triangle) = (self.alone(), vec![T::default(); n * n]);
        let (a, factors) = (a.as_ptr(), factors.as_ptr());
        // SAFETY: the first n columns of the matrix hold the reflectors, and the triangle has n by n elements.
        unsafe {
            let (m, k) = (int(rows), int(n));
            let t = triangle.as_mut_ptr();
            (self.larft)(letter(b"F"), letter(b"C"), &m, &k, a, &leading(rows), factors, t, &leading(n), 1, 1);
        }
        triangle
    }

    fn singular_values(&self, vectors: Vectors, rows: usize, columns: usize, a: &mut [T]) -> Option<SingularValues<T>> {
        assert_eq!(a.len(), rows * columns);
        let n = rows.min(columns);
        let (job, u_columns, v_rows) = match vectors {
            Vectors::None => (b"N", 0, 0),
            Vectors::Thin => (b"S", n, n),
            Vectors::Full => (b"A", rows, columns),
        };
        let mut u = vec![T::default(); rows * u_columns];
        let mut vh = vec![T::default(); v_rows * columns];
        let mut s = vec![0.0; n];
        let mut counts = vec![0i64; 8 * n.max(1)];
        // What LAPACK's page asks for, with room to spare.
        let mut reals = match (&self.gesdd, vectors) {
            (Gesdd::Real(_), _) => Vec::new(),
            (Gesdd::Complex(_), Vectors::None) => vec![0.0; 8 * n.max(1)],
            (Gesdd::Complex(_), _) => vec![0.0; (7 * n * n + 8 * n + 2 * rows.max(columns) * n).max(1)],
        };
        let (m, k, lead) = (int(rows), int(columns), leading(rows));
        let lead_v = leading(v_rows);
        let _alone = self.alone();
        let info = self.with_work(|work, length, info| {
            let (a, s, u, vh) = (a.as_mut_ptr(), s.as_mut_ptr(), u.as_mut_ptr(), vh.as_mut_ptr());
            let (counts, reals, job) = (counts.as_mut_ptr(), reals.as_mut_ptr(), letter(job));
            // SAFETY: the slice holds the matrix; results and scratch space are as long as the routine asks for with this job.
            unsafe {
                match self.gesdd {
                    Gesdd::Real(call) => {
                        call(job, &m, &k, a, &lead, s, u, &lead, vh, &lead_v, work, length, counts, info, 1)
                    }
                    Gesdd::Complex(call) => {
                        call(job, &m, &k, a, &lead, s, u, &lead, vh, &lead_v, work, length, reals, counts, info, 1)
                    }
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
        let mut reals = vec![0.0; if matches!(self.syevd, Syevd::Complex(_)) { 1 + 5 * n + 2 * n * n } else { 0 }];
        let (n_counts, n_reals) = (int(counts.len()), int(reals.len()));
        let job = letter(if vectors { b"V" } else { b"N" });
        let (order, lead) = (int(n), leading(n));
        let _alone = self.alone();
        let info = self.with_work(|work, length, info| {
            let (a, values, half) = (a.as_mut_ptr(), values.as_mut_ptr(), half_letter(half));
            let (counts, reals) = (counts.as_mut_ptr(), reals.as_mut_ptr());
            // A question about one kind of scratch space is one about all of them.
            let (n_counts, n_reals) = if *length < 0 { (-1, -1) } else { (n_counts, n_reals) };
            // SAFETY: the slice holds the matrix; there is room for all eigenvalues and the scratch space that the routine asks for.
            unsafe {
                match self.syevd {
                    Syevd::Real(call) => {
                        call(job, half, &order, a, &lead, values, work, length, counts, &n_counts, info, 1, 1)
                    }
                    Syevd::Complex(call) => call(
                        job, half, &order, a, &lead, values, work, length, reals, &n_reals, counts, &n_counts, info, 1,
                        1,
                    ),
                }
            }
        });
        (info == 0).then_some(values)
    }

    fn multiply(&self, (m, n, k): (usize, usize, usize), a: &[T], b: &[T], c: &mut [T]) {
        assert_eq!((a.len(), b.len(), c.len()), (m * k, k * n, m * n));
        let as_it_is = letter(b"N");
        let (rows, columns, terms) = (int(m), int(n), int(k));
        let (lead_a, lead_b, lead_c) = (leading(m), leading(k), leading(m));
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        let (one, zero) = (&T::ONE, &T::default());
        let _alone = self.alone();
        // SAFETY: the slices hold matrices of these sizes, one column after the other without gaps.
        unsafe {
            (self.gemm)(
                as_it_is, as_it_is, &rows, &columns, &terms, one, a, &lead_a, b, &lead_b, zero, c, &lead_c, 1, 1,
            );
        }
    }
}
