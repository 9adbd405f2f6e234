//! In which type operands meet, and the scalar code that takes them there.

use std::cmp::Ordering;

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, ScalarCode, ScalarOp, Slot, UnaryOp};

use super::{complex, time};

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
    Error::types(format!("{a} and {b} have no common type")).help("cast one of them")
}

/// The type a unary operation computes in. Functions of floats take integers and bools as f64.
fn unary_type(op: UnaryOp, dtype: DType) -> Result<DType> {
    use UnaryOp::*;
    let working = match op {
        Neg | Abs | Sign | Not => dtype,
        _ if dtype.has_float_arithmetic() => dtype,
        _ => DType::F64,
    };
    if op.result(working).is_some() {
        return Ok(working);
    }
    let error = refused(op, dtype);
    Err(match (op, dtype) {
        (Neg, DType::Bool) => error.help("use `not` for the complement of bools"),
        (Not, _) => error.help("compare with 0 first"),
        _ => error,
    })
}

/// The type a binary operation on plain numbers computes in: where the operands meet, but f64 for true division of integers.
fn binary_type(op: BinaryOp, a: Element, b: Element, meeting: DType) -> Result<DType> {
    use BinaryOp::*;
    let working = match op {
        Div | Atan2 | Hypot | Copysign | Nextafter | Complex if !meeting.has_float_arithmetic() => DType::F64,
        FloorDiv | Mod | Pow | Shl | Shr if meeting == DType::Bool => DType::I64,
        _ => meeting,
    };
    if op.result(working).is_some() {
        return Ok(working);
    }
    let error = Error::types(format!("`{op}` does not take {} and {}", a.dtype, b.dtype));
    Err(match op {
        Sub => error.help("use `!=` for the exclusive or of bools, or cast to a number"),
        And | Or | Xor => error.help("it takes bools or integers; compare the floats first"),
        Shl | Shr => error.help("it takes integers"),
        _ => error,
    })
}

/// The error of an operation on a type that does not have it.
pub(super) fn refused(op: impl std::fmt::Display, dtype: DType) -> Error {
    Error::types(format!("`{op}` does not take {dtype}"))
}

/// Where promoted operations are appended: plain code, or code that remembers more about its slots.
pub trait CodeSink {
    /// Adds an operation, or finds the equal one already there.
    fn push(&mut self, op: ScalarOp) -> Result<Slot>;
    /// The code so far.
    fn code(&self) -> &ScalarCode;

    /// The type of a slot.
    fn dtype(&self, slot: Slot) -> DType {
        self.code().dtype(slot)
    }
    /// The value of a slot that is a constant.
    fn constant_at(&self, slot: Slot) -> Option<Scalar> {
        match self.code().ops().get(slot.0 as usize) {
            Some(ScalarOp::Const(value)) => Some(*value),
            _ => None,
        }
    }
    /// Adds a conversion of bits and numbers; none if the type is already right. Times keep their count: [`emit_cast`] converts units.
    fn convert(&mut self, dtype: DType, a: Slot) -> Result<Slot> {
        if self.dtype(a) == dtype { Ok(a) } else { self.push(ScalarOp::Cast(dtype, a)) }
    }
    /// Adds a constant.
    fn constant(&mut self, value: Scalar) -> Result<Slot> {
        self.push(ScalarOp::Const(value))
    }
    /// Adds a unary operation, which must take the type.
    fn unary(&mut self, op: UnaryOp, a: Slot) -> Result<Slot> {
        self.push(ScalarOp::Unary(op, a))
    }
    /// Adds a binary operation, which must take the types.
    fn binary(&mut self, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
        self.push(ScalarOp::Binary(op, a, b))
    }
    /// Adds a selection between slots of one type.
    fn select(&mut self, condition: Slot, yes: Slot, no: Slot) -> Result<Slot> {
        self.push(ScalarOp::Select(condition, yes, no))
    }
}

impl CodeSink for ScalarCode {
    fn push(&mut self, op: ScalarOp) -> Result<Slot> {
        ScalarCode::push(self, op)
    }
    fn code(&self) -> &ScalarCode {
        self
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

pub(super) fn element(code: &impl CodeSink, value: Typed) -> Element {
    Element { dtype: code.dtype(value.slot), weak: value.weak }
}

/// Appends a unary operation.
pub fn emit_unary(code: &mut impl CodeSink, op: UnaryOp, a: Slot) -> Result<Slot> {
    use UnaryOp::*;
    let dtype = code.dtype(a);
    match op {
        _ if dtype.is_complex() => complex::unary(code, op, a),
        _ if dtype.is_time() => time::unary(code, op, a),
        Real | Conj => Ok(a),
        Imag => code.constant(dtype.zero()),
        _ if dtype.is_half() => {
            let wide = code.convert(DType::F32, a)?;
            let result = emit_unary(code, op, wide)?;
            narrowed(code, result, dtype)
        }
        // Integers are whole, bools are not negative, and neither has infinities.
        Floor | Ceil | Round | Trunc if dtype == DType::Bool || dtype.is_integer() => Ok(a),
        Abs if dtype == DType::Bool => Ok(a),
        _ => {
            let working = unary_type(op, dtype)?;
            let a = code.convert(working, a)?;
            code.unary(op, a)
        }
    }
}

/// What was computed in f32 for halves, as a half again; truth values stay.
fn narrowed(code: &mut impl CodeSink, result: Slot, half: DType) -> Result<Slot> {
    if code.dtype(result) == DType::F32 { code.convert(half, result) } else { Ok(result) }
}

/// Appends a binary operation on promoted operands.
pub fn emit_binary(code: &mut impl CodeSink, op: BinaryOp, a: Typed, b: Typed) -> Result<Slot> {
    let (x, y) = (element(code, a), element(code, b));
    if x.dtype.is_time() || y.dtype.is_time() {
        return time::binary(code, op, a, b);
    }
    let meeting = meet(x, y)?;
    if op.is_comparison()
        && let Some(known) = beyond_range(code, op, a, b, meeting)
    {
        return code.constant(Scalar::Bool(known));
    }
    let (left, right) = (fitted(code, a, meeting)?, fitted(code, b, meeting)?);
    if meeting.is_complex() {
        return complex::binary(code, op, left, right);
    }
    let (wide, left, right) = if meeting.is_half() {
        (DType::F32, code.convert(DType::F32, left)?, code.convert(DType::F32, right)?)
    } else {
        (meeting, left, right)
    };
    let working = binary_type(op, x, y, wide)?;
    let (left, right) = (code.convert(working, left)?, code.convert(working, right)?);
    let result = code.binary(op, left, right)?;
    if meeting.is_half() { narrowed(code, result, meeting) } else { Ok(result) }
}

/// An operand as the type the operands meet in. An integer literal must fit, as in NumPy.
fn fitted(code: &mut impl CodeSink, value: Typed, dtype: DType) -> Result<Slot> {
    if value.weak
        && let Some(literal) = code.constant_at(value.slot)
        && outside(literal, dtype).is_some()
    {
        return Err(Error::overflow(format!("the literal {literal} does not fit into {dtype}")).help(format!(
            "convert the tensor first, for example with `i64(..)`, or the literal: `{dtype}({literal})`"
        )));
    }
    code.convert(dtype, value.slot)
}

/// On which side an integer lies outside an integer type.
fn outside(literal: Scalar, dtype: DType) -> Option<Ordering> {
    let value = match literal {
        Scalar::I64(value) => i128::from(value),
        Scalar::U64(value) => i128::from(value),
        _ => return None,
    };
    match dtype {
        _ if !dtype.is_integer() => None,
        DType::U64 => (value < 0).then_some(Ordering::Less),
        _ if value < i128::from(dtype.lowest().as_i64()) => Some(Ordering::Less),
        _ if value > i128::from(dtype.highest().as_i64()) => Some(Ordering::Greater),
        _ => None,
    }
}

/// The answer to a comparison with an integer literal that no element can reach.
fn beyond_range(code: &impl CodeSink, op: BinaryOp, a: Typed, b: Typed, dtype: DType) -> Option<bool> {
    let side = |value: Typed| code.constant_at(value.slot).filter(|_| value.weak).and_then(|v| outside(v, dtype));
    // How the first operand compares with the second.
    let order = side(a).or_else(|| side(b).map(Ordering::reverse))?;
    Some(match op {
        BinaryOp::Lt | BinaryOp::Le => order == Ordering::Less,
        BinaryOp::Gt | BinaryOp::Ge => order == Ordering::Greater,
        op => op == BinaryOp::Ne,
    })
}

/// Appends a conversion. Times change their unit, and NaT stays NaT; integers become counts of the unit.
pub fn emit_cast(code: &mut impl CodeSink, dtype: DType, a: Slot) -> Result<Slot> {
    if code.dtype(a).is_time() || dtype.is_time() { time::cast(code, dtype, a) } else { code.convert(dtype, a) }
}

/// Appends `and`, `or` or `xor` of truth values.
pub fn emit_logical(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    let (a, b) = (code.convert(DType::Bool, a)?, code.convert(DType::Bool, b)?);
    code.binary(op, a, b)
}

/// Appends the complement of a truth value.
pub fn emit_logical_not(code: &mut impl CodeSink, a: Slot) -> Result<Slot> {
    let a = code.convert(DType::Bool, a)?;
    code.unary(UnaryOp::Not, a)
}

/// Appends a selection between promoted operands.
pub fn emit_select(code: &mut impl CodeSink, condition: Slot, yes: Typed, no: Typed) -> Result<Slot> {
    let dtype = meet(element(code, yes), element(code, no))?;
    let condition = code.convert(DType::Bool, condition)?;
    let (yes, no) = if dtype.is_time() {
        (emit_cast(code, dtype, yes.slot)?, emit_cast(code, dtype, no.slot)?)
    } else {
        (fitted(code, yes, dtype)?, fitted(code, no, dtype)?)
    };
    code.select(condition, yes, no)
}
