//! Formulas over doubles that append scalar code as they are written.
//!
//! Operators cannot return errors, so the first one is kept until the end: `a * b + c` is worth more here than a `?` after each operation.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

use tw_ir::{BinaryOp, Error, Result, Scalar, ScalarOp, Slot, UnaryOp};

use super::super::promote::CodeSink;

/// Where operations go.
pub(super) trait Emit {
    fn emit(&self, op: ScalarOp) -> Slot;
}

/// Code under construction, and the first error.
pub(super) struct Tape<'a, C> {
    code: RefCell<&'a mut C>,
    failure: RefCell<Option<Error>>,
}

impl<C: CodeSink> Emit for Tape<'_, C> {
    fn emit(&self, op: ScalarOp) -> Slot {
        self.code.borrow_mut().push(op).unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            Slot(0)
        })
    }
}

impl<'a, C: CodeSink> Tape<'a, C> {
    pub(super) fn new(code: &'a mut C) -> Tape<'a, C> {
        Tape { code: RefCell::new(code), failure: RefCell::new(None) }
    }
    pub(super) fn pair(&self, (re, im): (Slot, Slot)) -> Pair<'_> {
        Pair { re: Real { tape: self, slot: re }, im: Real { tape: self, slot: im } }
    }
    pub(super) fn finish(self, slots: (Slot, Slot)) -> Result<(Slot, Slot)> {
        self.failure.into_inner().map_or(Ok(slots), Err)
    }
}

/// A double.
#[derive(Clone, Copy)]
pub(super) struct Real<'t> {
    tape: &'t dyn Emit,
    slot: Slot,
}

/// A truth value.
#[derive(Clone, Copy)]
pub(super) struct Truth<'t> {
    tape: &'t dyn Emit,
    slot: Slot,
}

/// A complex number.
#[derive(Clone, Copy)]
pub(super) struct Pair<'t> {
    pub(super) re: Real<'t>,
    pub(super) im: Real<'t>,
}

/// A real number of the code, or a constant.
pub(super) trait Operand<'t> {
    fn beside(self, tape: &'t dyn Emit) -> Real<'t>;
}
impl<'t> Operand<'t> for Real<'t> {
    fn beside(self, _: &'t dyn Emit) -> Real<'t> {
        self
    }
}
impl<'t> Operand<'t> for f64 {
    fn beside(self, tape: &'t dyn Emit) -> Real<'t> {
        Real { tape, slot: tape.emit(ScalarOp::Const(Scalar::F64(self))) }
    }
}

macro_rules! operators {
    ($($op:ident $method:ident;)*) => {
        $(impl<'t, O: Operand<'t>> $op<O> for Real<'t> {
            type Output = Real<'t>;
            fn $method(self, other: O) -> Real<'t> {
                self.with(BinaryOp::$op, other)
            }
        })*
    };
}
operators! { Add add; Sub sub; Mul mul; Div div; }

impl Neg for Real<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.of(UnaryOp::Neg)
    }
}

impl<'t> Real<'t> {
    pub(super) fn slot(self) -> Slot {
        self.slot
    }
    pub(super) fn number(self, value: f64) -> Real<'t> {
        value.beside(self.tape)
    }
    /// A function of it.
    pub(super) fn of(self, op: UnaryOp) -> Real<'t> {
        Real { tape: self.tape, slot: self.tape.emit(ScalarOp::Unary(op, self.slot)) }
    }
    pub(super) fn with(self, op: BinaryOp, other: impl Operand<'t>) -> Real<'t> {
        let other = other.beside(self.tape);
        Real { tape: self.tape, slot: self.tape.emit(ScalarOp::Binary(op, self.slot, other.slot)) }
    }
    fn test(self, op: UnaryOp) -> Truth<'t> {
        Truth { tape: self.tape, slot: self.of(op).slot }
    }
    fn compare(self, op: BinaryOp, other: impl Operand<'t>) -> Truth<'t> {
        Truth { tape: self.tape, slot: self.with(op, other).slot }
    }
    pub(super) fn exceeds(self, other: impl Operand<'t>) -> Truth<'t> {
        self.compare(BinaryOp::Gt, other)
    }
    pub(super) fn is_below(self, other: impl Operand<'t>) -> Truth<'t> {
        self.compare(BinaryOp::Lt, other)
    }
    pub(super) fn is_at_least(self, other: impl Operand<'t>) -> Truth<'t> {
        self.compare(BinaryOp::Ge, other)
    }
    pub(super) fn is_zero(self) -> Truth<'t> {
        self.compare(BinaryOp::Eq, 0.0)
    }
    pub(super) fn is_infinite(self) -> Truth<'t> {
        self.test(UnaryOp::IsInf)
    }
    pub(super) fn is_finite(self) -> Truth<'t> {
        self.test(UnaryOp::IsFinite)
    }
    pub(super) fn abs(self) -> Real<'t> {
        self.of(UnaryOp::Abs)
    }
    pub(super) fn sqrt(self) -> Real<'t> {
        self.of(UnaryOp::Sqrt)
    }
    pub(super) fn max(self, other: Real<'t>) -> Real<'t> {
        self.with(BinaryOp::Max, other)
    }
    pub(super) fn min(self, other: Real<'t>) -> Real<'t> {
        self.with(BinaryOp::Min, other)
    }
    pub(super) fn hypot(self, other: Real<'t>) -> Real<'t> {
        self.with(BinaryOp::Hypot, other)
    }
    pub(super) fn atan2(self, x: Real<'t>) -> Real<'t> {
        self.with(BinaryOp::Atan2, x)
    }
    /// Its size with the sign of another number. A NaN counts as positive: the sign it has depends on the machine.
    pub(super) fn signed(self, by: Real<'t>) -> Real<'t> {
        let by = by.test(UnaryOp::IsNan).pick(self.number(1.0), by);
        self.with(BinaryOp::Copysign, by)
    }
}

impl<'t> Truth<'t> {
    fn with(self, op: BinaryOp, other: Truth<'t>) -> Truth<'t> {
        Truth { tape: self.tape, slot: self.tape.emit(ScalarOp::Binary(op, self.slot, other.slot)) }
    }
    /// One of two numbers.
    pub(super) fn pick(self, yes: impl Operand<'t>, no: impl Operand<'t>) -> Real<'t> {
        let (yes, no) = (yes.beside(self.tape), no.beside(self.tape));
        Real { tape: self.tape, slot: self.tape.emit(ScalarOp::Select(self.slot, yes.slot, no.slot)) }
    }
    pub(super) fn choose(self, yes: Pair<'t>, no: Pair<'t>) -> Pair<'t> {
        Pair { re: self.pick(yes.re, no.re), im: self.pick(yes.im, no.im) }
    }
}
impl<'t> BitAnd for Truth<'t> {
    type Output = Truth<'t>;
    fn bitand(self, other: Truth<'t>) -> Truth<'t> {
        self.with(BinaryOp::And, other)
    }
}
impl<'t> BitOr for Truth<'t> {
    type Output = Truth<'t>;
    fn bitor(self, other: Truth<'t>) -> Truth<'t> {
        self.with(BinaryOp::Or, other)
    }
}
impl<'t> Not for Truth<'t> {
    type Output = Truth<'t>;
    fn not(self) -> Truth<'t> {
        Truth { tape: self.tape, slot: self.tape.emit(ScalarOp::Unary(UnaryOp::Not, self.slot)) }
    }
}

impl<'t> Pair<'t> {
    pub(super) fn slots(self) -> (Slot, Slot) {
        (self.re.slot(), self.im.slot())
    }
    pub(super) fn times(self, factor: impl Operand<'t>) -> Pair<'t> {
        let factor = factor.beside(self.re.tape);
        Pair { re: self.re * factor, im: self.im * factor }
    }
    /// The size of the larger part; NaN if one is.
    pub(super) fn extent(self) -> Real<'t> {
        self.re.abs().max(self.im.abs())
    }
    pub(super) fn magnitude(self) -> Real<'t> {
        self.re.hypot(self.im)
    }
    pub(super) fn is_infinite(self) -> Truth<'t> {
        self.re.is_infinite() | self.im.is_infinite()
    }
    pub(super) fn is_finite(self) -> Truth<'t> {
        self.re.is_finite() & self.im.is_finite()
    }
    /// The direction of an infinite number: 1 for infinite parts, 0 for others.
    pub(super) fn direction(self) -> Pair<'t> {
        let unit = |part: Real<'t>| part.is_infinite().pick(1.0, 0.0).signed(part);
        Pair { re: unit(self.re), im: unit(self.im) }
    }
    /// `i z`, and `-i z` for the way back: circular functions are hyperbolic ones of turned numbers.
    pub(super) fn turned(self) -> Pair<'t> {
        Pair { re: -self.im, im: self.re }
    }
    pub(super) fn turned_back(self) -> Pair<'t> {
        Pair { re: self.im, im: -self.re }
    }
}
