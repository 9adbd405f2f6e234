//! Accumulators: how many contributions to one element become one.
//!
//! The state is a tuple, so that argmax, variance or several aggregates are one pass. `combine` is associative and commutative, and
//! `identity` is a true identity of it: a group may be cut anywhere, and parts that hold nothing change nothing.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result};
use crate::scalar::{BinaryOp, ScalarCode, ScalarOp, Slot, UnaryOp};

/// The result of an empty group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OnEmpty {
    /// `finish(identity)`.
    Identity,
    /// An error that names the statement and what was empty, as NumPy does for `min`.
    Error,
    /// These values, one per result.
    Value(Vec<Scalar>),
}

/// A commutative monoid on tuples, with a way in and a way out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Accum {
    /// The state of a group that holds nothing yet.
    pub identity: Vec<Scalar>,
    /// From the bodies of the statement to a state.
    pub lift: ScalarCode,
    /// From two states (all of the first, then all of the second) to one.
    pub combine: ScalarCode,
    /// From a state to the results.
    pub finish: ScalarCode,
    /// The result of an empty group.
    pub on_empty: OnEmpty,
}

/// Slot helper for code whose types are right by construction.
struct Build(ScalarCode);

impl Build {
    fn new(params: Vec<DType>) -> Build {
        Build(ScalarCode::new(params))
    }
    fn p(&mut self, k: u32) -> Slot {
        self.0.param(k)
    }
    fn c(&mut self, value: Scalar) -> Slot {
        self.0.constant(value)
    }
    fn op(&mut self, op: BinaryOp, a: Slot, b: Slot) -> Slot {
        self.0.binary(op, a, b).expect("types agree by construction")
    }
    fn un(&mut self, op: UnaryOp, a: Slot) -> Slot {
        self.0.unary(op, a).expect("types agree by construction")
    }
    fn sel(&mut self, c: Slot, a: Slot, b: Slot) -> Slot {
        self.0.select(c, a, b).expect("types agree by construction")
    }
    fn done(mut self, results: Vec<Slot>) -> ScalarCode {
        self.0.set_results(results);
        self.0
    }
}

impl Accum {
    /// An accumulator whose state is the value itself.
    pub fn simple(op: BinaryOp, dtype: DType, identity: Scalar, on_empty: OnEmpty) -> Accum {
        let mut b = Build::new(vec![dtype, dtype]);
        let (x, y) = (b.p(0), b.p(1));
        let result = b.op(op, x, y);
        Accum {
            identity: vec![identity],
            lift: ScalarCode::identity(vec![dtype]),
            combine: b.done(vec![result]),
            finish: ScalarCode::identity(vec![dtype]),
            on_empty,
        }
    }

    /// Sum; of bools, the logical or.
    pub fn sum(dtype: DType) -> Accum {
        // -0.0, not 0.0, is the identity of floating point addition: 0.0 + -0.0 is 0.0. NumPy starts from 0.0, and so do we: the sum of
        // nothing is 0.0, and the sum of negative zeros is 0.0 as well.
        Accum::simple(BinaryOp::Add, dtype, dtype.zero(), OnEmpty::Identity)
    }
    /// Product; of bools, the logical and.
    pub fn product(dtype: DType) -> Accum {
        Accum::simple(BinaryOp::Mul, dtype, dtype.one(), OnEmpty::Identity)
    }
    /// Smallest value; empty groups are errors, as in NumPy.
    pub fn min(dtype: DType) -> Accum {
        Accum::simple(BinaryOp::Min, dtype, dtype.highest(), OnEmpty::Error)
    }
    /// Largest value; empty groups are errors, as in NumPy.
    pub fn max(dtype: DType) -> Accum {
        Accum::simple(BinaryOp::Max, dtype, dtype.lowest(), OnEmpty::Error)
    }
    /// True if any is.
    pub fn any() -> Accum {
        Accum::simple(BinaryOp::Or, DType::Bool, Scalar::Bool(false), OnEmpty::Identity)
    }
    /// True if all are.
    pub fn all() -> Accum {
        Accum::simple(BinaryOp::And, DType::Bool, Scalar::Bool(true), OnEmpty::Identity)
    }

    /// Position of the smallest value: bodies are (value, position); ties go to the lowest position, NaN wins.
    pub fn argmin(dtype: DType) -> Accum {
        Accum::arg(dtype, BinaryOp::Lt, dtype.highest())
    }
    /// Position of the largest value: bodies are (value, position); ties go to the lowest position, NaN wins.
    pub fn argmax(dtype: DType) -> Accum {
        Accum::arg(dtype, BinaryOp::Gt, dtype.lowest())
    }

    fn arg(dtype: DType, better: BinaryOp, worst: Scalar) -> Accum {
        let mut b = Build::new(vec![dtype, DType::I64, dtype, DType::I64]);
        let (x, i, y, j) = (b.p(0), b.p(1), b.p(2), b.p(3));
        // The second wins if it is better, or equally good and earlier. NaN is better than everything but another NaN.
        let (mut wins, mut same) = (b.op(better, y, x), b.op(BinaryOp::Eq, x, y));
        if dtype.is_float() {
            let (nan_x, nan_y) = (b.un(UnaryOp::IsNan, x), b.un(UnaryOp::IsNan, y));
            let not_nan_x = b.un(UnaryOp::Not, nan_x);
            let only_y = b.op(BinaryOp::And, nan_y, not_nan_x);
            wins = b.op(BinaryOp::Or, wins, only_y);
            let both = b.op(BinaryOp::And, nan_x, nan_y);
            same = b.op(BinaryOp::Or, same, both);
        }
        let earlier = b.op(BinaryOp::Lt, j, i);
        let tie = b.op(BinaryOp::And, same, earlier);
        let wins = b.op(BinaryOp::Or, wins, tie);
        let (value, position) = (b.sel(wins, y, x), b.sel(wins, j, i));
        let combine = b.done(vec![value, position]);
        let mut finish = Build::new(vec![dtype, DType::I64]);
        let position = finish.p(1);
        Accum {
            identity: vec![worst, Scalar::I64(i64::MAX)],
            lift: ScalarCode::identity(vec![dtype, DType::I64]),
            combine,
            finish: finish.done(vec![position]),
            on_empty: OnEmpty::Error,
        }
    }

    /// The value with the largest position: bodies are (value, position). Gives plain assignment its meaning where several points meet.
    pub fn last(dtype: DType, on_empty: Scalar) -> Accum {
        let mut b = Build::new(vec![dtype, DType::I64, dtype, DType::I64]);
        let (x, i, y, j) = (b.p(0), b.p(1), b.p(2), b.p(3));
        let later = b.op(BinaryOp::Gt, j, i);
        let (value, position) = (b.sel(later, y, x), b.sel(later, j, i));
        let combine = b.done(vec![value, position]);
        let mut finish = Build::new(vec![dtype, DType::I64]);
        let value = finish.p(0);
        Accum {
            identity: vec![on_empty, Scalar::I64(i64::MIN)],
            lift: ScalarCode::identity(vec![dtype, DType::I64]),
            combine,
            finish: finish.done(vec![value]),
            on_empty: OnEmpty::Identity,
        }
    }

    /// Mean of floats.
    pub fn mean(dtype: DType) -> Accum {
        let mut lift = Build::new(vec![dtype]);
        let (x, one) = (lift.p(0), lift.c(dtype.one()));
        let mut combine = Build::new(vec![dtype; 4]);
        let parts: Vec<Slot> = (0..4).map(|k| combine.p(k)).collect();
        let (sum, count) =
            (combine.op(BinaryOp::Add, parts[0], parts[2]), combine.op(BinaryOp::Add, parts[1], parts[3]));
        let mut finish = Build::new(vec![dtype; 2]);
        let (s, n) = (finish.p(0), finish.p(1));
        let mean = finish.op(BinaryOp::Div, s, n);
        Accum {
            identity: vec![dtype.zero(); 2],
            lift: lift.done(vec![x, one]),
            combine: combine.done(vec![sum, count]),
            finish: finish.done(vec![mean]),
            on_empty: OnEmpty::Identity,
        }
    }

    /// Variance of floats with `n - correction` in the denominator, by the pairwise update of Chan, Golub and LeVeque.
    pub fn variance(dtype: DType, correction: f64) -> Accum {
        let mut lift = Build::new(vec![dtype]);
        let (x, one, zero) = (lift.p(0), lift.c(dtype.one()), lift.c(dtype.zero()));
        let lift = lift.done(vec![one, x, zero]);
        // State: count, mean, sum of squared deviations.
        let mut b = Build::new(vec![dtype; 6]);
        let p: Vec<Slot> = (0..6).map(|k| b.p(k)).collect();
        let (one, zero) = (b.c(dtype.one()), b.c(dtype.zero()));
        let n = b.op(BinaryOp::Add, p[0], p[3]);
        let empty = b.op(BinaryOp::Eq, n, zero);
        let safe = b.sel(empty, one, n);
        let weight = b.op(BinaryOp::Div, p[3], safe);
        let delta = b.op(BinaryOp::Sub, p[4], p[1]);
        let step = b.op(BinaryOp::Mul, delta, weight);
        let mean = b.op(BinaryOp::Add, p[1], step);
        let deltas = b.op(BinaryOp::Mul, delta, delta);
        let between = b.op(BinaryOp::Mul, deltas, p[0]);
        let between = b.op(BinaryOp::Mul, between, weight);
        let within = b.op(BinaryOp::Add, p[2], p[5]);
        let squares = b.op(BinaryOp::Add, within, between);
        // An empty side changes nothing, not even rounding or the sign of a zero.
        let (left_empty, right_empty) = (b.op(BinaryOp::Eq, p[0], zero), b.op(BinaryOp::Eq, p[3], zero));
        let mean = b.sel(left_empty, p[4], mean);
        let mean = b.sel(right_empty, p[1], mean);
        let squares = b.sel(left_empty, p[5], squares);
        let squares = b.sel(right_empty, p[2], squares);
        let combine = b.done(vec![n, mean, squares]);
        let mut f = Build::new(vec![dtype; 3]);
        let (n, mean, squares) = (f.p(0), f.p(1), f.p(2));
        let (correction, zero) = (f.c(Scalar::F64(correction).cast(dtype)), f.c(dtype.zero()));
        // Beside an infinity every deviation is infinite or NaN, and so the variance is NaN, as by two passes; squares alone may have stayed infinite.
        let nothing = f.op(BinaryOp::Sub, mean, mean);
        let squares = f.op(BinaryOp::Add, squares, nothing);
        let denominator = f.op(BinaryOp::Sub, n, correction);
        let denominator = f.op(BinaryOp::Max, denominator, zero);
        let variance = f.op(BinaryOp::Div, squares, denominator);
        Accum {
            identity: vec![dtype.zero(); 3],
            lift,
            combine,
            finish: f.done(vec![variance]),
            on_empty: OnEmpty::Identity,
        }
    }

    /// Several aggregates in one pass: bodies, states and results are those of the parts, one after the other.
    ///
    /// A part that refuses empty groups makes the whole refuse them.
    pub fn several(parts: &[Accum]) -> Result<Accum> {
        let join = |codes: Vec<(&ScalarCode, usize)>| -> Result<ScalarCode> {
            // Each code reads `copies` runs of parameters, interleaved over the parts.
            let copies = codes.first().map_or(1, |(_, copies)| *copies);
            let lengths: Vec<usize> = codes.iter().map(|(code, _)| code.params().len() / copies).collect();
            let mut params = Vec::new();
            for copy in 0..copies {
                for ((code, _), &n) in codes.iter().zip(&lengths) {
                    params.extend_from_slice(&code.params()[copy * n..(copy + 1) * n]);
                }
            }
            let stride: usize = lengths.iter().sum();
            let mut joined = ScalarCode::new(params);
            let (mut results, mut start) = (Vec::new(), 0);
            for ((code, _), &n) in codes.iter().zip(&lengths) {
                let args: Vec<Slot> = (0..copies)
                    .flat_map(|copy| (0..n).map(move |k| copy * stride + start + k))
                    .map(|k| joined.param(k as u32))
                    .collect();
                results.extend(joined.inline(code, &args)?);
                start += n;
            }
            joined.set_results(results);
            Ok(joined)
        };
        let on_empty = if parts.iter().any(|p| p.on_empty == OnEmpty::Error) {
            OnEmpty::Error
        } else if parts.iter().all(|p| p.on_empty == OnEmpty::Identity) {
            OnEmpty::Identity
        } else {
            OnEmpty::Value(parts.iter().flat_map(Accum::empty_results).collect())
        };
        Ok(Accum {
            identity: parts.iter().flat_map(|p| p.identity.clone()).collect(),
            lift: join(parts.iter().map(|p| (&p.lift, 1)).collect())?,
            combine: join(parts.iter().map(|p| (&p.combine, 2)).collect())?,
            finish: join(parts.iter().map(|p| (&p.finish, 1)).collect())?,
            on_empty,
        })
    }

    /// The same accumulator with one more bool at the end of its state, which tells whether the group holds anything. Only lift, identity and
    /// combine are meant to be used; finishing is told apart by [`Kernel::Finish`](crate::kernel::Kernel::Finish).
    pub fn with_presence(&self) -> Result<Accum> {
        let extend = |code: &ScalarCode, copies: usize| -> Result<ScalarCode> {
            let n = code.params().len() / copies;
            let mut params = Vec::new();
            for copy in 0..copies {
                params.extend_from_slice(&code.params()[copy * n..(copy + 1) * n]);
                params.push(DType::Bool);
            }
            let mut extended = ScalarCode::new(params);
            let args: Vec<Slot> = (0..copies * n).map(|k| extended.param((k + k / n.max(1)) as u32)).collect();
            let mut results = extended.inline(code, &args)?;
            let flags: Vec<Slot> = (1..=copies).map(|copy| extended.param((copy * (n + 1) - 1) as u32)).collect();
            results.push(match flags.as_slice() {
                [a, b] => extended.binary(BinaryOp::Or, *a, *b)?,
                _ => flags[0],
            });
            extended.set_results(results);
            Ok(extended)
        };
        let mut lift = self.lift.clone();
        let present = lift.constant(Scalar::Bool(true));
        lift.set_results(self.lift.results().iter().copied().chain([present]).collect());
        let mut identity = self.identity.clone();
        identity.push(Scalar::Bool(false));
        Ok(Accum {
            identity,
            lift,
            combine: extend(&self.combine, 2)?,
            finish: extend(&self.finish, 1)?,
            on_empty: OnEmpty::Identity,
        })
    }

    /// The types of the state.
    pub fn state_types(&self) -> Vec<DType> {
        self.identity.iter().map(|value| value.dtype()).collect()
    }

    /// The types of the results.
    pub fn result_types(&self) -> Vec<DType> {
        self.finish.result_types()
    }

    /// The result of an empty group where that is not an error.
    pub fn empty_results(&self) -> Vec<Scalar> {
        match &self.on_empty {
            OnEmpty::Value(values) => values.clone(),
            OnEmpty::Identity | OnEmpty::Error => self.finish.eval(&self.identity),
        }
    }

    /// The single operation, if the state is one value that is lifted and finished unchanged: the case with fast kernels.
    pub fn as_simple(&self) -> Option<(BinaryOp, DType)> {
        let [identity] = self.identity.as_slice() else { return None };
        let dtype = identity.dtype();
        let unchanged = ScalarCode::identity(vec![dtype]);
        if self.lift != unchanged || self.finish != unchanged {
            return None;
        }
        match self.combine.ops() {
            [ScalarOp::Param(0), ScalarOp::Param(1), ScalarOp::Binary(op, Slot(0), Slot(1))]
                if self.combine.results() == [Slot(2)] =>
            {
                Some((*op, dtype))
            }
            _ => None,
        }
    }

    /// True if results are the state itself.
    pub fn finish_is_identity(&self) -> bool {
        self.finish == ScalarCode::identity(self.state_types())
    }

    /// Checks that the parts fit together and that the identity is one on a few values.
    pub fn verify(&self, bodies: &[DType]) -> Result<()> {
        let state = self.state_types();
        for code in [&self.lift, &self.combine, &self.finish] {
            code.verify()?;
        }
        let fits = self.lift.params() == bodies
            && self.lift.result_types() == state
            && self.combine.params().iter().eq(state.iter().chain(&state))
            && self.combine.result_types() == state
            && self.finish.params() == state;
        if !fits {
            return Err(Error::internal(format!("the parts of an accumulator do not fit bodies of type {bodies:?}")));
        }
        if let OnEmpty::Value(values) = &self.on_empty
            && values.iter().map(|v| v.dtype()).collect::<Vec<_>>() != self.result_types()
        {
            return Err(Error::internal("the values for empty groups do not have the types of the results"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(accum: &Accum, bodies: &[Vec<Scalar>]) -> Vec<Scalar> {
        let mut state = accum.identity.clone();
        for body in bodies {
            let lifted = accum.lift.eval(body);
            state = accum.combine.eval(&[state, lifted].concat());
        }
        accum.finish.eval(&state)
    }

    #[test]
    fn argmax_takes_the_first_and_prefers_nan() {
        let bodies = |values: &[f64]| -> Vec<Vec<Scalar>> {
            values.iter().enumerate().map(|(k, &v)| vec![Scalar::F64(v), Scalar::I64(k as i64)]).collect()
        };
        let accum = Accum::argmax(DType::F64);
        assert_eq!(fold(&accum, &bodies(&[1.0, 5.0, 5.0])), vec![Scalar::I64(1)]);
        assert_eq!(fold(&accum, &bodies(&[1.0, f64::NAN, f64::NAN])), vec![Scalar::I64(1)]);
        assert_eq!(fold(&accum, &bodies(&[f64::NEG_INFINITY; 2])), vec![Scalar::I64(0)]);
        accum.verify(&[DType::F64, DType::I64]).unwrap();
    }

    #[test]
    fn variance_and_sum_in_one_pass() {
        let accum = Accum::several(&[Accum::variance(DType::F64, 0.0), Accum::sum(DType::F64)]).unwrap();
        let bodies: Vec<Vec<Scalar>> = [1.0, 2.0, 3.0, 4.0].iter().map(|&v| vec![Scalar::F64(v); 2]).collect();
        assert_eq!(fold(&accum, &bodies), vec![Scalar::F64(1.25), Scalar::F64(10.0)]);
        accum.verify(&[DType::F64; 2]).unwrap();
    }

    #[test]
    fn variances_beside_infinities_are_nan() {
        for values in [&[f64::INFINITY][..], &[-3.5, 4.5, f64::INFINITY], &[f64::NEG_INFINITY, 1.0], &[f64::NAN, 2.0]] {
            let bodies: Vec<Vec<Scalar>> = values.iter().map(|&value| vec![Scalar::F64(value)]).collect();
            let Scalar::F64(variance) = fold(&Accum::variance(DType::F64, 0.0), &bodies)[0] else { unreachable!() };
            assert!(variance.is_nan(), "{values:?}");
        }
    }

    #[test]
    fn presence_is_one_more_component() {
        let accum = Accum::argmax(DType::F64).with_presence().unwrap();
        accum.verify(&[DType::F64, DType::I64]).unwrap();
        let state = accum.lift.eval(&[Scalar::F64(2.0), Scalar::I64(3)]);
        assert_eq!(state, vec![Scalar::F64(2.0), Scalar::I64(3), Scalar::Bool(true)]);
        assert_eq!(accum.combine.eval(&[accum.identity.clone(), state.clone()].concat()), state);
    }

    #[test]
    fn identities_are_identities() {
        let accums = [
            (Accum::min(DType::I64), vec![Scalar::I64(-3)]),
            (Accum::product(DType::F64), vec![Scalar::F64(-2.5)]),
            (Accum::variance(DType::F64, 1.0), vec![Scalar::F64(4.0)]),
            (Accum::argmin(DType::F64), vec![Scalar::F64(1.5), Scalar::I64(4)]),
        ];
        for (accum, body) in accums {
            let state = accum.lift.eval(&body);
            assert_eq!(accum.combine.eval(&[accum.identity.clone(), state.clone()].concat()), state);
            assert_eq!(accum.combine.eval(&[state.clone(), accum.identity.clone()].concat()), state);
        }
    }
}
