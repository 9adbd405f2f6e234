//! Reads a program of the language together with its files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tw_block::Source;
use tw_ir::error::{Error, Result};
use tw_ir::program::{FunctionTable, TensorType};
use tw_ir::span::FileId;
use tw_lang::{Catalog, ParamValue, ProgramUnit, parse_file};

use crate::bindings::Inputs;

/// A program read from text, with the data of its bound inputs.
pub struct BoundProgram {
    /// The program, its parameters and its inputs.
    pub unit: ProgramUnit,
    /// Data by the name of the input.
    pub inputs: Inputs,
}

/// The block functions that every program may call: factorisations and Fourier transforms, if compiled in.
pub(crate) fn standard_functions() -> FunctionTable {
    #[cfg_attr(not(feature = "linalg"), allow(unused_mut, reason = "nothing to make known"))]
    let mut functions = FunctionTable::default();
    #[cfg(feature = "linalg")]
    {
        functions.include(tw_functions::library());
        functions.set_routines(crate::algorithms::library().clone());
    }
    functions
}

impl BoundProgram {
    /// Reads a program and the headers of the files it names.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use tilewright::{BoundProgram, Session};
    /// let session = Session::new();
    /// let sets = BTreeMap::from([("n".to_string(), "5".parse()?)]);
    /// let program = BoundProgram::read("param n = 3\ny = sum(arange(n))\noutput y\n", &sets, session.functions()).unwrap();
    /// let results = session.run(&program.unit.program, &program.inputs)?;
    /// assert_eq!(results["y"].item()?.as_f64(), 10.0);
    /// # Ok::<(), tilewright::Error>(())
    /// ```
    pub fn read(
        text: &str,
        sets: &BTreeMap<String, ParamValue>,
        functions: &FunctionTable,
    ) -> Result<BoundProgram, Vec<Error>> {
        BoundProgram::read_named(FileId::UNNAMED, text, sets, functions)
    }

    /// The same for one of several texts of a process: errors name it.
    pub fn read_named(
        file: FileId,
        text: &str,
        sets: &BTreeMap<String, ParamValue>,
        functions: &FunctionTable,
    ) -> Result<BoundProgram, Vec<Error>> {
        let files = Files::default();
        let unit = parse_file(file, text, sets, &files, functions)?;
        let opened = files.opened.into_inner();
        let file_of = |path: &Option<String>| path.as_ref().and_then(|path| opened.get(path)).cloned();
        let named = unit.inputs.iter().filter_map(|input| Some((input.name.clone(), file_of(&input.path)?)));
        let inputs = named.collect();
        Ok(BoundProgram { unit, inputs })
    }

    /// Binds data to an input that the program declares.
    pub fn bind(&mut self, name: &str, source: Arc<dyn Source>) -> Result<()> {
        if !self.unit.inputs.iter().any(|input| input.name == *name) {
            let names: Vec<String> = self.unit.inputs.iter().map(|input| format!("`{}`", input.name)).collect();
            let has = if names.is_empty() { "it has no inputs".into() } else { format!("it has {}", names.join(", ")) };
            return Err(Error::source(format!("the program has no input `{name}`")).help(has));
        }
        self.inputs.insert(name.to_string(), source);
        Ok(())
    }
}

/// Opens the files of a program and keeps them open, so that a run reads the files that were checked.
#[derive(Default)]
struct Files {
    opened: RefCell<BTreeMap<String, Arc<dyn Source>>>,
}

impl Catalog for Files {
    fn header(&self, path: &str) -> Result<TensorType> {
        let mut opened = self.opened.borrow_mut();
        let source = match opened.get(path) {
            Some(source) => source,
            None => opened.entry(path.to_string()).or_insert(tw_files::open(path)?),
        };
        Ok(source.ty())
    }
}
