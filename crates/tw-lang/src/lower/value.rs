//! Expressions on whole tensors.

use tw_ir::dtype::NAT;
use tw_ir::{BinaryOp, DType, Extent, Op, Result, Scalar, UnaryOp, ValueId};

use super::Lowering;
use crate::algebra::{Algebra, evaluate};
use crate::ast::{Expr, ExprKind, Name};
use crate::diagnose::{Lowered, Place, error};
use crate::index::{self, IndexStatement};
use crate::token::Range;
use tw_build as build;
use tw_build::TypedOperand;

/// The value of an expression on whole tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    /// A number known now.
    Literal(Scalar),
    /// A tensor of the program.
    Tensor(ValueId),
}

/// Constants that have a name.
pub(super) fn constant_named(name: &str) -> Option<Scalar> {
    match name {
        "pi" => Some(Scalar::F64(std::f64::consts::PI)),
        "inf" => Some(Scalar::F64(f64::INFINITY)),
        "nan" => Some(Scalar::F64(f64::NAN)),
        _ => None,
    }
}

impl<'a> Algebra<'a> for Lowering<'a, '_> {
    type Item = Value;

    fn literal(&mut self, value: Scalar) -> Value {
        Value::Literal(value)
    }

    fn as_literal(&self, item: Value) -> Option<Scalar> {
        match item {
            Value::Literal(value) => Some(value),
            Value::Tensor(_) => None,
        }
    }

    fn unary(&mut self, op: UnaryOp, a: Value, range: Range) -> Lowered<Value> {
        let x = self.tensor(a, range)?;
        let op = build::unary(op, self.ty(x)).at(range)?;
        Ok(Value::Tensor(self.push1(op, &[x], range)?))
    }

    fn logical_not(&mut self, a: Value, range: Range) -> Lowered<Value> {
        let x = self.tensor(a, range)?;
        let op = build::logical_not(self.ty(x)).at(range)?;
        Ok(Value::Tensor(self.push1(op, &[x], range)?))
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value, range: Range) -> Lowered<Value> {
        self.apply(&[a, b], range, |operands| build::binary(op, operands[0], operands[1]))
    }

    fn logical(&mut self, op: BinaryOp, a: Value, b: Value, range: Range) -> Lowered<Value> {
        self.apply(&[a, b], range, |operands| build::logical(op, operands[0], operands[1]))
    }

    fn matrix_product(&mut self, a: Value, b: Value, range: Range) -> Lowered<Value> {
        let (a, b) = (self.tensor(a, range)?, self.tensor(b, range)?);
        let op = build::matmul(self.ty(a), self.ty(b)).at(range)?;
        Ok(Value::Tensor(self.push1(op, &[a, b], range)?))
    }

    fn select(&mut self, c: Value, a: Value, b: Value, range: Range) -> Lowered<Value> {
        self.apply(&[c, a, b], range, |operands| build::select(operands[0], operands[1], operands[2]))
    }

    fn cast(&mut self, dtype: DType, a: Value, range: Range) -> Lowered<Value> {
        let x = match a {
            // NaN is to floats what NaT is to times.
            Value::Literal(value) if dtype.is_time() && value.as_f64().is_nan() => {
                self.tensor(Value::Literal(Scalar::I64(NAT).cast(dtype)), range)?
            }
            Value::Literal(value) => self.tensor(Value::Literal(value.cast(dtype)), range)?,
            Value::Tensor(x) => x,
        };
        let op = build::cast(self.ty(x), dtype).at(range)?;
        if self.ty(x).dtype == dtype { Ok(Value::Tensor(x)) } else { Ok(Value::Tensor(self.push1(op, &[x], range)?)) }
    }

    fn leaf(&mut self, expr: &Expr<'a>) -> Lowered<Value> {
        match &expr.kind {
            ExprKind::Name(text) => self.read(Name { text, range: expr.range }),
            ExprKind::Index { base, items } => self.subscript(base, items, expr.range),
            ExprKind::Call { function, args } => self.call(*function, args, expr.range),
            ExprKind::FamilyCall { family, function, args } => self.family_call(*family, *function, args, expr.range),
            ExprKind::Attribute { base, name } => self.attribute(base, *name, expr.range),
            ExprKind::Reduce(_) => Ok(Value::Tensor(index::lower(self, IndexStatement::of_reduction(expr))?)),
            ExprKind::List(parts) => Ok(Value::Tensor(self.list(parts, expr.range)?)),
            ExprKind::Text(_) => Err(error(expr.range, "text is not a value").into()),
            ExprKind::Tuple(_) => Err(error(expr.range, "several values where one is expected").into()),
            ExprKind::Tile(_) => {
                Err(error(expr.range, "a tiling is not a value").help("use it in `retile(x, tile(..))`").into())
            }
            _ => Err(tw_ir::Error::internal("arithmetic reached the leaves of an expression").into()),
        }
    }
}

impl<'a> Lowering<'a, '_> {
    /// Appends a node whose operands may be literals; those are folded into it.
    fn apply(
        &mut self,
        values: &[Value],
        range: Range,
        build: impl FnOnce(&[TypedOperand<'_>]) -> Result<Op>,
    ) -> Lowered<Value> {
        let operands: Vec<TypedOperand<'_>> = values
            .iter()
            .map(|value| match value {
                Value::Literal(literal) => TypedOperand::from(*literal),
                Value::Tensor(tensor) => TypedOperand::Tensor(self.ty(*tensor)),
            })
            .collect();
        let op = build(&operands).at(range)?;
        let args: Vec<ValueId> = values
            .iter()
            .filter_map(|value| match value {
                Value::Tensor(tensor) => Some(*tensor),
                Value::Literal(_) => None,
            })
            .collect();
        Ok(Value::Tensor(self.push1(op, &args, range)?))
    }

    /// A value as a tensor; literals become scalars.
    pub(crate) fn tensor(&mut self, value: Value, range: Range) -> Lowered<ValueId> {
        match value {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Literal(literal) => self.push1(build::full(&[], literal), &[], range),
        }
    }

    /// An expression as a tensor.
    pub(crate) fn tensor_of(&mut self, expr: &Expr<'a>) -> Lowered<ValueId> {
        let value = evaluate(self, expr)?;
        self.tensor(value, expr.range)
    }

    /// True for values that stand for extents.
    pub(super) fn is_resolved(&self, value: ValueId) -> bool {
        self.emitter.is_resolved(value)
    }

    fn attribute(&mut self, base: &Expr<'a>, name: Name<'a>, range: Range) -> Lowered<Value> {
        match name.text {
            "T" => {
                let x = self.tensor_of(base)?;
                let op = build::transpose(self.ty(x));
                Ok(Value::Tensor(self.push1(op, &[x], range)?))
            }
            "shape" => Err(error(range, "a shape is not a value").help("take one extent of it: `x.shape[0]`").into()),
            "size" | "ndim" | "dtype" => Err(error(name.range, format!("tensors have no attribute `{}`", name.text))
                .help("use `x.shape[k]` or `size(x)`")
                .into()),
            _ => {
                let wrong = error(name.range, format!("tensors have no attribute `{}`", name.text));
                let known = self.function_named(name.text).is_some();
                Err(if known { wrong.help(format!("call it: `.{}()`", name.text)) } else { wrong }.into())
            }
        }
    }

    /// An extent as a value: a number, or the scalar it depends on.
    pub(super) fn extent_value(&self, extent: Extent) -> Value {
        match extent {
            Extent::Known(n) => Value::Literal(Scalar::I64(n as i64)),
            Extent::Deferred(id) => Value::Tensor(self.emitter.extent_value(id)),
        }
    }
}
