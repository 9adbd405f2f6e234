//! The language of tensor programs.
//!
//! ```
//! use std::collections::BTreeMap;
//! use tw_ir::program::FunctionTable;
//! use tw_lang::{NoFiles, parse_program};
//!
//! let text = "
//!     param n = 4
//!     A = random.normal(n, n, seed=1)
//!     C[i,j] = sum[k](A[i,k] * A[j,k])      # index notation
//!     trace = sum[i](C[i,i])
//!     output trace
//! ";
//! let unit = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default()).unwrap();
//! let results = tw_ir::oracle::evaluate(&unit.program, &BTreeMap::new()).unwrap();
//! assert!(results["trace"].item().unwrap().as_f64() > 0.0);
//! ```
//!
//! The reference is `docs/language.md`. Text becomes tokens (`lexer`), a tree (`parser`, `ast`) and then a [`Program`]
//! (`lower`, with index notation in `index`). No text makes it panic or recurse without bound.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use tw_ir::program::FunctionTable;
use tw_ir::{Error, FileId, Program, Span, TensorType};

mod algebra;
mod ast;
mod catalog;
mod diagnose;
mod emit;
mod fold;
mod index;
mod lexer;
mod lower;
mod names;
mod params;
mod parser;
mod token;

#[cfg(test)]
mod tests;

pub use catalog::{Catalog, NoFiles};
pub use params::ParamValue;

/// An input that a program declares.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDecl {
    /// Its name.
    pub name: String,
    /// Its type, with the tiling the program asks for.
    pub ty: TensorType,
    /// The file it comes from, unless the caller binds it.
    pub path: Option<String>,
    /// Where it is declared.
    pub span: Span,
}

/// A program that was read from text.
#[derive(Clone, Debug)]
pub struct ProgramUnit {
    /// The program, verified.
    pub program: Program,
    /// Parameters with the values they have in it.
    pub params: BTreeMap<String, ParamValue>,
    /// Inputs in the order of their declarations.
    pub inputs: Vec<InputDecl>,
}

/// Reads a program.
///
/// `sets` overrides parameters, `catalog` tells the types of files, `functions` holds the block functions the text may call. Errors in names,
/// types and shapes are collected; of errors in syntax the first is reported.
pub fn parse_program(
    text: &str,
    sets: &BTreeMap<String, ParamValue>,
    catalog: &dyn Catalog,
    functions: &FunctionTable,
) -> Result<ProgramUnit, Vec<Error>> {
    parse_file(FileId::UNNAMED, text, sets, catalog, functions)
}

/// The same for a text with a name: spans carry it, so that errors and plans say which of several texts they are about.
pub fn parse_file(
    file: FileId,
    text: &str,
    sets: &BTreeMap<String, ParamValue>,
    catalog: &dyn Catalog,
    functions: &FunctionTable,
) -> Result<ProgramUnit, Vec<Error>> {
    let statements = parser::parse(file, text).map_err(|error| vec![error])?;
    let end = text.len() as u32;
    lower::lower(&statements, token::Range { file, start: end, end }, sets, catalog, functions)
}
