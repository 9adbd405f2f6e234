//! Registers of x86-64.

use std::arch::x86_64::*;

mod integers;

use super::complex::Split;
use super::vector::{Arithmetic, Isa, Vector};
use integers::{I32x8, I64x4, Truthx32};

/// Processors with AVX2 and FMA: sixteen registers of 256 bits.
pub(crate) struct Avx2;
impl Isa for Avx2 {
    type F32 = F32x8;
    type F64 = F64x4;
    type I32 = I32x8;
    type I64 = I64x4;
    type Truth = Truthx32;
}

/// Processors with AVX-512: thirty-two registers of 512 bits.
pub(crate) struct Avx512;
impl Isa for Avx512 {
    type F32 = F32x16;
    type F64 = F64x8;
    type I32 = I32x8;
    type I64 = I64x4;
    type Truth = Truthx32;
}

macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident($register:ident) $element:ident $lanes:literal
        $load:ident $store:ident $splat:ident $add:ident $mul:ident $fma:ident $min:ident $max:ident $keep_nan:ident;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name($register);
        impl Arithmetic for $name {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: the vectors exist, so the processor has the instructions. So it is for every operation below.
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: see `add`.
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            fn mul_add(self, other: Self, sum: Self) -> Self {
                // SAFETY: see `add`.
                Self(unsafe { $fma(self.0, other.0, sum.0) })
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                // The instruction gives the second operand if either is NaN.
                // SAFETY: see `add`.
                Self(unsafe { $keep_nan(self.0, $min(self.0, other.0)) })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                // SAFETY: see `add`.
                Self(unsafe { $keep_nan(self.0, $max(self.0, other.0)) })
            }
            #[inline(always)]
            fn quick_min(self, other: Self) -> Self {
                // SAFETY: see `add`.
                Self(unsafe { $min(self.0, other.0) })
            }
            #[inline(always)]
            fn quick_max(self, other: Self) -> Self {
                // SAFETY: see `add`.
                Self(unsafe { $max(self.0, other.0) })
            }
        }
        impl Vector for $name {
            type Element = $element;
            const LANES: usize = $lanes;
            #[inline(always)]
            unsafe fn load(from: *const $element) -> Self {
                // SAFETY: the caller vouches for the register and for the elements; alignment does not matter.
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $element) {
                // SAFETY: as for `load`.
                unsafe { $store(to, self.0) }
            }
            #[inline(always)]
            unsafe fn splat(value: $element) -> Self {
                // SAFETY: the caller vouches for the register.
                Self(unsafe { $splat(value) })
            }
        })*
    };
}

macro_rules! split {
    ($($name:ident $even:path, $odd:path, $first:ident $second:ident $sub_mul:ident;)*) => {
        $(impl Split for $name {
            #[inline(always)]
            fn split(first: Self, second: Self) -> (Self, Self) {
                // SAFETY: the vectors exist, so the processor has the instructions. So it is below.
                unsafe { (Self($even(first.0, second.0)), Self($odd(first.0, second.0))) }
            }
            #[inline(always)]
            fn join(even: Self, odd: Self) -> (Self, Self) {
                // SAFETY: see `split`.
                unsafe { (Self($first(even.0, odd.0)), Self($second(even.0, odd.0))) }
            }
            #[inline(always)]
            fn sub_mul(self, other: Self, sum: Self) -> Self {
                // SAFETY: see `split`.
                Self(unsafe { $sub_mul(self.0, other.0, sum.0) })
            }
        })*
    };
}
/// Even and odd lanes of two registers, in steps of 128 bits.
const EVEN: i32 = 0b10_00_10_00;
const ODD: i32 = 0b11_01_11_01;
split! {
    F32x8 _mm256_shuffle_ps::<EVEN>, _mm256_shuffle_ps::<ODD>, _mm256_unpacklo_ps _mm256_unpackhi_ps _mm256_fnmadd_ps;
    F64x4 _mm256_unpacklo_pd, _mm256_unpackhi_pd, _mm256_unpacklo_pd _mm256_unpackhi_pd _mm256_fnmadd_pd;
    F32x16 _mm512_shuffle_ps::<EVEN>, _mm512_shuffle_ps::<ODD>, _mm512_unpacklo_ps _mm512_unpackhi_ps _mm512_fnmadd_ps;
    F64x8 _mm512_unpacklo_pd, _mm512_unpackhi_pd, _mm512_unpacklo_pd _mm512_unpackhi_pd _mm512_fnmadd_pd;
}

/// `first` where it is NaN, otherwise `then`.
macro_rules! keep_nan {
    ($($name:ident($register:ident) [$($feature:literal)?] |$first:ident, $then:ident| $body:expr;)*) => {
        $(#[inline]
        $(#[target_feature(enable = $feature)])?
        fn $name($first: $register, $then: $register) -> $register {
            $body
        })*
    };
}
keep_nan! {
    keep_nan_f32x8(__m256) ["avx2"] |first, then| _mm256_blendv_ps(then, first, _mm256_cmp_ps::<_CMP_UNORD_Q>(first, first));
    keep_nan_f64x4(__m256d) ["avx2"] |first, then| _mm256_blendv_pd(then, first, _mm256_cmp_pd::<_CMP_UNORD_Q>(first, first));
    keep_nan_f32x16(__m512) ["avx512f"]
        |first, then| _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(first, first), then, first);
    keep_nan_f64x8(__m512d) ["avx512f"]
        |first, then| _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>(first, first), then, first);
}

registers! {
    /// Eight singles.
    F32x8(__m256) f32 8 _mm256_loadu_ps _mm256_storeu_ps _mm256_set1_ps _mm256_add_ps _mm256_mul_ps _mm256_fmadd_ps
        _mm256_min_ps _mm256_max_ps keep_nan_f32x8;
    /// Four doubles.
    F64x4(__m256d) f64 4 _mm256_loadu_pd _mm256_storeu_pd _mm256_set1_pd _mm256_add_pd _mm256_mul_pd _mm256_fmadd_pd
        _mm256_min_pd _mm256_max_pd keep_nan_f64x4;
    /// Sixteen singles.
    F32x16(__m512) f32 16 _mm512_loadu_ps _mm512_storeu_ps _mm512_set1_ps _mm512_add_ps _mm512_mul_ps _mm512_fmadd_ps
        _mm512_min_ps _mm512_max_ps keep_nan_f32x16;
    /// Eight doubles.
    F64x8(__m512d) f64 8 _mm512_loadu_pd _mm512_storeu_pd _mm512_set1_pd _mm512_add_pd _mm512_mul_pd _mm512_fmadd_pd
        _mm512_min_pd _mm512_max_pd keep_nan_f64x8;
}
