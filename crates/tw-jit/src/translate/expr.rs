//! Expressions and conditions.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use tw_ir::Scalar;
use tw_sparse::IndexWidth;
use tw_sparse::loops::{ArrayType, LoopExpr};

use super::{Checks, Translation, Val, Var};
use crate::runtime::{self, Status};

impl Translation<'_> {
    /// An expression that is no complex number.
    pub(super) fn one(&mut self, expr: &LoopExpr) -> Value {
        match self.expr(expr) {
            Val::One(value) => value,
            Val::Two(..) => unreachable!("a verified kernel has no complex index or condition"),
        }
    }

    pub(super) fn expr(&mut self, expr: &LoopExpr) -> Val {
        match expr {
            LoopExpr::Const(value) => self.constant(*value),
            LoopExpr::Local(local) => match self.locals[local.0 as usize] {
                Var::One(var) => Val::One(self.b.use_var(var)),
                Var::Two(re, im) => Val::Two(self.b.use_var(re), self.b.use_var(im)),
            },
            LoopExpr::Load(array, index) => {
                let index = self.one(index);
                self.check_index(*array, index);
                self.read(*array, index)
            }
            LoopExpr::Len(array) => Val::One(self.b.use_var(self.arrays[array.0 as usize].length)),
            LoopExpr::Unary(op, a) => {
                let dtype = self.kernel.dtype(a);
                let a = self.expr(a);
                self.unary(*op, dtype, a)
            }
            LoopExpr::Binary(op, a, b) => {
                let dtype = self.kernel.dtype(a);
                let (a, b) = (self.expr(a), self.expr(b));
                self.binary(*op, dtype, a, b)
            }
            LoopExpr::Both(a, b) => {
                // The second is computed in a block of its own, for it may read what is there only if the first holds.
                let (second, after) = (self.b.create_block(), self.b.create_block());
                let result = self.b.append_block_param(after, I8);
                let first = self.one(a);
                let no = self.b.ins().iconst(I8, 0);
                self.b.ins().brif(first, second, &[], after, &[no.into()]);
                self.b.switch_to_block(second);
                self.b.seal_block(second);
                let value = self.one(b);
                self.b.ins().jump(after, &[value.into()]);
                self.b.switch_to_block(after);
                self.b.seal_block(after);
                Val::One(result)
            }
            LoopExpr::Select(c, a, b) => {
                let (c, a, b) = (self.one(c), self.expr(a), self.expr(b));
                match (a, b) {
                    (Val::One(a), Val::One(b)) => Val::One(self.b.ins().select(c, a, b)),
                    (Val::Two(a, x), Val::Two(b, y)) => {
                        let re = self.b.ins().select(c, a, b);
                        Val::Two(re, self.b.ins().select(c, x, y))
                    }
                    _ => unreachable!("a verified kernel selects among equal types"),
                }
            }
            LoopExpr::Cast(to, a) => {
                let from = self.kernel.dtype(a);
                let a = self.expr(a);
                self.cast(from, *to, a)
            }
            LoopExpr::Seek { array, from, to, target } => {
                let [from, to, target] = [from, to, target].map(|part| self.one(part));
                let k = array.0 as usize;
                if self.checks == Checks::Bounds {
                    self.check_run(k, from, to);
                }
                let data = self.b.use_var(self.arrays[k].data);
                let seek = match self.arrays[k].kind {
                    ArrayType::Index(IndexWidth::U32) => runtime::seek_u32 as *const (),
                    _ => runtime::seek_u64 as *const (),
                };
                let found = self.call(seek as usize, &[data, from, to, target], Some(I64));
                Val::One(found.unwrap_or(from))
            }
        }
    }

    /// A run that is searched lies in its array, or is empty.
    fn check_run(&mut self, k: usize, from: Value, to: Value) {
        let length = self.b.use_var(self.arrays[k].length);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, from, to);
        let zero = self.int(0);
        let before = self.b.ins().icmp(IntCC::SignedLessThan, from, zero);
        let beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThan, to, length);
        let wrong = self.b.ins().bor(before, beyond);
        let outside = self.b.ins().band(some, wrong);
        let index = self.b.ins().select(before, from, to);
        self.fail_if(outside, Status::OUTSIDE, k, index);
    }

    /// Goes to one of two blocks.
    pub(super) fn branch(&mut self, condition: &LoopExpr, yes: Block, no: Block) {
        match condition {
            LoopExpr::Both(a, b) => {
                let second = self.b.create_block();
                self.branch(a, second, no);
                self.b.switch_to_block(second);
                self.b.seal_block(second);
                self.branch(b, yes, no);
            }
            LoopExpr::Const(Scalar::Bool(value)) => {
                self.b.ins().jump(if *value { yes } else { no }, &[]);
            }
            other => {
                let condition = self.one(other);
                self.b.ins().brif(condition, yes, &[], no, &[]);
            }
        }
    }
}
