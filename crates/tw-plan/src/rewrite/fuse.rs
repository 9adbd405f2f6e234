//! Fusion: an elementwise statement is computed in its reader instead of being stored.
//!
//! Preconditions, per read of a consumer:
//! - the producer is elementwise: no guard, no accumulator, and it writes each element once, at its own variables;
//! - the access stays inside the result of the producer, so no edge rule applies;
//! - no costly work is repeated: the producer is a view (it only moves elements), or it has one reader that visits each element about once, or it is cheap and all its readers together
//!   read fewer bytes if each of them computes it, as with a mask of elements that its readers read anyway;
//! - a contraction stays recognisable: it takes only views that permute axes, or look them up in tables;
//! - no statement uses the value of a position that is looked up in a table: scalar code has no tables.

use std::collections::{HashMap, HashSet};

use tw_ir::contraction::Contraction;
use tw_ir::error::{Error, Result};
use tw_ir::index::{Access, Idx, Term};
use tw_ir::program::{IndexStmt, Node, Op, Program, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarCode, ScalarOp, Slot};
use tw_ir::{DType, Scalar};

use super::dead;
use super::rebuild::Rebuild;
use crate::cost::op_weight;

/// Statements do not grow beyond this many reads or operations: registers and compile time are finite.
const MAX_READS: usize = 16;
const MAX_OPS: usize = 200;

/// A producer cheap enough to compute at several places of one consumer, in additions.
const CHEAP_WORK: u32 = 4;

pub(super) fn run(program: &Program) -> Result<Program> {
    // What was fused into its only reader is no reader any more.
    let fused = dead::run(&fuse(program, &HashSet::new())?)?;
    let repeated = worth_repeating(&fused);
    if repeated.is_empty() { Ok(fused) } else { fuse(&fused, &repeated) }
}

/// The number of operations that read each value; being a result counts as one. An operation that reads a value twice, as a square does, counts once.
fn n_readers(program: &Program) -> HashMap<ValueId, u32> {
    let mut readers = HashMap::new();
    for node in &program.body.nodes {
        for (k, arg) in node.args.iter().enumerate() {
            if !node.args[..k].contains(arg) {
                *readers.entry(*arg).or_default() += 1;
            }
        }
    }
    for value in &program.body.results {
        *readers.entry(*value).or_default() += 1;
    }
    readers
}

/// Cheap values that are best computed in each of their readers, of a program whose statements are fused already.
fn worth_repeating(program: &Program) -> HashSet<ValueId> {
    let mut readers: HashMap<ValueId, Vec<&Node>> = HashMap::new();
    for node in &program.body.nodes {
        for (k, arg) in node.args.iter().enumerate() {
            if !node.args[..k].contains(arg) {
                readers.entry(*arg).or_default().push(node);
            }
        }
    }
    let is_worth_it = |node: &Node, stmt: &IndexStmt| {
        let &[value] = node.results.as_slice() else { return false };
        let readers = readers.get(&value).map_or(&[][..], Vec::as_slice);
        let producer = Producer {
            stmt: stmt.clone(),
            args: node.args.clone(),
            body: 0,
            n_readers: readers.len() as u32,
            is_cut: false,
            is_repeated: true,
        };
        if readers.len() < 2 || producer.work() > CHEAP_WORK || program.body.results.contains(&value) {
            return false;
        }
        // Broadcast operands are small and count nothing.
        let bytes_of = |read: &Access| {
            let ty = program.ty(node.args[read.operand as usize]);
            let n_elements = ty.known_bytes().unwrap_or(0) / ty.dtype.size().max(1);
            if n_elements.saturating_mul(2) < producer.n_elements() { 0 } else { ty.dtype.size() }
        };
        let own: u64 = stmt.reads.iter().map(bytes_of).sum();
        let size = program.ty(value).dtype.size();
        let mut more = 0;
        let mut n_free = 0;
        for reader in readers {
            let Op::Index(reading) = &reader.op else { return false };
            let accesses =
                || (0..reading.reads.len()).filter(|&k| reader.args[reading.reads[k].operand as usize] == value);
            let mut fused = Fused { stmt: reading.clone(), args: reader.args.clone() };
            if accesses().count() != 1 || !accesses().all(|k| fused.may_inline(k, &producer)) {
                return false;
            }
            let n_before = fused.stmt.reads.len() - 1;
            let Some(k) = accesses().next() else { return false };
            if fused.inline(k, &producer).is_err() {
                return false;
            }
            let bytes: u64 = (n_before..fused.stmt.reads.len())
                .filter(|&k| !fused.stmt.reads[..n_before].contains(&fused.stmt.reads[k]))
                .map(|k| bytes_of(&stmt.reads[k - n_before]))
                .sum();
            more += bytes;
            n_free += u64::from(bytes == 0);
        }
        // Its operands live as long as its readers need them; that they do so anyway is a fair guess if most of those read them.
        n_free * 2 >= readers.len() as u64 && more <= own + size + size * readers.len() as u64
    };
    let statements = program.body.nodes.iter().filter_map(|node| match &node.op {
        Op::Index(stmt) if stmt.is_elementwise() => Some((node, stmt)),
        _ => None,
    });
    statements.filter(|(node, stmt)| is_worth_it(node, stmt)).map(|(node, _)| node.results[0]).collect()
}

fn fuse(program: &Program, repeated: &HashSet<ValueId>) -> Result<Program> {
    let readers = n_readers(program);
    let mut rebuild = Rebuild::new(program);
    // Elementwise statements already rebuilt: by result, with the operands and which body it is.
    let mut producers: HashMap<ValueId, Producer> = HashMap::new();
    for node in &program.body.nodes {
        let Op::Index(stmt) = &node.op else {
            let results = rebuild.copy(node)?;
            if let (Op::Retile { .. }, [arg], [result]) = (&node.op, node.args.as_slice(), results.as_slice())
                && let Some(producer) = producers.get(&rebuild.mapped(*arg)?)
                && producer.n_readers == 1
            {
                let n_readers = readers.get(&node.results[0]).copied().unwrap_or(0);
                producers.insert(*result, Producer { n_readers, is_cut: true, ..producer.clone() });
            }
            continue;
        };
        // Equal reads are one before anything is inlined, so that it is inlined once.
        let mut fused = Fused { stmt: stmt.clone(), args: rebuild.mapped_args(node)? }.tidy();
        while fused.inline_one(&producers)? {}
        let fused = fused.tidy();
        let results = rebuild.replace(node, Op::Index(fused.stmt.clone()), &fused.args)?;
        if fused.stmt.is_elementwise() {
            for (body, (&old, &new)) in node.results.iter().zip(&results).enumerate() {
                let n_readers = readers.get(&old).copied().unwrap_or(0);
                let (stmt, args) = (fused.stmt.clone(), fused.args.clone());
                let is_repeated = repeated.contains(&old);
                producers.insert(new, Producer { stmt, args, body, n_readers, is_cut: false, is_repeated });
            }
        }
    }
    rebuild.finish()
}

#[derive(Clone)]
struct Producer {
    stmt: IndexStmt,
    args: Vec<ValueId>,
    body: usize,
    n_readers: u32,
    /// True if it was cut by a retile, which is lost where it is inlined: only for readers that cut their variables themselves.
    is_cut: bool,
    /// True if each of its readers computes it.
    is_repeated: bool,
}

impl Producer {
    /// True if the code uses the value of a variable.
    fn uses_position(&self, var: usize) -> bool {
        self.stmt.code.uses_param((self.stmt.reads.len() + var) as u32)
    }

    /// Additions that an element takes the time of.
    fn work(&self) -> u32 {
        self.stmt.code.ops().iter().map(op_weight).sum()
    }

    /// Only moves elements, or makes a constant.
    fn is_view(&self) -> bool {
        self.work() == 0
    }

    fn n_elements(&self) -> u64 {
        self.stmt.vars.iter().fold(1, |n, v| n.saturating_mul(v.extent.known().unwrap_or(0)))
    }
}

/// A statement with its operands while others are put into it.
pub(super) struct Fused {
    stmt: IndexStmt,
    args: Vec<ValueId>,
}

impl Fused {
    pub(super) fn new(stmt: IndexStmt, args: Vec<ValueId>) -> Fused {
        Fused { stmt, args }
    }

    pub(super) fn into_parts(self) -> (IndexStmt, Vec<ValueId>) {
        (self.stmt, self.args)
    }

    fn inline_one(&mut self, producers: &HashMap<ValueId, Producer>) -> Result<bool> {
        for k in 0..self.stmt.reads.len() {
            let value = self.args[self.stmt.reads[k].operand as usize];
            if let Some(producer) = producers.get(&value)
                && self.may_inline(k, producer)
            {
                self.inline(k, producer)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn may_inline(&self, k: usize, producer: &Producer) -> bool {
        let access = &self.stmt.reads[k];
        let Some(ranges) = self.stmt.var_ranges() else { return false };
        let inside = access.stays_inside(&producer.stmt.out.shape, &ranges);
        let small = self.stmt.reads.len() + producer.stmt.reads.len() <= MAX_READS
            && self.stmt.code.ops().len() + producer.stmt.code.ops().len() <= MAX_OPS;
        let looks_up = access.idx.iter().any(Idx::has_table);
        let asks_table = looks_up && (0..producer.stmt.vars.len()).any(|var| producer.uses_position(var));
        if !inside || !small || asks_table || (producer.is_cut && !looks_up) {
            return false;
        }
        if self.is_contraction() {
            return producer.is_view() && producer.stmt.reads.iter().all(|read| permutes(read, &producer.stmt, access));
        }
        if producer.is_view() {
            return true;
        }
        let same_value = self.stmt.reads.iter().filter(|read| read.operand == access.operand).count();
        let n_points = self.stmt.vars.iter().fold(1u64, |n, v| n.saturating_mul(v.extent.known().unwrap_or(0)));
        let once = n_points <= producer.n_elements();
        let only_reader = producer.n_readers == 1 || producer.is_repeated;
        only_reader && once && (same_value == 1 || producer.work() <= CHEAP_WORK)
    }

    /// True for accesses that contraction kernels accept.
    fn is_contraction(&self) -> bool {
        Contraction::of_statement(&self.stmt).is_some_and(|contraction| contraction.reuses_operands())
    }

    /// Replaces read `k` by the code and reads of its producer.
    fn inline(&mut self, k: usize, producer: &Producer) -> Result<()> {
        let ranges = self.stmt.var_ranges().unwrap_or_default();
        let access = self.stmt.reads[k].clone();
        // The producer's variables, as expressions in the consumer's.
        let mut by = vec![Idx::constant(0); producer.stmt.vars.len()];
        for (out, idx) in producer.stmt.out.idx.iter().zip(&access.idx) {
            if let Some(var) = out.as_var() {
                by[var.0 as usize] = idx.clone();
            }
        }
        let mut reads: Vec<Access> = self.stmt.reads.clone();
        reads.remove(k);
        let n_kept = reads.len();
        for read in &producer.stmt.reads {
            let value = producer.args[read.operand as usize];
            let operand = self.args.iter().position(|&arg| arg == value).unwrap_or_else(|| {
                self.args.push(value);
                self.args.len() - 1
            });
            let idx = read.idx.iter().map(|idx| idx.substitute(&by).simplify(&ranges)).collect();
            reads.push(Access { operand: operand as u32, idx, edge: read.edge });
        }

        let old = &self.stmt.code;
        let n_vars = self.stmt.vars.len();
        let mut params: Vec<DType> = (0..self.stmt.reads.len()).filter(|&j| j != k).map(|j| old.params()[j]).collect();
        params.extend_from_slice(&producer.stmt.code.params()[..producer.stmt.reads.len()]);
        params.extend(std::iter::repeat_n(DType::I64, n_vars));
        let mut code = ScalarCode::new(params);
        let first_var = reads.len() as u32;
        let mut producer_args: Vec<Slot> =
            (0..producer.stmt.reads.len()).map(|j| code.param((n_kept + j) as u32)).collect();
        for (var, idx) in by.iter().enumerate() {
            producer_args.push(match producer.uses_position(var) {
                true => idx_code(&mut code, idx, first_var)?,
                false => code.constant(Scalar::I64(0)),
            });
        }
        let inlined = code.inline(&producer.stmt.code, &producer_args)?[producer.body];
        let mut args: Vec<Slot> = Vec::new();
        for j in 0..self.stmt.reads.len() {
            args.push(match j.cmp(&k) {
                std::cmp::Ordering::Less => code.param(j as u32),
                std::cmp::Ordering::Equal => inlined,
                std::cmp::Ordering::Greater => code.param(j as u32 - 1),
            });
        }
        args.extend((0..n_vars as u32).map(|v| code.param(first_var + v)));
        let results = code.inline(old, &args)?;
        code.set_results(results);
        self.stmt.code = code.without_dead_ops();
        self.stmt.reads = reads;
        Ok(())
    }

    /// Merges equal reads and drops unused ones and unused operands.
    pub(super) fn tidy(self) -> Fused {
        let Fused { mut stmt, args } = self;
        // A value that is an operand twice is read as one.
        for read in &mut stmt.reads {
            let value = args[read.operand as usize];
            read.operand = args.iter().position(|&arg| arg == value).unwrap_or(0) as u32;
        }
        let code = stmt.code.without_dead_ops();
        let mut kept: Vec<Access> = Vec::new();
        let mut params: Vec<DType> = Vec::new();
        let mut place: Vec<Option<usize>> = Vec::new();
        for (k, read) in stmt.reads.iter().enumerate() {
            place.push(match kept.iter().position(|other| other == read) {
                _ if !code.uses_param(k as u32) => None,
                Some(same) => Some(same),
                None => {
                    kept.push(read.clone());
                    params.push(code.params()[k]);
                    Some(kept.len() - 1)
                }
            });
        }
        let n_vars = stmt.vars.len();
        params.extend(std::iter::repeat_n(DType::I64, n_vars));
        let mut tidy = ScalarCode::new(params);
        let first_var = kept.len();
        let mut slots: Vec<Slot> = Vec::new();
        for op in code.ops() {
            let slot = match op {
                ScalarOp::Param(k) if (*k as usize) < place.len() => tidy.param(place[*k as usize].unwrap_or(0) as u32),
                ScalarOp::Param(k) => tidy.param((first_var + *k as usize - place.len()) as u32),
                op => match tidy.push(op.map(|slot| slots[slot.0 as usize])) {
                    Ok(slot) => slot,
                    // The types were right before; renaming parameters does not change them.
                    Err(_) => return Fused { stmt, args },
                },
            };
            slots.push(slot);
        }
        tidy.set_results(code.results().iter().map(|slot| slots[slot.0 as usize]).collect());
        let mut operands: Vec<ValueId> = Vec::new();
        for read in &mut kept {
            let value = args[read.operand as usize];
            let position = operands.iter().position(|&v| v == value).unwrap_or_else(|| {
                operands.push(value);
                operands.len() - 1
            });
            read.operand = position as u32;
        }
        stmt.reads = kept;
        stmt.code = tidy;
        Fused { stmt, args: operands }
    }
}

/// True if reading through the producer's access is again one distinct variable per axis. Axes that are looked up in a table do not matter: their
/// variables have one value in every task.
fn permutes(read: &Access, producer: &IndexStmt, access: &Access) -> bool {
    let mut by = vec![Idx::constant(0); producer.vars.len()];
    for (out, idx) in producer.out.idx.iter().zip(&access.idx) {
        if let Some(var) = out.as_var() {
            by[var.0 as usize] = idx.clone();
        }
    }
    let read = read.idx.iter().map(|idx| idx.substitute(&by)).filter(|idx| !idx.has_table());
    let vars: Vec<_> = read.map(|idx| idx.as_var()).collect();
    (0..vars.len()).all(|k| vars[k].is_some() && !vars[..k].contains(&vars[k]))
}

/// An index expression as integer arithmetic on the variables, which are parameters from `first_var` on.
fn idx_code(code: &mut ScalarCode, idx: &Idx, first_var: u32) -> Result<Slot> {
    let mut sum: Option<Slot> = None;
    for (term, coefficient) in idx.terms() {
        let value = match term {
            Term::Var(var) => code.param(first_var + var.0),
            Term::Div(inner, n) | Term::Mod(inner, n) => {
                let inner = idx_code(code, inner, first_var)?;
                let n = code.constant(Scalar::I64(*n));
                let op = if matches!(term, Term::Div(..)) { BinaryOp::FloorDiv } else { BinaryOp::Mod };
                code.binary(op, inner, n)?
            }
            Term::Table(..) => return Err(Error::internal("a table in scalar code")),
        };
        let value = match coefficient {
            1 => value,
            c => {
                let c = code.constant(Scalar::I64(*c));
                code.binary(BinaryOp::Mul, value, c)?
            }
        };
        sum = Some(match sum {
            None => value,
            Some(sum) => code.binary(BinaryOp::Add, sum, value)?,
        });
    }
    match (sum, idx.offset()) {
        (None, offset) => Ok(code.constant(Scalar::I64(offset))),
        (Some(sum), 0) => Ok(sum),
        (Some(sum), offset) => {
            let offset = code.constant(Scalar::I64(offset));
            code.binary(BinaryOp::Add, sum, offset)
        }
    }
}
