//! Systems of equations, inverses and determinants.

use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockResult, OperandMode, ResultMode};
use tw_ir::scalar::{BinaryOp, UnaryOp};
use tw_ir::{Edge, Extent};

use super::lu::Step;
use super::{Algorithms, Shaped, exactly, first, real_type};
use crate as build;
use crate::Reduction;
use tw_ir::ValueId;

impl Algorithms<'_> {
    /// x of `a x = b`, with a vector or a matrix (or stacks of either, by the rules of the array API standard: only a b with one axis is a
    /// vector) on the right.
    pub fn solve(&mut self, a: &ValueId, b: &ValueId) -> Result<ValueId> {
        let (a, b) = self.alike(a, b)?;
        let n = self.square(&a)?;
        if self.ty(&b).rank() == 1 {
            let column = build::expand_dims(self.ty(&b), 1)?;
            let column = self.one(column, &[&b])?;
            let x = self.solve(&a, &column)?;
            let axis = self.ty(&x).rank() - 1;
            let op = build::squeeze(self.ty(&x), &[axis])?;
            return self.one(op, &[&x]);
        }
        let (rows, columns) = self.size(&b)?;
        if rows != n {
            return Err(Error::source(format!("{n} equations with {rows} right-hand sides")));
        }
        if self.ty(&a).rank() > 2 || self.ty(&b).rank() > 2 {
            let (a, b) = self.stacked_alike(&a, &b)?;
            let dtype = self.ty(&a).dtype;
            return first(self.whole("linalg_solve", &[&a, &b], &[(dtype, Shaped::Matrix(n, columns))])?);
        }
        if n == 0 || columns == 0 {
            return Ok(b);
        }
        if self.panels(&a, 1)?.n_tiles() <= 1 {
            let dtype = self.ty(&a).dtype;
            return first(self.whole("linalg_solve", &[&a, &b], &[(dtype, Shaped::Matrix(n, columns))])?);
        }
        self.solve_by_panels(&a, b)
    }

    fn solve_by_panels(&mut self, a: &ValueId, b: ValueId) -> Result<ValueId> {
        let cut = self.panels(a, 1)?;
        let steps = self.lu_steps(a)?;
        let mut rest = self.cut_right(&b, &cut)?;
        let mut halfway = Vec::with_capacity(steps.len());
        for step in &steps {
            let top = self.take(&rest, &step.chosen)?;
            let triangle = self.triangle(step)?;
            let y = self.solve_triangle("linalg_solve_unit_lower", &triangle, &top)?;
            if let Some(below) = &step.below {
                let bottom = self.take(&rest, &below.order)?;
                let product = self.matmul(&below.lower, &y)?;
                let product = self.cut_right(&product, &cut)?;
                let difference = self.binary(BinaryOp::Sub, &bottom, &product)?;
                rest = self.cut_right(&difference, &cut)?;
            }
            halfway.push(y);
        }
        self.substitute_back(&steps, halfway)
    }

    /// x of `U x = y`, given y step by step. Columns that a step lacks at the end are zero.
    fn substitute_back(&mut self, steps: &[Step<ValueId>], halfway: Vec<ValueId>) -> Result<ValueId> {
        let mut x: Option<ValueId> = None;
        for (step, y) in steps.iter().zip(halfway).rev() {
            let triangle = self.triangle(step)?;
            x = Some(match (x, &step.beside) {
                (Some(known), Some(beside)) => {
                    let product = self.matmul(beside, &known)?;
                    let y = self.widened(&y, self.size(&known)?.1)?;
                    let right = self.binary(BinaryOp::Sub, &y, &product)?;
                    let top = self.solve_triangle("linalg_solve_upper", &triangle, &right)?;
                    self.concat(&[top, known], 0)?
                }
                _ => self.solve_triangle("linalg_solve_upper", &triangle, &y)?,
            });
        }
        x.ok_or_else(|| Error::internal("a system without equations"))
    }

    /// A matrix with zeros on the right, up to a number of columns.
    fn widened(&mut self, x: &ValueId, columns: u64) -> Result<ValueId> {
        let missing = columns - self.size(x)?.1;
        if missing == 0 {
            return Ok(*x);
        }
        let zero = self.ty(x).dtype.zero();
        let op = build::pad(self.ty(x), &[(0, 0), (0, missing)], Edge::Fill, zero)?;
        self.one(op, &[x])
    }

    /// `U^-1 L^-1`, with its columns put in their places at the end. L^-1 is a triangle, made without the zeros above it: that saves a quarter of the
    /// work of solving for the columns of an identity.
    fn inv_by_panels(&mut self, a: &ValueId) -> Result<ValueId> {
        let n = self.square(a)?;
        let dtype = self.ty(a).dtype;
        let cut = self.panels(a, 1)?;
        let steps = self.lu_steps(a)?;
        // What is left of the identity, columns in the order of the pivots, without the columns of rows that are none yet: those are an identity still.
        let mut rest: Option<ValueId> = None;
        let mut halfway = Vec::with_capacity(steps.len());
        for step in &steps {
            let identity = self.eye(step.pivots, step.pivots, dtype)?;
            let top = match &rest {
                Some(rest) => {
                    let known = self.take(rest, &step.chosen)?;
                    self.concat(&[known, identity], 1)?
                }
                None => identity,
            };
            let triangle = self.triangle(step)?;
            let y = self.solve_triangle("linalg_solve_unit_lower", &triangle, &top)?;
            if let Some(below) = &step.below {
                let product = self.matmul(&below.lower, &y)?;
                let product = self.cut_right(&product, &cut)?;
                let next = match &rest {
                    Some(rest) => {
                        let bottom = self.take(rest, &below.order)?;
                        let bottom = self.widened(&bottom, self.size(&product)?.1)?;
                        self.binary(BinaryOp::Sub, &bottom, &product)?
                    }
                    None => self.unary(UnaryOp::Neg, &product)?,
                };
                rest = Some(self.cut_right(&next, &cut)?);
            }
            halfway.push(y);
        }
        let x = self.substitute_back(&steps, halfway)?;
        let order = self.orders(&steps)?.swap_remove(0);
        let places = self.places(n)?;
        let joined = build::scatter(
            &[self.ty(&order)],
            self.ty(&places),
            &[0],
            &[Extent::Known(n)],
            Reduction::Sum,
            Edge::Error,
        )?;
        let inverse = self.joined(joined, &[&order, &places])?;
        self.take_along(&x, &inverse, 1)
    }

    /// Two stacks of matrices with the stacks broadcast against each other.
    fn stacked_alike(&mut self, a: &ValueId, b: &ValueId) -> Result<(ValueId, ValueId)> {
        let stack = |shape: &[Extent]| shape[..shape.len() - 2].to_vec();
        let (before, after) = (self.ty(a).shape.clone(), self.ty(b).shape.clone());
        let common = build::broadcast_shapes(&[&stack(&before), &stack(&after)])?;
        let mut broadcast = |x: &ValueId, shape: &[Extent]| -> Result<ValueId> {
            let wanted: Vec<Extent> = common.iter().chain(&shape[shape.len() - 2..]).copied().collect();
            if wanted == shape {
                return Ok(*x);
            }
            let op = build::broadcast_to(self.ty(x), &wanted)?;
            self.one(op, &[x])
        };
        Ok((broadcast(a, &before)?, broadcast(b, &after)?))
    }

    /// The inverse.
    pub fn inv(&mut self, a: &ValueId) -> Result<ValueId> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        if self.ty(&a).rank() > 2 || self.panels(&a, 1)?.n_tiles() <= 1 {
            return first(self.whole("linalg_inv", &[&a], &[(dtype, Shaped::Matrix(n, n))])?);
        }
        self.inv_by_panels(&a)
    }

    /// The determinant as a direction and the logarithm of its magnitude.
    pub fn slogdet(&mut self, a: &ValueId) -> Result<[ValueId; 2]> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        let real = real_type(dtype);
        let mut stack = self.shape(&a)?;
        stack.truncate(stack.len() - 2);
        if n == 0 {
            return Ok([self.full(&stack, dtype.one())?, self.full(&stack, real.zero())?]);
        }
        if !stack.is_empty() || self.panels(&a, 1)?.n_tiles() <= 1 {
            return exactly(self.whole("linalg_slogdet", &[&a], &[(dtype, Shaped::Number), (real, Shaped::Number)])?);
        }
        let (pivots, mut directions) = self.pivots_and_parities(&a)?;
        let size = self.unary(UnaryOp::Abs, &pivots)?;
        let logarithms = self.unary(UnaryOp::Log, &size)?;
        let logarithm = self.reduce(&logarithms, Reduction::Sum)?;
        // A pivot of zero has no direction: its sign is zero, and the whole with it.
        directions.push(self.unary(UnaryOp::Sign, &pivots)?);
        let directions = self.concat(&directions, 0)?;
        Ok([self.reduce(&directions, Reduction::Prod)?, logarithm])
    }

    /// The determinant. By logarithms, as products of pivots may leave the range of numbers on the way.
    pub fn det(&mut self, a: &ValueId) -> Result<ValueId> {
        let [sign, logarithm] = self.slogdet(a)?;
        let size = self.unary(UnaryOp::Exp, &logarithm)?;
        self.binary(BinaryOp::Mul, &sign, &size)
    }

    /// The diagonal of U, and for every panel the sign of its exchanges.
    fn pivots_and_parities(&mut self, a: &ValueId) -> Result<(ValueId, Vec<ValueId>)> {
        let dtype = self.ty(a).dtype;
        let (mut pivots, mut parities) = (Vec::new(), Vec::new());
        for step in &self.lu_steps(a)? {
            let op = build::diagonal(self.ty(&step.corner), 0, (0, 1))?;
            pivots.push(self.one(op, &[&step.corner])?);
            let order = self.order(step)?;
            let result = BlockResult { dtype, modes: vec![ResultMode::Whole(1)] };
            parities.extend(self.call("linalg_parity", &[(&order, &[OperandMode::Whole])], vec![result])?);
        }
        Ok((self.concat(&pivots, 0)?, parities))
    }

    pub(super) fn reduce(&mut self, x: &ValueId, kind: Reduction) -> Result<ValueId> {
        let op = build::reduce(self.ty(x), kind, None, false)?;
        self.one(op, &[x])
    }
}
