//! Copying boxes between strided buffers of one type.

use tw_ir::{Buffer, Error, Result};

use crate::width::{Bits, with_width};

/// Where a box of elements lies inside a buffer.
pub(crate) struct Place<'a> {
    /// Position of its first element.
    pub(crate) offset: usize,
    /// Distance between neighbours, per axis.
    pub(crate) strides: &'a [usize],
}

/// Copies a box of the given shape. Both places must lie inside their buffers.
pub(crate) fn copy_box(shape: &[u64], from: &Buffer, src: Place<'_>, to: &mut Buffer, dst: Place<'_>) -> Result<()> {
    if from.dtype() != to.dtype() {
        return Err(Error::internal(format!("a copy from {} to {}", from.dtype(), to.dtype())));
    }
    with_width!(from.dtype(), T => copy_typed(shape, T::of(from), src, T::of_mut(to), dst));
    Ok(())
}

/// As [`copy_box`], for one type.
pub(crate) fn copy_typed<T: Copy>(shape: &[u64], from: &[T], src: Place<'_>, to: &mut [T], dst: Place<'_>) {
    if shape.contains(&0) {
        return;
    }
    // Trailing axes that are contiguous on both sides become one run.
    let mut run = 1usize;
    let mut outer = shape.len();
    while outer > 0 && src.strides[outer - 1] == run && dst.strides[outer - 1] == run {
        run *= shape[outer - 1] as usize;
        outer -= 1;
    }
    if run == 1 && outer > 0 {
        copy_rows(shape, outer - 1, from, src, to, dst, |from, to, s, d| {
            let n = shape[outer - 1] as usize;
            for k in 0..n {
                to[d.0 + k * d.1] = from[s.0 + k * s.1];
            }
        });
    } else {
        copy_rows(shape, outer, from, src, to, dst, |from, to, s, d| {
            to[d.0..d.0 + run].copy_from_slice(&from[s.0..s.0 + run]);
        });
    }
}

/// Calls `row` with (position, stride along the next axis) on both sides, for every point of the first `outer` axes.
fn copy_rows<T>(
    shape: &[u64],
    outer: usize,
    from: &[T],
    src: Place<'_>,
    to: &mut [T],
    dst: Place<'_>,
    row: impl Fn(&[T], &mut [T], (usize, usize), (usize, usize)),
) {
    let inner_stride = |strides: &[usize]| strides.get(outer).copied().unwrap_or(1);
    let (src_inner, dst_inner) = (inner_stride(src.strides), inner_stride(dst.strides));
    let (mut s, mut d) = (src.offset, dst.offset);
    let mut at = [0u64; tw_ir::shape::MAX_RANK];
    loop {
        row(from, to, (s, src_inner), (d, dst_inner));
        let mut axis = outer;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            at[axis] += 1;
            s += src.strides[axis];
            d += dst.strides[axis];
            if at[axis] < shape[axis] {
                break;
            }
            s -= src.strides[axis] * shape[axis] as usize;
            d -= dst.strides[axis] * shape[axis] as usize;
            at[axis] = 0;
        }
    }
}
