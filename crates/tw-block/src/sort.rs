//! Sorting along an axis: runs inside blocks, then an exact merge by rank.

use std::cmp::Ordering;

use tw_ir::{Error, Result, Scalar};

use crate::block::Block;
use crate::walk::Points;

/// The order of the sort: NaN after everything, both zeros equal; reversed when descending.
fn order(a: Scalar, b: Scalar, descending: bool) -> Ordering {
    let ascending = match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(&b),
        (Scalar::I64(a), Scalar::I64(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64(), b.as_f64());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    };
    if descending { ascending.reverse() } else { ascending }
}

/// Sorts one block; positions are those along the axis of the whole tensor.
pub(crate) fn sort_run(axis: usize, descending: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    let ([block], [values, positions]) = (operands, outputs) else {
        return Err(Error::internal("a sort takes one block and makes two"));
    };
    let range = block.bbox().range(axis);
    let mut across = block.bbox().clone();
    across.hi[axis] = across.hi[axis].min(across.lo[axis] + 1);
    let mut rows = Points::new(&across);
    while let Some(row) = rows.next() {
        let mut at = row.to_vec();
        let mut pairs: Vec<(Scalar, u64)> = Vec::with_capacity((range.end - range.start) as usize);
        for k in range.clone() {
            at[axis] = k;
            pairs.push((block.get(&at).ok_or_else(|| Error::internal("a row outside its block"))?, k));
        }
        pairs.sort_by(|a, b| order(a.0, b.0, descending));
        for (k, (value, position)) in range.clone().zip(pairs) {
            at[axis] = k;
            values.set(&at, value)?;
            positions.set(&at, Scalar::I64(position as i64))?;
        }
    }
    Ok(())
}

/// Merges sorted runs; keeps the ranks that belong to the output block.
pub(crate) fn sort_merge(axis: usize, descending: bool, operands: &[&Block], outputs: &mut [Block]) -> Result<()> {
    let [out_values, out_positions] = outputs else {
        return Err(Error::internal("a merge makes two blocks"));
    };
    let (values, positions) = operands.split_at(operands.len() / 2);
    let ranks = out_values.bbox().range(axis);
    let mut across = out_values.bbox().clone();
    across.hi[axis] = across.hi[axis].min(across.lo[axis] + 1);
    let mut rows = Points::new(&across);
    while let Some(row) = rows.next() {
        let mut at = row.to_vec();
        let mut pairs: Vec<(Scalar, Scalar)> = Vec::new();
        for (values, positions) in values.iter().zip(positions) {
            for k in values.bbox().range(axis) {
                at[axis] = k;
                let pair = values.get(&at).zip(positions.get(&at));
                pairs.push(pair.ok_or_else(|| Error::internal("a run does not cover the rows it is merged into"))?);
            }
        }
        pairs.sort_by(|a, b| order(a.0, b.0, descending).then(a.1.as_i64().cmp(&b.1.as_i64())));
        for rank in ranks.clone() {
            at[axis] = rank;
            let (value, position) = pairs[rank as usize];
            out_values.set(&at, value)?;
            out_positions.set(&at, position)?;
        }
    }
    Ok(())
}
