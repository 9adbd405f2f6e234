//! Accumulators of half-precision, complex and time types: those of plain numbers with other lift and finish code.

use tw_ir::dtype::NAT;
use tw_ir::{Accum, BinaryOp, DType, Error, OnEmpty, Result, Scalar, ScalarCode, Slot, UnaryOp};

use super::complex;
use super::promote::CodeSink;
use super::reduce::Reduction;
use super::time::truncated;

/// The accumulator of a reduction over elements of a type. Types that [`Reduction::working_type`] converts do not come here.
pub(super) fn accum(kind: Reduction, dtype: DType) -> Result<Accum> {
    match dtype {
        _ if matches!(kind, Reduction::Any | Reduction::All | Reduction::Count) => plain(kind, dtype),
        _ if dtype.is_half() => of_halves(kind, dtype),
        _ if dtype.is_complex() => of_complex(kind, dtype),
        _ if dtype.is_time() => of_times(kind, dtype),
        _ => plain(kind, dtype),
    }
}

fn plain(kind: Reduction, dtype: DType) -> Result<Accum> {
    Ok(match kind {
        Reduction::Sum => Accum::sum(dtype),
        Reduction::Prod => Accum::product(dtype),
        Reduction::Min => Accum::min(dtype),
        Reduction::Max => Accum::max(dtype),
        Reduction::Any => Accum::any(),
        Reduction::All => Accum::all(),
        Reduction::Mean => Accum::mean(dtype),
        Reduction::Var { ddof } => Accum::variance(dtype, ddof),
        Reduction::Std { ddof } => rooted(Accum::variance(dtype, ddof))?,
        Reduction::ArgMin => Accum::argmin(dtype),
        Reduction::ArgMax => Accum::argmax(dtype),
        Reduction::Count => Accum::sum(DType::I64),
    })
}

/// The square root of the only result.
fn rooted(mut accum: Accum) -> Result<Accum> {
    let result = accum.finish.results()[0];
    let root = accum.finish.unary(UnaryOp::Sqrt, result)?;
    accum.finish.set_results(vec![root]);
    Ok(accum)
}

/// Puts code before the lift: it makes the bodies of the accumulator from others.
fn lifted(
    mut accum: Accum,
    params: Vec<DType>,
    make: impl FnOnce(&mut ScalarCode) -> Result<Vec<Slot>>,
) -> Result<Accum> {
    let mut lift = ScalarCode::new(params);
    let bodies = make(&mut lift)?;
    let results = lift.inline(&accum.lift, &bodies)?;
    lift.set_results(results);
    accum.lift = lift;
    Ok(accum)
}

/// Puts code after the finish: it makes other results from its first.
fn finished(mut accum: Accum, make: impl FnOnce(&mut ScalarCode, Slot) -> Result<Slot>) -> Result<Accum> {
    let mut results = accum.finish.results().to_vec();
    results[0] = make(&mut accum.finish, results[0])?;
    accum.finish.set_results(results);
    Ok(accum)
}

/// The bodies of a reduction: the element, and its position where one is asked for.
fn bodies(kind: Reduction, dtype: DType) -> Vec<DType> {
    if kind.takes_position() { vec![dtype, DType::I64] } else { vec![dtype] }
}

/// As the accumulator of another type, with every element converted first.
fn converted(
    kind: Reduction,
    dtype: DType,
    to: DType,
    change: impl FnOnce(&mut ScalarCode, Slot) -> Result<Slot>,
) -> Result<Accum> {
    lifted(plain(kind, to)?, bodies(kind, dtype), |code| {
        let element = code.param(0);
        let element = change(code, element)?;
        let position = kind.takes_position().then(|| code.param(1));
        Ok([element].into_iter().chain(position).collect())
    })
}

fn of_halves(kind: Reduction, dtype: DType) -> Result<Accum> {
    let accum = converted(kind, dtype, DType::F32, |code, x| Ok(code.cast(DType::F32, x)))?;
    if kind.takes_position() { Ok(accum) } else { finished(accum, |code, result| Ok(code.cast(dtype, result))) }
}

fn of_complex(kind: Reduction, dtype: DType) -> Result<Accum> {
    let part = dtype.part().ok_or_else(|| Error::internal(format!("{dtype} has no parts")))?;
    match kind {
        Reduction::Sum | Reduction::Prod => plain(kind, dtype),
        Reduction::Mean => {
            let (re, im) = (Accum::mean(part), Accum::mean(part));
            let both = of_parts(Accum::several(&[re, im])?, dtype)?;
            joined(both, BinaryOp::Complex)
        }
        // The squared distance from the mean is the sum of that of both parts.
        Reduction::Var { ddof } | Reduction::Std { ddof } => {
            let both = Accum::several(&[Accum::variance(part, ddof), Accum::variance(part, ddof)])?;
            let accum = joined(of_parts(both, dtype)?, BinaryOp::Add)?;
            if matches!(kind, Reduction::Std { .. }) { rooted(accum) } else { Ok(accum) }
        }
        Reduction::Min => extreme(BinaryOp::Min, dtype),
        Reduction::Max => extreme(BinaryOp::Max, dtype),
        Reduction::ArgMin => position_of_extreme(BinaryOp::Min, dtype),
        Reduction::ArgMax => position_of_extreme(BinaryOp::Max, dtype),
        _ => Err(Error::types(format!("`{}` does not take {dtype}", kind.name()))),
    }
}

/// Nothing wins over it.
fn worst(op: BinaryOp, dtype: DType) -> Scalar {
    if op == BinaryOp::Min { dtype.highest() } else { dtype.lowest() }
}

/// Smallest or largest complex number. Of several with a NaN, the first in the order of the fold wins.
fn extreme(op: BinaryOp, dtype: DType) -> Result<Accum> {
    let mut combine = ScalarCode::new(vec![dtype; 2]);
    let (x, y) = (combine.param(0), combine.param(1));
    let best = complex::binary(&mut combine, op, x, y)?;
    combine.set_results(vec![best]);
    let unchanged = ScalarCode::identity(vec![dtype]);
    Ok(Accum {
        identity: vec![worst(op, dtype)],
        lift: unchanged.clone(),
        combine,
        finish: unchanged,
        on_empty: OnEmpty::Error,
    })
}

/// Position of the smallest or largest complex number: bodies are (value, position); ties go to the lowest position, NaN wins.
fn position_of_extreme(op: BinaryOp, dtype: DType) -> Result<Accum> {
    let mut combine = ScalarCode::new(vec![dtype, DType::I64, dtype, DType::I64]);
    let [x, i, y, j] = [0, 1, 2, 3].map(|k| combine.param(k));
    let (first, second) = (complex::beats(&mut combine, op, x, y)?, complex::beats(&mut combine, op, y, x)?);
    let apart = combine.binary(BinaryOp::Or, first, second)?;
    let level = combine.unary(UnaryOp::Not, apart)?;
    let earlier = combine.binary(BinaryOp::Lt, j, i)?;
    let tie = combine.binary(BinaryOp::And, level, earlier)?;
    let wins = combine.binary(BinaryOp::Or, second, tie)?;
    let (value, position) = (combine.select(wins, y, x)?, combine.select(wins, j, i)?);
    combine.set_results(vec![value, position]);
    let types = vec![dtype, DType::I64];
    let mut finish = ScalarCode::new(types.clone());
    let position = finish.param(1);
    finish.set_results(vec![position]);
    Ok(Accum {
        identity: vec![worst(op, dtype), Scalar::I64(i64::MAX)],
        lift: ScalarCode::identity(types),
        combine,
        finish,
        on_empty: OnEmpty::Error,
    })
}

/// An accumulator of two bodies fed with the parts of one complex number.
fn of_parts(accum: Accum, dtype: DType) -> Result<Accum> {
    lifted(accum, vec![dtype], |code| {
        let z = code.param(0);
        Ok(vec![code.unary(UnaryOp::Real, z)?, code.unary(UnaryOp::Imag, z)?])
    })
}

/// Two results as one.
fn joined(mut accum: Accum, op: BinaryOp) -> Result<Accum> {
    let results = accum.finish.results().to_vec();
    let result = accum.finish.binary(op, results[0], results[1])?;
    accum.finish.set_results(vec![result]);
    Ok(accum)
}

fn of_times(kind: Reduction, dtype: DType) -> Result<Accum> {
    let span = matches!(dtype, DType::TimeDelta(_));
    match kind {
        // NaT is the smallest integer, so it wins a minimum; one less it is the largest, and wins a maximum.
        Reduction::Min | Reduction::ArgMin => {
            let accum = converted(kind, dtype, DType::I64, |code, x| Ok(code.cast(DType::I64, x)))?;
            if kind == Reduction::Min {
                finished(accum, |code, result| Ok(code.cast(dtype, result)))
            } else {
                Ok(accum)
            }
        }
        Reduction::Max | Reduction::ArgMax => {
            let accum = converted(kind, dtype, DType::I64, |code, x| {
                let (count, one) = (code.cast(DType::I64, x), code.constant(Scalar::I64(1)));
                code.binary(BinaryOp::Sub, count, one)
            })?;
            if kind == Reduction::ArgMax {
                return Ok(accum);
            }
            finished(accum, |code, result| {
                let one = code.constant(Scalar::I64(1));
                let count = code.binary(BinaryOp::Add, result, one)?;
                Ok(code.cast(dtype, count))
            })
        }
        Reduction::Sum if span => total(dtype, false),
        Reduction::Mean if span => total(dtype, true),
        _ => Err(Error::types(format!("`{}` does not take {dtype}", kind.name()))),
    }
}

/// Sum or mean of spans: the sum of counts, whether there was a NaT, and how many there were.
fn total(dtype: DType, mean: bool) -> Result<Accum> {
    let parts = [Accum::sum(DType::I64), Accum::any(), Accum::sum(DType::I64)];
    let mut accum = lifted(Accum::several(&parts)?, vec![dtype], |code| {
        let x = code.param(0);
        let (count, nat, one) =
            (code.cast(DType::I64, x), code.constant(Scalar::I64(NAT)), code.constant(Scalar::I64(1)));
        Ok(vec![count, code.binary(BinaryOp::Eq, count, nat)?, one])
    })?;
    let code = &mut accum.finish;
    let &[sum, has_nat, n] = code.results() else { return Err(Error::internal("a total has three parts")) };
    let (value, missing) = if mean {
        // The mean of nothing is not a time; others are rounded towards zero, as in NumPy.
        let zero = code.constant(Scalar::I64(0));
        let nothing = code.binary(BinaryOp::Eq, n, zero)?;
        (truncated(code, sum, n)?, code.binary(BinaryOp::Or, has_nat, nothing)?)
    } else {
        (sum, has_nat)
    };
    let nat = code.constant(Scalar::I64(NAT));
    let value = code.select(missing, nat, value)?;
    let value = CodeSink::convert(code, dtype, value)?;
    code.set_results(vec![value]);
    accum.on_empty = OnEmpty::Identity;
    Ok(accum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tw_ir::TimeUnit;

    fn fold(accum: &Accum, bodies: &[Scalar]) -> Scalar {
        let mut state = accum.identity.clone();
        for &body in bodies {
            state = accum.combine.eval(&[state, accum.lift.eval(&[body])].concat());
        }
        accum.finish.eval(&state)[0]
    }

    #[test]
    fn spans_are_added_and_nat_spreads() {
        let spans = |counts: &[i64]| -> Vec<Scalar> {
            counts.iter().map(|&count| Scalar::TimeDelta(count, TimeUnit::Second)).collect()
        };
        let of = |kind: Reduction, counts: &[i64]| {
            let accum = accum(kind, DType::TimeDelta(TimeUnit::Second)).unwrap();
            accum.verify(&[DType::TimeDelta(TimeUnit::Second)]).unwrap();
            fold(&accum, &spans(counts)).as_i64()
        };
        assert_eq!(of(Reduction::Sum, &[1, 2, 4]), 7);
        assert_eq!(of(Reduction::Sum, &[1, NAT, 4]), NAT);
        assert_eq!(of(Reduction::Mean, &[-1, -2, -4]), -2);
        assert_eq!((of(Reduction::Min, &[3, 1]), of(Reduction::Max, &[3, 1])), (1, 3));
        assert_eq!((of(Reduction::Min, &[3, NAT]), of(Reduction::Max, &[NAT, 1])), (NAT, NAT));
        assert!(accum(Reduction::Prod, DType::TimeDelta(TimeUnit::Second)).is_err());
        assert!(accum(Reduction::Sum, DType::DateTime(TimeUnit::Second)).is_err());
    }

    #[test]
    fn complex_variance_is_real() {
        let z = |re: f64, im: f64| Scalar::C128(tw_ir::dtype::C128::new(re, im));
        let of = |kind| fold(&accum(kind, DType::C128).unwrap(), &[z(1.0, 0.0), z(0.0, 2.0)]);
        assert_eq!(of(Reduction::Var { ddof: 0.0 }), Scalar::F64(1.25));
        assert_eq!(of(Reduction::Mean), z(0.5, 1.0));
    }

    #[test]
    fn complex_numbers_are_ordered_by_their_parts() {
        let z = |re: f64, im: f64| Scalar::C128(tw_ir::dtype::C128::new(re, im));
        let of = |kind: Reduction, values: &[Scalar]| {
            let accum = accum(kind, DType::C128).unwrap();
            accum.verify(&bodies(kind, DType::C128)).unwrap();
            let mut state = accum.identity.clone();
            for (at, &value) in values.iter().enumerate() {
                let lifted = match kind.takes_position() {
                    true => accum.lift.eval(&[value, Scalar::I64(at as i64)]),
                    false => accum.lift.eval(&[value]),
                };
                state = accum.combine.eval(&[state, lifted].concat());
            }
            accum.finish.eval(&state)[0]
        };
        let values = [z(1.0, 2.0), z(1.0, -3.0), z(0.0, 9.0), z(1.0, 2.0), z(0.0, 9.0)];
        assert_eq!((of(Reduction::Max, &values), of(Reduction::Min, &values)), (z(1.0, 2.0), z(0.0, 9.0)));
        assert_eq!(of(Reduction::ArgMax, &values), Scalar::I64(0));
        assert_eq!(of(Reduction::ArgMin, &values), Scalar::I64(2));
        let unknown = [z(1.0, 2.0), z(5.0, 0.0), z(3.0, f64::NAN), z(f64::NAN, 1.0)];
        for kind in [Reduction::ArgMin, Reduction::ArgMax] {
            assert_eq!(of(kind, &unknown), Scalar::I64(2));
        }
        for kind in [Reduction::Min, Reduction::Max] {
            assert_eq!(of(kind, &unknown).as_c128().re, 3.0);
        }
        let lowest = f64::NEG_INFINITY;
        assert_eq!(of(Reduction::Max, &[z(lowest, lowest), z(lowest, 0.0)]), z(lowest, 0.0));
    }

    #[test]
    fn halves_are_added_as_singles() {
        let half = |x: f32| Scalar::F32(x).cast(DType::F16);
        let ones = vec![half(1.0); 3000];
        assert_eq!(fold(&accum(Reduction::Sum, DType::F16).unwrap(), &ones), half(3000.0));
    }
}
