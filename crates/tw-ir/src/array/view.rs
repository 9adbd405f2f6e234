//! Views of elements with another owner: arguments of block functions, and what kernels write into.

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

        /// Elements in a [`Buffer`] or in a part of one, lent to a writer. Times lie in it as i64.
        #[derive(Debug)]
        pub enum SliceMut<'a> {
            $(
                #[doc = concat!("Elements stored as `", stringify!($type), "`.")]
                $variant(&'a mut [$type]),
            )*
        }

        $(impl<'a> From<&'a mut [$type]> for SliceMut<'a> {
            fn from(values: &'a mut [$type]) -> SliceMut<'a> {
                SliceMut::$variant(values)
            }
        })*

        impl Writable for Buffer {
            fn elements(&self) -> Slice<'_> {
                self.as_slice()
            }

            fn elements_mut(&mut self) -> SliceMut<'_> {
                match self {
                    $(Buffer::$variant(values) => SliceMut::$variant(values),)*
                }
            }
        }

        impl Writable for SliceMut<'_> {
            fn elements(&self) -> Slice<'_> {
                match self {
                    $(SliceMut::$variant(values) => Slice::$variant(values),)*
                }
            }

            fn elements_mut(&mut self) -> SliceMut<'_> {
                match self {
                    $(SliceMut::$variant(values) => SliceMut::$variant(values),)*
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

/// What elements can be written into where they lie: a buffer, or a part of one that was lent.
pub trait Writable {
    /// The elements.
    fn elements(&self) -> Slice<'_>;
    /// The elements, for writing.
    fn elements_mut(&mut self) -> SliceMut<'_>;
}

impl<W: Writable + ?Sized> Writable for &mut W {
    fn elements(&self) -> Slice<'_> {
        (**self).elements()
    }

    fn elements_mut(&mut self) -> SliceMut<'_> {
        (**self).elements_mut()
    }
}

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

/// Runs the same code for whichever element type a [`SliceMut`] holds.
///
/// ```
/// use tw_ir::{Buffer, Writable, with_slice_mut};
/// let mut buffer = Buffer::F32(vec![1.0, 2.0]);
/// with_slice_mut!(buffer.elements_mut(), values => values.reverse());
/// assert_eq!(buffer, Buffer::F32(vec![2.0, 1.0]));
/// ```
#[macro_export]
macro_rules! with_slice_mut {
    ($slice:expr, $values:ident => $body:expr) => {
        $crate::for_physical_types!([$crate::with_slice_mut], ($slice, $values, $body))
    };
    (($slice:expr, $values:ident, $body:expr) $($variant:ident $type:ty;)*) => {
        match $slice {
            $($crate::SliceMut::$variant($values) => $body,)*
        }
    };
}

impl SliceMut<'_> {
    /// The physical type of the elements.
    pub fn dtype(&self) -> DType {
        self.elements().dtype()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements().len()
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
