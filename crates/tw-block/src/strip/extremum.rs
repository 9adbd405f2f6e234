//! Smallest and largest values together with their positions.

use super::Values;
use super::reduce::{Foldable, Monoid};
use crate::wide::wide;

/// Types with an order.
pub(crate) trait Ordered: Foldable + PartialOrd {}
impl<T: Foldable + PartialOrd> Ordered for T {}

/// Which value wins: the smaller or the larger one. Ties go to the lower position; NaN wins over everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extremum {
    Smallest,
    Largest,
}

impl Extremum {
    fn monoid<T: Foldable>(self) -> Monoid {
        let op = match self {
            Extremum::Smallest => tw_ir::BinaryOp::Min,
            Extremum::Largest => tw_ir::BinaryOp::Max,
        };
        // Every ordered type has a smallest and a largest value; the sum is never used.
        Monoid::of(op, T::DTYPE).unwrap_or(Monoid::Sum)
    }

    /// True if `(y, j)` wins over `(x, i)`.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    pub(crate) fn prefers<T: Ordered>(self, (y, j): (T, i64), (x, i): (T, i64)) -> bool {
        let better = match self {
            Extremum::Smallest => y < x,
            Extremum::Largest => y > x,
        };
        let (nan_x, nan_y) = (x != x, y != y);
        let same = (x == y) | (nan_x & nan_y);
        better | (nan_y & !nan_x) | (same & (j < i))
    }

    /// The winner of a strip of at least one element.
    pub(crate) fn of_strip<T: Ordered>(self, values: Values<'_, T>, positions: Values<'_, i64>, n: usize) -> (T, i64) {
        let best = T::reduce_strip(self.monoid::<T>(), values, n);
        let position = match (values, positions) {
            (Values::Each(values), Values::Each(positions)) => lowest_position(values, best, positions),
            (Values::Each(_), Values::Same(position)) => position,
            (Values::Same(_), positions) => i64::reduce_strip(Monoid::Min, positions, n),
        };
        (best, position)
    }
}

wide! {
    /// The lowest position of a value that is among the values.
    pub(crate) fn lowest_position[T: Ordered](values: &[T], best: T, positions: &[i64]) -> i64 {
        #[allow(clippy::eq_op)]
        let best_is_nan = best != best;
        let mut lowest = i64::MAX;
        for (&x, &position) in values.iter().zip(positions) {
            #[allow(clippy::eq_op)]
            let hit = (x == best) | (best_is_nan & (x != x));
            lowest = lowest.min(if hit { position } else { i64::MAX });
        }
        lowest
    }

    /// Lets each element of a strip compete with the winner at its place.
    pub(crate) fn compete_each[T: Ordered](
        which: Extremum,
        values: Values<'_, T>,
        positions: Values<'_, i64>,
        best: &mut [T],
        best_positions: &mut [i64],
    ) {
        let winners = best.iter_mut().zip(best_positions);
        let compete = |(x, i): (&mut T, &mut i64), y: T, j: i64| {
            let wins = which.prefers((y, j), (*x, *i));
            *x = if wins { y } else { *x };
            *i = if wins { j } else { *i };
        };
        match (values, positions) {
            (Values::Each(values), Values::Each(positions)) => {
                winners.zip(values.iter().zip(positions)).for_each(|(winner, (&y, &j))| compete(winner, y, j));
            }
            (Values::Each(values), Values::Same(j)) => {
                winners.zip(values).for_each(|(winner, &y)| compete(winner, y, j));
            }
            (Values::Same(y), Values::Each(positions)) => {
                winners.zip(positions).for_each(|(winner, &j)| compete(winner, y, j));
            }
            (Values::Same(y), Values::Same(j)) => winners.for_each(|winner| compete(winner, y, j)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_and_nan_win() {
        let positions = [10, 11, 12, 13, 14];
        let largest =
            |values: &[f64]| Extremum::Largest.of_strip(Values::Each(values), Values::Each(&positions), values.len()).1;
        assert_eq!(largest(&[1.0, 3.0, 3.0, 2.0, 3.0]), 11);
        assert_eq!(largest(&[1.0, f64::NAN, 9.0, f64::NAN, 0.0]), 11);
        assert_eq!(largest(&[-0.0, 0.0, -0.0, 0.0, 0.0]), 10);
        let smallest = Extremum::Smallest.of_strip(Values::Each(&[4i64, 2, 2]), Values::Each(&[7, 6, 5]), 3);
        assert_eq!(smallest, (2, 5));
    }

    #[test]
    fn competing_one_by_one_agrees_with_strips() {
        let values: Vec<f64> = (0..200).map(|k| if k == 77 { f64::NAN } else { ((k * 37) % 11) as f64 }).collect();
        for which in [Extremum::Smallest, Extremum::Largest] {
            for n in [1, 5, 77, 78, 200] {
                let positions: Vec<i64> = (0..n as i64).collect();
                let (mut best, mut position) = ([values[0]], [0]);
                for (&value, &k) in values[..n].iter().zip(&positions) {
                    compete_each(which, Values::Same(value), Values::Same(k), &mut best, &mut position);
                }
                let strip = which.of_strip(Values::Each(&values[..n]), Values::Each(&positions), n);
                assert_eq!((best[0].to_bits(), position[0]), (strip.0.to_bits(), strip.1), "{which:?} {n}");
            }
        }
    }
}
