//! From the loop IR to the IR of Cranelift.
//!
//! A kernel becomes one function that takes a [`Frame`](crate::runtime::Frame) and returns a status. Locals become variables, which
//! Cranelift turns into registers; so do the address of every array and the length of every array that grows. Loops test their condition at
//! the end, after one test before the first round. Values are computed in the order of the loop IR with the operations of
//! [`tw_ir::scalar`]: those that Cranelift has are emitted, all others call the function that defines them. Nothing is contracted or
//! reordered, so bits are those of the interpreter (NaNs compare as equal: their sign and payload are the processor's).
//!
//! # Why nothing is read or written out of bounds
//!
//! Compiled code has no bounds checks. The argument has three parts.
//!
//! * *Inputs.* A [`SparseTensor`](tw_sparse::SparseTensor) is checked where it is made: `pos` starts at 0, never falls, has one element
//!   more than the level above has positions, and ends at the number of coordinates; coordinates are smaller than the extent; tables have a
//!   free slot; there are as many values as positions. Loops of the lowering run over positions of such segments or over extents. So
//!   positions are smaller than the lengths of the arrays that are read at them. Coordinates are smaller than the extents, which
//!   `CompiledStatement::run` has compared across operands.
//! * *Outputs and workspaces.* They are written by `push`, which makes room first, or at positions below the length of a `resize` that the
//!   lowering emits before (one element per parent, per position of a shared pattern, or per coordinate of the extent). Growing is done by
//!   checked functions of [`crate::runtime`].
//! * *The verifier* ensures that types of elements and arrays agree, that inputs are never written and that indices are i64.
//!
//! The second half of the first two points is owed by the lowering, and no verifier proves it. Therefore the interpreter checks every
//! access, and this module compiles the same checks in with [`Checks::Bounds`]. All random programs of the tests run that way too.
//! [`crate::JitEngine`] runs code without checks for a [`StatementCall`](tw_sparse::StatementCall) only, which nobody but
//! `CompiledStatement::run` can make. A kernel from elsewhere, such as parsed text, can be wrong in ways the verifier does not see: it is
//! compiled with bounds checks, see [`crate::JitEngine::execute_checked`].

use std::collections::{BTreeMap, HashMap, HashSet};

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F64, I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, Block, BlockArg, Function, InstBuilder, MemFlagsData, SigRef, Signature, StackSlotData,
    StackSlotKind, Type, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use tw_ir::{DType, Scalar};
use tw_sparse::IndexWidth;
use tw_sparse::loops::{ArrayId, ArrayRole, ArrayType, LocalId, LoopExpr, LoopKernel, LoopStmt};

use crate::runtime::{self, FrameOffset, Status, VIEW_CAPACITY, VIEW_DATA, VIEW_LENGTH, VIEW_SIZE};

mod dense;
mod expr;
mod scalar;
mod vector;

/// Whether accesses are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Checks {
    /// As argued above.
    Trusted,
    /// Every access to an array is compared with its length; a failure ends the kernel.
    Bounds,
}

/// What a compiled kernel is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeSummary {
    /// Bytes of machine code.
    pub bytes: usize,
    /// Inner loops that compute elements in vectors.
    pub vector_loops: usize,
    /// Loops over positions that keep sums of a row in registers.
    pub row_loops: usize,
    /// Loops over positions that call a function which adds rows.
    pub row_calls: usize,
    /// Loops over positions that call a function for four dot products at a time.
    pub dot_calls: usize,
}

/// A value of the loop IR: complex numbers have two parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Val {
    One(Value),
    Two(Value, Value),
}

#[derive(Clone, Copy)]
enum Var {
    One(Variable),
    Two(Variable, Variable),
}

/// The registers of an array.
#[derive(Clone, Copy)]
struct Array {
    kind: ArrayType,
    grows: bool,
    /// The address of its first element.
    data: Variable,
    /// Its number of elements.
    length: Variable,
    flags: MemFlagsData,
}

pub(crate) struct Translation<'a> {
    kernel: &'a LoopKernel,
    b: FunctionBuilder<'a>,
    checks: Checks,
    call_conv: CallConv,
    frame: Value,
    views: Value,
    locals: Vec<Var>,
    arrays: Vec<Array>,
    /// Ends the kernel with a status, an array and an index.
    fail: Block,
    signatures: HashMap<(Vec<Type>, Option<Type>), SigRef>,
    /// How often each local is named, to know which ones a loop keeps to itself.
    mentions: Vec<usize>,
    summary: CodeSummary,
    /// Arrays that have room for all pushes of the round of the innermost loop.
    roomy: HashSet<ArrayId>,
}

/// The type of each part of an element.
pub(crate) fn part_type(dtype: DType) -> (Type, bool) {
    match dtype.storage() {
        DType::Bool | DType::I8 | DType::U8 => (I8, false),
        DType::I16 | DType::U16 | DType::F16 | DType::BF16 => (I16, false),
        DType::I32 | DType::U32 => (I32, false),
        DType::F32 => (F32, false),
        DType::F64 => (F64, false),
        DType::C64 => (F32, true),
        DType::C128 => (F64, true),
        _ => (I64, false),
    }
}

/// The function's signature: a frame in, a status out.
pub(crate) fn signature(call_conv: CallConv) -> Signature {
    let mut signature = Signature::new(call_conv);
    signature.params.push(AbiParam::new(I64));
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// Fills a function with the code of a verified kernel.
pub(crate) fn translate(
    kernel: &LoopKernel,
    checks: Checks,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
    target: TargetFrontendConfig,
) -> CodeSummary {
    let call_conv = function.signature.call_conv;
    let regions: Vec<_> = (0..kernel.arrays.len() as u32)
        .map(|k| {
            let data = AliasRegionData { user_id: k + 1, description: format!("array {k}").into() };
            function.dfg.alias_regions.insert(data)
        })
        .collect();
    let mut b = FunctionBuilder::new(function, context);
    let entry = b.create_block();
    let fail = b.create_block();
    b.append_block_params_for_function_params(entry);
    for _ in 0..3 {
        b.append_block_param(fail, I64);
    }
    b.switch_to_block(entry);
    b.seal_block(entry);
    b.set_cold_block(fail);
    let frame = b.block_params(entry)[0];
    // The frame stays as it is while the kernel runs, but for what the code itself stores.
    let fixed = MemFlagsData::trusted();
    let views = b.ins().load(I64, fixed, frame, FrameOffset::VIEWS);
    let arrays = kernel
        .arrays
        .iter()
        .enumerate()
        .map(|(k, array)| Array {
            kind: array.kind,
            grows: array.role != ArrayRole::Input,
            data: b.declare_var(I64),
            length: b.declare_var(I64),
            flags: MemFlagsData::trusted().with_alias_region(Some(regions[k])),
        })
        .collect();
    let locals = kernel
        .locals
        .iter()
        .map(|local| match part_type(local.dtype) {
            (part, false) => Var::One(b.declare_var(part)),
            (part, true) => Var::Two(b.declare_var(part), b.declare_var(part)),
        })
        .collect();
    let mut mentions = vec![0; kernel.locals.len()];
    kernel.body.iter().for_each(|stmt| dense::count_mentions(stmt, &mut mentions));
    let mut t = Translation {
        kernel,
        b,
        checks,
        call_conv,
        frame,
        views,
        locals,
        arrays,
        fail,
        signatures: HashMap::new(),
        mentions,
        summary: CodeSummary::default(),
        roomy: HashSet::new(),
    };
    t.begin();
    t.body(&kernel.body);
    t.end();
    t.b.seal_all_blocks();
    t.b.finalize(target);
    t.summary
}

impl Translation<'_> {
    fn begin(&mut self) {
        let params = self.b.ins().load(I64, MemFlagsData::trusted(), self.frame, FrameOffset::PARAMS);
        for k in 0..self.kernel.locals.len() {
            let dtype = self.kernel.locals[k].dtype;
            let value = match k < self.kernel.n_params {
                true => Val::One(self.b.ins().load(I64, MemFlagsData::trusted(), params, 8 * k as i32)),
                false => self.constant(dtype.zero()),
            };
            self.define(LocalId(k as u32), value);
        }
        for k in 0..self.arrays.len() {
            self.reload(k);
        }
    }

    /// Reads the address and the length of an array from its view.
    fn reload(&mut self, k: usize) {
        let array = self.arrays[k];
        let at = (k * VIEW_SIZE) as i32;
        let data = self.b.ins().load(I64, MemFlagsData::trusted(), self.views, at + VIEW_DATA);
        let length = self.b.ins().load(I64, MemFlagsData::trusted(), self.views, at + VIEW_LENGTH);
        self.b.def_var(array.data, data);
        self.b.def_var(array.length, length);
    }

    /// Writes the length of an array into its view, for a function that is called or for the end.
    fn flush(&mut self, k: usize) {
        let length = self.b.use_var(self.arrays[k].length);
        self.b.ins().store(MemFlagsData::trusted(), length, self.views, (k * VIEW_SIZE) as i32 + VIEW_LENGTH);
    }

    fn end(&mut self) {
        for k in 0..self.arrays.len() {
            if self.arrays[k].grows {
                self.flush(k);
            }
        }
        let done = self.int(Status::DONE);
        self.b.ins().return_(&[done]);
        self.b.switch_to_block(self.fail);
        let [status, array, index] = [0, 1, 2].map(|k| self.b.block_params(self.fail)[k]);
        self.b.ins().store(MemFlagsData::trusted(), array, self.frame, FrameOffset::ARRAY);
        self.b.ins().store(MemFlagsData::trusted(), index, self.frame, FrameOffset::INDEX);
        self.b.ins().return_(&[status]);
    }

    fn int(&mut self, value: i64) -> Value {
        self.b.ins().iconst(I64, value)
    }

    fn define(&mut self, local: LocalId, value: Val) {
        match (self.locals[local.0 as usize], value) {
            (Var::One(var), Val::One(value)) => self.b.def_var(var, value),
            (Var::Two(re, im), Val::Two(x, y)) => {
                self.b.def_var(re, x);
                self.b.def_var(im, y);
            }
            _ => unreachable!("a verified kernel sets locals to their types"),
        }
    }

    /// Ends the kernel with a status if a condition holds.
    fn fail_if(&mut self, condition: Value, status: i64, array: usize, index: Value) {
        let go_on = self.b.create_block();
        let status = self.int(status);
        let array = self.int(array as i64);
        let args = [status, array, index].map(BlockArg::from);
        self.b.ins().brif(condition, self.fail, &args, go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// Calls a function of the runtime.
    fn call(&mut self, address: usize, args: &[Value], returns: Option<Type>) -> Option<Value> {
        let types: Vec<Type> = args.iter().map(|arg| self.b.func.dfg.value_type(*arg)).collect();
        let call_conv = self.call_conv;
        let (b, key) = (&mut self.b, (types, returns));
        let signature = *self.signatures.entry(key).or_insert_with_key(|(types, returns)| {
            let mut signature = Signature::new(call_conv);
            signature.params.extend(types.iter().map(|part| AbiParam::new(*part)));
            signature.returns.extend(returns.iter().map(|part| AbiParam::new(*part)));
            b.import_signature(signature)
        });
        let address = self.b.ins().iconst(I64, address as i64);
        let call = self.b.ins().call_indirect(signature, address, args);
        returns.map(|_| self.b.inst_results(call)[0])
    }

    /// Calls a function that may fail.
    fn call_checked(&mut self, address: usize, args: &[Value], array: usize) {
        let Some(status) = self.call(address, args, Some(I64)) else { return };
        let go_on = self.b.create_block();
        let (array, nothing) = (self.int(array as i64), self.int(0));
        let args = [status, array, nothing].map(BlockArg::from);
        self.b.ins().brif(status, self.fail, &args, go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    fn body(&mut self, body: &[LoopStmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &LoopStmt) {
        match stmt {
            LoopStmt::Comment(_) => {}
            LoopStmt::Set(local, value) => {
                let value = self.expr(value);
                self.define(*local, value);
            }
            LoopStmt::Store(array, index, value) => {
                let (index, value) = (self.one(index), self.expr(value));
                let value = self.stored(*array, value);
                self.check_index(*array, index);
                self.write(*array, index, value);
            }
            LoopStmt::Push(array, value) => {
                let value = self.expr(value);
                let value = match (self.checks, self.arrays[array.0 as usize].kind, value) {
                    // What a lowered statement pushes are coordinates and keys. Coordinates are below their extent, which `CompiledStatement`
                    // has compared with the width of the output; keys have 64 bits. Positions, which may be too wide, are stored.
                    (Checks::Trusted, ArrayType::Index(IndexWidth::U32), Val::One(index)) => {
                        Val::One(self.b.ins().ireduce(I32, index))
                    }
                    (Checks::Trusted, ..) => value,
                    (Checks::Bounds, ..) => self.stored(*array, value),
                };
                self.push(*array, value);
            }
            LoopStmt::Resize(array, length, fill) => self.resize(*array, length, *fill),
            LoopStmt::Sort(keys, values) => {
                let (k, v) = (keys.0 as usize, values.map(|values| values.0 as usize));
                self.flush(k);
                v.into_iter().for_each(|v| self.flush(v));
                let args = [self.frame, self.int(k as i64), self.int(v.map_or(-1, |v| v as i64))];
                self.call_checked(runtime::sort as *const () as usize, &args, k);
            }
            LoopStmt::For(local, from, to, body) => {
                if !self.dense_loop(*local, from, to, body) {
                    self.for_loop(*local, from, to, body);
                }
            }
            LoopStmt::While(condition, body) => {
                let (round, after) = (self.b.create_block(), self.b.create_block());
                self.branch(condition, round, after);
                self.b.switch_to_block(round);
                self.round(body);
                self.branch(condition, round, after);
                self.b.seal_block(round);
                self.b.switch_to_block(after);
                self.b.seal_block(after);
            }
            LoopStmt::If(condition, yes, no) => {
                let (on_yes, after) = (self.b.create_block(), self.b.create_block());
                let on_no = if no.is_empty() { after } else { self.b.create_block() };
                self.branch(condition, on_yes, on_no);
                self.b.switch_to_block(on_yes);
                self.b.seal_block(on_yes);
                self.body(yes);
                self.b.ins().jump(after, &[]);
                if !no.is_empty() {
                    self.b.switch_to_block(on_no);
                    self.b.seal_block(on_no);
                    self.body(no);
                    self.b.ins().jump(after, &[]);
                }
                self.b.switch_to_block(after);
                self.b.seal_block(after);
            }
        }
    }

    fn for_loop(&mut self, local: LocalId, from: &LoopExpr, to: &LoopExpr, body: &[LoopStmt]) {
        let (from, to) = (self.one(from), self.one(to));
        self.count(from, to, 1, |t, k| {
            t.define(local, Val::One(k));
            t.round(body);
        });
    }

    /// The body of a loop. Room for what it pushes is made at its start, once per array; a check at every `push` would be most of the code of
    /// a merge of several operands.
    fn round(&mut self, body: &[LoopStmt]) {
        let mut pushes: BTreeMap<ArrayId, i64> = BTreeMap::new();
        let mut others = HashSet::new();
        dense::pushes(body, &mut pushes, &mut others);
        pushes.retain(|array, n| !others.contains(array) && *n <= runtime::LEAST_GROWTH);
        for (array, n) in &pushes {
            self.make_room(*array, *n);
        }
        let outside = std::mem::replace(&mut self.roomy, pushes.into_keys().collect());
        self.body(body);
        self.roomy = outside;
    }

    /// Makes room for `n` more elements, at most [`runtime::LEAST_GROWTH`].
    fn make_room(&mut self, array: ArrayId, n: i64) {
        let k = array.0 as usize;
        let length = self.b.use_var(self.arrays[k].length);
        let at = (k * VIEW_SIZE) as i32 + VIEW_CAPACITY;
        let capacity = self.b.ins().load(I64, MemFlagsData::trusted(), self.views, at);
        let more = self.int(n);
        let wanted = self.b.ins().iadd(length, more);
        let full = self.b.ins().icmp(IntCC::UnsignedGreaterThan, wanted, capacity);
        let (grow, go_on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(grow);
        self.b.ins().brif(full, grow, &[], go_on, &[]);
        self.b.switch_to_block(grow);
        self.b.seal_block(grow);
        self.flush(k);
        let args = [self.frame, self.int(k as i64)];
        self.call_checked(runtime::grow as *const () as usize, &args, k);
        self.reload(k);
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
        self.b.seal_block(go_on);
    }

    /// Emits a loop from `from` while the counter is below `to`.
    fn count(&mut self, from: Value, to: Value, step: i64, body: impl FnOnce(&mut Self, Value)) {
        let (round, after) = (self.b.create_block(), self.b.create_block());
        let k = self.b.append_block_param(round, I64);
        let some = self.b.ins().icmp(IntCC::SignedLessThan, from, to);
        self.b.ins().brif(some, round, &[from.into()], after, &[]);
        self.b.switch_to_block(round);
        body(self, k);
        let step = self.int(step);
        let next = self.b.ins().iadd(k, step);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, next, to);
        self.b.ins().brif(more, round, &[next.into()], after, &[]);
        self.b.seal_block(round);
        self.b.switch_to_block(after);
        self.b.seal_block(after);
    }

    fn push(&mut self, array: ArrayId, value: Val) {
        if !self.roomy.contains(&array) {
            self.make_room(array, 1);
        }
        let k = array.0 as usize;
        let length = self.b.use_var(self.arrays[k].length);
        self.write(array, length, value);
        let one = self.int(1);
        let next = self.b.ins().iadd(length, one);
        self.b.def_var(self.arrays[k].length, next);
    }

    fn resize(&mut self, array: ArrayId, length: &LoopExpr, fill: Scalar) {
        let k = array.0 as usize;
        let wanted = self.one(length);
        let length = self.b.use_var(self.arrays[k].length);
        // A negative length is a large one without its sign.
        let longer = self.b.ins().icmp(IntCC::UnsignedGreaterThan, wanted, length);
        let (grow, after) = (self.b.create_block(), self.b.create_block());
        self.b.def_var(self.arrays[k].length, wanted);
        self.b.ins().brif(longer, grow, &[], after, &[]);
        self.b.switch_to_block(grow);
        self.b.seal_block(grow);
        self.b.def_var(self.arrays[k].length, length);
        self.flush(k);
        let (low, high) = runtime::bits(fill.cast(self.arrays[k].kind.stored()));
        let args = [self.frame, self.int(k as i64), wanted, self.int(low as i64), self.int(high as i64)];
        self.call_checked(runtime::resize as *const () as usize, &args, k);
        self.reload(k);
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        self.b.seal_block(after);
    }

    /// A value as an array stores it. An index that does not fit ends the kernel.
    fn stored(&mut self, array: ArrayId, value: Val) -> Val {
        let k = array.0 as usize;
        match (self.arrays[k].kind, value) {
            (ArrayType::Index(width), Val::One(index)) => {
                let most = self.int(width.max() as i64);
                let wide = self.b.ins().icmp(IntCC::UnsignedGreaterThan, index, most);
                self.fail_if(wide, Status::TOO_WIDE, k, index);
                match width {
                    IndexWidth::U32 => Val::One(self.b.ins().ireduce(I32, index)),
                    IndexWidth::U64 => value,
                }
            }
            _ => value,
        }
    }

    fn check_index(&mut self, array: ArrayId, index: Value) {
        if self.checks == Checks::Bounds {
            let k = array.0 as usize;
            let length = self.b.use_var(self.arrays[k].length);
            let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, length);
            self.fail_if(outside, Status::OUTSIDE, k, index);
        }
    }

    /// The address of an element.
    fn address(&mut self, array: ArrayId, index: Value) -> Value {
        let array = self.arrays[array.0 as usize];
        let base = self.b.use_var(array.data);
        let shift = array.kind.stored().size().trailing_zeros() as i64;
        let offset = match shift {
            0 => index,
            shift => {
                let shift = self.int(shift);
                self.b.ins().ishl(index, shift)
            }
        };
        self.b.ins().iadd(base, offset)
    }

    fn write(&mut self, array: ArrayId, index: Value, value: Val) {
        let (address, flags) = (self.address(array, index), self.arrays[array.0 as usize].flags);
        match value {
            Val::One(value) => {
                self.b.ins().store(flags, value, address, 0);
            }
            Val::Two(re, im) => {
                let part = self.b.func.dfg.value_type(re).bytes() as i32;
                self.b.ins().store(flags, re, address, 0);
                self.b.ins().store(flags, im, address, part);
            }
        }
    }

    fn read(&mut self, array: ArrayId, index: Value) -> Val {
        let (address, Array { flags, kind, .. }) = (self.address(array, index), self.arrays[array.0 as usize]);
        match kind {
            ArrayType::Index(IndexWidth::U32) => Val::One(self.b.ins().uload32(flags, address, 0)),
            ArrayType::Index(IndexWidth::U64) => Val::One(self.b.ins().load(I64, flags, address, 0)),
            ArrayType::Value(dtype) => match part_type(dtype) {
                (part, false) => Val::One(self.b.ins().load(part, flags, address, 0)),
                (part, true) => {
                    let re = self.b.ins().load(part, flags, address, 0);
                    Val::Two(re, self.b.ins().load(part, flags, address, part.bytes() as i32))
                }
            },
        }
    }

    /// Room on the stack for the arguments and the result of a call.
    fn slot(&mut self, bytes: u32) -> cranelift_codegen::ir::StackSlot {
        self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 3))
    }
}
