//! Least squares, pseudoinverses and ranks, all by singular values.

use tw_ir::Scalar;
use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::scalar::{BinaryOp, UnaryOp};

use super::{Algorithms, real_type};
use crate as build;
use crate::Reduction;
use tw_ir::{Axis, ValueId};

/// A tall system after one pass over it: `R x` is to come close to `projected`; no x comes closer to `rest` than zero.
struct Reduced<V> {
    r: V,
    projected: V,
    rest: V,
    is_vector: bool,
}

impl Algorithms<'_> {
    /// Which singular values count: those above the tolerance times the largest. The tolerance is one number per matrix; by default it is the
    /// rounding error of the type times the longer side.
    fn counting(&mut self, s: &ValueId, longer: u64, tolerance: Option<&ValueId>) -> Result<ValueId> {
        let axis = self.ty(s).rank() - 1;
        if self.shape(s)?[axis] == 0 {
            return self.with_number(BinaryOp::Gt, s, 0.0);
        }
        let op = build::reduce(self.ty(s), Reduction::Max, Some(&[axis]), true)?;
        let largest = self.one(op, &[s])?;
        let limit = match tolerance {
            None => {
                let epsilon = if self.ty(s).dtype == DType::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
                self.with_number(BinaryOp::Mul, &largest, epsilon * longer as f64)?
            }
            Some(tolerance) => {
                let op = build::expand_dims(self.ty(tolerance), self.ty(tolerance).rank())?;
                let tolerance = self.one(op, &[tolerance])?;
                self.binary(BinaryOp::Mul, &largest, &tolerance)?
            }
        };
        self.binary(BinaryOp::Gt, s, &limit)
    }

    /// How many singular values count.
    pub fn matrix_rank(&mut self, a: &ValueId, tolerance: Option<&ValueId>) -> Result<ValueId> {
        let (rows, columns) = self.size(a)?;
        let s = self.svdvals(a)?;
        let counting = self.counting(&s, rows.max(columns), tolerance)?;
        let axis = self.ty(&s).rank() - 1;
        self.count(&counting, axis)
    }

    /// 1/s, and 0 where s does not count.
    fn inverted(&mut self, s: &ValueId, counting: &ValueId) -> Result<ValueId> {
        let safe = self.where_or(counting, s, 1.0)?;
        let op = build::binary(BinaryOp::Div, self.ty(&safe).dtype.one(), self.ty(&safe))?;
        let inverse = self.one(op, &[&safe])?;
        self.where_or(counting, &inverse, 0.0)
    }

    /// The inverse of what can be inverted.
    pub fn pinv(&mut self, a: &ValueId, tolerance: Option<&ValueId>) -> Result<ValueId> {
        let (rows, columns) = self.size(a)?;
        let [u, s, vh] = self.svd(a)?;
        let counting = self.counting(&s, rows.max(columns), tolerance)?;
        let inverse = self.inverted(&s, &counting)?;
        // V diag(1/s) U^H.
        let (v, uh) = (self.adjoint(&vh)?, self.adjoint(&u)?);
        let row = build::expand_dims(self.ty(&inverse), self.ty(&inverse).rank() - 1)?;
        let row = self.one(row, &[&inverse])?;
        let scaled = self.binary(BinaryOp::Mul, &v, &row)?;
        self.matmul(&scaled, &uh)
    }

    /// The shortest x that brings `a x` closest to b: x, the squares of the distances, the rank of a, and its singular values.
    pub fn lstsq(&mut self, a: &ValueId, b: &ValueId, tolerance: Option<&ValueId>) -> Result<[ValueId; 4]> {
        let (a, b) = self.alike(a, b)?;
        let (rows, columns) = self.size(&a)?;
        if self.ty(&a).rank() != 2 || !matches!(self.ty(&b).rank(), 1 | 2) {
            return Err(Error::source("least squares of one matrix with a vector or a matrix on the right"));
        }
        if self.shape(&b)?[0] != rows {
            return Err(Error::source(format!("{rows} equations with {} right-hand sides", self.shape(&b)?[0])));
        }
        if let Some(cut) = self.tall_cut(&a)?
            && let Some(reduced) = self.reduced_system(&a, &b, &cut)?
        {
            return self.lstsq_reduced(reduced, (rows, columns), tolerance);
        }
        let [u, s, vh] = self.svd(&a)?;
        let counting = self.counting(&s, rows.max(columns), tolerance)?;
        let mut inverse = self.inverted(&s, &counting)?;
        let projected = self.adjoint_matmul(&u, &b)?;
        if self.ty(&b).rank() == 2 {
            let op = build::expand_dims(self.ty(&inverse), 1)?;
            inverse = self.one(op, &[&inverse])?;
        }
        let scaled = self.binary(BinaryOp::Mul, &projected, &inverse)?;
        let x = self.adjoint_matmul(&vh, &scaled)?;
        let reached = self.matmul(&a, &x)?;
        let missed = self.binary(BinaryOp::Sub, &b, &reached)?;
        let distances = self.squares(&missed)?;
        let distances = self.cast(&distances, real_type(self.ty(&a).dtype))?;
        Ok([x, distances, self.count(&counting, 0)?, s])
    }

    /// The triangle of a tall matrix with the right-hand sides beside it, which one pass over both makes: `R` and `Q^H b`, and below them the part of b that no combination of columns
    /// reaches. Nothing if there are more right-hand sides than columns: then blocks of rows may be too short.
    fn reduced_system(&mut self, a: &ValueId, b: &ValueId, cut: &Axis) -> Result<Option<Reduced<ValueId>>> {
        let (_, n) = self.size(a)?;
        let is_vector = self.ty(b).rank() == 1;
        let b = match is_vector {
            true => {
                let op = build::expand_dims(self.ty(b), 1)?;
                self.one(op, &[b])?
            }
            false => *b,
        };
        let (_, k) = self.size(&b)?;
        if k > n {
            return Ok(None);
        }
        let by_rows = |columns: u64| vec![cut.clone(), Axis::whole(columns)];
        let (left, right) = (self.retiled(a, by_rows(n))?, self.retiled(&b, by_rows(k))?);
        let beside = self.concat(&[left, right], 1)?;
        let triangle = self.tall_r(&beside, cut)?;
        Ok(Some(Reduced {
            r: self.part(&triangle, &[0..n, 0..n])?,
            projected: self.part(&triangle, &[0..n, n..n + k])?,
            rest: self.part(&triangle, &[n..n + k, n..n + k])?,
            is_vector,
        }))
    }

    /// As [`Algorithms::lstsq`], of a system of `(rows, columns)` that was reduced.
    fn lstsq_reduced(
        &mut self,
        reduced: Reduced<ValueId>,
        (rows, columns): (u64, u64),
        tolerance: Option<&ValueId>,
    ) -> Result<[ValueId; 4]> {
        let Reduced { r, projected, rest, is_vector } = reduced;
        let dtype = self.ty(&r).dtype;
        let [u, s, vh] = self.svd_in_one(&r, columns, columns, dtype)?;
        let counting = self.counting(&s, rows.max(columns), tolerance)?;
        let inverse = self.inverted(&s, &counting)?;
        let op = build::expand_dims(self.ty(&inverse), 1)?;
        let inverse = self.one(op, &[&inverse])?;
        let turned = self.adjoint_matmul(&u, &projected)?;
        let scaled = self.binary(BinaryOp::Mul, &turned, &inverse)?;
        let x = self.adjoint_matmul(&vh, &scaled)?;
        // What is missed within the reach of the columns is more than rounding only if some of them do not count.
        let reached = self.matmul(&r, &x)?;
        let missed = self.binary(BinaryOp::Sub, &projected, &reached)?;
        let (within, beyond) = (self.squares(&missed)?, self.squares(&rest)?);
        let distances = self.binary(BinaryOp::Add, &within, &beyond)?;
        let mut results = [x, distances];
        if is_vector {
            let op = build::squeeze(self.ty(&x), &[1])?;
            let x = self.one(op, &[&x])?;
            let op = build::squeeze(self.ty(&distances), &[0])?;
            results = [x, self.one(op, &[&distances])?];
        }
        let [x, distances] = results;
        Ok([x, distances, self.count(&counting, 0)?, s])
    }

    /// The sums of the squared magnitudes of columns.
    fn squares(&mut self, x: &ValueId) -> Result<ValueId> {
        let size = self.unary(UnaryOp::Abs, x)?;
        let squares = self.binary(BinaryOp::Mul, &size, &size)?;
        let op = build::reduce(self.ty(&squares), Reduction::Sum, Some(&[0]), false)?;
        self.one(op, &[&squares])
    }

    /// `x` where the condition holds, a number elsewhere.
    fn where_or(&mut self, condition: &ValueId, x: &ValueId, otherwise: f64) -> Result<ValueId> {
        let op = build::select(self.ty(condition), self.ty(x), Scalar::F64(otherwise))?;
        self.one(op, &[condition, x])
    }

    fn count(&mut self, mask: &ValueId, axis: usize) -> Result<ValueId> {
        let counted = self.cast(mask, DType::I64)?;
        let op = build::reduce(self.ty(&counted), Reduction::Sum, Some(&[axis]), false)?;
        self.one(op, &[&counted])
    }
}
