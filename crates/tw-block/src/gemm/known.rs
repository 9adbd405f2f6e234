//! Semirings that have kernels of their own, chosen at run time.

use std::marker::PhantomData;

use tw_ir::dtype::{C64, C128};
use tw_ir::{BinaryOp, DType};

use super::semiring::{Add, ComplexProduct, Max, Min, Mul, Operation, Pair, QuickMax, QuickMin, SumProduct};
use super::vector::{Number, Truth};
use super::{Batch, Matrix, Products, multiply};

/// Below this many rows or columns it costs more to look for NaN than it saves.
const WORTH_LOOKING: usize = 16;

/// A pair of operations that is compiled into tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    SumProduct,
    MinPlus,
    MaxPlus,
    MinTimes,
    MaxTimes,
    MinMax,
    MaxMin,
}

impl Known {
    /// The semiring of two operations on a type, if it has a kernel.
    pub(crate) fn of(aggregate: BinaryOp, product: BinaryOp, dtype: DType) -> Option<Known> {
        use BinaryOp::*;
        if dtype == DType::Bool {
            return match (aggregate, product) {
                (Add | Or | Max, Mul | And | Min) => Some(Known::MaxMin),
                (Mul | And | Min, Add | Or | Max) => Some(Known::MinMax),
                _ => None,
            };
        }
        let known = match (aggregate, product) {
            (Add, Mul) => Known::SumProduct,
            (Min, Add) => Known::MinPlus,
            (Max, Add) => Known::MaxPlus,
            (Min, Mul) => Known::MinTimes,
            (Max, Mul) => Known::MaxTimes,
            (Min, Max) => Known::MinMax,
            (Max, Min) => Known::MaxMin,
            _ => return None,
        };
        let has_kernel = match dtype {
            DType::F32 | DType::F64 => true,
            DType::I32 | DType::I64 => matches!(known, Known::SumProduct | Known::MinPlus | Known::MaxPlus),
            DType::C64 | DType::C128 => known == Known::SumProduct,
            // Halves are converted before they are computed with. Short integers are left to strips.
            _ => false,
        };
        has_kernel.then_some(known)
    }
}

/// The factors of a product, and whether the result is added to the output.
pub(crate) struct Task<'a, T> {
    /// Rows, columns and terms.
    pub(crate) dims: (usize, usize, usize),
    pub(crate) out: (&'a mut [T], Matrix),
    pub(crate) left: (&'a [T], Matrix),
    pub(crate) right: (&'a [T], Matrix),
    pub(crate) batch: Batch,
    /// True if the product is added to the output.
    pub(crate) accumulate: bool,
}

impl<T> Task<'_, T> {
    /// Panics unless every element lies in its slice.
    pub(super) fn check(&self) {
        let ((m, n, k), batch) = (self.dims, self.batch);
        self.out.1.check(m, n, (batch.n, batch.out), self.out.0.len());
        self.left.1.check(m, k, (batch.n, batch.left), self.left.0.len());
        self.right.1.check(k, n, (batch.n, batch.right), self.right.0.len());
    }
}

/// An element type with kernels for known semirings.
pub(crate) trait Multiply: Number {
    /// Multiplies over a semiring whose sums start from `identity`.
    fn multiply(known: Known, identity: Self, task: Task<'_, Self>);
    /// As `multiply`, by a provider for sums of products if it knows the type.
    fn multiply_by(provider: &dyn Products, known: Known, identity: Self, task: Task<'_, Self>) {
        let _ = provider;
        Self::multiply(known, identity, task);
    }
}

macro_rules! floats {
    ($($type:ident $method:ident)*) => {
        $(impl Multiply for $type {
            fn multiply_by(provider: &dyn Products, known: Known, identity: $type, task: Task<'_, $type>) {
                match known {
                    Known::SumProduct => provider.$method(task),
                    _ => $type::multiply(known, identity, task),
                }
            }
            fn multiply(known: Known, identity: $type, task: Task<'_, $type>) {
                match known {
                    Known::SumProduct => multiply(SumProduct(PhantomData), task),
                    Known::MinPlus => fold::<$type, Min, QuickMin, Add>(known, identity, task),
                    Known::MaxPlus => fold::<$type, Max, QuickMax, Add>(known, identity, task),
                    Known::MinTimes => fold::<$type, Min, QuickMin, Mul>(known, identity, task),
                    Known::MaxTimes => fold::<$type, Max, QuickMax, Mul>(known, identity, task),
                    Known::MinMax => fold::<$type, Min, QuickMin, Max>(known, identity, task),
                    Known::MaxMin => fold::<$type, Max, QuickMax, Min>(known, identity, task),
                }
            }
        })*
    };
}
floats! { f32 multiply_f32 f64 multiply_f64 }

macro_rules! integers {
    ($($type:ident)*) => {
        $(impl Multiply for $type {
            fn multiply(known: Known, identity: $type, task: Task<'_, $type>) {
                match known {
                    Known::SumProduct => multiply(Pair::<$type, Add, Add, Mul>::new(identity), task),
                    Known::MinPlus => multiply(Pair::<$type, Min, Min, Add>::new(identity), task),
                    Known::MaxPlus => multiply(Pair::<$type, Max, Max, Add>::new(identity), task),
                    _ => no_kernel(known),
                }
            }
        })*
    };
}
integers! { i32 i64 }

macro_rules! complex {
    ($($type:ident $method:ident)*) => {
        $(impl Multiply for $type {
            fn multiply_by(provider: &dyn Products, known: Known, identity: $type, task: Task<'_, $type>) {
                match known {
                    Known::SumProduct => provider.$method(task),
                    _ => $type::multiply(known, identity, task),
                }
            }
            fn multiply(known: Known, _: $type, task: Task<'_, $type>) {
                match known {
                    Known::SumProduct => multiply(ComplexProduct(PhantomData), task),
                    _ => no_kernel(known),
                }
            }
        })*
    };
}
complex! { C64 multiply_c64 C128 multiply_c128 }

/// [`Known::of`] says which types have which kernels.
fn no_kernel(known: Known) -> ! {
    unreachable!("{known:?} of a type that has no kernel for it")
}

impl Multiply for Truth {
    fn multiply(known: Known, identity: Truth, task: Task<'_, Truth>) {
        match known {
            Known::MinMax => multiply(Pair::<Truth, Mul, Mul, Add>::new(identity), task),
            Known::MaxMin => multiply(Pair::<Truth, Add, Add, Mul>::new(identity), task),
            _ => no_kernel(known),
        }
    }
}

/// Folds by the operation `P`, or by its quick form `Q` if no term can be NaN. Both give the same bits then.
fn fold<T: Number, P: Operation, Q: Operation, M: Operation>(known: Known, identity: T, task: Task<'_, T>) {
    let (m, n, k) = task.dims;
    let look = T::HAS_NAN && m >= WORTH_LOOKING && n >= WORTH_LOOKING;
    let never_nan = look && {
        let left = Specials::of(task.left.0, task.left.1, (m, k), (task.batch.n, task.batch.left));
        let right = Specials::of(task.right.0, task.right.1, (k, n), (task.batch.n, task.batch.right));
        left.terms_are_numbers(right, known)
    };
    if never_nan {
        multiply(Pair::<T, P, Q, M>::new(identity), task);
    } else {
        multiply(Pair::<T, P, P, M>::new(identity), task);
    }
}

/// Which special values a matrix holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Specials {
    nan: bool,
    highest: bool,
    lowest: bool,
}

impl Specials {
    fn of<T: Number>(
        data: &[T],
        at: Matrix,
        (rows, columns): (usize, usize),
        (n_matrices, step): (usize, usize),
    ) -> Specials {
        let (at, rows, columns) =
            if at.row < at.column { (at.transposed(), columns, rows) } else { (at, rows, columns) };
        let mut found = Specials::default();
        for matrix in 0..if step == 0 { 1 } else { n_matrices } {
            for row in 0..rows {
                let start = at.offset + matrix * step + row * at.row;
                let line = &data[start..start + (columns - 1) * at.column + 1];
                match at.column {
                    0 | 1 => line.iter().for_each(|&value| found.add(value)),
                    column => line.iter().step_by(column).for_each(|&value| found.add(value)),
                }
            }
        }
        found
    }

    #[inline(always)]
    fn add<T: Number>(&mut self, value: T) {
        self.nan |= value.is_nan();
        self.highest |= value.is_highest();
        self.lowest |= value.is_lowest();
    }

    /// True if no term made of these values and those is NaN.
    fn terms_are_numbers(self, other: Specials, known: Known) -> bool {
        let numbers = !self.nan && !other.nan;
        match known {
            Known::MinMax | Known::MaxMin => numbers,
            Known::MinPlus | Known::MaxPlus => {
                numbers && !(self.highest && other.lowest) && !(self.lowest && other.highest)
            }
            Known::SumProduct | Known::MinTimes | Known::MaxTimes => {
                numbers && !(self.highest || self.lowest || other.highest || other.lowest)
            }
        }
    }
}
