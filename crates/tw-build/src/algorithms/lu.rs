//! LU with partial pivoting across blocks.

use tw_ir::Axis;
use tw_ir::error::Result;
use tw_ir::scalar::BinaryOp;

use super::Algorithms;
use super::narrow::Factored;
use crate as build;
use tw_ir::ValueId;

/// One panel of the factorisation of what the panels before have left.
pub(super) struct Step<V> {
    /// Rows and columns that are left, and how many pivots the panel has.
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) pivots: u64,
    /// Rows of the panel with pivots: L below the diagonal, whose ones are left out, and U from it on.
    pub(super) corner: V,
    /// Rows of U right of the panel, if there are columns.
    pub(super) beside: Option<V>,
    /// The rows that became pivots.
    pub(super) chosen: V,
    /// The rows below, if there are any.
    pub(super) below: Option<Below<V>>,
}

/// What a panel leaves.
pub(super) struct Below<V> {
    /// Columns of L.
    pub(super) lower: V,
    /// Where the rows were.
    pub(super) order: V,
}

/// The trailing matrix. The panel is a value of its own, so that it is neither copied out of the trailing matrix nor carried along.
struct Left<V> {
    panel: V,
    /// All columns from the panel on but the first `skipped`.
    right: V,
    skipped: u64,
}

impl Algorithms<'_> {
    /// Factors panel by panel: the panel with all its rows in one task, so that pivots are the largest of their whole columns; then rows are
    /// exchanged, a triangle solved, and the rest updated by a matrix product. Rows that became pivots and those that did not are two gathers:
    /// neither has to be copied out of the other.
    pub(super) fn lu_steps(&mut self, a: &ValueId) -> Result<Vec<Step<ValueId>>> {
        let cut = self.panels(a, 1)?;
        self.lu_steps_of(a, &cut)
    }

    /// The same with given panels.
    pub(super) fn lu_steps_of(&mut self, a: &ValueId, cut: &Axis) -> Result<Vec<Step<ValueId>>> {
        let (mut rows, n_columns) = self.size(a)?;
        let mut steps = Vec::new();
        let right = self.as_panels(a, cut)?;
        let width = cut.range(0).end;
        let mut left = Left { panel: self.part(&right, &[0..rows, 0..width])?, right, skipped: width };
        for number in 0..cut.n_tiles() {
            let range = cut.range(number);
            let (columns, width) = (n_columns - range.start, range.end - range.start);
            let pivots = rows.min(width);
            let rows_below = rows - pivots;
            let Factored { corner, chosen, below } = self.factored_panel(&left.panel, rows, width)?;
            let mut step = Step { rows, columns, pivots, corner, beside: None, chosen, below };
            if width < columns {
                let Left { right, skipped, .. } = &left;
                let top = self.take(right, &step.chosen)?;
                let top = self.part(&top, &[0..pivots, *skipped..columns - width + skipped])?;
                let top = self.rest(&top, cut, range.end)?;
                let triangle = self.triangle(&step)?;
                let beside = self.solve_cut_triangle("linalg_solve_unit_lower", &triangle, &top)?;
                if let Some(below) = &step.below {
                    left = self.update(&left, below, &beside, cut, number)?;
                }
                step.beside = Some(beside);
            }
            steps.push(step);
            rows = rows_below;
            if rows == 0 {
                break;
            }
        }
        Ok(steps)
    }

    /// The rest without the rows and columns of a panel.
    fn update(
        &mut self,
        left: &Left<ValueId>,
        below: &Below<ValueId>,
        beside: &ValueId,
        cut: &Axis,
        number: u64,
    ) -> Result<Left<ValueId>> {
        let bottom = self.take(&left.right, &below.order)?;
        let product = self.matmul(&below.lower, beside)?;
        let (rows, columns) = self.size(&product)?;
        let next = cut.range(number + 1);
        let product = self.rest(&product, cut, next.start)?;
        let mut difference = |range: std::ops::Range<u64>| {
            let exchanged = self.part(&bottom, &[0..rows, range.start + left.skipped..range.end + left.skipped])?;
            let product = self.part(&product, &[0..rows, range.clone()])?;
            let difference = self.binary(BinaryOp::Sub, &exchanged, &product)?;
            self.cut_as(&difference, cut, next.start + range.start..next.start + range.end)
        };
        let width = next.end - next.start;
        let panel = difference(0..width)?;
        let right = if width < columns { difference(width..columns)? } else { panel };
        Ok(Left { panel, right, skipped: 0 })
    }

    /// The triangle of a step that holds L below and U on and above its diagonal.
    pub(super) fn triangle(&mut self, step: &Step<ValueId>) -> Result<ValueId> {
        self.part(&step.corner, &[0..step.pivots, 0..step.pivots])
    }

    /// Where the rows of a step were.
    pub(super) fn order(&mut self, step: &Step<ValueId>) -> Result<ValueId> {
        match &step.below {
            Some(below) => self.concat(&[step.chosen, below.order], 0),
            None => Ok(step.chosen),
        }
    }

    /// For each step, where its rows were when that and all later steps are done.
    pub(super) fn orders(&mut self, steps: &[Step<ValueId>]) -> Result<Vec<ValueId>> {
        let mut orders: Vec<ValueId> = Vec::with_capacity(steps.len());
        for step in steps.iter().rev() {
            let order = match (&step.below, orders.last()) {
                (Some(below), Some(later)) => {
                    let others = self.take(&below.order, later)?;
                    self.concat(&[step.chosen, others], 0)?
                }
                _ => self.order(step)?,
            };
            orders.push(order);
        }
        orders.reverse();
        Ok(orders)
    }

    /// `a[order] = L U`: the order as an index vector, L and U.
    pub fn lu(&mut self, a: &ValueId) -> Result<[ValueId; 3]> {
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
        let orders = self.orders(&steps)?;
        let (mut lower_columns, mut upper_rows) = (Vec::new(), Vec::new());
        for (k, step) in steps.iter().enumerate() {
            let Step { rows: left, pivots, columns: columns_left, .. } = *step;
            let triangle = self.triangle(step)?;
            let op = build::tril(self.ty(&triangle), -1)?;
            let strict = self.one(op, &[&triangle])?;
            let ones = self.eye(pivots, pivots, dtype)?;
            let mut parts = vec![self.full(&[rows - left, pivots], dtype.zero())?];
            parts.push(self.binary(BinaryOp::Add, &strict, &ones)?);
            if let Some(below) = &step.below {
                // Later panels exchange these rows as well.
                parts.push(match orders.get(k + 1) {
                    Some(later) => self.take(&below.lower, later)?,
                    None => below.lower,
                });
            }
            lower_columns.push(self.concat(&parts, 0)?);
            let op = build::triu(self.ty(&step.corner), 0)?;
            let mut parts = vec![self.full(&[pivots, columns - columns_left], dtype.zero())?];
            parts.push(self.one(op, &[&step.corner])?);
            parts.extend(step.beside);
            upper_rows.push(self.concat(&parts, 1)?);
        }
        Ok([orders[0], self.concat(&lower_columns, 1)?, self.concat(&upper_rows, 0)?])
    }

    /// `0, 1, ..`.
    pub(super) fn places(&mut self, n: u64) -> Result<ValueId> {
        self.one(build::coordinate(&[tw_ir::Extent::Known(n)], 0), &[])
    }
}
