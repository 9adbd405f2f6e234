//! Index expressions that are affine, with division and remainder by constants.

use std::collections::BTreeSet;

use tw_ir::{BinaryOp, Idx, Term, UnaryOp, Var};

use super::context::Context;
use crate::algebra::evaluate;
use crate::ast::{Expr, ExprKind, Name, Operator};
use crate::diagnose::{Lowered, error, find_name};
use crate::fold;
use crate::lower::Value;
use crate::names::Binding;
use crate::token::Range;

/// Adds the variables an index expression uses.
pub(super) fn variables(idx: &Idx, into: &mut BTreeSet<u32>) {
    for (term, _) in idx.terms() {
        match (term, term.inner()) {
            (Term::Var(v), _) => into.extend([v.0]),
            (_, Some(inner)) => variables(inner, into),
            _ => {}
        }
    }
}

impl<'a> Context<'_, 'a, '_> {
    /// The index expression, or `None` if it is not affine: then its value is computed like any other.
    ///
    /// Here `/` divides and rounds down, like `//`: an index is a whole number.
    pub(super) fn affine(&mut self, expr: &Expr<'a>) -> Lowered<Option<Idx>> {
        match &expr.kind {
            ExprKind::Int(value) => Ok(Some(Idx::constant(*value))),
            ExprKind::Name(text) => self.affine_name(Name { text, range: expr.range }),
            ExprKind::Unary(UnaryOp::Neg, operand) => Ok(self.affine(operand)?.map(|idx| idx.times(-1))),
            ExprKind::Chain { first, rest } => {
                let mut left = self.affine(first)?;
                for (operator, right) in rest {
                    let right_idx = self.affine(right)?;
                    left = match (left, right_idx) {
                        (Some(a), Some(b)) => combine(*operator, &a, &b, right.range)?,
                        _ => None,
                    };
                }
                Ok(left)
            }
            _ => self.affine_constant(expr),
        }
    }

    fn affine_name(&mut self, name: Name<'a>) -> Lowered<Option<Idx>> {
        if let Some(variable) = self.variable_named(name.text) {
            return Ok(Some(Idx::var(Var(variable))));
        }
        match self.lowering.scopes.get(name.text) {
            Some(Binding::Param(value) | Binding::Literal(value)) => match fold::whole(*value) {
                Some(value) => Ok(Some(Idx::constant(value))),
                None => {
                    Err(error(name.range, format!("an index must be a whole number; `{}` is {value}", name.text))
                        .into())
                }
            },
            Some(_) => self.lowering.read(name).map(|_| None),
            None => Ok(Some(Idx::var(Var(self.bound_by_assignment(name)?)))),
        }
    }

    /// An index that is not on the left and inside no reduction over it: an accumulating assignment binds it, others cannot.
    pub(super) fn bound_by_assignment(&mut self, name: Name<'a>) -> Lowered<u32> {
        if self.implicit {
            return self.declare_implicit(name);
        }
        Err(error(name.range, format!("the index `{}` is not bound", name.text))
            .help(format!(
                "put it on the left, or say how its values combine: `sum[{0}](..)`, or `+=` for the whole statement",
                name.text
            ))
            .into())
    }

    /// An expression without indices may still be a known number.
    fn affine_constant(&mut self, expr: &Expr<'a>) -> Lowered<Option<Idx>> {
        let constant = |context: &Self, name: &str| {
            context.variable_named(name).is_none()
                && matches!(
                    context.lowering.scopes.get(name),
                    Some(Binding::Param(_) | Binding::Literal(_) | Binding::Tensor(_))
                )
        };
        let context: &Self = self;
        if find_name(expr, &mut |name| !constant(context, name)).is_some() {
            return Ok(None);
        }
        match evaluate(self.lowering, expr)? {
            Value::Literal(value) => match fold::whole(value) {
                Some(value) => Ok(Some(Idx::constant(value))),
                None => Err(error(expr.range, format!("an index must be a whole number, not {value}")).into()),
            },
            Value::Tensor(_) => Ok(None),
        }
    }
}

fn combine(operator: Operator, a: &Idx, b: &Idx, right: Range) -> Lowered<Option<Idx>> {
    let constant = |idx: &Idx| idx.terms().is_empty().then(|| idx.offset());
    let Operator::Arithmetic(op) = operator else { return Ok(None) };
    Ok(match op {
        BinaryOp::Add => Some(a.plus(b)),
        BinaryOp::Sub => Some(a.plus(&b.times(-1))),
        BinaryOp::Mul => match (constant(a), constant(b)) {
            (Some(factor), _) => Some(b.times(factor)),
            (_, Some(factor)) => Some(a.times(factor)),
            _ => None,
        },
        BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Mod => match constant(b) {
            Some(n) if n > 0 => Some(if op == BinaryOp::Mod { a.modulo(n) } else { a.div(n) }),
            Some(n) => {
                return Err(error(right, format!("an index divided by {n}"))
                    .help("indices are divided by positive numbers")
                    .into());
            }
            None => None,
        },
        _ => None,
    })
}
