//! Workflows.

use super::cursor::Cursor;
use super::decl::{expect_id, parse_decls, parse_statement_id, print_decls};
use super::kernel::{parse_kernel, print_kernel};
use super::printer::{Printer, commas, quote};
use super::program::well_formed;
use super::scalar::parse_dtype;
use super::types::{parse_box, parse_format, parse_grid, parse_plain_type, print_format, print_grid};
use crate::error::Result;
use crate::program::FunctionTable;
use crate::workflow::{
    BlockId, BlockSet, BlockSetId, Boxes, KernelEntry, KernelId, MaybeOperand, Operand, OutputDecl, Size, Sizes,
    TaskKind, Workflow, verify,
};

/// The numbers of this many blocks are reserved without asking whether the text is long enough to use them.
const FREE_BLOCKS: usize = 1 << 20;

/// A workflow as text; see [`parse_workflow`].
pub fn print_workflow(workflow: &Workflow) -> String {
    let mut printer = Printer::default();
    write_workflow(&mut printer, workflow);
    printer.finish()
}

/// Reads a workflow and verifies it. `parse_workflow(print_workflow(w))` is `w`.
pub fn parse_workflow(text: &str, functions: &FunctionTable) -> Result<Workflow> {
    let cursor = &mut Cursor::new(text);
    let workflow = read_workflow(cursor, functions)?;
    cursor.end()?;
    well_formed(verify(&workflow), text)?;
    Ok(workflow)
}

pub(super) fn write_workflow(printer: &mut Printer, workflow: &Workflow) {
    printer.open("workflow {");
    print_decls(printer, &workflow.statements, &workflow.sources, &workflow.sinks);
    for (id, entry) in &workflow.kernels {
        print_kernel(printer, &format!("kernel {id} {} = ", entry.statement), &entry.kernel);
    }
    for (id, set) in &workflow.sets {
        let boxes = match &set.boxes {
            Boxes::Grid(axes) => print_grid("grid", axes, &set.shape),
            Boxes::List(list) => format!("boxes({})", commas(list)),
        };
        let (name, ty) = (quote(&set.name), format!("{}[{}]", set.dtype, commas(&set.shape)));
        let stored = format!("{}{}", print_format(&set.format), print_sizes(&set.sizes));
        printer.line(format_args!("blocks {id} {} {name} {ty} {boxes}{stored} from b{}", set.statement, set.first));
    }
    for region in &workflow.regions {
        printer.line(format_args!("region {region}"));
    }
    for output in &workflow.outputs {
        printer.line(format_args!("output {} = {} {}", quote(&output.name), output.set, output.dtype));
    }
    for task in workflow.tasks() {
        let kind = match workflow.kind(task) {
            TaskKind::Load => "load",
            TaskKind::Apply => "apply",
            TaskKind::Fold => "fold",
        };
        let (kernel, point, position) = (workflow.kernel(task), workflow.point(task), workflow.position(task));
        let operands = commas(workflow.operands(task).iter().map(print_operand));
        let outputs = commas(workflow.outputs(task));
        printer.line(format_args!("{task} {kind} {kernel} at {point} turn {position} ({operands}) -> ({outputs})"));
    }
    printer.close("}");
}

/// Sizes after a blank: `16` is exact, `16..64` an estimate and the most; nothing if sizes follow from boxes.
fn print_sizes(sizes: &Sizes) -> String {
    let Sizes::List(list) = sizes else { return String::new() };
    let size = |size: &Size| match size {
        Size::Exact(bytes) => bytes.to_string(),
        Size::Bound { estimate, max } => format!("{estimate}..{max}"),
    };
    format!(" sizes({})", commas(list.iter().map(size)))
}

fn parse_sizes(cursor: &mut Cursor<'_>) -> Result<Sizes> {
    if !cursor.eat("sizes") {
        return Ok(Sizes::Dense);
    }
    let list = cursor.list("(", ")", |cursor| {
        let estimate = cursor.length()?;
        Ok(if cursor.eat("..") { Size::Bound { estimate, max: cursor.length()? } } else { Size::Exact(estimate) })
    })?;
    Ok(Sizes::List(list))
}

fn print_operand(operand: &MaybeOperand) -> String {
    match operand.expand() {
        None => "none".to_string(),
        Some(Operand { block, region: 0 }) => block.to_string(),
        Some(Operand { block, region }) => format!("{block} region {region}"),
    }
}

/// Reads what [`write_workflow`] writes, without verifying it.
pub(super) fn read_workflow(cursor: &mut Cursor<'_>, functions: &FunctionTable) -> Result<Workflow> {
    cursor.expect("workflow")?;
    cursor.expect("{")?;
    let decls = parse_decls(cursor)?;
    let n_statements = decls.statements.len();
    let mut workflow = Workflow::default();
    workflow.statements = decls.statements;
    workflow.sources = decls.sources;
    workflow.sinks = decls.sinks;
    while cursor.eat("kernel") {
        expect_id(cursor, "k", workflow.kernels.len())?;
        let statement = parse_statement_id(cursor, n_statements)?;
        cursor.expect("=")?;
        workflow.kernels.push(KernelEntry { kernel: parse_kernel(cursor, functions)?, statement });
    }
    while cursor.eat("blocks") {
        parse_set(cursor, &mut workflow)?;
    }
    while cursor.eat("region") {
        workflow.regions.push(parse_box(cursor)?);
    }
    while cursor.eat("output") {
        let name = cursor.string()?;
        cursor.expect("=")?;
        let set = BlockSetId::from_u32(cursor.id("set")?);
        workflow.outputs.push(OutputDecl { name, set, dtype: parse_dtype(cursor)? });
    }
    while !cursor.eat("}") {
        parse_task(cursor, &mut workflow)?;
    }
    Ok(workflow)
}

fn parse_set(cursor: &mut Cursor<'_>, workflow: &mut Workflow) -> Result<()> {
    let start = cursor.place();
    expect_id(cursor, "set", workflow.sets.len())?;
    let statement = parse_statement_id(cursor, workflow.statements.len())?;
    let name = cursor.string()?;
    let (dtype, shape) = parse_plain_type(cursor)?;
    let boxes = if cursor.sees("grid") {
        Boxes::Grid(parse_grid(cursor, "grid", &shape)?)
    } else {
        cursor.expect("boxes")?;
        Boxes::List(cursor.list("(", ")", parse_box)?)
    };
    // A block takes memory once its set is added; the task that computes it takes at least a byte of text.
    let limit = (cursor.text_len().max(FREE_BLOCKS) - workflow.n_blocks().min(FREE_BLOCKS)) as u64;
    if boxes.n_blocks() > limit {
        return Err(cursor.error_since(start, "more blocks than this text can make"));
    }
    let (format, sizes) = (parse_format(cursor, shape.len())?, parse_sizes(cursor)?);
    cursor.expect("from")?;
    expect_id(cursor, "b", workflow.n_blocks())?;
    match workflow.add_set(BlockSet { name, dtype, shape, boxes, format, sizes, first: 0, statement }) {
        Some(_) => Ok(()),
        None => Err(cursor.error_since(start, "more blocks than can be numbered")),
    }
}

fn parse_task(cursor: &mut Cursor<'_>, workflow: &mut Workflow) -> Result<()> {
    expect_id(cursor, "t", workflow.n_tasks())?;
    let kinds = [("load", TaskKind::Load), ("apply", TaskKind::Apply), ("fold", TaskKind::Fold)];
    let Some((_, kind)) = kinds.into_iter().find(|(word, _)| cursor.eat(word)) else {
        return Err(cursor.error("expected load, apply or fold"));
    };
    let kernel = KernelId::from_u32(cursor.id("k")?);
    cursor.expect("at")?;
    let point = cursor.fitting()?;
    cursor.expect("turn")?;
    let position = cursor.fitting()?;
    let operands = cursor.list("(", ")", |cursor| {
        if cursor.eat("none") {
            return Ok(MaybeOperand::default());
        }
        let block = parse_block(cursor)?;
        let region = if cursor.eat("region") { cursor.fitting()? } else { 0 };
        Ok(Operand { block, region }.into())
    })?;
    cursor.expect("->")?;
    let outputs = cursor.list("(", ")", parse_block)?;
    workflow.add_task(kind, kernel, point, position, &operands, &outputs);
    Ok(())
}

fn parse_block(cursor: &mut Cursor<'_>) -> Result<BlockId> {
    cursor.id("b").map(BlockId::from_u32)
}
