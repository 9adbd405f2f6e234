//! Random index expressions, and what must hold for them to stay inside.

use tw_ir::index::Interval;
use tw_ir::{BinaryOp, DType, Edge, Extent, Idx, Slot, Term, Var};

use super::MAX_DEFERRED;
use super::body::Body;
use super::rng::Rng;

/// The variables of a statement under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Vars {
    pub(super) extents: Vec<Extent>,
}

impl Vars {
    pub(super) fn idx(&self, k: usize) -> Idx {
        Idx::var(Var(k as u32))
    }

    /// Points of the iteration space, at most.
    pub(super) fn n_points(&self) -> f64 {
        self.extents.iter().map(|extent| extent.known().unwrap_or(MAX_DEFERRED) as f64).product()
    }

    /// Inclusive ranges, if every extent is known and not 0.
    pub(super) fn ranges(&self) -> Option<Vec<Interval>> {
        self.extents.iter().map(|extent| extent.known().filter(|&n| n > 0).map(|n| (0, n as i64 - 1))).collect()
    }

    /// A variable that runs exactly over the extent, if there is one; a random one of several.
    pub(super) fn matching(&self, rng: &mut Rng, extent: Extent) -> Option<usize> {
        let matching: Vec<usize> = (0..self.extents.len()).filter(|&k| self.extents[k] == extent).collect();
        rng.try_pick(&matching)
    }

    fn any(&self, rng: &mut Rng) -> Option<usize> {
        let known: Vec<usize> = (0..self.extents.len()).filter(|&k| self.extents[k].known().is_some()).collect();
        rng.try_pick(&known)
    }

    /// A random expression for an axis. It may leave the axis.
    pub(super) fn expression(&self, rng: &mut Rng, extent: Extent) -> Idx {
        if let Some(k) = self.matching(rng, extent)
            && (rng.chance(50) || extent.known().is_none())
        {
            return self.idx(k);
        }
        let (Some(n), Some(k)) = (extent.known(), self.any(rng)) else { return Idx::constant(0) };
        let (n, v) = (n as i64, self.idx(k));
        match rng.range(0, 9) {
            0 => Idx::constant(rng.range(0, (n - 1).max(0))),
            1 => v.times(-1).plus_constant(n - 1),
            2 => v.times(2).plus_constant(rng.range(0, 1)),
            3 => v.div(rng.range(2, 3)),
            4 => v.modulo(n.max(1)),
            5 => v.plus_constant(rng.range(-2, 2)),
            6 => {
                let w = self.idx(self.any(rng).unwrap_or(k));
                v.plus(&w).plus_constant(rng.range(-1, 0))
            }
            7 => {
                let w = self.idx(self.any(rng).unwrap_or(k));
                let sum = v.times(rng.range(1, 3)).plus(&w);
                sum.modulo(rng.range(2, 4)).plus(&sum.div(rng.range(2, 4))).times(rng.pick(&[1, -1, 2]))
            }
            8 => {
                let inner = v.plus_constant(rng.range(-1, 1));
                inner.table((0..rng.range(1, 5)).map(|_| rng.range(-1, n.max(1))).collect())
            }
            _ => v.times(rng.range(-2, 3)).plus_constant(rng.range(-3, 3)),
        }
    }

    /// True if expressions for the axes of a shape never leave it.
    pub(super) fn stays_inside(&self, idx: &[Idx], shape: &[Extent]) -> bool {
        idx.iter().zip(shape).all(|(idx, extent)| {
            if let Some(Var(k)) = idx.as_var()
                && self.extents[k as usize] == *extent
            {
                return true;
            }
            match (self.ranges(), extent.known()) {
                (Some(ranges), Some(n)) => {
                    let (low, high) = idx.interval(&ranges);
                    low >= 0 && high < n as i64
                }
                // Some variable has no values at all, or too little is known.
                _ => self.extents.contains(&Extent::Known(0)),
            }
        })
    }

    /// An edge rule for an access, and whether the access needs a guard to stay inside.
    pub(super) fn edge(&self, rng: &mut Rng, idx: &[Idx], shape: &[Extent]) -> (Edge, bool) {
        if self.stays_inside(idx, shape) {
            return (rng.pick(&[Edge::Error, Edge::Error, Edge::Fill, Edge::Clamp, Edge::Wrap]), false);
        }
        let is_known = shape.iter().all(|extent| extent.known().is_some());
        if is_known && rng.chance(25) {
            return (Edge::Error, true);
        }
        // Nothing is nearest in an empty axis, and one that depends on data may be empty.
        let may_be_empty = shape.iter().any(|extent| extent.known().is_none_or(|n| n == 0));
        (if may_be_empty { Edge::Fill } else { rng.pick(&[Edge::Fill, Edge::Clamp, Edge::Wrap]) }, false)
    }
}

/// The value of an index expression as scalar code; `vars` are the slots of the variables.
pub(super) fn idx_code(body: &mut Body<'_>, idx: &Idx, vars: &[Slot]) -> Slot {
    let mut sum = body.number(idx.offset(), DType::I64);
    for (term, factor) in idx.terms() {
        let value = match term {
            Term::Var(Var(k)) => vars[*k as usize],
            Term::Div(inner, n) | Term::Mod(inner, n) => {
                let (inner, n) = (idx_code(body, inner, vars), body.number(*n, DType::I64));
                body.binary(if matches!(term, Term::Div(..)) { BinaryOp::FloorDiv } else { BinaryOp::Mod }, inner, n)
            }
            Term::Table(inner, table) => {
                let index = idx_code(body, inner, vars);
                let mut found = body.number(table.last().copied().unwrap_or(0), DType::I64);
                for (k, &entry) in table.iter().enumerate().rev().skip(1) {
                    let (k, entry) = (body.number(k as i64, DType::I64), body.number(entry, DType::I64));
                    let reached = body.binary(BinaryOp::Gt, index, k);
                    found = body.select(reached, found, entry);
                }
                found
            }
        };
        let factor = body.number(*factor, DType::I64);
        let product = body.binary(BinaryOp::Mul, value, factor);
        sum = body.binary(BinaryOp::Add, sum, product);
    }
    sum
}

/// The condition that expressions stay inside a shape of known extents.
pub(super) fn inside_code(body: &mut Body<'_>, idx: &[Idx], shape: &[Extent], vars: &[Slot]) -> Vec<Slot> {
    let mut conditions = Vec::new();
    for (idx, extent) in idx.iter().zip(shape) {
        let Some(n) = extent.known() else { continue };
        let (value, zero, end) =
            (idx_code(body, idx, vars), body.number(0, DType::I64), body.number(n as i64, DType::I64));
        conditions.push(body.binary(BinaryOp::Ge, value, zero));
        conditions.push(body.binary(BinaryOp::Lt, value, end));
    }
    conditions
}
