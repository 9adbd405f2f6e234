//! Code for the loops that [`super::dense`] finds. Every element is read, computed and written as in the scalar loop; what does not fill a
//! vector is left to the scalar loop. Kernels with bounds checks have no vector code.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, F64, F64X2, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::Variable;
use tw_ir::{BinaryOp, DType, UnaryOp};
use tw_sparse::loops::{ArrayId, LocalId, LoopExpr, LoopStmt};

use super::dense::{self, Dots, Lane, Lanes, Loop};
use super::{Checks, Translation, Val};
use crate::micro;

/// Sums of a block of columns that are kept in registers. More than eight are spilled, and the kernel takes 1.2 to 1.9 times as long.
const BLOCK: usize = 8;

/// Addresses and constants of a lane, before the loop that uses them.
#[derive(Clone, Debug)]
enum Ready {
    Target,
    /// The address of element `base + 0`.
    Load(Value, MemFlagsData),
    Splat(Value),
    Unary(UnaryOp, Box<Ready>),
    Binary(BinaryOp, Box<Ready>, Box<Ready>),
}

impl Translation<'_> {
    /// Emits a loop with vectors, if it is one of those that are known.
    pub(super) fn dense_loop(&mut self, local: LocalId, from: &LoopExpr, to: &LoopExpr, body: &[LoopStmt]) -> bool {
        let whole = Loop { local, from, to, body };
        if self.checks == Checks::Bounds {
            return false;
        }
        let alone = || dense::keeps_to_itself(whole, &self.mentions);
        if let Some(dots) = dense::dots(self.kernel, whole).filter(|_| alone()) {
            self.summary.dot_calls += 1;
            self.dots(whole, &dots);
            return true;
        }
        if let Some((prefix, inner, lanes)) = dense::row_nest(self.kernel, whole).filter(|_| alone()) {
            match lanes.scaled_row() {
                Some(_) => self.summary.row_calls += 1,
                None => self.summary.row_loops += 1,
            }
            self.row_nest(whole, prefix, inner, &lanes);
            return true;
        }
        // A base that reads memory must not be computed for a loop without rounds.
        let lanes = dense::lanes(self.kernel, whole).filter(|lanes| dense::is_pure(&lanes.base) && alone());
        if let Some(lanes) = lanes {
            self.summary.vector_loops += 1;
            let (from, to) = (self.one(from), self.one(to));
            let rest = self.columns(&lanes, (from, to), &mut |t, block| {
                let ready = t.ready(&lanes.value);
                let value = t.lane(&ready, block);
                t.b.def_var(block.sum, value);
            });
            self.count(rest, to, 1, |t, k| {
                t.define(local, Val::One(k));
                t.body(body);
            });
            return true;
        }
        false
    }

    /// A row to which every round of a loop over positions adds.
    fn row_nest(&mut self, outer: Loop<'_>, prefix: &[LoopStmt], inner: Loop<'_>, lanes: &Lanes) {
        let (first, last) = (self.one(outer.from), self.one(outer.to));
        let (from, to) = (self.one(inner.from), self.one(inner.to));
        // Without positions or columns, nothing of the row is touched.
        let positions = self.b.ins().icmp(IntCC::SignedLessThan, first, last);
        let columns = self.b.ins().icmp(IntCC::SignedLessThan, from, to);
        let some = self.b.ins().band(positions, columns);
        let (work, after) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(some, work, &[], after, &[]);
        self.b.switch_to_block(work);
        self.b.seal_block(work);
        if let Some((factor, row)) = lanes.scaled_row() {
            self.add_rows(outer, prefix, lanes, (factor, row), [first, last, from, to]);
            self.b.ins().jump(after, &[]);
            self.b.switch_to_block(after);
            self.b.seal_block(after);
            return;
        }
        let rest = self.columns(lanes, (from, to), &mut |t, block| {
            if block.k == 0 {
                // All vectors of a block share one loop over the positions.
                let all = block.all.clone();
                t.count(first, last, 1, |t, p| {
                    t.define(outer.local, Val::One(p));
                    t.body(prefix);
                    let ready = t.ready(&lanes.value);
                    for block in all {
                        let value = t.lane(&ready, &block);
                        t.b.def_var(block.sum, value);
                    }
                });
            }
        });
        let some = self.b.ins().icmp(IntCC::SignedLessThan, rest, to);
        let remainder = self.b.create_block();
        self.b.ins().brif(some, remainder, &[], after, &[]);
        self.b.switch_to_block(remainder);
        self.b.seal_block(remainder);
        self.count(first, last, 1, |t, p| {
            t.define(outer.local, Val::One(p));
            t.body(prefix);
            t.count(rest, to, 1, |t, k| {
                t.define(inner.local, Val::One(k));
                t.body(inner.body);
            });
        });
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        self.b.seal_block(after);
    }

    /// Adds multiples of rows to one row. The addresses and factors of some positions are written down first; then one call adds them all,
    /// with the sums of a block of columns in registers.
    fn add_rows(
        &mut self,
        outer: Loop<'_>,
        prefix: &[LoopStmt],
        lanes: &Lanes,
        (factor, (array, row)): (&LoopExpr, (ArrayId, &LoopExpr)),
        [first, last, from, to]: [Value; 4],
    ) {
        let base = self.one(&lanes.base);
        let base = self.b.ins().iadd(base, from);
        let target = self.address(lanes.target, base);
        let n = self.b.ins().isub(to, from);
        let slot = self.slot((micro::ROWS * size_of::<micro::ScaledRow>()) as u32);
        self.count(first, last, micro::ROWS as i64, |t, p| {
            let list = t.b.ins().stack_addr(I64, slot, 0);
            let width = t.int(micro::ROWS as i64);
            let end = t.b.ins().iadd(p, width);
            let short = t.b.ins().icmp(IntCC::SignedLessThan, last, end);
            let end = t.b.ins().select(short, last, end);
            t.count(p, end, 1, |t, q| {
                t.define(outer.local, Val::One(q));
                t.body(prefix);
                let base = t.one(row);
                let base = t.b.ins().iadd(base, from);
                let (address, factor) = (t.address(array, base), t.one(factor));
                let k = t.b.ins().isub(q, p);
                let shift = t.int(size_of::<micro::ScaledRow>().trailing_zeros() as i64);
                let offset = t.b.ins().ishl(k, shift);
                let place = t.b.ins().iadd(list, offset);
                t.b.ins().store(MemFlagsData::trusted(), address, place, 0);
                t.b.ins().store(MemFlagsData::trusted(), factor, place, 8);
            });
            let count = t.b.ins().isub(end, p);
            t.call(micro::add_rows(), &[n, target, list, count], None);
        });
    }

    /// Emits loops over blocks of columns and then over single vectors. `work` is called for each vector of a block, after all of them are
    /// loaded and before they are stored. Returns the first column that is left.
    fn columns(&mut self, lanes: &Lanes, (from, to): (Value, Value), work: &mut dyn FnMut(&mut Self, &Block)) -> Value {
        let (vector, n_lanes) = match lanes.dtype {
            DType::F32 => (F32X4, 4),
            _ => (F64X2, 2),
        };
        let base = self.one(&lanes.base);
        let target = self.address(lanes.target, base);
        let flags = self.vector_flags(lanes.target);
        let next = self.b.declare_var(I64);
        self.b.def_var(next, from);
        for n_vectors in [BLOCK, 1] {
            let width = self.int((n_vectors * n_lanes) as i64);
            let start = self.b.use_var(next);
            // The last column at which a whole block fits, plus one.
            let one = self.int(1);
            let behind = self.b.ins().isub(to, width);
            let limit = self.b.ins().iadd(behind, one);
            self.count(start, limit, (n_vectors * n_lanes) as i64, |t, k| {
                let shift = t.int(if vector == F32X4 { 2 } else { 3 });
                let bytes = t.b.ins().ishl(k, shift);
                let place = t.b.ins().iadd(target, bytes);
                let sums: Vec<Variable> = (0..n_vectors).map(|_| t.b.declare_var(vector)).collect();
                let all: Vec<Block> = sums
                    .iter()
                    .enumerate()
                    .map(|(k, &sum)| Block { k, sum, bytes, offset: 16 * k as i32, vector, all: Vec::new() })
                    .collect();
                for block in &all {
                    let before = t.b.ins().load(vector, flags, place, block.offset);
                    t.b.def_var(block.sum, before);
                }
                for k in 0..n_vectors {
                    let block = Block { all: all.clone(), ..all[k].clone() };
                    work(t, &block);
                }
                for block in &all {
                    let value = t.b.use_var(block.sum);
                    t.b.ins().store(flags, value, place, block.offset);
                }
                let width = t.int((n_vectors * n_lanes) as i64);
                let after = t.b.ins().iadd(k, width);
                t.b.def_var(next, after);
            });
        }
        self.b.use_var(next)
    }

    /// Vectors are as aligned as their elements.
    fn vector_flags(&self, array: ArrayId) -> MemFlagsData {
        let region = self.arrays[array.0 as usize].flags.alias_region();
        MemFlagsData::new().with_notrap().with_alias_region(region)
    }

    /// Computes what the vectors of a block share.
    fn ready(&mut self, lane: &Lane) -> Ready {
        match lane {
            Lane::Target => Ready::Target,
            Lane::Load(array, base) => {
                let base = self.one(base);
                Ready::Load(self.address(*array, base), self.vector_flags(*array))
            }
            Lane::Splat(value) => Ready::Splat(self.one(value)),
            Lane::Unary(op, a) => Ready::Unary(*op, Box::new(self.ready(a))),
            Lane::Binary(op, a, b) => {
                let a = self.ready(a);
                Ready::Binary(*op, Box::new(a), Box::new(self.ready(b)))
            }
        }
    }

    fn lane(&mut self, lane: &Ready, block: &Block) -> Value {
        match lane {
            Ready::Target => self.b.use_var(block.sum),
            Ready::Load(address, flags) => {
                let place = self.b.ins().iadd(*address, block.bytes);
                self.b.ins().load(block.vector, *flags, place, block.offset)
            }
            Ready::Splat(value) => self.b.ins().splat(block.vector, *value),
            Ready::Unary(op, a) => {
                let a = self.lane(a, block);
                match op {
                    UnaryOp::Neg => self.b.ins().fneg(a),
                    UnaryOp::Abs => self.b.ins().fabs(a),
                    _ => self.b.ins().sqrt(a),
                }
            }
            Ready::Binary(op, a, b) => {
                let (a, b) = (self.lane(a, block), self.lane(b, block));
                match op {
                    BinaryOp::Add => self.b.ins().fadd(a, b),
                    BinaryOp::Sub => self.b.ins().fsub(a, b),
                    BinaryOp::Mul => self.b.ins().fmul(a, b),
                    _ => self.b.ins().fdiv(a, b),
                }
            }
        }
    }

    /// Four dot products at a time, by a function that has wider vectors than Cranelift.
    fn dots(&mut self, outer: Loop<'_>, dots: &Dots<'_>) {
        let (first, last) = (self.one(outer.from), self.one(outer.to));
        let (from, to) = (self.one(dots.from), self.one(dots.to));
        let n = self.b.ins().isub(to, from);
        let base = self.one(&dots.shared.1);
        let base = self.b.ins().iadd(base, from);
        let shared = self.address(dots.shared.0, base);
        // Whole groups of four; none if the loop has no rounds.
        let rounds = self.b.ins().isub(last, first);
        let zero = self.int(0);
        let none = self.b.ins().icmp(IntCC::SignedLessThan, rounds, zero);
        let rounds = self.b.ins().select(none, zero, rounds);
        let mask = self.int(!3);
        let groups = self.b.ins().band(rounds, mask);
        let middle = self.b.ins().iadd(first, groups);
        let slot = self.slot(32);
        let start = self.b.ins().f64const(dots.start);
        self.count(first, middle, 4, |t, p| {
            let place = t.b.ins().stack_addr(I64, slot, 0);
            let mut args = vec![n, start, shared];
            let round = |t: &mut Self, q: i64| {
                let q = t.int(q);
                let at = t.b.ins().iadd(p, q);
                t.define(outer.local, Val::One(at));
                t.body(dots.prefix);
            };
            for q in 0..4 {
                round(t, q);
                let base = t.one(&dots.own.1);
                let base = t.b.ins().iadd(base, from);
                args.push(t.address(dots.own.0, base));
            }
            args.push(place);
            t.call(micro::dot4(), &args, None);
            for q in 0..4 {
                round(t, q);
                let sum = t.b.ins().load(F64, MemFlagsData::trusted(), place, 8 * q as i32);
                t.define(dots.sum, Val::One(sum));
                t.body(dots.suffix);
            }
        });
        self.count(middle, last, 1, |t, p| {
            t.define(outer.local, Val::One(p));
            t.body(outer.body);
        });
    }
}

/// One vector of a block of columns.
#[derive(Clone)]
struct Block {
    k: usize,
    sum: Variable,
    /// The first column of the block, in bytes, and where this vector is behind it.
    bytes: Value,
    offset: i32,
    vector: Type,
    /// All vectors of the block.
    all: Vec<Block>,
}
