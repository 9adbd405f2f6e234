//! Decides a guard for a whole tile, so that excluded tiles yield no tasks.
//!
//! Abstract interpretation over integer intervals and three-valued logic. Any value that depends on data is unknown.

use tw_ir::Scalar;
use tw_ir::index::Interval;
use tw_ir::scalar::{BinaryOp, ScalarCode, ScalarOp, UnaryOp};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Known {
    /// An integer in this inclusive range.
    Range(i64, i64),
    /// A truth value.
    Truth(bool),
    Unknown,
}

/// True if the guard is false at every point of a box of the variables.
pub(super) fn never_holds(code: &ScalarCode, n_reads: usize, ranges: &[Interval]) -> bool {
    let mut slots: Vec<Known> = Vec::with_capacity(code.ops().len());
    for op in code.ops() {
        let at = |slot: tw_ir::Slot| slots[slot.0 as usize];
        let known = match *op {
            ScalarOp::Param(k) => match (k as usize).checked_sub(n_reads).and_then(|v| ranges.get(v)) {
                Some(&(lo, hi)) => Known::Range(lo, hi),
                None => Known::Unknown,
            },
            ScalarOp::Const(Scalar::I64(v)) => Known::Range(v, v),
            ScalarOp::Const(Scalar::Bool(v)) => Known::Truth(v),
            ScalarOp::Unary(UnaryOp::Not, a) => match at(a) {
                Known::Truth(v) => Known::Truth(!v),
                _ => Known::Unknown,
            },
            ScalarOp::Unary(UnaryOp::Neg, a) => match at(a) {
                Known::Range(lo, hi) => range(-(hi as i128), -(lo as i128)),
                _ => Known::Unknown,
            },
            ScalarOp::Binary(op, a, b) => binary(op, at(a), at(b)),
            _ => Known::Unknown,
        };
        slots.push(known);
    }
    code.results().first().is_some_and(|guard| slots[guard.0 as usize] == Known::Truth(false))
}

/// A range, unless it leaves the integers: then arithmetic wraps and nothing is known.
fn range(lo: i128, hi: i128) -> Known {
    match (i64::try_from(lo), i64::try_from(hi)) {
        (Ok(lo), Ok(hi)) => Known::Range(lo, hi),
        _ => Known::Unknown,
    }
}

fn binary(op: BinaryOp, a: Known, b: Known) -> Known {
    use BinaryOp::*;
    match (a, b) {
        (Known::Range(a0, a1), Known::Range(b0, b1)) => {
            let (w0, w1, x0, x1) = (a0 as i128, a1 as i128, b0 as i128, b1 as i128);
            let decide = |always: bool, never: bool| match (always, never) {
                (true, _) => Known::Truth(true),
                (_, true) => Known::Truth(false),
                _ => Known::Unknown,
            };
            match op {
                Add => range(w0 + x0, w1 + x1),
                Sub => range(w0 - x1, w1 - x0),
                Mul => {
                    let products = [w0 * x0, w0 * x1, w1 * x0, w1 * x1];
                    range(products.into_iter().min().unwrap_or(0), products.into_iter().max().unwrap_or(0))
                }
                Min => Known::Range(a0.min(b0), a1.min(b1)),
                Max => Known::Range(a0.max(b0), a1.max(b1)),
                FloorDiv if b0 == b1 && b0 > 0 => Known::Range(a0.div_euclid(b0), a1.div_euclid(b0)),
                Lt => decide(a1 < b0, a0 >= b1),
                Le => decide(a1 <= b0, a0 > b1),
                Gt => decide(a0 > b1, a1 <= b0),
                Ge => decide(a0 >= b1, a1 < b0),
                Eq => decide(a0 == a1 && b0 == b1 && a0 == b0, a1 < b0 || b1 < a0),
                Ne => decide(a1 < b0 || b1 < a0, a0 == a1 && b0 == b1 && a0 == b0),
                _ => Known::Unknown,
            }
        }
        (Known::Truth(false), _) | (_, Known::Truth(false)) if matches!(op, And | Mul) => Known::Truth(false),
        (Known::Truth(true), _) | (_, Known::Truth(true)) if matches!(op, Or | Add) => Known::Truth(true),
        (Known::Truth(a), Known::Truth(b)) => match op {
            And | Mul => Known::Truth(a && b),
            Or | Add => Known::Truth(a || b),
            Xor | Ne => Known::Truth(a != b),
            Eq => Known::Truth(a == b),
            _ => Known::Unknown,
        },
        _ => Known::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tw_ir::DType;

    #[test]
    fn upper_triangle_is_decided_per_tile() {
        let mut code = ScalarCode::new(vec![DType::I64; 2]);
        let (i, j) = (code.param(0), code.param(1));
        let guard = code.binary(BinaryOp::Le, i, j).unwrap();
        code.set_results(vec![guard]);
        assert!(never_holds(&code, 0, &[(10, 19), (0, 9)]));
        assert!(!never_holds(&code, 0, &[(10, 19), (10, 19)]));
        assert!(!never_holds(&code, 0, &[(0, 9), (10, 19)]));
    }
}
