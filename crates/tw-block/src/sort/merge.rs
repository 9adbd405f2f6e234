//! Merging sorted runs by rank.
//!
//! An output block holds a range of ranks. Where that range begins and ends in every run is found by bisection, so a block looks at no element that
//! another block owns, apart from a few to find its place. Runs may be on disk: then a piece of each is in memory at a time. The first elements of all pieces
//! are in memory; where a row lies together they narrow the bisection to a few pieces of every run ([`samples`]), and an output begins where the one before it ended.
//! Rows along another axis than the last one are spread over all pieces of a run, and read them once per row.

use std::cell::RefCell;
use std::ops::Range;

use tw_ir::kernel::{SortResults, Sorting};
use tw_ir::{BoxRegion, DType, Result};

use super::item::{Item, Pair, Vectors, with_vectors};
use super::key::{Sortable, with_sortable};
use super::parts::merge_parts;
use super::{Order, Rows, Targets, for_rows, misfit, radix};
use crate::block::Block;
use crate::spill::{PieceReader, SpilledBlock};
use crate::strip::Element;

mod samples;

use samples::{Samples, enclose};

/// So many runs are merged pairwise; more are sorted by digits, as if they were not in order.
const FEW_RUNS: usize = 8;

/// One row of a sorted run. Runs are in the order of their positions, so equal keys go to the earlier run.
struct Run<'r, 'a, T> {
    values: Column<'r, 'a, T>,
    positions: Option<Column<'r, 'a, i64>>,
    len: usize,
}

/// One row of a block, in memory or on disk.
enum Column<'r, 'a, T> {
    Memory(&'r [T], Rows),
    Disk(&'r RefCell<PieceReader<'a>>, Rows),
}

impl<T: Element> Column<'_, '_, T> {
    /// An element; `None` if the disk fails.
    fn get(&self, k: usize) -> Option<T> {
        match self {
            Column::Memory(data, row) => Some(data[row.at(0, k)]),
            Column::Disk(reader, row) => {
                let at = row.at(0, k);
                let mut reader = reader.borrow_mut();
                let piece = reader.piece_with(at).ok()?;
                Some(piece.elements::<T>()[at - piece.first])
            }
        }
    }

    /// Calls `f` with the elements of a range.
    fn each(&self, range: Range<usize>, mut f: impl FnMut(T)) -> Result<()> {
        match self {
            Column::Memory(data, row) => range.for_each(|k| f(data[row.at(0, k)])),
            Column::Disk(reader, row) => {
                let mut reader = reader.borrow_mut();
                let mut k = range.start;
                while k < range.end {
                    let piece = reader.piece_with(row.at(0, k))?;
                    let data = piece.elements::<T>();
                    while k < range.end && row.at(0, k) < piece.first + piece.n {
                        f(data[row.at(0, k) - piece.first]);
                        k += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

impl<T: Sortable> Column<'_, '_, T> {
    fn is_on_disk(&self) -> bool {
        matches!(self, Column::Disk(..))
    }

    /// The elements that are known without reading, if only some are.
    fn samples(&self, len: usize) -> Option<Samples<'_, T>> {
        let Column::Disk(reader, row) = self else { return None };
        let (firsts, distance) = reader.borrow().block().index().filter(|_| row.step == 1)?;
        Samples::new(T::of(firsts), distance, row.start, len)
    }
}

impl<T: Sortable> Run<'_, '_, T> {
    /// The key of an element. A disk that fails gives any key: reading the elements afterwards reports it.
    fn key(&self, k: usize) -> T::Key {
        self.values.get(k).map_or_else(T::Key::default, T::key)
    }

    /// The first of a range that does not come before, looked for from a place near it.
    fn search(&self, range: Range<usize>, near: usize, comes_before: impl Fn(T::Key) -> bool) -> usize {
        let range = match self.values.samples(self.len) {
            Some(samples) => samples.enclose(range, &comes_before),
            None => range,
        };
        search(range.start, range.end, near, |k| comes_before(self.key(k)))
    }
}

/// How many entries of each run are among the first `rank` of all; at least `from`.
fn split<T: Sortable>(runs: &[Run<'_, '_, T>], order: Order, rank: usize, from: Option<Vec<usize>>) -> Vec<usize> {
    looks_and_split(runs, order, rank, from).1
}

/// The same, and how many entries had to be compared with all runs.
fn looks_and_split<T: Sortable>(
    runs: &[Run<'_, '_, T>],
    order: Order,
    rank: usize,
    from: Option<Vec<usize>>,
) -> (usize, Vec<usize>) {
    let (mut lo, mut hi) = match from {
        Some(from) => (from, runs.iter().map(|run| run.len).collect()),
        None => enclose(runs, order, rank),
    };
    let total: usize = lo.iter().zip(&hi).map(|(lo, hi)| hi - lo).sum();
    // Where to look: at first as if all runs were alike.
    let share = rank.saturating_sub(lo.iter().sum()) as f64 / total.max(1) as f64;
    let mut near: Vec<usize> = lo.iter().zip(&hi).map(|(lo, hi)| lo + ((hi - lo) as f64 * share) as usize).collect();
    let open_at_first: Vec<usize> = lo.iter().zip(&hi).map(|(lo, hi)| hi - lo).collect();
    // How far beyond the expected place the next look goes, so that the true one is soon enclosed from both sides.
    let mut reach = 0.0;
    let (mut below, mut above) = (false, false);
    let mut missing = 0.0;
    let (mut open, mut is_slow) = (total, false);
    let mut looks = 0;
    let is_on_disk = runs.iter().any(|run| run.values.is_on_disk());
    loop {
        let widest = (0..runs.len()).max_by_key(|&k| hi[k] - lo[k]);
        let Some(mut widest) = widest.filter(|&k| hi[k] > lo[k]) else { return (looks, lo) };
        // An entry of the widest open range is compared with all; one of its two sides is then decided. Runs that hardly overlap, as those of sorted data,
        // are decided one at a time that way; the median of all open ranges decides at least a quarter of the open elements.
        if is_slow {
            widest = median(runs, order, &lo, &hi).unwrap_or(widest);
        }
        let middle = if is_slow || (below && above) {
            lo[widest].midpoint(hi[widest])
        } else {
            let step = missing * reach * open_at_first[widest] as f64 / total as f64;
            let place = near[widest] as f64 + step;
            (place.max(0.0) as usize).clamp(lo[widest], hi[widest] - 1)
        };
        let pivot = order.turn(runs[widest].key(middle));
        for (r, run) in runs.iter().enumerate() {
            near[r] = match r.cmp(&widest) {
                std::cmp::Ordering::Equal => middle,
                std::cmp::Ordering::Less => run.search(lo[r]..hi[r], near[r], |key| order.turn(key) <= pivot),
                std::cmp::Ordering::Greater => run.search(lo[r]..hi[r], near[r], |key| order.turn(key) < pivot),
            };
        }
        let before: usize = near.iter().sum();
        missing = rank as f64 - before as f64;
        if before < rank {
            below = true;
            lo.copy_from_slice(&near);
            lo[widest] = middle + 1;
        } else {
            above = true;
            hi.copy_from_slice(&near);
        }
        reach = if reach == 0.0 { 1.5 } else { reach * 4.0 };
        let left: usize = lo.iter().zip(&hi).map(|(lo, hi)| hi - lo).sum();
        // On disk, far looks are dear: as long as the place is not enclosed from both sides, looks reach out from where it is expected.
        is_slow = (!is_on_disk || below && above) && left > open / 4 * 3;
        open = left;
        looks += 1;
    }
}

/// The run whose middle is the median of the middles of all open ranges, each counted as often as its range is long.
fn median<T: Sortable>(runs: &[Run<'_, '_, T>], order: Order, lo: &[usize], hi: &[usize]) -> Option<usize> {
    let open = (0..runs.len()).filter(|&r| hi[r] > lo[r]);
    let mut middles: Vec<(T::Key, usize)> = open.map(|r| (order.turn(runs[r].key(lo[r].midpoint(hi[r]))), r)).collect();
    // Equal keys go to the earlier run.
    middles.sort_unstable();
    let half: usize = middles.iter().map(|&(_, r)| hi[r] - lo[r]).sum::<usize>() / 2;
    let mut passed = 0;
    middles.into_iter().map(|(_, r)| r).find(|&r| {
        passed += hi[r] - lo[r];
        passed > half
    })
}

/// The first of `lo..hi` that does not come before, looked for from a place near it.
fn search(lo: usize, hi: usize, near: usize, comes_before: impl Fn(usize) -> bool) -> usize {
    let (mut lo, mut hi) = (lo, hi);
    let mut step = 1;
    let mut at = near.clamp(lo, hi);
    if at < hi && comes_before(at) {
        lo = at + 1;
        while at + step < hi {
            at += step;
            if !comes_before(at) {
                hi = at;
                break;
            }
            lo = at + 1;
            step *= 2;
        }
    } else {
        hi = at;
        while at >= lo + step {
            at -= step;
            if comes_before(at) {
                lo = at + 1;
                break;
            }
            hi = at;
            step *= 2;
        }
    }
    while lo < hi {
        let middle = lo.midpoint(hi);
        if comes_before(middle) { lo = middle + 1 } else { hi = middle }
    }
    lo
}

/// An operand of a merge, in memory or on disk.
#[derive(Clone, Copy, Debug)]
pub enum Streamed<'a> {
    /// In main memory.
    Memory(&'a Block),
    /// In the spill file.
    Disk(&'a SpilledBlock),
}

impl Streamed<'_> {
    fn bbox(&self) -> &BoxRegion {
        match self {
            Streamed::Memory(block) => block.bbox(),
            Streamed::Disk(block) => block.bbox(),
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Streamed::Memory(block) => block.dtype(),
            Streamed::Disk(block) => block.dtype(),
        }
    }
}

/// An operand that can be read.
enum Opened<'a> {
    Memory(&'a Block),
    Disk(&'a BoxRegion, RefCell<PieceReader<'a>>),
}

impl<'a> Opened<'a> {
    /// Operands of one type.
    fn all(operands: &[Streamed<'a>]) -> Result<Vec<Opened<'a>>> {
        let on_disk = operands.iter().filter_map(|operand| match operand {
            Streamed::Memory(_) => None,
            Streamed::Disk(block) => Some(*block),
        });
        let mut readers = PieceReader::of_all(on_disk)?.into_iter();
        let open = |operand: &Streamed<'a>| match operand {
            Streamed::Memory(block) => Ok(Opened::Memory(block)),
            Streamed::Disk(block) => {
                readers.next().map(|reader| Opened::Disk(block.bbox(), RefCell::new(reader))).ok_or_else(misfit)
            }
        };
        operands.iter().map(open).collect()
    }

    fn len(&self, axis: usize) -> usize {
        let bbox = match self {
            Opened::Memory(block) => block.bbox(),
            Opened::Disk(bbox, _) => bbox,
        };
        (bbox.hi[axis] - bbox.lo[axis]) as usize
    }

    /// The row through a point.
    fn column<T: Element>(&self, axis: usize, at: &[u64]) -> Result<Column<'_, 'a, T>> {
        Ok(match self {
            Opened::Memory(block) => Column::Memory(T::of(block.data()), Rows::through(block, at, axis, 1)?),
            Opened::Disk(bbox, reader) => Column::Disk(reader, Rows::in_row_major(bbox, at, axis)?),
        })
    }
}

/// Merges sorted runs; keeps the ranks that belong to the output blocks.
pub(crate) fn sort_merge(sorting: Sorting, operands: &[Streamed<'_>], outputs: &mut [Block]) -> Result<()> {
    if operands.iter().any(|operand| matches!(operand, Streamed::Memory(block) if !block.is_dense())) {
        return Err(misfit());
    }
    let with_positions = sorting.results != SortResults::Values;
    let (values, positions) = operands.split_at(if with_positions { operands.len() / 2 } else { operands.len() });
    let dtype = values.first().ok_or_else(misfit)?.dtype();
    let fits = (values.len() == positions.len() || !with_positions)
        && values.iter().all(|block| block.dtype() == dtype)
        && values.iter().zip(positions).all(|(v, p)| v.bbox() == p.bbox() && p.dtype() == DType::I64);
    if !fits {
        return Err(misfit());
    }
    let order = Order::of(sorting);
    let (values, positions) = (Opened::all(values)?, Opened::all(positions)?);
    let runs = (&values[..], &positions[..]);
    let n_results = if sorting.results == SortResults::Both { 2 } else { 1 };
    let mut before = Before::default();
    let mut left = outputs.len() / n_results;
    for outputs in outputs.chunks_mut(n_results) {
        left -= 1;
        before.is_asked = left > 0;
        let targets = Targets::of(sorting.results, dtype, outputs)?;
        if order.axis >= targets.bbox.rank() {
            return Err(misfit());
        }
        let ranks = targets.bbox.range(order.axis);
        let n = (ranks.end - ranks.start) as usize;
        let room = [n, n];
        with_sortable!(dtype, T => match sorting.results {
            SortResults::Values => with_vectors(room, |vectors: &mut Vectors<<T as Sortable>::Key>| {
                merge_rows::<T, _>(order, runs, targets, &mut before, vectors)
            }),
            _ => with_vectors(room, |vectors: &mut Vectors<Pair<<T as Sortable>::Key>>| {
                merge_rows::<T, _>(order, runs, targets, &mut before, vectors)
            }),
        })?;
    }
    Ok(())
}

/// The output before: where its rows ended in every run.
#[derive(Default)]
struct Before {
    bbox: Option<BoxRegion>,
    ends: Vec<Vec<usize>>,
    /// False for the last output, whose ends nobody asks for.
    is_asked: bool,
}

impl Before {
    /// Where the rows of an output begin in every run, if the output before ended there; else nothing.
    fn take_ends(&mut self, bbox: &BoxRegion, axis: usize) -> std::vec::IntoIter<Vec<usize>> {
        let follows = self.bbox.take().is_some_and(|before| {
            let is_next = |k| if k == axis { before.hi[k] == bbox.lo[k] } else { before.range(k) == bbox.range(k) };
            before.rank() == bbox.rank() && (0..bbox.rank()).all(is_next)
        });
        let ends = std::mem::take(&mut self.ends);
        if follows { ends.into_iter() } else { Vec::new().into_iter() }
    }
}

fn merge_rows<'a, T: Sortable, I: Item<Key = T::Key>>(
    order: Order,
    (values, positions): (&[Opened<'a>], &[Opened<'a>]),
    mut targets: Targets<'_>,
    before: &mut Before,
    vectors: &mut Vectors<I>,
) -> Result<()> {
    let [items, scratch] = vectors;
    let bbox = targets.bbox.clone();
    let mut ends = before.take_ends(&bbox, order.axis);
    for_rows(&bbox, order.axis, |first, n_rows| {
        let mut at = first.to_vec();
        for _ in 0..n_rows {
            let runs = runs_through::<T>(order.axis, values, positions, &at)?;
            let ranks = bbox.range(order.axis);
            if (runs.iter().map(|run| run.len).sum::<usize>() as u64) < ranks.end {
                return Err(misfit());
            }
            let begin = ends.next().unwrap_or_else(|| split(&runs, order, ranks.start as usize, None));
            let end = split(&runs, order, ranks.end as usize, Some(begin.clone()));
            items.clear();
            items.reserve((ranks.end - ranks.start) as usize);
            let mut starts = Vec::with_capacity(runs.len());
            for ((run, &begin), &end) in runs.iter().zip(&begin).zip(&end) {
                let first = items.len();
                run.values.each(begin..end, |value| items.push(I::new(order.turn(value.key()), 0)))?;
                if let Some(positions) = &run.positions {
                    let mut of_run = items[first..].iter_mut();
                    positions.each(begin..end, |position| {
                        if let Some(item) = of_run.next() {
                            *item = I::new(item.key(), position as u64);
                        }
                    })?;
                }
                if begin < end {
                    starts.push(first);
                }
            }
            if items.len() as u64 != ranks.end - ranks.start {
                return Err(misfit());
            }
            if starts.len() <= FEW_RUNS {
                merge_parts(items, &mut starts, scratch);
            } else {
                scratch.resize(items.len(), I::default());
                radix::sort(items, scratch);
            }
            targets.write::<T, I>(order, &at, 1, (items, 0), |_, key, copy| {
                let mut wants_more = true;
                for ((run, &begin), &end) in runs.iter().zip(&begin).zip(&end) {
                    // Entries with one key are together in a sorted run.
                    let turned = order.turn(key);
                    let from = search(begin, end, begin, |k| order.turn(run.key(k)) < turned);
                    let to = search(from, end, from, |k| order.turn(run.key(k)) <= turned);
                    run.values.each(from..to, |value| wants_more = wants_more && copy(value))?;
                }
                Ok(())
            })?;
            if before.is_asked {
                before.ends.push(end);
            }
            if let Some(last) = at.last_mut() {
                *last += 1;
            }
        }
        Ok(())
    })?;
    before.bbox = Some(bbox);
    Ok(())
}

/// The row of every run that goes through a point.
fn runs_through<'r, 'a, T: Sortable>(
    axis: usize,
    values: &'r [Opened<'a>],
    positions: &'r [Opened<'a>],
    at: &[u64],
) -> Result<Vec<Run<'r, 'a, T>>> {
    let mut runs = Vec::with_capacity(values.len());
    for (k, block) in values.iter().enumerate() {
        let positions = positions.get(k).map(|block| block.column(axis, at)).transpose()?;
        runs.push(Run { values: block.column(axis, at)?, positions, len: block.len(axis) });
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::{Column, Order, Rows, Run, looks_and_split, search};

    /// Places are found in few looks, whatever the order of the data: each look costs as much as there are runs.
    #[test]
    fn sorted_and_constant_data_need_few_looks() {
        let (n_runs, n) = (500usize, 100usize);
        type Value = fn(usize) -> f64;
        let data: [(&str, Value); 4] = [
            ("ascending", |k| k as f64),
            ("descending", |k| -(k as f64)),
            ("constant", |_| 3.0),
            ("scattered", |k| (k as f64 * 0.618).fract()),
        ];
        for (name, value) in data {
            let blocks: Vec<Vec<f64>> = (0..n_runs)
                .map(|run| {
                    let mut block: Vec<f64> = (run * n..(run + 1) * n).map(value).collect();
                    block.sort_by(f64::total_cmp);
                    block
                })
                .collect();
            let row = Rows { start: 0, step: 1, across: 0, n_rows: 1 };
            let runs: Vec<Run<'_, '_, f64>> = blocks
                .iter()
                .map(|values| Run { values: Column::Memory(values, row), positions: None, len: n })
                .collect();
            for rank in [0, 1, 77, n, n_runs * n / 2, n_runs * n - 1, n_runs * n] {
                let (looks, split) = looks_and_split(&runs, Order { axis: 0, descending: false }, rank, None);
                assert_eq!(split.iter().sum::<usize>(), rank, "{name}");
                assert!(looks <= 50, "{name}: {looks} looks for rank {rank}");
            }
        }
    }

    #[test]
    fn searches_end_where_they_should() {
        for n in 0..20 {
            for answer in 0..=n {
                for near in 0..=n + 1 {
                    assert_eq!(search(0, n, near, |k| k < answer), answer);
                }
                assert_eq!(search(answer, n, 0, |k| k < answer), answer);
                assert_eq!(search(0, answer, n, |_| true), answer);
            }
        }
    }
}
