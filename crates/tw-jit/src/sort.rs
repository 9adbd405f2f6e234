//! Sorting of coordinates that a workspace has collected: most lists are distinct and near to each other, or longer than a comparison sort
//! likes. The result is that of a sort in any case.

/// A coordinate or key.
pub(crate) trait Key: Copy + Ord {
    fn wide(self) -> u64;
    /// Only of what [`Key::wide`] has made.
    fn narrow(wide: u64) -> Self;
}
impl Key for u32 {
    fn wide(self) -> u64 {
        self as u64
    }
    fn narrow(wide: u64) -> u32 {
        wide as u32
    }
}
impl Key for u64 {
    fn wide(self) -> u64 {
        self
    }
    fn narrow(wide: u64) -> u64 {
        wide
    }
}

/// Below this, comparisons win.
const SHORT: usize = 12;
/// Below this, comparisons win over a radix sort.
const RADIX: usize = 400;
/// Words of the bit set per key, at most.
const WORDS_PER_KEY: u64 = 4;

/// Sorts keys. `scratch` is memory to use, kept from call to call.
pub(crate) fn sort_keys<K: Key>(keys: &mut [K], scratch: &mut Vec<u64>) {
    if keys.len() < SHORT {
        return keys.sort_unstable();
    }
    let (mut low, mut high) = (keys[0], keys[0]);
    for &key in &*keys {
        (low, high) = (low.min(key), high.max(key));
    }
    let range = high.wide() - low.wide();
    if range / 64 < WORDS_PER_KEY * keys.len() as u64 {
        by_bits(keys, low.wide(), range, scratch);
    } else if keys.len() >= RADIX {
        by_digits(keys, low.wide(), range, scratch);
    } else {
        keys.sort_unstable();
    }
}

/// Sets a bit per key and reads them in order. Keys that come twice are left to a comparison sort.
fn by_bits<K: Key>(keys: &mut [K], low: u64, range: u64, words: &mut Vec<u64>) {
    words.clear();
    words.resize(range as usize / 64 + 1, 0);
    for key in &*keys {
        let at = key.wide() - low;
        let word = &mut words[at as usize / 64];
        let bit = 1 << (at % 64);
        if *word & bit != 0 {
            return keys.sort_unstable();
        }
        *word |= bit;
    }
    let mut places = keys.iter_mut();
    for (k, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            let at = 64 * k as u64 + left.trailing_zeros() as u64;
            if let Some(place) = places.next() {
                *place = K::narrow(low + at);
            }
            left &= left - 1;
        }
    }
}

/// A radix sort by bytes, lowest first, of as many bytes as the range has.
fn by_digits<K: Key>(keys: &mut [K], low: u64, range: u64, other: &mut Vec<u64>) {
    let n = keys.len();
    other.clear();
    other.extend(keys.iter().map(|key| key.wide() - low));
    other.resize(2 * n, 0);
    let (mut from, mut to) = other.split_at_mut(n);
    for digit in 0..(64 - range.leading_zeros()).div_ceil(8) {
        let byte = |key: u64| (key >> (8 * digit)) as usize & 0xff;
        let mut ends = [0usize; 257];
        from.iter().for_each(|&key| ends[byte(key) + 1] += 1);
        (0..256).for_each(|k| ends[k + 1] += ends[k]);
        for &key in &*from {
            let place = &mut ends[byte(key)];
            to[*place] = key;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
    }
    keys.iter_mut().zip(&*from).for_each(|(place, key)| *place = K::narrow(low + key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_sorts() {
        let mut scratch = Vec::new();
        for n in [0usize, 1, 5, 11, 12, 13, 100, 399, 400, 1500] {
            for (spread, offset) in [(1u64, 0u64), (3, 7), (97, 1 << 20), (50_000, 3), (u32::MAX as u64 / 2000, 0)] {
                for duplicates in [false, true] {
                    let key = |k: usize| {
                        let k = if duplicates { k / 2 } else { k };
                        offset + (k * 7919 % 1511) as u64 * spread
                    };
                    let mut wide: Vec<u64> = (0..n).map(key).collect();
                    let mut narrow: Vec<u32> = wide.iter().map(|&key| key as u32).collect();
                    let mut expected = wide.clone();
                    expected.sort_unstable();
                    sort_keys(&mut wide, &mut scratch);
                    assert_eq!(wide, expected, "{n} {spread}");
                    sort_keys(&mut narrow, &mut scratch);
                    assert!(narrow.is_sorted() && narrow.len() == n);
                    assert!(narrow.iter().zip(&expected).all(|(a, b)| *a as u64 == *b), "{n} {spread}");
                }
            }
        }
        let mut extreme: Vec<u64> = (0..500).map(|k| if k % 2 == 0 { u64::MAX - k } else { k }).collect();
        let mut expected = extreme.clone();
        expected.sort_unstable();
        sort_keys(&mut extreme, &mut scratch);
        assert_eq!(extreme, expected);
    }
}
