//! Schedules: a workflow, steps and, for several ranks, a placement. Everything else follows from these.

use cranelift_entity::EntityRef;

use super::cursor::Cursor;
use super::printer::{Printer, commas, quote};
use super::program::well_formed;
use super::types::parse_box;
use super::workflow::{read_workflow, write_workflow};
use crate::error::Result;
use crate::program::FunctionTable;
use crate::schedule::{Instance, InstanceId, Memory, Move, Placement, Schedule, Step, StepKind};
use crate::workflow::{BlockId, TaskId, verify};

/// A schedule as text; see [`parse_schedule`].
pub fn print_schedule(schedule: &Schedule) -> String {
    let mut printer = Printer::default();
    printer.line(format_args!("// peak {} bytes, hash {}", schedule.peak_bytes(), schedule.hash().short()));
    let budget = schedule.budget().map_or_else(String::new, |budget| format!("budget {budget} "));
    printer.open(format_args!("schedule {} {budget}{{", quote(schedule.provider())));
    write_workflow(&mut printer, schedule.workflow());
    match schedule.placement() {
        None => {
            let order: Vec<String> = schedule.order().map(|task| task.to_string()).collect();
            printer.wrapped("order (", &order, " ", ")");
        }
        Some(placement) => write_placement(&mut printer, schedule, placement),
    }
    printer.close("}");
    printer.finish()
}

fn write_placement(printer: &mut Printer, schedule: &Schedule, placement: &Placement) {
    printer.open(format_args!("placement {} {{", placement.n_ranks()));
    let sites: Vec<String> = placement.sites().iter().map(u32::to_string).collect();
    printer.wrapped("sites (", &sites, " ", ")");
    for region in placement.regions() {
        printer.line(format_args!("region {region}"));
    }
    for k in 0..placement.n_instances() {
        let (id, Instance { block, region, memory }) = (InstanceId::new(k), *placement.instance(InstanceId::new(k)));
        let memory = match memory {
            Memory::Host(rank) => format!("host {rank}"),
            Memory::Disk(rank) => format!("disk {rank}"),
        };
        printer.line(format_args!("instance {id} {block} region {region} {memory}"));
    }
    for (position, step) in schedule.steps().iter().enumerate() {
        let reads = schedule.reads(position).map(|id| id.map_or_else(|| "none".to_string(), |id| id.to_string()));
        let (reads, writes) = (commas(reads), commas(schedule.writes(position)));
        match step.kind() {
            StepKind::Task(task) => printer.line(format_args!("{task} ({reads}) -> ({writes})")),
            StepKind::Move(_) => printer.line(format_args!("move {reads} -> {writes}")),
        }
    }
    let results: Vec<String> = schedule.results().map(|id| id.to_string()).collect();
    printer.wrapped("results (", &results, " ", ")");
    printer.close("}");
}

/// Reads a workflow and its steps, verifies and freezes them. `parse_schedule(print_schedule(s))` has the steps and hash of `s`.
pub fn parse_schedule(text: &str, functions: &FunctionTable) -> Result<Schedule> {
    let cursor = &mut Cursor::new(text);
    cursor.expect("schedule")?;
    let provider = cursor.string()?;
    let budget = if cursor.eat("budget") { Some(cursor.fitting()?) } else { None };
    cursor.expect("{")?;
    let workflow = read_workflow(cursor, functions)?;
    let placed = if cursor.eat("placement") { Some(read_placement(cursor)?) } else { None };
    let mut order = Vec::new();
    if placed.is_none() {
        cursor.expect("order")?;
        cursor.expect("(")?;
        order = cursor.until(")", |cursor| cursor.id("t").map(TaskId::from_u32))?;
    }
    cursor.expect("}")?;
    cursor.end()?;
    well_formed(verify(&workflow), text)?;
    let frozen = match placed {
        None => Schedule::freeze(workflow, order, &provider).map(|schedule| schedule.with_budget(budget)),
        Some((steps, placement)) => Schedule::freeze_placed(workflow, steps, placement, budget, &provider),
    };
    well_formed(frozen, text)
}

fn read_placement(cursor: &mut Cursor<'_>) -> Result<(Vec<Step>, Placement)> {
    let n_ranks = cursor.fitting()?;
    cursor.expect("{")?;
    cursor.expect("sites")?;
    cursor.expect("(")?;
    let sites = cursor.until(")", Cursor::fitting)?;
    let mut regions = Vec::new();
    while cursor.eat("region") {
        regions.push(parse_box(cursor)?);
    }
    let mut placement = Placement::new(n_ranks, sites, regions);
    while cursor.eat("instance") {
        cursor.id("i")?;
        let block = BlockId::from_u32(cursor.id("b")?);
        cursor.expect("region")?;
        let region = cursor.fitting()?;
        let memory = if cursor.eat("host") {
            Memory::Host(cursor.fitting()?)
        } else {
            cursor.expect("disk")?;
            Memory::Disk(cursor.fitting()?)
        };
        placement.add_instance(Instance { block, region, memory });
    }
    let mut steps = Vec::new();
    while !cursor.eat("results") {
        steps.push(read_step(cursor, &mut placement)?);
    }
    cursor.expect("(")?;
    placement.set_results(cursor.until(")", instance)?);
    cursor.expect("}")?;
    Ok((steps, placement))
}

fn read_step(cursor: &mut Cursor<'_>, placement: &mut Placement) -> Result<Step> {
    if cursor.eat("move") {
        let from = instance(cursor)?;
        cursor.expect("->")?;
        return Ok(placement.add_move(Move { from, to: instance(cursor)? }));
    }
    let task = TaskId::from_u32(cursor.id("t")?);
    let reads =
        cursor.list("(", ")", |cursor| if cursor.eat("none") { Ok(None) } else { instance(cursor).map(Some) })?;
    cursor.expect("->")?;
    let writes = cursor.list("(", ")", instance)?;
    placement.add_task(reads, writes);
    Ok(Step::task(task))
}

fn instance(cursor: &mut Cursor<'_>) -> Result<InstanceId> {
    cursor.id("i").map(InstanceId::from_u32)
}
