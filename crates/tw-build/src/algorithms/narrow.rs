//! Panels that are too large for one task, factored by way of narrower ones.
//!
//! A panel has all rows that are left, so with many rows even few columns are more than a task should hold. Its columns are then factored in groups, as the panels of a matrix are, and what that
//! gives is put together as if one task had made it. The trailing matrix is still read and written once per panel.

use tw_ir::Axis;
use tw_ir::error::{Error, Result};
use tw_ir::scalar::{BinaryOp, UnaryOp};

use super::lu::Below;
use super::{Algorithms, Shaped, exactly};
use tw_ir::ValueId;
use tw_ir::dtype::DType;

/// Elements of a panel that one task factors.
const PANEL_ELEMENTS: u64 = 1 << 21;

/// Elements of a narrower panel, and the columns that it is made of at least.
const NARROW_ELEMENTS: u64 = 1 << 20;
const NARROWEST: u64 = 32;

/// The factors of a panel: L below the diagonal and U from it on, the rows that became pivots, and what is below them.
pub(super) struct Factored<V> {
    pub(super) corner: V,
    pub(super) chosen: V,
    pub(super) below: Option<Below<V>>,
}

/// How a panel is cut into narrower ones, if one task should not factor it.
fn narrower(rows: u64, width: u64) -> Option<Axis> {
    let columns = (NARROW_ELEMENTS / rows.max(1)).max(NARROWEST) / NARROWEST * NARROWEST;
    let is_large = rows.saturating_mul(width) > PANEL_ELEMENTS && rows >= 2 * width && columns < width;
    is_large.then(|| Axis::uniform(width, columns))
}

impl Algorithms<'_> {
    /// The LU factors of a panel.
    pub(super) fn factored_panel(&mut self, panel: &ValueId, rows: u64, width: u64) -> Result<Factored<ValueId>> {
        match narrower(rows, width) {
            Some(cut) => self.factored_in_groups(panel, rows, &cut),
            None => {
                let (dtype, pivots) = (self.ty(panel).dtype, rows.min(width));
                let mut shapes = vec![(dtype, Shaped::Matrix(pivots, width)), (DType::I64, Shaped::Vector(pivots))];
                if rows > pivots {
                    shapes.push((dtype, Shaped::Matrix(rows - pivots, pivots)));
                    shapes.push((DType::I64, Shaped::Vector(rows - pivots)));
                }
                let mut results = self.whole("linalg_lu", &[panel], &shapes)?;
                let below = match rows > pivots {
                    true => {
                        let [lower, order] = exactly(results.split_off(2))?;
                        Some(Below { lower, order })
                    }
                    false => None,
                };
                let [corner, chosen] = exactly(results)?;
                Ok(Factored { corner, chosen, below })
            }
        }
    }

    fn factored_in_groups(&mut self, panel: &ValueId, rows: u64, cut: &Axis) -> Result<Factored<ValueId>> {
        let (dtype, width) = (self.ty(panel).dtype, cut.extent());
        let steps = self.lu_steps_of(panel, cut)?;
        let orders = self.orders(&steps)?;
        let (mut upper_rows, mut lower_columns) = (Vec::new(), Vec::new());
        for (k, step) in steps.iter().enumerate() {
            let before = width - step.columns;
            let mut parts = vec![self.full(&[step.pivots, before], dtype.zero())?, step.corner];
            parts.extend(step.beside);
            upper_rows.push(self.concat(&parts, 1)?);
            let below = step.below.as_ref().ok_or_else(|| Error::internal("a tall panel without rows below"))?;
            // Later groups exchange these rows as well.
            let lower = match orders.get(k + 1) {
                Some(later) => self.take(&below.lower, later)?,
                None => below.lower,
            };
            let above = self.full(&[before + step.pivots, step.pivots], dtype.zero())?;
            lower_columns.push(self.concat(&[above, lower], 0)?);
        }
        let upper = self.concat(&upper_rows, 0)?;
        let lower = self.concat(&lower_columns, 1)?;
        let beside_pivots = self.part(&lower, &[0..width, 0..width])?;
        let order = orders[0];
        Ok(Factored {
            corner: self.binary(BinaryOp::Add, &beside_pivots, &upper)?,
            chosen: self.stretch(&order, 0..width)?,
            below: Some(Below {
                lower: self.part(&lower, &[width..rows, 0..width])?,
                order: self.stretch(&order, width..rows)?,
            }),
        })
    }

    /// The reflections of a panel as `I - V T V^H`, and R: V, T and R.
    pub(super) fn reflected_panel(&mut self, panel: &ValueId, rows: u64, width: u64) -> Result<[ValueId; 3]> {
        let Some(cut) = narrower(rows, width) else {
            let (dtype, n) = (self.ty(panel).dtype, rows.min(width));
            let shapes = [Shaped::Matrix(rows, n), Shaped::Matrix(n, n), Shaped::Matrix(n, width)];
            return exactly(self.whole("linalg_reflectors", &[panel], &shapes.map(|shape| (dtype, shape)))?);
        };
        let dtype = self.ty(panel).dtype;
        let (panels, r) = self.reflected_by(panel, &cut)?;
        let mut columns = Vec::with_capacity(panels.len());
        for group in &panels {
            let above = self.full(&[rows - group.rows, group.n], dtype.zero())?;
            columns.push(self.concat(&[above, group.basis], 0)?);
        }
        let basis = self.concat(&columns, 1)?;
        let products = self.adjoint_matmul(&basis, &basis)?;
        // (I - V1 T1 V1^H) (I - V2 T2 V2^H) has the corner -T1 V1^H V2 T2 beside T1 and T2.
        let mut factor: Option<ValueId> = None;
        let mut known = 0;
        for group in &panels {
            factor = Some(match factor {
                None => group.factor,
                Some(first) => {
                    let between = self.part(&products, &[0..known, known..known + group.n])?;
                    let left = self.matmul(&first, &between)?;
                    let corner = self.matmul(&left, &group.factor)?;
                    let corner = self.unary(UnaryOp::Neg, &corner)?;
                    let top = self.concat(&[first, corner], 1)?;
                    let zeros = self.full(&[group.n, known], dtype.zero())?;
                    let bottom = self.concat(&[zeros, group.factor], 1)?;
                    self.concat(&[top, bottom], 0)?
                }
            });
            known += group.n;
        }
        let factor = factor.ok_or_else(|| Error::internal("a panel without columns"))?;
        Ok([basis, factor, r])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_panels_are_narrowed() {
        assert_eq!(narrower(4096, 512), None);
        assert_eq!(narrower(16_384, 512), Some(Axis::uniform(512, 64)));
        assert_eq!(narrower(1_000_000, 512), Some(Axis::uniform(512, 32)));
        assert_eq!(narrower(2_000, 1_500), None, "a panel that is hardly tall");
    }
}
