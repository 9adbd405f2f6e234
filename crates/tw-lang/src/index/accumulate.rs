//! Assignments that combine all points that meet in one element.

use tw_ir::program::Output;
use tw_ir::{BinaryOp, DType, Idx, ValueId};

use super::body::Reduced;
use super::context::Context;
use super::target::{Before, Target};
use crate::algebra;
use crate::ast::Operator;
use crate::diagnose::{Lowered, error};
use crate::lower::{Value, assign_text};
use crate::token::Range;
use tw_build::Reduction;

/// How contributions of an assignment meet.
pub(super) struct Combination {
    pub(super) kind: Reduction,
    /// The operation that joins them with the old value.
    pub(super) join: Operator,
    /// True for `-=`: contributions are negated.
    pub(super) negated: bool,
}

/// An accumulating assignment.
pub(super) fn combination(operator: Operator, range: Range) -> Lowered<Combination> {
    let (kind, join) = match operator {
        Operator::Arithmetic(BinaryOp::Add | BinaryOp::Sub) => (Reduction::Sum, Operator::Arithmetic(BinaryOp::Add)),
        Operator::Arithmetic(BinaryOp::Mul) => (Reduction::Prod, operator),
        Operator::Arithmetic(BinaryOp::Min) => (Reduction::Min, operator),
        Operator::Arithmetic(BinaryOp::Max) => (Reduction::Max, operator),
        Operator::Logical(BinaryOp::And) => (Reduction::All, operator),
        Operator::Logical(BinaryOp::Or) => (Reduction::Any, operator),
        _ => {
            let text = format!("`{}` does not combine several contributions", assign_text(operator));
            return Err(error(range, text).help("use +=, -=, *=, min=, max=, and= or or=").into());
        }
    };
    Ok(Combination { kind, join, negated: operator == Operator::Arithmetic(BinaryOp::Sub) })
}

impl Context<'_, '_, '_> {
    /// `H[i / 10] += x[i]`.
    pub(super) fn accumulate(
        &mut self,
        target: &Target,
        idx: &[Idx],
        reduced: &Reduced,
        combination: &Combination,
    ) -> Lowered<ValueId> {
        let outer = self.left_variables();
        let shape = match &target.before {
            Before::Declared(ty) | Before::Value(_, ty) => ty.shape.clone(),
            Before::Nothing => self.inferred_shape(idx, target.range)?,
        };
        let variables: Vec<u32> = outer.iter().chain(&reduced.variables).copied().collect();
        let local = self.local_idx(idx, &variables);
        let out = Output { idx: local, edge: target.edge()?, shape, fill: Vec::new() };
        let dtype = self.combining_type(target);
        // Where nothing is added to a value, the value stays.
        let has_value = matches!(target.before, Before::Value(..));
        let contributions = self.reduce_into(reduced, &outer, out, dtype, has_value)?;
        self.join(target, contributions, combination)
    }

    /// The type contributions are combined in, if the target says so.
    pub(super) fn combining_type(&self, target: &Target) -> Option<DType> {
        match &target.before {
            Before::Nothing => None,
            Before::Value(..) if target.axes.is_empty() => None,
            Before::Declared(ty) | Before::Value(_, ty) => Some(ty.dtype),
        }
    }

    /// Joins contributions with the old value of the target.
    pub(super) fn join(
        &mut self,
        target: &Target,
        contributions: ValueId,
        combination: &Combination,
    ) -> Lowered<ValueId> {
        let Before::Value(before, ty) = &target.before else { return Ok(contributions) };
        let (before, ty) = (Value::Tensor(*before), ty.clone());
        let joined =
            algebra::operate(self.lowering, combination.join, before, Value::Tensor(contributions), target.range)?;
        let joined = self.lowering.tensor(joined, target.range)?;
        // Without brackets this is `s = s + ..`, which may give the name another type.
        if target.axes.is_empty() {
            return Ok(joined);
        }
        self.lowering.converted(joined, &ty, target.range)
    }
}
