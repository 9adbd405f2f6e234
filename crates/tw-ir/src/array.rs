//! A dense array in memory: constants of programs, values of the oracle, results handed to the user.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::shape;

/// Typed storage.
#[derive(Clone, Debug, PartialEq)]
pub enum Buffer {
    /// Truth values.
    Bool(Vec<bool>),
    /// Integers.
    I64(Vec<i64>),
    /// Singles.
    F32(Vec<f32>),
    /// Doubles.
    F64(Vec<f64>),
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
        match $buffer {
            $crate::Buffer::Bool($values) => $body,
            $crate::Buffer::I64($values) => $body,
            $crate::Buffer::F32($values) => $body,
            $crate::Buffer::F64($values) => $body,
        }
    };
}

impl Buffer {
    /// `n` zeros.
    pub fn zeros(dtype: DType, n: usize) -> Buffer {
        match dtype {
            DType::Bool => Buffer::Bool(vec![false; n]),
            DType::I64 => Buffer::I64(vec![0; n]),
            DType::F32 => Buffer::F32(vec![0.0; n]),
            DType::F64 => Buffer::F64(vec![0.0; n]),
        }
    }

    /// `n` copies of one value.
    pub fn full(value: Scalar, n: usize) -> Buffer {
        match value {
            Scalar::Bool(v) => Buffer::Bool(vec![v; n]),
            Scalar::I64(v) => Buffer::I64(vec![v; n]),
            Scalar::F32(v) => Buffer::F32(vec![v; n]),
            Scalar::F64(v) => Buffer::F64(vec![v; n]),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Buffer::Bool(_) => DType::Bool,
            Buffer::I64(_) => DType::I64,
            Buffer::F32(_) => DType::F32,
            Buffer::F64(_) => DType::F64,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        with_buffer!(self, values => values.len())
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element.
    pub fn get(&self, position: usize) -> Scalar {
        match self {
            Buffer::Bool(v) => Scalar::Bool(v[position]),
            Buffer::I64(v) => Scalar::I64(v[position]),
            Buffer::F32(v) => Scalar::F32(v[position]),
            Buffer::F64(v) => Scalar::F64(v[position]),
        }
    }

    /// Overwrites one element. The types must agree.
    pub fn set(&mut self, position: usize, value: Scalar) {
        match (self, value) {
            (Buffer::Bool(v), Scalar::Bool(x)) => v[position] = x,
            (Buffer::I64(v), Scalar::I64(x)) => v[position] = x,
            (Buffer::F32(v), Scalar::F32(x)) => v[position] = x,
            (Buffer::F64(v), Scalar::F64(x)) => v[position] = x,
            (buffer, x) => unreachable!("a {} buffer cannot hold a {}", buffer.dtype(), x.dtype()),
        }
    }
}

/// A dense, row-major array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    shape: Vec<u64>,
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
        Ok(Array { shape, data })
    }

    /// An array filled with one value.
    pub fn full(shape: &[u64], value: Scalar) -> Result<Array> {
        let n = shape::n_elements(shape)?;
        Ok(Array { shape: shape.to_vec(), data: Buffer::full(value, n as usize) })
    }

    /// An array of zeros.
    pub fn zeros(shape: &[u64], dtype: DType) -> Result<Array> {
        let n = shape::n_elements(shape)?;
        Ok(Array { shape: shape.to_vec(), data: Buffer::zeros(dtype, n as usize) })
    }

    /// A rank-0 array.
    pub fn scalar(value: Scalar) -> Array {
        Array { shape: Vec::new(), data: Buffer::full(value, 1) }
    }

    /// A vector of doubles.
    pub fn from_f64(values: &[f64]) -> Array {
        Array { shape: vec![values.len() as u64], data: Buffer::F64(values.to_vec()) }
    }

    /// A vector of integers.
    pub fn from_i64(values: &[i64]) -> Array {
        Array { shape: vec![values.len() as u64], data: Buffer::I64(values.to_vec()) }
    }

    /// The same elements under another shape of equal size.
    pub fn reshaped(self, shape: &[u64]) -> Result<Array> {
        Array::new(shape.to_vec(), self.data)
    }

    /// Extents of the axes.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }
    /// The elements in row-major order.
    pub fn data(&self) -> &Buffer {
        &self.data
    }
    /// The elements in row-major order, for writing.
    pub fn data_mut(&mut self) -> &mut Buffer {
        &mut self.data
    }
    /// Gives up the storage.
    pub fn into_data(self) -> Buffer {
        self.data
    }
    /// The element at the coordinates.
    pub fn get(&self, coords: &[u64]) -> Scalar {
        self.data.get(shape::ravel(coords, &self.shape) as usize)
    }
    /// Overwrites the element at the coordinates.
    pub fn set(&mut self, coords: &[u64], value: Scalar) {
        self.data.set(shape::ravel(coords, &self.shape) as usize, value)
    }
    /// The only element of an array of size one.
    pub fn item(&self) -> Option<Scalar> {
        (self.data.len() == 1).then(|| self.data.get(0))
    }
    /// The elements as doubles, row-major. Convenient in tests and examples.
    pub fn to_f64_vec(&self) -> Vec<f64> {
        (0..self.data.len()).map(|k| self.data.get(k).as_f64()).collect()
    }
    /// True if shape, dtype and every bit agree (NaN equals the same NaN).
    pub fn same_bits(&self, other: &Array) -> bool {
        self.shape == other.shape
            && self.dtype() == other.dtype()
            && (0..self.data.len()).all(|k| self.data.get(k) == other.data.get(k))
    }
}
