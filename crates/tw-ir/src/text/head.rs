//! The parts of a schedule that its binary form keeps as text: what grows with the program, not with its tasks.
//!
//! They are three, because hashes are taken over them: what decides results, what binds names and files, and what only messages need.

use super::cursor::Cursor;
use super::decl::{expect_id, parse_statement_id};
use super::kernel::{parse_kernel, print_kernel};
use super::printer::{Printer, commas, quote};
use super::program::{parse_span, print_span};
use super::types::{parse_format, parse_grid, parse_plain_type, parse_type, print_format, print_grid};
use crate::array::{Array, Buffer};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::grid::Grid;
use crate::program::FunctionTable;
use crate::workflow::{BlockSetId, Boxes, KernelEntry, OutputDecl, SinkDecl, SourceDecl, Statement, StmtId, Workflow};

/// What [`parse_meaning`] finds: a workflow without constants, sets and tasks, and what these are made from.
pub(crate) struct Head {
    pub(crate) workflow: Workflow,
    pub(crate) provider: String,
    /// The types of constants, in order.
    pub(crate) constants: Vec<Constant>,
    pub(crate) sets: Vec<SetHead>,
}

/// The type of a constant whose elements stand elsewhere.
pub(crate) struct Constant {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
}

/// A set of blocks.
pub(crate) struct SetHead {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    pub(crate) boxes: SetBoxes,
    pub(crate) format: Format,
}

/// Boxes by a grid, or a list that stands elsewhere.
pub(crate) enum SetBoxes {
    Grid(Grid),
    List,
}

/// The text of everything that decides results, except tasks and elements.
pub(crate) fn print_meaning(workflow: &Workflow, provider: &str) -> String {
    let mut printer = Printer::default();
    printer.line(format_args!("provider {}", quote(provider)));
    for source in workflow.sources.values() {
        match source {
            SourceDecl::Input { ty, .. } => printer.line(format_args!("source input {ty}")),
            SourceDecl::Constant(array) => {
                printer.line(format_args!("source constant {}[{}]", array.dtype(), commas(array.shape())));
            }
        }
    }
    for sink in workflow.sinks.values() {
        printer.line(format_args!("sink {}[{}]", sink.dtype, commas(&sink.shape)));
    }
    for (id, entry) in &workflow.kernels {
        print_kernel(&mut printer, &format!("kernel {id} = "), &entry.kernel);
    }
    for set in workflow.sets.values() {
        let boxes = match &set.boxes {
            Boxes::Grid(axes) => print_grid("grid", axes, &set.shape),
            Boxes::List(_) => "boxes".to_string(),
        };
        let format = print_format(&set.format);
        printer.line(format_args!("blocks {}[{}] {boxes}{format}", set.dtype, commas(&set.shape)));
    }
    for output in &workflow.outputs {
        printer.line(format_args!("output {} {}", output.set, output.dtype));
    }
    printer.finish()
}

/// Reads what [`print_meaning`] writes. Sets, tasks and the elements of constants are still missing.
pub(crate) fn parse_meaning(text: &str, functions: &FunctionTable) -> Result<Head> {
    let cursor = &mut Cursor::new(text);
    cursor.expect("provider")?;
    let provider = cursor.string()?;
    let mut head = Head { workflow: Workflow::default(), provider, constants: Vec::new(), sets: Vec::new() };
    while cursor.eat("source") {
        let source = if cursor.eat("input") {
            SourceDecl::Input { name: String::new(), ty: parse_type(cursor)? }
        } else {
            cursor.expect("constant")?;
            let (dtype, shape) = parse_plain_type(cursor)?;
            head.constants.push(Constant { dtype, shape });
            SourceDecl::Constant(Array::vector(Buffer::zeros(dtype.storage(), 0)).into())
        };
        head.workflow.sources.push(source);
    }
    while cursor.eat("sink") {
        let (dtype, shape) = parse_plain_type(cursor)?;
        head.workflow.sinks.push(SinkDecl { path: String::new(), dtype, shape });
    }
    while cursor.eat("kernel") {
        expect_id(cursor, "k", head.workflow.kernels.len())?;
        cursor.expect("=")?;
        let kernel = parse_kernel(cursor, functions)?;
        head.workflow.kernels.push(KernelEntry { kernel, statement: StmtId::from_u32(0) });
    }
    while cursor.eat("blocks") {
        let (dtype, shape) = parse_plain_type(cursor)?;
        let boxes = if cursor.sees("grid") {
            SetBoxes::Grid(parse_grid(cursor, "grid", &shape)?)
        } else {
            cursor.expect("boxes")?;
            SetBoxes::List
        };
        let format = parse_format(cursor, shape.len())?;
        head.sets.push(SetHead { dtype, shape, boxes, format });
    }
    while cursor.eat("output") {
        let set = BlockSetId::from_u32(cursor.id("set")?);
        let dtype = super::scalar::parse_dtype(cursor)?;
        head.workflow.outputs.push(OutputDecl { name: String::new(), set, dtype });
    }
    cursor.end()?;
    Ok(head)
}

/// The text that binds a schedule to files and names.
pub(crate) fn print_bindings(workflow: &Workflow, budget: Option<u64>) -> String {
    let mut printer = Printer::default();
    for source in workflow.sources.values() {
        if let SourceDecl::Input { name, .. } = source {
            printer.line(format_args!("input {}", quote(name)));
        }
    }
    for sink in workflow.sinks.values() {
        printer.line(format_args!("sink {}", quote(&sink.path)));
    }
    for output in &workflow.outputs {
        printer.line(format_args!("output {}", quote(&output.name)));
    }
    if let Some(budget) = budget {
        printer.line(format_args!("budget {budget}"));
    }
    printer.finish()
}

/// Reads what [`print_bindings`] writes into a workflow that has the sources, sinks and outputs already. Gives the budget.
pub(crate) fn parse_bindings(text: &str, workflow: &mut Workflow) -> Result<Option<u64>> {
    let cursor = &mut Cursor::new(text);
    for source in workflow.sources.values_mut() {
        if let SourceDecl::Input { name, .. } = source {
            cursor.expect("input")?;
            *name = cursor.string()?;
        }
    }
    for sink in workflow.sinks.values_mut() {
        cursor.expect("sink")?;
        sink.path = cursor.string()?;
    }
    for output in &mut workflow.outputs {
        cursor.expect("output")?;
        output.name = cursor.string()?;
    }
    let budget = if cursor.eat("budget") { Some(cursor.fitting()?) } else { None };
    cursor.end()?;
    Ok(budget)
}

/// The text that only messages need.
pub(crate) fn print_names(workflow: &Workflow) -> String {
    let mut printer = Printer::default();
    for (id, statement) in &workflow.statements {
        printer.line(format_args!("statement {id} {}{}", quote(&statement.label), print_span(&statement.span)));
    }
    for entry in workflow.kernels.values() {
        printer.line(format_args!("kernel {}", entry.statement));
    }
    for set in workflow.sets.values() {
        printer.line(format_args!("blocks {} {}", set.statement, quote(&set.name)));
    }
    printer.finish()
}

/// Reads what [`print_names`] writes into a workflow that has the kernels and sets already.
pub(crate) fn parse_names(text: &str, workflow: &mut Workflow) -> Result<()> {
    let cursor = &mut Cursor::new(text);
    while cursor.eat("statement") {
        expect_id(cursor, "s", workflow.statements.len())?;
        workflow.statements.push(Statement { label: cursor.string()?, span: parse_span(cursor)?, node: None });
    }
    let n_statements = workflow.statements.len();
    for entry in workflow.kernels.values_mut() {
        cursor.expect("kernel")?;
        entry.statement = parse_statement_id(cursor, n_statements)?;
    }
    for set in workflow.sets.values_mut() {
        cursor.expect("blocks")?;
        set.statement = parse_statement_id(cursor, n_statements)?;
        set.name = cursor.string()?;
    }
    cursor.end()?;
    let named = !workflow.kernels.is_empty() || !workflow.sets.is_empty();
    if named && n_statements == 0 {
        return Err(Error::source("a schedule without statements"));
    }
    Ok(())
}
