//! Scalar code evaluated strip by strip.
//!
//! A strip is a short run of elements, small enough that every intermediate value stays in the nearest cache. Each operation of the code
//! becomes one loop over the strip, which the compiler turns into vector instructions. A value that is the same for all elements of a strip
//! is computed once, as a scalar.
//!
//! Every operation gives the bits of [`tw_ir::scalar::eval_unary`] and its siblings.

use std::cell::Cell;

use tw_ir::{Buffer, DType, Scalar};

mod code;
mod eval;
mod extremum;
mod moments;
mod ops;
mod reduce;

pub(crate) use code::{RegisterPlan, StripCode};
pub(crate) use eval::Direct;
pub(crate) use extremum::{Extremum, Ordered, compete_each};
pub(crate) use moments::{AllSums, Moments, Real};
pub(crate) use ops::{copy, select};
pub(crate) use reduce::{Cascade, Foldable, Monoid, combine};

/// Elements per strip. Shorter strips pay more for each step, longer ones leave the nearest caches; this is where neither shows.
pub(crate) const STRIP: usize = 1024;

/// Elements per strip where nothing is computed on the way.
pub(crate) const LONG_STRIP: usize = 4 * STRIP;

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

/// The elements of a value of any type over a strip.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lane<'a> {
    Bool(Values<'a, bool>),
    I64(Values<'a, i64>),
    F32(Values<'a, f32>),
    F64(Values<'a, f64>),
}

/// Runs the same code for whichever type a [`Lane`] holds.
macro_rules! with_lane {
    ($lane:expr, $values:ident => $body:expr) => {
        match $lane {
            $crate::strip::Lane::Bool($values) => $body,
            $crate::strip::Lane::I64($values) => $body,
            $crate::strip::Lane::F32($values) => $body,
            $crate::strip::Lane::F64($values) => $body,
        }
    };
}
pub(crate) use with_lane;

/// Runs code with a name for the element type of a dtype.
macro_rules! with_dtype {
    ($dtype:expr, $type:ident => $body:expr) => {
        match $dtype {
            tw_ir::DType::Bool => {
                type $type = bool;
                $body
            }
            tw_ir::DType::I64 => {
                type $type = i64;
                $body
            }
            tw_ir::DType::F32 => {
                type $type = f32;
                $body
            }
            tw_ir::DType::F64 => {
                type $type = f64;
                $body
            }
        }
    };
}
pub(crate) use with_dtype;

impl<'a> Lane<'a> {
    /// One value for all elements.
    pub(crate) fn same(value: Scalar) -> Lane<'a> {
        match value {
            Scalar::Bool(v) => Lane::Bool(Values::Same(v)),
            Scalar::I64(v) => Lane::I64(Values::Same(v)),
            Scalar::F32(v) => Lane::F32(Values::Same(v)),
            Scalar::F64(v) => Lane::F64(Values::Same(v)),
        }
    }

    /// Consecutive elements of a buffer.
    pub(crate) fn slice(buffer: &'a Buffer, range: std::ops::Range<usize>) -> Lane<'a> {
        match buffer {
            Buffer::Bool(v) => Lane::Bool(Values::Each(&v[range])),
            Buffer::I64(v) => Lane::I64(Values::Each(&v[range])),
            Buffer::F32(v) => Lane::F32(Values::Each(&v[range])),
            Buffer::F64(v) => Lane::F64(Values::Each(&v[range])),
        }
    }

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

/// What the four element types have in common here.
pub(crate) trait Element: Copy + Default + std::fmt::Debug + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// As a scalar of the same type.
    fn to_scalar(self) -> Scalar;
    /// From a scalar, converted if it is of another type.
    fn from_scalar(value: Scalar) -> Self;
    /// The elements of a buffer; none if it holds another type.
    fn of(buffer: &Buffer) -> &[Self];
    /// The elements of a buffer for writing; none if it holds another type.
    fn of_mut(buffer: &mut Buffer) -> &mut [Self];
    /// The values of a lane of this type; zero if it holds another type.
    fn of_lane<'a>(lane: Lane<'a>) -> Values<'a, Self>;
    /// As a lane.
    fn lane(values: Values<'_, Self>) -> Lane<'_>;
    /// The registers of this type.
    fn file(registers: &Registers) -> &[Register<Self>];
    /// The registers of this type, for writing.
    fn file_mut(registers: &mut Registers) -> &mut Vec<Register<Self>>;
}

macro_rules! elements {
    ($($type:ident $variant:ident $file:ident $from:expr;)*) => {
        /// The vectors that hold intermediate values, per type.
        #[derive(Debug, Default)]
        pub(crate) struct Registers {
            $($file: Vec<Register<$type>>,)*
        }
        $(impl Element for $type {
            const DTYPE: DType = DType::$variant;
            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar::$variant(self)
            }
            #[inline]
            fn from_scalar(value: Scalar) -> Self {
                $from(value)
            }
            #[inline]
            fn of(buffer: &Buffer) -> &[Self] {
                match buffer {
                    Buffer::$variant(values) => values,
                    _ => &[],
                }
            }
            #[inline]
            fn of_mut(buffer: &mut Buffer) -> &mut [Self] {
                match buffer {
                    Buffer::$variant(values) => values,
                    _ => &mut [],
                }
            }
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
                &registers.$file
            }
            #[inline]
            fn file_mut(registers: &mut Registers) -> &mut Vec<Register<Self>> {
                &mut registers.$file
            }
        })*
    };
}
elements! {
    bool Bool bools |value: Scalar| value.is_true();
    i64 I64 integers Scalar::as_i64;
    f32 F32 singles |value: Scalar| match value.cast(DType::F32) { Scalar::F32(v) => v, other => other.as_f64() as f32 };
    f64 F64 doubles Scalar::as_f64;
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
        for dtype in DType::ALL {
            let n = plan.count(dtype);
            with_dtype!(dtype, T => {
                let file = T::file_mut(self);
                if file.len() < n {
                    file.resize_with(n, Register::default);
                }
            });
        }
    }

    /// The vector of a register, to be filled with one value per element.
    pub(crate) fn vector<T: Element>(&mut self, index: u32, len: usize) -> &mut [T] {
        let register = &mut T::file_mut(self)[index as usize];
        register.same = None;
        if register.values.len() < len {
            register.values.resize(len.max(STRIP), T::default());
        }
        &mut register.values[..len]
    }

    /// Takes the vector of a register out, so that others can be read while it is filled. [`Registers::put_vector`] brings it back.
    pub(crate) fn take_vector<T: Element>(&mut self, index: u32, len: usize) -> Vec<T> {
        self.vector::<T>(index, len);
        std::mem::take(&mut T::file_mut(self)[index as usize].values)
    }

    /// Brings a vector back.
    pub(crate) fn put_vector<T: Element>(&mut self, index: u32, vector: Vec<T>) {
        T::file_mut(self)[index as usize].values = vector;
    }

    /// Gives a register one value for all elements.
    pub(crate) fn set_same(&mut self, register: RegisterId, value: Scalar) {
        with_dtype!(register.dtype, T => {
            T::file_mut(self)[register.index as usize].same = Some(T::from_scalar(value));
        })
    }

    /// What a register holds.
    pub(crate) fn values<T: Element>(&self, index: u32, len: usize) -> Values<'_, T> {
        let register = &T::file(self)[index as usize];
        match register.same {
            Some(value) => Values::Same(value),
            None => Values::Each(&register.values[..len]),
        }
    }

    /// What a register holds, of any type.
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
