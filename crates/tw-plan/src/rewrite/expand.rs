//! Expands operators that are shorthand for others: a reshape is an index statement with quotients and remainders, a routine of linear algebra is a
//! blocked algorithm of many nodes.
//!
//! This is part of planning, not an optimisation: lowering does not know these operators. Only the oracle does.
//!
//! Of a routine only the nodes are added that its read results need: of `q, r = qr(a)` without a reader of `q` those that make `r`. Equal nodes of routines are
//! added once, so two systems with one matrix factor it once.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

use tw_ir::error::{Error, Result};
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, IndexVar, Node, Op, Output, Program, RoutineSpec, SourceOp, TensorType, ValueId};
use tw_ir::scalar::ScalarCode;
use tw_ir::shape::{self, Extent};
use tw_ir::{DType, Scalar};

use super::rebuild::Rebuild;

pub(crate) fn expand(program: &Program) -> Result<Program> {
    let mut rebuild = Rebuild::new(program);
    let read: HashSet<ValueId> = program.body.used_from(0);
    let mut added = Added::default();
    for node in &program.body.nodes {
        match &node.op {
            Op::Reshape { shape } => {
                let to: Vec<u64> = shape.iter().map(|e| e.known().unwrap_or(0)).collect();
                let op = reshape(program.ty(node.args[0]), &to, program.ty(node.results[0]).fill)?;
                let args = rebuild.mapped_args(node)?;
                rebuild.replace(node, op, &args)?;
            }
            Op::Routine(spec) => {
                routine(&mut rebuild, node, spec, &read, &mut added).map_err(|error| error.at(&node.span))?;
            }
            _ => {
                rebuild.copy(node)?;
            }
        }
    }
    rebuild.finish()
}

/// Nodes of routines, by hash, as positions in the new program.
type Added = HashMap<u64, Vec<usize>>;

/// Adds the algorithm of a routine.
fn routine(
    rebuild: &mut Rebuild<'_>,
    node: &Node,
    spec: &RoutineSpec,
    read: &HashSet<ValueId>,
    added: &mut Added,
) -> Result<()> {
    let algorithm = spec.expand()?;
    let results: Vec<(ValueId, ValueId)> =
        node.results.iter().copied().zip(algorithm.body.results.iter().copied()).collect();
    let mut needed: HashSet<ValueId> =
        results.iter().filter(|(old, _)| read.contains(old)).map(|&(_, inner)| inner).collect();
    for inner in algorithm.body.nodes.iter().rev() {
        if inner.results.iter().any(|value| needed.contains(value)) {
            needed.extend(&inner.args);
        }
    }
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    let mut operands = rebuild.mapped_args(node)?.into_iter();
    let missing = || Error::internal(format!("the expansion of `{}` misses a value", spec.routine().name()));
    for inner in &algorithm.body.nodes {
        if let Op::Source(SourceOp::Input { .. }) = inner.op {
            map.insert(inner.results[0], operands.next().ok_or_else(missing)?);
            continue;
        }
        if !inner.results.iter().any(|value| needed.contains(value)) {
            continue;
        }
        let args = inner.args.iter().map(|arg| map.get(arg).copied().ok_or_else(missing));
        let args: Vec<ValueId> = args.collect::<Result<_>>()?;
        let types: Vec<&TensorType> = inner.results.iter().map(|&value| algorithm.ty(value)).collect();
        let made = add(&mut rebuild.to, added, inner, args, &types, node);
        map.extend(inner.results.iter().copied().zip(made));
    }
    for (old, inner) in results {
        match map.get(&inner) {
            Some(&new) => rebuild.bind(old, new),
            None if read.contains(&old) => return Err(missing()),
            None => {}
        }
    }
    Ok(())
}

/// Adds a node of a routine, or finds the equal one.
fn add(
    program: &mut Program,
    added: &mut Added,
    inner: &Node,
    args: Vec<ValueId>,
    types: &[&TensorType],
    routine: &Node,
) -> Vec<ValueId> {
    let mut hasher = DefaultHasher::new();
    (&inner.op, &args).hash(&mut hasher);
    let equal_ones = added.entry(hasher.finish()).or_default();
    let is_equal = |node: &&Node| {
        node.op == inner.op && node.args == args && node.results.iter().zip(types).all(|(&v, &ty)| program.ty(v) == ty)
    };
    if let Some(node) = equal_ones.iter().map(|&k| &program.body.nodes[k]).find(is_equal) {
        return node.results.clone();
    }
    equal_ones.push(program.body.nodes.len());
    let results: Vec<ValueId> = types.iter().map(|&ty| program.new_value(ty.clone())).collect();
    let node = Node { op: inner.op.clone(), args, results: results.clone(), span: routine.span };
    program.body.nodes.push(node);
    results
}

fn vars(shape: &[u64]) -> Vec<IndexVar> {
    shape.iter().enumerate().map(|(k, &n)| IndexVar { name: format!("d{k}"), extent: Extent::Known(n) }).collect()
}

fn identity_map(rank: usize) -> Vec<Idx> {
    (0..rank as u32).map(|k| Idx::var(Var(k))).collect()
}

/// Reads at the coordinates that have the same row-major position.
fn reshape(from: &TensorType, to: &[u64], fill: Scalar) -> Result<Op> {
    let from_shape = from.require_shape()?;
    let vars = vars(to);
    let ranges: Vec<(i64, i64)> = to.iter().map(|&n| (0, n as i64 - 1)).collect();
    let empty = shape::n_elements(to)? == 0;
    let strides = shape::row_major_strides(to);
    let linear =
        (0..to.len()).fold(Idx::constant(0), |sum, k| sum.plus(&Idx::var(Var(k as u32)).times(strides[k] as i64)));
    let from_strides = shape::row_major_strides(&from_shape);
    let idx = if empty {
        vec![Idx::constant(0); from_shape.len()]
    } else {
        let split = |k: usize| linear.div(from_strides[k] as i64).modulo(from_shape[k] as i64).simplify(&ranges);
        (0..from_shape.len()).map(split).collect()
    };
    let mut code = ScalarCode::new([from.dtype].into_iter().chain(to.iter().map(|_| DType::I64)).collect());
    let value = code.param(0);
    code.set_results(vec![value]);
    Ok(Op::Index(IndexStmt {
        // No point reads anything if there are none; the rule keeps the verifier from asking where index 0 of nothing is.
        reads: vec![Access { operand: 0, idx, edge: if empty { Edge::Fill } else { Edge::Error } }],
        out: Output {
            idx: identity_map(to.len()),
            edge: Edge::Error,
            shape: to.iter().map(|&n| Extent::Known(n)).collect(),
            fill: vec![fill],
        },
        vars,
        code,
        has_guard: false,
        accum: None,
    }))
}
