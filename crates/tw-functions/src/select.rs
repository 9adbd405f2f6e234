//! Order statistics: the elements at given ranks, without sorting.
//!
//! Short fibres are selected from in one task, a long vector is [counted](counting).

use tw_ir::error::{Blame, Error, Result};
use tw_ir::program::{BlockFunction, FunctionTable};
use tw_ir::workflow::BlockShape;
use tw_ir::{Array, ArrayView, Slice};

use crate::N_AXES;

/// Elements as unsigned integers of the same order. All NaNs are equal and last, zeros of either sign are equal.
trait Ordered: Copy + PartialOrd {
    const KEY_BITS: u32;
    /// The largest key.
    const LAST_KEY: u64 = u64::MAX >> (u64::BITS - Self::KEY_BITS);
    /// True for what is behind everything and compares with nothing: NaN.
    fn is_last(self) -> bool {
        false
    }
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
            fn is_last(self) -> bool {
                self.is_nan()
            }
            #[inline]
            fn key(self) -> u64 {
                if self.is_nan() {
                    return Self::LAST_KEY;
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

/// Runs code for the element type of a [`Slice`] or a [`Buffer`](tw_ir::Buffer), if it has an order.
macro_rules! with_ordered {
    ($kind:ident, $elements:expr, $values:ident => $body:expr) => {
        match $elements {
            $kind::I8($values) => $body,
            $kind::I16($values) => $body,
            $kind::I32($values) => $body,
            $kind::I64($values) => $body,
            $kind::U8($values) => $body,
            $kind::U16($values) => $body,
            $kind::U32($values) => $body,
            $kind::U64($values) => $body,
            $kind::F32($values) => $body,
            $kind::F64($values) => $body,
            other => Err(Error::types(format!("an order of {}", other.dtype()))),
        }
    };
}

mod counting;

/// Makes the functions known: `select_0` and so on, with the number of axes after the one that is selected along, and those that count.
pub(crate) fn register(table: &mut FunctionTable) {
    for from_end in 0..N_AXES {
        table.register(Select { name: format!("select_{from_end}"), from_end });
    }
    counting::register(table);
}

fn ranks_of<'a>(operand: &ArrayView<'a>) -> Result<&'a [i64]> {
    match operand.data() {
        Slice::I64(ranks) => Ok(ranks),
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
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> Result<()> {
        let [x, ranks] = operands else {
            return Err(Error::internal("a selection of something else than two operands"));
        };
        let axis = x.shape().len().checked_sub(self.from_end + 1);
        let axis = axis.ok_or_else(|| Error::source("a selection along an axis that is not there"))?;
        let inner = x.shape()[axis + 1..].iter().product::<u64>() as usize;
        let (n, n_ranks) = (x.shape()[axis] as usize, ranks.shape()[axis] as usize);
        let ranks = ranks_of(ranks)?;
        let result = results[0].data_mut();
        with_ordered!(Slice, x.data(), values => select_fibres(values, ranks, [n, n_ranks, inner], |at, value| result.set(at, tw_ir::dtype::Element::to_scalar(value))))
    }
    fn scratch_bytes(&self, operands: &[BlockShape], _: &[BlockShape]) -> u64 {
        let along = |block: &BlockShape| block.extents.iter().rev().nth(self.from_end).copied().unwrap_or(0);
        match operands {
            [x, ranks] => {
                let order = along(ranks).saturating_mul(size_of::<(usize, usize)>() as u64);
                along(x).saturating_mul(x.dtype.size()).saturating_add(order)
            }
            _ => 0,
        }
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
