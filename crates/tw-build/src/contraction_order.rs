//! The order in which to contract a product of many operands, pair by pair.
//!
//! A [`Network`] has operands with indices; contracting two operands sums the indices that no other operand needs. [`Network::orders`] finds the orders with the fewest operations:
//! exactly for up to [`EXACT_LIMIT`] operands, outer products included; beyond that by several greedy rules whose trees are then improved subtree by subtree, each
//! exactly. The search is deterministic: its limits are counts, and its logarithms are ours ([`Elementary`]), which have the same bits on every machine.

use std::collections::BTreeMap;

use tw_ir::scalar::elementary::Elementary;

mod exact;
mod greedy;
mod improve;
#[cfg(test)]
mod tests;

/// Operands up to which the order is exact: 3^16 / 2 splits are looked at.
pub const EXACT_LIMIT: usize = 16;

/// Operands with indices, and the indices that the result keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Indices of each operand, ascending, without indices of a single operand that the output does not keep: these are summed first.
    operands: Vec<Vec<u32>>,
    kept: Vec<bool>,
    extents: Vec<f64>,
    /// The logarithms of extents.
    logs: Vec<f64>,
    /// All sizes are counted in units of two to this power: those of dense networks have no floating-point numbers otherwise. What is nothing beside the unit is counted as nothing.
    shift: f64,
}

/// An order of pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct ContractionOrder {
    /// What is multiplied. Operands are numbered from 0; each pair makes one more.
    pub pairs: Vec<(usize, usize)>,
    /// Multiplications and additions of all pairs; infinite if there are more than about 1e300.
    pub operations: f64,
}

impl Network {
    /// A network of operands with indices `0..extents.len()`, of which `kept` are in the result. An index may be repeated in an operand.
    pub fn new(operands: &[Vec<u32>], kept: &[u32], extents: &[f64]) -> Network {
        let mut uses = vec![Vec::new(); extents.len()];
        for (operand, indices) in operands.iter().enumerate() {
            for &index in indices {
                let uses = &mut uses[index as usize];
                if uses.last() != Some(&operand) {
                    uses.push(operand);
                }
            }
        }
        let mut is_kept = vec![false; extents.len()];
        kept.iter().for_each(|&index| is_kept[index as usize] = true);

        // Indices with the same uses behave as one, and those of extent one do not matter.
        let mut alike: BTreeMap<(Vec<usize>, bool), f64> = BTreeMap::new();
        for ((uses, kept), &extent) in uses.into_iter().zip(is_kept).zip(extents) {
            let needed = uses.len() > 1 || (kept && !uses.is_empty());
            if needed && extent != 1.0 {
                *alike.entry((uses, kept)).or_insert(1.0) *= extent;
            }
        }
        let mut network = Network::without_indices(operands.len(), 0.0);
        for ((uses, kept), extent) in alike {
            network.push(uses.into_iter(), kept, extent, Elementary::log2(extent));
        }
        network
    }

    fn without_indices(operands: usize, shift: f64) -> Network {
        let operands = vec![Vec::new(); operands];
        Network { operands, kept: Vec::new(), extents: Vec::new(), logs: Vec::new(), shift }
    }

    /// Adds an index that some operands have.
    fn push(&mut self, operands: impl Iterator<Item = usize>, kept: bool, extent: f64, log: f64) {
        let index = self.extents.len() as u32;
        operands.for_each(|operand| self.operands[operand].push(index));
        self.kept.push(kept);
        self.extents.push(extent);
        self.logs.push(log);
    }

    /// The best orders found, cheapest first, at most `wanted` of them and at least one. Several differ in their last pair if they are exact.
    pub fn orders(&self, wanted: usize) -> Vec<ContractionOrder> {
        let wanted = wanted.max(1);
        let orders = match self.operands.len() {
            0 | 1 => return vec![ContractionOrder { pairs: Vec::new(), operations: 0.0 }],
            2..=EXACT_LIMIT => exact::orders(self, wanted),
            _ => return greedy::orders(self, wanted),
        };
        if orders[0].operations.is_finite() {
            return orders;
        }
        // In units of what a good order takes.
        let mut orders = exact::orders(&self.scaled(greedy::unit(self)), wanted);
        orders.iter_mut().for_each(|order| order.operations = f64::INFINITY);
        orders
    }

    /// The same network with sizes in other units.
    fn scaled(&self, shift: f64) -> Network {
        Network { shift, ..self.clone() }
    }

    fn size(&self, indices: &[u32]) -> f64 {
        match self.shift == 0.0 {
            true => indices.iter().map(|&index| self.extents[index as usize]).product(),
            false => {
                let log = indices.iter().map(|&index| self.logs[index as usize]).sum::<f64>();
                Elementary::exp2(log - self.shift)
            }
        }
    }

    /// What multiplying two operands takes, whose result has `left` of their indices: a multiplication for every point, and an addition if there is a sum.
    fn pair_operations(&self, all: &[u32], left: usize) -> f64 {
        let each = if left < all.len() { 2.0 } else { 1.0 };
        self.size(all) * each
    }
}

/// The union of two ascending lists.
fn union(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(&&x), Some(&&y)) = (a.peek(), b.peek()) {
        all.push(x.min(y));
        if x <= y {
            a.next();
        }
        if y <= x {
            b.next();
        }
    }
    all.extend(a);
    all.extend(b);
    all
}
