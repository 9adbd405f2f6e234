//! Sorting along an axis: runs inside blocks, then an exact merge by rank.
//!
//! Elements are compared by an integer key that puts NaN after everything and makes both zeros equal. Ties go to the lower position along the
//! axis of the whole tensor, so every sort is stable and every merge exact. Values are made from their keys again; only those whose key several
//! values share are copied from where they came from.

use tw_ir::kernel::{SortResults, Sorting};
use tw_ir::{BoxRegion, DType, Error, Result};

use crate::block::Block;

mod fibres;
mod item;
mod key;
mod merge;
mod parts;
mod radix;

use fibres::{Rows, for_rows};
use item::{Item, Pair, Vectors, with_vectors};
use key::{Sortable, with_sortable};
pub use merge::Streamed;
pub(crate) use merge::sort_merge;

/// The properties that all blocks of a sort share.
fn misfit() -> Error {
    Error::internal("the blocks of a sort do not fit each other")
}

/// The blocks a sort writes.
struct Targets<'a> {
    values: Option<&'a mut Block>,
    positions: Option<&'a mut Block>,
    bbox: BoxRegion,
}

impl<'a> Targets<'a> {
    fn of(results: SortResults, dtype: DType, outputs: &'a mut [Block]) -> Result<Targets<'a>> {
        let bbox = outputs.first().ok_or_else(misfit)?.bbox().clone();
        let (values, positions) = match (results, outputs) {
            (SortResults::Both, [values, positions]) => (Some(values), Some(positions)),
            (SortResults::Values, [values]) => (Some(values), None),
            (SortResults::Positions, [positions]) => (None, Some(positions)),
            _ => return Err(misfit()),
        };
        let fits = values.as_ref().is_none_or(|block| block.dtype() == dtype && block.bbox() == &bbox)
            && positions.as_ref().is_none_or(|block| block.dtype() == DType::I64 && block.bbox() == &bbox);
        if fits { Ok(Targets { values, positions, bbox }) } else { Err(misfit()) }
    }

    /// Writes items into rows, which go through a point; those of row `j` begin at `j * stride`. `copies` calls a function with the values of
    /// row `j` that have a key, in the order of their positions, until it says stop.
    fn write<T: Sortable, I: Item<Key = T::Key>>(
        &mut self,
        order: Order,
        at: &[u64],
        n_rows: usize,
        (items, stride): (&[I], usize),
        copies: impl Fn(usize, T::Key, &mut dyn FnMut(T) -> bool) -> Result<()>,
    ) -> Result<()> {
        let kept = (self.bbox.hi[order.axis] - self.bbox.lo[order.axis]) as usize;
        if let Some(block) = &mut self.values {
            let to = Rows::through(block, at, order.axis, n_rows)?;
            let mut target = block.target()?.1;
            let out = T::of_mut(&mut target);
            for k in 0..kept {
                for j in 0..n_rows {
                    out[to.at(j, k)] = T::from_key(order.turn(items[j * stride + k].key()));
                }
            }
            for j in 0..n_rows {
                let row = &items[j * stride..j * stride + kept];
                for &shared in T::SHARED {
                    let key = order.turn(shared);
                    let mut k = row.partition_point(|item| item.key() < key);
                    let end = row.partition_point(|item| item.key() <= key);
                    if k == end {
                        continue;
                    }
                    copies(j, shared, &mut |value| {
                        out[to.at(j, k)] = value;
                        k += 1;
                        k < end
                    })?;
                }
            }
        }
        if let Some(block) = &mut self.positions {
            let to = Rows::through(block, at, order.axis, n_rows)?;
            let mut target = block.target()?.1;
            let out = <i64 as crate::strip::Element>::of_mut(&mut target);
            for k in 0..kept {
                for j in 0..n_rows {
                    out[to.at(j, k)] = items[j * stride + k].position() as i64;
                }
            }
        }
        Ok(())
    }
}

/// Along which axis, and which way.
#[derive(Clone, Copy)]
struct Order {
    axis: usize,
    descending: bool,
}

impl Order {
    fn of(sorting: Sorting) -> Order {
        Order { axis: sorting.spec.axis as usize, descending: sorting.spec.descending }
    }

    /// Turns a key around if the order is descending; turns it back as well.
    #[inline]
    fn turn<K: std::ops::Not<Output = K>>(self, key: K) -> K {
        if self.descending { !key } else { key }
    }
}

/// Sorts one block; positions are those along the axis of the whole tensor.
pub(crate) fn sort_run(sorting: Sorting, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    let [block] = operands else { return Err(misfit()) };
    let order = Order::of(sorting);
    let targets = Targets::of(sorting.results, block.dtype(), outputs)?;
    let mut expected = block.bbox().clone();
    let length = |bbox: &BoxRegion| bbox.hi.get(order.axis).zip(bbox.lo.get(order.axis)).map(|(hi, lo)| hi - lo);
    if length(&targets.bbox).is_none() || length(&targets.bbox) > length(&expected) {
        return Err(misfit());
    }
    // The kept elements begin at the start of the block, or at 0 if the block is the only one.
    (expected.lo[order.axis], expected.hi[order.axis]) = (targets.bbox.lo[order.axis], targets.bbox.hi[order.axis]);
    if targets.bbox != expected {
        return Err(misfit());
    }
    let n = extent(block.bbox(), order.axis);
    let rows_together = match order.axis + 1 == block.bbox().rank() {
        true => 1,
        false => extent(block.bbox(), block.bbox().rank() - 1).min(fibres::MOST_TOGETHER),
    };
    let room = [n.saturating_mul(rows_together), n];
    with_sortable!(block.dtype(), T => match sorting.results {
        SortResults::Values => with_vectors(room, |vectors: &mut Vectors<<T as Sortable>::Key>| {
            run_rows::<T, _>(order, block, targets, vectors)
        }),
        _ => with_vectors(room, |vectors: &mut Vectors<Pair<<T as Sortable>::Key>>| {
            run_rows::<T, _>(order, block, targets, vectors)
        }),
    })
}

/// The extent of a box along one of its axes.
fn extent(bbox: &BoxRegion, axis: usize) -> usize {
    (bbox.hi[axis] - bbox.lo[axis]) as usize
}

fn run_rows<T: Sortable, I: Item<Key = T::Key>>(
    order: Order,
    block: &Block,
    mut targets: Targets<'_>,
    vectors: &mut Vectors<I>,
) -> Result<()> {
    let data = T::of(block.data());
    let range = block.bbox().range(order.axis);
    let n = (range.end - range.start) as usize;
    let kept = (targets.bbox.hi[order.axis] - targets.bbox.lo[order.axis]) as usize;
    let [items, scratch] = vectors;
    for_rows(block.bbox(), order.axis, |at, n_rows| {
        let from = Rows::through(block, at, order.axis, n_rows)?;
        items.resize(n * n_rows, I::default());
        scratch.resize(n, I::default());
        load(data, from, order, range.start, n, items);
        for row in items.chunks_exact_mut(n) {
            I::select(row, kept);
            radix::sort(&mut row[..kept], scratch);
        }
        targets.write::<T, I>(order, at, n_rows, (items, n), |j, key, copy| {
            let mut all = (0..n).map(|k| data[from.at(j, k)]).filter(|value| value.key() == key);
            while all.next().is_some_and(&mut *copy) {}
            Ok(())
        })
    })
}

/// Makes items out of rows of elements, row after row.
fn load<T: Sortable, I: Item<Key = T::Key>>(
    data: &[T],
    from: Rows,
    order: Order,
    first: u64,
    n: usize,
    items: &mut [I],
) {
    let item = |value: T, k: usize| I::new(order.turn(value.key()), first + k as u64);
    if from.n_rows == 1 && from.step == 1 {
        let row = &data[from.start..from.start + n];
        items.iter_mut().zip(row).enumerate().for_each(|(k, (out, &value))| *out = item(value, k));
        return;
    }
    for k in 0..n {
        for j in 0..from.n_rows {
            items[j * n + k] = item(data[from.at(j, k)], k);
        }
    }
}
