//! Least squares, pseudoinverses and ranks, all by singular values.

use tw_ir::Scalar;
use tw_ir::dtype::DType;
use tw_ir::error::{Error, Result};
use tw_ir::scalar::{BinaryOp, UnaryOp};

use super::{Algorithms, real_type};
use crate as build;
use crate::Reduction;
use tw_ir::ValueId;

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
        let missed = self.unary(UnaryOp::Abs, &missed)?;
        let squares = self.binary(BinaryOp::Mul, &missed, &missed)?;
        let op = build::reduce(self.ty(&squares), Reduction::Sum, Some(&[0]), false)?;
        let distances = self.one(op, &[&squares])?;
        let distances = self.cast(&distances, real_type(self.ty(&a).dtype))?;
        Ok([x, distances, self.count(&counting, 0)?, s])
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
