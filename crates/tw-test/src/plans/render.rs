//! What a plan file expects, as text: the same on every machine.

use std::collections::BTreeMap;

use tilewright::explain::{Fate, Kept, fates, why_kept};
use tw_ir::contraction::Contraction;
use tw_ir::plan::{Plan, RelOp};
use tw_ir::program::{Node, Op, Program, Region};
use tw_ir::schedule::Schedule;
use tw_ir::workflow::StmtId;
use tw_ir::{Error, Span, text};
use tw_plan::{PlanOptions, Planned, dissolve_selections, flops, is_fast_product, plan_segment};

use super::file::PlanCase;

/// What the planner makes of a file without some of its passes. Where planning fails, the text says why.
pub fn render(file: &PlanCase, without: &[&'static str]) -> String {
    rendered(file, without).unwrap_or_else(|problem| format!("not planned: {problem}\n"))
}

fn rendered(file: &PlanCase, without: &[&'static str]) -> Result<String, String> {
    let message = |error: Error| error.message().to_string();
    let options = PlanOptions { without: without.to_vec(), ..file.options.clone() };
    let dissolved = dissolve_selections(&file.program, &options).map_err(message)?;
    let program = file.with_counts(dissolved.unwrap_or_else(|| file.program.clone()))?;
    if let Some(node) = program.body.nodes.iter().find(|node| needs_data(node)) {
        let text = print_program(&program);
        return Ok(format!("{text}not planned: it needs data for {}\n", node.op.name()));
    }
    let planned = plan_segment(&program, &options).map_err(message)?;
    let mut text = print_routines(&program);
    text.push_str(&print_program(&planned.program));
    text.push_str(&print_plan(&planned.plan));
    text.push_str(&print_fates(file, &program, &planned));
    text.push_str(&print_tasks(&planned.schedule));
    Ok(text)
}

fn needs_data(node: &Node) -> bool {
    matches!(node.op, Op::Resolve | Op::While { .. } | Op::If { .. })
}

/// The text of a program without spans, and without values that nobody makes and extents that nobody has.
fn print_program(program: &Program) -> String {
    let mut program = program.clone();
    forget_spans(&mut program.body);
    let text = text::print_program(&program);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("unused ")).collect();
    let is_definition = |line: &str| line.trim_start().starts_with("extent #");
    let has_extent = |id: &str| {
        let mut words =
            lines.iter().filter(|line| !is_definition(line)).flat_map(|line| line.split([' ', ',', '[', ']']));
        words.any(|word| word == id)
    };
    let is_used = |line: &&&str| !is_definition(line) || line.split_whitespace().nth(1).is_some_and(has_extent);
    lines.iter().filter(is_used).map(|line| format!("{line}\n")).collect()
}

/// The routines of a program before it is rewritten, if it has any: what the planner expands.
fn print_routines(program: &Program) -> String {
    let text = print_program(program);
    let routines: Vec<&str> = text.lines().filter(|line| line.contains(" = routine(")).collect();
    if routines.is_empty() { String::new() } else { format!("routines {{\n{}\n}}\n", routines.join("\n")) }
}

fn forget_spans(region: &mut Region) {
    for node in &mut region.nodes {
        node.span = Span::None;
        match &mut node.op {
            Op::While { condition: first, body: second } | Op::If { then: first, otherwise: second } => {
                forget_spans(first);
                forget_spans(second);
            }
            _ => {}
        }
    }
}

/// Relations and steps of a plan. The program says what a statement computes; here stands how its variables are cut, and whether it is a product.
fn print_plan(plan: &Plan) -> String {
    let text = text::print_plan(plan);
    let mut steps = plan.steps.iter();
    let mut out = "plan {\n".to_string();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("    relation "));
    while let Some(line) = lines.next() {
        let is_step = line.starts_with("    step ");
        let step = if is_step { steps.next() } else { None };
        out.push_str(line);
        if line.ends_with('{') {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "    }").collect();
            let variables = inside.iter().find_map(|line| line.strip_prefix("        for "));
            out.push_str(&format!(" {} }}", variables.unwrap_or("..")));
        }
        if let Some(RelOp::Join { kernel, .. }) = step.map(|step| &step.op)
            && let Some(found) = Contraction::of_kernel(kernel)
        {
            let what = if is_fast_product(&found) { " product" } else { " reduction" };
            out.push_str(what);
        }
        out.push('\n');
    }
    out
}

/// What became of the operations of a program, and why some are stored that might have been fused.
fn print_fates(file: &PlanCase, program: &Program, planned: &Planned) -> String {
    let nodes = &program.body.nodes;
    let label = |k: usize| match nodes[k].span {
        Span::Text { start, .. } => file.labels[start as usize].clone(),
        _ => nodes[k].op.name().to_string(),
    };
    let labels = |all: &[usize]| all.iter().map(|&k| label(k)).collect::<Vec<_>>().join(", ");
    let mut text = "fusion {\n".to_string();
    for (k, fate) in fates(program, &planned.program).iter().enumerate() {
        let told = match fate {
            Fate::FusedInto(readers) => format!("fused into {}", labels(readers)),
            Fate::SameAs(twin) => format!("same as {}", label(*twin)),
            Fate::NotNeeded => "not needed".to_string(),
            Fate::Runs => match why_kept(program, k) {
                // For a reason that explanations do not know: an edge rule, a cut by a retile, too many reads.
                None if is_stored_between(program, &nodes[k]) => "stored".to_string(),
                None => continue,
                Some(Kept::Result) => "stored: a result that is read too".to_string(),
                Some(Kept::Shared(readers)) => format!("stored: read by {}", labels(&readers)),
                Some(Kept::Product(reader)) => format!("stored: {} is a product", label(reader)),
                Some(Kept::Repeated(reader)) => format!("stored: {} reads elements again", label(reader)),
                Some(Kept::Blocks(reader, what)) => format!("stored: {} is a {what}", label(reader)),
            },
        };
        text.push_str(&format!("    {}: {told}\n", label(k)));
    }
    text + "}\n"
}

/// True for elementwise statements that are read, and are no results.
fn is_stored_between(program: &Program, node: &Node) -> bool {
    let Op::Index(stmt) = &node.op else { return false };
    stmt.is_elementwise() && node.results.iter().all(|value| !program.body.results.contains(value))
}

/// How many tasks of every kind each statement has, and what all of them take.
fn print_tasks(schedule: &Schedule) -> String {
    let workflow = schedule.workflow();
    let mut counts: BTreeMap<StmtId, BTreeMap<&'static str, usize>> = BTreeMap::new();
    for task in schedule.order() {
        let entry = &workflow.kernels[workflow.kernel(task)];
        *counts.entry(entry.statement).or_default().entry(entry.kernel.name()).or_default() += 1;
    }
    let mut text = "tasks {\n".to_string();
    for (id, statement) in &workflow.statements {
        let Some(kinds) = counts.get(&id) else { continue };
        let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        text.push_str(&format!("    {id} {}: {}\n", statement.label, kinds.join(", ")));
    }
    let (tasks, blocks, regions) = (schedule.n_tasks(), workflow.n_blocks(), workflow.regions.len());
    let operands: usize = schedule.order().map(|task| workflow.present_operands(task).count()).sum();
    text.push_str(&format!("    total: {tasks} tasks, {blocks} blocks, {operands} operands, {regions} regions\n"));
    text.push_str(&format!("    {} operations\n    peak_bytes: {}\n}}\n", flops(workflow), schedule.peak_bytes()));
    text
}
