//! Tiles with halos.

use tw_ir::{Edge, Error, Extent, Idx, Op, Result, TensorType, Var};

use super::statement::moved;

/// How the tiles of one axis overlap in [`overlap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Elements of a tile of its own; the last may have fewer.
    pub tile: u64,
    /// Elements of the tile before that come first.
    pub before: u64,
    /// Elements of the tile after that come last.
    pub after: u64,
    /// True if the operand has these elements at its ends as well; otherwise the first tile has none before it, the last none after it.
    pub border: bool,
}

/// The tiles of every axis one after the other, each with elements of its neighbours: those are in the result more than once.
///
/// ```
/// # use tw_ir::{DType, TensorType, program::infer};
/// # use tw_build::{Overlap, overlap};
/// let x = TensorType::known(DType::F64, &[10]);
/// let op = overlap(&x, &[Overlap { tile: 5, before: 1, after: 2, border: false }])?;
/// assert_eq!(infer(&Default::default(), &op, &[&x])?[0].to_string(), "f64[13]");
/// # Ok::<(), tw_ir::Error>(())
/// ```
pub fn overlap(x: &TensorType, axes: &[Overlap]) -> Result<Op> {
    if axes.len() != x.rank() {
        return Err(Error::source(format!("overlaps of {} axes for a tensor of rank {}", axes.len(), x.rank())));
    }
    let shape = x.require_shape()?;
    let mut idx = Vec::new();
    let mut extents = Vec::new();
    for (axis, (&n, overlap)) in shape.iter().zip(axes).enumerate() {
        let var = Idx::var(Var(axis as u32));
        let (length, index) = one_axis(n, overlap, &var)?;
        extents.push(Extent::Known(length));
        idx.push(index);
    }
    Ok(moved(x, idx, Edge::Error, &extents))
}

/// The extent of an axis of the result, and where its elements are in the operand.
fn one_axis(n: u64, overlap: &Overlap, var: &Idx) -> Result<(u64, Idx)> {
    let Overlap { tile, before, after, border } = *overlap;
    let too_long = || Error::source("overlapping tiles are longer than can be counted");
    let both = before.checked_add(after).ok_or_else(too_long)?;
    let inner = if border { n.checked_sub(both) } else { Some(n) };
    let inner = inner.ok_or_else(|| Error::source(format!("borders of {both} elements for an axis of {n}")))?;
    if both == 0 || inner == 0 {
        return Ok((n, var.clone()));
    }
    let tile = tile.max(1);
    let n_tiles = inner.div_ceil(tile);
    let last = inner - (n_tiles - 1) * tile;
    if !border && n_tiles > 1 && (before > tile || after > last) {
        let shortest = last.min(tile);
        return Err(Error::source(format!("{} elements of a neighbour of {shortest}", before.max(after))));
    }
    let length = (n_tiles - 1).checked_mul(both).and_then(|more| more.checked_add(n)).ok_or_else(too_long)?;
    let width = tile.checked_add(both).and_then(|width| i64::try_from(width).ok()).ok_or_else(too_long)?;
    // The first tile has no elements before its own, so positions are counted as if it had.
    let missing = if border { 0 } else { before as i64 };
    let position = var.plus_constant(missing);
    let index = position.div(width).times(tile as i64).plus(&position.modulo(width)).plus_constant(-missing);
    Ok((length, index))
}
