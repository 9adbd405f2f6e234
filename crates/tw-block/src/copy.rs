//! Copying boxes between strided buffers of one type.
//!
//! Loops are put into the order of the target and merged where both sides allow it. What remains is runs of neighbours, a transpose (neighbours
//! along different axes), or neither.

use tw_ir::shape::MAX_RANK;
use tw_ir::{Buffer, Error, Result, Writable};

use crate::past_cache;
use crate::width::{Bits, with_width};

mod transpose;

use transpose::{transpose, transpose_past_cache};

/// Where a box of elements lies inside a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Position of its first element.
    pub(crate) offset: usize,
    /// Distance between neighbours, per axis.
    pub(crate) strides: &'a [usize],
}

impl Place<'_> {
    /// The position after the last element of a box.
    fn end(&self, shape: &[u64]) -> usize {
        let last = shape.iter().zip(self.strides).map(|(&n, &stride)| (n as usize).saturating_sub(1) * stride);
        self.offset + last.sum::<usize>() + 1
    }
}

/// How the target is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stores {
    /// As usual.
    Cached,
    /// Past the caches where that is possible; the caller then must call [`crate::past_cache::fence`].
    PastCache,
}

/// Copies a box of the given shape. Both places must lie inside their buffers.
pub(crate) fn copy_box(
    shape: &[u64],
    from: &Buffer,
    src: Place<'_>,
    to: &mut impl Writable,
    dst: Place<'_>,
) -> Result<()> {
    copy_box_by(Stores::Cached, shape, from, src, to, dst)
}

/// Copies a box of the given shape between buffers of one type. A side is the position of its first element and the distance between neighbours, per axis.
pub fn copy_strided(shape: &[u64], from: (&Buffer, usize, &[usize]), to: (&mut Buffer, usize, &[usize])) -> Result<()> {
    let (from, source) = (from.0, Place { offset: from.1, strides: from.2 });
    let (to, target) = (to.0, Place { offset: to.1, strides: to.2 });
    let is_inside = shape.len() == source.strides.len()
        && shape.len() == target.strides.len()
        && (shape.contains(&0) || source.end(shape) <= from.len() && target.end(shape) <= to.len());
    if !is_inside {
        return Err(Error::internal("a copy outside its buffers"));
    }
    copy_box(shape, from, source, to, target)
}

/// As [`copy_box`], with a choice of stores.
pub(crate) fn copy_box_by(
    stores: Stores,
    shape: &[u64],
    from: &Buffer,
    src: Place<'_>,
    to: &mut impl Writable,
    dst: Place<'_>,
) -> Result<()> {
    let to_type = to.elements().dtype();
    if from.dtype() != to_type {
        return Err(Error::internal(format!("a copy from {} to {to_type}", from.dtype())));
    }
    with_width!(from.dtype(), T => copy_typed_by(stores, shape, T::of(from), src, T::of_mut(to), dst));
    Ok(())
}

/// One loop of a copy: how often, and how far each side moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loop {
    n: usize,
    src: usize,
    dst: usize,
}

/// As [`copy_box`], for one type.
pub(crate) fn copy_typed<T: Copy>(shape: &[u64], from: &[T], src: Place<'_>, to: &mut [T], dst: Place<'_>) {
    copy_typed_by(Stores::Cached, shape, from, src, to, dst);
}

fn copy_typed_by<T: Copy>(stores: Stores, shape: &[u64], from: &[T], src: Place<'_>, to: &mut [T], dst: Place<'_>) {
    if shape.contains(&0) {
        return;
    }
    assert!(src.end(shape) <= from.len() && dst.end(shape) <= to.len(), "a copy outside its buffers");
    let mut space = [Loop::default(); MAX_RANK];
    let [outer @ .., inner] = ordered(shape, src.strides, dst.strides, &mut space) else {
        to[dst.offset] = from[src.offset];
        return;
    };
    let (inner, start) = (*inner, (src.offset, dst.offset));
    if inner.src == 1 && inner.dst == 1 {
        return for_points(outer, start, |s, d| {
            let (from, to) = (&from[s..s + inner.n], &mut to[d..d + inner.n]);
            match stores {
                Stores::Cached => to.copy_from_slice(from),
                Stores::PastCache => past_cache::copy(from, to),
            }
        });
    }
    if inner.dst == 1
        && let Some(k) = outer.iter().position(|other| other.src == 1)
    {
        let across = outer[k];
        outer[k..].rotate_left(1);
        let n_outer = outer.len() - 1;
        return for_points(&outer[..n_outer], start, |s, d| {
            let size = (inner.n, across.n);
            let (from, to) = ((&from[s..], inner.src), (&mut to[d..], across.dst));
            if stores == Stores::Cached || !transpose_past_cache(size, from, (to.0, to.1)) {
                transpose(size, from, to);
            }
        });
    }
    for_points(outer, start, |s, d| {
        for k in 0..inner.n {
            to[d + k * inner.dst] = from[s + k * inner.src];
        }
    });
}

/// The loops of a box in the order of the target, outermost first; neighbouring ones are merged where both sides move evenly.
fn ordered<'a>(shape: &[u64], src: &[usize], dst: &[usize], space: &'a mut [Loop; MAX_RANK]) -> &'a mut [Loop] {
    let mut n_loops = 0;
    for (axis, &n) in shape.iter().enumerate().filter(|&(_, &n)| n > 1) {
        space[n_loops] = Loop { n: n as usize, src: src[axis], dst: dst[axis] };
        n_loops += 1;
    }
    space[..n_loops].sort_by_key(|each| std::cmp::Reverse(each.dst));
    let mut kept = 0usize;
    for k in 0..n_loops {
        let inside = space[k];
        let merges = |outside: &Loop| outside.src == inside.src * inside.n && outside.dst == inside.dst * inside.n;
        match kept.checked_sub(1).map(|last| &mut space[last]).filter(|outside| merges(outside)) {
            Some(outside) => *outside = Loop { n: outside.n * inside.n, ..inside },
            None => {
                space[kept] = inside;
                kept += 1;
            }
        }
    }
    &mut space[..kept]
}

/// Calls `f` with the positions on both sides for every point of the loops.
fn for_points(loops: &[Loop], start: (usize, usize), mut f: impl FnMut(usize, usize)) {
    let (mut s, mut d) = start;
    let mut at = [0usize; MAX_RANK];
    loop {
        f(s, d);
        let mut k = loops.len();
        loop {
            if k == 0 {
                return;
            }
            k -= 1;
            at[k] += 1;
            s += loops[k].src;
            d += loops[k].dst;
            if at[k] < loops[k].n {
                break;
            }
            s -= loops[k].src * loops[k].n;
            d -= loops[k].dst * loops[k].n;
            at[k] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row-major strides of a shape.
    fn row_major(shape: &[u64]) -> Vec<usize> {
        tw_ir::shape::row_major_strides(shape).into_iter().map(|s| s as usize).collect()
    }

    /// All orders of three axes.
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        extents: [u64; 3],
        order: [usize; 3],
        element: impl Fn(usize) -> T,
    ) {
        // The box is a corner of a larger array, and goes into one that has its axes in another order.
        let around: Vec<u64> = extents.iter().map(|n| n + 1).collect();
        let from: Vec<T> = (0..around.iter().product::<u64>() as usize).map(&element).collect();
        let outer: Vec<u64> = order.iter().map(|&axis| extents[axis]).collect();
        let src = row_major(&around);
        let src: Vec<usize> = order.iter().map(|&axis| src[axis]).collect();
        let dst = row_major(&outer);
        let nothing = element(1 << 20);
        let mut to = vec![nothing; outer.iter().product::<u64>() as usize + 2];
        let places = (Place { offset: 1, strides: &src }, Place { offset: 1, strides: &dst });
        let mut past_cache = to.clone();
        copy_typed(&outer, &from, places.0, &mut to, places.1);
        copy_typed_by(Stores::PastCache, &outer, &from, places.0, &mut past_cache, places.1);
        crate::past_cache::fence();
        assert!(past_cache == to, "{extents:?} {order:?} {}", size_of::<T>());
        let mut expected = vec![nothing; to.len()];
        for a in 0..outer[0] as usize {
            for b in 0..outer[1] as usize {
                for c in 0..outer[2] as usize {
                    expected[1 + a * dst[0] + b * dst[1] + c * dst[2]] = from[1 + a * src[0] + b * src[1] + c * src[2]];
                }
            }
        }
        assert!(to == expected, "{extents:?} {order:?} {}", size_of::<T>());
    }

    #[test]
    fn boxes_of_every_width_are_copied_in_every_order() {
        for extents in [[1, 1, 1], [2, 3, 4], [5, 1, 7], [1, 33, 70], [3, 64, 64], [2, 65, 129], [40, 2, 40], [0, 3, 2]]
        {
            for order in ORDERS {
                check(extents, order, |k| k as u8);
                check(extents, order, |k| k as u16);
                check(extents, order, |k| k as f32);
                check(extents, order, |k| k as i64);
                check(extents, order, |k| k as u128);
            }
        }
    }

    #[test]
    fn rows_that_share_their_place_in_the_cache_are_transposed() {
        // Rows are 4096 bytes apart.
        check([70, 1, 511], [2, 1, 0], |k| k as i64);
        check([70, 1, 1023], [2, 1, 0], |k| k as f32);
        check([130, 1, 4095], [2, 1, 0], |k| k as u8);
        check([20, 1, 255], [2, 1, 0], |k| k as u128);
        // Rows of the target are whole cache lines.
        check([72, 1, 90], [2, 1, 0], |k| k as i64);
        check([192, 1, 70], [2, 1, 0], |k| k as u8);
        check([48, 1, 33], [2, 1, 0], |k| k as f32);
        check([12, 1, 5], [2, 1, 0], |k| k as u128);
    }

    #[test]
    fn loops_are_merged() {
        let mut space = [Loop::default(); MAX_RANK];
        let loops = ordered(&[4, 1, 5, 6], &[30, 9, 6, 1], &[30, 30, 6, 1], &mut space);
        assert_eq!(loops, [Loop { n: 120, src: 1, dst: 1 }]);
        let loops = ordered(&[4, 5, 6], &[5, 1, 20], &[30, 6, 1], &mut space);
        assert_eq!(loops, [Loop { n: 20, src: 1, dst: 6 }, Loop { n: 6, src: 20, dst: 1 }]);
    }
}
