//! One array that several threads fill, each with blocks of its own. All that is unsafe about it is here.
//!
//! A result that is wanted as one array is allocated once, in large pages, before it is computed. Blocks whose elements lie together there, those of vectors and of
//! whole rows, are parts of it: their kernels write where the elements belong. Another block is copied into its place by the task that completes it, while it is still
//! in a cache, and the block's storage serves the next block. Either way the result is never held twice, and the main memory sees each element once.
//!
//! A part is lent to one task after the other, which write it. What a task reads is never lent.
//!
//! Rejected: to write blocks of parts of rows in place, too. Every kernel would need strides for its output.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tw_ir::{Array, BoxRegion, Buffer, DType, Error, Grid, Result, SliceMut, shape, with_dtype};

use crate::block::Block;
use crate::memory::Meter;
use crate::walk::Points;
use crate::width::{Bits, with_width};
use crate::{pages, past_cache};

/// Results of at least this size are written past the caches, in which they would not stay. About what those of a large processor hold.
pub const LARGER_THAN_CACHES: u64 = 32 << 20;

/// An array that is filled block by block, by several threads at once.
#[derive(Debug)]
pub struct Whole {
    dtype: DType,
    grid: Grid,
    /// Distance between neighbours along each axis.
    strides: Vec<usize>,
    n_bytes: u64,
    buffer: UnsafeCell<Buffer>,
    /// Where the elements of `buffer` begin.
    start: *mut u8,
    /// Per block of the grid: true once a thread has claimed it.
    claimed: Vec<AtomicBool>,
    /// Bytes that are complete.
    written: AtomicU64,
    /// Bytes that are charged to the meter: those written and those lent.
    charged: AtomicU64,
    meter: Arc<Meter>,
}

// SAFETY: threads that share the array write through `start` alone, each into boxes that it was the first to claim, and the boxes of a grid have no
// element in common. A box that is lent was claimed for its part, which alone refers to it. Only the owner of the array accesses `buffer`.
unsafe impl Sync for Whole {}
// SAFETY: `start` points into memory that the array owns, which belongs to no thread.
unsafe impl Send for Whole {}

impl Whole {
    /// Room for a tensor that is cut by a grid: that of an array of its size that went, or memory that the system provides as it is written.
    pub fn new(dtype: DType, grid: &Grid, meter: &Arc<Meter>) -> Result<Whole> {
        let extents = grid.shape();
        let n = shape::n_elements(&extents)?;
        let no_memory =
            || Error::resource(format!("no memory for a {dtype} result of shape {}", shape::display(&extents)));
        let n_bytes = n.checked_mul(dtype.size()).ok_or_else(no_memory)?;
        let kept = meter.reuse(dtype, n as usize);
        let mut buffer = kept.or_else(|| pages::zeros(dtype, n as usize)).ok_or_else(no_memory)?;
        let start = with_width!(dtype, T => T::of_mut(&mut buffer).as_mut_ptr().cast::<u8>());
        Ok(Whole {
            dtype,
            strides: shape::row_major_strides(&extents).into_iter().map(|stride| stride as usize).collect(),
            n_bytes,
            buffer: UnsafeCell::new(buffer),
            start,
            claimed: (0..grid.n_blocks()).map(|_| AtomicBool::new(false)).collect(),
            written: AtomicU64::new(0),
            charged: AtomicU64::new(0),
            meter: Arc::clone(meter),
            grid: grid.clone(),
        })
    }

    /// Makes sure that nobody else writes the block of a box.
    fn claim(&self, bbox: &BoxRegion, dtype: DType) -> Result<()> {
        let claims = self.grid.position_of(bbox).filter(|_| dtype == self.dtype);
        match claims.is_some_and(|position| !self.claimed[position as usize].swap(true, Ordering::Relaxed)) {
            true => Ok(()),
            false => Err(Error::internal(format!("a block {bbox} has no place in the result"))),
        }
    }

    fn charge(&self, bytes: u64) {
        self.charged.fetch_add(bytes, Ordering::Relaxed);
        self.meter.charge(bytes);
    }

    /// Lends a block of the grid to who writes it, in place; `None` if its elements do not lie together. Every block is lent or written once.
    pub fn lend(self: &Arc<Whole>, bbox: &BoxRegion) -> Result<Option<Block>> {
        let shape = bbox.shape();
        let own = shape::row_major_strides(&shape);
        let together = self.strides.iter().zip(own).zip(&shape).all(|((&here, own), &n)| n <= 1 || here as u64 == own);
        if !together || bbox.is_empty() || bbox.rank() != self.strides.len() {
            return Ok(None);
        }
        self.claim(bbox, self.dtype)?;
        let first = bbox.lo.iter().zip(&self.strides).map(|(&lo, &stride)| lo as usize * stride).sum();
        let n = bbox.n_elements() as usize;
        self.charge(n as u64 * self.dtype.size());
        let nothing = Buffer::zeros(self.dtype, 0);
        Ok(Some(Block::lent(bbox.clone(), Lent { whole: Arc::clone(self), first, n, nothing })))
    }

    /// Copies a block of the grid into its place, or hears that a part is complete. Every block comes once.
    pub fn write(&self, block: &Block) -> Result<()> {
        if block.bbox().is_empty() {
            return Ok(());
        }
        if let Some(part) = block.as_lent() {
            if !std::ptr::eq(Arc::as_ptr(&part.whole), self) {
                return Err(Error::internal(format!("a part {} of another result", block.bbox())));
            }
            self.written.fetch_add(block.n_bytes(), Ordering::Relaxed);
            return Ok(());
        }
        self.claim(block.bbox(), block.dtype())?;
        self.written.fetch_add(block.n_bytes(), Ordering::Relaxed);
        self.charge(block.n_bytes());
        with_width!(self.dtype, T => self.write_typed::<T>(block));
        Ok(())
    }

    fn write_typed<T: Bits>(&self, block: &Block) {
        let bbox = block.bbox();
        let (from, from_strides) = (&T::of(block.data())[block.offset()..], block.strides());
        // Trailing axes whose elements lie together on both sides make one run.
        let mut outer = bbox.rank();
        let mut run = 1usize;
        while outer > 0 && self.strides[outer - 1] == run && from_strides[outer - 1] == run {
            outer -= 1;
            run *= (bbox.hi[outer] - bbox.lo[outer]) as usize;
        }
        let past_cache = self.n_bytes >= LARGER_THAN_CACHES;
        let first: usize = bbox.lo.iter().zip(&self.strides).map(|(&lo, &stride)| lo as usize * stride).sum();
        let mut rows = Points::new(&BoxRegion::whole(&bbox.shape()[..outer]));
        while let Some(at) = rows.next() {
            let distance =
                |strides: &[usize]| at.iter().zip(strides).map(|(&k, &stride)| k as usize * stride).sum::<usize>();
            let source = &from[distance(&from_strides)..][..run];
            // SAFETY: the run lies in the box of a block of the grid, hence inside the buffer, which is never exchanged while the array is shared.
            // This thread has claimed the box, so nobody else refers to its elements. The elements of the buffer are moved as T, so they
            // are aligned for it and any T is a value of theirs.
            let target = unsafe {
                std::slice::from_raw_parts_mut(self.start.cast::<T>().add(first + distance(&self.strides)), run)
            };
            match past_cache {
                true => past_cache::copy(source, target),
                false => target.copy_from_slice(source),
            }
        }
        if past_cache {
            past_cache::fence();
        }
    }

    /// The array, once every block is there and no part is lent.
    pub fn finish(self: Arc<Whole>) -> Result<Array> {
        let whole = Arc::into_inner(self);
        let mut whole = whole.ok_or_else(|| Error::internal("a part of a result that is whole is still lent"))?;
        if *whole.written.get_mut() != whole.n_bytes {
            return Err(Error::internal("a block of a result was never written"));
        }
        let buffer = std::mem::replace(whole.buffer.get_mut(), Buffer::Bool(Vec::new()));
        Array::new(whole.grid.shape(), buffer)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.meter.discharge(*self.charged.get_mut());
    }
}

/// A part of an array in the hands of who writes it.
#[derive(Debug)]
pub(crate) struct Lent {
    whole: Arc<Whole>,
    /// Position of its first element.
    first: usize,
    n: usize,
    /// For those who ask for storage: a buffer of its type without elements.
    nothing: Buffer,
}

impl Lent {
    /// The elements, for writing.
    pub(crate) fn elements_mut(&mut self) -> SliceMut<'_> {
        let Lent { whole, first, n, .. } = self;
        with_dtype!(whole.dtype, T => {
            // SAFETY: the part is the box of a block of the grid whose elements lie together, so `n` elements from `first` on are inside the buffer, which is never
            // exchanged while the array is shared, and this part shares it. The box was claimed for this part, and the part is borrowed mutably: nobody else refers to
            // the elements, which are initialised, of type T.
            SliceMut::from(unsafe { std::slice::from_raw_parts_mut(whole.start.cast::<T>().add(*first), *n) })
        })
    }

    /// A buffer of its type without elements.
    pub(crate) fn nothing(&self) -> &Buffer {
        &self.nothing
    }
}

#[cfg(test)]
mod tests {
    use tw_ir::Axis;

    use super::*;

    fn counting(extents: &[u64]) -> Arc<Array> {
        let n = extents.iter().product::<u64>() as u32;
        Arc::new(Array::new(extents.to_vec(), Buffer::U32((0..n).collect())).unwrap())
    }

    fn blocks_of(array: &Arc<Array>, grid: &Grid) -> Vec<Block> {
        (0..grid.n_blocks()).map(|position| Block::view_of(array, &grid.box_of(position)).unwrap()).collect()
    }

    #[test]
    fn threads_fill_one_array() {
        // The last is larger than caches; boxes are views, whole rows, parts of rows and single columns.
        for (extents, tiles) in [
            (vec![7, 9], vec![3, 4]),
            (vec![7, 9], vec![3, 9]),
            (vec![5, 4, 6], vec![2, 4, 5]),
            (vec![6, 5], vec![6, 1]),
            (vec![1, 1000], vec![1, 7]),
            (vec![4100, 2050], vec![1000, 1025]),
        ] {
            let array = counting(&extents);
            let grid: Grid = extents.iter().zip(&tiles).map(|(&n, &tile)| Axis::uniform(n, tile)).collect();
            let meter = Meter::new();
            let whole = Arc::new(Whole::new(DType::U32, &grid, &meter).unwrap());
            let blocks = blocks_of(&array, &grid);
            std::thread::scope(|scope| {
                for part in blocks.chunks(blocks.len().div_ceil(3)) {
                    let whole = &whole;
                    // Owned blocks as well as views.
                    scope.spawn(move || {
                        part.iter().enumerate().for_each(|(k, view)| match k % 2 {
                            0 => whole.write(view).unwrap(),
                            _ => whole
                                .write(&Block::from_array(&view.bbox().lo, view.to_array().unwrap(), None).unwrap())
                                .unwrap(),
                        })
                    });
                }
            });
            assert_eq!(meter.now(), array.len() as u64 * 4);
            assert_eq!(&whole.finish().unwrap(), array.as_ref(), "{extents:?} by {tiles:?}");
            assert_eq!(meter.now(), 0);
        }
    }

    #[test]
    fn parts_that_lie_together_are_written_in_place() {
        // Those of the first four lie together, and the last row of the fifth.
        for (extents, tiles, n_together) in [
            (vec![100], vec![7], 15),
            (vec![7, 9], vec![3, 9], 3),
            (vec![1, 1000], vec![1, 7], 143),
            (vec![5, 4, 6], vec![1, 2, 6], 10),
            (vec![7, 9], vec![3, 4], 3),
            (vec![6, 5], vec![6, 1], 0),
        ] {
            let array = counting(&extents);
            let grid: Grid = extents.iter().zip(&tiles).map(|(&n, &tile)| Axis::uniform(n, tile)).collect();
            let meter = Meter::new();
            let whole = Arc::new(Whole::new(DType::U32, &grid, &meter).unwrap());
            let together = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for view in blocks_of(&array, &grid) {
                    let (whole, together) = (&whole, &together);
                    scope.spawn(move || {
                        let Some(mut part) = whole.lend(view.bbox()).unwrap() else {
                            return whole.write(&view).unwrap();
                        };
                        together.fetch_add(1, Ordering::Relaxed);
                        assert!(whole.lend(view.bbox()).is_err() && whole.write(&view).is_err(), "lent twice");
                        // It is written like other blocks, and cannot be read.
                        assert!(part.output().is_err() && part.to_array().is_err() && part.lend().is_none());
                        assert!(part.get(&view.bbox().lo).is_none() && !part.is_dense());
                        part.fill(tw_ir::Scalar::U32(9)).unwrap();
                        let (bbox, mut target) = part.target().unwrap();
                        view.copy_moved_overlap(view.bbox(), bbox, &mut target).unwrap();
                        whole.write(&part).unwrap();
                    });
                }
            });
            assert_eq!(together.into_inner(), n_together, "{extents:?} by {tiles:?}");
            assert_eq!(meter.now(), array.len() as u64 * 4);
            assert_eq!(&whole.finish().unwrap(), array.as_ref(), "{extents:?} by {tiles:?}");
            assert_eq!(meter.now(), 0);
        }
    }

    #[test]
    fn an_array_is_whole_when_no_part_is_lent() {
        let grid = Grid::from_iter([Axis::uniform(6, 3)]);
        let meter = Meter::new();
        let make = || Arc::new(Whole::new(DType::F64, &grid, &meter).unwrap());
        let (whole, other) = (make(), make());
        let part = whole.lend(&grid.box_of(0)).unwrap().unwrap();
        assert!(other.write(&part).is_err(), "a part of another array");
        whole.write(&part).unwrap();
        assert!(Arc::clone(&whole).finish().is_err(), "a part is lent");
        drop(part);
        let unwritten = whole.lend(&grid.box_of(1)).unwrap();
        drop(unwritten);
        assert_eq!(meter.now(), 48);
        assert!(whole.finish().is_err(), "a part was never written");
        assert_eq!(meter.now(), 0);
    }

    #[test]
    fn only_blocks_of_the_grid_come_and_each_once() {
        let array = counting(&[4, 6]);
        let grid = Grid::from_iter([Axis::uniform(4, 2), Axis::uniform(6, 3)]);
        let whole = Arc::new(Whole::new(DType::U32, &grid, &Meter::new()).unwrap());
        let blocks = blocks_of(&array, &grid);
        whole.write(&blocks[0]).unwrap();
        assert!(whole.write(&blocks[0]).is_err());
        let astride = Block::view_of(&array, &BoxRegion { lo: vec![1, 0], hi: vec![3, 3] }).unwrap();
        assert!(whole.write(&astride).is_err());
        let other_type = Block::from_array(&[2, 0], Array::zeros(&[2, 3], DType::F32).unwrap(), None).unwrap();
        assert!(whole.write(&other_type).is_err());
        assert!(whole.finish().is_err());
        let empty = Grid::from_iter([Axis::whole(0), Axis::uniform(6, 3)]);
        let nothing = Arc::new(Whole::new(DType::U32, &empty, &Meter::new()).unwrap());
        assert_eq!(nothing.finish().unwrap().shape(), [0, 6]);
    }
}
