//! A few sorted parts, one after the other, merged in pairs.

use super::item::Item;

/// Merges sorted parts of `items`, which begin at `starts`. Of equal keys those of earlier parts come first. The scratch space becomes as long as the items.
///
/// A sort from the standard library would find the parts by itself, but it takes scratch space of its own for every call, in fresh pages.
pub(super) fn merge_parts<I: Item>(items: &mut Vec<I>, starts: &mut Vec<usize>, scratch: &mut Vec<I>) {
    let n = items.len();
    let mut ends_before = starts.iter().skip(1);
    if ends_before.all(|&start| start == 0 || start >= n || items[start - 1].key() <= items[start].key()) {
        return;
    }
    scratch.resize(n, I::default());
    while starts.len() > 1 {
        for pair in starts.chunks(2).zip(starts.chunks(2).skip(1).map(|next| next[0]).chain([n])) {
            let (pair, end) = pair;
            let (begin, middle) = (pair[0], pair.get(1).copied().unwrap_or(end));
            let (left, right) = items[begin..end].split_at(middle - begin);
            merge(left, right, &mut scratch[begin..end]);
        }
        std::mem::swap(items, scratch);
        let mut is_first = false;
        starts.retain(|_| {
            is_first = !is_first;
            is_first
        });
    }
}

/// Merges two sorted slices into one that is as long as both.
fn merge<I: Item>(left: &[I], right: &[I], to: &mut [I]) {
    let (mut i, mut j) = (0, 0);
    // What comes next is chosen without a branch: which slice has it cannot be foretold.
    while i < left.len() && j < right.len() {
        let (a, b) = (left[i], right[j]);
        let is_right = b.key() < a.key();
        to[i + j] = if is_right { b } else { a };
        i += usize::from(!is_right);
        j += usize::from(is_right);
    }
    let rest = if i < left.len() { &left[i..] } else { &right[j..] };
    to[i + j..].copy_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::super::item::Pair;
    use super::*;

    #[test]
    fn merging_parts_is_sorting_them() {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for n_parts in 1..=9 {
            for _ in 0..50 {
                let (mut items, mut starts) = (Vec::new(), Vec::new());
                for _ in 0..n_parts {
                    starts.push(items.len());
                    let mut keys: Vec<u64> = (0..next(40)).map(|_| next(30)).collect();
                    keys.sort_unstable();
                    let first = items.len() as u64;
                    items.extend(keys.into_iter().zip(first..).map(|(key, position)| Pair::new(key, position)));
                }
                let mut expected = items.clone();
                expected.sort_by_key(|item| item.key());
                merge_parts(&mut items, &mut starts, &mut Vec::new());
                let read =
                    |items: &[Pair<u64>]| items.iter().map(|item| (item.key(), item.position())).collect::<Vec<_>>();
                assert_eq!(read(&items), read(&expected));
            }
        }
    }
}
