//! Our side of a bench: a session runs a program of the language on data in memory.

use std::collections::BTreeMap;
use std::time::Instant;

use tw_block::{Provider, in_memory};
use tw_ir::error::{Error, Result};
use tw_ir::program::{FunctionTable, Program};
use tw_lang::{NoFiles, ParamValue, ProgramUnit, parse_program};

use super::answer::Answer;
use super::data::{Arrays, InputData};
use super::declare::{Bench, Products, Values};
use super::machine;
use crate::bindings::Inputs;
use crate::session::Session;

/// What is measured, set up once.
pub(super) trait Subject {
    /// Runs once and keeps nothing.
    fn measure(&mut self) -> Result<Sample>;
}

/// One repeat.
pub(super) struct Sample {
    /// Seconds per run, or per task where a bench says so.
    pub(super) seconds: f64,
    pub(super) figures: Vec<Figure>,
}

/// A number without a rival.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: f64,
    /// For people.
    pub(super) text: String,
    /// The most it may be.
    pub(super) at_most: Option<f64>,
}

/// A program with its data.
pub(super) struct ProgramSubject {
    session: Session,
    program: Program,
    inputs: Inputs,
    pub(super) data: Vec<InputData>,
    params: BTreeMap<String, ParamValue>,
    input_bytes: u64,
    output_bytes: u64,
}

impl ProgramSubject {
    /// Reads the program and makes its inputs.
    pub(super) fn new(bench: &Bench, text: &str, quick: bool, arrays: &mut Arrays) -> Result<ProgramSubject> {
        let quick = if quick { bench.quick } else { &[] };
        let sets = quick.iter().map(|&(name, value)| (name.to_string(), ParamValue::Int(value))).collect();
        let ProgramUnit { program, params, inputs } = parse(text, &sets)?;
        let mut data = Vec::new();
        for (seed, input) in (1..).zip(&inputs) {
            let (low, high) = match bench.data.iter().find(|(name, _)| *name == input.name) {
                None => (0.0, 1.0),
                Some((_, Values::Between(low, high))) => (*low, *high),
                Some((_, Values::Below(name))) => (0.0, value_of(&params, name)),
            };
            let shape = input.ty.require_shape()?;
            data.push(InputData { name: input.name.clone(), dtype: input.ty.dtype, shape, seed, low, high });
        }
        let input_bytes = data.iter().map(InputData::n_bytes).sum::<Result<u64>>()?;
        let made = arrays.make(&data)?;
        let inputs = data.iter().zip(made).map(|(data, array)| (data.name.clone(), in_memory(array))).collect();
        let session = Session::builder().threads(machine::threads());
        let session = if bench.products == Products::Own { session.provider(&Provider::rust()) } else { session };
        let session = session.build();
        Ok(ProgramSubject { session, program, inputs, data, params, input_bytes, output_bytes: 0 })
    }

    /// The first run, which plans. Gives what it computed and how much memory that took.
    pub(super) fn first_run(&mut self, peak_bar: Option<f64>) -> Result<(Answer, Vec<Figure>)> {
        let resident = machine::ResidentPeak::start();
        let (results, totals) = self.session.run_with_report(&self.program, &self.inputs)?;
        let resident = resident.bytes();
        let Some(result) = results.into_values().next() else {
            return Err(Error::internal("a bench without a result"));
        };
        self.output_bytes = result.n_bytes();
        let data = self.moved_bytes() as f64;
        let of_data = |name, bytes: u64, what: &str, at_most| {
            let value = bytes as f64 / data;
            Figure { name, value, text: format!("{what} {value:.2} x data"), at_most }
        };
        // The meter counts blocks; views of the inputs are not among them.
        let peak = self.input_bytes + totals.peak_bytes;
        let mut figures = vec![of_data("peak_over_data", peak, "blocks", peak_bar)];
        // The process has some megabytes of its own, which would only confuse beside small data.
        if let Some(bytes) = resident.filter(|_| data >= (64 << 20) as f64) {
            figures.push(of_data("resident_over_data", bytes, "process", peak_bar));
        }
        Ok((Answer::of_handle(&result)?, figures))
    }

    /// Bytes of inputs and output: what has to be read and written at least. Known after the first run.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.input_bytes + self.output_bytes
    }

    /// The value of a parameter.
    pub(super) fn size(&self, name: &str) -> f64 {
        value_of(&self.params, name)
    }
}

impl Subject for ProgramSubject {
    fn measure(&mut self) -> Result<Sample> {
        let begin = Instant::now();
        let (results, _) = self.session.run_with_report(&self.program, &self.inputs)?;
        let seconds = begin.elapsed().as_secs_f64();
        drop(results);
        Ok(Sample { seconds, figures: Vec::new() })
    }
}

fn value_of(params: &BTreeMap<String, ParamValue>, name: &str) -> f64 {
    match params.get(name) {
        Some(ParamValue::Int(value)) => *value as f64,
        Some(ParamValue::Float(value)) => *value,
        _ => f64::NAN,
    }
}

/// Reads a program of the catalogue.
pub(super) fn parse(text: &str, sets: &BTreeMap<String, ParamValue>) -> Result<ProgramUnit> {
    parse_program(text, sets, &NoFiles, &FunctionTable::default())
        .map_err(|errors| errors.into_iter().next().unwrap_or_else(|| Error::internal("no program")))
}
