//! Arrays written in comments: `f64[2, 2] = [[1, 2.5], [nan, -inf]]`.

use tw_ir::dtype::Complex;
use tw_ir::{Array, Buffer, DType, Scalar};

/// Reads a type, an equals sign and nested lists, which must be all of the text.
///
/// The shape is written out and checked against the lists: an array without elements could not show it, and a slip shows at once. Below an
/// extent of 0 lists may be left out.
pub(super) fn array(text: &str) -> Result<Array, String> {
    let (ty, values) = text.split_once('=').ok_or("`=` and a value are missing")?;
    let (dtype, shape) = tensor_type(ty.trim())?;
    let mut reader = Reader { rest: values.trim(), dtype, elements: Vec::new() };
    reader.nested(&shape)?;
    if !reader.rest.is_empty() {
        return Err(format!("`{}` follows the value", reader.rest));
    }
    let mut data = Buffer::zeros(dtype, reader.elements.len());
    for (position, element) in reader.elements.into_iter().enumerate() {
        data.set(position, element);
    }
    Array::new(shape, data).and_then(|array| array.with_dtype(dtype)).map_err(|error| error.to_string())
}

/// One number or truth value of the given type.
fn scalar(text: &str, dtype: DType) -> Result<Scalar, String> {
    let wrong = || format!("`{text}` is not a value of type {dtype}");
    let parsed = match dtype {
        DType::Bool => text.parse().map(Scalar::Bool).ok(),
        DType::U64 => text.parse().map(Scalar::U64).ok(),
        _ if dtype.is_integer() => {
            text.parse().ok().map(|value| Scalar::from_i64(value, dtype)).filter(|value| value.to_string() == text)
        }
        DType::DateTime(_) | DType::TimeDelta(_) if text == "NaT" => Some(Scalar::I64(tw_ir::dtype::NAT).cast(dtype)),
        DType::DateTime(_) | DType::TimeDelta(_) => text.parse().ok().map(|value| Scalar::from_i64(value, dtype)),
        DType::C64 | DType::C128 => complex(text).map(|value| Scalar::C128(value).cast(dtype)),
        // Read at its own precision: going through f64 would round twice.
        DType::F32 => text.parse().map(Scalar::F32).ok(),
        _ => text.parse().ok().map(|value| Scalar::F64(value).cast(dtype)),
    };
    parsed.ok_or_else(wrong)
}

/// `1.5-2j`, `2j` or `1`.
fn complex(text: &str) -> Option<Complex<f64>> {
    let Some(parts) = text.strip_suffix('j') else { return Some(Complex::new(text.parse().ok()?, 0.0)) };
    // The sign of the imaginary part is the last one that belongs to no exponent.
    let signs = parts.char_indices().rev().filter(|(_, c)| matches!(c, '+' | '-'));
    let split = signs.map(|(k, _)| k).find(|&k| k > 0 && !parts[..k].ends_with(['e', 'E'])).unwrap_or(0);
    let re = if split == 0 { 0.0 } else { parts[..split].parse().ok()? };
    Some(Complex::new(re, parts[split..].parse().ok()?))
}

/// `f64` or `f64[2, 3]`.
fn tensor_type(text: &str) -> Result<(DType, Vec<u64>), String> {
    // The name of a time has brackets of its own.
    let skipped =
        if text.contains("64[") && text.contains("time") { text.find(']').map_or(0, |end| end + 1) } else { 0 };
    let (name, extents) = match text[skipped..].find('[') {
        None => (text, ""),
        Some(at) => {
            let (name, rest) = text.split_at(skipped + at);
            (name, rest[1..].strip_suffix(']').ok_or("`]` is missing in the type")?)
        }
    };
    let dtype = name.trim().parse().map_err(|_| format!("`{name}` is not an element type"))?;
    let extents = extents.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape = extents.map(|extent| extent.parse().map_err(|_| format!("`{extent}` is not an extent")));
    Ok((dtype, shape.collect::<Result<_, _>>()?))
}

struct Reader<'a> {
    rest: &'a str,
    dtype: DType,
    elements: Vec<Scalar>,
}

impl Reader<'_> {
    fn nested(&mut self, shape: &[u64]) -> Result<(), String> {
        let Some((&extent, inner)) = shape.split_first() else {
            let length = self.rest.find([',', ']']).unwrap_or(self.rest.len());
            let (word, rest) = self.rest.split_at(length);
            self.elements.push(scalar(word.trim(), self.dtype)?);
            self.rest = rest;
            return Ok(());
        };
        self.expect('[')?;
        let mut seen = 0;
        while !self.rest.starts_with(']') {
            if seen > 0 {
                self.expect(',')?;
            }
            self.nested(inner)?;
            seen += 1;
        }
        self.expect(']')?;
        let complete = seen == extent || (seen == 0 && shape.contains(&0));
        if complete { Ok(()) } else { Err(format!("a list of {seen} where the shape says {extent}")) }
    }

    fn expect(&mut self, symbol: char) -> Result<(), String> {
        let rest = self.rest.strip_prefix(symbol);
        let rest = rest.ok_or_else(|| format!("`{symbol}` was expected before `{}`", self.rest))?;
        self.rest = rest.trim_start();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_lists_fill_the_shape() {
        let read = array("f64[2, 2] = [[1, 2.5], [nan, -inf]]").unwrap();
        assert_eq!(read.shape(), [2, 2]);
        assert_eq!(read.get(&[0, 1]), Scalar::F64(2.5));
        assert!(read.get(&[1, 0]).as_f64().is_nan());
        assert_eq!(read.get(&[1, 1]), Scalar::F64(f64::NEG_INFINITY));
        assert_eq!(array("i64 = -7").unwrap().item(), Some(Scalar::I64(-7)));
        assert_eq!(array("bool[0, 3] = []").unwrap().shape(), [0, 3]);
        assert_eq!(array("f32[2, 0] = [[], []]").unwrap().shape(), [2, 0]);
        assert_eq!(array("f64[1] = [-0.0]").unwrap().get(&[0]), Scalar::F64(-0.0));
    }

    #[test]
    fn slips_are_found() {
        for wrong in
            ["f64[2] = [1]", "f64[2] = [1, 2, 3]", "i64 = 1.5", "f64[2] = [1, 2", "f64[1] = [1] 2", "f17 = 1", "f64[2]"]
        {
            assert!(array(wrong).is_err(), "{wrong}");
        }
    }
}
