//! Cholesky factors.

use tw_ir::error::Result;
use tw_ir::scalar::BinaryOp;

use super::{Algorithms, Shaped, first};
use tw_ir::ValueId;

impl Algorithms<'_> {
    /// The lower triangle L of `a = L L^H`, of the lower half of a.
    pub fn cholesky(&mut self, a: &ValueId) -> Result<ValueId> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        let cut = match self.ty(&a).rank() {
            2 => self.panels(&a, 1)?,
            _ => tw_ir::Axis::whole(n),
        };
        if cut.n_tiles() <= 1 {
            return first(self.whole("linalg_cholesky", &[&a], &[(dtype, Shaped::Matrix(n, n))])?);
        }
        let mut columns = Vec::new();
        let mut rest = self.as_panels(&a, &cut)?;
        for panel in 0..cut.n_tiles() {
            let range = cut.range(panel);
            let (width, left) = (range.end - range.start, n - range.start);
            let corner = self.part(&rest, &[0..width, 0..width])?;
            let factor = first(self.whole("linalg_cholesky", &[&corner], &[(dtype, Shaped::Matrix(width, width))])?)?;
            let mut parts = vec![self.full(&[range.start, width], dtype.zero())?, factor];
            if width < left {
                let below = self.part(&rest, &[width..left, 0..width])?;
                let below = self.solve_triangle_right("linalg_solve_adjoint_lower_right", &factor, &below)?;
                let conjugate = self.conj(&below)?;
                let op = crate::tensordot(self.ty(&below), self.ty(&conjugate), &[(1, 1)])?;
                let product = self.one(op, &[&below, &conjugate])?;
                let product = self.rest(&product, &cut, range.end)?;
                let remaining = self.part(&rest, &[width..left, width..left])?;
                // Tiles above the diagonal are never read, and so never computed.
                let difference = self.binary(BinaryOp::Sub, &remaining, &product)?;
                rest = self.rest(&difference, &cut, range.end)?;
                parts.push(below);
            }
            columns.push(self.concat(&parts, 0)?);
        }
        self.concat(&columns, 1)
    }
}
