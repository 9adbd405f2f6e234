//! Counts, means and sums of squared deviations of many values at once.
//!
//! Combining states one value at a time costs a division per value. Here a run of values becomes one state in two cheap passes, and rows of values
//! become states side by side through sums shifted by a value of each column. That value belongs to the sum, so squared deviations are at
//! least its own: the cancelled part is at most [`ROWS`] times the remainder.

use std::ops::{Add, Div, Mul, Sub};

use super::reduce::{Foldable, LANES, Monoid, join_lanes};
use crate::wide::wide;

/// Rows that share their shifts.
pub(crate) const ROWS: usize = 64;

/// Floats, as far as variances need them.
pub(crate) trait Real:
    Foldable + PartialEq + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A count as a float.
    fn count(n: usize) -> Self;
    /// The sums of this type.
    fn sums(all: &mut AllSums) -> &mut ShiftedSums<Self>;
}

/// Count, mean, and sum of squared deviations from the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moments<T> {
    pub(crate) n: T,
    pub(crate) mean: T,
    pub(crate) squares: T,
}

impl<T: Real> Moments<T> {
    /// Two groups as one, by the pairwise update of Chan, Golub and LeVeque. An empty group changes nothing.
    #[inline(always)]
    pub(crate) fn merge(self, other: Moments<T>) -> Moments<T> {
        let zero = T::default();
        let n = self.n + other.n;
        let weight = other.n / if n == zero { T::count(1) } else { n };
        let delta = other.mean - self.mean;
        let both = Moments {
            n,
            mean: self.mean + delta * weight,
            squares: self.squares + other.squares + delta * delta * self.n * weight,
        };
        let right = if self.n == zero { other } else { both };
        if other.n == zero { self } else { right }
    }

    /// One value.
    pub(crate) fn one(value: T) -> Moments<T> {
        Moments { n: T::count(1), mean: value, squares: T::default() }
    }

    /// The same value many times.
    pub(crate) fn repeated(value: T, n: usize) -> Moments<T> {
        // No deviation, unless the value is NaN or infinite, which then shows as it would one by one.
        let deviation = value * T::default();
        Moments { n: T::count(n), mean: value, squares: deviation * deviation }
    }

    /// A run of values; it must not be empty.
    pub(crate) fn of(values: &[T]) -> Moments<T> {
        let n = T::count(values.len());
        let mean = T::reduce(Monoid::Sum, values) / n;
        let (sum, squares) = deviations(values, mean);
        Moments { n, mean: mean + sum / n, squares: squares - sum * (sum / n) }
    }
}

wide! {
    /// Sum of deviations and of their squares.
    pub(crate) fn deviations[T: Real](values: &[T], mean: T) -> (T, T) {
        let (mut sums, mut squares) = ([T::default(); LANES], [T::default(); LANES]);
        let (chunks, tail) = values.as_chunks::<LANES>();
        for chunk in chunks {
            for k in 0..LANES {
                let d = chunk[k] - mean;
                sums[k] = sums[k] + d;
                squares[k] = squares[k] + d * d;
            }
        }
        let mut tails = [T::default(); LANES];
        for (deviation, &x) in tails.iter_mut().zip(tail) {
            *deviation = x - mean;
        }
        let sum = join_lanes(&mut sums, &tails[..tail.len()], |sum, d| sum + d);
        tails.iter_mut().for_each(|d| *d = *d * *d);
        (sum, join_lanes(&mut squares, &tails[..tail.len()], |sum, d| sum + d))
    }

    /// Adds a row to shifted sums.
    pub(crate) fn add_row[T: Real](row: &[T], shifts: &[T], sums: &mut [T], squares: &mut [T]) {
        for (((&x, &shift), sum), square) in row.iter().zip(shifts).zip(sums).zip(squares) {
            let d = x - shift;
            *sum = *sum + d;
            *square = *square + d * d;
        }
    }

    /// Merges groups of so many values into groups of so many, side by side. Only means and squared deviations are kept: all counts are the same.
    pub(crate) fn merge_groups[T: Real](counts: (usize, usize), means: &mut [T], squares: &mut [T], others: (&[T], &[T])) {
        let weight = T::count(counts.1) / T::count(counts.0 + counts.1);
        let spread = T::count(counts.0) * weight;
        for (((mean, square), &other), &other_square) in means.iter_mut().zip(squares).zip(others.0).zip(others.1) {
            let delta = other - *mean;
            *mean = *mean + delta * weight;
            *square = *square + other_square + delta * delta * spread;
        }
    }

    /// Merges `n_rows` rows of shifted sums into states side by side.
    pub(crate) fn merge_rows[T: Real](
        n_rows: usize,
        shifted: (&[T], &[T], &[T]),
        ns: &mut [T],
        means: &mut [T],
        squares: &mut [T],
    ) {
        let count = T::count(n_rows);
        let (shifts, sums, sums_of_squares) = shifted;
        let states = ns.iter_mut().zip(means).zip(squares);
        let rows = shifts.iter().zip(sums).zip(sums_of_squares);
        for (((n, mean), square), ((&shift, &sum), &sum_of_squares)) in states.zip(rows) {
            let step = sum / count;
            let group = Moments { n: count, mean: shift + step, squares: sum_of_squares - sum * step };
            let merged = Moments { n: *n, mean: *mean, squares: *square }.merge(group);
            (*n, *mean, *square) = (merged.n, merged.mean, merged.squares);
        }
    }
}

/// Sums over rows that have not been merged into states yet.
#[derive(Debug, Default)]
pub(crate) struct ShiftedSums<T> {
    shifts: Vec<T>,
    sums: Vec<T>,
    squares: Vec<T>,
    n_rows: usize,
    /// Where the states of the first column are.
    position: usize,
}

impl<T: Real> ShiftedSums<T> {
    /// Clears the accumulated moments.
    pub(crate) fn clear(&mut self) {
        self.n_rows = 0;
    }

    /// Adds a row whose states begin at a position; merges earlier rows first if they belong elsewhere or are many.
    pub(crate) fn add(&mut self, row: &[T], position: usize, states: [&mut [T]; 3]) {
        let continues = self.n_rows > 0 && self.position == position && self.shifts.len() == row.len();
        if !continues || self.n_rows == ROWS {
            self.flush(states);
            self.position = position;
            self.shifts.clear();
            self.shifts.extend_from_slice(row);
            for sums in [&mut self.sums, &mut self.squares] {
                sums.clear();
                sums.resize(row.len(), T::default());
            }
        }
        // The first row counts too: its deviations are 0, unless it holds NaN or infinities.
        add_row(row, &self.shifts, &mut self.sums, &mut self.squares);
        self.n_rows += 1;
    }

    /// Merges the accumulated moments into the states.
    pub(crate) fn flush(&mut self, states: [&mut [T]; 3]) {
        if self.n_rows == 0 {
            return;
        }
        let range = self.position..self.position + self.shifts.len();
        let [ns, means, squares] = states.map(|state| &mut state[range.clone()]);
        merge_rows(self.n_rows, (&self.shifts, &self.sums, &self.squares), ns, means, squares);
        self.n_rows = 0;
    }
}

/// Shifted sums of every type.
#[derive(Debug, Default)]
pub(crate) struct AllSums {
    singles: ShiftedSums<f32>,
    doubles: ShiftedSums<f64>,
}

impl Real for f32 {
    fn count(n: usize) -> f32 {
        n as f32
    }
    fn sums(all: &mut AllSums) -> &mut ShiftedSums<f32> {
        &mut all.singles
    }
}
impl Real for f64 {
    fn count(n: usize) -> f64 {
        n as f64
    }
    fn sums(all: &mut AllSums) -> &mut ShiftedSums<f64> {
        &mut all.doubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-13 * b.abs().max(1e-300)
    }

    #[test]
    fn runs_have_their_moments() {
        for n in [1, 2, 15, 16, 17, 1000] {
            // Far from zero, where sums of squares alone would cancel.
            let values: Vec<f64> = (0..n).map(|k| 1e8 + (k % 10) as f64).collect();
            let exact_mean = 1e8 + (0..n).map(|k| (k % 10) as f64).sum::<f64>() / n as f64;
            let exact: f64 = (0..n).map(|k| (1e8 + (k % 10) as f64 - exact_mean).powi(2)).sum();
            let found = Moments::of(&values);
            assert_eq!(found.n, n as f64);
            assert!(close(found.mean, exact_mean) && (found.squares - exact).abs() <= 1e-6 * exact.max(1.0), "{n}");
        }
    }

    #[test]
    fn rows_agree_with_runs() {
        let (n_rows, n_columns) = (3 * ROWS + 5, 37);
        // The first row is an outlier: the worst shift.
        let at = |row: usize, column: usize| if row == 0 { 1e6 } else { ((row * 31 + column * 17) % 101) as f64 };
        let mut states = [vec![0.0; n_columns + 2], vec![0.0; n_columns + 2], vec![0.0; n_columns + 2]];
        let mut sums = ShiftedSums::default();
        for row in 0..n_rows {
            let values: Vec<f64> = (0..n_columns).map(|column| at(row, column)).collect();
            let [a, b, c] = &mut states;
            sums.add(&values, 1, [a, b, c]);
        }
        let [a, b, c] = &mut states;
        sums.flush([a, b, c]);
        for column in 0..n_columns {
            let expected = Moments::of(&(0..n_rows).map(|row| at(row, column)).collect::<Vec<f64>>());
            assert_eq!(states[0][column + 1], n_rows as f64);
            assert!(close(states[1][column + 1], expected.mean));
            assert!(close(states[2][column + 1], expected.squares), "{} {}", states[2][column + 1], expected.squares);
        }
        assert_eq!((states[0][0], states[0][n_columns + 1]), (0.0, 0.0));
    }

    #[test]
    fn merging_with_nothing_changes_nothing() {
        let empty = Moments { n: 0.0, mean: 0.0, squares: 0.0 };
        let some = Moments { n: 3.0, mean: -0.0, squares: 0.1 };
        assert_eq!(empty.merge(some), some);
        assert_eq!(some.merge(empty), some);
        assert!(empty.merge(Moments::one(f64::INFINITY)).mean.is_infinite());
        assert!(Moments::repeated(f64::NAN, 4).squares.is_nan());
    }
}
