//! Scaling, so that squares of elements stay in the range of numbers.

use faer::{Mat, MatRef};

use super::Number;

/// Exponents between which nothing is scaled. Squares leave the range much later, but `faer` compares parts of matrices that are not symmetric with
/// numbers near 1, and from about 2^-50 on takes all of them for zeros. Scaling costs nothing beside a factorisation.
const SAFE: std::ops::RangeInclusive<i32> = -20..=20;

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
        let scale = Scale::of(matrix.col_iter().flat_map(|column| column.iter().copied()));
        if scale.exponent != 0 {
            let factor = scale.factor();
            for column in matrix.col_iter_mut() {
                column.iter_mut().for_each(|x| *x = x.times(factor));
            }
        }
        (matrix, scale)
    }

    /// As [`Scale::apply`], for elements in any order.
    pub(super) fn apply_all<T: Number>(elements: &mut [T]) -> Scale {
        let scale = Scale::of(elements.iter().copied());
        if scale.exponent != 0 {
            let factor = scale.factor();
            elements.iter_mut().for_each(|x| *x = x.times(factor));
        }
        scale
    }

    fn of<T: Number>(elements: impl Iterator<Item = T>) -> Scale {
        let largest = elements.fold(0f64, |largest, x| largest.max(x.largest_part()));
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
