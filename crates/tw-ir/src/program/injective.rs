//! Decides whether each point of a statement writes an element of its own.

use std::collections::HashSet;

use super::IndexStmt;
use crate::index::{Edge, Idx, Term, Var};
use crate::shape;

/// Points up to which injectivity is decided by looking at all of them.
const ENUMERATION_LIMIT: u64 = 1 << 16;

/// True if no two points of the iteration space write the same element. May answer false for an injective map that is too large to enumerate
/// and too clever for the rules below.
pub fn is_injective(stmt: &IndexStmt) -> bool {
    // Nearly every statement writes at its variables, each of them once.
    if stmt.out.idx.len() == stmt.vars.len() && stmt.out_is_plain() {
        return true;
    }
    let mut determined: Vec<bool> = stmt.vars.iter().map(|v| v.extent.known().is_some_and(|n| n <= 1)).collect();
    if stmt.vars.iter().any(|v| v.extent.known() == Some(0)) {
        return true;
    }
    let moves_points = matches!(stmt.out.edge, Edge::Clamp | Edge::Wrap) && !stays_inside(stmt);
    if !moves_points {
        let mut known = stmt.out.idx.clone();
        while step(stmt, &mut known, &mut determined) {}
        if determined.iter().all(|d| *d) {
            return true;
        }
    }
    enumerate(stmt)
}

fn stays_inside(stmt: &IndexStmt) -> bool {
    let Some(ranges) = stmt.var_ranges() else { return false };
    stmt.out.idx.iter().zip(&stmt.out.shape).all(|(idx, extent)| {
        let (lo, hi) = idx.interval(&ranges);
        lo >= 0 && extent.known().is_some_and(|n| hi < n as i64)
    })
}

/// One round of deduction: `known` are expressions whose values the output coordinates tell.
fn step(stmt: &IndexStmt, known: &mut Vec<Idx>, determined: &mut [bool]) -> bool {
    let mut progress = false;
    for idx in known.clone() {
        progress |= determine_vars(stmt, &idx, determined);
        // A quotient and a remainder by the same number tell the expression below them.
        if let [(Term::Div(inner, n), 1)] = idx.terms() {
            let remainder = inner.modulo(*n);
            if known.iter().any(|other| other.terms() == remainder.terms()) && !known.contains(inner) {
                known.push((**inner).clone());
                progress = true;
            }
        }
    }
    progress
}

/// If the undetermined terms of an expression are variables in mixed radix, its value tells all of them.
fn determine_vars(stmt: &IndexStmt, idx: &Idx, determined: &mut [bool]) -> bool {
    let mut open: Vec<(i64, Var)> = Vec::new();
    for (term, c) in idx.terms() {
        match term {
            Term::Var(v) if determined[v.0 as usize] => {}
            Term::Var(v) => open.push((c.saturating_abs(), *v)),
            Term::Div(inner, _) | Term::Mod(inner, _) | Term::Table(inner, _) => {
                let all_known = (0..determined.len() as u32).all(|v| determined[v as usize] || !inner.uses(Var(v)));
                if !all_known {
                    return false;
                }
            }
        }
    }
    if open.is_empty() {
        return false;
    }
    open.sort_unstable();
    let mut reach: i64 = 0;
    for (position, (c, v)) in open.iter().enumerate() {
        if *c <= reach {
            return false;
        }
        match stmt.vars[v.0 as usize].extent.known() {
            Some(n) => reach = reach.saturating_add(c.saturating_mul(n as i64 - 1)),
            None if position + 1 < open.len() => return false,
            None => {}
        }
    }
    for (_, v) in open {
        determined[v.0 as usize] = true;
    }
    true
}

fn enumerate(stmt: &IndexStmt) -> bool {
    let extents: Option<Vec<u64>> = stmt.vars.iter().map(|v| v.extent.known()).collect();
    let out_shape: Option<Vec<u64>> = stmt.out.shape.iter().map(|e| e.known()).collect();
    let (Some(extents), Some(out_shape)) = (extents, out_shape) else { return false };
    let Ok(n @ 0..=ENUMERATION_LIMIT) = shape::n_elements(&extents) else { return false };
    let mut seen = HashSet::with_capacity(n as usize);
    (0..n).all(|position| {
        let point: Vec<i64> = shape::unravel(position, &extents).into_iter().map(|c| c as i64).collect();
        let target: Option<Vec<u64>> = stmt
            .out
            .idx
            .iter()
            .zip(&out_shape)
            .map(|(idx, &extent)| stmt.out.edge.apply(idx.eval(&point), extent))
            .collect();
        target.is_none_or(|coords| seen.insert(coords))
    })
}
