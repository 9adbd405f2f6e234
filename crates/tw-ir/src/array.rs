//! A dense array in memory: constants of programs, values of the oracle, results handed to the user.

use crate::dtype::{C64, C128, DType, Element, Scalar, bf16, f16};
use crate::error::{Error, Result};
use crate::shape;

mod view;

pub use view::{ArrayView, Slice, SliceMut, Writable};

/// Typed storage. Times lie in it as i64.
#[derive(Clone, Debug, PartialEq)]
pub enum Buffer {
    /// Truth values.
    Bool(Vec<bool>),
    /// 8-bit signed integers.
    I8(Vec<i8>),
    /// 16-bit signed integers.
    I16(Vec<i16>),
    /// 32-bit signed integers.
    I32(Vec<i32>),
    /// 64-bit signed integers, and times.
    I64(Vec<i64>),
    /// 8-bit unsigned integers.
    U8(Vec<u8>),
    /// 16-bit unsigned integers.
    U16(Vec<u16>),
    /// 32-bit unsigned integers.
    U32(Vec<u32>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
    /// Halves.
    F16(Vec<f16>),
    /// Upper halves of singles.
    BF16(Vec<bf16>),
    /// Singles.
    F32(Vec<f32>),
    /// Doubles.
    F64(Vec<f64>),
    /// Complex numbers of two singles.
    C64(Vec<C64>),
    /// Complex numbers of two doubles.
    C128(Vec<C128>),
}

/// Runs the same code for whichever element type a [`Buffer`] holds.
///
/// ```
/// use tw_ir::{Buffer, with_buffer};
/// let buffer = Buffer::F32(vec![1.0, 2.0]);
/// assert_eq!(with_buffer!(&buffer, values => values.len()), 2);
/// ```
#[macro_export]
macro_rules! with_buffer {
    ($buffer:expr, $values:ident => $body:expr) => {
        $crate::for_physical_types!([$crate::with_buffer], ($buffer, $values, $body))
    };
    (($buffer:expr, $values:ident, $body:expr) $($variant:ident $type:ty;)*) => {
        match $buffer {
            $($crate::Buffer::$variant($values) => $body,)*
        }
    };
}

/// Runs code with a name for the Rust type that elements of a dtype are stored as.
///
/// ```
/// use tw_ir::{DType, with_dtype};
/// assert_eq!(with_dtype!(DType::U16, T => size_of::<T>()), 2);
/// ```
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $name:ident => $body:expr) => {
        $crate::for_physical_types!([$crate::with_dtype], ($dtype, $name, $body))
    };
    (($dtype:expr, $name:ident, $body:expr) $($variant:ident $type:ty;)*) => {
        match $dtype.storage() {
            $($crate::DType::$variant => {
                type $name = $type;
                $body
            })*
            other => unreachable!("{other} is not stored"),
        }
    };
}

impl Buffer {
    /// `n` zeros.
    pub fn zeros(dtype: DType, n: usize) -> Buffer {
        Buffer::full(dtype.zero(), n)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        with_buffer!(self, values => values.len())
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element, as it is stored.
    pub fn get(&self, position: usize) -> Scalar {
        with_buffer!(self, values => values[position].to_scalar())
    }

    /// Overwrites one element. The types must agree, but for times, which are stored as i64.
    pub fn set(&mut self, position: usize, value: Scalar) {
        self.check_holds(value);
        with_buffer!(self, values => values[position] = Element::from_scalar(value))
    }

    /// Adds an element at the end, of a type as for [`Buffer::set`].
    pub fn push(&mut self, value: Scalar) {
        self.check_holds(value);
        with_buffer!(self, values => values.push(Element::from_scalar(value)))
    }

    fn check_holds(&self, value: Scalar) {
        let (own, other) = (self.dtype(), value.dtype());
        assert!(own == other.storage(), "a {own} buffer cannot hold a {other}");
    }
}

macro_rules! per_type {
    (() $($variant:ident $type:ty;)*) => {
        impl Buffer {
            /// `n` copies of one value.
            pub fn full(value: Scalar, n: usize) -> Buffer {
                match value {
                    $(Scalar::$variant(value) => Buffer::$variant(vec![value; n]),)*
                    Scalar::DateTime(count, _) | Scalar::TimeDelta(count, _) => Buffer::I64(vec![count; n]),
                }
            }

            /// The physical type of the elements.
            pub fn dtype(&self) -> DType {
                match self {
                    $(Buffer::$variant(_) => DType::$variant,)*
                }
            }
        }
        $(impl From<Vec<$type>> for Buffer {
            fn from(values: Vec<$type>) -> Buffer {
                Buffer::$variant(values)
            }
        })*
    };
}
crate::for_physical_types!([per_type], ());

/// A dense, row-major array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    shape: Vec<u64>,
    dtype: DType,
    data: Buffer,
}

impl Array {
    /// Pairs a shape with storage; the sizes must agree.
    pub fn new(shape: Vec<u64>, data: Buffer) -> Result<Array> {
        let expected = shape::n_elements(&shape)?;
        if expected != data.len() as u64 {
            return Err(Error::source(format!(
                "shape {} needs {expected} elements, but {} were given",
                shape::display(&shape),
                data.len()
            )));
        }
        Ok(Array { shape, dtype: data.dtype(), data })
    }

    /// The same storage read as another type, which must be stored alike: integers as times and back.
    pub fn with_dtype(mut self, dtype: DType) -> Result<Array> {
        if dtype.storage() != self.data.dtype() {
            return Err(Error::internal(format!("elements of type {} read as {dtype}", self.data.dtype())));
        }
        self.dtype = dtype;
        Ok(self)
    }

    /// An array filled with one value.
    pub fn full(shape: &[u64], value: Scalar) -> Result<Array> {
        let n = shape::n_elements(shape)?;
        Ok(Array { shape: shape.to_vec(), dtype: value.dtype(), data: Buffer::full(value, n as usize) })
    }

    /// An array of zeros.
    pub fn zeros(shape: &[u64], dtype: DType) -> Result<Array> {
        Array::full(shape, dtype.zero())
    }

    /// A rank-0 array.
    pub fn scalar(value: Scalar) -> Array {
        Array { shape: Vec::new(), dtype: value.dtype(), data: Buffer::full(value, 1) }
    }

    /// A vector of doubles.
    pub fn from_f64(values: &[f64]) -> Array {
        Array::vector(Buffer::F64(values.to_vec()))
    }

    /// A vector of integers.
    pub fn from_i64(values: &[i64]) -> Array {
        Array::vector(Buffer::I64(values.to_vec()))
    }

    /// A vector.
    pub fn vector(data: Buffer) -> Array {
        Array { shape: vec![data.len() as u64], dtype: data.dtype(), data }
    }

    /// The same elements under another shape of equal size.
    pub fn reshaped(self, shape: &[u64]) -> Result<Array> {
        let dtype = self.dtype;
        Array::new(shape.to_vec(), self.data)?.with_dtype(dtype)
    }

    /// Extents of the axes.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// The elements in row-major order, as they are stored.
    pub fn data(&self) -> &Buffer {
        &self.data
    }
    /// The elements in row-major order, for writing. Their physical type must stay.
    pub fn data_mut(&mut self) -> &mut Buffer {
        &mut self.data
    }
    /// Gives up the storage.
    pub fn into_data(self) -> Buffer {
        self.data
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }
    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
    /// The element at a position of the row-major order.
    pub fn at(&self, position: usize) -> Scalar {
        self.data.get(position).cast(self.dtype)
    }
    /// The elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = Scalar> + '_ {
        (0..self.len()).map(|k| self.at(k))
    }
    /// The element at the coordinates.
    pub fn get(&self, coords: &[u64]) -> Scalar {
        self.at(shape::ravel(coords, &self.shape) as usize)
    }
    /// Overwrites the element at the coordinates.
    pub fn set(&mut self, coords: &[u64], value: Scalar) {
        self.data.set(shape::ravel(coords, &self.shape) as usize, value)
    }
    /// The only element of an array of size one.
    pub fn item(&self) -> Option<Scalar> {
        (self.data.len() == 1).then(|| self.at(0))
    }
    /// The elements as doubles, row-major. Convenient in tests and examples.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        self.iter().map(Scalar::as_f64).collect()
    }
    /// True if shape, dtype and every bit agree (NaN equals the same NaN).
    pub fn same_bits(&self, other: &Array) -> bool {
        self.shape == other.shape
            && self.dtype == other.dtype
            && (0..self.data.len()).all(|k| self.data.get(k) == other.data.get(k))
    }
}
