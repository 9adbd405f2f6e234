//! The second level: relations from block keys to blocks.
//!
//! Each value of a segment is a relation: its key is a block coordinate, its payload a block. Steps define relations from others in the vocabulary
//! of the tensor relational algebra. An index statement is a join on block variables followed by an aggregate; finishing an accumulator
//! is a transform; retiling is tile and concat. A plan does not enumerate tasks; partial evaluation over the keys does.

use cranelift_entity::{PrimaryMap, entity_impl};

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::kernel::{Sorting, StatementKernel};
use crate::program::{BlockFn, MaskCounts};
use crate::spec::{FinishSpec, GatherSpec, ScanSpec, ScatterSpec};
use crate::tiling::Tiling;
use crate::workflow::{SinkDecl, SinkId, SourceDecl, SourceId, Statement, StmtId};

/// A relation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelId(u32);
entity_impl!(RelId, "r");

/// Where the blocks of a relation live on a mesh of processes. The schedulers for several ranks fill it in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Distribution {
    /// Per axis of the relation: the mesh axis its tiles are dealt over, or `None` if they are not.
    pub split: Vec<Option<u32>>,
    /// Mesh axes along which every process holds only a part of the sum.
    pub partial: Vec<u32>,
}

/// A map from block keys to blocks. Keys are the tiles of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRelation {
    /// The user's name, or one derived from it.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole tensor.
    pub shape: Vec<u64>,
    /// How it is cut.
    pub grid: Grid,
    /// Where its blocks live, once placed.
    pub distribution: Option<Distribution>,
}

impl BlockRelation {
    /// Bytes of the whole tensor.
    pub fn n_bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.size(), |bytes, &n| bytes.saturating_mul(n))
    }

    /// Number of block keys.
    pub fn n_blocks(&self) -> u64 {
        self.grid.n_blocks()
    }
}

/// How the relations of a step are made from its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelOp {
    /// Blocks of a source.
    Load {
        /// One of the plan's sources.
        source: SourceId,
    },
    /// Joins the inputs on the tiles of the block variables and applies the kernel to every combination. Combinations that meet in one output
    /// block are aggregated: cut into `chains` of consecutive combinations, each folded in order, then combined by a tree.
    Join {
        /// Block variables (its `vars`), operand maps and code.
        kernel: Box<StatementKernel>,
        /// Names of the variables, for text and explain.
        names: Vec<String>,
        /// Number of chains; 1 without an accumulator.
        chains: u32,
    },
    /// A transform: states to results, block by block.
    Finish(FinishSpec),
    /// Tile and concat: the same tensor under another grid.
    Retile,
    /// Inputs one after the other along an axis.
    Concat {
        /// Along this axis.
        axis: u32,
    },
    /// Running aggregate along an axis. All inputs have the grid of the outputs.
    Scan(ScanSpec),
    /// Joins every index block with every data block it may name. Inputs: data, then one index relation per axis.
    Gather {
        /// Axes and edge rule.
        spec: GatherSpec,
        /// The value outside with [`Edge::Fill`](crate::index::Edge::Fill).
        fill: Scalar,
    },
    /// Joins every index block with every output block it may name. Inputs: index relations, then values. Outputs: state.
    Scatter {
        /// Axes, edge rule and accumulator.
        spec: ScatterSpec,
        /// Number of chains.
        chains: u32,
    },
    /// Elements that a mask selects, piece by piece. Inputs: mask, then data. Outputs are vectors cut where pieces end.
    Compact(MaskCounts),
    /// Elements of a vector put where a mask holds. Inputs: mask, values, data. The output is cut as the pieces of the mask.
    Expand(MaskCounts),
    /// Stable sort along an axis. Outputs: values and positions, or one of them; if they are shorter than the input along the axis, the first
    /// elements of the order.
    Sort(Sorting),
    /// A block function over its grid of keys.
    BlockFn(BlockFn),
    /// Blocks go to a sink. No outputs.
    Store {
        /// One of the plan's sinks.
        sink: SinkId,
    },
}

impl RelOp {
    /// A word for messages and text.
    pub fn name(&self) -> &'static str {
        match self {
            RelOp::Load { .. } => "load",
            RelOp::Join { .. } => "join",
            RelOp::Finish(_) => "finish",
            RelOp::Retile => "retile",
            RelOp::Concat { .. } => "concat",
            RelOp::Scan(_) => "scan",
            RelOp::Gather { .. } => "gather",
            RelOp::Scatter { .. } => "scatter",
            RelOp::Compact(_) => "compact",
            RelOp::Expand(_) => "expand",
            RelOp::Sort(_) => "sort",
            RelOp::BlockFn(_) => "block_fn",
            RelOp::Store { .. } => "store",
        }
    }
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// How.
    pub op: RelOp,
    /// From these.
    pub inputs: Vec<RelId>,
    /// These are made.
    pub outputs: Vec<RelId>,
    /// For this statement of the user.
    pub statement: StmtId,
}

/// A segment as relations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Statements steps belong to.
    pub statements: PrimaryMap<StmtId, Statement>,
    /// Where loads read.
    pub sources: PrimaryMap<SourceId, SourceDecl>,
    /// Where stores write.
    pub sinks: PrimaryMap<SinkId, SinkDecl>,
    /// All relations.
    pub relations: PrimaryMap<RelId, BlockRelation>,
    /// Definitions, each after those of its inputs.
    pub steps: Vec<PlanStep>,
    /// Names of results.
    pub outputs: Vec<(String, RelId)>,
}

/// Checks that relations are made once and before they are read, that grids cover shapes, and that joins have the operands their kernels read.
pub fn verify(plan: &Plan) -> Result<()> {
    let mut made = vec![false; plan.relations.len()];
    let wrong = |step: &PlanStep, what: String| {
        Err(Error::internal(format!("{}: {what}", step.op.name())).at(&plan.statements[step.statement].span))
    };
    for (id, relation) in plan.relations.iter() {
        Tiling::Grid(relation.grid.clone())
            .verify(&relation.shape)
            .map_err(|error| Error::internal(format!("{id}: {}", error.message())))?;
    }
    for step in &plan.steps {
        if !plan.statements.is_valid(step.statement) {
            return Err(Error::internal(format!("{} belongs to a statement that is not there", step.op.name())));
        }
        if let Some(input) = step.inputs.iter().find(|r| !made.get(r.0 as usize).copied().unwrap_or(false)) {
            return wrong(step, format!("{input} is read before it is made"));
        }
        for output in &step.outputs {
            match made.get_mut(output.0 as usize) {
                Some(slot) if !*slot => *slot = true,
                _ => return wrong(step, format!("{output} is made twice, or has no type")),
            }
        }
        match &step.op {
            RelOp::Join { kernel, names, chains } => {
                let n_outputs = kernel.accum.as_ref().map_or(kernel.out_fill.len(), |a| a.identity.len());
                if step.inputs.len() != kernel.reads.len()
                    || step.outputs.len() != n_outputs
                    || names.len() != kernel.vars.len()
                {
                    return wrong(step, "operands, outputs or names do not fit the kernel".to_string());
                }
                if *chains == 0 || (*chains > 1 && kernel.accum.is_none()) {
                    return wrong(step, format!("{chains} chains"));
                }
                for (read, input) in kernel.reads.iter().zip(&step.inputs) {
                    let relation = &plan.relations[*input];
                    if relation.shape != read.shape || relation.dtype != read.dtype {
                        return wrong(step, format!("{input} is not what the kernel reads"));
                    }
                }
            }
            RelOp::Load { source } if !plan.sources.is_valid(*source) => {
                return wrong(step, "no such source".into());
            }
            RelOp::Store { sink } if !plan.sinks.is_valid(*sink) => return wrong(step, "no such sink".into()),
            _ => {}
        }
    }
    match plan.outputs.iter().find(|(_, r)| !made.get(r.0 as usize).copied().unwrap_or(false)) {
        Some((name, _)) => Err(Error::internal(format!("output `{name}` is never made"))),
        None => Ok(()),
    }
}
