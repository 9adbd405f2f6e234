//! Accumulators: by name where one of the constructors makes them, in full otherwise.

use super::cursor::Cursor;
use super::printer::{Printer, commas};
use super::scalar::{parse_code, parse_dtype, parse_scalar, parse_typed, print_code, typed};
use crate::accum::{Accum, OnEmpty};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::scalar::{BinaryOp, ScalarOp};

/// Makes an accumulator of one dtype.
type Make = fn(DType) -> Accum;

/// Accumulators that only need a dtype, with an operation that it must have.
const BY_DTYPE: [(&str, BinaryOp, Make); 6] = [
    ("sum", BinaryOp::Add, Accum::sum),
    ("product", BinaryOp::Mul, Accum::product),
    ("min", BinaryOp::Min, Accum::min),
    ("max", BinaryOp::Max, Accum::max),
    ("argmin", BinaryOp::Lt, Accum::argmin),
    ("argmax", BinaryOp::Gt, Accum::argmax),
];

/// Writes `head`, the accumulator and `tail`, on one line if it has a name.
pub(super) fn print_accum(printer: &mut Printer, head: &str, accum: &Accum, tail: &str) {
    if let Some((name, known)) = name_of(accum) {
        let empty = if known.on_empty == accum.on_empty {
            String::new()
        } else {
            format!(" empty {}", print_empty(&accum.on_empty))
        };
        return printer.line(format_args!("{head}accum {name}{empty}{tail}"));
    }
    printer.open(format_args!("{head}accum {{"));
    printer.line(format_args!("identity ({})", commas(accum.identity.iter().map(|&value| typed(value)))));
    print_code(printer, "lift", &accum.lift);
    print_code(printer, "combine", &accum.combine);
    print_code(printer, "finish", &accum.finish);
    printer.line(format_args!("empty {}", print_empty(&accum.on_empty)));
    printer.close(format_args!("}}{tail}"));
}

/// The accumulators of [`BY_DTYPE`] that a dtype has.
fn takers(dtype: DType) -> impl Iterator<Item = (&'static str, BinaryOp, Make)> {
    BY_DTYPE.into_iter().filter(move |(_, op, _)| op.result(dtype).is_some())
}

/// The constructor call that makes an accumulator, but for its rule for empty groups.
fn name_of(accum: &Accum) -> Option<(String, Accum)> {
    let dtype = accum.identity.first()?.dtype();
    let mut candidates: Vec<(String, Accum)> =
        takers(dtype).map(|(name, _, make)| (format!("{name} {dtype}"), make(dtype))).collect();
    candidates.push(("any".to_string(), Accum::any()));
    candidates.push(("all".to_string(), Accum::all()));
    let first = accum.identity[0];
    candidates.push((format!("last {}", typed(first)), Accum::last(dtype, first)));
    if dtype.has_float_arithmetic() {
        candidates.push((format!("mean {dtype}"), Accum::mean(dtype)));
        // The correction is one of the constants that finishing uses.
        candidates.extend(accum.finish.ops().iter().filter_map(|op| match op {
            ScalarOp::Const(value @ (Scalar::F32(_) | Scalar::F64(_))) => {
                let correction = Scalar::F64(value.as_f64());
                Some((format!("variance {dtype} {correction}"), Accum::variance(dtype, value.as_f64())))
            }
            _ => None,
        }));
    }
    // A known accumulator may have been extended by a flag that tells whether a group holds anything.
    if accum.identity.len() > 1 && accum.identity.last() == Some(&Scalar::Bool(false)) {
        let extended = candidates.iter().filter(|(_, known)| known.identity.len() + 1 == accum.identity.len());
        let extended: Vec<_> = extended
            .filter_map(|(name, known)| Some((format!("present {name}"), known.with_presence().ok()?)))
            .collect();
        candidates.extend(extended);
    }
    candidates.into_iter().find(|(_, known)| {
        known.identity == accum.identity
            && known.lift == accum.lift
            && known.combine == accum.combine
            && known.finish == accum.finish
    })
}

fn print_empty(rule: &OnEmpty) -> String {
    match rule {
        OnEmpty::Identity => "identity".to_string(),
        OnEmpty::Error => "error".to_string(),
        OnEmpty::Value(values) => format!("value ({})", commas(values.iter().map(|&value| typed(value)))),
    }
}

/// Reads what [`print_accum`] writes between head and tail.
pub(super) fn parse_accum(cursor: &mut Cursor<'_>) -> Result<Accum> {
    cursor.expect("accum")?;
    if cursor.eat("{") {
        cursor.expect("identity")?;
        let identity = cursor.list("(", ")", parse_typed)?;
        let lift = parse_code(cursor, "lift")?;
        let combine = parse_code(cursor, "combine")?;
        let finish = parse_code(cursor, "finish")?;
        cursor.expect("empty")?;
        let on_empty = parse_empty(cursor)?;
        cursor.expect("}")?;
        return Ok(Accum { identity, lift, combine, finish, on_empty });
    }
    let mut accum = parse_named(cursor)?;
    if cursor.eat("empty") {
        accum.on_empty = parse_empty(cursor)?;
    }
    Ok(accum)
}

fn parse_named(cursor: &mut Cursor<'_>) -> Result<Accum> {
    let start = cursor.place();
    let name = cursor.word("an accumulator")?;
    if BY_DTYPE.iter().any(|(known, ..)| *known == name) {
        let dtype = parse_dtype(cursor)?;
        return match takers(dtype).find(|(known, ..)| *known == name) {
            Some((_, _, make)) => Ok(make(dtype)),
            None => Err(cursor.error_since(start, format_args!("`{name}` does not take {dtype}"))),
        };
    }
    match name {
        "any" => Ok(Accum::any()),
        "all" => Ok(Accum::all()),
        "last" => {
            let on_empty = parse_typed(cursor)?;
            Ok(Accum::last(on_empty.dtype(), on_empty))
        }
        "mean" => Ok(Accum::mean(parse_float_dtype(cursor)?)),
        "variance" => {
            let dtype = parse_float_dtype(cursor)?;
            Ok(Accum::variance(dtype, parse_scalar(cursor, DType::F64)?.as_f64()))
        }
        "present" => {
            let known = cursor.nested(parse_named)?;
            cursor.located(start, known.with_presence())
        }
        name => Err(cursor.error_since(start, format_args!("`{name}` is not an accumulator"))),
    }
}

fn parse_float_dtype(cursor: &mut Cursor<'_>) -> Result<DType> {
    let start = cursor.place();
    let dtype = parse_dtype(cursor)?;
    if dtype.has_float_arithmetic() {
        Ok(dtype)
    } else {
        Err(cursor.error_since(start, "this aggregate is one of f32 or f64"))
    }
}

fn parse_empty(cursor: &mut Cursor<'_>) -> Result<OnEmpty> {
    if cursor.eat("identity") {
        Ok(OnEmpty::Identity)
    } else if cursor.eat("error") {
        Ok(OnEmpty::Error)
    } else if cursor.eat("value") {
        Ok(OnEmpty::Value(cursor.list("(", ")", parse_typed)?))
    } else {
        Err(cursor.error("expected identity, error or value"))
    }
}
