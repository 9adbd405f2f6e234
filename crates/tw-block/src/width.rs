//! Elements seen as bits of some width, for kernels that only move them.
//!
//! Fifteen types have five widths. A kernel that copies, gathers or places is compiled once per width and not once per type.

use tw_ir::{Buffer, SliceMut, Writable};

use crate::bytes::Plain;

/// What elements of one width are moved as. Bools stay bools, since not every byte is one; complex numbers of singles are pairs, since they are not
/// aligned like a u64.
pub(crate) trait Bits: Copy + Default + 'static {
    /// The elements of a buffer; none if they have another width.
    fn of(buffer: &Buffer) -> &[Self];
    /// The elements of a buffer, or of a part of one, for writing; none if they have another width.
    fn of_mut(buffer: &mut (impl Writable + ?Sized)) -> &mut [Self];
}

/// Runs code with a name for what elements of a dtype are moved as.
macro_rules! with_width {
    ($dtype:expr, $name:ident => $body:expr) => {{
        use tw_ir::DType;
        match $dtype.storage() {
            DType::Bool => {
                type $name = bool;
                $body
            }
            DType::I8 | DType::U8 => {
                type $name = u8;
                $body
            }
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => {
                type $name = u16;
                $body
            }
            DType::I32 | DType::U32 | DType::F32 => {
                type $name = u32;
                $body
            }
            DType::C64 => {
                type $name = [u32; 2];
                $body
            }
            DType::C128 => {
                type $name = [u64; 2];
                $body
            }
            // Times are stored as i64.
            DType::I64 | DType::U64 | DType::F64 | DType::DateTime(_) | DType::TimeDelta(_) => {
                type $name = u64;
                $body
            }
        }
    }};
}
pub(crate) use with_width;

fn view<S: Plain, T: Plain>(values: &[S]) -> &[T] {
    const { assert!(size_of::<S>() == size_of::<T>() && align_of::<S>() >= align_of::<T>()) };
    // SAFETY: both types have the same size and no padding, every pattern of bits is a value of either, and the alignment suffices.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

fn view_mut<S: Plain, T: Plain>(values: &mut [S]) -> &mut [T] {
    const { assert!(size_of::<S>() == size_of::<T>() && align_of::<S>() >= align_of::<T>()) };
    // SAFETY: as above; what is written as one type is a value of the other.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

macro_rules! bits {
    ($($type:ty: $($variant:ident)*;)*) => {
        $(impl Bits for $type {
            #[inline]
            fn of(buffer: &Buffer) -> &[Self] {
                match buffer {
                    $(Buffer::$variant(values) => view(values),)*
                    _ => &[],
                }
            }
            #[inline]
            fn of_mut(buffer: &mut (impl Writable + ?Sized)) -> &mut [Self] {
                match buffer.elements_mut() {
                    $(SliceMut::$variant(values) => view_mut(values),)*
                    _ => &mut [],
                }
            }
        })*
    };
}
bits! {
    u8: I8 U8;
    u16: I16 U16 F16 BF16;
    u32: I32 U32 F32;
    u64: I64 U64 F64;
    [u32; 2]: C64;
    [u64; 2]: C128;
}

impl Bits for bool {
    fn of(buffer: &Buffer) -> &[bool] {
        match buffer {
            Buffer::Bool(values) => values,
            _ => &[],
        }
    }
    fn of_mut(buffer: &mut (impl Writable + ?Sized)) -> &mut [bool] {
        match buffer.elements_mut() {
            SliceMut::Bool(values) => values,
            _ => &mut [],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tw_ir::DType;

    #[test]
    fn every_type_is_moved_bit_by_bit() {
        for dtype in DType::PHYSICAL {
            let mut buffer = Buffer::zeros(dtype, 3);
            buffer.set(1, dtype.one());
            let mut moved = Buffer::zeros(dtype, 3);
            with_width!(dtype, T => {
                assert_eq!(size_of::<T>() as u64, dtype.size());
                T::of_mut(&mut moved)[2] = T::of(&buffer)[1];
            });
            assert_eq!((moved.get(1), moved.get(2)), (dtype.zero(), dtype.one()), "{dtype}");
        }
    }
}
