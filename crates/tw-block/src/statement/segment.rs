//! Index expressions along one variable, as pieces on which they are affine.
//!
//! While one variable counts up and the others stand still, an index expression moves with a constant slope until a division or remainder
//! wraps, the index crosses an edge of the tensor, or it leaves the block. Between two such events nothing has to be decided per element.

use tw_ir::{Edge, Idx, Term};

/// Longer than any loop.
const UNLIMITED: i64 = i64::MAX;

/// An index that moves by `slope` for the next `len` values of the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) value: i64,
    pub(super) slope: i64,
    pub(super) len: i64,
}

/// The segment of an expression that begins at a point, along a variable.
pub(super) fn segment(idx: &Idx, point: &[i64], var: usize) -> Segment {
    let mut sum = Segment { value: idx.offset(), slope: 0, len: UNLIMITED };
    for (term, coefficient) in idx.terms() {
        let part = match term {
            Term::Var(v) => {
                let v = v.0 as usize;
                Segment { value: point[v], slope: (v == var) as i64, len: UNLIMITED }
            }
            Term::Div(inner, n) => {
                let inner = segment(inner, point, var);
                let value = inner.value.div_euclid(*n);
                match inner.slope % n {
                    0 => Segment { value, slope: inner.slope / n, len: inner.len },
                    _ => Segment { value, slope: 0, len: inner.len.min(until_wrap(inner, *n)) },
                }
            }
            Term::Mod(inner, n) => wrapped(segment(inner, point, var), *n),
            Term::Table(inner, table) => {
                let inner = segment(inner, point, var);
                let len = if inner.slope == 0 { inner.len } else { 1 };
                Segment { value: tw_ir::index::entry(table, inner.value), slope: 0, len }
            }
        };
        sum.value = sum.value.wrapping_add(part.value.wrapping_mul(*coefficient));
        sum.slope = sum.slope.wrapping_add(part.slope.wrapping_mul(*coefficient));
        sum.len = sum.len.min(part.len);
    }
    sum
}

/// The remainder of a moving index.
fn wrapped(index: Segment, n: i64) -> Segment {
    let value = index.value.rem_euclid(n);
    match index.slope % n {
        0 => Segment { value, slope: 0, len: index.len },
        _ => Segment { value, slope: index.slope, len: index.len.min(until_wrap(index, n)) },
    }
}

/// For how many further values the quotient by `n` does not change.
fn until_wrap(index: Segment, n: i64) -> i64 {
    steps_inside(index.value.rem_euclid(n), index.slope, 0, n)
}

/// How many steps, counting the first, stay in `lo..hi` from a value in it.
fn steps_inside(value: i64, slope: i64, lo: i64, hi: i64) -> i64 {
    match slope {
        0 => UNLIMITED,
        1.. => (hi - 1 - value) / slope + 1,
        _ => ((value - lo) / slope.saturating_neg()).saturating_add(1),
    }
}

/// How many steps, counting the first, stay outside `lo..hi` from a value outside it.
fn steps_outside(value: i64, slope: i64, lo: i64, hi: i64) -> i64 {
    if value < lo && slope > 0 {
        (lo.saturating_sub(value) - 1) / slope + 1
    } else if value >= hi && slope < 0 {
        value.saturating_sub(hi) / slope.saturating_neg() + 1
    } else {
        UNLIMITED
    }
}

/// Where a moving index is with respect to its tensor, after the edge rule: a segment inside, or the length of a stretch outside.
pub(super) fn resolve(index: Segment, edge: Edge, extent: i64) -> Result<Segment, i64> {
    let Segment { value, slope, len } = index;
    if (0..extent).contains(&value) {
        return Ok(Segment { value, slope, len: len.min(steps_inside(value, slope, 0, extent)) });
    }
    let outside = len.min(steps_outside(value, slope, 0, extent));
    match edge {
        _ if extent == 0 => Err(len),
        Edge::Error | Edge::Fill => Err(outside),
        Edge::Clamp => Ok(Segment { value: value.clamp(0, extent - 1), slope: 0, len: outside }),
        Edge::Wrap => Ok(wrapped(index, extent)),
    }
}

/// Where a segment inside the tensor is with respect to a block of it: inside for some steps, or outside for some.
pub(super) fn clip(segment: Segment, lo: i64, hi: i64) -> Result<i64, i64> {
    let Segment { value, slope, len } = segment;
    if (lo..hi).contains(&value) {
        Ok(len.min(steps_inside(value, slope, lo, hi)))
    } else {
        Err(len.min(steps_outside(value, slope, lo, hi)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tw_ir::Var;

    fn check(idx: &Idx, edge: Edge, extent: i64) {
        for start in -30..30 {
            let index = segment(idx, &[start, 5], 0);
            let resolved = resolve(index, edge, extent);
            let len = resolved.map_or_else(|len| len, |segment| segment.len);
            assert!(len >= 1, "{idx:?} at {start}");
            for step in 0..len.min(40) {
                let exact = idx.eval(&[start + step, 5]);
                assert_eq!(
                    index.value + step.min(index.len - 1) * index.slope,
                    idx.eval(&[start + step.min(index.len - 1), 5])
                );
                let expected = edge.apply(exact, extent as u64).map(|c| c as i64);
                let found = resolved.ok().map(|segment| segment.value + step * segment.slope);
                assert_eq!(found, expected, "{idx:?} from {start} after {step} under {edge:?} of {extent}");
            }
        }
    }

    #[test]
    fn segments_agree_with_evaluation() {
        let (i, j) = (Idx::var(Var(0)), Idx::var(Var(1)));
        let expressions = [
            i.clone(),
            i.times(-1).plus_constant(3),
            i.times(3).plus(&j),
            i.div(4),
            i.times(-3).plus_constant(1).div(4),
            i.modulo(5).plus(&i.div(5).times(2)),
            i.times(2).plus(&j).modulo(7).div(3),
            i.times(10).plus(&j).div(5),
            j.times(2),
        ];
        for idx in &expressions {
            for edge in [Edge::Error, Edge::Fill, Edge::Clamp, Edge::Wrap] {
                for extent in [0, 1, 3, 8, 100] {
                    check(idx, edge, extent);
                }
            }
        }
    }

    #[test]
    fn clipping_finds_the_block() {
        let segment = Segment { value: -4, slope: 3, len: 100 };
        assert_eq!(clip(segment, 2, 9), Err(2));
        assert_eq!(clip(Segment { value: 2, ..segment }, 2, 9), Ok(3));
        assert_eq!(clip(Segment { value: 9, ..segment }, 2, 9), Err(100));
        assert_eq!(clip(Segment { value: 11, slope: -2, len: 100 }, 2, 9), Err(2));
    }
}
