//! Scalar operations. What Cranelift computes as [`tw_ir::scalar`] defines it is emitted; the rest is called.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use tw_ir::{BinaryOp, DType, Scalar, UnaryOp};

use super::{Translation, Val, part_type};
use crate::runtime;

impl Translation<'_> {
    pub(super) fn constant(&mut self, value: Scalar) -> Val {
        let (low, high) = runtime::bits(value);
        let (part, is_complex) = part_type(value.dtype());
        let mut make = |bits: u64| match part {
            F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            F64 => self.b.ins().f64const(f64::from_bits(bits)),
            // Constants are the bits of their type, without those above.
            I8 => self.b.ins().iconst(I8, (bits & 0xff) as i64),
            I16 => self.b.ins().iconst(I16, (bits & 0xffff) as i64),
            I32 => self.b.ins().iconst(I32, (bits & 0xffff_ffff) as i64),
            part => self.b.ins().iconst(part, bits as i64),
        };
        if is_complex { Val::Two(make(low), make(high)) } else { Val::One(make(low)) }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, dtype: DType, a: Val) -> Val {
        use UnaryOp::*;
        match a {
            Val::Two(re, im) => match op {
                Real => Val::One(re),
                Imag => Val::One(im),
                Conj => Val::Two(re, self.b.ins().fneg(im)),
                _ => {
                    let re = self.b.ins().fneg(re);
                    Val::Two(re, self.b.ins().fneg(im))
                }
            },
            Val::One(x) if dtype.has_float_arithmetic() => match op {
                Neg => Val::One(self.b.ins().fneg(x)),
                Abs => Val::One(self.b.ins().fabs(x)),
                Sqrt => Val::One(self.b.ins().sqrt(x)),
                IsNan => Val::One(self.b.ins().fcmp(FloatCC::Unordered, x, x)),
                IsInf | IsFinite | Signbit => self.unary_call(op, dtype, a),
                _ => {
                    let code = self.b.ins().iconst(I64, op as i64);
                    let (address, part) = match dtype {
                        DType::F32 => (runtime::f32_unary as *const (), F32),
                        _ => (runtime::f64_unary as *const (), F64),
                    };
                    Val::One(self.call(address as usize, &[code, x], Some(part)).unwrap_or(x))
                }
            },
            Val::One(x) => match op {
                Neg => Val::One(self.b.ins().ineg(x)),
                Not if dtype == DType::Bool => {
                    let one = self.b.ins().iconst(I8, 1);
                    Val::One(self.b.ins().bxor(x, one))
                }
                Not => Val::One(self.b.ins().bnot(x)),
                _ => self.unary_call(op, dtype, a),
            },
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, dtype: DType, a: Val, b: Val) -> Val {
        match (a, b) {
            (Val::Two(a, x), Val::Two(b, y)) => self.complex_binary(op, (a, x), (b, y)),
            (Val::One(x), Val::One(y)) if op == BinaryOp::Complex => Val::Two(x, y),
            (Val::One(x), Val::One(y)) if dtype.has_float_arithmetic() => self.float_binary(op, dtype, x, y),
            (Val::One(x), Val::One(y)) => self.integer_binary(op, dtype, x, y),
            _ => unreachable!("a verified kernel combines equal types"),
        }
    }

    /// In the order of operations of `num_complex`.
    fn complex_binary(&mut self, op: BinaryOp, (a, x): (Value, Value), (b, y): (Value, Value)) -> Val {
        let i = &mut self.b;
        match op {
            BinaryOp::Add => {
                let re = i.ins().fadd(a, b);
                Val::Two(re, i.ins().fadd(x, y))
            }
            BinaryOp::Sub => {
                let re = i.ins().fsub(a, b);
                Val::Two(re, i.ins().fsub(x, y))
            }
            BinaryOp::Mul => {
                let (ab, xy) = (i.ins().fmul(a, b), i.ins().fmul(x, y));
                let (ay, xb) = (i.ins().fmul(a, y), i.ins().fmul(x, b));
                let re = i.ins().fsub(ab, xy);
                Val::Two(re, i.ins().fadd(ay, xb))
            }
            _ => {
                let re = i.ins().fcmp(FloatCC::Equal, a, b);
                let im = i.ins().fcmp(FloatCC::Equal, x, y);
                let equal = i.ins().band(re, im);
                if op == BinaryOp::Eq {
                    return Val::One(equal);
                }
                let one = i.ins().iconst(I8, 1);
                Val::One(i.ins().bxor(equal, one))
            }
        }
    }

    fn float_binary(&mut self, op: BinaryOp, dtype: DType, x: Value, y: Value) -> Val {
        use BinaryOp::*;
        let i = &mut self.b;
        let compare = match op {
            Lt => Some(FloatCC::LessThan),
            Le => Some(FloatCC::LessThanOrEqual),
            Gt => Some(FloatCC::GreaterThan),
            Ge => Some(FloatCC::GreaterThanOrEqual),
            Eq => Some(FloatCC::Equal),
            Ne => Some(FloatCC::NotEqual),
            _ => None,
        };
        if let Some(condition) = compare {
            return Val::One(i.ins().fcmp(condition, x, y));
        }
        Val::One(match op {
            Add => i.ins().fadd(x, y),
            Sub => i.ins().fsub(x, y),
            Mul => i.ins().fmul(x, y),
            Div => i.ins().fdiv(x, y),
            Min | Max => {
                let condition = if op == Min { FloatCC::LessThan } else { FloatCC::GreaterThan };
                let first = i.ins().fcmp(condition, x, y);
                let nan = i.ins().fcmp(FloatCC::Unordered, x, x);
                let first = i.ins().bor(first, nan);
                i.ins().select(first, x, y)
            }
            _ => {
                let code = i.ins().iconst(I64, op as i64);
                let (address, part) = match dtype {
                    DType::F32 => (runtime::f32_binary as *const (), F32),
                    _ => (runtime::f64_binary as *const (), F64),
                };
                self.call(address as usize, &[code, x, y], Some(part)).unwrap_or(x)
            }
        })
    }

    fn integer_binary(&mut self, op: BinaryOp, dtype: DType, x: Value, y: Value) -> Val {
        use BinaryOp::*;
        use IntCC::*;
        let signed = dtype.is_signed_integer();
        let compare = |op: BinaryOp| match (op, signed) {
            (Lt, true) => Some(SignedLessThan),
            (Le, true) => Some(SignedLessThanOrEqual),
            (Gt, true) => Some(SignedGreaterThan),
            (Ge, true) => Some(SignedGreaterThanOrEqual),
            (Lt, false) => Some(UnsignedLessThan),
            (Le, false) => Some(UnsignedLessThanOrEqual),
            (Gt, false) => Some(UnsignedGreaterThan),
            (Ge, false) => Some(UnsignedGreaterThanOrEqual),
            (Eq, _) => Some(Equal),
            (Ne, _) => Some(NotEqual),
            _ => None,
        };
        let i = &mut self.b;
        if let Some(condition) = compare(op) {
            return Val::One(i.ins().icmp(condition, x, y));
        }
        Val::One(match (op, dtype == DType::Bool) {
            (Add | Or | Max, true) | (Or, false) => i.ins().bor(x, y),
            (Mul | And | Min, true) | (And, false) => i.ins().band(x, y),
            (Xor, _) => i.ins().bxor(x, y),
            (Add, _) => i.ins().iadd(x, y),
            (Sub, _) => i.ins().isub(x, y),
            (Mul, _) => i.ins().imul(x, y),
            (Min | Max, _) => {
                let condition = compare(if op == Min { Lt } else { Gt });
                let first = i.ins().icmp(condition.unwrap_or(Equal), x, y);
                i.ins().select(first, x, y)
            }
            _ => return self.binary_call(op, dtype, x, y),
        })
    }

    pub(super) fn cast(&mut self, from: DType, to: DType, a: Val) -> Val {
        let (from, to) = (from.storage(), to.storage());
        if from == to {
            return a;
        }
        let whole = |dtype: DType| dtype.is_integer() || dtype == DType::Bool;
        let Val::One(x) = a else { return self.cast_call(from, to, a) };
        let wide = |dtype: DType| part_type(dtype).0;
        let i = &mut self.b;
        match (from, to) {
            (_, DType::Bool) if whole(from) => {
                let zero = i.ins().iconst(wide(from), 0);
                Val::One(i.ins().icmp(IntCC::NotEqual, x, zero))
            }
            (DType::F32 | DType::F64, DType::Bool) => {
                let zero = if from == DType::F32 { i.ins().f32const(0.0) } else { i.ins().f64const(0.0) };
                Val::One(i.ins().fcmp(FloatCC::NotEqual, x, zero))
            }
            _ if whole(from) && whole(to) => {
                let (narrow, target) = (wide(from), wide(to));
                Val::One(match narrow.bits().cmp(&target.bits()) {
                    std::cmp::Ordering::Equal => x,
                    std::cmp::Ordering::Greater => i.ins().ireduce(target, x),
                    std::cmp::Ordering::Less if from.is_signed_integer() => i.ins().sextend(target, x),
                    std::cmp::Ordering::Less => i.ins().uextend(target, x),
                })
            }
            (_, DType::F32 | DType::F64) if whole(from) => {
                let x = match (wide(from) == I64, from.is_signed_integer()) {
                    (true, _) => x,
                    (false, true) => i.ins().sextend(I64, x),
                    (false, false) => i.ins().uextend(I64, x),
                };
                Val::One(match from {
                    DType::U64 => i.ins().fcvt_from_uint(wide(to), x),
                    _ => i.ins().fcvt_from_sint(wide(to), x),
                })
            }
            (DType::F32 | DType::F64, DType::I64) => Val::One(i.ins().fcvt_to_sint_sat(I64, x)),
            (DType::F32 | DType::F64, DType::U64) => Val::One(i.ins().fcvt_to_uint_sat(I64, x)),
            (DType::F32 | DType::F64, DType::I32) => Val::One(i.ins().fcvt_to_sint_sat(I32, x)),
            (DType::F32 | DType::F64, DType::U32) => Val::One(i.ins().fcvt_to_uint_sat(I32, x)),
            (DType::F32, DType::F64) => Val::One(i.ins().fpromote(F64, x)),
            (DType::F64, DType::F32) => Val::One(i.ins().fdemote(F32, x)),
            _ => self.cast_call(from, to, a),
        }
    }

    fn unary_call(&mut self, op: UnaryOp, dtype: DType, a: Val) -> Val {
        let result = op.result(dtype).unwrap_or(dtype);
        self.slot_call(runtime::scalar_unary as *const () as usize, op as u64, dtype, &[a], result)
    }

    fn binary_call(&mut self, op: BinaryOp, dtype: DType, x: Value, y: Value) -> Val {
        let result = op.result(dtype).unwrap_or(dtype);
        let args = [Val::One(x), Val::One(y)];
        self.slot_call(runtime::scalar_binary as *const () as usize, op as u64, dtype, &args, result)
    }

    fn cast_call(&mut self, from: DType, to: DType, a: Val) -> Val {
        let code = to.physical_index() as u64;
        self.slot_call(runtime::scalar_cast as *const () as usize, code, from, &[a], to)
    }

    /// Calls a function of scalars of any type, which go through memory.
    fn slot_call(&mut self, address: usize, op: u64, dtype: DType, args: &[Val], result: DType) -> Val {
        let slot = self.slot(48);
        for (k, arg) in args.iter().enumerate() {
            let (low, high) = match *arg {
                Val::One(low) => (low, None),
                Val::Two(low, high) => (low, Some(high)),
            };
            self.b.ins().stack_store(I64, low, slot, 16 * k as i32);
            if let Some(high) = high {
                self.b.ins().stack_store(I64, high, slot, 16 * k as i32 + 8);
            }
        }
        let code = self.b.ins().iconst(I64, (op << 8 | dtype.physical_index() as u64) as i64);
        let place = self.b.ins().stack_addr(I64, slot, 0);
        self.call(address, &[code, place], None);
        let (part, is_complex) = part_type(result);
        let flags = MemFlagsData::trusted();
        let low = self.b.ins().load(part, flags, place, 32);
        if is_complex { Val::Two(low, self.b.ins().load(part, flags, place, 40)) } else { Val::One(low) }
    }
}
