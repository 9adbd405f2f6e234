//! From an index statement to one fused loop nest.
//!
//! The nest has a loop per index variable, in the order that [`order`] chooses. At each loop the lattice of what is left of the expression
//! (`crate::lattice`) says where code must run; `iterate` emits the loops over its points, `access` moves every access one or more levels
//! down, and `output` assembles the result. An operand that is absent at a point is replaced by its fill value, and the expression is
//! simplified before the next loop, so that inner loops are specialised to the operands that are there.
//!
//! A reduction becomes a variable that inner loops add to, as soon as the variables that it uses from outside are known. A reduction whose
//! loop must lie outside a loop of the output scatters: into the values of a dense output, or into a workspace that is made by itself, as in
//! "Tensor Algebra Compilation with Workspaces" (Kjolstad et al., CGO 2019).

use std::collections::HashMap;

use tw_ir::{Error, Result, Scalar};

use crate::algebra::{as_constant, combine, same_value, simplify};
use crate::expr::{IndexExpr, IndexStatement, IndexVariable, Monoid};
use crate::format::TensorFormat;
use crate::lattice::Lattice;
use crate::level::LevelPlace;
use crate::loops::{ArrayId, ArrayRole, ArrayType, Code, LocalId, LoopExpr, LoopKernel, verify};

mod access;
mod iterate;
pub mod order;
mod output;
mod scalar;

use access::Cursor;
use order::LoopOrder;
use output::Assembly;

/// The value of a parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelParam {
    /// The extent of an index variable.
    Variable(IndexVariable),
    /// The extent of a mode of an operand, which no variable has.
    Mode(usize, usize),
}

/// An operand as the kernel reads it: possibly in another format than it is stored in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOperand {
    /// Position in [`IndexStatement::operands`].
    pub tensor: usize,
    /// The format that the kernel reads.
    pub format: TensorFormat,
}

/// What collects the elements of a fibre of the output that are found in no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceChoice {
    /// A value per coordinate, where one level is collected.
    Dense,
    /// A list that is sorted: memory for what is found, whatever the extent.
    List,
}

/// A statement as a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct LoweredStatement {
    /// The kernel. Its inputs are the parts of all levels and then the values of each operand, its outputs likewise.
    pub kernel: LoopKernel,
    /// What its parameters are.
    pub params: Vec<KernelParam>,
    /// What its inputs are.
    pub operands: Vec<KernelOperand>,
    /// The format in which it makes the output; another than asked for where loops must run in another order.
    pub output: TensorFormat,
    /// Variables whose extents multiply to the key of a workspace, which must fit into an i64.
    pub keys: Vec<IndexVariable>,
    /// The access whose levels the output shares: the kernel makes values only.
    pub pattern: Option<KernelOperand>,
    /// The variable whose extent is the length of a workspace, if one is dense.
    pub workspace: Option<IndexVariable>,
}

/// Where a nest of loops leaves its values.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// A variable that combines them.
    Variable(LocalId, Monoid),
    /// Levels of the output from this one on.
    Output(usize),
    /// A workspace, or values of a dense output.
    Scatter(Monoid),
}

#[derive(Clone, Debug)]
struct Storage {
    places: Vec<LevelPlace>,
    values: ArrayId,
}

/// What is known at a place in the nest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    cursors: HashMap<usize, Cursor>,
    bound: HashMap<IndexVariable, LoopExpr>,
}

pub(crate) struct Lowering<'a> {
    statement: &'a IndexStatement,
    code: Code,
    extents: Vec<LoopExpr>,
    storages: Vec<Storage>,
    order: LoopOrder,
    assembly: Assembly,
}

/// Lowers a statement.
pub fn lower(statement: &IndexStatement, choice: WorkspaceChoice) -> Result<LoweredStatement> {
    let value = simplify(statement.value.clone());
    check_width(statement, &value)?;
    let order = order::choose(statement, &value)?;
    let pattern = output::shared_pattern(statement, &order, &value);
    lower_as(statement, value, order, pattern, choice)
}

/// Refuses statements whose specialised loops would be too many: the points of a union double with each operand.
fn check_width(statement: &IndexStatement, value: &IndexExpr) -> Result<()> {
    let operand = |tensor: usize| &statement.operands[tensor];
    let sparse: HashMap<usize, Scalar> = value
        .accesses()
        .into_iter()
        .filter(|(access, _)| !operand(access.tensor).format.is_dense())
        .map(|(access, number)| (number, operand(access.tensor).fill))
        .collect();
    let n_points = match sparse.len() {
        0..=MAX_SPARSE_ACCESSES => Lattice::of(value, &|number| sparse.get(&number).copied()).points.len(),
        _ => usize::MAX,
    };
    if n_points > MAX_POINTS {
        return Err(Error::plan(format!(
            "`{}` merges {} sparse operands in one statement",
            statement.output.name,
            sparse.len()
        ))
        .help("assign a part of the expression to a tensor of its own first"));
    }
    Ok(())
}

/// The most sparse operands of one statement.
pub const MAX_SPARSE_ACCESSES: usize = 12;
/// The most points of its lattice.
pub const MAX_POINTS: usize = 128;

fn lower_as(
    statement: &IndexStatement,
    value: IndexExpr,
    order: LoopOrder,
    pattern: Option<usize>,
    choice: WorkspaceChoice,
) -> Result<LoweredStatement> {
    let mut code = Code::new(&statement.output.name);
    let mut params = Vec::new();
    let mut extents = Vec::new();
    for (v, name) in statement.variables.iter().enumerate() {
        extents.push(LoopExpr::Local(code.parameter(&format!("n_{name}"))));
        params.push(KernelParam::Variable(IndexVariable(v)));
    }
    // Extents first: parameters come before everything else.
    let mut mode_extents = Vec::new();
    for (k, operand) in order.operands.iter().enumerate() {
        let mut of_operand = Vec::new();
        for &mode in operand.format.order() {
            let plain = value.accesses().into_iter().find_map(|(access, number)| {
                (order.storage_of[&number] == k).then(|| access.index[mode].as_plain()).flatten()
            });
            of_operand.push(match plain {
                Some(var) => extents[var.0].clone(),
                None => {
                    params.push(KernelParam::Mode(operand.tensor, mode));
                    let name = format!("{}_n{mode}", statement.operands[operand.tensor].name);
                    LoopExpr::Local(code.parameter(&name))
                }
            });
        }
        mode_extents.push(of_operand);
    }
    let mut storages = Vec::new();
    for (operand, extents) in order.operands.iter().zip(mode_extents) {
        let name = &statement.operands[operand.tensor].name;
        let mut places = Vec::new();
        for (l, (level, extent)) in operand.format.levels().iter().zip(extents).enumerate() {
            let arrays = level.parts().iter().enumerate().map(|(part, part_name)| {
                let kind = level.part_type(part, operand.format.width());
                code.array(&format!("{name}{}_{part_name}", l + 1), kind, ArrayRole::Input)
            });
            places.push(LevelPlace { arrays: arrays.collect(), extent });
        }
        let kind = ArrayType::Value(statement.operands[operand.tensor].fill.dtype());
        storages.push(Storage { places, values: code.array(name, kind, ArrayRole::Input) });
    }
    let assembly = Assembly::new(&mut code, statement, &order, &extents, pattern, choice)?;
    let mut lowering = Lowering { statement, code, extents, storages, order, assembly };
    let mut scope = Scope::default();
    for (access, number) in value.accesses() {
        let storage = lowering.order.storage_of[&number];
        let operand = &lowering.order.operands[storage];
        scope.cursors.insert(number, Cursor::new(access, storage, operand, statement));
    }
    lowering.begin_output();
    let outer = lowering.order.outer.clone();
    let (body, sink) = match (value, lowering.order.scatter.clone()) {
        (IndexExpr::Reduce(_, vars, body), Some(how)) => {
            let inner: Vec<IndexVariable> = vars.into_iter().filter(|var| !outer.contains(var)).collect();
            let body = if inner.is_empty() { *body } else { IndexExpr::Reduce(how.clone(), inner, body) };
            (body, Sink::Output(0))
        }
        (value, _) => (value, Sink::Output(0)),
    };
    lowering.nest(&outer, body, scope, sink);
    lowering.finish_output();
    let (keys, workspace) = (lowering.assembly.keys.clone(), lowering.assembly.dense_workspace());
    let Lowering { code, order, .. } = lowering;
    let kernel = code.finish();
    verify::verify(&kernel)?;
    let pattern = pattern.map(|number| order.operands[order.storage_of[&number]].clone());
    Ok(LoweredStatement { kernel, params, operands: order.operands, output: order.output, keys, pattern, workspace })
}

impl Lowering<'_> {
    /// The value that a missing element of a sink has, if missing is possible.
    fn omitted(&self, sink: &Sink) -> Option<Scalar> {
        match sink {
            Sink::Variable(_, how) | Sink::Scatter(how) => Some(how.identity),
            Sink::Output(_) => Some(self.assembly.omitted()),
        }
    }

    /// Emits the loops over `loops`, around code that leaves the value of the expression in the sink.
    pub(crate) fn nest(&mut self, loops: &[IndexVariable], expr: IndexExpr, mut scope: Scope, sink: Sink) {
        let expr = self.settle(expr, &mut scope);
        let omitted = self.omitted(&sink);
        if let (Some(value), Some(omitted)) = (as_constant(&expr), omitted)
            && same_value(value, omitted)
        {
            return;
        }
        // Below the levels that are appended to in order, a scattering reduction collects the rest first.
        if let (Sink::Output(depth), Some(how)) = (&sink, self.order.scatter.clone())
            && *depth == self.assembly.prefix
        {
            let depth = *depth;
            self.begin_workspace(depth);
            self.nest(loops, expr, scope, Sink::Scatter(how.clone()));
            self.drain_workspace(depth, &how);
            return;
        }
        match loops.split_first() {
            None => self.leave(expr, &scope, sink),
            Some((&var, rest)) => {
                if let Sink::Output(depth) = sink {
                    self.enter_level(depth);
                }
                self.loop_over(var, rest, expr, scope, &sink);
                if let Sink::Output(depth) = sink {
                    self.exit_level(depth);
                }
            }
        }
    }

    /// The body of the loop over `var`, which is bound: the rest of the nest.
    pub(crate) fn inside(
        &mut self,
        var: IndexVariable,
        rest: &[IndexVariable],
        expr: IndexExpr,
        scope: Scope,
        sink: &Sink,
    ) {
        let omitted = self.omitted(sink);
        if let (Some(value), Some(omitted)) = (as_constant(&expr), omitted)
            && same_value(value, omitted)
        {
            return;
        }
        match sink {
            Sink::Output(depth) => {
                let at = scope.bound[&var].clone();
                let mark = self.begin_coordinate(*depth, at.clone(), &scope);
                self.nest(rest, expr, scope, Sink::Output(depth + 1));
                self.end_coordinate(*depth, at, mark);
            }
            other => self.nest(rest, expr, scope, other.clone()),
        }
    }

    /// Emits what can be computed once the scope is as it is: values of accesses whose levels are all known, and reductions.
    fn settle(&mut self, expr: IndexExpr, scope: &mut Scope) -> IndexExpr {
        match expr {
            IndexExpr::Access(access, number) => {
                let cursor = self.descend(&scope.cursors[&number].clone(), scope);
                scope.cursors.insert(number, cursor.clone());
                match self.load_value(&cursor) {
                    Some((value, dtype)) => IndexExpr::Computed(value, dtype),
                    None => IndexExpr::Access(access, number),
                }
            }
            IndexExpr::Coordinate(var) => match scope.bound.get(&var) {
                Some(value) => IndexExpr::Computed(value.clone(), tw_ir::DType::I64),
                None => IndexExpr::Coordinate(var),
            },
            IndexExpr::Reduce(how, vars, body) => {
                let whole = IndexExpr::Reduce(how, vars, body);
                let ready = whole.free_variables().iter().all(|var| scope.bound.contains_key(var));
                let IndexExpr::Reduce(how, mut vars, body) = whole else { return whole };
                if !ready {
                    // Positions that are known already need not be computed again in every round of the inner loops.
                    let numbers: Vec<usize> = body.accesses().into_iter().map(|(_, number)| number).collect();
                    for number in numbers {
                        let cursor = self.descend(&scope.cursors[&number].clone(), scope);
                        scope.cursors.insert(number, cursor);
                    }
                    return IndexExpr::Reduce(how, vars, body);
                }
                vars.sort_by_key(|var| self.order.position(*var));
                let sum = self.code.variable("t", LoopExpr::Const(how.identity));
                self.nest(&vars, *body, scope.clone(), Sink::Variable(sum, how.clone()));
                IndexExpr::Computed(LoopExpr::Local(sum), how.identity.dtype())
            }
            other => other.map_parts(&mut |part| self.settle(part, scope)),
        }
    }

    /// Emits the innermost statement.
    fn leave(&mut self, expr: IndexExpr, scope: &Scope, sink: Sink) {
        match sink {
            Sink::Variable(sum, how) => {
                let before = IndexExpr::Computed(LoopExpr::Local(sum), how.identity.dtype());
                let value = self.scalar(&combine(&how, before, expr));
                self.code.set(sum, value);
            }
            Sink::Output(_) => {
                let value = self.scalar(&expr);
                self.leave_element(value, scope);
            }
            Sink::Scatter(how) => self.scatter(expr, scope, &how),
        }
    }
}
