//! Element types and single elements.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// Truth value, one byte.
    Bool,
    /// 64-bit signed integer; arithmetic wraps.
    I64,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl DType {
    /// Every dtype, in promotion order.
    pub const ALL: [DType; 4] = [DType::Bool, DType::I64, DType::F32, DType::F64];

    /// Bytes per element.
    pub fn size(self) -> u64 {
        match self {
            DType::Bool => 1,
            DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// True for the floating point types.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64)
    }

    /// The type two operands meet in, by NumPy 2's rules for arrays.
    ///
    /// ```
    /// use tw_ir::DType;
    /// assert_eq!(DType::I64.promote(DType::F32), DType::F64);
    /// assert_eq!(DType::Bool.promote(DType::F32), DType::F32);
    /// ```
    pub fn promote(self, other: DType) -> DType {
        match (self, other) {
            (a, b) if a == b => a,
            (DType::Bool, b) => b,
            (a, DType::Bool) => a,
            // An i64 does not fit into an f32, so NumPy goes to f64, as for every other mixed pair.
            _ => DType::F64,
        }
    }

    /// The name used in program text.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I64 => "i64",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Zero (false for bool).
    pub fn zero(self) -> Scalar {
        Scalar::from_i64(0, self)
    }

    /// One (true for bool).
    pub fn one(self) -> Scalar {
        Scalar::from_i64(1, self)
    }

    /// The identity of `min`: nothing is larger.
    pub fn highest(self) -> Scalar {
        match self {
            DType::Bool => Scalar::Bool(true),
            DType::I64 => Scalar::I64(i64::MAX),
            DType::F32 => Scalar::F32(f32::INFINITY),
            DType::F64 => Scalar::F64(f64::INFINITY),
        }
    }

    /// The identity of `max`: nothing is smaller.
    pub fn lowest(self) -> Scalar {
        match self {
            DType::Bool => Scalar::Bool(false),
            DType::I64 => Scalar::I64(i64::MIN),
            DType::F32 => Scalar::F32(f32::NEG_INFINITY),
            DType::F64 => Scalar::F64(f64::NEG_INFINITY),
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
    fn from_str(text: &str) -> Result<DType, ()> {
        match text {
            "bool" => Ok(DType::Bool),
            "i64" | "int64" | "int" => Ok(DType::I64),
            "f32" | "float32" => Ok(DType::F32),
            "f64" | "float64" | "float" => Ok(DType::F64),
            _ => Err(()),
        }
    }
}

/// One element. Compares and hashes by bits, so that programs can be compared and cached.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer.
    I64(i64),
    /// A single.
    F32(f32),
    /// A double.
    F64(f64),
}

impl Scalar {
    /// The element's type.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::I64(_) => DType::I64,
            Scalar::F32(_) => DType::F32,
            Scalar::F64(_) => DType::F64,
        }
    }

    /// An integer as the given type.
    pub fn from_i64(value: i64, dtype: DType) -> Scalar {
        Scalar::I64(value).cast(dtype)
    }

    /// Conversion as everywhere in Tilewright: to bool is `!= 0`, float to integer truncates and saturates, NaN becomes 0.
    pub fn cast(self, dtype: DType) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(match self {
                Scalar::Bool(v) => v,
                Scalar::I64(v) => v != 0,
                Scalar::F32(v) => v != 0.0,
                Scalar::F64(v) => v != 0.0,
            }),
            DType::I64 => Scalar::I64(self.as_i64()),
            DType::F32 => Scalar::F32(match self {
                Scalar::Bool(v) => v as u8 as f32,
                Scalar::I64(v) => v as f32,
                Scalar::F32(v) => v,
                Scalar::F64(v) => v as f32,
            }),
            DType::F64 => Scalar::F64(self.as_f64()),
        }
    }

    /// The value as an integer, by the rules of [`Scalar::cast`].
    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Bool(v) => v as i64,
            Scalar::I64(v) => v,
            Scalar::F32(v) => v as i64,
            Scalar::F64(v) => v as i64,
        }
    }

    /// The value as a double.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(v) => v as u8 as f64,
            Scalar::I64(v) => v as f64,
            Scalar::F32(v) => v as f64,
            Scalar::F64(v) => v,
        }
    }

    /// True unless zero or false.
    pub fn is_true(self) -> bool {
        matches!(self.cast(DType::Bool), Scalar::Bool(true))
    }

    fn is_usual_nan(self) -> bool {
        self == Scalar::F64(f64::NAN) || self == Scalar::F32(f32::NAN)
    }

    fn bits(self) -> (DType, u64) {
        let bits = match self {
            Scalar::Bool(v) => v as u64,
            Scalar::I64(v) => v as u64,
            Scalar::F32(v) => v.to_bits() as u64,
            Scalar::F64(v) => v.to_bits(),
        };
        (self.dtype(), bits)
    }
}

macro_rules! from_host {
    ($($host:ty => $variant:ident;)*) => {
        $(impl From<$host> for Scalar {
            fn from(value: $host) -> Scalar {
                Scalar::$variant(value)
            }
        })*
    };
}
from_host! { bool => Bool; i64 => I64; f32 => F32; f64 => F64; }

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
    /// The shortest decimal that gives the same bits back. A NaN other than the usual one shows its bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(v) => write!(f, "{v}"),
            Scalar::I64(v) => write!(f, "{v}"),
            _ if self.is_usual_nan() => write!(f, "nan"),
            Scalar::F32(v) if v.is_nan() => write!(f, "nan:0x{:x}", v.to_bits()),
            Scalar::F64(v) if v.is_nan() => write!(f, "nan:0x{:x}", v.to_bits()),
            Scalar::F32(v) => write!(f, "{v:?}"),
            Scalar::F64(v) => write!(f, "{v:?}"),
        }
    }
}
