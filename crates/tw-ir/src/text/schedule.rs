//! Schedules: a workflow and an order. Everything else follows from these.

use super::cursor::Cursor;
use super::printer::{Printer, quote};
use super::program::well_formed;
use super::workflow::{read_workflow, write_workflow};
use crate::error::Result;
use crate::program::FunctionTable;
use crate::schedule::Schedule;
use crate::workflow::{TaskId, verify};

/// A schedule as text; see [`parse_schedule`].
pub fn print_schedule(schedule: &Schedule) -> String {
    let mut printer = Printer::default();
    printer.line(format_args!("// peak {} bytes, hash {:#018x}", schedule.peak_bytes(), schedule.hash()));
    printer.open(format_args!("schedule {} {{", quote(schedule.provider())));
    write_workflow(&mut printer, schedule.workflow());
    let order: Vec<String> = schedule.order().iter().map(TaskId::to_string).collect();
    printer.wrapped("order (", &order, " ", ")");
    printer.close("}");
    printer.finish()
}

/// Reads a workflow and an order, verifies and freezes them. `parse_schedule(print_schedule(s))` has the order and hash of `s`.
pub fn parse_schedule(text: &str, functions: &FunctionTable) -> Result<Schedule> {
    let cursor = &mut Cursor::new(text);
    cursor.expect("schedule")?;
    let provider = cursor.string()?;
    cursor.expect("{")?;
    let workflow = read_workflow(cursor, functions)?;
    cursor.expect("order")?;
    cursor.expect("(")?;
    let order = cursor.until(")", |cursor| cursor.id("t").map(TaskId::from_u32))?;
    cursor.expect("}")?;
    cursor.end()?;
    well_formed(verify(&workflow), text)?;
    well_formed(Schedule::freeze(workflow, order, &provider), text)
}
