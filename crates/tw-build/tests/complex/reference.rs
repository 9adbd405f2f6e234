//! Complex functions in arbitrary precision, and distances from them in units in the last place.
//!
//! References are plain formulas where they are exact enough, with so many bits that what cancels does not matter.

use astro_float_num::{BigFloat, Consts, RoundingMode, Sign};
use tw_build::{Typed, emit_binary, emit_unary};
use tw_ir::{BinaryOp, DType, Scalar, ScalarCode, UnaryOp};

const NEAREST: RoundingMode = RoundingMode::ToEven;
/// Bits where nothing cancels.
const BITS: usize = 160;

pub(crate) type Number = (f64, f64);
type Exact = (BigFloat, BigFloat);

/// A function, and how far results may be off: each part in its own units, and both in units of the larger one.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// The code for c128 and c64.
    codes: [ScalarCode; 2],
    exact: fn(Number, Number, &mut Field) -> Exact,
    pub(crate) two_arguments: bool,
    /// Infinite where no bound is promised.
    pub(crate) part_limit: f64,
    limit: f64,
}

impl Function {
    pub(crate) fn double(&self, a: Number, b: Number) -> Number {
        self.eval(0, DType::C128, a, b)
    }
    /// For arguments that are singles.
    pub(crate) fn single(&self, a: Number, b: Number) -> Number {
        self.eval(1, DType::C64, a, b)
    }
    fn eval(&self, code: usize, dtype: DType, a: Number, b: Number) -> Number {
        let scalar = |z: Number| Scalar::C128(num(z)).cast(dtype);
        let args = [scalar(a), scalar(b)];
        let found = self.codes[code].eval(if self.two_arguments { &args } else { &args[..1] })[0].as_c128();
        (found.re, found.im)
    }
    /// How far results may be off in units of the larger part. The exponent of a power has a rounding error, which grows with it.
    pub(crate) fn limit(&self, a: Number, b: Number) -> f64 {
        let log = || a.0.hypot(a.1).ln().hypot(a.1.atan2(a.0));
        self.limit + if self.name == "pow" { 3.0 * b.0.hypot(b.1) * log() } else { 0.0 }
    }
    /// Distances of a result: the worse part in its own units, and in units of the larger part.
    pub(crate) fn distances(
        &self,
        a: Number,
        b: Number,
        got: Number,
        precision: Precision,
        field: &mut Field,
    ) -> [f64; 2] {
        let exact = (self.exact)(a, b, field);
        let exponent = |part: &BigFloat| if part.is_zero() { i32::MIN } else { part.exponent().unwrap_or(i32::MAX) };
        let (re, im) = (exponent(&exact.0), exponent(&exact.1));
        let worse =
            |re: i32, im: i32| distance(&exact.0, got.0, re, precision).max(distance(&exact.1, got.1, im, precision));
        [worse(re, im), worse(re.max(im), re.max(im))]
    }
}

fn num((re, im): Number) -> tw_ir::dtype::C128 {
    tw_ir::dtype::C128::new(re, im)
}

fn unary(op: UnaryOp, part_limit: f64, limit: f64, exact: fn(Number, Number, &mut Field) -> Exact) -> Function {
    let code = |dtype| {
        let mut code = ScalarCode::new(vec![dtype]);
        let a = code.param(0);
        let result = emit_unary(&mut code, op, a).unwrap();
        code.set_results(vec![result]);
        code
    };
    let codes = [code(DType::C128), code(DType::C64)];
    Function { name: op.name(), codes, exact, two_arguments: false, part_limit, limit }
}

fn binary(op: BinaryOp, part_limit: f64, limit: f64, exact: fn(Number, Number, &mut Field) -> Exact) -> Function {
    let code = |dtype| {
        let mut code = ScalarCode::new(vec![dtype, dtype]);
        let [a, b] = [0, 1].map(|k| Typed::element(code.param(k)));
        let result = emit_binary(&mut code, op, a, b).unwrap();
        code.set_results(vec![result]);
        code
    };
    let codes = [code(DType::C128), code(DType::C64)];
    Function { name: op.name(), codes, exact, two_arguments: true, part_limit, limit }
}

/// Every function.
pub(crate) fn all() -> Vec<Function> {
    const ANY: f64 = f64::INFINITY;
    vec![
        unary(UnaryOp::Exp, 4.0, 4.0, |z, _, f| f.exp(z)),
        unary(UnaryOp::Expm1, ANY, 4.0, |z, _, f| f.expm1(z)),
        unary(UnaryOp::Log, 4.0, 4.0, |z, _, f| f.log(&pair(z))),
        unary(UnaryOp::Log1p, 4.0, 4.0, |z, _, f| f.log(&(plus(&big(z.0), &big(1.0)), big(z.1)))),
        unary(UnaryOp::Log2, 4.0, 4.0, |z, _, f| f.log_to(2.0, z)),
        unary(UnaryOp::Log10, 4.0, 4.0, |z, _, f| f.log_to(10.0, z)),
        unary(UnaryOp::Sqrt, 4.0, 4.0, |z, _, f| f.sqrt(&pair(z))),
        unary(UnaryOp::Sinh, 4.0, 4.0, |z, _, f| f.sinh(z)),
        unary(UnaryOp::Cosh, 4.0, 4.0, |z, _, f| f.cosh(z)),
        unary(UnaryOp::Tanh, 6.0, 6.0, |z, _, f| f.tanh(z)),
        unary(UnaryOp::Sin, 4.0, 4.0, |z, _, f| turned_back(f.sinh(turned(z)))),
        unary(UnaryOp::Cos, 4.0, 4.0, |z, _, f| f.cosh(turned(z))),
        unary(UnaryOp::Tan, 6.0, 6.0, |z, _, f| turned_back(f.tanh(turned(z)))),
        unary(UnaryOp::Asin, 6.0, 6.0, |z, _, f| turned_back(f.asinh(turned(z)))),
        unary(UnaryOp::Acos, 6.0, 6.0, |z, _, f| f.acos(z)),
        unary(UnaryOp::Atan, 6.0, 6.0, |z, _, f| turned_back(f.atanh(turned(z)))),
        unary(UnaryOp::Asinh, 6.0, 6.0, |z, _, f| f.asinh(z)),
        unary(UnaryOp::Acosh, 6.0, 6.0, |z, _, f| {
            let (re, im) = f.acos(z);
            (im.abs(), signed(re, z.1))
        }),
        unary(UnaryOp::Atanh, 6.0, 6.0, |z, _, f| f.atanh(z)),
        unary(UnaryOp::Sign, 4.0, 4.0, |z, _, f| f.sign(z)),
        binary(BinaryOp::Div, ANY, 4.0, |a, b, f| f.quotient(a, b)),
        binary(BinaryOp::Pow, ANY, 4.0, |a, b, f| f.power(a, b)),
    ]
}

/// The widths of a float type that distances depend on.
#[derive(Clone, Copy)]
pub(crate) struct Precision {
    fraction: i32,
    smallest: i32,
    overflow: i32,
}
pub(crate) const DOUBLE: Precision = Precision { fraction: 52, smallest: -1022, overflow: 1024 };
pub(crate) const SINGLE: Precision = Precision { fraction: 23, smallest: -126, overflow: 128 };

/// Distance of a part from its true value, in units in the last place of numbers with an exponent. An infinity counts as the first number that is too
/// large.
fn distance(exact: &BigFloat, got: f64, exponent: i32, precision: Precision) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return f64::INFINITY;
    }
    let is_over = !exact.is_zero() && exact.exponent().is_none_or(|exponent| exponent > precision.overflow);
    if is_over && got.is_infinite() && exact.is_negative() == (got < 0.0) {
        return 0.0;
    }
    let limit = if is_over { i32::MAX } else { exponent };
    let got = if got.is_infinite() { power_of_two(precision.overflow, got < 0.0) } else { big(got) };
    let difference = exact.sub(&got, BITS, NEAREST);
    match difference.as_raw_parts() {
        Some((words, _, _, difference_exponent, _)) if !difference.is_zero() => {
            let leading = words.last().map_or(0.0, |&word| word as f64) / 2f64.powi(64);
            let unit = limit.saturating_sub(1).clamp(precision.smallest, precision.overflow - 1) - precision.fraction;
            leading * 2f64.powi(difference_exponent.saturating_sub(unit).clamp(-1000, 1000))
        }
        _ => 0.0,
    }
}

fn power_of_two(exponent: i32, negative: bool) -> BigFloat {
    let mut value = big(if negative { -1.0 } else { 1.0 });
    value.set_exponent(exponent + 1);
    value
}

fn big(x: f64) -> BigFloat {
    // Subnormal numbers come out wrong, so numbers are brought in after a shift.
    let shift = if x.abs() < 1.0 { 200 } else { 0 };
    let mut value = BigFloat::from_f64(x * 2f64.powi(shift), 64);
    if let Some(exponent) = value.exponent().filter(|_| !value.is_zero()) {
        value.set_exponent(exponent - shift);
    }
    value
}

fn pair(z: Number) -> Exact {
    (big(z.0), big(z.1))
}
fn turned(z: Number) -> Number {
    (-z.1, z.0)
}
fn turned_back(z: Exact) -> Exact {
    (z.1, z.0.neg())
}
fn signed(mut x: BigFloat, by: f64) -> BigFloat {
    x.set_sign(if by.is_sign_negative() { Sign::Neg } else { Sign::Pos });
    x
}
fn half(mut x: BigFloat) -> BigFloat {
    if let Some(exponent) = x.exponent().filter(|_| !x.is_zero()) {
        x.set_exponent(exponent - 1);
    }
    x
}
fn square(x: &BigFloat) -> BigFloat {
    x.mul_full_prec(x)
}
/// The exact sum. The sum of the library is wrong if one of the two is a zero that a difference left.
fn plus(a: &BigFloat, b: &BigFloat) -> BigFloat {
    match (a.is_zero(), b.is_zero()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => a.add_full_prec(b),
    }
}
fn norm(z: &Exact) -> BigFloat {
    plus(&square(&z.0), &square(&z.1))
}
/// Beyond this exponentials overflow, and would take for ever.
fn tamed(x: f64) -> BigFloat {
    big(x.clamp(-1e4, 1e4))
}
/// Bits enough for sums of one and products of the parts.
fn bits_for(z: Number) -> usize {
    let reach = |x: f64| if x == 0.0 { 0 } else { big(x).exponent().unwrap_or(0).unsigned_abs() as usize };
    (256 + 2 * (reach(z.0) + reach(z.1))).div_ceil(64) * 64
}

/// Constants that functions share.
pub(crate) struct Field(Consts);

impl Field {
    pub(crate) fn new() -> Field {
        Field(Consts::new().unwrap())
    }
    fn exp(&mut self, z: Number) -> Exact {
        let (size, y, c) = (tamed(z.0).exp(BITS, NEAREST, &mut self.0), big(z.1), &mut self.0);
        let (cos, sin) = (y.cos(BITS, NEAREST, c), y.sin(BITS, NEAREST, c));
        (size.mul(&cos, BITS, NEAREST), size.mul(&sin, BITS, NEAREST))
    }
    fn expm1(&mut self, z: Number) -> Exact {
        let (_, im) = self.exp(z);
        let bits = bits_for((z.0.min(1.0), z.1.min(1.0)));
        let size = tamed(z.0).exp(bits, NEAREST, &mut self.0);
        let cos = big(z.1).cos(bits, NEAREST, &mut self.0);
        (size.mul(&cos, bits, NEAREST).sub(&big(1.0), bits, NEAREST), im)
    }
    fn angle(&mut self, y: &BigFloat, x: &BigFloat, bits: usize) -> BigFloat {
        if x.is_zero() {
            let mut quarter = half(self.0.pi(bits, NEAREST));
            quarter.set_sign(y.sign().unwrap_or(Sign::Pos));
            return quarter;
        }
        let angle = y.div(x, bits, NEAREST).atan(bits, NEAREST, &mut self.0);
        if x.is_positive() {
            return angle;
        }
        let mut half_turn = self.0.pi(bits, NEAREST);
        half_turn.set_sign(y.sign().unwrap_or(Sign::Pos));
        angle.add(&half_turn, bits, NEAREST)
    }
    fn log(&mut self, z: &Exact) -> Exact {
        (half(norm(z).ln(BITS, NEAREST, &mut self.0)), self.angle(&z.1, &z.0, BITS))
    }
    fn log_to(&mut self, base: f64, z: Number) -> Exact {
        let (re, im) = self.log(&pair(z));
        let by = big(base).ln(BITS, NEAREST, &mut self.0);
        (re.div(&by, BITS, NEAREST), im.div(&by, BITS, NEAREST))
    }
    fn sqrt(&mut self, z: &Exact) -> Exact {
        self.root(z, BITS)
    }
    fn root(&mut self, z: &Exact, bits: usize) -> Exact {
        let magnitude = norm(z).sqrt(bits, NEAREST);
        if magnitude.is_zero() {
            return (magnitude.clone(), magnitude);
        }
        let root = half(magnitude.add(&z.0.abs(), bits, NEAREST)).sqrt(bits, NEAREST);
        let mut other = half(z.1.div(&root, bits, NEAREST));
        if z.0.is_positive() || z.0.is_zero() {
            return (root, other);
        }
        let mut root = root;
        root.set_sign(z.1.sign().unwrap_or(Sign::Pos));
        other.set_sign(Sign::Pos);
        (other, root)
    }
    /// Hyperbolic sine and cosine of the first part, sine and cosine of the second.
    fn waves(&mut self, z: Number) -> [BigFloat; 4] {
        let (x, y, c) = (tamed(z.0), big(z.1), &mut self.0);
        [x.sinh(BITS, NEAREST, c), x.cosh(BITS, NEAREST, c), y.sin(BITS, NEAREST, c), y.cos(BITS, NEAREST, c)]
    }
    fn sinh(&mut self, z: Number) -> Exact {
        let [sinh, cosh, sin, cos] = self.waves(z);
        (sinh.mul(&cos, BITS, NEAREST), cosh.mul(&sin, BITS, NEAREST))
    }
    fn cosh(&mut self, z: Number) -> Exact {
        let [sinh, cosh, sin, cos] = self.waves(z);
        (cosh.mul(&cos, BITS, NEAREST), sinh.mul(&sin, BITS, NEAREST))
    }
    fn tanh(&mut self, z: Number) -> Exact {
        let [sinh, cosh, sin, cos] = self.waves(z);
        let below = square(&sinh).add(&square(&cos), BITS, NEAREST);
        let over = |a: &BigFloat, b: &BigFloat| a.mul(b, BITS, NEAREST).div(&below, BITS, NEAREST);
        (over(&sinh, &cosh), over(&sin, &cos))
    }
    /// `log(z + sqrt(z^2 + 1))` of the number with a positive real part.
    fn asinh(&mut self, z: Number) -> Exact {
        if z.0.is_sign_negative() {
            let (re, im) = self.asinh((-z.0, -z.1));
            return (re.neg(), im.neg());
        }
        let (bits, (x, y)) = (bits_for(z), pair(z));
        let re = plus(&plus(&square(&x), &square(&y).neg()), &big(1.0));
        let im = x.mul_full_prec(&y).mul_full_prec(&big(2.0));
        let root = self.root(&(re, im), bits);
        let sum = (x.add(&root.0, bits, NEAREST), y.add(&root.1, bits, NEAREST));
        let norm = square(&sum.0).add(&square(&sum.1), bits, NEAREST);
        (half(norm.ln(bits, NEAREST, &mut self.0)), self.angle(&sum.1, &sum.0, bits))
    }
    fn acos(&mut self, z: Number) -> Exact {
        let (bits, asin) = (bits_for(z), turned_back(self.asinh(turned(z))));
        (half(self.0.pi(bits, NEAREST)).sub(&asin.0, bits, NEAREST), asin.1.neg())
    }
    fn atanh(&mut self, z: Number) -> Exact {
        let (bits, (x, y)) = (bits_for(z), pair(z));
        let one = big(1.0);
        let above = norm(&(plus(&one, &x), y.clone()));
        let below = norm(&(plus(&one, &x.neg()), y.clone()));
        let re = half(half(above.div(&below, bits, NEAREST).ln(bits, NEAREST, &mut self.0)));
        let across = plus(&one, &norm(&(x, y.clone())).neg());
        (re, half(self.angle(&y.mul_full_prec(&big(2.0)), &across, bits)))
    }
    fn sign(&mut self, z: Number) -> Exact {
        let (x, y) = pair(z);
        let magnitude = norm(&pair(z)).sqrt(BITS, NEAREST);
        (x.div(&magnitude, BITS, NEAREST), y.div(&magnitude, BITS, NEAREST))
    }
    fn quotient(&mut self, a: Number, b: Number) -> Exact {
        let ((p, q), (x, y)) = (pair(a), pair(b));
        let below = norm(&pair(b));
        let re = plus(&p.mul_full_prec(&x), &q.mul_full_prec(&y));
        let im = plus(&q.mul_full_prec(&x), &p.mul_full_prec(&y).neg());
        (re.div(&below, BITS, NEAREST), im.div(&below, BITS, NEAREST))
    }
    fn power(&mut self, a: Number, b: Number) -> Exact {
        const MORE: usize = 2 * BITS;
        let log = (half(norm(&pair(a)).ln(MORE, NEAREST, &mut self.0)), self.angle(&big(a.1), &big(a.0), MORE));
        let (x, y) = pair(b);
        let product = |u: &BigFloat, v: &BigFloat| u.mul(v, MORE, NEAREST);
        let re = product(&x, &log.0).sub(&product(&y, &log.1), MORE, NEAREST);
        let im = product(&x, &log.1).add(&product(&y, &log.0), MORE, NEAREST);
        let size = re.clamp(&big(-1e4), &big(1e4)).exp(BITS, NEAREST, &mut self.0);
        let (cos, sin) = (im.cos(BITS, NEAREST, &mut self.0), im.sin(BITS, NEAREST, &mut self.0));
        (size.mul(&cos, BITS, NEAREST), size.mul(&sin, BITS, NEAREST))
    }
}
