//! Calls of block functions.

use super::cursor::Cursor;
use super::printer::{commas, quote};
use super::scalar::parse_dtype;
use crate::error::Result;
use crate::program::{BlockFn, BlockResult, FunctionRef, FunctionTable, OperandMode, ResultMode};

/// `"name" operands ([grid 0, whole]) results (f64[grid 0, whole 3])`.
pub(super) fn print_call(call: &BlockFn) -> String {
    let operands = commas(call.operands.iter().map(|modes| {
        let modes = modes.iter().map(|mode| match mode {
            OperandMode::Grid(g) => format!("grid {g}"),
            OperandMode::Pick(g, table) => format!("pick {g} [{}]", commas(table.iter())),
            OperandMode::Whole => "whole".to_string(),
        });
        format!("[{}]", commas(modes))
    }));
    let results = commas(call.results.iter().map(|result| {
        let modes = result.modes.iter().map(|mode| match mode {
            ResultMode::Grid(g) => format!("grid {g}"),
            ResultMode::PerBlock(g, n) => format!("per_block {g} {n}"),
            ResultMode::Whole(n) => format!("whole {n}"),
        });
        format!("{}[{}]", result.dtype, commas(modes))
    }));
    format!("{} operands ({operands}) results ({results})", quote(call.function.0.name()))
}

/// Reads what [`print_call`] writes.
pub(super) fn parse_call(cursor: &mut Cursor<'_>, functions: &FunctionTable) -> Result<BlockFn> {
    let function = parse_function(cursor, functions)?;
    cursor.expect("operands")?;
    let operands = cursor.list("(", ")", |cursor| cursor.list("[", "]", parse_operand_mode))?;
    cursor.expect("results")?;
    let results = cursor.list("(", ")", |cursor| {
        Ok(BlockResult { dtype: parse_dtype(cursor)?, modes: cursor.list("[", "]", parse_result_mode)? })
    })?;
    Ok(BlockFn { function, operands, results })
}

/// A function by its quoted name.
pub(super) fn parse_function(cursor: &mut Cursor<'_>, functions: &FunctionTable) -> Result<FunctionRef> {
    let start = cursor.place();
    let name = cursor.string()?;
    cursor.located(start, functions.get(&name))
}

fn parse_operand_mode(cursor: &mut Cursor<'_>) -> Result<OperandMode> {
    if cursor.eat("grid") {
        Ok(OperandMode::Grid(cursor.fitting()?))
    } else if cursor.eat("pick") {
        let number = cursor.fitting()?;
        Ok(OperandMode::Pick(number, cursor.list("[", "]", |cursor| cursor.length())?.into()))
    } else if cursor.eat("whole") {
        Ok(OperandMode::Whole)
    } else {
        Err(cursor.error("expected `grid`, `pick` or `whole`"))
    }
}

fn parse_result_mode(cursor: &mut Cursor<'_>) -> Result<ResultMode> {
    if cursor.eat("grid") {
        Ok(ResultMode::Grid(cursor.fitting()?))
    } else if cursor.eat("per_block") {
        Ok(ResultMode::PerBlock(cursor.fitting()?, cursor.length()?))
    } else if cursor.eat("whole") {
        Ok(ResultMode::Whole(cursor.length()?))
    } else {
        Err(cursor.error("expected `grid`, `per_block` or `whole`"))
    }
}
