//! Arithmetic element by element, with broadcasting and promotion.

use tw_ir::{Access, BinaryOp, DType, Error, Extent, Op, Result, Scalar, ScalarCode, Slot, TensorType, UnaryOp};

use super::axes::{broadcast_shapes, display_shape};
use super::statement::{Statement, broadcast_access};

/// An operand of arithmetic.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A tensor: an argument of the node.
    Tensor(&'a TensorType),
    /// A literal of the program: part of the code. Its type is weak, as in NumPy 2: next to a tensor only its kind counts, so `x + 1` and
    /// `x * 0.5` keep the type of an f32 tensor `x`.
    Literal(Scalar),
}

impl<'a> From<&'a TensorType> for Operand<'a> {
    fn from(ty: &'a TensorType) -> Operand<'a> {
        Operand::Tensor(ty)
    }
}

impl From<Scalar> for Operand<'_> {
    fn from(value: Scalar) -> Self {
        Operand::Literal(value)
    }
}

impl Operand<'_> {
    /// The element type; of a literal, its own before it meets anything.
    pub fn dtype(&self) -> DType {
        match self {
            Operand::Tensor(ty) => ty.dtype,
            Operand::Literal(value) => value.dtype(),
        }
    }

    fn shape(&self) -> &[Extent] {
        match self {
            Operand::Tensor(ty) => &ty.shape,
            Operand::Literal(_) => &[],
        }
    }
}

/// The type two operands meet in.
pub fn meet(a: Operand<'_>, b: Operand<'_>) -> DType {
    let weak = |tensor: DType, literal: DType| match (tensor, literal) {
        (DType::F32, DType::F64) => DType::F32,
        (DType::F32, DType::I64) => DType::F32,
        _ => tensor.promote(literal),
    };
    match (a, b) {
        (Operand::Tensor(x), Operand::Literal(v)) | (Operand::Literal(v), Operand::Tensor(x)) => {
            weak(x.dtype, v.dtype())
        }
        _ => a.dtype().promote(b.dtype()),
    }
}

/// The type a binary operation computes in and the type of its result, or an error that names the types.
pub fn result_type(op: BinaryOp, a: Operand<'_>, b: Operand<'_>) -> Result<(DType, DType)> {
    use BinaryOp::*;
    let meeting = meet(a, b);
    let working = match op {
        Div | Atan2 if !meeting.is_float() => DType::F64,
        FloorDiv | Mod | Pow if meeting == DType::Bool => DType::I64,
        _ => meeting,
    };
    let result = op.result(working).ok_or_else(|| {
        let error = Error::source(format!("`{op}` does not take {} and {}", a.dtype(), b.dtype()));
        match op {
            Sub => error.help("use `!=` for the exclusive or of bools, or cast to a number"),
            And | Or | Xor => error.help("it takes bools or integers; compare the floats first"),
            _ => error,
        }
    })?;
    Ok((working, result))
}

/// Applies an operation to every element. Functions of floats take integers and bools as f64.
pub fn unary(op: UnaryOp, x: &TensorType) -> Result<Op> {
    use UnaryOp::*;
    let working = match (op, x.dtype) {
        (Floor | Ceil | Round | Trunc, DType::Bool | DType::I64) => return cast(x, x.dtype),
        (Abs, DType::Bool) => return cast(x, x.dtype),
        (Neg | Abs | Sign | Not, dtype) => dtype,
        (_, dtype) if dtype.is_float() => dtype,
        _ => DType::F64,
    };
    if op.result(working).is_none() {
        let error = Error::source(format!("`{op}` does not take {}", x.dtype));
        return Err(match (op, x.dtype) {
            (Neg, DType::Bool) => error.help("use `not` for the complement of bools"),
            (Not, _) => error.help("compare with 0 first"),
            _ => error,
        });
    }
    mapped(x, |code, a| {
        let a = code.cast(working, a);
        code.unary(op, a)
    })
}

/// Converts every element.
pub fn cast(x: &TensorType, dtype: DType) -> Result<Op> {
    mapped(x, |code, a| Ok(code.cast(dtype, a)))
}

/// True where the element is zero or false.
pub fn logical_not(x: &TensorType) -> Result<Op> {
    mapped(x, |code, a| {
        let a = code.cast(DType::Bool, a);
        code.unary(UnaryOp::Not, a)
    })
}

/// An operation on two operands of any types: both are promoted to where they meet, true division of integers gives f64.
pub fn binary<'a>(op: BinaryOp, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Op> {
    let (a, b) = (a.into(), b.into());
    let (working, _) = result_type(op, a, b)?;
    combined(&[a, b], |code, slots| {
        let (x, y) = (code.cast(working, slots[0]), code.cast(working, slots[1]));
        code.binary(op, x, y)
    })
    .map_err(|error| error.note(format!("in `{op}`")))
}

/// `and`, `or` or `xor` of truth values: numbers are true unless zero.
pub fn logical<'a>(op: BinaryOp, a: impl Into<Operand<'a>>, b: impl Into<Operand<'a>>) -> Result<Op> {
    combined(&[a.into(), b.into()], |code, slots| {
        let (x, y) = (code.cast(DType::Bool, slots[0]), code.cast(DType::Bool, slots[1]));
        code.binary(op, x, y)
    })
    .map_err(|error| error.note(format!("in `{op}`")))
}

/// `yes` where the condition is true, `no` elsewhere.
pub fn select<'a>(
    condition: impl Into<Operand<'a>>,
    yes: impl Into<Operand<'a>>,
    no: impl Into<Operand<'a>>,
) -> Result<Op> {
    let (condition, yes, no) = (condition.into(), yes.into(), no.into());
    let dtype = meet(yes, no);
    combined(&[condition, yes, no], |code, slots| {
        let condition = code.cast(DType::Bool, slots[0]);
        let (yes, no) = (code.cast(dtype, slots[1]), code.cast(dtype, slots[2]));
        code.select(condition, yes, no)
    })
    .map_err(|error| error.note("in `select`"))
}

/// Repeats axes of extent 1 and adds axes in front.
pub fn broadcast_to(x: &TensorType, shape: &[Extent]) -> Result<Op> {
    let fits = x.rank() <= shape.len() && broadcast_shapes(&[&x.shape, shape]).is_ok_and(|meets| meets == shape);
    if !fits {
        let (from, to) = (display_shape(&x.shape), display_shape(shape));
        return Err(Error::source(format!("a tensor of shape {from} does not broadcast to {to}")));
    }
    let mut statement = Statement::new(shape, vec![(broadcast_access(0, &x.shape, shape.len()), x.dtype)]);
    let body = statement.read(0);
    Ok(statement.elementwise_filled(body, x.fill))
}

fn mapped(x: &TensorType, body: impl FnOnce(&mut ScalarCode, Slot) -> Result<Slot>) -> Result<Op> {
    combined(&[Operand::Tensor(x)], |code, slots| body(code, slots[0]))
}

/// One result from broadcast operands; the body gets one slot per operand, literals as constants.
fn combined(operands: &[Operand<'_>], body: impl FnOnce(&mut ScalarCode, &[Slot]) -> Result<Slot>) -> Result<Op> {
    let shapes: Vec<&[Extent]> = operands.iter().map(Operand::shape).collect();
    let shape = broadcast_shapes(&shapes)?;
    let tensors = operands.iter().filter_map(|operand| match operand {
        Operand::Tensor(ty) => Some(*ty),
        Operand::Literal(_) => None,
    });
    let reads: Vec<(Access, DType)> =
        tensors.enumerate().map(|(k, ty)| (broadcast_access(k, &ty.shape, shape.len()), ty.dtype)).collect();
    let mut statement = Statement::new(&shape, reads);
    let mut next_read = 0;
    let slots: Vec<Slot> = operands
        .iter()
        .map(|operand| match operand {
            Operand::Tensor(_) => {
                next_read += 1;
                statement.read(next_read - 1)
            }
            Operand::Literal(value) => statement.code.constant(*value),
        })
        .collect();
    let body = body(&mut statement.code, &slots)?;
    Ok(statement.elementwise(body))
}
