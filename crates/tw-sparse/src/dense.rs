//! The meaning of a statement on dense arrays: every element by itself, from the definition. Slow; lowered kernels are compared with it.
//!
//! It differs from a kernel in one point that is documented in [`crate::algebra`]: here 0 times NaN is NaN, whether 0 is stored or not.

use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{Buffer, Error, Result, Scalar};

use crate::expr::{Combiner, IndexExpr, IndexStatement, IndexVariable, Monoid};
use crate::level::full_size;

/// The operands of a statement as row-major arrays.
#[derive(Clone, Debug)]
pub struct DenseOperand {
    /// Extents of the modes.
    pub shape: Vec<u64>,
    /// The elements.
    pub elements: Buffer,
}

/// Computes every element of the output, in row-major order.
pub fn evaluate(statement: &IndexStatement, operands: &[DenseOperand], extents: &[u64]) -> Result<Buffer> {
    let n = statement.indices.iter().try_fold(1, |n, var| full_size(n, extents[var.0]))?;
    let mut result = Buffer::full(statement.output.fill, n as usize);
    let mut at = vec![0i64; extents.len()];
    for k in 0..n {
        let mut rest = k;
        for var in statement.indices.iter().rev() {
            at[var.0] = (rest % extents[var.0]) as i64;
            rest /= extents[var.0];
        }
        result.set(k as usize, element(&statement.value, operands, extents, &mut at)?);
    }
    Ok(result)
}

fn element(expr: &IndexExpr, operands: &[DenseOperand], extents: &[u64], at: &mut Vec<i64>) -> Result<Scalar> {
    let mut part = |expr: &IndexExpr| element(expr, operands, extents, at);
    Ok(match expr {
        IndexExpr::Constant(value) => *value,
        IndexExpr::Computed(..) => return Err(Error::internal("a statement holds code")),
        IndexExpr::Coordinate(var) => Scalar::I64(at[var.0]),
        IndexExpr::Access(access, _) => {
            let operand = &operands[access.tensor];
            let mut position = 0;
            for (index, &extent) in access.index.iter().zip(&operand.shape) {
                let coordinate = index.terms.iter().map(|(var, k)| at[var.0] * k).sum::<i64>() + index.offset;
                if coordinate < 0 || coordinate as u64 >= extent {
                    return Err(Error::data(format!("index {coordinate} is outside the extent {extent}")));
                }
                position = position * extent + coordinate as u64;
            }
            operand.elements.get(position as usize)
        }
        IndexExpr::Unary(op, a) => eval_unary(*op, part(a)?),
        IndexExpr::Cast(dtype, a) => part(a)?.cast(*dtype),
        IndexExpr::Binary(op, a, b) => eval_binary(*op, part(a)?, part(b)?),
        IndexExpr::Select(c, a, b) => {
            if part(c)?.is_true() {
                part(a)?
            } else {
                part(b)?
            }
        }
        IndexExpr::Call(function, args) => {
            let args = args.iter().map(part).collect::<Result<Vec<_>>>()?;
            function.code.eval(&args)[0]
        }
        IndexExpr::Reduce(how, vars, body) => {
            let mut sum = how.identity;
            reduce(how, vars, body, operands, extents, at, &mut sum)?;
            sum
        }
    })
}

fn reduce(
    how: &Monoid,
    vars: &[IndexVariable],
    body: &IndexExpr,
    operands: &[DenseOperand],
    extents: &[u64],
    at: &mut Vec<i64>,
    sum: &mut Scalar,
) -> Result<()> {
    let Some((var, rest)) = vars.split_first() else {
        let value = element(body, operands, extents, at)?;
        *sum = match &how.combine {
            Combiner::Op(op) => eval_binary(*op, *sum, value),
            Combiner::Function(function) => function.code.eval(&[*sum, value])[0],
        };
        return Ok(());
    };
    for k in 0..extents[var.0] as i64 {
        at[var.0] = k;
        reduce(how, rest, body, operands, extents, at, sum)?;
    }
    Ok(())
}
