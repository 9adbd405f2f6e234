//! In which order to multiply a product of many operands pair by pair.
//!
//! A [`Network`] has operands with indices; whoever multiplies two of them sums what nobody else needs. [`Network::orders`] finds the orders with the fewest operations:
//! exactly for up to [`EXACT_LIMIT`] operands, outer products included; beyond that by several greedy rules whose trees are then improved subtree by subtree, each
//! exactly. Everything is deterministic, and limits are counts.

use std::collections::BTreeMap;

mod exact;
mod greedy;
mod improve;
#[cfg(test)]
mod tests;

/// Operands up to which the order is exact: 3^16 / 2 splits are looked at.
pub const EXACT_LIMIT: usize = 16;

/// Decimal digits of the largest number of points once roots are taken of extents whose products have no floating-point number.
const MOST_DIGITS: f64 = 290.0;

/// Operands with indices, and the indices that the result keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Indices of every operand, ascending, without those that only one operand has and nobody keeps: these are summed before anything else.
    operands: Vec<Vec<u32>>,
    kept: Vec<bool>,
    extents: Vec<f64>,
}

/// An order of pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
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
        let mut network = Network { operands: vec![Vec::new(); operands.len()], kept: Vec::new(), extents: Vec::new() };
        for ((uses, kept), extent) in alike {
            let index = network.extents.len() as u32;
            uses.into_iter().for_each(|operand| network.operands[operand].push(index));
            network.kept.push(kept);
            network.extents.push(extent);
        }
        network
    }

    /// The best orders found, cheapest first, at most `wanted` of them and at least one. Several differ in their last pair if they are exact.
    pub fn orders(&self, wanted: usize) -> Vec<Order> {
        let orders = self.orders_as_counted(wanted.max(1));
        if orders[0].operations.is_finite() {
            return orders;
        }
        // Roots keep the order of products, though not that of their sums.
        let digits: f64 = self.extents.iter().map(|extent| extent.log10()).sum();
        let extents = self.extents.iter().map(|extent| extent.powf(MOST_DIGITS / digits)).collect();
        let mut orders = Network { extents, ..self.clone() }.orders_as_counted(wanted.max(1));
        orders.iter_mut().for_each(|order| order.operations = f64::INFINITY);
        orders
    }

    fn orders_as_counted(&self, wanted: usize) -> Vec<Order> {
        match self.operands.len() {
            0 | 1 => vec![Order { pairs: Vec::new(), operations: 0.0 }],
            2..=EXACT_LIMIT => exact::orders(self, wanted),
            _ => greedy::orders(self, wanted),
        }
    }

    fn size(&self, indices: &[u32]) -> f64 {
        indices.iter().map(|&index| self.extents[index as usize]).product()
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
