//! The examples of the language document.

use std::collections::BTreeMap;

use tw_ir::{Array, Buffer, oracle};

use super::parse;
use crate::algebra::Elementwise;
use crate::lower::function_names;

const DOCUMENT: &str = include_str!("../../../../docs/language.md");
const TYPES: &str = include_str!("../../../../docs/dtypes.md");

/// Inputs hold 1, 2, 3 and so on.
fn counting(ty: &tw_ir::TensorType) -> Array {
    let shape = ty.known_shape().unwrap();
    let n = shape.iter().product::<u64>() as usize;
    let mut data = Buffer::zeros(ty.dtype, n);
    (0..n).for_each(|k| data.set(k, tw_ir::Scalar::from_i64(k as i64 + 1, ty.dtype)));
    Array::new(shape, data).and_then(|array| array.with_dtype(ty.dtype)).unwrap()
}

fn check(example: &str) -> usize {
    let claims: Vec<(&str, &str)> =
        example.lines().filter_map(|line| line.strip_prefix("#> ")?.split_once(": ")).collect();
    let mut text = example.to_string();
    for (name, _) in &claims {
        if !example.contains(&format!("output {name}")) {
            text.push_str(&format!("\noutput {name}"));
        }
    }
    let unit = parse(&text).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    let inputs: BTreeMap<String, Array> =
        unit.inputs.iter().map(|input| (input.name.clone(), counting(&input.ty))).collect();
    let results = oracle::evaluate(&unit.program, &inputs).unwrap_or_else(|error| panic!("{text}\n{error}"));
    for (name, claim) in &claims {
        assert_eq!(super::display(&results[*name]), *claim, "{name} in\n{text}");
    }
    claims.len()
}

#[test]
fn examples_are_right() {
    for document in [DOCUMENT, TYPES] {
        let blocks = document.split("```tw\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let n_claims: Vec<usize> = blocks.map(check).collect();
        assert!(n_claims.len() > 6 && n_claims.iter().all(|&n| n > 0), "{n_claims:?}");
    }
}

#[test]
fn limits_are_documented() {
    let depth = crate::parser::MAX_DEPTH;
    let indices = crate::index::MAX_INDICES;
    let limits = format!("nest at most {depth} levels deep, and a statement has at most {indices} indices");
    assert!(DOCUMENT.contains(&limits), "{limits}");
}

#[test]
fn every_function_is_documented() {
    let words: Vec<&str> = DOCUMENT.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').collect();
    for name in function_names().chain(Elementwise::names()) {
        assert!(words.contains(&name), "{name}");
    }
}
