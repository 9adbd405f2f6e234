//! Complex numbers beyond sum, difference and product: real code over their parts.
//!
//! The formulas are those that avoid overflow and cancellation where real arithmetic would: division by Smith's rule as in NumPy, the root by
//! halving the sum of magnitude and real part, the hyperbolic tangent after Kahan.

use tw_ir::{BinaryOp, DType, Error, Result, Scalar, Slot, UnaryOp};

use super::promote::{CodeSink, refused};

/// Code over real numbers of one type.
struct Parts<'a, C> {
    code: &'a mut C,
    dtype: DType,
}

/// A complex number in two slots.
#[derive(Clone, Copy)]
struct Pair {
    re: Slot,
    im: Slot,
}

impl<C: CodeSink> Parts<'_, C> {
    fn number(&mut self, value: f64) -> Result<Slot> {
        self.code.constant(Scalar::F64(value).cast(self.dtype))
    }
    fn un(&mut self, op: UnaryOp, a: Slot) -> Result<Slot> {
        self.code.unary(op, a)
    }
    fn op(&mut self, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
        self.code.binary(op, a, b)
    }
    fn mul(&mut self, a: Slot, b: Slot) -> Result<Slot> {
        self.op(BinaryOp::Mul, a, b)
    }
    fn add(&mut self, a: Slot, b: Slot) -> Result<Slot> {
        self.op(BinaryOp::Add, a, b)
    }
    fn sub(&mut self, a: Slot, b: Slot) -> Result<Slot> {
        self.op(BinaryOp::Sub, a, b)
    }
    fn div(&mut self, a: Slot, b: Slot) -> Result<Slot> {
        self.op(BinaryOp::Div, a, b)
    }
    fn select(&mut self, condition: Slot, yes: Slot, no: Slot) -> Result<Slot> {
        self.code.select(condition, yes, no)
    }
    fn choose(&mut self, condition: Slot, yes: Pair, no: Pair) -> Result<Pair> {
        Ok(Pair { re: self.select(condition, yes.re, no.re)?, im: self.select(condition, yes.im, no.im)? })
    }
    fn is_zero(&mut self, a: Slot) -> Result<Slot> {
        let zero = self.number(0.0)?;
        self.op(BinaryOp::Eq, a, zero)
    }
    fn split(&mut self, a: Slot) -> Result<Pair> {
        Ok(Pair { re: self.un(UnaryOp::Real, a)?, im: self.un(UnaryOp::Imag, a)? })
    }
    fn join(&mut self, z: Pair) -> Result<Slot> {
        self.op(BinaryOp::Complex, z.re, z.im)
    }
    fn scaled(&mut self, z: Pair, factor: Slot) -> Result<Pair> {
        Ok(Pair { re: self.mul(z.re, factor)?, im: self.mul(z.im, factor)? })
    }
    fn magnitude(&mut self, z: Pair) -> Result<Slot> {
        self.op(BinaryOp::Hypot, z.re, z.im)
    }

    fn exp(&mut self, z: Pair) -> Result<Pair> {
        let (size, cos, sin) =
            (self.un(UnaryOp::Exp, z.re)?, self.un(UnaryOp::Cos, z.im)?, self.un(UnaryOp::Sin, z.im)?);
        let (re, im) = (self.mul(size, cos)?, self.mul(size, sin)?);
        // A real number stays real, however large its exponential.
        let real = self.is_zero(z.im)?;
        self.choose(real, Pair { re: size, im: z.im }, Pair { re, im })
    }

    fn log(&mut self, z: Pair) -> Result<Pair> {
        let magnitude = self.magnitude(z)?;
        Ok(Pair { re: self.un(UnaryOp::Log, magnitude)?, im: self.op(BinaryOp::Atan2, z.im, z.re)? })
    }

    fn sqrt(&mut self, z: Pair) -> Result<Pair> {
        // A quarter of the largest numbers, so that their sum is finite; the root is then half.
        let (re_size, im_size) = (self.un(UnaryOp::Abs, z.re)?, self.un(UnaryOp::Abs, z.im)?);
        let size = self.op(BinaryOp::Max, re_size, im_size)?;
        let limit = self.number(if self.dtype == DType::F32 { f32::MAX as f64 / 4.0 } else { f64::MAX / 4.0 })?;
        let large = self.op(BinaryOp::Gt, size, limit)?;
        let (one, two, quarter) = (self.number(1.0)?, self.number(2.0)?, self.number(0.25)?);
        let factor = self.select(large, quarter, one)?;
        let w = self.scaled(z, factor)?;
        let (magnitude, re_size) = (self.magnitude(w)?, self.un(UnaryOp::Abs, w.re)?);
        let sum = self.add(magnitude, re_size)?;
        let half = self.div(sum, two)?;
        let root = self.un(UnaryOp::Sqrt, half)?;
        let twice = self.add(root, root)?;
        let other = self.div(w.im, twice)?;
        let zero = self.number(0.0)?;
        let right = self.op(BinaryOp::Ge, w.re, zero)?;
        let other_size = self.un(UnaryOp::Abs, other)?;
        let signed = self.op(BinaryOp::Copysign, root, w.im)?;
        let found = self.choose(right, Pair { re: root, im: other }, Pair { re: other_size, im: signed })?;
        let back = self.select(large, two, one)?;
        let found = self.scaled(found, back)?;
        let origin = self.is_zero(size)?;
        self.choose(origin, Pair { re: zero, im: z.im }, found)
    }

    /// `(sinh x cos y, cosh x sin y)`.
    fn sinh(&mut self, z: Pair) -> Result<Pair> {
        let (sinh, cosh) = (self.un(UnaryOp::Sinh, z.re)?, self.un(UnaryOp::Cosh, z.re)?);
        let (sin, cos) = (self.un(UnaryOp::Sin, z.im)?, self.un(UnaryOp::Cos, z.im)?);
        Ok(Pair { re: self.mul(sinh, cos)?, im: self.mul(cosh, sin)? })
    }

    /// `(cosh x cos y, sinh x sin y)`.
    fn cosh(&mut self, z: Pair) -> Result<Pair> {
        let (sinh, cosh) = (self.un(UnaryOp::Sinh, z.re)?, self.un(UnaryOp::Cosh, z.re)?);
        let (sin, cos) = (self.un(UnaryOp::Sin, z.im)?, self.un(UnaryOp::Cos, z.im)?);
        Ok(Pair { re: self.mul(cosh, cos)?, im: self.mul(sinh, sin)? })
    }

    fn tanh(&mut self, z: Pair) -> Result<Pair> {
        let (tan, sinh) = (self.un(UnaryOp::Tan, z.im)?, self.un(UnaryOp::Sinh, z.re)?);
        let (one, squared) = (self.number(1.0)?, self.mul(sinh, sinh)?);
        let tan_squared = self.mul(tan, tan)?;
        let beta = self.add(one, tan_squared)?;
        let above = self.add(one, squared)?;
        let rho = self.un(UnaryOp::Sqrt, above)?;
        let stretched = self.mul(beta, squared)?;
        let below = self.add(one, stretched)?;
        let product = self.mul(beta, rho)?;
        let product = self.mul(product, sinh)?;
        let near = Pair { re: self.div(product, below)?, im: self.div(tan, below)? };
        // Far out the tangent is 1 up to rounding, and its square would overflow.
        let (size, limit) =
            (self.un(UnaryOp::Abs, z.re)?, self.number(if self.dtype == DType::F32 { 10.0 } else { 20.0 })?);
        let far = self.op(BinaryOp::Gt, size, limit)?;
        let (sin, cos, decay) = (self.un(UnaryOp::Sin, z.im)?, self.un(UnaryOp::Cos, z.im)?, self.number(-2.0)?);
        let exponent = self.mul(decay, size)?;
        let shrunk = self.un(UnaryOp::Exp, exponent)?;
        let four = self.number(4.0)?;
        let wave = self.mul(sin, cos)?;
        let wave = self.mul(four, wave)?;
        let limit = Pair { re: self.op(BinaryOp::Copysign, one, z.re)?, im: self.mul(wave, shrunk)? };
        self.choose(far, limit, near)
    }

    /// `i z`, and `-i z` for the way back: circular functions are hyperbolic ones of turned numbers.
    fn turned(&mut self, z: Pair) -> Result<Pair> {
        Ok(Pair { re: self.un(UnaryOp::Neg, z.im)?, im: z.re })
    }
    fn turned_back(&mut self, z: Pair) -> Result<Pair> {
        Ok(Pair { re: z.im, im: self.un(UnaryOp::Neg, z.re)? })
    }

    /// Smith's rule: the larger part of the divisor divides the smaller one first.
    fn quotient(&mut self, a: Pair, b: Pair) -> Result<Pair> {
        let (re_size, im_size) = (self.un(UnaryOp::Abs, b.re)?, self.un(UnaryOp::Abs, b.im)?);
        let one = self.number(1.0)?;
        let real_larger = self.op(BinaryOp::Ge, re_size, im_size)?;
        let large = self.select(real_larger, b.re, b.im)?;
        let small = self.select(real_larger, b.im, b.re)?;
        let ratio = self.div(small, large)?;
        let rest = self.mul(small, ratio)?;
        let total = self.add(large, rest)?;
        let scale = self.div(one, total)?;
        let (x, y) = (self.select(real_larger, a.re, a.im)?, self.select(real_larger, a.im, a.re)?);
        // Where the imaginary part is larger both numbers were turned, and the second component changes its sign.
        let (y_ratio, x_ratio) = (self.mul(y, ratio)?, self.mul(x, ratio)?);
        let first = self.add(x, y_ratio)?;
        let second = self.sub(y, x_ratio)?;
        let opposite = self.sub(x_ratio, y)?;
        let second = self.select(real_larger, second, opposite)?;
        let usual = self.scaled(Pair { re: first, im: second }, scale)?;
        let size = self.op(BinaryOp::Max, re_size, im_size)?;
        let by_zero = self.is_zero(size)?;
        let infinite = Pair { re: self.div(a.re, re_size)?, im: self.div(a.im, re_size)? };
        self.choose(by_zero, infinite, usual)
    }

    /// `exp(b log a)`; anything to the power 0 is 1, and 0 to a positive power 0.
    fn power(&mut self, a: Pair, b: Pair) -> Result<Pair> {
        let log = self.log(a)?;
        let (first, second) = (self.mul(b.re, log.re)?, self.mul(b.im, log.im)?);
        let (third, fourth) = (self.mul(b.re, log.im)?, self.mul(b.im, log.re)?);
        let exponent = Pair { re: self.sub(first, second)?, im: self.add(third, fourth)? };
        let general = self.exp(exponent)?;
        let (zero, one, nan) = (self.number(0.0)?, self.number(1.0)?, self.number(f64::NAN)?);
        let (base_size, exponent_size) = (self.magnitude(a)?, self.magnitude(b)?);
        let (origin, trivial) = (self.is_zero(base_size)?, self.is_zero(exponent_size)?);
        let positive = self.op(BinaryOp::Gt, b.re, zero)?;
        let at_origin = self.choose(positive, Pair { re: zero, im: zero }, Pair { re: nan, im: nan })?;
        let found = self.choose(origin, at_origin, general)?;
        self.choose(trivial, Pair { re: one, im: zero }, found)
    }
}

/// Appends a unary operation on a complex number.
pub(super) fn unary(code: &mut impl CodeSink, op: UnaryOp, a: Slot) -> Result<Slot> {
    use UnaryOp::*;
    let whole = code.dtype(a);
    let dtype = whole.part().ok_or_else(|| Error::internal(format!("{whole} has no parts")))?;
    if matches!(op, Neg | Conj | Real | Imag) {
        return code.unary(op, a);
    }
    let mut parts = Parts { code, dtype };
    let z = parts.split(a)?;
    let result = match op {
        Abs => return parts.magnitude(z),
        IsNan | IsInf | IsFinite => {
            let (re, im) = (parts.un(op, z.re)?, parts.un(op, z.im)?);
            return parts.op(if op == IsFinite { BinaryOp::And } else { BinaryOp::Or }, re, im);
        }
        Sign => {
            let magnitude = parts.magnitude(z)?;
            let unit = Pair { re: parts.div(z.re, magnitude)?, im: parts.div(z.im, magnitude)? };
            let origin = parts.is_zero(magnitude)?;
            parts.choose(origin, z, unit)?
        }
        Exp => parts.exp(z)?,
        Log => parts.log(z)?,
        Log2 | Log10 => {
            let log = parts.log(z)?;
            let factor = if op == Log2 { std::f64::consts::LOG2_E } else { std::f64::consts::LOG10_E };
            let factor = parts.number(factor)?;
            parts.scaled(log, factor)?
        }
        Sqrt => parts.sqrt(z)?,
        Sinh => parts.sinh(z)?,
        Cosh => parts.cosh(z)?,
        Tanh => parts.tanh(z)?,
        Sin | Tan => {
            let turned = parts.turned(z)?;
            let found = if op == Sin { parts.sinh(turned)? } else { parts.tanh(turned)? };
            parts.turned_back(found)?
        }
        Cos => {
            let turned = parts.turned(z)?;
            parts.cosh(turned)?
        }
        _ => return Err(refused(op, whole)),
    };
    parts.join(result)
}

/// Appends a binary operation on two complex numbers of one type.
pub(super) fn binary(code: &mut impl CodeSink, op: BinaryOp, a: Slot, b: Slot) -> Result<Slot> {
    use BinaryOp::*;
    let whole = code.dtype(a);
    let dtype = whole.part().ok_or_else(|| Error::internal(format!("{whole} has no parts")))?;
    let exponent = code.constant_at(b).map(Scalar::as_c128);
    match op {
        Add | Sub | Mul | Eq | Ne => return code.binary(op, a, b),
        Div | Pow => {}
        Lt | Le | Gt | Ge | Min | Max => {
            return Err(
                refused(op, whole).help("complex numbers have no order; compare their real parts or magnitudes")
            );
        }
        _ => return Err(refused(op, whole)),
    }
    let mut parts = Parts { code, dtype };
    let (x, y) = (parts.split(a)?, parts.split(b)?);
    if op == Div {
        let quotient = parts.quotient(x, y)?;
        return parts.join(quotient);
    }
    // Small whole powers are products, exact where products are.
    if let Some(n) = exponent.filter(|n| n.im == 0.0 && n.re.fract() == 0.0 && (1.0..=64.0).contains(&n.re)) {
        return whole_power(code, a, n.re as u32);
    }
    let power = parts.power(x, y)?;
    parts.join(power)
}

fn whole_power(code: &mut impl CodeSink, base: Slot, n: u32) -> Result<Slot> {
    let (mut result, mut square, mut rest) = (None, base, n);
    loop {
        if rest & 1 == 1 {
            result = Some(match result {
                None => square,
                Some(before) => code.binary(BinaryOp::Mul, before, square)?,
            });
        }
        rest >>= 1;
        if rest == 0 {
            return result.ok_or_else(|| Error::internal("a power of nothing"));
        }
        square = code.binary(BinaryOp::Mul, square, square)?;
    }
}
