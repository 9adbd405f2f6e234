//! Random expressions over random formats: compiled code against the interpreter, bit for bit, and both against their dense meaning.
//! `TW_RANDOM=20000` runs so many, `TW_SEED=n` only one.
#![allow(clippy::unwrap_used, unreachable_pub)]

#[path = "../../tw-sparse/tests/common/mod.rs"]
mod common;

use common::random::random_case;
use common::{bits, check_against_dense};
use tw_ir::DType;
use tw_jit::JitEngine;
use tw_sparse::loops::counting;
use tw_sparse::{CompiledStatement, InterpretedLoops, KernelEngine, SparseTensor};

const TYPES: &[DType] = &[
    DType::I64,
    DType::F64,
    DType::F64,
    DType::F32,
    DType::I32,
    DType::I16,
    DType::I8,
    DType::U64,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
    DType::C64,
    DType::C128,
];

/// All arrays of a tensor.
fn arrays(tensor: &SparseTensor) -> Vec<String> {
    tensor.levels().iter().flatten().chain([tensor.values()]).map(|buffer| bits(buffer)).collect()
}

#[test]
fn random_expressions_have_equal_bits() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("TW_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TW_RANDOM").unwrap_or(300),
    };
    let (compiled, checked) = (JitEngine::new(), JitEngine::new().with_bounds_checks());
    let mut failures = Vec::new();
    for seed in seeds.clone() {
        let case = random_case(seed, TYPES);
        let run =
            |engine: &dyn KernelEngine| check_against_dense(engine, &case.statement, &case.operands, &case.extents);
        let outcome = run(&InterpretedLoops).and_then(|meant| {
            // With checks first: a kernel that leaves its arrays must not run without.
            for (name, engine) in [("checked", &checked), ("compiled", &compiled)] {
                let found = run(engine).map_err(|e| format!("{name}: {e}"))?;
                if arrays(&found) != arrays(&meant) {
                    return Err(format!("{name}: {:?}\nnot {:?}", arrays(&found), arrays(&meant)));
                }
            }
            let operands: Vec<&SparseTensor> = case.operands.iter().collect();
            let extents: Vec<Option<u64>> = case.extents.iter().map(|&extent| Some(extent)).collect();
            let statement = CompiledStatement::new(case.statement.clone()).map_err(|e| e.to_string())?;
            let text = || format!("\n{}", counting(&statement.lowered().kernel));
            for engine in [&InterpretedLoops as &dyn KernelEngine, &checked, &compiled] {
                let phased = statement.run_in_two_phases(engine, &operands, &extents);
                let phased = phased.map_err(|e| format!("two phases: {e}{}", text()))?;
                if arrays(&phased) != arrays(&meant) {
                    return Err(format!("two phases: {:?}\nnot {:?}", arrays(&phased), arrays(&meant)));
                }
            }
            // Counted lengths are exact where the result comes as it was made.
            if statement.lowered().pattern.is_none() && statement.lowered().output == *meant.format() {
                let counted = statement.count(&compiled, &operands, &extents).map_err(|e| e.to_string())?;
                let parts = meant.levels().iter().flatten().chain([meant.values()]);
                let lengths: Vec<u64> = parts.map(|buffer| buffer.len() as u64).collect();
                if counted != lengths {
                    return Err(format!("counted {counted:?}, not {lengths:?}{}", text()));
                }
            }
            Ok(())
        });
        if let Err(failure) = outcome {
            failures.push(format!("seed {seed}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{} of {seeds:?} fail; \n{}", failures.len(), failures.join("\n\n"));
}
