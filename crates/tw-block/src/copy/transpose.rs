//! Transposing a matrix.
//!
//! It is cut into tiles, and tiles into squares that fit the registers of any x86-64 processor: as many elements a side as a register holds.
//! A tile is left column by column, so the target is written in runs of several cache lines; that was faster than wider registers, which
//! wrote shorter runs, and as fast as a plain copy. Stores around the cache were no faster than that, and cost whoever reads the target next.

use std::mem::MaybeUninit;

/// The side of a tile in bytes, and at most in elements.
const TILE_BYTES: usize = 256;
const TILE_LENGTH: usize = 64;

/// The most elements of a tile.
const TILE_AREA: usize = TILE_LENGTH * TILE_LENGTH;

/// Rows that are a multiple of this many bytes apart share their place in the nearest cache and push each other out. They are first copied to where
/// they do not.
const ALIASING: usize = 2048;

/// Copies `from[row * stride + column]` to `to[column * stride + row]`, with strides of their own.
///
/// # Panics
/// If one of these lies outside.
pub(super) fn transpose<T: Copy>(
    (rows, columns): (usize, usize),
    (from, from_stride): (&[T], usize),
    (to, to_stride): (&mut [T], usize),
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!((rows - 1) * from_stride + columns <= from.len() && (columns - 1) * to_stride + rows <= to.len());
    let side = (TILE_BYTES / size_of::<T>().max(1)).clamp(1, TILE_LENGTH);
    let aliases = (from_stride * size_of::<T>()).is_multiple_of(ALIASING) && rows > 4;
    let mut staged = [MaybeUninit::<T>::uninit(); TILE_AREA];
    for row in (0..rows).step_by(side) {
        let n_rows = side.min(rows - row);
        for column in (0..columns).step_by(side) {
            let n_columns = side.min(columns - column);
            let target = &mut to[column * to_stride + row..];
            let source = &from[row * from_stride + column..];
            if aliases {
                for k in 0..n_rows {
                    let row = &source[k * from_stride..k * from_stride + n_columns];
                    for (staged, element) in staged[k * side..].iter_mut().zip(row) {
                        staged.write(*element);
                    }
                }
                // SAFETY: `MaybeUninit<T>` is laid out as T; the tile reads only what was written above.
                unsafe { tile((n_rows, n_columns), (staged.as_ptr().cast(), side), (target.as_mut_ptr(), to_stride)) };
            } else {
                // SAFETY: the tile lies inside the matrices, which the assertion above says lie inside the slices.
                unsafe { tile((n_rows, n_columns), (source.as_ptr(), from_stride), (target.as_mut_ptr(), to_stride)) };
            }
        }
    }
}

/// Transposes one tile.
///
/// # Safety
/// All elements of the tile may be read on one side and written on the other.
unsafe fn tile<T: Copy>(
    (rows, columns): (usize, usize),
    (from, from_stride): (*const T, usize),
    (to, to_stride): (*mut T, usize),
) {
    let side = square::side::<T>();
    let (whole_rows, whole_columns) = (rows - rows % side, columns - columns % side);
    if side > 1 {
        for column in (0..whole_columns).step_by(side) {
            for row in (0..whole_rows).step_by(side) {
                // SAFETY: the square lies inside the tile.
                unsafe {
                    let from = from.add(row * from_stride + column);
                    square::transpose(from, from_stride, to.add(column * to_stride + row), to_stride);
                }
            }
        }
    }
    for column in 0..columns {
        let done = if side > 1 && column < whole_columns { whole_rows } else { 0 };
        for row in done..rows {
            // SAFETY: the element lies inside the tile.
            unsafe { *to.add(column * to_stride + row) = *from.add(row * from_stride + column) };
        }
    }
}

/// Squares in registers of 16 bytes, which every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
mod square {
    use std::arch::x86_64::*;

    /// Elements per side; 1 if there are no such squares.
    pub(super) const fn side<T>() -> usize {
        match size_of::<T>() {
            size @ (1 | 2 | 4 | 8) => 16 / size,
            _ => 1,
        }
    }

    /// Transposes a square.
    ///
    /// # Safety
    /// All its elements may be read on one side and written on the other.
    #[inline(always)]
    pub(super) unsafe fn transpose<T>(from: *const T, from_stride: usize, to: *mut T, to_stride: usize) {
        // SAFETY: the caller's promise, for each width.
        unsafe {
            match size_of::<T>() {
                1 => shuffled::<16, T>((from, from_stride), (to, to_stride), |a, b| {
                    (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b))
                }),
                2 => shuffled::<8, T>((from, from_stride), (to, to_stride), |a, b| {
                    (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b))
                }),
                4 => shuffled::<4, T>((from, from_stride), (to, to_stride), |a, b| {
                    (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b))
                }),
                _ => shuffled::<2, T>((from, from_stride), (to, to_stride), |a, b| {
                    (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b))
                }),
            }
        }
    }

    /// Transposes N rows of N elements: interleaving the first half of the rows with the second, as often as N can be halved, moves every
    /// element to its place.
    ///
    /// # Safety
    /// As above; N elements are 16 bytes.
    #[inline(always)]
    unsafe fn shuffled<const N: usize, T>(
        (from, from_stride): (*const T, usize),
        (to, to_stride): (*mut T, usize),
        interleave: impl Fn(__m128i, __m128i) -> (__m128i, __m128i),
    ) {
        // SAFETY: a row of the square is 16 bytes, which need not be aligned.
        let mut rows: [__m128i; N] =
            std::array::from_fn(|k| unsafe { _mm_loadu_si128(from.add(k * from_stride).cast()) });
        for _ in 0..N.ilog2() {
            let mut next = rows;
            for k in 0..N / 2 {
                (next[2 * k], next[2 * k + 1]) = interleave(rows[k], rows[k + N / 2]);
            }
            rows = next;
        }
        for (k, row) in rows.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm_storeu_si128(to.add(k * to_stride).cast(), row) };
        }
    }
}

/// Other processors copy element by element.
#[cfg(not(target_arch = "x86_64"))]
mod square {
    /// There are no squares.
    pub(super) const fn side<T>() -> usize {
        1
    }

    /// Never called.
    ///
    /// # Safety
    /// As for the other processors.
    pub(super) unsafe fn transpose<T>(_: *const T, _: usize, _: *mut T, _: usize) {}
}
