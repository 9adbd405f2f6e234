//! Reading a program and finding its inputs.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use tw_ir::error::{Error, Result};
use tw_ir::program::{Op, ValueId};
use tw_lang::{ParamValue, ProgramUnit};

use super::Failure;
use crate::bindings::Inputs;
use crate::explain::SourceText;
use crate::program_text::{BoundProgram, standard_functions};

/// Longer files are refused.
const MAX_PROGRAM_BYTES: u64 = 16 << 20;

/// Options about the program and its parameters.
#[derive(clap::Args)]
pub(crate) struct ProgramArgs {
    /// Program file.
    pub(crate) file: PathBuf,
    /// Set a parameter: --set n=4000.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_set)]
    set: Vec<(String, ParamValue)>,
    /// Bind an input to a file: --input A=a.npy.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_binding)]
    input: Vec<(String, String)>,
}

/// A program with its text and the files it names.
pub(crate) struct Loaded {
    pub(crate) source: SourceText,
    pub(crate) unit: ProgramUnit,
    /// Data for the inputs that have any.
    pub(crate) inputs: Inputs,
}

impl Loaded {
    /// An error with the program's text around it.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        Failure::in_source(vec![error], &self.source)
    }
}

impl Loaded {
    /// Outputs that go to files need not stay in memory as well: takes them out of the results and gives their paths.
    pub(crate) fn release_stored(&mut self) -> BTreeMap<String, String> {
        let program = &mut self.unit.program;
        let mut stored: HashMap<ValueId, String> = HashMap::new();
        for node in &program.body.nodes {
            if let Op::Store { path } = &node.op {
                stored.insert(node.args[0], path.clone());
            }
        }
        let outputs = std::mem::take(&mut program.outputs).into_iter().zip(std::mem::take(&mut program.body.results));
        let mut paths = BTreeMap::new();
        for (name, value) in outputs {
            match stored.get(&value) {
                Some(path) => {
                    paths.insert(name, path.clone());
                }
                None => program.output(name, value),
            }
        }
        paths
    }
}

impl ProgramArgs {
    /// Another file with the same values, except for those given.
    pub(super) fn with(&self, file: PathBuf, set: &[(String, ParamValue)]) -> ProgramArgs {
        ProgramArgs { file, set: [&self.set, set].concat(), input: self.input.clone() }
    }

    /// Reads the program and the headers of its files.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let name = self.file.display().to_string();
        let source = SourceText::new(name, read_text(&self.file)?);
        let sets: BTreeMap<String, ParamValue> = self.set.iter().cloned().collect();
        let mut program = BoundProgram::read(source.text(), &sets, &standard_functions())
            .map_err(|errors| Failure::in_source(errors, &source))?;
        for (name, path) in &self.input {
            program.bind(name, tw_files::open(path)?)?;
        }
        let BoundProgram { unit, inputs } = program;
        Ok(Loaded { source, unit, inputs })
    }
}

/// The text of a program file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let name = path.display();
    let failed = |error: std::io::Error| Error::io(format!("{name} cannot be read: {error}"));
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(MAX_PROGRAM_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_PROGRAM_BYTES {
        return Err(Error::source(format!("{name} is longer than {} MiB", MAX_PROGRAM_BYTES >> 20))
            .help("programs are text; data goes into .npy files"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let byte = error.as_bytes()[offset];
        let help = "programs are UTF-8 text; to look at an .npy file use `tw info`";
        Error::source(format!("{name} is not UTF-8: byte {offset} (line {line}) is 0x{byte:02x}")).help(help)
    })
}

pub(super) fn parse_set(text: &str) -> Result<(String, ParamValue), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, for example n=4000")?;
    let value = value.trim().parse().map_err(|error: Error| error.message().to_string())?;
    Ok((name.trim().to_string(), value))
}

fn parse_binding(text: &str) -> Result<(String, String), String> {
    let (name, path) = text.split_once('=').ok_or("write NAME=FILE, for example A=a.npy")?;
    Ok((name.trim().to_string(), path.to_string()))
}
