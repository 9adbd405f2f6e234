//! From expressions of elements to bodies.

use tw_ir::{BinaryOp, DType, Edge, Error, Scalar, UnaryOp, ValueId};

use super::body::{Cell, Node, Reduced};
use super::context::Context;
use crate::algebra::{Algebra, evaluate};
use crate::ast::{Expr, ExprKind, Name, Reduce};
use crate::diagnose::{Lowered, error, find_name};
use crate::lower::Value;
use crate::token::Range;
use tw_build::Reduction;

impl<'a> Context<'_, 'a, '_> {
    /// Resolves `sum[k](..)`. Reductions of one kind directly inside each other are one. `guard` is a further condition in its scope.
    pub(super) fn reduction(
        &mut self,
        reduce: &Reduce<'a>,
        guard: Option<&Expr<'a>>,
        range: Range,
    ) -> Lowered<Reduced> {
        let kind = Reduction::named(reduce.function.text)
            .ok_or_else(|| Error::internal(format!("`{}` is not a reduction", reduce.function.text)))?;
        let n_bound = self.active.len() - self.n_free;
        let resolved = self.separate(|context| {
            let mut guards: Vec<&Expr<'a>> = guard.into_iter().collect();
            let mut innermost = reduce;
            loop {
                for binder in &innermost.binders {
                    let range = context.written_range(binder)?;
                    context.declare(binder.name, range)?;
                }
                if innermost.binders.is_empty() {
                    let name = innermost.function.text;
                    return Err(error(innermost.function.range, format!("`{name}[]` reduces over no index"))
                        .help(format!("name at least one: `{name}[k](..)`"))
                        .into());
                }
                guards.extend(&innermost.guard);
                context.guarded |= innermost.guard.is_some();
                match &innermost.body.kind {
                    ExprKind::Reduce(inner)
                        if associates(kind) && Reduction::named(inner.function.text) == Some(kind) =>
                    {
                        innermost = inner;
                    }
                    _ => break,
                }
            }
            let root = evaluate(context, &innermost.body)?;
            let mut condition = None;
            for guard in guards {
                let next = evaluate(context, guard)?;
                condition = Some(match condition {
                    None => next,
                    Some(before) => context.logical(BinaryOp::And, before, next, guard.range)?,
                });
            }
            Ok((root, condition))
        });
        let variables = self.active.split_off(self.n_free + n_bound);
        let (body, root, guard) = resolved?;
        Ok(Reduced { kind, variables, body, root, guard, range })
    }

    /// A scalar from an expression on whole tensors, which must not use indices.
    fn whole_tensor_scalar(&mut self, expr: &Expr<'a>) -> Lowered<Cell> {
        let context: &Self = self;
        let is_index = |name: &str| context.variable_named(name).is_some() || context.has_written_range(name);
        if let Some(index) = find_name(expr, &mut |name| is_index(name)) {
            if let ExprKind::Call { function, .. } = &expr.kind
                && self.lowering.function_named(function.text).is_none()
            {
                return Err(self.lowering.unknown_function(*function));
            }
            let text = format!("this works on whole tensors, but uses the index `{}`", index.text);
            let wrong = error(expr.range, text);
            return Err(match &expr.kind {
                ExprKind::Call { function, .. } if Reduction::named(function.text).is_some() => {
                    wrong.help(format!("name the indices that are reduced: `{}[k](..)`", function.text)).into()
                }
                _ => wrong.help("give it a name in a statement of its own, and read that by index").into(),
            });
        }
        match evaluate(self.lowering, expr)? {
            Value::Literal(value) => Ok(Cell::Literal(value)),
            Value::Tensor(value) => self.scalar(value, "this", expr.range),
        }
    }

    /// Reads a tensor of rank 0.
    fn scalar(&mut self, value: ValueId, what: &str, range: Range) -> Lowered<Cell> {
        let ty = self.lowering.ty(value);
        if ty.rank() == 0 {
            return Ok(self.read(value, Vec::new(), Edge::Error, range));
        }
        let text = format!("{what} is {ty}, where one element is expected");
        let indices: Vec<&str> = ["i", "j", "k", "l"].into_iter().take(ty.rank()).collect();
        Err(error(range, text).help(format!("give it indices, for example `[{}]`", indices.join(", "))).into())
    }
}

/// True if a reduction of reductions of this kind is one reduction over all their indices.
fn associates(kind: Reduction) -> bool {
    use Reduction::*;
    matches!(kind, Sum | Prod | Min | Max | Any | All)
}

impl<'a> Algebra<'a> for Context<'_, 'a, '_> {
    type Item = Cell;

    fn literal(&mut self, value: Scalar) -> Cell {
        Cell::Literal(value)
    }
    fn as_literal(&self, item: Cell) -> Option<Scalar> {
        match item {
            Cell::Literal(value) => Some(value),
            Cell::Node(_) => None,
        }
    }
    fn unary(&mut self, op: UnaryOp, a: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Unary(op, a), range))
    }
    fn logical_not(&mut self, a: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Not(a), range))
    }
    fn binary(&mut self, op: BinaryOp, a: Cell, b: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Binary(op, a, b), range))
    }
    fn logical(&mut self, op: BinaryOp, a: Cell, b: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Logical(op, a, b), range))
    }
    fn matrix_product(&mut self, _: Cell, _: Cell, range: Range) -> Lowered<Cell> {
        Err(error(range, "`@` works on whole tensors, not on elements")
            .help("write the sum: `sum[k](A[i,k] * B[k,j])`, or index the product: `(A @ B)[i,j]`")
            .into())
    }
    fn select(&mut self, c: Cell, a: Cell, b: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Select(c, a, b), range))
    }
    fn cast(&mut self, dtype: DType, a: Cell, range: Range) -> Lowered<Cell> {
        Ok(self.push(Node::Cast(dtype, a), range))
    }

    fn leaf(&mut self, expr: &Expr<'a>) -> Lowered<Cell> {
        match &expr.kind {
            ExprKind::Name(text) => {
                let name = Name { text, range: expr.range };
                if let Some(variable) = self.variable_named(text) {
                    return Ok(self.push(Node::Variable(variable), expr.range));
                }
                if self.has_written_range(text) {
                    let variable = self.bound_by_assignment(name)?;
                    return Ok(self.push(Node::Variable(variable), expr.range));
                }
                match self.lowering.read(name)? {
                    Value::Literal(value) => Ok(Cell::Literal(value)),
                    Value::Tensor(value) => self.scalar(value, &format!("`{text}`"), expr.range),
                }
            }
            ExprKind::Index { base, .. }
                if matches!(base.kind, ExprKind::Attribute { name: Name { text: "shape", .. }, .. }) =>
            {
                self.whole_tensor_scalar(expr)
            }
            ExprKind::Index { base, items } => self.access(base, items, expr.range),
            ExprKind::Reduce(reduce) => {
                let reduced = self.reduction(reduce, None, expr.range)?;
                Ok(self.push(Node::Reduce(Box::new(reduced)), expr.range))
            }
            _ => self.whole_tensor_scalar(expr),
        }
    }
}
