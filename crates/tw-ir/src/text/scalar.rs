//! Single elements and scalar code.

use std::str::FromStr;

use super::cursor::Cursor;
use super::printer::{Printer, commas};
use crate::dtype::cast::{narrow_bf16, narrow_f16};
use crate::dtype::{Complex, DType, NAT, Scalar, bf16, f16};
use crate::error::Result;
use crate::scalar::{BinaryOp, RandomDistribution, ScalarCode, ScalarOp, Slot, UnaryOp};

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
    let start = cursor.place();
    let word = cursor.word("a dtype")?;
    // Only the names of times go on after a word; a shape in brackets may follow any other.
    let name = match word {
        "datetime64" | "timedelta64" => {
            cursor.expect("[")?;
            let unit = cursor.word("a unit of time")?;
            cursor.expect("]")?;
            format!("{word}[{unit}]")
        }
        word => word.to_string(),
    };
    name.parse().map_err(|()| cursor.error_since(start, format_args!("`{name}` is not a dtype")))
}

/// An element of a known type, as [`Scalar`] displays it.
pub(super) fn parse_scalar(cursor: &mut Cursor<'_>, dtype: DType) -> Result<Scalar> {
    match dtype {
        DType::Bool if cursor.eat("true") => Ok(Scalar::Bool(true)),
        DType::Bool if cursor.eat("false") => Ok(Scalar::Bool(false)),
        DType::Bool => Err(cursor.error("expected `true` or `false`")),
        DType::I8 => cursor.fitting().map(Scalar::I8),
        DType::I16 => cursor.fitting().map(Scalar::I16),
        DType::I32 => cursor.fitting().map(Scalar::I32),
        DType::I64 => cursor.fitting().map(Scalar::I64),
        DType::U8 => cursor.fitting().map(Scalar::U8),
        DType::U16 => cursor.fitting().map(Scalar::U16),
        DType::U32 => cursor.fitting().map(Scalar::U32),
        DType::U64 => cursor.fitting().map(Scalar::U64),
        DType::F16 => parse_float(cursor, |bits| f16::from_bits(bits).into(), |v: f32| narrow_f16(v).into()),
        DType::BF16 => parse_float(cursor, |bits| bf16::from_bits(bits).into(), |v: f32| narrow_bf16(v).into()),
        DType::F32 => parse_single(cursor).map(Scalar::F32),
        DType::F64 => parse_double(cursor).map(Scalar::F64),
        DType::C64 => Ok(Scalar::C64(parse_parts(cursor, parse_single)?)),
        DType::C128 => Ok(Scalar::C128(parse_parts(cursor, parse_double)?)),
        DType::DateTime(_) | DType::TimeDelta(_) if cursor.eat("NaT") => Ok(Scalar::I64(NAT).cast(dtype)),
        DType::DateTime(_) | DType::TimeDelta(_) => Ok(Scalar::I64(cursor.fitting()?).cast(dtype)),
    }
}

fn parse_single(cursor: &mut Cursor<'_>) -> Result<f32> {
    parse_float(cursor, f32::from_bits, |v| v)
}

fn parse_double(cursor: &mut Cursor<'_>) -> Result<f64> {
    parse_float(cursor, f64::from_bits, |v| v)
}

/// The two parts of a complex number, in parentheses.
fn parse_parts<T>(cursor: &mut Cursor<'_>, part: fn(&mut Cursor<'_>) -> Result<T>) -> Result<Complex<T>> {
    cursor.expect("(")?;
    let (re, im) = (part(cursor)?, part(cursor)?);
    cursor.expect(")")?;
    Ok(Complex { re, im })
}

/// Decimal digits are the shortest that give the bits back; a NaN with unusual bits is written with them.
fn parse_float<B: TryFrom<u64>, V: FromStr, T>(
    cursor: &mut Cursor<'_>,
    from_bits: impl Fn(B) -> T,
    from_value: impl Fn(V) -> T,
) -> Result<T> {
    let start = cursor.place();
    let text = cursor.float()?;
    if text == "nan" && cursor.eat(":") {
        let bits = cursor.hex()?;
        let bits = B::try_from(bits).map_err(|_| cursor.error_since(start, "too many bits for this type"))?;
        return Ok(from_bits(bits));
    }
    let value = text.parse().map_err(|_| cursor.error_since(start, format_args!("`{text}` is not a number")))?;
    Ok(from_value(value))
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
                RandomDistribution::Uniform => "uniform".to_string(),
                RandomDistribution::Normal => "normal".to_string(),
                RandomDistribution::Integer { low, high } => format!("integer {low} {high}"),
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

fn parse_distribution(cursor: &mut Cursor<'_>) -> Result<RandomDistribution> {
    if cursor.eat("uniform") {
        Ok(RandomDistribution::Uniform)
    } else if cursor.eat("normal") {
        Ok(RandomDistribution::Normal)
    } else if cursor.eat("integer") {
        Ok(RandomDistribution::Integer { low: cursor.fitting()?, high: cursor.fitting()? })
    } else {
        Err(cursor.error("expected `uniform`, `normal` or `integer`"))
    }
}

fn parse_slot(cursor: &mut Cursor<'_>) -> Result<Slot> {
    cursor.id("s").map(Slot)
}
