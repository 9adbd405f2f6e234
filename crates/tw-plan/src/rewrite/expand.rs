//! Operators that are sugar for others: reshape is an index statement with quotients and remainders, compact a scan and a scatter.
//!
//! This is part of planning, not an optimisation: lowering does not know these operators.

use tw_ir::accum::Accum;
use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, IndexVar, Node, Op, Output, Program, TensorType, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarCode};
use tw_ir::shape::{self, Extent};
use tw_ir::{DType, Scalar};

use super::rebuild::Rebuild;

pub(crate) fn expand(program: &Program) -> Result<Program> {
    let mut rebuild = Rebuild::new(program);
    for node in &program.body.nodes {
        match &node.op {
            Op::Reshape { shape } => {
                let to: Vec<u64> = shape.iter().map(|e| e.known().unwrap_or(0)).collect();
                let op = reshape(program.ty(node.args[0]), &to, program.ty(node.results[0]).fill)?;
                let args = rebuild.mapped_args(node)?;
                rebuild.replace(node, op, &args)?;
            }
            Op::Compact { extent } => compact(&mut rebuild, program, node, *extent)?,
            _ => {
                rebuild.copy(node)?;
            }
        }
    }
    rebuild.finish()
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

/// Ranks by a running count of the mask, then every kept element to its rank.
fn compact(rebuild: &mut Rebuild<'_>, program: &Program, node: &Node, extent: Extent) -> Result<()> {
    let shape = program.ty(node.args[0]).require_shape()?;
    let n = shape::n_elements(&shape)?;
    let flat: Vec<ValueId> = node
        .args
        .iter()
        .map(|&old| {
            let value = rebuild.mapped(old)?;
            match shape.len() {
                1 => Ok(value),
                _ => rebuild.push(reshape(program.ty(old), &[n], program.ty(old).fill)?, &[value], &node.span),
            }
        })
        .collect::<Result<_>>()?;
    let elementwise = |dtypes: &[DType], build: &dyn Fn(&mut ScalarCode) -> Result<tw_ir::Slot>| -> Result<Op> {
        let mut code = ScalarCode::new(dtypes.iter().copied().chain([DType::I64]).collect());
        let result = build(&mut code)?;
        code.set_results(vec![result]);
        let fill = vec![code.dtype(result).zero()];
        let read = |operand| Access { operand, idx: identity_map(1), edge: Edge::Error };
        Ok(Op::Index(IndexStmt {
            vars: vars(&[n]),
            reads: (0..dtypes.len() as u32).map(read).collect(),
            code,
            has_guard: false,
            accum: None,
            out: Output { idx: identity_map(1), edge: Edge::Error, shape: vec![Extent::Known(n)], fill },
        }))
    };
    let ones = elementwise(&[DType::Bool], &|code| {
        let mask = code.param(0);
        Ok(code.cast(DType::I64, mask))
    })?;
    let ones = rebuild.push(ones, &[flat[0]], &node.span)?;
    let count = Op::Scan { accum: Accum::sum(DType::I64), axis: 0, exclusive: true, reverse: false };
    let rank = rebuild.push(count, &[ones], &node.span)?;
    let target = elementwise(&[DType::Bool, DType::I64], &|code| {
        let (mask, rank, nowhere) = (code.param(0), code.param(1), code.constant(Scalar::I64(-1)));
        code.select(mask, rank, nowhere)
    })?;
    let target = rebuild.push(target, &[flat[0], rank], &node.span)?;
    let position = elementwise(&[], &|code| {
        let (i, zero) = (code.param(0), code.constant(Scalar::I64(0)));
        code.binary(BinaryOp::Add, i, zero)
    })?;
    let position = rebuild.push(position, &[], &node.span)?;
    for (data, &result) in flat[1..].iter().zip(&node.results) {
        let dtype = program.ty(result).dtype;
        let accum = Accum::last(dtype, dtype.zero());
        let op = Op::Scatter { axes: vec![0], extents: vec![extent], accum, edge: Edge::Fill };
        let value = rebuild.push(op, &[target, *data, position], &node.span)?;
        rebuild.bind(result, value);
    }
    Ok(())
}
