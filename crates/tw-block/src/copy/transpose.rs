//! Transposing a matrix.
//!
//! It is cut into tiles that are one cache line wide where they are read and two where they are written, and tiles into squares that fit the
//! registers of any x86-64 processor: as many elements a side as a register holds. Larger tiles are faster for some strides and much slower
//! for powers of two, where their rows push each other out of the cache; copying them aside first costs more than it saves. Wider registers
//! were no faster. Where the target is not read soon and its rows begin at the same place of a cache line, tiles are made beside it and
//! written past the cache, a line at a time: an ordinary store would read that line first.

use std::mem::MaybeUninit;

use crate::past_cache::{LINE, Line};

/// The bytes of a tile's rows, where it is read.
const READ_BYTES: usize = 64;
/// The bytes of its columns, where it is written, unless elements are so narrow that this would be more than `MOST_ROWS`.
const WRITTEN_BYTES: usize = 128;
const MOST_ROWS: usize = 16;

/// The shape of tiles.
struct Tile<T>(std::marker::PhantomData<T>);

impl<T> Tile<T> {
    const SIZE: usize = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    const ROWS: usize = least(most(WRITTEN_BYTES / Self::SIZE, 1), MOST_ROWS);
    const COLUMNS: usize = most(READ_BYTES / Self::SIZE, 1);
    const SIDE: usize = square::side::<T>();
}

const fn least(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

const fn most(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

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
    for row in (0..rows).step_by(Tile::<T>::ROWS) {
        let n_rows = Tile::<T>::ROWS.min(rows - row);
        for column in (0..columns).step_by(Tile::<T>::COLUMNS) {
            let n_columns = Tile::<T>::COLUMNS.min(columns - column);
            let source = (from[row * from_stride + column..].as_ptr(), from_stride);
            let target = (to[column * to_stride + row..].as_mut_ptr(), to_stride);
            // SAFETY: the tile lies inside the matrices, which the assertion above says lie inside the slices.
            unsafe {
                if (n_rows, n_columns) == (Tile::<T>::ROWS, Tile::<T>::COLUMNS) {
                    tile((Tile::<T>::ROWS, Tile::<T>::COLUMNS), source, target);
                } else {
                    tile((n_rows, n_columns), source, target);
                }
            }
        }
    }
}

/// As [`transpose`], past the caches. False, with nothing done, where lines of the target do not begin with whole elements of all its rows.
///
/// # Panics
/// As [`transpose`].
pub(super) fn transpose_past_cache<T: Copy>(
    (rows, columns): (usize, usize),
    (from, from_stride): (&[T], usize),
    (to, to_stride): (&mut [T], usize),
) -> bool {
    let size = size_of::<T>();
    let before = to.as_ptr().addr().next_multiple_of(LINE) - to.as_ptr().addr();
    let fits = size > 0 && LINE.is_multiple_of(size) && before.is_multiple_of(size);
    if !fits || !(to_stride * size).is_multiple_of(LINE) || rows < before / size + LINE / size {
        return false;
    }
    assert!((rows - 1) * from_stride + columns <= from.len() && (columns - 1) * to_stride + rows <= to.len());
    let (first, side) = (before / size, LINE / size);
    let last = rows - (rows - first) % side;
    for row in (first..last).step_by(side) {
        for column in (0..columns).step_by(side) {
            let n_columns = side.min(columns - column);
            let mut lines = MaybeUninit::<[Line; LINE]>::uninit();
            let lines = lines.as_mut_ptr().cast::<Line>();
            let source = from[row * from_stride + column..].as_ptr();
            let target = to[column * to_stride + row..].as_mut_ptr();
            // SAFETY: the tile lies inside the matrices, which the assertion above says lie inside the slices. There are as many lines as a tile has
            // columns at most, and each holds the rows of a tile, which fill it. In the target these begin at a line, as the first row does.
            unsafe {
                tile((side, n_columns), (source, from_stride), (lines.cast(), side));
                for k in 0..n_columns {
                    (*lines.add(k)).write(target.add(k * to_stride).cast());
                }
            }
        }
    }
    transpose((first, columns), (from, from_stride), (to, to_stride));
    if last < rows {
        let rest = (&from[last * from_stride..], from_stride);
        transpose((rows - last, columns), rest, (&mut to[last..], to_stride));
    }
    true
}

/// Transposes one tile. Inlined, so that the usual tile has loops of known length.
///
/// # Safety
/// All elements of the tile may be read on one side and written on the other.
#[inline(always)]
unsafe fn tile<T: Copy>(
    (rows, columns): (usize, usize),
    (from, from_stride): (*const T, usize),
    (to, to_stride): (*mut T, usize),
) {
    let side = Tile::<T>::SIDE;
    let (whole_rows, whole_columns) = if side > 1 { (rows - rows % side, columns - columns % side) } else { (0, 0) };
    // Column by column, so that writes are contiguous.
    for column in (0..whole_columns).step_by(side) {
        for row in (0..whole_rows).step_by(side) {
            // SAFETY: the square lies inside the tile.
            unsafe {
                let from = from.add(row * from_stride + column);
                square::transpose(from, from_stride, to.add(column * to_stride + row), to_stride);
            }
        }
    }
    for column in 0..columns {
        for row in if column < whole_columns { whole_rows } else { 0 }..rows {
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
