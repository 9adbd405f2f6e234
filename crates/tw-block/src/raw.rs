//! Arrays from and to bytes of a host language, which lie as they do in our memory.

use tw_ir::{Array, BoxRegion, DType, Result};

use crate::block::Block;
use crate::bytes::{read_elements, write_elements};

/// An array whose bytes `fill` gives, in order, possibly in several pieces.
///
/// ```
/// use tw_ir::DType;
/// let bytes = [1, 0, 2, 0];
/// let mut rest = &bytes[..];
/// let array = tw_block::array_from_bytes(&[2], DType::I16, |piece| {
///     let (now, later) = rest.split_at(piece.len());
///     piece.copy_from_slice(now);
///     rest = later;
/// })?;
/// assert_eq!(array.data().get(1).as_i64(), 2);
/// # Ok::<(), tw_ir::Error>(())
/// ```
pub fn array_from_bytes(shape: &[u64], dtype: DType, mut fill: impl FnMut(&mut [u8])) -> Result<Array> {
    let mut array = Block::for_output(dtype.storage(), BoxRegion::whole(shape), None)?.into_array()?;
    let n = array.len();
    let filled: Result<()> = read_elements(array.data_mut(), 0..n, |piece| {
        fill(piece);
        Ok(())
    });
    filled?;
    array.with_dtype(dtype)
}

/// Calls `take` with the bytes of an array, in order, possibly in several pieces.
pub fn bytes_of_array(array: &Array, mut take: impl FnMut(&[u8])) {
    let never_fails = write_elements(array.data(), 0..array.len(), |piece| {
        take(piece);
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(()) = never_fails;
}
