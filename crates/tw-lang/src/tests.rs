//! Source text against the oracle, and source text against error messages.

use std::collections::BTreeMap;

use tw_ir::program::FunctionTable;
use tw_ir::{Array, DType, Error, Result, TensorType, oracle};

use super::{Catalog, ParamValue, ProgramUnit, parse_program};

mod arrays;
mod control;
mod differential;
mod document;
mod errors;
mod notation;
mod robust;

/// Two files, for programs that read some.
struct Files;

impl Catalog for Files {
    fn header(&self, path: &str) -> Result<TensorType> {
        match path {
            "matrix.npy" => Ok(TensorType::known(DType::F64, &[2, 3])),
            "vector.npy" => Ok(TensorType::known(DType::I64, &[5])),
            _ => Err(Error::io(format!("no file is called \"{path}\""))),
        }
    }
}

fn parse(text: &str) -> std::result::Result<ProgramUnit, Vec<Error>> {
    parse_program(text, &BTreeMap::new(), &Files, &FunctionTable::default())
}

fn parse_with(text: &str, sets: &[(&str, ParamValue)]) -> std::result::Result<ProgramUnit, Vec<Error>> {
    let sets = sets.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    parse_program(text, &sets, &Files, &FunctionTable::default())
}

/// What the only output of a program holds.
fn run_with(text: &str, inputs: &[(&str, Array)]) -> Array {
    let unit = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    let inputs = inputs.iter().map(|(name, array)| (name.to_string(), array.clone())).collect();
    let results = oracle::evaluate_with_limit(&unit.program, &inputs, 100_000);
    let mut outputs = results.unwrap_or_else(|error| panic!("{text}\n{error}")).outputs;
    assert_eq!(outputs.len(), 1, "{text}");
    outputs.pop_first().unwrap().1
}

/// The elements of `y` after the statements.
fn run(text: &str) -> Vec<f64> {
    run_with(&format!("{text}\noutput y"), &[]).to_f64_vec()
}

/// Type and elements of `y` after the statements, as text: `f64[2] 1 2`.
fn shown(text: &str) -> String {
    display(&run_with(&format!("{text}\noutput y"), &[]))
}

fn display(array: &Array) -> String {
    let plain = !array.dtype().is_complex() && !array.dtype().is_time();
    let text = |value: tw_ir::Scalar| if plain { value.as_f64().to_string() } else { value.to_string() };
    let elements: Vec<String> = array.iter().map(text).collect();
    format!("{}{} {}", array.dtype(), tw_ir::shape::display(array.shape()), elements.join(" ")).trim_end().to_string()
}

/// The only error of a program, as `message | the text it points at | help`.
fn complaint(text: &str) -> String {
    let errors = parse(text).expect_err(text);
    let described: Vec<String> = errors.iter().map(|error| describe(error, text)).collect();
    described.join("\n")
}

fn describe(error: &Error, text: &str) -> String {
    let place = match error.span() {
        tw_ir::Span::Text { start, end, .. } => text[*start as usize..*end as usize].replace('\n', "\\n"),
        _ => "nowhere".to_string(),
    };
    match error.help_text() {
        Some(help) => format!("{} | {place} | {help}", error.message()),
        None => format!("{} | {place}", error.message()),
    }
}
