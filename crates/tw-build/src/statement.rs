//! The index statements that builders need.

use tw_ir::program::{IndexStmt, IndexVar, Output};
use tw_ir::{Access, Accum, DType, Edge, Extent, Idx, Op, Result, Scalar, ScalarCode, Slot, TensorType, Var};

use super::axes::variable_name;

/// A statement under construction: its variables and reads are fixed, its code grows.
pub(super) struct StatementBuilder {
    vars: Vec<IndexVar>,
    reads: Vec<Access>,
    /// The bodies in the making.
    pub(super) code: ScalarCode,
}

impl StatementBuilder {
    /// Variables with the given extents, and one read per operand.
    pub(super) fn new(extents: &[Extent], reads: Vec<(Access, DType)>) -> StatementBuilder {
        let vars: Vec<IndexVar> =
            extents.iter().enumerate().map(|(k, &extent)| IndexVar { name: variable_name(k), extent }).collect();
        let mut params: Vec<DType> = reads.iter().map(|(_, dtype)| *dtype).collect();
        params.extend(std::iter::repeat_n(DType::I64, vars.len()));
        StatementBuilder {
            vars,
            reads: reads.into_iter().map(|(access, _)| access).collect(),
            code: ScalarCode::new(params),
        }
    }

    /// Reads one operand at the variables themselves.
    pub(super) fn of(x: &TensorType) -> StatementBuilder {
        let idx = (0..x.rank() as u32).map(|axis| Idx::var(Var(axis))).collect();
        StatementBuilder::new(&x.shape, vec![(access(0, idx), x.dtype)])
    }

    /// What the k-th read gives.
    pub(super) fn read(&mut self, k: usize) -> Slot {
        self.code.param(k as u32)
    }

    /// The value of the k-th variable.
    pub(super) fn var(&mut self, k: usize) -> Slot {
        let position = self.reads.len() + k;
        self.code.param(position as u32)
    }

    /// One result, written at the variables themselves.
    pub(super) fn elementwise(self, body: Slot) -> Op {
        let dtype = self.code.dtype(body);
        self.elementwise_filled(body, dtype.zero())
    }

    /// As [`StatementBuilder::elementwise`], with the fill value of the result.
    pub(super) fn elementwise_filled(mut self, body: Slot, fill: Scalar) -> Op {
        self.code.set_results(vec![body]);
        let idx = (0..self.vars.len() as u32).map(|v| Idx::var(Var(v))).collect();
        let shape = self.vars.iter().map(|var| var.extent).collect();
        self.finish(None, Output { idx, edge: Edge::Error, shape, fill: vec![fill] })
    }

    /// Bodies combined into results at the given coordinates.
    pub(super) fn accumulated(mut self, bodies: Vec<Slot>, accum: Accum, idx: Vec<Idx>, shape: Vec<Extent>) -> Op {
        self.code.set_results(bodies);
        self.finish(Some(accum), Output { idx, edge: Edge::Error, shape, fill: Vec::new() })
    }

    /// The finished statement, with an output of the caller's making.
    pub(super) fn finish(self, accum: Option<Accum>, out: Output) -> Op {
        let code = self.code.without_dead_ops();
        Op::Index(IndexStmt { vars: self.vars, reads: self.reads, code, has_guard: false, accum, out })
    }
}

/// Reads an operand at coordinates that lie inside it.
pub(super) fn access(operand: usize, idx: Vec<Idx>) -> Access {
    Access { operand: operand as u32, idx, edge: Edge::Error }
}

/// A statement that only moves elements: the result at each point of `shape` is the operand at `idx`.
pub(super) fn moved(x: &TensorType, idx: Vec<Idx>, edge: Edge, shape: &[Extent]) -> Op {
    let mut statement = StatementBuilder::new(shape, vec![(Access { operand: 0, idx, edge }, x.dtype)]);
    let body = statement.read(0);
    statement.elementwise_filled(body, x.fill)
}

/// Reads an operand that broadcasts to a result whose axes are the variables `0..rank`.
pub(super) fn broadcast_access(operand: usize, shape: &[Extent], rank: usize) -> Access {
    let skip = rank - shape.len();
    let idx = shape.iter().enumerate().map(|(axis, extent)| match extent {
        Extent::Known(1) => Idx::constant(0),
        _ => Idx::var(Var((skip + axis) as u32)),
    });
    access(operand, idx.collect())
}

/// The row-major position of a point among the given variables, as code. Extents after the first must be known.
pub(super) fn linear_position(statement: &mut StatementBuilder, vars: &[usize], extents: &[u64]) -> Result<Slot> {
    use tw_ir::BinaryOp::{Add, Mul};
    let mut position: Option<Slot> = None;
    for (&var, &extent) in vars.iter().zip(extents) {
        let at = statement.var(var);
        position = Some(match position {
            None => at,
            Some(outer) => {
                let extent = statement.code.constant(Scalar::I64(extent as i64));
                let scaled = statement.code.binary(Mul, outer, extent)?;
                statement.code.binary(Add, scaled, at)?
            }
        });
    }
    Ok(position.unwrap_or_else(|| statement.code.constant(Scalar::I64(0))))
}
