//! What of a kernel is compiled, as bytes: two kernels with equal bytes have the same machine code. Names and remarks do not count.

use tw_ir::Scalar;
use tw_sparse::IndexWidth;
use tw_sparse::loops::{ArrayRole, ArrayType, LoopExpr, LoopKernel, LoopStmt};

use crate::runtime::bits;
use crate::translate::Checks;

struct Encoder(Vec<u8>);

/// The bytes of a kernel. They are compared as a whole, so no two kernels are taken for each other, as two with one hash would be.
pub(crate) fn signature(kernel: &LoopKernel, checks: Checks) -> Vec<u8> {
    let mut out = Encoder(Vec::with_capacity(1024));
    out.byte((checks == Checks::Bounds) as u8);
    out.number(kernel.n_params as u64);
    out.number(kernel.locals.len() as u64);
    kernel.locals.iter().for_each(|local| out.byte(local.dtype.physical_index() as u8));
    out.number(kernel.arrays.len() as u64);
    for array in &kernel.arrays {
        out.byte(match array.role {
            ArrayRole::Input => 0,
            ArrayRole::Output => 1,
            ArrayRole::Workspace => 2,
        });
        out.byte(match array.kind {
            ArrayType::Index(IndexWidth::U32) => 100,
            ArrayType::Index(IndexWidth::U64) => 101,
            ArrayType::Value(dtype) => dtype.physical_index() as u8,
        });
    }
    out.body(&kernel.body);
    out.0
}

impl Encoder {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }
    fn scalar(&mut self, value: Scalar) {
        let (low, high) = bits(value);
        self.byte(value.dtype().physical_index() as u8);
        self.0.extend(low.to_le_bytes());
        if value.dtype().is_complex() {
            self.0.extend(high.to_le_bytes());
        }
    }

    fn body(&mut self, body: &[LoopStmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
        self.byte(0);
    }

    fn stmt(&mut self, stmt: &LoopStmt) {
        match stmt {
            LoopStmt::Comment(_) => {}
            LoopStmt::Set(local, value) => {
                self.byte(1);
                self.number(local.0 as u64);
                self.expr(value);
            }
            LoopStmt::Store(array, index, value) => {
                self.byte(2);
                self.number(array.0 as u64);
                self.expr(index);
                self.expr(value);
            }
            LoopStmt::Push(array, value) => {
                self.byte(3);
                self.number(array.0 as u64);
                self.expr(value);
            }
            LoopStmt::Resize(array, length, fill) => {
                self.byte(4);
                self.number(array.0 as u64);
                self.expr(length);
                self.scalar(*fill);
            }
            LoopStmt::Sort(keys, values) => {
                self.byte(5);
                self.number(keys.0 as u64);
                self.number(values.map_or(0, |values| values.0 as u64 + 1));
            }
            LoopStmt::For(local, from, to, body) => {
                self.byte(6);
                self.number(local.0 as u64);
                self.expr(from);
                self.expr(to);
                self.body(body);
            }
            LoopStmt::While(condition, body) => {
                self.byte(7);
                self.expr(condition);
                self.body(body);
            }
            LoopStmt::If(condition, yes, no) => {
                self.byte(8);
                self.expr(condition);
                self.body(yes);
                self.body(no);
            }
        }
    }

    fn expr(&mut self, expr: &LoopExpr) {
        match expr {
            LoopExpr::Const(value) => {
                self.byte(1);
                self.scalar(*value);
            }
            LoopExpr::Local(local) => {
                self.byte(2);
                self.number(local.0 as u64);
            }
            LoopExpr::Load(array, _) => {
                self.byte(3);
                self.number(array.0 as u64);
            }
            LoopExpr::Len(array) => {
                self.byte(4);
                self.number(array.0 as u64);
            }
            LoopExpr::Unary(op, _) => {
                self.byte(5);
                self.byte(*op as u8);
            }
            LoopExpr::Binary(op, ..) => {
                self.byte(6);
                self.byte(*op as u8);
            }
            LoopExpr::Both(..) => self.byte(7),
            LoopExpr::Select(..) => self.byte(8),
            LoopExpr::Cast(dtype, _) => {
                self.byte(9);
                self.byte(dtype.physical_index() as u8);
            }
            LoopExpr::Seek { array, .. } => {
                self.byte(10);
                self.number(array.0 as u64);
            }
        }
        // The number of parts follows from the kind.
        expr.parts().into_iter().for_each(|part| self.expr(part));
    }
}
