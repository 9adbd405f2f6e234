//! Type promotion, and the scalar code that converts operands.
//!
//! What a type can do is decided here, where operations are emitted, so that engines know few operations:
//!
//! - **f16 and bf16 are storage types.** Scalar code only casts, selects and moves them. The builder casts to f32, computes, and rounds back after each operation, as NumPy does.
//!   Reductions keep f32 states.
//! - **Times are tagged integers.** The builder emits integer code for arithmetic, unit conversion and NaT. The first rewrite of a segment erases the tags.
//! - **Complex numbers** have native sum, difference, product, negation and equality, so that contractions and sums are recognised, and `real`, `imag`, `conj` and
//!   `complex(re, im)`. All other functions are real code over the parts.
//! - **Integers wrap.** So do casts between integers. Floats saturate into integers, NaN becomes 0, and integer division by zero gives 0. Literals are weak, as in NumPy 2.

use std::cmp::Ordering;

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, ScalarCode, ScalarOp, Slot, UnaryOp};

use super::{complex, half, power, time};

/// What promotion knows about an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementType {
    /// Its type; of a literal, the type it has before it meets anything.
    pub dtype: DType,
    /// True for literals of the program. Next to anything else only their kind counts, as in NumPy 2: `x + 1` and `x * 0.5` keep the type of an
    /// f32 tensor `x`.
    pub weak: bool,
}

impl ElementType {
    /// An element of a tensor.
    pub fn strong(dtype: DType) -> ElementType {
        ElementType { dtype, weak: false }
    }

    /// A literal.
    pub fn weak(value: Scalar) -> ElementType {
        ElementType { dtype: value.dtype(), weak: true }
    }
}

/// The type two operands meet in.
///
/// ```
/// use tw_ir::{DType, Scalar};
/// use tw_build::{ElementType, meet};
/// let x = ElementType::strong(DType::F32);
/// assert_eq!(meet(x, ElementType::weak(Scalar::F64(0.5))), Ok(DType::F32));
/// assert_eq!(meet(x, ElementType::strong(DType::F64)), Ok(DType::F64));
/// ```
pub fn meet(a: ElementType, b: ElementType) -> Result<DType> {
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
        // However large it is: whether it fits is asked when it is converted.
        (DType::Bool, DType::I64 | DType::U64) => Some(DType::I64),
        (_, DType::I64 | DType::U64) => Some(strong),
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
    let error = refused(op.written(), dtype);
    Err(match (op, dtype) {
        (Neg, DType::Bool) => {
            error.help("convert to a number first, as in `-i64(x)`, or take the complement: `not x`, in Python `~x`")
        }
        (Not, _) => error.help("compare with 0 first"),
        _ => error,
    })
}

/// True for operations that take integers as floats.
fn is_of_floats(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Div | Atan2 | Hypot | Copysign | Nextafter | Complex)
}

/// The type a binary operation on plain numbers computes in: where the operands meet, but f64 for true division of integers.
fn binary_type(op: BinaryOp, a: ElementType, b: ElementType, meeting: DType) -> Result<DType> {
    use BinaryOp::*;
    let working = match op {
        _ if is_of_floats(op) && !meeting.has_float_arithmetic() => DType::F64,
        FloorDiv | Mod | Pow | Shl | Shr if meeting == DType::Bool => DType::I64,
        _ => meeting,
    };
    if op.result(working).is_some() {
        return Ok(working);
    }
    let error = Error::types(format!("`{}` does not take {} and {}", op.written(), a.dtype, b.dtype));
    Err(match op {
        Sub => error.help("use `!=` for the exclusive or of bools, or cast to a number"),
        And | Or | Xor => error.help("it takes bools or integers; compare the floats first"),
        Shl | Shr => error.help("it takes integers"),
        _ => error,
    })
}

/// The error of an operation on a type that does not have it.
pub(super) fn refused(op: &str, dtype: DType) -> Error {
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
    /// The value of a slot that is a constant converted to other types, or not converted at all.
    fn converted_constant_at(&self, slot: Slot) -> Option<Scalar> {
        match self.code().ops().get(slot.0 as usize) {
            Some(ScalarOp::Cast(dtype, inner)) => self.converted_constant_at(*inner).map(|value| value.cast(*dtype)),
            _ => self.constant_at(slot),
        }
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

/// A number of the program.
#[derive(Clone, Copy, Debug)]
pub enum Literal {
    /// One that an element type holds.
    Number(Scalar),
    /// An integer that no integer type holds, as the nearest double; infinite if it is larger than those.
    Huge(f64),
}

impl From<Scalar> for Literal {
    fn from(value: Scalar) -> Literal {
        Literal::Number(value)
    }
}

impl Literal {
    /// As promotion sees it.
    pub fn element(self) -> ElementType {
        match self {
            Literal::Number(value) => ElementType::weak(value),
            Literal::Huge(_) => ElementType { dtype: DType::I64, weak: true },
        }
    }

    /// Adds it to code.
    pub(super) fn push(self, code: &mut ScalarCode) -> Typed {
        match self {
            Literal::Number(value) => Typed::literal(code.constant(value)),
            Literal::Huge(nearest) => Typed { slot: code.constant(Scalar::F64(nearest)), kind: Kind::Huge },
        }
    }

    /// Adds it to code as an element of a type. An integer must fit.
    pub(super) fn push_as(self, code: &mut ScalarCode, dtype: DType) -> Result<Slot> {
        let value = self.push(code);
        if dtype.is_time() || code.dtype(value.slot).is_time() {
            let value = counted(code, value)?;
            return emit_cast(code, dtype, value.slot);
        }
        fitted(code, value, dtype)
    }

    /// As an element of a type. An integer must fit.
    pub fn cast(self, dtype: DType) -> Result<Scalar> {
        let mut code = ScalarCode::new(Vec::new());
        let slot = self.push_as(&mut code, dtype)?;
        code.set_results(vec![slot]);
        Ok(code.eval(&[])[0])
    }
}

/// What a slot stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Element,
    Literal,
    /// [`Literal::Huge`].
    Huge,
}

/// A slot, and whether it stands for a literal.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    /// Where the value is.
    pub slot: Slot,
    kind: Kind,
}

impl Typed {
    /// An element of a tensor, or what was computed from some.
    pub fn element(slot: Slot) -> Typed {
        Typed { slot, kind: Kind::Element }
    }

    /// A literal of the program.
    pub fn literal(slot: Slot) -> Typed {
        Typed { slot, kind: Kind::Literal }
    }
}

fn element(code: &impl CodeSink, value: Typed) -> ElementType {
    match value.kind {
        Kind::Element => ElementType::strong(code.dtype(value.slot)),
        Kind::Literal => ElementType { dtype: code.dtype(value.slot), weak: true },
        Kind::Huge => ElementType { dtype: DType::I64, weak: true },
    }
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
        let (a, b) = (counted(code, a)?, counted(code, b)?);
        return time::binary(code, op, a, b);
    }
    let meeting = meet(x, y)?;
    if op.is_comparison()
        && let Some(known) = beyond_range(code, op, a, b, meeting)
    {
        return code.constant(Scalar::Bool(known));
    }
    // Where integers are taken as floats, so are literals, and need not fit between.
    let meeting =
        if is_of_floats(op) && (meeting == DType::Bool || meeting.is_integer()) { DType::F64 } else { meeting };
    let (left, right) = (fitted(code, a, meeting)?, fitted(code, b, meeting)?);
    if meeting.is_complex() {
        return complex::binary(code, op, left, right);
    }
    if meeting.is_half() && op == BinaryOp::Nextafter {
        return half::nextafter(code, left, right);
    }
    let (wide, left, right) = if meeting.is_half() {
        (DType::F32, code.convert(DType::F32, left)?, code.convert(DType::F32, right)?)
    } else {
        (meeting, left, right)
    };
    let working = binary_type(op, x, y, wide)?;
    let (left, right) = (code.convert(working, left)?, code.convert(working, right)?);
    let exponent = code.converted_constant_at(right).filter(|_| op == BinaryOp::Pow);
    let known = exponent.map(|exponent| power::by_constant(code, left, exponent)).transpose()?.flatten();
    let result = match known {
        Some(result) => result,
        None => code.binary(op, left, right)?,
    };
    if meeting.is_half() { narrowed(code, result, meeting) } else { Ok(result) }
}

/// An operand as the type the operands meet in. An integer literal must fit, as in NumPy.
fn fitted(code: &mut impl CodeSink, value: Typed, dtype: DType) -> Result<Slot> {
    let unfit = match code.constant_at(value.slot) {
        // Beyond all doubles there is only an error left.
        Some(Scalar::F64(huge)) if value.kind == Kind::Huge => dtype.is_integer() || huge.is_infinite(),
        _ => outside(code, value, dtype).is_some(),
    };
    if !unfit {
        // A literal stays a literal, for code that inspects constants.
        return match code.constant_at(value.slot).filter(|_| value.kind != Kind::Element) {
            Some(literal) => code.constant(literal.cast(dtype)),
            None => code.convert(dtype, value.slot),
        };
    }
    let (what, help) = match code.constant_at(value.slot).filter(|_| value.kind == Kind::Literal) {
        Some(literal) => (format!("the literal {literal}"), format!(", or the literal: `{dtype}({literal})`")),
        None => ("an integer beyond 64 bits".to_string(), String::new()),
    };
    Err(Error::overflow(format!("{what} does not fit into {dtype}"))
        .help(format!("convert the tensor first, for example with `i64(..)`{help}")))
}

/// An operand beside a time, which counts in 64 bits.
fn counted(code: &mut impl CodeSink, value: Typed) -> Result<Typed> {
    match outside(code, value, DType::I64) {
        Some(_) => fitted(code, value, DType::I64).map(Typed::literal),
        None => Ok(value),
    }
}

/// On which side an integer literal lies outside an integer type.
fn outside(code: &impl CodeSink, value: Typed, dtype: DType) -> Option<Ordering> {
    let literal = match (value.kind, code.constant_at(value.slot)?) {
        (Kind::Huge, Scalar::F64(huge)) if dtype.is_integer() => return huge.partial_cmp(&0.0),
        (Kind::Literal, Scalar::I64(literal)) => i128::from(literal),
        (Kind::Literal, Scalar::U64(literal)) => i128::from(literal),
        _ => return None,
    };
    match dtype {
        _ if !dtype.is_integer() => None,
        DType::U64 => (literal < 0).then_some(Ordering::Less),
        _ if literal < i128::from(dtype.lowest().as_i64()) => Some(Ordering::Less),
        _ if literal > i128::from(dtype.highest().as_i64()) => Some(Ordering::Greater),
        _ => None,
    }
}

/// The answer to a comparison with an integer literal that no element can reach.
fn beyond_range(code: &impl CodeSink, op: BinaryOp, a: Typed, b: Typed, dtype: DType) -> Option<bool> {
    // How the first operand compares with the second.
    let order = outside(code, a, dtype).or_else(|| outside(code, b, dtype).map(Ordering::reverse))?;
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
        let (yes, no) = (counted(code, yes)?, counted(code, no)?);
        (emit_cast(code, dtype, yes.slot)?, emit_cast(code, dtype, no.slot)?)
    } else {
        (fitted(code, yes, dtype)?, fitted(code, no, dtype)?)
    };
    code.select(condition, yes, no)
}
