//! What tests of kernels share: conformance cases and random statements. Tests of other crates include this file by its path.
#![allow(dead_code)]

pub mod cases;
pub mod notation;
pub mod random;

use tw_ir::{Buffer, Scalar};
use tw_sparse::algebra::same_value;
use tw_sparse::dense::{DenseOperand, evaluate};
use tw_sparse::expr::IndexStatement;
use tw_sparse::{CompiledStatement, KernelEngine, SparseTensor};

/// Bits of elements, in which all NaNs are one, for comparisons between engines.
pub fn bits(buffer: &Buffer) -> String {
    let single = |v: f32| if v.is_nan() { "nan".into() } else { v.to_bits().to_string() };
    let double = |v: f64| if v.is_nan() { "nan".into() } else { v.to_bits().to_string() };
    let exact = |k: usize| match buffer.get(k) {
        Scalar::F64(v) => double(v),
        Scalar::F32(v) => single(v),
        Scalar::C64(v) => format!("{} {}", single(v.re), single(v.im)),
        Scalar::C128(v) => format!("{} {}", double(v.re), double(v.im)),
        other => other.to_string(),
    };
    (0..buffer.len()).map(exact).collect::<Vec<_>>().join(" ")
}

/// Runs a statement and compares it with its dense meaning. Returns the result.
pub fn check_against_dense(
    engine: &dyn KernelEngine,
    statement: &IndexStatement,
    operands: &[SparseTensor],
    extents: &[u64],
) -> Result<SparseTensor, String> {
    let compiled = CompiledStatement::new(statement.clone()).map_err(|e| format!("not lowered: {e}"))?;
    let text = compiled.lowered().kernel.to_string();
    let fail = |what: String| format!("{what}\n{statement:?}\n{text}");
    let again = tw_sparse::loops::parse::parse_kernel(&text).map_err(|e| fail(format!("not parsed: {e}")))?;
    if again.to_string() != text {
        return Err(fail(format!("the text does not come back:\n{again}")));
    }
    let borrowed: Vec<&SparseTensor> = operands.iter().collect();
    let given: Vec<Option<u64>> = extents.iter().map(|&extent| Some(extent)).collect();
    let result = compiled.run(engine, &borrowed, &given).map_err(|e| fail(format!("not run: {e}")))?;
    let dense: Vec<DenseOperand> = operands
        .iter()
        .map(|operand| DenseOperand { shape: operand.shape().to_vec(), elements: operand.to_dense().unwrap() })
        .collect();
    let expected = evaluate(statement, &dense, extents).map_err(|e| fail(format!("no meaning: {e}")))?;
    let found = result.to_dense().map_err(|e| fail(e.to_string()))?;
    for k in 0..expected.len() {
        let (found, expected) = (found.get(k), expected.get(k));
        if !same_value(found, expected) {
            return Err(fail(format!("element {k} is {found}, not {expected}")));
        }
    }
    Ok(result)
}
