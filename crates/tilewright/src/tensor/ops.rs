//! Operations on tensors, with the semantics of NumPy.

use tw_build as build;
use tw_build::{Joined, Reduction, ScanKind, SliceItem};
use tw_files::FileTarget;
use tw_ir::accum::Accum;
use tw_ir::error::{Error, Result};
use tw_ir::program::{BlockFn, Op, TensorType};
use tw_ir::scalar::{BinaryOp, UnaryOp};
use tw_ir::spec::ScatterSpec;
use tw_ir::{DType, Edge, Extent, Scalar, shape};

use super::count::Count;
use super::graph::Graph;
use super::{Tensor, with_extents};
use crate::bindings::Targets;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])* #[track_caller] pub fn $name(&self) -> Result<Tensor> { self.unary(UnaryOp::$op) })*
        }
    };
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        impl Tensor {
            $($(#[$doc])* #[track_caller] pub fn $name(&self, other: &Tensor) -> Result<Tensor> { self.binary(BinaryOp::$op, other) })*
        }
    };
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident = $kind:expr;)*) => {
        impl Tensor {
            $($(#[$doc])* #[track_caller] pub fn $name(&self, axes: Option<&[usize]>) -> Result<Tensor> { self.reduce($kind, axes, false) })*
        }
    };
}

unary! {
    /// `-x`.
    neg = Neg;
    /// Magnitude.
    abs = Abs;
    /// Square root.
    sqrt = Sqrt;
    /// Exponential.
    exp = Exp;
    /// Natural logarithm.
    log = Log;
    /// Sine.
    sin = Sin;
    /// Cosine.
    cos = Cos;
    /// Hyperbolic tangent.
    tanh = Tanh;
}

binary! {
    /// `x + y`, broadcast.
    add = Add;
    /// `x - y`, broadcast.
    sub = Sub;
    /// `x * y`, broadcast.
    mul = Mul;
    /// `x / y`, broadcast; integers give f64.
    div = Div;
    /// Smaller element.
    minimum = Min;
    /// Larger element.
    maximum = Max;
    /// `x < y`.
    lt = Lt;
    /// `x > y`.
    gt = Gt;
    /// `x == y`.
    equal = Eq;
}

reductions! {
    /// Sum along axes, or of everything.
    sum = Reduction::Sum;
    /// Product along axes, or of everything.
    prod = Reduction::Prod;
    /// Smallest element along axes.
    min = Reduction::Min;
    /// Largest element along axes.
    max = Reduction::Max;
    /// Mean along axes.
    mean = Reduction::Mean;
    /// Population variance along axes.
    var = Reduction::Var { ddof: 0.0 };
    /// Position of the smallest element.
    argmin = Reduction::ArgMin;
    /// Position of the largest element.
    argmax = Reduction::ArgMax;
    /// True if any element is not zero.
    any = Reduction::Any;
    /// True if no element is zero.
    all = Reduction::All;
}

impl Tensor {
    /// Applies an operation whose builder may look at the types of the tensors.
    #[track_caller]
    fn build(tensors: &[&Tensor], op: impl Fn() -> Result<Op>) -> Result<Tensor> {
        let first = tensors.first().ok_or_else(|| Error::source("an operation on no operands"))?;
        with_extents(tensors, || Tensor::apply(first.session(), op()?, tensors))
    }

    /// Any operation on one tensor.
    #[track_caller]
    pub fn unary(&self, op: UnaryOp) -> Result<Tensor> {
        Tensor::build(&[self], || build::unary(op, self.ty()))
    }

    /// Any operation on two tensors, broadcast and promoted.
    #[track_caller]
    pub fn binary(&self, op: BinaryOp, other: &Tensor) -> Result<Tensor> {
        Tensor::build(&[self, other], || build::binary(op, self.ty(), other.ty()))
    }

    /// Any operation with a number on the right; the number takes the tensor's type where it can.
    #[track_caller]
    pub fn binary_scalar(&self, op: BinaryOp, value: impl Into<Scalar>) -> Result<Tensor> {
        let value = value.into();
        Tensor::build(&[self], || build::binary(op, self.ty(), value))
    }

    /// `x + value`.
    #[track_caller]
    pub fn add_scalar(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.binary_scalar(BinaryOp::Add, value)
    }

    /// `x * value`.
    #[track_caller]
    pub fn mul_scalar(&self, value: impl Into<Scalar>) -> Result<Tensor> {
        self.binary_scalar(BinaryOp::Mul, value)
    }

    /// `yes` where this is true, `no` elsewhere.
    #[track_caller]
    pub fn select(&self, yes: &Tensor, no: &Tensor) -> Result<Tensor> {
        Tensor::build(&[self, yes, no], || build::select(self.ty(), yes.ty(), no.ty()))
    }

    /// Conversion.
    #[track_caller]
    pub fn cast(&self, dtype: DType) -> Result<Tensor> {
        Tensor::build(&[self], || build::cast(self.ty(), dtype))
    }

    /// Any reduction.
    #[track_caller]
    pub fn reduce(&self, kind: Reduction, axes: Option<&[usize]>, keepdims: bool) -> Result<Tensor> {
        Tensor::build(&[self], || build::reduce(self.ty(), kind, axes, keepdims))
    }

    /// Matrix product, with NumPy's rules for any rank.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        Tensor::build(&[self, other], || build::matmul(self.ty(), other.ty()))
    }

    /// All axes reversed.
    #[track_caller]
    pub fn transpose(&self) -> Result<Tensor> {
        Tensor::build(&[self], || Ok(build::transpose(self.ty())))
    }

    /// A part, with NumPy's basic indexing.
    #[track_caller]
    pub fn slice(&self, items: &[SliceItem]) -> Result<Tensor> {
        Tensor::build(&[self], || {
            let ty = self.ty();
            let op = build::slice(ty, items)?;
            if items.iter().any(|item| matches!(item, SliceItem::Index(_))) {
                // An index outside is an error of this call.
                ty.require_shape()?;
            }
            Ok(op)
        })
    }

    /// Another shape with the same elements; one extent may be -1.
    #[track_caller]
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor> {
        Tensor::build(&[self], || {
            let ty = self.ty();
            let op = build::reshape(ty, shape)?;
            if shape != [-1] {
                // A shape for another number of elements is an error of this call.
                ty.require_shape()?;
            }
            Ok(op)
        })
    }

    /// Running aggregate along an axis.
    #[track_caller]
    pub fn scan(&self, kind: ScanKind, axis: usize) -> Result<Tensor> {
        Tensor::build(&[self], || build::scan(self.ty(), kind, axis))
    }

    /// Running sum along an axis.
    #[track_caller]
    pub fn cumsum(&self, axis: usize) -> Result<Tensor> {
        self.scan(ScanKind::Sum, axis)
    }

    /// Sorted along an axis: values, and their positions before.
    #[track_caller]
    pub fn sort(&self, axis: usize) -> Result<(Tensor, Tensor)> {
        with_extents(&[self], || self.sorted(build::sort(self.ty(), axis, false)?))
    }

    /// The `n` largest elements along an axis (or the smallest), in that order: values, and their positions before.
    #[track_caller]
    pub fn topk(&self, n: u64, axis: usize, largest: bool) -> Result<(Tensor, Tensor)> {
        with_extents(&[self], || {
            let ty = self.ty();
            let sorted = build::topk(ty, n, axis, largest)?;
            // More than there are is an error of this call.
            ty.require_shape()?;
            self.sorted(sorted)
        })
    }

    /// Any sort, built for the type of this tensor: values, and their positions before.
    #[track_caller]
    pub fn sorted(&self, sorted: build::Sorted) -> Result<(Tensor, Tensor)> {
        let session = self.session();
        let prepared = sorted.prepare.map(|op| Tensor::apply(session, op, &[self])).transpose()?;
        let operand = prepared.as_ref().unwrap_or(self);
        let (values, positions) = pair(Tensor::apply_all(session, sorted.sort, &[operand])?)?;
        match sorted.restore {
            Some(op) => Ok((Tensor::apply(session, op, &[&values])?, positions)),
            None => Ok((values, positions)),
        }
    }

    /// Elements that the index tensor names along an axis.
    #[track_caller]
    pub fn take(&self, index: &Tensor, axis: usize) -> Result<Tensor> {
        with_extents(&[self, index], || {
            let ty = self.ty();
            let taken = build::take(ty, index.ty(), axis)?;
            // Negative indices count from the end.
            ty.require_shape()?;
            joined(taken, &[self, index])
        })
    }

    /// The elements under a mask, in row-major order, or the slices under a mask of the first axes. How many there are is computed with them, or
    /// when a shape is requested.
    #[track_caller]
    pub fn compact(&self, mask: &Tensor) -> Result<Tensor> {
        with_extents(&[self, mask], || self.compact_lazily(mask))
    }

    /// As [`Tensor::compact`], but nothing is computed to find out whether the shapes agree. Where a mask of integers is given, every slice is
    /// taken as often as it says.
    #[track_caller]
    pub fn compact_lazily(&self, mask: &Tensor) -> Result<Tensor> {
        let show = |ty: &TensorType| format!("{}{}", ty.dtype, build::display_shape(&ty.shape));
        let wrong =
            || Error::source(format!("a mask of type {} for a tensor of type {}", show(mask.ty()), show(self.ty())));
        let covered = self.ty().shape.get(..mask.ty().rank()).ok_or_else(wrong)?;
        if !matches!(mask.dtype(), DType::Bool | DType::I64) {
            return Err(wrong());
        }
        shape::require_equal(covered, &mask.ty().shape, wrong)?;
        let count = Count::of(mask)?;
        let op = Op::Compact { extent: count.extent(), counts: None };
        only(Tensor::apply_counted(self.session(), op, &[mask, self], &[count])?)
    }

    /// The row-major positions of the elements of a mask that hold.
    #[track_caller]
    pub fn positions(&self) -> Result<Tensor> {
        let count = Count::of(self)?;
        let op = Op::Compact { extent: count.extent(), counts: None };
        only(Tensor::apply_counted(self.session(), op, &[self], &[count])?)
    }

    /// This tensor with the elements under a mask of its shape replaced by those of a vector, in row-major order.
    #[track_caller]
    pub fn expand(&self, mask: &Tensor, values: &Tensor) -> Result<Tensor> {
        Tensor::apply(self.session(), Op::Expand { counts: None }, &[mask, values, self])
    }

    /// Integers of this tensor's shape: the position along an axis.
    #[track_caller]
    pub fn coordinate(&self, axis: usize) -> Result<Tensor> {
        let op = build::coordinate(&self.ty().shape, axis);
        only(Tensor::apply_counted(self.session(), op, &[], &self.node.counts)?)
    }

    /// Contributions of `self` to the elements of a vector of length `n` that the index names.
    #[track_caller]
    pub fn scatter(&self, index: &Tensor, n: u64, accum: Accum) -> Result<Tensor> {
        let op = Op::Scatter {
            spec: ScatterSpec { axes: vec![0], accum, edge: Edge::Error },
            extents: vec![Extent::Known(n)],
        };
        Tensor::apply(self.session(), op, &[index, self])
    }

    /// Writes the tensor to a file, in the format that its name says.
    #[track_caller]
    pub fn store(&self, path: &str) -> Result<()> {
        store_all(&[(self, path, FileTarget::default())])
    }
}

/// Writes tensors to files in one pass. All files get their names when the last block is written.
#[track_caller]
pub fn store_all(stored: &[(&Tensor, &str, FileTarget)]) -> Result<()> {
    let Some((first, ..)) = stored.first() else { return Ok(()) };
    let cut = |(tensor, path, target): &(&Tensor, &str, FileTarget)| {
        // A new file takes any blocks. What a mask selects would be counted for its shape alone, and then once more.
        if matches!(target, FileTarget::New(_)) && tensor.is_open() {
            return Ok((*tensor).clone());
        }
        let shape = tensor.shape()?;
        Ok(match tw_files::blocks_for(path, tensor.dtype(), &shape, target)? {
            Some(grid) => tensor.rechunk(&grid)?,
            None => (*tensor).clone(),
        })
    };
    let tensors = stored.iter().map(cut).collect::<Result<Vec<Tensor>>>()?;
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let mut graph = Graph::collect(&tensors)?;
    let program = &mut graph.program;
    let values = std::mem::take(&mut program.body.results);
    program.outputs.clear();
    let mut targets = Targets::new();
    for (&value, (tensor, path, target)) in values.iter().zip(stored) {
        program.push(Op::Store { path: path.to_string() }, &[value], &tensor.node.span)?;
        if targets.insert(path.to_string(), target.clone()).is_some() {
            return Err(Error::source(format!("two tensors are stored to {path}")));
        }
    }
    let mut totals = crate::report::Totals::default();
    first.session().interpret_into(program, &graph.inputs, &targets, &[], &mut totals)?;
    Ok(())
}

/// Writes tensors of rank one to a Parquet file, each as a column with a name and a type of its own, in one pass. The file gets its name when the last block is written.
#[cfg(feature = "parquet")]
#[track_caller]
pub fn store_columns(columns: &[(String, &Tensor)], path: &str, codec: Option<(String, i64)>) -> Result<()> {
    let mut n_rows = None;
    for (name, tensor) in columns {
        let shape = tensor.shape()?;
        let message = match (&shape[..], n_rows) {
            ([n], None) => {
                n_rows = Some(*n);
                continue;
            }
            ([n], Some(expected)) if *n == expected => continue,
            ([n], Some(expected)) => format!("has {n} elements, but `{}` has {expected}", columns[0].0),
            _ => format!("has {} axes instead of one", shape.len()),
        };
        return Err(Error::source(format!("{path}: column `{}` {message}", name.escape_debug())));
    }
    let declared: Vec<_> = columns.iter().map(|(name, tensor)| (name.clone(), tensor.dtype())).collect();
    let places = tw_files::create_columns(path.as_ref(), &declared, n_rows.unwrap_or(0), codec)?;
    let paths: Vec<String> = columns.iter().map(|(name, _)| format!("{path}/{name}")).collect();
    let stored = columns.iter().zip(&paths).zip(places);
    let stored: Vec<_> =
        stored.map(|(((_, tensor), path), place)| (*tensor, path.as_str(), FileTarget::Column(place))).collect();
    store_all(&stored)
}

/// Tensors one after the other along an axis.
#[track_caller]
pub fn concat(tensors: &[&Tensor], axis: usize) -> Result<Tensor> {
    with_extents(tensors, || joined(build::concat(&types_of(tensors), axis)?, tensors))
}

/// One result of an index expression such as `ij,jk->ik`.
#[track_caller]
pub fn einsum(spec: &str, tensors: &[&Tensor]) -> Result<Tensor> {
    Tensor::build(tensors, || build::einsum(spec, &types_of(tensors)))
}

/// Applies a block function.
#[track_caller]
pub fn map_blocks(call: BlockFn, tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
    let first = tensors.first().ok_or_else(|| Error::source("a block function of no operands"))?;
    with_extents(tensors, || Tensor::apply_all(first.session(), Op::BlockFn(call.clone()), tensors))
}

pub(super) fn only(results: Vec<Tensor>) -> Result<Tensor> {
    results.into_iter().next().ok_or_else(|| Error::internal("an operation without a result"))
}

fn pair(mut results: Vec<Tensor>) -> Result<(Tensor, Tensor)> {
    match (results.pop(), results.pop()) {
        (Some(positions), Some(values)) => Ok((values, positions)),
        _ => Err(Error::internal("an operation of two results without them")),
    }
}

/// Several tensors through one node, each prepared for it first.
#[track_caller]
pub fn joined(joined: Joined, tensors: &[&Tensor]) -> Result<Tensor> {
    let first = tensors.first().ok_or_else(|| Error::source("an operation on no operands"))?;
    let mut operands = Vec::new();
    for (prepare, tensor) in joined.prepare.into_iter().zip(tensors) {
        operands.push(match prepare {
            Some(op) => Tensor::apply(first.session(), op, &[tensor])?,
            None => (*tensor).clone(),
        });
    }
    Tensor::apply(first.session(), joined.join, &operands.iter().collect::<Vec<_>>())
}

fn types_of<'a>(tensors: &[&'a Tensor]) -> Vec<&'a TensorType> {
    tensors.iter().map(|tensor| tensor.ty()).collect()
}
