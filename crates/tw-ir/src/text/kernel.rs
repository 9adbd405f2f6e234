//! Kernels.

use super::accum::{parse_accum, print_accum};
use super::block_fn::parse_function;
use super::cursor::Cursor;
use super::decl::parse_id;
use super::index::{labels, parse_edge, parse_indices, print_edge, print_indices};
use super::mask::{expect_counts, print_counts};
use super::printer::{Printer, commas, quote};
use super::scalar::{parse_scalar, parse_typed, typed};
use super::spec::{parse_finish, parse_scan, parse_sort, print_finish, print_scan, print_sort};
use super::statement::{Vars, parse_calculation, parse_out, parse_vars, print_calculation, print_out, print_vars};
use super::types::{parse_axes, parse_axis, parse_plain_type, parse_shape, print_axis};
use crate::error::Result;
use crate::kernel::{Kernel, KernelRead, SortResults, Sorting, StatementKernel};
use crate::program::FunctionTable;
use crate::shape;
use crate::spec::{GatherSpec, ScatterSpec};

/// Writes `head` and the kernel.
pub(super) fn print_kernel(printer: &mut Printer, head: &str, kernel: &Kernel) {
    let head = format!("{head}{}", kernel.name());
    match kernel {
        Kernel::Load { source } => printer.line(format_args!("{head} {}", source.as_u32())),
        Kernel::Statement(statement) => print_statement(printer, &head, statement, &[]),
        Kernel::Fill(values) => {
            printer.line(format_args!("{head} ({})", commas(values.iter().map(|&value| typed(value)))));
        }
        Kernel::Combine(accum) | Kernel::ScanCarry(accum) => print_accum(printer, &format!("{head} "), accum, ""),
        Kernel::Finish(spec) => print_finish(printer, &head, spec),
        Kernel::Place { axis, shift } => printer.line(format_args!("{head} axis {axis} shift {shift}")),
        Kernel::ScanTotal { accum, axis, reverse } => {
            print_accum(printer, &format!("{head} axis {axis}{} ", flag(*reverse, "reverse")), accum, "");
        }
        Kernel::ScanBlock(spec) => print_scan(printer, &head, spec, ""),
        Kernel::Gather { spec: GatherSpec { axes, edge }, shape, fill } => {
            let (axes, shape, edge) = (commas(axes), shape::display(shape), print_edge(*edge));
            printer.line(format_args!("{head} axes [{axes}] of {shape}{edge} fill({})", typed(*fill)));
        }
        Kernel::Scatter { spec: ScatterSpec { axes, edge, accum }, shape } => {
            let (axes, shape, edge) = (commas(axes), shape::display(shape), print_edge(*edge));
            print_accum(printer, &format!("{head} axes [{axes}] of {shape}{edge} "), accum, "");
        }
        Kernel::Compact(counts) | Kernel::Expand(counts) => {
            printer.line(format_args!("{head}{}", print_counts(Some(counts))));
        }
        Kernel::SortRun(sorting) | Kernel::SortMerge(sorting) => {
            printer.line(format_args!("{head}{}", print_sorting(*sorting)));
        }
        Kernel::Call(function) => printer.line(format_args!("{head} {}", quote(function.0.name()))),
        Kernel::Store { sink } => printer.line(format_args!("{head} {}", sink.as_u32())),
    }
}

/// A flag with a space before it, or nothing.
pub(super) fn flag(set: bool, word: &str) -> String {
    if set { format!(" {word}") } else { String::new() }
}

pub(super) fn print_sorting(sorting: Sorting) -> String {
    let results = match sorting.results {
        SortResults::Both => "",
        SortResults::Values => " values",
        SortResults::Positions => " positions",
    };
    format!("{}{results}", print_sort(sorting.spec))
}

/// Reads what [`print_sorting`] writes.
pub(super) fn parse_sorting(cursor: &mut Cursor<'_>) -> Result<Sorting> {
    let spec = parse_sort(cursor)?;
    let results = match (cursor.eat("values"), cursor.eat("positions")) {
        (true, _) => SortResults::Values,
        (_, true) => SortResults::Positions,
        _ => SortResults::Both,
    };
    Ok(Sorting { spec, results })
}

/// Reads what [`print_kernel`] writes after the head.
pub(super) fn parse_kernel(cursor: &mut Cursor<'_>, functions: &FunctionTable) -> Result<Kernel> {
    let start = cursor.place();
    let word = cursor.word("a kernel")?;
    Ok(match word {
        "load" => Kernel::Load { source: parse_id(cursor)? },
        "statement" => Kernel::Statement(parse_statement(cursor)?.0),
        "fill" => Kernel::Fill(cursor.list("(", ")", parse_typed)?),
        "combine" => Kernel::Combine(parse_accum(cursor)?),
        "scan_carry" => Kernel::ScanCarry(parse_accum(cursor)?),
        "finish" => Kernel::Finish(parse_finish(cursor)?),
        "place" => {
            let axis = parse_axis_number(cursor)?;
            cursor.expect("shift")?;
            Kernel::Place { axis, shift: cursor.length()? }
        }
        "scan_total" => {
            let axis = parse_axis_number(cursor)?;
            Kernel::ScanTotal { axis, reverse: cursor.eat("reverse"), accum: parse_accum(cursor)? }
        }
        "scan_block" => Kernel::ScanBlock(parse_scan(cursor)?),
        "gather" | "scatter" => {
            cursor.expect("axes")?;
            let axes = parse_axes(cursor)?;
            cursor.expect("of")?;
            let shape = parse_shape(cursor)?;
            let edge = parse_edge(cursor)?;
            if word == "scatter" {
                return Ok(Kernel::Scatter { spec: ScatterSpec { axes, edge, accum: parse_accum(cursor)? }, shape });
            }
            cursor.expect("fill")?;
            cursor.expect("(")?;
            let fill = parse_typed(cursor)?;
            cursor.expect(")")?;
            Kernel::Gather { spec: GatherSpec { axes, edge }, shape, fill }
        }
        "compact" => Kernel::Compact(expect_counts(cursor)?),
        "expand" => Kernel::Expand(expect_counts(cursor)?),
        "sort_run" => Kernel::SortRun(parse_sorting(cursor)?),
        "sort_merge" => Kernel::SortMerge(parse_sorting(cursor)?),
        "call" => Kernel::Call(parse_function(cursor, functions)?),
        "store" => Kernel::Store { sink: parse_id(cursor)? },
        word => return Err(cursor.error_since(start, format_args!("`{word}` is not a kernel"))),
    })
}

/// The clause `axis 3`.
pub(super) fn parse_axis_number(cursor: &mut Cursor<'_>) -> Result<u32> {
    cursor.expect("axis")?;
    cursor.fitting()
}

/// Writes `head` and a statement kernel in braces. Variables without a name get a made-up one.
pub(super) fn print_statement(printer: &mut Printer, head: &str, kernel: &StatementKernel, names: &[String]) {
    let made_up: Vec<String> = (0..kernel.vars.len()).map(|k| format!("v{k}")).collect();
    let names = if names.is_empty() { &made_up } else { names };
    let labels = labels(names);
    printer.open(format_args!("{head} {{"));
    let ranges: Vec<String> = kernel.vars.iter().map(|axis| print_axis(axis, None)).collect();
    print_vars(printer, &labels, names, &ranges);
    for read in &kernel.reads {
        let idx = print_indices(&read.idx, &labels);
        let (dtype, shape, edge, fill) = (read.dtype, shape::display(&read.shape), print_edge(read.edge), read.fill);
        printer.line(format_args!("read {idx} of {dtype}{shape}{edge} fill({fill})"));
    }
    print_calculation(printer, kernel.has_guard, &kernel.code, kernel.accum.as_ref());
    let shape = shape::display(&kernel.out_shape);
    printer.line(print_out(&kernel.out_idx, &labels, &shape, kernel.out_edge, &kernel.out_fill));
    printer.close("}");
}

/// Reads what [`print_statement`] writes after the head: the kernel, and the names of its variables.
pub(super) fn parse_statement(cursor: &mut Cursor<'_>) -> Result<(StatementKernel, Vec<String>)> {
    cursor.expect("{")?;
    let Vars { labels, names, ranges } = parse_vars(cursor, |cursor| parse_axis(cursor, None))?;
    let mut reads = Vec::new();
    while cursor.eat("read") {
        let idx = parse_indices(cursor, &labels)?;
        cursor.expect("of")?;
        let (dtype, shape) = parse_plain_type(cursor)?;
        let edge = parse_edge(cursor)?;
        cursor.expect("fill")?;
        cursor.expect("(")?;
        let fill = parse_scalar(cursor, dtype)?;
        cursor.expect(")")?;
        reads.push(KernelRead { dtype, shape, idx, edge, fill });
    }
    let (has_guard, code, accum) = parse_calculation(cursor)?;
    let out = parse_out(cursor, &labels, parse_shape)?;
    cursor.expect("}")?;
    let kernel = StatementKernel {
        vars: ranges.into(),
        reads,
        code,
        has_guard,
        accum,
        out_idx: out.idx,
        out_edge: out.edge,
        out_shape: out.shape,
        out_fill: out.fill,
    };
    Ok((kernel, names))
}
