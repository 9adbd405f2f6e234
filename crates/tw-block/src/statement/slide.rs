//! Reductions over windows that slide along an axis.
//!
//! Neighbouring windows share almost all their elements. Here partial results of 1, 2, 4, .. neighbours are made for all positions at once, each
//! level out of two pieces of the one below, and a window of any length is put together from the levels of its binary digits. That takes two
//! operations per doubling for each result instead of one per element of the window, all of them on vectors, and works for every operation that
//! can be regrouped; nothing is subtracted, and sums are as exact as pairwise ones. How results are put together depends on the length of
//! the window alone.

use tw_ir::DType;

use super::aggregate::{Aggregate, merge_at};
use super::compile::Fold;
use super::run::{Scratch, Task};
use crate::strip::{Foldable, InRegisters, Lane, Moments, Monoid, Real, STRIP, Values, merge_groups, with_dtype};

/// Shorter windows are folded element by element.
pub(super) const LONG_WINDOW: usize = 16;

/// Elements of a level that stay in the nearest caches.
const NEAR: usize = 1 << 14;

/// Windows of `n` elements at equal distances, one for each of `len` neighbouring results.
#[derive(Clone, Copy)]
struct Windows {
    first: usize,
    distance: usize,
    n: usize,
    len: usize,
    /// Where the first result belongs.
    start: usize,
}

/// Some of the results: `n` rows of `width`, which begin `jump` elements apart both in the operand and in the output.
#[derive(Clone, Copy)]
struct Tile {
    from: usize,
    to: usize,
    n: usize,
    width: usize,
    jump: usize,
    /// Rows of the operand that its windows reach, and the length of each.
    source: (usize, usize),
    /// Distance of the elements of a window once the rows of the operand lie one after the other.
    distance: usize,
}

impl Tile {
    fn n_results(&self) -> usize {
        self.n * self.width
    }
    fn n_elements(&self) -> usize {
        self.source.0 * self.source.1
    }
}

impl Windows {
    /// All results, in tiles whose levels stay in cache.
    fn tiles(self) -> impl Iterator<Item = Tile> {
        let Windows { first, distance, n, len, start } = self;
        let n_rows = len.div_ceil(distance);
        // Windows over rows so long that the elements of one window are far apart are taken some columns at a time.
        let is_wide = n * distance > NEAR && len.is_multiple_of(distance);
        let columns = if is_wide { (NEAR / n).clamp(8.min(distance), distance) } else { distance };
        let rows = (NEAR / columns).max(2 * n);
        (0..n_rows).step_by(rows).flat_map(move |row| {
            (0..distance).step_by(columns).map(move |column| {
                let (from, to) = (first + row * distance + column, start + row * distance + column);
                let rows = rows.min(n_rows - row);
                if columns == distance {
                    let width = (rows * distance).min(len - row * distance);
                    let source = (1, width + (n - 1) * distance);
                    return Tile { from, to, n: 1, width, jump: 0, source, distance };
                }
                let width = columns.min(distance - column);
                Tile { from, to, n: rows, width, jump: distance, source: (rows + n - 1, width), distance: width }
            })
        })
    }
}

impl Task<'_> {
    /// Reduces windows that overlap, if the task is no more than that; says whether it did. Loops must have been merged and plans settled.
    pub(super) fn slide(&mut self) -> bool {
        let statement = self.statement;
        let is_known = match &statement.fold {
            Fold::Simple(parts) => parts.len() == 1,
            Fold::Aggregate(aggregate) => matches!(aggregate, Aggregate::Moments(_)),
            Fold::Write | Fold::General { .. } => false,
        };
        if !is_known || statement.has_guard || !statement.used_vars.is_empty() || !matches!(self.blocks, [Some(_)]) {
            return false;
        }
        let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
        let plan = &plans[0];
        let neighbours = plan.is_direct() && plan.inner == Some(1) && out_plan.is_direct() && out_plan.inner == Some(1);
        let Some(reduced) = frame.n_outer.checked_sub(1).filter(|_| neighbours) else { return false };
        let (n, len) = (frame.loops[reduced].extent as usize, frame.row_len());
        let distance = usize::try_from(plan.step(reduced)).unwrap_or(0);
        if out_plan.step(reduced) != 0 || !(1..len).contains(&distance) || n < LONG_WINDOW {
            return false;
        }
        // The reduced loop is run through here; those around it are left to the frame.
        frame.n_outer = reduced;
        loop {
            let Scratch { frame, plans, out_plan, .. } = &mut *self.scratch;
            plans[0].begin_row(frame);
            out_plan.begin_row(frame);
            let (first, start) = (plans[0].row() as usize, out_plan.row() as usize);
            let windows = Windows { first, distance, n, len, start };
            match &statement.fold {
                Fold::Simple(parts) => {
                    let part = parts[0];
                    with_dtype!(part.masked.dtype, T => self.slide_fold::<T>(part.monoid, windows));
                }
                Fold::Aggregate(Aggregate::Moments(DType::F32)) => self.slide_moments::<f32>(windows),
                _ => self.slide_moments::<f64>(windows),
            }
            if !self.scratch.frame.next_row() {
                return true;
            }
        }
    }

    /// The values that are folded, for all elements that a tile reaches.
    fn values<T: InRegisters>(&mut self, result: usize, tile: Tile, out: &mut [T]) {
        let Some(block) = self.blocks[0] else { return };
        let (data, code) = (block.data(), &self.statement.code);
        let (n, width) = tile.source;
        for (k, row) in out[..n * width].chunks_mut(width.max(1)).enumerate() {
            let from = tile.from + k * tile.jump;
            if code.as_param() == Some(0) {
                row.copy_from_slice(&T::of(data)[from..from + width]);
                continue;
            }
            for (strip, part) in row.chunks_mut(STRIP).enumerate() {
                let from = from + strip * STRIP;
                self.lanes[0] = Some(Lane::slice(data, from..from + part.len()));
                code.eval(&self.lanes, &mut self.scratch.registers, part.len());
                let lane = code.result(result, &self.lanes, &self.scratch.registers, part.len());
                crate::strip::copy(T::of_lane(lane), part);
            }
        }
    }

    fn slide_fold<T: Foldable>(&mut self, monoid: Monoid, windows: Windows) {
        let (mut level, mut next, mut total) = (Vec::new(), Vec::new(), Vec::new());
        for tile in windows.tiles() {
            let mut len = tile.n_elements();
            level.resize(len, T::default());
            next.resize(len, T::default());
            total.resize(tile.n_results(), T::default());
            self.values(0, tile, &mut level);
            let (mut covered, mut size) = (0, 1);
            for digit in digits(windows.n) {
                let reach = size * tile.distance;
                if digit {
                    let from = covered * tile.distance;
                    let part = &level[from..from + tile.n_results()];
                    match covered {
                        0 => total.copy_from_slice(part),
                        _ => T::fold_each(monoid, &mut total, Values::Each(part)),
                    }
                    covered += size;
                }
                if covered < windows.n {
                    len -= reach;
                    next[..len].copy_from_slice(&level[..len]);
                    T::fold_each(monoid, &mut next[..len], Values::Each(&level[reach..reach + len]));
                    std::mem::swap(&mut level, &mut next);
                    size *= 2;
                }
            }
            let out = T::of_mut(&mut self.buffers[0]);
            for (k, row) in total.chunks(tile.width).enumerate() {
                let to = tile.to + k * tile.jump;
                T::fold_each(monoid, &mut out[to..to + tile.width], Values::Each(row));
            }
        }
    }

    fn slide_moments<T: Real>(&mut self, windows: Windows) {
        let mut level: [Vec<T>; 2] = [Vec::new(), Vec::new()];
        let (mut next, mut total) = (level.clone(), level.clone());
        for tile in windows.tiles() {
            let mut len = tile.n_elements();
            level.iter_mut().chain(&mut next).for_each(|part| part.resize(len, T::default()));
            total.iter_mut().for_each(|part| part.resize(tile.n_results(), T::default()));
            self.values(1, tile, &mut level[0]);
            // No deviation, unless the value is NaN or infinite.
            let [values, squares] = &mut level;
            squares.iter_mut().zip(values).for_each(|(square, value)| {
                let deviation = *value * T::default();
                *square = deviation * deviation;
            });
            let (mut covered, mut size) = (0, 1);
            for digit in digits(windows.n) {
                let reach = size * tile.distance;
                if digit {
                    let from = covered * tile.distance;
                    let [means, squares] = level.each_ref().map(|part| &part[from..from + tile.n_results()]);
                    let [all_means, all_squares] = &mut total;
                    match covered {
                        0 => {
                            all_means.copy_from_slice(means);
                            all_squares.copy_from_slice(squares);
                        }
                        _ => merge_groups((covered, size), all_means, all_squares, (means, squares)),
                    }
                    covered += size;
                }
                if covered < windows.n {
                    len -= reach;
                    for (next, level) in next.iter_mut().zip(&level) {
                        next[..len].copy_from_slice(&level[..len]);
                    }
                    let [means, squares] = level.each_ref().map(|part| &part[reach..reach + len]);
                    let [next_means, next_squares] = &mut next;
                    merge_groups((size, size), &mut next_means[..len], &mut next_squares[..len], (means, squares));
                    std::mem::swap(&mut level, &mut next);
                    size *= 2;
                }
            }
            let [ns, means, squares] = &mut self.buffers[..] else { return };
            let mut states = [T::of_mut(ns), T::of_mut(means), T::of_mut(squares)];
            for (k, (&mean, &squares)) in total[0].iter().zip(&total[1]).enumerate() {
                let at = tile.to + k / tile.width * tile.jump + k % tile.width;
                merge_at(&mut states, at, Moments { n: T::count(windows.n), mean, squares });
            }
        }
    }
}

/// The binary digits of a number, from the lowest to the highest one.
fn digits(n: usize) -> impl Iterator<Item = bool> {
    (0..usize::BITS - n.leading_zeros()).map(move |k| n >> k & 1 == 1)
}
