//! Bringing many values together in a fixed order.
//!
//! The order depends on the number of values alone. A strip is reduced in [`LANES`] interleaved parts, which are then combined pairwise; strips
//! are combined pairwise as well. So errors of floating point sums grow with the logarithm of their length, beyond the first few hundred terms.

use tw_ir::scalar::math;
use tw_ir::{BinaryOp, DType, Scalar};

use super::{Element, STRIP, Values, with_dtype};
use crate::wide::wide;

/// Independent partial results: enough to hide the latency of an addition with 256-bit vectors.
const LANES: usize = 16;

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
        Some(match (op, dtype) {
            (BinaryOp::Add | BinaryOp::Or | BinaryOp::Max, DType::Bool) => Monoid::Or,
            (BinaryOp::Mul | BinaryOp::And | BinaryOp::Min, DType::Bool) => Monoid::And,
            (BinaryOp::Add, _) => Monoid::Sum,
            (BinaryOp::Mul, _) => Monoid::Product,
            (BinaryOp::Min, _) => Monoid::Min,
            (BinaryOp::Max, _) => Monoid::Max,
            (BinaryOp::And, DType::I64) => Monoid::And,
            (BinaryOp::Or, DType::I64) => Monoid::Or,
            (BinaryOp::Xor, DType::Bool | DType::I64) => Monoid::Xor,
            _ => return None,
        })
    }
}

/// Element types with loops for every monoid that makes sense for them.
pub(crate) trait Foldable: Element {
    /// `out[k] = out[k] op values[k]`.
    fn fold_each(monoid: Monoid, out: &mut [Self], values: Values<'_, Self>);
    /// All values as one, in a fixed order. The slice must not be empty.
    fn reduce(monoid: Monoid, values: &[Self]) -> Self;
    /// `n` values of a strip as one; the same bits whether they are given one by one or as one for all.
    fn reduce_strip(monoid: Monoid, values: Values<'_, Self>, n: usize) -> Self {
        match values {
            Values::Each(values) => Self::reduce(monoid, values),
            Values::Same(value) => Self::reduce(monoid, &[value; STRIP][..n]),
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
    let (Some(head), Some(rest)) = (values.first_chunk::<LANES>(), values.get(LANES..)) else {
        return values[1..].iter().fold(values[0], |sum, &x| f(sum, x));
    };
    let mut lanes = *head;
    let chunks = rest.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for k in 0..LANES {
            lanes[k] = f(lanes[k], chunk[k]);
        }
    }
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

macro_rules! folds {
    ($($type:ident $fold_each:ident $reduce:ident $combine:ident { $($monoid:ident => $f:expr,)* })*) => {
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
            fn fold_each(monoid: Monoid, out: &mut [Self], values: Values<'_, Self>) {
                $fold_each(monoid, out, values)
            }
            fn reduce(monoid: Monoid, values: &[Self]) -> Self {
                $reduce(monoid, values)
            }
            fn combine(monoid: Monoid, a: Self, b: Self) -> Self {
                $combine(monoid, a, b)
            }
        })*
    };
}
folds! {
    f64 fold_f64 reduce_f64 combine_f64 {
        Sum => |x: f64, y: f64| x + y,
        Product => |x: f64, y: f64| x * y,
        Min => math::min_f64,
        Max => math::max_f64,
    }
    f32 fold_f32 reduce_f32 combine_f32 {
        Sum => |x: f32, y: f32| x + y,
        Product => |x: f32, y: f32| x * y,
        Min => math::min_f32,
        Max => math::max_f32,
    }
    i64 fold_i64 reduce_i64 combine_i64 {
        Sum => i64::wrapping_add,
        Product => i64::wrapping_mul,
        Min => |x: i64, y: i64| x.min(y),
        Max => |x: i64, y: i64| x.max(y),
        And => |x: i64, y: i64| x & y,
        Or => |x: i64, y: i64| x | y,
        Xor => |x: i64, y: i64| x ^ y,
    }
    bool fold_bool reduce_bool combine_bool {
        And => |x: bool, y: bool| x & y,
        Or => |x: bool, y: bool| x | y,
        Xor => |x: bool, y: bool| x ^ y,
    }
}

/// Combines a sequence of values pairwise, like a binary counter: level k holds the result of 2^k values.
#[derive(Debug, Default)]
pub(crate) struct Cascade {
    levels: Vec<Scalar>,
    count: u64,
}

impl Cascade {
    /// Adds the next value.
    pub(crate) fn push(&mut self, monoid: Monoid, mut value: Scalar) {
        let mut count = self.count;
        while count & 1 == 1 {
            // The levels held are those of the set bits of the count, lowest last.
            if let Some(earlier) = self.levels.pop() {
                value = combine(monoid, earlier, value);
            }
            count >>= 1;
        }
        self.levels.push(value);
        self.count += 1;
    }

    /// All values as one, and nothing again.
    pub(crate) fn finish(&mut self, monoid: Monoid) -> Option<Scalar> {
        self.count = 0;
        let mut total = self.levels.pop()?;
        while let Some(earlier) = self.levels.pop() {
            total = combine(monoid, earlier, total);
        }
        Some(total)
    }
}

fn combine(monoid: Monoid, a: Scalar, b: Scalar) -> Scalar {
    with_dtype!(a.dtype(), T => T::combine(monoid, T::from_scalar(a), T::from_scalar(b)).to_scalar())
}
