//! In which type operands meet, and the scalar code that takes them there.

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, ScalarCode, ScalarOp, Slot, UnaryOp};

/// What promotion knows about an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its type; of a literal, the type it has before it meets anything.
    pub dtype: DType,
    /// True for literals of the program. Next to anything else only their kind counts, as in NumPy 2: `x + 1` and `x * 0.5` keep the type of an
    /// f32 tensor `x`.
    pub weak: bool,
}

impl Element {
    /// An element of a tensor.
    pub fn strong(dtype: DType) -> Element {
        Element { dtype, weak: false }
    }

    /// A literal.
    pub fn weak(value: Scalar) -> Element {
        Element { dtype: value.dtype(), weak: true }
    }
}

/// The type two operands meet in.
///
/// ```
/// use tw_ir::{DType, Scalar};
/// use tw_plan::build::{Element, meet};
/// let x = Element::strong(DType::F32);
/// assert_eq!(meet(x, Element::weak(Scalar::F64(0.5))), Ok(DType::F32));
/// assert_eq!(meet(x, Element::strong(DType::F64)), Ok(DType::F64));
/// ```
pub fn meet(a: Element, b: Element) -> Result<DType> {
    match (a.weak, b.weak) {
        (false, true) => meet_literal(a.dtype, b.dtype),
        (true, false) => meet_literal(b.dtype, a.dtype),
        _ => common([a.dtype, b.dtype]),
    }
}

/// The type elements of a tensor meet a literal in: their own, unless the literal is of another kind.
fn meet_literal(strong: DType, literal: DType) -> Result<DType> {
    let known = match (strong, literal) {
        (_, DType::Bool) => Some(strong),
        (_, DType::I64) if strong != DType::Bool => Some(strong),
        (_, DType::F64) if strong.is_float() || strong.is_complex() => Some(strong),
        (DType::F64, DType::C128) => Some(DType::C128),
        (_, DType::C128) if strong.is_float() => Some(DType::C64),
        (_, DType::C128) if strong.is_complex() => Some(strong),
        _ => strong.promote(literal),
    };
    known.ok_or_else(|| apart(strong, literal))
}

/// The type several types meet in.
pub fn common(dtypes: impl IntoIterator<Item = DType>) -> Result<DType> {
    let mut dtypes = dtypes.into_iter();
    let first = dtypes.next().ok_or_else(|| Error::internal("a common type of nothing"))?;
    dtypes.try_fold(first, |a, b| a.promote(b).ok_or_else(|| apart(a, b)))
}

fn apart(a: DType, b: DType) -> Error {
    Error::source(format!("{a} and {b} have no common type")).help("cast one of them")
}

/// The type a unary operation computes in. Functions of floats take integers and bools as f64.
fn unary_type(op: UnaryOp, dtype: DType) -> Result<DType> {
    use UnaryOp::*;
    let working = match op {
        Neg | Abs | Sign | Not => dtype,
        _ if dtype.is_float() => dtype,
        _ => DType::F64,
    };
    if op.result(working).is_some() {
        return Ok(working);
    }
    let error = Error::source(format!("`{op}` does not take {dtype}"));
    Err(match (op, dtype) {
        (Neg, DType::Bool) => error.help("use `not` for the complement of bools"),
        (Not, _) => error.help("compare with 0 first"),
        _ => error,
    })
}

/// The type a binary operation computes in: where the operands meet, but f64 for true division of integers.
fn binary_type(op: BinaryOp, a: Element, b: Element) -> Result<DType> {
    use BinaryOp::*;
    let meeting = meet(a, b)?;
    let working = match op {
        Div | Atan2 | Hypot | Copysign | Nextafter if !meeting.is_float() => DType::F64,
        FloorDiv | Mod | Pow if meeting == DType::Bool => DType::I64,
        _ => meeting,
    };
    if op.result(working).is_some() {
        return Ok(working);
    }
    let error = Error::source(format!("`{op}` does not take {} and {}", a.dtype, b.dtype));
    Err(match op {
        Sub => error.help("use `!=` for the exclusive or of bools, or cast to a number"),
        And | Or | Xor => error.help("it takes bools or integers; compare the floats first"),
        _ => error,
    })
}

/// Where promoted operations are appended: plain code, or code that remembers more about its slots.
pub trait CodeSink {
    /// Adds an operation, or finds the equal one already there.
    fn push(&mut self, op: ScalarOp) -> Result<Slot>;
    /// The type of a slot.
    fn dtype(&self, slot: Slot) -> DType;

    /// Adds a conversion; none if the type is already right.
    fn convert(&mut self, dtype: DType, a: Slot) -> Result<Slot> {
        if self.dtype(a) == dtype { Ok(a) } else { self.push(ScalarOp::Cast(dtype, a)) }
    }
}

impl CodeSink for ScalarCode {
    fn push(&mut self, op: ScalarOp) -> Result<Slot> {
        ScalarCode::push(self, op)
    }
    fn dtype(&self, slot: Slot) -> DType {
        ScalarCode::dtype(self, slot)
    }
}

/// A slot, and whether it stands for a literal.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    /// Where the value is.
    pub slot: Slot,
    /// True for literals.
    pub weak: bool,
}

fn element(code: &impl CodeSink, value: Typed) -> Element {
    Element { dtype: code.dtype(value.slot), weak: value.weak }
}

/// Appends a unary operation.
pub fn emit_unary(code: &mut impl CodeSink, op: UnaryOp, a: Slot) -> Result<Slot> {
    use UnaryOp::*;
    match (op, code.dtype(a)) {
        // Integers are whole and bools are not negative.
        (Floor | Ceil | Round | Trunc, DType::Bool | DType::I64) | (Abs, DType::Bool) => Ok(a),
        (_, dtype) => {
            let working = unary_type(op, dtype)?;
            let a = code.convert(working, a)?;
            code.push(ScalarOp::Unary(op, a))
        }
    }
}

/// Appends a binary operation on promoted operands.
pub fn emit_binary(code: &mut impl CodeSink, op: BinaryOp, a: Typed, b: Typed) -> Result<Slot> {
    let working = binary_type(op, element(code, a), element(code, b))?;
    let (a, b) = (code.convert(working, a.slot)?, code.convert(working, b.slot)?);
    code.push(ScalarOp::Binary(op, a, b))
}

/// Appends `and`, `or` or `xor` of truth values.
pub fn emit_logical(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    let (a, b) = (code.convert(DType::Bool, a)?, code.convert(DType::Bool, b)?);
    code.push(ScalarOp::Binary(op, a, b))
}

/// Appends the complement of a truth value.
pub fn emit_logical_not(code: &mut impl CodeSink, a: Slot) -> Result<Slot> {
    let a = code.convert(DType::Bool, a)?;
    code.push(ScalarOp::Unary(UnaryOp::Not, a))
}

/// Appends a selection between promoted operands.
pub fn emit_select(code: &mut impl CodeSink, condition: Slot, yes: Typed, no: Typed) -> Result<Slot> {
    let dtype = meet(element(code, yes), element(code, no))?;
    let condition = code.convert(DType::Bool, condition)?;
    let (yes, no) = (code.convert(dtype, yes.slot)?, code.convert(dtype, no.slot)?);
    code.push(ScalarOp::Select(condition, yes, no))
}
