//! Element types.
//!
//! A [`DType`] gives the meaning of an element: bool, i8-i64, u8-u64, f16, bf16, f32, f64, c64, c128, `datetime64[unit]`, `timedelta64[unit]`. In memory there are fifteen physical
//! types; times are stored as i64. Kernels that only move data dispatch on the width of an element (1, 2, 4, 8 or 16 bytes), not on its type.

use std::fmt;
use std::str::FromStr;

pub mod cast;
mod promote;
mod scalar;
mod time;

pub use cast::CastFrom;
pub use half::{bf16, f16};
pub use num_complex::Complex;
pub use scalar::{Element, Scalar};
pub use time::{NAT, TimeUnit};

/// Two singles.
pub type C64 = Complex<f32>;
/// Two doubles.
pub type C128 = Complex<f64>;

/// Calls a macro with the list of physical types: a variant of [`DType`], [`Scalar`] and [`Buffer`](crate::Buffer), and its Rust type. The one place
/// where they are listed; whatever exists once per type is made from it.
#[macro_export]
macro_rules! for_physical_types {
    ([$($callback:tt)+], $arguments:tt) => {
        $($callback)+! {
            $arguments
            Bool bool; I8 i8; I16 i16; I32 i32; I64 i64; U8 u8; U16 u16; U32 u32; U64 u64;
            F16 $crate::dtype::f16; BF16 $crate::dtype::bf16; F32 f32; F64 f64;
            C64 $crate::dtype::C64; C128 $crate::dtype::C128;
        }
    };
}

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Truth value, one byte.
    Bool,
    /// 8-bit signed integer. Arithmetic of all integers wraps.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE half precision: storage, computed with in f32.
    F16,
    /// The upper half of a single: storage, computed with in f32.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Two singles: real and imaginary part.
    C64,
    /// Two doubles: real and imaginary part.
    C128,
    /// A point in time: a count of units since 1970-01-01, or NaT.
    DateTime(TimeUnit),
    /// A span of time: a count of units, or NaT.
    TimeDelta(TimeUnit),
}

macro_rules! physical_list {
    (() $($variant:ident $type:ty;)*) => {
        /// The types elements are stored as, in the order of [`DType::physical_index`].
        pub const PHYSICAL: [DType; DType::N_PHYSICAL] = [$(DType::$variant,)*];
    };
}

impl DType {
    /// The number of physical types.
    pub const N_PHYSICAL: usize = 15;

    for_physical_types!([physical_list], ());

    /// The physical type its elements lie in memory as: times as i64, all others as themselves.
    pub fn storage(self) -> DType {
        match self {
            DType::DateTime(_) | DType::TimeDelta(_) => DType::I64,
            other => other,
        }
    }

    /// Position of its storage in [`DType::PHYSICAL`], for tables.
    pub fn physical_index(self) -> usize {
        match self {
            DType::Bool => 0,
            DType::I8 => 1,
            DType::I16 => 2,
            DType::I32 => 3,
            DType::I64 | DType::DateTime(_) | DType::TimeDelta(_) => 4,
            DType::U8 => 5,
            DType::U16 => 6,
            DType::U32 => 7,
            DType::U64 => 8,
            DType::F16 => 9,
            DType::BF16 => 10,
            DType::F32 => 11,
            DType::F64 => 12,
            DType::C64 => 13,
            DType::C128 => 14,
        }
    }

    /// Bytes per element.
    pub fn size(self) -> u64 {
        match self.storage() {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::C128 => 16,
            _ => 8,
        }
    }

    /// True for the four floating point types.
    pub fn is_float(self) -> bool {
        self.is_half() || self.has_float_arithmetic()
    }

    /// True for f16 and bf16, which are stored but never computed with.
    pub fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::BF16)
    }

    /// True for f32 and f64, the types that functions of real numbers take.
    pub fn has_float_arithmetic(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// True for the eight integer types.
    pub fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned()
    }

    /// True for i8 to i64.
    pub fn is_signed_integer(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// True for u8 to u64.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DType::U8 | DType::U16 | DType::U32 | DType::U64)
    }

    /// True for c64 and c128.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// True for points and spans of time.
    pub fn is_time(self) -> bool {
        self.time_unit().is_some()
    }

    /// The unit of a time.
    pub fn time_unit(self) -> Option<TimeUnit> {
        match self {
            DType::DateTime(unit) | DType::TimeDelta(unit) => Some(unit),
            _ => None,
        }
    }

    /// The type of the real and imaginary parts of a complex type.
    pub fn part(self) -> Option<DType> {
        match self {
            DType::C64 => Some(DType::F32),
            DType::C128 => Some(DType::F64),
            _ => None,
        }
    }

    /// The complex type with parts of this type.
    pub fn with_parts(self) -> Option<DType> {
        match self {
            DType::F32 => Some(DType::C64),
            DType::F64 => Some(DType::C128),
            _ => None,
        }
    }

    /// The name used in program text.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::DateTime(unit) => unit.datetime_name(),
            DType::TimeDelta(unit) => unit.timedelta_name(),
        }
    }

    /// Zero (false for bool; for times, the epoch and no time at all).
    pub fn zero(self) -> Scalar {
        Scalar::from_i64(0, self)
    }

    /// One (true for bool).
    pub fn one(self) -> Scalar {
        Scalar::from_i64(1, self)
    }

    /// The identity of `min`: nothing is larger. Complex numbers are ordered by their real parts, then by their imaginary ones.
    pub fn highest(self) -> Scalar {
        // Infinity saturates into integers; bits of times are taken over from i64.
        match self {
            DType::DateTime(_) | DType::TimeDelta(_) => Scalar::I64(i64::MAX).cast(self),
            DType::C64 | DType::C128 => Scalar::C128(C128::new(f64::INFINITY, f64::INFINITY)).cast(self),
            _ => Scalar::F64(f64::INFINITY).cast(self),
        }
    }

    /// The identity of `max`: nothing is smaller, in the same order.
    pub fn lowest(self) -> Scalar {
        match self {
            // The smallest i64 is NaT, which is no time.
            DType::DateTime(_) | DType::TimeDelta(_) => Scalar::I64(i64::MIN + 1).cast(self),
            // Any float but zero is true.
            DType::Bool => Scalar::Bool(false),
            DType::C64 | DType::C128 => Scalar::C128(C128::new(f64::NEG_INFINITY, f64::NEG_INFINITY)).cast(self),
            _ => Scalar::F64(f64::NEG_INFINITY).cast(self),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();
    /// Our short names, and NumPy's.
    fn from_str(text: &str) -> Result<DType, ()> {
        Ok(match text {
            "bool" => DType::Bool,
            "i8" | "int8" => DType::I8,
            "i16" | "int16" => DType::I16,
            "i32" | "int32" => DType::I32,
            "i64" | "int64" | "int" => DType::I64,
            "u8" | "uint8" => DType::U8,
            "u16" | "uint16" => DType::U16,
            "u32" | "uint32" => DType::U32,
            "u64" | "uint64" | "uint" => DType::U64,
            "f16" | "float16" | "half" => DType::F16,
            "bf16" | "bfloat16" => DType::BF16,
            "f32" | "float32" => DType::F32,
            "f64" | "float64" | "float" => DType::F64,
            "c64" | "complex64" => DType::C64,
            "c128" | "complex128" => DType::C128,
            _ => return time::parse_time(text).ok_or(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let times = TimeUnit::ALL.iter().flat_map(|&unit| [DType::DateTime(unit), DType::TimeDelta(unit)]);
        for dtype in DType::PHYSICAL.into_iter().chain(times) {
            assert_eq!(dtype.name().parse(), Ok(dtype));
            assert_eq!(DType::PHYSICAL[dtype.physical_index()], dtype.storage());
            assert_eq!(dtype.zero().dtype(), dtype);
            assert_eq!(dtype.highest().dtype(), dtype);
        }
        assert_eq!("datetime64[fortnight]".parse::<DType>(), Err(()));
    }

    #[test]
    fn extremes_are_those_of_the_type() {
        assert_eq!((DType::I8.lowest(), DType::I8.highest()), (Scalar::I8(-128), Scalar::I8(127)));
        assert_eq!((DType::U64.lowest(), DType::U64.highest()), (Scalar::U64(0), Scalar::U64(u64::MAX)));
        assert_eq!((DType::I64.lowest(), DType::I64.highest()), (Scalar::I64(i64::MIN), Scalar::I64(i64::MAX)));
        assert_eq!((DType::Bool.lowest(), DType::Bool.highest()), (Scalar::Bool(false), Scalar::Bool(true)));
        assert_eq!(DType::F16.highest(), Scalar::F16(f16::INFINITY));
    }
}
