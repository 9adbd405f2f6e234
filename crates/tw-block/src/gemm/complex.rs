//! Complex numbers: real parts in one register, imaginary parts in another.

use tw_ir::dtype::Complex;

use super::vector::{Arithmetic, Isa, Lanes, Number, Vector};

/// Registers whose even and odd lanes can be taken apart.
pub(crate) trait Split: Vector {
    /// The even and the odd lanes of two registers, in an order of its own.
    fn split(first: Self, second: Self) -> (Self, Self);
    /// Undoes `split`.
    fn join(even: Self, odd: Self) -> (Self, Self);
    /// `sum - self * other`, rounded once.
    fn sub_mul(self, other: Self, sum: Self) -> Self;
}

/// A vector of complex numbers.
#[derive(Clone, Copy)]
pub(crate) struct Parts<V> {
    re: V,
    im: V,
}

impl<V: Split> Arithmetic for Parts<V> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Parts { re: self.re.add(other.re), im: self.im.add(other.im) }
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let re = self.im.sub_mul(other.im, self.re.mul(other.re));
        Parts { re, im: self.im.mul_add(other.re, self.re.mul(other.im)) }
    }
    #[inline(always)]
    fn mul_add(self, other: Self, sum: Self) -> Self {
        let re = self.im.sub_mul(other.im, self.re.mul_add(other.re, sum.re));
        Parts { re, im: self.im.mul_add(other.re, self.re.mul_add(other.im, sum.im)) }
    }
}

impl<V: Split> Vector for Parts<V> {
    type Element = Complex<V::Element>;
    const LANES: usize = V::LANES;
    #[inline(always)]
    unsafe fn load(from: *const Self::Element) -> Self {
        let from = from.cast::<V::Element>();
        // SAFETY: a complex number is two parts without a gap, so there are twice as many of these.
        let (re, im) = unsafe { V::split(V::load(from), V::load(from.add(V::LANES))) };
        Parts { re, im }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut Self::Element) {
        let to = to.cast::<V::Element>();
        let (first, second) = V::join(self.re, self.im);
        // SAFETY: as for `load`.
        unsafe {
            first.store(to);
            second.store(to.add(V::LANES));
        }
    }
    #[inline(always)]
    unsafe fn splat(value: Self::Element) -> Self {
        // SAFETY: the caller vouches for the registers.
        unsafe { Parts { re: V::splat(value.re), im: V::splat(value.im) } }
    }
}

macro_rules! complex {
    ($($part:ident $terms:literal;)*) => {
        $(impl Number for Complex<$part> {
            const TERMS: usize = $terms;
            type Vector<I: Isa> = complex!(@register $part I);
        }
        impl Arithmetic for Complex<$part> {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                let re = (-self.im).mul_add(other.im, self.re * other.re);
                Complex { re, im: self.im.mul_add(other.re, self.re * other.im) }
            }
            #[inline(always)]
            fn mul_add(self, other: Self, sum: Self) -> Self {
                let re = (-self.im).mul_add(other.im, self.re.mul_add(other.re, sum.re));
                Complex { re, im: self.im.mul_add(other.re, self.re.mul_add(other.im, sum.im)) }
            }
        }
        impl<const N: usize> Split for Lanes<$part, N> {
            #[inline(always)]
            fn split(first: Self, second: Self) -> (Self, Self) {
                let lane = |k: usize| if k < N { first.0[k] } else { second.0[k - N] };
                (Lanes(std::array::from_fn(|k| lane(2 * k))), Lanes(std::array::from_fn(|k| lane(2 * k + 1))))
            }
            #[inline(always)]
            fn join(even: Self, odd: Self) -> (Self, Self) {
                let lane = |k: usize| if k % 2 == 0 { even.0[k / 2] } else { odd.0[k / 2] };
                (Lanes(std::array::from_fn(lane)), Lanes(std::array::from_fn(|k| lane(k + N))))
            }
            #[inline(always)]
            fn sub_mul(self, other: Self, sum: Self) -> Self {
                Lanes(std::array::from_fn(|k| (-self.0[k]).mul_add(other.0[k], sum.0[k])))
            }
        })*
    };
    (@register f32 $isa:ident) => { Parts<$isa::F32> };
    (@register f64 $isa:ident) => { Parts<$isa::F64> };
}
complex! {
    f32 256;
    f64 192;
}
