//! LU with partial pivoting across blocks.

use tw_ir::dtype::DType;
use tw_ir::error::Result;
use tw_ir::scalar::BinaryOp;

use super::{Algorithms, Graph, Panel, Shaped, exactly};

/// One panel of the factorisation of what the panels before have left.
pub(super) struct Step<V> {
    /// Rows and columns that are left, and how many pivots the panel has.
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) pivots: u64,
    /// Columns of L, for the rows in the order of this panel.
    pub(super) lower: V,
    /// Rows of U.
    pub(super) upper: V,
    /// Where the rows were.
    pub(super) order: V,
}

impl<G: Graph> Algorithms<'_, G> {
    /// Factors panel by panel: the panel with all its rows in one task, so that pivots are the largest of their whole columns; then rows are
    /// exchanged, a triangle solved, and the rest updated by a matrix product.
    pub(super) fn lu_steps(&mut self, a: &G::Value) -> Result<Vec<Step<G::Value>>> {
        let dtype = self.ty(a).dtype;
        let cut = self.panels(a, 1)?;
        let mut steps = Vec::new();
        let mut rest = self.as_panels(a, &cut)?;
        for number in 0..cut.n_tiles() {
            let Some(panel) = self.panel(&rest, &cut, number)? else { break };
            let Panel { range, rows, columns, width, n: pivots, value: tall } = panel;
            let shapes = [
                (dtype, Shaped::Matrix(rows, pivots)),
                (dtype, Shaped::Matrix(pivots, width)),
                (DType::I64, Shaped::Vector(rows)),
            ];
            let [lower, mut upper, order] = exactly(self.whole("linalg_lu", &[&tall], &shapes)?)?;
            if width < columns {
                let exchanged = self.take(&rest, &order)?;
                let top = self.part(&exchanged, &[0..pivots, width..columns])?;
                let triangle = self.part(&lower, &[0..pivots, 0..pivots])?;
                let beside = self.solve_triangle("linalg_solve_unit_lower", &triangle, &top)?;
                if pivots < rows {
                    let below = self.part(&lower, &[pivots..rows, 0..pivots])?;
                    let product = self.matmul(&below, &beside)?;
                    let product = self.rest(&product, &cut, range.end)?;
                    let bottom = self.part(&exchanged, &[pivots..rows, width..columns])?;
                    let difference = self.binary(BinaryOp::Sub, &bottom, &product)?;
                    rest = self.rest(&difference, &cut, range.end)?;
                } else {
                    rest = self.part(&exchanged, &[rows..rows, width..columns])?;
                }
                upper = self.concat(&[upper, beside], 1)?;
            }
            steps.push(Step { rows, columns, pivots, lower, upper, order });
        }
        Ok(steps)
    }

    /// `a[order] = L U`: the order as an index vector, L and U.
    pub fn lu(&mut self, a: &G::Value) -> Result<[G::Value; 3]> {
        let a = self.numbers(a)?;
        let (rows, columns) = self.size(&a)?;
        if self.ty(&a).rank() != 2 {
            return Err(tw_ir::Error::source(format!("LU factors of one matrix, not of {} axes", self.ty(&a).rank()))
                .help("stacks of matrices have solve, inv and det"));
        }
        let dtype = self.ty(&a).dtype;
        let n = rows.min(columns);
        if n == 0 {
            let order = self.places(rows)?;
            return Ok([order, self.full(&[rows, 0], dtype.zero())?, self.full(&[0, columns], dtype.zero())?]);
        }
        let steps = self.lu_steps(&a)?;
        // What later panels do to the rows below a panel, as an order of those rows.
        let mut later: Option<G::Value> = None;
        let (mut lower_columns, mut upper_rows) = (Vec::new(), Vec::new());
        for step in steps.iter().rev() {
            let Step { rows: left, pivots, .. } = *step;
            let above = rows - left;
            let mut parts = vec![self.full(&[above, pivots], dtype.zero())?];
            parts.push(self.part(&step.lower, &[0..pivots, 0..pivots])?);
            let below = self.part(&step.lower, &[pivots..left, 0..pivots])?;
            let mut order = step.order.clone();
            match &later {
                Some(later) if pivots < left => {
                    parts.push(self.take(&below, later)?);
                    let (first, others) = (self.stretch(&order, 0..pivots)?, self.stretch(&order, pivots..left)?);
                    let others = self.take(&others, later)?;
                    order = self.concat(&[first, others], 0)?;
                }
                _ => parts.push(below),
            }
            later = Some(order);
            lower_columns.push(self.concat(&parts, 0)?);
            let zeros = self.full(&[pivots, columns - step.columns], dtype.zero())?;
            upper_rows.push(self.concat(&[zeros, step.upper.clone()], 1)?);
        }
        lower_columns.reverse();
        upper_rows.reverse();
        let order = match later {
            Some(order) => order,
            None => self.places(rows)?,
        };
        Ok([order, self.concat(&lower_columns, 1)?, self.concat(&upper_rows, 0)?])
    }

    /// `0, 1, ..`.
    fn places(&mut self, n: u64) -> Result<G::Value> {
        self.one(crate::build::coordinate(&[tw_ir::Extent::Known(n)], 0), &[])
    }
}
