//! Single elements and scalar code.

use super::cursor::Cursor;
use super::printer::{Printer, commas};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::scalar::{BinaryOp, Distribution, ScalarCode, ScalarOp, Slot, UnaryOp};

/// An element with its type: `f64 1.5`.
pub(super) fn typed(value: Scalar) -> String {
    format!("{} {value}", value.dtype())
}

/// Reads what [`typed`] writes.
pub(super) fn parse_typed(cursor: &mut Cursor<'_>) -> Result<Scalar> {
    let dtype = parse_dtype(cursor)?;
    parse_scalar(cursor, dtype)
}

/// A dtype by name.
pub(super) fn parse_dtype(cursor: &mut Cursor<'_>) -> Result<DType> {
    cursor.named("a dtype (bool, i64, f32 or f64)")
}

/// An element of a known type, as [`Scalar`] displays it.
pub(super) fn parse_scalar(cursor: &mut Cursor<'_>, dtype: DType) -> Result<Scalar> {
    match dtype {
        DType::Bool if cursor.eat("true") => Ok(Scalar::Bool(true)),
        DType::Bool if cursor.eat("false") => Ok(Scalar::Bool(false)),
        DType::Bool => Err(cursor.error("expected `true` or `false`")),
        DType::I64 => cursor.fitting().map(Scalar::I64),
        DType::F32 | DType::F64 => parse_float(cursor, dtype),
    }
}

/// Decimal digits are the shortest that give the bits back; a NaN with unusual bits is written with them.
fn parse_float(cursor: &mut Cursor<'_>, dtype: DType) -> Result<Scalar> {
    let start = cursor.place();
    let text = cursor.float()?;
    if text == "nan" && cursor.eat(":") {
        let bits = cursor.hex()?;
        let value = match (dtype, u32::try_from(bits)) {
            (DType::F32, Ok(bits)) => Some(Scalar::F32(f32::from_bits(bits))),
            (DType::F32, Err(_)) => None,
            _ => Some(Scalar::F64(f64::from_bits(bits))),
        };
        return value.ok_or_else(|| cursor.error_since(start, "too many bits for an f32"));
    }
    let value = match dtype {
        DType::F32 => text.parse().ok().map(Scalar::F32),
        _ => text.parse().ok().map(Scalar::F64),
    };
    value.ok_or_else(|| cursor.error_since(start, format_args!("`{text}` is not a number")))
}

/// Writes code with its parameters and results, after a word that says what it is for.
pub(super) fn print_code(printer: &mut Printer, what: &str, code: &ScalarCode) {
    let ops: Vec<String> = code.ops().iter().enumerate().map(|(k, op)| format!("s{k} = {}", print_op(op))).collect();
    let results = commas(code.results().iter().map(|slot| format!("s{}", slot.0)));
    let head = format!("{what} ({}) {{", commas(code.params()));
    printer.wrapped(&head, &ops, "; ", format!("}} -> ({results})").as_str());
}

fn print_op(op: &ScalarOp) -> String {
    match op {
        ScalarOp::Param(k) => format!("param {k}"),
        ScalarOp::Const(value) => format!("const {}", typed(*value)),
        ScalarOp::Unary(op, a) => format!("{op} s{}", a.0),
        ScalarOp::Binary(op, a, b) => format!("{op} s{} s{}", a.0, b.0),
        ScalarOp::Select(c, a, b) => format!("select s{} s{} s{}", c.0, a.0, b.0),
        ScalarOp::Cast(dtype, a) => format!("cast {dtype} s{}", a.0),
        ScalarOp::Random { distribution, seed, counter } => {
            let distribution = match distribution {
                Distribution::Uniform => "uniform".to_string(),
                Distribution::Normal => "normal".to_string(),
                Distribution::Integer { low, high } => format!("integer {low} {high}"),
            };
            format!("random {distribution} seed {seed} at s{}", counter.0)
        }
    }
}

/// Reads what [`print_code`] writes.
pub(super) fn parse_code(cursor: &mut Cursor<'_>, what: &str) -> Result<ScalarCode> {
    cursor.expect(what)?;
    let params = cursor.list("(", ")", parse_dtype)?;
    let mut code = ScalarCode::new(params);
    cursor.expect("{")?;
    while !cursor.eat("}") {
        let start = cursor.place();
        let number = cursor.id("s")?;
        cursor.expect("=")?;
        let op = parse_op(cursor)?;
        let slot = cursor.located(start, code.push(op))?;
        if slot != Slot(number) {
            let what = "slots count from s0, and no operation occurs twice";
            return Err(cursor.error_since(start, format_args!("{what}; this is s{}", slot.0)));
        }
        cursor.eat(";");
    }
    cursor.expect("->")?;
    let start = cursor.place();
    let results = cursor.list("(", ")", parse_slot)?;
    code.set_results(results);
    cursor.located(start, code.verify())?;
    Ok(code)
}

fn parse_op(cursor: &mut Cursor<'_>) -> Result<ScalarOp> {
    let start = cursor.place();
    let word = cursor.word("an operation")?;
    if let Ok(op) = word.parse::<UnaryOp>() {
        return Ok(ScalarOp::Unary(op, parse_slot(cursor)?));
    }
    if let Ok(op) = word.parse::<BinaryOp>() {
        return Ok(ScalarOp::Binary(op, parse_slot(cursor)?, parse_slot(cursor)?));
    }
    match word {
        "param" => Ok(ScalarOp::Param(cursor.fitting()?)),
        "const" => Ok(ScalarOp::Const(parse_typed(cursor)?)),
        "select" => Ok(ScalarOp::Select(parse_slot(cursor)?, parse_slot(cursor)?, parse_slot(cursor)?)),
        "cast" => Ok(ScalarOp::Cast(parse_dtype(cursor)?, parse_slot(cursor)?)),
        "random" => {
            let distribution = parse_distribution(cursor)?;
            cursor.expect("seed")?;
            let seed = cursor.fitting()?;
            cursor.expect("at")?;
            Ok(ScalarOp::Random { distribution, seed, counter: parse_slot(cursor)? })
        }
        word => Err(cursor.error_since(start, format_args!("`{word}` is not an operation"))),
    }
}

fn parse_distribution(cursor: &mut Cursor<'_>) -> Result<Distribution> {
    if cursor.eat("uniform") {
        Ok(Distribution::Uniform)
    } else if cursor.eat("normal") {
        Ok(Distribution::Normal)
    } else if cursor.eat("integer") {
        Ok(Distribution::Integer { low: cursor.fitting()?, high: cursor.fitting()? })
    } else {
        Err(cursor.error("expected `uniform`, `normal` or `integer`"))
    }
}

fn parse_slot(cursor: &mut Cursor<'_>) -> Result<Slot> {
    cursor.id("s").map(Slot)
}
