//! The operators of programs.

use std::sync::Arc;

use super::accum::{parse_accum, print_accum};
use super::block_fn::{parse_call, print_call};
use super::cursor::Cursor;
use super::index::{labels, parse_edge, parse_indices, print_edge, print_indices};
use super::kernel::parse_axis_number;
use super::mask::{parse_counts, print_counts};
use super::printer::{Printer, commas, quote};
use super::program::{ProgramParser, print_region};
use super::routine::{parse_routine, print_routine};
use super::spec::{parse_scan, parse_sort, print_scan, print_sort};
use super::statement::{Out, Vars, parse_calculation, parse_out, parse_vars, print_calculation, print_out, print_vars};
use super::types::{
    parse_array, parse_axes, parse_extent, parse_extents, parse_tiling, parse_type, parse_value, print_array,
    print_extents, print_tiling,
};
use crate::error::Result;
use crate::index::Access;
use crate::program::{IndexStmt, IndexVar, Node, Op, Output, Program, SourceOp, ValueId};
use crate::spec::{GatherSpec, ScatterSpec};

/// Writes `head`, the operator with its arguments, and `tail`.
pub(super) fn print_op(printer: &mut Printer, program: &Program, node: &Node, head: &str, tail: &str) {
    let args = if node.args.is_empty() { String::new() } else { format!("({})", commas(&node.args)) };
    let head = format!("{head}{}{args}", node.op.name());
    match &node.op {
        Op::Source(SourceOp::Input { name, ty }) => {
            let is_declared = node.results.first().is_some_and(|&value| program.ty(value) == ty);
            let ty = if is_declared { String::new() } else { format!(" as {ty}") };
            printer.line(format_args!("{head} input {}{ty}{tail}", quote(name)));
        }
        Op::Source(SourceOp::Constant(array)) => print_array(printer, &format!("{head} constant "), array, tail),
        Op::Index(stmt) => {
            printer.open(format_args!("{head} {{"));
            print_statement(printer, stmt, &node.args);
            printer.close(format_args!("}}{tail}"));
        }
        Op::Scan(spec) => print_scan(printer, &head, spec, tail),
        Op::Gather(GatherSpec { axes, edge }) => {
            printer.line(format_args!("{head} axes [{}]{}{tail}", commas(axes), print_edge(*edge)));
        }
        Op::Scatter { spec: ScatterSpec { axes, accum, edge }, extents } => {
            let (axes, extents) = (commas(axes), print_extents(extents));
            let head = format!("{head} axes [{axes}] extents {extents}{} ", print_edge(*edge));
            print_accum(printer, &head, accum, tail);
        }
        Op::Compact { extent, counts } => {
            printer.line(format_args!("{head} extent {extent}{}{tail}", print_counts(counts.as_ref())));
        }
        Op::Expand { counts } => printer.line(format_args!("{head}{}{tail}", print_counts(counts.as_ref()))),
        Op::Sort { spec, limit } => {
            let limit = limit.map_or_else(String::new, |n| format!(" limit {n}"));
            printer.line(format_args!("{head}{}{limit}{tail}", print_sort(*spec)));
        }
        Op::Reshape { shape } => printer.line(format_args!("{head} to {}{tail}", print_extents(shape))),
        Op::Retile { tiling } => printer.line(format_args!("{head} {}{tail}", print_tiling(tiling, &[]))),
        Op::Concat { axis } => printer.line(format_args!("{head} axis {axis}{tail}")),
        Op::BlockFn(call) => printer.line(format_args!("{head} {}{tail}", print_call(call))),
        Op::Routine(spec) => printer.line(format_args!("{head} {}{tail}", print_routine(spec))),
        Op::Resolve => printer.line(format_args!("{head}{tail}")),
        Op::While { condition, body } => {
            printer.open(format_args!("{head} {{"));
            print_region(printer, program, "condition", condition);
            print_region(printer, program, "body", body);
            printer.close(format_args!("}}{tail}"));
        }
        Op::If { then, otherwise } => {
            printer.open(format_args!("{head} {{"));
            print_region(printer, program, "then", then);
            print_region(printer, program, "else", otherwise);
            printer.close(format_args!("}}{tail}"));
        }
        Op::Store { path } => printer.line(format_args!("{head} {}{tail}", quote(path))),
    }
}

/// Reads what [`print_op`] writes between head and tail. `results` have been declared already.
pub(super) fn parse_op(
    parser: &mut ProgramParser<'_>,
    cursor: &mut Cursor<'_>,
    results: &[ValueId],
) -> Result<(Op, Vec<ValueId>)> {
    let start = cursor.place();
    let word = cursor.word("an operator")?;
    let args = if cursor.sees("(") { cursor.list("(", ")", parse_value)? } else { Vec::new() };
    let op = match word {
        "source" if cursor.eat("constant") => Op::Source(SourceOp::Constant(Arc::new(parse_array(cursor)?))),
        "source" => {
            cursor.expect("input")?;
            let name = cursor.string()?;
            let declared = results.first().and_then(|&value| parser.type_of(value)).cloned();
            let ty = match declared {
                Some(ty) if !cursor.sees("as") => ty,
                _ => {
                    cursor.expect("as")?;
                    parse_type(cursor)?
                }
            };
            Op::Source(SourceOp::Input { name, ty })
        }
        "index" => Op::Index(parse_statement(cursor, &args)?),
        "scan" => Op::Scan(parse_scan(cursor)?),
        "gather" => {
            cursor.expect("axes")?;
            Op::Gather(GatherSpec { axes: parse_axes(cursor)?, edge: parse_edge(cursor)? })
        }
        "scatter" => {
            cursor.expect("axes")?;
            let axes = parse_axes(cursor)?;
            cursor.expect("extents")?;
            let extents = parse_extents(cursor)?;
            Op::Scatter { spec: ScatterSpec { axes, edge: parse_edge(cursor)?, accum: parse_accum(cursor)? }, extents }
        }
        "compact" => {
            cursor.expect("extent")?;
            Op::Compact { extent: parse_extent(cursor)?, counts: parse_counts(cursor)? }
        }
        "expand" => Op::Expand { counts: parse_counts(cursor)? },
        "sort" => {
            let spec = parse_sort(cursor)?;
            let limit = if cursor.eat("limit") { Some(cursor.length()?) } else { None };
            Op::Sort { spec, limit }
        }
        "reshape" => {
            cursor.expect("to")?;
            Op::Reshape { shape: parse_extents(cursor)? }
        }
        "retile" => Op::Retile { tiling: parse_tiling(cursor, &[])? },
        "concat" => Op::Concat { axis: parse_axis_number(cursor)? },
        "block_fn" => Op::BlockFn(parse_call(cursor, parser.functions)?),
        "routine" => Op::Routine(parse_routine(cursor, parser.functions)?),
        "resolve" => Op::Resolve,
        "while" | "if" => {
            cursor.expect("{")?;
            let op = if word == "while" {
                let condition = parser.region(cursor, "condition")?;
                Op::While { condition, body: parser.region(cursor, "body")? }
            } else {
                let then = parser.region(cursor, "then")?;
                Op::If { then, otherwise: parser.region(cursor, "else")? }
            };
            cursor.expect("}")?;
            op
        }
        "store" => Op::Store { path: cursor.string()? },
        word => return Err(cursor.error_since(start, format_args!("`{word}` is not an operator"))),
    };
    Ok((op, args))
}

fn print_statement(printer: &mut Printer, stmt: &IndexStmt, args: &[ValueId]) {
    let names = stmt.var_names();
    let labels = labels(&names);
    let ranges: Vec<String> = stmt.vars.iter().map(|var| var.extent.to_string()).collect();
    print_vars(printer, &labels, &names, &ranges);
    for read in &stmt.reads {
        let (operand, edge) = (print_operand(args, read.operand), print_edge(read.edge));
        printer.line(format_args!("read {operand}{}{edge}", print_indices(&read.idx, &labels)));
    }
    print_calculation(printer, stmt.has_guard, &stmt.code, stmt.accum.as_ref());
    let out = &stmt.out;
    printer.line(print_out(&out.idx, &labels, &print_extents(&out.shape), out.edge, &out.fill));
}

/// An operand by its value; if the value is an argument twice, with its position.
fn print_operand(args: &[ValueId], operand: u32) -> String {
    match args.get(operand as usize) {
        Some(value) if args.iter().position(|arg| arg == value) == Some(operand as usize) => value.to_string(),
        Some(value) => format!("{value}#{operand}"),
        None => format!("#{operand}"),
    }
}

fn parse_operand(cursor: &mut Cursor<'_>, args: &[ValueId]) -> Result<u32> {
    let start = cursor.place();
    let value = cursor.sees("%").then(|| parse_value(cursor)).transpose()?;
    let position =
        if cursor.eat("#") { Some(cursor.fitting()?) } else { args.iter().position(|arg| Some(*arg) == value) };
    match position {
        Some(position) if args.get(position).copied() == value => Ok(position as u32),
        _ => Err(cursor.error_since(start, "this is not an argument of the statement")),
    }
}

fn parse_statement(cursor: &mut Cursor<'_>, args: &[ValueId]) -> Result<IndexStmt> {
    cursor.expect("{")?;
    let Vars { labels, names, ranges } = parse_vars(cursor, parse_extent)?;
    let vars = names.into_iter().zip(ranges).map(|(name, extent)| IndexVar { name, extent }).collect();
    let mut reads = Vec::new();
    while cursor.eat("read") {
        let operand = parse_operand(cursor, args)?;
        reads.push(Access { operand, idx: parse_indices(cursor, &labels)?, edge: parse_edge(cursor)? });
    }
    let (has_guard, code, accum) = parse_calculation(cursor)?;
    let Out { idx, shape, edge, fill } = parse_out(cursor, &labels, parse_extents)?;
    cursor.expect("}")?;
    Ok(IndexStmt { vars, reads, code, has_guard, accum, out: Output { idx, edge, shape, fill } })
}
