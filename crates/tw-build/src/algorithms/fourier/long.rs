//! Fourier transforms of fibres that are too long for one task.
//!
//! **Four steps.** With `n = n1 * n2`, element `j = n2 * j1 + j2` of a fibre and amplitude `k = k1 + n1 * k2`:
//!
//! ```text
//! X[k1 + n1 k2] = sum over j2 of  w(n2)^(j2 k2) * w(n)^(j2 k1) * sum over j1 of  w(n1)^(j1 k1) * x[n2 j1 + j2]
//! ```
//!
//! So the fibre is a matrix of `n1` rows whose columns are transformed, multiplied by factors, and whose rows are transformed; the result is read column by column. Every
//! step works on blocks of a few columns or rows; between the steps the matrix is cut differently, which a small budget does by way of the disk. Of real numbers only the first
//! half of the column transforms is computed, since the amplitudes `k` and `n - k` are conjugates.
//!
//! **Lengths with a large prime factor** become a convolution of a length that is a power of two (Bluestein): `j k = (j^2 + k^2 - (k - j)^2) / 2`.
//!
//! Rejected: one pass per prime factor, which reads and writes the fibre more than twice.

use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::program::Transform;
use tw_ir::scalar::{BinaryOp, UnaryOp};
use tw_ir::{Axis, Edge, Extent, Grid, Idx, Scalar, Slot, ValueId, Var};

use super::super::Algorithms;
use crate as build;
use crate::statement::{StatementBuilder, moved};
use tw_ir::tiling::cut_leading;

/// Longer fibres are transformed in several steps.
pub(super) const LONG: u64 = 1 << 19;

/// Elements of a block between two steps: enough that the parts that blocks exchange are worth a read, few enough that a task stays small.
const BLOCK_ELEMENTS: std::ops::RangeInclusive<u64> = 1 << 18..=1 << 20;

/// Blocks of a fibre between two steps; each exchanges parts with each.
const N_BLOCKS: u64 = 256;

/// The largest divisor of a length that is at most its square root, if the other factor is short enough for one task.
fn factors(n: u64) -> Option<(u64, u64)> {
    let root = n.isqrt();
    let least = n.div_ceil(LONG).max(2);
    (least..=root).rev().find(|&divisor| n.is_multiple_of(divisor)).map(|divisor| (divisor, n / divisor))
}

impl Algorithms<'_> {
    /// As [`Algorithms::fourier`], for elements that have the right type and number.
    pub(super) fn long_fourier(&mut self, x: &ValueId, kind: Transform, axis: usize, n: u64) -> Result<ValueId> {
        match (kind, factors(n)) {
            (Transform::Forward | Transform::Inverse, Some(factors)) => self.in_steps(x, kind, axis, factors),
            (Transform::Forward | Transform::Inverse, None) => self.as_convolution(x, kind, axis, n),
            (Transform::FromReal, Some(factors)) => self.in_steps_from_real(x, axis, factors),
            (Transform::FromReal, None) => {
                let complex = self.ty(x).dtype.with_parts();
                let complex = complex.ok_or_else(|| Error::internal("a real type without a complex one"))?;
                let x = self.cast(x, complex)?;
                let amplitudes = self.as_convolution(&x, Transform::Forward, axis, n)?;
                self.along(&amplitudes, axis, 0..n / 2 + 1)
            }
            (Transform::ToReal, _) => {
                let amplitudes = self.both_halves(x, axis, n)?;
                let values = self.long_fourier(&amplitudes, Transform::Inverse, axis, n)?;
                self.unary(UnaryOp::Real, &values)
            }
        }
    }

    fn in_steps(&mut self, x: &ValueId, kind: Transform, axis: usize, (n1, n2): (u64, u64)) -> Result<ValueId> {
        let rows = self.columns_transformed(x, (kind, kind), axis, (n1, n2))?;
        let turned = self.turned(&rows, axis)?;
        self.read_by_rows(&turned, axis, n1 * n2)
    }

    fn in_steps_from_real(&mut self, x: &ValueId, axis: usize, (n1, n2): (u64, u64)) -> Result<ValueId> {
        let n = n1 * n2;
        let half = n1 / 2 + 1;
        let rows = self.columns_transformed(x, (Transform::FromReal, Transform::Forward), axis, (n1, n2))?;
        // Amplitudes up to the middle one.
        let wanted = n / 2 / n1 + 1;
        let known = self.along(&rows, axis + 1, 0..wanted)?;
        let known = self.turned(&known, axis)?;
        // Amplitude k of a column beyond the middle one is the conjugate of amplitude n - k, which is in row n1 - k1, column n2 - 1 - k2.
        let mirrored = self.along(&rows, axis, 1..n1 - half + 1)?;
        let mirrored = self.along(&mirrored, axis + 1, n2 - wanted..n2)?;
        let op = build::flip(self.ty(&mirrored), &[axis, axis + 1])?;
        let mirrored = self.one(op, &[&mirrored])?;
        let mirrored = self.conj(&mirrored)?;
        let mirrored = self.turned(&mirrored, axis)?;
        let all = self.concat(&[known, mirrored], axis + 1)?;
        self.read_by_rows(&all, axis, n / 2 + 1)
    }

    /// The first three steps: transformed columns, factors, transformed rows.
    fn columns_transformed(
        &mut self,
        x: &ValueId,
        (first, second): (Transform, Transform),
        axis: usize,
        (n1, n2): (u64, u64),
    ) -> Result<ValueId> {
        let matrix = self.as_matrix(x, axis, (n1, n2))?;
        let n_elements = block_elements(&self.shape(&matrix)?);
        let columns = self.transformed(&matrix, first, axis, n1, n_elements)?;
        let sign = if second == Transform::Inverse { 1.0 } else { -1.0 };
        let multiplied = self.with_factors(&columns, sign, |statement| {
            // The product of a row and a column is below n1 * n2.
            let (row, column) = (statement.var(axis), statement.var(axis + 1));
            Ok((statement.code.binary(BinaryOp::Mul, row, column)?, n1 * n2))
        })?;
        self.transformed(&multiplied, second, axis + 1, n2, n_elements)
    }

    /// Fibres of `n1 * n2` elements as matrices.
    fn as_matrix(&mut self, x: &ValueId, axis: usize, (n1, n2): (u64, u64)) -> Result<ValueId> {
        let mut shape = self.shape(x)?;
        shape.splice(axis..axis + 1, [n1, n2]);
        // Blocks of whole rows, which lie together in the fibre.
        let grid = self.by_rows(&shape, axis + 1);
        let (mut fibres, rows) = without(&grid, axis);
        fibres[axis] = Axis::uniform(n1 * n2, rows.longest() * n2);
        let x = self.retiled(x, fibres)?;
        let extents: Vec<Extent> = shape.iter().copied().map(Extent::Known).collect();
        let place = Idx::var(Var(axis as u32)).times(n2 as i64).plus(&Idx::var(Var(axis as u32 + 1)));
        let idx = (0..shape.len()).filter(|&k| k != axis + 1).map(|k| match k == axis {
            true => place.clone(),
            false => Idx::var(Var(k as u32)),
        });
        let op = moved(self.ty(&x), idx.collect(), Edge::Error, &extents);
        let matrix = self.one(op, &[&x])?;
        self.retiled(&matrix, grid)
    }

    /// The first `n` elements of matrices as fibres.
    fn read_by_rows(&mut self, x: &ValueId, axis: usize, n: u64) -> Result<ValueId> {
        let shape = self.shape(x)?;
        let grid = self.by_rows(&shape, axis + 1);
        let x = self.retiled(x, grid.clone())?;
        let n_columns = shape[axis + 1];
        let (mut fibres, rows) = without(&grid, axis);
        fibres[axis] = Axis::uniform(n, rows.longest() * n_columns);
        let extents: Vec<Extent> = fibres.shape().into_iter().map(Extent::Known).collect();
        let at = |k: usize| Idx::var(Var(k as u32));
        let mut idx: Vec<Idx> = (0..extents.len()).map(at).collect();
        let (row, column) = (at(axis).div(n_columns as i64), at(axis).modulo(n_columns as i64));
        idx.splice(axis..axis + 1, [row, column]);
        let op = moved(self.ty(&x), idx, Edge::Error, &extents);
        let fibre = self.one(op, &[&x])?;
        self.retiled(&fibre, fibres)
    }

    /// A grid whose blocks have all of one axis, and as much of the others as fits.
    fn by_rows(&self, shape: &[u64], whole: usize) -> Grid {
        let mut grid = Grid::whole(shape);
        let others: Vec<usize> = (0..shape.len()).filter(|&k| k != whole).collect();
        cut_leading(&mut grid, &others, block_elements(shape));
        grid
    }

    /// Rows and columns exchanged.
    fn turned(&mut self, x: &ValueId, axis: usize) -> Result<ValueId> {
        let mut order: Vec<usize> = (0..self.ty(x).rank()).collect();
        order.swap(axis, axis + 1);
        self.permuted(x, &order)
    }

    /// Part of an axis.
    fn along(&mut self, x: &ValueId, axis: usize, range: std::ops::Range<u64>) -> Result<ValueId> {
        let mut ranges: Vec<std::ops::Range<u64>> = self.shape(x)?.into_iter().map(|extent| 0..extent).collect();
        ranges[axis] = range;
        self.part(x, &ranges)
    }

    /// All amplitudes of real numbers, from the first half: the others are conjugates. The first one, and the middle one of an even number, are real.
    fn both_halves(&mut self, x: &ValueId, axis: usize, n: u64) -> Result<ValueId> {
        let half = n / 2 + 1;
        let mirrored = self.along(x, axis, 1..n - half + 1)?;
        let op = build::flip(self.ty(&mirrored), &[axis])?;
        let mirrored = self.one(op, &[&mirrored])?;
        let mirrored = self.conj(&mirrored)?;
        let x = self.real_where(x, axis, n)?;
        self.concat(&[x, mirrored], axis)
    }

    /// Amplitudes whose imaginary parts are left out where those of real numbers have none.
    fn real_where(&mut self, x: &ValueId, axis: usize, n: u64) -> Result<ValueId> {
        let ty = self.ty(x).clone();
        let mut statement = StatementBuilder::of(&ty);
        let (value, at) = (statement.read(0), statement.var(axis));
        let code = &mut statement.code;
        let (re, im) = (code.unary(UnaryOp::Real, value)?, code.unary(UnaryOp::Imag, value)?);
        let doubled = code.binary(BinaryOp::Add, at, at)?;
        let n = code.constant(Scalar::I64(n as i64));
        let left = code.binary(BinaryOp::Mod, doubled, n)?;
        let none = code.constant(Scalar::I64(0));
        let is_real = code.binary(BinaryOp::Eq, left, none)?;
        let zero = code.constant(code.dtype(im).zero());
        let im = code.select(is_real, zero, im)?;
        let body = code.binary(BinaryOp::Complex, re, im)?;
        self.one(statement.elementwise(body), &[x])
    }

    /// Elements times `exp(sign * 2 pi i * p / q)`, with whole numbers `p < q` that `turn` gives.
    fn with_factors(
        &mut self,
        x: &ValueId,
        sign: f64,
        turn: impl FnOnce(&mut StatementBuilder) -> Result<(Slot, u64)>,
    ) -> Result<ValueId> {
        let ty = self.ty(x).clone();
        let mut statement = StatementBuilder::of(&ty);
        let value = statement.read(0);
        let turn = turn(&mut statement)?;
        let factor = unit_number(&mut statement, turn, sign, ty.dtype)?;
        let body = statement.code.binary(BinaryOp::Mul, value, factor)?;
        self.one(statement.elementwise(body), &[x])
    }

    /// A transform of any length by way of two whose length is a power of two.
    fn as_convolution(&mut self, x: &ValueId, kind: Transform, axis: usize, n: u64) -> Result<ValueId> {
        let too_long =
            || Error::source(format!("a Fourier transform of {n} elements, a length with a large prime factor"));
        let length = n.checked_mul(2).and_then(|n| (n - 1).checked_next_power_of_two());
        // Squares of places below n are computed as i64.
        let length = length.filter(|_| n < 1 << 31).ok_or_else(too_long)?;
        let sign = if kind == Transform::Inverse { 1.0 } else { -1.0 };
        let square = |axis: usize| {
            move |statement: &mut StatementBuilder| {
                let at = statement.var(axis);
                let square = statement.code.binary(BinaryOp::Mul, at, at)?;
                let period = statement.code.constant(Scalar::I64(2 * n as i64));
                Ok((statement.code.binary(BinaryOp::Mod, square, period)?, 2 * n))
            }
        };
        let chirped = self.with_factors(x, sign, square(axis))?;
        let chirped = self.fitted(&chirped, axis, length)?;
        let spectrum = self.fourier(&chirped, Transform::Forward, axis, length)?;
        let response = self.chirp(self.ty(x).dtype, -sign, n, length)?;
        let response = self.fourier(&response, Transform::Forward, 0, length)?;
        let after = self.ty(x).rank() - 1 - axis;
        let mut aligned = response;
        for _ in 0..after {
            let op = build::expand_dims(self.ty(&aligned), self.ty(&aligned).rank())?;
            aligned = self.one(op, &[&aligned])?;
        }
        let product = self.binary(BinaryOp::Mul, &spectrum, &aligned)?;
        let convolved = self.fourier(&product, Transform::Inverse, axis, length)?;
        let convolved = self.along(&convolved, axis, 0..n)?;
        let result = self.with_factors(&convolved, sign, square(axis))?;
        let dtype = self.ty(&result).dtype;
        let scale = Scalar::F64(1.0 / length as f64).cast(dtype);
        let op = build::binary(BinaryOp::Mul, self.ty(&result), scale)?;
        self.one(op, &[&result])
    }

    /// `exp(sign * pi i * k^2 / n)` for k from `1 - n` to `n - 1`, those below zero at the end; zeros between.
    fn chirp(&mut self, dtype: DType, sign: f64, n: u64, length: u64) -> Result<ValueId> {
        let mut statement = StatementBuilder::new(&[Extent::Known(length)], Vec::new());
        let at = statement.var(0);
        let code = &mut statement.code;
        let number = |value: u64| Scalar::I64(value as i64);
        let (n_slot, end, period) =
            (code.constant(number(n)), code.constant(number(length)), code.constant(number(2 * n)));
        let from_end = code.binary(BinaryOp::Sub, end, at)?;
        let distance = code.binary(BinaryOp::Min, at, from_end)?;
        let is_there = code.binary(BinaryOp::Lt, distance, n_slot)?;
        // Squares beyond the numbers that count are not computed.
        let none = code.constant(Scalar::I64(0));
        let distance = code.select(is_there, distance, none)?;
        let square = code.binary(BinaryOp::Mul, distance, distance)?;
        let turn = code.binary(BinaryOp::Mod, square, period)?;
        let value = unit_number(&mut statement, (turn, 2 * n), sign, dtype)?;
        let zero = statement.code.constant(dtype.zero());
        let body = statement.code.select(is_there, value, zero)?;
        self.one(statement.elementwise(body), &[])
    }
}

/// `exp(sign * 2 pi i * p / q)` for a whole number `p < q`, with an error of a few roundings whatever the size of `p`.
fn unit_number(statement: &mut StatementBuilder, (p, q): (Slot, u64), sign: f64, dtype: DType) -> Result<Slot> {
    let part = dtype.part().ok_or_else(|| Error::internal(format!("{dtype} has no parts")))?;
    let code = &mut statement.code;
    // Angles between minus and plus a half turn are the most exact.
    let (whole, middle) = (code.constant(Scalar::I64(q as i64)), code.constant(Scalar::I64((q / 2) as i64)));
    let is_beyond = code.binary(BinaryOp::Gt, p, middle)?;
    let back = code.binary(BinaryOp::Sub, p, whole)?;
    let turn = code.select(is_beyond, back, p)?;
    let turn = code.cast(DType::F64, turn);
    let scale = code.constant(Scalar::F64(sign * std::f64::consts::TAU / q as f64));
    let angle = code.binary(BinaryOp::Mul, turn, scale)?;
    let (re, im) = (code.unary(UnaryOp::Cos, angle)?, code.unary(UnaryOp::Sin, angle)?);
    let (re, im) = (code.cast(part, re), code.cast(part, im));
    code.binary(BinaryOp::Complex, re, im)
}

/// A grid without one of its axes, and that axis.
fn without(grid: &Grid, axis: usize) -> (Grid, Axis) {
    let others = grid.iter().enumerate().filter(|(k, _)| *k != axis);
    (others.map(|(_, cut)| cut.clone()).collect(), grid[axis].clone())
}

/// Elements of a block of a tensor whose fibres are matrices.
fn block_elements(shape: &[u64]) -> u64 {
    let n = shape.iter().fold(1u64, |n, &extent| n.saturating_mul(extent));
    (n / N_BLOCKS).clamp(*BLOCK_ELEMENTS.start(), *BLOCK_ELEMENTS.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_short_enough_for_a_task() {
        assert_eq!(factors(1 << 20), Some((1 << 10, 1 << 10)));
        assert_eq!(factors(3 << 20), Some((1536, 2048)));
        assert_eq!(factors(1_000_003), None, "a prime");
        assert_eq!(factors(2 * 1_000_003), None, "a prime that is too long for a task");
        assert_eq!(factors(2 * 500_009), Some((2, 500_009)));
    }
}
