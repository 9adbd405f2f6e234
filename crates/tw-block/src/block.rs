//! A box of a tensor with its elements.

use std::borrow::Cow;
use std::sync::Arc;

use tw_ir::dtype::Element;
use tw_ir::{
    Array, ArrayView, BoxRegion, Buffer, DType, Error, Result, Scalar, SliceMut, Writable, shape, with_slice_mut,
};

use crate::copy::{Place, copy_box};
use crate::memory::{Meter, Storage, n_bytes};
use crate::whole::Lent;

/// A box of a tensor with its elements: either its own row-major storage, or a read-only view of a shared array, or, in other formats than the dense one,
/// several buffers.
///
/// The last buffer of a block has its values, those before it say where they belong (positions, coordinates, bitmaps); a dense block has the values alone. What reads
/// elements by their coordinates is for dense blocks: it refuses others, and kernels for dense blocks are never given others.
#[derive(Debug)]
pub struct Block {
    bbox: BoxRegion,
    elements: Elements,
    past_cache: bool,
}

#[derive(Debug)]
enum Elements {
    Owned(Storage),
    Shared {
        array: Arc<Array>,
        offset: usize,
        strides: Box<[usize]>,
    },
    /// Two buffers or more.
    Parts(Box<[Storage]>),
    /// A part of an array that is put together. Kernels write it; nobody reads it before the array is whole.
    Lent(Lent),
}

impl Block {
    /// A block with its own storage, to be written by a kernel. Before that it may hold anything, though usually zeros.
    pub fn for_output(dtype: DType, bbox: BoxRegion, meter: Option<&Arc<Meter>>) -> Result<Block> {
        let n = n_elements(&bbox)?;
        let storage = Storage::new(dtype, n, meter).ok_or_else(|| {
            Error::resource(format!("no memory for a block of {} bytes", n as u64 * dtype.size()))
                .note(format!("the block is {dtype} {bbox}"))
        })?;
        Ok(Block { bbox, elements: Elements::Owned(storage), past_cache: false })
    }

    /// A block whose first element is at `lo`, with the elements of an array.
    pub fn from_array(lo: &[u64], array: Array, meter: Option<&Arc<Meter>>) -> Result<Block> {
        let bbox = box_at(lo, array.shape())?;
        let elements = Elements::Owned(Storage::from_buffer(array.into_data(), meter));
        Ok(Block { bbox, elements, past_cache: false })
    }

    /// A view of one region of a shared array; nothing is copied and nothing is charged.
    pub fn view_of(array: &Arc<Array>, region: &BoxRegion) -> Result<Block> {
        let whole = array.shape();
        if region.rank() != whole.len() || region.hi.iter().zip(whole).any(|(hi, n)| hi > n) {
            return Err(Error::internal(format!("a view of {region} of an array of shape {}", shape::display(whole))));
        }
        n_elements(region)?;
        let strides: Box<[usize]> = shape::row_major_strides(whole).into_iter().map(|s| s as usize).collect();
        let offset = region.lo.iter().zip(&strides).map(|(&lo, &stride)| lo as usize * stride).sum();
        let elements = Elements::Shared { array: Arc::clone(array), offset, strides };
        Ok(Block { bbox: region.clone(), elements, past_cache: false })
    }

    /// A block of several buffers, the values last. One buffer makes a dense block, and has to have as many elements as the box.
    pub fn from_buffers(bbox: BoxRegion, buffers: Vec<Buffer>, meter: Option<&Arc<Meter>>) -> Result<Block> {
        Block::of_storage(bbox, buffers.into_iter().map(|buffer| Storage::from_buffer(buffer, meter)).collect())
    }

    /// An output block whose elements lie where an array that is put together has them.
    pub(crate) fn lent(bbox: BoxRegion, part: Lent) -> Block {
        Block { bbox, elements: Elements::Lent(part), past_cache: false }
    }

    /// The part of an array that is put together, if the block is one.
    pub(crate) fn as_lent(&self) -> Option<&Lent> {
        match &self.elements {
            Elements::Lent(part) => Some(part),
            _ => None,
        }
    }

    /// The same from blocks that own one buffer each, which stay charged.
    pub(crate) fn from_parts(bbox: BoxRegion, parts: Vec<Block>) -> Result<Block> {
        let storage = parts.into_iter().map(|part| match part.elements {
            Elements::Owned(storage) => Ok(storage),
            _ => Err(Error::internal("a part of a block that does not own its buffer")),
        });
        Block::of_storage(bbox, storage.collect::<Result<_>>()?)
    }

    fn of_storage(bbox: BoxRegion, mut parts: Vec<Storage>) -> Result<Block> {
        let elements = match parts.len() {
            0 => return Err(Error::internal(format!("a block {bbox} without a buffer"))),
            1 => Elements::Owned(parts.remove(0)),
            _ => Elements::Parts(parts.into()),
        };
        let block = Block { bbox, elements, past_cache: false };
        // The box of a sparse block may have more points than can be counted.
        if block.is_dense() && n_elements(&block.bbox)? != block.data().len() {
            return Err(Error::internal(format!("{} elements for a block {}", block.data().len(), block.bbox)));
        }
        Ok(block)
    }

    /// True if the block has an element for every point of its box, in one buffer that can be read.
    pub fn is_dense(&self) -> bool {
        matches!(self.elements, Elements::Owned(_) | Elements::Shared { .. })
    }

    /// The buffers, the values last. That of a view has what surrounds it, too.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = &Buffer> {
        let (first, others) = match &self.elements {
            Elements::Owned(storage) => (storage.buffer(), &[][..]),
            Elements::Shared { array, .. } => (array.data(), &[][..]),
            Elements::Parts(parts) => (parts[0].buffer(), &parts[1..]),
            Elements::Lent(part) => (part.nothing(), &[][..]),
        };
        Parts { first: Some(first), others: others.iter() }
    }

    fn require_dense(&self) -> Result<()> {
        match &self.elements {
            Elements::Parts(_) => {
                Err(Error::internal(format!("a block {} of several buffers is taken for a dense one", self.bbox)))
            }
            Elements::Lent(_) => {
                Err(Error::internal(format!("a block {} is read before its array is whole", self.bbox)))
            }
            Elements::Owned(_) | Elements::Shared { .. } => Ok(()),
        }
    }

    /// Marks an output block without an early reader, so that kernels may write it past the caches. Elements are the same either way.
    pub fn write_past_cache(mut self) -> Block {
        self.past_cache = true;
        self
    }

    /// True if the block has no early reader.
    pub(crate) fn is_past_cache(&self) -> bool {
        self.past_cache
    }

    /// A block of bytes as one of truth values, in the same memory: any byte but 0 is true.
    pub(crate) fn into_truth_values(self) -> Block {
        // Collected in place: both are one byte.
        let values = |bytes: Vec<u8>| Buffer::Bool(bytes.into_iter().map(|byte| byte != 0).collect());
        let retype = |buffer: Buffer| match buffer {
            Buffer::U8(bytes) => values(bytes),
            other => other,
        };
        let elements = match self.elements {
            Elements::Owned(storage) => Elements::Owned(storage.retyped(retype)),
            other => other,
        };
        Block { elements, ..self }
    }

    /// True if its elements belong to a shared array, so that dropping it frees nothing.
    pub fn is_view(&self) -> bool {
        matches!(self.elements, Elements::Shared { .. })
    }

    /// Where it lies in its tensor.
    pub fn bbox(&self) -> &BoxRegion {
        &self.bbox
    }

    /// Moves the block to another place of the same shape.
    pub fn set_bbox(&mut self, bbox: BoxRegion) -> Result<()> {
        if bbox.shape() != self.bbox.shape() {
            return Err(Error::internal(format!("a block at {} cannot move to {bbox}", self.bbox)));
        }
        self.bbox = bbox;
        Ok(())
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.data().dtype()
    }

    /// Number of elements.
    pub fn n_elements(&self) -> u64 {
        self.bbox.n_elements()
    }

    /// Bytes of its elements, whether owned or viewed, or of all its buffers.
    pub fn n_bytes(&self) -> u64 {
        match &self.elements {
            Elements::Parts(parts) => parts.iter().map(|part| n_bytes(part.buffer())).sum(),
            _ => self.n_elements() * self.dtype().size(),
        }
    }

    /// The element at coordinates of the whole tensor; `None` outside the block.
    pub fn get(&self, coords: &[u64]) -> Option<Scalar> {
        self.position(coords).map(|position| self.data().get(position))
    }

    /// Overwrites every element of an output block.
    pub fn fill(&mut self, value: Scalar) -> Result<()> {
        fill(&mut self.target()?.1, value)
    }

    /// A contiguous copy of the elements.
    pub fn to_array(&self) -> Result<Array> {
        self.require_dense()?;
        let mut array = Block::for_output(self.dtype(), self.bbox.clone(), None)?.into_array()?;
        self.copy_overlap_into(&self.bbox.lo, &mut array)?;
        Ok(array)
    }

    /// The elements where they lie, if they lie together.
    pub fn lend(&self) -> Option<ArrayView<'_>> {
        self.require_dense().ok()?;
        let shape = self.bbox.shape();
        // Along an axis of one element any stride will do.
        let dense = shape::row_major_strides(&shape).into_iter().zip(self.strides()).zip(&shape);
        let together =
            self.bbox.is_empty() || dense.into_iter().all(|((dense, own), &n)| n == 1 || dense == own as u64);
        let data = self.data().slice(self.offset(), self.n_elements() as usize).filter(|_| together)?;
        ArrayView::new(shape, data).ok()
    }

    /// The elements as an array; copies only a view.
    pub fn into_array(self) -> Result<Array> {
        match self.elements {
            Elements::Owned(storage) => Array::new(self.bbox.shape(), storage.into_buffer()),
            Elements::Shared { .. } | Elements::Parts(_) | Elements::Lent(_) => self.to_array(),
        }
    }

    /// Copies this block of a tensor with all axes reversed into a block that holds it.
    pub fn copy_transposed_into(&self, target: &mut Block) -> Result<()> {
        self.require_dense()?;
        let reversed = |coords: &[u64]| coords.iter().rev().copied().collect::<Vec<u64>>();
        let bbox = BoxRegion { lo: reversed(&self.bbox.lo), hi: reversed(&self.bbox.hi) };
        if bbox.is_empty() || !target.bbox.contains(&bbox) {
            return Ok(());
        }
        let from: Vec<usize> = self.strides().into_iter().rev().collect();
        let to = target.strides();
        let (target_box, mut buffer) = target.target()?;
        let offset = distance(&target_box.lo, &bbox.lo, &to);
        let source = Place { offset: self.offset(), strides: &from };
        copy_box(&bbox.shape(), self.data(), source, &mut buffer, Place { offset, strides: &to })
    }

    /// Copies what this block shares with an array whose first element is at `lo`.
    pub fn copy_overlap_into(&self, lo: &[u64], target: &mut Array) -> Result<()> {
        let target_box = box_at(lo, target.shape())?;
        self.copy_moved_overlap(&self.bbox, &target_box, target.data_mut())
    }

    /// As if this block were at `bbox`: copies what it shares with row-major storage at `target_box`.
    pub fn copy_moved_overlap(
        &self,
        bbox: &BoxRegion,
        target_box: &BoxRegion,
        target: &mut impl Writable,
    ) -> Result<()> {
        self.require_dense()?;
        if bbox.rank() != target_box.rank() {
            return Err(Error::internal(format!("a copy from {bbox} to {target_box}")));
        }
        let common = bbox.intersect(target_box);
        if common.is_empty() {
            return Ok(());
        }
        let src_strides = self.strides();
        let dst_strides = row_major(target_box);
        let src = self.offset() + distance(&bbox.lo, &common.lo, &src_strides);
        let dst = distance(&target_box.lo, &common.lo, &dst_strides);
        copy_box(
            &common.shape(),
            self.data(),
            Place { offset: src, strides: &src_strides },
            target,
            Place { offset: dst, strides: &dst_strides },
        )
    }

    /// The storage the elements lie in; a view shares it with what surrounds it. Of several buffers, the values. Of a part of an array that is not whole yet,
    /// a buffer of its type without elements.
    pub fn data(&self) -> &Buffer {
        match &self.elements {
            Elements::Owned(storage) => storage.buffer(),
            Elements::Shared { array, .. } => array.data(),
            Elements::Parts(parts) => parts[parts.len() - 1].buffer(),
            Elements::Lent(part) => part.nothing(),
        }
    }

    /// Overwrites the elements of an output block.
    pub(crate) fn replace(&mut self, array: Array) -> Result<()> {
        let (bbox, buffer) = self.output()?;
        if array.dtype() != buffer.dtype() || array.shape() != bbox.shape() {
            return Err(Error::internal(format!(
                "a result of type {} and shape {} for a block of type {} at {bbox}",
                array.dtype(),
                shape::display(array.shape()),
                buffer.dtype()
            )));
        }
        *buffer = array.into_data();
        Ok(())
    }

    /// The elements of an output block as an array, which [`Block::replace`] is to give back; until then the block has none.
    pub(crate) fn take(&mut self) -> Result<Array> {
        let (bbox, buffer) = self.output()?;
        let shape = bbox.shape();
        let nothing = Buffer::zeros(buffer.dtype(), 0);
        Array::new(shape, std::mem::replace(buffer, nothing))
    }

    /// The storage of an output block that owns it, together with its box: for who made the block.
    pub fn output(&mut self) -> Result<(&BoxRegion, &mut Buffer)> {
        match &mut self.elements {
            Elements::Owned(storage) => Ok((&self.bbox, storage.buffer_mut())),
            Elements::Lent(_) => Err(Error::internal("a part of an array has no storage of its own")),
            Elements::Shared { .. } | Elements::Parts(_) => Err(unwritable()),
        }
    }

    /// Where a kernel writes the elements of an output block, in row-major order, together with its box.
    pub(crate) fn target(&mut self) -> Result<(&BoxRegion, SliceMut<'_>)> {
        match &mut self.elements {
            Elements::Owned(storage) => Ok((&self.bbox, storage.buffer_mut().elements_mut())),
            Elements::Lent(part) => Ok((&self.bbox, part.elements_mut())),
            Elements::Shared { .. } | Elements::Parts(_) => Err(unwritable()),
        }
    }

    /// Position of the first element in the storage.
    pub fn offset(&self) -> usize {
        match &self.elements {
            Elements::Owned(_) | Elements::Parts(_) | Elements::Lent(_) => 0,
            Elements::Shared { offset, .. } => *offset,
        }
    }

    /// Distance in the storage between neighbours along each axis.
    pub fn strides(&self) -> Vec<usize> {
        match &self.elements {
            Elements::Owned(_) | Elements::Parts(_) | Elements::Lent(_) => row_major(&self.bbox),
            Elements::Shared { strides, .. } => strides.to_vec(),
        }
    }

    /// Distance in the storage between neighbours along one axis.
    pub(crate) fn stride(&self, axis: usize) -> usize {
        match &self.elements {
            Elements::Owned(_) | Elements::Parts(_) | Elements::Lent(_) => row_major_stride(&self.bbox, axis),
            Elements::Shared { strides, .. } => strides[axis],
        }
    }

    /// The elements in row-major order; copied only if they are spread out in a larger array.
    pub(crate) fn row_major(&self) -> Result<Cow<'_, Buffer>> {
        match self.contiguous_all() {
            Some(buffer) => Ok(Cow::Borrowed(buffer)),
            None => Ok(Cow::Owned(self.to_array()?.into_data())),
        }
    }

    /// Elements in row-major order, and where the first is; copied only if they do not lie together.
    pub(crate) fn row_major_from(&self) -> Result<(Cow<'_, Buffer>, usize)> {
        self.require_dense()?;
        let dense = row_major(&self.bbox);
        let shape = self.bbox.shape();
        let together = (0..shape.len()).all(|axis| shape[axis] <= 1 || self.stride(axis) == dense[axis]);
        if together { Ok((Cow::Borrowed(self.data()), self.offset())) } else { Ok((self.row_major()?, 0)) }
    }

    /// The whole storage, if it holds nothing but the elements in row-major order.
    pub(crate) fn contiguous_all(&self) -> Option<&Buffer> {
        match &self.elements {
            Elements::Owned(storage) => Some(storage.buffer()),
            Elements::Shared { array, .. } => (array.shape() == self.bbox.shape()).then(|| array.data()),
            Elements::Parts(_) | Elements::Lent(_) => None,
        }
    }

    fn position(&self, coords: &[u64]) -> Option<usize> {
        let inside = coords.len() == self.bbox.rank()
            && coords.iter().enumerate().all(|(axis, c)| self.bbox.range(axis).contains(c));
        (inside && self.is_dense()).then(|| self.offset() + distance(&self.bbox.lo, coords, &self.strides()))
    }
}

fn unwritable() -> Error {
    Error::internal("a view, or a block of several buffers, cannot be written as a dense block")
}

/// The buffers of a block.
struct Parts<'a> {
    first: Option<&'a Buffer>,
    others: std::slice::Iter<'a, Storage>,
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a Buffer;

    fn next(&mut self) -> Option<&'a Buffer> {
        self.first.take().or_else(|| self.others.next().map(Storage::buffer))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = self.others.len() + self.first.is_some() as usize;
        (n, Some(n))
    }
}

impl ExactSizeIterator for Parts<'_> {}

/// Overwrites every element.
pub(crate) fn fill(target: &mut impl Writable, value: Scalar) -> Result<()> {
    let target = target.elements_mut();
    if target.dtype() != value.dtype().storage() {
        return Err(Error::internal(format!("a buffer of {} filled with {value}", target.dtype())));
    }
    with_slice_mut!(target, values => values.fill(Element::from_scalar(value)));
    Ok(())
}

/// Bytes of the widest element type.
const LARGEST_ELEMENT: u64 = 16;

fn n_elements(bbox: &BoxRegion) -> Result<usize> {
    let mut n: u64 = 1;
    for (&lo, &hi) in bbox.lo.iter().zip(&bbox.hi) {
        n = match n.checked_mul(hi.saturating_sub(lo)) {
            Some(n) if n <= i64::MAX as u64 / LARGEST_ELEMENT => n,
            _ if bbox.is_empty() => return Ok(0),
            _ => return Err(Error::resource(format!("a block {bbox} has more bytes than can be counted"))),
        };
    }
    Ok(n as usize)
}

fn box_at(lo: &[u64], shape: &[u64]) -> Result<BoxRegion> {
    let hi: Option<Vec<u64>> = lo.iter().zip(shape).map(|(&lo, &n)| lo.checked_add(n)).collect();
    match hi {
        Some(hi) if lo.len() == shape.len() => Ok(BoxRegion { lo: lo.to_vec(), hi }),
        _ => Err(Error::internal(format!("an array of shape {} at {lo:?}", shape::display(shape)))),
    }
}

/// Distances between neighbours of row-major storage.
pub(crate) fn row_major(bbox: &BoxRegion) -> Vec<usize> {
    let mut strides = vec![1; bbox.rank()];
    for axis in (0..bbox.rank().saturating_sub(1)).rev() {
        let length = bbox.hi[axis + 1].saturating_sub(bbox.lo[axis + 1]);
        strides[axis] = strides[axis + 1] * length.max(1) as usize;
    }
    strides
}

/// Distance between neighbours along one axis of row-major storage.
pub(crate) fn row_major_stride(bbox: &BoxRegion, axis: usize) -> usize {
    (axis + 1..bbox.rank()).map(|k| bbox.hi[k].saturating_sub(bbox.lo[k]).max(1) as usize).product()
}

fn distance(from: &[u64], to: &[u64], strides: &[usize]) -> usize {
    from.iter().zip(to).zip(strides).map(|((&from, &to), &stride)| (to - from) as usize * stride).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(shape: &[u64]) -> Arc<Array> {
        let n = shape.iter().product::<u64>() as i64;
        Arc::new(Array::new(shape.to_vec(), Buffer::I64((0..n).collect())).unwrap())
    }

    #[test]
    fn views_see_their_region() {
        let array = counting(&[4, 5]);
        let region = BoxRegion { lo: vec![1, 2], hi: vec![3, 5] };
        let view = Block::view_of(&array, &region).unwrap();
        assert_eq!(view.to_array().unwrap().to_f64_vec(), [7.0, 8.0, 9.0, 12.0, 13.0, 14.0]);
        assert_eq!(view.get(&[2, 4]), Some(Scalar::I64(14)));
        assert_eq!(view.get(&[0, 2]), None);
        assert_eq!((view.n_elements(), view.n_bytes()), (6, 48));
        assert!(Block::view_of(&array, &BoxRegion { lo: vec![0, 0], hi: vec![4, 6] }).is_err());
    }

    #[test]
    fn a_tensor_is_gathered_from_its_blocks() {
        let array = counting(&[5, 7]);
        let mut gathered = Array::zeros(&[3, 4], DType::I64).unwrap();
        for (rows, columns) in [(0..2, 0..3), (0..2, 3..7), (2..5, 0..3), (2..5, 3..7)] {
            let region = BoxRegion::from_ranges([rows, columns]);
            Block::view_of(&array, &region).unwrap().copy_overlap_into(&[1, 2], &mut gathered).unwrap();
        }
        let window = Block::view_of(&array, &BoxRegion { lo: vec![1, 2], hi: vec![4, 6] }).unwrap();
        assert_eq!(gathered, window.to_array().unwrap());
    }

    #[test]
    fn storage_is_charged_until_it_goes() {
        let meter = Meter::new();
        let block = Block::for_output(DType::F32, BoxRegion::whole(&[10, 10]), Some(&meter)).unwrap();
        let moved = Block::from_array(&[3], Array::from_f64(&[1.0; 4]), Some(&meter)).unwrap();
        assert_eq!(meter.now(), 432);
        drop(block);
        assert_eq!(moved.into_array().unwrap().to_f64_vec(), [1.0; 4]);
        assert_eq!((meter.now(), meter.peak()), (0, 432));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for shape in [&[1u64 << 45, 1 << 10][..], &[u64::MAX, 2], &[1 << 58]] {
            let error = Block::for_output(DType::F64, BoxRegion::whole(shape), None).unwrap_err();
            assert_eq!(error.blame(), tw_ir::Blame::Resource, "{error}");
        }
        let empty = Block::for_output(DType::F64, BoxRegion::whole(&[u64::MAX, 0]), None).unwrap();
        assert_eq!(empty.n_elements(), 0);
    }

    #[test]
    fn blocks_move_only_to_boxes_of_their_shape() {
        let mut block = Block::from_array(&[0], Array::from_f64(&[1.0, 2.0]), None).unwrap();
        block.set_bbox(BoxRegion { lo: vec![5], hi: vec![7] }).unwrap();
        assert_eq!(block.get(&[6]), Some(Scalar::F64(2.0)));
        assert!(block.set_bbox(BoxRegion { lo: vec![5], hi: vec![8] }).is_err());
    }
}
