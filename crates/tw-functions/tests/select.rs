//! Order statistics against a sort.

use tw_ir::{Array, Buffer, DType};

fn call(name: &str, operands: &[Array], shape: &[u64], dtype: DType) -> tw_ir::Result<Array> {
    let mut results = [Array::zeros(shape, dtype)?];
    tw_functions::library().get(name)?.0.apply(operands, &mut results)?;
    let [result] = results;
    Ok(result)
}

fn numbers(n: u64) -> Vec<f64> {
    let special = [0.0, -0.0, f64::NEG_INFINITY, f64::INFINITY, f64::NAN, -1.5, 1e-310, -1e300];
    (0..n).map(|k| if k % 3 == 0 { special[(k / 3) as usize % 8] } else { (k * 7919 % 1009) as f64 - 500.0 }).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(|a, b| {
        a.is_nan().cmp(&b.is_nan()).then_with(|| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
    });
    values
}

/// Equal, with zeros of either sign alike and NaN like NaN.
fn same(a: &Array, b: &[f64]) -> bool {
    a.to_f64_vec().iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

#[test]
fn elements_of_a_fibre_by_rank() {
    let values = numbers(97);
    let ranks: Vec<i64> = (0..97).rev().chain([5, 5, 0]).collect();
    let expected: Vec<f64> = ranks.iter().map(|&rank| sorted(values.clone())[rank as usize]).collect();
    let operands = [Array::from_f64(&values), Array::from_i64(&ranks)];
    assert!(same(&call("select_0", &operands, &[100], DType::F64).unwrap(), &expected));
    let beyond = [Array::from_f64(&values), Array::from_i64(&[97])];
    assert!(call("select_0", &beyond, &[1], DType::F64).is_err());
}

#[test]
fn digits_narrow_to_every_element() {
    let values = numbers(61);
    let n = values.len() as u64;
    let data = Array::from_f64(&values);
    let state: Vec<u64> = (0..n).flat_map(|rank| [0, rank]).collect();
    let mut state = Array::new(vec![n, 2], Buffer::U64(state)).unwrap();
    for pass in 0..6 {
        let counts =
            call(&format!("rank_count_{pass}"), &[data.clone(), state.clone()], &[1, n, 2048], DType::I64).unwrap();
        let counts = counts.reshaped(&[n, 2048]).unwrap();
        state = call(&format!("rank_narrow_64_{pass}"), &[counts, state], &[n, 2], DType::U64).unwrap();
    }
    let found = call("rank_value", &[state], &[n], DType::F64).unwrap();
    assert!(same(&found, &sorted(values)));
}
