//! Reading a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tw_ir::{Array, Blame};
use tw_lang::ParamValue;

use super::compare::Tolerance;
use super::literal;

/// A program with its inputs and what it must give.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where it was read from.
    pub path: PathBuf,
    /// The program, directives included: they are comments.
    pub text: String,
    /// Values of parameters.
    pub params: BTreeMap<String, ParamValue>,
    /// Data of the inputs by name.
    pub inputs: BTreeMap<String, Array>,
    /// Files that exist before the program runs, by name.
    pub files: BTreeMap<String, Array>,
    /// What it must give.
    pub expectation: Expectation,
    /// How close floats must be.
    pub tolerance: Tolerance,
}

/// What a case must give.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// All outputs by name, and all files it writes.
    Results {
        /// Outputs by name.
        outputs: BTreeMap<String, Array>,
        /// Files by name.
        files: BTreeMap<String, Array>,
    },
    /// An error, from reading the program or from running it.
    Error(ExpectedError),
}

/// An error that must come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedError {
    /// Who has to act.
    pub blame: Blame,
    /// A part of the message.
    pub message: String,
    /// Line and column where its place begins, both counted from one.
    pub at: (usize, usize),
}

impl Case {
    /// Reads a case from its file.
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Case::parse(path, text).map_err(|problem| format!("{}: {problem}", path.display()))
    }

    /// Reads the directives of a program.
    pub fn parse(path: &Path, text: String) -> Result<Case, String> {
        let mut builder = Builder::default();
        for (line, directive) in directives(&text)? {
            builder.directive(&directive).map_err(|problem| format!("line {line}: {problem}"))?;
        }
        let Builder { params, inputs, files, outputs, written, error, tolerance } = builder;
        let expectation = match error {
            Some(error) if outputs.is_empty() && written.is_empty() => Expectation::Error(error),
            Some(_) => return Err("it expects results and an error".into()),
            None if outputs.is_empty() && written.is_empty() => return Err("it expects nothing".into()),
            None => Expectation::Results { outputs, files: written },
        };
        Ok(Case { path: path.to_path_buf(), text, params, inputs, files, expectation, tolerance })
    }
}

#[derive(Default)]
struct Builder {
    params: BTreeMap<String, ParamValue>,
    inputs: BTreeMap<String, Array>,
    files: BTreeMap<String, Array>,
    outputs: BTreeMap<String, Array>,
    written: BTreeMap<String, Array>,
    error: Option<ExpectedError>,
    tolerance: Tolerance,
}

impl Builder {
    fn directive(&mut self, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        match word {
            "set" => {
                let (name, value) = rest.split_once('=').ok_or("`=` is missing")?;
                let value = value.trim().parse().map_err(|error: tw_ir::Error| error.to_string())?;
                insert(&mut self.params, name, value)
            }
            "input" => named_array(&mut self.inputs, rest),
            "file" => named_array(&mut self.files, rest),
            "expect" => named_array(&mut self.outputs, rest),
            "expect-file" => named_array(&mut self.written, rest),
            "expect-error" => {
                let error = expected_error(rest)?;
                self.error.replace(error).map_or(Ok(()), |_| Err("it expects two errors".into()))
            }
            "tolerance" => {
                self.tolerance.double = rest.parse().map_err(|_| format!("`{rest}` is not a number"))?;
                Ok(())
            }
            _ => Err(format!("`{word}` is not a directive")),
        }
    }
}

fn insert<T>(map: &mut BTreeMap<String, T>, name: &str, value: T) -> Result<(), String> {
    let name = name.trim().trim_matches('"');
    match map.insert(name.to_string(), value) {
        Some(_) => Err(format!("`{name}` is given twice")),
        None => Ok(()),
    }
}

fn named_array(map: &mut BTreeMap<String, Array>, text: &str) -> Result<(), String> {
    let (name, array) = text.split_once(':').ok_or("`:` and a type are missing")?;
    insert(map, name, literal::array(array)?)
}

/// `source "part of the message" at 3:14`.
fn expected_error(text: &str) -> Result<ExpectedError, String> {
    let parts: Vec<&str> = text.split('"').collect();
    let [blame, message, place] = parts.as_slice() else { return Err("the message must stand in quotes".into()) };
    let blame = match blame.trim() {
        "source" => Blame::Source,
        "plan" => Blame::Plan,
        "data" => Blame::Data,
        "resource" => Blame::Resource,
        "io" => Blame::Io,
        other => return Err(format!("nobody is called `{other}`")),
    };
    let place = place.trim().strip_prefix("at ").and_then(|place| place.split_once(':'));
    let at = place.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    Ok(ExpectedError { blame, message: message.to_string(), at: at.ok_or("`at line:column` is missing")? })
}

/// The directives with the lines they begin on. One goes on over further `#!` lines as long as a bracket is open.
fn directives(text: &str) -> Result<Vec<(usize, String)>, String> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open = 0i64;
    for (k, line) in text.lines().enumerate() {
        let Some(content) = line.trim_start().strip_prefix("#!") else {
            if open > 0 {
                return Err(format!("line {}: the directive before is not complete", k + 1));
            }
            continue;
        };
        match found.last_mut() {
            Some((_, directive)) if open > 0 => {
                directive.push(' ');
                directive.push_str(content.trim());
            }
            _ => found.push((k + 1, content.trim().to_string())),
        }
        // Quoted messages may hold brackets of their own.
        let outside: String = content.split('"').step_by(2).collect();
        open += outside.matches('[').count() as i64 - outside.matches(']').count() as i64;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Case, String> {
        Case::parse(Path::new("x.tw"), text.to_string())
    }

    #[test]
    fn directives_are_read() {
        let case = parse("#! set n = 3\n#! input A: i64[2, 1] = [[1],\n#!   [2]]\nx = A\n#! expect x: i64[2] = [1, 2]")
            .unwrap();
        assert_eq!(case.params["n"], ParamValue::Int(3));
        assert_eq!(case.inputs["A"].shape(), [2, 1]);
        let Expectation::Results { outputs, .. } = case.expectation else { panic!("no results") };
        assert_eq!(outputs["x"], Array::from_i64(&[1, 2]));
        let case = parse("#! expect-error source \"not [ found\" at 1:2").unwrap();
        let Expectation::Error(error) = case.expectation else { panic!("no error") };
        assert_eq!(error, ExpectedError { blame: Blame::Source, message: "not [ found".into(), at: (1, 2) });
    }

    #[test]
    fn slips_are_found() {
        for wrong in [
            "x = 1",
            "#! wish x: f64 = 1",
            "#! expect x: f64 = 1\n#! expect x: f64 = 2",
            "#! expect x: f64[2] = [1,\ny = 2\n#! 2]",
            "#! expect x: f64 = 1\n#! expect-error data \"m\" at 1:1",
            "#! expect-error data \"m\"",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
