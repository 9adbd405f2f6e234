//! Routines: their name, options, and the types that their operands had when they were made.

use super::cursor::Cursor;
use super::kernel::parse_axis_number;
use super::printer::{commas, quote};
use super::types::parse_type;
use crate::error::Result;
use crate::program::{Compression, FunctionTable, Routine, RoutineSpec, TensorType, Transform};

/// `"qr" operands (f64[24, 3] tile(8, 3))`, or with options after the name.
pub(super) fn print_routine(spec: &RoutineSpec) -> String {
    let options = match spec.routine() {
        Routine::SvdCompressed(Compression { rank, oversampling, iterations, seed }) => {
            format!(" rank {rank} oversampling {oversampling} iterations {iterations} seed {seed}")
        }
        Routine::Fourier { transform, axis, n } => format!(" {} axis {axis} length {n}", transform.name()),
        Routine::Select { axis } => format!(" axis {axis}"),
        _ => String::new(),
    };
    format!("{}{options} operands ({})", quote(spec.routine().name()), commas(spec.operands()))
}

/// Reads what [`print_routine`] writes.
pub(super) fn parse_routine(cursor: &mut Cursor<'_>, functions: &FunctionTable) -> Result<RoutineSpec> {
    let start = cursor.place();
    let routine = parse_options(cursor)?;
    cursor.expect("operands")?;
    let operands: Vec<TensorType> = cursor.list("(", ")", parse_type)?;
    let made = functions
        .routines()
        .and_then(|library| RoutineSpec::new(routine, &operands.iter().collect::<Vec<_>>(), library));
    cursor.located(start, made)
}

fn parse_options(cursor: &mut Cursor<'_>) -> Result<Routine> {
    let start = cursor.place();
    let name = cursor.string()?;
    let number = |cursor: &mut Cursor<'_>, word: &str| {
        cursor.expect(word)?;
        cursor.fitting()
    };
    match name.as_str() {
        "svd_compressed" => Ok(Routine::SvdCompressed(Compression {
            rank: number(cursor, "rank")?,
            oversampling: number(cursor, "oversampling")?,
            iterations: {
                cursor.expect("iterations")?;
                cursor.fitting()?
            },
            seed: number(cursor, "seed")?,
        })),
        "fourier" => {
            let transform = Transform::ALL.into_iter().find(|transform| cursor.eat(transform.name()));
            let transform = transform.ok_or_else(|| cursor.error("expected a transform"))?;
            Ok(Routine::Fourier { transform, axis: parse_axis_number(cursor)?, n: number(cursor, "length")? })
        }
        "select" => Ok(Routine::Select { axis: parse_axis_number(cursor)? }),
        name => {
            Routine::named(name).ok_or_else(|| cursor.error_since(start, format_args!("`{name}` is not a routine")))
        }
    }
}
