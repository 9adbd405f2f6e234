//! The first level: the user's request.
//!
//! A [`Program`] is a list of nodes in SSA form. Almost every node is an [`IndexStmt`]: elementwise arithmetic, broadcasting, transposes,
//! slices, reductions, contractions, and also `zeros`, `arange`, `eye` and random sources, whose bodies read only the index.
//! The other operators are those that an index statement cannot express, or would express slowly.
//!
//! Node equality and hashing ignore spans: the segment cache compares programs by structure and types.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

use crate::accum::Accum;
use crate::array::Array;
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::index::{Access, Edge, Idx, Var};
use crate::scalar::ScalarCode;
use crate::shape::{self, Extent};
use crate::span::Span;
use crate::spec::{GatherSpec, ScanSpec, ScatterSpec, SortSpec};
use crate::tiling::Tiling;

mod block_fn;
mod infer;
mod injective;
mod mask;
mod routine;
mod uses;
mod verify;

pub use block_fn::{BlockFn, BlockFunction, BlockResult, FunctionRef, FunctionTable, OperandMode, ResultMode};
pub use infer::{gather_shape, infer};
pub use injective::is_injective;
pub use mask::{MaskCounts, mask_pieces};
pub use routine::{Compression, Routine, RoutineLibrary, RoutineLibraryRef, RoutineSpec, Transform};
pub use verify::verify;

/// A value of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);
entity_impl!(ValueId, "%");

/// A node of the body of a program, by its position there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);
entity_impl!(NodeId, "n");

/// An extent that depends on data. Equal ids are equal extents; different ids may turn out equal.
///
/// An id belongs to one table: to [`Program::extents`] in a program, to the counts of lazy tensors in their types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExtentId(u32);
entity_impl!(ExtentId, "#");

/// The definition of a deferred extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtentDef {
    /// The resolved scalar. In a loop, the newest one.
    pub value: ValueId,
}

/// The type of a tensor value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Extents of the axes.
    pub shape: Vec<Extent>,
    /// Its tiling, if the user or a source requests one; otherwise the planner chooses.
    pub tiling: Option<Tiling>,
    /// The storage format of blocks.
    pub format: Format,
    /// The value of absent elements, and of out-of-range reads with [`Edge::Fill`].
    pub fill: Scalar,
}

impl TensorType {
    /// A dense tensor with fill zero and no tiling yet.
    pub fn dense(dtype: DType, shape: Vec<Extent>) -> TensorType {
        TensorType { dtype, format: Format::dense(shape.len()), shape, tiling: None, fill: dtype.zero() }
    }

    /// A dense tensor of known shape.
    pub fn known(dtype: DType, shape: &[u64]) -> TensorType {
        TensorType::dense(dtype, shape.iter().map(|&n| Extent::Known(n)).collect())
    }

    /// A rank-0 tensor.
    pub fn scalar(dtype: DType) -> TensorType {
        TensorType::dense(dtype, Vec::new())
    }

    /// The same type with a tiling.
    pub fn with_tiling(mut self, tiling: Tiling) -> TensorType {
        self.tiling = Some(tiling);
        self
    }

    /// Bytes of all elements, or the largest number if they cannot be counted; nothing while an extent is unknown.
    pub fn known_bytes(&self) -> Option<u64> {
        Some(self.known_shape()?.iter().fold(self.dtype.size(), |bytes, &n| bytes.saturating_mul(n)))
    }

    /// The same type with another fill value.
    pub fn with_fill(mut self, fill: Scalar) -> TensorType {
        self.fill = fill;
        self
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The shape, if every extent is known.
    pub fn known_shape(&self) -> Option<Vec<u64>> {
        self.shape.iter().map(|extent| extent.known()).collect()
    }

    /// The shape, or an error that names the extents that are not known yet.
    pub fn require_shape(&self) -> Result<Vec<u64>> {
        shape::require_all(&self.shape, || Error::internal(format!("the shape of {self} is not resolved")))
    }

    /// True if dtype and shape agree, which loops must keep invariant.
    pub fn same_shape(&self, other: &TensorType) -> bool {
        self.dtype == other.dtype && self.shape == other.shape
    }
}

/// A variable of an index statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexVar {
    /// The user's name for it.
    pub name: String,
    /// It runs from 0 up to this.
    pub extent: Extent,
}

/// The write of an index statement. All results share the index map; each has its own body or finished value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Output {
    /// One expression per axis of the results.
    pub idx: Vec<Idx>,
    /// The rule for out-of-range writes; [`Edge::Fill`] drops the contribution.
    pub edge: Edge,
    /// Extents of the results.
    pub shape: Vec<Extent>,
    /// Without an accumulator: the value of elements that no point writes, one per result.
    pub fill: Vec<Scalar>,
}

/// For every point of `vars`: read, compute, and contribute to the results.
///
/// The parameters of `code` are the reads in order, then the variables as integers. Its results are the guard (if there is one), then the
/// bodies. A point whose guard is false contributes nothing, and reads outside are not errors there: the guard sees the fill value of the
/// operand in their place.
///
/// Without an accumulator the output map must be injective, and results are the bodies. With one, bodies are lifted and combined per output
/// element, and results are the finished states. A group is empty if no contribution reached it, because of the guard, of dropped writes or
/// of the output map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexStmt {
    /// The iteration space, outermost first.
    pub vars: Vec<IndexVar>,
    /// Operands read at each point.
    pub reads: Vec<Access>,
    /// Guard and bodies.
    pub code: ScalarCode,
    /// True if the first result of `code` is a guard.
    pub has_guard: bool,
    /// The accumulator that combines contributions to one element.
    pub accum: Option<Accum>,
    /// The write.
    pub out: Output,
}

impl IndexStmt {
    /// The types of the bodies.
    pub fn body_types(&self) -> Vec<DType> {
        self.code.result_types()[self.has_guard as usize..].to_vec()
    }

    /// The types of the results.
    pub fn result_types(&self) -> Vec<DType> {
        self.accum.as_ref().map_or_else(|| self.body_types(), Accum::result_types)
    }

    /// Names of the variables, for printing.
    pub fn var_names(&self) -> Vec<String> {
        self.vars.iter().map(|v| v.name.clone()).collect()
    }

    /// Inclusive ranges of the variables, or `None` if an extent is deferred or zero.
    pub fn var_ranges(&self) -> Option<Vec<(i64, i64)>> {
        self.vars.iter().map(|v| v.extent.known().filter(|&n| n > 0).map(|n| (0, n as i64 - 1))).collect()
    }

    /// True if results are written at `vars[..rank]` unchanged and cover the whole output: no scatter on the left.
    pub fn out_is_plain(&self) -> bool {
        let mut seen = vec![false; self.vars.len()];
        self.out.idx.iter().zip(&self.out.shape).all(|(idx, extent)| {
            idx.as_var().is_some_and(|Var(v)| {
                let v = v as usize;
                !std::mem::replace(&mut seen[v], true) && self.vars[v].extent == *extent
            })
        })
    }

    /// True if no accumulator and no guard: each output element is one body.
    pub fn is_elementwise(&self) -> bool {
        self.accum.is_none() && !self.has_guard && self.out_is_plain() && self.out.idx.len() == self.vars.len()
    }
}

/// The origin of data.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "programs have few sources, and most are inputs")]
pub enum SourceOp {
    /// Bound by name when the program runs: a file, an array of the host, or a value of an earlier segment.
    Input {
        /// The user's name for it.
        name: String,
        /// Its type, checked when it is bound.
        ty: TensorType,
    },
    /// Small data known while planning.
    Constant(Arc<Array>),
}

impl PartialEq for SourceOp {
    fn eq(&self, other: &SourceOp) -> bool {
        match (self, other) {
            (SourceOp::Input { name: a, ty: x }, SourceOp::Input { name: b, ty: y }) => a == b && x == y,
            (SourceOp::Constant(a), SourceOp::Constant(b)) => Arc::ptr_eq(a, b) || a.same_bits(b),
            _ => false,
        }
    }
}
impl Eq for SourceOp {}
impl Hash for SourceOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            SourceOp::Input { name, ty } => (0u8, name, ty).hash(state),
            // A prefix is enough to tell constants apart in practice; equality looks at all of it.
            SourceOp::Constant(array) => {
                (1u8, array.shape(), array.dtype()).hash(state);
                array.iter().take(64).for_each(|value| value.hash(state));
            }
        }
    }
}

/// The operation of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// No arguments, one result.
    Source(SourceOp),
    /// Arguments are the operands of the reads.
    Index(IndexStmt),
    /// Running aggregate along an axis. One argument per body of the accumulator, all of one shape; one result per finished value. What the
    /// first element of an exclusive scan sees is an empty group.
    Scan(ScanSpec),
    /// `data[.., index, ..]`. Arguments: data, then one i64 index tensor per gathered axis, all of one shape, which replaces the gathered
    /// axes at the position of the first of them. Negative indices are outside.
    Gather(GatherSpec),
    /// The transpose of gather: contributions go to the element the index names. Arguments: one index tensor per scattered axis, then one
    /// value tensor per body of the accumulator, shaped like the result of the corresponding gather.
    Scatter {
        /// Axes, accumulator and edge rule.
        spec: ScatterSpec,
        /// Extents of the scattered axes.
        extents: Vec<Extent>,
    },
    /// The elements that a mask selects, in row-major order of the mask. Arguments: mask, then data whose first axes are those of the mask; one
    /// result per data argument, with one axis in place of the mask's. A mask of bools takes an element or not, one of i64 takes it as often
    /// as it says. Without data the result is where they are: their row-major positions in the mask. It is an error of the data if that makes
    /// another number of elements than `extent`.
    Compact {
        /// Their number.
        extent: Extent,
        /// How they are spread over the mask, once it has been counted. Meaning does not depend on it.
        counts: Option<MaskCounts>,
    },
    /// The transpose of compact: the elements of a vector put where a mask holds, in row-major order. Arguments: mask of bools, values, and
    /// data of the mask's shape that stays elsewhere. It is an error of the data if there are not as many values as the mask holds times.
    Expand {
        /// How the places are spread over the mask, once it has been counted.
        counts: Option<MaskCounts>,
    },
    /// Stable sort along an axis, NaN last. Results: sorted values, and their positions along the axis before. NaNs are equal to each other, and
    /// so are zeros of either sign.
    Sort {
        /// The axis and the order.
        spec: SortSpec,
        /// Only so many elements along the axis, from the first on; there must be as many.
        limit: Option<u64>,
    },
    /// The same elements in row-major order under another shape, with the same fill value.
    Reshape {
        /// The new shape.
        shape: Vec<Extent>,
    },
    /// The same tensor, cut differently.
    Retile {
        /// The new cut.
        tiling: Tiling,
    },
    /// Arguments one after the other along an axis.
    Concat {
        /// Along this axis.
        axis: u32,
    },
    /// A function of blocks or whole fibres, called once per block key.
    BlockFn(BlockFn),
    /// A routine of linear algebra, a Fourier transform or order statistics. The planner expands it into a blocked algorithm.
    Routine(RoutineSpec),
    /// Ends a segment: the scalar argument is computed and becomes known to the planner. One integer or bool result.
    Resolve,
    /// Arguments are the initial values; results the final ones. Types of carried values do not change.
    While {
        /// From carried values to one bool.
        condition: Region,
        /// From carried values to the next ones.
        body: Region,
    },
    /// First argument the condition. Both regions give values of the same types.
    If {
        /// Taken when true.
        then: Region,
        /// Taken when false.
        otherwise: Region,
    },
    /// Writes its argument to a file. No results. Of two stores to one path the later wins.
    Store {
        /// Path of the file.
        path: String,
    },
}

impl Op {
    /// A word for messages and text.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Source(_) => "source",
            Op::Index(_) => "index",
            Op::Scan(_) => "scan",
            Op::Gather(_) => "gather",
            Op::Scatter { .. } => "scatter",
            Op::Compact { .. } => "compact",
            Op::Expand { .. } => "expand",
            Op::Sort { .. } => "sort",
            Op::Reshape { .. } => "reshape",
            Op::Retile { .. } => "retile",
            Op::Concat { .. } => "concat",
            Op::BlockFn(_) => "block_fn",
            Op::Routine(_) => "routine",
            Op::Resolve => "resolve",
            Op::While { .. } => "while",
            Op::If { .. } => "if",
            Op::Store { .. } => "store",
        }
    }
}

fn mapped(extents: &[Extent], map: &dyn Fn(Extent) -> Extent) -> Vec<Extent> {
    extents.iter().map(|&extent| map(extent)).collect()
}

impl TensorType {
    /// The same type with every extent replaced.
    pub fn map_extents(&self, map: &dyn Fn(Extent) -> Extent) -> TensorType {
        TensorType { shape: mapped(&self.shape, map), ..self.clone() }
    }

    /// The same type with the extents that `known` tells.
    pub fn resolve(&self, known: &dyn Fn(ExtentId) -> Option<u64>) -> TensorType {
        self.map_extents(&|extent| extent.resolve(known))
    }
}

impl Op {
    /// The same operation with every extent replaced. Regions of loops and branches are left as they are.
    pub fn map_extents(&self, map: &dyn Fn(Extent) -> Extent) -> Op {
        let mut op = self.clone();
        match &mut op {
            Op::Index(stmt) => {
                for var in &mut stmt.vars {
                    var.extent = map(var.extent);
                }
                stmt.out.shape = mapped(&stmt.out.shape, map);
            }
            Op::Source(SourceOp::Input { ty, .. }) => *ty = ty.map_extents(map),
            Op::Scatter { extents, .. } => *extents = mapped(extents, map),
            Op::Compact { extent, .. } => *extent = map(*extent),
            Op::Reshape { shape } => *shape = mapped(shape, map),
            _ => {}
        }
        op
    }

    /// The extents that the operation names itself.
    pub fn extents(&self) -> Vec<Extent> {
        match self {
            Op::Index(stmt) => stmt.vars.iter().map(|var| var.extent).chain(stmt.out.shape.iter().copied()).collect(),
            Op::Source(SourceOp::Input { ty, .. }) => ty.shape.clone(),
            Op::Scatter { extents, .. } => extents.clone(),
            Op::Compact { extent, .. } => vec![*extent],
            Op::Reshape { shape } => shape.clone(),
            _ => Vec::new(),
        }
    }

    /// The same operation with the extents that `known` tells. Regions of loops and branches are left as they are.
    pub fn resolve(&self, known: &dyn Fn(ExtentId) -> Option<u64>) -> Op {
        self.map_extents(&|extent| extent.resolve(known))
    }
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its operation.
    pub op: Op,
    /// Its arguments.
    pub args: Vec<ValueId>,
    /// Its results.
    pub results: Vec<ValueId>,
    /// Its place in the user's text.
    pub span: Span,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.args == other.args && self.results == other.results && self.op == other.op
    }
}
impl Eq for Node {}
impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.args, &self.results, &self.op).hash(state)
    }
}

/// A list of nodes with parameters and results. Nodes may also read values of the regions around it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Region {
    /// Bound when the region is entered.
    pub params: Vec<ValueId>,
    /// In order; a value is made before it is read.
    pub nodes: Vec<Node>,
    /// Given when the region is left.
    pub results: Vec<ValueId>,
}

/// The facts about a value.
#[derive(Clone, Debug)]
pub struct ValueInfo {
    /// Its type.
    pub ty: TensorType,
    /// The user's name for it, if there is one. Not part of the structure.
    pub name: Option<String>,
}

impl PartialEq for ValueInfo {
    fn eq(&self, other: &ValueInfo) -> bool {
        self.ty == other.ty
    }
}
impl Eq for ValueInfo {}
impl Hash for ValueInfo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ty.hash(state)
    }
}

/// A whole program: a region without parameters, whose results have names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Every value of every region.
    pub values: PrimaryMap<ValueId, ValueInfo>,
    /// What tells the deferred extents in types and operations. No two are told by one value.
    pub extents: PrimaryMap<ExtentId, ExtentDef>,
    /// The body. Its results are the outputs, in the order of `outputs`.
    pub body: Region,
    /// Names of the outputs.
    pub outputs: Vec<String>,
}

impl Hash for Program {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.values.len().hash(state);
        self.values.values().for_each(|info| info.hash(state));
        self.extents.values().for_each(|extent| extent.hash(state));
        (&self.body, &self.outputs).hash(state);
    }
}

impl Program {
    /// An empty program.
    pub fn new() -> Program {
        Program::default()
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &TensorType {
        &self.values[value].ty
    }

    /// A new value without a definition: for region parameters.
    pub fn new_value(&mut self, ty: TensorType) -> ValueId {
        self.values.push(ValueInfo { ty, name: None })
    }

    /// The nodes of the body, each with its id.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.body.nodes.iter().enumerate().map(|(k, node)| (NodeId::new(k), node))
    }

    /// A node of the body, if it is there.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.body.nodes.get(id.index())
    }

    /// Appends a node to a region, checks it and infers its results.
    pub fn push_into(&mut self, region: &mut Region, op: Op, args: &[ValueId], span: &Span) -> Result<Vec<ValueId>> {
        let operands: Vec<&TensorType> = args.iter().map(|&value| self.ty(value)).collect();
        let types = infer(&self.values, &op, &operands).map_err(|error| error.at(span))?;
        let results: Vec<ValueId> = types.into_iter().map(|ty| self.new_value(ty)).collect();
        region.nodes.push(Node { op, args: args.to_vec(), results: results.clone(), span: *span });
        Ok(results)
    }

    /// Appends a node to the body; see [`Program::push_into`].
    pub fn push(&mut self, op: Op, args: &[ValueId], span: &Span) -> Result<Vec<ValueId>> {
        let mut body = std::mem::take(&mut self.body);
        let results = self.push_into(&mut body, op, args, span);
        self.body = body;
        results
    }

    /// Appends a source to the body. Its type is the given one, so there is nothing to infer.
    pub fn push_source(&mut self, source: SourceOp, ty: TensorType, span: &Span) -> ValueId {
        let value = self.new_value(ty);
        self.body.nodes.push(Node { op: Op::Source(source), args: Vec::new(), results: vec![value], span: *span });
        value
    }

    /// Appends a node with one result to the body.
    pub fn push1(&mut self, op: Op, args: &[ValueId], span: &Span) -> Result<ValueId> {
        let results = self.push(op, args, span)?;
        match results.as_slice() {
            [value] => Ok(*value),
            _ => Err(Error::internal("a node with one result was expected")),
        }
    }

    /// The extent that a resolved scalar defines.
    pub fn extent_of(&mut self, value: ValueId) -> Extent {
        let known = self.extents.iter().rev().find(|(_, extent)| extent.value == value);
        Extent::Deferred(known.map(|(id, _)| id).unwrap_or_else(|| self.extents.push(ExtentDef { value })))
    }

    /// The scalar that defines an extent, if it is deferred.
    pub fn told_by(&self, extent: Extent) -> Option<ValueId> {
        Some(self.extents.get(extent.deferred()?)?.value)
    }

    /// Names a value as an output.
    pub fn output(&mut self, name: impl Into<String>, value: ValueId) {
        self.outputs.push(name.into());
        self.body.results.push(value);
    }

    /// Names a value for messages.
    pub fn name(&mut self, value: ValueId, name: impl Into<String>) {
        self.values[value].name = Some(name.into());
    }

    /// The user's name for a value, or its number.
    pub fn display_name(&self, value: ValueId) -> String {
        self.values[value].name.clone().unwrap_or_else(|| value.to_string())
    }

    /// The inputs a program expects, in order of appearance.
    pub fn inputs(&self) -> Vec<(&str, &TensorType)> {
        self.body
            .nodes
            .iter()
            .filter_map(|node| match &node.op {
                Op::Source(SourceOp::Input { name, ty }) => Some((name.as_str(), ty)),
                _ => None,
            })
            .collect()
    }

    /// Sets the tiling of an input, or leaves it open.
    pub fn cut_input(&mut self, wanted: &str, tiling: Option<&Tiling>) {
        for node in &mut self.body.nodes {
            if let Op::Source(SourceOp::Input { name, ty }) = &mut node.op
                && name == wanted
            {
                ty.tiling = tiling.cloned();
                node.results.iter().for_each(|&value| self.values[value].ty.tiling = tiling.cloned());
            }
        }
    }
}

/// Checks that a type is one the engine can hold: countable size, rank within the limit, valid tiling and format.
pub fn verify_type(ty: &TensorType) -> Result<()> {
    if ty.rank() > shape::MAX_RANK {
        return Err(Error::source(format!("a tensor of rank {}; the limit is {}", ty.rank(), shape::MAX_RANK)));
    }
    if ty.fill.dtype() != ty.dtype {
        return Err(Error::internal(format!("a fill value of type {} for a tensor of {}", ty.fill.dtype(), ty.dtype)));
    }
    if !ty.format.is_valid(ty.rank()) {
        return Err(Error::internal(format!("{} is not a format of a tensor of rank {}", ty.format, ty.rank())));
    }
    if let Some(shape) = ty.known_shape() {
        shape::n_bytes(&shape, ty.dtype.size())?;
        if let Some(tiling) = &ty.tiling {
            tiling.verify(&shape)?;
        }
    }
    Ok(())
}
