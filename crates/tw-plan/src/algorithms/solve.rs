//! Systems of equations, inverses and determinants.

use tw_ir::Extent;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockResult, OperandMode, ResultMode};
use tw_ir::scalar::{BinaryOp, UnaryOp};

use super::{Algorithms, Graph, Shaped, exactly, first, real_type};
use crate::build::{self, Reduction};

impl<G: Graph> Algorithms<'_, G> {
    /// x of `a x = b`, with a vector or a matrix (or stacks of either, by the rules of the array API standard: only a b with one axis is a
    /// vector) on the right.
    pub fn solve(&mut self, a: &G::Value, b: &G::Value) -> Result<G::Value> {
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

    fn solve_by_panels(&mut self, a: &G::Value, b: G::Value) -> Result<G::Value> {
        let (_, columns) = self.size(&b)?;
        let steps = self.lu_steps(a)?;
        let mut rest = b;
        let mut halfway = Vec::with_capacity(steps.len());
        for step in &steps {
            let exchanged = self.take(&rest, &step.order)?;
            let triangle = self.part(&step.lower, &[0..step.pivots, 0..step.pivots])?;
            let top = self.part(&exchanged, &[0..step.pivots, 0..columns])?;
            let y = self.solve_triangle("linalg_solve_unit_lower", &triangle, &top)?;
            if step.pivots < step.rows {
                let below = self.part(&step.lower, &[step.pivots..step.rows, 0..step.pivots])?;
                let product = self.matmul(&below, &y)?;
                let bottom = self.part(&exchanged, &[step.pivots..step.rows, 0..columns])?;
                rest = self.binary(BinaryOp::Sub, &bottom, &product)?;
            }
            halfway.push(y);
        }
        let mut x: Option<G::Value> = None;
        for (step, y) in steps.iter().zip(halfway).rev() {
            let triangle = self.part(&step.upper, &[0..step.pivots, 0..step.pivots])?;
            x = Some(match x {
                None => self.solve_triangle("linalg_solve_upper", &triangle, &y)?,
                Some(known) => {
                    let beside = self.part(&step.upper, &[0..step.pivots, step.pivots..step.columns])?;
                    let product = self.matmul(&beside, &known)?;
                    let right = self.binary(BinaryOp::Sub, &y, &product)?;
                    let top = self.solve_triangle("linalg_solve_upper", &triangle, &right)?;
                    self.concat(&[top, known], 0)?
                }
            });
        }
        x.ok_or_else(|| Error::internal("a system without equations"))
    }

    /// Two stacks of matrices with the stacks broadcast against each other.
    fn stacked_alike(&mut self, a: &G::Value, b: &G::Value) -> Result<(G::Value, G::Value)> {
        let stack = |shape: &[Extent]| shape[..shape.len() - 2].to_vec();
        let (before, after) = (self.ty(a).shape.clone(), self.ty(b).shape.clone());
        let common = build::broadcast_shapes(&[&stack(&before), &stack(&after)])?;
        let mut broadcast = |x: &G::Value, shape: &[Extent]| -> Result<G::Value> {
            let wanted: Vec<Extent> = common.iter().chain(&shape[shape.len() - 2..]).copied().collect();
            if wanted == shape {
                return Ok(x.clone());
            }
            let op = build::broadcast_to(self.ty(x), &wanted)?;
            self.one(op, &[x])
        };
        Ok((broadcast(a, &before)?, broadcast(b, &after)?))
    }

    /// The inverse.
    pub fn inv(&mut self, a: &G::Value) -> Result<G::Value> {
        let a = self.numbers(a)?;
        let n = self.square(&a)?;
        let dtype = self.ty(&a).dtype;
        if self.ty(&a).rank() > 2 || self.panels(&a, 1)?.n_tiles() <= 1 {
            return first(self.whole("linalg_inv", &[&a], &[(dtype, Shaped::Matrix(n, n))])?);
        }
        let identity = self.eye(n, n, dtype)?;
        self.solve_by_panels(&a, identity)
    }

    /// The determinant as a direction and the logarithm of its magnitude.
    pub fn slogdet(&mut self, a: &G::Value) -> Result<[G::Value; 2]> {
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
    pub fn det(&mut self, a: &G::Value) -> Result<G::Value> {
        let [sign, logarithm] = self.slogdet(a)?;
        let size = self.unary(UnaryOp::Exp, &logarithm)?;
        self.binary(BinaryOp::Mul, &sign, &size)
    }

    /// The diagonal of U, and for every panel the sign of its exchanges.
    fn pivots_and_parities(&mut self, a: &G::Value) -> Result<(G::Value, Vec<G::Value>)> {
        let dtype = self.ty(a).dtype;
        let (mut pivots, mut parities) = (Vec::new(), Vec::new());
        for step in &self.lu_steps(a)? {
            let op = build::diagonal(self.ty(&step.upper), 0, (0, 1))?;
            pivots.push(self.one(op, &[&step.upper])?);
            let result = BlockResult { dtype, modes: vec![ResultMode::Whole(1)] };
            parities.extend(self.call("linalg_parity", &[(&step.order, &[OperandMode::Whole])], vec![result])?);
        }
        Ok((self.concat(&pivots, 0)?, parities))
    }

    pub(super) fn reduce(&mut self, x: &G::Value, kind: Reduction) -> Result<G::Value> {
        let op = build::reduce(self.ty(x), kind, None, false)?;
        self.one(op, &[x])
    }
}
