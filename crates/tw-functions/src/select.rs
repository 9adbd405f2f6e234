//! Order statistics: the elements at given ranks, without sorting.
//!
//! Short fibres are selected from in one task. A long vector is counted instead: each pass counts, block by block, the next digit of the keys that
//! may still be the wanted ones, and so narrows every rank by eleven bits. All passes only read, so the vector may be of any size.

use tw_ir::error::{Blame, Error, Result};
use tw_ir::program::{BlockFunction, FunctionTable};
use tw_ir::{Array, Buffer};

use crate::N_AXES;

/// Bits of a digit: its counts stay in the first-level cache.
const DIGIT_BITS: u32 = 11;

/// Elements as unsigned integers of the same order. All NaNs are equal and last, zeros of either sign are equal.
trait Ordered: Copy {
    const KEY_BITS: u32;
    fn key(self) -> u64;
    fn from_key(key: u64) -> Self;
}

macro_rules! integers {
    ($($signed:ty, $unsigned:ty;)*) => {
        $(impl Ordered for $unsigned {
            const KEY_BITS: u32 = <$unsigned>::BITS;
            fn key(self) -> u64 {
                self as u64
            }
            fn from_key(key: u64) -> $unsigned {
                key as $unsigned
            }
        }
        impl Ordered for $signed {
            const KEY_BITS: u32 = <$signed>::BITS;
            fn key(self) -> u64 {
                (self as $unsigned ^ (1 << (Self::KEY_BITS - 1))) as u64
            }
            fn from_key(key: u64) -> $signed {
                (key as $unsigned ^ (1 << (Self::KEY_BITS - 1))) as $signed
            }
        })*
    };
}
integers! { i8, u8; i16, u16; i32, u32; i64, u64; }

macro_rules! floats {
    ($($float:ty, $bits:ty;)*) => {
        $(impl Ordered for $float {
            const KEY_BITS: u32 = <$bits>::BITS;
            #[inline]
            fn key(self) -> u64 {
                if self.is_nan() {
                    return <$bits>::MAX as u64;
                }
                // Adding zero makes a negative zero positive.
                let bits = (self + 0.0).to_bits();
                // Negative numbers grow downwards, so all their bits turn; of the others, the sign.
                let turned = ((bits as <$bits as Signed>::Type) >> (Self::KEY_BITS - 1)) as $bits | (1 << (Self::KEY_BITS - 1));
                (bits ^ turned) as u64
            }
            fn from_key(key: u64) -> $float {
                let key = key as $bits;
                if key == <$bits>::MAX {
                    return <$float>::NAN;
                }
                let sign = 1 << (Self::KEY_BITS - 1);
                <$float>::from_bits(if key & sign != 0 { key ^ sign } else { !key })
            }
        })*
    };
}
trait Signed {
    type Type;
}
impl Signed for u32 {
    type Type = i32;
}
impl Signed for u64 {
    type Type = i64;
}
floats! { f32, u32; f64, u64; }

/// Runs code for the element type of a buffer, if it has an order.
macro_rules! with_ordered {
    ($buffer:expr, $values:ident => $body:expr) => {
        match $buffer {
            Buffer::I8($values) => $body,
            Buffer::I16($values) => $body,
            Buffer::I32($values) => $body,
            Buffer::I64($values) => $body,
            Buffer::U8($values) => $body,
            Buffer::U16($values) => $body,
            Buffer::U32($values) => $body,
            Buffer::U64($values) => $body,
            Buffer::F32($values) => $body,
            Buffer::F64($values) => $body,
            other => Err(Error::types(format!("an order of {}", other.dtype()))),
        }
    };
}

/// Bytes of a counted digit and how far up it lies, for keys of so many bits.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    width: u32,
}

impl Digit {
    fn of(bits: u32, pass: u32) -> Digit {
        let above = bits.saturating_sub(DIGIT_BITS * pass);
        Digit { shift: above.saturating_sub(DIGIT_BITS), width: above.min(DIGIT_BITS) }
    }
}

/// How many passes narrow keys of so many bits to one.
pub(crate) fn n_passes(bits: u32) -> u32 {
    bits.div_ceil(DIGIT_BITS)
}

/// Makes the functions known: `select_0` and so on, with the number of axes after the one that is selected along, and `rank_count_0`,
/// `rank_narrow_64_0` and so on, with the pass, and before it the bits of a key.
pub(crate) fn register(table: &mut FunctionTable) {
    for from_end in 0..N_AXES {
        table.register(Select { name: format!("select_{from_end}"), from_end });
    }
    for pass in 0..n_passes(64) {
        table.register(Count { name: format!("rank_count_{pass}"), pass });
    }
    for bits in [8, 16, 32, 64] {
        for pass in 0..n_passes(bits) {
            table.register(Narrow { name: format!("rank_narrow_{bits}_{pass}"), digit: Digit::of(bits, pass) });
        }
    }
    table.register(Value);
}

fn ranks_of(array: &Array) -> Result<&[i64]> {
    match array.data() {
        Buffer::I64(ranks) => Ok(ranks),
        other => Err(Error::types(format!("ranks of type {}", other.dtype()))),
    }
}

fn checked(rank: i64, n: usize) -> Result<usize> {
    usize::try_from(rank)
        .ok()
        .filter(|&rank| rank < n)
        .ok_or_else(|| Error::indices(Blame::Data, format!("rank {rank} among {n} elements")))
}

/// The elements of a fibre at ranks that are given per fibre.
struct Select {
    name: String,
    from_end: usize,
}

impl BlockFunction for Select {
    fn name(&self) -> &str {
        &self.name
    }
    fn apply(&self, operands: &[Array], results: &mut [Array]) -> Result<()> {
        let [x, ranks] = operands else {
            return Err(Error::internal("a selection of something else than two operands"));
        };
        let axis = x.shape().len().checked_sub(self.from_end + 1);
        let axis = axis.ok_or_else(|| Error::source("a selection along an axis that is not there"))?;
        let inner = x.shape()[axis + 1..].iter().product::<u64>() as usize;
        let (n, n_ranks) = (x.shape()[axis] as usize, ranks.shape()[axis] as usize);
        let ranks = ranks_of(ranks)?;
        let result = results[0].data_mut();
        with_ordered!(x.data(), values => select_fibres(values, ranks, [n, n_ranks, inner], |at, value| result.set(at, tw_ir::dtype::Element::to_scalar(value))))
    }
}

fn select_fibres<T: Ordered>(
    values: &[T],
    ranks: &[i64],
    [n, n_ranks, inner]: [usize; 3],
    mut write: impl FnMut(usize, T),
) -> Result<()> {
    let n_fibres = ranks.len().checked_div(n_ranks).unwrap_or(0);
    let mut fibre: Vec<T> = Vec::with_capacity(n);
    let mut order: Vec<(usize, usize)> = Vec::with_capacity(n_ranks);
    for number in 0..n_fibres {
        let (outer, column) = (number / inner, number % inner);
        fibre.clear();
        fibre.extend((0..n).map(|k| values[(outer * n + k) * inner + column]));
        order.clear();
        for k in 0..n_ranks {
            let at = (outer * n_ranks + k) * inner + column;
            order.push((checked(ranks[at], n)?, at));
        }
        order.sort_unstable();
        // Everything before a rank that was found stays before it, so the next is looked for in the rest.
        let mut done = 0;
        let mut before: Option<(usize, T)> = None;
        for &(rank, at) in &order {
            let value = match before {
                Some((same, value)) if same == rank => value,
                _ => {
                    let (_, value, _) = fibre[done..].select_nth_unstable_by_key(rank - done, |value| value.key());
                    let value = *value;
                    done = rank + 1;
                    value
                }
            };
            before = Some((rank, value));
            write(at, value);
        }
    }
    Ok(())
}

/// Counts the next digit of the keys that begin as those of each rank do. Operands: a block, and per rank what its key begins with and how many of
/// those keys come before it.
struct Count {
    name: String,
    pass: u32,
}

impl BlockFunction for Count {
    fn name(&self) -> &str {
        &self.name
    }
    fn apply(&self, operands: &[Array], results: &mut [Array]) -> Result<()> {
        let state = state_of(&operands[1])?;
        let Buffer::I64(counts) = results[0].data_mut() else {
            return Err(Error::internal("counts that are not integers"));
        };
        with_ordered!(operands[0].data(), values => {
            count(values, self.pass, state, counts);
            Ok(())
        })
    }
}

fn state_of(array: &Array) -> Result<&[u64]> {
    match array.data() {
        Buffer::U64(state) => Ok(state),
        other => Err(Error::types(format!("a state of type {}", other.dtype()))),
    }
}

fn count<T: Ordered>(values: &[T], pass: u32, state: &[u64], counts: &mut [i64]) {
    let digit = Digit::of(T::KEY_BITS, pass);
    let mask = (1u64 << digit.width) - 1;
    // Ranks that begin alike share their counts.
    let mut prefixes: Vec<u64> = state.iter().step_by(2).copied().collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let mut tables = vec![0i64; prefixes.len() << DIGIT_BITS];
    match prefixes[..] {
        [prefix] => {
            for value in values {
                let key = value.key() >> digit.shift;
                // Counting what does not belong into a place of its own would be a branch less, but most of it is mispredicted only in one pass.
                if key >> digit.width == prefix {
                    tables[(key & mask) as usize] += 1;
                }
            }
        }
        _ => {
            for value in values {
                let key = value.key() >> digit.shift;
                let beginning = key >> digit.width;
                if let Ok(at) = prefixes.binary_search(&beginning) {
                    tables[at << DIGIT_BITS | (key & mask) as usize] += 1;
                }
            }
        }
    }
    for (rank, prefix) in state.iter().step_by(2).enumerate() {
        let at = prefixes.binary_search(prefix).unwrap_or(0);
        counts[rank << DIGIT_BITS..(rank + 1) << DIGIT_BITS]
            .copy_from_slice(&tables[at << DIGIT_BITS..(at + 1) << DIGIT_BITS]);
    }
}

/// Finds the digit of each rank among the counts of all blocks.
struct Narrow {
    name: String,
    digit: Digit,
}

impl BlockFunction for Narrow {
    fn name(&self) -> &str {
        &self.name
    }
    fn apply(&self, operands: &[Array], results: &mut [Array]) -> Result<()> {
        let (counts, state) = (ranks_of(&operands[0])?, state_of(&operands[1])?);
        let Buffer::U64(narrowed) = results[0].data_mut() else {
            return Err(Error::internal("a state that is not of integers"));
        };
        for (rank, (before, after)) in state.chunks_exact(2).zip(narrowed.chunks_exact_mut(2)).enumerate() {
            let mut left = before[1];
            let counts = &counts[rank << DIGIT_BITS..(rank + 1) << DIGIT_BITS];
            let found = counts.iter().position(|&count| {
                let here = left < count as u64;
                left -= if here { 0 } else { count as u64 };
                here
            });
            let found = found.ok_or_else(|| Error::indices(Blame::Data, "a rank beyond the last element"))?;
            after.copy_from_slice(&[before[0] << self.digit.width | found as u64, left]);
        }
        Ok(())
    }
}

/// The elements whose keys are known in full.
struct Value;

impl BlockFunction for Value {
    fn name(&self) -> &str {
        "rank_value"
    }
    fn apply(&self, operands: &[Array], results: &mut [Array]) -> Result<()> {
        let state = state_of(&operands[0])?;
        with_ordered!(results[0].data_mut(), values => {
            values.iter_mut().zip(state.iter().step_by(2)).for_each(|(value, &key)| *value = Ordered::from_key(key));
            Ok(())
        })
    }
}
