//! Plans.

use super::accum::{parse_accum, print_accum};
use super::block_fn::{parse_call, print_call};
use super::cursor::Cursor;
use super::decl::{expect_id, parse_decls, parse_id, parse_statement_id, print_decls};
use super::index::{parse_edge, print_edge};
use super::kernel::{parse_axis_number, parse_sorting, parse_statement, print_sorting, print_statement};
use super::mask::{expect_counts, print_counts};
use super::printer::{Printer, commas, quote};
use super::program::well_formed;
use super::scalar::{parse_typed, typed};
use super::spec::{parse_finish, parse_scan, print_finish, print_scan};
use super::types::{parse_axes, parse_grid, parse_plain_type, print_grid};
use crate::error::Result;
use crate::plan::{BlockRelation, Distribution, Plan, PlanStep, RelId, RelOp, verify};
use crate::program::FunctionTable;
use crate::spec::{GatherSpec, ScatterSpec};

/// A plan as text; see [`parse_plan`].
pub fn print_plan(plan: &Plan) -> String {
    let mut printer = Printer::default();
    printer.open("plan {");
    print_decls(&mut printer, &plan.statements, &plan.sources, &plan.sinks);
    for (id, relation) in &plan.relations {
        let (name, shape) = (quote(&relation.name), commas(&relation.shape));
        let grid = print_grid("grid", &relation.grid, &relation.shape);
        let distribution = relation.distribution.as_ref().map(print_distribution).unwrap_or_default();
        printer.line(format_args!("relation {id} {name} {}[{shape}] {grid}{distribution}", relation.dtype));
    }
    for step in &plan.steps {
        print_step(&mut printer, step);
    }
    for (name, relation) in &plan.outputs {
        printer.line(format_args!("output {} = {relation}", quote(name)));
    }
    printer.close("}");
    printer.finish()
}

/// Reads a plan and verifies it. `parse_plan(print_plan(p))` is `p`.
pub fn parse_plan(text: &str, functions: &FunctionTable) -> Result<Plan> {
    let cursor = &mut Cursor::new(text);
    cursor.expect("plan")?;
    cursor.expect("{")?;
    let decls = parse_decls(cursor)?;
    let n_statements = decls.statements.len();
    let mut plan = Plan { statements: decls.statements, sources: decls.sources, sinks: decls.sinks, ..Plan::default() };
    while cursor.eat("relation") {
        expect_id(cursor, "r", plan.relations.len())?;
        let name = cursor.string()?;
        let (dtype, shape) = parse_plain_type(cursor)?;
        let grid = parse_grid(cursor, "grid", &shape)?;
        let distribution = cursor.sees("split").then(|| parse_distribution(cursor)).transpose()?;
        plan.relations.push(BlockRelation { name, dtype, shape, grid, distribution });
    }
    while cursor.eat("step") {
        plan.steps.push(parse_step(cursor, n_statements, functions)?);
    }
    while cursor.eat("output") {
        let name = cursor.string()?;
        cursor.expect("=")?;
        plan.outputs.push((name, parse_relation(cursor)?));
    }
    cursor.expect("}")?;
    cursor.end()?;
    well_formed(verify(&plan), text)?;
    Ok(plan)
}

fn print_distribution(distribution: &Distribution) -> String {
    let split = commas(distribution.split.iter().map(|axis| axis.map_or("none".to_string(), |axis| axis.to_string())));
    format!(" split [{split}] partial [{}]", commas(&distribution.partial))
}

fn parse_distribution(cursor: &mut Cursor<'_>) -> Result<Distribution> {
    cursor.expect("split")?;
    let split =
        cursor.list("[", "]", |cursor| if cursor.eat("none") { Ok(None) } else { cursor.fitting().map(Some) })?;
    cursor.expect("partial")?;
    Ok(Distribution { split, partial: parse_axes(cursor)? })
}

fn print_step(printer: &mut Printer, step: &PlanStep) {
    let (inputs, outputs) = (commas(&step.inputs), commas(&step.outputs));
    let head = format!("step {} ({outputs}) = {}({inputs})", step.statement, step.op.name());
    match &step.op {
        RelOp::Load { source } => printer.line(format_args!("{head} {}", source.as_u32())),
        RelOp::Join { kernel, names, chains } => {
            print_statement(printer, &format!("{head} chains {chains}"), kernel, names);
        }
        RelOp::Finish(spec) => print_finish(printer, &head, spec),
        RelOp::Retile => printer.line(head),
        RelOp::Concat { axis } => printer.line(format_args!("{head} axis {axis}")),
        RelOp::Scan(spec) => print_scan(printer, &head, spec, ""),
        RelOp::Gather { spec: GatherSpec { axes, edge }, fill } => {
            let (axes, edge) = (commas(axes), print_edge(*edge));
            printer.line(format_args!("{head} axes [{axes}]{edge} fill({})", typed(*fill)));
        }
        RelOp::Scatter { spec: ScatterSpec { axes, edge, accum }, chains } => {
            let (axes, edge) = (commas(axes), print_edge(*edge));
            print_accum(printer, &format!("{head} axes [{axes}]{edge} chains {chains} "), accum, "");
        }
        RelOp::Compact(counts) | RelOp::Expand(counts) => {
            printer.line(format_args!("{head}{}", print_counts(Some(counts))));
        }
        RelOp::Sort(sorting) => printer.line(format_args!("{head}{}", print_sorting(*sorting))),
        RelOp::BlockFn(call) => printer.line(format_args!("{head} {}", print_call(call))),
        RelOp::Store { sink } => printer.line(format_args!("{head} {}", sink.as_u32())),
    }
}

fn parse_step(cursor: &mut Cursor<'_>, n_statements: usize, functions: &FunctionTable) -> Result<PlanStep> {
    let statement = parse_statement_id(cursor, n_statements)?;
    let outputs = cursor.list("(", ")", parse_relation)?;
    cursor.expect("=")?;
    let start = cursor.place();
    let word = cursor.word("an operator")?;
    let inputs = cursor.list("(", ")", parse_relation)?;
    let op = match word {
        "load" => RelOp::Load { source: parse_id(cursor)? },
        "join" => {
            let chains = parse_chains(cursor)?;
            let (kernel, names) = parse_statement(cursor)?;
            RelOp::Join { kernel: Box::new(kernel), names, chains }
        }
        "finish" => RelOp::Finish(parse_finish(cursor)?),
        "retile" => RelOp::Retile,
        "concat" => RelOp::Concat { axis: parse_axis_number(cursor)? },
        "scan" => RelOp::Scan(parse_scan(cursor)?),
        "gather" => {
            cursor.expect("axes")?;
            let (axes, edge) = (parse_axes(cursor)?, parse_edge(cursor)?);
            cursor.expect("fill")?;
            cursor.expect("(")?;
            let fill = parse_typed(cursor)?;
            cursor.expect(")")?;
            RelOp::Gather { spec: GatherSpec { axes, edge }, fill }
        }
        "scatter" => {
            cursor.expect("axes")?;
            let (axes, edge) = (parse_axes(cursor)?, parse_edge(cursor)?);
            let chains = parse_chains(cursor)?;
            RelOp::Scatter { spec: ScatterSpec { axes, edge, accum: parse_accum(cursor)? }, chains }
        }
        "compact" => RelOp::Compact(expect_counts(cursor)?),
        "expand" => RelOp::Expand(expect_counts(cursor)?),
        "sort" => RelOp::Sort(parse_sorting(cursor)?),
        "block_fn" => RelOp::BlockFn(parse_call(cursor, functions)?),
        "store" => RelOp::Store { sink: parse_id(cursor)? },
        word => return Err(cursor.error_since(start, format_args!("`{word}` is not an operator"))),
    };
    Ok(PlanStep { op, inputs, outputs, statement })
}

fn parse_chains(cursor: &mut Cursor<'_>) -> Result<u32> {
    cursor.expect("chains")?;
    cursor.fitting()
}

fn parse_relation(cursor: &mut Cursor<'_>) -> Result<RelId> {
    cursor.id("r").map(RelId::from_u32)
}
