//! Registers of 256 bits that hold integers or truth values.

use std::arch::x86_64::*;

use super::super::vector::{Arithmetic, Truth, Vector};

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident $element:ident $lanes:literal |$value:ident| $splat:expr,
        |$a:ident, $b:ident| $add:expr, $mul:expr, $min:expr, $max:expr;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(__m256i);
        impl $name {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn sum(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($add)
            }
            #[inline]
            #[target_feature(enable = "avx2")]
            fn product(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($mul)
            }
            #[inline]
            #[target_feature(enable = "avx2")]
            fn smaller(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($min)
            }
            #[inline]
            #[target_feature(enable = "avx2")]
            fn larger(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                Self($max)
            }
        }
        impl Arithmetic for $name {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: the vectors exist, so the processor has the instructions. So it is for every operation below.
                unsafe { self.sum(other) }
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: see `add`.
                unsafe { self.product(other) }
            }
            #[inline(always)]
            fn mul_add(self, other: Self, sum: Self) -> Self {
                sum.add(self.mul(other))
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                // SAFETY: see `add`.
                unsafe { self.smaller(other) }
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                // SAFETY: see `add`.
                unsafe { self.larger(other) }
            }
            #[inline(always)]
            fn quick_min(self, other: Self) -> Self {
                self.min(other)
            }
            #[inline(always)]
            fn quick_max(self, other: Self) -> Self {
                self.max(other)
            }
        }
        impl Vector for $name {
            type Element = $element;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the caller vouches for the register and for the elements; alignment does not matter.
                Self(unsafe { _mm256_loadu_si256(from.cast()) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: as for `load`.
                unsafe { _mm256_storeu_si256(to.cast(), self.0) }
            }
            #[inline(always)]
            unsafe fn splat($value: $element) -> Self {
                // SAFETY: the caller vouches for the register.
                Self(unsafe { $splat })
            }
        })*
    };
}
registers! {
    /// Eight integers.
    I32x8 i32 8 |value| _mm256_set1_epi32(value),
        |a, b| _mm256_add_epi32(a, b), _mm256_mullo_epi32(a, b), _mm256_min_epi32(a, b), _mm256_max_epi32(a, b);
    /// Four integers.
    I64x4 i64 4 |value| _mm256_set1_epi64x(value),
        |a, b| _mm256_add_epi64(a, b), product_i64(a, b),
        _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(a, b)), _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
    /// Thirty-two truth values.
    Truthx32 Truth 32 |value| _mm256_set1_epi8(value.byte() as i8),
        |a, b| _mm256_or_si256(a, b), _mm256_and_si256(a, b), _mm256_and_si256(a, b), _mm256_or_si256(a, b);
}

/// Products modulo 2^64, of halves: the high halves only matter where they meet a low one.
#[inline]
#[target_feature(enable = "avx2")]
fn product_i64(a: __m256i, b: __m256i) -> __m256i {
    let crossed = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0b10_11_00_01>(b));
    let sums = _mm256_add_epi32(crossed, _mm256_srli_epi64::<32>(crossed));
    _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(sums))
}
