//! A view of elements with another owner: the argument of a block function.

use super::{Array, Buffer};
use crate::dtype::{DType, Element, Scalar};
use crate::error::{Error, Result};
use crate::shape;

macro_rules! slices {
    (() $($variant:ident $type:ty;)*) => {
        /// A run of elements in a [`Buffer`]. Times lie in it as i64.
        #[derive(Clone, Copy, Debug)]
        pub enum Slice<'a> {
            $(
                #[doc = concat!("Elements stored as `", stringify!($type), "`.")]
                $variant(&'a [$type]),
            )*
        }

        impl<'a> Slice<'a> {
            /// The physical type of the elements.
            pub fn dtype(self) -> DType {
                match self {
                    $(Slice::$variant(_) => DType::$variant,)*
                }
            }

            /// A copy with its own storage.
            pub fn to_buffer(self) -> Buffer {
                match self {
                    $(Slice::$variant(values) => Buffer::$variant(values.to_vec()),)*
                }
            }
        }

        impl Buffer {
            /// Lends all elements.
            pub fn as_slice(&self) -> Slice<'_> {
                match self {
                    $(Buffer::$variant(values) => Slice::$variant(values),)*
                }
            }

            /// Lends `n` elements from a position on; `None` if there are fewer.
            pub fn slice(&self, from: usize, n: usize) -> Option<Slice<'_>> {
                let range = from..from.checked_add(n)?;
                match self {
                    $(Buffer::$variant(values) => values.get(range).map(Slice::$variant),)*
                }
            }
        }
    };
}
crate::for_physical_types!([slices], ());

/// Runs the same code for whichever element type a [`Slice`] holds.
///
/// ```
/// use tw_ir::{Buffer, with_slice};
/// let buffer = Buffer::F32(vec![1.0, 2.0, 3.0]);
/// let slice = buffer.slice(1, 2).unwrap();
/// assert_eq!(with_slice!(slice, values => values.len()), 2);
/// ```
#[macro_export]
macro_rules! with_slice {
    ($slice:expr, $values:ident => $body:expr) => {
        $crate::for_physical_types!([$crate::with_slice], ($slice, $values, $body))
    };
    (($slice:expr, $values:ident, $body:expr) $($variant:ident $type:ty;)*) => {
        match $slice {
            $($crate::Slice::$variant($values) => $body,)*
        }
    };
}

impl Slice<'_> {
    /// Number of elements.
    pub fn len(self) -> usize {
        with_slice!(self, values => values.len())
    }

    /// True if there are no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// One element, as it is stored.
    pub fn get(self, position: usize) -> Scalar {
        with_slice!(self, values => values[position].to_scalar())
    }
}

/// A dense, row-major array that borrows its elements.
///
/// ```
/// use tw_ir::{Array, Slice};
/// let array = Array::from_f64(&[1.0, 2.0]);
/// let view = array.view();
/// assert_eq!(view.shape(), [2]);
/// assert!(matches!(view.data(), Slice::F64([1.0, 2.0])));
/// ```
#[derive(Clone, Debug)]
pub struct ArrayView<'a> {
    shape: Vec<u64>,
    dtype: DType,
    data: Slice<'a>,
}

impl<'a> ArrayView<'a> {
    /// Pairs a shape with elements; the sizes must agree.
    pub fn new(shape: Vec<u64>, data: Slice<'a>) -> Result<ArrayView<'a>> {
        if shape::n_elements(&shape)? != data.len() as u64 {
            let (shape, n) = (shape::display(&shape).to_string(), data.len());
            return Err(Error::internal(format!("a view of shape {shape} over {n} elements")));
        }
        Ok(ArrayView { shape, dtype: data.dtype(), data })
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
    pub fn data(&self) -> Slice<'a> {
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
    /// The element at the coordinates.
    pub fn get(&self, coords: &[u64]) -> Scalar {
        self.at(shape::ravel(coords, &self.shape) as usize)
    }
    /// A copy with its own storage.
    pub fn to_array(&self) -> Array {
        Array { shape: self.shape.clone(), dtype: self.dtype, data: self.data.to_buffer() }
    }
}

impl Array {
    /// Lends the whole array.
    pub fn view(&self) -> ArrayView<'_> {
        let data = self.data.as_slice();
        ArrayView { shape: self.shape.clone(), dtype: self.dtype, data }
    }
}
