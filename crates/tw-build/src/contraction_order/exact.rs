//! The best order of few operands: for every subset of them the best split, from small subsets to large ones.

use tw_ir::scalar::elementary::Elementary;

use super::{ContractionOrder, EXACT_LIMIT, Network};

/// The best orders that differ in their last pair.
pub(super) fn orders(network: &Network, wanted: usize) -> Vec<ContractionOrder> {
    // Sixteen operands of at most 64 axes have no more than 1024 indices.
    match network.extents.len() {
        0..=64 => Subsets::<1>::new(network).orders(wanted),
        65..=256 => Subsets::<4>::new(network).orders(wanted),
        257..=1024 => Subsets::<16>::new(network).orders(wanted),
        _ => super::greedy::orders(network, wanted),
    }
}

/// Indices as bits.
type Bits<const W: usize> = [u64; W];

struct Subsets<const W: usize> {
    operands: usize,
    /// Products of extents for every value of every byte of a set, or sums of their logarithms where there is a shift.
    byte_sizes: Vec<[f64; 256]>,
    shift: f64,
    /// Indices that are left of a subset once everything private to it is summed.
    left: Vec<Bits<W>>,
    /// Operations of the best order of a subset.
    operations: Vec<f64>,
    /// One half of its last split.
    split: Vec<u32>,
}

impl<const W: usize> Subsets<W> {
    fn new(network: &Network) -> Subsets<W> {
        let operands = network.operands.len();
        debug_assert!(operands <= EXACT_LIMIT, "3^n splits of {operands} operands");
        let mut bits = vec![[0; W]; operands];
        for (bits, indices) in bits.iter_mut().zip(&network.operands) {
            indices.iter().for_each(|&index| bits[index as usize / 64] |= 1 << (index % 64));
        }
        let mut kept = [0; W];
        for (index, _) in network.kept.iter().enumerate().filter(|(_, kept)| **kept) {
            kept[index / 64] |= 1 << (index % 64);
        }
        let full = (1usize << operands) - 1;
        let mut any = vec![[0; W]; full + 1];
        for set in 1..=full {
            let lowest = set.trailing_zeros() as usize;
            any[set] = or(&any[set & (set - 1)], &bits[lowest]);
        }
        let left = (0..=full).map(|set| and(&any[set], &or(&any[full ^ set], &kept))).collect();
        let shift = network.shift;
        let byte_sizes = match shift == 0.0 {
            true => network.extents.chunks(8).map(|extents| byte_sizes(extents, 1.0, |a, b| a * b)).collect(),
            false => network.logs.chunks(8).map(|logs| byte_sizes(logs, 0.0, |a, b| a + b)).collect(),
        };
        let (operations, split) = (vec![f64::INFINITY; full + 1], vec![0; full + 1]);
        let mut subsets = Subsets { operands, byte_sizes, shift, left, operations, split };
        for set in 1..full {
            subsets.solve(set);
        }
        subsets
    }

    fn solve(&mut self, set: usize) {
        let rest = set & (set - 1);
        if rest == 0 {
            self.operations[set] = 0.0;
            return;
        }
        // Every split once: `part` is the half without the lowest operand.
        let (mut best, mut split, mut part) = (f64::INFINITY, rest, rest);
        while part > 0 {
            let halves = self.operations[part] + self.operations[set ^ part];
            if halves < best {
                let total = halves + self.last(set, part);
                if total < best {
                    (best, split) = (total, part);
                }
            }
            part = (part - 1) & rest;
        }
        (self.operations[set], self.split[set]) = (best, split as u32);
    }

    /// Operations of the last pair of a split.
    fn last(&self, set: usize, part: usize) -> f64 {
        let all = or(&self.left[part], &self.left[set ^ part]);
        let each = if all == self.left[set] { 1.0 } else { 2.0 };
        each * self.size(&all)
    }

    fn size(&self, set: &Bits<W>) -> f64 {
        let bytes = set.iter().flat_map(|word| word.to_le_bytes());
        let sizes = self.byte_sizes.iter().zip(bytes).map(|(sizes, byte)| sizes[byte as usize]);
        match self.shift == 0.0 {
            true => sizes.product(),
            false => Elementary::exp2(sizes.sum::<f64>() - self.shift),
        }
    }

    fn orders(mut self, wanted: usize) -> Vec<ContractionOrder> {
        let full = (1usize << self.operands) - 1;
        let rest = full & (full - 1);
        let mut last: Vec<(f64, usize)> = Vec::new();
        let mut part = rest;
        while part > 0 {
            let halves = self.operations[part] + self.operations[full ^ part];
            // Only what may be among the wanted is computed.
            if last.len() < wanted || halves < last[wanted - 1].0 {
                let total = halves + self.last(full, part);
                let place = last.partition_point(|(other, _)| *other <= total);
                last.insert(place, (total, part));
                last.truncate(wanted);
            }
            part = (part - 1) & rest;
        }
        let order = |(operations, part): (f64, usize)| {
            self.split[full] = part as u32;
            let mut pairs = Vec::with_capacity(self.operands - 1);
            self.emit(full, &mut pairs);
            ContractionOrder { pairs, operations }
        };
        last.into_iter().map(order).collect()
    }

    fn emit(&self, set: usize, pairs: &mut Vec<(usize, usize)>) -> usize {
        if set & (set - 1) == 0 {
            return set.trailing_zeros() as usize;
        }
        let part = self.split[set] as usize;
        let pair = (self.emit(set ^ part, pairs), self.emit(part, pairs));
        pairs.push(pair);
        self.operands + pairs.len() - 1
    }
}

fn byte_sizes(extents: &[f64], none: f64, and: impl Fn(f64, f64) -> f64) -> [f64; 256] {
    let mut sizes = [none; 256];
    for byte in 1..256usize {
        let extent = extents.get(byte.trailing_zeros() as usize).copied().unwrap_or(none);
        sizes[byte] = and(sizes[byte & (byte - 1)], extent);
    }
    sizes
}

fn or<const W: usize>(a: &Bits<W>, b: &Bits<W>) -> Bits<W> {
    std::array::from_fn(|word| a[word] | b[word])
}

fn and<const W: usize>(a: &Bits<W>, b: &Bits<W>) -> Bits<W> {
    std::array::from_fn(|word| a[word] & b[word])
}
