//! Scaling, so that squares of elements stay in the range of numbers.

use faer::{Mat, MatRef};

use super::Number;

/// Exponents between which nothing is scaled: squares, and sums of many of them, are far from both ends of the range.
const SAFE: std::ops::RangeInclusive<i32> = -300..=300;

/// Powers of two beyond this have no reciprocal with all its digits.
const LARGEST: i32 = 1000;

/// What a matrix was multiplied by, and how results are brought back.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    exponent: i32,
}

impl Scale {
    /// A matrix in column order, scaled if that is necessary. Only exponents change, so nothing is rounded but what is far below the largest element.
    pub(super) fn apply<T: Number>(mut matrix: Mat<T>) -> (Mat<T>, Scale) {
        let scale = Scale::of(matrix.as_ref());
        if scale.exponent != 0 {
            let factor = scale.factor();
            for column in matrix.col_iter_mut() {
                column.iter_mut().for_each(|x| *x = x.times(factor));
            }
        }
        (matrix, scale)
    }

    /// As [`Scale::apply`], for elements in any order.
    pub(super) fn apply_all<T: Number>(matrix: MatRef<'_, T>, elements: &mut [T]) -> Scale {
        let scale = Scale::of(matrix);
        if scale.exponent != 0 {
            let factor = scale.factor();
            elements.iter_mut().for_each(|x| *x = x.times(factor));
        }
        scale
    }

    fn of<T: Number>(matrix: MatRef<'_, T>) -> Scale {
        let mut largest = 0f64;
        for j in 0..matrix.ncols() {
            for i in 0..matrix.nrows() {
                largest = largest.max(matrix[(i, j)].largest_part());
            }
        }
        if largest == 0.0 || !largest.is_finite() {
            return Scale { exponent: 0 };
        }
        let exponent = largest.log2().floor() as i32;
        match SAFE.contains(&exponent) {
            true => Scale { exponent: 0 },
            false => Scale { exponent: (-exponent).clamp(-LARGEST, LARGEST) },
        }
    }

    fn factor(self) -> f64 {
        2f64.powi(self.exponent)
    }

    /// Brings numbers back that grow with the matrix.
    pub(super) fn undo<T: Number>(self, values: &mut [T]) {
        if self.exponent != 0 {
            let factor = 2f64.powi(-self.exponent);
            values.iter_mut().for_each(|x| *x = x.times(factor));
        }
    }

    /// Brings a matrix back that grows with the one that was scaled.
    pub(super) fn undo_matrix<T: Number>(self, matrix: MatRef<'_, T>) -> Mat<T> {
        let mut copy = matrix.to_owned();
        for column in copy.col_iter_mut() {
            column.iter_mut().for_each(|x| *x = x.divided(self.factor()));
        }
        copy
    }
}
