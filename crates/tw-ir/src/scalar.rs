//! Scalar code: the bodies of index statements and the parts of accumulators.
//!
//! A [`ScalarCode`] is a short straight-line program over typed slots. It has no binders and no control flow, so it can be hash-consed,
//! rewritten, interpreted element by element (the oracle) or strip by strip (the kernels).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};

pub mod elementary;
mod eval;
pub mod math;

pub use eval::{eval_binary, eval_random, eval_unary};

/// A value computed by scalar code, by position of the operation that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

macro_rules! named_ops {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$vdoc])* $variant,)* }
        impl $type {
            /// Every operation.
            pub const ALL: &'static [$type] = &[$($type::$variant,)*];
            /// The name used in text.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
        impl FromStr for $type {
            type Err = ();
            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($name => Ok($type::$variant),)* _ => Err(()) }
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.name()) }
        }
    };
}

named_ops! {
    /// Operations on one value.
    UnaryOp {
        /// Negation; integers wrap.
        Neg = "neg",
        /// Magnitude; `i64::MIN` stays itself.
        Abs = "abs",
        /// -1, 0 or 1; NaN stays NaN.
        Sign = "sign",
        /// Logical or bitwise complement.
        Not = "not",
        /// Square root.
        Sqrt = "sqrt",
        /// Exponential.
        Exp = "exp",
        /// Power of two.
        Exp2 = "exp2",
        /// `exp(x) - 1` without cancellation.
        Expm1 = "expm1",
        /// Natural logarithm.
        Log = "log",
        /// `log(1 + x)` without cancellation.
        Log1p = "log1p",
        /// Base-2 logarithm.
        Log2 = "log2",
        /// Base-10 logarithm.
        Log10 = "log10",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// Tangent.
        Tan = "tan",
        /// Arc sine.
        Asin = "asin",
        /// Arc cosine.
        Acos = "acos",
        /// Arc tangent.
        Atan = "atan",
        /// Hyperbolic sine.
        Sinh = "sinh",
        /// Hyperbolic cosine.
        Cosh = "cosh",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Inverse hyperbolic sine.
        Asinh = "asinh",
        /// Inverse hyperbolic cosine.
        Acosh = "acosh",
        /// Inverse hyperbolic tangent.
        Atanh = "atanh",
        /// Cube root.
        Cbrt = "cbrt",
        /// Round down.
        Floor = "floor",
        /// Round up.
        Ceil = "ceil",
        /// Round to nearest, ties to even.
        Round = "round",
        /// Round towards zero.
        Trunc = "trunc",
        /// True for NaN.
        IsNan = "isnan",
        /// True for infinities.
        IsInf = "isinf",
        /// True for all but infinities and NaN.
        IsFinite = "isfinite",
        /// True if the sign bit is set, as it is for -0.
        Signbit = "signbit",
        /// Real part of a complex number.
        Real = "real",
        /// Imaginary part of a complex number.
        Imag = "imag",
        /// Complex conjugate.
        Conj = "conj",
    }
}

named_ops! {
    /// Operations on two values of one type.
    BinaryOp {
        /// Sum; `or` on bools, wrapping on integers.
        Add = "add",
        /// Difference.
        Sub = "sub",
        /// Product; `and` on bools.
        Mul = "mul",
        /// True division, floats only.
        Div = "div",
        /// Division rounded down; integer division by zero gives 0.
        FloorDiv = "floordiv",
        /// Remainder with the sign of the divisor; integer remainder by zero gives 0.
        Mod = "mod",
        /// Power; a negative integer exponent gives 0 unless the base is 1 or -1.
        Pow = "pow",
        /// Smaller value; NaN wins.
        Min = "min",
        /// Larger value; NaN wins.
        Max = "max",
        /// Angle of the point (second, first).
        Atan2 = "atan2",
        /// Length of the vector (first, second), without overflow on the way.
        Hypot = "hypot",
        /// The first with the sign of the second.
        Copysign = "copysign",
        /// The next number after the first, towards the second.
        Nextafter = "nextafter",
        /// Logical or bitwise and.
        And = "and",
        /// Logical or bitwise or.
        Or = "or",
        /// Logical or bitwise exclusive or.
        Xor = "xor",
        /// Bits moved up; by all bits or more, 0.
        Shl = "shl",
        /// Bits moved down with the sign kept; by all bits or more, only the sign is left.
        Shr = "shr",
        /// The complex number with these parts.
        Complex = "complex",
        /// Less than.
        Lt = "lt",
        /// At most.
        Le = "le",
        /// Greater than.
        Gt = "gt",
        /// At least.
        Ge = "ge",
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
    }
}

impl UnaryOp {
    /// The operation as programs write it, for messages.
    pub fn written(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            other => other.name(),
        }
    }

    /// The result type, or `None` if the operation does not take this type.
    pub fn result(self, input: DType) -> Option<DType> {
        use UnaryOp::*;
        match self {
            Neg => (input.is_integer() || input.has_float_arithmetic() || input.is_complex()).then_some(input),
            Abs | Sign => (input.is_integer() || input.has_float_arithmetic()).then_some(input),
            Not => (input == DType::Bool || input.is_integer()).then_some(input),
            IsNan | IsInf | IsFinite | Signbit => input.has_float_arithmetic().then_some(DType::Bool),
            Real | Imag => input.part(),
            Conj => input.is_complex().then_some(input),
            _ => input.has_float_arithmetic().then_some(input),
        }
    }
}

impl BinaryOp {
    /// The operation as programs write it, for messages.
    pub fn written(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            FloorDiv => "//",
            Mod => "%",
            Pow => "**",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            Eq => "==",
            Ne => "!=",
            other => other.name(),
        }
    }

    /// The result type for operands of one type, or `None` if the operation does not take it.
    pub fn result(self, input: DType) -> Option<DType> {
        use BinaryOp::*;
        let (bits, float) = (input == DType::Bool || input.is_integer(), input.has_float_arithmetic());
        match self {
            Lt | Le | Gt | Ge => (bits || float).then_some(DType::Bool),
            Eq | Ne => (bits || float || input.is_complex()).then_some(DType::Bool),
            Add | Mul => (bits || float || input.is_complex()).then_some(input),
            Min | Max => (bits || float).then_some(input),
            And | Or | Xor => bits.then_some(input),
            Div | Atan2 | Hypot | Copysign | Nextafter => float.then_some(input),
            Sub => (input.is_integer() || float || input.is_complex()).then_some(input),
            FloorDiv | Mod | Pow => (input.is_integer() || float).then_some(input),
            Shl | Shr => input.is_integer().then_some(input),
            Complex => input.with_parts(),
        }
    }

    /// True for comparisons.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Lt | Le | Gt | Ge | Eq | Ne)
    }
}

/// The distribution of a random operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomDistribution {
    /// Uniform on `[0, 1)`, f64.
    Uniform,
    /// Standard normal, f64.
    Normal,
    /// Uniform integer in `low..high`.
    Integer {
        /// Smallest value.
        low: i64,
        /// One past the largest value; larger than `low`.
        high: i64,
    },
}

/// One operation of scalar code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarOp {
    /// The k-th parameter.
    Param(u32),
    /// A constant.
    Const(Scalar),
    /// An operation on one value.
    Unary(UnaryOp, Slot),
    /// An operation on two values of one type.
    Binary(BinaryOp, Slot, Slot),
    /// `if first { second } else { third }`; both sides are computed.
    Select(Slot, Slot, Slot),
    /// Conversion, by the rules of [`Scalar::cast`].
    Cast(DType, Slot),
    /// A random number: a pure function of seed and counter.
    Random {
        /// The distribution.
        distribution: RandomDistribution,
        /// Seed of the stream.
        seed: u64,
        /// Position in the stream (i64).
        counter: Slot,
    },
}

impl ScalarOp {
    /// The slots it reads.
    pub fn inputs(&self) -> impl Iterator<Item = Slot> {
        let (a, b, c) = match *self {
            ScalarOp::Param(_) | ScalarOp::Const(_) => (None, None, None),
            ScalarOp::Unary(_, a) | ScalarOp::Cast(_, a) | ScalarOp::Random { counter: a, .. } => (Some(a), None, None),
            ScalarOp::Binary(_, a, b) => (Some(a), Some(b), None),
            ScalarOp::Select(a, b, c) => (Some(a), Some(b), Some(c)),
        };
        [a, b, c].into_iter().flatten()
    }

    /// The same operation on other slots.
    pub fn map(self, mut f: impl FnMut(Slot) -> Slot) -> ScalarOp {
        match self {
            ScalarOp::Param(_) | ScalarOp::Const(_) => self,
            ScalarOp::Unary(op, a) => ScalarOp::Unary(op, f(a)),
            ScalarOp::Cast(dtype, a) => ScalarOp::Cast(dtype, f(a)),
            ScalarOp::Random { distribution, seed, counter } => {
                ScalarOp::Random { distribution, seed, counter: f(counter) }
            }
            ScalarOp::Binary(op, a, b) => ScalarOp::Binary(op, f(a), f(b)),
            ScalarOp::Select(a, b, c) => ScalarOp::Select(f(a), f(b), f(c)),
        }
    }
}

/// A straight-line program from typed parameters to results. Clones share it until one of them is changed: statements are copied from level to level, and their
/// code hardly ever changes on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ScalarCode(Arc<Code>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Code {
    params: Vec<DType>,
    ops: Vec<ScalarOp>,
    types: Vec<DType>,
    results: Vec<Slot>,
}

impl ScalarCode {
    /// Code with the given parameters and nothing else yet.
    pub fn new(params: Vec<DType>) -> ScalarCode {
        ScalarCode(Arc::new(Code { params, ..Code::default() }))
    }

    /// Code that returns its parameters.
    pub fn identity(params: Vec<DType>) -> ScalarCode {
        let n = params.len() as u32;
        let mut code = ScalarCode::new(params);
        let slots: Vec<Slot> = (0..n).map(|k| code.param(k)).collect();
        code.set_results(slots);
        code
    }

    /// The slot that an operation amounts to without being added: the parts of a number that was made of parts are these.
    pub fn simplified(&self, op: &ScalarOp) -> Option<Slot> {
        let ScalarOp::Unary(part @ (UnaryOp::Real | UnaryOp::Imag), whole) = op else { return None };
        match self.0.ops.get(whole.0 as usize)? {
            ScalarOp::Binary(BinaryOp::Complex, re, im) => Some(if *part == UnaryOp::Real { *re } else { *im }),
            _ => None,
        }
    }

    /// Adds an operation, or finds an equal one, or what it amounts to. Types are checked.
    pub fn push(&mut self, op: ScalarOp) -> Result<Slot> {
        if let Some(slot) = self.simplified(&op) {
            return Ok(slot);
        }
        if let Some(k) = self.0.ops.iter().position(|existing| *existing == op) {
            return Ok(Slot(k as u32));
        }
        self.push_distinct(op)
    }

    /// Adds an operation without looking for an equal one: for callers that keep an index of long code themselves. Types are checked.
    pub fn push_distinct(&mut self, op: ScalarOp) -> Result<Slot> {
        let dtype = self.type_of(&op, self.0.ops.len())?;
        let code = Arc::make_mut(&mut self.0);
        code.ops.push(op);
        code.types.push(dtype);
        Ok(Slot(code.ops.len() as u32 - 1))
    }

    /// The type of the slot that an operation makes as the `k`-th of this code.
    fn type_of(&self, op: &ScalarOp, k: usize) -> Result<DType> {
        if let Some(bad) = op.inputs().find(|slot| slot.0 as usize >= k) {
            return Err(Error::internal(format!("scalar code reads slot {} before it is made", bad.0)));
        }
        match op {
            ScalarOp::Param(k) => self
                .0
                .params
                .get(*k as usize)
                .copied()
                .ok_or_else(|| Error::internal(format!("scalar code has no parameter {k}"))),
            ScalarOp::Const(value) => Ok(value.dtype()),
            ScalarOp::Unary(op, a) => {
                let input = self.dtype(*a);
                op.result(input).ok_or_else(|| Error::source(format!("`{op}` does not take {input}")))
            }
            ScalarOp::Binary(op, a, b) => {
                let (left, right) = (self.dtype(*a), self.dtype(*b));
                if left != right {
                    return Err(Error::source(format!("`{op}` of {left} and {right}")).help("cast one operand"));
                }
                op.result(left).ok_or_else(|| Error::source(format!("`{op}` does not take {left}")))
            }
            ScalarOp::Select(c, a, b) => match (self.dtype(*c), self.dtype(*a), self.dtype(*b)) {
                (DType::Bool, x, y) if x == y => Ok(x),
                (c, x, y) => Err(Error::source(format!(
                    "select of {c}, {x} and {y}; it takes a bool and two values of one type"
                ))),
            },
            ScalarOp::Cast(dtype, _) => Ok(*dtype),
            ScalarOp::Random { distribution, counter, .. } => match (self.dtype(*counter), distribution) {
                (DType::I64, RandomDistribution::Integer { low, high }) if low < high => Ok(DType::I64),
                (DType::I64, RandomDistribution::Integer { low, high }) => {
                    Err(Error::source(format!("random integers from the empty range {low}..{high}")))
                }
                (DType::I64, _) => Ok(DType::F64),
                (other, _) => Err(Error::source(format!("a random counter of type {other}; it must be i64"))),
            },
        }
    }

    /// The k-th parameter as a slot. The parameter must exist.
    pub fn param(&mut self, k: u32) -> Slot {
        assert!((k as usize) < self.0.params.len(), "scalar code has {} parameters, not {k}", self.0.params.len());
        self.push(ScalarOp::Param(k)).unwrap_or(Slot(0))
    }

    /// A constant as a slot.
    pub fn constant(&mut self, value: Scalar) -> Slot {
        // Constants have no inputs, so `push` cannot fail.
        self.push(ScalarOp::Const(value)).unwrap_or(Slot(0))
    }

    /// Adds a unary operation.
    pub fn unary(&mut self, op: UnaryOp, a: Slot) -> Result<Slot> {
        self.push(ScalarOp::Unary(op, a))
    }
    /// Adds a binary operation.
    pub fn binary(&mut self, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
        self.push(ScalarOp::Binary(op, a, b))
    }
    /// Adds a selection.
    pub fn select(&mut self, condition: Slot, yes: Slot, no: Slot) -> Result<Slot> {
        self.push(ScalarOp::Select(condition, yes, no))
    }
    /// Adds a conversion; none if the type is already right.
    pub fn cast(&mut self, dtype: DType, a: Slot) -> Slot {
        if self.dtype(a) == dtype { a } else { self.push(ScalarOp::Cast(dtype, a)).unwrap_or(a) }
    }

    /// Appends other code, with its parameters replaced by slots of this code; returns its results as slots here.
    pub fn inline(&mut self, other: &ScalarCode, args: &[Slot]) -> Result<Vec<Slot>> {
        let mut map: Vec<Slot> = Vec::with_capacity(other.0.ops.len());
        for op in &other.0.ops {
            let slot = match op {
                ScalarOp::Param(k) => args[*k as usize],
                op => self.push(op.map(|slot| map[slot.0 as usize]))?,
            };
            map.push(slot);
        }
        Ok(other.0.results.iter().map(|slot| map[slot.0 as usize]).collect())
    }

    /// Says which slots are returned.
    pub fn set_results(&mut self, results: Vec<Slot>) {
        Arc::make_mut(&mut self.0).results = results;
    }

    /// Removes operations that no result needs, keeping the order of the rest.
    pub fn without_dead_ops(&self) -> ScalarCode {
        let mut live = vec![false; self.0.ops.len()];
        for slot in &self.0.results {
            live[slot.0 as usize] = true;
        }
        for k in (0..self.0.ops.len()).rev() {
            if live[k] {
                self.0.ops[k].inputs().for_each(|slot| live[slot.0 as usize] = true);
            }
        }
        let mut code = Code { params: self.0.params.clone(), ..Code::default() };
        let mut map = vec![Slot(0); self.0.ops.len()];
        for k in (0..self.0.ops.len()).filter(|&k| live[k]) {
            map[k] = Slot(code.ops.len() as u32);
            code.ops.push(self.0.ops[k].map(|slot| map[slot.0 as usize]));
            code.types.push(self.0.types[k]);
        }
        code.results = self.0.results.iter().map(|slot| map[slot.0 as usize]).collect();
        ScalarCode(Arc::new(code))
    }

    /// Parameter types.
    pub fn params(&self) -> &[DType] {
        &self.0.params
    }
    /// The operations in order; slot k is made by operation k.
    pub fn ops(&self) -> &[ScalarOp] {
        &self.0.ops
    }
    /// The results.
    pub fn results(&self) -> &[Slot] {
        &self.0.results
    }
    /// The type of a slot.
    pub fn dtype(&self, slot: Slot) -> DType {
        self.0.types[slot.0 as usize]
    }
    /// The types of the results.
    pub fn result_types(&self) -> Vec<DType> {
        self.0.results.iter().map(|slot| self.dtype(*slot)).collect()
    }
    /// True if some operation reads the k-th parameter.
    pub fn uses_param(&self, k: u32) -> bool {
        self.0.ops.contains(&ScalarOp::Param(k))
    }

    /// Runs the code on one set of arguments. Slow; the meaning of the code.
    pub fn eval(&self, args: &[Scalar]) -> Vec<Scalar> {
        let mut slots = Vec::with_capacity(self.0.ops.len());
        self.eval_slots(args, &mut slots);
        self.0.results.iter().map(|slot| slots[slot.0 as usize]).collect()
    }

    /// Runs the code and leaves the value of every slot in `slots`, whose storage is reused from call to call.
    pub fn eval_slots(&self, args: &[Scalar], slots: &mut Vec<Scalar>) {
        slots.clear();
        for op in &self.0.ops {
            let at = |slot: Slot| slots[slot.0 as usize];
            let value = match *op {
                ScalarOp::Param(k) => args[k as usize],
                ScalarOp::Const(value) => value,
                ScalarOp::Unary(op, a) => eval_unary(op, at(a)),
                ScalarOp::Binary(op, a, b) => eval_binary(op, at(a), at(b)),
                ScalarOp::Select(c, a, b) => {
                    if at(c).is_true() {
                        at(a)
                    } else {
                        at(b)
                    }
                }
                ScalarOp::Cast(dtype, a) => at(a).cast(dtype),
                ScalarOp::Random { distribution, seed, counter } => {
                    eval_random(distribution, seed, at(counter).as_i64())
                }
            };
            slots.push(value);
        }
    }

    /// Checks that every slot is made before it is read and that types agree.
    pub fn verify(&self) -> Result<()> {
        // An operation reads slots before its own, whose types have been checked by then.
        for (k, op) in self.0.ops.iter().enumerate() {
            if self.0.types.get(k) != Some(&self.type_of(op, k)?) {
                return Err(Error::internal(format!("slot {k} of scalar code has the wrong type")));
            }
        }
        match self.0.results.iter().find(|slot| slot.0 as usize >= self.0.ops.len()) {
            Some(slot) => Err(Error::internal(format!("scalar code returns slot {}, which is never made", slot.0))),
            None => Ok(()),
        }
    }
}
