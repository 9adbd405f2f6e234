//! QR of any matrix, by reflections.

use tw_ir::Axis;
use tw_ir::error::Result;
use tw_ir::scalar::BinaryOp;

use super::{Algorithms, Panel, Shaped, exactly, first};
use tw_ir::ValueId;

/// The reflections of one panel, `I - V T V^H`.
pub(super) struct Reflections<V> {
    pub(super) basis: V,
    pub(super) factor: V,
    /// Rows it reflects, and how many reflections there are.
    pub(super) rows: u64,
    pub(super) n: u64,
}

/// A matrix of which only R is left, and what made it so.
struct Reflected<V> {
    panels: Vec<Reflections<V>>,
    r: V,
}

impl Algorithms<'_> {
    /// `a = Q R` with as many columns of Q as a has rows or columns, whichever are fewer.
    pub fn qr(&mut self, a: &ValueId) -> Result<[ValueId; 2]> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        if let Some(cut) = self.tall_cut(&a)? {
            let tall = self.tall_qr(&a, &cut)?;
            let r = tall.r;
            return Ok([self.tall_q(tall)?, r]);
        }
        let (n, dtype) = (rows.min(columns), self.ty(&a).dtype);
        if self.ty(&a).rank() > 2 || n == 0 || self.panels(&a, 1)?.n_tiles() <= 1 {
            let shapes = [(dtype, Shaped::Matrix(rows, n)), (dtype, Shaped::Matrix(n, columns))];
            return exactly(self.whole("linalg_qr", &[&a], &shapes)?);
        }
        let Reflected { panels, r } = self.reflected(&a)?;
        Ok([self.reflections(&panels, n)?, r])
    }

    /// `a = Q R` with a square Q.
    pub fn qr_complete(&mut self, a: &ValueId) -> Result<[ValueId; 2]> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        if rows <= columns {
            return self.qr(&a);
        }
        let dtype = self.ty(&a).dtype;
        if columns == 0 {
            let mut shape = self.shape(&a)?;
            let r = self.full(&shape, dtype.zero())?;
            let identity = self.eye(rows, rows, dtype)?;
            let last = shape.len() - 1;
            shape[last] = rows;
            let extents: Vec<tw_ir::Extent> = shape.into_iter().map(tw_ir::Extent::Known).collect();
            let op = crate::broadcast_to(self.ty(&identity), &extents)?;
            return Ok([self.one(op, &[&identity])?, r]);
        }
        if self.ty(&a).rank() > 2 || self.panels(&a, 1)?.n_tiles() <= 1 {
            let shapes = [(dtype, Shaped::Matrix(rows, rows)), (dtype, Shaped::Matrix(rows, columns))];
            return exactly(self.whole("linalg_qr_complete", &[&a], &shapes)?);
        }
        let Reflected { panels, r } = self.reflected(&a)?;
        let zeros = self.full(&[rows - columns, columns], dtype.zero())?;
        Ok([self.reflections(&panels, rows)?, self.concat(&[r, zeros], 0)?])
    }

    /// R of `a = Q R`.
    pub fn r(&mut self, a: &ValueId) -> Result<ValueId> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        if let Some(cut) = self.tall_cut(&a)? {
            return self.tall_r(&a, &cut);
        }
        let (n, dtype) = (rows.min(columns), self.ty(&a).dtype);
        if self.ty(&a).rank() > 2 || n == 0 || self.panels(&a, 1)?.n_tiles() <= 1 {
            return first(self.whole("linalg_r", &[&a], &[(dtype, Shaped::Matrix(n, columns))])?);
        }
        Ok(self.reflected(&a)?.r)
    }

    /// Reflects panel by panel: one task finds the reflections of a panel, products apply them to the columns beside it.
    fn reflected(&mut self, a: &ValueId) -> Result<Reflected<ValueId>> {
        let cut = self.panels(a, 1)?;
        let (panels, r) = self.reflected_by(a, &cut)?;
        Ok(Reflected { panels, r })
    }

    /// The same with given panels: their reflections, and R.
    pub(super) fn reflected_by(&mut self, a: &ValueId, cut: &Axis) -> Result<(Vec<Reflections<ValueId>>, ValueId)> {
        let dtype = self.ty(a).dtype;
        let (mut panels, mut triangle) = (Vec::new(), Vec::new());
        let mut rest = self.as_panels(a, cut)?;
        for number in 0..cut.n_tiles() {
            let Some(panel) = self.panel(&rest, cut, number)? else { break };
            let Panel { range, rows, columns, width, n, value: tall } = panel;
            let [basis, factor, r] = self.reflected_panel(&tall, rows, width)?;
            let mut parts = vec![self.full(&[n, range.start], dtype.zero())?, r];
            if width < columns {
                let beside = self.part(&rest, &[0..rows, width..columns])?;
                let seen = self.adjoint_matmul(&basis, &beside)?;
                let turned = self.adjoint_matmul(&factor, &seen)?;
                let product = self.matmul(&basis, &turned)?;
                let product = self.rest(&product, cut, range.end)?;
                let reflected = self.binary(BinaryOp::Sub, &beside, &product)?;
                let reflected = self.rest(&reflected, cut, range.end)?;
                parts.push(self.part(&reflected, &[0..n, 0..columns - width])?);
                rest = self.part(&reflected, &[n..rows, 0..columns - width])?;
            }
            triangle.push(self.concat(&parts, 1)?);
            panels.push(Reflections { basis, factor, rows, n });
        }
        Ok((panels, self.concat(&triangle, 0)?))
    }

    /// The first columns of the product of the reflections. Panels are applied from the last on, each to the corner that is not the identity.
    fn reflections(&mut self, panels: &[Reflections<ValueId>], columns: u64) -> Result<ValueId> {
        let mut corner: Option<ValueId> = None;
        for panel in panels.iter().rev() {
            let dtype = self.ty(&panel.basis).dtype;
            let before = panels[0].rows - panel.rows;
            let width = columns - before;
            let identity = match &corner {
                None => self.eye(panel.rows, width, dtype)?,
                Some(corner) => {
                    let top = self.eye(panel.n, width, dtype)?;
                    let left = self.full(&[panel.rows - panel.n, panel.n], dtype.zero())?;
                    let bottom = self.concat(&[left, *corner], 1)?;
                    self.concat(&[top, bottom], 0)?
                }
            };
            let seen = self.adjoint_matmul(&panel.basis, &identity)?;
            let turned = self.matmul(&panel.factor, &seen)?;
            let product = self.matmul(&panel.basis, &turned)?;
            corner = Some(self.binary(BinaryOp::Sub, &identity, &product)?);
        }
        corner.ok_or_else(|| tw_ir::Error::internal("a factorisation without panels"))
    }
}
