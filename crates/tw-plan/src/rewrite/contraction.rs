//! Contraction order: a product of many operands is summed pair by pair, in the order that takes the fewest operations.
//!
//! Preconditions: no guard, plain accesses that stay inside their operands, a product tree that uses each read once, and an accumulator that distributes over the product
//! ((+, x), (min, +) and (max, +) of floats, (or, and)). Sums of floats are reassociated, as
//! everywhere. Exact by dynamic programming over subsets for few operands, greedy beyond.

use tw_ir::accum::{Accum, OnEmpty};
use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, Node, Op, Output, Program, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarCode};
use tw_ir::shape::Extent;
use tw_ir::{DType, Scalar};

use super::rebuild::Rebuild;

/// Operands up to which the order is exact: 3^12 splits are looked at.
const EXACT_LIMIT: usize = 12;

pub(super) fn run(program: &Program) -> Result<Program> {
    let mut rebuild = Rebuild::new(program);
    for node in &program.body.nodes {
        match &node.op {
            Op::Index(stmt) => match Contraction::recognise(stmt).filter(|_| stays_inside(program, node, stmt)) {
                Some(contraction) => contraction.rewrite(&mut rebuild, node)?,
                None => {
                    rebuild.copy(node)?;
                }
            },
            _ => {
                rebuild.copy(node)?;
            }
        }
    }
    rebuild.finish()
}

/// True if no read leaves its operand, so that edge rules do not matter.
fn stays_inside(program: &Program, node: &Node, stmt: &IndexStmt) -> bool {
    let Some(ranges) = stmt.var_ranges() else { return false };
    stmt.reads.iter().all(|read| {
        let shape = &program.ty(node.args[read.operand as usize]).shape;
        read.idx.iter().zip(shape).all(|(idx, extent)| {
            let (lo, hi) = idx.interval(&ranges);
            lo >= 0 && extent.known().is_some_and(|n| hi < n as i64)
        })
    })
}

/// Sets of variables as bits.
type Vars = u64;

struct Contraction<'a> {
    stmt: &'a IndexStmt,
    product: BinaryOp,
    aggregate: BinaryOp,
    dtype: DType,
    identity: Scalar,
    /// Variables of every read.
    operands: Vec<Vars>,
    /// Variables of the output.
    kept: Vars,
    extents: Vec<f64>,
}

/// The order as a tree over the reads.
enum Tree {
    Leaf(usize),
    Pair(Box<Tree>, Box<Tree>),
}

fn distributes(aggregate: BinaryOp, product: BinaryOp, dtype: DType) -> bool {
    use BinaryOp::*;
    match (aggregate, product) {
        (Add, Mul) => true,
        // Integers wrap, and a wrapped sum is not monotone: only floats keep their order under addition.
        (Min | Max, Add) => dtype.is_float(),
        (Or, And) => dtype == DType::Bool,
        _ => false,
    }
}

impl<'a> Contraction<'a> {
    fn recognise(stmt: &'a IndexStmt) -> Option<Contraction<'a>> {
        let accum = stmt.accum.as_ref()?;
        let found = tw_ir::contraction::Contraction::of_statement(stmt)?;
        let (aggregate, dtype, product) = (found.aggregate, found.dtype, found.product?);
        if stmt.reads.len() < 3 || stmt.vars.len() > 64 || !stmt.out_is_plain() {
            return None;
        }
        if !distributes(aggregate, product, dtype) {
            return None;
        }
        let extents: Vec<f64> =
            stmt.vars.iter().map(|v| v.extent.known().filter(|&n| n > 0).map(|n| n as f64)).collect::<Option<_>>()?;
        let set_of = |vars: &Vec<Var>| -> Vars { vars.iter().fold(0, |set, v| set | 1 << v.0) };
        let operands: Vec<Vars> = found.reads.iter().map(set_of).collect();
        let kept = set_of(&found.out);
        let used = operands.iter().fold(0, |set, vars| set | vars);
        let all = if stmt.vars.len() == 64 { Vars::MAX } else { (1 << stmt.vars.len()) - 1 };
        if used != all {
            return None;
        }
        let identity = accum.identity[0];
        Some(Contraction { stmt, product, aggregate, dtype, identity, operands, kept, extents })
    }

    fn size(&self, vars: Vars) -> f64 {
        (0..self.extents.len()).filter(|v| vars >> v & 1 == 1).map(|v| self.extents[v]).product()
    }

    /// What is left of the reads in a subset once everything private to them is summed.
    fn left(&self, inside: &dyn Fn(usize) -> bool) -> Vars {
        let (mut mine, mut others) = (0, self.kept);
        for (k, vars) in self.operands.iter().enumerate() {
            if inside(k) { mine |= vars } else { others |= vars }
        }
        mine & others
    }

    fn order(&self) -> (Tree, f64) {
        if self.operands.len() <= EXACT_LIMIT { self.exact() } else { self.greedy() }
    }

    fn exact(&self) -> (Tree, f64) {
        let n = self.operands.len();
        let full = (1usize << n) - 1;
        let left: Vec<Vars> = (0..=full).map(|set| self.left(&|k| set >> k & 1 == 1)).collect();
        let mut cost = vec![f64::INFINITY; full + 1];
        let mut split = vec![0usize; full + 1];
        for set in 1..=full {
            if set.count_ones() == 1 {
                cost[set] = 0.0;
                continue;
            }
            let lowest = set & set.wrapping_neg();
            // Every split once: the half that holds the lowest operand.
            let mut part = (set - 1) & set;
            while part > 0 {
                if part & lowest != 0 {
                    let other = set ^ part;
                    let total = cost[part] + cost[other] + self.size(left[part] | left[other]);
                    if total < cost[set] {
                        (cost[set], split[set]) = (total, part);
                    }
                }
                part = (part - 1) & set;
            }
        }
        (tree_of(full, &split), cost[full])
    }

    /// Repeatedly joins the pair whose result grows least over what it replaces.
    fn greedy(&self) -> (Tree, f64) {
        let mut terms: Vec<(Tree, Vec<usize>, Vars)> =
            (0..self.operands.len()).map(|k| (Tree::Leaf(k), vec![k], self.left(&|j| j == k))).collect();
        let mut total = 0.0;
        while terms.len() > 1 {
            let mut uses = vec![0u32; self.extents.len()];
            for (_, _, vars) in &terms {
                (0..uses.len()).filter(|v| vars >> v & 1 == 1).for_each(|v| uses[v] += 1);
            }
            let after = |a: Vars, b: Vars| -> Vars {
                let both = a & b;
                let gone = (0..uses.len())
                    .filter(|&v| (a | b) >> v & 1 == 1 && self.kept >> v & 1 == 0)
                    .filter(|&v| uses[v] == 1 + (both >> v & 1) as u32)
                    .fold(0, |set, v| set | 1 << v);
                (a | b) & !gone
            };
            let mut best = (f64::INFINITY, 0, 1);
            for i in 0..terms.len() {
                for j in i + 1..terms.len() {
                    let (a, b) = (terms[i].2, terms[j].2);
                    let growth = self.size(after(a, b)) - self.size(a) - self.size(b);
                    if growth < best.0 {
                        best = (growth, i, j);
                    }
                }
            }
            let (_, i, j) = best;
            let right = terms.remove(j);
            let left = terms.remove(i);
            total += self.size(left.2 | right.2);
            let vars = after(left.2, right.2);
            let members = [left.1, right.1].concat();
            terms.push((Tree::Pair(Box::new(left.0), Box::new(right.0)), members, vars));
        }
        match terms.pop() {
            Some((tree, _, _)) => (tree, total),
            None => (Tree::Leaf(0), total),
        }
    }

    fn rewrite(&self, rebuild: &mut Rebuild<'_>, node: &Node) -> Result<()> {
        let (tree, cost) = self.order();
        let all = self.operands.iter().fold(0, |set, vars| set | vars);
        if cost >= self.size(all) * (self.operands.len() - 1) as f64 {
            rebuild.copy(node)?;
            return Ok(());
        }
        let args = rebuild.mapped_args(node)?;
        let Tree::Pair(left, right) = &tree else {
            rebuild.copy(node)?;
            return Ok(());
        };
        let left = self.emit(rebuild, node, &args, left)?;
        let right = self.emit(rebuild, node, &args, right)?;
        let (op, operands) = self.pair(&[left, right], &self.stmt.out.idx);
        rebuild.replace(node, op, &operands)?;
        Ok(())
    }

    /// Emits a subtree and returns its value with its index map.
    fn emit(&self, rebuild: &mut Rebuild<'_>, node: &Node, args: &[ValueId], tree: &Tree) -> Result<Operand> {
        match tree {
            Tree::Leaf(k) => {
                let read = &self.stmt.reads[*k];
                let leaf = Operand { value: args[read.operand as usize], idx: read.idx.clone(), members: vec![*k] };
                let left = self.left(&|j| j == *k);
                if left == self.operands[*k] {
                    return Ok(leaf);
                }
                self.reduce(rebuild, node, vec![leaf], left)
            }
            Tree::Pair(left, right) => {
                let left = self.emit(rebuild, node, args, left)?;
                let right = self.emit(rebuild, node, args, right)?;
                let members = [left.members.clone(), right.members.clone()].concat();
                let vars = self.left(&|k| members.contains(&k));
                self.reduce(rebuild, node, vec![left, right], vars)
            }
        }
    }

    fn reduce(&self, rebuild: &mut Rebuild<'_>, node: &Node, operands: Vec<Operand>, left: Vars) -> Result<Operand> {
        let idx: Vec<Idx> =
            (0..self.extents.len() as u32).filter(|v| left >> v & 1 == 1).map(|v| Idx::var(Var(v))).collect();
        let members = operands.iter().flat_map(|o| o.members.clone()).collect();
        let (op, values) = self.pair(&operands, &idx);
        let value = rebuild.push(op, &values, &node.span)?;
        Ok(Operand { value, idx, members })
    }

    /// The statement that multiplies one or two operands and sums what the output does not keep.
    fn pair(&self, operands: &[Operand], out: &[Idx]) -> (Op, Vec<ValueId>) {
        let used: Vec<u32> = (0..self.extents.len() as u32)
            .filter(|&v| operands.iter().flat_map(|o| &o.idx).chain(out).any(|idx| idx.uses(Var(v))))
            .collect();
        let is_out = |v: u32| out.iter().any(|idx| idx.uses(Var(v)));
        let ordered: Vec<u32> =
            used.iter().copied().filter(|&v| is_out(v)).chain(used.iter().copied().filter(|&v| !is_out(v))).collect();
        let mut renamed = vec![Idx::constant(0); self.extents.len()];
        for (new, &old) in ordered.iter().enumerate() {
            renamed[old as usize] = Idx::var(Var(new as u32));
        }
        let rename = |idx: &[Idx]| -> Vec<Idx> { idx.iter().map(|idx| idx.substitute(&renamed)).collect() };

        let mut values: Vec<ValueId> = Vec::new();
        let mut reads = Vec::new();
        for operand in operands {
            let position = values.iter().position(|&v| v == operand.value).unwrap_or_else(|| {
                values.push(operand.value);
                values.len() - 1
            });
            reads.push(Access { operand: position as u32, idx: rename(&operand.idx), edge: Edge::Error });
        }
        let params = std::iter::repeat_n(self.dtype, reads.len())
            .chain(std::iter::repeat_n(DType::I64, ordered.len()))
            .collect();
        let mut code = ScalarCode::new(params);
        let first = code.param(0);
        let body = match reads.len() {
            1 => first,
            _ => {
                let second = code.param(1);
                code.binary(self.product, first, second).unwrap_or(first)
            }
        };
        code.set_results(vec![body]);
        let reduces = ordered.iter().any(|&v| !is_out(v));
        let accum = reduces.then(|| Accum::simple(self.aggregate, self.dtype, self.identity, OnEmpty::Identity));
        let shape: Vec<Extent> = out
            .iter()
            .map(|idx| idx.as_var().map_or(Extent::Known(1), |v| self.stmt.vars[v.0 as usize].extent))
            .collect();
        let stmt = IndexStmt {
            vars: ordered.iter().map(|&v| self.stmt.vars[v as usize].clone()).collect(),
            reads,
            code,
            has_guard: false,
            out: Output {
                idx: rename(out),
                edge: Edge::Error,
                shape,
                fill: if reduces { Vec::new() } else { vec![self.dtype.zero()] },
            },
            accum,
        };
        (Op::Index(stmt), values)
    }
}

/// An operand of a pair: a value, the variables it is read at, and the reads that went into it.
struct Operand {
    value: ValueId,
    idx: Vec<Idx>,
    members: Vec<usize>,
}

fn tree_of(set: usize, split: &[usize]) -> Tree {
    if set.count_ones() == 1 {
        return Tree::Leaf(set.trailing_zeros() as usize);
    }
    Tree::Pair(Box::new(tree_of(split[set], split)), Box::new(tree_of(set ^ split[set], split)))
}
