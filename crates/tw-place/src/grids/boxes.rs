//! Boxes of an array per worker, and differences of boxes.

use std::collections::HashSet;
use std::rc::Rc;

use tw_ir::BoxRegion;

/// The start and the end of a box along each axis.
pub(super) type Ranges = [(u64, u64)];

/// A box per worker.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Regions {
    rank: usize,
    ranges: Vec<(u64, u64)>,
}

impl Regions {
    pub(super) fn new(rank: usize, boxes: impl Iterator<Item = BoxRegion>) -> Regions {
        let mut ranges = Vec::new();
        boxes.for_each(|region| ranges.extend(region.lo.into_iter().zip(region.hi).take(rank)));
        Regions { rank, ranges }
    }

    pub(super) fn of(&self, worker: usize) -> &Ranges {
        &self.ranges[worker * self.rank..][..self.rank]
    }
}

/// Interned boxes: equal ones are stored once.
#[derive(Default)]
pub(super) struct Kept(HashSet<Rc<Regions>>);

impl Kept {
    pub(super) fn keep(&mut self, regions: Regions) -> Rc<Regions> {
        if let Some(known) = self.0.get(&regions) {
            return known.clone();
        }
        let regions = Rc::new(regions);
        self.0.insert(regions.clone());
        regions
    }
}

pub(super) fn n_elements(ranges: &Ranges) -> u64 {
    ranges.iter().map(|(lo, hi)| hi.saturating_sub(*lo)).product()
}

/// The number of elements in the intersection of two boxes.
pub(super) fn shared(a: &Ranges, b: &Ranges) -> u64 {
    a.iter().zip(b).map(|(a, b)| a.1.min(b.1).saturating_sub(a.0.max(b.0))).product()
}

/// The difference of a box and other boxes, as disjoint boxes.
pub(super) fn beside(ranges: &Ranges, others: &[&Ranges], each: &mut impl FnMut(&Ranges)) {
    let meets = |other: &&Ranges| ranges.iter().zip(*other).all(|(a, b)| a.0.max(b.0) < a.1.min(b.1));
    let Some(first) = others.iter().position(meets) else { return each(ranges) };
    // Cut off the parts beside the first of them, axis by axis; the rest of the box is inside it.
    let (other, others) = (others[first], &others[first + 1..]);
    let mut inside = ranges.to_vec();
    for (axis, &(lo, hi)) in other.iter().enumerate() {
        let (start, end) = inside[axis];
        for outside in [(start, lo.clamp(start, end)), (hi.clamp(start, end), end)] {
            if outside.0 < outside.1 {
                inside[axis] = outside;
                beside(&inside, others, each);
            }
        }
        inside[axis] = (start.max(lo), end.min(hi));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_others_is_what_counting_finds() {
        let mut state = 7u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..200 {
            let mut random = || [draw(8), draw(8)].map(|lo| (lo, lo + draw(6)));
            let (ranges, others) = (random(), [random(), random(), random()]);
            let inside = |b: &[(u64, u64); 2], x: u64, y: u64| b[0].0 <= x && x < b[0].1 && b[1].0 <= y && y < b[1].1;
            let points = (0..14).flat_map(|x| (0..14).map(move |y| (x, y)));
            let alone = points.filter(|&(x, y)| inside(&ranges, x, y) && !others.iter().any(|b| inside(b, x, y)));
            let others: Vec<&Ranges> = others.iter().map(|other| &other[..]).collect();
            let mut found = 0;
            beside(&ranges, &others, &mut |part| found += n_elements(part));
            assert_eq!(found, alone.count() as u64);
        }
    }

    #[test]
    fn equal_boxes_are_kept_once() {
        let regions = |hi: u64| Regions::new(1, [BoxRegion { lo: vec![0], hi: vec![hi] }].into_iter());
        let mut kept = Kept::default();
        let first = kept.keep(regions(3));
        assert!(Rc::ptr_eq(&first, &kept.keep(regions(3))));
        assert!(!Rc::ptr_eq(&first, &kept.keep(regions(4))));
    }
}
