//! Bringing many values together in a fixed order.
//!
//! The order depends on the number of values alone. A chunk is reduced in [`LANES`] interleaved parts, which are then combined pairwise; chunks
//! are combined pairwise as well, and so are strips. So errors of floating point sums grow with the logarithm of their length, beyond the
//! first few hundred terms.

use tw_ir::dtype::{C64, C128, bf16, f16};
use tw_ir::scalar::math::{self, Integer};
use tw_ir::{BinaryOp, DType, Scalar};

use super::{Element, InRegisters, Values, with_dtype};
use crate::wide::wide;

/// Independent partial results: enough to hide the latency of an addition with 256-bit vectors.
pub(super) const LANES: usize = 16;

/// Values reduced without pairing.
const CHUNK: usize = 512;

/// Chunks that are reduced before their results are combined.
const CHUNKS_AT_ONCE: usize = 32;

/// Rows that are folded in one pass over their results: memory answers several streams faster than one, and results stay in registers.
pub(crate) const ROWS_AT_ONCE: usize = 4;

/// The operations with fast loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Monoid {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl Monoid {
    /// The fast form of an operation on a type, if it has one.
    pub(crate) fn of(op: BinaryOp, dtype: DType) -> Option<Monoid> {
        // Only what gives its own type can be repeated.
        if op.result(dtype) != Some(dtype) {
            return None;
        }
        Some(match (op, dtype) {
            (BinaryOp::Add | BinaryOp::Max, DType::Bool) | (BinaryOp::Or, _) => Monoid::Or,
            (BinaryOp::Mul | BinaryOp::Min, DType::Bool) | (BinaryOp::And, _) => Monoid::And,
            (BinaryOp::Xor, _) => Monoid::Xor,
            (BinaryOp::Add, _) => Monoid::Sum,
            (BinaryOp::Mul, _) => Monoid::Product,
            (BinaryOp::Min, _) => Monoid::Min,
            (BinaryOp::Max, _) => Monoid::Max,
            _ => return None,
        })
    }
}

/// Element types with loops for every monoid that makes sense for them.
pub(crate) trait Foldable: InRegisters {
    /// `out[k] = out[k] op values[k]`.
    fn fold_each(monoid: Monoid, out: &mut [Self], values: Values<'_, Self>);
    /// `out[k] = out[k] op rows[0][k] op rows[1][k] ..`, in this order.
    fn fold_rows(monoid: Monoid, out: &mut [Self], rows: [&[Self]; ROWS_AT_ONCE]) {
        rows.into_iter().for_each(|row| Self::fold_each(monoid, out, Values::Each(row)));
    }
    /// All values as one, in a fixed order. The slice must not be empty.
    fn reduce(monoid: Monoid, values: &[Self]) -> Self;
    /// `n` times the same value as one, if that takes no rounding.
    fn repeat(monoid: Monoid, value: Self, n: usize) -> Option<Self>;
    /// `n` values as one; the same bits whether they are given one by one or as one for all.
    fn reduce_strip(monoid: Monoid, values: Values<'_, Self>, n: usize) -> Self {
        match values {
            Values::Each(values) => Self::reduce(monoid, values),
            Values::Same(value) => {
                Self::repeat(monoid, value, n).unwrap_or_else(|| Self::reduce(monoid, &vec![value; n]))
            }
        }
    }
    /// Two values as one.
    fn combine(monoid: Monoid, a: Self, b: Self) -> Self;
}

#[inline(always)]
fn fold_with<T: Copy>(out: &mut [T], values: Values<'_, T>, f: impl Fn(T, T) -> T) {
    match values {
        Values::Each(values) => out.iter_mut().zip(values).for_each(|(out, &x)| *out = f(*out, x)),
        Values::Same(x) => out.iter_mut().for_each(|out| *out = f(*out, x)),
    }
}

#[inline(always)]
fn reduce_with<T: Copy>(values: &[T], f: impl Fn(T, T) -> T) -> T {
    if values.len() <= CHUNK {
        return reduce_chunk(values, f);
    }
    // Like a binary counter: level k holds the result of 2^k chunks, if that bit of the count is set.
    let mut levels = [values[0]; usize::BITS as usize];
    let mut count = 0usize;
    for part in values.chunks(CHUNKS_AT_ONCE * CHUNK) {
        let mut results = [values[0]; CHUNKS_AT_ONCE];
        let n = reduce_chunks(part, &mut results, &f);
        for &(mut value) in &results[..n] {
            let carries = count.trailing_ones() as usize;
            for level in &levels[..carries] {
                value = f(*level, value);
            }
            levels[carries] = value;
            count += 1;
        }
    }
    let lowest = count.trailing_zeros() as usize;
    let mut total = levels[lowest];
    for (k, level) in levels.iter().enumerate().skip(lowest + 1) {
        if count >> k & 1 == 1 {
            total = f(*level, total);
        }
    }
    total
}

/// Reduces every chunk to one value and says how many there are. Two chunks run side by side: memory answers two streams faster than one.
#[inline(always)]
fn reduce_chunks<T: Copy>(values: &[T], results: &mut [T; CHUNKS_AT_ONCE], f: impl Fn(T, T) -> T) -> usize {
    let (chunks, tail) = values.as_chunks::<CHUNK>();
    let half = chunks.len() / 2;
    let (first, rest) = chunks.split_at(half);
    for (k, (a, b)) in first.iter().zip(rest).enumerate() {
        (results[k], results[half + k]) = reduce_pair(a, b, &f);
    }
    let mut n = 2 * half;
    let last = rest.get(half).map(|chunk| &chunk[..]);
    for chunk in last.into_iter().chain((!tail.is_empty()).then_some(tail)) {
        results[n] = reduce_chunk(chunk, &f);
        n += 1;
    }
    n
}

#[inline(always)]
fn reduce_pair<T: Copy>(a: &[T; CHUNK], b: &[T; CHUNK], f: impl Fn(T, T) -> T) -> (T, T) {
    let ((a, _), (b, _)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let (mut of_a, mut of_b) = (a[0], b[0]);
    for (a, b) in a.iter().zip(b).skip(1) {
        for k in 0..LANES {
            of_a[k] = f(of_a[k], a[k]);
        }
        for k in 0..LANES {
            of_b[k] = f(of_b[k], b[k]);
        }
    }
    // Copies, so that the partial results themselves stay in registers.
    let (mut first, mut second) = (of_a, of_b);
    (join_lanes(&mut first, &[], &f), join_lanes(&mut second, &[], &f))
}

#[inline(always)]
fn reduce_chunk<T: Copy>(values: &[T], f: impl Fn(T, T) -> T) -> T {
    let (Some(head), Some(rest)) = (values.first_chunk::<LANES>(), values.get(LANES..)) else {
        return values[1..].iter().fold(values[0], |sum, &x| f(sum, x));
    };
    let mut partial = *head;
    let (chunks, tail) = rest.as_chunks::<LANES>();
    for chunk in chunks {
        for k in 0..LANES {
            partial[k] = f(partial[k], chunk[k]);
        }
    }
    let mut lanes = partial;
    join_lanes(&mut lanes, tail, f)
}

/// Ends what was reduced in lanes. Kept out of the loops above: were it part of them, the compiler would shape their vectors by its last steps.
#[inline(never)]
pub(super) fn join_lanes<T: Copy>(lanes: &mut [T; LANES], tail: &[T], f: impl Fn(T, T) -> T) -> T {
    for (lane, &x) in lanes.iter_mut().zip(tail) {
        *lane = f(*lane, x);
    }
    let mut n = LANES / 2;
    while n > 0 {
        for k in 0..n {
            lanes[k] = f(lanes[k], lanes[k + n]);
        }
        n /= 2;
    }
    lanes[0]
}

wide! {
    /// Adds rows to their sums, one after the other in each column.
    pub(crate) fn add_rows[T: Foldable + std::ops::Add<Output = T>](out: &mut [T], rows: [&[T]; ROWS_AT_ONCE]) {
        let [a, b, c, d] = rows;
        for ((((out, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *out = *out + a + b + c + d;
        }
    }
}

/// Sums of floats are what large tables are asked for most, so they get the loop over several rows.
macro_rules! fold_rows {
    (f32) => { fold_rows!(@ f32); };
    (f64) => { fold_rows!(@ f64); };
    (@ $type:ident) => {
        fn fold_rows(monoid: Monoid, out: &mut [$type], rows: [&[$type]; ROWS_AT_ONCE]) {
            match monoid {
                Monoid::Sum => add_rows(out, rows),
                _ => rows.into_iter().for_each(|row| Self::fold_each(monoid, out, Values::Each(row))),
            }
        }
    };
    ($other:ident) => {};
}

macro_rules! folds {
    ($($type:ident $fold_each:ident $reduce:ident $combine:ident $repeat:ident { $($monoid:ident => $f:expr,)* })*) => {
        wide! {
            $(pub(crate) fn $fold_each(monoid: Monoid, out: &mut [$type], values: Values<'_, $type>) {
                match monoid {
                    $(Monoid::$monoid => fold_with(out, values, $f),)*
                    #[allow(unreachable_patterns)]
                    other => unreachable!("{other:?} of {}", <$type>::DTYPE),
                }
            }
            pub(crate) fn $reduce(monoid: Monoid, values: &[$type]) -> $type {
                match monoid {
                    $(Monoid::$monoid => reduce_with(values, $f),)*
                    #[allow(unreachable_patterns)]
                    other => unreachable!("{other:?} of {}", <$type>::DTYPE),
                }
            })*
        }
        $(#[inline(always)]
        fn $combine(monoid: Monoid, a: $type, b: $type) -> $type {
            match monoid {
                $(Monoid::$monoid => $f(a, b),)*
                #[allow(unreachable_patterns)]
                other => unreachable!("{other:?} of {}", <$type>::DTYPE),
            }
        }
        impl Foldable for $type {
            fold_rows!($type);
            fn fold_each(monoid: Monoid, out: &mut [Self], values: Values<'_, Self>) {
                $fold_each(monoid, out, values)
            }
            fn reduce(monoid: Monoid, values: &[Self]) -> Self {
                $reduce(monoid, values)
            }
            fn combine(monoid: Monoid, a: Self, b: Self) -> Self {
                $combine(monoid, a, b)
            }
            fn repeat(monoid: Monoid, value: Self, n: usize) -> Option<Self> {
                match monoid {
                    Monoid::Min | Monoid::Max | Monoid::And | Monoid::Or => Some(value),
                    Monoid::Sum => $repeat(value, n),
                    Monoid::Product | Monoid::Xor => None,
                }
            }
        })*
    };
}
folds! {
    f64 fold_f64 reduce_f64 combine_f64 repeat_f64 {
        Sum => |x: f64, y: f64| x + y,
        Product => |x: f64, y: f64| x * y,
        Min => math::min_f64,
        Max => math::max_f64,
    }
    f32 fold_f32 reduce_f32 combine_f32 repeat_f32 {
        Sum => |x: f32, y: f32| x + y,
        Product => |x: f32, y: f32| x * y,
        Min => math::min_f32,
        Max => math::max_f32,
    }
    C64 fold_c64 reduce_c64 combine_c64 repeat_c64 {
        Sum => |x: C64, y: C64| x + y,
        Product => |x: C64, y: C64| x * y,
    }
    C128 fold_c128 reduce_c128 combine_c128 repeat_c128 {
        Sum => |x: C128, y: C128| x + y,
        Product => |x: C128, y: C128| x * y,
    }
    bool fold_bool reduce_bool combine_bool repeat_bool {
        And => |x: bool, y: bool| x & y,
        Or => |x: bool, y: bool| x | y,
        Xor => |x: bool, y: bool| x ^ y,
    }
}

macro_rules! integer_folds {
    ($($type:ident $fold_each:ident $reduce:ident $combine:ident $repeat:ident;)*) => {
        folds! {
            $($type $fold_each $reduce $combine $repeat {
                Sum => <$type as Integer>::add,
                Product => <$type as Integer>::mul,
                Min => |x: $type, y: $type| x.min(y),
                Max => |x: $type, y: $type| x.max(y),
                And => <$type as Integer>::and,
                Or => <$type as Integer>::or,
                Xor => <$type as Integer>::xor,
            })*
        }
        $(fn $repeat(value: $type, n: usize) -> Option<$type> {
            Some(value.wrapping_mul(n as $type))
        })*
    };
}
integer_folds! {
    i8 fold_i8 reduce_i8 combine_i8 repeat_i8;
    i16 fold_i16 reduce_i16 combine_i16 repeat_i16;
    i32 fold_i32 reduce_i32 combine_i32 repeat_i32;
    i64 fold_i64 reduce_i64 combine_i64 repeat_i64;
    u8 fold_u8 reduce_u8 combine_u8 repeat_u8;
    u16 fold_u16 reduce_u16 combine_u16 repeat_u16;
    u32 fold_u32 reduce_u32 combine_u32 repeat_u32;
    u64 fold_u64 reduce_u64 combine_u64 repeat_u64;
}

/// Halves are never computed with, so [`Monoid::of`] has none for them.
macro_rules! no_folds {
    ($($type:ident)*) => {
        $(impl Foldable for $type {
            fn fold_each(monoid: Monoid, _: &mut [Self], _: Values<'_, Self>) {
                unreachable!("{monoid:?} of {}", Self::DTYPE)
            }
            fn reduce(monoid: Monoid, _: &[Self]) -> Self {
                unreachable!("{monoid:?} of {}", Self::DTYPE)
            }
            fn repeat(_: Monoid, _: Self, _: usize) -> Option<Self> {
                None
            }
            fn combine(monoid: Monoid, _: Self, _: Self) -> Self {
                unreachable!("{monoid:?} of {}", Self::DTYPE)
            }
        })*
    };
}
no_folds! { f16 bf16 }

/// A sum of whole numbers that are small enough takes no rounding, whatever the order.
fn repeat_f64(value: f64, n: usize) -> Option<f64> {
    let total = value * n as f64;
    (value.fract() == 0.0 && total.abs() < (1u64 << f64::MANTISSA_DIGITS) as f64).then_some(total)
}

fn repeat_f32(value: f32, n: usize) -> Option<f32> {
    let total = value as f64 * n as f64;
    (value.fract() == 0.0 && total.abs() < (1u64 << f32::MANTISSA_DIGITS) as f64).then_some(total as f32)
}

fn repeat_c64(value: C64, n: usize) -> Option<C64> {
    Some(C64::new(repeat_f32(value.re, n)?, repeat_f32(value.im, n)?))
}

fn repeat_c128(value: C128, n: usize) -> Option<C128> {
    Some(C128::new(repeat_f64(value.re, n)?, repeat_f64(value.im, n)?))
}

fn repeat_bool(value: bool, _: usize) -> Option<bool> {
    Some(value)
}

/// Combines a sequence of values pairwise, like a binary counter: level k holds the result of 2^k values.
#[derive(Debug)]
pub(crate) struct Cascade<S> {
    levels: Vec<S>,
    count: u64,
}

impl<S> Default for Cascade<S> {
    fn default() -> Cascade<S> {
        Cascade { levels: Vec::new(), count: 0 }
    }
}

impl<S> Cascade<S> {
    /// Adds the next value.
    pub(crate) fn push(&mut self, mut value: S, combine: impl Fn(S, S) -> S) {
        let mut count = self.count;
        while count & 1 == 1 {
            // The levels held are those of the set bits of the count, lowest last.
            if let Some(earlier) = self.levels.pop() {
                value = combine(earlier, value);
            }
            count >>= 1;
        }
        self.levels.push(value);
        self.count += 1;
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.levels.clear();
        self.count = 0;
    }

    /// All values as one, and nothing again.
    pub(crate) fn finish(&mut self, combine: impl Fn(S, S) -> S) -> Option<S> {
        self.count = 0;
        let mut total = self.levels.pop()?;
        while let Some(earlier) = self.levels.pop() {
            total = combine(earlier, total);
        }
        Some(total)
    }
}

/// Two values of a type as one.
pub(crate) fn combine(monoid: Monoid, a: Scalar, b: Scalar) -> Scalar {
    with_dtype!(a.dtype(), T => T::combine(monoid, T::from_scalar(a), T::from_scalar(b)).to_scalar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_counts_once() {
        for n in [1, 2, 15, 16, 17, 511, 512, 513, 1024, 1500, 5000, 9999] {
            let values: Vec<i64> = (0..n).map(|k| k * k + 1).collect();
            assert_eq!(i64::reduce(Monoid::Sum, &values), values.iter().sum(), "{n}");
            assert_eq!(i64::reduce(Monoid::Max, &values), (n - 1) * (n - 1) + 1);
            let mut cascade = Cascade::default();
            values.iter().for_each(|&value| cascade.push(Scalar::I64(value), |a, b| combine(Monoid::Sum, a, b)));
            assert_eq!(cascade.finish(|a, b| combine(Monoid::Sum, a, b)), Some(Scalar::I64(values.iter().sum())));
            assert_eq!(cascade.finish(|a, b| combine(Monoid::Sum, a, b)), None);
        }
    }

    #[test]
    fn long_sums_are_accurate() {
        let values = vec![0.1f32; 1_000_000];
        let error = f32::reduce(Monoid::Sum, &values) as f64 - 0.1f32 as f64 * 1e6;
        assert!(error.abs() < 0.05, "{error}");
    }

    #[test]
    fn repeating_agrees_with_reducing() {
        for value in [0.0, -0.0, 1.0, -3.0, 0.1, 1e16, f64::NAN, f64::INFINITY] {
            for n in [1, 7, 512, 4000] {
                for monoid in [Monoid::Sum, Monoid::Product, Monoid::Min, Monoid::Max] {
                    let (one, each) = (Values::Same(value), vec![value; n]);
                    let (a, b) = (f64::reduce_strip(monoid, one, n), f64::reduce(monoid, &each));
                    assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{value} {n} {monoid:?}");
                }
            }
        }
    }
}
