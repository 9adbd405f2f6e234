//! One array that several threads fill, each with blocks of its own. All that is unsafe about it is here.
//!
//! A result that is wanted as one array is allocated once, in large pages, before it is computed. The task that completes a block copies it
//! into its place while it is still in a cache, and the block's storage serves the next block. So the result is never held twice, and the
//! main memory sees each element once.
//!
//! Rejected: kernels that write into the array itself. Only blocks of whole rows lie together there; every kernel would need strides for its
//! output, to save a copy that runs at the speed of a cache.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tw_ir::{Array, BoxRegion, Buffer, DType, Error, Grid, Result, shape};

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
    /// Bytes written so far, which are charged to the meter.
    written: AtomicU64,
    meter: Arc<Meter>,
}

// SAFETY: threads that share the array write through `start` alone, each into boxes that it was the first to claim, and the boxes of a grid have no
// element in common. Only the owner of the array accesses `buffer`.
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
            meter: Arc::clone(meter),
            grid: grid.clone(),
        })
    }

    /// Copies a block of the grid into its place. Every block comes once.
    pub fn write(&self, block: &Block) -> Result<()> {
        if block.bbox().is_empty() {
            return Ok(());
        }
        let claims = self.grid.position_of(block.bbox()).filter(|_| block.dtype() == self.dtype);
        if claims.is_none_or(|position| self.claimed[position as usize].swap(true, Ordering::Relaxed)) {
            return Err(Error::internal(format!("a block {} has no place in the result", block.bbox())));
        }
        self.written.fetch_add(block.n_bytes(), Ordering::Relaxed);
        self.meter.charge(block.n_bytes());
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

    /// The array, once every block is there.
    pub fn finish(mut self) -> Result<Array> {
        if *self.written.get_mut() != self.n_bytes {
            return Err(Error::internal("a block of a result was never written"));
        }
        let buffer = std::mem::replace(self.buffer.get_mut(), Buffer::Bool(Vec::new()));
        Array::new(self.grid.shape(), buffer)
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        self.meter.discharge(*self.written.get_mut());
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
            let whole = Whole::new(DType::U32, &grid, &meter).unwrap();
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
    fn only_blocks_of_the_grid_come_and_each_once() {
        let array = counting(&[4, 6]);
        let grid = Grid::from_iter([Axis::uniform(4, 2), Axis::uniform(6, 3)]);
        let whole = Whole::new(DType::U32, &grid, &Meter::new()).unwrap();
        let blocks = blocks_of(&array, &grid);
        whole.write(&blocks[0]).unwrap();
        assert!(whole.write(&blocks[0]).is_err());
        let astride = Block::view_of(&array, &BoxRegion { lo: vec![1, 0], hi: vec![3, 3] }).unwrap();
        assert!(whole.write(&astride).is_err());
        let other_type = Block::from_array(&[2, 0], Array::zeros(&[2, 3], DType::F32).unwrap(), None).unwrap();
        assert!(whole.write(&other_type).is_err());
        assert!(whole.finish().is_err());
        let empty = Grid::from_iter([Axis::whole(0), Axis::uniform(6, 3)]);
        assert_eq!(Whole::new(DType::U32, &empty, &Meter::new()).unwrap().finish().unwrap().shape(), [0, 6]);
    }
}
