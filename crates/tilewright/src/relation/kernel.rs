//! Kernels: the functions that operators apply to blocks.

use std::sync::Arc;

use tw_build::Reduction;
use tw_ir::dense::DenseLibrary;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockFn, BlockFunction, BlockResult, FunctionRef, OperandMode, ResultMode};
use tw_ir::scalar::{BinaryOp, UnaryOp};
use tw_ir::workflow::BlockShape;
use tw_ir::{Array, ArrayView, DType, Scalar, shape};

use super::view::block_per_key;
use crate::tensor::Tensor;

/// A function of blocks: built in, so that the planner sees what it does, or of the user.
///
/// Text names the kernels that need nothing else: `"matmul"`, subscripts as in `"ab,bc->ac"`, operations on elements such as `"add"` or `"exp"`, and
/// aggregates of whole blocks such as `"sum"`.
#[derive(Clone, Debug)]
pub struct RelationKernel(pub(super) Kind);

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Products that sum, of one or two blocks.
    Einsum(String),
    /// Element by element, of one block.
    Unary(UnaryOp),
    /// Element by element, of two blocks that broadcast.
    Binary(BinaryOp),
    /// Element by element, of a block and a number.
    WithScalar(BinaryOp, Scalar),
    /// Another type.
    Cast(DType),
    /// Along axes of a block, or of all of it.
    Reduce(Reduction, Option<Vec<usize>>),
    /// Of the user.
    Function(BlockKernel),
    /// A name that nothing has.
    Unknown(String),
}

/// A function of the user, and what it gives.
#[derive(Clone, Debug)]
pub(super) struct BlockKernel {
    function: FunctionRef,
    /// Bound and type of the results; those of the first operand if nothing is said.
    gives: Option<(Vec<u64>, DType)>,
}

impl From<&str> for RelationKernel {
    fn from(name: &str) -> RelationKernel {
        RelationKernel(match name {
            "matmul" => Kind::Einsum("ab,bc->ac".to_string()),
            // What NumPy and the array API call them.
            "multiply" => Kind::Binary(BinaryOp::Mul),
            "subtract" => Kind::Binary(BinaryOp::Sub),
            "divide" => Kind::Binary(BinaryOp::Div),
            "minimum" => Kind::Binary(BinaryOp::Min),
            "maximum" => Kind::Binary(BinaryOp::Max),
            spec if spec.contains([',', '>']) => Kind::Einsum(spec.to_string()),
            name => match (name.parse(), name.parse(), Reduction::named(name)) {
                // Two blocks have a smaller one of each pair of elements, one block has a smallest element: which it is depends on the operator.
                (Ok(op), _, _) => Kind::Binary(op),
                (_, Ok(op), _) => Kind::Unary(op),
                (_, _, Some(kind)) => Kind::Reduce(kind, None),
                _ => Kind::Unknown(name.to_string()),
            },
        })
    }
}

impl From<BinaryOp> for RelationKernel {
    fn from(op: BinaryOp) -> RelationKernel {
        RelationKernel(Kind::Binary(op))
    }
}

impl From<UnaryOp> for RelationKernel {
    fn from(op: UnaryOp) -> RelationKernel {
        RelationKernel(Kind::Unary(op))
    }
}

impl RelationKernel {
    /// An operation of every element with a number.
    pub fn with_scalar(op: BinaryOp, value: impl Into<Scalar>) -> RelationKernel {
        RelationKernel(Kind::WithScalar(op, value.into()))
    }

    /// The same operation, of every element with a number in place of a second block.
    pub fn with_number(self, value: impl Into<Scalar>) -> Result<RelationKernel> {
        match self.0 {
            Kind::Binary(op) => Ok(RelationKernel::with_scalar(op, value)),
            _ => Err(self.unfit("transform with a number", "operations on two elements")),
        }
    }

    /// Another element type.
    pub fn cast(dtype: DType) -> RelationKernel {
        RelationKernel(Kind::Cast(dtype))
    }

    /// An aggregate along axes of a block.
    pub fn reduce(kind: Reduction, axes: &[usize]) -> RelationKernel {
        RelationKernel(Kind::Reduce(kind, Some(axes.to_vec())))
    }

    /// A pure function of blocks. It gives blocks shaped and typed like its first operand, unless [`RelationKernel::giving`] says otherwise.
    pub fn function(
        name: impl Into<String>,
        apply: impl Fn(&[ArrayView<'_>]) -> Result<Array> + Send + Sync + 'static,
    ) -> RelationKernel {
        RelationKernel::block_function(FunctionRef(Arc::new(Closure { name: name.into(), apply })))
    }

    /// A block function with one result, as block functions of tensors are.
    pub fn block_function(function: FunctionRef) -> RelationKernel {
        RelationKernel(Kind::Function(BlockKernel { function, gives: None }))
    }

    /// The same function, with the bound and type of the blocks that it gives. Built-in kernels know theirs.
    pub fn giving(mut self, bound: &[u64], dtype: DType) -> RelationKernel {
        if let Kind::Function(kernel) = &mut self.0 {
            kernel.gives = Some((bound.to_vec(), dtype));
        }
        self
    }

    /// How messages call it.
    pub(super) fn name(&self) -> String {
        match &self.0 {
            Kind::Einsum(spec) => spec.clone(),
            Kind::Unary(op) => op.name().to_string(),
            Kind::Binary(op) | Kind::WithScalar(op, _) => op.name().to_string(),
            Kind::Cast(dtype) => dtype.to_string(),
            Kind::Reduce(kind, _) => kind.name().to_string(),
            Kind::Function(kernel) => kernel.function.0.name().to_string(),
            Kind::Unknown(name) => name.clone(),
        }
    }

    /// The error of an operator that has no use for this kernel.
    pub(super) fn unfit(&self, operation: &str, wanted: &str) -> Error {
        match &self.0 {
            Kind::Unknown(name) => Error::source(format!("there is no kernel `{name}`"))
                .help("subscripts such as \"ab,bc->ac\", names such as \"matmul\", \"add\" or \"exp\", or a function"),
            _ => Error::source(format!("{operation} by `{}`; it takes {wanted}", self.name())),
        }
    }
}

/// An operand of a function: a tensor, how many of its axes are keys, and what the function sees of those.
pub(super) struct KeyedOperand<'a> {
    pub(super) tensor: &'a Tensor,
    pub(super) lead: Vec<OperandMode>,
}

impl BlockKernel {
    /// The bound and type of what it gives for operands.
    pub(super) fn gives(&self, first: &KeyedOperand<'_>) -> Result<(Vec<u64>, DType)> {
        match &self.gives {
            Some(gives) => Ok(gives.clone()),
            None => Ok((first.tensor.shape()?[first.lead.len()..].to_vec(), first.tensor.dtype())),
        }
    }

    /// One call per key of the grid numbers `0..n_lead`, which become the leading axes of the result.
    pub(super) fn apply(
        &self,
        operation: &'static str,
        operands: &[KeyedOperand<'_>],
        n_lead: usize,
    ) -> Result<Tensor> {
        let first = operands.first().ok_or_else(|| Error::internal("a kernel without operands"))?;
        let (bound, dtype) = self.gives(first)?;
        let cut: Vec<Tensor> =
            operands.iter().map(|operand| block_per_key(operand.tensor, operand.lead.len())).collect::<Result<_>>()?;
        let modes = |operand: &KeyedOperand<'_>| {
            let whole = operand.tensor.ty().rank() - operand.lead.len();
            operand.lead.iter().cloned().chain(std::iter::repeat_n(OperandMode::Whole, whole)).collect()
        };
        let lead = (0..n_lead as u32).map(ResultMode::Grid);
        let result = BlockResult { dtype, modes: lead.chain(bound.iter().map(|&n| ResultMode::Whole(n))).collect() };
        let function = OnBlocks {
            function: self.function.clone(),
            operation,
            leads: operands.iter().map(|operand| operand.lead.len()).collect(),
            n_lead,
        };
        let call = BlockFn {
            function: FunctionRef(Arc::new(function)),
            operands: operands.iter().map(modes).collect(),
            results: vec![result],
        };
        let made = crate::map_blocks(call, &cut.iter().collect::<Vec<_>>())?;
        made.into_iter().next().ok_or_else(|| Error::internal("a block function without a result"))
    }
}

/// A function that sees blocks without the axes of their keys.
struct OnBlocks {
    function: FunctionRef,
    operation: &'static str,
    /// Key axes of every operand, and of the result.
    leads: Vec<usize>,
    n_lead: usize,
}

impl BlockFunction for OnBlocks {
    fn name(&self) -> &str {
        self.function.0.name()
    }

    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        self.on_blocks(operands, results, |blocks, made| self.function.0.apply(blocks, made))
    }

    fn apply_by(&self, library: &dyn DenseLibrary, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        self.on_blocks(operands, results, |blocks, made| self.function.0.apply_by(library, blocks, made))
    }

    fn overwrites_results(&self) -> bool {
        self.function.0.overwrites_results()
    }

    /// It is made for one operator, so no other plan calls it.
    fn is_lasting(&self) -> bool {
        false
    }

    fn scratch_bytes(&self, operands: &[BlockShape], results: &[BlockShape]) -> u64 {
        let without = |block: &BlockShape, lead: usize| BlockShape {
            dtype: block.dtype,
            extents: block.extents.get(lead..).unwrap_or_default().to_vec(),
        };
        let operands: Vec<BlockShape> =
            operands.iter().zip(&self.leads).map(|(block, &lead)| without(block, lead)).collect();
        let results: Vec<BlockShape> = results.iter().map(|block| without(block, self.n_lead)).collect();
        self.function.0.scratch_bytes(&operands, &results)
    }
}

impl OnBlocks {
    /// Calls with blocks that lack the axes of their keys.
    fn on_blocks(
        &self,
        operands: &[ArrayView<'_>],
        results: &mut [Array],
        call: impl FnOnce(&[ArrayView<'_>], &mut [Array]) -> Result<()>,
    ) -> Result<()> {
        let blocks: Vec<ArrayView<'_>> = operands
            .iter()
            .zip(&self.leads)
            .map(|(block, &lead)| ArrayView::new(block.shape()[lead..].to_vec(), block.data()))
            .collect::<Result<_>>()?;
        let [result] = results else { return Err(Error::internal("a kernel has one result")) };
        let (outer, dtype) = (result.shape().to_vec(), result.dtype());
        let bound = &outer[self.n_lead..];
        let mut made = [std::mem::replace(result, Array::scalar(Scalar::Bool(false))).reshaped(bound)?];
        call(&blocks, &mut made)?;
        let [made] = made;
        if made.shape() != bound || made.dtype() != dtype {
            let (shape, wanted) = (shape::display(made.shape()).to_string(), shape::display(bound).to_string());
            let (name, found) = (self.function.0.name(), made.dtype());
            return Err(Error::source(format!(
                "{} by `{name}` gave a block of {found}{shape} instead of {dtype}{wanted}",
                self.operation
            ))
            .help("say what it gives: kernel.giving(bound, dtype)"));
        }
        *result = made.reshaped(&outer)?;
        Ok(())
    }
}

/// A closure as a block function.
struct Closure<F> {
    name: String,
    apply: F,
}

impl<F: Fn(&[ArrayView<'_>]) -> Result<Array> + Send + Sync> BlockFunction for Closure<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        results[0] = (self.apply)(operands)?;
        Ok(())
    }

    fn overwrites_results(&self) -> bool {
        true
    }
}
