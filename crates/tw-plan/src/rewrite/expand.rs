//! Expands operators that are shorthand for others: a reshape is an index statement with quotients and remainders.
//!
//! This is part of planning, not an optimisation: lowering does not know these operators. Only the oracle does.

use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, IndexVar, Op, Output, Program, TensorType};
use tw_ir::scalar::ScalarCode;
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
