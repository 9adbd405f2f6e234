//! Expressions without tensors as code.

use tw_ir::scalar::ScalarOp;

use super::Lowering;
use crate::expr::IndexExpr;
use crate::loops::LoopExpr;

impl Lowering<'_> {
    /// An expression of constants and computed values.
    pub(super) fn scalar(&mut self, expr: &IndexExpr) -> LoopExpr {
        match expr {
            IndexExpr::Constant(value) => LoopExpr::Const(*value),
            IndexExpr::Computed(value, _) => value.clone(),
            IndexExpr::Unary(op, a) => LoopExpr::Unary(*op, Box::new(self.scalar(a))),
            IndexExpr::Cast(dtype, a) => LoopExpr::Cast(*dtype, Box::new(self.scalar(a))),
            IndexExpr::Binary(op, a, b) => LoopExpr::binary(*op, self.scalar(a), self.scalar(b)),
            IndexExpr::Select(c, a, b) => {
                let [c, a, b] = [c, a, b].map(|part| Box::new(self.scalar(part)));
                LoopExpr::Select(c, a, b)
            }
            IndexExpr::Call(function, args) => {
                let args: Vec<LoopExpr> = args.iter().map(|arg| self.scalar(arg)).collect();
                let args: Vec<LoopExpr> = args.into_iter().map(|arg| self.code.bind("x", arg)).collect();
                let mut slots: Vec<LoopExpr> = Vec::new();
                for op in function.code.ops() {
                    let slot = |k: tw_ir::Slot| Box::new(slots[k.0 as usize].clone());
                    let value = match *op {
                        ScalarOp::Param(k) => args[k as usize].clone(),
                        ScalarOp::Const(value) => LoopExpr::Const(value),
                        ScalarOp::Unary(op, a) => LoopExpr::Unary(op, slot(a)),
                        ScalarOp::Binary(op, a, b) => LoopExpr::Binary(op, slot(a), slot(b)),
                        ScalarOp::Select(c, a, b) => LoopExpr::Select(slot(c), slot(a), slot(b)),
                        ScalarOp::Cast(dtype, a) => LoopExpr::Cast(dtype, slot(a)),
                        // Statements with random functions are refused before.
                        ScalarOp::Random { .. } => unreachable!("a random function in a sparse statement"),
                    };
                    let value = self.code.bind("x", value);
                    slots.push(value);
                }
                slots[function.code.results()[0].0 as usize].clone()
            }
            IndexExpr::Access(..) | IndexExpr::Coordinate(_) | IndexExpr::Reduce(..) => {
                unreachable!("an expression is computed before its operands are")
            }
        }
    }
}
