//! Elements as bytes in a file.
//!
//! Files hold little-endian elements. On little-endian machines (every one we build for) a slice of numbers is already those bytes.

use tw_ir::Buffer;

#[cfg(not(target_endian = "little"))]
compile_error!("elements are read and written as they lie in memory, which must be little-endian");

/// Types for which every pattern of bits is a value, and which have no padding.
///
/// # Safety
/// Implement it only for such types: their slices are read and written as bytes.
unsafe trait Plain: Copy {}
// SAFETY: every 64-bit pattern is an i64.
unsafe impl Plain for i64 {}
// SAFETY: every 32-bit pattern is an f32.
unsafe impl Plain for f32 {}
// SAFETY: every 64-bit pattern is an f64.
unsafe impl Plain for f64 {}
// SAFETY: every byte is a u8.
unsafe impl Plain for u8 {}

fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: a Plain type has no padding, so all `size_of_val` bytes are initialised; u8 has alignment 1; the lifetime is kept.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn as_bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes written are valid values of a Plain type.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Calls `write` with the bytes of some elements, in order, possibly in several pieces.
pub(crate) fn write_elements<E>(
    buffer: &Buffer,
    range: std::ops::Range<usize>,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    match buffer {
        Buffer::I64(values) => write(as_bytes(&values[range])),
        Buffer::F32(values) => write(as_bytes(&values[range])),
        Buffer::F64(values) => write(as_bytes(&values[range])),
        Buffer::Bool(values) => {
            let mut chunk = [0u8; 4096];
            for part in values[range].chunks(chunk.len()) {
                chunk.iter_mut().zip(part).for_each(|(byte, value)| *byte = *value as u8);
                write(&chunk[..part.len()])?;
            }
            Ok(())
        }
    }
}

/// Calls `read` to fill the bytes of some elements, in order, possibly in several pieces. A bool is true unless its byte is 0, as in NumPy.
pub(crate) fn read_elements<E>(
    buffer: &mut Buffer,
    range: std::ops::Range<usize>,
    mut read: impl FnMut(&mut [u8]) -> Result<(), E>,
) -> Result<(), E> {
    match buffer {
        Buffer::I64(values) => read(as_bytes_mut(&mut values[range])),
        Buffer::F32(values) => read(as_bytes_mut(&mut values[range])),
        Buffer::F64(values) => read(as_bytes_mut(&mut values[range])),
        Buffer::Bool(values) => {
            let mut chunk = [0u8; 4096];
            for part in values[range].chunks_mut(chunk.len()) {
                read(&mut chunk[..part.len()])?;
                part.iter_mut().zip(&chunk).for_each(|(value, byte)| *value = *byte != 0);
            }
            Ok(())
        }
    }
}
