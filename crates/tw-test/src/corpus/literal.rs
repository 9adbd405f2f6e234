//! Arrays written in comments: `f64[2, 2] = [[1, 2.5], [nan, -inf]]`.

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
    Array::new(shape, data).map_err(|error| error.to_string())
}

/// One number or truth value of the given type.
fn scalar(text: &str, dtype: DType) -> Result<Scalar, String> {
    let wrong = || format!("`{text}` is not a value of type {dtype}");
    match dtype {
        DType::Bool => text.parse().map(Scalar::Bool).map_err(|_| wrong()),
        DType::I64 => text.parse().map(Scalar::I64).map_err(|_| wrong()),
        // Read at its own precision: going through f64 would round twice.
        DType::F32 => text.parse().map(Scalar::F32).map_err(|_| wrong()),
        DType::F64 => text.parse().map(Scalar::F64).map_err(|_| wrong()),
    }
}

/// `f64` or `f64[2, 3]`.
fn tensor_type(text: &str) -> Result<(DType, Vec<u64>), String> {
    let (name, extents) = match text.split_once('[') {
        None => (text, ""),
        Some((name, rest)) => (name, rest.strip_suffix(']').ok_or("`]` is missing in the type")?),
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
            ["f64[2] = [1]", "f64[2] = [1, 2, 3]", "i64 = 1.5", "f64[2] = [1, 2", "f64[1] = [1] 2", "f16 = 1", "f64[2]"]
        {
            assert!(array(wrong).is_err(), "{wrong}");
        }
    }
}
