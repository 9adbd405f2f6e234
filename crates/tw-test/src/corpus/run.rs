//! Running a case everywhere.

use std::collections::BTreeMap;

use tilewright::{Session, Totals, in_memory};
use tw_ir::oracle::{self, ProgramResults};
use tw_ir::{Array, Error, Op, Program, Span};
use tw_lang as lang;
use tw_lang::ProgramUnit;

use super::case::{Case, Expectation, ExpectedError};
use super::compare::difference;
use crate::differential::{Configuration, Results, same_bits};
use crate::generate::function_table;
use crate::ranks::{on_ranks, wires};
use crate::scratch::Scratch;

/// Loops of the corpus end long before this.
const MAX_STEPS: u64 = 1_000_000;

/// Every way the corpus runs on threads. Those that differ in threads and chaos only are neighbours.
pub fn configurations() -> Vec<Configuration> {
    let schedules = [(1, None), (1, Some(7)), (2, None), (2, Some(1)), (4, Some(2)), (4, Some(3))];
    let mut all = Vec::new();
    for rewrites in [true, false] {
        for tile in [None, Some(1), Some(2), Some(3), Some(1000)] {
            for (threads, chaos) in schedules {
                all.push(Configuration { rewrites, tile, threads, chaos, cluster: None });
            }
        }
    }
    all
}

/// A case that was read without errors, with its files in a directory of its own.
pub struct Loaded<'c> {
    case: &'c Case,
    /// What the text stands for.
    pub unit: ProgramUnit,
    directory: Scratch,
}

impl<'c> Loaded<'c> {
    /// Writes the files of a case and reads its program. The inner result says what is wrong with the program.
    pub fn new(case: &'c Case) -> Result<Result<Loaded<'c>, Vec<Error>>, String> {
        let directory = Scratch::new().map_err(|error| format!("no scratch directory: {error}"))?;
        for (name, array) in &case.files {
            tw_files::write_array(directory.path(name), array).map_err(|error| error.to_string())?;
        }
        let unit = lang::parse_program(&case.text, &case.params, &directory, &function_table());
        Ok(unit.map(|unit| Loaded { case, unit, directory }))
    }

    fn oracle_inputs(&self) -> Results {
        let from_files = self.unit.inputs.iter().filter_map(|input| {
            let array = self.case.files.get(input.path.as_ref()?)?;
            Some((input.name.clone(), array.clone()))
        });
        self.case.inputs.clone().into_iter().chain(from_files).collect()
    }

    /// Runs it on threads and tells what that cost.
    pub fn run(&self, session: &Session) -> Result<(ProgramResults, Totals), Error> {
        let mut inputs = BTreeMap::new();
        for input in &self.unit.inputs {
            let data = match &input.path {
                Some(path) => tw_files::open(self.directory.path(path))?,
                None => match self.case.inputs.get(&input.name) {
                    Some(array) => in_memory(array.clone()),
                    None => continue,
                },
            };
            inputs.insert(input.name.clone(), data);
        }
        let (program, paths) = redirected(&self.unit.program, &self.directory);
        let (results, totals) = session.run_with_report(&program, &inputs)?;
        let outputs = results.into_iter().map(|(name, stored)| Ok((name, session.fetch(&stored, None)?.to_array()?)));
        let outputs = outputs.collect::<Result<_, Error>>()?;
        let stored =
            paths.into_iter().map(|path| Ok((path.clone(), tw_files::read_array(self.directory.path(&path))?)));
        Ok((ProgramResults { outputs, stored: stored.collect::<Result<_, Error>>()? }, totals))
    }
}

/// Runs a case on the oracle and under every configuration. The error says what differs and where.
pub fn check(case: &Case) -> Result<(), String> {
    let loaded = match Loaded::new(case)? {
        Ok(loaded) => loaded,
        Err(errors) => return judge(case, Err(first(errors))).map_err(|problem| format!("reading: {problem}")),
    };
    check_declared(case, &loaded.unit)?;
    let reference = oracle::evaluate_with_limit(&loaded.unit.program, &loaded.oracle_inputs(), MAX_STEPS);
    judge(case, reference).map_err(|problem| format!("oracle: {problem}"))?;
    // What decides the bits of the results is everything but threads and chaos.
    let mut before: Option<((bool, Option<u64>), Results)> = None;
    for configuration in configurations() {
        let outcome = loaded.run(&configuration.session()).map(|(outcome, _)| outcome);
        judge(case, outcome.clone()).map_err(|problem| format!("{configuration:?}: {problem}"))?;
        let Ok(outcome) = outcome else { continue };
        let plan = (configuration.rewrites, configuration.tile);
        match &before {
            Some((same, expected)) if *same == plan => {
                if !same_bits(expected, &outcome.outputs) {
                    return Err(format!("{configuration:?}: other bits than the same plan on another schedule"));
                }
            }
            _ => before = Some((plan, outcome.outputs)),
        }
    }
    Ok(())
}

/// Runs a case on so many ranks of this process. The error says what differs and where.
pub fn check_on_ranks(case: &Case, configuration: &Configuration, size: u32) -> Result<(), String> {
    let Ok(loaded) = Loaded::new(case)? else { return Ok(()) };
    let threads = loaded.run(&configuration.session()).map(|(outcome, _)| outcome);
    let outcomes = on_ranks(wires(size), configuration, |session| loaded.run(session).map(|(outcome, _)| outcome));
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        let bits = |outcome: &ProgramResults| outcome.outputs.clone();
        if let (Ok(threads), Ok(outcome)) = (&threads, &outcome)
            && !same_bits(&bits(threads), &bits(outcome))
        {
            return Err(format!("rank {rank} of {size}, {configuration:?}: other bits than threads"));
        }
        judge(case, outcome).map_err(|problem| format!("rank {rank} of {size}, {configuration:?}: {problem}"))?;
    }
    Ok(())
}

/// A case must say something about every output, and give every input exactly once.
fn check_declared(case: &Case, unit: &ProgramUnit) -> Result<(), String> {
    if let Expectation::Results { outputs, .. } = &case.expectation {
        let missing = unit.program.outputs.iter().find(|name| !outputs.contains_key(*name));
        missing.map_or(Ok(()), |name| Err(format!("nothing is expected of the output `{name}`")))?;
    }
    let declared = |name: &String| unit.inputs.iter().any(|input| input.name == *name && input.path.is_none());
    let unknown = case.inputs.keys().find(|name| !declared(name));
    unknown.map_or(Ok(()), |name| Err(format!("the program has no input `{name}`")))
}

/// The program with its files in the scratch directory, and their names as written.
fn redirected(program: &Program, directory: &Scratch) -> (Program, Vec<String>) {
    let mut program = program.clone();
    let mut paths = Vec::new();
    for node in &mut program.body.nodes {
        if let Op::Store { path } = &mut node.op {
            let inside = directory.path(path).to_string_lossy().into_owned();
            paths.push(std::mem::replace(path, inside));
        }
    }
    (program, paths)
}

/// Compares what came with what must come.
fn judge(case: &Case, came: Result<ProgramResults, Error>) -> Result<(), String> {
    match (&case.expectation, came) {
        (Expectation::Results { outputs, files }, Ok(outcome)) => {
            compare(case, outputs, &outcome.outputs)?;
            compare(case, files, &outcome.stored)
        }
        (Expectation::Error(expected), Err(error)) => compare_errors(&case.text, expected, &error),
        (Expectation::Results { .. }, Err(error)) => Err(format!("results were expected, but: {error:?}")),
        (Expectation::Error(expected), Ok(_)) => {
            Err(format!("an error with \"{}\" was expected, but none came", expected.message))
        }
    }
}

fn compare(case: &Case, expected: &BTreeMap<String, Array>, got: &BTreeMap<String, Array>) -> Result<(), String> {
    for (name, expected) in expected {
        let got = got.get(name).ok_or_else(|| format!("`{name}` is not among the results"))?;
        if let Some(difference) = difference(expected, got, case.tolerance) {
            return Err(format!("`{name}`: {difference}"));
        }
    }
    let unexpected = got.keys().find(|name| !expected.contains_key(*name));
    unexpected.map_or(Ok(()), |name| Err(format!("`{name}` was not expected")))
}

fn compare_errors(text: &str, expected: &ExpectedError, error: &Error) -> Result<(), String> {
    let at = match error.span() {
        Span::Text { start, .. } => Some(line_and_column(text, *start as usize)),
        _ => None,
    };
    let fine =
        error.blame() == expected.blame && error.to_string().contains(&expected.message) && at == Some(expected.at);
    if fine { Ok(()) } else { Err(format!("expected {expected:?}, got {error:?} at {at:?}")) }
}

/// Line and column of a byte, both counted from one.
fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn first(errors: Vec<Error>) -> Error {
    errors.into_iter().next().unwrap_or_else(|| Error::internal("reading failed without an error"))
}
