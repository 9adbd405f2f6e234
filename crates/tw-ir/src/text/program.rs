//! Programs: values, regions and outputs. Operators are in `op`.

use std::collections::BTreeMap;

use cranelift_entity::EntityRef;

use super::cursor::Cursor;
use super::op::{parse_op, print_op};
use super::printer::{Printer, commas, quote};
use super::types::{parse_extent_id, parse_type, parse_value};
use crate::error::{Blame, Error, Result};
use crate::program::{ExtentDef, FunctionTable, Node, Program, Region, TensorType, ValueId, ValueInfo, verify};
use crate::span::{FileId, HostCall, Name, Span};

/// A program as text; see [`parse_program`].
pub fn print_program(program: &Program) -> String {
    let mut printer = Printer::default();
    printer.open("program {");
    for (extent, ExtentDef { value }) in program.extents.iter() {
        printer.line(format_args!("extent {extent} = {value}"));
    }
    print_nodes(&mut printer, program, &program.body.nodes);
    for value in unmade_values(program) {
        printer.line(format_args!("unused {}", print_declaration(program, value)));
    }
    for (name, value) in program.outputs.iter().zip(&program.body.results) {
        printer.line(format_args!("output {} = {value}", quote(name)));
    }
    printer.close("}");
    printer.finish()
}

/// Reads a program and verifies it. Block functions are found by name. `parse_program(print_program(p))` is `p`, with its names and spans.
pub fn parse_program(text: &str, functions: &FunctionTable) -> Result<Program> {
    let mut parser = ProgramParser { functions, values: BTreeMap::new() };
    let cursor = &mut Cursor::new(text);
    cursor.expect("program")?;
    cursor.expect("{")?;
    let mut program = Program::new();
    while cursor.eat("extent") {
        let start = cursor.place();
        let (id, next) = (parse_extent_id(cursor)?, program.extents.next_key());
        if id != next {
            return Err(cursor.error_since(start, format_args!("extents are numbered in order: {next} comes next")));
        }
        cursor.expect("=")?;
        program.extents.push(ExtentDef { value: parse_value(cursor)? });
    }
    while !cursor.sees("unused") && !cursor.sees("output") && !cursor.sees("}") {
        program.body.nodes.push(parser.node(cursor)?);
    }
    while cursor.eat("unused") {
        parser.declaration(cursor)?;
    }
    while cursor.eat("output") {
        let name = cursor.string()?;
        cursor.expect("=")?;
        program.output(name, parse_value(cursor)?);
    }
    cursor.expect("}")?;
    cursor.end()?;
    for (position, (number, info)) in parser.values.into_iter().enumerate() {
        if number as usize != position {
            return Err(cursor.error_since(0, format_args!("%{position} is never declared, but %{number} is")));
        }
        program.values.push(info);
    }
    well_formed(verify(&program), text)?;
    Ok(program)
}

/// A fault the verifier finds in text is the text's, not ours.
pub(super) fn well_formed<T>(result: Result<T>, text: &str) -> Result<T> {
    result.map_err(|error| match error.blame() {
        Blame::Internal => Error::source(error.message()).at(&Span::text(0, text.len())),
        _ => error.at(&Span::text(0, text.len())),
    })
}

/// Values that no node makes: left behind by rewrites.
fn unmade_values(program: &Program) -> Vec<ValueId> {
    fn visit(region: &Region, made: &mut Vec<bool>) {
        let results = region.nodes.iter().flat_map(|node| &node.results);
        for &value in region.params.iter().chain(results) {
            if let Some(slot) = made.get_mut(value.index()) {
                *slot = true;
            }
        }
        for node in &region.nodes {
            node.op.regions().for_each(|region| visit(region, made));
        }
    }
    let mut made = vec![false; program.values.len()];
    visit(&program.body, &mut made);
    program.values.keys().filter(|value| !made[value.index()]).collect()
}

/// Writes nodes, one after the other.
fn print_nodes(printer: &mut Printer, program: &Program, nodes: &[Node]) {
    for node in nodes {
        let results = commas(node.results.iter().map(|&value| print_declaration(program, value)));
        let equals = if results.is_empty() { "" } else { " = " };
        print_op(printer, program, node, &format!("{results}{equals}"), &print_span(&node.span));
    }
}

/// Writes a region after a word: `word (%1: f64[]) { .. yield %2 }`.
pub(super) fn print_region(printer: &mut Printer, program: &Program, word: &str, region: &Region) {
    let params = commas(region.params.iter().map(|&value| print_declaration(program, value)));
    printer.open(format_args!("{word} ({params}) {{"));
    print_nodes(printer, program, &region.nodes);
    printer.line(format_args!("yield ({})", commas(&region.results)));
    printer.close("}");
}

fn print_declaration(program: &Program, value: ValueId) -> String {
    let info = &program.values[value];
    match &info.name {
        Some(name) => format!("{value} {}: {}", quote(name), info.ty),
        None => format!("{value}: {}", info.ty),
    }
}

/// A span with a space before it, or nothing.
pub(super) fn print_span(span: &Span) -> String {
    match span {
        Span::None => String::new(),
        Span::Text { file: FileId::UNNAMED, start, end } => format!(" @{start}..{end}"),
        Span::Text { file, start, end } => format!(" @{} {start}..{end}", quote(file.name())),
        Span::Host { file, line, call: None } => format!(" @{} line {line}", quote(file.name())),
        Span::Host { file, line, call: Some(call) } => {
            format!(
                " @{} line {line} host_call {} {}",
                quote(file.name()),
                call.position,
                quote(call.operation.as_str())
            )
        }
    }
}

/// Reads what [`print_span`] writes.
pub(super) fn parse_span(cursor: &mut Cursor<'_>) -> Result<Span> {
    if !cursor.eat("@") {
        return Ok(Span::None);
    }
    let file = match cursor.sees("\"") {
        true => FileId::named(&cursor.string()?),
        false => FileId::UNNAMED,
    };
    if cursor.eat("line") {
        let line = cursor.fitting()?;
        let call = match cursor.eat("host_call") {
            true => {
                let position = cursor.fitting()?;
                Some(HostCall { position, operation: Name::new(&cursor.string()?) })
            }
            false => None,
        };
        return Ok(Span::Host { file, line, call });
    }
    let start = cursor.fitting()?;
    cursor.expect("..")?;
    Ok(Span::Text { file, start, end: cursor.fitting()? })
}

/// Collects declarations while nodes are read.
pub(super) struct ProgramParser<'a> {
    pub(super) functions: &'a FunctionTable,
    values: BTreeMap<u32, ValueInfo>,
}

impl ProgramParser<'_> {
    fn node(&mut self, cursor: &mut Cursor<'_>) -> Result<Node> {
        let mut results = Vec::new();
        while cursor.sees("%") {
            results.push(self.declaration(cursor)?);
            if !cursor.eat(",") {
                break;
            }
        }
        if !results.is_empty() {
            cursor.expect("=")?;
        }
        let (op, args) = parse_op(self, cursor, &results)?;
        let span = parse_span(cursor)?;
        Ok(Node { op, args, results, span })
    }

    /// Reads what [`print_region`] writes.
    pub(super) fn region(&mut self, cursor: &mut Cursor<'_>, word: &str) -> Result<Region> {
        cursor.expect(word)?;
        let params = cursor.list("(", ")", |cursor| self.declaration(cursor))?;
        cursor.expect("{")?;
        let mut nodes = Vec::new();
        while !cursor.eat("yield") {
            nodes.push(cursor.nested(|cursor| self.node(cursor))?);
        }
        let results = cursor.list("(", ")", parse_value)?;
        cursor.expect("}")?;
        Ok(Region { params, nodes, results })
    }

    fn declaration(&mut self, cursor: &mut Cursor<'_>) -> Result<ValueId> {
        let start = cursor.place();
        let number = cursor.id("%")?;
        let name = cursor.sees("\"").then(|| cursor.string()).transpose()?;
        cursor.expect(":")?;
        let ty = parse_type(cursor)?;
        match self.values.insert(number, ValueInfo { ty, name }) {
            Some(_) => Err(cursor.error_since(start, format_args!("%{number} is declared twice"))),
            None => Ok(ValueId::from_u32(number)),
        }
    }

    /// The declared type of a value.
    pub(super) fn type_of(&self, value: ValueId) -> Option<&TensorType> {
        self.values.get(&value.as_u32()).map(|info| &info.ty)
    }
}
