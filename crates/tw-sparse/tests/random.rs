//! Random expressions over random formats, against their dense meaning. `TW_FULL=1` runs more, `TW_SEED=n` only one.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod common;

use common::check_against_dense;
use common::random::random_case;
use tw_ir::DType;
use tw_sparse::InterpretedLoops;

const TYPES: &[DType] =
    &[DType::I64, DType::I64, DType::F64, DType::F64, DType::F32, DType::U8, DType::I32, DType::Bool, DType::C128];

#[test]
fn random_expressions_have_their_dense_meaning() {
    let n = if std::env::var_os("TW_FULL").is_some() { 20_000 } else { 3_000 };
    let mut failures = Vec::new();
    let only = std::env::var("TW_SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in only.map_or(0..n, |seed| seed..seed + 1) {
        let case = random_case(seed, TYPES);
        if let Err(failure) = check_against_dense(&InterpretedLoops, &case.statement, &case.operands, &case.extents) {
            failures.push(format!("seed {seed}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{} of {n} fail; \n{}", failures.len(), failures.join("\n\n"));
}
