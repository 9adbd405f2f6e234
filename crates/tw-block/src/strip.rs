//! Scalar code evaluated strip by strip.
//!
//! A strip is a short run of elements, small enough that every intermediate value stays in the nearest cache. Each operation of the code
//! becomes one loop over the strip, which the compiler turns into vector instructions. A value that is the same for all elements of a strip
//! is computed once, as a scalar.
//!
//! Every operation gives the bits of [`tw_ir::scalar::eval_unary`] and its siblings.

use std::cell::Cell;

use tw_ir::{Buffer, DType, Scalar, Slice};

pub(crate) use tw_ir::dtype::Element;
pub(crate) use tw_ir::with_dtype;

mod code;
mod eval;
mod extremum;
mod moments;
mod ops;
mod reduce;

pub(crate) use code::{RegisterPlan, StripCode};
pub(crate) use eval::{Direct, convert};
pub(crate) use extremum::{Extremum, Ordered, compete_each};
pub(crate) use moments::{AllSums, Moments, Real, merge_groups};
pub(crate) use ops::{copy, select};
pub(crate) use reduce::{Cascade, Foldable, Monoid, ROWS_AT_ONCE, combine};

/// Elements per strip. Shorter strips pay more for each step, longer ones leave the nearest caches; this is where neither shows.
pub(crate) const STRIP: usize = 1024;

/// Elements per strip where nothing is computed on the way.
pub(crate) const LONG_STRIP: usize = 16 * STRIP;

/// The elements of one value over a strip.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a, T> {
    /// One per element.
    Each(&'a [T]),
    /// One for all.
    Same(T),
}

impl<'a, T: Copy> Values<'a, T> {
    /// The part of a strip.
    pub(crate) fn part(self, range: std::ops::Range<usize>) -> Values<'a, T> {
        match self {
            Values::Each(values) => Values::Each(&values[range]),
            same => same,
        }
    }

    /// One element.
    #[inline]
    pub(crate) fn at(self, k: usize) -> T {
        match self {
            Values::Each(values) => values[k],
            Values::Same(value) => value,
        }
    }
}

macro_rules! lanes {
    (() $($variant:ident $type:ty;)*) => {
        /// The elements of a value of any type over a strip.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Lane<'a> {
            $($variant(Values<'a, $type>),)*
        }

        impl<'a> Lane<'a> {
            /// One value for all elements.
            pub(crate) fn same(value: Scalar) -> Lane<'a> {
                match value.stored() {
                    $(Scalar::$variant(value) => Lane::$variant(Values::Same(value)),)*
                    other => unreachable!("{other} is not stored"),
                }
            }

            /// Consecutive elements of a buffer.
            pub(crate) fn slice(buffer: &'a Buffer, range: std::ops::Range<usize>) -> Lane<'a> {
                Lane::of(buffer.as_slice(), range)
            }

            /// Consecutive elements that are lent.
            pub(crate) fn of(elements: Slice<'a>, range: std::ops::Range<usize>) -> Lane<'a> {
                match elements {
                    $(Slice::$variant(values) => Lane::$variant(Values::Each(&values[range])),)*
                }
            }
        }

        /// The vectors that hold intermediate values, per type.
        #[derive(Debug, Default)]
        #[allow(non_snake_case, reason = "fields are made from the list of types")]
        pub(crate) struct Registers {
            $($variant: Vec<Register<$type>>,)*
        }

        $(impl InRegisters for $type {
            #[inline]
            fn of_lane<'a>(lane: Lane<'a>) -> Values<'a, Self> {
                match lane {
                    Lane::$variant(values) => values,
                    _ => Values::Same(Self::default()),
                }
            }
            #[inline]
            fn lane(values: Values<'_, Self>) -> Lane<'_> {
                Lane::$variant(values)
            }
            #[inline]
            fn file(registers: &Registers) -> &[Register<Self>] {
                &registers.$variant
            }
            #[inline]
            fn file_mut(registers: &mut Registers) -> &mut Vec<Register<Self>> {
                &mut registers.$variant
            }
        })*
    };
}
tw_ir::for_physical_types!([lanes], ());

/// Runs the same code for whichever type a [`Lane`] holds.
macro_rules! with_lane {
    ($lane:expr, $values:ident => $body:expr) => {
        tw_ir::for_physical_types!([$crate::strip::with_lane], ($lane, $values, $body))
    };
    (($lane:expr, $values:ident, $body:expr) $($variant:ident $type:ty;)*) => {
        match $lane {
            $($crate::strip::Lane::$variant($values) => $body,)*
        }
    };
}
pub(crate) use with_lane;

impl Lane<'_> {
    /// The value, if it is the same for all elements.
    pub(crate) fn as_same(self) -> Option<Scalar> {
        fn same<T: Element>(values: Values<'_, T>) -> Option<Scalar> {
            match values {
                Values::Same(value) => Some(value.to_scalar()),
                Values::Each(_) => None,
            }
        }
        with_lane!(self, values => same(values))
    }
}

/// Element types as strips know them: all of them.
pub(crate) trait InRegisters: Element {
    /// The values of a lane of this type; zero if it holds another type.
    fn of_lane<'a>(lane: Lane<'a>) -> Values<'a, Self>;
    /// As a lane.
    fn lane(values: Values<'_, Self>) -> Lane<'_>;
    /// The registers of this type.
    fn file(registers: &Registers) -> &[Register<Self>];
    /// The registers of this type, for writing.
    fn file_mut(registers: &mut Registers) -> &mut Vec<Register<Self>>;
}

/// A vector of one strip, or one value for all of it.
#[derive(Debug, Default)]
pub(crate) struct Register<T> {
    values: Vec<T>,
    same: Option<T>,
}

/// Names a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisterId {
    pub(crate) dtype: DType,
    pub(crate) index: u32,
}

impl Registers {
    /// Makes sure that registers up to the planned numbers exist.
    pub(crate) fn prepare(&mut self, plan: &RegisterPlan) {
        for dtype in DType::PHYSICAL {
            let n = plan.count(dtype);
            if n == 0 {
                continue;
            }
            with_dtype!(dtype, T => {
                let file = T::file_mut(self);
                if file.len() < n {
                    file.resize_with(n, Register::default);
                }
            });
        }
    }

    /// The vector of a register, to be filled with one value per element.
    pub(crate) fn vector<T: InRegisters>(&mut self, index: u32, len: usize) -> &mut [T] {
        let register = &mut T::file_mut(self)[index as usize];
        register.same = None;
        if register.values.len() < len {
            register.values.resize(len.max(STRIP), T::default());
        }
        &mut register.values[..len]
    }

    /// Takes the vector of a register out, so that others can be read while it is filled. [`Registers::put_vector`] brings it back.
    pub(crate) fn take_vector<T: InRegisters>(&mut self, index: u32, len: usize) -> Vec<T> {
        self.vector::<T>(index, len);
        std::mem::take(&mut T::file_mut(self)[index as usize].values)
    }

    /// Brings a vector back.
    pub(crate) fn put_vector<T: InRegisters>(&mut self, index: u32, vector: Vec<T>) {
        T::file_mut(self)[index as usize].values = vector;
    }

    /// Gives a register one value for all elements.
    pub(crate) fn set_same(&mut self, register: RegisterId, value: Scalar) {
        with_dtype!(register.dtype, T => {
            T::file_mut(self)[register.index as usize].same = Some(T::from_scalar(value));
        })
    }

    /// The values of a register.
    pub(crate) fn values<T: InRegisters>(&self, index: u32, len: usize) -> Values<'_, T> {
        let register = &T::file(self)[index as usize];
        match register.same {
            Some(value) => Values::Same(value),
            None => Values::Each(&register.values[..len]),
        }
    }

    /// The values of a register of any type.
    pub(crate) fn lane(&self, register: RegisterId, len: usize) -> Lane<'_> {
        with_dtype!(register.dtype, T => T::lane(self.values(register.index, len)))
    }
}

thread_local! {
    static REGISTERS: Cell<Option<Box<Registers>>> = const { Cell::new(None) };
}

/// Runs code with the registers of this thread.
pub(crate) fn with_registers<R>(plan: &RegisterPlan, f: impl FnOnce(&mut Registers) -> R) -> R {
    let mut registers = REGISTERS.take().unwrap_or_default();
    registers.prepare(plan);
    let result = f(&mut registers);
    REGISTERS.set(Some(registers));
    result
}
