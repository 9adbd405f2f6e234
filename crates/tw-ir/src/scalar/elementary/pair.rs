//! Polynomials, and numbers of twice the precision: unevaluated sums of two doubles.

/// What polynomials need.
pub(super) trait Fused: Copy + std::ops::Mul<Output = Self> {
    /// `self * factor + term`, rounded once.
    fn fused(self, factor: Self, term: Self) -> Self;
}
impl Fused for f64 {
    #[inline(always)]
    fn fused(self, factor: f64, term: f64) -> f64 {
        self.mul_add(factor, term)
    }
}
impl Fused for f32 {
    #[inline(always)]
    fn fused(self, factor: f32, term: f32) -> f32 {
        self.mul_add(factor, term)
    }
}

/// A polynomial, constant term first.
///
/// Up to four chains of fused operations, of every second or every fourth coefficient, run beside each other. One chain would be a few operations
/// shorter, but each waits for the one before it, and a processor cannot look far enough ahead to fill the time with the next elements.
#[inline(always)]
pub(super) fn polynomial<T: Fused, const N: usize>(x: T, coefficients: [T; N]) -> T {
    let square = x * x;
    if N < 10 {
        let (even, odd) = (chain(square, &coefficients, 0, 2), chain(square, &coefficients, 1, 2));
        return odd.fused(x, even);
    }
    let fourth = square * square;
    let part = |first: usize| chain(fourth, &coefficients, first, 4);
    let (low, high) = (part(1).fused(x, part(0)), part(3).fused(x, part(2)));
    high.fused(square, low)
}

/// The polynomial of every `step`-th coefficient from the first on.
#[inline(always)]
fn chain<T: Fused, const N: usize>(x: T, coefficients: &[T; N], first: usize, step: usize) -> T {
    let mut k = first + (N - 1 - first) / step * step;
    let mut sum = coefficients[k];
    while k > first {
        k -= step;
        sum = sum.fused(x, coefficients[k]);
    }
    sum
}

/// The sum of two doubles; `lo` is smaller than `hi`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) hi: f64,
    pub(super) lo: f64,
}

impl Pair {
    /// `a + b` exactly, if `a` is zero or not smaller than `b`.
    #[inline(always)]
    pub(super) fn sum_ordered(a: f64, b: f64) -> Pair {
        let hi = a + b;
        Pair { hi, lo: (a - hi) + b }
    }

    /// `a + b` exactly.
    #[inline(always)]
    pub(super) fn sum(a: f64, b: f64) -> Pair {
        let hi = a + b;
        let b_seen = hi - a;
        Pair { hi, lo: (a - (hi - b_seen)) + (b - b_seen) }
    }

    /// `a * b` exactly, but for underflow.
    #[inline(always)]
    pub(super) fn product(a: f64, b: f64) -> Pair {
        let hi = a * b;
        Pair { hi, lo: a.mul_add(b, -hi) }
    }

    /// The same number and a little more.
    #[inline(always)]
    pub(super) fn plus_small(self, more: f64) -> Pair {
        Pair { hi: self.hi, lo: self.lo + more }
    }

    /// The same number with as much as possible in the first part.
    #[inline(always)]
    pub(super) fn normal(self) -> Pair {
        Pair::sum_ordered(self.hi, self.lo)
    }

    /// The quotient of two numbers, with one division. Their low parts must be as small as roundings are.
    #[inline(always)]
    pub(super) fn over(self, divisor: Pair) -> Pair {
        let inverse = 1.0 / divisor.hi;
        let hi = self.hi * inverse;
        let rest = hi.mul_add(-divisor.hi, self.hi) + hi.mul_add(-divisor.lo, self.lo);
        Pair { hi, lo: rest * inverse }
    }

    /// The square root; of zero, zero.
    #[inline(always)]
    pub(super) fn sqrt(self) -> Pair {
        let hi = self.hi.sqrt();
        let rest = hi.mul_add(-hi, self.hi) + self.lo;
        Pair { hi, lo: if hi == 0.0 { 0.0 } else { rest / (hi + hi) } }
    }

    /// The nearest double.
    #[inline(always)]
    pub(super) fn value(self) -> f64 {
        self.hi + self.lo
    }
}
