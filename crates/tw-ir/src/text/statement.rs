//! What index statements and statement kernels share: the calculation and the output clause.

use super::accum::{parse_accum, print_accum};
use super::cursor::Cursor;
use super::index::{parse_edge, parse_indices, parse_label, print_edge, print_indices, print_label};
use super::printer::{Printer, commas};
use super::scalar::{parse_code, parse_typed, print_code, typed};
use crate::accum::Accum;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::index::{Edge, Idx};
use crate::scalar::ScalarCode;

/// Writes the variables of a statement with what each runs over. Nothing if there are none.
pub(super) fn print_vars(printer: &mut Printer, labels: &[String], names: &[String], ranges: &[String]) {
    if !labels.is_empty() {
        let vars = labels.iter().zip(names).zip(ranges);
        let vars = vars.map(|((label, name), range)| format!("{}: {range}", print_label(label, name)));
        printer.line(format_args!("for {}", commas(vars)));
    }
}

/// The variables of a statement.
pub(super) struct Vars<T> {
    /// The words that stand for them in index expressions.
    pub(super) labels: Vec<String>,
    pub(super) names: Vec<String>,
    /// The range of each.
    pub(super) ranges: Vec<T>,
}

/// Reads what [`print_vars`] writes.
pub(super) fn parse_vars<T>(
    cursor: &mut Cursor<'_>,
    mut range: impl FnMut(&mut Cursor<'_>) -> Result<T>,
) -> Result<Vars<T>> {
    let mut vars = Vars { labels: Vec::new(), names: Vec::new(), ranges: Vec::new() };
    let mut more = cursor.eat("for");
    while more {
        vars.names.push(parse_label(cursor, &mut vars.labels)?);
        cursor.expect(":")?;
        vars.ranges.push(range(cursor)?);
        more = cursor.eat(",");
    }
    Ok(vars)
}

/// Writes guard and bodies, and the accumulator if there is one.
pub(super) fn print_calculation(printer: &mut Printer, has_guard: bool, code: &ScalarCode, accum: Option<&Accum>) {
    print_code(printer, if has_guard { "guarded" } else { "code" }, code);
    if let Some(accum) = accum {
        print_accum(printer, "", accum, "");
    }
}

/// Reads what [`print_calculation`] writes.
pub(super) fn parse_calculation(cursor: &mut Cursor<'_>) -> Result<(bool, ScalarCode, Option<Accum>)> {
    let has_guard = cursor.sees("guarded");
    let code = parse_code(cursor, if has_guard { "guarded" } else { "code" })?;
    let accum = cursor.sees("accum").then(|| parse_accum(cursor)).transpose()?;
    Ok((has_guard, code, accum))
}

/// The output clause; the shape is text already.
pub(super) fn print_out(idx: &[Idx], labels: &[String], shape: &str, edge: Edge, fill: &[Scalar]) -> String {
    let fill = match fill {
        [] => String::new(),
        values => format!(" fill({})", commas(values.iter().map(|&value| typed(value)))),
    };
    format!("out {} of {shape}{}{fill}", print_indices(idx, labels), print_edge(edge))
}

/// A parsed output clause.
pub(super) struct Out<T> {
    pub(super) idx: Vec<Idx>,
    pub(super) shape: Vec<T>,
    pub(super) edge: Edge,
    pub(super) fill: Vec<Scalar>,
}

/// Reads what [`print_out`] writes.
pub(super) fn parse_out<T>(
    cursor: &mut Cursor<'_>,
    labels: &[String],
    shape: impl FnOnce(&mut Cursor<'_>) -> Result<Vec<T>>,
) -> Result<Out<T>> {
    cursor.expect("out")?;
    let idx = parse_indices(cursor, labels)?;
    cursor.expect("of")?;
    let shape = shape(cursor)?;
    let edge = parse_edge(cursor)?;
    let fill = if cursor.eat("fill") { cursor.list("(", ")", parse_typed)? } else { Vec::new() };
    Ok(Out { idx, shape, edge, fill })
}
