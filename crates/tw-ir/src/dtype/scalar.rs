//! Single elements.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::cast::{CastFrom, widen_bf16, widen_f16};
use super::{C64, C128, DType, NAT, TimeUnit, bf16, f16};
use crate::{Buffer, Slice, SliceMut, Writable};

/// One element. Compares and hashes by bits, so that programs can be compared and cached.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An 8-bit signed integer.
    I8(i8),
    /// A 16-bit signed integer.
    I16(i16),
    /// A 32-bit signed integer.
    I32(i32),
    /// A 64-bit signed integer.
    I64(i64),
    /// An 8-bit unsigned integer.
    U8(u8),
    /// A 16-bit unsigned integer.
    U16(u16),
    /// A 32-bit unsigned integer.
    U32(u32),
    /// A 64-bit unsigned integer.
    U64(u64),
    /// A half.
    F16(f16),
    /// The upper half of a single.
    BF16(bf16),
    /// A single.
    F32(f32),
    /// A double.
    F64(f64),
    /// A complex number of two singles.
    C64(C64),
    /// A complex number of two doubles.
    C128(C128),
    /// A point in time.
    DateTime(i64, TimeUnit),
    /// A span of time.
    TimeDelta(i64, TimeUnit),
}

/// The Rust types elements are stored as.
pub trait Element: CastFromAll + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Its dtype.
    const DTYPE: DType;
    /// As an element.
    fn to_scalar(self) -> Scalar;
    /// From an element, converted if it is of another type.
    fn from_scalar(value: Scalar) -> Self;
    /// The elements of a buffer; none if it holds another type.
    fn of(buffer: &Buffer) -> &[Self];
    /// Lent elements; none if they are of another type.
    fn of_slice(slice: Slice<'_>) -> &[Self];
    /// The elements of a buffer, or of a part of one, for writing; none if it holds another type.
    fn of_mut(buffer: &mut (impl Writable + ?Sized)) -> &mut [Self];
}

macro_rules! physical {
    (() $($variant:ident $type:ty;)*) => {
        /// Types that every physical type converts to.
        pub trait CastFromAll: $(CastFrom<$type> +)* {}
        impl<T> CastFromAll for T where T: $(CastFrom<$type> +)* {}

        $(impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar {
                Scalar::$variant(value)
            }
        }
        impl Element for $type {
            const DTYPE: DType = DType::$variant;
            #[inline]
            fn to_scalar(self) -> Scalar {
                Scalar::$variant(self)
            }
            #[inline]
            fn from_scalar(value: Scalar) -> Self {
                match value {
                    Scalar::$variant(value) => value,
                    other => convert(other),
                }
            }
            #[inline]
            fn of(buffer: &Buffer) -> &[Self] {
                match buffer {
                    Buffer::$variant(values) => values,
                    _ => &[],
                }
            }
            #[inline]
            fn of_slice(slice: Slice<'_>) -> &[Self] {
                match slice {
                    Slice::$variant(values) => values,
                    _ => &[],
                }
            }
            #[inline]
            fn of_mut(buffer: &mut (impl Writable + ?Sized)) -> &mut [Self] {
                match buffer.elements_mut() {
                    SliceMut::$variant(values) => values,
                    _ => &mut [],
                }
            }
        })*

        fn convert<T: Element>(value: Scalar) -> T {
            match value {
                $(Scalar::$variant(value) => T::cast_from(value),)*
                Scalar::DateTime(count, _) | Scalar::TimeDelta(count, _) => T::cast_from(count),
            }
        }

        impl Scalar {
            /// The element's type.
            pub fn dtype(self) -> DType {
                match self {
                    $(Scalar::$variant(_) => DType::$variant,)*
                    Scalar::DateTime(_, unit) => DType::DateTime(unit),
                    Scalar::TimeDelta(_, unit) => DType::TimeDelta(unit),
                }
            }

            /// Conversion by the rules of [`cast`](super::cast); a time is the integer it counts.
            pub fn cast(self, dtype: DType) -> Scalar {
                if self.dtype() == dtype {
                    return self;
                }
                match dtype {
                    $(DType::$variant => Scalar::$variant(convert(self)),)*
                    DType::DateTime(unit) => Scalar::DateTime(convert(self), unit),
                    DType::TimeDelta(unit) => Scalar::TimeDelta(convert(self), unit),
                }
            }
        }
    };
}
crate::for_physical_types!([physical], ());

impl Scalar {
    /// An integer as the given type.
    pub fn from_i64(value: i64, dtype: DType) -> Scalar {
        Scalar::I64(value).cast(dtype)
    }

    /// The element as it is stored: times as the integers they count.
    pub fn stored(self) -> Scalar {
        self.cast(self.dtype().storage())
    }

    /// The value as an integer, by the rules of [`Scalar::cast`].
    pub fn as_i64(self) -> i64 {
        convert(self)
    }

    /// The value as a double.
    pub fn as_f64(self) -> f64 {
        convert(self)
    }

    /// The value as a complex number.
    pub fn as_c128(self) -> C128 {
        convert(self)
    }

    /// True unless zero or false.
    pub fn is_true(self) -> bool {
        convert(self)
    }

    /// A scalar of a physical type from the bits of its parts, as [`Scalar::bits`] gives them. `None` for times, and for bits that the type does not have.
    pub(crate) fn from_bits(dtype: DType, low: u64, high: u64) -> Option<Scalar> {
        let (single, double) = (|bits: u64| u32::try_from(bits).map(f32::from_bits).ok(), f64::from_bits);
        Some(match dtype {
            DType::Bool if low <= 1 => Scalar::Bool(low == 1),
            DType::F16 => Scalar::F16(f16::from_bits(u16::try_from(low).ok()?)),
            DType::BF16 => Scalar::BF16(bf16::from_bits(u16::try_from(low).ok()?)),
            DType::F32 => Scalar::F32(single(low)?),
            DType::F64 => Scalar::F64(double(low)),
            DType::C64 => Scalar::C64(C64::new(single(low)?, single(high)?)),
            DType::C128 => Scalar::C128(C128::new(double(low), double(high))),
            DType::I64 => Scalar::I64(low as i64),
            DType::U64 => Scalar::U64(low),
            integer if integer.is_integer() => Scalar::I64(low as i64).cast(integer),
            _ => return None,
        })
    }

    /// The type, and the bits of one or two parts.
    pub(crate) fn bits(self) -> (DType, u64, u64) {
        let (low, high) = match self {
            Scalar::F16(v) => (v.to_bits() as u64, 0),
            Scalar::BF16(v) => (v.to_bits() as u64, 0),
            Scalar::F32(v) => (v.to_bits() as u64, 0),
            Scalar::F64(v) => (v.to_bits(), 0),
            Scalar::C64(v) => (v.re.to_bits() as u64, v.im.to_bits() as u64),
            Scalar::C128(v) => (v.re.to_bits(), v.im.to_bits()),
            // Integers keep their bits.
            other => (other.as_i64() as u64, 0),
        };
        (self.dtype(), low, high)
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for Scalar {}
impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state)
    }
}

impl fmt::Display for Scalar {
    /// The shortest decimal that gives the same bits back. A NaN other than the usual one shows its bits; a complex number its two parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn float(f: &mut fmt::Formatter<'_>, value: impl fmt::Debug, bits: u64, nan: Option<u64>) -> fmt::Result {
            match nan {
                Some(usual) if usual == bits => write!(f, "nan"),
                Some(_) => write!(f, "nan:0x{bits:x}"),
                None => write!(f, "{value:?}"),
            }
        }
        let single = |v: f32| (v.to_bits() as u64, v.is_nan().then_some(f32::NAN.to_bits() as u64));
        let double = |v: f64| (v.to_bits(), v.is_nan().then_some(f64::NAN.to_bits()));
        match *self {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::U64(v) => write!(f, "{v}"),
            Scalar::DateTime(NAT, _) | Scalar::TimeDelta(NAT, _) => write!(f, "NaT"),
            Scalar::F16(v) => {
                let nan = v.is_nan().then_some(f16::NAN.to_bits() as u64);
                float(f, widen_f16(v), v.to_bits() as u64, nan)
            }
            Scalar::BF16(v) => {
                let nan = v.is_nan().then_some(bf16::NAN.to_bits() as u64);
                float(f, widen_bf16(v), v.to_bits() as u64, nan)
            }
            Scalar::F32(v) => {
                let (bits, nan) = single(v);
                float(f, v, bits, nan)
            }
            Scalar::F64(v) => {
                let (bits, nan) = double(v);
                float(f, v, bits, nan)
            }
            Scalar::C64(v) => write!(f, "({} {})", Scalar::F32(v.re), Scalar::F32(v.im)),
            Scalar::C128(v) => write!(f, "({} {})", Scalar::F64(v.re), Scalar::F64(v.im)),
            integer => write!(f, "{}", integer.as_i64()),
        }
    }
}
