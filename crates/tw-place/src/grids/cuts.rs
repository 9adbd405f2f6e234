//! Cuts of values and of statement variables, with which each block has one owner and each task one worker.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::Axis;
use tw_ir::program::{NodeId, ValueId};

use crate::mesh::part;

/// A side: an axis of a value, or a variable of a node's statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Axis(ValueId, usize),
    Variable(NodeId, usize),
}

/// Cuts of sides, with classes of sides that are cut alike.
pub(super) struct Cuts {
    /// The largest tile length, and the largest number of tiles between two cuts.
    tile: u64,
    most: u64,
    /// The class of each side, and the parent of each class (union-find).
    class: BTreeMap<Side, usize>,
    joined: Vec<usize>,
    cuts: Vec<BTreeSet<u64>>,
    /// Classes whose cuts are tiles already.
    is_cut: BTreeSet<usize>,
}

impl Cuts {
    pub(super) fn new((tile, most): (u64, u64)) -> Cuts {
        Cuts { tile, most, class: BTreeMap::new(), joined: Vec::new(), cuts: Vec::new(), is_cut: BTreeSet::new() }
    }

    fn class(&mut self, side: Side) -> usize {
        let next = self.joined.len();
        let class = *self.class.entry(side).or_insert(next);
        if class == next {
            self.joined.push(next);
            self.cuts.push(BTreeSet::new());
        }
        self.root(class)
    }

    fn root(&self, mut class: usize) -> usize {
        while self.joined[class] != class {
            class = self.joined[class];
        }
        class
    }

    pub(super) fn add(&mut self, side: Side, cuts: impl IntoIterator<Item = u64>) {
        let class = self.class(side);
        self.cuts[class].extend(cuts);
    }

    pub(super) fn join(&mut self, a: Side, b: Side) {
        let (a, b) = (self.class(a), self.class(b));
        if a != b {
            let cuts = std::mem::take(&mut self.cuts[b]);
            self.cuts[a].extend(cuts);
            self.joined[b] = a;
            if self.is_cut.remove(&b) {
                self.is_cut.insert(a);
            }
        }
    }

    /// Leaves a side as it is cut: its readers want these tiles, and would put parts of them together again.
    pub(super) fn keep(&mut self, side: Side) {
        let class = self.class(side);
        self.is_cut.insert(class);
    }

    /// Halves each tile of a side that has more than one element.
    pub(super) fn halve(&mut self, side: Side, n: u64) {
        let boundaries = self.axis(side, n).boundaries();
        self.add(side, boundaries.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) / 2));
    }

    /// True if each tile of one side lies within one tile of another; both sides have this length.
    pub(super) fn is_within(&self, inner: Side, outer: Side, n: u64) -> bool {
        if self.class.get(&inner).map(|&class| self.root(class))
            == self.class.get(&outer).map(|&class| self.root(class))
        {
            return true;
        }
        let inner: BTreeSet<u64> = self.axis(inner, n).boundaries().into_iter().collect();
        self.axis(outer, n).boundaries().iter().all(|cut| inner.contains(cut))
    }

    pub(super) fn axis(&self, side: Side, n: u64) -> Axis {
        let class = self.class.get(&side).map(|&class| self.root(class));
        let most = if class.is_some_and(|class| self.is_cut.contains(&class)) { 1 } else { self.most };
        let cuts = class.map(|class| &self.cuts[class]);
        let inner = cuts.into_iter().flatten().copied().filter(|&cut| cut > 0 && cut < n);
        let cuts: Vec<u64> = std::iter::once(0).chain(inner).chain([n]).collect();
        let mut boundaries = vec![0];
        for pair in cuts.windows(2) {
            let length = pair[1] - pair[0];
            let tiles = length.div_ceil(self.tile.max(1)).clamp(1, most);
            boundaries.extend((1..=tiles).map(|k| pair[0] + part(length, k - 1, tiles).end));
        }
        Axis::from_boundaries(boundaries)
    }
}
