//! Lowering: from a straight-line program to relations. It chooses a grid for each value and cuts reductions into chains.
//!
//! Input programs have no control flow and no deferred extents: the control walk has resolved both. A statement is a join on block variables followed by an
//! aggregate. The grid of the output cuts its variables; any other variable is cut by the grid of the largest operand that it indexes. A requested
//! retile moves into the producer. The number of chains of a reduction depends on the numbers of terms and outputs and on their bytes, never on the machine.

use std::collections::{BTreeMap, HashMap, HashSet};

use tw_ir::error::{Error, Result};
use tw_ir::plan::{BlockRelation, Plan, PlanStep, RelId, RelOp};
use tw_ir::program::{Node, NodeId, Op, OperandMode, Program, SourceOp, ValueId};
use tw_ir::workflow::{SinkDecl, SourceDecl, Statement, StmtId};
use tw_ir::{Axis, DType, Grid, Idx, Tiling};

use crate::options::PlanOptions;
use crate::tile::Tiler;

mod index;
mod masked;
mod operators;

/// Lowers a straight-line program. Every extent must be known.
pub fn lower(program: &Program, options: &PlanOptions) -> Result<Plan> {
    lower_cut(program, options, ChosenCuts::default())
}

/// Cuts chosen by another planner.
#[derive(Default)]
pub struct ChosenCuts {
    /// Cuts of values without a requested tiling.
    pub values: BTreeMap<ValueId, Grid>,
    /// Of the variables of statements. Those that run along the result are cut as it is.
    pub variables: BTreeMap<NodeId, Grid>,
}

/// As [`lower`], with cuts chosen by another planner.
pub fn lower_cut(program: &Program, options: &PlanOptions, cuts: ChosenCuts) -> Result<Plan> {
    let mut lowering = Lowering::new(program, options);
    if !cuts.values.is_empty() {
        lowering.tiler = lowering.tiler.with_chosen_cuts();
        lowering.requested.extend(cuts.values);
    }
    lowering.variables = cuts.variables;
    for (id, node) in program.nodes() {
        lowering.node(id, node).map_err(|error| error.at(&node.span))?;
    }
    for (name, value) in program.outputs.iter().zip(&program.body.results) {
        let relation = lowering.relation(*value)?;
        lowering.plan.outputs.push((name.clone(), relation));
    }
    Ok(lowering.plan)
}

struct Lowering<'a> {
    program: &'a Program,
    tiler: Tiler,
    plan: Plan,
    relations: HashMap<ValueId, RelId>,
    /// Grids asked for by a later retile that is the only reader: the producer makes the blocks right at once.
    requested: HashMap<ValueId, Grid>,
    /// Chosen cuts of the variables of statements.
    variables: BTreeMap<NodeId, Grid>,
    /// The number of reads of a value; a result of the segment counts as a read.
    readers: HashMap<ValueId, u32>,
}

/// Sources that functions read whole, in one block: cut, they would only be put together again. What is computed stays cut, so that many threads can
/// compute it.
fn read_whole(program: &Program) -> Vec<(ValueId, Grid)> {
    let nodes = &program.body.nodes;
    let is_source = |node: &&Node| matches!(node.op, Op::Source(_));
    let sources: HashSet<ValueId> = nodes.iter().filter(is_source).flat_map(|node| node.results.clone()).collect();
    let mut found = Vec::new();
    for node in nodes {
        let Op::BlockFn(call) = &node.op else { continue };
        for (&arg, modes) in node.args.iter().zip(&call.operands) {
            let is_whole = modes.iter().all(|mode| *mode == OperandMode::Whole);
            if let Some(shape) = program.ty(arg).known_shape().filter(|_| is_whole && sources.contains(&arg)) {
                found.push((arg, Grid::whole(&shape)));
            }
        }
    }
    found
}

/// Values of statements that read an axis at a sum of variables, or at a quotient or remainder, as a reshape does. What a block of them reads lies together only if it is cut in the order of the elements, so
/// the first retile after them is the one that they are asked for.
fn reordered(program: &Program) -> HashSet<ValueId> {
    let reorders = |node: &&Node| match &node.op {
        Op::Index(stmt) => {
            let is_simple = |idx: &Idx| {
                idx.as_affine(stmt.vars.len())
                    .is_some_and(|(factors, _)| factors.iter().filter(|&&factor| factor != 0).count() <= 1)
            };
            stmt.reads.iter().flat_map(|read| &read.idx).any(|idx| !is_simple(idx))
        }
        _ => false,
    };
    program.body.nodes.iter().filter(reorders).flat_map(|node| node.results.clone()).collect()
}

impl<'a> Lowering<'a> {
    fn new(program: &'a Program, options: &PlanOptions) -> Lowering<'a> {
        let mut readers: HashMap<ValueId, u32> = HashMap::new();
        let args = program.body.nodes.iter().flat_map(|node| &node.args);
        for value in args.chain(&program.body.results) {
            *readers.entry(*value).or_default() += 1;
        }
        let mut requested = HashMap::new();
        let reorders = reordered(program);
        // Backwards, so that a chain of retiles asks for the last one.
        for node in program.body.nodes.iter().rev() {
            if let Op::Retile { tiling: Tiling::Grid(axes) } = &node.op
                && readers[&node.args[0]] == 1
            {
                let later = requested.get(&node.results[0]).filter(|_| !reorders.contains(&node.args[0]));
                requested.insert(node.args[0], later.unwrap_or(axes).clone());
            }
        }
        for (value, grid) in read_whole(program) {
            if readers[&value] == 1 && options.tile.is_none() && options.block_bytes.is_none() {
                requested.insert(value, grid);
            }
        }
        Lowering {
            program,
            tiler: Tiler::new(program, options),
            plan: Plan::default(),
            relations: HashMap::new(),
            requested,
            variables: BTreeMap::new(),
            readers,
        }
    }

    fn node(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let label = node.results.first().map_or_else(|| node.op.name().to_string(), |&value| self.label(node, value));
        let statement = self.plan.statements.push(Statement { label, span: node.span, node: Some(id) });
        match &node.op {
            Op::Source(source) => self.source(node, source, statement),
            Op::Index(stmt) => self.index(node, stmt, statement),
            Op::Scan(spec) => self.scan(node, spec, statement),
            Op::Gather(spec) => self.gather(node, spec, statement),
            Op::Scatter { spec, .. } => self.scatter(node, spec, statement),
            Op::Sort { spec, limit } => self.sort(node, (*spec, *limit), statement),
            Op::Retile { tiling } => self.retile(node, tiling, statement),
            Op::Concat { axis } => self.concat(node, *axis, statement),
            Op::BlockFn(call) => self.block_fn(node, call, statement),
            Op::Store { path } => {
                let input = self.relation(node.args[0])?;
                let relation = &self.plan.relations[input];
                let sink = SinkDecl { path: path.clone(), dtype: relation.dtype, shape: relation.shape.clone() };
                let op = RelOp::Store { sink: self.plan.sinks.push(sink) };
                self.step(op, vec![input], Vec::new(), statement);
                Ok(())
            }
            Op::Compact { extent, counts } => self.compact(node, *extent, counts.as_ref(), statement),
            Op::Expand { counts } => self.expand(node, counts.as_ref(), statement),
            Op::Reshape { .. } | Op::Routine(_) => {
                Err(Error::internal(format!("{} should have been expanded before lowering", node.op.name())))
            }
            Op::Resolve | Op::While { .. } | Op::If { .. } => {
                Err(Error::internal(format!("{} inside a segment", node.op.name())))
            }
        }
    }

    fn label(&self, node: &Node, value: ValueId) -> String {
        match &self.program.values[value].name {
            Some(name) => name.clone(),
            None => node.op.name().to_string(),
        }
    }

    fn source(&mut self, node: &Node, source: &SourceOp, statement: StmtId) -> Result<()> {
        let value = node.results[0];
        let ty = self.program.ty(value);
        let shape = ty.require_shape()?;
        let grid = match &ty.tiling {
            Some(Tiling::Grid(axes)) => axes.clone(),
            Some(Tiling::Pieces { .. }) => {
                return Err(Error::plan("tilings by pieces are for sparse tensors, which are not supported yet"));
            }
            None => match self.requested.get(&value) {
                Some(grid) => grid.clone(),
                None => self.tiler.automatic(&shape, ty.dtype.size()),
            },
        };
        if !ty.format.is_dense() {
            return Err(Error::plan(format!("{} cannot be planned yet: only dense formats are", ty.format)));
        }
        let decl = match source {
            SourceOp::Input { name, ty } => SourceDecl::Input { name: name.clone(), ty: ty.clone() },
            SourceOp::Constant(array) => SourceDecl::Constant(array.clone()),
        };
        let op = RelOp::Load { source: self.plan.sources.push(decl) };
        let relation = self.define(value, grid)?;
        self.step(op, Vec::new(), vec![relation], statement);
        Ok(())
    }

    fn retile(&mut self, node: &Node, tiling: &Tiling, statement: StmtId) -> Result<()> {
        let Tiling::Grid(grid) = tiling else {
            return Err(Error::plan("tilings by pieces are for sparse tensors, which are not supported yet"));
        };
        let input = self.relation(node.args[0])?;
        let output = self.with_grid(input, grid, statement)?;
        self.relations.insert(node.results[0], output);
        Ok(())
    }

    /// The relation of a value made earlier.
    fn relation(&self, value: ValueId) -> Result<RelId> {
        self.relations.get(&value).copied().ok_or_else(|| Error::internal(format!("{value} has no relation")))
    }

    /// A new relation for a value, cut by a grid.
    fn define(&mut self, value: ValueId, grid: Grid) -> Result<RelId> {
        let ty = self.program.ty(value);
        let relation = self.new_relation(self.program.display_name(value), ty.dtype, grid);
        self.relations.insert(value, relation);
        Ok(relation)
    }

    fn new_relation(&mut self, name: String, dtype: DType, grid: Grid) -> RelId {
        let shape = grid.shape();
        self.plan.relations.push(BlockRelation { name, dtype, shape, grid, distribution: None })
    }

    fn step(&mut self, op: RelOp, inputs: Vec<RelId>, outputs: Vec<RelId>, statement: StmtId) {
        self.plan.steps.push(PlanStep { op, inputs, outputs, statement });
    }

    /// The same tensor under a grid; itself if it already has it.
    fn with_grid(&mut self, relation: RelId, grid: &Grid, statement: StmtId) -> Result<RelId> {
        let from = &self.plan.relations[relation];
        if from.grid == *grid {
            return Ok(relation);
        }
        let (name, dtype) = (from.name.clone(), from.dtype);
        let output = self.new_relation(name, dtype, grid.clone());
        self.step(RelOp::Retile, vec![relation], vec![output], statement);
        Ok(output)
    }

    /// The grid asked for, or one completed from the given axes.
    fn output_grid(&self, value: ValueId, shape: &[u64], given: &[Option<Axis>], dtype: DType) -> Grid {
        match self.requested.get(&value) {
            Some(grid) => grid.clone(),
            None => self.tiler.complete(shape, given, dtype.size()),
        }
    }

    /// The number of chains of a reduction with `n_terms` contributions to each of `n_outputs` blocks.
    ///
    /// Enough for some parallelism, at least two terms each, and never more bytes of partial results than there are bytes to reduce. Machine
    /// properties must not enter: bits depend on it.
    fn n_chains(&self, n_terms: u64, n_outputs: u64, operand_bytes: u64, output_bytes: u64) -> u32 {
        const WANTED: u64 = 64;
        let parallel = WANTED.div_ceil(n_outputs.max(1));
        let affordable = operand_bytes / output_bytes.max(1);
        parallel.min(n_terms.div_ceil(2)).min(affordable).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use tw_ir::{Extent, Scalar, Span};

    use super::*;

    #[test]
    fn statements_name_their_nodes() {
        let mut program = Program::new();
        let ones = tw_build::full(&[2, 3].map(Extent::Known), Scalar::F64(1.0));
        let x = program.push1(ones, &[], &Span::text(0, 1)).unwrap();
        let turned = tw_build::transpose(program.ty(x));
        let y = program.push1(turned, &[x], &Span::text(2, 3)).unwrap();
        program.output("y", y);
        let plan = lower(&program, &PlanOptions::default()).unwrap();
        let nodes: Vec<Option<&Node>> = plan.statements.values().map(|found| program.node(found.node?)).collect();
        assert_eq!(nodes, program.body.nodes.iter().map(Some).collect::<Vec<_>>());
        let node_of = |step: &PlanStep| program.node(plan.statements[step.statement].node?);
        assert!(plan.steps.iter().all(|step| node_of(step).is_some()));
    }
}
