//! Products against three plain loops.

use std::marker::PhantomData;

use tw_ir::dtype::Complex;
use tw_ir::random;

use super::semiring::{Add, ComplexProduct, Max, Min, Mul, Operation, Pair, QuickMax, QuickMin, Semiring, SumProduct};
use super::vector::Number;
use super::*;

/// Sizes around those at which the code takes another way.
const SIZES: [usize; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17, 33, 50];

struct Dice(i64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 += 1;
        random::integer(7, self.0, 0, n as i64) as usize
    }

    /// A matrix with distances of its own, and the length of the slice it needs.
    fn matrix(&mut self, rows: usize, columns: usize) -> (Matrix, usize) {
        let (offset, gap) = (self.below(3), 1 + self.below(2));
        let at = match self.below(2) {
            0 => Matrix { offset, row: gap * columns.max(1) + self.below(2), column: gap },
            _ => Matrix { offset, row: gap, column: gap * rows.max(1) + self.below(2) },
        };
        let len = offset + rows.saturating_sub(1) * at.row + columns.saturating_sub(1) * at.column + 1;
        (at, len)
    }
}

fn reference<S: Semiring>(
    semiring: S,
    dims: (usize, usize, usize),
    left: &[S::Element],
    right: &[S::Element],
    (a, b): (Matrix, Matrix),
    (i, j): (usize, usize),
) -> S::Element {
    (0..dims.2).fold(semiring.identity(), |sum, l| {
        semiring.step(sum, left[a.offset + i * a.row + l * a.column], right[b.offset + l * b.row + j * b.column])
    })
}

/// Checks that a semiring gives what three loops give, in every version, for all sizes and layouts; values must be such that sums are exact.
fn check<S: Semiring>(semiring: S, value: impl Fn(usize) -> S::Element)
where
    S::Element: PartialEq,
{
    let mut dice = Dice(0);
    for case in 0..400 {
        let mut size = || SIZES[dice.below(SIZES.len())];
        let (m, n, mut k) = (size(), size(), size());
        if case % 8 == 0 {
            k = S::Element::TERMS * 2 - 1 + dice.below(3);
        }
        let dims = (m, n, k);
        let ((out_at, out_len), (a, a_len), (b, b_len)) = (dice.matrix(m, n), dice.matrix(m, k), dice.matrix(k, n));
        let left: Vec<S::Element> = (0..a_len).map(|_| value(dice.below(1000))).collect();
        let right: Vec<S::Element> = (0..b_len).map(|_| value(dice.below(1000))).collect();
        let before: Vec<S::Element> = (0..out_len).map(|_| value(dice.below(1000))).collect();
        for accumulate in [false, true] {
            let mut expected = before.clone();
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let at = out_at.offset + i * out_at.row + j * out_at.column;
                let sum = reference(semiring, dims, &left, &right, (a, b), (i, j));
                // Without terms the output stays as it was: not even the identity is added.
                expected[at] = match accumulate {
                    true if k == 0 => expected[at],
                    true => semiring.plus(expected[at], sum),
                    false => sum,
                };
            }
            for version in Version::available() {
                let mut out = before.clone();
                let task = Task {
                    dims,
                    out: (&mut out, out_at),
                    left: (&left, a),
                    right: (&right, b),
                    batch: Batch::ONE,
                    accumulate,
                };
                multiply_version(version, semiring, task);
                let same = out.iter().zip(&expected).all(|(&x, &y)| same_bits(x, y) || (x.is_nan() && y.is_nan()));
                assert!(same, "{version:?} {dims:?} {out_at:?} {a:?} {b:?} accumulate {accumulate}");
            }
        }
    }
}

/// Equal, and of zeros also their signs.
fn same_bits<T: Number>(x: T, y: T) -> bool {
    x == y && (x != T::default() || format!("{x:?}") == format!("{y:?}"))
}

fn small(k: usize) -> f64 {
    (k % 9) as f64 - 4.0
}

/// Small numbers, and now and then something odd.
fn odd(k: usize) -> f64 {
    match k {
        0..20 => f64::INFINITY,
        20..30 => f64::NEG_INFINITY,
        30..33 => f64::NAN,
        33..200 => -0.0,
        _ => small(k),
    }
}

#[test]
fn sums_of_products() {
    check(SumProduct(PhantomData), small);
    check(SumProduct(PhantomData), odd);
    check(SumProduct(PhantomData), |k| small(k) as f32);
}

/// Sizes at which the loops over rows, columns and terms come round again.
#[test]
fn large_sums_of_products() {
    for (m, n, k) in [(103, 820, 5), (205, 17, 700), (6, 1650, 3), (250, 900, 330)] {
        let mut dice = Dice(m as i64);
        let ((out_at, out_len), (a, a_len), (b, b_len)) = (dice.matrix(m, n), dice.matrix(m, k), dice.matrix(k, n));
        let left: Vec<f64> = (0..a_len).map(|_| small(dice.below(1000))).collect();
        let right: Vec<f64> = (0..b_len).map(|_| small(dice.below(1000))).collect();
        for version in Version::available() {
            let mut out = vec![0.5; out_len];
            let task = Task {
                dims: (m, n, k),
                out: (&mut out, out_at),
                left: (&left, a),
                right: (&right, b),
                batch: Batch::ONE,
                accumulate: false,
            };
            multiply_version(version, SumProduct(PhantomData), task);
            for (i, j) in (0..m).flat_map(|i| (0..n).step_by(7).map(move |j| (i, j))) {
                let expected = reference(SumProduct(PhantomData), (m, n, k), &left, &right, (a, b), (i, j));
                assert_eq!(out[out_at.offset + i * out_at.row + j * out_at.column], expected, "{version:?} {i} {j}");
            }
        }
    }
}

#[test]
fn sums_of_complex_products() {
    let complex = |k: usize| Complex::new(small(k), small(k / 9));
    check(ComplexProduct(PhantomData), complex);
    check(ComplexProduct(PhantomData), |k| Complex::new(small(k) as f32, small(k / 9) as f32));
}

#[test]
fn integers_wrap() {
    check(Pair::<i32, Add, Add, Mul>::new(0), |k| (k as i32).wrapping_mul(i32::MAX / 3));
    check(Pair::<i64, Add, Add, Mul>::new(0), |k| (k as i64).wrapping_mul(i64::MAX / 3));
    check(Pair::<i64, Max, Max, Add>::new(i64::MIN), |k| small(k) as i64);
    check(Pair::<i32, Min, Min, Add>::new(i32::MAX), |k| small(k) as i32);
}

fn check_pair<P: Operation, Q: Operation, M: Operation>(identity: f64) {
    check(Pair::<f64, P, P, M>::new(identity), odd);
    check(Pair::<f64, P, Q, M>::new(identity), small);
}

#[test]
fn smallest_and_largest() {
    check_pair::<Min, QuickMin, Add>(f64::INFINITY);
    check_pair::<Max, QuickMax, Add>(f64::NEG_INFINITY);
    check_pair::<Max, QuickMax, Mul>(f64::NEG_INFINITY);
    check(Pair::<f32, Min, QuickMin, Max>::new(f32::INFINITY), |k| small(k) as f32);
    check(Pair::<f32, Max, Max, Min>::new(f32::NEG_INFINITY), |k| odd(k) as f32);
}

#[test]
fn truth_values() {
    check(Pair::<Truth, Add, Add, Mul>::new(false.into()), |k| (k % 3 == 0).into());
    check(Pair::<Truth, Mul, Mul, Add>::new(true.into()), |k| (k % 3 != 0).into());
}

/// Rounded sums: every version and every layout gives the same bits.
#[test]
fn versions_and_layouts_agree_in_every_bit() {
    for (m, n, k) in [(1, 40, 700), (40, 1, 700), (9, 9, 9), (3, 100, 70), (31, 45, 700), (100, 3, 600)] {
        let value = |seed: u64, i: usize| random::normal(seed, i as i64);
        let left: Vec<f64> = (0..m * k).map(|i| value(1, i)).collect();
        let right: Vec<f64> = (0..k * n).map(|i| value(2, i)).collect();
        let turned = |data: &[f64], rows: usize, columns: usize| -> Vec<f64> {
            (0..rows * columns).map(|i| data[i % rows * columns + i / rows]).collect()
        };
        let (left_turned, right_turned) = (turned(&left, m, k), turned(&right, k, n));
        let plain = |columns: usize| Matrix { offset: 0, row: columns, column: 1 };
        let mut results: Vec<Vec<f64>> = Vec::new();
        for version in Version::available() {
            for layout in 0..8 {
                let pick = |bit: usize, data, turned, rows, columns| match layout >> bit & 1 {
                    0 => (data, plain(columns)),
                    _ => (turned, plain(rows).transposed()),
                };
                let mut out = vec![0.0; m * n];
                let out_at = if layout >> 2 & 1 == 0 { plain(n) } else { plain(m).transposed() };
                let task = Task {
                    dims: (m, n, k),
                    out: (&mut out, out_at),
                    left: pick(0, &left[..], &left_turned[..], m, k),
                    right: pick(1, &right[..], &right_turned[..], k, n),
                    batch: Batch::ONE,
                    accumulate: false,
                };
                multiply_version(version, SumProduct(PhantomData), task);
                results.push(if layout >> 2 & 1 == 0 { out } else { turned(&out, n, m) });
            }
        }
        let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert!(results.iter().all(|other| bits(other) == bits(&results[0])), "{m} {n} {k}");
        let exact: f64 = (0..k).map(|l| left[l] * right[l * n]).sum();
        assert!((results[0][0] - exact).abs() < 1e-10);
    }
}

#[test]
fn batches_are_products_one_after_the_other() {
    let left: Vec<f32> = (0..60).map(|k| small(k) as f32).collect();
    let right: Vec<f32> = (0..12).map(|k| small(k + 5) as f32).collect();
    let mut out = vec![1.0; 5 * 9];
    // Five matrices of 3 by 4 times the same one of 4 by 3.
    let at = |row| Matrix { offset: 0, row, column: 1 };
    let task = Task {
        dims: (3, 3, 4),
        out: (&mut out, at(3)),
        left: (&left, at(4)),
        right: (&right, at(3)),
        batch: Batch { n: 5, out: 9, left: 12, right: 0 },
        accumulate: true,
    };
    f32::multiply(Known::SumProduct, 0.0, task);
    for b in 0..5 {
        for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
            let sum: f32 = (0..4).map(|l| left[b * 12 + i * 4 + l] * right[l * 3 + j]).sum();
            assert_eq!(out[b * 9 + i * 3 + j], 1.0 + sum);
        }
    }
}

/// A matrix times its transpose, which takes half the work, has the bits of the product of two matrices.
#[test]
fn symmetric_products_have_the_bits_of_others() {
    for (n, k) in [(23, 5), (24, 3), (50, 700), (67, 20)] {
        let value = |i: usize| random::normal(3, i as i64);
        let data: Vec<f64> = (0..n * k).map(value).collect();
        let copy = data.clone();
        let rows = Matrix { offset: 0, row: k, column: 1 };
        let columns = Matrix { offset: 0, row: 1, column: n };
        for at in [rows, columns] {
            for start in [0.0, 1.5] {
                let product = |right: &[f64], odd: f64| {
                    let mut out = vec![start; n * n];
                    // With another value below the diagonal the output is not symmetric, and all of it must be computed.
                    out[n] += odd;
                    let task = Task {
                        dims: (n, n, k),
                        out: (&mut out, Matrix { offset: 0, row: n, column: 1 }),
                        left: (&data, at),
                        right: (right, at.transposed()),
                        batch: Batch::ONE,
                        accumulate: start != 0.0,
                    };
                    f64::multiply(Known::SumProduct, 0.0, task);
                    out
                };
                assert_eq!(product(&data, 0.0), product(&copy, 0.0), "{n} {k}");
                assert_eq!(product(&data, 4.0), product(&copy, 4.0), "{n} {k}");
            }
        }
    }
}

/// NaN is found where it hides, and the quick way is only taken where there is none.
#[test]
fn nan_wins() {
    let n = 40;
    for (special, other) in [(f64::NAN, 1.0), (f64::INFINITY, f64::NEG_INFINITY)] {
        for transposed in [false, true] {
            let (mut left, mut right) = (vec![1.0; n * n], vec![2.0; n * n]);
            left[5 * n + 7] = special;
            right[7 * n + 3] = other;
            let at = Matrix { offset: 0, row: n, column: 1 };
            let at = if transposed { at.transposed() } else { at };
            let mut out = vec![0.0; n * n];
            let task = Task {
                dims: (n, n, n),
                out: (&mut out, at),
                left: (if transposed { &right } else { &left }, at),
                right: (if transposed { &left } else { &right }, at),
                batch: Batch::ONE,
                accumulate: false,
            };
            f64::multiply(Known::MinPlus, f64::INFINITY, task);
            assert!(out[5 * n + 3].is_nan());
            assert_eq!(out[0], 3.0);
        }
    }
}

#[test]
#[should_panic(expected = "leaves its block")]
fn matrices_must_lie_in_their_slices() {
    let at = Matrix { offset: 0, row: 2, column: 1 };
    let mut out = [0.0f32; 4];
    let (left, right) = ([0.0; 3], [0.0; 4]);
    let task = Task {
        dims: (2, 2, 2),
        out: (&mut out, at),
        left: (&left, at),
        right: (&right, at),
        batch: Batch::ONE,
        accumulate: false,
    };
    f32::multiply(Known::SumProduct, 0.0, task);
}
