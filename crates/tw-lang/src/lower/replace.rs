//! Assignment to parts of a tensor in the way of arrays: `x[1:3] = 0`, `x[mask] = y`.

use tw_ir::{DType, TensorType, ValueId};

use super::{Lowering, Value};
use crate::algebra;
use crate::ast::{Assign, AssignOp, Expr, Item};
use crate::diagnose::{Lowered, Place, check_fits, check_literal_fits, error, find_name};
use crate::token::Range;
use tw_build as build;
use tw_build::TypedOperand;

impl<'a> Lowering<'a, '_> {
    /// The new value of the target of an assignment to slices or under a mask; `None` for other assignments.
    pub(super) fn replaced(&mut self, assign: &Assign<'a>, range: Range) -> Lowered<Option<ValueId>> {
        let Some(items) = &assign.indices else { return Ok(None) };
        let sliced = items.iter().any(|item| !matches!(item, Item::At(_)));
        let mask = match items.as_slice() {
            [Item::At(expr)] => self.mask(expr)?,
            _ => None,
        };
        if !sliced && mask.is_none() {
            return Ok(None);
        }
        if assign.guard.is_some() || !assign.ranges.is_empty() {
            return Err(error(range, "slices and masks do not mix with index notation")
                .help("write an index on the left, with its range after `for`")
                .into());
        }
        let before = self.read(assign.target)?;
        let before = self.tensor(before, range)?;
        match mask {
            Some(mask) => self.under_mask(assign, before, mask, range).map(Some),
            None => self.in_slices(assign, items, before, range).map(Some),
        }
    }

    /// A bool tensor between brackets on the left, if that is what stands there.
    fn mask(&mut self, expr: &Expr<'a>) -> Lowered<Option<ValueId>> {
        let scopes = &self.scopes;
        if find_name(expr, &mut |name| scopes.get(name).is_none()).is_some() {
            return Ok(None);
        }
        match algebra::evaluate(self, expr)? {
            Value::Tensor(mask) if self.ty(mask).dtype == DType::Bool => Ok(Some(mask)),
            Value::Tensor(at) if self.ty(at).rank() > 0 => {
                Err(error(expr.range, "an assignment to a list of positions")
                    .help("several may be equal; say how they combine: `y[at[i]] += x[i]`")
                    .into())
            }
            _ => Ok(None),
        }
    }

    /// The new elements: the right side, combined with the old ones if the assignment says so.
    fn new_elements(&mut self, assign: &Assign<'a>, old: ValueId, ty: &TensorType, range: Range) -> Lowered<Value> {
        let mut value = algebra::evaluate(self, &assign.value)?;
        if let AssignOp::Update(operator) = assign.op {
            value = algebra::operate(self, operator, Value::Tensor(old), value, range)?;
        }
        match value {
            Value::Literal(literal) => check_literal_fits(literal, ty.dtype, range)?,
            Value::Tensor(tensor) => check_fits(self.ty(tensor).dtype, ty.dtype, range)?,
        }
        Ok(value)
    }

    fn under_mask(&mut self, assign: &Assign<'a>, before: ValueId, mask: ValueId, range: Range) -> Lowered<ValueId> {
        let ty = self.ty(before).clone();
        let value = self.new_elements(assign, before, &ty, range)?;
        let value = self.tensor(value, range)?;
        let value = self.converted(value, &ty, range)?;
        let op = build::select(self.ty(mask), self.ty(value), &ty).at(range)?;
        let result = self.push1(op, &[mask, value, before], range)?;
        if self.ty(result).shape != ty.shape {
            let text = format!("the mask or the value has more elements than `{}`, which is {ty}", assign.target.text);
            return Err(error(range, text).into());
        }
        Ok(result)
    }

    fn in_slices(
        &mut self,
        assign: &Assign<'a>,
        items: &[Item<'a>],
        before: ValueId,
        range: Range,
    ) -> Lowered<ValueId> {
        let selected = self.basic_items(assign.target, items)?;
        let ty = self.ty(before).clone();
        let old = match assign.op {
            AssignOp::Set => before,
            AssignOp::Update(_) => {
                let op = build::slice(&ty, &selected).at(range)?;
                self.push1(op, &[before], range)?
            }
        };
        let value = self.new_elements(assign, old, &ty, range)?;
        let (operand, args) = match value {
            Value::Literal(literal) => (TypedOperand::from(literal), vec![before]),
            Value::Tensor(tensor) => (TypedOperand::Tensor(self.ty(tensor)), vec![before, tensor]),
        };
        let op = build::replace(&ty, &selected, operand).at(range)?;
        self.push1(op, &args, range)
    }
}
