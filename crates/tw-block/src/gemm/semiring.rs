//! The two operations of a product.

use std::marker::PhantomData;

use super::blocked::{Product, Version, run_plain, run_shaped, run_split};
use super::vector::{Arithmetic, Number};

/// How terms are made, and how they meet.
pub(super) trait Semiring: Copy {
    /// The type of the elements.
    type Element: Number;
    /// True if a term has the same bits when its factors change places.
    const COMMUTES: bool = true;
    /// The identity of the addition.
    fn identity(self) -> Self::Element;
    /// Two sums as one.
    fn plus<X: Arithmetic>(self, first: X, second: X) -> X;
    /// A sum and one more term.
    fn step<X: Arithmetic>(self, sum: X, left: X, right: X) -> X;
    /// Computes products.
    ///
    /// # Safety
    /// As for [`run_shaped`].
    unsafe fn run(self, version: Version, product: Product<Self::Element>);
}

/// (+, x) of floats, with one rounding per term.
#[derive(Clone, Copy)]
pub(super) struct SumProduct<T>(pub(super) PhantomData<T>);

impl<T: Number> Semiring for SumProduct<T> {
    type Element = T;
    #[inline(always)]
    fn identity(self) -> T {
        T::default()
    }
    #[inline(always)]
    fn plus<X: Arithmetic>(self, first: X, second: X) -> X {
        first.add(second)
    }
    #[inline(always)]
    fn step<X: Arithmetic>(self, sum: X, left: X, right: X) -> X {
        left.mul_add(right, sum)
    }
    unsafe fn run(self, version: Version, product: Product<T>) {
        // SAFETY: the caller vouches for what is asked for.
        unsafe { run_shaped(version, self, product) }
    }
}

/// (+, x) of complex numbers, with one rounding for each product of parts.
#[derive(Clone, Copy)]
pub(super) struct ComplexProduct<T>(pub(super) PhantomData<T>);

impl<T: Number> Semiring for ComplexProduct<T> {
    type Element = T;
    // The products that make up an imaginary part are added one after the other.
    const COMMUTES: bool = false;
    #[inline(always)]
    fn identity(self) -> T {
        T::default()
    }
    #[inline(always)]
    fn plus<X: Arithmetic>(self, first: X, second: X) -> X {
        first.add(second)
    }
    #[inline(always)]
    fn step<X: Arithmetic>(self, sum: X, left: X, right: X) -> X {
        left.mul_add(right, sum)
    }
    unsafe fn run(self, version: Version, product: Product<T>) {
        // SAFETY: the caller vouches for what is asked for.
        unsafe { run_split(version, self, product) }
    }
}

/// An operation on two values, known when code is compiled.
pub(super) trait Operation: Copy {
    /// True if it has the same bits when its operands change places. Of two zeros, the smaller and the larger are the second one.
    const COMMUTES: bool;
    /// The operation.
    fn apply<X: Arithmetic>(a: X, b: X) -> X;
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident $method:ident $commutes:literal;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name;
        impl Operation for $name {
            const COMMUTES: bool = $commutes;
            #[inline(always)]
            fn apply<X: Arithmetic>(a: X, b: X) -> X {
                a.$method(b)
            }
        })*
    };
}
operations! {
    /// Sum.
    Add add true;
    /// Product.
    Mul mul true;
    /// The smaller.
    Min min false;
    /// The larger.
    Max max false;
    /// The smaller of values that are not NaN.
    QuickMin quick_min false;
    /// The larger of values that are not NaN.
    QuickMax quick_max false;
}

/// Any two operations. Terms are folded by `Q`, partial results by `P`: the same operation, but `Q` may rely on properties of the terms.
#[derive(Clone, Copy)]
pub(super) struct Pair<T, P, Q, M> {
    identity: T,
    operations: PhantomData<(P, Q, M)>,
}

impl<T, P, Q, M> Pair<T, P, Q, M> {
    /// The semiring whose sums start from `identity`.
    pub(super) fn new(identity: T) -> Self {
        Pair { identity, operations: PhantomData }
    }
}

impl<T: Number, P: Operation, Q: Operation, M: Operation> Semiring for Pair<T, P, Q, M> {
    type Element = T;
    const COMMUTES: bool = M::COMMUTES;
    #[inline(always)]
    fn identity(self) -> T {
        self.identity
    }
    #[inline(always)]
    fn plus<X: Arithmetic>(self, first: X, second: X) -> X {
        P::apply(first, second)
    }
    #[inline(always)]
    fn step<X: Arithmetic>(self, sum: X, left: X, right: X) -> X {
        Q::apply(sum, M::apply(left, right))
    }
    unsafe fn run(self, version: Version, product: Product<T>) {
        // SAFETY: the caller vouches for what is asked for.
        unsafe { run_plain(version, self, product) }
    }
}
