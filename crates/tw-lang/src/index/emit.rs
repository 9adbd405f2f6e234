//! From resolved bodies to index statements of the program.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use tw_ir::program::{IndexStmt, IndexVar, Output};
use tw_ir::{
    Access, Accum, BinaryOp, DType, Edge, Error, Extent, Idx, OnEmpty, Op, Result, Scalar, ScalarCode, ScalarOp, Slot,
    ValueId, Var,
};

use super::body::{Body, Cell, Gathered, Node, Read, ReadSource, Reduced};
use super::context::Context;
use crate::diagnose::{Lowered, Place, check_fits, check_literal_fits};
use crate::token::Range;
use tw_build::{
    CodeSink, Reduction, Typed, emit_binary, emit_cast, emit_logical, emit_logical_not, emit_select, emit_unary,
};

/// Scalar code that finds equal operations by hashing: statements may be long.
struct SharedCode {
    code: ScalarCode,
    seen: HashMap<ScalarOp, Slot>,
}

impl CodeSink for SharedCode {
    fn push(&mut self, op: ScalarOp) -> Result<Slot> {
        if let Some(slot) = self.seen.get(&op).copied().or_else(|| self.code.simplified(&op)) {
            return Ok(slot);
        }
        let slot = self.code.push_distinct(op)?;
        self.seen.insert(op, slot);
        Ok(slot)
    }
    fn code(&self) -> &ScalarCode {
        &self.code
    }
}

/// A body with its operands and code, ready to become a statement.
pub(super) struct Compiled {
    vars: Vec<IndexVar>,
    /// What each index of the context is in terms of `vars`.
    by: Vec<Idx>,
    reads: Vec<Access>,
    args: Vec<ValueId>,
    code: SharedCode,
    slots: Vec<Typed>,
    range: Range,
}

impl<'a> Context<'_, 'a, '_> {
    /// The extent of a solved index.
    pub(super) fn extent(&self, variable: u32) -> Result<Extent> {
        let variable = &self.variables[variable as usize];
        variable.extent.ok_or_else(|| Error::internal(format!("the extent of `{}` is not solved", variable.name.text)))
    }

    /// An index counted from 0, as an expression in itself.
    pub(super) fn counted_from_zero(&self, variable: u32) -> Idx {
        Idx::var(Var(variable)).plus_constant(self.variables[variable as usize].start.saturating_neg())
    }

    /// Compiles a body over the given indices, after the nodes that it reads.
    pub(super) fn compile(&mut self, variables: &[u32], body: &Body, range: Range) -> Lowered<Compiled> {
        let mut by = vec![Idx::constant(0); self.variables.len()];
        let mut vars = Vec::with_capacity(variables.len());
        for (local, &v) in variables.iter().enumerate() {
            let variable = &self.variables[v as usize];
            by[v as usize] = Idx::var(Var(local as u32)).plus_constant(variable.start);
            vars.push(IndexVar { name: variable.name.text.to_string(), extent: self.extent(v)? });
        }
        let (mut accesses, mut args, mut dtypes): (Vec<Access>, Vec<ValueId>, Vec<DType>) = Default::default();
        let mut positions: HashMap<Access, u32> = HashMap::new();
        // The parameter each node reads, for those that read.
        let mut params: Vec<Option<u32>> = Vec::with_capacity(body.nodes.len());
        let mut known_reads: HashMap<u32, u32> = HashMap::new();
        let mut operand_of: HashMap<ValueId, u32> = HashMap::new();
        for (node, node_range) in &body.nodes {
            let (value, idx, edge) = match node {
                Node::Read(k) => match known_reads.get(k) {
                    Some(&param) => {
                        params.push(Some(param));
                        continue;
                    }
                    None => self.operand(*k)?,
                },
                Node::Reduce(reduced) => {
                    let value = self.reduce(reduced).at(*node_range)?;
                    let free = reduced.free_variables(&self.reads);
                    (value, free.iter().map(|&v| self.counted_from_zero(v)).collect(), Edge::Error)
                }
                _ => {
                    params.push(None);
                    continue;
                }
            };
            let operand = *operand_of.entry(value).or_insert_with(|| {
                args.push(value);
                args.len() as u32 - 1
            });
            let idx = idx.iter().map(|idx| idx.substitute(&by)).collect();
            let access = Access { operand, idx, edge };
            let param = *positions.entry(access.clone()).or_insert_with(|| {
                accesses.push(access);
                dtypes.push(self.lowering.ty(value).dtype);
                accesses.len() as u32 - 1
            });
            if let Node::Read(k) = node {
                known_reads.insert(*k, param);
            }
            params.push(Some(param));
        }
        dtypes.extend(std::iter::repeat_n(DType::I64, vars.len()));
        let code = SharedCode { code: ScalarCode::new(dtypes), seen: HashMap::new() };
        let mut compiled = Compiled { vars, by, reads: accesses, args, code, slots: Vec::new(), range };
        for ((node, node_range), param) in body.nodes.iter().zip(params) {
            let typed = match (node, param) {
                (_, Some(param)) => Typed::element(compiled.code.push(ScalarOp::Param(param))?),
                (Node::Variable(v), None) => Typed::element(compiled.variable(*v)?),
                (node, None) => compiled.operation(node).at(*node_range)?,
            };
            compiled.slots.push(typed);
        }
        Ok(compiled)
    }

    /// The operand of a read. Gathers become nodes here; several bodies share one node.
    fn operand(&mut self, read: u32) -> Lowered<(ValueId, Vec<Idx>, Edge)> {
        let Read { source, idx, edge, range } = &self.reads[read as usize];
        let (idx, edge, range) = (idx.clone(), *edge, *range);
        match source {
            ReadSource::Value(value) => Ok((*value, idx, edge)),
            ReadSource::Gather(gathered) => {
                let gathered = Rc::clone(gathered);
                let (value, idx) = self.gather(&gathered, idx, range).at(range)?;
                Ok((value, idx, edge))
            }
        }
    }

    /// Makes index tensors over the indices that the positions use, and gathers. Returns the result and where to read it.
    fn gather(&mut self, gathered: &Gathered, mut kept: Vec<Idx>, range: Range) -> Lowered<(ValueId, Vec<Idx>)> {
        let mut used = BTreeSet::new();
        gathered.positions.iter().for_each(|(body, _)| body.free_variables(&self.reads, &mut used));
        let over: Vec<u32> = used.into_iter().collect();
        let mut indices = Vec::with_capacity(gathered.positions.len());
        for (body, root) in &gathered.positions {
            let compiled = self.compile(&over, body, range)?;
            indices.push(self.elementwise(compiled, *root, &over)?);
        }
        let value = self.lowering.gathered(gathered.data, &indices, &gathered.axes, gathered.edge, range)?;
        // Index axes stand where the first gathered axis was.
        let first = gathered.axes[0].min(kept.len());
        let positions: Vec<Idx> = over.iter().map(|&v| self.counted_from_zero(v)).collect();
        kept.splice(first..first, positions);
        Ok((value, kept))
    }

    /// One value per point of the given indices, counted from 0.
    pub(super) fn elementwise(&mut self, compiled: Compiled, root: Cell, over: &[u32]) -> Lowered<ValueId> {
        let mut compiled = compiled;
        let body = compiled.slot(root)?;
        let fill = compiled.code.dtype(body.slot).zero();
        let (idx, shape) = self.plain_output(over)?;
        let out = Output { idx, edge: Edge::Error, shape, fill: vec![fill] };
        self.finish(compiled, vec![body.slot], None, None, out)
    }

    /// Output coordinates and shape of a result whose axes are the given indices. They must be the first of the statement.
    pub(super) fn plain_output(&self, over: &[u32]) -> Lowered<(Vec<Idx>, Vec<Extent>)> {
        let idx = (0..over.len() as u32).map(|local| Idx::var(Var(local))).collect();
        let shape = over.iter().map(|&v| self.extent(v)).collect::<Result<Vec<Extent>>>()?;
        Ok((idx, shape))
    }

    /// A reduction inside an expression: a tensor over the indices it uses from outside.
    fn reduce(&mut self, reduced: &Reduced) -> Lowered<ValueId> {
        let free: Vec<u32> = reduced.free_variables(&self.reads).into_iter().collect();
        let (idx, shape) = self.plain_output(&free)?;
        let out = Output { idx, edge: Edge::Error, shape, fill: Vec::new() };
        self.reduce_into(reduced, &free, out, None, false)
    }

    /// A reduction written at the given coordinates, over `outer` and its own indices. `dtype` is the type to combine in, if not its own.
    pub(super) fn reduce_into(
        &mut self,
        reduced: &Reduced,
        outer: &[u32],
        out: Output,
        dtype: Option<DType>,
        identity_where_empty: bool,
    ) -> Lowered<ValueId> {
        let variables: Vec<u32> = outer.iter().chain(&reduced.variables).copied().collect();
        let mut compiled = self.compile(&variables, &reduced.body, reduced.range)?;
        let value = compiled.slot(reduced.root)?;
        let kind = reduced.kind;
        let mut working = kind.working_type(compiled.code.dtype(value.slot));
        if let Some(dtype) = dtype.filter(|_| !matches!(kind, Reduction::Any | Reduction::All | Reduction::Count)) {
            // Sums are wide only where nothing says how wide.
            let own = compiled.code.dtype(value.slot);
            let narrow = own.is_integer() && matches!(kind, Reduction::Sum | Reduction::Prod);
            match compiled.code.constant_at(value.slot).filter(|_| narrow) {
                Some(literal) => check_literal_fits(literal, dtype, reduced.range)?,
                None => check_fits(if narrow { own } else { working }, dtype, reduced.range)?,
            }
            working = dtype;
        }
        let value = emit_cast(&mut compiled.code, working, value.slot)?;
        let bodies = match kind {
            Reduction::Count => vec![compiled.code.convert(DType::I64, value)?],
            _ if kind.takes_position() => vec![value, compiled.position(&reduced.variables)?],
            _ => vec![value],
        };
        let guard = reduced.guard.map(|guard| compiled.guard(guard)).transpose()?;
        let mut accum = kind.accum(working)?;
        if identity_where_empty {
            accum.on_empty = OnEmpty::Value(accum.empty_results());
        }
        self.finish(compiled, bodies, guard, Some(accum), out)
    }

    /// Appends the statement.
    pub(super) fn finish(
        &mut self,
        compiled: Compiled,
        bodies: Vec<Slot>,
        guard: Option<Slot>,
        accum: Option<Accum>,
        out: Output,
    ) -> Lowered<ValueId> {
        let Compiled { vars, reads, args, code: SharedCode { mut code, .. }, range, .. } = compiled;
        code.set_results(guard.into_iter().chain(bodies).collect());
        let code = code.without_dead_ops();
        let statement = IndexStmt { vars, reads, code, has_guard: guard.is_some(), accum, out };
        self.lowering.push1(Op::Index(statement), &args, range)
    }
}

impl Compiled {
    /// Where a cell's value is.
    pub(super) fn slot(&mut self, cell: Cell) -> Result<Typed> {
        match cell {
            Cell::Literal(value) => Ok(Typed::literal(self.code.push(ScalarOp::Const(value))?)),
            Cell::Node(node) => Ok(self.slots[node as usize]),
        }
    }

    /// A condition as a bool.
    pub(super) fn guard(&mut self, cell: Cell) -> Result<Slot> {
        let condition = self.slot(cell)?;
        self.code.convert(DType::Bool, condition.slot)
    }

    /// As [`check_fits`] for a slot; a constant fits if its value does.
    pub(super) fn check_fits(&self, slot: Slot, dtype: DType, range: Range) -> Lowered<()> {
        match self.code.constant_at(slot) {
            Some(literal) => check_literal_fits(literal, dtype, range),
            None => check_fits(self.dtype(slot), dtype, range),
        }
    }

    /// A slot converted to a type.
    pub(super) fn convert(&mut self, dtype: DType, slot: Slot) -> Result<Slot> {
        emit_cast(&mut self.code, dtype, slot)
    }

    /// The type of a slot.
    pub(super) fn dtype(&self, slot: Slot) -> DType {
        self.code.dtype(slot)
    }

    /// A selection between slots of one type.
    pub(super) fn choose(&mut self, condition: Slot, yes: Slot, no: Scalar) -> Result<Slot> {
        let no = self.code.push(ScalarOp::Const(no))?;
        self.code.push(ScalarOp::Select(condition, yes, no))
    }

    /// The value of an index.
    fn variable(&mut self, v: u32) -> Result<Slot> {
        let (Var(local), start) = self.by[v as usize]
            .as_shifted_var()
            .ok_or_else(|| Error::internal("a body uses an index that its statement does not have"))?;
        let value = self.code.push(ScalarOp::Param(self.reads.len() as u32 + local))?;
        if start == 0 {
            return Ok(value);
        }
        let start = self.code.push(ScalarOp::Const(Scalar::I64(start)))?;
        self.code.push(ScalarOp::Binary(BinaryOp::Add, value, start))
    }

    /// The position that `argmin` and `argmax` give: the index itself, or the row-major position among several.
    fn position(&mut self, variables: &[u32]) -> Result<Slot> {
        if let [v] = variables {
            return self.variable(*v);
        }
        let mut position = self.code.push(ScalarOp::Const(Scalar::I64(0)))?;
        for (k, &v) in variables.iter().enumerate() {
            let (Var(local), _) =
                self.by[v as usize].as_shifted_var().ok_or_else(|| Error::internal("a reduced index is missing"))?;
            let value = self.code.push(ScalarOp::Param(self.reads.len() as u32 + local))?;
            if k == 0 {
                position = value;
                continue;
            }
            let extent = self.vars[local as usize].extent.known();
            let extent = extent.ok_or_else(|| Error::plan("a position along an extent that depends on data"))?;
            let extent = self.code.push(ScalarOp::Const(Scalar::I64(extent as i64)))?;
            let row = self.code.push(ScalarOp::Binary(BinaryOp::Mul, position, extent))?;
            position = self.code.push(ScalarOp::Binary(BinaryOp::Add, row, value))?;
        }
        Ok(position)
    }

    fn operation(&mut self, node: &Node) -> Result<Typed> {
        let slot = match *node {
            Node::Unary(op, a) => {
                let a = self.slot(a)?;
                emit_unary(&mut self.code, op, a.slot)?
            }
            Node::Not(a) => {
                let a = self.slot(a)?;
                emit_logical_not(&mut self.code, a.slot)?
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.slot(a)?, self.slot(b)?);
                emit_binary(&mut self.code, op, a, b)?
            }
            Node::Logical(op, a, b) => {
                let (a, b) = (self.slot(a)?, self.slot(b)?);
                emit_logical(&mut self.code, op, a.slot, b.slot)?
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.slot(c)?, self.slot(a)?, self.slot(b)?);
                emit_select(&mut self.code, c.slot, a, b)?
            }
            Node::Cast(dtype, a) => {
                let a = self.slot(a)?;
                emit_cast(&mut self.code, dtype, a.slot)?
            }
            Node::Variable(_) | Node::Read(_) | Node::Reduce(_) => {
                return Err(Error::internal("a read without a parameter"));
            }
        };
        Ok(Typed::element(slot))
    }
}
