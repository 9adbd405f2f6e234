//! Index statements.

use super::groups::{Groups, results};
use super::points::{for_each_point, locate, outside};
use crate::array::Array;
use crate::dtype::Scalar;
use crate::error::Result;
use crate::index::Edge;
use crate::program::IndexStmt;

/// Runs a statement over its whole iteration space.
///
/// `extents` are those of the variables; `fills` the fill values of the operands.
pub(super) fn run(
    stmt: &IndexStmt,
    extents: &[u64],
    out_shape: &[u64],
    operands: &[&Array],
    fills: &[Scalar],
) -> Result<Vec<Array>> {
    match &stmt.accum {
        Some(accum) => {
            let mut groups = Groups::new(accum, out_shape)?;
            for_each_body(stmt, extents, out_shape, operands, fills, |position, bodies| {
                groups.contribute(position, bodies);
            })?;
            groups.finish()
        }
        None => {
            let mut arrays: Vec<Array> =
                stmt.out.fill.iter().map(|&fill| Array::full(out_shape, fill)).collect::<Result<_>>()?;
            for_each_body(stmt, extents, out_shape, operands, fills, |position, bodies| {
                for (array, &body) in arrays.iter_mut().zip(bodies) {
                    array.data_mut().set(position, body);
                }
            })?;
            Ok(arrays)
        }
    }
}

/// Calls `contribute` with the position and the bodies of every point that the guard lets through and whose target exists.
fn for_each_body(
    stmt: &IndexStmt,
    extents: &[u64],
    out_shape: &[u64],
    operands: &[&Array],
    fills: &[Scalar],
    mut contribute: impl FnMut(usize, &[Scalar]),
) -> Result<()> {
    let (mut params, mut slots, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
    for_each_point(extents, |point| {
        params.clear();
        // A read outside matters only where the guard holds, and the guard may read: it sees the fill value there.
        let mut first_outside = None;
        for access in &stmt.reads {
            let (array, fill) = (operands[access.operand as usize], fills[access.operand as usize]);
            let coords = access.idx.iter().map(|idx| idx.eval(point));
            params.push(match locate(coords, access.edge, array.shape()) {
                Some(position) => array.at(position),
                None => {
                    if access.edge != Edge::Fill && first_outside.is_none() {
                        first_outside = Some(access);
                    }
                    fill
                }
            });
        }
        params.extend(point.iter().map(|&coord| Scalar::I64(coord)));
        stmt.code.eval_slots(&params, &mut slots);
        bodies.clear();
        bodies.extend(results(&stmt.code, &slots));
        if stmt.has_guard && !bodies.remove(0).is_true() {
            return Ok(());
        }
        if let Some(access) = first_outside {
            let coords = access.idx.iter().map(|idx| idx.eval(point));
            let shape = operands[access.operand as usize].shape();
            return Err(outside("reading outside:", coords, shape).note(at_point(stmt, point)));
        }
        let coords = || stmt.out.idx.iter().map(|idx| idx.eval(point));
        match locate(coords(), stmt.out.edge, out_shape) {
            Some(position) => contribute(position, &bodies),
            None if stmt.out.edge == Edge::Fill => {}
            None => return Err(outside("writing outside:", coords(), out_shape).note(at_point(stmt, point))),
        }
        Ok(())
    })
}

fn at_point(stmt: &IndexStmt, point: &[i64]) -> String {
    let parts: Vec<String> = stmt.vars.iter().zip(point).map(|(var, x)| format!("{} = {x}", var.name)).collect();
    format!("at {}", parts.join(", "))
}
