//! Triangular systems.

use tw_ir::error::{Error, Result};
use tw_ir::scalar::BinaryOp;

use super::Algorithms;
use crate as build;
use tw_ir::ValueId;

/// Which half of a matrix is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Lower,
    Upper,
}

impl Algorithms<'_> {
    /// x of `a x = b`, of the lower half of a.
    pub fn solve_lower(&mut self, a: &ValueId, b: &ValueId) -> Result<ValueId> {
        self.solve_half(a, b, Half::Lower)
    }

    /// x of `a x = b`, of the upper half of a.
    pub fn solve_upper(&mut self, a: &ValueId, b: &ValueId) -> Result<ValueId> {
        self.solve_half(a, b, Half::Upper)
    }

    /// Substitutes panel by panel, from the corner where one unknown is left.
    fn solve_half(&mut self, a: &ValueId, b: &ValueId, half: Half) -> Result<ValueId> {
        let (a, b) = self.alike(a, b)?;
        let n = self.square(&a)?;
        if self.ty(&a).rank() != 2 || !matches!(self.ty(&b).rank(), 1 | 2) {
            return Err(Error::source("a triangular system of one matrix with a vector or a matrix on the right"));
        }
        if self.ty(&b).rank() == 1 {
            let op = build::expand_dims(self.ty(&b), 1)?;
            let column = self.one(op, &[&b])?;
            let x = self.solve_half(&a, &column, half)?;
            let op = build::squeeze(self.ty(&x), &[1])?;
            return self.one(op, &[&x]);
        }
        let (rows, columns) = self.size(&b)?;
        if rows != n {
            return Err(Error::source(format!("{n} equations with {rows} right-hand sides")));
        }
        if n == 0 || columns == 0 {
            return Ok(b);
        }
        let name = if half == Half::Lower { "linalg_solve_lower" } else { "linalg_solve_upper" };
        let cut = self.panels(&a, 1)?;
        let mut known: Option<ValueId> = None;
        for turn in 0..cut.n_tiles() {
            let panel = if half == Half::Lower { turn } else { cut.n_tiles() - 1 - turn };
            let range = cut.range(panel);
            let mut right = self.part(&b, &[range.clone(), 0..columns])?;
            if let Some(known) = &known {
                let others = if half == Half::Lower { 0..range.start } else { range.end..n };
                let beside = self.part(&a, &[range.clone(), others])?;
                let product = self.matmul(&beside, known)?;
                right = self.binary(BinaryOp::Sub, &right, &product)?;
            }
            let triangle = self.part(&a, &[range.clone(), range])?;
            let x = self.solve_triangle(name, &triangle, &right)?;
            known = Some(match (known, half) {
                (None, _) => x,
                (Some(known), Half::Lower) => self.concat(&[known, x], 0)?,
                (Some(known), Half::Upper) => self.concat(&[x, known], 0)?,
            });
        }
        known.ok_or_else(|| Error::internal("a system without equations"))
    }
}
