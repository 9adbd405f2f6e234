//! Random scalar code, with what is known about every value in it.
//!
//! Engines may sum in another order than the oracle and may compute `exp` in another way. So each value carries a [`Fact`], and operations are
//! chosen such that exact programs give equal results in any order, and inexact ones never amplify a rounding error into a jump.

use tw_ir::{BinaryOp, DType, RandomDistribution, Scalar, ScalarCode, ScalarOp, Slot, UnaryOp};

use super::data::DTYPES;
use super::rng::Rng;

/// What is known about all elements of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact {
    /// The same in every engine: no transcendental function and no sum of fractions is behind it.
    pub(super) exact: bool,
    /// Integers (or NaN or infinite): sums of them do not round.
    pub(super) integral: bool,
    /// Largest magnitude of the finite ones.
    pub(super) bound: f64,
}

impl Fact {
    /// Integers up to a magnitude.
    pub(super) fn integers(bound: f64) -> Fact {
        Fact { exact: true, integral: true, bound }
    }

    /// What holds for values of both.
    pub(super) fn join(self, other: Fact) -> Fact {
        Fact {
            exact: self.exact && other.exact,
            integral: self.integral && other.integral,
            bound: self.bound.max(other.bound),
        }
    }

    fn with_bound(self, bound: f64) -> Fact {
        Fact { bound, ..self }
    }
}

/// The magnitude values are brought back to when they grow.
pub(super) const TAME: f64 = 8.0;
/// Values larger than this are brought back at once.
const WILD: f64 = 4096.0;

/// Scalar code under construction.
pub(super) struct Body<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) code: ScalarCode,
    facts: Vec<Fact>,
    /// Slots to start expressions from: reads and variables.
    pub(super) leaves: Vec<Slot>,
    inexact: bool,
}

impl<'a> Body<'a> {
    /// Code whose parameters have the given types and facts.
    pub(super) fn new(rng: &'a mut Rng, params: &[(DType, Fact)], inexact: bool) -> Body<'a> {
        let code = ScalarCode::new(params.iter().map(|(dtype, _)| *dtype).collect());
        let mut body = Body { rng, code, facts: Vec::new(), leaves: Vec::new(), inexact };
        for (k, (_, fact)) in params.iter().enumerate() {
            let slot = body.push(ScalarOp::Param(k as u32), *fact);
            body.leaves.push(slot);
        }
        body
    }

    pub(super) fn dtype(&self, slot: Slot) -> DType {
        self.code.dtype(slot)
    }

    pub(super) fn fact(&self, slot: Slot) -> Fact {
        self.facts[slot.0 as usize]
    }

    fn push(&mut self, op: ScalarOp, fact: Fact) -> Slot {
        // Operations are chosen by type, so a refusal would be a fault of this generator.
        let slot = self.code.push(op).expect("the generator keeps types right");
        if slot.0 as usize == self.facts.len() {
            self.facts.push(fact);
        }
        slot
    }

    pub(super) fn constant(&mut self, value: Scalar) -> Slot {
        let value_as_f64 = value.as_f64();
        let integral = value_as_f64.fract() == 0.0 || !value_as_f64.is_finite();
        let bound = if value_as_f64.is_finite() { value_as_f64.abs() } else { 0.0 };
        self.push(ScalarOp::Const(value), Fact { exact: true, integral, bound })
    }

    pub(super) fn number(&mut self, value: i64, dtype: DType) -> Slot {
        self.constant(Scalar::I64(value).cast(dtype))
    }

    /// A binary operation with the fact that follows from those of its operands.
    pub(super) fn binary(&mut self, op: BinaryOp, a: Slot, b: Slot) -> Slot {
        use BinaryOp::*;
        let dtype = self.dtype(a);
        if op.result(dtype).is_none() && (dtype.is_half() || dtype.is_complex()) {
            // What halves and complex numbers cannot do, singles and real parts can.
            let (x, y) = (self.real(a), self.real(b));
            let result = self.binary(op, x, y);
            return if self.dtype(result) == DType::Bool { result } else { self.cast(dtype, result) };
        }
        let (x, y) = (self.fact(a), self.fact(b));
        let both = x.join(y);
        let fact = match op {
            Add | Sub => both.with_bound(x.bound + y.bound),
            Mul if self.dtype(a).is_complex() => both.with_bound(2.0 * x.bound * y.bound),
            Mul => both.with_bound(x.bound * y.bound),
            Mod => both.with_bound(y.bound),
            FloorDiv => both.with_bound(x.bound + 1.0),
            And | Or | Xor => both.with_bound(2.0 * both.bound + 1.0),
            Shl | Shr => both.with_bound(i64::MAX as f64),
            Complex => both,
            Div => Fact { integral: false, bound: x.bound, ..both },
            Pow if self.dtype(a).is_integer() => both.with_bound(x.bound.max(1.0).powf(y.bound)),
            Pow => Fact { exact: false, integral: false, bound: x.bound.max(1.0).powf(y.bound) },
            Hypot => Fact { exact: false, integral: false, bound: x.bound + y.bound },
            Copysign => both.with_bound(x.bound),
            Nextafter => Fact { exact: false, integral: false, bound: x.bound + 1.0 },
            Atan2 => Fact { exact: false, integral: false, bound: 4.0 },
            Min | Max => both,
            Lt | Le | Gt | Ge | Eq | Ne => both.with_bound(1.0),
        };
        let fact = self.wrapped(self.dtype(a), fact);
        self.push(ScalarOp::Binary(op, a, b), fact)
    }

    /// What holds for integers that wrap: unsigned ones do as soon as anything is below zero, others when they grow.
    fn wrapped(&self, dtype: DType, fact: Fact) -> Fact {
        let highest = dtype.highest().as_f64();
        match dtype {
            _ if dtype.is_unsigned() => fact.with_bound(highest),
            _ if dtype.is_integer() && fact.bound > highest => fact.with_bound(highest + 1.0),
            _ => fact,
        }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, a: Slot) -> Slot {
        use UnaryOp::*;
        let dtype = self.dtype(a);
        if op.result(dtype).is_none() && (dtype.is_half() || dtype.is_complex()) {
            let x = self.real(a);
            let result = self.unary(op, x);
            return if self.dtype(result) == DType::Bool { result } else { self.cast(dtype, result) };
        }
        let x = self.fact(a);
        let rough = |bound: f64| Fact { exact: false, integral: false, bound };
        let fact = match op {
            Neg | Abs | Real | Imag | Conj => x,
            Sign | IsNan | IsInf | IsFinite | Signbit => Fact { integral: true, ..x }.with_bound(1.0),
            Not => x.with_bound(x.bound + 1.0),
            Floor | Ceil | Round | Trunc => Fact { integral: true, ..x }.with_bound(x.bound + 1.0),
            // Correctly rounded everywhere, so exact, but no integer.
            Sqrt => Fact { integral: false, ..x }.with_bound(x.bound.max(1.0)),
            Exp | Exp2 | Expm1 | Sinh | Cosh => rough(x.bound.exp()),
            Log | Log1p | Log2 | Log10 | Sin | Cos | Tan | Asin | Acos | Atan | Tanh | Asinh | Acosh | Atanh | Cbrt => {
                rough(4.0 + x.bound)
            }
        };
        let fact = self.wrapped(self.dtype(a), fact);
        self.push(ScalarOp::Unary(op, a), fact)
    }

    /// A half as a single, the real part of a complex number.
    fn real(&mut self, a: Slot) -> Slot {
        if self.dtype(a).is_half() { self.cast(DType::F32, a) } else { self.unary(UnaryOp::Real, a) }
    }

    pub(super) fn select(&mut self, condition: Slot, yes: Slot, no: Slot) -> Slot {
        let fact = self.fact(yes).join(self.fact(no));
        let exact = fact.exact && self.fact(condition).exact;
        self.push(ScalarOp::Select(condition, yes, no), Fact { exact, ..fact })
    }

    /// The same value as another type. Jumps are taken only where the value is exact.
    pub(super) fn cast(&mut self, dtype: DType, a: Slot) -> Slot {
        let from = self.dtype(a);
        if from == dtype {
            return a;
        }
        // Rounding to a half jumps as well, compared with the differences that are allowed.
        let inexact = from.is_float() || from.is_complex();
        let jumps = inexact && !(dtype.is_float() || dtype.is_complex()) || dtype.is_half();
        if jumps && !self.fact(a).exact {
            return self.number(1, dtype);
        }
        if dtype.is_complex() && from.is_float() {
            // Products of infinite complex numbers depend on their order.
            let wide = if from.is_half() { self.cast(DType::F32, a) } else { a };
            let finite = self.clamp(wide, TAME);
            let fact = self.fact(finite);
            return self.push(ScalarOp::Cast(dtype, finite), fact);
        }
        // Large integers do not fit into a float, and infinities become the largest integers.
        let tames = from.is_integer() && (dtype.is_float() || dtype.is_complex())
            || dtype.is_half()
            || dtype.is_integer() && self.rng.chance(70);
        let a = if tames { self.tame(a) } else { a };
        let fact = self.fact(a);
        let fact = match dtype {
            DType::Bool => fact.with_bound(1.0),
            _ if dtype.is_unsigned() => Fact { integral: true, ..fact }.with_bound(dtype.highest().as_f64()),
            _ if dtype.is_integer() && tames => Fact { integral: true, ..fact }.with_bound(TAME),
            _ if dtype.is_integer() => Fact { integral: true, ..fact }.with_bound(dtype.highest().as_f64() + 1.0),
            _ => fact,
        };
        self.push(ScalarOp::Cast(dtype, a), fact)
    }

    /// Brings a value back to small integers, or, if it is not exact, to small numbers.
    pub(super) fn tame(&mut self, a: Slot) -> Slot {
        let (dtype, fact) = (self.dtype(a), self.fact(a));
        if dtype == DType::Bool || (fact.bound <= TAME && (fact.integral || !fact.exact)) {
            return a;
        }
        if dtype.is_half() {
            let wide = self.cast(DType::F32, a);
            let tame = self.tame(wide);
            return self.cast(dtype, tame);
        }
        if dtype.is_complex() {
            let (re, im) = (self.unary(UnaryOp::Real, a), self.unary(UnaryOp::Imag, a));
            let (re, im) = (self.tame(re), self.tame(im));
            return self.binary(BinaryOp::Complex, re, im);
        }
        let a = if dtype.is_float() && fact.exact && !fact.integral { self.unary(UnaryOp::Round, a) } else { a };
        self.clamp(a, TAME)
    }

    /// The value cut to a magnitude.
    pub(super) fn clamp(&mut self, a: Slot, bound: f64) -> Slot {
        let dtype = self.dtype(a);
        let low = if dtype.is_unsigned() { 0 } else { -(bound as i64) };
        let (low, high) = (self.number(low, dtype), self.number(bound as i64, dtype));
        let upper = self.binary(BinaryOp::Min, a, high);
        let slot = self.binary(BinaryOp::Max, upper, low);
        let fact = self.fact(slot);
        // An integer may have been far outside; now it is not.
        self.facts[slot.0 as usize] = fact.with_bound(bound);
        slot
    }

    /// `|x| + 1`: never zero, so the sign of a zero, which depends on the order of a minimum, decides nothing.
    fn positive(&mut self, a: Slot) -> Slot {
        let a = self.tame(a);
        let magnitude = self.unary(UnaryOp::Abs, a);
        let one = self.number(1, self.dtype(a));
        self.binary(BinaryOp::Add, magnitude, one)
    }

    /// A random expression of a type.
    pub(super) fn expression(&mut self, dtype: DType, depth: u32) -> Slot {
        if depth == 0 || self.rng.chance(15) {
            return self.leaf(dtype);
        }
        let slot = match dtype {
            DType::Bool => self.bool_expression(depth),
            _ if dtype.is_integer() => self.integer_expression(dtype, depth),
            _ if dtype.is_half() => self.half_expression(dtype, depth),
            _ if dtype.is_complex() => self.complex_expression(dtype, depth),
            _ => self.float_expression(dtype, depth),
        };
        if self.fact(slot).bound > WILD { self.tame(slot) } else { slot }
    }

    fn leaf(&mut self, dtype: DType) -> Slot {
        let same: Vec<Slot> = self.leaves.iter().copied().filter(|&slot| self.dtype(slot) == dtype).collect();
        if !same.is_empty() && self.rng.chance(80) {
            return self.rng.pick(&same);
        }
        if !self.leaves.is_empty() && self.rng.chance(80) {
            let slot = self.rng.pick(&self.leaves.clone());
            return self.cast(dtype, slot);
        }
        let value = super::data::scalar(self.rng, dtype, false);
        self.constant(value)
    }

    fn any_dtype(&mut self) -> DType {
        self.rng.pick(&DTYPES)
    }

    fn bool_expression(&mut self, depth: u32) -> Slot {
        use BinaryOp::*;
        match self.rng.range(0, 9) {
            0 => {
                let a = self.expression(DType::Bool, depth - 1);
                self.unary(UnaryOp::Not, a)
            }
            1..=3 => {
                let op = self.rng.pick(&[And, Or, Xor, Add, Mul, Min, Max, Eq, Ne, Lt, Le]);
                let (a, b) = (self.expression(DType::Bool, depth - 1), self.expression(DType::Bool, depth - 1));
                self.binary(op, a, b)
            }
            4 => {
                let dtype = self.rng.pick(&[DType::F32, DType::F64]);
                let a = self.expression(dtype, depth - 1);
                let op = self.rng.pick(&[UnaryOp::IsNan, UnaryOp::IsInf, UnaryOp::IsFinite, UnaryOp::Signbit]);
                let a = if op == UnaryOp::Signbit { self.positive(a) } else { a };
                self.unary(op, a)
            }
            _ => self.comparison(depth),
        }
    }

    /// A comparison of exact values.
    pub(super) fn comparison(&mut self, depth: u32) -> Slot {
        use BinaryOp::*;
        let mut dtype = self.any_dtype();
        if dtype.is_half() {
            dtype = DType::F32;
        }
        let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
        if !self.fact(a).exact || !self.fact(b).exact {
            return self.constant(Scalar::Bool(true));
        }
        let op = if dtype.is_complex() { self.rng.pick(&[Eq, Ne]) } else { self.rng.pick(&[Lt, Le, Gt, Ge, Eq, Ne]) };
        self.binary(op, a, b)
    }

    /// Halves are only moved and converted.
    fn half_expression(&mut self, dtype: DType, depth: u32) -> Slot {
        if self.rng.chance(30) {
            return self.choice(dtype, depth);
        }
        let from = if self.rng.chance(50) { DType::F32 } else { self.any_dtype() };
        let value = self.expression(from, depth - 1);
        self.cast(dtype, value)
    }

    fn complex_expression(&mut self, dtype: DType, depth: u32) -> Slot {
        use BinaryOp::*;
        let part = dtype.part().unwrap_or(DType::F64);
        match self.rng.range(0, 6) {
            0 => self.choice(dtype, depth),
            1 => {
                let (re, im) = (self.expression(part, depth - 1), self.expression(part, depth - 1));
                // Products of infinite complex numbers depend on their order.
                let (re, im) = (self.clamp(re, TAME), self.clamp(im, TAME));
                self.binary(Complex, re, im)
            }
            2 => {
                let a = self.expression(dtype, depth - 1);
                let op = self.rng.pick(&[UnaryOp::Neg, UnaryOp::Conj]);
                self.unary(op, a)
            }
            _ => {
                let op = self.rng.pick(&[Add, Sub, Mul]);
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                self.binary(op, a, b)
            }
        }
    }

    fn choice(&mut self, dtype: DType, depth: u32) -> Slot {
        let condition = self.expression(DType::Bool, depth - 1);
        let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
        self.select(condition, a, b)
    }

    fn integer_expression(&mut self, dtype: DType, depth: u32) -> Slot {
        use BinaryOp::*;
        match self.rng.range(0, 11) {
            0 => self.choice(dtype, depth),
            1 => {
                let a = self.expression(dtype, depth - 1);
                let op = self.rng.pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign, UnaryOp::Not]);
                self.unary(op, a)
            }
            2 if dtype == DType::I64 => {
                let counter = self.expression(dtype, depth - 1);
                let (low, width, seed) = (self.rng.range(-4, 2), self.rng.range(1, 5), self.rng.seed());
                let distribution = RandomDistribution::Integer { low, high: low + width };
                self.push(ScalarOp::Random { distribution, seed, counter }, Fact::integers(8.0))
            }
            3 => {
                let (base, exponent) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                let (base, exponent) = (self.tame(base), self.clamp(exponent, 3.0));
                self.binary(Pow, base, exponent)
            }
            _ => {
                let op = self.rng.pick(&[Add, Sub, Mul, Min, Max, FloorDiv, Mod, And, Or, Xor, Shl, Shr]);
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                self.binary(op, a, b)
            }
        }
    }

    fn float_expression(&mut self, dtype: DType, depth: u32) -> Slot {
        use BinaryOp::*;
        match self.rng.range(0, 13) {
            0 => self.choice(dtype, depth),
            1 | 2 => self.float_unary(dtype, depth),
            3 => {
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                if !self.fact(a).exact || !self.fact(b).exact {
                    return a;
                }
                let divisor = self.positive(b);
                let op = self.rng.pick(&[FloorDiv, Mod]);
                let a = self.tame(a);
                self.binary(op, a, divisor)
            }
            4 => {
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                let divisor = self.positive(b);
                self.binary(Div, a, divisor)
            }
            5 if dtype == DType::F64 => {
                let counter = self.expression(DType::I64, depth - 1);
                let seed = self.rng.seed();
                let normal = self.inexact && self.rng.chance(50);
                let distribution = if normal { RandomDistribution::Normal } else { RandomDistribution::Uniform };
                let fact = Fact { exact: !normal, integral: false, bound: if normal { 16.0 } else { 1.0 } };
                self.push(ScalarOp::Random { distribution, seed, counter }, fact)
            }
            6 | 7 if self.inexact => self.transcendental(dtype, depth),
            _ => {
                let op = self.rng.pick(&[Add, Sub, Mul, Min, Max]);
                let (a, b) = (self.expression(dtype, depth - 1), self.expression(dtype, depth - 1));
                self.binary(op, a, b)
            }
        }
    }

    fn float_unary(&mut self, dtype: DType, depth: u32) -> Slot {
        use UnaryOp::*;
        let a = self.expression(dtype, depth - 1);
        match self.rng.pick(&[Neg, Abs, Sign, Floor, Ceil, Round, Trunc, Sqrt]) {
            Sqrt => {
                let magnitude = self.unary(Abs, a);
                self.unary(Sqrt, magnitude)
            }
            op @ (Neg | Abs) => self.unary(op, a),
            _ if !self.fact(a).exact => a,
            op => self.unary(op, a),
        }
    }

    /// Functions whose last bit depends on who computes them, inside their domains.
    fn transcendental(&mut self, dtype: DType, depth: u32) -> Slot {
        use UnaryOp::*;
        let a = self.expression(dtype, depth - 1);
        let a = self.tame(a);
        match self.rng.range(0, 4) {
            0 => {
                let argument = self.positive(a);
                let op = self.rng.pick(&[Log, Log1p, Log2, Log10, Acosh]);
                self.unary(op, argument)
            }
            1 => {
                let sixteen = self.number(16, dtype);
                let argument = self.binary(BinaryOp::Div, a, sixteen);
                let op = self.rng.pick(&[Asin, Acos, Atanh, Tan]);
                self.unary(op, argument)
            }
            2 => {
                let b = self.expression(dtype, depth - 1);
                let positive = self.positive(b);
                let exponent = self.clamp(a, 3.0);
                self.binary(BinaryOp::Pow, positive, exponent)
            }
            3 => {
                let b = self.expression(dtype, depth - 1);
                let positive = self.positive(b);
                let op = self.rng.pick(&[BinaryOp::Atan2, BinaryOp::Hypot, BinaryOp::Copysign, BinaryOp::Nextafter]);
                self.binary(op, a, positive)
            }
            _ => {
                let op = self.rng.pick(&[Exp, Exp2, Expm1, Sinh, Cosh, Tanh, Asinh, Cbrt, Sin, Cos, Atan]);
                self.unary(op, a)
            }
        }
    }

    /// The code with these results, and what is known about each.
    pub(super) fn finish(mut self, results: Vec<Slot>) -> (ScalarCode, Vec<Fact>) {
        let facts = results.iter().map(|&slot| self.fact(slot)).collect();
        self.code.set_results(results);
        (self.code.without_dead_ops(), facts)
    }
}
