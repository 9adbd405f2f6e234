//! Selecting elements by a mask, and putting them back.
//!
//! A task has one piece of the mask. The counts of the pieces before, known while planning, say where its run of the result begins; so
//! every element of the mask is looked at once and tasks write runs that do not meet. Eight elements of a mask are looked at together: most masks
//! hold rarely or nearly always, and then a word of eight is all false or all true.

use std::borrow::Cow;
use std::ops::Range;

use tw_ir::program::MaskCounts;
use tw_ir::tiling::tile_box;
use tw_ir::{BoxRegion, Buffer, DType, Error, Result, shape};

use crate::block::{Block, row_major};
use crate::width::{Bits, with_width};

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
            Some(&[start, end]) => Ok((tile_box(self.counts.cut(), point.into()), start..end)),
            _ => Err(Error::internal(format!("piece {point} of a mask with {} pieces", self.counts.counts().len()))),
        }
    }

    /// Copies what the piece selects into its run of every output.
    pub(crate) fn compact(&self, point: u32, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
        let (piece, run) = self.piece(point)?;
        let (Some((mask, data)), true) = (operands.split_first(), operands.len().max(2) == outputs.len() + 1) else {
            return Err(Error::internal("selecting by a mask takes the mask, and data for every result"));
        };
        let n = (run.end - run.start) as usize;
        let miscounted = || Error::data(format!("a mask takes other elements than the {n} that were counted"));
        if data.is_empty() {
            return self.positions(mask, &piece, run, &mut outputs[0])?.ok_or_else(miscounted);
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
            let (_, buffer) = output.output()?;
            with_width!(data.dtype(), T => {
                let (from, out) = (elements::<T>(data, &region)?, &mut T::of_mut(buffer)[first..first + n * row]);
                let taken = match mask.dtype() {
                    DType::Bool if row == 1 => select(&elements::<bool>(mask, &piece)?, &from, out),
                    DType::Bool => select_rows(&elements::<bool>(mask, &piece)?, row, &from, out),
                    _ => repeat(&elements::<u64>(mask, &piece)?, row, &from, out)?,
                };
                if taken != Some(n) {
                    return Err(miscounted());
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
        let (_, buffer) = output.output()?;
        let run = (run.start - range.start) as usize..(run.end - range.start) as usize;
        let out = &mut u64::of_mut(buffer)[run];
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

    /// The piece of the data with values where the mask holds.
    pub(crate) fn expand(&self, point: u32, operands: &[Option<&Block>], outputs: &mut [Block]) -> Result<()> {
        let (piece, run) = self.piece(point)?;
        let ([Some(mask), values, Some(data)], [output]) = (operands, outputs) else {
            return Err(Error::internal("putting values under a mask takes mask, values and data"));
        };
        if *output.bbox() != piece || data.dtype() != output.dtype() {
            return Err(Error::internal("a piece of a mask is not what its task writes"));
        }
        let held = values.map(|values| values.bbox().range(0)).unwrap_or_default();
        let has_run = run.is_empty() || (held.start <= run.start && run.end <= held.end);
        if !has_run || values.is_some_and(|values| values.dtype() != data.dtype()) {
            return Err(Error::internal("the values for a piece of a mask are not in their block"));
        }
        let region = BoxRegion { lo: vec![run.start], hi: vec![run.end] };
        let (_, buffer) = output.output()?;
        with_width!(data.dtype(), T => {
            let values = match values {
                Some(values) if !run.is_empty() => elements::<T>(values, &region)?,
                _ => Cow::Borrowed(&[][..]),
            };
            let (mask, data) = (elements::<bool>(mask, &piece)?, elements::<T>(data, &piece)?);
            if put(&mask, &values, &data, T::of_mut(buffer)) != values.len() {
                return Err(Error::data("a mask holds more or less often than was counted"));
            }
        });
        Ok(())
    }
}

/// How many elements the part of a mask in a region takes.
pub fn count_selected(mask: &Block, region: &BoxRegion) -> Result<u64> {
    match mask.dtype() {
        DType::Bool => {
            let mask = elements::<bool>(mask, region)?;
            let few = |part: &[bool]| part.iter().fold(0u8, |n, &holds| n + holds as u8) as u64;
            Ok(mask.chunks(u8::MAX as usize).map(few).sum())
        }
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

/// Eight bools as a word: one bit of each byte.
#[inline]
fn word(mask: &[bool; LANES]) -> u64 {
    u64::from_le_bytes(mask.map(u8::from))
}

const ALL: u64 = 0x0101_0101_0101_0101;

/// Copies the elements where the mask holds; `None` if there is no room for them.
fn select<T: Copy>(mask: &[bool], from: &[T], out: &mut [T]) -> Option<usize> {
    let (masks, mask_rest) = mask.as_chunks::<LANES>();
    let (froms, from_rest) = from.as_chunks::<LANES>();
    let mut k = 0;
    for (mask, from) in masks.iter().zip(froms) {
        match word(mask) {
            0 => {}
            ALL => {
                out.get_mut(k..k + LANES)?.copy_from_slice(from);
                k += LANES;
            }
            bits => match out.get_mut(k..k + LANES) {
                // Every element is written where the next selected one goes, so that no branch depends on the mask.
                Some(room) if bits.count_ones() as usize * 4 > LANES => {
                    let mut at = 0;
                    for lane in 0..LANES {
                        room[at % LANES] = from[lane];
                        at += mask[lane] as usize;
                    }
                    k += at;
                }
                _ => {
                    let mut left = bits;
                    while left != 0 {
                        *out.get_mut(k)? = from[left.trailing_zeros() as usize / 8];
                        left &= left - 1;
                        k += 1;
                    }
                }
            },
        }
    }
    for (_, from) in mask_rest.iter().zip(from_rest).filter(|(holds, _)| **holds) {
        *out.get_mut(k)? = *from;
        k += 1;
    }
    Some(k)
}

/// Writes the positions where the mask holds; `None` if there is no room for them.
fn select_positions(mask: &[bool], first: u64, out: &mut [u64]) -> Option<usize> {
    let (masks, mask_rest) = mask.as_chunks::<LANES>();
    let mut k = 0;
    let mut at = first;
    for mask in masks {
        let bits = word(mask);
        match out.get_mut(k..k + LANES) {
            _ if bits == 0 => {}
            Some(room) if bits.count_ones() > 2 => {
                let mut next = 0;
                for (position, &holds) in (at..).zip(mask) {
                    room[next % LANES] = position;
                    next += holds as usize;
                }
                k += next;
            }
            _ => {
                let mut left = bits;
                while left != 0 {
                    *out.get_mut(k)? = at + left.trailing_zeros() as u64 / 8;
                    left &= left - 1;
                    k += 1;
                }
            }
        }
        at += LANES as u64;
    }
    for (lane, _) in mask_rest.iter().enumerate().filter(|(_, holds)| **holds) {
        *out.get_mut(k)? = at + lane as u64;
        k += 1;
    }
    Some(k)
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
    /// Elements are mostly taken a few times; then so many are written, and what is too much is overwritten by the next.
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

/// Data with values where the mask holds; how many of them were needed.
fn put<T: Copy>(mask: &[bool], values: &[T], data: &[T], out: &mut [T]) -> usize {
    let (masks, mask_rest) = mask.as_chunks::<LANES>();
    let n = masks.len() * LANES;
    let mut k = 0;
    for ((mask, data), out) in masks.iter().zip(data.as_chunks::<LANES>().0).zip(out.as_chunks_mut::<LANES>().0) {
        let bits = word(mask);
        *out = *data;
        match values.get(k..k + LANES) {
            _ if bits == 0 => {}
            Some(values) => {
                let mut at = 0;
                for lane in 0..LANES {
                    out[lane] = if mask[lane] { values[at % LANES] } else { data[lane] };
                    at += mask[lane] as usize;
                }
                k += at;
            }
            None => {
                for lane in (0..LANES).filter(|&lane| mask[lane]) {
                    out[lane] = values.get(k).copied().unwrap_or(data[lane]);
                    k += 1;
                }
            }
        }
    }
    for (lane, &holds) in mask_rest.iter().enumerate() {
        let value = values.get(k).filter(|_| holds).copied();
        out[n + lane] = value.unwrap_or(data[n + lane]);
        k += holds as usize;
    }
    k
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
            }
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
