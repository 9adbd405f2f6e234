//! Calls of block functions: `Q, R = block qr(A[i, :]) -> f64[i, 4], f64[4*i, 4]`.
//!
//! Between the brackets, an index names a cut axis: the function sees one tile of it, and axes with the same index move together. `:` is an axis
//! that the function sees whole. In a result, `i` is as long and cut as the operand axes of that index, `n*i` has `n` elements per tile of it,
//! and a number is a whole axis.

use tw_ir::program::{BlockFn, BlockResult, OperandMode, ResultMode};
use tw_ir::{BinaryOp, Op, ValueId};

use super::declare::dtype_named;
use super::{Lowering, Value};
use crate::ast::{BlockCall, Expr, ExprKind, Item, Operator, TypeExpr};
use crate::diagnose::{Lowered, Place, error};
use crate::token::Range;

impl<'a> Lowering<'a, '_> {
    pub(super) fn block_call(&mut self, call: &BlockCall<'a>, range: Range) -> Lowered<()> {
        for target in &call.targets {
            self.check_assignable(*target)?;
        }
        let function = self.functions.get(call.function.text).at(call.function.range)?;
        if call.targets.len() != call.results.len() {
            let text = format!("{} names for {} results", call.targets.len(), call.results.len());
            return Err(error(range, text).into());
        }
        let mut grid: Vec<&'a str> = Vec::new();
        let (mut operands, mut args): (Vec<Vec<OperandMode>>, Vec<ValueId>) = Default::default();
        for (name, items) in &call.operands {
            let value = self.read(*name)?;
            args.push(self.tensor(value, name.range)?);
            operands.push(items.iter().map(|item| operand_mode(item, &mut grid)).collect::<Lowered<_>>()?);
        }
        let mut results = Vec::with_capacity(call.results.len());
        for result in &call.results {
            results.push(self.block_result(result, &grid)?);
        }
        let op = Op::BlockFn(BlockFn { function, operands, results });
        let values = self.emitter.push(op, &args, &range.span())?;
        for (target, value) in call.targets.iter().zip(values) {
            self.define(target.text, Value::Tensor(value));
        }
        Ok(())
    }

    fn block_result(&mut self, ty: &TypeExpr<'a>, grid: &[&'a str]) -> Lowered<BlockResult> {
        let dtype = dtype_named(ty.dtype)?;
        let mut modes = Vec::with_capacity(ty.extents.len());
        for extent in &ty.extents {
            modes.push(self.result_mode(extent, grid)?);
        }
        Ok(BlockResult { dtype, modes })
    }

    fn result_mode(&mut self, expr: &Expr<'a>, grid: &[&'a str]) -> Lowered<ResultMode> {
        let number = |expr: &Expr<'a>| match expr.kind {
            ExprKind::Name(text) => grid.iter().position(|known| *known == text).map(|g| g as u32),
            _ => None,
        };
        if let Some(g) = number(expr) {
            return Ok(ResultMode::Grid(g));
        }
        if let ExprKind::Chain { first, rest } = &expr.kind
            && let [(Operator::Arithmetic(BinaryOp::Mul), second)] = rest.as_slice()
        {
            for (count, index) in [(&**first, second), (second, &**first)] {
                if let Some(g) = number(index) {
                    return Ok(ResultMode::PerBlock(g, self.positive(count)?));
                }
            }
        }
        Ok(ResultMode::Whole(self.positive(expr)?))
    }

    fn positive(&mut self, expr: &Expr<'a>) -> Lowered<u64> {
        let n = self.whole(expr, "an extent")?;
        u64::try_from(n).map_err(|_| error(expr.range, format!("an extent of {n}")).into())
    }
}

fn operand_mode<'a>(item: &Item<'a>, grid: &mut Vec<&'a str>) -> Lowered<OperandMode> {
    match item {
        Item::Slice { start: None, stop: None, step: None, .. } => Ok(OperandMode::Whole),
        Item::At(Expr { kind: ExprKind::Name(text), .. }) => {
            let position = grid.iter().position(|known| known == text).unwrap_or_else(|| {
                grid.push(text);
                grid.len() - 1
            });
            Ok(OperandMode::Grid(position as u32))
        }
        _ => Err(error(item.range(), "the axes of a block function's operand are an index or `:`").into()),
    }
}
