//! Loops and branches.

use std::collections::HashSet;

use tw_ir::{DType, Op, Region, Scalar, TensorType, ValueId};

use super::{Lowering, Value};
use crate::algebra;
use crate::ast::{Expr, Stmt, StmtKind};
use crate::diagnose::{Failure, Lowered, error, find_name};
use crate::names::Binding;
use crate::token::Range;

/// The names that statements assign, in order of first assignment.
pub(super) fn assigned<'a>(statements: &[Stmt<'a>]) -> Vec<&'a str> {
    fn collect<'a>(statements: &[Stmt<'a>], names: &mut Vec<&'a str>, seen: &mut HashSet<&'a str>) {
        for statement in statements {
            let mut add = |name: &'a str| {
                if seen.insert(name) {
                    names.push(name);
                }
            };
            match &statement.kind {
                StmtKind::Assign(assign) => add(assign.target.text),
                StmtKind::Input { name, .. } | StmtKind::Declare { name, .. } => add(name.text),
                StmtKind::Param { name, .. } => add(name.text),
                StmtKind::BlockCall(call) => call.targets.iter().for_each(|target| add(target.text)),
                StmtKind::Unpack { targets, .. } => targets.iter().for_each(|target| add(target.text)),
                StmtKind::Output { .. } => {}
                StmtKind::While { body, .. } => collect(body, names, seen),
                StmtKind::If { then, otherwise, .. } => {
                    collect(then, names, seen);
                    collect(otherwise, names, seen);
                }
            }
        }
    }
    let mut names = Vec::new();
    collect(statements, &mut names, &mut HashSet::new());
    names
}

impl<'a> Lowering<'a, '_> {
    pub(super) fn while_loop(&mut self, condition: &Expr<'a>, body: &[Stmt<'a>], range: Range) -> Lowered<()> {
        let carried: Vec<&'a str> = assigned(body)
            .into_iter()
            .filter(|name| matches!(self.scopes.get(name), Some(Binding::Literal(_) | Binding::Tensor(_))))
            .collect();
        let changing = find_name(condition, &mut |name| carried.contains(&name));
        if changing.is_none() && !self.is_false(condition)? {
            return Err(error(condition.range, "this condition never changes, so the loop never ends")
                .help("the body must assign something the condition reads, and it must have a value before")
                .into());
        }
        let mut initial = Vec::with_capacity(carried.len());
        for name in &carried {
            initial.push(self.bound_tensor(name, range)?);
        }
        // Blocks of carried values differ from turn to turn, so a tiling is not part of their type.
        let types: Vec<TensorType> =
            initial.iter().map(|&value| TensorType { tiling: None, ..self.ty(value).clone() }).collect();
        let condition = self.region(&carried, &types, |lowering| Ok(vec![lowering.condition(condition)?]))?;
        let body = self.region(&carried, &types, |lowering| {
            if !lowering.lower_all(body) {
                return Err(Failure::Reported);
            }
            carried.iter().zip(&types).map(|(name, ty)| lowering.next_value(name, ty, range)).collect()
        })?;
        let results = self.emitter.push(Op::While { condition, body }, &initial, &range.span())?;
        for (name, value) in carried.iter().zip(results) {
            self.define(name, Value::Tensor(value));
        }
        Ok(())
    }

    /// The value of a carried name at the end of the body, which must have its initial type.
    fn next_value(&mut self, name: &'a str, ty: &TensorType, range: Range) -> Lowered<ValueId> {
        let value = match self.scopes.get(name) {
            // A literal takes the type of the value that it replaces if that loses nothing.
            Some(Binding::Literal(literal)) if literal.dtype().promote(ty.dtype) == Some(ty.dtype) => {
                self.tensor(Value::Literal(literal.cast(ty.dtype)), range)?
            }
            _ => self.bound_tensor(name, range)?,
        };
        let now = self.ty(value);
        if now.same_shape(ty) {
            return Ok(value);
        }
        let error = error(range, format!("`{name}` is {ty} before the loop, but {now} after its body"));
        Err(if now.shape == ty.shape {
            error.help(format!("start with the type it ends with, for example `{name} = {}(..)`", now.dtype)).into()
        } else {
            error.help("what a loop carries keeps its shape").into()
        })
    }

    pub(super) fn branch(
        &mut self,
        condition: &Expr<'a>,
        then: &[Stmt<'a>],
        otherwise: &[Stmt<'a>],
        range: Range,
    ) -> Lowered<()> {
        let chosen = match algebra::evaluate(self, condition)? {
            Value::Literal(value) => Some(if value.is_true() { then } else { otherwise }),
            Value::Tensor(_) => None,
        };
        if let Some(chosen) = chosen {
            return if self.lower_all(chosen) { Ok(()) } else { Err(Failure::Reported) };
        }
        let condition = self.condition(condition)?;
        let (in_then, in_otherwise) = (assigned(then), assigned(otherwise));
        let has_value =
            |name: &&'a str| matches!(self.scopes.get(name), Some(Binding::Literal(_) | Binding::Tensor(_)));
        let mut names = in_then.clone();
        names.extend(in_otherwise.iter().filter(|name| !in_then.contains(name)));
        let (given, local): (Vec<&'a str>, Vec<&'a str>) = names
            .into_iter()
            .partition(|name| has_value(name) || (in_then.contains(name) && in_otherwise.contains(name)));
        // Literals of the two sides must agree with each other before they become tensors.
        let then_values = self.side(then, &given)?;
        let otherwise_values = self.side(otherwise, &given)?;
        let dtypes: Vec<DType> =
            then_values.1.iter().zip(&otherwise_values.1).map(|(&a, &b)| self.common_type(a, b)).collect();
        let then = self.close_side(then_values, &dtypes, range)?;
        let otherwise = self.close_side(otherwise_values, &dtypes, range)?;
        for ((name, &a), &b) in given.iter().zip(&then.results).zip(&otherwise.results) {
            let (a, b) = (self.ty(a), self.ty(b));
            if !a.same_shape(b) {
                let text = format!("`{name}` is {a} after one branch and {b} after the other");
                return Err(error(range, text).help("both branches must give it one type").into());
            }
        }
        let results = self.emitter.push(Op::If { then, otherwise }, &[condition], &range.span())?;
        for (name, value) in given.iter().zip(results) {
            self.define(name, Value::Tensor(value));
        }
        for name in local {
            self.scopes.bind(name, Binding::OneBranch);
        }
        Ok(())
    }

    /// Lowers one side of a branch, and gives the values of the names at its end.
    fn side(&mut self, statements: &[Stmt<'a>], given: &[&'a str]) -> Lowered<(Region, Vec<Value>)> {
        self.emitter.enter(Vec::new());
        self.scopes.enter();
        let fine = self.lower_all(statements);
        let values: Option<Vec<Value>> = given
            .iter()
            .map(|name| match self.scopes.get(name) {
                Some(Binding::Literal(value)) => Some(Value::Literal(*value)),
                Some(Binding::Tensor(value)) => Some(Value::Tensor(*value)),
                _ => None,
            })
            .collect();
        self.scopes.leave();
        let region = self.emitter.leave(Vec::new());
        match values {
            Some(values) if fine => Ok((region, values)),
            _ => Err(Failure::Reported),
        }
    }

    /// The type of a name that is `a` on one side and `b` on the other.
    fn common_type(&self, a: Value, b: Value) -> DType {
        match (a, b) {
            (Value::Literal(a), Value::Literal(b)) => a.dtype().promote(b.dtype()).unwrap_or(a.dtype()),
            (Value::Tensor(a), _) => self.ty(a).dtype,
            (_, Value::Tensor(b)) => self.ty(b).dtype,
        }
    }

    fn close_side(
        &mut self,
        (region, values): (Region, Vec<Value>),
        dtypes: &[DType],
        range: Range,
    ) -> Lowered<Region> {
        self.emitter.reopen(region);
        let mut results = Vec::with_capacity(values.len());
        let mut failure = None;
        for (value, &dtype) in values.into_iter().zip(dtypes) {
            let value = match value {
                Value::Literal(literal) if literal.dtype().promote(dtype) == Some(dtype) => {
                    Value::Literal(literal.cast(dtype))
                }
                value => value,
            };
            match self.tensor(value, range) {
                Ok(value) => results.push(value),
                Err(error) => failure = Some(error),
            }
        }
        let region = self.emitter.leave(results);
        failure.map_or(Ok(region), Err)
    }

    /// A region in which the carried names stand for its parameters.
    fn region(
        &mut self,
        carried: &[&'a str],
        types: &[TensorType],
        fill: impl FnOnce(&mut Self) -> Lowered<Vec<ValueId>>,
    ) -> Lowered<Region> {
        let params = self.emitter.enter(types.to_vec());
        self.scopes.enter();
        for (name, &value) in carried.iter().zip(&params) {
            self.define(name, Value::Tensor(value));
        }
        let results = fill(self);
        self.scopes.leave();
        let region = self.emitter.leave(results.as_ref().map_or_else(|_| Vec::new(), Vec::clone));
        results.map(|_| region)
    }

    /// A condition as a bool scalar.
    fn condition(&mut self, expr: &Expr<'a>) -> Lowered<ValueId> {
        let value = match algebra::evaluate(self, expr)? {
            Value::Literal(literal) => Value::Literal(Scalar::Bool(literal.is_true())),
            value => value,
        };
        let value = self.tensor(value, expr.range)?;
        let ty = self.ty(value).clone();
        if ty.rank() != 0 {
            return Err(error(expr.range, format!("a condition must be one value, not {ty}"))
                .help("reduce it with `any` or `all`")
                .into());
        }
        self.converted(value, &TensorType::scalar(DType::Bool), expr.range)
    }

    fn is_false(&mut self, condition: &Expr<'a>) -> Lowered<bool> {
        let value = algebra::evaluate(self, condition)?;
        Ok(matches!(value, Value::Literal(literal) if !literal.is_true()))
    }

    fn bound_tensor(&mut self, name: &str, range: Range) -> Lowered<ValueId> {
        let value = match self.scopes.get(name) {
            Some(Binding::Literal(value)) => Value::Literal(*value),
            Some(Binding::Tensor(value)) => return Ok(*value),
            _ => return Err(Failure::Reported),
        };
        self.tensor(value, range)
    }
}
