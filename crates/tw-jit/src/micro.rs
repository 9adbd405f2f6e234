//! Precompiled functions for dense inner loops, with wider vectors than Cranelift has. They add up in the order of the loops that they
//! stand for, and multiply and add in two steps.
#![allow(unsafe_code)]
#![allow(clippy::too_many_arguments)]

/// A row and what it is multiplied with.
#[repr(C)]
pub(crate) struct ScaledRow {
    row: *const f64,
    factor: f64,
}

/// The most rows of one call of [`add_rows`].
pub(crate) const ROWS: usize = 32;

/// The address of the function that adds multiples of rows to a row, one after the other.
pub(crate) fn add_rows() -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return add_rows_avx2 as *const () as usize;
    }
    add_rows_portable as *const () as usize
}

/// Columns whose sums are in registers together.
const COLUMNS: usize = 32;

/// # Safety
///
/// `target` and every row have `n` elements, and no row overlaps `target`; there are `count` rows.
unsafe extern "C" fn add_rows_portable(n: i64, target: *mut f64, rows: *const ScaledRow, count: i64) {
    // SAFETY: the caller's promise.
    unsafe { add_rows_from(0, n.max(0) as usize, target, rows, count as usize) }
}

/// Columns `from..n`, in blocks that a compiler can keep in vectors.
///
/// # Safety
///
/// As [`add_rows_portable`].
#[inline(always)]
unsafe fn add_rows_from(from: usize, n: usize, target: *mut f64, rows: *const ScaledRow, count: usize) {
    let mut k = from;
    while k < n {
        let width = if k + 4 <= n { 4 } else { 1 };
        let mut sums = [0.0; 4];
        for (q, sum) in sums.iter_mut().enumerate().take(width) {
            // SAFETY: `k + q` is smaller than `n`.
            *sum = unsafe { *target.add(k + q) };
        }
        for r in 0..count {
            // SAFETY: there are `count` rows of `n` elements.
            let ScaledRow { row, factor } = unsafe { &*rows.add(r) };
            for (q, sum) in sums.iter_mut().enumerate().take(width) {
                // SAFETY: as above.
                *sum += factor * unsafe { *row.add(k + q) };
            }
        }
        for (q, sum) in sums.iter().enumerate().take(width) {
            // SAFETY: as above; nothing else refers to the target.
            unsafe { *target.add(k + q) = *sum };
        }
        k += width;
    }
}

/// # Safety
///
/// As [`add_rows_portable`], and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe extern "C" fn add_rows_avx2(n: i64, target: *mut f64, rows: *const ScaledRow, count: i64) {
    use std::arch::x86_64::*;
    let (n, count) = (n.max(0) as usize, count as usize);
    let mut k = 0;
    while k + COLUMNS <= n {
        // SAFETY: the block lies before column `n` of the target and of every row.
        unsafe {
            let mut sums = [_mm256_setzero_pd(); COLUMNS / 4];
            for (q, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_loadu_pd(target.add(k + 4 * q));
            }
            for r in 0..count {
                let ScaledRow { row, factor } = &*rows.add(r);
                let factor = _mm256_broadcast_sd(factor);
                for (q, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_add_pd(*sum, _mm256_mul_pd(factor, _mm256_loadu_pd(row.add(k + 4 * q))));
                }
            }
            for (q, sum) in sums.iter().enumerate() {
                _mm256_storeu_pd(target.add(k + 4 * q), *sum);
            }
        }
        k += COLUMNS;
    }
    // SAFETY: the columns that are left.
    unsafe { add_rows_from(k, n, target, rows, count) }
}

/// The address of the function that computes four dot products of one row with four others:
/// `out[q] = start + shared[0] * rows[q][0] + shared[1] * rows[q][1] + ..`, added from the left.
pub(crate) fn dot4() -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return dot4_avx2 as *const () as usize;
    }
    dot4_portable as *const () as usize
}

/// # Safety
///
/// `shared` and the rows have `n` elements, `out` has four.
unsafe extern "C" fn dot4_portable(
    n: i64,
    start: f64,
    shared: *const f64,
    a: *const f64,
    b: *const f64,
    c: *const f64,
    d: *const f64,
    out: *mut [f64; 4],
) {
    let mut sums = [start; 4];
    for k in 0..n.max(0) as usize {
        // SAFETY: `k` is smaller than `n`.
        let (x, row) = unsafe { (*shared.add(k), [*a.add(k), *b.add(k), *c.add(k), *d.add(k)]) };
        sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
    }
    // SAFETY: `out` is the caller's.
    unsafe { *out = sums };
}

/// # Safety
///
/// As [`dot4_portable`], and the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe extern "C" fn dot4_avx2(
    n: i64,
    start: f64,
    shared: *const f64,
    a: *const f64,
    b: *const f64,
    c: *const f64,
    d: *const f64,
    out: *mut [f64; 4],
) {
    use std::arch::x86_64::*;
    let n = n.max(0) as usize;
    let mut sums = _mm256_set1_pd(start);
    let mut k = 0;
    while k + 4 <= n {
        // Written out: intrinsics in closures are calls, because what calls the closure has no AVX2.
        // SAFETY: `k + 3` is smaller than `n`.
        let (x0, x1, x2, x3, a, b, c, d) = unsafe {
            (
                _mm256_broadcast_sd(&*shared.add(k)),
                _mm256_broadcast_sd(&*shared.add(k + 1)),
                _mm256_broadcast_sd(&*shared.add(k + 2)),
                _mm256_broadcast_sd(&*shared.add(k + 3)),
                _mm256_loadu_pd(a.add(k)),
                _mm256_loadu_pd(b.add(k)),
                _mm256_loadu_pd(c.add(k)),
                _mm256_loadu_pd(d.add(k)),
            )
        };
        // Columns of the four rows: lane q of each belongs to product q.
        let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (low_2, high_2) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        sums = _mm256_add_pd(sums, _mm256_mul_pd(x0, _mm256_permute2f128_pd::<0x20>(low, low_2)));
        sums = _mm256_add_pd(sums, _mm256_mul_pd(x1, _mm256_permute2f128_pd::<0x20>(high, high_2)));
        sums = _mm256_add_pd(sums, _mm256_mul_pd(x2, _mm256_permute2f128_pd::<0x31>(low, low_2)));
        sums = _mm256_add_pd(sums, _mm256_mul_pd(x3, _mm256_permute2f128_pd::<0x31>(high, high_2)));
        k += 4;
    }
    // SAFETY: `out` has room for four; the unaligned form is used.
    unsafe { _mm256_storeu_pd(out.cast(), sums) };
    while k < n {
        // SAFETY: `k` is smaller than `n`, and `out` is the caller's.
        unsafe {
            let (x, row) = (*shared.add(k), [*a.add(k), *b.add(k), *c.add(k), *d.add(k)]);
            (*out).iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y);
        }
        k += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_one_after_the_other() {
        for n in 0..70usize {
            let row = |seed: usize| -> Vec<f64> { (0..n).map(|k| 1.0 / (k * 7 + seed * 3 + 1) as f64).collect() };
            let rows: Vec<(Vec<f64>, f64)> = (1..6).map(|k| (row(k), 0.1 * k as f64)).collect();
            let list: Vec<ScaledRow> =
                rows.iter().map(|(row, factor)| ScaledRow { row: row.as_ptr(), factor: *factor }).collect();
            let mut expected = row(9);
            for (row, factor) in &rows {
                expected.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
            }
            let mut found = row(9);
            // SAFETY: all have `n` elements.
            unsafe { add_rows_portable(n as i64, found.as_mut_ptr(), list.as_ptr(), 5) };
            assert_eq!(found, expected, "{n}");
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                let mut found = row(9);
                // SAFETY: as above, and the feature is there.
                unsafe { add_rows_avx2(n as i64, found.as_mut_ptr(), list.as_ptr(), 5) };
                assert_eq!(found, expected, "{n}");
            }
        }
    }

    #[test]
    fn both_forms_add_from_the_left() {
        for n in 0..23usize {
            let row = |seed: usize| -> Vec<f64> { (0..n).map(|k| 1.0 / (k * 7 + seed * 3 + 1) as f64).collect() };
            let (shared, rows) = (row(9), [row(1), row(2), row(3), row(4)]);
            let expected = [0, 1, 2, 3].map(|q| rows[q].iter().zip(&shared).fold(0.25, |sum, (y, x)| sum + x * y));
            let [a, b, c, d] = [0, 1, 2, 3].map(|q| rows[q].as_ptr());
            let mut out = [0.0; 4];
            // SAFETY: all have `n` elements.
            unsafe { dot4_portable(n as i64, 0.25, shared.as_ptr(), a, b, c, d, &mut out) };
            assert_eq!(out, expected, "{n}");
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                let mut out = [0.0; 4];
                // SAFETY: as above, and the feature is there.
                unsafe { dot4_avx2(n as i64, 0.25, shared.as_ptr(), a, b, c, d, &mut out) };
                assert_eq!(out, expected, "{n}");
            }
        }
    }
}
