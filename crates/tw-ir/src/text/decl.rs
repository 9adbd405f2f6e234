//! What plans and workflows both declare: statements, sources and sinks.

use std::sync::Arc;

use cranelift_entity::{EntityRef, PrimaryMap};

use super::cursor::Cursor;
use super::printer::{Printer, commas, quote};
use super::program::{parse_span, print_span};
use super::types::{parse_array, parse_plain_type, parse_type, print_array};
use crate::error::Result;
use crate::workflow::{SinkDecl, SinkId, SourceDecl, SourceId, Statement, StmtId};

/// The declarations at the head of a plan or workflow.
#[derive(Default)]
pub(super) struct Decls {
    pub(super) statements: PrimaryMap<StmtId, Statement>,
    pub(super) sources: PrimaryMap<SourceId, SourceDecl>,
    pub(super) sinks: PrimaryMap<SinkId, SinkDecl>,
}

/// Writes the declarations, one line each.
pub(super) fn print_decls(
    printer: &mut Printer,
    statements: &PrimaryMap<StmtId, Statement>,
    sources: &PrimaryMap<SourceId, SourceDecl>,
    sinks: &PrimaryMap<SinkId, SinkDecl>,
) {
    for (id, statement) in statements {
        printer.line(format_args!("statement {id} {}{}", quote(&statement.label), print_span(&statement.span)));
    }
    for (k, source) in sources.values().enumerate() {
        match source {
            SourceDecl::Input { name, ty } => printer.line(format_args!("source {k} input {} {ty}", quote(name))),
            SourceDecl::Constant(array) => print_array(printer, &format!("source {k} constant "), array, ""),
        }
    }
    for (k, sink) in sinks.values().enumerate() {
        printer.line(format_args!("sink {k} {} {}[{}]", quote(&sink.path), sink.dtype, commas(&sink.shape)));
    }
}

/// Reads what [`print_decls`] writes.
pub(super) fn parse_decls(cursor: &mut Cursor<'_>) -> Result<Decls> {
    let mut decls = Decls::default();
    while cursor.eat("statement") {
        expect_id(cursor, "s", decls.statements.len())?;
        decls.statements.push(Statement { label: cursor.string()?, span: parse_span(cursor)?, node: None });
    }
    while cursor.eat("source") {
        expect_id(cursor, "", decls.sources.len())?;
        decls.sources.push(if cursor.eat("constant") {
            SourceDecl::Constant(Arc::new(parse_array(cursor)?))
        } else {
            cursor.expect("input")?;
            SourceDecl::Input { name: cursor.string()?, ty: parse_type(cursor)? }
        });
    }
    while cursor.eat("sink") {
        expect_id(cursor, "", decls.sinks.len())?;
        let path = cursor.string()?;
        let (dtype, shape) = parse_plain_type(cursor)?;
        decls.sinks.push(SinkDecl { path, dtype, shape });
    }
    Ok(decls)
}

/// The bare number of a source or sink; whoever verifies what is read sees whether that is there.
pub(super) fn parse_id<T: EntityRef>(cursor: &mut Cursor<'_>) -> Result<T> {
    let start = cursor.place();
    match cursor.fitting()? {
        // Ids keep the largest number for themselves.
        u32::MAX => Err(cursor.error_since(start, "this number is too large")),
        number => Ok(T::new(number as usize)),
    }
}

/// A statement that has been declared.
pub(super) fn parse_statement_id(cursor: &mut Cursor<'_>, n_statements: usize) -> Result<StmtId> {
    let start = cursor.place();
    let id = StmtId::from_u32(cursor.id("s")?);
    if id.index() < n_statements { Ok(id) } else { Err(cursor.error_since(start, "no such statement")) }
}

/// The number of a declaration: they are numbered from 0 without gap.
pub(super) fn expect_id(cursor: &mut Cursor<'_>, prefix: &str, expected: usize) -> Result<()> {
    let start = cursor.place();
    if cursor.id(prefix)? as usize == expected {
        Ok(())
    } else {
        Err(cursor.error_since(start, format_args!("expected `{prefix}{expected}`")))
    }
}
