//! Selecting elements by a mask, and putting them back.
//!
//! A task has one piece of the mask. The counts of the pieces before, known while planning, say where its run of the result begins; so
//! every element of the mask is looked at once and tasks write runs that do not meet. Eight elements of a mask are looked at together: a
//! table tells which of them hold, so that no branch depends on the mask.

use std::borrow::Cow;
use std::ops::Range;

use tw_ir::program::MaskCounts;
use tw_ir::{BoxRegion, Buffer, DType, Error, Result, shape};

use crate::block::{Block, row_major};
use crate::wide::wide;
use crate::width::{Bits, with_width};

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
use avx512 as quick;

/// Processors without vectors that are packed and spread by a mask: everything is left to the portable loops.
#[cfg(not(target_arch = "x86_64"))]
mod quick {
    #[derive(Default)]
    pub(super) struct Done {
        pub(super) mask: usize,
        pub(super) held: usize,
    }
    pub(super) fn select<T>(_: &[bool], _: &[T], _: &mut [T]) -> Done {
        Done::default()
    }
    pub(super) fn select_positions(_: &[bool], _: u64, _: &mut [u64]) -> Done {
        Done::default()
    }
    pub(super) fn put<T>(_: &[bool], _: &[T], _: &[T], _: &mut [T]) -> Done {
        Done::default()
    }
}

/// Compact or expand, made ready.
#[derive(Debug)]
pub(crate) struct Masked {
    counts: MaskCounts,
    starts: Vec<u64>,
}

impl Masked {
    pub(crate) fn compile(counts: &MaskCounts) -> Masked {
        Masked { starts: counts.starts(), counts: counts.clone() }
    }

    /// The box of a piece and its run of the result.
    fn piece(&self, point: u32) -> Result<(BoxRegion, Range<u64>)> {
        let k = point as usize;
        match self.starts.get(k..k + 2) {
            Some(&[start, end]) => Ok((self.counts.cut().box_of(point.into()), start..end)),
            _ => Err(Error::internal(format!("piece {point} of a mask with {} pieces", self.counts.counts().len()))),
        }
    }

    /// Copies the selected elements of the piece into its run of every output.
    pub(crate) fn compact(&self, point: u32, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let (piece, run) = self.piece(point)?;
        let (Some((mask, data)), true) = (operands.split_first(), operands.len().max(2) == outputs.len() + 1) else {
            return Err(Error::internal("selecting by a mask takes the mask, and data for every result"));
        };
        let n = (run.end - run.start) as usize;
        if data.is_empty() {
            return self.positions(mask, &piece, run.clone(), &mut outputs[0])?.ok_or_else(|| miscounted(run));
        }
        for (data, output) in data.iter().zip(outputs) {
            let to = output.bbox().clone();
            let mut region = piece.clone();
            region.lo.extend(&to.lo[1..]);
            region.hi.extend(&to.hi[1..]);
            let row = BoxRegion { lo: to.lo[1..].to_vec(), hi: to.hi[1..].to_vec() }.n_elements() as usize;
            if data.dtype() != output.dtype() || to.lo[0] > run.start || to.hi[0] < run.end {
                return Err(Error::internal("what a mask selects does not fit its block"));
            }
            let first = (run.start - to.lo[0]) as usize * row;
            let (_, mut target) = output.target()?;
            with_width!(data.dtype(), T => {
                let (from, out) = (elements::<T>(data, &region)?, &mut T::of_mut(&mut target)[first..first + n * row]);
                let taken = match mask.dtype() {
                    DType::Bool if row == 1 => select(&elements::<bool>(mask, &piece)?, &from, out),
                    DType::Bool => select_rows(&elements::<bool>(mask, &piece)?, row, &from, out),
                    _ => repeat(&elements::<u64>(mask, &piece)?, row, &from, out)?,
                };
                if taken != Some(n) {
                    return Err(miscounted(run));
                }
            });
        }
        Ok(())
    }

    /// Writes where the selected elements are; `None` if there are more or fewer than were counted.
    fn positions(&self, mask: &Block, piece: &BoxRegion, run: Range<u64>, output: &mut Block) -> Result<Option<()>> {
        let range = output.bbox().range(0);
        if output.dtype() != DType::I64 || range.start > run.start || range.end < run.end {
            return Err(Error::internal("the positions of a mask do not fit their block"));
        }
        let shape: Vec<u64> = self.counts.cut().iter().map(|axis| axis.extent()).collect();
        let strides = shape::row_major_strides(&shape);
        let first = piece.lo.iter().zip(strides).map(|(&lo, stride)| lo * stride).sum();
        let (_, mut target) = output.target()?;
        let run = (run.start - range.start) as usize..(run.end - range.start) as usize;
        let out = &mut u64::of_mut(&mut target)[run];
        let n = out.len();
        let taken = match mask.dtype() {
            DType::Bool => select_positions(&elements::<bool>(mask, piece)?, first, out),
            _ => {
                let times = elements::<u64>(mask, piece)?;
                let positions: Vec<u64> = (first..).take(times.len()).collect();
                repeat(&times, 1, &positions, out)?
            }
        };
        Ok((taken == Some(n)).then_some(()))
    }

    /// The piece of the data with values where the mask holds. The run of values may lie in several blocks, in order.
    pub(crate) fn expand(&self, point: u32, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let (piece, run) = self.piece(point)?;
        let ([mask, data, values @ ..], [output]) = (operands, outputs) else {
            return Err(Error::internal("putting values under a mask takes mask, data and values"));
        };
        if *output.bbox() != piece || values.iter().chain([data]).any(|block| block.dtype() != output.dtype()) {
            return Err(Error::internal("a piece of a mask is not what its task writes"));
        }
        let (_, mut target) = output.target()?;
        with_width!(data.dtype(), T => {
            let (mask, data) = (elements::<bool>(mask, &piece)?, elements::<T>(data, &piece)?);
            let out = T::of_mut(&mut target);
            let (mut next, mut done) = (run.start, 0);
            for (k, block) in values.iter().enumerate() {
                let end = block.bbox().range(0).end.min(run.end);
                let part = elements::<T>(block, &BoxRegion { lo: vec![next], hi: vec![end.max(next)] })?;
                // The last part takes the remaining mask.
                let last = k + 1 == values.len();
                let until = if last { mask.len() } else { done + holding(&mask[done..], part.len()) };
                if put(&mask[done..until], &part, &data[done..until], &mut out[done..until]) != part.len() {
                    return Err(miscounted(run));
                }
                (next, done) = (end.max(next), until);
            }
            if next != run.end {
                return Err(Error::internal("the values for a piece of a mask are not in their blocks"));
            }
            if values.is_empty() && put(&mask, &[], &data, out) != 0 {
                return Err(miscounted(run));
            }
        });
        Ok(())
    }
}

fn miscounted(run: Range<u64>) -> Error {
    Error::data(format!("a mask takes other elements than the {} that were counted", run.end - run.start))
}

/// How many elements of a mask hold `n` times, those included that follow and do not hold; all if it holds less often.
fn holding(mask: &[bool], n: usize) -> usize {
    let mut left = n;
    for (k, part) in mask.chunks(u8::MAX as usize).enumerate() {
        let count = count_holding(part) as usize;
        if count > left {
            let beyond = part.iter().scan(left, |left, &holds| {
                *left = left.checked_sub(holds as usize)?;
                Some(())
            });
            return k * u8::MAX as usize + beyond.count();
        }
        left -= count;
    }
    mask.len()
}

/// How many elements the part of a mask in a region takes.
pub fn count_selected(mask: &Block, region: &BoxRegion) -> Result<u64> {
    match mask.dtype() {
        DType::Bool => Ok(count_holding(&elements::<bool>(mask, region)?)),
        DType::I64 => {
            let mut sum = 0u64;
            for &times in elements::<u64>(mask, region)?.iter() {
                sum = sum.checked_add(times_taken(times)? as u64).ok_or_else(|| Error::data("too many elements"))?;
            }
            Ok(sum)
        }
        other => Err(Error::internal(format!("a mask of {other}"))),
    }
}

fn times_taken(times: u64) -> Result<usize> {
    let taken = usize::try_from(times as i64);
    taken.map_err(|_| Error::data(format!("an element is taken {} times", times as i64)))
}

/// The elements of a block in a region, in row-major order; copied only if they do not lie together.
fn elements<'a, T: Bits>(block: &'a Block, region: &BoxRegion) -> Result<Cow<'a, [T]>> {
    if !block.bbox().contains(region) || block.bbox().rank() != region.rank() {
        return Err(Error::internal(format!("{region} of a block at {}", block.bbox())));
    }
    let (strides, shape) = (block.strides(), region.shape());
    let n = region.n_elements() as usize;
    let together = strides.iter().zip(row_major(region)).zip(&shape).all(|((&own, dense), &n)| n <= 1 || own == dense);
    if together || n == 0 {
        let distance = |axis: usize| (region.lo[axis] - block.bbox().lo[axis]) as usize * strides[axis];
        let first = if n == 0 { 0 } else { block.offset() + (0..shape.len()).map(distance).sum::<usize>() };
        let all = T::of(block.data());
        let part = all.get(first..first + n).ok_or_else(|| Error::internal("a block of another type"))?;
        return Ok(Cow::Borrowed(part));
    }
    let mut copy = Buffer::zeros(block.dtype(), n);
    block.copy_moved_overlap(block.bbox(), region, &mut copy)?;
    Ok(Cow::Owned(T::of(&copy).to_vec()))
}

const LANES: usize = 8;

/// Elements of a mask that are passed over together where none holds.
const GROUP: usize = 4 * LANES;

/// Eight bools as bits, the first in the lowest.
#[inline(always)]
fn bits(mask: &[bool; LANES]) -> u8 {
    let word = u64::from_le_bytes(mask.map(u8::from));
    // The factor brings bit 0 of byte k to bit 56 + k; no two products meet, so nothing is carried.
    (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// For every eight bits: where the set ones are, then zeros.
const SET: [[u8; LANES]; 256] = {
    let mut table = [[0; LANES]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut lane, mut next) = (0, 0);
        while lane < LANES {
            if bits >> lane & 1 == 1 {
                table[bits][next] = lane as u8;
                next += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    table
};

/// Calls `f` with the position and the bits of every eight elements of which some hold; the last eight may be fewer. There is one call of
/// `f`, so that it is compiled into its caller, for the caller's vectors.
#[inline(always)]
fn for_eights(mask: &[bool], mut f: impl FnMut(usize, u8) -> Option<()>) -> Option<()> {
    let (groups, rest) = mask.as_chunks::<GROUP>();
    let mut last = [false; GROUP];
    last[..rest.len()].copy_from_slice(rest);
    for (g, group) in groups.iter().chain([&last]).enumerate() {
        if !group.iter().fold(false, |any, &holds| any | holds) {
            continue;
        }
        for (k, eight) in group.as_chunks::<LANES>().0.iter().enumerate() {
            let bits = bits(eight);
            if bits != 0 {
                f(g * GROUP + k * LANES, bits)?;
            }
        }
    }
    Some(())
}

/// Few enough set bits to be looked at one by one.
const FEW: u32 = 2;

wide! {
    /// Copies the elements where the mask holds; `None` if there is no room for them.
    pub(crate) fn select_portable[T: Copy](mask: &[bool], from: &[T], out: &mut [T]) -> Option<usize> {
        let mut k = 0;
        for_eights(mask, |at, bits| {
            let n = bits.count_ones();
            match (from.get(at..at + LANES), out.get_mut(k..k + LANES)) {
                (Some(from), Some(room)) if bits == u8::MAX => room.copy_from_slice(from),
                (Some(from), Some(room)) if n > FEW => {
                    // All eight are written, so that no branch depends on the mask; surplus elements are overwritten by the next ones.
                    for (to, &lane) in room.iter_mut().zip(&SET[bits as usize]) {
                        *to = from[lane as usize % LANES];
                    }
                }
                _ => {
                    for (to, &lane) in (k..).zip(&SET[bits as usize][..n as usize]) {
                        *out.get_mut(to)? = from[at + lane as usize];
                    }
                }
            }
            k += n as usize;
            Some(())
        })?;
        Some(k)
    }

    /// Writes the positions where the mask holds; `None` if there is no room for them.
    pub(crate) fn select_positions_portable(mask: &[bool], first: u64, out: &mut [u64]) -> Option<usize> {
        let mut k = 0;
        for_eights(mask, |at, bits| {
            let n = bits.count_ones();
            let at = first + at as u64;
            match out.get_mut(k..k + LANES) {
                Some(room) if n > FEW => {
                    for (to, &lane) in room.iter_mut().zip(&SET[bits as usize]) {
                        *to = at + lane as u64;
                    }
                }
                _ => {
                    for (to, &lane) in (k..).zip(&SET[bits as usize][..n as usize]) {
                        *out.get_mut(to)? = at + lane as u64;
                    }
                }
            }
            k += n as usize;
            Some(())
        })?;
        Some(k)
    }

    /// Data with values where the mask holds; how many of them were needed.
    pub(crate) fn put_portable[T: Copy](mask: &[bool], values: &[T], data: &[T], out: &mut [T]) -> usize {
        let (masks, mask_rest) = mask.as_chunks::<LANES>();
        let n = masks.len() * LANES;
        let mut k = 0;
        for ((mask, data), out) in masks.iter().zip(data.as_chunks::<LANES>().0).zip(out.as_chunks_mut::<LANES>().0) {
            let bits = bits(mask);
            match values.get(k..k + LANES) {
                _ if bits == 0 => *out = *data,
                Some(values) if bits == u8::MAX => out.copy_from_slice(values),
                Some(values) => {
                    // No branch depends on the mask: all eight values are written, the last first. Those that are too many go to the first element, which is
                    // put right at the end.
                    *out = *data;
                    for (&lane, &value) in SET[bits as usize].iter().zip(values).rev() {
                        out[lane as usize % LANES] = value;
                    }
                    out[0] = [data[0], values[0]][(bits & 1) as usize];
                }
                None => {
                    *out = *data;
                    let set = &SET[bits as usize][..bits.count_ones() as usize];
                    for (&lane, &value) in set.iter().zip(values.get(k..).unwrap_or_default()) {
                        out[lane as usize] = value;
                    }
                }
            }
            k += bits.count_ones() as usize;
        }
        for (lane, &holds) in mask_rest.iter().enumerate() {
            let value = values.get(k).filter(|_| holds).copied();
            out[n + lane] = value.unwrap_or(data[n + lane]);
            k += holds as usize;
        }
        k
    }

    /// How often a mask holds.
    pub(crate) fn count_holding(mask: &[bool]) -> u64 {
        // Bytes are added lane by lane, in as many rows as a byte can count.
        const WIDTH: usize = 64;
        let (rows, rest) = mask.as_chunks::<WIDTH>();
        let mut total = rest.iter().map(|&holds| holds as u64).sum();
        for rows in rows.chunks(u8::MAX as usize) {
            let mut lanes = [0u8; WIDTH];
            for row in rows {
                lanes.iter_mut().zip(row).for_each(|(lane, &holds)| *lane += holds as u8);
            }
            total += lanes.iter().map(|&lane| lane as u64).sum::<u64>();
        }
        total
    }
}

/// Copies the elements where the mask holds; `None` if there is no room for them.
fn select<T: Bits>(mask: &[bool], from: &[T], out: &mut [T]) -> Option<usize> {
    let done = quick::select(mask, from, out);
    let rest = select_portable(&mask[done.mask..], &from[done.mask..], &mut out[done.held..])?;
    Some(done.held + rest)
}

/// Writes the positions where the mask holds; `None` if there is no room for them.
fn select_positions(mask: &[bool], first: u64, out: &mut [u64]) -> Option<usize> {
    let done = quick::select_positions(mask, first, out);
    let rest = select_positions_portable(&mask[done.mask..], first + done.mask as u64, &mut out[done.held..])?;
    Some(done.held + rest)
}

/// Data with values where the mask holds; how many of them were needed.
fn put<T: Bits>(mask: &[bool], values: &[T], data: &[T], out: &mut [T]) -> usize {
    let done = quick::put(mask, values, data, out);
    let rest = &mut out[done.mask..];
    done.held + put_portable(&mask[done.mask..], &values[done.held..], &data[done.mask..], rest)
}

/// Copies rows of elements where the mask holds, neighbours together.
fn select_rows<T: Copy>(mask: &[bool], row: usize, from: &[T], out: &mut [T]) -> Option<usize> {
    let (mut k, mut at) = (0, 0);
    while at < mask.len() {
        let same = mask[at..].iter().take_while(|&&holds| holds == mask[at]).count();
        if mask[at] {
            out.get_mut(k * row..(k + same) * row)?.copy_from_slice(&from[at * row..(at + same) * row]);
            k += same;
        }
        at += same;
    }
    Some(k)
}

/// Copies rows of elements as often as the counts say.
fn repeat<T: Copy>(times: &[u64], row: usize, from: &[T], out: &mut [T]) -> Result<Option<usize>> {
    /// Elements are mostly taken a few times; then that many copies are written, and the next element overwrites the surplus.
    const FEW: usize = 4;
    let mut k = 0;
    for (at, &times) in times.iter().enumerate() {
        if let (true, Some(room)) = (times <= FEW as u64 && row == 1, out.get_mut(k..k + FEW)) {
            room.fill(from[at]);
            k += times as usize;
            continue;
        }
        let times = times_taken(times)?;
        let Some(room) = times.checked_mul(row).and_then(|n| out.get_mut(k * row..)?.get_mut(..n)) else {
            return Ok(None);
        };
        match row {
            1 => room.fill(from[at]),
            0 => {}
            _ => room.chunks_exact_mut(row).for_each(|room| room.copy_from_slice(&from[at * row..(at + 1) * row])),
        }
        k += times;
    }
    Ok(Some(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks() -> Vec<Vec<bool>> {
        let mut masks = Vec::new();
        for n in [0usize, 1, 7, 8, 9, 64, 1000] {
            for every in [1usize, 2, 3, 7, 50, 5000] {
                masks.push((0..n).map(|k| (k * 7919 + 3) % every == 0).collect());
                masks.push((0..n).map(|k| (k * 7919 + 3) % every != 0).collect());
            }
        }
        masks
    }

    #[test]
    fn selected_elements_are_those_of_a_plain_loop() {
        for mask in masks() {
            let from: Vec<u32> = (0..mask.len() as u32).collect();
            let expected: Vec<u32> = from.iter().zip(&mask).filter(|(_, holds)| **holds).map(|(&x, _)| x).collect();
            let mut out = vec![u32::MAX; expected.len()];
            assert_eq!(select(&mask, &from, &mut out), Some(expected.len()));
            assert_eq!(out, expected);
            let mut positions = vec![0; expected.len()];
            assert_eq!(select_positions(&mask, 5, &mut positions), Some(expected.len()));
            assert!(positions.iter().zip(&expected).all(|(&at, &x)| at == 5 + x as u64));
            let rows: Vec<u32> = from.iter().flat_map(|&x| [x, x + 1]).collect();
            let mut out = vec![u32::MAX; 2 * expected.len()];
            assert_eq!(select_rows(&mask, 2, &rows, &mut out), Some(expected.len()));
            assert!(out.chunks(2).zip(&expected).all(|(row, &x)| row == [x, x + 1]));
            let times: Vec<u64> = mask.iter().map(|&holds| holds as u64).collect();
            assert_eq!(repeat(&times, 2, &rows, &mut out).unwrap(), Some(expected.len()));
            if let Some(short) = expected.len().checked_sub(1) {
                assert_eq!(select(&mask, &from, &mut vec![0; short]), None);
                assert_eq!(select_positions(&mask, 0, &mut vec![0; short]), None);
            }
            // Elements of other sizes, and the loops for any processor.
            let wide: Vec<[u64; 2]> = from.iter().map(|&x| [x as u64, 7]).collect();
            let mut out = vec![[0; 2]; expected.len()];
            assert_eq!(select(&mask, &wide, &mut out), Some(expected.len()));
            assert!(out.iter().zip(&expected).all(|(&pair, &x)| pair == [x as u64, 7]));
            let pairs: Vec<[u32; 2]> = from.iter().map(|&x| [x, 7]).collect();
            let mut out = vec![[0; 2]; expected.len()];
            assert_eq!(select(&mask, &pairs, &mut out), Some(expected.len()));
            assert!(out.iter().zip(&expected).all(|(&pair, &x)| pair == [x, 7]));
            let mut out = vec![0; expected.len()];
            assert_eq!(select_portable(&mask, &from, &mut out), Some(expected.len()));
            assert_eq!(out, expected);
            assert_eq!(select_positions_portable(&mask, 5, &mut positions), Some(expected.len()));
            assert!(positions.iter().zip(&expected).all(|(&at, &x)| at == 5 + x as u64));
        }
    }

    #[test]
    fn values_are_put_where_the_mask_holds() {
        for mask in masks() {
            let data: Vec<u64> = (0..mask.len() as u64).collect();
            let n = mask.iter().filter(|holds| **holds).count();
            let values: Vec<u64> = (0..n as u64).map(|k| 10_000 + k).collect();
            let mut next = values.iter();
            let expected: Vec<u64> =
                data.iter().zip(&mask).map(|(&x, &holds)| if holds { *next.next().unwrap() } else { x }).collect();
            let mut out = vec![0; mask.len()];
            assert_eq!(put(&mask, &values, &data, &mut out), n);
            assert_eq!(out, expected);
            assert_eq!(put(&mask, &values[..n / 2], &data, &mut out), n);
            assert_eq!(put_portable(&mask, &values, &data, &mut out), n);
            assert_eq!(out, expected);
            let short = |x: &u64| *x as u32;
            let (values, data): (Vec<u32>, Vec<u32>) =
                (values.iter().map(short).collect(), data.iter().map(short).collect());
            let mut out = vec![0; mask.len()];
            assert_eq!(put(&mask, &values, &data, &mut out), n);
            assert!(out.iter().zip(&expected).all(|(&x, &y)| x as u64 == y));
        }
    }

    #[test]
    fn parts_of_a_mask_hold_as_often_as_asked() {
        for mask in masks() {
            let n = mask.iter().filter(|holds| **holds).count();
            for wanted in [0, 1, n / 2, n] {
                let until = holding(&mask, wanted);
                let held = mask[..until].iter().filter(|holds| **holds).count();
                assert_eq!(held, wanted.min(n));
                // The next element holds, or there is none.
                assert!(until == mask.len() || mask[until]);
            }
        }
    }

    #[test]
    fn repeats_are_whole_and_not_negative() {
        let mut out = [0u8; 5];
        assert_eq!(repeat(&[2, 0, 3], 1, &[7, 8, 9], &mut out).unwrap(), Some(5));
        assert_eq!(out, [7, 7, 9, 9, 9]);
        assert_eq!(repeat(&[2, 0, 4], 1, &[7, 8, 9], &mut out).unwrap(), None);
        assert!(repeat(&[-1i64 as u64], 1, &[7], &mut out).is_err());
        assert_eq!(repeat(&[i64::MAX as u64], 3, &[7, 7, 7], &mut out).unwrap(), None);
    }
}
