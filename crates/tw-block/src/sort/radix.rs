//! Sorting integers by their digits.
//!
//! Only the highest digits that differ at all are looked at, about as many bits as tell neighbours apart in evenly spread data; least
//! significant digit first, so every pass is stable. Elements that are still out of order afterwards form short groups with the same digits, which
//! are sorted one by one, in the same way if they are long. Looking at all digits took twice the time. Most significant digit first was slower
//! for blocks that stay in cache, and about as fast for those that do not.

use super::item::Item;

/// The widest digit. Its table of counts stays in the nearest cache.
const DIGIT_BITS: u32 = 11;
const TABLE: usize = 1 << DIGIT_BITS;

/// The most digits looked at.
const MAX_DIGITS: usize = 4;

/// Bits looked at beyond the logarithm of the number of items: they pay for exponents, of which few are common.
const EXTRA_BITS: u32 = 12;

/// Fewer items are left to comparisons.
const FEWEST: usize = 4096;

/// Groups up to this length are sorted by insertion.
const SHORT_GROUP: usize = 24;

/// Sorts items by their keys; the order of equal keys is kept. The scratch space must be at least as long.
pub(super) fn sort<I: Item>(items: &mut [I], scratch: &mut [I]) {
    let n = items.len();
    if n <= SHORT_GROUP {
        return insertion(items);
    }
    if n < FEWEST || u32::try_from(n).is_err() {
        return I::sort_by_comparison(items);
    }
    let (any, all) = items.iter().fold((0, u64::MAX), |(any, all), item| (any | item.bits(), all & item.bits()));
    let differing = any ^ all;
    if differing == 0 {
        return;
    }
    let digits = Digits::choose(64 - differing.leading_zeros(), n);
    digits.sort(items, &mut scratch[..n]);
    if digits.low > 0 {
        finish_groups(items, scratch, digits.low);
    }
}

/// The digits that are looked at: some bits from `low` on, cut into equal parts.
#[derive(Clone, Copy)]
struct Digits {
    low: u32,
    bits: u32,
    n: usize,
}

impl Digits {
    /// For `n` items that differ in the lowest `top` bits.
    fn choose(top: u32, n: usize) -> Digits {
        let wanted = top.min(n.ilog2() + EXTRA_BITS).min(DIGIT_BITS * MAX_DIGITS as u32);
        let n_digits = wanted.div_ceil(DIGIT_BITS);
        let bits = wanted.div_ceil(n_digits);
        Digits { low: top.saturating_sub(n_digits * bits), bits, n: n_digits as usize }
    }

    fn sort<I: Item>(self, items: &mut [I], scratch: &mut [I]) {
        let mut counts = [[0u32; TABLE]; MAX_DIGITS];
        match self.n {
            1 => self.count::<1, I>(items, &mut counts),
            2 => self.count::<2, I>(items, &mut counts),
            3 => self.count::<3, I>(items, &mut counts),
            _ => self.count::<MAX_DIGITS, I>(items, &mut counts),
        }
        let n_items = items.len();
        let (mut from, mut to) = (items, scratch);
        let mut moved = false;
        for (k, counts) in counts.iter_mut().enumerate().take(self.n) {
            let shift = self.low + k as u32 * self.bits;
            if counts[self.digit(from[0].bits() >> shift)] as usize == n_items {
                // All share this digit.
                continue;
            }
            distribute(from, to, counts, |item| self.digit(item.bits() >> shift));
            std::mem::swap(&mut from, &mut to);
            moved = !moved;
        }
        if moved {
            to.copy_from_slice(from);
        }
    }

    #[inline]
    fn digit(self, bits: u64) -> usize {
        (bits & ((1 << self.bits) - 1)) as usize % TABLE
    }

    /// Counts all digits in one pass.
    fn count<const N: usize, I: Item>(self, items: &[I], counts: &mut [[u32; TABLE]; MAX_DIGITS]) {
        for item in items {
            let mut bits = item.bits() >> self.low;
            for counts in &mut counts[..N] {
                counts[self.digit(bits)] += 1;
                bits >>= self.bits;
            }
        }
    }
}

/// Moves items to where the counts of their digits say; counts become ends.
fn distribute<I: Item>(from: &[I], to: &mut [I], counts: &mut [u32; TABLE], digit: impl Fn(&I) -> usize) {
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    for item in from {
        let next = &mut counts[digit(item)];
        to[*next as usize] = *item;
        *next += 1;
    }
}

/// Sorts groups of items whose bits from `low` on agree; groups are in order already.
fn finish_groups<I: Item>(items: &mut [I], scratch: &mut [I], low: u32) {
    let n = items.len();
    let mut k = 1;
    while k < n {
        if items[k - 1].bits() <= items[k].bits() {
            k += 1;
            continue;
        }
        let group = items[k].bits() >> low;
        let same = |item: &I| item.bits() >> low == group;
        let start = k - items[..k].iter().rev().take_while(|item| same(item)).count();
        let end = k + items[k..].iter().take_while(|item| same(item)).count();
        sort(&mut items[start..end], scratch);
        k = end + 1;
    }
}

fn insertion<I: Item>(items: &mut [I]) {
    for k in 1..items.len() {
        let item = items[k];
        let mut hole = k;
        while hole > 0 && items[hole - 1].bits() > item.bits() {
            items[hole] = items[hole - 1];
            hole -= 1;
        }
        items[hole] = item;
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::Pair;
    use super::*;

    /// Keys that are spread in many ways.
    fn keys(kind: usize, n: usize) -> Vec<u64> {
        let random = |k: usize| tw_ir::random::bits(kind as u64, k as i64) as u64;
        (0..n)
            .map(|k| match kind {
                0 => random(k),
                1 => random(k) % 5,
                2 => (random(k) >> 40 << 63) | (random(k) % 1000),
                3 => (n - k) as u64,
                4 => k as u64,
                5 => 7,
                6 => ((random(k) % 3) << 62) | (random(k) >> 10),
                _ => 1 << (random(k) % 64),
            })
            .collect()
    }

    #[test]
    fn all_spreads_are_sorted_and_stable() {
        for n in [0, 1, 2, 23, 24, 25, 100, 4095, 4096, 5000, 70_000] {
            for kind in 0..8 {
                let keys = keys(kind, n);
                let mut sorted = keys.clone();
                let mut expected = keys.clone();
                sort(&mut sorted, &mut vec![0; n]);
                expected.sort_unstable();
                assert!(sorted == expected, "kind {kind}, {n} items");
                let mut pairs: Vec<Pair<u64>> =
                    keys.iter().enumerate().map(|(k, &key)| Pair::new(key, k as u64)).collect();
                let mut expected = pairs.clone();
                sort(&mut pairs, &mut vec![Pair::default(); n]);
                expected.sort_by_key(|pair| pair.key());
                assert!(pairs == expected, "kind {kind}, {n} pairs");
                let mut narrow: Vec<u32> = keys.iter().map(|&key| (key >> 16) as u32).collect();
                let mut expected = narrow.clone();
                sort(&mut narrow, &mut vec![0; n]);
                expected.sort_unstable();
                assert!(narrow == expected, "kind {kind}, {n} narrow items");
            }
        }
    }
}
