//! Singular values and eigenvalues.

use tw_ir::Extent;
use tw_ir::dtype::DType;
use tw_ir::error::Result;

use super::{Algorithms, Shaped, exactly, first, real_type};
use crate as build;
use tw_ir::ValueId;

impl Algorithms<'_> {
    /// `a = U diag(s) V^H` with as many columns of U and V as there are singular values: U, s and V^H. A tall matrix is reduced to a
    /// triangle first; that, like any other matrix, is decomposed in one task.
    pub fn svd(&mut self, a: &ValueId) -> Result<[ValueId; 3]> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        let dtype = self.ty(&a).dtype;
        if self.ty(&a).rank() == 2 {
            if rows < columns {
                let mirrored = self.adjoint(&a)?;
                if self.tall_cut(&mirrored)?.is_some() || self.panels(&a, 0)?.n_tiles() > 1 {
                    let [v, s, uh] = self.svd(&mirrored)?;
                    return Ok([self.adjoint(&uh)?, s, self.adjoint(&v)?]);
                }
            } else if let Some(cut) = self.tall_cut(&a)? {
                let tall = self.tall_qr(&a, &cut)?;
                let [u, s, vh] = self.svd_in_one(&tall.r, columns, columns, dtype)?;
                return Ok([self.tall_product(&tall, &u)?, s, vh]);
            } else if rows > columns && columns > 0 && self.panels(&a, 1)?.n_tiles() > 1 {
                let [q, r] = self.qr(&a)?;
                let [u, s, vh] = self.svd_in_one(&r, columns, columns, dtype)?;
                return Ok([self.matmul(&q, &u)?, s, vh]);
            }
        }
        self.svd_in_one(&a, rows, columns, dtype)
    }

    pub(super) fn svd_in_one(&mut self, a: &ValueId, rows: u64, columns: u64, dtype: DType) -> Result<[ValueId; 3]> {
        let n = rows.min(columns);
        let shapes = [
            (dtype, Shaped::Matrix(rows, n)),
            (real_type(dtype), Shaped::Vector(n)),
            (dtype, Shaped::Matrix(n, columns)),
        ];
        exactly(self.whole("linalg_svd", &[a], &shapes)?)
    }

    /// `a = U diag(s) V^H` with square U and V.
    pub fn svd_full(&mut self, a: &ValueId) -> Result<[ValueId; 3]> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        if rows == columns {
            return self.svd(&a);
        }
        let dtype = self.ty(&a).dtype;
        if rows.min(columns) == 0 {
            // Any vectors are singular vectors then.
            let mut shape = self.shape(&a)?;
            shape.truncate(shape.len() - 2);
            let (u, vh) = (self.eyes(&shape, rows, dtype)?, self.eyes(&shape, columns, dtype)?);
            shape.push(0);
            return Ok([u, self.full(&shape, real_type(dtype).zero())?, vh]);
        }
        let shapes = [
            (dtype, Shaped::Matrix(rows, rows)),
            (real_type(dtype), Shaped::Vector(rows.min(columns))),
            (dtype, Shaped::Matrix(columns, columns)),
        ];
        exactly(self.whole("linalg_svd_full", &[&a], &shapes)?)
    }

    /// A stack of identity matrices.
    fn eyes(&mut self, stack: &[u64], n: u64, dtype: DType) -> Result<ValueId> {
        let eye = self.eye(n, n, dtype)?;
        let shape: Vec<Extent> = stack.iter().copied().chain([n, n]).map(Extent::Known).collect();
        let op = build::broadcast_to(self.ty(&eye), &shape)?;
        self.one(op, &[&eye])
    }

    /// The singular values, largest first.
    pub fn svdvals(&mut self, a: &ValueId) -> Result<ValueId> {
        let mut a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        if rows < columns {
            a = self.adjoint(&a)?;
        }
        let n = rows.min(columns);
        if self.ty(&a).rank() == 2 && rows != columns && n > 0 {
            a = self.r(&a)?;
        }
        let dtype = real_type(self.ty(&a).dtype);
        first(self.whole("linalg_svdvals", &[&a], &[(dtype, Shaped::Vector(n))])?)
    }

    /// Eigenvalues, smallest first, and eigenvectors as columns, of the lower half of a self-adjoint matrix. One task.
    pub fn eigh(&mut self, a: &ValueId) -> Result<[ValueId; 2]> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        let shapes = [(real_type(dtype), Shaped::Vector(n)), (dtype, Shaped::Matrix(n, n))];
        exactly(self.whole("linalg_eigh", &[&a], &shapes)?)
    }

    /// Eigenvalues, smallest first, of the lower half of a self-adjoint matrix. One task.
    pub fn eigvalsh(&mut self, a: &ValueId) -> Result<ValueId> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = real_type(self.ty(&a).dtype);
        first(self.whole("linalg_eigvalsh", &[&a], &[(dtype, Shaped::Vector(n))])?)
    }

    /// Eigenvalues and eigenvectors as columns, complex. One task.
    pub fn eig(&mut self, a: &ValueId) -> Result<[ValueId; 2]> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        let dtype = dtype.with_parts().unwrap_or(dtype);
        exactly(self.whole("linalg_eig", &[&a], &[(dtype, Shaped::Vector(n)), (dtype, Shaped::Matrix(n, n))])?)
    }

    /// Eigenvalues, complex. One task.
    pub fn eigvals(&mut self, a: &ValueId) -> Result<ValueId> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        let dtype = dtype.with_parts().unwrap_or(dtype);
        first(self.whole("linalg_eigvals", &[&a], &[(dtype, Shaped::Vector(n))])?)
    }
}
