//! Order statistics against a sort.

use tw_ir::{Array, Buffer, DType};

fn call(name: &str, operands: &[Array], shape: &[u64], dtype: DType) -> tw_ir::Result<Array> {
    let mut results = [Array::zeros(shape, dtype)?];
    tw_functions::library().get(name)?.0.apply(&operands.iter().map(Array::view).collect::<Vec<_>>(), &mut results)?;
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

/// The elements at all ranks of a vector that is cut into blocks, by counting. Candidates have room for a part of a block.
fn counted(blocks: &[&[f64]], room: u64) -> tw_ir::Result<Array> {
    let n: u64 = blocks.iter().map(|block| block.len() as u64).sum();
    let blocks: Vec<Array> = blocks.iter().map(|block| Array::from_f64(block)).collect();
    let mut bounds: Vec<u64> = Vec::new();
    for block in &blocks {
        bounds.extend(keys(&call("rank_bounds", std::slice::from_ref(block), &[1, 2], DType::U64)?));
    }
    let bounds = Array::new(vec![blocks.len() as u64, 2], Buffer::U64(bounds))?;
    let ranks = Array::from_i64(&(0..n as i64).collect::<Vec<_>>());
    let mut state = call("rank_start", &[bounds, ranks], &[n, 3], DType::U64)?;
    let mut candidates: Vec<Option<Array>> = vec![None; blocks.len()];
    for _ in 0..6 {
        let mut total = vec![0; n as usize * 2048];
        for (block, candidates) in blocks.iter().zip(&mut candidates) {
            let before = candidates.take();
            let operands = [Some(block), before.as_ref(), Some(&state)];
            let views: Vec<_> = operands.into_iter().flatten().map(Array::view).collect();
            let mut results = [Array::zeros(&[1, n, 2048], DType::I64)?, Array::zeros(&[1 + room], DType::U64)?];
            tw_functions::library().get("rank_count")?.0.apply(&views, &mut results)?;
            let [counts, left] = results;
            total.iter_mut().zip(counts.iter()).for_each(|(total, count)| *total += count.as_i64());
            *candidates = Some(left);
        }
        let total = Array::new(vec![n, 2048], Buffer::I64(total))?;
        state = call("rank_narrow", &[total, state], &[n, 3], DType::U64)?;
    }
    call("rank_value", &[state], &[n], DType::F64)
}

fn keys(array: &Array) -> Vec<u64> {
    match array.data() {
        Buffer::U64(keys) => keys.clone(),
        other => panic!("keys of type {}", other.dtype()),
    }
}

#[test]
fn ranges_narrow_to_every_element() {
    let values = numbers(61);
    for room in [0, 3, 61] {
        let found = counted(&[&values[..20], &[], &values[20..]], room).unwrap();
        assert!(same(&found, &sorted(values.clone())), "with room for {room}");
    }
}

#[test]
fn few_ranks_among_many_elements_are_sifted() {
    let values = numbers(5000);
    let data = Array::from_f64(&values);
    let bounds = call("rank_bounds", std::slice::from_ref(&data), &[1, 2], DType::U64).unwrap();
    let state = call("rank_start", &[bounds, Array::from_i64(&[7, 2500, 4999])], &[3, 3], DType::U64).unwrap();
    let mut counts = [Array::zeros(&[1, 3, 2048], DType::I64).unwrap()];
    let count = tw_functions::library().get("rank_count").unwrap();
    count.0.apply(&[data.view(), state.view()], &mut counts).unwrap();
    let total: i64 = (0..2048).map(|k| counts[0].at(k).as_i64()).sum();
    assert_eq!(total, 5000, "the first pass counts every element");
    let [counts] = counts;
    let state = call("rank_narrow", &[counts, state], &[3, 3], DType::U64).unwrap();
    let mut results =
        [Array::zeros(&[1, 3, 2048], DType::I64).unwrap(), Array::zeros(&[1 + 4000], DType::U64).unwrap()];
    count.0.apply(&[data.view(), state.view()], &mut results).unwrap();
    let n_left = keys(&results[1])[0];
    assert!(n_left < 4000, "{n_left} of 5000 elements may still be wanted");
}
