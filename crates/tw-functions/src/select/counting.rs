//! Ranks in a long vector, by counting.
//!
//! Every rank has a range of keys that its element is known to be in. A pass cuts each range into [`N_BUCKETS`] parts and counts, block by block, the
//! keys in each, which tells the part the element is in. What is in none of the ranges is not looked at again if the rest of its block is short enough
//! to be handed on; all passes only read, so the vector may be of any size.

use tw_ir::error::{Blame, Error, Result};
use tw_ir::program::{BlockFunction, FunctionTable};
use tw_ir::workflow::BlockShape;
use tw_ir::{Array, ArrayView, Buffer, Slice};

use super::{Ordered, ranks_of};

/// Bits that a pass takes off the length of a range: counts of so many parts stay in the first-level cache.
const BUCKET_BITS: u32 = 11;

/// Parts that a range is cut into.
const N_BUCKETS: usize = 1 << BUCKET_BITS;

/// Stands for the number of candidates of a block that has too many.
const TOO_MANY: u64 = u64::MAX;

pub(super) fn register(table: &mut FunctionTable) {
    table.register(Bounds);
    table.register(Start);
    table.register(Count);
    table.register(Narrow);
    table.register(Value);
}

/// The first and the last key an element can have, both included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// How far keys are shifted to number the parts of the range.
    fn shift(self) -> u32 {
        (u64::BITS - (self.last - self.first).leading_zeros()).saturating_sub(BUCKET_BITS)
    }

    fn bucket(self, number: usize) -> Range {
        let first = self.first + ((number as u64) << self.shift());
        Range { first, last: self.last.min(first.saturating_add((1 << self.shift()) - 1)) }
    }
}

/// What is known of a rank: its range, and how many keys of the range come before it.
#[derive(Clone, Copy)]
struct Known {
    range: Range,
    before: u64,
}

impl Known {
    const FIELDS: usize = 3;

    fn read(state: &[u64]) -> impl Iterator<Item = Known> + '_ {
        let (known, _) = state.as_chunks::<{ Known::FIELDS }>();
        known.iter().map(|&[first, last, before]| Known { range: Range { first, last }, before })
    }

    fn write(self, state: &mut [u64]) {
        state.copy_from_slice(&[self.range.first, self.range.last, self.before]);
    }
}

fn keys_in<'a>(operand: &ArrayView<'a>) -> Result<&'a [u64]> {
    match operand.data() {
        Slice::U64(state) => Ok(state),
        other => Err(Error::types(format!("keys of type {}", other.dtype()))),
    }
}

fn keys_of(result: &mut Array) -> Result<&mut [u64]> {
    match result.data_mut() {
        Buffer::U64(state) => Ok(state),
        other => Err(Error::types(format!("keys of type {}", other.dtype()))),
    }
}

/// The smallest and the largest key of a block; of an empty block, the wrong way round.
struct Bounds;

impl BlockFunction for Bounds {
    fn name(&self) -> &str {
        "rank_bounds"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let bounds = with_ordered!(Slice, operands[0].data(), values => Ok(bounds(values)))?;
        keys_of(&mut results[0])?.copy_from_slice(&bounds);
        Ok(())
    }
}

fn bounds<T: Ordered>(values: &[T]) -> [u64; 2] {
    let Some(&any) = values.iter().find(|value| !value.is_last()) else {
        return if values.is_empty() { [u64::MAX, 0] } else { [T::LAST_KEY; 2] };
    };
    // Several at once: one minimum would wait for the one before.
    const LANES: usize = 8;
    let (mut smallest, mut largest, mut has_last) = ([any; LANES], [any; LANES], [false; LANES]);
    let (whole, rest) = values.as_chunks::<LANES>();
    for chunk in whole.iter().copied().chain(rest.iter().map(|&value| [value; LANES])) {
        for lane in 0..LANES {
            // What comes last compares with nothing.
            let value = chunk[lane];
            smallest[lane] = if value < smallest[lane] { value } else { smallest[lane] };
            largest[lane] = if value > largest[lane] { value } else { largest[lane] };
            has_last[lane] |= value.is_last();
        }
    }
    let first = smallest.iter().map(|value| value.key()).min().unwrap_or(u64::MAX);
    let last = largest.iter().map(|value| value.key()).max().unwrap_or(0);
    [first, if has_last.contains(&true) { T::LAST_KEY } else { last }]
}

/// What is known of ranks at first, from the bounds of all blocks.
struct Start;

impl BlockFunction for Start {
    fn name(&self) -> &str {
        "rank_start"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let (bounds, ranks) = (keys_in(&operands[0])?, ranks_of(&operands[1])?);
        let first = bounds.iter().step_by(2).min().copied().unwrap_or(0);
        let last = bounds.iter().skip(1).step_by(2).max().copied().unwrap_or(0);
        let range = Range { first: first.min(last), last };
        for (&rank, state) in ranks.iter().zip(keys_of(&mut results[0])?.chunks_exact_mut(Known::FIELDS)) {
            let before = u64::try_from(rank).map_err(|_| Error::indices(Blame::Data, format!("rank {rank}")))?;
            Known { range, before }.write(state);
        }
        Ok(())
    }
}

/// Counts the keys of a block in the parts of each rank's range. Operands: the block, the candidates of the pass before if there was one, and what is
/// known of the ranks. Results: the counts, and, if asked for, the candidates: how many keys are in any range, and these keys.
struct Count;

impl BlockFunction for Count {
    fn name(&self) -> &str {
        "rank_count"
    }
    /// Tables of counts before they are added up.
    fn scratch_bytes(&self, _: &[BlockShape], results: &[BlockShape]) -> u64 {
        results.first().map_or(0, |counts| counts.n_bytes().saturating_mul(3))
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let (block, candidates, state) = match operands {
            [block, state] => (block, None, state),
            [block, candidates, state] => (block, Some(keys_in(candidates)?), state),
            _ => return Err(Error::source("a count of something else than a block")),
        };
        let known: Vec<Known> = Known::read(keys_in(state)?).collect();
        let (counts, left) = results.split_at_mut(1);
        let Buffer::I64(counts) = counts[0].data_mut() else {
            return Err(Error::types("counts that are not integers"));
        };
        check_counts(counts, known.len())?;
        let mut pass = Pass::new(&known, left.first_mut().map(keys_of).transpose()?);
        match candidates.and_then(|keys| keys.split_first()) {
            Some((&n, keys)) if n != TOO_MANY => pass.look_at(keys.iter().copied().take(n as usize)),
            _ => with_ordered!(Slice, block.data(), values => {
                pass.look_at(values.iter().map(|value| value.key()));
                Ok(())
            })?,
        }
        pass.finish(&known, counts);
        Ok(())
    }
}

/// Callers say how many counts there are, and must agree with what is counted here.
fn check_counts(counts: &[i64], n_ranks: usize) -> Result<()> {
    match counts.len() == n_ranks * N_BUCKETS {
        true => Ok(()),
        false => Err(Error::source(format!("{} counts for {n_ranks} ranks of {N_BUCKETS} each", counts.len()))),
    }
}

/// One pass over one block.
struct Pass<'a> {
    /// Ranges that are not down to one key. They do not overlap: two ranks are in the same part of a range, or in different ones.
    ranges: Vec<Range>,
    tables: Vec<i64>,
    /// Where candidates go, after their number, and how many there are.
    left: Option<&'a mut [u64]>,
    n_left: usize,
}

impl<'a> Pass<'a> {
    fn new(known: &[Known], left: Option<&'a mut [u64]>) -> Pass<'a> {
        let open = known.iter().map(|known| known.range).filter(|range| range.first < range.last);
        let mut ranges: Vec<Range> = open.collect();
        ranges.sort_unstable();
        ranges.dedup();
        let tables = vec![0; ranges.len() * N_BUCKETS];
        Pass { ranges, tables, left, n_left: 0 }
    }

    fn look_at(&mut self, keys: impl Iterator<Item = u64>) {
        match (&self.ranges[..], self.left.is_some()) {
            ([], _) => {}
            (&[range], false) => self.count_in(range, keys),
            ([_], _) => self.sift::<1>(keys),
            ([_, _], _) => self.sift::<2>(keys),
            ([_, _, _] | [_, _, _, _], _) => self.sift::<4>(keys),
            _ => {
                for key in keys {
                    self.take(key);
                }
            }
        }
    }

    /// Counts keys in one range, which most of them are in.
    fn count_in(&mut self, range: Range, keys: impl Iterator<Item = u64>) {
        // Neighbours count in tables of their own: a count would wait for the one before where both are in one part.
        const TABLES: usize = 2;
        let mut tables = vec![[0i64; N_BUCKETS]; TABLES];
        let (length, shift) = (range.last - range.first, range.shift());
        for (turn, key) in keys.enumerate() {
            let distance = key.wrapping_sub(range.first);
            if distance <= length {
                tables[turn % TABLES][(distance >> shift) as usize % N_BUCKETS] += 1;
            }
        }
        for (bucket, count) in self.tables.iter_mut().enumerate() {
            *count += tables.iter().map(|table| table[bucket]).sum::<i64>();
        }
    }

    /// Counts keys in at most `N` ranges, and hands them on, without a branch: how many are in any range cannot be foretold.
    fn sift<const N: usize>(&mut self, keys: impl Iterator<Item = u64>) {
        // Where there are fewer ranges, the last is there again; keys in it count for its last copy.
        let place = |k: usize| k.min(self.ranges.len() - 1);
        let ranges: [Range; N] = std::array::from_fn(|k| self.ranges[place(k)]);
        let (firsts, shifts) = (ranges.map(|range| range.first), ranges.map(Range::shift));
        let lengths = ranges.map(|range| range.last - range.first);
        // After the tables there is one count for keys in no range.
        let mut tables = vec![0i64; N * N_BUCKETS + 1];
        let (mut nowhere, mut n_left) = ([0; 2], 0);
        let left = self.left.as_deref_mut().and_then(|left| left.get_mut(1..)).filter(|left| !left.is_empty());
        let left = left.unwrap_or(&mut nowhere);
        let last = left.len() - 1;
        for key in keys {
            let at = firsts.iter().skip(1).map(|&first| (first <= key) as usize).sum::<usize>();
            let distance = key.wrapping_sub(firsts[at]);
            let is_in = distance <= lengths[at];
            let bucket = at * N_BUCKETS + (distance >> shifts[at]) as usize % N_BUCKETS;
            tables[if is_in { bucket } else { N * N_BUCKETS }] += 1;
            left[last.min(n_left)] = key;
            n_left += is_in as usize;
        }
        self.n_left += n_left;
        for k in 0..N {
            let own = &mut self.tables[place(k) * N_BUCKETS..][..N_BUCKETS];
            own.iter_mut().zip(&tables[k * N_BUCKETS..]).for_each(|(sum, count)| *sum += count);
        }
    }

    /// Counts a key and hands it on, if it is in a range.
    #[inline(never)]
    fn take(&mut self, key: u64) {
        let Some(at) = self.ranges.partition_point(|range| range.first <= key).checked_sub(1) else { return };
        let range = self.ranges[at];
        if key > range.last {
            return;
        }
        let bucket = ((key - range.first) >> range.shift()) as usize % N_BUCKETS;
        self.tables[at * N_BUCKETS + bucket] += 1;
        self.n_left += 1;
        if let Some(place) = self.left.as_mut().and_then(|left| left.get_mut(self.n_left)) {
            *place = key;
        }
    }

    fn finish(self, known: &[Known], counts: &mut [i64]) {
        if let Some(left) = self.left {
            left[0] = if self.n_left < left.len() { self.n_left as u64 } else { TOO_MANY };
        }
        for (known, counts) in known.iter().zip(counts.chunks_exact_mut(N_BUCKETS)) {
            if let Ok(at) = self.ranges.binary_search(&known.range) {
                counts.copy_from_slice(&self.tables[at * N_BUCKETS..(at + 1) * N_BUCKETS]);
            }
        }
    }
}

/// Finds the part of its range that each rank is in, from the counts of all blocks.
struct Narrow;

impl BlockFunction for Narrow {
    fn name(&self) -> &str {
        "rank_narrow"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let (counts, state) = (ranks_of(&operands[0])?, keys_in(&operands[1])?);
        check_counts(counts, state.len() / Known::FIELDS)?;
        let after = keys_of(&mut results[0])?.chunks_exact_mut(Known::FIELDS);
        for ((known, counts), after) in Known::read(state).zip(counts.chunks_exact(N_BUCKETS)).zip(after) {
            known.narrowed(counts)?.write(after);
        }
        Ok(())
    }
}

impl Known {
    fn narrowed(self, counts: &[i64]) -> Result<Known> {
        if self.range.first == self.range.last {
            return Ok(self);
        }
        let mut before = self.before;
        for (number, &count) in counts.iter().enumerate() {
            match before.checked_sub(count as u64) {
                Some(rest) => before = rest,
                None => return Ok(Known { range: self.range.bucket(number), before }),
            }
        }
        Err(Error::indices(Blame::Data, "a rank beyond the last element"))
    }
}

/// The elements whose keys are known.
struct Value;

impl BlockFunction for Value {
    fn name(&self) -> &str {
        "rank_value"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let known = Known::read(keys_in(&operands[0])?);
        with_ordered!(Buffer, results[0].data_mut(), values => {
            write_values(values, known);
            Ok(())
        })
    }
}

fn write_values<T: Ordered>(values: &mut [T], known: impl Iterator<Item = Known>) {
    values.iter_mut().zip(known).for_each(|(value, known)| *value = Ordered::from_key(known.range.first));
}
