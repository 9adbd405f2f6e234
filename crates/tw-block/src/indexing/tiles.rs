//! Finding the data block that holds a place.

use std::ops::Range;

use super::Side;

/// How data blocks divide the indexed axes.
pub(crate) struct Tiles {
    axes: Vec<Cut>,
    /// Per data block and axis: the distance between neighbours.
    strides: Vec<usize>,
    /// Per data block: where its first place is.
    starts: Vec<usize>,
}

/// How one axis is divided.
struct Cut {
    /// Where tiles begin, and where the last one ends.
    boundaries: Vec<u64>,
    /// The length of the tiles, if the first of them are equally long and the last one is no longer.
    even: Option<u64>,
}

impl Cut {
    /// From the ranges of tiles in any order; `None` if they do not follow each other.
    fn of(mut ranges: Vec<Range<u64>>) -> Option<Cut> {
        ranges.sort_by_key(|range| range.start);
        ranges.dedup();
        if ranges.windows(2).any(|pair| pair[0].end != pair[1].start) {
            return None;
        }
        let length = ranges.first()?.end - ranges.first()?.start;
        let (last, others) = ranges.split_last()?;
        let even = others.iter().all(|range| range.end - range.start == length) && last.end - last.start <= length;
        let boundaries = ranges.iter().map(|range| range.start).chain([last.end]).collect();
        Some(Cut { boundaries, even: (even && length > 0).then_some(length) })
    }

    fn n_tiles(&self) -> usize {
        self.boundaries.len() - 1
    }

    /// The tile that holds an element, and how far it is from its beginning.
    #[inline]
    fn find(&self, coord: u64) -> Option<(usize, usize)> {
        let (first, end) = (self.boundaries[0], self.boundaries[self.boundaries.len() - 1]);
        if coord < first || coord >= end {
            return None;
        }
        let distance = coord - first;
        Some(match self.even {
            _ if self.boundaries.len() == 2 => (0, distance as usize),
            // Short numbers are divided much faster.
            Some(length) if end <= u32::MAX as u64 => {
                let (distance, length) = (distance as u32, length as u32);
                ((distance / length) as usize, (distance % length) as usize)
            }
            _ => {
                let tile = self.boundaries.partition_point(|&boundary| boundary <= coord) - 1;
                (tile, (coord - self.boundaries[tile]) as usize)
            }
        })
    }
}

impl Tiles {
    /// For data blocks in row-major order along some axes, whose first places are given; `None` if they are not a grid.
    pub(super) fn of(axes: &[usize], data: &[Side], starts: Vec<usize>) -> Option<Tiles> {
        let cuts = axes
            .iter()
            .map(|&axis| Cut::of(data.iter().map(|side| side.bbox.range(axis)).collect()))
            .collect::<Option<Vec<Cut>>>()?;
        if cuts.iter().map(Cut::n_tiles).product::<usize>() != data.len() {
            return None;
        }
        let tiles = Tiles {
            axes: cuts,
            strides: data.iter().flat_map(|side| axes.iter().map(|&axis| side.strides[axis])).collect(),
            starts,
        };
        let in_order = data.iter().enumerate().all(|(k, side)| {
            let place: Vec<u64> = axes.iter().map(|&axis| side.bbox.lo[axis]).collect();
            // Blocks without elements hold no place, and come alone.
            tiles.find_all(&place).map_or(data.len() == 1, |(found, _)| found as usize == k)
        });
        in_order.then_some(tiles)
    }

    /// The elements along the first axis that data blocks have.
    pub(crate) fn range(&self) -> Range<u64> {
        let boundaries = &self.axes[0].boundaries;
        boundaries[0]..boundaries[boundaries.len() - 1]
    }

    /// Where the first place of the first data block is.
    pub(crate) fn first(&self) -> usize {
        self.starts[0]
    }

    /// The data block that holds a place along the only axis, and where in it.
    #[inline]
    pub(crate) fn find(&self, coord: u64) -> Option<(u32, usize)> {
        let (tile, distance) = self.axes[0].find(coord)?;
        Some((tile as u32, self.starts[tile] + distance * self.strides[tile]))
    }

    /// As [`Tiles::find`], along all axes.
    pub(super) fn find_all(&self, place: &[u64]) -> Option<(u32, usize)> {
        let mut side = 0;
        for (cut, &coord) in self.axes.iter().zip(place) {
            side = side * cut.n_tiles() + cut.find(coord)?.0;
        }
        let strides = &self.strides[side * self.axes.len()..];
        let mut position = self.starts[side];
        for ((cut, &coord), stride) in self.axes.iter().zip(place).zip(strides) {
            position += cut.find(coord)?.1 * stride;
        }
        Some((side as u32, position))
    }
}
