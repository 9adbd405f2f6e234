//! Contraction order: a product of many operands is summed pair by pair, in the order with the fewest operations.
//!
//! Preconditions: no guard; plain accesses that stay inside their operands; a product tree that uses each read once; and an accumulator that distributes over the product
//! ((+, x), (min, +) and (max, +) of floats, (or, and)). Sums of floats are reassociated. The order is fixed per plan, so results are the same on every run, but an
//! overflow or infinity may appear at another place than in the order written. [`tw_build::contraction_order`] finds the order.

use std::collections::BTreeMap;

use tw_ir::accum::{Accum, OnEmpty};
use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, Node, Op, Output, Program, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarCode};
use tw_ir::shape::Extent;
use tw_ir::{DType, Scalar};

use super::rebuild::Rebuild;
use tw_build::contraction_order::{ContractionOrder, Network};

/// Orders that are kept for each product, and how many more operations than the best they may take.
const ORDERS: usize = 4;
const NEARLY: f64 = 1.1;

/// The best few orders of every product of a program that is multiplied in pairs, by the number of its node.
pub(crate) fn orders(program: &Program) -> BTreeMap<usize, Vec<ContractionOrder>> {
    let nodes = program.body.nodes.iter().enumerate();
    nodes.filter_map(|(number, node)| Some((number, Contraction::of(program, node)?.orders()?))).collect()
}

/// Multiplies every product in the order that is chosen for it: the best, unless `choice` has another number for it.
pub(crate) fn run(
    program: &Program,
    orders: &BTreeMap<usize, Vec<ContractionOrder>>,
    choice: &[usize],
) -> Result<Program> {
    let mut rebuild = Rebuild::new(program);
    let mut choice = choice.iter();
    for (number, node) in program.body.nodes.iter().enumerate() {
        let found = orders.get(&number).and_then(|orders| Some((orders, Contraction::of(program, node)?)));
        match found {
            Some((orders, contraction)) => {
                let chosen = choice.next().copied().unwrap_or(0).min(orders.len() - 1);
                contraction.emit(&mut rebuild, node, &orders[chosen])?;
            }
            None => {
                rebuild.copy(node)?;
            }
        }
    }
    rebuild.finish()
}

/// True if no read leaves its operand, so that edge rules do not matter.
fn stays_inside(program: &Program, node: &Node, stmt: &IndexStmt) -> bool {
    let Some(ranges) = stmt.var_ranges() else { return false };
    stmt.reads.iter().all(|read| read.stays_inside(&program.ty(node.args[read.operand as usize]).shape, &ranges))
}

struct Contraction<'a> {
    stmt: &'a IndexStmt,
    product: BinaryOp,
    aggregate: BinaryOp,
    dtype: DType,
    identity: Scalar,
    /// Variables of every read, by axis.
    operands: Vec<Vec<u32>>,
    /// Variables of the output.
    kept: Vec<u32>,
    extents: Vec<f64>,
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
    fn of(program: &Program, node: &'a Node) -> Option<Contraction<'a>> {
        let Op::Index(stmt) = &node.op else { return None };
        Contraction::recognise(stmt).filter(|_| stays_inside(program, node, stmt))
    }

    fn recognise(stmt: &'a IndexStmt) -> Option<Contraction<'a>> {
        let accum = stmt.accum.as_ref()?;
        let found = tw_ir::contraction::Contraction::of_statement(stmt)?;
        let (aggregate, dtype, product) = (found.aggregate, found.dtype, found.product?);
        if stmt.reads.len() < 3 || !stmt.out_is_plain() || !distributes(aggregate, product, dtype) {
            return None;
        }
        let extents: Vec<f64> =
            stmt.vars.iter().map(|v| v.extent.known().filter(|&n| n > 0).map(|n| n as f64)).collect::<Option<_>>()?;
        let numbers = |vars: &Vec<Var>| -> Vec<u32> { vars.iter().map(|v| v.0).collect() };
        let operands: Vec<Vec<u32>> = found.reads.iter().map(numbers).collect();
        let mut unused = vec![true; extents.len()];
        operands.iter().flatten().for_each(|&v| unused[v as usize] = false);
        if unused.contains(&true) {
            return None;
        }
        let kept = numbers(&found.out);
        let identity = accum.identity[0];
        Some(Contraction { stmt, product, aggregate, dtype, identity, operands, kept, extents })
    }

    /// The best few orders, if they take fewer operations than all at once.
    fn orders(&self) -> Option<Vec<ContractionOrder>> {
        let mut orders = Network::new(&self.operands, &self.kept, &self.extents).orders(ORDERS);
        let best = orders.first()?.operations;
        orders.retain(|order| order.operations <= NEARLY * best);
        // All at once, every point takes as many operations as there are operands.
        let at_once = self.extents.iter().product::<f64>() * self.operands.len() as f64;
        (best < at_once).then_some(orders)
    }

    /// Emits the pairs. An index that no other operand needs is summed as early as possible.
    fn emit(&self, rebuild: &mut Rebuild<'_>, node: &Node, order: &ContractionOrder) -> Result<()> {
        let args = rebuild.mapped_args(node)?;
        let mut uses = vec![0usize; self.extents.len()];
        self.kept.iter().for_each(|&v| uses[v as usize] += 1);
        let reads = self.operands.iter().zip(&self.stmt.reads);
        let mut terms: Vec<Operand> =
            reads.map(|(vars, read)| Operand { value: args[read.operand as usize], vars: vars.clone() }).collect();
        for term in &terms {
            term.distinct().iter().for_each(|&v| uses[v as usize] += 1);
        }
        for term in &mut terms {
            let is_needed = |v: &u32| uses[*v as usize] > 1 || self.extents[*v as usize] == 1.0;
            let needed: Vec<u32> = term.distinct().into_iter().filter(is_needed).collect();
            if needed.len() < term.distinct().len() {
                *term = self.reduce(rebuild, node, &[term], needed)?;
            }
        }
        let (last, pairs) = order.pairs.split_last().expect("three operands or more make pairs");
        for &(a, b) in pairs {
            let pair = [&terms[a], &terms[b]];
            let both = [terms[a].distinct(), terms[b].distinct()].concat();
            both.iter().for_each(|&v| uses[v as usize] -= 1);
            // Orders ignore axes of extent 1, which would accumulate: only the last operand with a kept one has it.
            let is_needed = |v: &u32| match (uses[*v as usize], self.extents[*v as usize] == 1.0) {
                (others, true) => others == 1 && self.kept.contains(v),
                (others, false) => others > 0,
            };
            let mut needed: Vec<u32> = both.into_iter().filter(is_needed).collect();
            needed.sort_unstable();
            needed.dedup();
            needed.iter().for_each(|&v| uses[v as usize] += 1);
            let made = self.reduce(rebuild, node, &pair, needed)?;
            terms.push(made);
        }
        let (op, operands) = self.pair(&[&terms[last.0], &terms[last.1]], &self.kept);
        rebuild.replace(node, op, &operands)?;
        Ok(())
    }

    fn reduce(&self, rebuild: &mut Rebuild<'_>, node: &Node, operands: &[&Operand], vars: Vec<u32>) -> Result<Operand> {
        let (op, values) = self.pair(operands, &vars);
        let value = rebuild.push(op, &values, &node.span)?;
        Ok(Operand { value, vars })
    }

    /// The statement that multiplies one or two operands and sums the indices that the output does not have.
    fn pair(&self, operands: &[&Operand], out: &[u32]) -> (Op, Vec<ValueId>) {
        let mut ordered: Vec<u32> = operands.iter().flat_map(|operand| operand.vars.iter().copied()).collect();
        ordered.sort_unstable();
        ordered.dedup();
        // Variables of the output first.
        ordered.sort_by_key(|v| !out.contains(v));
        let number = |v: &u32| ordered.iter().position(|other| other == v).unwrap_or_default() as u32;
        let rename = |vars: &[u32]| -> Vec<Idx> { vars.iter().map(|v| Idx::var(Var(number(v)))).collect() };

        let mut values: Vec<ValueId> = Vec::new();
        let mut reads = Vec::new();
        for operand in operands {
            let position = values.iter().position(|&v| v == operand.value).unwrap_or_else(|| {
                values.push(operand.value);
                values.len() - 1
            });
            reads.push(Access { operand: position as u32, idx: rename(&operand.vars), edge: Edge::Error });
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
        let reduces = ordered.iter().any(|v| !out.contains(v));
        let accum = reduces.then(|| Accum::simple(self.aggregate, self.dtype, self.identity, OnEmpty::Identity));
        let shape: Vec<Extent> = out.iter().map(|&v| self.stmt.vars[v as usize].extent).collect();
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

/// An operand of a pair: a value, and the variables it is read at.
struct Operand {
    value: ValueId,
    vars: Vec<u32>,
}

impl Operand {
    fn distinct(&self) -> Vec<u32> {
        let mut vars = self.vars.clone();
        vars.sort_unstable();
        vars.dedup();
        vars
    }
}
