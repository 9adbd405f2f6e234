//! The descriptions of operations that several levels share.

use super::accum::{parse_accum, print_accum};
use super::cursor::Cursor;
use super::kernel::{flag, parse_axis_number};
use super::printer::Printer;
use crate::error::Result;
use crate::spec::{FinishSpec, ScanSpec, SortSpec};

pub(super) fn print_scan(printer: &mut Printer, head: &str, spec: &ScanSpec, tail: &str) {
    let flags = flag(spec.exclusive, "exclusive") + &flag(spec.reverse, "reverse");
    print_accum(printer, &format!("{head} axis {}{flags} ", spec.axis), &spec.accum, tail);
}

/// Reads what [`print_scan`] writes between head and tail.
pub(super) fn parse_scan(cursor: &mut Cursor<'_>) -> Result<ScanSpec> {
    let axis = parse_axis_number(cursor)?;
    let (exclusive, reverse) = (cursor.eat("exclusive"), cursor.eat("reverse"));
    Ok(ScanSpec { axis, exclusive, reverse, accum: parse_accum(cursor)? })
}

pub(super) fn print_finish(printer: &mut Printer, head: &str, spec: &FinishSpec) {
    print_accum(printer, &format!("{head}{} ", flag(spec.tracked, "tracked")), &spec.accum, "");
}

/// Reads what [`print_finish`] writes after the head.
pub(super) fn parse_finish(cursor: &mut Cursor<'_>) -> Result<FinishSpec> {
    Ok(FinishSpec { tracked: cursor.eat("tracked"), accum: parse_accum(cursor)? })
}

pub(super) fn print_sort(spec: SortSpec) -> String {
    format!(" axis {}{}", spec.axis, flag(spec.descending, "descending"))
}

/// Reads what [`print_sort`] writes.
pub(super) fn parse_sort(cursor: &mut Cursor<'_>) -> Result<SortSpec> {
    Ok(SortSpec { axis: parse_axis_number(cursor)?, descending: cursor.eat("descending") })
}
