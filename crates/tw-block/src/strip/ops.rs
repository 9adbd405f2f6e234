//! The loops: one per operation, type and shape of operands.

use std::ops::{Add, Mul, Neg, Sub};

use tw_ir::dtype::{CastFrom, Complex};
use tw_ir::scalar::elementary::Elementary;
use tw_ir::scalar::math::{self, Integer};
use tw_ir::{BinaryOp, RandomDistribution, UnaryOp, random};

use super::Values;
use crate::wide::wide;

/// Elements written together where an operand is the same for all of them.
const SPREAD: usize = 128;

/// Applies a function to each element; where they are all the same, to one of them, and copies the result. So there is one loop to compile,
/// which for long functions decides how long that takes.
#[inline(always)]
pub(crate) fn map<T: Copy, R: Copy>(a: Values<'_, T>, out: &mut [R], f: impl Fn(T) -> R) {
    out.iter_mut().zip(a.distinct()).for_each(|(out, &x)| *out = f(x));
    fill_with_first(&a, out);
}

/// Applies a function to each pair of elements. Here too one loop serves all: an operand that is the same for all elements is spread first.
#[inline(always)]
pub(crate) fn map2<T: Copy, U: Copy, R: Copy>(
    a: Values<'_, T>,
    b: Values<'_, U>,
    out: &mut [R],
    f: impl Fn(T, U) -> R,
) {
    let (spread_a, spread_b) = (a.as_same().map(|x| [x; SPREAD]), b.as_same().map(|y| [y; SPREAD]));
    let part = if spread_a.is_some() || spread_b.is_some() { SPREAD } else { out.len().max(1) };
    for (k, out) in out.chunks_mut(part).enumerate() {
        let range = k * part..k * part + out.len();
        let xs = a.slice(range.clone(), spread_a.as_ref());
        let ys = b.slice(range, spread_b.as_ref());
        out.iter_mut().zip(xs).zip(ys).for_each(|((out, &x), &y)| *out = f(x, y));
    }
}

impl<'a, T: Copy> Values<'a, T> {
    fn as_same(self) -> Option<T> {
        match self {
            Values::Same(value) => Some(value),
            Values::Each(_) => None,
        }
    }

    /// The elements, once each: only one if they are all the same.
    #[inline(always)]
    fn distinct(&self) -> &[T] {
        match self {
            Values::Each(values) => values,
            Values::Same(value) => std::slice::from_ref(value),
        }
    }

    /// A part of the elements; of one that is the same for all, as many copies out of those given.
    #[inline(always)]
    fn slice(self, range: std::ops::Range<usize>, spread: Option<&'a [T; SPREAD]>) -> &'a [T] {
        match (self, spread) {
            (Values::Each(values), _) => &values[range],
            (Values::Same(_), Some(spread)) => &spread[..range.len()],
            (Values::Same(_), None) => &[],
        }
    }
}

/// As [`map`], for an elementary function given by name.
///
/// A loop written out: a closure with a body as long as theirs may stay a function of its own, which is then compiled without wide vectors.
macro_rules! map_elementary {
    ($a:expr, $out:expr, $function:ident) => {{
        let (a, out) = ($a, $out);
        for (out, &x) in out.iter_mut().zip(a.distinct()) {
            *out = Elementary::$function(x);
        }
        fill_with_first(&a, out);
    }};
}

/// As [`map2`], for an elementary function given by name.
macro_rules! map2_elementary {
    ($a:expr, $b:expr, $out:expr, $function:ident) => {{
        let (a, b, out) = ($a, $b, $out);
        let (spread_a, spread_b) = (a.as_same().map(|x| [x; SPREAD]), b.as_same().map(|y| [y; SPREAD]));
        let part = if spread_a.is_some() || spread_b.is_some() { SPREAD } else { out.len().max(1) };
        for (k, out) in out.chunks_mut(part).enumerate() {
            let range = k * part..k * part + out.len();
            let (xs, ys) = (a.slice(range.clone(), spread_a.as_ref()), b.slice(range, spread_b.as_ref()));
            for ((out, &x), &y) in out.iter_mut().zip(xs).zip(ys) {
                *out = Elementary::$function(x, y);
            }
        }
    }};
}

/// A function of angles: its straight version for every element, then the whole function for the rare ones too large for that.
macro_rules! map_angles {
    ($a:expr, $out:expr, $near:ident, $whole:path) => {{
        let (a, out) = ($a, $out);
        map_elementary!(a, &mut *out, $near);
        redo_far(a, out, $whole);
    }};
}

/// If all elements have the same argument, gives them the result of the first.
fn fill_with_first<T, R: Copy>(a: &Values<'_, T>, out: &mut [R]) {
    if let (Values::Same(_), Some((&mut first, rest))) = (a, out.split_first_mut()) {
        rest.fill(first);
    }
}

/// Computes again the results of angles that are too large for the straight version.
#[inline(always)]
fn redo_far<T: Elementary>(a: Values<'_, T>, out: &mut [T], whole: impl Fn(T) -> T) {
    match a {
        Values::Each(a) if a.iter().fold(false, |far, x| far | !x.is_near()) => {
            out.iter_mut().zip(a).filter(|(_, x)| !x.is_near()).for_each(|(out, &x)| *out = whole(x));
        }
        Values::Same(x) if !x.is_near() => out.fill(whole(x)),
        _ => {}
    }
}

/// Copies the elements.
pub(crate) fn copy<T: Copy>(a: Values<'_, T>, out: &mut [T]) {
    match a {
        Values::Each(a) => out.copy_from_slice(a),
        Values::Same(x) => out.fill(x),
    }
}

wide! {
    /// Chooses between elements.
    pub(crate) fn select[T: Copy](condition: Values<'_, bool>, yes: Values<'_, T>, no: Values<'_, T>, out: &mut [T]) {
        // A branch would become a choice of addresses, and every element would be gathered from where it lies.
        let choose = |condition: bool, yes: T, no: T| std::hint::select_unpredictable(condition, yes, no);
        match (condition, yes, no) {
            (Values::Same(true), yes, _) => copy(yes, out),
            (Values::Same(false), _, no) => copy(no, out),
            (condition, yes, Values::Same(no)) => map2(condition, yes, out, |c, x| choose(c, x, no)),
            (condition, Values::Same(yes), no) => map2(condition, no, out, |c, x| choose(c, yes, x)),
            (Values::Each(condition), Values::Each(yes), Values::Each(no)) => {
                let both = yes.iter().zip(no);
                out.iter_mut().zip(condition).zip(both).for_each(|((out, &c), (&x, &y))| *out = choose(c, x, y));
            }
        }
    }

    /// Converts elements.
    pub(crate) fn cast[S: Copy, T: CastFrom<S>](a: &[S], out: &mut [T]) {
        out.iter_mut().zip(a).for_each(|(out, &x)| *out = T::cast_from(x));
    }

    /// Complements bools.
    pub(crate) fn not_bool(a: Values<'_, bool>, out: &mut [bool]) {
        map(a, out, |x| !x)
    }
}

macro_rules! float_loops {
    ($float:ident, $unary:ident, $binary:ident, $classify:ident, $sign:path, $floor_div:path, $modulo:path, $min:path, $max:path) => {
        wide! {
            /// An operation on one float that gives a float.
            pub(crate) fn $unary(op: UnaryOp, a: Values<'_, $float>, out: &mut [$float]) {
                match op {
                    UnaryOp::Neg => map(a, out, |x| -x),
                    UnaryOp::Abs => map(a, out, $float::abs),
                    UnaryOp::Sign => map(a, out, $sign),
                    UnaryOp::Sqrt => map(a, out, $float::sqrt),
                    UnaryOp::Exp => map_elementary!(a, out, exp),
                    UnaryOp::Exp2 => map_elementary!(a, out, exp2),
                    UnaryOp::Expm1 => map_elementary!(a, out, expm1),
                    UnaryOp::Log => map_elementary!(a, out, log),
                    UnaryOp::Log1p => map_elementary!(a, out, log1p),
                    UnaryOp::Log2 => map_elementary!(a, out, log2),
                    UnaryOp::Log10 => map_elementary!(a, out, log10),
                    UnaryOp::Sin => map_angles!(a, out, sin_near, Elementary::sin),
                    UnaryOp::Cos => map_angles!(a, out, cos_near, Elementary::cos),
                    UnaryOp::Tan => map_angles!(a, out, tan_near, Elementary::tan),
                    UnaryOp::Asin => map_elementary!(a, out, asin),
                    UnaryOp::Acos => map_elementary!(a, out, acos),
                    UnaryOp::Atan => map_elementary!(a, out, atan),
                    UnaryOp::Sinh => map_elementary!(a, out, sinh),
                    UnaryOp::Cosh => map_elementary!(a, out, cosh),
                    UnaryOp::Tanh => map_elementary!(a, out, tanh),
                    UnaryOp::Asinh => map_elementary!(a, out, asinh),
                    UnaryOp::Acosh => map_elementary!(a, out, acosh),
                    UnaryOp::Atanh => map_elementary!(a, out, atanh),
                    UnaryOp::Cbrt => map_elementary!(a, out, cbrt),
                    UnaryOp::Floor => map(a, out, $float::floor),
                    UnaryOp::Ceil => map(a, out, $float::ceil),
                    UnaryOp::Round => map(a, out, $float::round_ties_even),
                    UnaryOp::Trunc => map(a, out, $float::trunc),
                    op => unreachable!("`{op}` gives no float"),
                }
            }

            /// An operation on two floats that gives a float.
            pub(crate) fn $binary(op: BinaryOp, a: Values<'_, $float>, b: Values<'_, $float>, out: &mut [$float]) {
                match op {
                    BinaryOp::Add => map2(a, b, out, |x, y| x + y),
                    BinaryOp::Sub => map2(a, b, out, |x, y| x - y),
                    BinaryOp::Mul => map2(a, b, out, |x, y| x * y),
                    BinaryOp::Div => map2(a, b, out, |x, y| x / y),
                    BinaryOp::FloorDiv => map2(a, b, out, $floor_div),
                    BinaryOp::Mod => map2(a, b, out, $modulo),
                    BinaryOp::Pow => map2_elementary!(a, b, out, pow),
                    BinaryOp::Min => map2(a, b, out, $min),
                    BinaryOp::Max => map2(a, b, out, $max),
                    BinaryOp::Atan2 => map2_elementary!(a, b, out, atan2),
                    BinaryOp::Hypot => map2_elementary!(a, b, out, hypot),
                    BinaryOp::Copysign => map2(a, b, out, $float::copysign),
                    BinaryOp::Nextafter => map2_elementary!(a, b, out, nextafter),
                    op => unreachable!("`{op}` gives no float"),
                }
            }

            /// A question about one float.
            pub(crate) fn $classify(op: UnaryOp, a: Values<'_, $float>, out: &mut [bool]) {
                match op {
                    UnaryOp::IsNan => map(a, out, $float::is_nan),
                    UnaryOp::IsFinite => map(a, out, $float::is_finite),
                    UnaryOp::Signbit => map(a, out, $float::is_sign_negative),
                    _ => map(a, out, $float::is_infinite),
                }
            }
        }
    };
}
float_loops!(
    f64,
    unary_f64,
    binary_f64,
    classify_f64,
    math::sign_f64,
    math::floor_div_f64,
    math::mod_f64,
    math::min_f64,
    math::max_f64
);
float_loops!(
    f32,
    unary_f32,
    binary_f32,
    classify_f32,
    math::sign_f32,
    math::floor_div_f32,
    math::mod_f32,
    math::min_f32,
    math::max_f32
);

wide! {
    /// A comparison.
    pub(crate) fn compare[T: Copy + PartialOrd](op: BinaryOp, a: Values<'_, T>, b: Values<'_, T>, out: &mut [bool]) {
        match op {
            BinaryOp::Lt => map2(a, b, out, |x, y| x < y),
            BinaryOp::Le => map2(a, b, out, |x, y| x <= y),
            // The same loops the other way round.
            BinaryOp::Gt => compare(BinaryOp::Lt, b, a, out),
            BinaryOp::Ge => compare(BinaryOp::Le, b, a, out),
            BinaryOp::Eq => map2(a, b, out, |x, y| x == y),
            _ => map2(a, b, out, |x, y| x != y),
        }
    }

    /// A comparison of values that have no order.
    pub(crate) fn equal[T: Copy + PartialEq](op: BinaryOp, a: Values<'_, T>, b: Values<'_, T>, out: &mut [bool]) {
        match op {
            BinaryOp::Eq => map2(a, b, out, |x, y| x == y),
            _ => map2(a, b, out, |x, y| x != y),
        }
    }

    /// An operation on one integer.
    pub(crate) fn unary_integer[T: Integer](op: UnaryOp, a: Values<'_, T>, out: &mut [T]) {
        match op {
            UnaryOp::Neg => map(a, out, T::neg),
            UnaryOp::Abs => map(a, out, T::abs),
            UnaryOp::Sign => map(a, out, T::sign),
            UnaryOp::Not => map(a, out, T::not),
            op => unreachable!("`{op}` of integers"),
        }
    }

    /// An operation on two integers that gives an integer.
    pub(crate) fn binary_integer[T: Integer](op: BinaryOp, a: Values<'_, T>, b: Values<'_, T>, out: &mut [T]) {
        match op {
            BinaryOp::Add => map2(a, b, out, T::add),
            BinaryOp::Sub => map2(a, b, out, T::sub),
            BinaryOp::Mul => map2(a, b, out, T::mul),
            BinaryOp::FloorDiv => map2(a, b, out, T::floor_div),
            BinaryOp::Mod => map2(a, b, out, T::modulo),
            BinaryOp::Pow => map2(a, b, out, T::pow),
            BinaryOp::Min => map2(a, b, out, |x: T, y: T| x.min(y)),
            BinaryOp::Max => map2(a, b, out, |x: T, y: T| x.max(y)),
            BinaryOp::And => map2(a, b, out, T::and),
            BinaryOp::Or => map2(a, b, out, T::or),
            BinaryOp::Xor => map2(a, b, out, T::xor),
            BinaryOp::Shl => map2(a, b, out, T::shl),
            BinaryOp::Shr => map2(a, b, out, T::shr),
            op => unreachable!("`{op}` gives no integer"),
        }
    }

    /// An operation on one complex number.
    pub(crate) fn unary_complex[T: Copy + Neg<Output = T>](
        op: UnaryOp,
        a: Values<'_, Complex<T>>,
        out: &mut [Complex<T>],
    ) {
        match op {
            UnaryOp::Neg => map(a, out, |x: Complex<T>| Complex { re: -x.re, im: -x.im }),
            UnaryOp::Conj => map(a, out, |x: Complex<T>| Complex { re: x.re, im: -x.im }),
            op => unreachable!("`{op}` gives no complex number"),
        }
    }

    /// An operation on two complex numbers.
    pub(crate) fn binary_complex[C: Copy + Add<Output = C> + Sub<Output = C> + Mul<Output = C>](
        op: BinaryOp,
        a: Values<'_, C>,
        b: Values<'_, C>,
        out: &mut [C],
    ) {
        match op {
            BinaryOp::Add => map2(a, b, out, |x, y| x + y),
            BinaryOp::Sub => map2(a, b, out, |x, y| x - y),
            BinaryOp::Mul => map2(a, b, out, |x, y| x * y),
            op => unreachable!("`{op}` gives no complex number"),
        }
    }

    /// The real or imaginary part.
    pub(crate) fn part[T: Copy](op: UnaryOp, a: Values<'_, Complex<T>>, out: &mut [T]) {
        match op {
            UnaryOp::Real => map(a, out, |x: Complex<T>| x.re),
            _ => map(a, out, |x: Complex<T>| x.im),
        }
    }

    /// Complex numbers of two parts.
    pub(crate) fn join[T: Copy](re: Values<'_, T>, im: Values<'_, T>, out: &mut [Complex<T>]) {
        map2(re, im, out, |re, im| Complex { re, im })
    }

    /// An operation on two bools.
    pub(crate) fn binary_bool(op: BinaryOp, a: Values<'_, bool>, b: Values<'_, bool>, out: &mut [bool]) {
        match op {
            BinaryOp::Add | BinaryOp::Or | BinaryOp::Max => map2(a, b, out, |x, y| x | y),
            BinaryOp::Mul | BinaryOp::And | BinaryOp::Min => map2(a, b, out, |x, y| x & y),
            BinaryOp::Xor => map2(a, b, out, |x, y| x ^ y),
            op => compare(op, a, b, out),
        }
    }
}

/// Random numbers drawn together.
const DRAWN: usize = 8;

macro_rules! draws {
    ($($name:ident $several:path, $one:path;)*) => {
        wide! {
            $(/// Random doubles: several at once, and the remainder one by one.
            pub(crate) fn $name(seed: u64, counters: Values<'_, i64>, out: &mut [f64]) {
                let distinct = counters.distinct();
                let n = distinct.len().min(out.len());
                let (groups, left) = distinct[..n].as_chunks::<DRAWN>();
                let (out_groups, out_left) = out[..n].as_chunks_mut::<DRAWN>();
                for (out, &counters) in out_groups.iter_mut().zip(groups) {
                    *out = $several(seed, counters);
                }
                for (out, &counter) in out_left.iter_mut().zip(left) {
                    *out = $one(seed, counter);
                }
                fill_with_first(&counters, out);
            })*
        }
    };
}
draws! {
    draw_uniform random::uniforms, random::uniform;
    draw_normal random::normals, random::normal;
}

/// Random doubles.
pub(crate) fn random_f64(distribution: RandomDistribution, seed: u64, counters: Values<'_, i64>, out: &mut [f64]) {
    match distribution {
        RandomDistribution::Uniform => draw_uniform(seed, counters, out),
        RandomDistribution::Normal => draw_normal(seed, counters, out),
        RandomDistribution::Integer { low, high } => map(counters, out, |c| random::integer(seed, c, low, high) as f64),
    }
}

/// Random integers.
pub(crate) fn random_i64(distribution: RandomDistribution, seed: u64, counters: Values<'_, i64>, out: &mut [i64]) {
    match distribution {
        RandomDistribution::Integer { low, high } => map(counters, out, |c| random::integer(seed, c, low, high)),
        RandomDistribution::Uniform | RandomDistribution::Normal => unreachable!("a random float as an integer"),
    }
}
