//! Tensor types and what they are made of, and arrays.
//!
//! The `Display` of these types is their text, so that messages and dumps show the same thing.

use std::fmt;

use super::cursor::Cursor;
use super::printer::{Printer, commas};
use super::scalar::{parse_dtype, parse_scalar};
use crate::array::{Array, Buffer};
use crate::dtype::DType;
use crate::error::Result;
use crate::format::{Format, ModeFormat};
use crate::grid::Grid;
use crate::program::{ExtentId, TensorType, ValueId};
use crate::shape::Extent;
use crate::tiling::{Axis, BoxRegion, Tiling};

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.dtype, commas(&self.shape))?;
        if let Some(tiling) = &self.tiling {
            let shape: Vec<Option<u64>> = self.shape.iter().map(|extent| extent.known()).collect();
            write!(f, " {}", print_tiling(tiling, &shape))?;
        }
        write!(f, "{}", print_format(&self.format))?;
        if self.fill != self.dtype.zero() {
            write!(f, " fill({})", self.fill)?;
        }
        Ok(())
    }
}

/// Reads what [`TensorType`] displays.
pub(super) fn parse_type(cursor: &mut Cursor<'_>) -> Result<TensorType> {
    let dtype = parse_dtype(cursor)?;
    let mut ty = TensorType::dense(dtype, parse_extents(cursor)?);
    let shape: Vec<Option<u64>> = ty.shape.iter().map(|extent| extent.known()).collect();
    if cursor.sees("tile") || cursor.sees("pieces") {
        ty.tiling = Some(parse_tiling(cursor, &shape)?);
    }
    ty.format = parse_format(cursor, ty.rank())?;
    if cursor.eat("fill") {
        cursor.expect("(")?;
        ty.fill = parse_scalar(cursor, dtype)?;
        cursor.expect(")")?;
    }
    Ok(ty)
}

/// A value: `%3`.
pub(super) fn parse_value(cursor: &mut Cursor<'_>) -> Result<ValueId> {
    cursor.id("%").map(ValueId::from_u32)
}

/// An extent that depends on data: `#3`.
pub(super) fn parse_extent_id(cursor: &mut Cursor<'_>) -> Result<ExtentId> {
    cursor.id("#").map(ExtentId::from_u32)
}

/// An extent: a number, or the id of one that depends on data.
pub(super) fn parse_extent(cursor: &mut Cursor<'_>) -> Result<Extent> {
    if cursor.sees("#") { parse_extent_id(cursor).map(Extent::Deferred) } else { cursor.length().map(Extent::Known) }
}

/// Extents in brackets.
pub(super) fn print_extents(extents: &[Extent]) -> String {
    format!("[{}]", commas(extents))
}

/// Reads what [`print_extents`] writes.
pub(super) fn parse_extents(cursor: &mut Cursor<'_>) -> Result<Vec<Extent>> {
    cursor.list("[", "]", parse_extent)
}

/// A shape of known extents in brackets, as [`crate::shape::display`] writes it.
pub(super) fn parse_shape(cursor: &mut Cursor<'_>) -> Result<Vec<u64>> {
    cursor.list("[", "]", Cursor::length)
}

/// Axis numbers in brackets.
pub(super) fn parse_axes(cursor: &mut Cursor<'_>) -> Result<Vec<u32>> {
    cursor.list("[", "]", Cursor::fitting)
}

/// One axis. Its extent is left out where the reader knows it.
pub(super) fn print_axis(axis: &Axis, known: Option<u64>) -> String {
    match axis {
        Axis::Uniform { extent, .. } if known != Some(*extent) => format!("{axis} of {extent}"),
        axis => axis.to_string(),
    }
}

/// Reads what [`print_axis`] writes.
pub(super) fn parse_axis(cursor: &mut Cursor<'_>, known: Option<u64>) -> Result<Axis> {
    if cursor.eat("(") {
        let start = cursor.place();
        let lengths = cursor.until(")", Cursor::length)?;
        let mut boundaries = vec![0u64];
        for length in lengths {
            let end = boundaries.last().and_then(|end| end.checked_add(length)).filter(|&end| end <= i64::MAX as u64);
            boundaries.push(end.ok_or_else(|| cursor.error_since(start, "this axis is too long"))?);
        }
        return Ok(Axis::Ragged(boundaries.into()));
    }
    let start = cursor.place();
    let tile = cursor.length()?;
    let extent = if cursor.eat("of") { Some(cursor.length()?) } else { known };
    match extent {
        Some(extent) if tile > 0 => Ok(Axis::Uniform { extent, tile }),
        Some(_) => Err(cursor.error_since(start, "a tile of length 0")),
        None => Err(cursor.error_since(start, "the extent of this axis is missing: write `tile of extent`")),
    }
}

/// One cut per axis, after a word.
pub(super) fn print_grid(what: &str, axes: &[Axis], shape: &[u64]) -> String {
    let known = |k: usize| shape.get(k).copied();
    format!("{what}({})", commas(axes.iter().enumerate().map(|(k, axis)| print_axis(axis, known(k)))))
}

/// Reads what [`print_grid`] writes.
pub(super) fn parse_grid(cursor: &mut Cursor<'_>, what: &str, shape: &[u64]) -> Result<Grid> {
    cursor.expect(what)?;
    let mut known = shape.iter().copied();
    Ok(cursor.list("(", ")", |cursor| parse_axis(cursor, known.next()))?.into())
}

/// A tiling. Extents the reader knows are left out.
pub(super) fn print_tiling(tiling: &Tiling, shape: &[Option<u64>]) -> String {
    match tiling {
        Tiling::Grid(axes) => {
            let known = |k: usize| shape.get(k).copied().flatten();
            format!("tile({})", commas(axes.iter().enumerate().map(|(k, axis)| print_axis(axis, known(k)))))
        }
        pieces => pieces.to_string(),
    }
}

/// Reads what [`print_tiling`] writes.
pub(super) fn parse_tiling(cursor: &mut Cursor<'_>, shape: &[Option<u64>]) -> Result<Tiling> {
    if cursor.eat("tile") {
        let mut known = shape.iter().copied();
        return Ok(Tiling::Grid(cursor.list("(", ")", |cursor| parse_axis(cursor, known.next().flatten()))?.into()));
    }
    cursor.expect("pieces")?;
    cursor.expect("(")?;
    let start: u32 = cursor.fitting()?;
    cursor.expect("..")?;
    let end: u32 = cursor.fitting()?;
    cursor.expect(";")?;
    let boxes = cursor.until(")", parse_box)?;
    Ok(Tiling::Pieces { fused: start as usize..end as usize, boxes })
}

/// Reads what [`BoxRegion`] displays.
pub(super) fn parse_box(cursor: &mut Cursor<'_>) -> Result<BoxRegion> {
    let ranges = cursor.list("[", "]", |cursor| {
        let lo = cursor.length()?;
        cursor.expect("..")?;
        Ok(lo..cursor.length()?)
    })?;
    Ok(BoxRegion::from_ranges(ranges))
}

/// A format after a blank; nothing for row-major dense storage.
pub(super) fn print_format(format: &Format) -> String {
    if format.is_dense() { String::new() } else { format!(" {format}") }
}

/// Reads what [`print_format`] writes.
pub(super) fn parse_format(cursor: &mut Cursor<'_>, rank: usize) -> Result<Format> {
    if !cursor.eat("format") {
        return Ok(Format::dense(rank));
    }
    let levels = cursor.list("(", ")", |cursor| {
        let axis: u8 = cursor.fitting()?;
        cursor.expect(":")?;
        let modes = [
            ("dense", ModeFormat::Dense),
            ("compressed", ModeFormat::Compressed),
            ("singleton", ModeFormat::Singleton),
        ];
        match modes.into_iter().find(|(name, _)| cursor.eat(name)) {
            Some((_, mode)) => Ok((axis, mode)),
            None => Err(cursor.error("expected dense, compressed or singleton")),
        }
    })?;
    let (mode_order, modes) = levels.into_iter().unzip();
    Ok(Format { mode_order, modes })
}

/// Writes `head`, an array and `tail`.
pub(super) fn print_array(printer: &mut Printer, head: &str, array: &Array, tail: &str) {
    let elements: Vec<String> = array.iter().map(|value| value.to_string()).collect();
    let head = format!("{head}{}[{}] {{", array.dtype(), commas(array.shape()));
    printer.wrapped(&head, &elements, " ", &format!("}}{tail}"));
}

/// Reads what [`print_array`] writes between head and tail.
pub(super) fn parse_array(cursor: &mut Cursor<'_>) -> Result<Array> {
    let start = cursor.place();
    let dtype = parse_dtype(cursor)?;
    let shape = parse_shape(cursor)?;
    cursor.expect("{")?;
    let mut data = Buffer::zeros(dtype, 0);
    while !cursor.eat("}") {
        data.push(parse_scalar(cursor, dtype)?);
    }
    cursor.located(start, Array::new(shape, data).and_then(|array| array.with_dtype(dtype)))
}

/// A dtype and a shape: `f64[3, 4]`.
pub(super) fn parse_plain_type(cursor: &mut Cursor<'_>) -> Result<(DType, Vec<u64>)> {
    Ok((parse_dtype(cursor)?, parse_shape(cursor)?))
}
