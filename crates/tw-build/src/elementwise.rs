//! Arithmetic element by element, with broadcasting and promotion.

use tw_ir::{Access, BinaryOp, DType, Error, Extent, Op, Result, Scalar, ScalarCode, Slot, TensorType, UnaryOp, shape};

use super::axes::{broadcast_shapes, display_shape};
use super::promote::{Literal, Typed, emit_binary, emit_cast, emit_logical, emit_logical_not, emit_select, emit_unary};
use super::statement::{StatementBuilder, broadcast_access};

/// An operand of arithmetic.
#[derive(Clone, Copy, Debug)]
pub enum TypedOperand<'a> {
    /// A tensor: an argument of the node.
    Tensor(&'a TensorType),
    /// A literal of the program: part of the code, weakly typed.
    Literal(Literal),
}

impl<'a> From<&'a TensorType> for TypedOperand<'a> {
    fn from(ty: &'a TensorType) -> TypedOperand<'a> {
        TypedOperand::Tensor(ty)
    }
}

impl From<Scalar> for TypedOperand<'_> {
    fn from(value: Scalar) -> Self {
        TypedOperand::Literal(value.into())
    }
}

impl TypedOperand<'_> {
    fn shape(&self) -> &[Extent] {
        match self {
            TypedOperand::Tensor(ty) => &ty.shape,
            TypedOperand::Literal(_) => &[],
        }
    }
}

/// Applies an operation to every element. Functions of floats take integers and bools as f64.
pub fn unary(op: UnaryOp, x: &TensorType) -> Result<Op> {
    mapped(x, |code, a| emit_unary(code, op, a))
}

/// Converts every element.
pub fn cast(x: &TensorType, dtype: DType) -> Result<Op> {
    mapped(x, |code, a| emit_cast(code, dtype, a))
}

/// True where the element is zero or false.
pub fn logical_not(x: &TensorType) -> Result<Op> {
    mapped(x, emit_logical_not)
}

/// An operation on two operands of any types: both are promoted to where they meet, true division of integers gives f64.
pub fn binary<'a>(op: BinaryOp, a: impl Into<TypedOperand<'a>>, b: impl Into<TypedOperand<'a>>) -> Result<Op> {
    combined(&[a.into(), b.into()], |code, operands| emit_binary(code, op, operands[0], operands[1]))
        .map_err(|error| error.note(format!("in `{}`", op.written())))
}

/// `and`, `or` or `xor` of truth values: numbers are true unless zero.
pub fn logical<'a>(op: BinaryOp, a: impl Into<TypedOperand<'a>>, b: impl Into<TypedOperand<'a>>) -> Result<Op> {
    combined(&[a.into(), b.into()], |code, operands| emit_logical(code, op, operands[0].slot, operands[1].slot))
        .map_err(|error| error.note(format!("in `{}`", op.written())))
}

/// `yes` where the condition is true, `no` elsewhere.
pub fn select<'a>(
    condition: impl Into<TypedOperand<'a>>,
    yes: impl Into<TypedOperand<'a>>,
    no: impl Into<TypedOperand<'a>>,
) -> Result<Op> {
    combined(&[condition.into(), yes.into(), no.into()], |code, operands| {
        emit_select(code, operands[0].slot, operands[1], operands[2])
    })
    .map_err(|error| error.note("in `select`"))
}

/// Repeats axes of extent 1 and adds axes in front.
pub fn broadcast_to(x: &TensorType, shape: &[Extent]) -> Result<Op> {
    check_broadcast(&x.shape, shape, || {
        let (from, to) = (display_shape(&x.shape), display_shape(shape));
        Error::source(format!("a tensor of shape {from} does not broadcast to {to}"))
    })?;
    let mut statement = StatementBuilder::new(shape, vec![(broadcast_access(0, &x.shape, shape.len()), x.dtype)]);
    let body = statement.read(0);
    Ok(statement.elementwise_filled(body, x.fill))
}

/// Checks that a shape broadcasts to another one without changing it.
pub(super) fn check_broadcast(from: &[Extent], to: &[Extent], mismatch: impl Fn() -> Error) -> Result<()> {
    let Some(skip) = to.len().checked_sub(from.len()) else { return Err(mismatch()) };
    let (from, to): (Vec<Extent>, Vec<Extent>) =
        from.iter().zip(&to[skip..]).filter(|(from, _)| **from != Extent::Known(1)).unzip();
    shape::require_equal(&from, &to, mismatch)
}

/// One element from each.
pub(super) fn mapped(x: &TensorType, body: impl FnOnce(&mut ScalarCode, Slot) -> Result<Slot>) -> Result<Op> {
    combined(&[TypedOperand::Tensor(x)], |code, operands| body(code, operands[0].slot))
}

/// One result from broadcast operands; literals are constants of the code.
fn combined(operands: &[TypedOperand<'_>], body: impl FnOnce(&mut ScalarCode, &[Typed]) -> Result<Slot>) -> Result<Op> {
    let shapes: Vec<&[Extent]> = operands.iter().map(TypedOperand::shape).collect();
    let (shape, open) = match broadcast_shapes(&shapes) {
        Ok(shape) => (shape, Ok(())),
        // The code is made nevertheless, over any shape of that rank: a mistake in the types is said before an extent is asked for.
        Err(error) if !error.needed_extents().is_empty() => {
            let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
            (vec![Extent::Known(1); rank], Err(error))
        }
        Err(error) => return Err(error),
    };
    let tensors = operands.iter().filter_map(|operand| match operand {
        TypedOperand::Tensor(ty) => Some(*ty),
        TypedOperand::Literal(_) => None,
    });
    let reads: Vec<(Access, DType)> =
        tensors.enumerate().map(|(k, ty)| (broadcast_access(k, &ty.shape, shape.len()), ty.dtype)).collect();
    let mut statement = StatementBuilder::new(&shape, reads);
    let mut next_read = 0;
    let mut slots = Vec::with_capacity(operands.len());
    for operand in operands {
        slots.push(match operand {
            TypedOperand::Literal(value) => value.push(&mut statement.code),
            TypedOperand::Tensor(_) => {
                next_read += 1;
                Typed::element(statement.read(next_read - 1))
            }
        });
    }
    let body = body(&mut statement.code, &slots)?;
    open.map(|()| statement.elementwise(body))
}
