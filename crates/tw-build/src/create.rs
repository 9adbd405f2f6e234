//! Tensors without operands: constants, ranges and random numbers.

use tw_ir::{BinaryOp, DType, Error, Extent, Op, RandomDistribution, Result, Scalar, ScalarCode, ScalarOp, shape};

use super::statement::{StatementBuilder, linear_position};

/// One value everywhere.
pub fn full(shape: &[Extent], value: Scalar) -> Op {
    let mut statement = StatementBuilder::new(shape, Vec::new());
    let body = statement.code.constant(value);
    statement.elementwise(body)
}

/// The coordinate of every element along one axis.
pub fn coordinate(shape: &[Extent], axis: usize) -> Op {
    let mut statement = StatementBuilder::new(shape, Vec::new());
    let body = statement.var(axis);
    statement.elementwise(body)
}

/// `start, start + step, ..` up to but without `stop`.
pub fn arange(start: Scalar, stop: Scalar, step: Scalar, dtype: DType) -> Result<Op> {
    let n = arange_length(start, stop, step)?;
    let second = match (start, step.dtype().is_float()) {
        (Scalar::U64(first), false) => Scalar::U64(first.wrapping_add_signed(step.as_i64())),
        (first, false) if !first.dtype().is_float() => Scalar::I64(first.as_i64().wrapping_add(step.as_i64())),
        (first, _) => Scalar::F64(first.as_f64() + step.as_f64()),
    };
    progression(start, second, n, dtype)
}

/// `n` values, each as far from the one before as the second is from the first.
///
/// As NumPy: the difference of the first two, in the type of the result, is the step of all.
pub fn progression(first: Scalar, second: Scalar, n: u64, dtype: DType) -> Result<Op> {
    let working = match dtype {
        _ if dtype == DType::Bool || dtype.is_time() => DType::I64,
        _ if dtype.is_half() => DType::F32,
        _ => dtype,
    };
    // Both are rounded to the type of the result, which halves need in spite of their working type.
    let (first, second) = (first.cast(dtype).cast(working), second.cast(dtype).cast(working));
    let mut difference = ScalarCode::new(vec![working; 2]);
    let (a, b) = (difference.param(0), difference.param(1));
    let step = difference.binary(BinaryOp::Sub, b, a)?;
    difference.set_results(vec![step]);
    let step = difference.eval(&[first, second])[0];
    let mut statement = StatementBuilder::new(&[Extent::Known(n)], Vec::new());
    let position = statement.var(0);
    let code = &mut statement.code;
    let (position, first, step) = (code.cast(working, position), code.constant(first), code.constant(step));
    let distance = code.binary(BinaryOp::Mul, position, step)?;
    let value = code.binary(BinaryOp::Add, first, distance)?;
    let body = code.cast(dtype, value);
    Ok(statement.elementwise(body))
}

fn arange_length(start: Scalar, stop: Scalar, step: Scalar) -> Result<u64> {
    let whole = [start, stop, step].iter().all(|value| !value.dtype().is_float());
    let length = if whole {
        let exact = |value: Scalar| match value {
            Scalar::U64(value) => i128::from(value),
            value => i128::from(value.as_i64()),
        };
        let (a, b, d) = (exact(start), exact(stop), exact(step));
        if d == 0 {
            return Err(Error::source("a range with step 0"));
        }
        let (distance, stride) = if d > 0 { (b - a, d) } else { (a - b, -d) };
        (distance.max(0) + stride - 1) / stride
    } else {
        let length = ((stop.as_f64() - start.as_f64()) / step.as_f64()).ceil();
        if !length.is_finite() {
            return Err(Error::source(format!("the range from {start} to {stop} with step {step} has no length")));
        }
        length.max(0.0) as i128
    };
    u64::try_from(length)
        .ok()
        .filter(|&n| n <= i64::MAX as u64)
        .ok_or_else(|| Error::source(format!("a range of {length} elements is longer than can be counted")))
}

/// `n` evenly spaced values from `start` to `stop`, including `stop` if `endpoint`.
pub fn linspace(start: f64, stop: f64, n: u64, endpoint: bool, dtype: DType) -> Result<Op> {
    let gaps = if endpoint { n.saturating_sub(1) } else { n };
    let step = if gaps == 0 { 0.0 } else { (stop - start) / gaps as f64 };
    let mut statement = StatementBuilder::new(&[Extent::Known(n)], Vec::new());
    let position = statement.var(0);
    let code = &mut statement.code;
    let at = code.cast(DType::F64, position);
    let (first, step) = (code.constant(Scalar::F64(start)), code.constant(Scalar::F64(step)));
    let distance = code.binary(BinaryOp::Mul, at, step)?;
    let mut value = code.binary(BinaryOp::Add, distance, first)?;
    if endpoint && n > 1 {
        // Rounding must not move the end.
        let last = code.constant(Scalar::I64(n as i64 - 1));
        let is_last = code.binary(BinaryOp::Eq, position, last)?;
        let stop = code.constant(Scalar::F64(stop));
        value = code.select(is_last, stop, value)?;
    }
    let body = code.cast(dtype, value);
    Ok(statement.elementwise(body))
}

/// Ones on the k-th diagonal above the main one, zeros elsewhere.
pub fn eye(n: u64, m: u64, k: i64, dtype: DType) -> Result<Op> {
    let mut statement = StatementBuilder::new(&[Extent::Known(n), Extent::Known(m)], Vec::new());
    let (row, column) = (statement.var(0), statement.var(1));
    let code = &mut statement.code;
    let distance = code.binary(BinaryOp::Sub, column, row)?;
    let k = code.constant(Scalar::I64(k));
    let here = code.binary(BinaryOp::Eq, distance, k)?;
    let body = code.cast(dtype, here);
    Ok(statement.elementwise(body))
}

/// Uniform f64 in `low..high`: a pure function of seed and row-major position.
pub fn random_uniform(extents: &[u64], seed: u64, low: f64, high: f64) -> Result<Op> {
    random_scaled(extents, seed, RandomDistribution::Uniform, low, high - low)
}

/// Normal f64 with the given mean and standard deviation.
pub fn random_normal(extents: &[u64], seed: u64, mean: f64, deviation: f64) -> Result<Op> {
    random_scaled(extents, seed, RandomDistribution::Normal, mean, deviation)
}

/// Integers in `low..high`.
pub fn random_integers(extents: &[u64], seed: u64, low: i64, high: i64) -> Result<Op> {
    random(extents, seed, RandomDistribution::Integer { low, high }, |statement, drawn| Ok((statement, drawn)))
}

fn random_scaled(extents: &[u64], seed: u64, distribution: RandomDistribution, offset: f64, scale: f64) -> Result<Op> {
    random(extents, seed, distribution, |mut statement, mut drawn| {
        if scale != 1.0 {
            let scale = statement.code.constant(Scalar::F64(scale));
            drawn = statement.code.binary(BinaryOp::Mul, drawn, scale)?;
        }
        if offset != 0.0 {
            let offset = statement.code.constant(Scalar::F64(offset));
            drawn = statement.code.binary(BinaryOp::Add, drawn, offset)?;
        }
        Ok((statement, drawn))
    })
}

fn random(
    extents: &[u64],
    seed: u64,
    distribution: RandomDistribution,
    scale: impl FnOnce(StatementBuilder, tw_ir::Slot) -> Result<(StatementBuilder, tw_ir::Slot)>,
) -> Result<Op> {
    shape::n_elements(extents)?;
    let known: Vec<Extent> = extents.iter().map(|&n| Extent::Known(n)).collect();
    let mut statement = StatementBuilder::new(&known, Vec::new());
    let vars: Vec<usize> = (0..extents.len()).collect();
    let counter = linear_position(&mut statement, &vars, extents)?;
    let drawn = statement.code.push(ScalarOp::Random { distribution, seed, counter })?;
    let (statement, body) = scale(statement, drawn)?;
    Ok(statement.elementwise(body))
}
