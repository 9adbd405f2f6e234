//! Dates and durations: integer code for their arithmetic, units and NaT.
//!
//! A time is an i64 count of units, and NaT is the smallest i64. The code emitted here casts to i64, computes, and casts back. A rewrite erases the tags before anything
//! runs.

use tw_ir::dtype::NAT;
use tw_ir::{BinaryOp, DType, Error, Result, Scalar, Slot, TimeUnit, UnaryOp};

use super::promote::{CodeSink, Typed, refused};

/// Small pieces of integer code.
pub(super) struct Counts<'a, C>(pub(super) &'a mut C);

impl<C: CodeSink> Counts<'_, C> {
    fn number(&mut self, value: i64) -> Result<Slot> {
        self.0.constant(Scalar::I64(value))
    }
    fn op(&mut self, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
        self.0.binary(op, a, b)
    }
    fn with(&mut self, op: BinaryOp, a: Slot, b: i64) -> Result<Slot> {
        let b = self.number(b)?;
        self.op(op, a, b)
    }
    /// The integer a time counts.
    fn count(&mut self, a: Slot) -> Result<Slot> {
        self.0.convert(DType::I64, a)
    }
    /// True for NaT, of a count.
    fn is_nat(&mut self, count: Slot) -> Result<Slot> {
        self.with(BinaryOp::Eq, count, NAT)
    }
    fn either_nat(&mut self, a: Slot, b: Slot) -> Result<Slot> {
        let (a, b) = (self.is_nat(a)?, self.is_nat(b)?);
        self.op(BinaryOp::Or, a, b)
    }
    /// The value, but NaT where the condition holds.
    fn nat_where(&mut self, condition: Slot, value: Slot) -> Result<Slot> {
        let nat = self.number(NAT)?;
        self.0.select(condition, nat, value)
    }

    /// A count of one unit as a count of another, rounded down; NaT stays NaT. Months have a length only as points in time.
    fn rescale(&mut self, count: Slot, from: TimeUnit, to: TimeUnit, point: bool) -> Result<Slot> {
        if from == to {
            return Ok(count);
        }
        let nat = self.is_nat(count)?;
        let converted = match (from.is_calendar(), to.is_calendar()) {
            (true, false) if point => {
                let months = self.rescale_evenly(count, from, TimeUnit::Month)?;
                let days = self.days_of_month(months)?;
                self.rescale_evenly(days, TimeUnit::Day, to)?
            }
            (false, true) if point => {
                let days = self.rescale_evenly(count, from, TimeUnit::Day)?;
                let months = self.month_of_days(days)?;
                self.rescale_evenly(months, TimeUnit::Month, to)?
            }
            (x, y) if x == y => self.rescale_evenly(count, from, to)?,
            _ => {
                return Err(Error::types(format!("a span in {} has no fixed length in {}", from.name(), to.name())));
            }
        };
        self.nat_where(nat, converted)
    }

    /// Between units of which one consists of a whole number of the other. Overflow wraps.
    fn rescale_evenly(&mut self, count: Slot, from: TimeUnit, to: TimeUnit) -> Result<Slot> {
        let (op, ratio) =
            if from <= to { (BinaryOp::Mul, from.ratio(to)) } else { (BinaryOp::FloorDiv, to.ratio(from)) };
        let ratio = ratio.ok_or_else(|| {
            Error::source(format!("one {} is more of {} than an i64 counts", from.min(to).name(), from.max(to).name()))
        })?;
        if ratio == 1 { Ok(count) } else { self.with(op, count, ratio) }
    }

    /// Days from 1970-01-01 to the first of a month counted from January 1970, in the Gregorian calendar.
    fn days_of_month(&mut self, months: Slot) -> Result<Slot> {
        use BinaryOp::{Add, FloorDiv, Mod, Mul, Sub};
        // Years begin in March here, so that the leap day is the last of a year. 1970-01 is month 10 of 1969.
        let months = self.with(Add, months, 1969 * 12 + 10)?;
        let (year, month) = (self.with(FloorDiv, months, 12)?, self.with(Mod, months, 12)?);
        let (fours, centuries) = (self.with(FloorDiv, year, 4)?, self.with(FloorDiv, year, 100)?);
        let cycles = self.with(FloorDiv, year, 400)?;
        let days = self.with(Mul, year, 365)?;
        let days = self.op(Add, days, fours)?;
        let days = self.op(Sub, days, centuries)?;
        let days = self.op(Add, days, cycles)?;
        // Five months have 153 days, again and again.
        let month = self.with(Mul, month, 153)?;
        let month = self.with(Add, month, 2)?;
        let month = self.with(FloorDiv, month, 5)?;
        let days = self.op(Add, days, month)?;
        self.with(Sub, days, DAYS_BEFORE_EPOCH)
    }

    /// The month, counted from January 1970, that a day counted from 1970-01-01 lies in.
    fn month_of_days(&mut self, days: Slot) -> Result<Slot> {
        use BinaryOp::{Add, FloorDiv, Mod, Mul, Sub};
        let days = self.with(Add, days, DAYS_BEFORE_EPOCH)?;
        let (cycle, day) = (self.with(FloorDiv, days, 146_097)?, self.with(Mod, days, 146_097)?);
        // The year within 400, after the days that leap years add are taken off.
        let (a, b) = (self.with(FloorDiv, day, 1460)?, self.with(FloorDiv, day, 36_524)?);
        let c = self.with(FloorDiv, day, 146_096)?;
        let year = self.op(Sub, day, a)?;
        let year = self.op(Add, year, b)?;
        let year = self.op(Sub, year, c)?;
        let year = self.with(FloorDiv, year, 365)?;
        let (fours, centuries) = (self.with(FloorDiv, year, 4)?, self.with(FloorDiv, year, 100)?);
        let before = self.with(Mul, year, 365)?;
        let before = self.op(Add, before, fours)?;
        let before = self.op(Sub, before, centuries)?;
        let day = self.op(Sub, day, before)?;
        let month = self.with(Mul, day, 5)?;
        let month = self.with(Add, month, 2)?;
        let month = self.with(FloorDiv, month, 153)?;
        let cycles = self.with(Mul, cycle, 400)?;
        let years = self.op(Add, cycles, year)?;
        let months = self.with(Mul, years, 12)?;
        let months = self.op(Add, months, month)?;
        self.with(Sub, months, 1969 * 12 + 10)
    }
}

/// Days from 1 March of the year 0 to 1970-01-01.
const DAYS_BEFORE_EPOCH: i64 = 719_468;

/// Appends a unary operation on a time.
pub(super) fn unary(code: &mut impl CodeSink, op: UnaryOp, a: Slot) -> Result<Slot> {
    let dtype = code.dtype(a);
    let mut counts = Counts(code);
    let count = counts.count(a)?;
    match op {
        UnaryOp::IsNan => counts.is_nat(count),
        UnaryOp::IsFinite => counts.with(BinaryOp::Ne, count, NAT),
        UnaryOp::IsInf => counts.0.constant(Scalar::Bool(false)),
        // NaT is its own negative and its own magnitude, since both wrap.
        UnaryOp::Neg | UnaryOp::Abs if matches!(dtype, DType::TimeDelta(_)) => {
            let result = code.unary(op, count)?;
            code.convert(dtype, result)
        }
        _ => Err(refused(op.written(), dtype)),
    }
}

/// Appends a conversion from or to a time.
pub(super) fn cast(code: &mut impl CodeSink, dtype: DType, a: Slot) -> Result<Slot> {
    let from = code.dtype(a);
    match (from, dtype) {
        (DType::DateTime(x), DType::DateTime(y)) | (DType::TimeDelta(x), DType::TimeDelta(y)) => {
            let point = matches!(dtype, DType::DateTime(_));
            let mut counts = Counts(code);
            let count = counts.count(a)?;
            let count = counts.rescale(count, x, y, point)?;
            code.convert(dtype, count)
        }
        _ if from.is_time() && dtype.is_time() || from.is_complex() || dtype.is_complex() => {
            Err(Error::types(format!("{from} does not convert to {dtype}")))
        }
        _ if from.is_time() => code.convert(dtype, a),
        _ if from.is_float() => {
            // NaN is to floats what NaT is to times.
            let wide = code.convert(DType::F64, a)?;
            let nan = code.unary(UnaryOp::IsNan, wide)?;
            let count = code.convert(DType::I64, wide)?;
            let count = Counts(code).nat_where(nan, count)?;
            code.convert(dtype, count)
        }
        _ => {
            let count = code.convert(DType::I64, a)?;
            code.convert(dtype, count)
        }
    }
}

/// Appends a binary operation of which at least one operand is a time.
pub(super) fn binary(code: &mut impl CodeSink, op: BinaryOp, a: Typed, b: Typed) -> Result<Slot> {
    use BinaryOp::*;
    let (x, y) = (code.dtype(a.slot), code.dtype(b.slot));
    let wrong = || Error::types(format!("`{}` does not take {x} and {y}", op.written()));
    let number = |dtype: DType| dtype.is_integer() || dtype.is_float() || dtype == DType::Bool;
    let result = match (op, x, y) {
        (Mul, DType::TimeDelta(_), y) if number(y) => return scale(code, Mul, a.slot, b.slot, x),
        (Mul, x, DType::TimeDelta(_)) if number(x) => return scale(code, Mul, b.slot, a.slot, y),
        (Div | FloorDiv, DType::TimeDelta(_), y) if number(y) => return scale(code, op, a.slot, b.slot, x),
        (Div | FloorDiv | Mod, DType::TimeDelta(_), DType::TimeDelta(_)) => return divide(code, op, a.slot, b.slot),
        // Points have a difference, but no sum.
        (Sub, DType::DateTime(p), DType::DateTime(q)) => DType::TimeDelta(p.max(q)),
        (Add, DType::DateTime(_), DType::DateTime(_)) => return Err(wrong()),
        (Sub, x, DType::DateTime(_)) if !matches!(x, DType::DateTime(_)) => return Err(wrong()),
        // An integer beside a time counts its unit.
        (Add | Sub, x, y) => meeting(x, y).ok_or_else(wrong)?,
        (Min | Max, x, y) => x.promote(y).filter(|_| same_kind(x, y)).ok_or_else(wrong)?,
        (op, x, y) if op.is_comparison() && same_kind(x, y) => x.promote(y).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    let unit = result.time_unit().ok_or_else(|| Error::internal("a time without a unit"))?;
    let (left, right) = (count_in(code, a.slot, unit, result)?, count_in(code, b.slot, unit, result)?);
    let mut counts = Counts(code);
    let value = match op {
        Add | Sub => {
            let nat = counts.either_nat(left, right)?;
            let sum = counts.op(op, left, right)?;
            counts.nat_where(nat, sum)?
        }
        // NaT is the smallest integer, so it wins a minimum; one less it is the largest, and wins a maximum.
        Min => counts.op(Min, left, right)?,
        Max => {
            let (left, right) = (counts.with(Sub, left, 1)?, counts.with(Sub, right, 1)?);
            let larger = counts.op(Max, left, right)?;
            counts.with(Add, larger, 1)?
        }
        _ => {
            let (holds, nat) = (counts.op(op, left, right)?, counts.either_nat(left, right)?);
            let answer = counts.0.constant(Scalar::Bool(op == Ne))?;
            return counts.0.select(nat, answer, holds);
        }
    };
    code.convert(result, value)
}

/// What a sum or difference with at least one time gives.
fn meeting(x: DType, y: DType) -> Option<DType> {
    match (x, y) {
        (DType::DateTime(_), other) | (other, DType::DateTime(_)) if other.is_integer() || other == DType::Bool => {
            Some(if x.is_time() { x } else { y })
        }
        _ => x.promote(y),
    }
}

fn same_kind(x: DType, y: DType) -> bool {
    matches!((x, y), (DType::DateTime(_), DType::DateTime(_)) | (DType::TimeDelta(_), DType::TimeDelta(_)))
}

/// A time or an integer as a count of a unit.
fn count_in(code: &mut impl CodeSink, a: Slot, unit: TimeUnit, beside: DType) -> Result<Slot> {
    let dtype = code.dtype(a);
    let mut counts = Counts(code);
    let count = counts.count(a)?;
    match dtype {
        DType::DateTime(own) => counts.rescale(count, own, unit, true),
        DType::TimeDelta(own) if own.is_calendar() == unit.is_calendar() => counts.rescale(count, own, unit, false),
        DType::TimeDelta(own) => {
            Err(Error::types(format!("a span in {} has no fixed length beside {beside}", own.name())))
        }
        _ => Ok(count),
    }
}

/// A span times or by a number. Floats are rounded towards zero, as in NumPy; NaN and division by zero give NaT.
fn scale(code: &mut impl CodeSink, op: BinaryOp, span: Slot, factor: Slot, dtype: DType) -> Result<Slot> {
    let count = code.convert(DType::I64, span)?;
    let mut nat = Counts(code).is_nat(count)?;
    let value = if code.dtype(factor).is_float() {
        let (x, y) = (code.convert(DType::F64, count)?, code.convert(DType::F64, factor)?);
        let value = code.binary(op, x, y)?;
        // Neither NaN nor infinities are counts.
        let finite = code.unary(UnaryOp::IsFinite, value)?;
        let wild = code.unary(UnaryOp::Not, finite)?;
        nat = code.binary(BinaryOp::Or, nat, wild)?;
        code.convert(DType::I64, value)?
    } else {
        let factor = code.convert(DType::I64, factor)?;
        if op == BinaryOp::Mul {
            code.binary(op, count, factor)?
        } else {
            let by_zero = Counts(code).with(BinaryOp::Eq, factor, 0)?;
            nat = code.binary(BinaryOp::Or, nat, by_zero)?;
            if op == BinaryOp::Div { truncated(code, count, factor)? } else { code.binary(op, count, factor)? }
        }
    };
    let value = Counts(code).nat_where(nat, value)?;
    code.convert(dtype, value)
}

/// The quotient of integers rounded towards zero.
pub(super) fn truncated(code: &mut impl CodeSink, a: Slot, b: Slot) -> Result<Slot> {
    let (x, y) = (code.unary(UnaryOp::Abs, a)?, code.unary(UnaryOp::Abs, b)?);
    let quotient = code.binary(BinaryOp::FloorDiv, x, y)?;
    let (sign, other) = (code.unary(UnaryOp::Sign, a)?, code.unary(UnaryOp::Sign, b)?);
    let sign = code.binary(BinaryOp::Mul, sign, other)?;
    code.binary(BinaryOp::Mul, quotient, sign)
}

/// Spans by spans: f64, how often one fits into the other, or what is left.
fn divide(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    let (x, y) = (code.dtype(a), code.dtype(b));
    let result = x.promote(y).ok_or_else(|| Error::types(format!("`{}` does not take {x} and {y}", op.written())))?;
    let unit = result.time_unit().ok_or_else(|| Error::internal("a time without a unit"))?;
    let (left, right) = (count_in(code, a, unit, result)?, count_in(code, b, unit, result)?);
    let nat = Counts(code).either_nat(left, right)?;
    match op {
        BinaryOp::Div => {
            let (x, y) = (code.convert(DType::F64, left)?, code.convert(DType::F64, right)?);
            let (quotient, nan) = (code.binary(op, x, y)?, code.constant(Scalar::F64(f64::NAN))?);
            code.select(nat, nan, quotient)
        }
        BinaryOp::FloorDiv => {
            let (quotient, zero) = (code.binary(op, left, right)?, code.constant(Scalar::I64(0))?);
            code.select(nat, zero, quotient)
        }
        _ => {
            let by_zero = Counts(code).with(BinaryOp::Eq, right, 0)?;
            let nat = code.binary(BinaryOp::Or, nat, by_zero)?;
            let rest = code.binary(op, left, right)?;
            let rest = Counts(code).nat_where(nat, rest)?;
            code.convert(result, rest)
        }
    }
}
