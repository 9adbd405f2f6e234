//! Elements and vectors of elements, with the operations that semirings are made of.
//!
//! A kernel is written once, over these traits. Every vector computes in each lane what the element computes, so all versions of a kernel
//! give the same bits.

use tw_ir::scalar::math;

use super::complex::Split;

/// What can be done with an element, or with a vector in every lane.
pub(crate) trait Arithmetic: Copy {
    /// Sum; integers wrap, of truth values it is `or`.
    fn add(self, other: Self) -> Self;
    /// Product; integers wrap, of truth values it is `and`.
    fn mul(self, other: Self) -> Self;
    /// `self * other + sum`; floats are rounded once.
    fn mul_add(self, other: Self, sum: Self) -> Self;
    /// The smaller; NaN wins, and of equals the second.
    fn min(self, _: Self) -> Self {
        no_order()
    }
    /// The larger; NaN wins, and of equals the second.
    fn max(self, _: Self) -> Self {
        no_order()
    }
    /// As `min`, if neither is NaN.
    fn quick_min(self, _: Self) -> Self {
        no_order()
    }
    /// As `max`, if neither is NaN.
    fn quick_max(self, _: Self) -> Self {
        no_order()
    }
}

/// What has no order is only added and multiplied: no semiring with a smaller or larger value is made for it.
fn no_order() -> ! {
    unreachable!("numbers without an order have no smaller one")
}

/// A vector register.
///
/// Its values exist only where the processor has such registers: the caller of [`Vector::load`] or [`Vector::splat`] guarantees that,
/// and arithmetic needs no further promise.
pub(crate) trait Vector: Arithmetic {
    /// The type of its elements.
    type Element: Copy;
    /// How many.
    const LANES: usize;
    /// Reads consecutive elements.
    ///
    /// # Safety
    /// The processor has such registers, and `from` is good for reading `LANES` elements.
    unsafe fn load(from: *const Self::Element) -> Self;
    /// Writes consecutive elements.
    ///
    /// # Safety
    /// `to` is good for writing `LANES` elements.
    unsafe fn store(self, to: *mut Self::Element);
    /// The same element in every lane.
    ///
    /// # Safety
    /// The processor has such registers.
    unsafe fn splat(value: Self::Element) -> Self;
}

/// An instruction set: which registers there are.
pub(crate) trait Isa {
    /// Singles.
    type F32: Split<Element = f32>;
    /// Doubles.
    type F64: Split<Element = f64>;
    /// Integers.
    type I32: Vector<Element = i32>;
    /// Long integers.
    type I64: Vector<Element = i64>;
    /// Truth values.
    type Truth: Vector<Element = Truth>;
}

/// Registers of any processor: arrays, which the compiler maps to what there is.
pub(crate) struct Portable;
impl Isa for Portable {
    type F32 = Lanes<f32, 4>;
    type F64 = Lanes<f64, 4>;
    type I32 = Lanes<i32, 4>;
    type I64 = Lanes<i64, 4>;
    type Truth = Lanes<Truth, 8>;
}

/// An element that kernels compute with.
pub(crate) trait Number: Arithmetic + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// Terms that are summed before they are added to the output. It shows in the bits, so it depends on nothing but the type.
    const TERMS: usize;
    /// True if two values may give NaN, or be it.
    const HAS_NAN: bool = false;
    /// True for NaN.
    fn is_nan(self) -> bool {
        false
    }
    /// True for infinity.
    fn is_highest(self) -> bool {
        false
    }
    /// True for minus infinity.
    fn is_lowest(self) -> bool {
        false
    }
    /// The registers that hold it.
    type Vector<I: Isa>: Vector<Element = Self>;
}

/// A truth value as the byte that a bool is: always 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Truth(u8);

impl From<bool> for Truth {
    fn from(value: bool) -> Truth {
        Truth(value as u8)
    }
}

impl Truth {
    /// 0 or 1.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn byte(self) -> u8 {
        self.0
    }

    /// Bools as truth values.
    pub(crate) fn slice(bools: &[bool]) -> &[Truth] {
        // SAFETY: both are a byte that is 0 or 1.
        unsafe { std::slice::from_raw_parts(bools.as_ptr().cast(), bools.len()) }
    }

    /// Bools as truth values to be overwritten.
    pub(crate) fn slice_mut(bools: &mut [bool]) -> &mut [Truth] {
        // SAFETY: as for `slice`: truth values are made from bools, by `and` and by `or`, and so are never another byte.
        unsafe { std::slice::from_raw_parts_mut(bools.as_mut_ptr().cast(), bools.len()) }
    }
}

macro_rules! floats {
    ($($type:ident $terms:literal $min:path, $max:path;)*) => {
        $(impl Number for $type {
            const TERMS: usize = $terms;
            const HAS_NAN: bool = true;
            #[inline(always)]
            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }
            #[inline(always)]
            fn is_highest(self) -> bool {
                self == $type::INFINITY
            }
            #[inline(always)]
            fn is_lowest(self) -> bool {
                self == $type::NEG_INFINITY
            }
            type Vector<I: Isa> = floats!(@register $type I);
        }
        impl Arithmetic for $type {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn mul_add(self, other: Self, sum: Self) -> Self {
                $type::mul_add(self, other, sum)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                $min(self, other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                $max(self, other)
            }
            #[inline(always)]
            fn quick_min(self, other: Self) -> Self {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn quick_max(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
        })*
    };
    (@register f32 $isa:ident) => { $isa::F32 };
    (@register f64 $isa:ident) => { $isa::F64 };
}
floats! {
    f32 384 math::min_f32, math::max_f32;
    f64 320 math::min_f64, math::max_f64;
}

macro_rules! exact {
    ($($type:ident $register:ident: |$a:ident, $b:ident| $add:expr, $mul:expr, $min:expr, $max:expr;)*) => {
        $(impl Number for $type {
            const TERMS: usize = 512;
            type Vector<I: Isa> = I::$register;
        }
        impl Arithmetic for $type {
            #[inline(always)]
            fn add(self, $b: Self) -> Self {
                let $a = self;
                $add
            }
            #[inline(always)]
            fn mul(self, $b: Self) -> Self {
                let $a = self;
                $mul
            }
            #[inline(always)]
            fn mul_add(self, other: Self, sum: Self) -> Self {
                sum.add(self.mul(other))
            }
            #[inline(always)]
            fn min(self, $b: Self) -> Self {
                let $a = self;
                $min
            }
            #[inline(always)]
            fn max(self, $b: Self) -> Self {
                let $a = self;
                $max
            }
            #[inline(always)]
            fn quick_min(self, other: Self) -> Self {
                Arithmetic::min(self, other)
            }
            #[inline(always)]
            fn quick_max(self, other: Self) -> Self {
                Arithmetic::max(self, other)
            }
        })*
    };
}
exact! {
    i32 I32: |a, b| a.wrapping_add(b), a.wrapping_mul(b), Ord::min(a, b), Ord::max(a, b);
    i64 I64: |a, b| a.wrapping_add(b), a.wrapping_mul(b), Ord::min(a, b), Ord::max(a, b);
    Truth Truth: |a, b| Truth(a.0 | b.0), Truth(a.0 & b.0), Truth(a.0 & b.0), Truth(a.0 | b.0);
}

/// A vector as an array.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Lanes<T, const N: usize>(pub(super) [T; N]);

impl<T: Arithmetic, const N: usize> Lanes<T, N> {
    #[inline(always)]
    fn zip(mut self, other: Self, f: impl Fn(T, T) -> T) -> Self {
        for lane in 0..N {
            self.0[lane] = f(self.0[lane], other.0[lane]);
        }
        self
    }
}

impl<T: Arithmetic, const N: usize> Arithmetic for Lanes<T, N> {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, T::add)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, T::mul)
    }
    #[inline(always)]
    fn mul_add(self, other: Self, mut sum: Self) -> Self {
        for lane in 0..N {
            sum.0[lane] = self.0[lane].mul_add(other.0[lane], sum.0[lane]);
        }
        sum
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, T::min)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, T::max)
    }
    #[inline(always)]
    fn quick_min(self, other: Self) -> Self {
        self.zip(other, T::quick_min)
    }
    #[inline(always)]
    fn quick_max(self, other: Self) -> Self {
        self.zip(other, T::quick_max)
    }
}

impl<T: Arithmetic, const N: usize> Vector for Lanes<T, N> {
    type Element = T;
    const LANES: usize = N;
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller vouches for `N` elements; an array of them needs no other alignment.
        Lanes(unsafe { from.cast::<[T; N]>().read() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as for `load`.
        unsafe { to.cast::<[T; N]>().write(self.0) }
    }
    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Lanes([value; N])
    }
}
