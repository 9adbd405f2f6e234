//! Merge lattices: at which coordinates of an index variable an expression must be computed, and from which operands.
//!
//! A [`LatticePoint`] is a set of accesses that are present together. The points of an expression are built bottom-up, as in "The Tensor
//! Algebra Compiler" (Kjolstad et al., OOPSLA 2017) and, for functions with declared algebra, "Compilation of Sparse Array Programming
//! Models" (Henry et al., OOPSLA 2021): an annihilator makes an intersection, everything else a union. Beside its points an expression has a
//! *background*: its value where none of its operands is present, if that is one constant. Where the background is not what a missing
//! element of the target means, every coordinate is visited.

use std::collections::BTreeSet;

use tw_ir::scalar::{eval_binary, eval_unary};
use tw_ir::{BinaryOp, Scalar};

use crate::algebra::{annihilated, known_call, known_reduction, same_value};
use crate::expr::IndexExpr;

/// Accesses that are present together, and whether every coordinate counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LatticePoint {
    /// Numbers of the accesses.
    pub present: BTreeSet<usize>,
    /// Coordinates without any of them count too.
    pub dense: bool,
}

/// The points of an expression, and its background.
#[derive(Clone, Debug, PartialEq)]
pub struct Lattice {
    /// Points, without repetitions, larger ones first.
    pub points: Vec<LatticePoint>,
    /// The value where nothing is present, if it is known.
    pub background: Option<Scalar>,
}

impl LatticePoint {
    fn join(&self, other: &LatticePoint, meet: bool) -> LatticePoint {
        let present = self.present.union(&other.present).copied().collect();
        // A dense operand is present wherever the other is.
        let dense = if meet { self.dense && other.dense } else { self.dense || other.dense };
        LatticePoint { present, dense }
    }
}

fn products(a: &[LatticePoint], b: &[LatticePoint], meet: bool) -> Vec<LatticePoint> {
    a.iter().flat_map(|p| b.iter().map(move |q| p.join(q, meet))).collect()
}

fn union(a: &[LatticePoint], b: &[LatticePoint]) -> Vec<LatticePoint> {
    let mut points = products(a, b, false);
    points.extend(a.iter().chain(b).cloned());
    points
}

/// Where both `a` and `b` count.
fn intersection(a: &[LatticePoint], b: &[LatticePoint]) -> Vec<LatticePoint> {
    products(a, b, true)
}

/// Where `a` counts; the sparse operands of `b` are met on the way.
fn optional(a: &[LatticePoint], b: &[LatticePoint]) -> Vec<LatticePoint> {
    let mut points = intersection(a, b);
    if !b.iter().any(|point| point.dense) {
        points.extend(a.iter().cloned());
    }
    points
}

impl Lattice {
    fn new(mut points: Vec<LatticePoint>, background: Option<Scalar>) -> Lattice {
        points.sort_by(|a, b| b.present.len().cmp(&a.present.len()).then_with(|| a.cmp(b)));
        points.dedup();
        Lattice { points, background }
    }

    fn always() -> Lattice {
        Lattice::new(vec![LatticePoint { present: BTreeSet::new(), dense: true }], None)
    }

    fn combined(a: Lattice, b: Lattice, to_a: bool, to_b: bool, background: Option<Scalar>) -> Lattice {
        let points = match (to_a, to_b) {
            (true, true) => intersection(&a.points, &b.points),
            (true, false) => optional(&a.points, &b.points),
            (false, true) => optional(&b.points, &a.points),
            (false, false) => union(&a.points, &b.points),
        };
        Lattice::new(points, background)
    }

    /// The lattice of an expression at a variable; `absent` gives the fill of an access that the variable makes sparse, and nothing for
    /// one that is there at every coordinate.
    pub fn of(expr: &IndexExpr, absent: &dyn Fn(usize) -> Option<Scalar>) -> Lattice {
        let known =
            |value: Scalar| Lattice::new(vec![LatticePoint { present: BTreeSet::new(), dense: false }], Some(value));
        match expr {
            IndexExpr::Constant(value) => known(*value),
            IndexExpr::Coordinate(_) | IndexExpr::Computed(..) => Lattice::always(),
            IndexExpr::Access(_, number) => match absent(*number) {
                Some(fill) => {
                    let present = LatticePoint { present: [*number].into(), dense: false };
                    Lattice::new(vec![present], Some(fill))
                }
                None => Lattice::always(),
            },
            IndexExpr::Unary(op, a) => {
                let a = Lattice::of(a, absent);
                Lattice { background: a.background.map(|value| eval_unary(*op, value)), ..a }
            }
            IndexExpr::Cast(dtype, a) => {
                let a = Lattice::of(a, absent);
                Lattice { background: a.background.map(|value| value.cast(*dtype)), ..a }
            }
            IndexExpr::Reduce(how, _, body) => {
                let body = Lattice::of(body, absent);
                let background = body.background.and_then(|value| known_reduction(how, value));
                Lattice { background, ..body }
            }
            IndexExpr::Binary(op, a, b) => Lattice::of_binary(*op, Lattice::of(a, absent), Lattice::of(b, absent)),
            IndexExpr::Select(c, a, b) => {
                let (c, a, b) = (Lattice::of(c, absent), Lattice::of(a, absent), Lattice::of(b, absent));
                let background = match (c.background, a.background, b.background) {
                    (Some(c), Some(a), Some(b)) => Some(if c.is_true() { a } else { b }),
                    _ => None,
                };
                let sides = Lattice::combined(a, b, false, false, None);
                Lattice::combined(c, sides, false, false, background)
            }
            IndexExpr::Call(function, args) => {
                let args: Vec<Lattice> = args.iter().map(|arg| Lattice::of(arg, absent)).collect();
                let backgrounds: Vec<Option<Scalar>> = args.iter().map(|arg| arg.background).collect();
                let background = known_call(function, &backgrounds);
                let mut whole: Option<(Lattice, bool)> = None;
                for (arg, annihilator) in args.into_iter().zip(&function.annihilators) {
                    // All annihilating arguments must agree on the result for their absence to be one background.
                    let annihilates = match (arg.background, annihilator, background) {
                        (Some(value), Some((at, result)), Some(background)) => {
                            same_value(value, *at) && same_value(*result, background)
                        }
                        _ => false,
                    };
                    whole = Some(match whole {
                        None => (arg, annihilates),
                        Some((rest, before)) => {
                            (Lattice::combined(rest, arg, before, annihilates, None), before || annihilates)
                        }
                    });
                }
                match whole {
                    Some((lattice, _)) => Lattice { background, ..lattice },
                    None => Lattice::always(),
                }
            }
        }
    }

    fn of_binary(op: BinaryOp, a: Lattice, b: Lattice) -> Lattice {
        let (x, y) = (a.background, b.background);
        let by_a = x.and_then(|x| annihilated(op, x, true, y));
        let by_b = y.and_then(|y| annihilated(op, y, false, x));
        let background = match (x, y) {
            (Some(x), Some(y)) => Some(eval_binary(op, x, y)),
            _ => by_a.or(by_b),
        };
        let agrees = |value: Option<Scalar>| value.zip(background).is_some_and(|(a, b)| same_value(a, b));
        Lattice::combined(a, b, agrees(by_a), agrees(by_b), background)
    }

    /// The points at which code must run if missing elements of the target mean `omit`. A point that no ordered iterator drives (see
    /// `drives`) counts at every coordinate, and so do all if one does.
    pub fn points_for(&self, omit: Option<Scalar>, drives: &dyn Fn(usize) -> bool) -> Vec<LatticePoint> {
        let mut points = self.points.clone();
        let omitted = match (self.background, omit) {
            (Some(background), Some(omit)) => same_value(background, omit),
            _ => false,
        };
        if !omitted {
            points.push(LatticePoint { present: BTreeSet::new(), dense: true });
        } else {
            points.retain(|point| point.dense || !point.present.is_empty());
        }
        if points.iter().any(|point| point.dense || !point.present.iter().any(|&number| drives(number))) {
            points.iter_mut().for_each(|point| point.dense = true);
        }
        Lattice::new(points, None).points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::IndexVariable;

    fn access(number: usize) -> IndexExpr {
        let IndexExpr::Access(access, _) = IndexExpr::access(number, &[IndexVariable(0)]) else { unreachable!() };
        IndexExpr::Access(access, number)
    }

    fn points(expr: &IndexExpr, n_sparse: usize) -> String {
        let lattice = Lattice::of(expr, &|number| (number < n_sparse).then_some(Scalar::F64(0.0)));
        let points = lattice.points_for(Some(Scalar::F64(0.0)), &|_| true);
        let text = |point: &LatticePoint| {
            let names: String = point.present.iter().map(|&k| (b'a' + k as u8) as char).collect();
            format!("{names}{}", if point.dense { "+" } else { "" })
        };
        points.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn points_are_those_of_the_paper() {
        let [a, b, c] = [0, 1, 2].map(access);
        let mul = |a: &IndexExpr, b: &IndexExpr| IndexExpr::binary(BinaryOp::Mul, a.clone(), b.clone());
        let add = |a: &IndexExpr, b: &IndexExpr| IndexExpr::binary(BinaryOp::Add, a.clone(), b.clone());
        assert_eq!(points(&mul(&a, &b), 2), "ab");
        assert_eq!(points(&add(&a, &b), 2), "ab a b");
        assert_eq!(points(&mul(&add(&a, &b), &c), 3), "abc ac bc");
        assert_eq!(points(&add(&mul(&a, &b), &c), 3), "abc ab c");
        // Where the last operand is dense, it is located; a sum with it visits every coordinate.
        assert_eq!(points(&mul(&add(&a, &b), &c), 2), "ab a b");
        assert_eq!(points(&add(&mul(&a, &b), &c), 2), "ab+ +");
        assert_eq!(points(&mul(&a, &b), 1), "a");
    }
}
