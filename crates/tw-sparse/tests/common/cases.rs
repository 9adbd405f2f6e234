//! Conformance cases: the form of `sparse-cases.json`.

use std::path::PathBuf;

use serde_json::Value;
use tw_ir::{Buffer, Scalar};
use tw_sparse::expr::OperandType;
use tw_sparse::width::index_at;
use tw_sparse::{CompiledStatement, CoordinateList, Duplicates, KernelEngine, SparseTensor, TensorFormat};

/// The shared cases, if they are there.
pub fn shared() -> Option<Vec<Value>> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = here.ancestors().map(|above| above.join("shared/data/sparse-cases.json")).find(|path| path.exists())?;
    let text = std::fs::read_to_string(path).unwrap();
    Some(serde_json::from_str::<Vec<Value>>(&text).unwrap())
}

fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.replace("nan", "NaN").parse().unwrap(),
        value => value.as_f64().unwrap(),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn integers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
}

fn format(tensor: &Value) -> TensorFormat {
    let names: Vec<&str> = tensor["format"]["levels"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    let order = integers(&tensor["format"]["order"]).iter().map(|&mode| mode as usize).collect();
    names.join(", ").parse::<TensorFormat>().unwrap().with_order(order).unwrap()
}

fn operand(tensor: &Value) -> OperandType {
    let fill = tensor.get("fill").map_or(0.0, number);
    OperandType { name: tensor["name"].as_str().unwrap().into(), format: format(tensor), fill: Scalar::F64(fill) }
}

fn stored(tensor: &Value) -> tw_ir::Result<SparseTensor> {
    let coordinates = tensor["coords"].as_array().unwrap().iter().flat_map(integers).collect();
    let list = CoordinateList { coordinates, values: Buffer::F64(numbers(&tensor["values"])) };
    let operand = operand(tensor);
    SparseTensor::from_coordinates(integers(&tensor["shape"]), operand.format, operand.fill, &list, Duplicates::Sum)
}

/// The arrays of sparse levels must be as given.
fn check_arrays(tensor: &SparseTensor, expected: &Value) -> Result<(), String> {
    for (level, expected) in tensor.levels().iter().zip(expected.as_array().unwrap()) {
        for (part, expected) in level.iter().zip(expected.as_array().unwrap()) {
            let found: Vec<u64> = (0..part.len()).map(|k| index_at(part, k)).collect();
            if found != integers(expected) {
                return Err(format!("arrays {found:?}, not {expected}"));
            }
        }
    }
    Ok(())
}

/// A NaN of the cases stands for any value that is not finite: the one of atanh(1) is an infinity.
fn close(found: &Buffer, expected: &[f64]) -> Result<(), String> {
    let Buffer::F64(found) = found else { return Err("not f64".into()) };
    let same = |(a, b): (&f64, &f64)| a == b || !a.is_finite() && b.is_nan() || (a - b).abs() <= 1e-12 * b.abs();
    match found.len() == expected.len() && found.iter().zip(expected).all(same) {
        true => Ok(()),
        false => Err(format!("{found:?}, not {expected:?}")),
    }
}

fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(flat).collect(),
        value => vec![number(value)],
    }
}

/// Runs a case; `None` if it carries no check.
pub fn run(engine: &dyn KernelEngine, case: &Value) -> Option<Result<(), String>> {
    if case["numpy_agrees"] != Value::Bool(true) {
        return None;
    }
    Some(check(engine, case))
}

fn check(engine: &dyn KernelEngine, case: &Value) -> Result<(), String> {
    let tensors: Vec<&Value> = case["operands"].as_array().unwrap().iter().collect();
    let operands: Vec<SparseTensor> =
        tensors.iter().map(|t| stored(t)).collect::<tw_ir::Result<_>>().map_err(|e| e.to_string())?;
    for operand in &operands {
        operand.check().map_err(|e| e.to_string())?;
    }
    if case.get("pack").is_some() {
        check_arrays(&operands[0], &case["expected_arrays"])?;
        return close(operands[0].values(), &numbers(&case["expected_values"]));
    }
    let text = case.get("expression").or(case.get("statement")).and_then(Value::as_str).unwrap();
    let target = case.get("output").unwrap_or(&case["outputs"][0]);
    let types = tensors.iter().map(|t| operand(t)).collect();
    let statement = super::notation::read(text, operand(target), types).map_err(|e| e.to_string())?;
    let compiled = CompiledStatement::new(statement.clone()).map_err(|e| e.to_string())?;
    let mut extents = vec![None; statement.variables.len()];
    for (var, extent) in statement.indices.iter().zip(integers(&target["shape"])) {
        extents[var.0] = Some(extent);
    }
    let borrowed: Vec<&SparseTensor> = operands.iter().collect();
    let with_text = |message: String| format!("{message}\n{}", compiled.lowered().kernel);
    let result = compiled.run(engine, &borrowed, &extents).map_err(|e| with_text(e.to_string()))?;
    let dense = result.to_dense().map_err(|e| e.to_string())?;
    match case.get("expected_dense") {
        Some(expected) => close(&dense, &flat(expected)).map_err(with_text)?,
        None => {
            let expected = stored(target).and_then(|expected| expected.to_dense()).map_err(|e| e.to_string())?;
            let Buffer::F64(expected) = expected else { unreachable!() };
            close(&dense, &expected).map_err(with_text)?;
        }
    }
    if let Some(arrays) = case.get("expected_arrays") {
        check_arrays(&result, arrays).map_err(with_text)?;
    }
    Ok(())
}
