//! The owners of a value, and the elements that a worker lacks.

use std::ops::Range;
use std::rc::Rc;

use tw_ir::{Axis, BoxRegion, Grid};

use super::boxes::{Ranges, Regions, beside, n_elements, shared};
use crate::homes::Homes;
use crate::mesh::Ownership;

/// The owners of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Shards of a mesh.
    Grid(Ownership),
    /// Shards of a mesh in whole tiles.
    Tiles(Ownership, Grid),
    /// The workers that an earlier segment left it on.
    Homes(Homes),
}

impl Owners {
    /// The worker that owns an element.
    pub fn owner(&self, element: &[u64]) -> u32 {
        match self {
            Owners::Grid(ownership) => ownership.owner(element) as u32,
            Owners::Tiles(ownership, axes) => {
                let tiles: Vec<u64> = axes.iter().zip(element).map(|(axis, &at)| axis.tile_of(at)).collect();
                ownership.owner(&tiles) as u32
            }
            Owners::Homes(held) => held.owner(element),
        }
    }

    /// The cuts of the value with which each block has one owner.
    pub(super) fn cuts(&self, axis: usize) -> Vec<u64> {
        match self {
            Owners::Grid(ownership) => ownership.cuts(axis),
            Owners::Tiles(_, axes) => axes[axis].boundaries(),
            Owners::Homes(held) => held.grid()[axis].boundaries(),
        }
    }

    /// The turn: which of the workers that could own a piece owns it.
    pub(super) fn turn(&self) -> u64 {
        self.ownership().map_or(0, Ownership::turn)
    }

    /// The number of workers that could own a piece.
    pub(super) fn turns(&self) -> u64 {
        self.ownership().map_or(1, Ownership::turns)
    }

    /// The same owners with another turn.
    pub(super) fn turned(self, turn: u64) -> Owners {
        self.map(|ownership| ownership.turned(turn))
    }

    /// The same owners with no piece below this many elements. Whole tiles always count as large enough.
    pub(super) fn in_pieces_of(self, least: u64) -> Owners {
        match self {
            Owners::Grid(ownership) => Owners::Grid(ownership.in_pieces_of(least)),
            others => others,
        }
    }

    /// The same, but one of the workers that share a part owns all of it.
    pub(super) fn in_one_piece(self) -> Owners {
        self.map(|ownership| ownership.in_pieces_of(u64::MAX))
    }

    fn ownership(&self) -> Option<&Ownership> {
        match self {
            Owners::Grid(ownership) | Owners::Tiles(ownership, _) => Some(ownership),
            Owners::Homes(_) => None,
        }
    }

    fn map(self, change: impl FnOnce(Ownership) -> Ownership) -> Owners {
        match self {
            Owners::Grid(ownership) => Owners::Grid(change(ownership)),
            Owners::Tiles(ownership, axes) => Owners::Tiles(change(ownership), axes),
            Owners::Homes(held) => Owners::Homes(held),
        }
    }

    fn rank(&self) -> usize {
        match self {
            Owners::Grid(ownership) | Owners::Tiles(ownership, _) => ownership.rank(),
            Owners::Homes(held) => held.grid().len(),
        }
    }

    /// The disjoint boxes of each worker.
    fn boxes(&self, workers: Range<u64>) -> Vec<Vec<BoxRegion>> {
        let elements = |tiles: &BoxRegion, axes: &[Axis]| {
            let ranges = tiles.lo.iter().zip(&tiles.hi).zip(axes);
            BoxRegion::from_ranges(ranges.map(|((&lo, &hi), axis)| of_tiles(axis, lo, hi)))
        };
        match self {
            Owners::Grid(ownership) => workers.map(|worker| vec![ownership.owned(worker)]).collect(),
            Owners::Tiles(ownership, axes) => {
                workers.map(|worker| vec![elements(&ownership.owned(worker), axes)]).collect()
            }
            Owners::Homes(held) => {
                let mut boxes = vec![Vec::new(); (workers.end - workers.start) as usize];
                let here = held.boxes().filter(|(worker, _)| workers.contains(&u64::from(*worker)));
                here.for_each(|(worker, region)| boxes[(u64::from(worker) - workers.start) as usize].push(region));
                boxes
            }
        }
    }

    /// Whether a worker owns a value without axes.
    fn owns_scalar(&self, worker: u64) -> bool {
        match self {
            Owners::Grid(ownership) | Owners::Tiles(ownership, _) => ownership.owns_scalar(worker),
            Owners::Homes(held) => u64::from(held.owner(&[])) == worker,
        }
    }
}

/// The owners of a value, with the boxes of each worker.
#[derive(Debug)]
pub(super) struct Owned {
    pub(super) owners: Owners,
    rank: usize,
    /// The boxes of all workers, consecutively, and the start of each worker's boxes.
    boxes: Vec<(u64, u64)>,
    starts: Vec<usize>,
    /// For a value without axes: which workers own it.
    has_scalar: Vec<bool>,
}

impl Owned {
    /// The shards of the first workers.
    pub(super) fn new(owners: Owners, workers: Range<u64>) -> Owned {
        let rank = owners.rank();
        let (mut boxes, mut starts) = (Vec::new(), vec![0]);
        for regions in owners.boxes(workers.clone()) {
            let n_before = starts[starts.len() - 1];
            starts.push(n_before + regions.len());
            regions.into_iter().for_each(|region| boxes.extend(region.lo.into_iter().zip(region.hi)));
        }
        let has_scalar = match rank {
            0 => workers.map(|worker| owners.owns_scalar(worker)).collect(),
            _ => Vec::new(),
        };
        Owned { owners, rank, boxes, starts, has_scalar }
    }

    fn boxes(&self, worker: usize) -> impl Iterator<Item = &Ranges> + Clone {
        self.boxes[self.starts[worker] * self.rank..self.starts[worker + 1] * self.rank].chunks(self.rank.max(1))
    }

    pub(super) fn elements(&self, worker: usize) -> u64 {
        match self.has_scalar.get(worker) {
            Some(has) => *has as u64,
            None => self.boxes(worker).map(n_elements).sum(),
        }
    }

    /// Elements in the union of some reads of a worker that it does not own.
    pub(super) fn missing<'a>(&self, worker: usize, needs: impl Iterator<Item = &'a Rc<Regions>>) -> u64 {
        if let Some(has) = self.has_scalar.get(worker) {
            return !has as u64;
        }
        let owned = self.boxes(worker);
        let mut before: Vec<&Ranges> = Vec::new();
        let mut sum = 0;
        for need in needs.map(|need| need.of(worker)) {
            // Shards are disjoint, and so are the boxes of one worker.
            beside(need, &before, &mut |part| {
                sum += n_elements(part) - owned.clone().map(|owned| shared(part, owned)).sum::<u64>()
            });
            before.push(need);
        }
        sum
    }
}

/// The number of elements of some tiles of an axis.
pub(super) fn of_tiles(axis: &Axis, lo: u64, hi: u64) -> Range<u64> {
    let start = if lo < axis.n_tiles() { axis.range(lo).start } else { axis.extent() };
    start..if hi > lo { axis.range(hi - 1).end } else { start }
}
