//! Elements as bytes in a file.
//!
//! Files hold little-endian elements. On little-endian machines (every one we build for) a slice of numbers is already those bytes.

use tw_ir::Buffer;
use tw_ir::dtype::{Complex, bf16, f16};

#[cfg(not(target_endian = "little"))]
compile_error!("elements are read and written as they lie in memory, which must be little-endian");

/// Types for which every pattern of bits is a value, and which have no padding.
///
/// # Safety
/// Implement it only for such types: their slices are read and written as bytes, and as other types of their width.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty)*) => {
        // SAFETY: integers and floats of any width, also wrapped as halves are, have a value for every pattern of bits and no padding.
        $(unsafe impl Plain for $type {})*
    };
}
plain! { i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 }
// SAFETY: two plain values of one type, one after the other.
unsafe impl<T: Plain> Plain for Complex<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Plain for [T; 2] {}

fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a Plain type has no padding, so all `size_of_val` bytes are initialised; u8 has alignment 1; the lifetime is kept.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn as_bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes written are valid values of a Plain type.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Runs code for a buffer of any type but bool, which is given first.
macro_rules! with_plain {
    ($buffer:expr, $bools:ident => $for_bools:expr, $values:ident => $body:expr) => {
        tw_ir::for_physical_types!([with_plain], ($buffer, $bools, $for_bools, $values, $body))
    };
    (($buffer:expr, $bools:ident, $for_bools:expr, $values:ident, $body:expr)
        Bool bool; $($variant:ident $type:ty;)*) => {
        match $buffer {
            Buffer::Bool($bools) => $for_bools,
            $(Buffer::$variant($values) => $body,)*
        }
    };
}

/// The bytes of some elements. Those of a truth value are 0 or 1.
pub(crate) fn bytes_of(buffer: &Buffer, range: std::ops::Range<usize>) -> &[u8] {
    with_plain!(buffer,
        bools => {
            let bools = &bools[range];
            // SAFETY: a bool is one initialised byte; the lifetime is kept.
            unsafe { std::slice::from_raw_parts(bools.as_ptr().cast(), bools.len()) }
        },
        values => as_bytes(&values[range]))
}

/// The bytes of some elements, to be overwritten; nothing for truth values, which not every byte is.
pub(crate) fn bytes_of_mut(buffer: &mut Buffer, range: std::ops::Range<usize>) -> &mut [u8] {
    with_plain!(buffer, _bools => &mut [], values => as_bytes_mut(&mut values[range]))
}

/// Calls `write` with the bytes of some elements, in order, possibly in several pieces.
pub fn write_elements<E>(
    buffer: &Buffer,
    range: std::ops::Range<usize>,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    with_plain!(buffer,
        bools => {
            let mut chunk = [0u8; 4096];
            for part in bools[range].chunks(chunk.len()) {
                chunk.iter_mut().zip(part).for_each(|(byte, value)| *byte = *value as u8);
                write(&chunk[..part.len()])?;
            }
            Ok(())
        },
        values => write(as_bytes(&values[range])))
}

/// Calls `read` to fill the bytes of some elements, in order, possibly in several pieces. A bool is true unless its byte is 0, as in NumPy.
pub fn read_elements<E>(
    buffer: &mut Buffer,
    range: std::ops::Range<usize>,
    mut read: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    with_plain!(buffer,
        bools => {
            let mut chunk = [0u8; 4096];
            for part in bools[range].chunks_mut(chunk.len()) {
                read(&mut chunk[..part.len()])?;
                part.iter_mut().zip(&chunk).for_each(|(value, byte)| *value = *byte != 0);
            }
            Ok(())
        },
        values => read(as_bytes_mut(&mut values[range])))
}

/// Reverses the bytes of every number of some elements: from big-endian, or to it. A complex number is two numbers.
pub fn swap_bytes(buffer: &mut Buffer, range: std::ops::Range<usize>) {
    let dtype = buffer.dtype();
    let width = dtype.part().unwrap_or(dtype).size() as usize;
    with_plain!(buffer,
        _bools => {},
        values => as_bytes_mut(&mut values[range]).chunks_exact_mut(width).for_each(<[u8]>::reverse))
}
